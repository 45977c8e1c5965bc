// The two plots of DotProduct over k: what each lane is worth beside the exact sum, and its relative error.

import { superscript } from "../shared/numbers/superscript.js";
import { relativeError, valueAt } from "./sums.js";
import { LANE_NAMES, wholeText } from "./words.js";

const DOT_PLOT = { width: 440, height: 238, left: 88, right: 12, top: 14, bottom: 50 };
const LEAST_ERROR = 1e-8; // what is smaller is drawn on the floor

const inner = DOT_PLOT.width - DOT_PLOT.left - DOT_PLOT.right;
const floorY = DOT_PLOT.height - DOT_PLOT.bottom;

function dotSvg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Where k stands across: linear from 0 on, or logarithmic from 1 on; and back. */
export function acrossOf(all, log) {
  const span = Math.log2(Math.max(all, 2));
  return {
    at: (k) => DOT_PLOT.left + inner * (log ? Math.log2(Math.max(k, 1)) / span : k / all),
    back: (x) => {
      const part = Math.min(Math.max((x - DOT_PLOT.left) / inner, 0), 1);
      return log ? Math.round(2 ** (part * span)) : Math.round(part * all);
    },
  };
}

/**
 * The points of a line, of each column of pixels only where it comes in, its lowest, its highest, and where it leaves.
 *
 * `count` points at `xOf(i)`, which never falls, and `yOf(i)`; those that are not finite are left out. Gives an SVG path.
 */
export function thinnedPath(count, xOf, yOf) {
  const kept = [];
  let [column, first, low, high, last, lowest, highest] = [-1, 0, 0, 0, 0, 0, 0];
  const leave = () => {
    if (column >= 0) kept.push(...[...new Set([first, low, high, last])].sort((i, j) => i - j));
  };
  for (let i = 0; i < count; i += 1) {
    const y = yOf(i);
    if (!Number.isFinite(y)) continue;
    const pixel = Math.floor(xOf(i));
    if (pixel !== column) {
      leave();
      [column, first, low, high, lowest, highest] = [pixel, i, i, i, y, y];
    }
    if (y < lowest) [low, lowest] = [i, y];
    if (y > highest) [high, highest] = [i, y];
    last = i;
  }
  leave();
  return kept.map((i, j) => `${j ? "L" : "M"}${xOf(i).toFixed(1)} ${yOf(i).toFixed(1)}`).join("");
}

function totalScale({ runs, exacts, log }) {
  let [low, high] = [0, 0];
  let least = Infinity;
  for (const values of [exacts.subarray(1), ...runs.map((run) => run.values)]) {
    for (let i = 0; i < values.length; i += 1) {
      const y = values[i];
      if (!Number.isFinite(y)) continue;
      if (y < low) low = y;
      if (y > high) high = y;
      if (y < least) least = y;
    }
  }
  if (log && low >= 0 && high > 0) {
    const top = Math.ceil(Math.log10(high));
    const bottom = Math.min(Math.floor(Math.log10(Math.max(least, high / 1e6))), top - 1);
    const ticks = [...new Set([bottom, Math.round((bottom + top) / 2), top])];
    const place = (y) => floorY - (Math.max(Math.log10(Math.max(y, 1e-300)), bottom) - bottom) / (top - bottom) * (floorY - DOT_PLOT.top);
    return { place, ticks: ticks.map((power) => [10 ** power, Math.abs(power) < 5 ? String(Number((10 ** power).toPrecision(3))) : `10${superscript(power)}`]) };
  }
  const step = niceStep((high - low || 1) / 4);
  const [from, to] = [Math.floor(low / step), Math.max(Math.ceil(high / step), 1)];
  const place = (y) => floorY - ((y / step - from) / (to - from)) * (floorY - DOT_PLOT.top);
  return { place, ticks: Array.from({ length: to - from + 1 }, (_, i) => [(from + i) * step, tickText((from + i) * step)]) };
}

function niceStep(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= size * 0.999);
}

const tickText = (x) => (Number.isInteger(x) ? wholeText(x) : String(Number(x.toPrecision(3)))).replace("-", "−");

function errorScale({ runs, exacts }) {
  let most = 1;
  for (const { values, block } of runs) {
    for (let n = 0; n < values.length; n += 1) {
      const error = relativeError(values[n], exacts[Math.min((n + 1) * block, exacts.length - 1)]);
      if (error > most && error < Infinity) most = error;
    }
  }
  const top = Math.min(Math.ceil(Math.log10(most)), 4);
  const bottom = Math.log10(LEAST_ERROR);
  const step = (floorY - DOT_PLOT.top) / (top - bottom);
  const place = (error) => (error <= LEAST_ERROR ? floorY : floorY - (Math.min(Math.log10(error), top) - bottom) * step);
  return { place, ticks: [[1, "100 %"], [1e-2, "1 %"], [1e-4, "0.01 %"], [1e-6, "0.0001 %"]] };
}

