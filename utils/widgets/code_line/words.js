// What CodeLine says: the codes of a narrow format in the order of their values, and each in words. The twin of
// facts.py. Values of at most 8 bits are exact in a double.

import { classify, encode, neighbours, toHex, valueOf } from "../shared/numbers/codec.js";
import { asDouble, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { superscript } from "../shared/numbers/superscript.js";

const CL_KINDS = { normal: "normal", subnormal: "subnormal", zero: "zeros", infinity: "infinities", nan: "NaN" };
const CL_DECIMALS = [2 ** -7, 2 ** 20]; // in between a value is written in decimals, outside as 1.75 × 2⁻¹⁶

/** All codes of a format from the most negative to the largest, as Numbers. */
export function codesInOrder(fmt) {
  const codes = Array.from({ length: 2 ** fmt.bits }, (_, code) => code);
  if (!fmt.signed) return codes;
  return [...codes.slice(codes.length / 2).reverse(), ...codes.slice(0, codes.length / 2)];
}

/** The value of a code, as a double. */
export const valueOfCode = (code, fmt) => asDouble(valueOf(BigInt(code), fmt));

/** A value exactly: "448", "57,344", "0.0625", "1.75 × 2⁻¹⁶". */
export function valueInShort(x) {
  if (Number.isNaN(x)) return "NaN";
  const minus = x < 0 || Object.is(x, -0) ? "−" : "";
  const size = Math.abs(x);
  if (size === 0 || size === Infinity) return `${minus}${size ? "∞" : "0"}`;
  if (size >= CL_DECIMALS[0] && size < CL_DECIMALS[1]) {
    return `${minus}${size.toLocaleString("en", { maximumFractionDigits: 20 })}`;
  }
  const e = exponentOfDouble(size);
  const significand = size / 2 ** e;
  const power = e === 0 ? "1" : `2${superscript(e)}`;
  return `${minus}${significand === 1 ? "" : `${significand} × `}${power}`;
}

/** How many codes are what: "256 codes: 238 normal, 14 subnormal, 2 zeros, 2 NaN". */
export function censusText(fmt) {
  const codes = codesInOrder(fmt);
  const kinds = codes.map((code) => classify(BigInt(code), fmt));
  const parts = Object.entries(CL_KINDS).map(([kind, words]) => {
    const count = kinds.filter((one) => one === kind).length;
    return count ? `${count} ${count > 1 || kind === "nan" ? words : kind}` : null;
  });
  return `${codes.length} codes: ${parts.filter(Boolean).join(", ")}`;
}

/** What one code is, and how far its neighbours are. */
export function codeReading(code, fmt) {
  const value = valueOfCode(code, fmt);
  const name = `${fmt.label} ${toHex(BigInt(code), fmt)} is ${valueInShort(value)}`;
  if (!Number.isFinite(value)) return `${name}: ${reasonOfCode(fmt, value)}.`;
  return `${name}, ${rankOfCode(code, fmt)}. ${neighboursOfCode(code, value, fmt)}`;
}

function reasonOfCode(fmt, value) {
  if (fmt.specials === "ieee") return `its exponent bits are all 1 and its fraction is ${Number.isNaN(value) ? "not " : ""}0`;
  if (fmt.specials === "all_ones") return `its bits${fmt.signed ? " after the sign" : ""} are all 1`;
  return `the code that would be −0 is the only NaN of ${fmt.label}`;
}

function rankOfCode(code, fmt) {
  const kind = classify(BigInt(code), fmt);
  if (kind === "zero") return code ? "its zero with a sign" : "its zero";
  const size = fmt.signed ? code % 2 ** (fmt.bits - 1) : code;
  const normal = fmt.has_zero ? 2 ** fmt.mantissa_bits : 0;
  const named = new Map(fmt.has_zero ? [[1, "smallest subnormal number"], [normal - 1, "largest subnormal number"]] : []);
  if (normal === 2) named.set(1, "only subnormal number");
  named.set(Number(fmt.max_code), "largest value").set(normal, "smallest normal number");
  return named.has(size) ? `${code === size ? "" : "minus "}its ${named.get(size)}` : `a ${kind} number`;
}

function neighboursOfCode(code, value, fmt) {
  const { down, up } = neighbours(BigInt(code), fmt);
  // −0 and +0 are one value here: the neighbours of either are the smallest numbers
  const near = [down, up].filter((next) => next !== null).map((next) => asDouble(valueOf(next, fmt))).filter(Number.isFinite);
  const names = near.map((x) => valueInShort(x === 0 ? 0 : x));
  const gaps = near.map((x) => valueInShort(Math.abs(x - value)));
  if (near.length === 1) return `Its only neighbour is ${names[0]}, at a distance of ${gaps[0]}.`;
  if (gaps[0] === gaps[1]) return `Its neighbours are ${names[0]} and ${names[1]}, each at a distance of ${gaps[0]}.`;
  return `Its neighbours are ${names[0]} and ${names[1]}, at distances of ${gaps[0]} and ${gaps[1]}.`;
}

/** The code that stands in another format for the value of a code; null where there is none. */
export function codeInFormat(number, fmt) {
  if (number.kind === "nan" && !fmt.has_nan) return null;
  return Number(encode(number, fmt));
}
