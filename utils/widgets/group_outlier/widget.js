// GroupOutlier: a row of weights in 4 or 8 bits, a scale for each group of it, and one outlier that can be dragged.

import { choiceButtons, valueSlider } from "../shared/page/choice_controls.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, dragActions, readTraits } from "../shared/page/model.js";
import {
  GO_COUNT, goBits, GROUP_BITS, groupedRow, GROUPS, groupWeights, heightOf, outlierSizes, rowWith,
} from "./codes.js";
import { pricePlot, rowPlot } from "./plot.js";
import { GO_KINDS, goNumber, goOutlier, goShare, groupName, groupVerdict } from "./words.js";

const GO_TRAITS = ["weights", "outlier", "place", "bits", "group", "symmetric"];

/** What the reader sets: the format, the group size, the outlier and its place. */
function groupControls(h, actions) {
  let sizes = [0];
  const buttons = (label, options, take) => choiceButtons(h, { label, options, take, name: "mp-go-buttons" });
  const slide = (label, take) => valueSlider(h, { label, take, end: actions.speak });
  const bits = buttons("Each weight in", GROUP_BITS.map((count) => [count, `int${count}`]), (value) => actions.set({ bits: value }));
  const kind = buttons("Codes", GO_KINDS, (value) => actions.set({ symmetric: value }));
  const group = slide("One scale for ", (value) => actions.drag({ group: GROUPS.at(-1 - value) }));
  const outlier = slide("Outlier ", (value) => actions.drag({ outlier: sizes[value] }));
  const place = slide("at weight ", (value) => actions.drag({ place: value + 1 }));
  return {
    node: [h("div", { class: "mp-go-choices" }, bits.node, kind.node), h("div", { class: "mp-go-slides" }, group.node, outlier.node, place.node)],
    draw({ state, row, sizes: known }) {
      sizes = known;
      bits.press(state.bits);
      kind.press(state.symmetric);
      group.draw(GROUPS.length - 1 - GROUPS.indexOf(state.group), GROUPS.length - 1, state.group === row.length ? `all ${row.length} weights` : `${state.group} weights`);
      const nearest = sizes.reduce((best, size, i) => (Math.abs(size - state.outlier) < Math.abs(sizes[best] - state.outlier) ? i : best), 0);
      outlier.draw(nearest, sizes.length - 1, goOutlier(state.outlier));
      place.draw(state.place - 1, row.length - 1, String(state.place));
    },
  };
}

/** Every group size with symmetric and asymmetric codes: a button for each. */
function groupTable(h, actions) {
  const cells = [];
  const cell = (group, symmetric) => {
    const [error, more] = [h("strong", {}), h("span", { class: "mp-go-zeros" })];
    const button = h("button", { class: "mp-button mp-go-cell", type: "button", on: { click: () => actions.set({ group, symmetric }) } }, error, more);
    cells.push({ group, symmetric, error, more, button });
    return h("td", {}, button);
  };
  const caption = h("caption", {});
  const head = (text) => h("th", { scope: "col" }, text);
  return {
    node: h("table", { class: "mp-table mp-go-table" }, caption, h("thead", {}, h("tr", {}, head("one scale for"), GO_KINDS.map(([, name]) => head(name)))),
      h("tbody", {}, GROUPS.map((group) => h("tr", {}, h("th", { scope: "row" }, groupName(group, GO_COUNT)), GO_KINDS.map(([symmetric]) => cell(group, symmetric)))))),
    draw({ state, cases }) {
      setText(caption, `int${state.bits}: error of the rest; bits per weight, and share that becomes 0`);
      for (const { group, symmetric, error, more, button } of cells) {
        const one = cases.find((found) => found.bits === state.bits && found.group === group && found.symmetric === symmetric);
        const [share, price, zeros] = [goShare(one.error), goNumber(one.price), goShare(one.zeros / one.count, 2)];
        setText(error, share);
        setText(more, `${price} bits, ${zeros}`);
        button.setAttribute("aria-label", `${group === GO_COUNT ? "" : "groups of "}${groupName(group, GO_COUNT)}, ${symmetric ? "symmetric" : "asymmetric"}: error ${share}, ${price} bits per weight, ${zeros} become 0`);
        button.setAttribute("aria-pressed", String(state.group === group && state.symmetric === symmetric));
      }
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const generated = groupWeights();
  const save = bindModel(model, GO_TRAITS, draw, stop.signal);

  const actions = dragActions({ model, save, draw, speak: () => setText(status, verdict.textContent) });

  const [verdict, status] = [h("p", { class: "mp-verdict mp-go-verdict" }), h("p", { class: "mp-unseen", role: "status" })];
  const parts = [groupControls, rowPlot, groupTable, pricePlot].map((part) => part(h, actions));
  const [controls, picture, table, prices] = parts;

  function draw() {
    const state = readTraits(model, GO_TRAITS);
    const weights = state.weights.length ? Float32Array.from(state.weights) : generated;
    const row = rowWith(weights, state.outlier, state.place);
    const height = heightOf(weights);
    const cases = GROUP_BITS.flatMap((bits) => GO_KINDS.flatMap(([symmetric]) => GROUPS.map((group) => {
      const { error, zeros, count } = groupedRow(row, { ...state, bits, symmetric, group });
      return { bits, symmetric, group, error, zeros, count, price: goBits({ bits, symmetric, group }) };
    })));
    const now = { state, row, height, cases, sizes: outlierSizes(height), view: groupedRow(row, state) };
    setText(verdict, groupVerdict(state, now.view, row, groupedRow(weights, { ...state, outlier: 0 })));
    for (const part of parts) part.draw(now);
  }

  const key = (name, words) => h("span", {}, h("span", { class: `mp-go-sample mp-go-${name}-sample`, "aria-hidden": "true" }), words);
  el.classList.add("mp-widget", "mp-group-outlier");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-go" }, controls.node[0],
    h("p", { class: "mp-go-title" }, `A row of ${GO_COUNT} weights, and the levels that each group can store`), picture.node,
    h("p", { class: "mp-plot-key" }, key("weights", "weight"), key("stored", "what is stored"), key("lost", "becomes 0"), key("rungs", "levels of the group"), h("span", {}, "Grey: heights by their logarithm.")),
    controls.node[1], verdict, table.node, h("p", { class: "mp-go-title" }, "Error of the rest against bits per weight"), prices.node,
    h("p", { class: "mp-plot-key" }, key("solid", "symmetric"), key("dashed", "asymmetric"), h("span", {}, "Each point is a group size, the row at the left, 8 at the right.")), status)));
  draw();
  return () => stop.abort();
}

export default { render };
