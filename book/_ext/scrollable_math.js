// A formula, a table or code wider than its column scrolls: the keyboard has to reach it, and no other (book_pages.py).
// The theme does so for tables and code 0.3 s after the window has changed: too late for who presses a key at once,
// and never for what was folded and is opened.
{
  const mark = (box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  addEventListener("DOMContentLoaded", () => {
    const boxes = document.querySelectorAll(".katex-display, .pst-scrollable-table-container, pre");
    const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));
    boxes.forEach((box) => sizes.observe(box));
    addEventListener("load", () => document.fonts.ready.then(() => boxes.forEach(mark)));
  });
}
