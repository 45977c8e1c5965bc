// What becomes of a number in one format, by name, and in words. The twin of format_fate.py.

import { bitLength, classify, fields, floorLog2, pow2, round, subtract, valueOf } from "./codec.js";
import { decimalDigits, digitsText, numberText } from "./number_text.js";
import { superscript } from "./superscript.js";

const FATE_MARKS = {
  kept: "=", exact: "=", rounded: "≈", subnormal: "▾", underflow: "↓", overflow: "↑", saturated: "⤒", held: "⤒",
  sign_lost: "±", no_sign: "✕", no_zero: "✕", nan_lost: "✕",
};

/**
 * What a format makes of a number.
 *
 * Returns { kind, mark, words, code, stored, error, bitsLeft, result }. `error` is |stored - number| / |number| as
 * { num, den }, { infinite: true }, or null where it has no meaning; `code` and `stored` are null where nothing is
 * stored. `kind` is one of the keys of FATE_MARKS.
 */
export function fateOf(number, fmt, options) {
  if (number.kind === "nan" && !fmt.has_nan) {
    return fateWith("nan_lost", "NaN lost: no code for it", { code: null, stored: null, error: null });
  }
  const result = round(number, fmt, options);
  const stored = valueOf(result.code, fmt);
  const kind = fateKind(number, fmt, result, stored, options);
  const bitsLeft = kind === "subnormal" ? bitLength(fields(result.code, fmt).fraction) : null;
  const words = fateWords(kind, fmt, stored, bitsLeft);
  return fateWith(kind, words, { code: result.code, stored, error: fateError(number, stored, kind), bitsLeft, tie: result.tie });
}

const fateWith = (kind, words, rest) => ({ kind, mark: FATE_MARKS[kind], words, bitsLeft: null, tie: false, ...rest });

function fateKind(number, fmt, result, stored, { saturate = false } = {}) {
  if (number.kind === "nan") return "kept";
  const zero = number.kind === "finite" && number.num === 0n;
  if (!fmt.has_zero && (zero || number.sign === 1)) return zero ? "no_zero" : "no_sign";
  if (number.kind === "infinity") return { infinity: "kept", nan: "overflow", finite: "saturated" }[stored.kind];
  if (zero) return stored.sign === number.sign ? "exact" : "sign_lost";
  if (result.overflow) return stored.kind === "finite" ? "saturated" : "overflow";
  if (stored.num === 0n) return "underflow";
  if (!fmt.has_zero && floorLog2(number.num, number.den) < fmt.emin) return "underflow";
  if (isPastTheGrid(number, fmt)) return saturate || !fmt.has_nan ? "saturated" : "held";
  if (classify(result.code, fmt) === "subnormal") return "subnormal";
  return result.exact ? "exact" : "rounded";
}

// At least one gap beyond the largest value.
function isPastTheGrid(number, fmt) {
  const largest = valueOf(BigInt(fmt.max_code), fmt);
  const [up, down] = pow2(fmt.emax - fmt.mantissa_bits);
  const end = { num: largest.num * down + up * largest.den, den: largest.den * down };
  return number.num * end.den >= end.num * number.den;
}

function fateWords(kind, fmt, stored, bitsLeft) {
  switch (kind) {
    case "underflow": return `underflow: to ${stored.num === 0n ? numberText(stored) : "its smallest"}`;
    case "overflow": return `overflow: to ${stored.kind === "nan" ? "NaN (no infinity)" : numberText(stored)}`;
    case "saturated": return `saturated: to ${largestInShort(stored)}${fmt.has_nan ? "" : " (no ∞, no NaN)"}`;
    case "held": return `too large: stops at ${largestInShort(stored)}`;
    case "subnormal": return `subnormal: ${bitsLeft} of ${fmt.mantissa_bits + 1} bits left`;
    case "sign_lost": return "sign of zero lost";
    case "no_sign": return "cannot hold a sign: NaN";
    case "no_zero": return "cannot hold a zero: NaN";
    default: return kind;
  }
}