function frame({ ticks, place, across, all, log }) {
  const line = (y) => dotSvg("line", { x1: DOT_PLOT.left, y1: y, x2: DOT_PLOT.width - DOT_PLOT.right, y2: y, class: "mp-dot-grid" });
  const text = (words, x, y, anchor) => dotSvg("text", { x, y, "text-anchor": anchor }, words);
  const marks = [...new Set(log ? [1, Math.round(2 ** (Math.log2(all) / 2)), all] : [0, Math.round(all / 2), all])];
  return [
    ...ticks.flatMap(([value, words]) => [line(place(value)), text(words, DOT_PLOT.left - 7, place(value) + 5, "end")]),
    line(floorY),
    ...marks.map((k) => text(wholeText(k), across.at(k), floorY + 24, k === all ? "end" : k <= 1 ? "start" : "middle")),
    text("k", DOT_PLOT.left + inner / 2, DOT_PLOT.height - 4, "middle"),
  ];
}

// The places of promotions as strokes below the axis, at most one for each pixel.
function promotionMarks({ promotions }, i, across) {
  const places = [...new Set(promotions.map((k) => Math.round(across.at(k))))];
  if (!places.length) return [];
  const d = places.map((x) => `M${x} ${floorY + 1}v5`).join("");
  return [dotSvg("path", { d, class: `mp-dot-promotions mp-dot-lane-${i}` })];
}

function stallRing(run, i, { across, place }) {
  const k = run.stalledAt ?? run.swampedAt;
  if (k === null) return [];
  return [dotSvg("circle", {
    cx: across.at(k), cy: place(valueAt(run, k)), r: 6, class: `mp-dot-ring mp-dot-lane-${i}${run.stalledAt === null ? " mp-dot-mostly" : ""}`,
  })];
}

/** One of the two plots; `pick(k)` is called where the reader points. Gives { node, draw, move }. */
export function dotPlot(h, { title, of, pick, signal }) {
  const drawing = dotSvg("g");
  const cursor = dotSvg("line", { y1: DOT_PLOT.top, y2: floorY, class: "mp-dot-cursor" });
  const dots = LANE_NAMES.map((_, i) => dotSvg("circle", { r: 4.5, class: `mp-dot-spot mp-dot-lane-${i}` }));
  const svg = dotSvg("svg", { viewBox: `0 0 ${DOT_PLOT.width} ${DOT_PLOT.height}`, class: "mp-dot-plot", role: "img" }, drawing, cursor, ...dots);
  let shown = null;
  const point = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = svg.getBoundingClientRect();
    pick(shown.across.back(((event.clientX - box.left) / box.width) * DOT_PLOT.width));
  };
  for (const type of ["pointerdown", "pointermove"]) svg.addEventListener(type, point, { signal });
  const heightOf = (run, k) => {
    const value = valueAt(run, k);
    return shown.scale.place(of === "error" ? relativeError(value, shown.exacts[k]) : value);
  };

  return {
    node: h("figure", { class: "mp-dot-figure" }, h("figcaption", {}, title), svg),
    draw({ runs, exacts, log }) {
      const all = exacts.length - 1;
      const across = acrossOf(all, log);
      const scale = of === "error" ? errorScale({ runs, exacts }) : totalScale({ runs, exacts, log });
      shown = { across, scale, exacts };
      const kOf = (run, n) => Math.min((n + 1) * run.block, all);
      const lines = runs.map((run, i) => {
        const heights = of === "error" ? (n) => scale.place(relativeError(run.values[n], exacts[kOf(run, n)])) : (n) => scale.place(run.values[n]);
        return dotSvg("path", { class: `mp-dot-line mp-dot-lane-${i}`, d: thinnedPath(run.count, (n) => across.at(kOf(run, n)), heights) });
      });
      const exact = of === "error" ? [] : [dotSvg("path", {
        class: "mp-dot-line mp-dot-exact", d: thinnedPath(all, (n) => across.at(n + 1), (n) => scale.place(exacts[n + 1])),
      })];
      drawing.replaceChildren(
        ...frame({ ...scale, across, all, log }), ...exact, ...lines.reverse(),
        ...runs.flatMap((run, i) => [...promotionMarks(run, i, across), ...(of === "error" ? [] : stallRing(run, i, { across, place: scale.place }))]),
      );
      svg.setAttribute("aria-label", `${title} against k, 1 to ${all}; the table says where each line is now.`);
    },
    move({ k, runs }) {
      cursor.setAttribute("x1", shown.across.at(k));
      cursor.setAttribute("x2", shown.across.at(k));
      dots.forEach((dot, i) => {
        const y = runs[i] && k > 0 ? heightOf(runs[i], k) : NaN;
        dot.setAttribute("visibility", Number.isFinite(y) ? "visible" : "hidden");
        if (Number.isFinite(y)) Object.entries({ cx: shown.across.at(k), cy: y }).forEach(([name, value]) => dot.setAttribute(name, value));
      });
    },
  };
}
