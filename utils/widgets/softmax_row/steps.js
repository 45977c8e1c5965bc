// A softmax of a few scores, each step rounded to a format: the twin of facts.py, which says what is exact.

import { encode, finite, namedCode, valueOf } from "../shared/numbers/codec.js";
import { asDouble, doubleRounders, exactNumber } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";

/** The largest number of a format, as a double. */
export const largestNumber = (fmt) => asDouble(valueOf(namedCode("largest", fmt), fmt));

const toFormat = (number, fmt) => asDouble(valueOf(encode(number, fmt), fmt));

/** The value of a mask as the reader writes it: "lowest" of the scores' format, or a number below 0; exact. */
export function readMaskValue(text, fmt) {
  if (text === "lowest") return exactNumber(-largestNumber(fmt));
  const value = parseNumber(text);
  if (value.kind === "nan" || value.sign === 0 || (value.kind === "finite" && value.num === 0n)) throw new NumberTextError("A mask makes scores smaller: type a number below 0, or -inf.");
  return value;
}

/** The value of a row's mask: `exact` as a double, and `stored` in the format of the scores. */
export function maskValue({ value, format }) {
  const number = readMaskValue(value, FORMATS[format]);
  return { exact: toFormat(number, FORMATS.float64), stored: toFormat(number, FORMATS[format]) };
}

/** The format in which the softmax of a row computes. */
export const innerFormat = ({ format, softmax_format: own }) => FORMATS[own || format];

/** How many masks are added to a masked score. */
export const addendsOf = ({ mask }) => ({ add: 1, add_twice: 2 })[mask] ?? 0;

// The exact sum of so many copies of some numbers, none of them negative, as codec.js has numbers.
function exactSum(values, copies) {
  const odd = values.filter((x) => !Number.isFinite(x));
  if (odd.length) return { kind: odd.some(Number.isNaN) ? "nan" : "infinity", sign: 0, num: 0n, den: 1n };
  const sum = values.map(exactNumber).reduce((a, b) => finite(0, a.num * b.den + b.num * a.den, a.den * b.den), finite(0, 0n));
  return finite(0, BigInt(copies) * sum.num, sum.den);
}

/**
 * What a mask and a softmax make of a row, whose `numbers` are exact: lists `stored` and `after` the mask in the format
 * of the scores; `cast` to that of the softmax, `shifted` by the `largest` or null, `exps`, `weights`; `exactSum` of all
 * exponentials as a double, `total` in the format, `weightSum` and `maskedWeight` of all copies.
 */
export function softmaxSteps(row) {
  const { numbers, masked, softmax, mask, copies } = row;
  const [fmt, inner] = [FORMATS[row.format], innerFormat(row)];
  const [outer, { near }] = [doubleRounders(fmt), doubleRounders(inner)];
  const value = maskValue(row).stored;
  const stored = numbers.map((number) => toFormat(number, fmt));
  const adds = new Array(addendsOf(row)).fill(value);
  const hide = (x) => (mask === "put" ? value : adds.reduce((sum, addend) => outer.near(sum + addend), x));
  const after = stored.map((x, i) => (masked[i] ? hide(x) : x));
  const cast = after.map(near);
  const largest = softmax === "stable" ? Math.max(...cast) : null;
  const shifted = largest === null ? null : cast.map((x) => near(x - largest));
  const exps = (shifted ?? cast).map((x) => near(Math.exp(x)));
  const sum = exactSum(exps, copies);
  const total = toFormat(sum, inner);
  const weights = exps.map((x) => near(x / total));
  const shareOf = (values) => toFormat(exactSum(values, copies), FORMATS.float64);
  return {
    stored, after, cast, largest, shifted, exps, exactSum: toFormat(sum, FORMATS.float64), total, weights,
    weightSum: shareOf(weights), maskedWeight: shareOf(weights.filter((_, i) => masked[i])),
  };
}
