// What Swamping says and draws of one addition: the bits one under the other, what falls off, why a sum stalls.

import {
  bitLength, finite, floorLog2, namedCode, pow2, round, sameNumber, subtract, ulpPower, valueOf,
} from "../shared/numbers/codec.js";
import { asDouble, exactNumber } from "../shared/numbers/double_rounding.js";
import {
  aboutText, briefText, decimalDigits, NumberTextError, parseNumber,
} from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { hasStalled } from "./sums.js";

const FEWEST_COLUMNS = 28;

/** A number as text in a table: all digits where there are at most ten, else eight after "≈". */
export const sumText = (number) => aboutText(number, 10, 8).replace("about ", "≈\u00a0");

const plus = (a, b) => subtract(a, { ...b, sign: 1 - b.sign });
const sizeOf = (number) => ({ ...number, sign: 0 });
const isZero = ({ kind, num }) => kind === "finite" && num === 0n;
const powerNumber = (power) => finite(0, ...pow2(power));

/** The power of the last bit that is 1. */
function lastBitPower({ num, den }) {
  let power = -(bitLength(den) - 1);
  for (let rest = num; rest % 2n === 0n; rest /= 2n) power += 1;
  return power;
}

/** Read what shall be added, or where to start: { number, value }, its exact value and the format's, as a double. */
export function readTerm(text, fmt, { zero = false } = {}) {
  const number = parseNumber(text);
  const shown = text.trim().length <= 24 ? text.trim() : aboutText(number);
  if (number.kind !== "finite") throw new NumberTextError(`${shown} is no number to count with. Try 1, 0.1, 1/3 or -2^-7.`);
  const { code, overflow } = round(number, fmt);
  if (overflow) {
    throw new NumberTextError(`${shown} is beyond ${briefText(namedCode("largest", fmt), fmt)}, the largest value of ${fmt.label}.`);
  }
  const value = asDouble(valueOf(code, fmt));
  if (value === 0 && !zero) {
    const least = briefText(namedCode("smallest_subnormal", fmt), fmt);
    const becomes = number.num === 0n ? "Adding 0 changes no sum." : `${shown} is 0 in ${fmt.label}, whose smallest value is ${least}.`;
    throw new NumberTextError(`${becomes} Add a larger number.`);
  }
  return { number, value, exact: sameNumber(number, valueOf(code, fmt), { signs: false }) };
}

/** The number as text that Python's Fraction reads too: what was typed, if it is of that kind, else a quotient. */
export function plainNumberText(text, number) {
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) || /^[+-]?\d+\/\d+$/.test(text.trim())) return text.trim();
  const factor = commonFactor(number.num, number.den);
  const [num, den] = [number.num / factor, number.den / factor];
  return `${number.sign ? "-" : ""}${num}${den === 1n ? "" : `/${den}`}`;
}

function commonFactor(a, b) {
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}

/**
 * The addition a + b in a format, written out: rows of bits under each other, from the power `top` down to `low`.
 *
 * Returns { rows, top, low, end, more, exact, rest, result }: `end` is the power of the result's last bit, what is below
 * it falls off; `more` how many columns with a 1 there is no room for, all up to the last of them. A row is { label, number, bits }; a bit is "0", "1" or "".
 */
