// ScaleCockpit: recorded gradients times a loss scale in float16's window, and the loss scaler over the steps, recorded
// and replayed. The counts are in shared/plot/binades.js, the scaler in scaler.js.

import { ALL_LAYERS, fatesText, recordedBinades } from "../shared/plot/binades.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import {
  axisOfBinades, binadeAxis, binadeBars, fateShares, inPercent, layerPicker, recordedSource,
} from "../shared/plot/binades_plot.js";
import { powerText, scaleText } from "../shared/words/sizes.js";
import {
  FLOAT16_BOUND, readSetting, recordedScaler, replayScaler, runText, SCALER_FIELDS, verdictOf,
} from "./scaler.js";

const SC_SETTINGS = Object.keys(SCALER_FIELDS);
const SC_TRAITS = ["recorded", "trace", "amaxes", "kind", "group", "step", "log2_scale", ...SC_SETTINGS];
const MOST_LOSS_SCALE = 32; // as a power of two

function scalePanel(h, actions) {
  const shown = h("strong", {});
  const input = h("input", { type: "range", min: 0, max: MOST_LOSS_SCALE, step: 1, on: { input: () => actions.setScale(Number(input.value)), change: () => actions.speak() } });
  const own = h("button", { class: "mp-button", type: "button", on: { click: actions.ownScale } });
  return {
    node: h("div", { class: "mp-sc-scale" }, h("label", { class: "mp-sc-slide" }, h("span", {}, "Loss scale ", shown), input), own),
    draw({ shift, scalerScale, follows, sentence }) {
      setText(shown, shift === 0 ? "1" : `${powerText(shift)} = ${2 ** shift}`);
      input.value = String(shift);
      input.setAttribute("aria-valuetext", sentence);
      own.hidden = scalerScale === null;
      if (scalerScale === null) return;
      setText(own, `the scaler’s: ${scaleText(scalerScale)}`);
      own.setAttribute("aria-pressed", String(follows));
    },
  };
}

function kindButtons(h, actions, kinds) {
  const buttons = kinds.map((kind) => h("button", { class: "mp-button", type: "button", "data-kind": kind, on: { click: () => actions.setKind(kind) } }, kind.replace(" gradients", "s")));
  return {
    node: h("div", { class: "mp-field" }, h("span", {}, "Gradients of"), h("div", { class: "mp-sc-kinds", role: "group", "aria-label": "Gradients of" }, buttons)),
    draw({ kind }) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    },
  };
}

const inView = (y, most) => Math.min(Math.max(y, 0), most);

// The scale against the step, as powers of two. One unit across is one step; dots are steps that were skipped.
function stairsPanel(h) {
  const shape = (tag, name) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    node.setAttribute("class", name);
    return node;
  };
  const paths = Object.fromEntries(["over", "recorded", "simulated", "recorded-skips", "simulated-skips"].map((name) => [name, shape("path", `mp-sc-${name}`)]));
  const svg = shape("svg", "mp-sc-lines");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.append(...Object.values(paths));
  const [levels, cursor] = [h("span", { class: "mp-sc-levels" }), h("span", { class: "mp-sc-cursor" })];
  const steps = h("span", { class: "mp-sc-steps" });
  const key = h("p", { class: "mp-sc-key" });
  return {
    node: h("div", {}, h("div", { class: "mp-sc-stairs", "aria-hidden": "true" }, svg, levels, cursor), steps),
    key,
    cursor(step, count) {
      cursor.style.left = inPercent((step - 0.5) / count);
    },
    draw({ simulated, recordedRun, amaxes, count }) {
      const runs = [simulated, recordedRun].filter(Boolean);
      const powers = runs.flatMap(({ scales, last }) => [...scales, last]).filter((scale) => scale > 0).map(Math.log2);
      const [low, high] = [Math.floor(powers.reduce((a, b) => Math.min(a, b), Infinity)) - 1, Math.ceil(powers.reduce((a, b) => Math.max(a, b), -Infinity)) + 2];
      const up = (scale) => (high - Math.min(Math.max(Math.log2(scale), low - 1), high + 1)).toFixed(3);
      svg.setAttribute("viewBox", `0 0 ${count} ${high - low}`);
      const stairs = ({ scales, last }) => `M0 ${up(scales[0])}${[...scales.slice(1), last].map((scale, i) => `H${i + 1}V${up(scale)}`).join("")}`;
      const dots = ({ scales, skipped }) => skipped.map((step) => `M${step - 0.5} ${up(scales[step - 1])}h0`).join("");
      paths.recorded.setAttribute("d", recordedRun ? stairs(recordedRun) : "");
      paths["recorded-skips"].setAttribute("d", recordedRun ? dots(recordedRun) : "");
      paths.simulated.setAttribute("d", simulated ? stairs(simulated) : "");
      paths["simulated-skips"].setAttribute("d", simulated ? dots(simulated) : "");
      // all scales that a step's largest gradient does not allow
      const ceiling = (amaxes ?? []).map((amax, i) => (amax === 0 ? "" : `M${i} 0V${amax === null ? high - low : inView(up(FLOAT16_BOUND / amax), high - low)}h1V0z`));
      paths.over.setAttribute("d", ceiling.join(""));
      const every = Math.ceil((high - low) / 5);
      levels.replaceChildren(...Array.from({ length: high - low }, (_, i) => low + i).filter((power) => power > low && power % every === 0).map((power) => {
        const level = h("span", { class: "mp-sc-level" }, h("span", {}, powerText(power)));
        level.style.bottom = inPercent((power - low) / (high - low));
        return level;
      }));
      steps.replaceChildren(h("span", {}, "step 1"), h("span", {}, `step ${count}`));
      const sample = (name, words) => h("span", {}, h("span", { class: `mp-sc-sample mp-sc-${name}-sample`, "aria-hidden": "true" }), words);
      key.replaceChildren(...[simulated && sample("simulated", "replayed"), recordedRun && sample("recorded", "recorded"), sample("skips", "skipped step"), amaxes && sample("over", "would overflow")].filter(Boolean));
    },
  };
}

