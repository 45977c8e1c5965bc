// FormatWindow: a recorded histogram of exponents with the window of a format over it, which can be dragged: its place
// is a scale by a power of two. The counts are in shared/plot/binades.js, the picture in shared/plot/binades_plot.js.

import {
  ALL_LAYERS, countFates, fatesText, largestShift, mergedBinades, MOST_LOG2_SCALE, recordedBinades,
} from "../shared/plot/binades.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { dragged } from "../shared/page/drag.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import {
  axisOfBinades, binadeAxis, binadeBars, fateShares, inPercent, layerPicker, recordedSource, shortShare, windowEdges,
} from "../shared/plot/binades_plot.js";
import { powerText } from "../shared/words/sizes.js";

const FW_TRAITS = ["recorded", "kind", "group", "step", "format", "log2_scale", "logarithmic"];
const FW_BUTTONS = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"];

const clampShift = (shift) => Math.min(Math.max(shift, -MOST_LOG2_SCALE), MOST_LOG2_SCALE);

function formatPicker(h, actions) {
  const buttons = FW_BUTTONS.map((name) => h("button", { class: "mp-button", type: "button", "data-format": name, on: { click: () => actions.set({ format: name }) } }, FORMATS[name].label));
  const others = Object.values(FORMATS).filter(({ name, has_zero: zero }) => zero && !FW_BUTTONS.includes(name));
  const select = h("select", { class: "mp-input", on: { change: () => select.value && actions.set({ format: select.value }) } },
    h("option", { value: "" }, "choose…"), others.map(({ name, label }) => h("option", { value: name }, label)));
  return {
    nodes: [h("div", { class: "mp-fw-formats", role: "group", "aria-label": "Format" }, buttons), h("label", { class: "mp-field" }, h("span", {}, "Other formats"), select)],
    draw({ fmt }) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.format === fmt.name));
      select.value = FW_BUTTONS.includes(fmt.name) ? "" : fmt.name;
      select.classList.toggle("mp-fw-chosen", select.value !== "");
    },
  };
}

// The large picture: the window is a slider, and the whole picture can be dragged.
function windowStage(h, actions) {
  const bars = binadeBars(h, { tall: true });
  const axis = binadeAxis(h);
  const tab = h("span", { class: "mp-fw-tab", "aria-hidden": "true" });
  const handle = h("div", { class: "mp-fw-window", role: "slider", tabindex: "0", "aria-valuemin": -MOST_LOG2_SCALE, "aria-valuemax": MOST_LOG2_SCALE, on: { keydown } });
  const node = h("div", { class: "mp-fw-stage", on: dragged({ start, move, end }) }, tab, bars.node, handle, axis.node);
  let [span, shift, from] = [1, 0, 0];

  // The window moves as the arrow points: to the left for a larger scale.
  function keydown(event) {
    const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 8, PageDown: -8 };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in ways)) return;
    event.preventDefault();
    actions.move(shift - ways[event.key]);
  }

  function start() {
    from = shift;
    handle.focus({ preventScroll: true });
    node.classList.add("mp-fw-dragging");
  }

  function move(pixels) {
    const next = clampShift(from - Math.round((pixels * span) / node.clientWidth));
    if (next !== shift) actions.drag(next);
  }

  function end() {
    node.classList.remove("mp-fw-dragging");
    if (from !== shift) actions.dragEnd();
  }

  return {
    node,
    draw(view) {
      bars.draw(view);
      axis.draw(view);
      shift = view.shift;
      span = view.axis.to - view.axis.from;
      const edges = windowEdges(view.fmt, shift);
      const place = (power) => Math.min(Math.max((power - view.axis.from) / span, 0), 1);
      const [left, right] = [place(edges.zero), place(edges.normal)];
      handle.style.left = `min(${inPercent(left)}, 100% - 1.5rem)`;
      handle.style.width = `max(1.5rem, ${inPercent(right - left)})`;
      handle.classList.toggle("mp-fw-from-left", edges.zero < view.axis.from);
      handle.classList.toggle("mp-fw-to-right", edges.normal > view.axis.to);
      const middle = (left + right) / 2;
      tab.style.left = inPercent(middle);
      tab.style.transform = `translateX(-${inPercent(middle)})`;
      const away = right === 0 ? "‹ " : "";
      setText(tab, `${away}${view.fmt.label} · scale ${powerText(shift)}${left === 1 ? " ›" : ""}`);
      handle.setAttribute("aria-label", `Window of ${view.fmt.label}, moved to the left for a larger scale`);
      handle.setAttribute("aria-valuenow", String(-shift));
      handle.setAttribute("aria-valuetext", view.sentence);
    },
  };
}

