// Goals of BitFlip: which code is meant, and what to tell a reader who is not there yet. Pure functions.

import { bitLength, classify, decode, encode, fieldOfBit, finite, namedCode } from "../shared/numbers/codec.js";
import { aboutText, parseNumber } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";

/** The code that a goal asks for; null for a kind with several codes (any NaN). */
export function goalCode(goal, fmt) {
  if (goal.kind === "nan") return null;
  return goal.kind ? namedCode(goal.kind, fmt) : encode(parseNumber(goal.value), fmt);
}

export function isGoalMet(goal, code, fmt) {
  return goal.kind === "nan" ? classify(code, fmt) === "nan" : code === goalCode(goal, fmt);
}

/** What to say on the way from a code to the goal: the misconception where one can be seen, else the next step. */
export function diagnose(goal, code, fmt) {
  const target = goalCode(goal, fmt);
  const now = decode(code, fmt);
  if (target === null) return towardNaN(now, fmt);
  const aim = decode(target, fmt);
  const text = aboutTooFar(goal, now, aim, code - target) ?? aboutClass(goal, now, aim, fmt) ?? aboutSign(now, aim) ??
    aboutBiasAndLead(now, aim, fmt) ??
    aboutOneBit(code ^ target, fmt) ?? aboutFields(now, aim, fmt) ?? aboutPower(goal, now, aim, fmt) ?? aboutBits(code, target, fmt);
  const signToo = now.sign !== aim.sign && now.kind !== "nan" && !/sign/.test(text);
  return signToo ? `${text} The sign is still wrong too.` : text;
}

const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

const ones = (n) => n.toString(2).replaceAll("0", "").length;

function towardNaN(now, fmt) {
  if (now.kind === "infinity") return "Infinity: you are close. NaN has the same exponent, and a fraction that is not 0.";
  const set = `here ${ones(now.exponent)} of ${fmt.exponent_bits} are set`;
  if (fmt.specials === "ieee") return `Not yet: NaN starts with an exponent field of all ones; ${set}.`;
  if (fmt.specials === "all_ones") {
    const only = fmt.signed ? "one NaN for each sign, with every bit after the sign set" : "one NaN, with every bit set";
    return `Not yet: this format has ${only}. Of the exponent bits ${set}.`;
  }
  return "Not yet: this format gives NaN a code that other formats use for a kind of zero.";
}

// Past the largest number; only the next code is one step away.
function aboutTooFar(goal, now, aim, steps) {
  if (goal.kind !== "largest" || aim.kind !== "normal" || !["infinity", "nan"].includes(now.kind)) return null;
  return `${steps === 1n ? "One step too far" : "Too far"}: this is ${now.kind === "nan" ? "NaN" : "infinity"}.`;
}

function aboutClass(goal, now, aim, fmt) {
  if (now.kind === "infinity" && aim.kind !== "infinity") {
    return "That is infinity: all exponent bits are 1. Clear one of them.";
  }
  if (now.kind === "nan") {
    if (aim.kind === "infinity") return "That is NaN: for infinity the fraction must be 0.";
    return "That is NaN, not a number. Change a bit back.";
  }
  if (aim.kind === "infinity") {
    const set = `${ones(now.exponent)} of ${fmt.exponent_bits} exponent bits`;
    return `A finite number so far, with ${set} set. Infinity has an exponent field of all ones and a fraction of 0.`;
  }
  if (aim.kind === "subnormal" && now.kind === "normal") {
    const edge = now.exponent === 1 && now.fraction === 0n;
    return edge ? "That is the smallest normal number. Below it, with exponent field 0, lie the subnormal ones."
      : `That is a normal number: its exponent field is ${now.exponent}. A subnormal one has exponent field 0.`;
  }
  if (aim.kind === "normal" && (now.kind === "subnormal" || now.kind === "zero")) {
    const what = now.kind === "zero" ? "zero" : "a subnormal number";
    return `That is ${what}: its exponent field is 0. A normal number has at least one exponent bit set.`;
  }
  if (goal.kind === "largest" && fmt.specials === "all_ones" && now.exponent === aim.exponent - 1 && isFull(now.fraction, fmt)) {
    return "The largest, if the top exponent were reserved as in IEEE 754. This format uses it for numbers: go on.";
  }
  return null;
}