function settingFields(h, actions) {
  const message = h("p", { class: "mp-sc-message" });
  const fields = SC_SETTINGS.map((name) => {
    const input = h("input", { class: "mp-input", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      on: { change: () => actions.type(name, input.value), keydown: (event) => event.key === "Enter" && actions.type(name, input.value) } });
    input.ariaDescribedByElements = [message]; // by element, so that no id is needed
    return { name, input };
  });
  const reset = h("button", { class: "mp-button", type: "button", on: { click: actions.reset } });
  return {
    node: h("div", { class: "mp-sc-settings", role: "group", "aria-label": "The replayed scaler" },
      fields.map(({ name, input }) => h("label", { class: "mp-field" }, h("span", {}, SCALER_FIELDS[name].label), input)), h("div", { class: "mp-sc-foot" }, reset, message)),
    draw({ typed, wrong, message: text, trace }) {
      for (const { name, input } of fields) {
        if (input.value !== typed[name]) input.value = typed[name];
        input.setAttribute("aria-invalid", String(wrong === name));
      }
      setText(reset, trace ? "as recorded" : "PyTorch’s defaults");
      setText(message, text);
    },
  };
}

const settingText = (name, value) => {
  const power = Math.log2(value);
  return name === "init_scale" && Number.isInteger(power) ? `2^${power}` : String(value);
};

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const state = { typed: {}, wrong: "", message: "" };
  let [panels, stairs, stepInput] = [[], null, null];
  const store = bindModel(model, SC_TRAITS, followModel, stop.signal);
  let [verdict, sentence, summary, title, stepText] = [];

  function update(change, { speak = true, replay = false } = {}) {
    store(change);
    if (replay) run();
    draw();
    if (speak) actions.speak();
  }

  const actions = {
    speak: () => setText(status, `${verdict.textContent} ${sentence.textContent}`),
    setKind(kind) {
      update({ kind, group: model.get("group") in model.get("recorded").histograms[kind] ? model.get("group") : ALL_LAYERS });
    },
    set: (change) => update(change),
    setScale: (power) => update({ log2_scale: power }, { speak: false }),
    ownScale: () => update({ log2_scale: null }),
    toStep: (step) => update({ step, log2_scale: null }, { speak: false }),
    type(name, text) {
      state.typed[name] = text;
      try {
        const value = readSetting(name, text);
        if (value === model.get(name) && state.wrong !== name) return;
        Object.assign(state, { wrong: "", message: "" });
        update({ [name]: value }, { speak: false, replay: true });
        state.typed[name] = text;
        setText(status, summary.textContent);
      } catch (error) {
        if (!(error instanceof NumberTextError)) throw error;
        Object.assign(state, { wrong: name, message: `${error.message} The replay is still that of ${settingText(name, model.get(name))}.` });
        draw();
        setText(status, state.message);
      }
    },
    reset() {
      const trace = model.get("trace");
      const first = { init_scale: trace?.init ?? 65536, growth_interval: trace?.growth_interval ?? 2000, growth_factor: 2, backoff_factor: 0.5 };
      Object.assign(state, { wrong: "", message: "" });
      update(first, { speak: false, replay: true });
      setText(status, summary.textContent);
    },
  };

  // The runs of the scaler: what changes with the settings, not with the step.
  function run() {
    const [trace, amaxes] = [model.get("trace"), model.get("amaxes")];
    const settings = readTraits(model, SC_SETTINGS);
    for (const name of SC_SETTINGS) if (state.wrong !== name) state.typed[name] = settingText(name, settings[name]);
    const recordedRun = trace ? recordedScaler(trace) : null;
    const simulated = amaxes ? replayScaler(amaxes, settings) : null;
    const count = trace?.steps ?? amaxes?.length ?? model.get("recorded").steps.at(-1);
    Object.assign(state, { trace, amaxes, recordedRun, simulated, count });
    stairs.draw(state);
    setText(summary, [simulated && runText("Replayed", simulated), recordedRun && runText("Recorded", recordedRun)].filter(Boolean).join(" "));
  }

  function draw() {
    for (const name of ["recorded", "kind", "group", "step"]) state[name] = model.get(name);
    const { recorded, step } = state;
    const seen = recorded.steps.reduce((best, at) => (Math.abs(at - step) < Math.abs(best - step) ? at : best));
    const scalerRun = state.simulated ?? state.recordedRun;
    state.scalerScale = scalerRun ? scalerRun.scales[Math.min(step, scalerRun.scales.length) - 1] : null;
    state.follows = model.get("log2_scale") === null && state.scalerScale !== null;
    const nearest = state.scalerScale > 0 ? Math.round(Math.log2(state.scalerScale)) : 0;
    state.shift = Math.min(Math.max(model.get("log2_scale") ?? nearest, 0), MOST_LOSS_SCALE);
    state.fmt = FORMATS.float16;
    state.histogram = recordedBinades(recorded, { ...state, step: seen });
    state.moved = state.shift; // the values move, the window stands
    state.sentence = fatesText(state.histogram, state.fmt, state.shift);
    setText(sentence, state.sentence);
    const exact = state.follows ? state.scalerScale : 2 ** state.shift;
    const { skipped, text } = verdictOf(step, largestAt(state, seen), exact);
    setText(verdict, text);
    verdict.classList.toggle("mp-sc-skipped", skipped);
    setText(title, `${state.kind}, ${state.group}, step ${seen}${seen === step ? "" : " (the nearest watched)"}`);
    setText(stepText, String(step));
    stepInput.value = String(step);
    stepInput.setAttribute("aria-valuetext", `step ${step}: ${skipped ? "would be skipped" : "taken"}`);
    stairs.cursor(step, state.count);
    for (const panel of panels) panel.draw(state);
  }

  function build() {
    const { steps, groups, kinds, histograms } = model.get("recorded");
    state.axis = axisOfBinades(Object.values(histograms).flatMap((held) => Object.values(held).flat()));
    state.axis.to = Math.max(state.axis.to, 24); // the values move to the right
    const [kindRow, layers, scale, settings] = [kindButtons(h, actions, kinds), layerPicker(h, actions, groups), scalePanel(h, actions), settingFields(h, actions)];
    const [bars, axis, shares] = [binadeBars(h, { tall: true }), binadeAxis(h), fateShares(h)];
    [verdict, sentence, summary] = ["verdict", "sentence", "summary"].map((name) => h("p", { class: `mp-sc-${name}` }));
    [title, stepText] = [h("strong", { class: "mp-sc-title" }), h("strong", {})];
    stairs = stairsPanel(h);
    const last = model.get("trace")?.steps ?? model.get("amaxes")?.length ?? steps.at(-1);
    stepInput = h("input", { type: "range", min: 1, max: last, step: 1, on: { input: () => actions.toStep(Number(stepInput.value)), change: () => actions.speak() } });
    const hasScaler = Boolean(model.get("trace") ?? model.get("amaxes"));
    panels = [kindRow, layers, scale, { draw: (view) => bars.draw({ ...view, shift: 0 }) }, axis, shares, settings];
    el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-sc" },
      h("div", { class: "mp-sc-top" }, kindRow.node, layers.node),
      h("div", { class: "mp-sc-head" }, title, h("p", { class: "mp-sc-what" }, "Share of the values by power of two, after multiplication by the loss scale, in float16’s window.")),
      h("div", {}, bars.node, axis.node), scale.node, verdict, h("div", {}, shares.node, sentence),
      h("div", { class: "mp-sc-run" }, hasScaler ? [h("strong", { class: "mp-sc-title" }, "The scaler, step by step"), stairs.node] : null,
        h("label", { class: `mp-sc-slide${hasScaler ? " mp-sc-aligned" : ""}` }, h("span", {}, "Training step ", stepText), stepInput), hasScaler ? [stairs.key, summary] : null),
      model.get("amaxes") ? settings.node : null, h("p", { class: "mp-sc-what" }, recordedSource(model.get("recorded"))), status)));
    if (hasScaler) run();
    else state.count = last;
    draw();
  }

  function followModel() {
    Object.assign(state, { wrong: "", message: "" });
    build();
  }

  el.classList.add("mp-widget", "mp-scale-cockpit");
  build();
  return () => stop.abort();
}

// The largest gradient known of a step: the list's, and where the step was watched also what was seen of any kind.
function largestAt({ recorded, amaxes, step }, seen) {
  const listed = amaxes?.[step - 1];
  if (listed === null || (listed !== undefined && seen !== step)) return listed;
  const at = recorded.steps.indexOf(seen);
  const watched = Object.values(recorded.histograms).flatMap((groups) => Object.values(groups).map((histograms) => histograms[at]));
  if (seen === step && watched.some(({ infinite, nan }) => infinite + nan > 0)) return null;
  return Math.max(listed ?? 0, ...watched.map(({ amax }) => amax ?? 0));
}

export default { render };