export function alignedAddition(a, b, fmt) {
  const exact = plus(a, b);
  const result = round(exact, fmt);
  const stored = valueOf(result.code, fmt);
  const end = ulpPower(exact, fmt);
  const terms = [a, b, exact, ...(stored.kind === "finite" ? [stored] : [])].filter((number) => !isZero(number));
  const top = Math.max(end, ...terms.map(({ num, den }) => floorLog2(num, den)));
  const lows = (power) => [a, b].filter((number) => !isZero(number)).map((number) => power(number, fmt));
  const all = top - Math.min(end, ...lows(ulpPower)) + 1;
  const columns = Math.min(all, Math.max(FEWEST_COLUMNS, fmt.mantissa_bits + 11));
  const low = top - columns + 1;
  const bits = (number, last) => {
    if (number.kind !== "finite") return Array(columns).fill("");
    const first = isZero(number) ? last : floorLog2(number.num, number.den);
    return Array.from({ length: columns }, (_, i) => {
      const power = top - i;
      if (power > first || power < last) return "";
      const [up, down] = pow2(power);
      return String((number.num * down / (number.den * up)) & 1n);
    });
  };
  const rows = [
    { label: "sum", number: a, bits: bits(a, isZero(a) ? end : ulpPower(a, fmt)) },
    { label: a.sign === b.sign || isZero(a) ? "+ increment" : "− increment", number: b, bits: bits(b, ulpPower(b, fmt)) },
    { label: "= exactly", number: exact, bits: bits(exact, isZero(exact) ? end : Math.min(end, lastBitPower(exact))) },
    { label: "stored", number: stored, bits: bits(stored, stored.kind === "finite" ? Math.max(end, ulpPower(stored, fmt)) : end) },
  ];
  const [up, down] = pow2(end);
  const scaled = { num: exact.num * down, den: exact.den * up };
  const more = Math.max(0, low - Math.min(...lows(lastBitPower)));
  return { rows, top, low, end, more, exact, rest: finite(0, scaled.num % scaled.den, scaled.den), result, stored };
}

// A gap is a power of two: as a number where that is short, else as a power.
function gapText(power) {
  const gap = powerNumber(power);
  return decimalDigits(gap, 5).exact ? sumText(gap) : `2${superscript(power)}`;
}

const ratioText = (number) => aboutText(number, 4, 2).replace("about ", "≈\u00a0");

/** The increment against the ulp, the gap at the result: "ulp here 2, increment 1 = 0.5 ulp". */
export function ulpText(increment, end) {
  const [up, down] = pow2(-end);
  const share = finite(0, increment.num * up, increment.den * down);
  return `ulp here ${gapText(end)}, increment ${sumText(sizeOf(increment))} = ${ratioText(share)} ulp`.replace("= ≈", "≈");
}

/** What became of one addition, in one sentence or two. */
export function explainAddition(a, b, fmt) {
  const { rest, result, stored, end, exact } = alignedAddition(a, b, fmt);
  const value = sumText(stored);
  if (result.overflow) {
    const largest = briefText(namedCode("largest", fmt), fmt);
    return `${sumText(exact)} is beyond ${largest}, the largest value of ${fmt.label}: the sum overflows to ${value}.`;
  }
  if (result.exact) return "The exact sum is itself a number of the format: nothing is rounded.";
  const gap = gapText(end);
  const offset = `${ratioText(rest)} of the gap ${gap}`;
  if (result.tie) return `What falls off is half of the gap ${gap}: a tie. It goes to the neighbour whose last bit is 0, ${value}.`;
  const grew = subtract(sizeOf(stored), sizeOf(exact)).sign === 0;
  return grew
    ? `What falls off is ${offset}, more than half: the last bit grows by one, and ${value} is stored.`
    : `What falls off is ${offset}, less than half: it is dropped, and ${value} is stored.`;
}

/** Why a sum has stalled, in one sentence; "" if it has not. */
export function stallSentence(sum) {
  if (!hasStalled(sum)) return "";
  const { fmt, plain, increment } = sum;
  if (!Number.isFinite(plain)) {
    return `The sum has left the range of ${fmt.label} and is ${sumText(exactNumber(plain))} from now on: no gap was wide enough to stop it.`;
  }
  const [a, b] = [exactNumber(plain), exactNumber(increment)];
  const { result, end } = alignedAddition(a, b, fmt);
  const gap = gapText(end);
  const reason = result.tie
    ? `the increment is half of the gap ${gap}, and a tie goes to the neighbour whose last bit is 0, which is the sum itself`
    : `the increment is less than half of the gap ${gap} to the next number`;
  return `The sum has stalled at ${sumText(a)}: ${reason}.`;
}

