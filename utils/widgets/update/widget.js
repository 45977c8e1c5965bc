// Update: one update is added to a weight, and the page shows what is stored. The state and its changes.

import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { manyUpdatesPanel, oneUpdatePanel, otherWeightsPanel, SLIDER_PLACES, updateControls } from "./panels.js";
import { isZeroNumber, oneUpdate } from "./steps.js";
import { readUpdate, readWeight, verdict } from "./words.js";

// Each is what it says for bfloat16 and ties to even, so it sets these too.
const PRESETS = [
  { label: "1 + 0.001, 1000 times", weight: "1", update: "0.001", count: 1000 },
  { label: "w − lr·g", weight: "0.5", update: "-1e-3*0.3", count: 1000, note: "lr = 1e-3, g = 0.3: dw = −lr·g = −0.0003. A positive gradient makes the weight smaller." },
  { label: "exactly half a gap, 10 times", weight: "1", update: "2^-8", count: 10 },
];
const FIRST_NOTE = "Half a gap decides. Move dw, or w: is the update larger than half the gap beside w?";
const FOLLOWED = ["weight", "update", "format", "keeping", "count"];

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  // `typed` stands in the fields; where it is faulty, `wrong` names the field, and all below is of the `good` texts.
  const state = { fmt: null, typed: {}, good: {}, numbers: {}, wrong: "", refused: "", note: FIRST_NOTE, keeping: "", count: 1 };
  const save = bindModel(model, FOLLOWED, followModel, stop.signal);
  const store = () => save({ ...state.good, format: state.fmt.name, keeping: state.keeping, count: state.count });
  let frame = 0;

  // Take both texts in a format; throws a NumberTextError and changes nothing where one of them cannot be.
  function take({ weight, update }, fmt) {
    const read = { weight: readWeight(weight, fmt), update: readUpdate(update) };
    Object.assign(state, {
      fmt, good: { weight, update }, weight: read.weight, update: read.update, code: read.weight.code,
      numbers: { weight: read.weight.number, update: read.update }, one: oneUpdate(read.weight.code, read.update, fmt),
    });
  }

  // A faulty text stays in its field, and everything below stays as it was, and says of what.
  function attempt(name, text) {
    Object.assign(state, { typed: { ...state.good, [name]: text }, wrong: "", refused: "" });
    try {
      take(state.typed, state.fmt);
    } catch (error) {
      if (!(error instanceof NumberTextError)) throw error;
      Object.assign(state, { wrong: name, refused: `${error.message} Below: still ${name === "weight" ? "w" : "dw"} = ${state.good[name].trim()}.` });
    }
  }

  function settle() {
    if (state.wrong === "") store();
    draw({ speak: state.refused || summary() });
  }

  const summary = () => verdict(state.one, state.update, state.keeping, state.fmt).text;

  const actions = {
    setText(name, text) {
      state.note = "";
      attempt(name, text);
      settle();
    },
    slide(name, place) {
      const sign = state.numbers[name].sign && !isZeroNumber(state.numbers[name]) ? "-" : "";
      state.note = "";
      attempt(name, `${sign}${SLIDER_PLACES[name][place].text}`);
      draw({ isMoving: true });
    },
    slideEnd: settle,
    setFormat(format) {
      const { typed, wrong } = state;
      try {
        take(state.good, FORMATS[format]);
        Object.assign(state, { refused: "" });
        if (wrong) attempt(wrong, typed[wrong]);
        store();
        draw({ speak: state.refused || summary() });
      } catch (error) {
        if (!(error instanceof NumberTextError)) throw error;
        state.refused = `${error.message} The format stays ${state.fmt.label}.`;
        draw({ speak: state.refused });
      }
    },
    setKeeping(keeping) {
      state.keeping = keeping;
      store();
      draw({ speak: summary() });
    },
    setCount(count) {
      state.count = count;
      store();
      draw();
    },
    setPreset({ weight, update, count, note = "" }) {
      Object.assign(state, { typed: { weight, update }, wrong: "", refused: "", count, note, keeping: "ties_to_even" });
      take(state.typed, names.includes("bfloat16") ? FORMATS.bfloat16 : state.fmt);
      settle();
    },
  };

  const names = [...new Set([...model.get("formats"), model.get("format")])];
  const message = h("p", { class: "mp-up-message" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const controls = updateControls(h, actions, names);
  controls.describeBy(message);
  const presets = h("div", { class: "mp-up-choices", role: "group", "aria-label": "Examples" }, h("span", { class: "mp-up-try", "aria-hidden": "true" }, "Try"),
    PRESETS.map((preset) => h("button", { class: "mp-button", type: "button", on: { click: () => actions.setPreset(preset) } }, preset.label)));
  const many = manyUpdatesPanel(h, actions);
  const parts = [controls, oneUpdatePanel(h, actions), otherWeightsPanel(h, actions)];
  const results = h("div", { class: "mp-up-stack" }, parts.slice(1).map(({ node }) => node), many.node);

  // While a slider moves, the table follows once a frame: it takes thousands of updates.
  function draw({ speak = null, isMoving = false } = {}) {
    for (const part of parts) part.draw(state);
    cancelAnimationFrame(frame);
    if (isMoving) frame = requestAnimationFrame(() => many.draw(state));
    else many.draw(state);
    setText(message, state.refused || state.note || FIRST_NOTE);
    message.classList.toggle("mp-wrong", state.refused !== "");
    results.classList.toggle("mp-up-earlier", state.wrong !== "");
    if (speak !== null) setText(status, speak);
  }

  function followModel() {
    const good = { weight: model.get("weight"), update: model.get("update") };
    Object.assign(state, { typed: good, wrong: "", refused: "", note: "", keeping: model.get("keeping"), count: model.get("count") });
    take(good, FORMATS[model.get("format")]);
    draw();
  }

  el.classList.add("mp-widget", "mp-update");
  followModel();
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-up-stack" }, controls.node, presets, message, results, status)));
  return () => {
    cancelAnimationFrame(frame);
    stop.abort();
  };
}

export default { render };
