// Quiz: one or several questions of utils/checks/questions.py. What is said to an answer: judge.js; the kinds: beside it.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { forgetProgress, readProgress, writeProgress } from "../shared/page/progress.js";
import { choiceItem } from "./choice.js";
import { textNodes } from "./judge.js";
import { numberItem } from "./number.js";

const QUIZ_KINDS = { choice: choiceItem, number: numberItem, task: taskItem };

// Work that Python checks: the page only keeps the tick.
function taskItem(h, question, { say }) {
  const box = h("input", { type: "checkbox", on: { change: tick } });
  box.checked = readProgress(question.id).solved === true;
  const said = question.said ? h("p", { class: "mp-quiz-said", "data-tone": "bad" }, textNodes(h, question.said)) : null;
  const hint = question.hint
    ? h("details", { class: "mp-quiz-hint" }, h("summary", {}, "Hint"), textNodes(h, question.hint)) : null;

  function tick() {
    if (box.checked) writeProgress(question.id, { solved: true, hints: 0 });
    else forgetProgress(question.id);
    say(box.checked ? "Noted as done." : "Noted as not done.");
  }

  return h("div", { class: "mp-quiz-item mp-quiz-task" }, said, hint,
    h("label", { class: "mp-quiz-tick" }, box, h("span", {}, textNodes(h, question.text))),
    h("p", { class: "mp-quiz-note" }, "Python checks this one. Tick it when the check says ", h("em", {}, "correct"), "."));
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const say = (text) => setText(status, text);

  function fill() {
    const items = model.get("questions").map((question) => h("div", { class: "mp-quiz-part" },
      QUIZ_KINDS[question.kind](h, question, { say, lead: question.predict ? "Predict first." : "" })));
    // JupyterLab takes arrows and letters for its own commands unless an element says that it needs them.
    el.replaceChildren(h("div", { class: "mp-panel mp-quiz-panel", "data-lm-suppress-shortcuts": "true" }, items, status));
  }

  el.classList.add("mp-widget", "mp-quiz");
  fill();
  bindModel(model, ["questions"], fill, stop.signal);
  return () => stop.abort();
}

export default { render, linkable: false };
