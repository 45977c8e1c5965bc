// Weights in 4 or 8 bits, a scale for each group of a row: the twin of utils/quantization/integers.py. A weight is multiplied by the
// scale of its group, moved by its zero point and rounded to a whole number; scales are float32.

import { nearlyNormal } from "../shared/numbers/dice.js";
import { doubleRounders } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { MOST_SCALE } from "../shared/numbers/scaling.js";

export const GO_COUNT = 256; // weights of the row
const GO_SEED = 12;
const GO_SPREAD = 0.02; // of the generated weights
const GO_STEPS = [1, 1.25, 1.6, 2, 2.5, 3, 4, 5, 6, 8]; // outliers of each power of ten
export const GO_REACH = 125; // the largest outlier, in heights of the rest

/** The group sizes, the largest first, and the formats. */
export const GROUPS = [256, 128, 64, 32, 16, 8];
export const GROUP_BITS = [4, 8];

const halfEven = (x) => x + 1.5 * 2 ** 52 - 1.5 * 2 ** 52; // there is no room for fractions: the processor rounds, ties to even

/** The generated weights, nearly normal, as float32. */
export function groupWeights() {
  const draw = nearlyNormal(GO_SEED);
  return Float32Array.from({ length: GO_COUNT }, () => GO_SPREAD * draw());
}

/** The row with its outlier; `outlier` 0 is none. */
export function rowWith(weights, outlier, place) {
  const row = Float32Array.from(weights);
  if (outlier) row[place - 1] = outlier;
  return row;
}

/** A height that all weights stay below: the next of GO_STEPS above the largest of them. */
export function heightOf(weights) {
  const amax = weights.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
  const power = Math.floor(Math.log10(amax));
  return [...GO_STEPS, 10].map((step) => Number(`${step}e${power}`)).find((size) => size > amax) ?? Number(`2e${power + 1}`);
}

/** The sizes of the outlier for such weights, from the least to the largest: 0 is none. */
export function outlierSizes(height) {
  const power = Math.floor(Math.log10(height));
  const sizes = [0, 1, 2, 3].flatMap((more) => GO_STEPS.map((step) => Number(`${step}e${power + more}`)))
    .filter((size) => size >= height && size <= GO_REACH * height);
  return [...sizes.map((size) => -size).reverse(), 0, ...sizes];
}

// What takes a code back is stored in bfloat16. It is never 0, which would lose the group.
const goStored = doubleRounders(FORMATS.bfloat16);
const GO_LEAST = 2 ** (FORMATS.bfloat16.emin - FORMATS.bfloat16.mantissa_bits);
const storedInverse = (x) => goStored.near(Math.fround(x));
const clampTo = (x, low, high) => (x < low ? low : x > high ? high : x);

/**
 * The scale of the weights from `from` up to `to`: { scale, inverse, zero, low, high }. Codes are low ... high, the
 * zero point, which is 0 in symmetric formats, taken off.
 */
export function groupScale(row, from, to, { bits, symmetric }) {
  let [least, most] = [0, 0]; // 0 always has a code
  for (let i = from; i < to; i += 1) {
    if (row[i] < least) least = row[i];
    if (row[i] > most) most = row[i];
  }
  const limited = (inverse) => ({ inverse, scale: Math.min(Math.fround(1 / inverse), MOST_SCALE) });
  if (symmetric) {
    const top = 2 ** (bits - 1) - 1;
    return { ...limited(Math.max(storedInverse(Math.max(-least, most) / top), GO_LEAST)), zero: 0, low: -top, high: top };
  }
  const top = 2 ** bits - 1;
  const span = Math.fround(most - least);
  const { inverse, scale } = limited(storedInverse(span / top) || 1);
  const zero = clampTo(halfEven(Math.fround(-least * scale)), 0, top);
  return { inverse, scale, zero, low: -zero, high: top - zero };
}

/** The code of a weight, the zero point taken off, and what it is worth. */
export const goCode = (x, { scale, low, high }) => clampTo(halfEven(Math.fround(x * scale)), low, high);
export const goWorth = (code, { inverse }) => Math.fround(code * inverse);

/** Bits per weight: the codes, and of each group a scale of 16 bits, and a zero point of 8 where there is one. */
export const goBits = ({ bits, symmetric, group }) => bits + (16 + (symmetric ? 0 : 8)) / group;

/** A row in groups: the scale of each, what each weight becomes, and what all but the outlier lose. */
export function groupedRow(row, { bits, symmetric, group, outlier, place }) {
  const scales = Array.from({ length: row.length / group }, (_, i) => groupScale(row, i * group, (i + 1) * group, { bits, symmetric }));
  const own = Math.floor((place - 1) / group);
  const stored = Float32Array.from(row, (x, i) => goWorth(goCode(x, scales[Math.floor(i / group)]), scales[Math.floor(i / group)]));
  let [squares, power, zeros, count] = [0, 0, 0, 0];
  row.forEach((x, i) => {
    if (outlier && i === place - 1) return;
    squares += (stored[i] - x) ** 2;
    power += x * x;
    if (x !== 0) count += 1;
    if (x !== 0 && stored[i] === 0) zeros += 1;
  });
  return { scales, own, stored, error: power ? Math.sqrt(squares / power) : 0, zeros, count, bits: goBits({ bits, symmetric, group }) };
}
