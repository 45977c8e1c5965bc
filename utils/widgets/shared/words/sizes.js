// Magnitudes and shares as text: powers of two, and numbers of a few digits.

import { superscript } from "../numbers/superscript.js";

/** n of total in percent, with three digits, and never as 0 or all where it is not. */
export function shareText(n, total) {
  const percent = (100 * n) / total;
  if (n > 0 && percent < 0.01) return "less than 0.01\u00a0%";
  const text = String(Number(percent.toPrecision(3)));
  return text === "100" && n < total ? "more than 99.9\u00a0%" : `${text}\u00a0%`;
}

/** A power of two: 2¹⁶. */
export const powerText = (power) => (power === 0 ? "1" : `2${superscript(power)}`);

/** A scale as text: 2¹⁶ where it is a power of two. */
export function scaleText(scale) {
  const power = Math.round(Math.log2(scale));
  return scale === 2 ** power ? powerText(power) : sizeText(scale);
}

/** A magnitude with a few digits. */
export function sizeText(x, digits = 3) {
  if (x === 0 || (x >= 1e-3 && x < 1e6)) return String(Number(x.toPrecision(digits)));
  const [significand, power] = x.toExponential(digits - 1).split("e");
  return `${Number(significand)}\u00a0×\u00a010${superscript(Number(power))}`;
}

/** Text that begins with a whole number, with commas between its groups of three digits. */
export const withCommas = (text) => text.replace(/^\d{4,}/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));
