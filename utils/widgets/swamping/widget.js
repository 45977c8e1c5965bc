// Swamping: an increment is added to a growing sum until nothing happens. The state, its changes, and the run.

import { exactNumber } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { numberText, NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { additionPanel, kahanPanel, lanesPanel, swampButtons, swampControls } from "./panels.js";
import { axisEnd, countText, swampingPlot } from "./plot.js";
import { addMore, exactAdditions, exactSum, hasStalled, newSum } from "./sums.js";
import { plainNumberText, readTerm, stallSentence, sumText } from "./words.js";

const RUN_SECONDS = 6;
const SLICE_MS = 8; // of each frame, so that a page stays alive while millions of additions are made
const BLOCK = 4096;

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  // `typed` stands in the fields and may be faulty: then `wrong` names the field; `good` are the texts of the sum below.
  const state = {
    fmt: null, sum: null, typed: {}, good: {}, terms: {}, message: "", wrong: "", refused: false, job: null, end: 16, seed: 1,
  };
  let frame = 0;
  const store = bindModel(model, ["format", "increment", "start", "count", "steps", "stochastic"], followModel, stop.signal);

  const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // The sum anew, from what the fields say; with `change` some of it is said differently. A bad input keeps the sum.
  function begin(change = {}, { count = 0 } = {}) {
    const { format, ...typed } = { format: state.fmt?.name, ...state.typed, ...change };
    const fmt = FORMATS[format];
    try {
      newTerms(fmt, typed, count);
      draw({ speak: "" });
    } catch (error) {
      if (!(error instanceof NumberTextError)) throw error;
      halt();
      if (fmt !== state.fmt && state.wrong === "" && state.sum) refuseFormat(error);
      else refuseText(error, fmt, typed);
      draw({ speak: state.message });
    }
  }

  function newTerms(fmt, typed, count = 0) {
    const terms = readTerms(typed, fmt);
    halt();
    const sum = newSum({ fmt, increment: terms.increment.value, start: terms.start.value, seed: state.seed });
    Object.assign(state, { fmt, typed, good: typed, terms, sum, wrong: "", refused: false, end: 16, message: "" });
    store({
      format: fmt.name, count, increment: plainNumberText(typed.increment, terms.increment.number),
      start: plainNumberText(typed.start, terms.start.number),
    });
    addMore(sum, count);
  }

  // Good numbers that the chosen format cannot hold: the format stays, and so the sum goes on.
  function refuseFormat(error) {
    Object.assign(state, { refused: true, message: `${error.message} The format stays ${state.fmt.label}.` });
  }

  // A faulty text stays in its field; below stays the sum of the last good ones, in the format that is chosen now.
  function refuseText(error, fmt, typed) {
    if (fmt !== state.fmt) {
      try {
        newTerms(fmt, state.good);
      } catch (unheld) {
        if (!(unheld instanceof NumberTextError)) throw unheld;
        newTerms(fmt, { increment: "1", start: "0" });
      }
    }
    const { increment, start } = state.good;
    const earlier = `Below: still the sum of ${increment.trim()}${sameAsZero(start) ? "" : `, from ${start.trim()} on`}.`;
    Object.assign(state, { typed, wrong: error.field, refused: true, message: `${error.message} ${earlier}` });
  }

  const sameAsZero = (text) => parseNumber(text).num === 0n;

  // While a field is faulty no addition is made: it would be one of another number than the field says.
  function isRefused() {
    if (state.wrong === "") return false;
    setText(status, status.textContent === state.message ? `${state.message}\u00a0` : state.message); // said again
    return true;
  }

  // A job is { to, from, begun }: additions up to `to`, spread over some seconds; or { stall: true }, as fast as can be.
  function startJob(job) {
    Object.assign(state, { job: { from: state.sum.n, begun: null, ...job }, refused: false, message: "" });
    if (job.to) state.end = axisEnd(job.to);
    if (job.stall || isCalm()) slice(); // what is done at once needs no frame
    if (state.job) frame = requestAnimationFrame(tick);
    draw({ speak: state.job ? "" : outcome() });
  }

  function tick(now) {
    const { job } = state;
    job.begun ??= now;
    if (job.stall || isCalm()) slice();
    else {
      const part = Math.min((now - job.begun) / (1000 * RUN_SECONDS), 1);
      const target = job.from + Math.ceil((job.to - job.from) * part * part); // slowly first: there is much to see
      addMore(state.sum, Math.max(target - state.sum.n, 0));
      if (state.sum.n >= job.to) state.job = null;
    }
    if (state.job) frame = requestAnimationFrame(tick);
    if (!state.job || !isCalm()) draw({ speak: state.job ? "" : outcome() });
  }

  function slice() {
    const { job, sum } = state;
    const until = performance.now() + SLICE_MS;
    const isDone = () => (job.stall ? sum.before?.plain === sum.plain || !Number.isFinite(sum.plain) : sum.n >= job.to);
    while (!isDone() && performance.now() < until) {
      // met by a leap, the stall still needs the addition that changes nothing: that is the one to look at
      if (job.stall) addMore(sum, sum.stalledAt === null ? Math.max(BLOCK, exactAdditions(sum)) : 1, { untilStall: true });
      else addMore(sum, Math.min(BLOCK, job.to - sum.n));
    }
    if (isDone()) state.job = null;
  }

  function halt() {
    cancelAnimationFrame(frame);
    state.job = null;
  }

  const outcome = () => {
    const { fmt, sum } = state;
    const now = `${sum.n} addition${sum.n === 1 ? "" : "s"}: ${fmt.label} ${sumText(exactNumber(sum.plain))}, exact ${sumText(exactSum(sum))}.`;
    return `${now} ${stallSentence(sum)}`.trim();
  };

  const actions = {
    add(count) {
      if (isRefused()) return;
      halt();
      addMore(state.sum, count);
      Object.assign(state, { message: "", refused: false });
      draw({ speak: outcome() });
    },
    stepBack() {
      if (isRefused() || state.sum.n === 0) return;
      const { end } = state;
      newTerms(state.fmt, state.good, state.sum.n - 1); // the same dice, from the start
      state.end = end;
      draw({ speak: outcome() });
    },
    toggleRun() {
      if (isRefused()) return;
      const { sum, job } = state;
      if (job) {
        halt();
        return draw({ speak: outcome() });
      }
      const steps = model.get("steps");
      startJob({ to: sum.n < steps ? steps : sum.n + steps });
    },
    toTheStall() {
      if (isRefused() || state.job?.stall) return;
      halt();
      if (hasStalled(state.sum)) return draw({ speak: stallSentence(state.sum) });
      startJob({ stall: true });
    },
    reset() {
      if (isRefused()) return;
      state.seed += 1;
      begin();
    },
    setFormat: (format) => begin({ format }),
    setIncrement: (text) => (text === state.typed.increment && state.wrong === "" ? null : begin({ increment: text })),
    setStart: (text) => (text === state.typed.start && state.wrong === "" ? null : begin({ start: text })),
    setStochastic(on) {
      store({ stochastic: on });
      draw();
    },
  };

  const message = h("p", { class: "mp-swamp-message" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const names = [...new Set([...model.get("formats"), model.get("format")])];
  const controls = swampControls(h, actions, names);
  controls.describeBy(message);
  const [buttons, addition, plot, lanes, kahan] = [swampButtons(h, actions), additionPanel(h), swampingPlot(h), lanesPanel(h), kahanPanel(h)];
  const parts = [controls, buttons, addition, plot, lanes, kahan];

  function draw({ speak = null } = {}) {
    const { sum } = state;
    const end = Math.max(state.end, axisEnd(sum.n));
    const view = { ...state, end, steps: model.get("steps"), stochastic: model.get("stochastic") };
    for (const part of parts) part.draw(view);
    setText(message, state.message || storedText(state));
    message.classList.toggle("mp-wrong", state.refused);
    results.classList.toggle("mp-swamp-earlier", state.wrong !== "");
    if (speak !== null) setText(status, speak);
    if (!state.job && model.get("count") !== sum.n) store({ count: sum.n });
  }

  function followModel() {
    begin({ format: model.get("format"), increment: model.get("increment"), start: model.get("start") }, { count: model.get("count") });
  }

  const results = h("div", { class: "mp-swamp-stack" }, addition.node,
    h("div", { class: "mp-swamp-columns" }, plot.node, lanes.node), kahan.node);
  const panel = h("div", { class: "mp-panel" }, h("div", { class: "mp-swamp-stack" },
    controls.node, message, buttons.node, results, status));
  followModel();
  el.classList.add("mp-widget", "mp-swamping");
  el.replaceChildren(panel);
  return () => {
    halt();
    stop.abort();
  };
}

// Both numbers as the format reads them; a NumberTextError says with `field` which one it cannot.
function readTerms(typed, fmt) {
  const terms = {};
  for (const field of ["start", "increment"]) {
    try {
      terms[field] = readTerm(typed[field], fmt, { zero: field === "start" });
    } catch (error) {
      throw Object.assign(error, { field });
    }
  }
  return terms;
}

// What the format makes of the numbers that were typed, before anything else is to be said.
function storedText({ fmt, terms, typed, sum }) {
  if (sum.leapt > BLOCK) return `Up to the size ${sumText(exactNumber(sum.reach))} every sum is exact: the page made ${countText(sum.leapt)} of them at once.`;
  const changed = ["start", "increment"].filter((name) => !terms[name].exact)
    .map((name) => `${typed[name].trim()} is stored as ${numberText(exactNumber(sum[name]), 14)}`);
  if (changed.length) return `In ${fmt.label} ${changed.join(", and ")}; the exact sum adds that.`;
  return `Every sum is rounded to ${fmt.label}: ${fmt.mantissa_bits + 1} significant bits. How far does it get?`;
}

export default { render };
