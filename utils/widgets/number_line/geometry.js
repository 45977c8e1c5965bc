// What the picture of NumberLine holds, as numbers and paths: pure functions of the exact view and the pixel width.
// Heights are in em of the picture's own text.

import { finite, floorLog2 } from "../shared/numbers/codec.js";
import { aboutText } from "../shared/numbers/number_text.js";
import {
  binOf, borderAfter, compareNumbers, endsInOne, firstPlace, halfwayAfter, lastPlace, numberFrom, overflows, pastEnd,
  placesBetween, valueAtPlace,
} from "./grid.js";
import { grouped, placeText, powerName, shortly } from "./words.js";

export const LINE_ROWS = {
  label: 1, handle: 2.1, arrow: 2.75, tip: 4.15, values: 5.35, strip: 6.2, axis: 8.4, minor: 9, tall: 9.6, name: 11,
  decimal: 12.3, bracket: 13.2, gap: 14.75, end: 15.3, ghostAxis: 17, ghostTick: 17.7, ghostText: 19.2, ghostEnd: 19.8,
};
const LEAST_GAP_WITH_MARKS = 18; // pixels
const LEAST_GAP_WITH_LABELS = 44;

const inScreen = (at, pixels) => Math.min(Math.max(at, 0), pixels);
const short = (at) => at.toFixed(2).replace(/\.?0+$/, "");

/** The magnitude's binade of a run: { low, high } as numbers, mirrored for a negative run. */
export function runExtent(run, fmt) {
  const negative = run.from < 0n;
  const [near, far] = negative ? [-run.to, -run.from] : [run.from, run.to];
  const M = BigInt(fmt.mantissa_bits);
  const low = run.kind === "mixed" ? numberFrom(0n) : valueAtPlace((near >> M) << M, fmt);
  const top = ((far >> M) + 1n) << M;
  const high = valueAtPlace(top > lastPlace(fmt) ? lastPlace(fmt) : top, fmt);
  return negative ? { low: { ...high, sign: 1 }, high: { ...low, sign: 1 } } : { low, high };
}

/** The places whose bins are drawn: all that are ticks of their own, and the neighbours outside the view. */
export function placesWithBins(runs, view, fmt) {
  const places = runs.filter(({ dense }) => !dense).flatMap(({ from, to }) => {
    const all = [];
    for (let place = from; place <= to; place += 1n) all.push(place);
    return all;
  });
  const { first, last } = placesBetween(view.low, view.high, fmt);
  if (first > firstPlace(fmt) && first <= lastPlace(fmt) + 1n && !(runs[0]?.dense)) places.unshift(first - 1n);
  if (last < lastPlace(fmt) && last >= firstPlace(fmt) - 1n && !(runs.at(-1)?.dense)) places.push(last + 1n);
  return places;
}

/** The bins as rectangles { place, left, right, even }, cut to the screen; those of no width left out. */
export function binShapes(places, rule, { fmt, scale, pixels }) {
  return places.map((place) => {
    const { from, to } = binOf(place, fmt, rule);
    return {
      place, even: !endsInOne(place, fmt) || (fmt.mantissa_bits === 0 && (place & 1n) === 0n),
      left: from === null ? 0 : inScreen(scale(from), pixels), right: to === null ? pixels : inScreen(scale(to), pixels),
    };
  }).filter(({ left, right }) => right > left);
}

/** The parts of the line whose numbers are stored as no value of their own: { left, right, how, sign }. */
export function lostZones(rule, { fmt, scale, pixels, saturate }) {
  const zones = [];
  for (const sign of [0, 1]) {
    if (!overflows(fmt, rule, sign)) continue;
    const end = sign ? firstPlace(fmt) : lastPlace(fmt);
    const edge = rule === "stochastic" ? valueAtPlace(sign ? end - 1n : end + 1n, fmt) : binOf(end, fmt, rule)[sign ? "from" : "to"];
    const at = inScreen(scale(edge), pixels);
    const { how } = pastEnd(fmt, sign, saturate);
    zones.push({ left: sign ? 0 : at, right: sign ? at : pixels, how, sign });
  }
  if (!fmt.has_zero) zones.push({ left: 0, right: inScreen(scale(finite(0, 0n)), pixels), how: "nan", sign: 1 });
  return zones.filter(({ left, right }) => right - left > 0.5);
}

