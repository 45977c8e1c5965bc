// What a scale does to values, in the arithmetic of the libraries: the twin of facts.py. Math.fround
// rounds a double to float32; a product or a quotient of two float32 rounded twice so is the float32 result.

import { isPastMax } from "../shared/plot/binades.js";
import { doubleRounders, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { largestOf, scaleFromAmax } from "../shared/numbers/scaling.js";

export const SE_MOST_LOG2_SCALE = 100;
const SE_PAST = { below: 3, above: 6 };

/** The scale of a format from amax, as utils.scaling.scale_from_amax: float32. */
export function formatScale(amax, fmt, { margin = 0, powerOfTwo = false } = {}) {
  const scale = scaleFromAmax(Math.fround(amax), largestOf(fmt) * 2 ** -margin);
  return powerOfTwo ? 2 ** exponentOfDouble(scale) : scale;
}

/**
 * Values times a scale, rounded to the format and taken back: { scaled, stored, back } as doubles, `past` which were
 * rounded past the largest value, `scale`, `scaleInv`, `amax`, `landing`, `counts` and `db`.
 */
export function carryValues(x, fmt, scale, saturate = true) {
  const { near } = doubleRounders(fmt);
  const scaleInv = Math.fround(1 / scale);
  const max = largestOf(fmt);
  const end = saturate || !fmt.has_nan ? max : fmt.has_inf ? Infinity : NaN;
  const scaled = x.map((value) => Math.fround(value * scale));
  const past = scaled.map((value) => isPastMax(Math.abs(value), fmt));
  const stored = scaled.map((value, i) => (past[i] ? Math.sign(value) * end : near(value)));
  const back = stored.map((value) => Math.fround(value * scaleInv));
  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const counts = countEnds({ x, scaled, stored, past }, fmt);
  return { x, fmt, scale, scaleInv, scaled, stored, back, past, counts, amax: largest(x), landing: largest(scaled), db: sqnrDb(back, x), medianError: medianError(back, x) };
}

function countEnds({ x, scaled, stored, past }, fmt) {
  const counts = { already: 0, zero: 0, subnormal: 0, normal: 0, past: 0 };
  const least = 2 ** fmt.emin;
  x.forEach((value, i) => {
    const name = value === 0 ? "already" : past[i] ? "past" : stored[i] === 0 ? "zero" : Math.abs(scaled[i]) < least ? "subnormal" : "normal";
    counts[name] += 1;
  });
  return counts;
}

/** The signal-to-quantisation-noise ratio in dB, as utils.rounding.sqnr_db. */
export function sqnrDb(y, x) {
  return powerDb(x) - powerDb(y.map((value, i) => value - x[i]));
}

// The relative error in the middle of all, of values that are not zero; NaN comes last.
function medianError(back, x) {
  const off = back.map((y, i) => Math.abs(y - x[i]) / Math.abs(x[i])).filter((_, i) => x[i] !== 0);
  const rank = (error) => (Number.isNaN(error) ? Infinity : error);
  off.sort((a, b) => (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0));
  return off[Math.floor(off.length / 2)];
}

function powerDb(values) {
  const peak = values.reduce((most, value) => (Number.isNaN(value) || Number.isNaN(most) ? NaN : Math.max(most, Math.abs(value))), 0);
  if (peak === 0) return -Infinity;
  if (!Number.isFinite(peak)) return peak;
  return 20 * Math.log10(peak) + 10 * Math.log10(values.reduce((sum, value) => sum + (value / peak) ** 2, 0));
}

/** The exponents of the scales that the curve shows: { low, high }. */
export function curveRange(amax, fmt) {
  const top = exponentOfDouble(formatScale(amax, fmt));
  const low = top - (fmt.emax - fmt.emin + fmt.mantissa_bits) - SE_PAST.below;
  return {
    low: Math.max(Math.min(low, 0), -SE_MOST_LOG2_SCALE), high: Math.min(Math.max(top + SE_PAST.above, 0), SE_MOST_LOG2_SCALE),
  };
}

/** SQNR by the exponent of the scale: [[k, dB], ...]. */
export function sqnrCurve(x, fmt, saturate) {
  const { low, high } = curveRange(x.reduce((most, value) => Math.max(most, Math.abs(value)), 0), fmt);
  return Array.from({ length: high - low + 1 }, (_, i) => [low + i, carryValues(x, fmt, 2 ** (low + i), saturate).db]);
}

/** Values counted by binades, as shared/plot/binades.js wants them. */
export function binadesOfValues(values) {
  const exponents = values.filter((value) => value !== 0 && Number.isFinite(value)).map((value) => exponentOfDouble(value));
  const low = exponents.length ? Math.min(...exponents) : 0;
  const counts = Array.from({ length: exponents.length ? Math.max(...exponents) - low + 1 : 0 }, () => 0);
  for (const e of exponents) counts[e - low] += 1;
  return { low, counts, zeros: 0, infinite: 0, nan: 0, amax: 0 };
}

/** Three of the values: the largest, the one in the middle of the sizes, the smallest that is not zero; their places. */
export function threeOf(x) {
  const order = x.map((_, i) => i).filter((i) => x[i] !== 0).sort((a, b) => Math.abs(x[a]) - Math.abs(x[b]) || a - b);
  return { largest: order.at(-1), middle: order[Math.floor(order.length / 2)], smallest: order[0] };
}
