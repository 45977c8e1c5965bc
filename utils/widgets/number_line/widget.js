// NumberLine: the state and its changes. The arithmetic is in grid.js and view.js, the words
// in words.js, the picture in geometry.js and picture.js.

import { finite } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { compareNumbers, firstPlace, lastPlace, resultsOf, rollResults } from "./grid.js";
import { captionPanel, DRAWS, factsPanel, lessonPanel, linePickers, rulesTable, viewButtons } from "./panels.js";
import { stagePanel } from "./picture.js";
import {
  draggedTo, exactText, fineStep, isInView, namedView, panView, powerOfTwo, timesFraction, valueStep, viewWidth,
  zoomView,
} from "./view.js";
import { countText, explainRule, lineRefusal, placeText, powerName, rollText, xText } from "./words.js";

const LINE_KEYS = ["format", "x", "low", "high", "rounding", "saturate"];

function finiteNumber(text) {
  const number = parseNumber(text);
  if (number.kind !== "finite") throw new NumberTextError("The line has no place for what is not finite: type a number such as 1e9.");
  return number;
}

// Bounds from the traits; none given: the values around x.
function readView(model, fmt, x) {
  const [low, high] = [model.get("low"), model.get("high")];
  if (!low || !high) return namedView("x", { fmt, x });
  const view = { low: finiteNumber(low), high: finiteNumber(high) };
  return compareNumbers(view.low, view.high) < 0 ? view : namedView("x", { fmt, x }); // a kernel sets one, then the other
}

