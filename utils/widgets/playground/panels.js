// The controls of the playground: settings, the buttons of a run, every knob, the histogram and the counts.

import { FORMATS } from "../shared/numbers/formats.js";
import { setText } from "../shared/page/elements.js";
import { axisOfBinades, binadeAxis, binadeBars, fateShares } from "../shared/plot/binades_plot.js";
import { shareText } from "../shared/words/sizes.js";
import { TENSORS } from "./training/net.js";
import {
  DATA_NAMES, formatName, formatText, histogramNote, histogramTitle, OPTIMIZER_NAMES, RULE_NAMES, scaleName, TENSOR_NAMES,
} from "./words.js";

// A choice among values of any kind: take(value) at a change, draw(value).
function choice(h, { label, values, text, take, isBare = false }) {
  const options = values.map((value) => h("option", { value: String(value) }, text(value)));
  const select = h("select", { class: "mp-input", "aria-label": isBare ? label : null, on: { change: () => take(values[select.selectedIndex]) } }, options);
  return {
    node: isBare ? select : h("label", { class: "mp-field" }, h("span", {}, label), select),
    draw(value) {
      select.value = String(value);
    },
  };
}

/** The setting to begin with, and what it shows. */
export function presetPanel(h, actions, presets) {
  const own = h("option", { value: "" }, "your own setting");
  const select = h("select", { class: "mp-input", on: { change: () => actions.preset(select.value) } },
    presets.map(({ name, label }) => h("option", { value: name }, label.split(":")[0])), own); // how it ends is to be seen
  const says = h("p", { class: "mp-play-says" });
  return {
    node: h("div", { class: "mp-play-preset" }, h("label", { class: "mp-field" }, h("span", {}, "Setting"), select), says),
    focus: () => select.focus(),
    draw({ preset, notice, unnamed }) {
      own.hidden = own.disabled = Boolean(preset);
      select.value = preset?.name ?? "";
      setText(says, notice || preset?.says || unnamed);
    },
  };
}

/** Run, one step, from the start; and apart from these, `more`: another seed, and a link to the setting. */
export function runPanel(h, actions) {
  const button = (text, click, more = "") => h("button", { class: `mp-button ${more}`, type: "button", on: { click } }, text);
  const run = button("Run", actions.toggle, "mp-primary mp-play-run");
  const [step, more] = [button("+1 step", () => actions.steps(1)), button("+100", () => actions.steps(100))];
  more.setAttribute("aria-label", "+100 steps");
  const seed = button("Other seed", actions.otherSeed);
  const link = button("Copy link", actions.copyLink);
  return {
    node: h("div", { class: "mp-play-bar", role: "group", "aria-label": "Training" }, run, step, more, button("Restart", actions.restart)),
    more: h("div", { class: "mp-play-more" }, seed, link),
    draw({ isRunning, run: { net, setup }, linkText }) {
      setText(run, isRunning ? "Pause" : net.steps === 0 ? "Run" : "Run on");
      setText(seed, `Seed ${setup.seed} → ${actions.nextSeed()}`);
      seed.setAttribute("aria-label", `Seed ${setup.seed}, change to ${actions.nextSeed()}`);
      setText(link, linkText);
    },
  };
}

