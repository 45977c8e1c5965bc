// DotProduct: K exact products are added in a narrow register. The state, its changes, and the run over k.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { placesOf, placesOfProducts } from "./bits.js";
import { laneControls, productControls, stallPlace, walkControls } from "./controls.js";
import { bitsPanel, sumTable } from "./panels.js";
import { dotPlot } from "./plot.js";
import { exactSums, MOST_PRODUCTS, operandPairs, runLane, stepOf } from "./sums.js";
import { spokenState, wholeText } from "./words.js";

const DOT_TRAITS = ["products", "data", "operands", "seed", "lanes", "added", "log"];
const DOUBLINGS_A_SECOND = 1.5; // of k, in a run
const FRAME_MS = 80; // between two pictures of a run: the digits can be followed
const SPEAK_MS = 400;

/** The products of a state, their exact sums, and all additions of its lanes; what has not changed since `old` stays. */
export function computed(state, old = {}) {
  const key = JSON.stringify([state.data, state.products, state.operands, state.seed]);
  const same = old.key === key;
  const pairs = same ? old.pairs : operandPairs(state);
  const exacts = same ? old.exacts : exactSums(pairs.products);
  const productPlaces = same ? old.productPlaces : placesOfProducts(pairs.products);
  const runs = state.lanes.map((lane) => (same && old.runs.find((run) => sameLane(run.lane, lane))) || runLane(pairs, lane));
  return { key, pairs, exacts, productPlaces, runs, step: stepOf(runs), places: placesOf(runs, productPlaces) };
}

const sameLane = (one, other) => ["adder", "block", "promote"].every((name) => one[name] === other[name]);

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  let [now, job, frame, timer] = [null, null, 0, 0];
  const store = bindModel(model, DOT_TRAITS, followModel, stop.signal);
  let [typed, wrong] = ["", ""];

  const read = () => readTraits(model, DOT_TRAITS);
  const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const last = () => model.get("products");
  const snapped = (k) => (k >= last() ? last() : Math.max(Math.round(k / now.step), 0) * now.step);

  function halt() {
    cancelAnimationFrame(frame);
    job = null;
  }

  function moveTo(k, { speak = true } = {}) {
    store({ added: snapped(k) });
    move(model.get("added"));
    if (speak) say();
  }

  function say() {
    clearTimeout(timer);
    const text = spokenState({ k: shownK(), runs: now.runs, exact: now.exacts[shownK()] });
    timer = setTimeout(() => setText(status, text), SPEAK_MS);
  }

  const shownK = () => snapped(model.get("added"));

  function tick(time) {
    job.begun ??= time;
    if (time - job.drawn >= FRAME_MS) {
      job.drawn = time;
      job.k = Math.min(Math.max(job.k + now.step, job.from * 2 ** (((time - job.begun) / 1000) * DOUBLINGS_A_SECOND)), last());
      const k = snapped(job.k);
      if (k >= last()) {
        halt();
        return moveTo(last());
      }
      move(k);
    }
    frame = requestAnimationFrame(tick);
  }

  const actions = {
    set(change) {
      halt();
      const atEnd = model.get("added") >= last();
      const products = change.products ?? last();
      store({ ...change, added: atEnd ? products : Math.min(model.get("added"), products) });
      draw();
      say();
    },
    setProducts(text) {
      const count = Number(text.replace(/[\s\u202f,_]/g, ""));
      wrong = Number.isInteger(count) && count >= 1 && count <= MOST_PRODUCTS ? "" : `K is a whole number from 1 to ${wholeText(MOST_PRODUCTS)}, not “${text.slice(0, 24)}”. Below: still K = ${wholeText(last())}.`;
      typed = text;
      setText(message, wrong);
      if (wrong) return draw();
      return actions.set({ products: count });
    },
    otherNumbers() {
      const state = read();
      if (state.data === "uniform" || state.data === "normal") actions.set({ seed: (state.seed + 1) % 2 ** 32 });
    },
    setLane(i, change) {
      actions.set({ lanes: model.get("lanes").map((lane, j) => (i === j ? { ...lane, ...change } : lane)) });
    },
    compare(two) {
      const [first] = model.get("lanes");
      actions.set({ lanes: two ? [first, { ...first, promote: first.promote ? 0 : 128 }] : [first] });
    },
    step(sign) {
      halt();
      const k = shownK();
      moveTo(sign < 0 && k === last() ? (Math.ceil(k / now.step) - 1) * now.step : k + sign * now.step);
    },
    moveTo(k) {
      halt();
      moveTo(k);
    },
    toggleRun() {
      if (job) {
        const { k } = job;
        halt();
        return moveTo(k);
      }
      if (isCalm()) return moveTo(last());
      const from = shownK() >= last() ? now.step : Math.max(shownK(), now.step);
      job = { from, k: from - now.step, begun: null, drawn: -Infinity };
      frame = requestAnimationFrame(tick);
      return move(snapped(from));
    },
    toTheStall() {
      const place = now.runs.map(stallPlace).find((k) => k !== null);
      if (place === undefined) return;
      halt();
      moveTo(Math.min(place + now.step, last())); // the first addition that changes nothing
    },
  };

  const status = h("p", { class: "mp-unseen", role: "status" });
  const message = h("p", { class: "mp-dot-message" });
  const [form, lanes, walk] = [productControls(h, actions), laneControls(h, actions), walkControls(h, actions)];
  form.describeBy(message);
  const picture = bitsPanel(h);
  const table = sumTable(h);
  const pick = actions.moveTo;
  const plots = [
    dotPlot(h, { title: "Sum", of: "sum", pick, signal: stop.signal }),
    dotPlot(h, { title: "Relative error", of: "error", pick, signal: stop.signal }),
  ];

  function draw() {
    const state = read();
    now = computed(state, now ?? {});
    const view = { ...now, state, typed, wrong, log: state.log };
    for (const part of [form, lanes, walk, picture, ...plots]) part.draw(view);
    message.hidden = wrong === "";
    move(shownK());
  }

  function move(k) {
    const view = { ...now, k, state: read(), job };
    for (const part of [walk, picture, table, ...plots]) part.move(view);
  }

  function followModel() {
    halt();
    [typed, wrong] = ["", ""];
    draw();
  }

  el.classList.add("mp-widget", "mp-dot-product");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-dot-stack" },
    form.node, message, lanes.node, walk.node, picture.node, table.node,
    h("div", { class: "mp-dot-plots" }, plots.map((plot) => plot.node)), status)));
  draw();
  return () => {
    halt();
    clearTimeout(timer);
    stop.abort();
  };
}

export default { render };
