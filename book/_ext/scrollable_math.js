// A formula or a table wider than its column scrolls: the keyboard has to reach it, and no other one (book_pages.py).
// The theme does so for tables 0.3 s after the window has changed, too late for who presses a key at once.
{
  const mark = () => document.querySelectorAll(".katex-display, .pst-scrollable-table-container").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
  addEventListener("resize", mark);
  addEventListener("load", () => document.fonts.ready.then(mark));
}