const largestInShort = (stored) => (decimalDigits(stored, 6).exact && stored.num < 1000000n * stored.den ? numberText(stored) : "its largest");

function fateError(number, stored, kind) {
  if (kind === "sign_lost") return { num: 0n, den: 1n };
  if (number.kind !== "finite" || stored.kind === "nan") return null;
  if (stored.kind === "infinity") return { infinite: true };
  const off = subtract(stored, number);
  return off.num === 0n ? { num: 0n, den: 1n } : { num: off.num * number.den, den: off.den * number.num };
}

/** The logarithm to base 2 of a positive number, as a double. */
export function log2Of({ num, den }) {
  const e = floorLog2(num, den);
  const [up, down] = pow2(52 - e);
  return e - 52 + Math.log2(Number((num * up) / (den * down)));
}

/** A relative error as text: percent, and a very small or a huge one as a power of two. */
export function errorText(error) {
  if (error === null) return "—";
  if (error.infinite) return "∞";
  if (error.num === 0n) return "0";
  if (error.num * 100000n < error.den || error.num >= 10n * error.den) return `2${superscript(Math.round(log2Of(error)))}`;
  if (error.num < error.den && error.num * 10000n >= error.den * 9995n) return "> 99.9 %";
  return `${digitsText({ ...decimalDigits({ num: 100n * error.num, den: error.den }, 3), exact: true })} %`;
}

/** A stored value for its row: all digits where they are few, a power of two as one, else as many as show the error. */
export function storedText({ stored, error }) {
  if (stored === null) return "—";
  if (stored.kind !== "finite" || decimalDigits(stored, 12).exact) return numberText(stored, 12);
  if (isPowerOfTwo(stored)) return `${stored.sign ? "−" : ""}2${superscript(floorLog2(stored.num, stored.den))}`;
  const needed = error && !error.infinite && error.num > 0n ? Math.ceil(1 - log2Of(error) * Math.LOG10E * Math.LN2) : 0;
  const { exponent } = decimalDigits(stored, 1);
  const room = exponent < -5 || exponent > 17 ? 12 : 18; // a power of ten takes its place too
  return numberText(stored, Math.min(Math.max(needed, 6), room));
}

export function isPowerOfTwo({ num, den }) {
  const e = num === 0n ? null : floorLog2(num, den);
  if (e === null) return false;
  return e >= 0 ? num === den << BigInt(e) : num << BigInt(-e) === den;
}

/** Order two fates by their error: exact first, then the small before the large, then infinity, last what is lost. */
export function compareErrors(a, b) {
  const rank = ({ kind, error }) => (error === null ? (kind === "kept" ? 0 : 3) : error.infinite ? 2 : error.num === 0n ? 0 : 1);
  const [left, right] = [rank(a), rank(b)];
  if (left !== right || left !== 1) return left - right;
  const [one, other] = [a.error.num * b.error.den, b.error.num * a.error.den];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** What became of a number in all formats, in a sentence: how many hold it, round it, lose it. */
export function fatesInShort(typed, fates) {
  const total = fates.length;
  const groups = [
    ["kept in", ["kept"]], ["exact in", ["exact"]], ["rounded in", ["rounded"]], ["subnormal in", ["subnormal"]],
    ["underflow in", ["underflow"]], ["overflow in", ["overflow"]], ["saturated in", ["saturated"]],
    ["stopped at the largest in", ["held"]], ["impossible in", ["sign_lost", "no_sign", "no_zero", "nan_lost"]],
  ];
  const counted = groups.map(([words, kinds]) => [words, fates.filter(({ kind }) => kinds.includes(kind)).length]).filter(([, count]) => count);
  if (counted.length === 1) return `${typed}: ${counted[0][0]} ${total === 1 ? "the one format" : `all ${total} formats`}.`;
  const list = counted.map(([words, count]) => `${words} ${count}`);
  return `${typed} in ${total} formats: ${list.join(", ")}.`;
}
