// What follows a prediction is folded until the reader has answered it or wants to see it (answer_folds.py). A search in
// the page and a link into the fold open it too.
{
  const isAnswered = (id) => {
    try {
      return JSON.parse(localStorage.getItem(`mp-progress:${id}`) ?? "{}").solved === true;
    } catch {
      return false; // storage is off or holds something else
    }
  };
  const open = (box, why) => {
    box.dataset.mpOpen = why;
    box.lastElementChild.removeAttribute("hidden");
  };
  const close = (box) => {
    delete box.dataset.mpOpen;
    box.lastElementChild.setAttribute("hidden", "until-found");
  };
  const look = () => document.querySelectorAll("[data-mp-answer]").forEach((box) => {
    if (isAnswered(box.dataset.mpAnswer)) open(box, "answered");
    else if (box.dataset.mpOpen !== "shown") close(box);
  });
  const openTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const box = target?.closest("[data-mp-answer]");
    if (!box || "mpOpen" in box.dataset) return;
    open(box, "shown");
    target.scrollIntoView();
  };
  addEventListener("DOMContentLoaded", () => {
    look();
    for (const box of document.querySelectorAll("[data-mp-answer]")) {
      box.querySelector(".mp-answer-show button").addEventListener("click", () => {
        open(box, "shown");
        box.lastElementChild.setAttribute("tabindex", "-1");
        box.lastElementChild.focus({ preventScroll: true }); // the button is gone
      });
      box.lastElementChild.addEventListener("beforematch", () => open(box, "shown"));
    }
    openTarget();
  });
  addEventListener("hashchange", openTarget);
  for (const event of ["mp-progress", "storage"]) addEventListener(event, look);
}
