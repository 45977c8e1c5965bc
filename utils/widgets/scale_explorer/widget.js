// ScaleExplorer: the state and its controls. The arithmetic is in scales.js, the words in
// words.js, the pictures in panels.js.

import { FORMATS } from "../shared/numbers/formats.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { curvePanel, endCounts, scaledStage, wayTable } from "./panels.js";
import { carryValues, formatScale, SE_MOST_LOG2_SCALE, sqnrCurve } from "./scales.js";
import { numberInShort, scaleSentence } from "./words.js";

const SE_TRAITS = ["tensors", "tensor", "format", "rule", "log2_scale", "margin", "saturate", "source"];
const SE_BUTTONS = ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"];
const SE_RULES = { exact: "max / amax", power_of_two: "power of two below", hand: "by hand" };
const SE_MOST_MARGIN = 10;

const clampPower = (k) => Math.min(Math.max(Math.round(k), -SE_MOST_LOG2_SCALE), SE_MOST_LOG2_SCALE);

function pressedButtons(h, label, choices, choose) {
  const buttons = choices.map(([name, text]) => h("button", { class: "mp-button", type: "button", "data-name": name, on: { click: () => choose(name) } }, text));
  return {
    node: h("div", { class: "mp-se-choices", role: "group", "aria-label": label }, buttons),
    draw(name) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.name === name));
    },
  };
}

function valuesPanel(h, actions, names) {
  const tensor = h("select", { class: "mp-input", on: { change: () => actions.set({ tensor: tensor.value }) } }, names.map((value) => h("option", { value }, value)));
  const formats = pressedButtons(h, "Format", SE_BUTTONS.map((name) => [name, FORMATS[name].label]), (format) => actions.set({ format }));
  const others = Object.values(FORMATS).filter(({ name, has_zero: zero, exponent_bits: e }) => zero && e <= 5 && !SE_BUTTONS.includes(name));
  const other = h("select", { class: "mp-input", on: { change: () => other.value && actions.set({ format: other.value }) } },
    h("option", { value: "" }, "choose…"), others.map(({ name, label }) => h("option", { value: name }, label)));
  return {
    node: h("div", { class: "mp-se-top" }, h("label", { class: "mp-field" }, h("span", {}, "Values"), tensor),
      h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, "Format"), formats.node), h("label", { class: "mp-field" }, h("span", {}, "Other formats"), other)),
    draw({ name, fmt }) {
      tensor.value = name;
      formats.draw(fmt.name);
      other.value = SE_BUTTONS.includes(fmt.name) ? "" : fmt.name;
      other.classList.toggle("mp-se-chosen", other.value !== "");
    },
  };
}

function rulePanel(h, actions) {
  const rules = pressedButtons(h, "Scale", Object.entries(SE_RULES), actions.setRule);
  const by = (way, text, name) => h("button", { class: "mp-button", type: "button", "aria-label": name, on: { click: () => actions.setMargin(way) } }, text);
  const margin = h("span", { class: "mp-se-margin" });
  const [less, more] = [by(-1, "−", "Smaller margin"), by(1, "+", "Larger margin")];
  const saturate = h("input", { type: "checkbox", on: { change: () => actions.set({ saturate: saturate.checked }) } });
  const plain = (text, click, name) => h("button", { class: "mp-button", type: "button", "aria-label": name ?? null, on: { click } }, text);
  return {
    node: h("div", { class: "mp-se-rules" },
      h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, "Scale"), rules.node),
      h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, "Margin"), h("div", { class: "mp-se-choices", role: "group", "aria-label": "Margin" }, less, margin, more)),
      h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, "Move it"), h("div", { class: "mp-se-choices", role: "group", "aria-label": "Move the scale" },
        plain("÷ 2", () => actions.step(-1), "Scale divided by 2"), plain("× 2", () => actions.step(1), "Scale times 2"), plain("scale 1", () => actions.toPower(0)))),
      h("label", { class: "mp-check" }, saturate, h("span", {}, "Saturate"))),
    draw({ rule, margin: m, saturate: on, fmt }) {
      rules.draw(rule);
      setText(margin, rule === "hand" ? "–" : m === 0 ? "0" : `${m}: ÷ ${2 ** m}`);
      less.setAttribute("aria-disabled", String(rule === "hand" || m === 0));
      more.setAttribute("aria-disabled", String(rule === "hand" || m === SE_MOST_MARGIN));
      saturate.checked = on || !fmt.has_nan;
      saturate.disabled = !fmt.has_nan; // it has no code for what is too large
    },
  };
}