/** The share of all that was added that a lane has lost or gained, as text; its sum, the exact one and the start are numbers. */
export function lostText(lane, exact, start) {
  const added = subtract(exact, start);
  if (lane.kind !== "finite" || isZero(added)) return "–";
  const off = subtract(exact, lane);
  if (isZero(off)) return "0 %";
  const share = finite(off.sign ^ added.sign, off.num * added.den * 100n, off.den * added.num);
  const gained = share.sign ? "gained " : "";
  if (share.num * 1000n < share.den) return `${gained}< 0.001 %`;
  return `${gained}${aboutText(sizeOf(share), 3, 3).replace("about ", "")} %`;
}

/** Kahan's last step as three lines of arithmetic, by the names of the chapter, and what the excess means for the next. */
export function kahanStep(sum) {
  const { increment } = sum;
  const { kahan: total, c: excess } = sum.before ?? { kahan: sum.start, c: 0 };
  const { wanted, grown, left } = kahanNumbers(sum, total, excess);
  const bare = (x) => aboutText(exactNumber(x), 9, 5).replace("about ", "");
  const bracket = (x) => (x < 0 ? `(${bare(x)})` : bare(x));
  const isShort = (number) => !aboutText(number, 9, 5).startsWith("about");
  // used: doubles whose sum is the exact result
  const line = (text, right, used) => {
    const numbers = [...used, right].map(exactNumber);
    if (!numbers.every(isShort)) return `${text} ≈ ${bare(right)}`;
    if (![...used, right].every(Number.isFinite)) return `${text} = ${bare(right)}`;
    const exact = numbers.slice(0, -1).reduce(plus);
    return sameNumber(exact, numbers.at(-1), { signs: false })
      ? `${text} = ${bare(right)}`
      : `${text} = ${aboutText(exact, 9, 5).replace("about ", "≈\u00a0")} → ${bare(right)}`;
  };
  const lines = [
    ["wanted", line(`${bare(increment)} − ${bracket(excess)}`, wanted, [increment, -excess]), "the increment minus the excess, rounded: a negative excess is what the sum lacks"],
    ["grown", line(`${bare(total)} + ${bracket(wanted)}`, grown, [total, wanted]), "the new sum, rounded"],
    ["excess", line(`(${bare(grown)} − ${bracket(total)}) − ${bracket(wanted)}`, left, [grown, -total, -wanted]), "what was added, less what was wanted"],
  ];
  return { lines, why: excessSentence(left, wanted) };
}

function kahanNumbers({ increment, near }, total, excess) {
  const wanted = near(increment - excess);
  const grown = near(total + wanted);
  return { wanted, grown, left: near(near(grown - total) - wanted) };
}

function excessSentence(excess, wanted) {
  if (!Number.isFinite(excess)) return "After an overflow there is nothing left to compensate.";
  if (excess === 0) return "excess = 0: the sum took all that was wanted, and nothing is left over.";
  const size = sumText(sizeOf(exactNumber(excess)));
  return (excess < 0) === (wanted > 0)
    ? `The sum took ${size} too little. excess keeps it, and the next wanted is larger by that much: the lost part comes back.`
    : `The sum took ${size} too much. excess keeps it, and the next wanted is smaller by that much: the debt is paid back.`;
}

/** Why Kahan's sum has stopped as well, in one sentence; "" while it goes on. */
export function kahanStopSentence(sum) {
  const { fmt, increment, kahan, c } = sum;
  const { grown, left } = kahanNumbers(sum, kahan, c);
  if (!Number.isFinite(kahan) || !Object.is(grown, kahan) || left !== c) return "";
  const here = `Kahan’s sum has stopped too, at ${sumText(exactNumber(kahan))}`;
  if (!fmt.has_inf && !fmt.has_nan && sameNumber(sizeOf(exactNumber(kahan)), valueOf(namedCode("largest", fmt), fmt))) {
    return `${here}, the largest value of ${fmt.label}.`;
  }
  return `${here}: ${sumText(exactNumber(increment))} more changes neither the sum nor the excess, ${sumText(exactNumber(c))}, since both are rounded.`;
}