const isFull = (fraction, fmt) => fraction === (1n << BigInt(fmt.mantissa_bits)) - 1n;

function aboutSign(now, aim) {
  if (now.significand !== aim.significand || now.power !== aim.power || now.sign === aim.sign) return null;
  if (aim.kind === "zero") return aim.sign ? "That is zero, the positive one. The other zero differs in one bit." : "That is −0. The sign bit does not count as size, but it is stored.";
  return "The right size with the wrong sign.";
}

// The two classic slips: the exponent stored without its bias, the leading 1 stored with the fraction.
function aboutBiasAndLead(now, aim, fmt) {
  if (now.kind !== "normal" || aim.kind !== "normal") return null;
  const unbiased = aim.exponent - fmt.bias; // where that is the field of 1, the reader may not have touched it yet
  if (now.exponent === unbiased && unbiased !== fmt.bias) {
    return `You stored the exponent itself, ${now.exponent}. What is stored is the exponent plus the bias: ${now.exponent} + ${fmt.bias}.`;
  }
  const withLead = ((1n << BigInt(fmt.mantissa_bits)) | aim.fraction) >> 1n;
  if (now.exponent === aim.exponent && aim.fraction !== 0n && now.fraction === withLead) {
    return "It looks as if you stored the leading 1 as well. A normal number has it for free: the fraction starts after the point.";
  }
  return null;
}

function aboutOneBit(difference, fmt) {
  if (difference & (difference - 1n)) return null;
  return `One bit is still wrong, in the ${fieldOfBit(bitLength(difference) - 1, fmt)}.`;
}

function aboutFields(now, aim, fmt) {
  if (aim.kind !== "normal" && aim.kind !== "subnormal") return null;
  if (now.exponent === aim.exponent) {
    const side = now.fraction < aim.fraction ? "small" : "large";
    return `The exponent is right. Now the fraction: ${now.fraction} of ${1n << BigInt(fmt.mantissa_bits)} is too ${side}.`;
  }
  if (now.fraction === aim.fraction && aim.fraction !== 0n) {
    const steps = aim.exponent - now.exponent;
    return `The fraction is right. The exponent field is ${Math.abs(steps)} too ${steps > 0 ? "small" : "large"}.`;
  }
  return null;
}

// Two normal numbers with different powers of two: the distance is counted in these, not in the value.
function aboutPower(goal, now, aim, fmt) {
  if (aim.kind !== "normal") return null;
  const power = ({ exponent }) => `2${superscript(exponent - fmt.bias)}`;
  const significand = aboutText(finite(0, now.significand, 1n << BigInt(fmt.mantissa_bits)));
  const here = `Not yet: this is ${power(now)}${fmt.mantissa_bits ? ` × ${significand}` : ""}.`;
  const side = aim.exponent > now.exponent ? "higher" : "lower";
  const names = { largest: "largest number", smallest_normal: "smallest normal number" };
  if (goal.kind in names) return `${here} The ${names[goal.kind]} lies at a ${side} power of two.`;
  const away = Math.abs(aim.exponent - now.exponent);
  return `${here} The target lies ${away} ${away === 1 ? "power" : "powers"} of two ${side}, at ${power(aim)}.`;
}

// What is left is zero as the target.
function aboutBits(code, target, fmt) {
  const size = (1n << BigInt(fmt.exponent_bits + fmt.mantissa_bits)) - 1n;
  return `Not yet: zero has no bit set after the sign; here ${count(ones((code ^ target) & size), "bit")} of these still to clear.`;
}
