// ArmPicker: recorded arms beside each other. The data come from facts.py as the trait `data`.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { isRecorded } from "./numbers.js";
import { armRows, curvePanel, gapPanel, rankTable, unbrokenNames } from "./plot.js";
import { oneSeedText, summaryText } from "./words.js";

const AP_TRAITS = ["data", "baseline", "chosen", "quantity", "device", "seed"];

// A list to choose from, in a label.
function apSelect(h, label, options, choose) {
  const input = h("select", { class: "mp-input", on: { change: () => choose(input.value) } }, options.map(([value, text]) => h("option", { value }, text)));
  return { input, node: h("label", { class: "mp-field mp-grow" }, h("span", {}, label), input) };
}

function apControls(h, actions, { arms, quantities, groups }) {
  const quantity = apSelect(h, "Quantity", quantities.map(({ name, label }) => [name, label]), (name) => actions.set({ quantity: name }));
  const baseline = apSelect(h, "Baseline", arms.map((arm) => [arm, arm]), actions.setBaseline);
  const device = apSelect(h, "Recorded on", groups.map((group, i) => [String(i), group.device]), (i) => actions.setDevice(Number(i)));
  const seeds = h("div", { class: "mp-ap-seeds", role: "group", "aria-label": "Conclude from" });
  let [drawn, buttons] = [null, []];
  return {
    node: h("div", { class: "mp-ap-controls" }, quantity.node, baseline.node, groups.length > 1 ? device.node : null,
      h("div", { class: "mp-field mp-ap-all" }, h("span", { "aria-hidden": "true" }, "Conclude from"), seeds)),
    draw(state) {
      const { group } = state;
      for (const option of quantity.input.options) {
        const row = quantities.find(({ name }) => name === option.value);
        option.disabled = !isRecorded(group, row);
        setText(option, option.disabled ? `${row.label} (not recorded)` : row.label);
      }
      for (const option of baseline.input.options) {
        option.disabled = !group.runs[option.value];
        setText(option, option.disabled ? `${option.value} (not recorded)` : option.value);
      }
      quantity.input.value = state.quantity.name;
      baseline.input.value = state.baseline;
      device.input.value = String(state.device);
      if (drawn !== group) {
        drawn = group;
        const one = (seed, text) => h("button", { class: "mp-button", type: "button", on: { click: () => actions.set({ seed }) } }, text);
        const all = group.seeds.length === 1 ? "the one seed" : `all ${group.seeds.length} seeds`;
        buttons = [null, ...group.seeds].map((seed) => ({ seed, button: one(seed, seed === null ? all : `seed ${seed}`) }));
        seeds.replaceChildren(...buttons.map(({ button }) => button));
      }
      for (const { seed, button } of buttons) button.setAttribute("aria-pressed", String(seed === state.seed));
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  let parts = [];
  const save = bindModel(model, AP_TRAITS, build, stop.signal);
  let [summary, source, status] = [];

  function update(change) {
    save(change);
    draw();
    setText(status, summary.textContent);
  }

  const actions = {
    set: update,
    choose(arm, isChosen) {
      const others = model.get("chosen").filter((name) => name !== arm);
      update({ chosen: isChosen ? [...others, arm] : others });
    },
    // the arm that was the baseline stays in view
    setBaseline: (arm) => update({ baseline: arm, chosen: [...new Set([...model.get("chosen"), model.get("baseline")])].filter((name) => name !== arm) }),
    setDevice(device) {
      const { seeds } = model.get("data").groups[device];
      update({ device, seed: seeds.includes(model.get("seed")) ? model.get("seed") : null });
    },
  };

  function draw() {
    const [data, baseline, chosen] = [model.get("data"), model.get("baseline"), model.get("chosen")];
    const [group, quantity] = [data.groups[model.get("device")], data.quantities.find(({ name }) => name === model.get("quantity"))];
    const others = data.arms.filter((arm) => chosen.includes(arm) && arm !== baseline);
    const shown = data.arms.filter((arm) => arm === baseline || others.includes(arm));
    const state = { group, quantity, baseline, others, shown, arms: data.arms, points: data.points, seed: model.get("seed"), device: model.get("device") };
    for (const part of parts) part.draw(state);
    const said = state.seed === null ? summaryText(group, others, baseline, quantity) : oneSeedText(group, shown, quantity, state.seed);
    summary.replaceChildren(...unbrokenNames(h, said, data.arms));
    setText(source, `Recorded on ${group.device}: ${group.conditions}. ${state.seed === null ? "A dot is one seed; the stroke is the mean with its 95 % Student interval." : "A bar is one run; its axis does not begin at 0."}`);
  }

  function build() {
    const data = model.get("data");
    const controls = apControls(h, actions, data);
    const notes = h("details", { class: "mp-ap-notes" }, h("summary", {}, "What the recipes are"),
      h("dl", {}, Object.entries(data.notes).map(([arm, note]) => h("div", {}, h("dt", {}, arm), h("dd", {}, note)))));
    const [rows, gaps, ranks, curves] = [armRows(h, actions, data), gapPanel(h), rankTable(h), curvePanel(h, data)];
    [summary, source] = ["summary", "what"].map((name) => h("p", { class: `mp-ap-${name}` }));
    status = h("p", { class: "mp-unseen", role: "status" });
    parts = [controls, rows, curves, gaps, ranks];
    el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-ap" },
      controls.node, rows.node, curves.node, summary, gaps.node, ranks.node, notes, source, status)));
    draw();
  }

  el.classList.add("mp-widget", "mp-arm-picker");
  build();
  return () => stop.abort();
}

export default { render };
