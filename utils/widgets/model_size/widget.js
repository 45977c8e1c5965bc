// ModelSize: how many bytes a training step takes on each card. The facts come from facts.py as the trait
// `facts`; the bytes are computed in shared/cost/training_bytes.js, and a plan is the other traits by their names.

import { adapterTensors, added, isAdapted, MS_MOST, msLedger, sizesFault } from "../shared/cost/training_bytes.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { ANSWER, roomOf } from "../shared/words/amounts.js";
import { savingList, sizeBar, sizeFields, sizeLedger } from "./panels.js";
import { MS_CHANGES, msFits, msSentence, msVerdict } from "./words.js";

const MS_TRAITS = ["model", "sizes", "method", "rank", "recipe", "optimizer", "batch", "length", "attention", "checkpointing", "padded", "accumulate", "shards", "stage", "card", "memory"];

/** Everything that is shown of a plan; bytes as numbers, but for those of the ledger. */
export function sized(facts, plan) {
  const ledger = msLedger(facts, plan);
  const room = roomOf(facts, plan);
  const total = totalOf(ledger);
  const savings = Object.entries(MS_CHANGES).map(([name, set]) => {
    const change = set(plan);
    const then = change && totalOf(msLedger(facts, { ...plan, ...change }));
    return { name, bytes: change && total - then, fits: Boolean(change) && msFits(then, room) === "true" };
  });
  const trained = isAdapted(facts, plan) ? Number(added(adapterTensors(facts, plan).map(([values, times]) => values * times))) : Number(ledger.parameters);
  return { ledger, total, room, trained, shards: plan.shards, savings, largest: largestBatch(facts, plan, room) };
}

/** The bytes of a ledger together, as a number. */
const totalOf = ({ weights, master, gradients, optimizer, activations, logits }) => Number(weights + master + gradients + optimizer + activations + logits);

/** The largest batch that fits into the room, 0 if none does: more texts never take less. */
export function largestBatch(facts, plan, room) {
  const fits = (batch) => msFits(totalOf(msLedger(facts, { ...plan, batch })), room) === "true";
  let [least, most] = [0, MS_MOST + 1];
  while (most - least > 1) {
    const middle = Math.floor((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle;
  }
  return least;
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const read = () => {
    const plan = readTraits(model, MS_TRAITS);
    return plan.model ? { ...plan, sizes: facts.architectures[plan.model] } : plan;
  };
  const first = readTraits(model, MS_TRAITS);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const verdict = h("p", { class: "mp-verdict mp-ms-verdict" });
  const sentence = h("p", { class: "mp-ms-sentence" });
  const result = h("div", { class: "mp-ms-result", role: "group", "aria-label": ANSWER.fresh });
  let shown = null;
  const save = bindModel(model, MS_TRAITS, draw, stop.signal);

  const actions = {
    room: (plan) => roomOf(facts, plan),
    stale(on) {
      result.toggleAttribute("data-stale", on);
      result.setAttribute("aria-label", on ? ANSWER.stale : ANSWER.fresh);
      if (on) setText(status, ""); // the next answer is said even if it is the same
    },
    set(change) {
      save("card" in change ? { memory: 0, ...change } : change);
      draw();
      setText(status, `${verdict.textContent} ${sentence.textContent}`);
    },
    setModel(name) {
      actions.set(name === "" ? { model: "", sizes: read().sizes } : { model: name, sizes: {} });
    },
    setSize(name, count) {
      const { sizes: before } = read();
      const shared = before.groups !== before.heads;
      const sizes = { ...before, [name]: count, ...(name === "heads" && !shared ? { groups: count } : {}) };
      const fault = sizesFault(sizes);
      if (!fault) actions.set({ model: "", sizes });
      return fault;
    },
    apply(name) {
      const change = MS_CHANGES[name](read());
      if (change) actions.set(change);
    },
    takeLargest() {
      if (shown.largest > 0) actions.set({ batch: shown.largest });
    },
    reset: () => actions.set(first),
  };
  const [form, bar, table, changes] = [sizeFields(h, facts, actions), sizeBar(h, facts), sizeLedger(h, facts), savingList(h, facts, actions)];

  function draw() {
    const plan = read();
    shown = sized(facts, plan);
    for (const panel of [form, bar, table, changes]) panel.draw(plan, shown);
    setText(verdict, msVerdict(shown));
    verdict.dataset.fits = msFits(shown.total, shown.room);
    setText(sentence, msSentence(shown, facts.items));
    actions.stale(false);
  }

  result.append(verdict, bar.node, sentence, h("div", { class: "mp-ms-columns" }, table.node, changes.node));
  el.classList.add("mp-widget", "mp-model-size");
  el.replaceChildren(h("div", { class: "mp-panel" }, form.node, result, h("p", { class: "mp-ms-source" }, facts.left_out), status));
  draw();
  return () => stop.abort();
}

export default { render };
