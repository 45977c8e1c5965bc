// What NumberLine says: plain text from exact numbers.

import { finite, subtract, ulpPower, valueOf } from "../shared/numbers/codec.js";
import { aboutText, briefText, decimalDigits, digitsText } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import {
  chancesOf, compareNumbers, countBetween, firstPlace, halfwayAfter, lastPlace, nearestValue, overflows, pastEnd,
  placeBelow, placeOfCode, resultsOf, tieWinner, valueAtPlace,
} from "./grid.js";
import { isInView, powerOfTwo, sumOfNumbers, timesFraction, viewWidth } from "./view.js";

export const RULE_NAMES = {
  ties_to_even: "ties to even", ties_away: "ties away", toward_zero: "toward zero",
  toward_positive: "toward +∞", toward_negative: "toward −∞", stochastic: "stochastic",
};

/** A power of two in short: "2⁻³". */
export const powerName = (power) => `2${superscript(power)}`;

export const shortly = (text) => text.replace("about ", "≈\u00a0");

// Texts of values that were asked for lately: while x is dragged the same few return, and those of float64 are costly.
const placeTexts = new Map();
const MOST_TEXTS = 500;

/** The value at a place as text: exact if `most` digits do, else with so many that no other value has the same. */
export function placeText(place, fmt, most = 12) {
  const key = `${fmt.name} ${place} ${most}`;
  if (!placeTexts.has(key)) {
    const enough = Math.ceil((fmt.mantissa_bits + 1) * Math.LOG10E * Math.LN2) + 1;
    if (placeTexts.size >= MOST_TEXTS) placeTexts.clear();
    placeTexts.set(key, shortly(aboutText(valueAtPlace(place, fmt), most, enough)));
  }
  return placeTexts.get(key);
}

/** "= 0.25", or "≈ 0.333". */
const equalsText = (number, most, few = 3) => {
  const text = aboutText(number, most, few);
  return text.startsWith("about ") ? shortly(text) : `= ${text}`;
};

/** x as the reader wrote it, where that is short. */
export function xText(x, shown = null) {
  if (shown !== null && shown.trim().length <= 18) return shown.trim().replace(/^-/, "−");
  return shortly(aboutText(x, 14, 6));
}

/** A probability: "60 %", "33.3 %", "below 0.1 %". */
export function chanceText({ num, den }) {
  const percent = { num: 100n * num, den };
  if (percent.num * 10n < den) return num === 0n ? "0\u00a0%" : "below 0.1\u00a0%";
  if ((den - num) * 1000n < den && num !== den) return "above 99.9\u00a0%";
  const digits = decimalDigits(percent, percent.num >= 10n * den ? 3 : 2);
  return `${digitsText({ ...digits, exact: true })}\u00a0%`;
}

/** The significand at a place in binary, split before its last bit: ["1.01", "1"]; of long ones the end alone. */
export function lastBitText(place, fmt) {
  const size = place < 0n ? -place : place;
  const M = BigInt(fmt.mantissa_bits);
  const fraction = (size & ((1n << M) - 1n)).toString(2).padStart(fmt.mantissa_bits, "0");
  const lead = size >> M > 0n ? "1." : "0.";
  const start = fmt.mantissa_bits > 10 ? `…${fraction.slice(-5, -1)}` : lead + fraction.slice(0, -1);
  return [start, fraction.at(-1)];
}

