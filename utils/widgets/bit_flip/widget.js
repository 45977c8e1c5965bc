// BitFlip: the state and its changes. The parts that it joins are in panels.js, its words in shared/words/code_words.js.

import { classify, decode, namedCode, neighbours, round, toHex, valueOf } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { briefText, NumberTextError, parseCode, parseNumber } from "../shared/numbers/number_text.js";
import { bitsPanel } from "../shared/page/bit_buttons.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { explainFlip, explainRounding, explainStep, KIND_WORDS } from "../shared/words/code_words.js";
import { goalsPanel } from "./goals_panel.js";
import { codePanel, foldedPanel, rulerPanel, shortcutsPanel } from "./lower_panels.js";
import { controlsPanel, legendPanel, neighboursPanel, numberInput, valuePanel } from "./panels.js";

const INVITATION = "Click a bit, or type a number.";

function readState(model) {
  const fmt = FORMATS[model.get("format")];
  const code = BigInt(model.get("code")) & ((1n << BigInt(fmt.bits)) - 1n);
  return { fmt, code };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const first = readState(model);
  // `source` is the number that the reader means, before it was rounded: a change of format starts from it.
  const state = { ...first, source: valueOf(first.code, first.fmt), shown: null, typed: null, message: INVITATION, wrong: "", how: "start" };
  const save = bindModel(model, ["code", "format"], followModel, stop.signal);

  function update(change) {
    const next = { typed: null, wrong: "", ...change };
    Object.assign(state, next);
    if (change.code !== undefined) {
      save({ format: state.fmt.name, code: `0x${state.code.toString(16)}` });
      goals?.check(state);
    }
    draw();
    if (change.how !== "start") announce(change.code !== undefined);
  }

  // One short line for those who do not see the panel: what happened, what it is now, how the goal stands.
  function announce(changed) {
    const now = changed ? `${briefText(state.code, state.fmt)}, ${KIND_WORDS[classify(state.code, state.fmt)]}.` : "";
    setText(status, [state.message, now, goals?.feedback() ?? ""].filter(Boolean).join(" "));
  }

  // A new code in the same format; the number meant is from now on its value.
  function put(code, { how, message }) {
    update({ code, how, message, source: valueOf(code, state.fmt), shown: null });
  }

  const actions = {
    flip(bit) {
      const code = state.code ^ (1n << BigInt(bit));
      put(code, { how: "flip", message: explainFlip(bit, state.code, code, state.fmt) });
    },
    changeSign() {
      actions.flip(state.fmt.bits - 1);
    },
    step(direction) {
      const code = neighbours(state.code, state.fmt)[direction];
      if (code === null) {
        const nan = classify(state.code, state.fmt) === "nan";
        actions.say(nan ? "NaN has no neighbours: it has no place in the order." : `There is nothing ${direction === "up" ? "above" : "below"}: this is the end of ${state.fmt.label}.`);
      } else put(code, { how: "step", message: explainStep(direction, state.code, code, state.fmt) });
    },
    jump(name) {
      const code = namedCode(name, state.fmt);
      const value = briefText(code, state.fmt);
      const words = { largest: "The largest finite value", smallest_normal: "The smallest normal number", smallest_subnormal: "The smallest number above 0" };
      put(code, { how: "jump", message: `${words[name] ?? "Here is"}${words[name] ? ":" : ""} ${value}.` });
    },
    reset() {
      if (goals) goals.restart();
      else update({ ...first, how: "typed", source: valueOf(first.code, first.fmt), shown: null, message: INVITATION });
    },
    focusBits: () => bits.focus(),
    say(message) {
      update({ message, typed: state.typed });
    },
    typeNumber(text) {
      if (text === (state.typed ?? numberInput(state.code, state.fmt)) && state.wrong === "") return showAgain(text);
      takeNumber(text);
    },
    typeCode(text) {
      if (text === toHex(state.code, state.fmt)) return;
      try {
        put(parseCode(text, state.fmt), { how: "typed", message: "Read as a code." });
      } catch (error) {
        refuse(error, { wrong: "code", typed: state.typed });
      }
    },
    startAt(fmt, code, message) {
      update({ fmt, code, how: "start", source: valueOf(code, fmt), shown: null, message });
    },
    setFormat(name) {
      const fmt = FORMATS[name];
      const change = { fmt, how: "typed" };
      if (state.source.kind === "nan" && !fmt.has_nan) {
        return update({ ...change, code: 0n, message: `${fmt.label} has no NaN: 0 is shown instead.` });
      }
      const result = round(state.source, fmt, options());
      update({ ...change, code: result.code, message: explainRounding(state.source, result, fmt, { shown: state.shown, ...options() }) });
    },
  };

  const options = () => ({ saturate: model.get("saturate") === true });

  function takeNumber(text) {
    try {
      const source = parseNumber(text);
      const result = round(source, state.fmt, options());
      const shown = text.trim().length <= 24 ? text.trim() : null;
      const message = explainRounding(source, result, state.fmt, { shown, ...options() });
      update({ code: result.code, how: "typed", source, shown, typed: text, message });
    } catch (error) {
      refuse(error, { wrong: "number", typed: text });
    }
  }

  // Enter on an unchanged field: say again how it was rounded.
  function showAgain(text) {
    if (state.typed === null) takeNumber(text);
  }

  function refuse(error, { wrong, typed }) {
    if (!(error instanceof NumberTextError || error instanceof RangeError)) throw error;
    update({ message: error.message, wrong, typed });
  }

  const message = h("p", { class: "mp-message" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const names = model.get("formats")?.length ? model.get("formats") : Object.keys(FORMATS);
  const controls = controlsPanel(h, actions, [...new Set([...names, first.fmt.name])]);
  controls.describeBy(message);
  const goals = model.get("goals")?.length ? goalsPanel(h, actions, model) : null;
  const bits = bitsPanel(h, actions);
  const lower = [rulerPanel(h), codePanel(h, actions), shortcutsPanel(h, actions, { all: goals === null })];
  const panels = [
    ...(goals ? [goals] : []), controls, { node: message, draw: drawMessage }, bits, legendPanel(h), valuePanel(h),
    neighboursPanel(h, actions), ...(model.get("compact") ? [foldedPanel(h, lower)] : lower),
  ];

  function drawMessage() {
    setText(message, state.message);
    message.classList.toggle("mp-wrong", state.wrong !== "");
  }

  function draw() {
    const view = { ...state, decoded: decode(state.code, state.fmt) };
    panel.classList.toggle("mp-many-bits", state.fmt.bits > 19);
    for (const part of panels) part.draw(view);
    if (message.scrollHeight > message.clientHeight) message.tabIndex = 0; // too long for its place: it scrolls, by keys too
    else message.removeAttribute("tabindex");
  }

  function followModel() {
    const { fmt, code } = readState(model);
    if (fmt === state.fmt && code === state.code) return;
    Object.assign(state, { fmt, code, source: valueOf(code, fmt), shown: null, typed: null, wrong: "", how: "kernel", message: "Set from Python." });
    goals?.check(state);
    draw();
  }

  const panel = h("div", { class: "mp-panel" }, h("div", { class: `mp-stack${goals ? " mp-with-goals" : ""}` }, panels.map(({ node }) => node), status));
  goals?.begin();
  draw();
  el.classList.add("mp-widget", "mp-bit-flip");
  el.replaceChildren(panel);
  return () => stop.abort();
}

export default { render };
