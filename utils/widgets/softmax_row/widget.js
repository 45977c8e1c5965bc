// SoftmaxRow: a row of scores and one of padding, a mask, and their softmax. The state and its changes.

import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { parseWhole } from "../shared/words/amounts.js";
import { withCommas } from "../shared/words/sizes.js";
import { valueText } from "./mask_controls.js";
import { resultPart, rowControls, scoreFields, SR_TRAITS } from "./panels.js";
import { innerFormat, readMaskValue, softmaxSteps } from "./steps.js";
import { taskControl } from "./task_control.js";
import { rowVerdict } from "./words.js";

const SR_COPIES = "Copies of the row";

/** The steps of a row and what is said of them. */
export function computedRow(row) {
  const steps = softmaxSteps({ ...row, numbers: row.scores.map(parseNumber) });
  return { steps, verdict: rowVerdict(row, steps) };
}

/** The same row with every score masked. */
export const paddingOf = (row) => ({ ...row, masked: row.masked.map(() => true) });

const noteText = (row) => [
  row.mask === "none" ? "Without a mask there is no row of padding." : "",
  `Score + mask is rounded to ${row.format}, and every later result to ${innerFormat(row).name}. The sum of the exponentials is rounded only once, at the end, and the sum of the weights is exact.`,
  "On a CPU, torch.softmax computes float16 and bfloat16 rows in float32 and then rounds each weight to the dtype of the scores. Choose float32 as the dtype of the softmax to see the weights before that last rounding.",
  "The length of a score’s bar grows with the logarithm of its magnitude; the bar of a weight shows the total of all its copies.",
].filter(Boolean).join(" ");

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  // `typed` stands in the fields and may be faulty: then `faults` has a sentence, by the place of the score or a name.
  let [typed, faults] = [{}, {}];
  const save = bindModel(model, SR_TRAITS, follow, stop.signal);

  function read() {
    const row = readTraits(model, SR_TRAITS);
    return { ...row, masked: row.scores.map((_, i) => row.masked[i] === true) };
  }

  function set(change, { speak = true } = {}) {
    save(change);
    if ("format" in change && !("value" in faults)) typed.value = valueText(read());
    draw({ isNew: true });
    if (speak) say();
  }

  // What is said of a task comes first, then a sentence for each row.
  function say() {
    const padding = other.node.hidden ? "" : `A row of padding: ${other.text()}`;
    setText(status, [tasks?.feedback(), message.textContent || own.text(), padding].filter(Boolean).join(" "));
  }

  const changed = (list, i, value) => list.map((one, k) => (k === i ? value : one));

  // Take what is typed in a field: read(text), which throws, and what changes then; a fault is named only at its end.
  function type(field, text, refuse, { read: parse, change, says }) {
    try {
      parse(text);
      delete faults[field];
      return set(change(), { speak: refuse });
    } catch (error) {
      if (!(error instanceof NumberTextError)) throw error;
      if (refuse) faults[field] = says(error.message);
      draw();
      if (refuse) say();
    }
  }

  const stillBelow = (text) => `Below it is still ${text.trim().replace(/^-/, "−")}.`;

  const actions = {
    set,
    start(row) {
      save({ ...row });
      follow();
      say();
    },
    preset(row) {
      tasks?.leave();
      actions.start(row);
    },
    typeScore(i, text, { refuse }) {
      typed.scores[i] = text;
      type(i, text, refuse, {
        read: parseNumber,
        change: () => ({ scores: changed(model.get("scores"), i, text) }),
        says: (fault) => `Score ${i + 1}: ${fault} ${stillBelow(model.get("scores")[i])}`,
      });
    },
    takeValue(value) {
      typed.value = valueText({ ...read(), value });
      delete faults.value;
      set({ value });
    },
    typeValue(text, { refuse }) {
      typed.value = text;
      type("value", text, refuse, {
        read: (typedText) => readMaskValue(typedText, FORMATS[model.get("format")]),
        change: () => ({ value: text.trim() }),
        says: (fault) => `Value of the mask: ${fault} ${stillBelow(valueText(read()))}`,
      });
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
  const note = h("p", { class: "mp-sr-note" });
  const controls = rowControls(h, actions, facts);
  const fields = scoreFields(h, actions, facts.most_scores, controls.copies);
  const [own, other] = [resultPart(h, facts.most_scores, "Your row"), resultPart(h, facts.most_scores, "A row of padding")];
  for (const part of [controls, fields]) part.describeBy(message);
  const results = h("div", { class: "mp-sr-results" }, own.node, other.node, note);
  const goals = model.get("goals");
  const speakNow = (text) => {
    draw();
    setText(status, text);
  };
  const tasks = goals.length ? taskControl(h, { goals, model, start: actions.start, say: speakNow }) : null;

  function draw({ isNew = false } = {}) {
    const row = read();
    const padding = paddingOf(row);
    const [first, second] = [computedRow(row), computedRow(padding)];
    if (isNew) tasks?.check(row, first.steps, second.steps);
    for (const part of [controls, fields]) part.draw({ row, typed, faults });
    own.draw(row, first);
    other.draw(padding, second);
    other.node.hidden = row.mask === "none";
    tasks?.draw();
    const [fault = ""] = Object.values(faults);
    setText(message, fault);
    message.hidden = fault === "";
    results.toggleAttribute("data-stale", fault !== "");
    setText(note, noteText(row));
  }

  function follow() {
    const row = read();
    [typed, faults] = [{ scores: [...row.scores], copies: withCommas(String(row.copies)), value: valueText(row) }, {}];
    draw();
  }

  follow();
  el.classList.add("mp-widget", "mp-softmax-row");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-sr" }, tasks?.node, controls.node, fields.node, message, results, status)));
  return () => stop.abort();
}

export default { render };
