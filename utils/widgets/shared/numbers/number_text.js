// Numbers as text, both ways and exactly: what a reader types becomes a fraction of BigInts, never a double.

import { bitLength, encode, finite, pow2, subtract, toHex, valueOf } from "./codec.js";
import { SUPERSCRIPTS, superscript } from "./superscript.js";

const MOST_CHARACTERS = 2000;
const MOST_EXPONENT = 5000;
const MOST_BITS = 20000;
const EXAMPLES = "Try 0.1, 1/3, 1 + 2^-11, 6.02e23, 0x1.8p-3, inf or nan.";

/** Thrown for text that is no number; its message is meant for the reader. */
export class NumberTextError extends Error {}

/**
 * Read a number: decimal, hexadecimal ("0x1.8p-3") or binary ("0b1.01"), + - * / ^ and brackets, inf, nan.
 *
 * Returns the exact number (codec.js). Throws NumberTextError with a sentence for the reader.
 */
export function parseNumber(text) {
  if (text.trim() === "") throw new NumberTextError(`Type a number first. ${EXAMPLES}`);
  if (text.length > MOST_CHARACTERS) {
    throw new NumberTextError(`That is ${text.length} characters; at most ${MOST_CHARACTERS} are read.`);
  }
  const plain = plainText(text);
  const special = /^([+-]?)(inf|infinity|nan)$/.exec(plain);
  if (special) {
    return { kind: special[2] === "nan" ? "nan" : "infinity", sign: special[1] === "-" ? 1 : 0, num: 0n, den: 1n };
  }
  // 1,500 is 1500 to some readers and 1.5 to others: say both, read neither.
  if (/^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain)) {
    throw new NumberTextError(`Leave out commas between thousands: ${plain.replaceAll(",", "")}. A decimal point is a point: 1.5`);
  }
  if (plain.includes(",")) throw new NumberTextError("Write a decimal point instead of the comma: 1.5");
  const reader = { text: plain, at: 0, shown: text.trim() };
  const number = readSum(reader);
  if (reader.at < plain.length) throw notANumber(reader);
  return number;
}

