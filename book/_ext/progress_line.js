// Counts what is done on this page; it stands right behind its line, so that nothing moves (book_progress.py).
{
  const link = document.currentScript.previousElementSibling.firstElementChild;
  const ids = link.dataset.mpIds.split(" ");
  const isSolved = (id) => /"solved":true/.test(localStorage.getItem(`mp-progress:${id}`));
  const count = () => {
    try {
      const solved = ids.filter(isSolved).length;
      const words = `${solved} of ${ids.length} done`;
      link.textContent = solved === ids.length ? `✓ ${words}` : words;
    } catch { /* nothing is stored: the line stays as it is */ }
  };
  count();
  for (const change of ["mp-progress", "storage", "pageshow"]) addEventListener(change, count);
}
