// The parts of BlockEditor: its controls, the values as bars, the chosen value and its block's scale in bits, and the
// same values in every format.

import { toHex } from "../shared/numbers/codec.js";
import { bitsPanel } from "../shared/page/bit_buttons.js";
import { setText } from "../shared/page/elements.js";
import { fewDigits } from "../shared/words/amounts.js";
import { blockView } from "./block.js";
import { beText, cellFate, cellSteps, codeText, errorText, scaleReason, scaleValue, shortText } from "./words.js";

const BE_MARKS = { saturated: "max", zero: "→ 0", nan: "NaN", "by hand": "≠", rounded: "", exact: "=" };
const BE_FATES = { saturated: "saturated", zero: "became 0", nan: "NaN", "by hand": "not the code of x", rounded: "rounded", exact: "exact" };

function beSelect(h, label, options, take) {
  const select = h("select", { class: "mp-input", on: { change: () => take(select.value) } }, options.map(([value, text]) => h("option", { value }, text)));
  return { select, node: h("label", { class: "mp-field" }, h("span", {}, label), select) };
}

export function blockControls(h, facts, actions) {
  const format = beSelect(h, "Format", facts.formats.map(({ label }) => [label, label]), actions.setFormat);
  const rule = beSelect(h, "The scale's exponent", facts.rules, (name) => actions.set({ scaling: name }));
  const sample = beSelect(h, "Values", [], (name) => name && actions.setSample(name));
  const tensor = h("input", { class: "mp-input", type: "text", inputmode: "decimal", spellcheck: "false", autocomplete: "off", on: { change: () => actions.setTensor(tensor.value) } });
  const tensorField = h("label", { class: "mp-field" }, h("span", {}, "amax of the tensor"), tensor);
  let named = null;
  return {
    node: h("div", { class: "mp-be-controls" }, format.node, rule.node, tensorField, sample.node),
    draw({ state, samples, view, wrong }) {
      if (named !== samples) sample.select.replaceChildren(h("option", { value: "" }, "edited"), ...samples.map(([name]) => h("option", { value: name }, name)));
      named = samples;
      format.select.value = formatOf(facts, state)?.label ?? "";
      rule.select.value = state.scaling;
      rule.node.hidden = view.way.tensor_scale;
      tensorField.hidden = !view.way.tensor_scale;
      if (wrong?.field !== "tensor") tensor.value = beText(view.tensorAmax);
      tensor.setAttribute("aria-invalid", String(wrong?.field === "tensor"));
      sample.select.value = samples.find(([, values]) => sameValues(values, state.values))?.[0] ?? "";
    },
  };
}

export const sameValues = (one, other) => one.length === other.length && one.every((x, i) => Math.fround(x) === Math.fround(other[i]));

/** The row of facts.formats that a state is in. */
export const formatOf = ({ formats }, { element, scaling }) => formats.find((row) => row.element === element && row.scalings.includes(scaling));

/** All values as bars: an outline for x, a filled one for what is stored. One stop of the keyboard. */
export function barGrid(h, actions) {
  const node = h("div", { class: "mp-be-grid", role: "radiogroup", "aria-label": "The values. Arrow keys choose one.", on: { keydown } });
  const legend = h("p", { class: "mp-be-legend" });
  let cells = [];
  let chosen = 0;

  function build(count) {
    cells = Array.from({ length: count }, (_, i) => {
      const [mark, x, stored, code] = ["mark", "x", "stored", "code"].map((name) => h("span", { class: `mp-be-${name}` }));
      const button = h("button", { class: "mp-be-cell", type: "button", role: "radio", on: { click: () => actions.select(i) } }, mark, h("span", { class: "mp-be-plot" }, x, stored), code);
      return { button, mark, x, stored, code };
    });
    node.replaceChildren(...cells.map(({ button }) => button));
  }

  function keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = cells.findIndex(({ button }) => button.offsetTop > cells[0].button.offsetTop);
    const across = row < 0 ? cells.length : row;
    const moves = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, ArrowUp: chosen - across, ArrowDown: chosen + across, Home: 0, End: cells.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    if (!cells[moves[event.key]]) return;
    actions.select(moves[event.key]);
    cells[moves[event.key]].button.focus();
  }

  function place(bar, value, peak) {
    const share = Number.isFinite(value) && peak > 0 ? Math.min(Math.abs(value) / peak, 1) : 0;
    bar.style.height = `${50 * share}%`;
    bar.style.top = value < 0 ? "50%" : `${50 - 50 * share}%`;
  }

  return {
    node: h("div", { class: "mp-be-values" }, node, legend),
    draw({ view, state }) {
      setText(legend, `Outline: x. Filled: what is stored. ${view.tiles.length > 1 ? "The largest value of each block has its full height" : "The largest value has the full height"}.`);
      if (cells.length !== view.cells.length) build(view.cells.length);
      const tops = view.tiles.map(({ from, to, amax }) => // a block is drawn to its own size, with room for what it stores
        Math.max(amax, ...view.cells.slice(from, to).map(({ stored }) => (Math.abs(stored) <= 2 * amax ? Math.abs(stored) : 0))));
      chosen = state.selected;
      view.cells.forEach((cell, i) => {
        const { button, mark, x, stored, code } = cells[i];
        const top = tops[Math.floor(i / view.way.block)];
        place(x, cell.x, top);
        place(stored, cell.stored, top);
        setText(mark, BE_MARKS[cell.fate]);
        setText(code, codeText(cell.code, view.fmt));
        button.dataset.fate = cell.fate;
        button.setAttribute("aria-checked", String(i === chosen));
        button.tabIndex = i === chosen ? 0 : -1;
        button.setAttribute("aria-label", `value ${i + 1}: ${beText(cell.x)}, stored ${beText(cell.stored)}, ${BE_FATES[cell.fate]}`);
      });
    },
  };
}

