// Condition: a linear system of a set condition, solved by factors in a narrow format and refined.

import { choiceButtons, valueSlider } from "../shared/page/choice_controls.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, dragActions, readTraits } from "../shared/page/model.js";
import { errorPlot, mapPlot } from "./plot.js";
import { conditionRefined, conditionSystem } from "./refined.js";
import {
  CN_CORRECTIONS, CN_LABELS, CN_RESIDUALS, cnSize, CONDITIONS, conditionVerdict, endText, roundoffOf,
} from "./words.js";

const CN_TRAITS = ["condition", "factors", "residual", "correction"];
const CN_SLICE_MS = 10; // of computing the map, between which the page may do other things

/** What the reader sets besides the format: the condition, the residual's format and who corrects. */
function conditionControls(h, actions) {
  const condition = valueSlider(h, { label: "Condition number κ ", take: (at) => actions.drag({ condition: CONDITIONS[at] }), end: actions.speak });
  const buttons = (label, options, trait) => choiceButtons(h, { label, options, take: (value) => actions.set({ [trait]: value }), name: "mp-cn-buttons" });
  const residual = buttons("Residual b − A x in", CN_RESIDUALS, "residual");
  const correction = buttons("Correction by", CN_CORRECTIONS, "correction");
  return {
    node: h("div", { class: "mp-cn-controls" }, condition.node, h("div", { class: "mp-cn-choices" }, residual.node, correction.node)),
    draw({ state }) {
      const nearest = CONDITIONS.reduce((best, one, i) => (Math.abs(Math.log(one / state.condition)) < Math.abs(Math.log(CONDITIONS[best] / state.condition)) ? i : best), 0);
      condition.draw(nearest, CONDITIONS.length - 1, cnSize(state.condition));
      residual.press(state.residual);
      correction.press(state.correction);
    },
  };
}

/** Every format of the factors: a button for each, and what became of the system. */
function factorTable(h, actions) {
  const heads = ["factors in", "κu", "first error", "ends", "backward error"];
  const rows = Object.entries(CN_LABELS).map(([name, label]) => {
    const button = h("button", { class: "mp-button mp-cn-name", type: "button", on: { click: () => actions.set({ factors: name }) } }, h("span", { class: `mp-cn-sample mp-cn-${name}`, "aria-hidden": "true" }), label);
    const cells = heads.slice(1).map((_, i) => h("td", { class: i === 0 || i === 3 ? "mp-cn-fine" : null }));
    return { name, button, cells, node: h("tr", {}, h("th", { scope: "row" }, button), cells) };
  });
  return {
    node: h("table", { class: "mp-table mp-cn-table" }, h("thead", {}, h("tr", {}, heads.map((text, i) => h("th", { scope: "col", class: i === 1 || i === 4 ? "mp-cn-fine" : null }, text)))), h("tbody", {}, rows.map(({ node }) => node))),
    draw({ state, all }) {
      for (const { name, button, cells, node } of rows) {
        const found = all[name];
        const some = found.backward.length > 0;
        const texts = [cnSize(state.condition * roundoffOf(name)), some ? cnSize(found.forward[0]) : "–", endText(found), some ? cnSize(Math.min(...found.backward)) : "–"];
        texts.forEach((text, i) => setText(cells[i], text));
        button.setAttribute("aria-pressed", String(name === state.factors));
        node.toggleAttribute("data-none", !found.converged);
      }
    },
  };
}

/** Solutions of the systems of all conditions: found(state) computes one and keeps it. */
function conditionSolver(facts) {
  const [systems, kept] = [new Map(), new Map()];
  const keyOf = ({ condition, factors, residual, correction }) => `${condition} ${factors} ${residual} ${correction}`;
  return {
    known: (state) => kept.get(keyOf(state)),
    found(state) {
      const key = keyOf(state);
      if (!systems.has(state.condition)) systems.set(state.condition, conditionSystem(facts, state.condition));
      if (!kept.has(key)) kept.set(key, conditionRefined(...systems.get(state.condition), state));
      return kept.get(key);
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const solver = conditionSolver(facts);
  let [timer, view] = [0, null];
  const save = bindModel(model, CN_TRAITS, draw, stop.signal);

  const actions = dragActions({ model, save, draw, speak: () => setText(status, verdict.textContent) });

  // The systems of all conditions, a few at a time.
  function computeMap() {
    const end = performance.now() + CN_SLICE_MS;
    const missing = CONDITIONS.flatMap((condition) => Object.keys(CN_LABELS).map((factors) => ({ ...view.state, condition, factors }))).filter((state) => !solver.known(state));
    while (missing.length && performance.now() < end) solver.found(missing.shift());
    map.draw(view);
    if (missing.length) timer = setTimeout(computeMap);
    el.dataset.mpMap = missing.length ? "computing" : "drawn";
  }

  const [verdict, status] = [h("p", { class: "mp-verdict mp-cn-verdict" }), h("p", { class: "mp-unseen", role: "status" })];
  const [controls, errors, table, map] = [conditionControls, errorPlot, factorTable, mapPlot].map((part) => part(h, actions));

  function draw() {
    const state = { ...readTraits(model, CN_TRAITS), size: facts.size };
    const all = Object.fromEntries(Object.keys(CN_LABELS).map((factors) => [factors, solver.found({ ...state, factors })]));
    const isSame = view && ["factors", "residual", "correction"].every((name) => view.state[name] === state[name]);
    view = { state, all, known: (condition, factors) => solver.known({ ...state, condition, factors }) };
    setText(verdict, conditionVerdict(state, all[state.factors], all.float64));
    for (const part of [controls, errors, table]) part.draw(view);
    many.hidden = state.correction !== "gmres";
    map.mark(view);
    if (isSame) return;
    clearTimeout(timer);
    computeMap();
  }

  const many = h("span", {}, `with GMRES, ${facts.size + 1} solves in a step are enough for any factors: those that need them all have not helped`);
  const key = (name, words) => h("span", {}, h("span", { class: `mp-cn-key-sample mp-cn-${name}-sample`, "aria-hidden": "true" }), words);
  el.classList.add("mp-widget", "mp-condition");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-cn" }, controls.node, table.node,
    h("p", { class: "mp-cn-title" }, "Errors after each solve with the factors"), errors.node,
    h("p", { class: "mp-plot-key" }, key("backward", "backward error: how well x fits A x = b"), key("forward", "error of x"), key("other", "backward error, other factors"), key("goal", "the goal, √n × 2⁻⁵²")),
    verdict, h("p", { class: "mp-cn-title" }, "Solves until the backward error is at the goal"), map.node,
    h("p", { class: "mp-plot-key" }, key("cursor", "the condition number that is set"), key("wall", "the first condition number at which 50 steps do not get there"), many), status)));
  draw();
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}

export default { render };