/** The marks at the middles: { at, up } for each pair of drawn neighbours far enough apart; none for directed rules. */
export function tieMarks(places, rule, { fmt, scale, pixels }) {
  if (rule !== "ties_to_even" && rule !== "ties_away") return [];
  const starts = new Set(places);
  for (const place of places) if (place > firstPlace(fmt) || (fmt.signed && place === firstPlace(fmt))) starts.add(place - 1n);
  return [...starts].flatMap((place) => {
    const { at, upper } = borderAfter(place, fmt, rule);
    const gap = scale(valueAtPlace(place + 1n, fmt)) - scale(valueAtPlace(place, fmt));
    const pixel = scale(at);
    return gap >= LEAST_GAP_WITH_MARKS && pixel >= 0 && pixel <= pixels ? [{ at: pixel, up: upper }] : [];
  }).sort((a, b) => a.at - b.at);
}

/** The strip of stochastic rounding: for each gap two triangles; at x their heights are the two chances. */
export function chanceShapes(places, { fmt, scale }) {
  const starts = new Set(places);
  for (const place of places) if (fmt.signed || place > firstPlace(fmt)) starts.add(place - 1n);
  return [...starts].map((place) => {
    const [left, right] = [scale(valueAtPlace(place, fmt)), scale(valueAtPlace(place + 1n, fmt))];
    return { left, right, even: fmt.mantissa_bits === 0 ? (place & 1n) === 0n : !endsInOne(place, fmt) };
  });
}

/** Rectangles as one path. */
export const rectanglesPath = (shapes, top, height) =>
  shapes.map(({ left, right }) => `M${short(left)} ${short(top)}H${short(right)}V${short(top + height)}H${short(left)}Z`).join("");

/** Vertical lines as one path. */
export const linesPath = (places, top, bottom) => places.map((at) => `M${short(at)} ${short(top)}V${short(bottom)}`).join("");

/** Triangles of the chances as two paths, [even, odd]: the value at the left loses height, the one at the right gains. */
export function trianglesPaths(shapes, top, bottom, pixels) {
  const paths = ["", ""];
  for (const { left, right, even } of shapes) {
    // cut to the screen, where the dividing line is still the same
    const [a, b] = [Math.max(left, 0), Math.min(right, pixels)];
    if (b <= a) continue;
    const height = (at) => bottom - ((at - left) / (right - left)) * (bottom - top);
    paths[even ? 0 : 1] += `M${short(a)} ${short(top)}H${short(b)}V${short(height(b))}L${short(a)} ${short(height(a))}Z`;
    paths[even ? 1 : 0] += `M${short(a)} ${short(bottom)}H${short(b)}V${short(height(b))}L${short(a)} ${short(height(a))}Z`;
  }
  return paths;
}

/** Small triangles at the middles, pointing to where a tie goes, as one path. */
export const marksPath = (marks, middle, size) =>
  marks.map(({ at, up }) => {
    const way = up ? size : -size;
    return `M${short(at)} ${short(middle - size)}V${short(middle + size)}L${short(at + way)} ${short(middle)}Z`;
  }).join("");