/** What the chosen rule does with x, in one to three sentences; `tie` holds both neighbours where x is half way. */
export function explainRule(x, rule, fmt, { shown = null, saturate = false } = {}) {
  const name = xText(x, shown);
  const where = placeBelow(x, fmt);
  const results = resultsOf(x, fmt, { saturate })[rule];
  const stored = resultText(results.at(-1).code, fmt);
  if (!fmt.has_zero && (x.sign || x.num === 0n)) {
    return { text: `${fmt.label} has neither zero nor sign: ${name} becomes NaN, whatever the rule.`, tie: null };
  }
  if (where.exact && where.place >= firstPlace(fmt) && where.place <= lastPlace(fmt)) {
    return { text: `${name} is a value of ${fmt.label}: every rule keeps it.`, tie: null };
  }
  if (where.place < firstPlace(fmt) && !fmt.has_zero) {
    return { text: `${name} lies below the smallest value of ${fmt.label}, and without a zero there is one way to go: ${stored}.`, tie: null };
  }
  const outside = where.place < firstPlace(fmt) || where.place >= lastPlace(fmt);
  const tie = 2n * where.share.num === where.share.den ? { below: where.place, above: where.place + 1n } : null;
  const text = outside ? explainPastEnd(name, { x, rule, fmt, saturate, tie }) : explainInside(name, { x, rule, fmt, where, tie });
  return { text, tie: rule === "ties_to_even" && fmt.mantissa_bits > 0 ? tie : null };
}

/** The value of a code for a sentence and for the table. */
export function resultText(code, fmt) {
  const place = placeOfCode(code, fmt);
  return place === null || place === 0n ? briefText(code, fmt) : placeText(place, fmt); // −0 has no place of its own
}

function explainInside(name, { x, rule, fmt, where, tie }) {
  const [below, above] = [where.place, where.place + 1n].map((place) => placeText(place, fmt));
  const between = `${name} lies between ${below} and ${above}`;
  const winner = placeText(tieWinner(where.place, fmt, rule), fmt);
  if (rule === "stochastic") {
    const up = chanceText(where.share);
    const down = chanceText({ num: where.share.den - where.share.num, den: where.share.den });
    return `${between}. It goes up with ${up} and down with ${down}: the nearer, the likelier, and on average x itself.`;
  }
  if (rule === "ties_to_even" || rule === "ties_away") {
    if (tie) {
      const half = `${name} is exactly halfway between ${below} and ${above}`;
      if (rule === "ties_away") return `${half}: away from zero means ${winner}.`;
      if (fmt.mantissa_bits === 0) return `${half}. Counted in gaps it is 1.5; of 1 and 2 the even one is 2, so ${winner} wins.`;
      return `${half}: the neighbour whose last bit is 0 wins, ${winner}.`;
    }
    const up = 2n * where.share.num > where.share.den;
    return `${between}. The nearer one is ${up ? above : below}.`;
  }
  const up = rule === "toward_positive" || (rule === "toward_zero" && x.sign === 1);
  const why = { toward_zero: "The one nearer to zero is", toward_positive: "The upper one is", toward_negative: "The lower one is" }[rule];
  return `${between}. ${why} ${up ? above : below}, however near the other is.`;
}

function explainPastEnd(name, { x, rule, fmt, saturate, tie }) {
  const end = x.sign ? firstPlace(fmt) : lastPlace(fmt);
  const largest = placeText(end, fmt);
  const opening = `${name} lies beyond ${largest}, the ${x.sign ? "most negative" : "largest"} value.`;
  const nearest = rule === "ties_to_even" || rule === "ties_away";
  const { how, code } = pastEnd(fmt, x.sign, saturate);
  const past = how === "saturates" ? `the conversion saturates and stores ${largest}` : `that is an overflow, stored as ${resultText(code, fmt)}`;
  if (!overflows(fmt, rule, x.sign)) {
    return `${opening} ${RULE_NAMES[rule][0].toUpperCase()}${RULE_NAMES[rule].slice(1)}, no finite number overflows on this side: ${largest}.`;
  }
  if (rule === "stochastic") return explainChancesPastEnd(opening, { x, fmt, past, largest });
  if (!nearest) return `${opening} This rule leads outward: ${past}.`;
  const next = placeText(x.sign ? end - 1n : end + 1n, fmt);
  const middle = halfwayAfter(x.sign ? end - 1n : end, fmt);
  const border = shortly(aboutText(middle, 12));
  const side = compareNumbers({ ...x, sign: 0 }, { ...middle, sign: 0 });
  if (tie) {
    const stays = tieWinner(x.sign ? end - 1n : end, fmt, rule) === end;
    return `${name} is exactly halfway between ${largest} and ${next}, where the next value would be. ${stays ? `The tie goes to ${largest}.` : `The tie goes out: ${past}.`}`;
  }
  if (side < 0) return `${opening} But it is nearer to ${largest} than to ${next}, where the next value would be: no overflow below ${border}.`;
  return `${opening} It is past ${border}, half a gap out: ${past}.`;
}

