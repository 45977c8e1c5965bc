// The controls of DotProduct: what is added, how each lane adds it, and how far it has come.

import { FORMATS } from "../shared/numbers/formats.js";
import { setText } from "../shared/page/elements.js";
import { ADDERS, blocksOf } from "./sums.js";
import { blockReason, DATA_NAMES, LANE_NAMES, OPERAND_NAMES, PROMOTE_CHOICES, wholeText } from "./words.js";

const UNITS = { "fp8-14bit": " (FP8 model)", "fp8-aligned": " (FP8 model)", volta: " (V100)" };

function choice(h, label, options, take) {
  const select = h("select", { class: "mp-input", on: { change: () => take(select.value) } },
    options.map(([value, text]) => h("option", { value }, text)));
  return { select, node: h("label", { class: "mp-field" }, h("span", {}, label), select) };
}

/** How many products there are, and of what numbers. */
export function productControls(h, actions) {
  const field = h("input", {
    class: "mp-input mp-dot-count", type: "text", inputmode: "numeric", size: "7", autocomplete: "off",
    on: { change: () => actions.setProducts(field.value) },
  });
  const slider = h("input", {
    type: "range", min: 0, max: 16, step: 1, "aria-label": "K as a power of two",
    on: { input: () => actions.setProducts(String(2 ** Number(slider.value))) },
  });
  const data = choice(h, "Numbers", Object.entries(DATA_NAMES), (value) => actions.set({ data: value }));
  const operands = choice(h, "rounded to", OPERAND_NAMES.map((name) => [name, FORMATS[name].label]), (value) => actions.set({ operands: value }));
  const other = h("button", { class: "mp-button", type: "button", on: { click: actions.otherNumbers } }, "other numbers");
  return {
    node: h("div", { class: "mp-dot-controls" },
      h("label", { class: "mp-field" }, h("span", {}, "K products"), field),
      h("div", { class: "mp-dot-power" }, slider), h("div", { class: "mp-dot-numbers" }, data.node, operands.node, other)),
    describeBy(message) {
      field.ariaDescribedByElements = [message];
    },
    draw({ state, typed, wrong }) {
      const text = wrong ? typed : String(state.products);
      if (field.value !== text) field.value = text;
      field.setAttribute("aria-invalid", String(Boolean(wrong)));
      slider.value = String(Math.round(Math.log2(state.products)));
      slider.setAttribute("aria-valuetext", `K ${state.products}`);
      data.select.value = state.data;
      operands.select.value = state.operands;
      const random = state.data === "uniform" || state.data === "normal";
      other.setAttribute("aria-disabled", String(!random));
    },
  };
}

/** How the lanes add: for each an adder, how many products at once, and after how many it is promoted. */
export function laneControls(h, actions) {
  const lanes = LANE_NAMES.map((name, i) => {
    const adder = choice(h, "adds in", Object.entries(ADDERS).map(([key, { label }]) => [key, `${label}${UNITS[key] ?? ""}`]), (value) => actions.setLane(i, { adder: value, block: ADDERS[value].block }));
    const block = choice(h, "products at once", [1, 4, 8, 16, 32].map((count) => [count, String(count)]), (value) => actions.setLane(i, { block: Number(value) }));
    const promote = choice(h, "promoted to float32", PROMOTE_CHOICES.map((count) => [count, count ? `every ${wholeText(count)}` : "never"]), (value) => actions.setLane(i, { promote: Number(value) }));
    const key = h("span", { class: `mp-dot-name mp-dot-lane-${i}` }, name);
    const why = h("p", { class: "mp-dot-why" });
    block.select.ariaDescribedByElements = [why];
    const node = h("div", { class: "mp-dot-lane", role: "group", "aria-label": `Lane ${name}` }, key, adder.node, block.node, promote.node, why);
    return { adder, block, promote, why, node };
  });
  return {
    node: h("div", { class: "mp-dot-lanes" }, lanes[0].node, lanes[1].node),
    draw({ state }) {
      lanes.forEach(({ adder, block, promote, why, node }, i) => {
        const lane = state.lanes[i];
        node.hidden = lane === undefined;
        if (node.hidden) return;
        adder.select.value = lane.adder;
        const known = blocksOf(ADDERS[lane.adder]);
        for (const option of block.select.options) option.disabled = !known.includes(Number(option.value));
        block.select.value = String(lane.block);
        block.select.disabled = known.length === 1;
        setText(why, blockReason(ADDERS[lane.adder]));
        why.hidden = why.textContent === "";
        promote.select.value = String(lane.promote);
      });
    },
  };
}

/** How far it has come: a slider over k, single steps, a run, the stall. */
export function walkControls(h, actions) {
  const button = (text, click, more = "") => h("button", { class: `mp-button ${more}`, type: "button", on: { click } }, text);
  const [back, more] = [button("", () => actions.step(-1)), button("", () => actions.step(1))];
  const run = button("run", actions.toggleRun, "mp-primary mp-dot-run");
  const stall = button("", actions.toTheStall, "mp-dot-to-stall");
  const slider = h("input", {
    type: "range", min: 0, step: 1, "aria-label": "k, products added",
    on: { input: () => actions.moveTo(Number(slider.value) * Number(slider.dataset.step)) },
  });
  const place = h("span", { class: "mp-dot-k" });
  const check = (text, take) => {
    const input = h("input", { type: "checkbox", on: { change: () => take(input.checked) } });
    return { input, node: h("label", { class: "mp-check" }, input, ` ${text}`) };
  };
  const [both, log] = [check("compare two", actions.compare), check("log axes", (on) => actions.set({ log: on }))];
  return {
    node: h("div", { class: "mp-dot-walks" }, h("div", { class: "mp-dot-buttons", role: "group", "aria-label": "Additions" }, run, back, more, stall, both.node, log.node),
      h("div", { class: "mp-dot-along" }, slider, place)),
    draw({ state, runs, step }) {
      slider.max = String(Math.ceil(state.products / step));
      slider.dataset.step = String(step);
      setText(back, `${step} back`);
      setText(more, `add ${step}`);
      log.input.checked = state.log;
      both.input.checked = state.lanes.length > 1;
      const named = runs.findIndex((one) => stallPlace(one) !== null);
      setText(stall, named < 0 ? "does not stall" : "to the stall");
      stall.setAttribute("aria-disabled", String(named < 0));
    },
    move({ k, step, state, job }) {
      slider.value = String(Math.ceil(k / step));
      slider.setAttribute("aria-valuetext", `${k} of ${state.products} products`);
      setText(place, `k = ${wholeText(k)}`);
      setText(run, job ? "pause" : k === 0 ? "run" : k >= state.products ? "run again" : "run on");
      back.setAttribute("aria-disabled", String(k === 0));
      more.setAttribute("aria-disabled", String(k === state.products));
    },
  };
}

/** The number of products at which a lane stops growing, or most of them leave no trace; null if there is none. */
export const stallPlace = ({ stalledAt, swampedAt, overflowAt }) => overflowAt ?? stalledAt ?? swampedAt;
