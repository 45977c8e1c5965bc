// What the reader sets in AmaxHistory: the tensor and its format, the rule of the scale, and a spike.

import { FORMATS } from "../shared/numbers/formats.js";
import { setText } from "../shared/page/elements.js";
import { powerText } from "../shared/words/sizes.js";

const AH_FORMATS = ["float8_e4m3fn", "float8_e5m2"];
const AH_CHOICES = { max: "the largest", most_recent: "the most recent" };
const AH_HISTORIES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
export const MOST_SPIKE = 16;

const ahSelect = (h, label, options, take) => {
  const select = h("select", { class: "mp-input", on: { change: () => take(select.value) } }, options.map(([value, text]) => h("option", { value }, text)));
  return { select, node: h("label", { class: "mp-field mp-grow" }, h("span", {}, label), select) };
};

function ahButtons(h, label, options, take) {
  const buttons = options.map(([value, text]) => h("button", { class: "mp-button", type: "button", "data-value": value, on: { click: () => take(value) } }, text));
  return {
    node: h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, label), h("div", { class: "mp-ah-buttons", role: "group", "aria-label": label }, buttons)),
    press(chosen) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === chosen));
    },
  };
}

/** The tensor, the format and the rule. */
export function ruleControls(h, actions, { series, formats, history }) {
  const tensor = ahSelect(h, "Recorded tensor", Object.keys(series).map((name) => [name, name]), (name) => actions.set({ tensor: name, ...(formats[name] ? { format: formats[name] } : {}) }));
  const format = ahButtons(h, "In the format", AH_FORMATS.map((name) => [name, FORMATS[name].label]), (name) => actions.set({ format: name }));
  const lengths = [...new Set([...AH_HISTORIES, history])].sort((a, b) => a - b);
  const length = ahSelect(h, "History, steps", lengths.map((n) => [n, String(n)]), (n) => actions.set({ history: Number(n) }));
  const margin = ahSelect(h, "Margin, binades", Array.from({ length: 9 }, (_, i) => [i, i ? `${i}: scale ÷ ${2 ** i}` : "0"]), (n) => actions.set({ margin: Number(n) }));
  const choose = ahButtons(h, "The scale follows, of the history,", Object.entries(AH_CHOICES), (name) => actions.set({ choose: name }));
  return {
    node: h("div", { class: "mp-ah-rule" }, h("div", { class: "mp-ah-row mp-ah-tensor" }, tensor.node, format.node), h("div", { class: "mp-ah-row" }, length.node, margin.node, choose.node)),
    draw(state) {
      tensor.select.value = state.tensor;
      length.select.value = String(state.history);
      length.select.disabled = state.choose === "most_recent";
      margin.select.value = String(state.margin);
      format.press(state.format);
      choose.press(state.choose);
    },
  };
}

/** A spike: in which step, and how many times the recorded amax. */
export function spikeControls(h, actions) {
  const slide = (label, more, take) => {
    const shown = h("strong", {});
    const input = h("input", { type: "range", step: 1, ...more, on: { input: () => take(Number(input.value)), change: actions.speak } });
    return { shown, input, node: h("label", { class: "mp-slide mp-ah-slide" }, h("span", {}, label, shown), input) };
  };
  const step = slide("Spike in step ", { min: 1 }, (value) => actions.drag({ spike_step: value, step: value }));
  const size = slide("amax times ", { min: -MOST_SPIKE, max: MOST_SPIKE }, (value) => actions.drag({ spike: value }));
  const button = h("button", { class: "mp-button", type: "button", on: { click: actions.toggleSpike } });
  const slides = h("div", { class: "mp-ah-slides" }, step.node, size.node);
  return {
    node: h("div", { class: "mp-ah-spike", role: "group", "aria-label": "A spike of your own" }, button, slides),
    draw({ state: { spike_step: at, spike }, amaxes }) {
      setText(button, at ? "remove the spike" : "add a spike");
      slides.hidden = !at;
      step.input.max = String(amaxes.length);
      step.input.value = String(at || 1);
      size.input.value = String(spike);
      setText(step.shown, String(at));
      setText(size.shown, powerText(spike));
      step.input.setAttribute("aria-valuetext", `step ${at}`);
      size.input.setAttribute("aria-valuetext", `${2 ** spike} times`);
    },
  };
}
