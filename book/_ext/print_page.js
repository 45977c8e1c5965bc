// A page on paper is light, and shows what is folded; afterwards it is as it was (book_print.py).
{
  const root = document.documentElement;
  let theme, folded = [], answers = [];
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    folded = [...document.querySelectorAll("article details:not([open])")];
    folded.forEach((details) => { details.open = true; });
    answers = [...document.querySelectorAll("[data-mp-answer] > [hidden]")];
    answers.forEach((answer) => answer.removeAttribute("hidden"));
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = theme;
    folded.forEach((details) => { details.open = false; });
    answers.forEach((answer) => answer.setAttribute("hidden", "until-found"));
  });
}