function readLine(model) {
  const fmt = FORMATS[model.get("format")];
  const x = finiteNumber(model.get("x"));
  return {
    fmt, x, shown: model.get("x"), typed: model.get("x"), view: readView(model, fmt, x),
    rule: model.get("rounding"), saturate: model.get("saturate") === true,
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const state = { ...readLine(model), message: "", wrong: false, withoutSubnormals: false, sample: null };
  const save = bindModel(model, LINE_KEYS, followModel, stop.signal);

  const store = () => save({
    format: state.fmt.name, x: state.typed, low: exactText(state.view.low), high: exactText(state.view.high),
    rounding: state.rule, saturate: state.saturate,
  });

  // A change of state; `line`: the picture changes too, not x alone. `said`: what the live region says of it.
  function update(change, { line = false, said = null, keep = true } = {}) {
    Object.assign(state, { message: "", wrong: false }, change);
    if ("x" in change || "fmt" in change || "saturate" in change) state.sample = change.sample ?? null;
    draw({ line });
    if (keep) store();
    if (said !== null) setText(status, said);
  }

  const setX = (x, text = exactText(x)) => ({ x, typed: text, shown: text });
  const now = () => explainRule(state.x, state.rule, state.fmt, state).text;

  const actions = {
    setFormat(name) {
      update({ fmt: FORMATS[name], typed: state.shown ?? state.typed }, { line: true, said: null });
      setText(status, now());
    },
    typeNumber(text) {
      if (text === state.typed && !state.wrong) return;
      try {
        const x = finiteNumber(text);
        const view = isInView(x, state.view) ? state.view : namedView("x", { fmt: state.fmt, x });
        update({ ...setX(x, text.trim()), view }, { line: view !== state.view });
        setText(status, now());
      } catch (error) {
        if (!(error instanceof NumberTextError || error instanceof RangeError)) throw error;
        const said = `${lineRefusal(error.message)} The table is still that of ${xText(state.x, state.shown)}.`;
        update({ message: said, wrong: true, typed: text }, { keep: false, said });
      }
    },
    setRule(rule) {
      update({ rule }, { line: true });
      setText(status, now());
    },
    setSaturate(saturate) {
      update({ saturate }, { line: true });
      setText(status, now());
    },
    // One step of the keys; the view follows where x leaves it.
    step(direction, size) {
      const next = size === "value" ? valueStep(state.x, direction, state.fmt) : fineStep(state.x, direction, state.view, state.fmt);
      if (next === null) {
        const end = placeText(direction > 0 ? lastPlace(state.fmt) : firstPlace(state.fmt), state.fmt);
        return update({ message: `There is no value ${direction > 0 ? "above" : "below"} ${end} in ${state.fmt.label}.` }, { keep: false, said: `No value ${direction > 0 ? "above" : "below"} ${end}.` });
      }
      const view = isInView(next, state.view) ? state.view : followed(next);
      update({ ...setX(next), view }, { line: view !== state.view });
    },
    toEdge(direction) {
      update(setX(direction > 0 ? state.view.high : state.view.low));
    },
    drag(at, pixels) {
      update(setX(draggedTo(state.view, pixels, at, state.fmt)), { keep: false });
    },
    dragEnd(panned = false) {
      store();
      setText(status, panned ? countText(state.view, state.fmt) : now());
    },
    pan(share) {
      update({ view: panView(state.view, share, state.fmt) }, { line: true, keep: false });
    },
    shift(share) {
      moveView(panView(state.view, share, state.fmt), "There is nothing further out.");
    },
    zoom(num, den) {
      moveView(zoomView(state.view, { num, den, about: state.x, fmt: state.fmt }), num > den ? "All values are in view." : "There is nothing finer to see.");
    },
    show(name) {
      const view = namedView(name, state);
      if (view === null) return update({ message: `${state.fmt.label} has neither zero nor subnormal numbers.` }, { keep: false, said: `${state.fmt.label} has no subnormal numbers.` });
      moveView(view, "");
    },
    toggleHole() {
      if (!state.fmt.has_zero) return actions.show("subnormals");
      const on = !state.withoutSubnormals;
      const border = powerOfTwo(state.fmt.emin);
      const view = on && !holeInView(border) ? namedView("subnormals", state) : state.view;
      const said = on ? `Without subnormal numbers nothing would lie between 0 and ${powerName(state.fmt.emin)}: two different numbers could have the difference 0. The table below still has them.` : null;
      update({ withoutSubnormals: on, view, message: said ?? "" }, { line: true, said });
    },
    roll() {
      const outcomes = resultsOf(state.x, state.fmt, state).stochastic;
      const counts = rollResults(outcomes, DRAWS);
      const text = rollText(state.x, outcomes, counts, state.fmt, state.shown);
      update({ sample: { counts, text } }, { keep: false, said: text });
    },
  };

  // Whether the hole would be seen: a tenth of the view at least.
  function holeInView(border) {
    const wide = compareNumbers(timesFraction(border, 10n), viewWidth(state.view)) > 0;
    return wide && (isInView(border, state.view) || isInView(finite(0, 0n), state.view));
  }

  function moveView(view, otherwise) {
    const same = view === state.view;
    update(same ? { message: otherwise } : { view }, { line: !same, keep: !same, said: same ? otherwise : countText(view, state.fmt) });
  }

  // The view moved by half its width towards x; around x where that is not enough.
  function followed(x) {
    const moved = panView(state.view, compareNumbers(x, state.view.high) > 0 ? 0.5 : -0.5, state.fmt);
    return isInView(x, moved) ? moved : namedView("x", { fmt: state.fmt, x });
  }

  const names = model.get("formats")?.length ? model.get("formats") : Object.keys(FORMATS);
  const pickers = linePickers(h, actions, [...new Set([...names, state.fmt.name])]);
  const stage = stagePanel(h, actions);
  const caption = captionPanel(h);
  const buttons = viewButtons(h, actions);
  const lesson = lessonPanel(h, actions);
  const facts = factsPanel(h);
  const rules = rulesTable(h, actions);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const hint = h("p", { class: "mp-nl-hint" }, "Drag x, or click on the line. ", h("span", { class: "mp-nl-keys" }, "Keys on x: ← → a little, Shift and ← → to the next value."));
  pickers.describeBy(lesson.text);

  function draw({ line }) {
    if (line) stage.draw(state);
    stage.drawPoint(state);
    for (const part of line ? [pickers, caption, buttons, lesson, facts, rules] : [pickers, lesson, facts, rules]) part.draw(state);
  }

  function followModel() {
    Object.assign(state, readLine(model), { message: "", wrong: false, sample: null });
    draw({ line: true });
  }

  el.classList.add("mp-widget", "mp-number-line");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-nl-stack" },
    pickers.node, hint, stage.node, caption.node, buttons.node, lesson.node, rules.node, facts.node, status)));
  stage.listen(stop.signal);
  stage.resize(); // where the page shows it already, it is drawn once, at its width
  draw({ line: true });
  const watcher = new ResizeObserver(() => stage.resize() && draw({ line: true }));
  watcher.observe(stage.node);
  return () => {
    stop.abort();
    watcher.disconnect();
  };
}

export default { render };
