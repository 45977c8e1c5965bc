// TokensPerSecond: from model, weights, card, batch and context to the tokens a second that the memory allows.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel, dragActions, readTraits } from "../shared/page/model.js";
import { tpCase, tpOwnPoints, tpPoints } from "./bytes.js";
import { tpControls, tpLanes, tpPlot, tpTable } from "./panels.js";
import { tpMeasured, tpVerdict } from "./words.js";

const TP_TRAITS = ["model", "weights", "card", "batch", "context", "kv_bits", "head"];

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const save = bindModel(model, TP_TRAITS, draw, stop.signal);

  const actions = dragActions({ model, save, draw, speak: () => setText(status, `${verdict.textContent} ${measured.textContent}`) });

  const [verdict, status] = [h("p", { class: "mp-verdict mp-tp-verdict" }), h("p", { class: "mp-unseen", role: "status" })];
  const measured = h("p", { class: "mp-tp-read" });
  const [controls, lanes, table, plot] = [tpControls(h, facts, actions), tpLanes(h), tpTable(h, facts, actions), tpPlot(h, actions)];

  function draw() {
    const state = readTraits(model, TP_TRAITS);
    const shown = tpCase(facts, state);
    const all = facts.formats.map(({ name }) => tpCase(facts, { ...state, weights: name }));
    const points = tpPoints(facts, state);
    const own = tpOwnPoints(facts, state);
    setText(verdict, tpVerdict(shown));
    verdict.toggleAttribute("data-too-large", !shown.fits);
    setText(measured, tpMeasured(own, shown));
    controls.draw(shown);
    lanes.draw(shown, own);
    table.draw(shown, all);
    plot.draw(shown, all, points);
  }

  const key = (name, words) => h("span", {}, h("span", { class: `mp-tp-${name}-sample`, "aria-hidden": "true" }), words);
  el.classList.add("mp-widget", "mp-tokens-per-second");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-tp" }, controls.node, verdict, lanes.node, measured, table.node,
    h("p", { class: "mp-tp-title" }, "Tokens a second of all sequences, against the bytes of a step"), plot.node,
    h("p", { class: "mp-plot-key" }, key("spot", "at most"), key("diamond", "measured, one short sequence"), key("line", "bandwidth divided by bytes")),
    h("p", { class: "mp-tp-source" }, facts.left_out), status)));
  draw();
  return () => stop.abort();
}

export default { render };