// Typographic forms, such as the book prints and a reader copies, in their plain form.
function plainText(text) {
  return text.toLowerCase()
    .replace(/[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+/g, (run) =>
      `^${[...run].map((c) => (c === "⁻" ? "-" : SUPERSCRIPTS.indexOf(c))).join("")}`)
    .replace(/[−–]/g, "-").replace(/[×·]/g, "*").replace(/÷/g, "/").replace(/∞/g, "inf").replace(/\*\*/g, "^")
    .replace(/(\d)_(?=[\da-f])/g, "$1").replace(/\s*([-+*/^()])\s*/g, "$1").trim();
}

function notANumber({ shown }) {
  const short = shown.length > 40 ? `${shown.slice(0, 40)}…` : shown;
  return new NumberTextError(`“${short}” is not a number that can be read here. ${EXAMPLES}`);
}

function take(reader, characters) {
  const next = reader.text[reader.at];
  if (next === undefined || !characters.includes(next)) return null;
  reader.at += 1;
  return next;
}

function readSum(reader) {
  let left = readProduct(reader);
  for (let sign; (sign = take(reader, "+-"));) {
    const right = readProduct(reader);
    const sum = subtract(left, sign === "-" ? right : { ...right, sign: 1 - right.sign });
    left = reduced(sum);
  }
  return left;
}

function readProduct(reader) {
  let left = readSigned(reader);
  for (let sign; (sign = take(reader, "*/"));) {
    const right = readSigned(reader);
    if (sign === "/" && right.num === 0n) {
      throw new NumberTextError("A division by zero has no value. For an infinity type inf.");
    }
    const [num, den] = sign === "*" ? [right.num, right.den] : [right.den, right.num];
    left = reduced(finite(left.sign ^ right.sign, left.num * num, left.den * den));
  }
  return left;
}

function readSigned(reader) {
  let negative = 0;
  for (let sign; (sign = take(reader, "+-"));) negative ^= sign === "-" ? 1 : 0;
  const power = readPower(reader);
  return { ...power, sign: power.sign ^ negative };
}

function readPower(reader) {
  const base = readAtom(reader);
  if (!take(reader, "^")) return base;
  const exponent = readSigned(reader);
  if (exponent.num % exponent.den !== 0n) throw new NumberTextError("An exponent must be a whole number, as in 2^-14.");
  const n = exponent.num / exponent.den;
  if (n * BigInt(bitLength(base.num) + bitLength(base.den)) > BigInt(MOST_BITS)) throw tooLarge();
  if (exponent.sign && base.num === 0n && n > 0n) {
    throw new NumberTextError("A division by zero has no value. For an infinity type inf.");
  }
  const [num, den] = exponent.sign ? [base.den, base.num] : [base.num, base.den];
  return finite(n % 2n === 1n ? base.sign : 0, num ** n, den ** n);
}

function readAtom(reader) {
  if (take(reader, "(")) {
    const inside = readSum(reader);
    if (!take(reader, ")")) throw new NumberTextError("A bracket is not closed.");
    return inside;
  }
  const rest = reader.text.slice(reader.at);
  const based = /^0(?:x([\da-f]*)(?:\.([\da-f]*))?(?:p([+-]?\d+))?|b([01]*)(?:\.([01]*))?)/.exec(rest);
  if (based) return readBased(reader, based);
  const decimal = /^(\d+\.?\d*|\.\d+)(?:e([+-]?\d+))?/.exec(rest);
  if (!decimal) throw notANumber(reader);
  reader.at += decimal[0].length;
  const [whole, fraction = ""] = decimal[1].split(".");
  const power = exponentOf(decimal[2]) - fraction.length;
  const digits = BigInt(whole + fraction);
  return power >= 0 ? finite(0, digits * 10n ** BigInt(power)) : finite(0, digits, 10n ** BigInt(-power));
}

function readBased(reader, [all, hexWhole = "", hexFraction = "", hexPower, binWhole = "", binFraction = ""]) {
  const digits = hexWhole + hexFraction + binWhole + binFraction;
  if (digits === "") throw notANumber(reader);
  reader.at += all.length;
  const hex = all[1] === "x";
  const [up, down] = pow2(exponentOf(hexPower) - (hex ? 4 * hexFraction.length : binFraction.length));
  return finite(0, BigInt(`${hex ? "0x" : "0b"}${digits}`) * up, down);
}

function exponentOf(text = "0") {
  const power = Number(text);
  if (Math.abs(power) > MOST_EXPONENT) throw tooLarge();
  return power;
}

function reduced(number) {
  if (bitLength(number.num) + bitLength(number.den) > 4 * MOST_BITS) throw tooLarge();
  return number;
}

const tooLarge = () =>
  new NumberTextError(`Exponents up to ${MOST_EXPONENT} are read. For what is larger than every format, type inf.`);

/** The decimal digits of a finite number as d.ddd * 10**exponent: at most `most` of them, cut off or rounded. */
export function decimalDigits({ num, den }, most = Infinity, { cut = false } = {}) {
  if (num === 0n) return { digits: "0", exponent: 0, exact: true };
  const twos = bitLength(den) - 1;
  if (den === 1n << BigInt(twos)) { // num / 2**k = num * 5**k / 10**k: every such number has a last digit
    const all = (num * 5n ** BigInt(twos)).toString();
    if (all.replace(/0+$/, "").length <= most) {
      return { digits: all.replace(/0+$/, ""), exponent: all.length - 1 - twos, exact: true };
    }
  }
  const count = Math.min(most, MOST_CHARACTERS);
  let exponent = Math.floor((bitLength(num) - bitLength(den)) * Math.LOG10E * Math.LN2) - 1;
  while (scaledTo(num, den, exponent + 1) >= 1n) exponent += 1;
  const [top, bottom] = scaling(num, den, count - 1 - exponent);
  const rounded = cut ? top / bottom : (2n * top + bottom) / (2n * bottom);
  const digits = rounded.toString();
  const exact = rounded * bottom === top;
  // what is cut off goes on, so its zeros say something
  return { digits: cut && !exact ? digits : digits.replace(/0+$/, ""), exponent: exponent + digits.length - count, exact };
}

const scaling = (num, den, tens) =>
  (tens >= 0 ? [num * 10n ** BigInt(tens), den] : [num, den * 10n ** BigInt(-tens)]);

const scaledTo = (num, den, exponent) => {
  const [top, bottom] = scaling(num, den, -exponent);
  return top / bottom;
};

/** Digits as text: plain where that is short, else with a power of ten. A true minus, and the point as it is. */
export function digitsText({ digits, exponent, exact }, { sign = 0, ascii = false } = {}) {
  const minus = sign ? (ascii ? "-" : "−") : "";
  const more = exact || ascii ? "" : "…";
  if (exponent >= 0 && exponent < 21 && exact) {
    const whole = digits.padEnd(exponent + 1, "0");
    const fraction = whole.slice(exponent + 1);
    return `${minus}${whole.slice(0, exponent + 1)}${fraction && "."}${fraction}`;
  }
  if (exponent >= 0 && exponent < digits.length - 1 && exponent < 21) {
    return `${minus}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}${more}`;
  }
  if (exponent < 0 && exponent >= -5) return `${minus}0.${"0".repeat(-exponent - 1)}${digits}${more}`;
  const point = digits.length > 1 ? "." : "";
  const power = ascii ? `e${exponent}` : ` × 10${superscript(exponent)}`;
  return `${minus}${digits[0]}${point}${digits.slice(1)}${more}${power}`;
}

/** A number in words or digits; "…" marks where digits past the first `most` are cut off. */
export function numberText(number, most = 12, { ascii = false } = {}) {
  if (number.kind === "nan") return "NaN";
  if (number.kind === "infinity") return `${number.sign ? (ascii ? "-" : "−") : ""}${ascii ? "inf" : "∞"}`;
  return digitsText(decimalDigits(number, most, { cut: true }), { sign: number.sign, ascii });
}

/** A number as text for a sentence: exact where `most` digits suffice, else rounded, after "about". */
export function aboutText(number, most = 6, few = 3) {
  if (number.kind !== "finite") return numberText(number);
  const exact = decimalDigits(number, most);
  if (exact.exact) return digitsText(exact, { sign: number.sign });
  return `about ${digitsText({ ...decimalDigits(number, few), exact: true }, { sign: number.sign })}`;
}

/** The value of a code for a sentence: all digits where `most` suffice, else three, or as many as tell it from other codes. */
export function briefText(code, fmt, most = 12) {
  const number = valueOf(code, fmt);
  if (number.kind !== "finite" || decimalDigits(number, most).exact) return numberText(number, most);
  return `≈\u00a0${digitsText(shortestDigits(code, fmt, 3), { sign: number.sign })}`;
}

/** All digits of a code's value, without a power of ten: "0.0999755859375". */
export function exactDecimal(code, fmt) {
  const number = valueOf(code, fmt);
  if (number.kind !== "finite") return numberText(number, 1, { ascii: true });
  const { digits, exponent } = decimalDigits(number);
  const minus = number.sign ? "-" : "";
  if (exponent < 0) return `${minus}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.padEnd(exponent + 1, "0");
  const fraction = whole.slice(exponent + 1);
  return `${minus}${whole.slice(0, exponent + 1)}${fraction && "."}${fraction}`;
}

/** The fewest digits, from `least` on, that round to this code, the nearest to its value among those, as decimalDigits gives them. */
export function shortestDigits(code, fmt, least = 1) {
  const number = valueOf(code, fmt);
  if (number.kind !== "finite" || number.num === 0n) return { digits: "0", exponent: 0, exact: true };
  const { exponent } = decimalDigits(number, 30);
  // Where some number of digits is enough, one more is too: halve the range. 2 + p log10(2) digits always are.
  let [few, enough] = [least, Math.max(least, Math.floor(2 + (fmt.mantissa_bits + 1) * Math.LOG10E * Math.LN2))];
  let best = readsBack(number, exponent, enough, code, fmt);
  while (few < enough) {
    const count = (few + enough) >> 1;
    const found = readsBack(number, exponent, count, code, fmt);
    if (found) [enough, best] = [count, found];
    else few = count + 1;
  }
  return best;
}

// The decimal of `count` digits next to a number, below or above, that rounds to `code`; null if neither does.
function readsBack(number, exponent, count, code, fmt) {
  const [top, bottom] = scaling(number.num, number.den, count - 1 - exponent);
  const below = top / bottom;
  const excess = 2n * (top - below * bottom) - bottom;
  const above = excess > 0n || (excess === 0n && below % 2n === 1n);
  for (const whole of above ? [below + 1n, below] : [below, below + 1n]) {
    const [num, den] = scaling(whole, 1n, exponent + 1 - count);
    if (whole > 0n && encode(finite(number.sign, num, den), fmt) === code) {
      const digits = whole.toString();
      return { digits: digits.replace(/0+$/, ""), exponent: exponent + digits.length - count, exact: true };
    }
  }
  return null;
}

/** Read a code: "0x3c00", "0b0 01111 0000000000", or the bits or the hex digits alone. */
export function parseCode(text, fmt) {
  const plain = text.toLowerCase().replace(/[\s_]/g, "");
  const form = /^(?:0x([\da-f]+)|0b([01]+)|([\da-f]+))$/.exec(plain);
  if (!form) throw new NumberTextError("A code is written in hexadecimal (0x3C00) or in binary (0b0011110000000000).");
  const bare = form[3] ?? "";
  const binary = form[2] ?? (bare.length === fmt.bits && /^[01]+$/.test(bare) ? bare : null);
  const code = BigInt(binary === null ? `0x${form[1] ?? bare}` : `0b${binary}`);
  if (code >> BigInt(fmt.bits)) {
    throw new NumberTextError(`${fmt.label} has ${fmt.bits} bits: its last code is ${toHex((1n << BigInt(fmt.bits)) - 1n, fmt)}.`);
  }
  return code;
}
