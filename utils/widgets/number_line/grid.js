// The values of a format as a grid on the line, exactly: places, bins, and what each rule makes of a number.
//
// A place is a BigInt that counts the values from zero: the place of a value is its code without the sign, negated
// where it is negative. In E8M0, which has no zero, place 0 is the smallest value. One place past each end is the
// point where the grid would go on; it decides what overflows.

import {
  classify, encode, fields, finite, floorLog2, pow2, round, ROUNDINGS, subtract,
} from "../shared/numbers/codec.js";

/** The last place of a format, that of its largest value. */
export const lastPlace = (fmt) => BigInt(fmt.max_code);

/** The first place: that of the smallest value, or of the most negative one. */
export const firstPlace = (fmt) => (fmt.signed ? -lastPlace(fmt) : 0n);

/** A signed fraction as a number of shared/numbers/codec.js. */
export const numberFrom = (num, den = 1n) => finite(num < 0n ? 1 : 0, num < 0n ? -num : num, den);

/** The numerator of a finite number, with its sign. */
export const signedNum = ({ sign, num }) => (sign ? -num : num);

/** -1, 0 or 1 as a is below, at or above b; both finite. */
export function compareNumbers(a, b) {
  const [left, right] = [signedNum(a) * b.den, signedNum(b) * a.den];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The value at a place, as far as one past the end. */
export function valueAtPlace(place, fmt) {
  const size = place < 0n ? -place : place;
  const M = BigInt(fmt.mantissa_bits);
  const hidden = 1n << M;
  const field = size >> M;
  const normal = field > 0n || !fmt.has_zero;
  const e = normal ? Number(field) - fmt.bias : fmt.emin;
  const [up, down] = pow2(e - fmt.mantissa_bits);
  return finite(place < 0n ? 1 : 0, ((size & (hidden - 1n)) + (normal ? hidden : 0n)) * up, down);
}

/** The code of the value at a place; zero as +0. */
export const codeAtPlace = (place, fmt) =>
  (place < 0n ? -place | (1n << BigInt(fmt.bits - 1)) : place);

/** The place of a finite code, null for an infinity or NaN. */
export function placeOfCode(code, fmt) {
  const kind = classify(code, fmt);
  if (kind === "nan" || kind === "infinity") return null;
  const { sign } = fields(code, fmt);
  const size = fmt.signed ? code & ((1n << BigInt(fmt.bits - 1)) - 1n) : code;
  return sign ? -size : size;
}

/**
 * Where a finite number lies: { place, exact, share }: the place at or below it, whether it is that value, and how far
 * it is on the way to the next place, as { num, den } from 0 up to but not at 1.
 *
 * Past the ends: the place is one past the end (above), or one below that (below), and the share is 0. Below the
 * smallest value of E8M0 the place is -1.
 */
export function placeBelow(number, fmt) {
  const none = { num: 0n, den: 1n };
  const end = lastPlace(fmt);
  if (!fmt.has_zero && (number.sign || number.num === 0n)) return { place: -1n, exact: false, share: none };
  if (number.num === 0n) return { place: 0n, exact: true, share: none };
  const e = Math.max(floorLog2(number.num, number.den), fmt.emin);
  const [down, up] = pow2(e - fmt.mantissa_bits);
  const [top, bottom] = [number.num * up, number.den * down];
  const M = BigInt(fmt.mantissa_bits);
  const size = top / bottom + (BigInt(e - fmt.emin) << M) - (fmt.has_zero ? 0n : 1n << M);
  const rest = top % bottom;
  if (size < 0n) return { place: -1n, exact: false, share: none };
  if (size > end) {
    const exact = size === end + 1n && rest === 0n;
    return { place: number.sign && !exact ? -end - 2n : number.sign ? -end - 1n : end + 1n, exact, share: none };
  }
  if (rest === 0n) return { place: number.sign ? -size : size, exact: true, share: none };
  if (number.sign) return { place: -size - 1n, exact: false, share: { num: bottom - rest, den: bottom } };
  return { place: size, exact: false, share: { num: rest, den: bottom } };
}

/** How many values lie from low to high, both included: a BigInt. */
export function countBetween(low, high, fmt) {
  const { first, last } = placesBetween(low, high, fmt);
  return last < first ? 0n : last - first + 1n;
}

/** The first and the last place from low to high; last < first where there is none. */
export function placesBetween(low, high, fmt) {
  const from = placeBelow(low, fmt);
  const to = placeBelow(high, fmt);
  const [least, most] = [firstPlace(fmt), lastPlace(fmt)];
  const first = from.exact ? from.place : from.place + 1n;
  return { first: first < least ? least : first, last: to.place > most ? most : to.place };
}

/** The point half way between a place and the next. */
export function halfwayAfter(place, fmt) {
  const [a, b] = [valueAtPlace(place, fmt), valueAtPlace(place + 1n, fmt)];
  return numberFrom(signedNum(a) * b.den + signedNum(b) * a.den, 2n * a.den * b.den);
}

/** Whether the significand at a place ends in 1; that of E8M0 is always 1. */
export const endsInOne = (place, fmt) => fmt.mantissa_bits === 0 || (place & 1n) === 1n;

/** Which of two neighbours gets the number half way between them: the place itself or the next. */
export function tieWinner(place, fmt, rule) {
  const away = place < 0n ? place : place + 1n;
  const toZero = place < 0n ? place + 1n : place;
  if (rule === "ties_away") return away;
  return endsInOne(toZero, fmt) ? away : toZero;
}

/** The border between the bins of a place and the next: { at, upper }, upper: whether `at` itself goes up. */
export function borderAfter(place, fmt, rule) {
  if (rule === "ties_to_even" || rule === "ties_away") {
    return { at: halfwayAfter(place, fmt), upper: tieWinner(place, fmt, rule) > place, tie: true };
  }
  const down = rule === "toward_negative" || (rule === "toward_zero" && place >= 0n);
  return { at: valueAtPlace(down ? place + 1n : place, fmt), upper: down, tie: false };
}

/**
 * All numbers that a rule sends to one value: { from, to, fromClosed, toClosed }; null for an end that is not there.
 * Not for stochastic rounding. What saturates has a bin of its own (overflowFrom), and so have the NaNs of E8M0.
 */
export function binOf(place, fmt, rule) {
  const below = place === 0n && !fmt.has_zero ? { at: finite(0, 0n), upper: false } : borderAfter(place - 1n, fmt, rule);
  const above = borderAfter(place, fmt, rule);
  const openDown = place === -lastPlace(fmt) && !overflows(fmt, rule, 1);
  const openUp = place === lastPlace(fmt) && !overflows(fmt, rule, 0);
  return {
    from: openDown ? null : below.at, fromClosed: !openDown && below.upper,
    to: openUp ? null : above.at, toClosed: !openUp && !above.upper,
  };
}

/** Whether some finite number of a sign overflows under a rule. */
export function overflows(fmt, rule, sign) {
  if (sign && !fmt.signed) return false;
  return !(rule === "toward_zero" || rule === (sign ? "toward_positive" : "toward_negative"));
}

/** What is stored for a number past the end: its code, and "infinity", "nan" or "saturates". */
export function pastEnd(fmt, sign, saturate) {
  const how = saturate || !fmt.has_nan ? "saturates" : fmt.has_inf ? "infinity" : "nan";
  return { how, code: encode({ kind: "infinity", sign, num: 0n, den: 1n }, fmt, { saturate }) };
}

/**
 * What each rule makes of a finite number, and with which probability: for every rule of ROUNDINGS a list of
 * { code, chance }, chance as { num, den }; one entry, but up to two for stochastic rounding, the lower one first.
 */
export function resultsOf(number, fmt, { saturate = false } = {}) {
  const sure = { num: 1n, den: 1n };
  const one = (rounding) => round(number, fmt, { rounding, saturate }).code;
  const results = {};
  for (const rule of ROUNDINGS) {
    if (rule !== "stochastic") results[rule] = [{ code: one(rule), chance: sure }];
  }
  results.stochastic = chancesOf(number, fmt).map(({ up, chance }) =>
    ({ code: up === null ? one("ties_to_even") : one(up ? "toward_positive" : "toward_negative"), chance }));
  if (results.stochastic.length === 2 && results.stochastic[0].code === results.stochastic[1].code) {
    results.stochastic = [{ code: results.stochastic[0].code, chance: sure }];
  }
  return results;
}

/** Where stochastic rounding sends a number: { up, chance } for each way it can go; up is null where there is one way. */
export function chancesOf(number, fmt) {
  const { place, exact, share } = placeBelow(number, fmt);
  if (exact || share.num === 0n || place < firstPlace(fmt) - 1n || place > lastPlace(fmt)) {
    return [{ up: null, chance: { num: 1n, den: 1n } }];
  }
  return [
    { up: false, chance: { num: share.den - share.num, den: share.den } },
    { up: true, chance: share },
  ];
}

/** Draw `count` times with the chances of stochastic rounding: how often each entry of its results came. */
export function rollResults(outcomes, count, random = Math.random) {
  if (outcomes.length === 1) return [count];
  const { num, den } = outcomes[1].chance;
  let ups = 0;
  for (let i = 0; i < count; i += 1) if (BigInt(Math.floor(random() * 2 ** 53)) * den < num << 53n) ups += 1;
  return [count - ups, ups];
}

/** The value of the format next to a number, the tie to the even one, and the distance; overflow set aside. */
export function nearestValue(number, fmt) {
  const { place, exact, share } = placeBelow(number, fmt);
  const [least, most] = [firstPlace(fmt), lastPlace(fmt)];
  const twice = 2n * share.num;
  const up = !exact && (twice > share.den || (twice === share.den && tieWinner(place, fmt, "ties_to_even") > place));
  const nearest = up ? place + 1n : place;
  const inside = nearest < least ? least : nearest > most ? most : nearest;
  const value = valueAtPlace(inside, fmt);
  return { place: inside, value, distance: { ...subtract(value, number), sign: 0 } };
}
