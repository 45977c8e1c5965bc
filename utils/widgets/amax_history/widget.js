// AmaxHistory: recorded amaxes, the scale that delayed scaling gives each step, and a spike that can be dragged.

import { FORMATS } from "../shared/numbers/formats.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, dragActions, readTraits } from "../shared/page/model.js";
import { powerTicks, sharePath, stairsPath, stretchedPlot } from "../shared/plot/stretched_plot.js";
import { MOST_SPIKE, ruleControls, spikeControls } from "./controls.js";
import { amaxSpan, historySummary, replayed, stepVerdict } from "./steps.js";

const AH_TRAITS = ["series", "source", "tensor", "format", "formats", "history", "margin", "choose", "step", "spike_step", "spike"];

const ahShare = (step, steps) => (step - 0.5) / steps;

function amaxPlot(h, actions) {
  let view = null;
  let span = null;
  const stepAt = (x) => Math.min(Math.floor(x * view.amaxes.length) + 1, view.amaxes.length);
  let grabbed = false;
  const plot = stretchedPlot(h, {
    name: "mp-ah-amaxes",
    point({ x, y }, { type, target }) {
      if (type === "pointerdown") grabbed = target.classList.contains("mp-ah-handle");
      const step = stepAt(x);
      if (!grabbed) return actions.drag({ step });
      const recorded = view.state.series[view.state.tensor][step - 1];
      const power = recorded > 0 ? Math.round(span.low + y * (span.high - span.low) - Math.log2(recorded)) : 0;
      return actions.drag({ spike_step: step, step, spike: Math.min(Math.max(power, -MOST_SPIKE), MOST_SPIKE) });
    },
    end() {
      grabbed = false;
      actions.speak();
    },
  });
  const up = (size) => (size > 0 ? Math.min(Math.max((Math.log2(size) - span.low) / (span.high - span.low), 0), 1) : 0);
  return {
    node: plot.node,
    draw(now) {
      // while the spike is held the axis stays, or it would run away from the pointer
      const fresh = amaxSpan(now);
      span = grabbed && now.state.spike_step && span && view?.state.tensor === now.state.tensor ? { low: Math.min(span.low, fresh.low), high: Math.max(span.high, fresh.high) } : fresh;
      view = now;
      const { amaxes, scales, max, over } = now;
      const limits = scales.map((scale) => max / scale);
      const steps = amaxes.length;
      const cut = amaxes.map((amax, i) => (over[i] ? `${sharePath([[ahShare(i + 1, steps), up(limits[i])], [ahShare(i + 1, steps), up(amax)]])}` : "")).join("");
      plot.draw({
        lines: [
          ["mp-ah-room", `${stairsPath(limits.map(up))}V1000H0z`], ["mp-ah-amax", sharePath(amaxes.map((amax, i) => [ahShare(i + 1, steps), up(amax)]))],
          ["mp-ah-limit", stairsPath(limits.map(up))], ["mp-ah-cut", cut],
        ],
        across: [[0, "step 1"], [1, `step ${steps}`]], up: powerTicks(span.low, span.high),
        label: `The amax of ${steps} steps and the largest value that the scale of each lets in, by powers of two; ${over.filter(Boolean).length} steps saturate.`,
      });
      this.mark(now);
    },
    mark({ amaxes, state: { step, spike_step: spike } }) {
      const at = (one) => ahShare(one, amaxes.length);
      plot.mark([["mp-cursor", at(step), null], ["mp-ah-dot", at(step), up(amaxes[step - 1])],
        ...(spike ? [["mp-ah-handle", at(spike), up(amaxes[spike - 1])]] : [])]);
    },
  };
}

