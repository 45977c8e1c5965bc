// The parts of ScaleExplorer: what the scale does to the histogram, the error against the scale, the numbers.

import { largestOf } from "../shared/numbers/scaling.js";
import { dragged } from "../shared/page/drag.js";
import { setText } from "../shared/page/elements.js";
import { binadeAxis, binadeBars } from "../shared/plot/binades_plot.js";
import { powerTicks, sharePath, stretchedPlot } from "../shared/plot/stretched_plot.js";
import { powerText } from "../shared/words/sizes.js";
import { binadesOfValues, threeOf } from "./scales.js";
import { dbText, numberInShort, pastWords, relativeText } from "./words.js";

const SE_FATES = ["zero", "subnormal", "normal", "past"];
const SE_SAMPLES = { zero: "zero", subnormal: "subnormal", normal: "normal", past: "overflow" }; // as shared/plot/binades_plot.js calls them
const DB_STEP = 10;
const SE_WORD = 0.25; // of the width, what a word beside a line takes on a phone
const sePercent = (share) => `${(100 * share).toFixed(3)}%`;

/** The scaled values in the window of the format; they can be dragged, and amax has a flag. */
export function scaledStage(h, actions) {
  const bars = binadeBars(h, { tall: true });
  const axis = binadeAxis(h);
  const flag = h("span", { class: "mp-se-flag" });
  const pole = h("span", { class: "mp-se-pole" });
  let [span, from] = [1, 0];
  const node = h("div", { class: "mp-se-stage", "aria-hidden": "true", on: dragged({
    start: () => { from = actions.power(); }, move: (pixels) => actions.drag(from + (pixels * span) / node.clientWidth), end: () => actions.dragEnd(),
  }) }, flag, bars.node, pole, axis.node);
  const overflow = bars.node.querySelector(".mp-bw-overflow-word > span");
  return {
    node,
    draw({ carried, fmt, saturate }) {
      const view = { from: fmt.emin - fmt.mantissa_bits - 12, to: fmt.emax + 9 };
      span = view.to - view.from;
      bars.draw({ histogram: binadesOfValues(carried.scaled), axis: view, fmt });
      axis.draw({ axis: view });
      setText(overflow, pastWords(fmt, saturate)[1]);
      const at = carried.landing > 0 ? Math.log2(carried.landing) : -Infinity;
      const place = Math.min(Math.max((at - view.from) / span, 0), 1);
      pole.style.left = sePercent(place);
      flag.style.left = sePercent(place);
      flag.style.transform = `translateX(-${sePercent(place)})`;
      setText(flag, `${place === 0 ? "‹ " : ""}amax → ${numberInShort(carried.landing)}${place === 1 ? " ›" : ""}`);
    },
  };
}

/** The shares of the values, each with its count. */
export function endCounts(h) {
  const words = { zero: "become zero", subnormal: "subnormal", normal: "normal", past: "" };
  const names = SE_FATES.map((fate) => h("span", {}, words[fate]));
  const values = SE_FATES.map(() => h("dd", {}));
  return {
    node: h("dl", { class: "mp-bw-shares" }, SE_FATES.map((fate, i) => h("div", {},
      h("dt", {}, h("span", { class: `mp-bw-sample mp-bw-${SE_SAMPLES[fate]}-sample`, "aria-hidden": "true" }), names[i]), values[i]))),
    draw({ carried, fmt, saturate }) {
      setText(names[3], pastWords(fmt, saturate)[1]);
      SE_FATES.forEach((fate, i) => setText(values[i], `${carried.counts[fate]} of ${carried.x.length}`));
    },
  };
}