function explainChancesPastEnd(opening, { x, fmt, past, largest }) {
  const chances = chancesOf(x, fmt);
  if (chances.length === 1) return `${opening} It is more than a gap out: ${past}, always.`;
  const out = chances.find(({ up }) => up === (x.sign === 0));
  const back = chances.find(({ up }) => up !== (x.sign === 0));
  return `${opening} With ${chanceText(back.chance)} it goes back to ${largest}; with ${chanceText(out.chance)} ${past}.`;
}

/** The gap at x, the distance to the nearest value, and the relative error against u: three [name, text] pairs. */
export function factsAbout(x, fmt) {
  const power = ulpPower(x, fmt);
  const gap = powerOfTwo(power);
  const { value, place, distance } = nearestValue(x, fmt);
  const gaps = equalsText(timesFraction(distance, gap.den, gap.num), 4);
  const away = distance.num === 0n ? "x itself" : `${placeText(place, fmt)}, ${shortly(aboutText(distance))} away ${gaps} ulp`;
  if (!fmt.has_zero && (x.sign || x.num === 0n)) {
    return [["Gap here, ulp(x)", `none: ${fmt.label} holds positive numbers only`], ["Nearest value", "none"], ["Relative error", "none"]];
  }
  return [
    ["Gap here, ulp(x)", `${powerName(power)} ${equalsText(gap, 8)}`],
    ["Nearest value", away],
    ["Relative error", relativeText(x, { value, distance }, fmt)],
  ];
}

function relativeText(x, { distance }, fmt) {
  const size = { ...x, sign: 0 };
  const u = powerOfTwo(-fmt.mantissa_bits - 1);
  const unit = powerName(-fmt.mantissa_bits - 1);
  if (distance.num === 0n) return "0";
  if (compareNumbers(size, valueOf(lastPlace(fmt), fmt)) > 0) return "no bound: x is beyond the largest value";
  const error = timesFraction(distance, size.den, size.num);
  const text = shortly(aboutText(error, 4));
  if (compareNumbers(size, powerOfTwo(fmt.emin)) < 0) return `${text}; no bound below ${powerName(fmt.emin)}, the smallest normal`;
  return `${text}, that is ${aboutText(timesFraction(error, u.den, u.num), 3).replace("about ", "")} u (u\u00a0=\u00a0${unit})`;
}

/** How far a result is off, in ulps: "+0.4", "0", or "—" where it is no number. */
export function errorText(x, code, fmt) {
  const stored = valueOf(code, fmt);
  if (stored.kind !== "finite") return "—";
  const error = subtract(stored, x);
  if (error.num === 0n) return "0";
  const gap = powerOfTwo(ulpPower(x, fmt));
  const gaps = aboutText(timesFraction({ ...error, sign: 0 }, gap.den, gap.num), 4).replace("about ", "");
  return `${error.sign ? "−" : "+"}${gaps}`;
}

/** Which way a result lies from x: "→", "←", or "=" where x itself is stored; "" for NaN. */
export function wayText(x, code, fmt) {
  const stored = valueOf(code, fmt);
  if (stored.kind === "nan") return "";
  const up = stored.kind === "infinity" ? stored.sign === 0 : compareNumbers(stored, x) > 0;
  return stored.kind === "finite" && compareNumbers(stored, x) === 0 ? "=" : up ? "→" : "←";
}

