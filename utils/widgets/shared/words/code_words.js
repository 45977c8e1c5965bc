// Codes in words: the formula of a code, what a flip did, how a number was rounded. Pure functions, plain text.

import {
  classify, decode, fieldOfBit, finite, namedCode, pow2, subtract, toHex, ulpPower, valueOf,
} from "../numbers/codec.js";
import { aboutText, briefText, numberText } from "../numbers/number_text.js";
import { superscript } from "../numbers/superscript.js";

export const KIND_WORDS = {
  zero: "zero", subnormal: "subnormal number", normal: "normal number", infinity: "infinity", nan: "not a number (NaN)",
};

/** The fields' part in the formula, as pieces { text, field, raised }; joined by formulaText. */
export function formulaPieces(code, fmt) {
  const { kind, sign, exponent, fraction } = decode(code, fmt);
  if (kind === "nan" || kind === "infinity") return [{ text: specialReason(code, fmt) }];
  const pieces = [];
  if (fmt.signed) pieces.push({ text: "(−1)", field: "sign" }, { text: String(sign), field: "sign", raised: true }, { text: " × " });
  const stored = kind === "normal" ? exponent : 1;
  pieces.push({ text: "2", field: "exponent" }, { text: `${stored} − ${fmt.bias}`, field: "exponent", raised: true });
  if (fmt.mantissa_bits > 0) {
    const lead = kind === "normal" ? "1" : "0";
    pieces.push({ text: " × " }, { text: `(${lead} + ${fraction}/${1n << BigInt(fmt.mantissa_bits)})`, field: "fraction" });
  }
  return pieces;
}

/** The formula as one line of text: "(−1)^0 × 2^(15 − 15) × (1 + 576/1024)". */
export const formulaText = (code, fmt) =>
  formulaPieces(code, fmt).map(({ text, raised }) => (raised ? `^${text.includes(" ") ? `(${text})` : text}` : text)).join("");

/** Why a code is an infinity or NaN, in terms of its fields. */
export function specialReason(code, fmt) {
  if (fmt.specials === "negative_zero") return `the code that would be −0 is the only NaN of ${fmt.label}`;
  if (fmt.specials === "all_ones") {
    return `all ${fmt.signed ? "bits after the sign" : "bits"} are 1: that code is NaN, and ${fmt.label} has no infinity`;
  }
  const what = classify(code, fmt) === "nan" ? "the fraction is not 0: NaN" : "the fraction is 0: infinity";
  return `all exponent bits are 1 and ${what}`;
}

/** What a bit is worth, as short text: a power of two in the exponent field, a fraction of the leading 1. */
export function placeValue(bit, fmt) {
  const field = fieldOfBit(bit, fmt);
  if (field === "sign") return "±";
  return field === "exponent" ? String(2 ** (bit - fmt.mantissa_bits)) : `2${superscript(bit - fmt.mantissa_bits)}`;
}

/** The name of a bit's button: "bit 12, exponent, worth 4". */
export function bitName(bit, fmt) {
  const field = fieldOfBit(bit, fmt);
  if (field === "sign") return `bit ${bit}, sign`;
  const worth = field === "exponent" ? placeValue(bit, fmt) : `2 to the ${bit - fmt.mantissa_bits}`;
  return `bit ${bit}, ${field}, worth ${worth}`;
}


/** What the flip of one bit did, in one or two sentences. */
export function explainFlip(bit, before, after, fmt) {
  const field = fieldOfBit(bit, fmt);
  const now = (after >> BigInt(bit)) & 1n;
  const change = `${briefText(before, fmt)} became ${briefText(after, fmt)}.`;
  const [a, b] = [decode(before, fmt), decode(after, fmt)];
  const name = field === "sign" ? "The sign bit" : `Bit ${bit} (${field})`;
  const opening = `${name} is now ${now}`;
  if (b.kind === "nan" || b.kind === "infinity") {
    const reason = specialReason(after, fmt);
    return `${opening}: ${reason}.${reason.includes(b.kind === "nan" ? "NaN" : "infinity") ? "" : ` ${change}`}`;
  }
  if (a.kind === "nan" || a.kind === "infinity") return `${opening}: a number again, ${briefText(after, fmt)}.`;
  if (field === "sign") return `${opening}: ${now ? "minus" : "plus"}. ${change}`;
  if (field === "fraction") {
    const worth = `${placeValue(bit, fmt)} × ${powerText(b, fmt)} = ${aboutText(worthOf(bit, after, fmt))}`;
    const fromSize = b.sign ? (now ? " to the size" : " from the size") : "";
    return `${opening}: it ${now ? "adds" : "takes away"} ${worth}${fromSize}. ${change}`;
  }
  return `${opening}, so the exponent field is ${b.exponent}, not ${a.exponent}: ${exponentEffect(a, b)} ${change}`;
}

