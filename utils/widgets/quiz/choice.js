// A question with a few answers to choose from. A prediction is noted first and compared when the reader asks for it.

import { setText } from "../shared/page/elements.js";
import { forgetProgress, readProgress, writeProgress } from "../shared/page/progress.js";
import { textNodes } from "./judge.js";

const SHORT_OPTION = 26; // options of at most so many characters stand side by side
const CHOICE_SAYS = {
  invite: "Choose what you expect. You can change your choice.",
  noted: "Noted. Now look below, then compare.",
  folded: "Noted. Press Compare to see what happens.", // in a page that folds the answer (answer_folds.js)
  early: "Press one of the answers first.",
  again: "Start anew.",
};

/** The element of a choice: h makes elements, say(text) speaks to those who do not see the page, lead begins the text. */
export function choiceItem(h, question, { say, lead }) {
  const { options, predict = false } = question;
  const rightOne = options.findIndex(({ right }) => right);
  let state = keptChoice(question);
  const noted = () => CHOICE_SAYS[document.querySelector(`[data-mp-answer="${question.id}"]`) ? "folded" : "noted"];

  const rows = options.map((option, i) => {
    const mark = h("span", { class: "mp-quiz-mark", "aria-hidden": "true" });
    const button = h("button", {
      class: "mp-button mp-quiz-option", type: "button", role: "radio", on: { click: () => press(i), keydown: (event) => move(event, i) },
    }, mark, h("span", {}, textNodes(h, option.text)));
    const said = h("p", { class: "mp-quiz-said" });
    button.ariaDescribedByElements = [said]; // by element, so that no id is needed; older browsers ignore it
    return { mark, button, said };
  });
  const short = options.every(({ text }) => text.length <= SHORT_OPTION);
  const group = { role: "radiogroup", "aria-label": "Answers" };
  const answers = short
    ? [h("div", { class: "mp-quiz-row", ...group }, rows.map(({ button }) => button)), ...rows.map(({ said }) => said)]
    : [h("div", { class: "mp-quiz-column", ...group }, rows.map(({ button, said }) => h("div", { class: "mp-quiz-box" }, button, said)))];
  const note = h("span", { class: "mp-quiz-note" });
  const compare = h("button", { class: "mp-button", type: "button", on: { click: compareNow } }, "Compare");
  const again = h("button", { class: "mp-link", type: "button", on: { click: restart } }, "start again");
  const foot = h("div", { class: "mp-quiz-foot" }, note, compare, again);
  const node = h("fieldset", { class: "mp-quiz-item" },
    h("legend", {}, lead ? h("strong", { class: "mp-quiz-lead" }, `${lead} `) : null, textNodes(h, question.text)), answers, foot);

  function save(change) {
    state = { ...state, ...change };
    writeProgress(question.id, state);
    draw();
  }

  function press(i) {
    if (predict && !state.solved) {
      save({ chosen: i });
      return say(noted());
    }
    save({ chosen: predict ? state.chosen : i, shown: [...new Set([...state.shown, i])], solved: state.solved || i === rightOne });
    say(rows[i].said.textContent);
  }

  function compareNow() {
    if (state.chosen < 0) return say(CHOICE_SAYS.early);
    save({ solved: true, shown: [...new Set([state.chosen, rightOne])] });
    rows[state.chosen].button.focus(); // the button that was pressed is gone
    say(state.shown.map((i) => rows[i].said.textContent).join(" "));
  }

  function restart() {
    forgetProgress(question.id);
    state = keptChoice(question);
    draw();
    rows[0].button.focus();
    say(CHOICE_SAYS.again);
  }

  // The arrows walk; a press chooses. To walk must not answer.
  function move(event, i) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? rows.length - 1 : step && (i + step + rows.length) % rows.length;
    if (to === undefined) return;
    event.preventDefault();
    rows[to].button.focus();
  }

  function leadOf(i) {
    if (!predict) return i === rightOne ? "Correct." : "Not yet.";
    if (i === state.chosen) return i === rightOne ? "As you predicted." : "You predicted this.";
    return i === rightOne ? "It is this one." : "Not this one.";
  }

  function draw() {
    rows.forEach(({ mark, button, said }, i) => {
      const shown = state.shown.includes(i);
      button.setAttribute("aria-checked", String(i === state.chosen));
      button.tabIndex = i === Math.max(0, state.chosen) ? 0 : -1;
      button.dataset.tone = shown ? (i === rightOne ? "good" : "bad") : "";
      setText(mark, shown ? (i === rightOne ? "✓" : "→") : "");
      said.hidden = !shown;
      said.dataset.tone = button.dataset.tone;
      if (!shown) return said.replaceChildren();
      const which = short ? [" ", h("b", {}, textNodes(h, options[i].text)), ":"] : [];
      said.replaceChildren(h("strong", {}, leadOf(i)), ...which, " ", ...textNodes(h, options[i].says));
    });
    const waiting = predict && !state.solved;
    setText(note, waiting ? (state.chosen < 0 ? CHOICE_SAYS.invite : noted()) : "");
    compare.hidden = !waiting;
    compare.setAttribute("aria-disabled", String(state.chosen < 0));
    again.hidden = !state.solved;
    foot.hidden = !predict && !state.solved;
  }

  draw();
  return node;
}

// What was chosen on an earlier visit; a question may have fewer options now.
function keptChoice({ id, options }) {
  const { solved, hints, chosen = -1, shown = [] } = readProgress(id);
  const known = (i) => Number.isInteger(i) && i >= 0 && i < options.length;
  return { solved, hints, chosen: known(chosen) ? chosen : -1, shown: Array.isArray(shown) ? shown.filter(known) : [] };
}
