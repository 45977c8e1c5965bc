// What a format makes of a histogram by binades, times a power of two: counts, never estimates. Twin of binades.py.
// A histogram is { low, counts, zeros, infinite, nan, amax, powers }, as utils/emulation/exponent_histogram.py counts: counts[i] magnitudes
// in [2**(low + i), 2**(low + i + 1)), and powers[e] of them are 2**e itself, which decides ties.

import { powerText, shareText } from "../words/sizes.js";

export const ALL_LAYERS = "all layers";
export const MOST_LOG2_SCALE = 64;
const OTHER_COUNTS = ["zeros", "infinite", "nan"];

/** Histograms added up. */
export function mergedBinades(histograms) {
  const low = Math.min(...histograms.filter(({ counts }) => counts.length).map((one) => one.low));
  const whole = { low: Number.isFinite(low) ? low : 0, counts: [], zeros: 0, infinite: 0, nan: 0, amax: 0 };
  const powers = {};
  for (const one of histograms) {
    for (const [e, n] of Object.entries(one.powers ?? {})) powers[e] = (powers[e] ?? 0) + n;
    one.counts.forEach((n, i) => {
      const at = one.low + i - whole.low;
      whole.counts[at] = (whole.counts[at] ?? 0) + n;
    });
    for (const name of OTHER_COUNTS) whole[name] += one[name];
    whole.amax = Math.max(whole.amax, one.amax ?? 0);
  }
  whole.counts = Array.from(whole.counts, (n) => n ?? 0);
  return Object.keys(powers).length ? { ...whole, powers } : whole;
}

/** One histogram of a record, or of all its groups together. */
export function recordedBinades(recorded, { kind, group, step }) {
  const groups = recorded.histograms[kind];
  const at = recorded.steps.indexOf(step);
  return group === ALL_LAYERS ? mergedBinades(Object.values(groups).map((steps) => steps[at])) : groups[group][at];
}

export const totalCount = ({ counts }) => counts.reduce((sum, n) => sum + n, 0);

const maxParts = (fmt) => {
  const code = Number(BigInt(fmt.max_code) & ((1n << BigInt(fmt.mantissa_bits)) - 1n));
  return 2 ** fmt.mantissa_bits + code;
};

/** Where magnitudes begin to overflow: half an ulp beyond the largest value. */
export const overflowBound = (fmt) => (maxParts(fmt) + 0.5) * 2 ** (fmt.emax - fmt.mantissa_bits);

/** Whether a magnitude is rounded past the largest value; a tie goes to the even neighbour. */
export function isPastMax(magnitude, fmt) {
  const bound = overflowBound(fmt);
  return magnitude > bound || (magnitude === bound && BigInt(fmt.max_code) % 2n === 1n);
}

/** What becomes of the magnitudes in [2**e, 2**(e + 1)); those of the binade emax may also overflow. */
export function fateOfBinade(e, fmt) {
  if (e < fmt.emin - fmt.mantissa_bits - 1) return "zero";
  if (e < fmt.emin) return "subnormal";
  return e > fmt.emax ? "overflow" : "normal";
}

/** How many values meet which fate; `least` and `most` overflow, for in the top binade amax alone is known. */
export function countFates(histogram, fmt, shift) {
  const found = { total: totalCount(histogram), zero: 0, subnormal: 0, normal: 0, overflow: 0 };
  histogram.counts.forEach((n, i) => { found[fateOfBinade(histogram.low + i + shift, fmt)] += n; });
  const powersAt = (e) => histogram.powers?.[e] ?? 0;
  const ties = powersAt(fmt.emin - fmt.mantissa_bits - 1 - shift); // half the smallest subnormal goes to 0, which is even
  found.zero += ties;
  found.subnormal -= ties;
  const past = found.total > 0 && isPastMax(histogram.amax * 2 ** shift, fmt);
  const cut = past ? (histogram.counts[fmt.emax - shift - histogram.low] ?? 0) - powersAt(fmt.emax - shift) : 0;
  const least = found.overflow + (past && found.overflow === 0 ? 1 : 0);
  return { ...found, least, most: found.overflow + cut };
}

const binadeOf = (x) => {
  const e = Math.floor(Math.log2(x));
  if (2 ** e > x) return e - 1; // where the logarithm was rounded up
  return 2 ** (e + 1) <= x ? e + 1 : e;
};

/** The exponent of the largest power of two that amax can be multiplied by without overflow. */
export function largestShift(amax, fmt) {
  const shift = fmt.emax - binadeOf(amax);
  return isPastMax(amax * 2 ** shift, fmt) ? shift - 1 : shift;
}

const atMostText = (n, total) => {
  const text = shareText(n, total);
  return text.startsWith("less") ? text : `at most ${text.replace("more than 99.9", "100")}`;
};

function shareClause({ n, total, none, some, of = "", atMost = false }) {
  if (n === 0) return `none${of && ` of the${of}`} ${none}`;
  if (n === total && !atMost) return `all${of} ${some}`;
  return `${atMost ? atMostText(n, total) : shareText(n, total)}${of && ` of the${of}`} ${some}`;
}

/** What was zero, infinite or NaN before any format came into play. */
export function alreadyText(histogram) {
  const { zeros, infinite, nan } = histogram;
  const lost = infinite + nan;
  const all = totalCount(histogram) + zeros + lost;
  return (zeros ? ` (${shareText(zeros, all)} were zero already.)` : "")
    + (lost ? ` (${lost} ${lost === 1 ? "was" : "were"} infinite or NaN already.)` : "");
}

/** The sentence of fates_text in binades.py. */
export function fatesText(histogram, fmt, shift) {
  const { total, zero, subnormal, least, most } = countFates(histogram, fmt, shift);
  const before = `${fmt.label}, scale ${powerText(shift)}`;
  if (total === 0) return `${before}: there is no value that is finite and not zero.${alreadyText(histogram)}`;
  const [none, some] = !fmt.has_nan ? ["is too large", "are too large"]
    : ["overflows", fmt.has_inf ? "overflow" : "overflow to NaN"];
  const parts = [
    shareClause({ n: zero, total, none: "becomes zero", some: "become zero", of: " values that are not zero" }),
    shareClause({ n: subnormal, total, none: "is subnormal", some: "are subnormal" }),
    shareClause({ n: most, total, none, some, atMost: least < most }),
  ];
  return `${before}: ${parts.join(", ")}.${alreadyText(histogram)}`;
}
