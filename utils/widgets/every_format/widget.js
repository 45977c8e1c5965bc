// EveryFormat: the state and its controls. The table is in rows.js, the bars in axis.js.

import { finite, floorLog2, pow2 } from "../shared/numbers/codec.js";
import { fateOf, fatesInShort, isPowerOfTwo, log2Of } from "../shared/numbers/format_fate.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { decimalDigits, digitsText, NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { AXIS_STOPS, axisPower, standOf } from "./axis.js";
import { rowsPanel } from "./rows.js";

const EF_TRAITS = ["value", "rounding", "saturate", "order"];
const EF_RULES = {
  ties_to_even: "to the nearest, ties to even", ties_away: "to the nearest, ties away from 0", toward_zero: "toward 0",
  toward_positive: "toward +∞", toward_negative: "toward −∞",
};
const EF_HINT = "Any number, read exactly: 0.1, 1/3, 2^-24, 1 + 2^-11, 6.02e23, 0x1.8p-3, inf, nan.";
const EF_ORDERS = { error: "error", width: "width", range: "range" };
const SATURATE_NOTE =
  "With “saturate”, a number that is too large becomes the largest value. The FP8 standard OFP8 has a mode with saturation and one without; the library and its version decide which you get.";

const MOST_IN_FIELD = 24;

/** A number as base * 2**shift, in text that parseNumber reads: "2^-14", in short decimals "5e-9", else "(1/3)*2^-1". */
export function shiftedText(base, number, shift) {
  if (isPowerOfTwo(number)) return `${number.sign ? "-" : ""}2^${floorLog2(number.num, number.den) + shift}`;
  if (shift === 0) return base;
  const [up, down] = pow2(shift);
  const digits = decimalDigits({ num: number.num * up, den: number.den * down }, MOST_IN_FIELD);
  const text = digitsText(digits, { sign: number.sign, ascii: true });
  return digits.exact && text.length <= MOST_IN_FIELD ? text : `(${base})*2^${shift}`;
}

// A preset as it is printed: 2⁻²⁴ for 2^-24, and a true minus.
const presetText = (value) => value.replace(/\^(-?\d+)/, (_, power) => superscript(power)).replace(/-/g, "−");

function slidePanel(h, actions) {
  const last = AXIS_STOPS.length - 1;
  const input = h("input", { class: "mp-ef-slider", type: "range", min: "0", max: String(last), step: "0.001",
    on: { input: () => actions.slideTo(Math.round(axisPower(input.value / last))), change: () => actions.settle(), keydown } });
  const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };

  // A step of the slider's own would be many powers of two waxis compressed here; a key is one everywhere.
  function keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in ways)) return;
    event.preventDefault();
    actions.stepBy(ways[event.key]);
  }

  return {
    node: h("label", { class: "mp-ef-slide" }, h("span", {}, "Magnitude"), input),
    draw({ number }) {
      const { at, place } = standOf(number);
      if (at !== "none") input.value = String(place * last);
      input.dataset.at = at; // 0 and infinity have their places outside the axis
      const said = { zero: "0", infinity: "infinity", none: "no magnitude" }[at];
      input.setAttribute("aria-valuetext", said ?? `about 2 to the ${Math.round(log2Of(number))}`);
    },
  };
}

function valuePanel(h, actions, presets) {
  const field = h("input", { class: "mp-input", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    on: { input: () => actions.type(field.value), change: () => actions.enter(field.value), keydown } });
  const hint = h("p", { class: "mp-ef-hint" });
  field.ariaDescribedByElements = [hint]; // without an id
  const shift = (by, text, name) => h("button", { class: "mp-button", type: "button", "aria-label": name, on: { click: () => actions.shift(by) } }, text);
  const buttons = presets.map(({ value, label }) =>
    h("button", { class: "mp-button mp-ef-preset", type: "button", "data-value": value, on: { click: () => actions.take(value) } },
      h("span", { class: "mp-ef-number" }, presetText(value)), label ? h("span", { class: "mp-ef-label" }, label) : null));

  function keydown(event) {
    if (event.key === "Enter") actions.enter(field.value);
  }

  return {
    node: h("div", { class: "mp-ef-value" },
      h("div", { class: "mp-ef-entry" }, h("label", { class: "mp-field mp-grow" }, h("span", {}, "Value"), field), shift(-1, "÷ 2", "Divide by 2"), shift(1, "× 2", "Multiply by 2")),
      hint, buttons.length ? h("div", { class: "mp-ef-presets", role: "group", "aria-label": "Values to try" }, buttons) : null),
    draw({ text, message }) {
      if (field.value !== text) field.value = text;
      setText(hint, message || EF_HINT);
      hint.classList.toggle("mp-ef-wrong", message !== "");
      field.setAttribute("aria-invalid", String(message !== ""));
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === text));
    },
  };
}

