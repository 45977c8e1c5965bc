// SoftmaxRow: a row of scores, a mask, and a softmax in a narrow format. The state and its changes.

import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { parseWhole } from "../shared/words/amounts.js";
import { withCommas } from "../shared/words/sizes.js";
import { rowControls, scoreFields, stepTable } from "./panels.js";
import { largestNumber, softmaxSteps } from "./steps.js";
import { rowNumber, rowVerdict } from "./words.js";

const SR_TRAITS = ["scores", "masked", "format", "softmax", "mask", "copies"];
const SR_COPIES = "Copies of the row";

/** The steps of a row and what is said of them. */
export function computedRow(row) {
  const steps = softmaxSteps({ ...row, numbers: row.scores.map(parseNumber) });
  return { steps, verdict: rowVerdict(row, steps) };
}

const noteText = (fmt) => [
  `Every result is rounded to ${fmt.label}. The sum of the exponentials is rounded only once, at the end; a library may round more often, or add in float32. The sum of the weights is exact.`,
  `The lowest number is ${rowNumber(-largestNumber(fmt))}, torch.finfo(dtype).min; masked_fill can replace a score with it.`,
  "The length of a score's bar grows with the logarithm of its magnitude; the bar of a weight shows the total of all its copies.",
].join(" ");

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  // `typed` stands in the fields and may be faulty: then `faults` has a sentence, by the place of the score or "copies".
  let [typed, faults] = [{}, {}];
  const save = bindModel(model, SR_TRAITS, follow, stop.signal);

  function read() {
    const row = readTraits(model, SR_TRAITS);
    return { ...row, masked: row.scores.map((_, i) => row.masked[i] === true) };
  }

  function set(change, { speak = true } = {}) {
    save(change);
    draw();
    if (speak) say();
  }

  const say = () => setText(status, message.textContent || verdict.textContent);
  const changed = (list, i, value) => list.map((one, k) => (k === i ? value : one));

  const actions = {
    set,
    start(row) {
      save({ ...row });
      follow();
      say();
    },
    typeScore(i, text, { refuse }) {
      typed.scores[i] = text;
      try {
        parseNumber(text);
        delete faults[i];
        return set({ scores: changed(model.get("scores"), i, text) }, { speak: refuse });
      } catch (error) {
        if (!(error instanceof NumberTextError)) throw error;
        if (refuse) faults[i] = `Score ${i + 1}: ${error.message} Below it is still ${model.get("scores")[i].trim().replace(/^-/, "−")}.`;
        draw();
        if (refuse) say();
      }
    },
    mask: (i, on) => set({ masked: changed(read().masked, i, on) }),
    typeCopies(text) {
      const { amount, wrong } = parseWhole(text, SR_COPIES, facts.most_copies);
      typed.copies = text;
      if (wrong) faults.copies = `${wrong} Below it is still ${withCommas(String(model.get("copies")))}.`;
      else delete faults.copies;
      return set(wrong ? {} : { copies: amount });
    },
    stepCopies(by) {
      const copies = Math.min(Math.max(model.get("copies") + by, 1), facts.most_copies);
      typed.copies = withCommas(String(copies));
      delete faults.copies;
      set({ copies });
    },
    resize(by) {
      const { scores, masked } = read();
      const count = scores.length + by;
      if (count < 1 || count > facts.most_scores) return;
      if (by < 0) delete faults[count];
      typed.scores = by < 0 ? typed.scores.slice(0, count) : [...typed.scores, "0"];
      set(by < 0 ? { scores: scores.slice(0, count), masked: masked.slice(0, count) } : { scores: [...scores, "0"], masked: [...masked, false] });
    },
  };

  const message = h("p", { class: "mp-sr-message" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const verdict = h("p", { class: "mp-verdict mp-sr-verdict" });
  const note = h("p", { class: "mp-sr-note" });
  const [controls, fields] = [rowControls(h, actions, facts), scoreFields(h, actions, facts.most_scores)];
  const table = stepTable(h, facts.most_scores);
  for (const part of [controls, fields]) part.describeBy(message);
  const results = h("div", { class: "mp-sr-results" }, verdict, table.node, note);

  function draw() {
    const row = read();
    const { steps, verdict: text } = computedRow(row);
    const view = { row, steps, typed, faults };
    for (const part of [controls, fields, table]) part.draw(view);
    setText(verdict, text);
    const [first = ""] = Object.values(faults);
    setText(message, first);
    message.hidden = first === "";
    results.toggleAttribute("data-stale", first !== "");
    setText(note, noteText(FORMATS[row.format]));
  }

  function follow() {
    const { scores, copies } = read();
    [typed, faults] = [{ scores: [...scores], copies: withCommas(String(copies)) }, {}];
    draw();
  }

  follow();
  el.classList.add("mp-widget", "mp-softmax-row");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-sr" }, controls.node, fields.node, message, results, status)));
  return () => stop.abort();
}

export default { render };
