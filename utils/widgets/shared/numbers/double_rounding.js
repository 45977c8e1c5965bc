// Doubles rounded to a format at once: the page's `quantize`, fast enough for millions of additions.
//
// What is computed in doubles is still the exact result, rounded once: rounding a + b to a double's 53 bits and then to
// p bits is the same as rounding it to p bits at once, for a and b of p bits, if 53 >= 2 p + 2 (Figueroa, "When is double
// rounding innocuous?", 1995). So p may be 25, and float32 has 24. codec.js says the same in BigInt.

import { finite, namedCode, valueOf } from "./codec.js";
import { FORMATS } from "./formats.js";

export const doubleView = new DataView(new ArrayBuffer(8));

/** The exponent of a double: floor(log2(|x|)); below -1000 for zero, above 1000 for what is not finite. */
export function exponentOfDouble(x) {
  doubleView.setFloat64(0, x);
  return ((doubleView.getUint32(0) >>> 20) & 0x7ff) - 1023;
}

/** The exact number (codec.js) that a double is. */
export function exactNumber(x) {
  if (x === 0) return finite(0, 0n); // which float64 would write over 2**1074
  doubleView.setFloat64(0, x);
  return valueOf(doubleView.getBigUint64(0), FORMATS.float64);
}

/** The double of an exact number that has at most 53 bits, as every value of a format has. */
export function asDouble({ kind, sign, num, den }) {
  const size = kind === "nan" ? NaN : kind === "infinity" ? Infinity : Number(num) / Number(den);
  return sign ? -size : size;
}

/**
 * Functions that round a double to a format: `near` with ties to even, `random` up or down with the chances that make
 * the mean right. What leaves the range becomes what codec.js makes of it.
 */
export function doubleRounders(fmt) {
  const { emin, emax, mantissa_bits: M } = fmt;
  const max = asDouble(valueOf(namedCode("largest", fmt), fmt));
  const past = fmt.has_inf ? Infinity : fmt.has_nan ? NaN : max;
  const gaps = Float64Array.from({ length: emax - emin + 1 }, (_, i) => 2 ** (emin + i - M));
  // x + 1.5 * 2**52 gaps has no room for parts of a gap: the processor rounds there, with ties to even.
  const shifts = gaps.map((gap) => 1.5 * 2 ** 52 * gap);
  const inRange = (y, x) => (Math.abs(y) > max ? (x < 0 ? -past : past) : y);
  const outside = (x) => (Number.isNaN(x) ? x : x < 0 ? -past : past);

  function near(x) {
    const e = exponentOfDouble(x);
    if (e > emax) return outside(x);
    const shift = shifts[e < emin ? 0 : e - emin];
    const y = x + shift - shift;
    return y > max || y < -max ? inRange(y, x) : y;
  }

  function random(x, dice) {
    const e = exponentOfDouble(x);
    if (e > emax) return outside(x);
    const gap = gaps[e < emin ? 0 : e - emin];
    const whole = Math.floor(x / gap);
    return inRange((whole + (dice() < x / gap - whole ? 1 : 0)) * gap, x);
  }

  return { near: fmt.name === "float32" ? Math.fround : near, random }; // the same, and only there millions are made
}