function choicePanel(h, actions) {
  const rule = h("select", { class: "mp-input", on: { change: () => actions.set({ rounding: rule.value }) } },
    Object.entries(EF_RULES).map(([value, label]) => h("option", { value }, label)));
  const saturate = h("input", { type: "checkbox", on: { change: () => actions.set({ saturate: saturate.checked }) } });
  const orders = Object.entries(EF_ORDERS).map(([name, label]) =>
    h("button", { class: "mp-button", type: "button", "data-order": name, on: { click: () => actions.set({ order: name }) } }, label));
  return {
    node: h("div", { class: "mp-ef-choices" },
      h("label", { class: "mp-field" }, h("span", {}, "Rounding"), rule),
      h("div", { class: "mp-field" }, h("span", {}, "Sort by"), h("div", { class: "mp-ef-orders", role: "group", "aria-label": "Sort by" }, orders)),
      h("label", { class: "mp-check" }, saturate, h("span", {}, "Saturate"))),
    draw({ rounding, saturate: on, order }) {
      rule.value = rounding;
      saturate.checked = on;
      for (const button of orders) button.setAttribute("aria-pressed", String(button.dataset.order === order));
    },
  };
}

function keyPanel(h) {
  const sample = (name) => h("span", { class: `mp-ef-sample ${name}`, "aria-hidden": "true" });
  return h("p", { class: "mp-ef-key" },
    h("span", {}, sample("mp-ef-normals"), "positive range of the format"), h("span", {}, sample("mp-ef-subnormals"), "its subnormals"),
    h("span", {}, sample("mp-ef-line"), "your value"), h("span", {}, sample("mp-ef-dot"), "what is stored"),
    h("span", {}, sample("mp-ef-dot mp-ef-off"), "0, ∞ or the largest number instead"),
    h("span", {}, sample("mp-ef-squeezed"), "axis compressed here"));
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const formats = model.get("formats").map((name) => FORMATS[name]);
  // `text` stands in the field and may be unfinished; `number` is the last one read; `base` and `shift` make it.
  const state = { text: "", base: "1", root: finite(0, 1n), shift: 0, number: finite(0, 1n), message: "", still: false };
  const save = bindModel(model, EF_TRAITS, followModel, stop.signal);

  function accept(text, number, origin = { base: text.trim(), root: number, shift: 0 }) {
    Object.assign(state, origin, { text, number, message: "" });
    store({ value: text });
  }

  function store(change) {
    save(change);
    draw();
  }

  function read(text, { refuse }) {
    try {
      accept(text, parseNumber(text));
    } catch (error) {
      if (!(error instanceof NumberTextError)) throw error;
      state.text = text;
      if (refuse) state.message = `${error.message} Below: ${typedText()}.`;
      panels[0].draw(state);
    }
  }

  const typedText = () => (state.shift === 0 ? state.base : shiftedText(state.base, state.root, state.shift)).replace(/^-/, "−");

  const actions = {
    type(text) {
      if (text !== state.text) read(text, { refuse: false });
    },
    enter(text) {
      read(text, { refuse: true });
      announce();
    },
    take(text) {
      read(text, { refuse: true });
      announce();
    },
    set(change) {
      store(change);
      announce();
    },
    slideTo(power) {
      state.still = true;
      moveTo((root) => power - Math.round(log2Of(root)));
    },
    // Powers of two, from where the number stands; the axis ends where the slider does.
    stepBy(powers) {
      const { at } = standOf(state.number);
      if (at === "none") return;
      const [least, most] = [AXIS_STOPS[0], AXIS_STOPS.at(-1)];
      if (at === "finite") {
        const power = Math.round(log2Of(state.number));
        const next = Math.min(Math.max(power + powers, least), most);
        if (Math.sign(next - power) !== Math.sign(powers)) return;
        moveTo(() => state.shift + next - power);
      } else if ((at === "zero") === (powers > 0)) moveTo(() => (powers > 0 ? least : most));
      announce();
    },
    settle() {
      state.still = false;
      draw();
      announce();
    },
    shift(by) {
      moveTo(() => state.shift + by);
      announce();
    },
  };

  // Multiply what was typed by a power of two; an infinity, NaN or 0 has no magnitude to change, so 1 stands in.
  function moveTo(shiftOf) {
    const stands = state.root.kind === "finite" && state.root.num !== 0n;
    const [base, root] = stands ? [state.base, state.root] : ["1", finite(0, 1n)];
    const shift = shiftOf(root);
    const [up, down] = pow2(shift);
    accept(shiftedText(base, root, shift), finite(root.sign, root.num * up, root.den * down), { base, root, shift });
  }

  const fatesNow = () => formats.map((fmt) => fateOf(state.number, fmt, { rounding: model.get("rounding"), saturate: model.get("saturate") }));
  const summary = h("p", { class: "mp-ef-summary" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const slide = slidePanel(h, actions);
  const panels = [valuePanel(h, actions, model.get("presets")), slide, choicePanel(h, actions), rowsPanel(h, formats, summary, slide.node)];

  function announce() {
    setText(status, state.message || summary.textContent);
  }

  function draw() {
    const view = { ...state, fates: fatesNow() };
    for (const name of ["rounding", "saturate", "order"]) view[name] = model.get(name);
    for (const panel of panels) panel.draw(view);
    setText(summary, fatesInShort(typedText(), view.fates));
  }

  function followModel() {
    const text = model.get("value");
    const number = parseNumber(text);
    Object.assign(state, { text, number, base: text.trim(), root: number, shift: 0, message: "" });
    draw();
  }

  const [value, , choices, rows] = panels.map(({ node }) => node);
  followModel();
  el.classList.add("mp-widget", "mp-every-format");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-ef" }, value, choices, h("p", { class: "mp-ef-note" }, SATURATE_NOTE), rows, keyPanel(h), status)));
  return () => stop.abort();
}

export default { render };
