// A formula wider than its column scrolls: the keyboard has to reach it, and no other formula (book_pages.py).
{
  const mark = () => document.querySelectorAll(".katex-display").forEach((formula) => {
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
    else formula.removeAttribute("tabindex");
  });
  addEventListener("resize", mark);
  addEventListener("load", () => document.fonts.ready.then(mark));
}