function scalePlot(h, actions) {
  let steps = 1;
  const plot = stretchedPlot(h, {
    name: "mp-ah-scales", point: ({ x }) => actions.drag({ step: Math.min(Math.floor(x * steps) + 1, steps) }), end: () => actions.speak(),
  });
  return {
    node: plot.node,
    draw(now) {
      const powers = [...now.scales.slice(1), ...now.current].map(Math.log2);
      const [low, high] = [Math.floor(Math.min(...powers)) - 1, Math.ceil(Math.max(...powers)) + 1];
      const up = (scale) => Math.min(Math.max((Math.log2(scale) - low) / (high - low), 0), 1);
      steps = now.scales.length;
      plot.draw({
        lines: [["mp-ah-current", stairsPath(now.current.map(up))], ["mp-ah-delayed", stairsPath(now.scales.map(up))]],
        across: [], up: powerTicks(low, high, 3),
        label: `The scale of each step by powers of two: that of delayed scaling, and that of current scaling.`,
      });
      this.mark(now);
    },
    mark: ({ scales, state: { step } }) => plot.mark([["mp-cursor", ahShare(step, scales.length), null]]),
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  let [view, parts] = [null, []];
  const save = bindModel(model, AH_TRAITS, build, stop.signal);
  const [title, summary, source] = ["title", "summary", "what"].map((name) => h("p", { class: `mp-ah-${name}` }));
  const verdict = h("p", { class: "mp-verdict mp-ah-verdict" });
  const status = h("p", { class: "mp-unseen", role: "status" });

  const actions = {
    ...dragActions({ model, save, draw, speak: () => setText(status, `${verdict.textContent} ${summary.textContent}`) }),
    toggleSpike() {
      const at = model.get("spike_step") ? 0 : Math.ceil(view.amaxes.length / 2);
      actions.set(at ? { spike_step: at, step: at } : { spike_step: 0 });
    },
  };

  function draw() {
    const state = readTraits(model, AH_TRAITS);
    const isSame = view && AH_TRAITS.every((name) => name === "step" || view.state[name] === state[name]);
    view = isSame ? { ...view, state } : replayed(state);
    const fmt = FORMATS[state.format];
    setText(title, `${state.tensor}: the amax of each step, and the largest value that its scale lets into ${fmt.label}`);
    setText(verdict, stepVerdict(view, state.step));
    verdict.classList.toggle("mp-ah-over", view.over[state.step - 1]);
    setText(summary, historySummary(view));
    setText(source, state.source);
    for (const part of parts) (isSame ? part.mark : part.draw)?.call(part, view);
  }

  function build() {
    const state = readTraits(model, AH_TRAITS);
    view = null;
    const [rule, spike, amaxes, scales] = [ruleControls(h, actions, state), spikeControls(h, actions), amaxPlot(h, actions), scalePlot(h, actions)];
    const shown = h("strong", {});
    const slider = h("input", { type: "range", min: 1, max: state.series[state.tensor].length, step: 1, on: { input: () => actions.drag({ step: Number(slider.value) }), change: actions.speak } });
    const at = {
      draw(now) {
        this.mark(now);
      },
      mark({ state: { step }, over, lost }) {
        setText(shown, String(step));
        slider.value = String(step);
        slider.setAttribute("aria-valuetext", `step ${step}: ${over[step - 1] ? "saturates" : lost[step - 1] ? "becomes 0" : "fits"}`);
      },
    };
    parts = [{ draw: (now) => rule.draw(now.state) }, spike, amaxes, scales, at];
    const key = (name, words) => h("span", {}, h("span", { class: `mp-ah-sample mp-ah-${name}-sample`, "aria-hidden": "true" }), words);
    const column = h("div", { class: "mp-ah-plots" },
      amaxes.node, h("p", { class: "mp-ah-key" }, key("amax", "amax of the step"), key("limit", "largest value let in"), key("cut", "saturates")),
      h("label", { class: "mp-slide mp-ah-slide mp-ah-aligned" }, h("span", {}, "Step ", shown), slider));
    el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-ah" }, rule.node, title, column, verdict, spike.node, summary,
      h("div", { class: "mp-ah-plots" }, h("p", { class: "mp-ah-title" }, "The scale of each step"), scales.node,
        h("p", { class: "mp-ah-key" }, key("delayed", "delayed"), key("current", "current: from the step’s own amax"))), source, status)));
    draw();
  }

  el.classList.add("mp-widget", "mp-amax-history");
  build();
  return () => stop.abort();
}

export default { render };