// The kinds as rows on the same axis: which is chosen, where it lives, what it loses.
function kindRows(h, actions, kinds) {
  const rows = kinds.map((kind) => {
    const [bars, fate] = [binadeBars(h), h("span", { class: "mp-fw-fate" })];
    const button = h("button", { class: "mp-fw-kind", type: "button", on: { click: () => actions.setKind(kind) } },
      h("span", { class: "mp-fw-label" }, h("span", { class: "mp-fw-name" }, kind), " ", fate), bars.node);
    return { kind, bars, fate, button };
  });
  return {
    node: h("div", { class: "mp-fw-kinds", role: "group", "aria-label": "Kind of values" }, rows.map(({ button }) => button)),
    draw(view) {
      for (const { kind, bars, fate, button } of rows) {
        button.setAttribute("aria-pressed", String(kind === view.kind));
        const known = view.group === ALL_LAYERS || view.group in view.recorded.histograms[kind];
        const histogram = known ? recordedBinades(view.recorded, { ...view, kind }) : mergedBinades([]);
        bars.draw({ ...view, histogram, log: false });
        setText(fate, known ? shortFate(histogram, view) : "not in these layers");
      }
    },
  };
}

function shortFate(histogram, { fmt, shift }) {
  const { total, zero, subnormal, least, most } = countFates(histogram, fmt, shift);
  if (total === 0) return "all zero";
  const short = (n) => (n < total / 1000 ? "< 0.1\u00a0%" : shortShare(n, total));
  const parts = [];
  if (zero) parts.push(`${short(zero)} → 0`);
  if (most) parts.push(`${least < most ? "≤ " : ""}${short(most)} → ${fmt.has_inf ? "∞" : fmt.has_nan ? "NaN" : "max"}`);
  if (!parts.length) parts.push(subnormal ? `${short(subnormal)} subnormal` : "all normal");
  return parts.join(", ").replace(/≤ ([<>])/, "$1");
}

function scaleButtons(h, actions) {
  const button = (text, click, label) => h("button", { class: "mp-button", type: "button", "aria-label": label ?? null, on: { click } }, text);
  const note = h("span", { class: "mp-fw-note" });
  const box = h("input", { type: "checkbox", on: { change: () => actions.set({ logarithmic: box.checked }) } });
  return {
    node: h("div", { class: "mp-fw-scales", role: "group", "aria-label": "Scale" },
      button("← × 2", () => actions.step(1), "Scale times 2: the window goes left"), button("÷ 2 →", () => actions.step(-1), "Scale divided by 2: the window goes right"),
      button("scale 1", () => actions.move(0, true)), button("largest without overflow", actions.toLargest, "Largest scale without overflow"),
      h("label", { class: "mp-fw-check" }, box, h("span", {}, "logarithmic")), note),
    draw({ note: text, log }) {
      box.checked = log;
      setText(note, text);
      note.hidden = text === "";
    },
  };
}