/** SQNR against the scale, and the slider of the scale under it: both have one axis. */
export function curvePanel(h, actions) {
  const shown = h("strong", { class: "mp-se-db" });
  const input = h("input", { class: "mp-se-slider", type: "range", step: "0.001", "aria-label": "Scale, by powers of two", on: { input: () => actions.drag(Number(input.value)), change: () => actions.dragEnd(), keydown } });
  let [range, power] = [{ low: 0, high: 1 }, 0];
  const plot = stretchedPlot(h, {
    name: "mp-se-curve", point: ({ x }) => actions.drag(range.low + x * (range.high - range.low)), end: () => actions.dragEnd(),
  });

  function keydown(event) {
    const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 4, PageDown: -4 };
    const ends = { Home: range.low, End: range.high };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ways[event.key];
    if (way === undefined && !(event.key in ends)) return;
    event.preventDefault();
    actions.toPower(ends[event.key] ?? Math.min(Math.max((way > 0 ? Math.floor(power) : Math.ceil(power)) + way, range.low), range.high), false);
  }

  const across = (k) => (k - range.low) / (range.high - range.low);

  return {
    node: h("div", { class: "mp-se-error" },
      h("p", { class: "mp-se-title" }, "SQNR against the scale: ", shown, h("span", { class: "mp-se-soft" }, ", more is better")), plot.node, h("div", { class: "mp-se-slide" }, input)),
    draw({ curve, carried, fmt, exact, rule }) {
      range = { low: curve[0][0], high: curve.at(-1)[0] };
      power = Math.log2(carried.scale);
      const known = [...curve.map(([, db]) => db), carried.db].filter(Number.isFinite);
      const top = DB_STEP * Math.ceil(Math.max(DB_STEP, ...known) / DB_STEP + 0.2);
      const upward = (db) => (Number.isFinite(db) ? Math.min(Math.max(db, 0), top) / top : NaN);
      const step = top > 40 ? 2 * DB_STEP : DB_STEP;
      const best = numberInShort(Math.max(...known), 3);
      plot.draw({
        lines: [["mp-se-line", sharePath(curve.map(([k, db]) => [across(k), upward(db)]))]],
        across: powerTicks(range.low, range.high, 6),
        up: Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => [(i * step) / top, `${i * step}${i ? "" : " dB"}`]),
        label: `SQNR for scales from ${powerText(range.low)} to ${powerText(range.high)}: at most ${best} dB; at this scale ${dbText(carried.db)}.`,
      });
      const scales = [[0, "scale 1", "one"], [Math.log2(exact), `${numberInShort(largestOf(fmt))} / amax`, "amax"]].filter(([at]) => at >= range.low && at <= range.high);
      // the word beside a line: below the curve, or above it where the curve is low
      const isLow = (at) => curve.every(([k, db]) => Math.abs(across(k) - across(at)) > SE_WORD || !(upward(db) > 0.8));
      plot.mark([
        ...scales.map(([at, text, name]) => [`mp-se-mark mp-se-mark-${name}${across(at) > 0.5 ? " mp-se-leftward" : ""}${name === "one" && isLow(at) ? " mp-se-above" : ""}`, across(at), null, text]),
        ...(Number.isFinite(carried.db) && power >= range.low && power <= range.high ? [["mp-se-dot", across(power), upward(carried.db)]] : []),
      ]);
      input.min = String(range.low);
      input.max = String(range.high);
      input.value = String(power);
      input.setAttribute("aria-valuetext", `scale ${numberInShort(carried.scale)}, SQNR ${dbText(carried.db)}${rule === "hand" ? "" : ", from amax"}`);
      setText(shown, dbText(carried.db));
    },
  };
}

/** Three values on their way: in by the scale, out by its inverse. */
export function wayTable(h) {
  const heads = ["", "x", "x × scale", "stored", "×\u00a0inv_scale", "error"];
  const rows = ["largest", "middle", "smallest"].map((name) => {
    const cells = heads.slice(1).map(() => h("td", {}));
    return { name, cells, node: h("tr", {}, h("th", { scope: "row" }, name), cells) };
  });
  return {
    node: h("table", { class: "mp-table mp-se-ways" }, h("caption", {}, "Three of the values, by size"),
      h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text || h("span", { class: "mp-unseen" }, "which"))))), h("tbody", {}, rows.map(({ node }) => node))),
    draw({ carried }) {
      const three = threeOf(carried.x);
      for (const { name, cells } of rows) {
        const i = three[name];
        const [x, back] = [carried.x[i], carried.back[i]];
        const off = Math.abs(back - x) / Math.abs(x);
        const texts = [x, carried.scaled[i], carried.stored[i], back].map((value) => numberInShort(value, 3));
        [...texts, relativeText(off)].forEach((text, n) => setText(cells[n], text.replace("\u00a0×", " ×"))); // a phone breaks it
      }
    },
  };
}
