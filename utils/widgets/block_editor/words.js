// What BlockEditor says. Pure functions, plain text; beVerdict is block_verdict of facts.py.

import { encode, toBinary, toHex } from "../shared/numbers/codec.js";
import { exactNumber, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { decimalDigits, digitsText, shortestDigits } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { largestOf } from "../shared/numbers/scaling.js";
import { fewDigits } from "../shared/words/amounts.js";
import { beDecoded } from "./block.js";

/** A double with at most four digits: 0.375, 1.922 × 10⁻⁷. */
export function beText(x, most = 4) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x < 0 ? "−∞" : "∞";
  const number = exactNumber(x);
  return digitsText({ ...decimalDigits(number, most), exact: true }, { sign: number.sign });
}

/** A float32 as a field shows it: the fewest digits that read back to it. */
export function shortText(x) {
  const code = encode(exactNumber(x), FORMATS.float32);
  return digitsText(shortestDigits(code, FORMATS.float32), { sign: x < 0 ? 1 : 0, ascii: true });
}

const bePower = (x) => `2${superscript(exponentOfDouble(x))}`;
const isPower = (x) => x > 0 && x === 2 ** exponentOfDouble(x);

/** A factor: powers of two far from 1 as such. */
export const beFactor = (x) => (isPower(x) && Math.abs(exponentOfDouble(x)) > 6 ? bePower(x) : beText(x));

/** A share in percent, three digits; null where there is none. */
export const errorText = (error) => (error === null ? "–" : Number.isFinite(error) ? `${fewDigits(100 * error)}\u00a0%` : error === Infinity ? "∞" : "NaN");

export function beVerdict({ fmt, way, cells, totals }, bits) {
  const { saturated, zeros, error } = totals;
  const lost = cells.length - cells.filter(({ fate }) => fate !== "nan").length;
  if (lost) return `${bits} bits per value. ${lost} of ${cells.length} values are NaN.`;
  const said = error === null ? "All values are 0." : `Error ${errorText(error)} (RMS).`;
  return `${bits} bits per value: ${fmt.bits}, and ${FORMATS[way.scale_format].bits} for the scale of ${way.block} values. ${said} ${saturated} saturated, ${zeros} became 0.`;
}

/** How a tile comes by its scale. */
export function scaleReason({ fmt, way, narrow, tensorInv }, { amax, byRule, code, scaleInv }) {
  if (code !== byRule) {
    const ruled = Math.fround(beDecoded(byRule, narrow) * tensorInv);
    return `Set by hand. The rule gives ${beFactor(ruled)}${ruled === scaleInv ? "" : `, this is ${beFactor(scaleInv / ruled)} times that`}.`;
  }
  if (amax === 0) return "All values are 0: the rule takes the smallest scale.";
  const [size, max] = [beText(amax), beText(largestOf(fmt))];
  const e = Number(byRule) - narrow.bias;
  const shown = superscriptFree(e);
  switch (way.rule) {
    case "floor": return `amax ${size}: ⌊log₂ ${size}⌋ − ${fmt.emax} = ${shown}. E${fmt.exponent_bits}M${fmt.mantissa_bits}'s largest power of two is 2${superscript(fmt.emax)}.`;
    case "rceil": return `amax ${size}: ⌈log₂(${size} / ${max})⌉ = ${shown}. The least power of two that saturates nothing.`;
    case "round": return `amax ${size}, rounded to ${fmt.mantissa_bits + 1} bits first: ⌊log₂⌋ − ${fmt.emax} = ${shown}.`;
    default: return `amax ${size} / ${max} × tensor scale ${beText(1 / tensorInv)}, rounded to ${narrow.label}.`;
  }
}

const superscriptFree = (n) => String(n).replace("-", "−");

/** What the scale's code stands for: "2^(128 − 127) = 2". */
export function scaleValue({ way, narrow, tensorInv }, { code, scaleInv }) {
  const number = beDecoded(code, narrow);
  if (Number.isNaN(number)) return "NaN: every value of the block is NaN.";
  if (!way.tensor_scale) return `inv_scale = 2${superscript(exponentOfDouble(number))} = ${beText(number)}`;
  return `${beText(number)} × ${beText(tensorInv)} of the tensor: inv_scale = ${beText(scaleInv)}`;
}

/** From x to what is stored, step by step. */
export function cellSteps({ fmt }, { x, scaled, worth, stored, fate }, { scale, scaleInv }) {
  const back = `${beText(worth, 8)} × inv_scale ${beFactor(scaleInv)} = ${beText(stored)}`;
  if (fate === "nan" || fate === "by hand") return `The code is worth ${back}.`;
  return `${beText(x)} × scale ${beFactor(scale)} = ${beText(scaled)}; as ${fmt.label} ${beText(worth, 8)}${fate === "saturated" ? ", its largest" : ""}. Back: ${back}.`;
}

/** What became of a value, with its error. */
export function cellFate({ x, stored, fate }) {
  const difference = stored - x;
  const share = x === 0 ? "" : ` (${signedPercent(difference / x)})`;
  const off = difference === 0 ? "no error" : `error ${beText(difference)}${share}`;
  const words = { nan: "NaN", "by hand": `Not the code of x: ${off}`, saturated: `Saturated: ${off}`, exact: "Exact", zero: `Became 0: ${off}`, rounded: `Rounded: ${off}` };
  return `${words[fate]}.`;
}

const signedPercent = (share) => `${share < 0 ? "−" : "+"}${fewDigits(Math.abs(100 * share))}\u00a0%`;

/** A code as bits where these are few, else in hexadecimal. */
export const codeText = (code, fmt) => (fmt.bits <= 4 ? toBinary(code, fmt) : toHex(code, fmt).slice(2));

/** What the flip of a bit of the scale did: the codes stay. */
export function scaleFlipText(bit, before, after, view, tile) {
  const count = view.way.block;
  const opening = `Bit ${bit} of the scale is now ${(after >> BigInt(bit)) & 1n}; the ${count} codes stay.`;
  const [a, b] = [before, after].map((code) => beDecoded(code, view.narrow));
  if (Number.isNaN(b)) return `${opening} It is NaN now, and so are all ${count} values.`;
  if (Number.isNaN(a) || a === 0 || b === 0) return `${opening} inv_scale is ${beFactor(tile.scaleInv)}.`;
  const ratio = b / a;
  return `${opening} All ${count} values are multiplied by ${beFactor(ratio)}.`;
}