/** All labels under the ticks that might be shown, the most important first: { at, name, decimal, kind }. */
export function tickLabels(runs, { fmt, scale, pixels, rule }) {
  const labels = [];
  const add = (number, name, { rank, kind = "value", decimal } = {}) => {
    const at = scale(number);
    if (at < -0.5 || at > pixels + 0.5) return;
    labels.push({ at, name, decimal: decimal ?? shortly(aboutText(number, 8)), rank, kind });
  };
  const signs = fmt.signed ? [0, 1] : [0];
  const last = lastPlace(fmt);
  if (fmt.has_zero) add(finite(0, 0n), "", { rank: 0, decimal: "0" });
  for (const sign of signs) {
    const [max, next] = [last, last + 1n].map((place) => valueAtPlace(sign ? -place : place, fmt));
    const minus = sign ? "−" : "";
    add(max, `${minus}max`, { rank: 1 });
    if (rule === "ties_to_even" || rule === "ties_away") {
      const middle = halfwayAfter(sign ? -last - 1n : last, fmt);
      add(middle, sign ? "−max − ½ ulp" : "max + ½ ulp", { rank: 2, kind: "border" });
    }
    add(next, "no value", { rank: 5, kind: "ghost" });
    if (fmt.has_zero && !sign) add(valueAtPlace(1n, fmt), "smallest", { rank: 2.5, decimal: powerName(fmt.emin - fmt.mantissa_bits) });
  }
  for (const run of runs) {
    const { low, high } = runExtent(run, fmt);
    for (const end of [low, high]) {
      if (end.num === 0n || compareNumbers({ ...end, sign: 0 }, valueAtPlace(last, fmt)) >= 0) continue;
      const power = floorLog2(end.num, end.den);
      const rank = power === 0 ? 3 : power === fmt.emin ? 3.5 : 4 + Math.abs(power) / 1e5;
      add(end, `${end.sign ? "−" : ""}${powerName(power)}`, { rank });
    }
    if (run.dense) continue;
    if (scale(valueAtPlace(run.from + 1n, fmt)) - scale(valueAtPlace(run.from, fmt)) < LEAST_GAP_WITH_LABELS) continue;
    for (let place = run.from; place <= run.to; place += 1n) {
      add(valueAtPlace(place, fmt), "", { rank: 8, decimal: placeText(place, fmt, 8) });
    }
  }
  return labels.sort((a, b) => a.rank - b.rank);
}

/** Those labels that have room beside the more important ones, each with its `left` and `right`. */
export function fitLabels(labels, pixels, measure, apart = 5) {
  const kept = [];
  for (const label of labels) {
    const width = Math.max(measure(label.name), measure(label.decimal));
    const middle = Math.min(Math.max(label.at, width / 2), pixels - width / 2);
    const box = { ...label, middle, left: middle - width / 2, right: middle + width / 2 };
    if (kept.every(({ left, right }) => box.left > right + apart || box.right < left - apart)) kept.push(box);
  }
  return kept;
}

/** The brackets under the line: { left, right, text, kind }, one for each run; the longest text that fits, or "". */
export function gapBrackets(runs, { fmt, scale, pixels, measure }) {
  return runs.map((run) => {
    const { low, high } = runExtent(run, fmt);
    const [left, right] = [inScreen(scale(low), pixels), inScreen(scale(high), pixels)];
    const texts = bracketTexts(run);
    return { left, right, kind: run.kind, text: texts.find((text) => measure(text) <= right - left - 6) ?? "" };
  }).filter(({ left, right }) => right - left >= 3);
}

function bracketTexts({ from, to, power, dense, kind }) {
  const count = `${grouped(to - from + 1n)} values`;
  if (power === null) return [`${count}, ever closer`, count];
  const gap = `gap ${powerName(power)}`;
  const first = kind === "subnormal" ? ["subnormal, ", ""] : ["", ""];
  const texts = dense ? [`${first[0]}${count}, ${gap}`, `${count}, ${gap}`, gap] : [`${first[0]}${gap}`, gap];
  return [...texts, ...(kind === "subnormal" ? ["subnormal"] : [])];
}

/** Two labels beside each other as near to their points as they can be: their middles. */
export function placePair(points, widths, pixels, apart = 10) {
  const middles = points.map((at, i) => Math.min(Math.max(at, widths[i] / 2), pixels - widths[i] / 2));
  if (points.length < 2) return middles;
  const need = (widths[0] + widths[1]) / 2 + apart;
  const missing = need - (middles[1] - middles[0]);
  if (missing <= 0) return middles;
  let [a, b] = [middles[0] - missing / 2, middles[1] + missing / 2];
  const outLeft = widths[0] / 2 - a;
  if (outLeft > 0) [a, b] = [a + outLeft, b + outLeft];
  const outRight = b + widths[1] / 2 - pixels;
  if (outRight > 0) [a, b] = [a - outRight, b - outRight];
  return [a, b];
}
