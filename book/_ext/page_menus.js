// What the theme uses of Bootstrap, whose script is 24 kB gzipped: a menu that opens, a button's name beside it, and the
// button that leads back to the top (book_pages.py).
{
  // ---- the menu of downloads ------------------------------------------------------------------------------------
  const openers = document.querySelectorAll('[data-bs-toggle="dropdown"]');
  const menuOf = (opener) => opener.parentElement.querySelector(".dropdown-menu");
  const setOpen = (opener, isOpen) => {
    for (const element of [opener, menuOf(opener)]) element.classList.toggle("show", isOpen);
    opener.setAttribute("aria-expanded", isOpen);
  };

  openers.forEach((opener) => {
    const menu = menuOf(opener);
    const items = () => [...menu.querySelectorAll(".dropdown-item")];
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    opener.addEventListener("click", () => setOpen(opener, opener.getAttribute("aria-expanded") !== "true"));
    opener.parentElement.addEventListener("keydown", (event) => {
      const { key, target } = event;
      if (key === "Escape" && menu.classList.contains("show")) {
        setOpen(opener, false);
        opener.focus();
      } else if (key in moves) {
        event.preventDefault();
        setOpen(opener, true);
        const last = items().length - 1;
        const at = items().indexOf(target.closest(".dropdown-item"));
        const next = at < 0 ? (key === "ArrowDown" ? 0 : last) : Math.min(Math.max(at + moves[key], 0), last);
        items()[next].focus();
      }
    });
    opener.parentElement.addEventListener("focusout", ({ currentTarget, relatedTarget }) => {
      if (relatedTarget && !currentTarget.contains(relatedTarget)) setOpen(opener, false);
    });
  });
  addEventListener("click", ({ target }) => openers.forEach((opener) => {
    if (!opener.contains(target)) setOpen(opener, false);
  }));

  // ---- names of buttons -----------------------------------------------------------------------------------------
  const SHOWS_MS = 500; // after this long; the theme's own
  const GAP = 6; // pixels between a button and its name
  const made = (className) => Object.assign(document.createElement("div"), { className });
  const tip = made("tooltip show");
  const words = tip.appendChild(made("tooltip-inner"));
  Object.assign(tip, { id: "mp-tip", role: "tooltip" });
  Object.assign(tip.style, { position: "fixed", pointerEvents: "none" });
  let named, timer;

  const hide = () => {
    clearTimeout(timer);
    tip.remove();
    named?.removeAttribute("aria-describedby");
    named = undefined;
  };
  const show = (button, text) => {
    words.textContent = text;
    document.body.append(tip);
    named = button;
    if (button.getAttribute("aria-label") !== text) button.setAttribute("aria-describedby", tip.id);
    const at = button.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    const isBeside = button.dataset.bsPlacement === "left" && at.left > width + GAP;
    const left = isBeside ? at.left - width - GAP : at.left + (at.width - width) / 2;
    const top = isBeside ? at.top + (at.height - height) / 2 : at.bottom + GAP;
    tip.style.left = `${Math.max(GAP, Math.min(left, document.documentElement.clientWidth - width - GAP))}px`;
    tip.style.top = `${top}px`;
  };

  document.querySelectorAll('[data-bs-toggle="tooltip"]').forEach((button) => {
    const text = button.dataset.bsTitle ?? button.title;
    if (!button.ariaLabel && !button.textContent.trim()) button.ariaLabel = text;
    button.removeAttribute("title"); // else the browser shows it as well
    const begin = () => {
      hide();
      timer = setTimeout(() => show(button, text), SHOWS_MS);
    };
    button.addEventListener("mouseenter", begin);
    button.addEventListener("focus", begin);
    for (const end of ["mouseleave", "blur", "click"]) button.addEventListener(end, hide);
  });
  addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  addEventListener("scroll", hide, { passive: true });

  // ---- back to top, which the theme shows on narrow screens alone ------------------------------------------------
  const back = document.getElementById("pst-back-to-top");
  const narrow = matchMedia("(max-width: 1199.98px)");
  let before = 0;
  back?.addEventListener("click", () => scrollTo(0, 0));
  if (back) {
    addEventListener("scroll", () => {
      const isWanted = narrow.matches && scrollY < before && scrollY > innerHeight;
      // the page's own style="display: none" is a rule that is as strong (book_policy.py)
      back.style.setProperty("display", isWanted ? "block" : "none", "important");
      before = scrollY;
    }, { passive: true });
  }
}