export function valuePanelOf(h, actions) {
  const heading = h("h3", {});
  const input = h("input", { class: "mp-input", type: "text", spellcheck: "false", autocomplete: "off", on: { change: () => actions.setValue(input.value) } });
  const bits = bitsPanel(h, { flip: actions.flipCode });
  const [steps, fate] = ["steps", "fate"].map((name) => h("p", { class: `mp-be-${name}` }));
  const button = (text, label, change) => h("button", { class: "mp-button", type: "button", "aria-label": label, on: { click: () => actions.changeValue(change) } }, text);
  return {
    node: h("div", { class: "mp-be-part" }, heading,
      h("div", { class: "mp-be-row" }, h("label", { class: "mp-field" }, h("span", {}, "x"), input), button("× 2", "x times 2", (x) => x * 2), button("÷ 2", "x divided by 2", (x) => x / 2), button("±", "change the sign of x", (x) => -x)),
      bits.node, steps, fate),
    draw({ view, state, wrong }) {
      const cell = view.cells[state.selected];
      setText(heading, `Value ${state.selected + 1} of ${view.cells.length}: code ${toHex(cell.code, view.fmt)}`);
      if (wrong?.field !== "value") input.value = shortText(cell.x);
      input.setAttribute("aria-invalid", String(wrong?.field === "value"));
      bits.draw({ fmt: view.fmt, code: cell.code });
      setText(steps, cellSteps(view, cell, view.tiles[Math.floor(state.selected / view.way.block)]));
      setText(fate, cellFate(cell));
      fate.dataset.fate = cell.fate;
    },
  };
}

export function scalePanelOf(h, actions) {
  const heading = h("h3", {});
  const bits = bitsPanel(h, { flip: actions.flipScale });
  const [value, reason] = ["value", "reason"].map((name) => h("p", { class: `mp-be-${name}` }));
  const button = (text, click, label) => h("button", { class: "mp-button", type: "button", "aria-label": label, on: { click } }, text);
  const down = button("− 1", () => actions.stepScale(-1), "the next smaller scale, and the values encoded again");
  const up = button("+ 1", () => actions.stepScale(1), "the next larger scale, and the values encoded again");
  const again = button("encode", actions.encodeAgain, "encode the values again, with this scale");
  const ruled = button("by rule", actions.byRule, "by rule: scale and codes anew");
  return {
    node: h("div", { class: "mp-be-part" }, heading, h("div", { class: "mp-be-row" }, down, up, again, ruled), bits.node, value, reason),
    draw({ view, state }) {
      const tile = view.tiles[Math.floor(state.selected / view.way.block)];
      const which = view.tiles.length > 1 ? `values ${tile.from + 1} to ${tile.to}` : `all ${tile.to} values`;
      setText(heading, `Scale of ${which}: ${view.narrow.label} ${toHex(tile.code, view.narrow)}`);
      bits.draw({ fmt: view.narrow, code: tile.code });
      setText(value, scaleValue(view, tile));
      setText(reason, scaleReason(view, tile));
      again.setAttribute("aria-disabled", String(state.codes.length === 0));
      ruled.setAttribute("aria-disabled", String(state.codes.length === 0 && state.scales.length === 0));
    },
  };
}

/** What torchao calls the rule of a scaling: the last word of its label; "exact" for NVFP4. */
const ruleName = (facts, scaling) => new Map(facts.rules).get(scaling)?.split(": ").at(-1) ?? facts.scalings[scaling].rule;

/** The same values in every format, and with every rule of the scale: a button for each. */
export function formatTable(h, facts, actions) {
  const heads = ["", "bits per value", ...facts.rules.map(([name]) => ruleName(facts, name))].map((text) => (text ? h("th", { scope: "col" }, text) : h("td")));
  const choices = [];
  const choice = (label, element, scaling) => {
    const [error, lost] = [h("span", {}), h("span", { class: "mp-be-lost" })];
    const button = h("button", { class: "mp-button", type: "button", on: { click: () => actions.set({ element, scaling }) } }, error, lost);
    choices.push({ label, element, scaling, error, lost, button });
    return button;
  };
  const rows = facts.formats.map(({ label, element, scalings }) => h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, fewDigits(facts.bits[element][scalings[0]])),
    scalings.map((scaling) => h("td", scalings.length > 1 ? {} : { colspan: facts.rules.length }, choice(label, element, scaling)))));
  return {
    node: h("table", { class: "mp-table mp-be-table" }, h("caption", {}, "These values in every format, by each rule: error, saturated, became 0"), h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)),
    draw({ state }) {
      for (const { label, element, scaling, error, lost, button } of choices) {
        const { totals } = blockView(facts, { ...state, element, scaling, scales: [], codes: [] });
        setText(error, errorText(totals.error));
        setText(lost, `${totals.saturated}\u00a0max, ${totals.zeros}\u00a0→\u00a00`);
        button.setAttribute("aria-pressed", String(element === state.element && scaling === state.scaling));
        button.setAttribute("aria-label", `${label}, ${ruleName(facts, scaling)}: error ${errorText(totals.error)}, ${totals.saturated} saturated, ${totals.zeros} became 0`);
      }
    },
  };
}
