// A question whose answer is a number: a field, the hint that fits what was typed, and hints for whoever asks.

import { NumberTextError } from "../shared/numbers/number_text.js";
import { setText } from "../shared/page/elements.js";
import { forgetProgress, readProgress, writeProgress } from "../shared/page/progress.js";
import { judgeNumber, readQuizNumber, textNodes } from "./judge.js";

const TRIES_WITHOUT_HINTS = 2; // before the answer can be shown, where a question has no hints

/** The element of a number: h makes elements, say(text) speaks to those who do not see the page. */
export function numberItem(h, question, { say }) {
  const hints = question.hints ?? [];
  let state = keptNumber(question);
  let [tries, verdict] = [0, state.solved ? judgeNumber(question, readQuizNumber(state.text, question)) : null];

  const input = h("input", {
    class: "mp-input mp-quiz-number", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    enterkeyhint: "done", on: { keydown: (event) => event.key === "Enter" && check(), input: () => input.removeAttribute("aria-invalid") },
  });
  const hint = h("button", { class: "mp-button", type: "button", on: { click: giveHint } });
  const show = h("button", { class: "mp-link", type: "button", on: { click: showAnswer } }, "Show the answer");
  const again = h("button", { class: "mp-link", type: "button", on: { click: restart } }, "start again");
  const said = h("p", { class: "mp-quiz-said" });
  const given = h("ol", { class: "mp-quiz-hints" });
  input.ariaDescribedByElements = [said];
  input.value = state.text;
  const node = h("fieldset", { class: "mp-quiz-item" },
    h("legend", {}, textNodes(h, question.text)),
    h("div", { class: "mp-quiz-form" },
      h("label", { class: "mp-quiz-field" }, h("span", {}, "Your answer"), input, question.unit ? h("span", {}, question.unit) : null),
      h("button", { class: "mp-button", type: "button", on: { click: check } }, "Check"), hint, show, again),
    said, given);

  function check() {
    try {
      verdict = judgeNumber(question, readQuizNumber(input.value, question));
      tries += 1;
      if (verdict.right) save({ solved: true, text: input.value.trim() });
    } catch (error) {
      if (!(error instanceof NumberTextError || error instanceof RangeError)) throw error;
      verdict = { unread: true, says: error.message };
    }
    draw();
    say(said.textContent);
  }

  function giveHint() {
    save({ hints: Math.min(state.hints + 1, hints.length) });
    draw();
    if (state.hints === hints.length) input.focus(); // the button that was pressed is gone
    say(given.lastElementChild.textContent);
  }

  function showAnswer() {
    verdict = { shown: true, says: question.says };
    draw();
    input.focus();
    say(said.textContent);
  }

  function restart() {
    forgetProgress(question.id);
    state = keptNumber(question);
    [tries, verdict, input.value] = [0, null, ""];
    draw();
    input.focus();
    say("Start anew.");
  }

  function save(change) {
    state = { ...state, ...change };
    writeProgress(question.id, state);
  }

  function drawVerdict() {
    said.hidden = verdict === null;
    input.removeAttribute("aria-invalid");
    if (verdict === null) return said.replaceChildren();
    said.dataset.tone = verdict.right ? "good" : verdict.shown ? "" : "bad";
    if (verdict.unread) {
      input.setAttribute("aria-invalid", "true");
      return said.replaceChildren(verdict.says);
    }
    const unit = question.unit ? ` ${question.unit}` : "";
    const start = verdict.shown ? ["The answer is ", h("code", {}, question.answer), `${unit}.`] : [verdict.right ? "✓ Correct." : "→ Not yet."];
    said.replaceChildren(h("strong", {}, start), " ", ...textNodes(h, verdict.says));
  }

  function draw() {
    drawVerdict();
    const left = hints.length - state.hints;
    setText(hint, `Hint (${left} left)`);
    hint.hidden = left <= 0 || state.solved;
    show.hidden = state.solved || left > 0 || tries < (hints.length ? 1 : TRIES_WITHOUT_HINTS);
    again.hidden = !state.solved;
    given.hidden = state.hints === 0;
    given.replaceChildren(...hints.slice(0, state.hints).map((text, i) =>
      h("li", {}, h("strong", {}, `Hint ${i + 1} of ${hints.length}:`), " ", textNodes(h, text))));
  }

  draw();
  return node;
}

// The answer of an earlier visit counts only if it still is one.
function keptNumber(question) {
  const { solved, hints, text = "" } = readProgress(question.id);
  const kept = { solved: false, hints: Math.min(Number(hints) || 0, (question.hints ?? []).length), text: "" };
  try {
    const right = solved && judgeNumber(question, readQuizNumber(String(text), question)).right;
    return right ? { ...kept, solved: true, text: String(text) } : kept;
  } catch {
    return kept;
  }
}
