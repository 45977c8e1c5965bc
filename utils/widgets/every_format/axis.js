// EveryFormat: the axis that all bars share. Its stops are powers of two, evenly spaced: one a step where the 8- and
// 16-bit formats live, further apart outside, so that even float64 fits, and
// what is beyond it. The slider's keys go one power of two a step, wherever the thumb is.

import { namedCode, valueOf } from "../shared/numbers/codec.js";
import { log2Of } from "../shared/numbers/format_fate.js";
import { superscript } from "../shared/numbers/superscript.js";

const AXIS_FINE = { from: -30, to: 20 };

const axisRun = (from, to, step) => Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => from + i * step);

export const AXIS_STOPS = [
  -1080, -615, ...axisRun(-150, -50, 20), ...axisRun(AXIS_FINE.from, AXIS_FINE.to, 1), ...axisRun(40, 130, 18), 580, 1030,
];

/** The place of 2**power on the axis, from 0 to 1; beyond its ends the end. */
export function axisPlace(power) {
  const last = AXIS_STOPS.length - 1;
  if (power <= AXIS_STOPS[0]) return 0;
  if (power >= AXIS_STOPS[last]) return 1;
  const above = AXIS_STOPS.findIndex((stop) => stop > power);
  const [low, high] = [AXIS_STOPS[above - 1], AXIS_STOPS[above]];
  return (above - 1 + (power - low) / (high - low)) / last;
}

/** The power at a place of the axis: axisPlace the other way. */
export function axisPower(place) {
  const last = AXIS_STOPS.length - 1;
  const below = Math.min(Math.floor(place * last), last - 1);
  return AXIS_STOPS[below] + (place * last - below) * (AXIS_STOPS[below + 1] - AXIS_STOPS[below]);
}

/** The ends of a format's bar: where its positive values begin, where the normal ones begin, where they end. */
export function barOf(fmt) {
  const smallest = namedCode(fmt.has_zero ? "smallest_subnormal" : "smallest_normal", fmt);
  const logOf = (code) => log2Of(valueOf(code, fmt));
  return { start: axisPlace(logOf(smallest)), normal: axisPlace(fmt.emin), end: axisPlace(logOf(BigInt(fmt.max_code))) };
}

/** How wide a format's range is, in powers of two. */
export const rangeOf = (fmt) => fmt.emax - fmt.emin + (fmt.has_zero ? fmt.mantissa_bits : 0);

/** Where a number stands: "finite" on the axis, at its "zero" or "infinity" end, or nowhere ("none"). */
export function standOf(number) {
  if (number === null || number.kind === "nan") return { at: "none", place: 0 };
  if (number.kind === "infinity") return { at: "infinity", place: 1 };
  return number.num === 0n ? { at: "zero", place: 0 } : { at: "finite", place: axisPlace(log2Of(number)) };
}

/** The left of a place inside the axis, whose two gutters (--gutter) are for zero and infinity. */
export function leftOf({ at, place }) {
  if (at === "zero") return "calc(var(--gutter) / 2)";
  if (at === "infinity") return "calc(100% - var(--gutter) / 2)";
  return `calc(var(--gutter) + ${place.toFixed(5)} * (100% - 2 * var(--gutter)))`;
}

/** The labels over the bars, and the shades of the parts where the axis is squeezed. */
export function axisPanel(h) {
  const label = (text, stand) => {
    const node = h("span", { class: "mp-ef-tick" }, text);
    node.style.left = leftOf(stand);
    return node;
  };
  const powers = [-20, 0, 20].map((power) =>
    label(power === 0 ? "1" : `2${superscript(power)}`, { at: "finite", place: axisPlace(power) }));
  return h("div", { class: "mp-ef-axis", "aria-hidden": "true" }, label("0", { at: "zero" }), powers, label("∞", { at: "infinity" }));
}

/** One row's bar: the range of its format, the number meant as a line, what is stored as a dot. */
export function barPanel(h, fmt) {
  const { start, normal, end } = barOf(fmt);
  const span = (name, from, to) => {
    const node = h("span", { class: name });
    node.style.left = leftOf({ at: "finite", place: from });
    node.style.width = `calc(${(to - from).toFixed(5)} * (100% - 2 * var(--gutter)))`;
    return node;
  };
  const line = h("span", { class: "mp-ef-line" });
  const dot = h("span", { class: "mp-ef-dot" });
  const squeezed = [span("mp-ef-squeezed", 0, axisPlace(AXIS_FINE.from)), span("mp-ef-squeezed", axisPlace(AXIS_FINE.to), 1)];
  const node = h("span", { class: "mp-ef-bar", "aria-hidden": "true" }, squeezed,
    fmt.has_zero ? span("mp-ef-subnormals", start, normal) : null, span("mp-ef-normals", normal, end), line, dot);
  return {
    node,
    draw(number, stored) {
      const [meant, kept] = [standOf(number), standOf(stored)];
      line.hidden = meant.at === "none";
      line.style.left = leftOf(meant);
      dot.hidden = kept.at === "none";
      dot.style.left = leftOf(kept);
    },
  };
}
