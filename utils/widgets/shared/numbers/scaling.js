// From amax to scale: the twin of utils/scaling.py and utils/shared_exponent.py. What is scaled is multiplied by `scale`;
// scales are float32.

import { namedCode, valueOf } from "./codec.js";
import { asDouble, doubleRounders, exponentOfDouble } from "./double_rounding.js";
import { FORMATS } from "./formats.js";

export const MOST_SCALE = 2 ** 127 * (2 - 2 ** -23); // float32's largest value
const LEAST_SCALE = 2 ** -126; // below it the reciprocal overflows
const E8M0_LIMIT = 127; // exponents of E8M0: -127 ... 127

/** What may share a scale, as in Python: rows and columns of a tile (null: the whole axis), the scale's format and rule. */
export const SCALINGS = {
  tensor: { tile: [null, null], scale_format: "float32", rule: "exact", tensor_scale: false },
  row: { tile: [1, null], scale_format: "float32", rule: "exact", tensor_scale: false },
  "1x128": { tile: [1, 128], scale_format: "float32", rule: "exact", tensor_scale: false },
  mx: { tile: [1, 32], scale_format: "float8_e8m0fnu", rule: "floor", tensor_scale: false },
  nvfp4: { tile: [1, 16], scale_format: "float8_e4m3fn", rule: "exact", tensor_scale: true },
};

/** The largest value of a format of the table, as a double. */
export const largestOf = (fmt) => asDouble(valueOf(namedCode("largest", fmt), fmt));

/** The scale that carries `amax` to `top`; 1 where amax is 0 or not finite. */
export function scaleFromAmax(amax, top) {
  if (!(amax > 0) || !Number.isFinite(amax)) return 1;
  return Math.min(Math.max(Math.fround(Math.fround(top) / amax), LEAST_SCALE), MOST_SCALE);
}

/** The scales of Transformer Engine's delayed scaling: the one that each step uses. `amaxes` are float32. */
export function delayedScales(amaxes, { max, history, margin, choose }) {
  const [top, known, scales] = [max * 2 ** -margin, [], []];
  let scale = 1;
  for (const amax of amaxes) {
    scales.push(scale);
    if (amax === 0) continue; // a layer without work is not remembered
    known.push(amax);
    if (known.length > history) known.shift();
    const chosen = choose === "max" ? known.reduce((most, one) => (one > most || Number.isNaN(most) ? one : most)) : amax;
    if (Number.isFinite(chosen)) scale = scaleFromAmax(chosen, top);
  }
  return scales;
}

const ceilLog2 = (x) => exponentOfDouble(x) + (x === 2 ** exponentOfDouble(x) ? 0 : 1);

/** From the largest magnitude of a block, above 0, and its format to the exponent of the power of two that it stores. */
export const EXPONENT_RULES = {
  floor: (amax, { emax }) => exponentOfDouble(amax) - emax, // OCP MX 1.0, 6.3
  rceil: (amax, { max }) => ceilLog2(Math.fround(amax / max)),
  round(amax, { emax, mantissa_bits: M }) {
    const e = exponentOfDouble(amax);
    return e - emax + (amax / 2 ** e >= 2 - 2 ** -(M + 1) ? 1 : 0); // it rounds up to 2
  },
};

/** The exponent that a rule gives; the least one for a block of zeros. */
export function sharedExponent(amax, narrow, rule) {
  if (amax === 0) return -E8M0_LIMIT;
  return Math.min(Math.max(EXPONENT_RULES[rule](amax, narrow), -E8M0_LIMIT), E8M0_LIMIT);
}

/** One format: its largest value, its smallest normal one and the one above 0; `near` rounds a double and saturates. */
export function narrowFormat(name) {
  if (name === "int8") {
    const shift = 1.5 * 2 ** 52; // x + shift has no room for fractions: the processor rounds there, with ties to even
    return { max: 127, emax: 6, mantissa_bits: 6, normal: 64, smallest: 1, near: (x) => (x > 127 ? 127 : x < -127 ? -127 : x + shift - shift) };
  }
  const { near } = doubleRounders(FORMATS[name]);
  const [max, { emax, emin, mantissa_bits: M }] = [largestOf(FORMATS[name]), FORMATS[name]];
  return { max, emax, mantissa_bits: M, normal: 2 ** emin, smallest: 2 ** (emin - M), near: (x) => (x >= max ? max : x <= -max ? -max : near(x)) };
}

/** The scale of a tensor whose tiles have scales in a narrow format: the largest of those lands on `narrow.max`. */
export const tensorScaleOf = (whole, { tensor_scale: has }, { max }, narrow) => (has ? scaleFromAmax(whole, max * narrow.max) : 1);

/** What a block format keeps of a tile's scale: a value of `narrow`, by the scaling's rule. */
export function storedScale(amax, { rule }, fmt, { narrow, tensorScale }) {
  if (rule !== "exact") return 2 ** sharedExponent(amax, fmt, rule);
  const wanted = Math.fround(Math.fround(amax / fmt.max) * tensorScale);
  return Math.max(narrow.near(wanted), narrow.smallest); // a scale of 0 would lose the block
}

/** A tile's scale from what takes it back. */
export const scaleOfInverse = (inverse) => Math.min(Math.fround(1 / inverse), MOST_SCALE);

/** The scale of a tile and what takes it back: { scale, inverse }. `whole` is the amax of the tensor. */
export function tileScale(amax, whole, scaling, fmt, narrow) {
  if (scaling.scale_format === "float32") {
    const scale = scaleFromAmax(amax, fmt.max);
    return { scale, inverse: Math.fround(1 / scale) };
  }
  const tensorScale = tensorScaleOf(whole, scaling, fmt, narrow);
  const inverse = Math.fround(storedScale(amax, scaling, fmt, { narrow, tensorScale }) * Math.fround(1 / tensorScale));
  return { scale: scaleOfInverse(inverse), inverse };
}