function stepSlider(h, actions, steps) {
  const shown = h("strong", {});
  const input = h("input", { type: "range", min: 0, max: steps.length - 1, step: 1, on: { input: () => actions.toStep(steps[input.value], false), change: () => actions.toStep(steps[input.value], true) } });
  return {
    node: h("label", { class: "mp-fw-step", hidden: steps.length < 2 }, h("span", {}, "Training step ", shown), input),
    draw({ step }) {
      setText(shown, String(step));
      input.value = String(steps.indexOf(step));
      input.setAttribute("aria-valuetext", `step ${step}`);
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const state = { note: "" };
  let [parts, sentence] = [[], null];
  const store = bindModel(model, FW_TRAITS, (trait) => (trait === "recorded" ? build() : draw()), stop.signal);

  function update(change, { keep = true, speak = true } = {}) {
    state.note = change.note ?? "";
    if (keep) store(Object.fromEntries(Object.entries(change).filter(([name]) => FW_TRAITS.includes(name))));
    else Object.assign(state, change);
    draw();
    if (speak) setText(status, state.sentence);
  }

  const actions = {
    set: (change) => update(change),
    setKind(kind) {
      const group = model.get("group");
      update({ kind, group: group in model.get("recorded").histograms[kind] ? group : ALL_LAYERS });
    },
    toStep: (step, speak) => update({ step }, { speak }),
    move(shift, speak = false) {
      update({ log2_scale: clampShift(shift) }, { speak });
    },
    step: (by) => actions.move(state.shift + by, true),
    drag: (shift) => update({ dragged: shift }, { keep: false, speak: false }),
    dragEnd() {
      const { dragged } = state;
      state.dragged = null;
      actions.move(dragged, true);
    },
    toLargest() {
      const { amax } = state.histogram;
      if (!amax) return update({ note: "All values are zero: none can overflow." });
      const shift = largestShift(amax, state.fmt);
      const far = Math.abs(shift) > MOST_LOG2_SCALE;
      update({ log2_scale: clampShift(shift), note: far ? `That would be ${powerText(shift)}: the window goes no further than this.` : "" });
    },
  };

  function draw() {
    for (const name of ["recorded", "kind", "group", "step", "format"]) state[name] = model.get(name);
    state.fmt = FORMATS[state.format];
    state.shift = state.dragged ?? model.get("log2_scale");
    state.log = model.get("logarithmic");
    state.histogram = recordedBinades(state.recorded, state);
    state.sentence = fatesText(state.histogram, state.fmt, state.shift);
    setText(sentence, state.sentence);
    for (const part of parts) part.draw(state);
  }

  function build() {
    const { steps, groups, kinds, histograms } = model.get("recorded");
    state.axis = axisOfBinades(Object.values(histograms).flatMap((held) => Object.values(held).flat()));
    const [formats, layers, stage, rows] = [formatPicker(h, actions), layerPicker(h, actions, groups), windowStage(h, actions), kindRows(h, actions, kinds)];
    const [shares, scales, slider] = [fateShares(h), scaleButtons(h, actions), stepSlider(h, actions, steps)];
    const title = h("strong", { class: "mp-fw-title" });
    const head = { draw: ({ kind, group, step }) => setText(title, `${kind}, ${group}, step ${step}`) };
    sentence = h("p", { class: "mp-fw-sentence" });
    parts = [formats, layers, stage, rows, shares, scales, slider, head];
    el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-fw" },
      h("div", { class: "mp-fw-top" }, formats.nodes, layers.node),
      scales.node,
      h("div", { class: "mp-fw-main" },
        h("div", { class: "mp-fw-head" }, title, h("span", { class: "mp-fw-what" }, "Share of the values, by power of two. ", h("b", {}, "Drag the window:"), " further left is a larger scale.")),
        stage.node),
      h("div", {}, shares.node, sentence),
      h("div", {}, h("p", { class: "mp-fw-what" }, "All kinds in the same window: choose one."), rows.node), slider.node,
      h("p", { class: "mp-fw-source" }, recordedSource(model.get("recorded"))), status)));
    draw();
  }

  el.classList.add("mp-widget", "mp-format-window");
  build();
  return () => stop.abort();
}

export default { render };
