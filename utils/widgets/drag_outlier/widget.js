// DragOutlier: one outlier in a tensor of normal values, and what it costs all others under each format and scale.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel, dragActions, readTraits } from "../shared/page/model.js";
import { OUTLIER_CASES, OUTLIER_COLUMNS, OUTLIER_ROWS, outlierLosses, OUTLIERS, outlierTensor } from "./errors.js";
import { curvesPlot, nearestOutlier, valuesPlot } from "./plot.js";
import {
  caseText, errorShare, OUTLIER_KINDS, OUTLIER_LABELS, outlierText, SCALING_LABELS, SCALING_SHORT,
} from "./words.js";

const DO_TRAITS = ["outlier", "format", "scaling"];
const SLICE_MS = 10; // of computing the curves, between which the page may do other things

function lossTable(h, actions) {
  const formats = Object.keys(OUTLIER_CASES);
  const cells = [];
  const cell = (format, scaling) => {
    if (!OUTLIER_CASES[format].includes(scaling)) return h("td", { class: "mp-do-none" }, "–");
    const [error, zeros] = [h("strong", {}), h("span", {})];
    const small = h("span", { class: "mp-do-zeros" }, zeros, h("span", { class: "mp-do-fine" }, " zero"));
    const button = h("button", { class: "mp-button mp-do-cell", type: "button", on: { click: () => actions.set({ format, scaling }) } }, error, small);
    cells.push({ format, scaling, error, zeros, button });
    return h("td", {}, button);
  };
  const row = ([scaling, [name, block]]) => h("tr", {}, h("th", { scope: "row" }, name, block ? h("span", { class: "mp-do-block" }, ` ${block}`) : null, h("span", { class: `mp-do-dash mp-do-dash-${scaling}`, "aria-hidden": "true" })),
    formats.map((format) => cell(format, scaling)));
  return {
    node: h("table", { class: "mp-table mp-do-table" }, h("caption", {}, "Error of the rest; below it, the share that becomes 0"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "scale for a"), formats.map((format) => h("th", { scope: "col", class: `mp-do-${format}` }, `${OUTLIER_LABELS[format]} `, h("span", { class: "mp-do-kind" }, OUTLIER_KINDS[format]))))),
      h("tbody", {}, Object.entries(SCALING_SHORT).map(row))),
    draw({ state, losses }) {
      for (const { format, scaling, error, zeros, button } of cells) {
        const loss = losses[format][scaling];
        setText(error, errorShare(loss.error));
        setText(zeros, errorShare(loss.zeros, 2));
        button.setAttribute("aria-label", `${OUTLIER_LABELS[format]}, ${SCALING_LABELS[scaling]}: error ${errorShare(loss.error)}, zero ${errorShare(loss.zeros)}`);
        button.setAttribute("aria-pressed", String(state.format === format && state.scaling === scaling));
      }
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const x = outlierTensor();
  const lossOf = outlierLosses(x);
  const curves = new Map();
  let [timer, view] = [0, null];
  const save = bindModel(model, DO_TRAITS, draw, stop.signal);

  const actions = dragActions({ model, save, draw, speak: () => setText(status, verdict.textContent) });

  // All curves, a few points at a time: the points of a case, then the next case; first the one that is looked at.
  const isFirst = ([format, scaling]) => Number(format === model.get("format") && scaling === model.get("scaling"));
  const waiting = Object.entries(OUTLIER_CASES).flatMap(([format, scalings]) => scalings.flatMap((scaling) => OUTLIERS.map((outlier) => [format, scaling, outlier])))
    .sort((one, other) => isFirst(other) - isFirst(one));
  function computeCurves() {
    const end = performance.now() + SLICE_MS;
    while (waiting.length && performance.now() < end) {
      const [format, scaling, outlier] = waiting.shift();
      const key = `${format} ${scaling}`;
      if (!curves.has(key)) curves.set(key, []);
      curves.get(key).push([outlier, lossOf(format, scaling, outlier).error]);
    }
    plot.draw(view);
    if (waiting.length) timer = setTimeout(computeCurves);
    else el.dataset.mpCurves = "drawn";
  }

  const [verdict, status] = [h("p", { class: "mp-verdict mp-do-verdict" }), h("p", { class: "mp-unseen", role: "status" })];
  const shown = h("strong", {});
  const slider = h("input", { type: "range", min: 0, max: OUTLIERS.length - 1, step: 1, on: { input: () => actions.drag({ outlier: OUTLIERS[Number(slider.value)] }), change: actions.speak } });
  const [values, table, plot] = [valuesPlot(h, actions, x), lossTable(h, actions), curvesPlot(h, actions)];

  function draw() {
    const state = readTraits(model, DO_TRAITS);
    const losses = Object.fromEntries(Object.entries(OUTLIER_CASES).map(([format, scalings]) => [format, Object.fromEntries(scalings.map((scaling) => [scaling, lossOf(format, scaling, state.outlier)]))]));
    const isSame = view && view.state.format === state.format && view.state.scaling === state.scaling;
    view = { state, losses, curves, loss: losses[state.format][state.scaling], quiet: lossOf(state.format, state.scaling, 0) };
    setText(verdict, caseText(state, view.loss, view.quiet));
    setText(shown, outlierText(state.outlier));
    slider.value = String(OUTLIERS.indexOf(state.outlier) >= 0 ? OUTLIERS.indexOf(state.outlier) : OUTLIERS.indexOf(nearestOutlier(state.outlier)));
    slider.setAttribute("aria-valuetext", outlierText(state.outlier));
    values.draw(view);
    table.draw(view);
    if (!isSame) plot.draw(view);
    plot.mark(view);
  }

  el.classList.add("mp-widget", "mp-drag-outlier");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-do" },
    h("p", { class: "mp-do-title" }, `${OUTLIER_ROWS} × ${OUTLIER_COLUMNS.toLocaleString("en")} normal values by their size, and one outlier`),
    values.node, h("label", { class: "mp-slide" }, h("span", {}, "Outlier ", shown), slider), verdict, table.node,
    h("p", { class: "mp-do-title" }, "Error of the rest against the outlier"), plot.node, status)));
  draw();
  timer = setTimeout(computeCurves);
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}

export default { render };
