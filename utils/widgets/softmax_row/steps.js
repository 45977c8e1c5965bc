// A softmax of a few scores, each step rounded to a format: the twin of facts.py, which says what is exact.

import { encode, finite, namedCode, valueOf } from "../shared/numbers/codec.js";
import { asDouble, doubleRounders, exactNumber } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";

/** The largest number of a format, as a double. */
export const largestNumber = (fmt) => asDouble(valueOf(namedCode("largest", fmt), fmt));

/** What a mask adds to a masked score, one after the other; not yet rounded to the format. */
export function maskAddends(mask, fmt) {
  const lowest = -largestNumber(fmt);
  return { add_1e4: [-1e4], add_1e9: [-1e9], add_lowest: [lowest], add_lowest_twice: [lowest, lowest] }[mask] ?? [];
}

/** What a mask puts in the place of a masked score, or null. */
export const maskPuts = (mask, fmt) => ({ put_lowest: -largestNumber(fmt), put_inf: -Infinity })[mask] ?? null;

const toFormat = (number, fmt) => asDouble(valueOf(encode(number, fmt), fmt));

// The exact sum of so many copies of some numbers, none of them negative, as codec.js has numbers.
function exactSum(values, copies) {
  const odd = values.filter((x) => !Number.isFinite(x));
  if (odd.length) return { kind: odd.some(Number.isNaN) ? "nan" : "infinity", sign: 0, num: 0n, den: 1n };
  const sum = values.map(exactNumber).reduce((a, b) => finite(0, a.num * b.den + b.num * a.den, a.den * b.den), finite(0, 0n));
  return finite(0, BigInt(copies) * sum.num, sum.den);
}

/**
 * What a softmax makes of a row, { numbers, masked, format, softmax, mask, copies }, whose `numbers` are exact: lists
 * `stored`, `after` the mask, `shifted` by the `largest` or null, `exps`, `weights`; `exactSum` of all exponentials as a
 * double, `total` in the format, `weightSum` and `maskedWeight` of all copies.
 */
export function softmaxSteps({ numbers, masked, format, softmax, mask, copies }) {
  const fmt = FORMATS[format];
  const { near } = doubleRounders(fmt);
  const [addends, put] = [maskAddends(mask, fmt).map(near), maskPuts(mask, fmt)];
  const stored = numbers.map((number) => toFormat(number, fmt));
  const after = stored.map((x, i) => (masked[i] ? put ?? addends.reduce((sum, addend) => near(sum + addend), x) : x));
  const largest = softmax === "stable" ? Math.max(...after) : null;
  const shifted = largest === null ? null : after.map((x) => near(x - largest));
  const exps = (shifted ?? after).map((x) => near(Math.exp(x)));
  const sum = exactSum(exps, copies);
  const total = toFormat(sum, fmt);
  const weights = exps.map((x) => near(x / total));
  const shareOf = (values) => toFormat(exactSum(values, copies), FORMATS.float64);
  return {
    stored, after, largest, shifted, exps, exactSum: toFormat(sum, FORMATS.float64), total, weights,
    weightSum: shareOf(weights), maskedWeight: shareOf(weights.filter((_, i) => masked[i])),
  };
}