/** Every knob: a format and a rule for each tensor, and the rest of the training. */
export function knobPanel(h, actions, offered) {
  const rows = TENSORS.map((tensor) => {
    const format = choice(h, { label: `Format of ${TENSOR_NAMES[tensor]}`, values: offered.format, text: formatName, take: (value) => actions.format(tensor, value), isBare: true });
    const rule = choice(h, { label: `Rounding of ${TENSOR_NAMES[tensor]}`, values: offered.rule, text: (name) => RULE_NAMES[name], take: (value) => actions.rule(tensor, value), isBare: true });
    return { tensor, format, rule, node: h("div", { class: "mp-play-knob" }, h("span", {}, TENSOR_NAMES[tensor]), format.node, rule.node) };
  });
  const master = h("input", { type: "checkbox", on: { change: () => actions.format("master", master.checked ? "float32" : null) } });
  const knob = (name, label, text = String) => [name, choice(h, { label, values: offered[name], text, take: (value) => actions.set({ [name]: value }) })];
  const others = Object.fromEntries([
    knob("scale", "Loss scale", scaleName), knob("push", "Loss × 2⁻ᵏ", (k) => (k === 0 ? "k = 0" : `k = ${k}`)), knob("growth", "Scale doubles after"),
    knob("optimizer", "Optimizer", (name) => OPTIMIZER_NAMES[name]), knob("rate", "Learning rate"), knob("batch", "Batch"), knob("data", "Data", (name) => DATA_NAMES[name]),
  ]);
  const note = "Loss × 2⁻ᵏ makes all gradients smaller, and the optimizer multiplies them by 2ᵏ again. It pushes this small network to where some large models are; in exact arithmetic it would change nothing.";
  return {
    node: h("details", { class: "mp-play-knobs", open: matchMedia("(min-width: 577px)").matches }, h("summary", {}, "All knobs"),
      rows.map(({ node }) => node),
      h("label", { class: "mp-check" }, master, "float32 master copy of the weights"),
      h("div", { class: "mp-play-others" }, Object.values(others).map(({ node }) => node)), h("p", { class: "mp-play-note" }, note)),
    draw({ run: { setup } }) {
      for (const { tensor, format, rule } of rows) {
        format.draw(setup.formats[tensor]);
        rule.draw(setup.rules[tensor]);
      }
      master.checked = setup.formats.master !== null;
      for (const [name, one] of Object.entries(others)) one.draw(setup[name]);
    },
  };
}

/** The values of one tensor by binades, in the window of its format. */
export function histogramPanel(h, actions) {
  const tensor = choice(h, { label: "Histogram of", values: TENSORS, text: (name) => TENSOR_NAMES[name], take: actions.watch });
  const title = h("h3", { class: "mp-play-title" });
  const [about, note] = [h("p", { class: "mp-play-note" }), h("p", { class: "mp-play-note mp-play-of" })];
  const [bars, axis, shares] = [binadeBars(h, { tall: true }), binadeAxis(h), fateShares(h)];
  return {
    node: h("div", { class: "mp-play-part" }, tensor.node, title, about, bars.node, axis.node, shares.node, note),
    draw({ run, watched }) {
      const { net: { histogram }, setup } = run;
      // one axis for all steps, so that the bars move and not the axis
      const view = { histogram, fmt: FORMATS[setup.formats[watched]], axis: axisOfBinades([{ low: -45, counts: new Array(60).fill(1) }]), shift: 0 };
      tensor.draw(watched);
      setText(title, histogramTitle(watched, view.fmt));
      setText(about, formatText(view.fmt));
      setText(note, histogramNote(histogram, run));
      for (const part of [bars, axis, shares]) part.draw(view);
    },
  };
}

/** What was lost so far. */
export function countPanel(h) {
  const names = ["gradients rounded to 0 when stored", "gradients that were 0 already", "gradients that overflowed", "moments rounded to 0 when stored", "updates that changed nothing", "steps skipped"];
  const note = "A gradient is 0 already where a tanh is rounded to ±1, because the slope is 0 there, or where it is computed from zeros only.";
  const values = names.map(() => h("dd", {}));
  const share = (n, total) => (total === 0 ? "–" : n === 0 ? "none" : n === total ? "all" : shareText(n, total));
  return {
    node: h("div", { class: "mp-play-part" },
      h("dl", { class: "mp-play-counts", "aria-label": "Since step 0" }, names.map((name, i) => h("div", {}, h("dt", {}, name), values[i]))), h("p", { class: "mp-play-note" }, note)),
    draw({ run: { net } }) {
      const { zeros, under, over, gradients, lost, updates, faded, moments } = net.all;
      const texts = [share(under, gradients), share(zeros - under, gradients), share(over, gradients), share(faded, moments), share(lost, updates), net.skipped === 0 ? "none" : String(net.skipped)];
      texts.forEach((text, i) => setText(values[i], text));
    },
  };
}