function numbersPanel(h) {
  const names = ["amax", "scale", "inv_scale", "amax lands at"];
  const values = names.map(() => h("dd", {}));
  return {
    node: h("dl", { class: "mp-se-numbers" }, names.map((name, i) => h("div", {}, h("dt", {}, name), values[i]))),
    draw({ carried }) {
      const numbers = [carried.amax, carried.scale, carried.scaleInv, carried.landing];
      values.forEach((value, i) => setText(value, numberInShort(numbers[i])));
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const sentence = h("p", { class: "mp-verdict mp-se-sentence" });
  const source = h("p", { class: "mp-se-source" });
  const state = { dragged: null };
  let [parts, curve] = [[], { key: null, points: [] }];
  const save = bindModel(model, SE_TRAITS, followModel, stop.signal);

  function store(change, { speak = true } = {}) {
    save(change);
    draw();
    if (speak) setText(status, sentence.textContent);
  }

  const actions = {
    set: (change) => store(change),
    power: () => Math.log2(state.carried.scale),
    // By hand the scale begins where the rule had put it.
    setRule: (rule) => store(rule === "hand" ? { rule, log2_scale: clampPower(Math.floor(actions.power())) } : { rule }),
    toPower(k, speak = true) {
      const same = model.get("rule") === "hand" && model.get("log2_scale") === clampPower(k) && state.dragged === null;
      if (!same) store({ rule: "hand", log2_scale: clampPower(k) }, { speak });
    },
    step: (by) => actions.toPower((by > 0 ? Math.floor(actions.power()) : Math.ceil(actions.power())) + by),
    setMargin(by) {
      if (model.get("rule") !== "hand") store({ margin: Math.min(Math.max(model.get("margin") + by, 0), SE_MOST_MARGIN) });
    },
    drag(k) {
      state.dragged = clampPower(k);
      draw();
    },
    dragEnd() {
      const { dragged: k } = state;
      state.dragged = null;
      if (k !== null) actions.toPower(k);
    },
  };

  function draw() {
    const [name, format, saturate, margin] = ["tensor", "format", "saturate", "margin"].map((trait) => model.get(trait));
    const fmt = FORMATS[format];
    const x = model.get("tensors")[name].map(Math.fround);
    const rule = state.dragged === null ? model.get("rule") : "hand";
    const amax = x.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const exact = formatScale(amax, fmt);
    const scale = rule === "hand" ? 2 ** (state.dragged ?? model.get("log2_scale")) : formatScale(amax, fmt, { margin, powerOfTwo: rule === "power_of_two" });
    const key = [name, format, saturate, x.length, amax].join();
    if (curve.key !== key) curve = { key, points: sqnrCurve(x, fmt, saturate) };
    state.carried = carryValues(x, fmt, scale, saturate);
    const view = { name, fmt, rule, margin, saturate, exact, curve: curve.points, carried: state.carried };
    for (const part of parts) part.draw(view);
    setText(sentence, scaleSentence(state.carried, saturate));
    setText(source, model.get("source"));
  }

  function build() {
    curve = { key: null, points: [] };
    const [values, rules, stage, counts] = [valuesPanel(h, actions, Object.keys(model.get("tensors"))), rulePanel(h, actions), scaledStage(h, actions), endCounts(h)];
    const [errors, numbers, ways] = [curvePanel(h, actions), numbersPanel(h), wayTable(h)];
    parts = [values, rules, stage, counts, errors, numbers, ways];
    el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-se" },
      values.node, rules.node, numbers.node,
      h("p", { class: "mp-se-soft" }, "The values times the scale, by power of two, in the window of the format. Drag them: to the right is a larger scale."),
      stage.node, counts.node, errors.node, sentence, ways.node, source, status)));
    draw();
  }

  function followModel(trait) {
    if (trait !== "tensors") draw();
    else if (model.get("tensor") in model.get("tensors")) build();
  }

  el.classList.add("mp-widget", "mp-scale-explorer");
  build();
  return () => stop.abort();
}

export default { render };
