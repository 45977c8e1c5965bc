// The picture of a histogram by binades with the window of a format over it. One unit across is one binade: the bars
// are an SVG that stretches, the zones and labels are elements placed in percent, so that a new width needs no script.

import { ALL_LAYERS, countFates, fateOfBinade, overflowBound, totalCount } from "./binades.js";
import { setText } from "../page/elements.js";
import { powerText, shareText } from "../words/sizes.js";

const PLOT_ENDS = { low: -64, high: 40 }; // what lies further out is added to the bars at the ends
const PEAKS = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1];
const DECADES = 6; // of the logarithmic scale, from 0.0001 % up
const BINADE_FATES = ["zero", "subnormal", "normal", "overflow"];
const TRAINED = {
  "32-true": "in float32", "16-mixed": "in float16 mixed precision", "bf16-mixed": "in bfloat16 mixed precision",
  "16-true": "purely in float16", "bf16-true": "purely in bfloat16",
};
const ZONE_WORDS = { zero: "become zero", subnormal: "subnormal", normal: "normal", overflow: "overflow" };

/** The powers of two that an axis shows: all that the histograms hold, and float16's window at scale 1. */
export function axisOfBinades(histograms) {
  const filled = histograms.filter(({ counts }) => counts.length);
  const low = Math.min(-27, ...filled.map((one) => one.low - 1));
  const high = Math.max(18, ...filled.map((one) => one.low + one.counts.length + 1));
  return { from: Math.max(low, PLOT_ENDS.low), to: Math.min(high, PLOT_ENDS.high) };
}

/** Where a window's zones end, as powers of two: what becomes zero, what is subnormal, what is finite. */
export const windowEdges = (fmt, shift) => ({
  zero: fmt.emin - fmt.mantissa_bits - 1 - shift, subnormal: fmt.emin - shift,
  normal: Math.min(Math.log2(overflowBound(fmt)), fmt.emax + 1) - shift,
});

/** The bars as places on the axis: [{ at, share, fate }], what is outside added to the first and the last. */
export function barsOfBinades(histogram, { axis, fmt, shift = 0, moved = 0 }) {
  const total = totalCount(histogram);
  const bars = new Map();
  histogram.counts.forEach((n, i) => {
    if (n === 0) return;
    const e = histogram.low + i;
    const at = Math.min(Math.max(e + moved, axis.from), axis.to - 1);
    const bar = bars.get(at) ?? { at, share: 0, fate: fateOfBinade(at - moved + shift, fmt) };
    bar.share += n / total;
    bars.set(at, bar);
  });
  return [...bars.values()];
}

const peakOf = (bars) => {
  const most = Math.max(0, ...bars.map(({ share }) => share));
  return PEAKS.find((peak) => peak >= most - 1e-9);
};

const barHeight = (share, { log, peak }) =>
  (log ? Math.max(0.02, 1 + Math.log10(share) / DECADES) : Math.max(share / peak, 0.004));

const barPath = (bars, scale) => bars.map(({ at, share }) => {
  const height = barHeight(share, scale).toFixed(4);
  return `M${at + 0.1} 1v-${height}h.8v${height}z`;
}).join("");

export const inPercent = (share) => `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(3)}%`;