/** What the bins of a rule mean, for the line under the picture. */
export function binsText(rule, fmt) {
  const all = "A band holds all that goes to its value";
  if (rule === "stochastic") return "At each x, the height of a shade is the chance of its value.";
  if (rule === "ties_away") return `${all}; ◂ ▸ a tie on its border goes away from zero.`;
  if (rule === "ties_to_even") {
    const winner = fmt.mantissa_bits ? "where the last bit is 0 (shaded)" : "up: 1.5 gaps become 2, the even number";
    return `${all}; ◂ ▸ a tie on its border goes ${winner}.`;
  }
  const side = { toward_zero: "away from zero", toward_positive: "to its left", toward_negative: "to its right" }[rule];
  return `${all}: the value itself and the gap ${side}.`;
}

/** How many values are in view: "57 values of E4M3 from 0 to 1."; and the smallest above 0 where that part is in view. */
export function countText(view, fmt) {
  const count = countBetween(view.low, view.high, fmt);
  const [low, high] = [view.low, view.high].map((number) => shortly(aboutText(number, 8, 4)));
  const many = count === 0n ? "No value" : count === 1n ? "One value" : `${grouped(count)} values`;
  const small = fmt.has_zero && isInView(finite(0, 0n), view) && compareNumbers(timesFraction(powerOfTwo(fmt.emin), 20n), viewWidth(view)) > 0;
  const least = small ? ` The smallest above 0 is ${powerName(fmt.emin - fmt.mantissa_bits)}.` : "";
  const where = low === high ? `, all ${low}` : ` from ${low} to ${high}`;
  return `${many} of ${fmt.label}${where}.${least}`;
}

/** A count with commas: 15,361; of long ones three digits. */
export function grouped(count) {
  const text = count.toString();
  if (text.length > 12) return aboutText(finite(0, count), 4).replace("about ", "about\u00a0");
  return text.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** What 100 draws gave: the counts, and their mean beside x. */
export function rollText(x, outcomes, counts, fmt, shown = null) {
  const name = xText(x, shown);
  if (outcomes.length === 1) return `All 100 draws give ${resultText(outcomes[0].code, fmt)}: there is one way to go.`;
  const parts = outcomes.map(({ code }, i) => `${resultText(code, fmt)}: ${counts[i]}×`).join(", ");
  const values = outcomes.map(({ code }) => valueOf(code, fmt));
  if (values.some(({ kind }, i) => kind !== "finite" && counts[i] > 0)) return `100 draws: ${parts}. One that is no finite number spoils the mean.`;
  const finites = values.map((value) => (value.kind === "finite" ? value : finite(0, 0n)));
  const total = finites.reduce((sum, value, i) => sumOfNumbers(sum, timesFraction(value, BigInt(counts[i]))), finite(0, 0n));
  const mean = shortly(aboutText(timesFraction(total, 1n, 100n), 8, 5));
  return `100 draws: ${parts}. Their mean is ${mean}; x is ${name}.`;
}

/** Where an x outside the view is: "x = 1.5 is to the right"; "" for one inside. */
export function awayText(x, view, shown = null) {
  if (isInView(x, view)) return "";
  return `${xIs(x, shown)} is to the ${compareNumbers(x, view.low) < 0 ? "left" : "right"}`;
}

/** "x = 1/3", or "x ≈ 0.333". */
export const xIs = (x, shown) => `x = ${xText(x, shown)}`.replace("= ≈", "≈");

/** The refusal of a text, without the offers of infinities and NaN that the line has no place for. */
export const lineRefusal = (message) =>
  message.replace(", 0x1.8p-3, inf or nan.", " or 0x1.8p-3.").replace(/ For [^.]* type inf\.$/, "");

/** For those who do not see the line: where x is. */
export function placeSentence(x, fmt, shown = null) {
  const { place, exact } = placeBelow(x, fmt);
  const name = xText(x, shown);
  if (exact && place >= firstPlace(fmt) && place <= lastPlace(fmt)) return `${name}, a value of ${fmt.label}`;
  if (place < firstPlace(fmt)) return `${name}, below ${placeText(firstPlace(fmt), fmt)}`;
  if (place >= lastPlace(fmt)) return `${name}, beyond ${placeText(lastPlace(fmt), fmt)}`;
  return `${name}, between ${placeText(place, fmt)} and ${placeText(place + 1n, fmt)}`;
}