const powerText = ({ power }, fmt) => `2${superscript(power + fmt.mantissa_bits)}`;

function worthOf(bit, code, fmt) {
  const [up, down] = pow2(decode(code, fmt).power + bit);
  return finite(0, up, down);
}

function exponentEffect(a, b) {
  if (b.kind === "zero") return "with the fraction 0 that is zero.";
  if (b.kind === "subnormal") return `field 0 means subnormal, the leading 1 turns into 0.`;
  if (a.kind !== "normal") return "the leading 1 is back.";
  const steps = Math.abs(b.exponent - a.exponent);
  const factor = steps <= 20 ? ` = ${2 ** steps}` : "";
  return `2${superscript(steps)}${factor} times ${b.exponent > a.exponent ? "larger" : "smaller"}.`;
}

/** How a number met a format: what is stored, how far off, in gaps, and which rule decided. */
export function explainRounding(number, result, fmt, { shown, saturate = false } = {}) {
  const stored = valueOf(result.code, fmt);
  const typed = shown ?? aboutText(number, 12);
  const text = numberText(stored, 21);
  if (number.kind === "nan") return `NaN is stored as ${toHex(result.code, fmt)}.`;
  if (!fmt.has_zero && stored.kind === "nan") return `${fmt.label} holds positive powers of two only: ${typed} becomes NaN.`;
  if (result.overflow && !result.exact) return explainOverflow(typed, text, fmt, saturate);
  if (result.exact) return `${typed} is ${aNumberOf(fmt)}: it is stored exactly.`;
  if (stored.num === 0n) {
    const least = briefText(namedCode("smallest_subnormal", fmt), fmt);
    return `${typed} underflows to ${text}: the smallest ${fmt.label} above 0 is ${least}.`;
  }
  const error = { ...subtract(stored, number), sign: 0 };
  const [up, down] = pow2(-ulpPower(number, fmt));
  const gaps = aboutText(finite(0, error.num * up, error.den * down), 2, 2).replace("about ", "");
  const tie = result.tie ? " A tie: of two equally near, the one whose last bit is 0." : "";
  const side = subtract(stored, number).sign ? "low" : "high";
  const off = `${aboutText(error)} too ${side}, which is ${gaps} of the gap here (${gaps} ulp)`;
  return `${typed} is not ${aNumberOf(fmt)}: ${text} is stored, ${off}.${tie}`;
}

const aNumberOf = ({ label }) => `${/^[AEIO]/.test(label) ? "an" : "a"} ${label} number`;

function explainOverflow(typed, text, fmt, saturate) {
  const largest = briefText(namedCode("largest", fmt), fmt);
  const beyond = `${typed} is beyond ${largest}, the largest value of ${fmt.label}:`;
  if (saturate || !fmt.has_nan) return `${beyond} the conversion saturates, ${text} is stored.`;
  if (fmt.has_inf) return `${beyond} it overflows to ${text}.`;
  return `${beyond} with no infinity here it becomes NaN. (Saturating, it would be ${largest}.)`;
}

/** What a step to a neighbour did. */
export function explainStep(direction, before, after, fmt) {
  const [a, b] = [classify(before, fmt), classify(after, fmt)];
  const opening = `One step ${direction}: ${briefText(before, fmt)} became ${briefText(after, fmt)}.`;
  if (b === "infinity") return `${opening} Past the last finite value there is infinity.`;
  if (a !== b && b === "subnormal") return `${opening} From here toward 0 the numbers are subnormal, evenly spaced.`;
  if (a === "subnormal" && b === "normal") return `${opening} The normal numbers begin here.`;
  return opening;
}
