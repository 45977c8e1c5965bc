// What BitFlip tells of a goal's way and of its end: the hints in their order, and what was learned. Pure functions.

import {
  decode, fields, finite, floorLog2, namedCode, pow2, sameNumber, subtract, toHex, valueOf,
} from "../shared/numbers/codec.js";
import { aboutText, briefText, parseNumber } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { goalCode } from "./goals.js";

/** Hints of a goal in the order in which they are given: its own, then its power of two, its exponent field, its bits. */
export function hintsOf(goal, fmt) {
  const target = goalCode(goal, fmt);
  if (target === null) return [...(goal.hints ?? []), ...hintsTowardNaN(fmt)];
  const aim = decode(target, fmt);
  const hints = [sizeHint(goal, aim, fmt), exponentHint(aim, fmt), `The bits: ${bitsText(target, fmt)}.`];
  return [...(goal.hints ?? []), ...hints];
}

function hintsTowardNaN(fmt) {
  const bits = `The bits, for example: ${bitsText(namedCode("nan", fmt), fmt)}.`;
  const top = 2 ** fmt.exponent_bits - 1;
  if (fmt.specials === "negative_zero") {
    return [`${fmt.label} has one zero and one NaN: NaN has the code that would be −0.`, "The exponent field holds 0, and so does the fraction field.", bits];
  }
  const rule = fmt.specials === "ieee" ? "NaN shares the highest exponent field with infinity; its fraction is not 0."
    : `${fmt.label} sets aside no exponent field: only all ones${fmt.signed ? " after the sign" : ""} is NaN.`;
  return [rule, `The exponent field holds ${top}: all its bits are 1.`, bits];
}

// 1, 2, 1/4; far from 1 the power itself.
const powerName = (e) => (Math.abs(e) > 10 ? `2${superscript(e)}` : e < 0 ? `1/${2 ** -e}` : String(2 ** e));

const minus = (n) => String(n).replace("-", "−");

function sizeHint(goal, aim, fmt) {
  const special = kindRule(goal.kind ?? "", aim, fmt);
  if (special) return special;
  const text = (goal.value ?? "1").trim();
  const number = parseNumber(text);
  const shown = text.replace(/^[-+−]/, "");
  const opening = number.sign ? `The sign has a bit of its own; the size is ${shown}. ` : "";
  if (aim.kind === "subnormal") return `${opening}${shown} lies below 2${superscript(fmt.emin)}, the smallest normal number of ${fmt.label}: it is subnormal.`;
  const e = aim.exponent - fmt.bias;
  const power = powerName(e).startsWith("2") && Math.abs(e) > 10 ? powerName(e) : `${powerName(e)} = 2${superscript(e)}`;
  if (floorLog2(number.num, number.den) !== e) return `${opening}${shown} rounds to a power of two: ${power}.`;
  const [up, down] = pow2(e);
  if (number.num * down === number.den * up) return `${opening}${shown} is a power of two itself: 2${superscript(e)}.`;
  return `${opening}${shown} lies between ${powerName(e)} and ${powerName(e + 1)}. The power of two at or below it is ${power}.`;
}

function kindRule(kind, aim, fmt) {
  if (kind === "largest") {
    const taken = {
      ieee: "The highest exponent field is taken for infinity and NaN, the one below it is free.",
      all_ones: `Only the code of all ones${fmt.signed ? " after the sign" : ""} is taken, for NaN.`,
    };
    return `The largest number has as many ones as a number may have. ${taken[fmt.specials] ?? "No code above it is taken for anything else."}`;
  }
  if (kind === "smallest_normal") {
    return fmt.has_zero ? "A normal number has an exponent field that is not 0. The smallest has the lowest such field, and nothing in its fraction."
      : `${fmt.label} has neither zero nor subnormal numbers: every exponent field is a power of two, and the lowest is the smallest.`;
  }
  if (aim.kind === "zero") {
    return aim.sign ? "Zero exists twice. The sign bit is stored, even where there is no size." : "Zero has no power of two: nothing of it has a size.";
  }
  if (aim.kind === "infinity") return "Infinity has a code of its own, above the largest number: the highest exponent field, and nothing in the fraction.";
  if (kind.endsWith("subnormal")) {
    const which = kind.startsWith("largest") ? "The largest has all of it." : "The smallest has the least of it.";
    return `A subnormal number has no leading 1: its size is in the fraction alone. ${which}`;
  }
  return null;
}

function exponentHint(aim, fmt) {
  if (aim.kind === "infinity") return `The exponent field holds ${aim.exponent}: all its bits are 1.`;
  if (aim.kind === "zero") return "The exponent field holds 0: there the leading 1 is gone.";
  if (aim.kind === "subnormal") {
    return `The exponent field holds 0. It stands for the power ${minus(fmt.emin)}, as field 1 does, and the leading 1 is gone.`;
  }
  const e = aim.exponent - fmt.bias;
  return `The exponent field holds the power plus the bias: ${minus(e)} + ${fmt.bias} = ${aim.exponent}.`;
}

// "sign 0, exponent 01111 (15), fraction 1000000000 (512)"
function bitsText(code, fmt) {
  const { sign, exponent, fraction } = fields(code, fmt);
  const field = (name, n, width) => (width ? [`${name} ${n.toString(2).padStart(width, "0")} (${n})`] : []);
  return [
    ...(fmt.signed ? [`sign ${sign}`] : []),
    ...field("exponent", exponent, fmt.exponent_bits), ...field("fraction", fraction, fmt.mantissa_bits),
  ].join(", ");
}

/** What was learned with a goal: its own words, else the value, the code and its fields, and how far off a rounded value is. */
export function solvedText(goal, code, fmt) {
  if (goal.solved) return goal.solved;
  const { kind, sign, exponent, fraction } = decode(code, fmt);
  const stands = kind === "normal" ? ` for 2${superscript(exponent - fmt.bias)}` : "";
  const parts = [`exponent field ${exponent}${stands}`];
  if (fmt.signed) parts.unshift(`sign ${sign}`);
  if (fmt.mantissa_bits) parts.push(`fraction field ${fraction} of ${1n << BigInt(fmt.mantissa_bits)}`);
  const off = goal.value ? percentOff(parseNumber(goal.value), valueOf(code, fmt)) : null;
  const brief = briefText(code, fmt);
  const steps = kind === "subnormal" && brief.startsWith("≈")
    ? `${sign ? "−" : ""}${fraction === 1n ? "" : `${fraction} × `}2${superscript(fmt.emin - fmt.mantissa_bits)} ` : "";
  const value = off ? `${goal.value.trim().replace("-", "−")} becomes ${brief}, ${off} off. Its code` : `${steps}${brief}`;
  return `${value} is ${toHex(code, fmt)}: ${parts.join(", ")}.`;
}

// "4.17 %"; null where nothing was rounded, or where no finite number came of it.
function percentOff(meant, stored) {
  if (stored.kind !== "finite" || meant.num === 0n || sameNumber(meant, stored)) return null;
  const error = subtract(stored, meant);
  return `${aboutText(finite(0, 100n * error.num * meant.den, error.den * meant.num), 3)} %`;
}