/** Bars over the zones of a window; `tall` with words in the zones. Gives { node, draw(view) }. */
export function binadeBars(h, { tall = false } = {}) {
  const SVG_NAME = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(SVG_NAME, "svg");
  for (const [name, value] of Object.entries({ class: "mp-bw-bars", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" })) svg.setAttribute(name, value);
  const paths = BINADE_FATES.map((fate) => {
    const path = document.createElementNS(SVG_NAME, "path");
    path.setAttribute("class", `mp-bw-${fate}`);
    return path;
  });
  svg.append(...paths);
  const zones = BINADE_FATES.map((fate) => h("span", { class: `mp-bw-zone mp-bw-${fate}-zone` }));
  const hatches = BINADE_FATES.map((fate) => h("span", { class: `mp-bw-hatch mp-bw-${fate}-hatch` }));
  const words = tall ? BINADE_FATES.map((fate) => h("span", { class: `mp-bw-word mp-bw-${fate}-word` }, h("span", {}, ZONE_WORDS[fate]))) : [];
  const grid = h("span", { class: "mp-bw-grid" });
  return {
    node: h("span", { class: `mp-bw-plot${tall ? " mp-bw-tall" : ""}`, "aria-hidden": "true" }, zones, svg, hatches, grid, words),
    // `shift` moves the window to the left, `moved` the values to the right: both are a scale of 2**that.
    draw({ histogram, axis, fmt, shift = 0, moved = 0, log = false }) {
      const bars = barsOfBinades(histogram, { axis, fmt, shift: shift + moved, moved });
      const scale = { log, peak: peakOf(bars) };
      svg.setAttribute("viewBox", `${axis.from} 0 ${axis.to - axis.from} 1`);
      paths.forEach((path, i) => path.setAttribute("d", barPath(bars.filter(({ fate }) => fate === BINADE_FATES[i]), scale)));
      const edges = windowEdges(fmt, shift);
      const place = (power) => Math.min(Math.max((power - axis.from) / (axis.to - axis.from), 0), 1);
      const ends = [0, place(edges.zero), place(edges.subnormal), place(edges.normal), 1];
      for (const spans of [zones, hatches, words]) {
        spans.forEach((span, i) => {
          span.style.left = inPercent(ends[i]);
          span.style.width = inPercent(ends[i + 1] - ends[i]);
        });
      }
      if (tall) grid.replaceChildren(...gridLines(h, scale));
    },
  };
}

function gridLines(h, { log, peak }) {
  const marks = log ? [["100 %", 1], ["1 %", 2 / 3], ["0.01 %", 1 / 3]] : [[`${+(100 * peak).toFixed(1)} %`, 1], [`${+(50 * peak).toFixed(1)} %`, 0.5]];
  return marks.map(([text, height]) => {
    const line = h("span", { class: "mp-bw-line" }, h("span", {}, text));
    line.style.bottom = inPercent(height);
    return line;
  });
}

/** The powers of two below the bars; every second one is left out where there is little room. */
export function binadeAxis(h) {
  const node = h("span", { class: "mp-bw-axis", "aria-hidden": "true" });
  return {
    node,
    draw({ axis }) {
      const step = 5;
      const ticks = [];
      for (let e = Math.ceil((axis.from + 1.5) / step) * step; e <= axis.to - 1.5; e += step) {
        const tick = h("span", { class: `mp-bw-tick${e % 20 === 0 ? "" : e % 10 === 0 ? " mp-bw-some" : " mp-bw-fine"}` }, powerText(e));
        tick.style.left = inPercent((e - axis.from) / (axis.to - axis.from));
        ticks.push(tick);
      }
      node.replaceChildren(...ticks);
    },
  };
}

/** A share in as few signs as there are. */
export const shortShare = (n, total) => shareText(n, total).replace("less than", "<").replace("more than", ">");

/** A share of at most n, or of at least n. */
export const boundedShare = (n, total, most) => `${most ? "≤" : "≥"} ${shortShare(n, total)}`.replace(/. ([<>])/, "$1");

/** The four fates with their shares, and what their bars look like. Gives { node, draw({ histogram, fmt, shift }) }. */
export function fateShares(h) {
  const values = BINADE_FATES.map(() => h("dd", {}));
  const names = BINADE_FATES.map((fate) => h("span", {}, ZONE_WORDS[fate]));
  return {
    node: h("dl", { class: "mp-bw-shares" }, BINADE_FATES.map((fate, i) => h("div", {},
      h("dt", {}, h("span", { class: `mp-bw-sample mp-bw-${fate}-sample`, "aria-hidden": "true" }), names[i]), values[i]))),
    draw({ histogram, fmt, shift }) {
      const { total, zero, subnormal, least, most } = countFates(histogram, fmt, shift);
      const text = (n) => (total === 0 ? "–" : n === 0 ? "none" : n === total ? "all" : shortShare(n, total));
      const counts = [zero, subnormal, total - zero - subnormal - most, most];
      setText(names[3], fmt.has_nan ? "overflow" : "too large");
      values.forEach((value, i) => setText(value, least < most && i > 1 ? boundedShare(counts[i], total, i === 3) : text(counts[i])));
    },
  };
}

/** The choice of layers. */
export function layerPicker(h, actions, groups) {
  const options = [ALL_LAYERS, ...groups].map((name) => h("option", { value: name }, name));
  const select = h("select", { class: "mp-input", on: { change: () => actions.set({ group: select.value }) } }, options);
  return {
    node: h("label", { class: "mp-field" }, h("span", {}, "Layers"), select),
    draw({ group, kind, recorded }) {
      for (const option of options) option.disabled = option.value !== ALL_LAYERS && !(option.value in recorded.histograms[kind]);
      select.value = group;
    },
  };
}

/** Where a record comes from. */
export function recordedSource({ model, recipe, data, device, date }) {
  const trained = recipe && `trained ${TRAINED[recipe] ?? `by the recipe ${recipe}`}`;
  const parts = [[model, trained].filter(Boolean).join(", "), data && `data: ${data.replace(", local folder", "")}`, device && `device: ${device}`];
  return `Recorded${date ? ` on ${date}` : ""}: ${parts.filter(Boolean).join("; ")}.`;
}
