// What Update says: of one update, of each way of keeping the weight, and of what was typed.

import { finite, namedCode, round, sameNumber, subtract, valueOf } from "../shared/numbers/codec.js";
import { exactNumber } from "../shared/numbers/double_rounding.js";
import {
  aboutText, briefText, decimalDigits, digitsText, numberText, NumberTextError, parseNumber,
} from "../shared/numbers/number_text.js";
import { isZeroNumber, quotient, sizeOfNumber, spread } from "./steps.js";

/** A number as text: all its digits where there are at most `most`, else `few` after "≈". */
export const nearText = (number, most = 10, few = 4) => aboutText(number, most, few).replace("about ", "≈\u00a0");

/** "c = 0.5", or "c ≈ 0.333". */
export const named = (name, text) => (text.startsWith("≈") ? `${name} ${text}` : `${name} = ${text}`);

const shortText = (number) => aboutText(number, 3, 3).replace("about ", "");
const doubleText = (x, most = 10, few = 6) => nearText(Number.isFinite(x) ? exactNumber(x) : notFinite(x), most, few);
const notFinite = (x) => ({ kind: Number.isNaN(x) ? "nan" : "infinity", sign: x < 0 ? 1 : 0, num: 0n, den: 1n });

/** A chance or a share of exact numbers, 0 to 1, in percent. */
export function percentText({ num, den }) {
  if (num === 0n) return "0\u00a0%";
  if (num * 1000n < den) return "< 0.1\u00a0%";
  if ((den - num) * 1000n < den) return "> 99.9\u00a0%";
  return `${digitsText({ ...decimalDigits({ num: 100n * num, den }, 3), exact: true })}\u00a0%`;
}

/** The weight as the format stores it: { number, code, stored, exact }. A NumberTextError says why there is none. */
export function readWeight(text, fmt) {
  const number = finiteNumber(text, "weight");
  const { code, exact, overflow } = round(number, fmt);
  if (overflow) throw new NumberTextError(`The weight ${typedText(text, number)} is beyond ${briefText(namedCode("largest", fmt), fmt)}, the largest value of ${fmt.label}.`);
  return { number, code: number.num === 0n ? 0n : code, stored: valueOf(code, fmt), exact };
}

/** The update, exactly as it was typed. */
export const readUpdate = (text) => finiteNumber(text, "update");

function finiteNumber(text, what) {
  const number = parseNumber(text);
  if (number.kind !== "finite") throw new NumberTextError(`The ${what} ${text.trim()} is no finite number. Try 0.05, 1e-4, 2^-9 or 1/3.`);
  return number;
}

/** A number as the reader wrote it, where that is short. */
export function typedText(text, number) {
  return text.trim().length <= 18 ? text.trim().replace(/^-/, "−") : nearText(number);
}

/** What |update| is of half the gap beside w, in words: "0.41 of half a gap", "13 half gaps". */
export function shareText(share) {
  if (share.num === share.den) return "exactly half a gap";
  if (share.num < share.den) return `${shortText(share)} of half a gap`;
  return `${shortText(share)} half gaps`;
}

/** What became of one update beside another weight, in a few words; it agrees with `verdict`. */
export function fateText(one, update, key, fmt) {
  if (isZeroNumber(update)) return "nothing to add";
  const { stored, other = stored, chance } = one.results[key];
  if (stored.kind !== "finite") return "out of range";
  const stays = sameNumber(stored, one.w, { signs: false });
  const size = key === "toward_zero" ? `${shortText(finite(0, one.share.num, 2n * one.share.den))} of a gap` : shareText(one.share);
  if (key === "stochastic" && !isZeroNumber(chance)) {
    const moves = stays ? chance : finite(0, chance.den - chance.num, chance.den);
    const isSure = !stays && !sameNumber(other, one.w, { signs: false });
    return `${size}: moves${isSure ? "" : ` in ${percentText(moves)}`}`;
  }
  if (!stays) return `${size}: moves`;
  return `${size}: ${verdict(one, update, key, fmt).kind === "lost" ? "lost" : heldWords[key]}`;
}

const heldWords = { kahan: "kept in c", master: "kept in the master" };

/** Neighbouring values, by size, with equally many decimals; exactly where none takes more than `most` digits. */
export function alikeTexts(numbers, most = 9) {
  const exact = numbers.map((number) => aboutText(number, most, most));
  if (exact.every((text) => !text.startsWith("about "))) return exact;
  const gaps = numbers.slice(1).map((number, i) => Math.abs(quotient(subtract(number, numbers[i]), finite(0, 1n))));
  const places = 1 - Math.floor(Math.log10(Math.min(...gaps)));
  const size = Math.max(...numbers.map((number) => Math.abs(quotient(number, finite(0, 1n)))));
  if (places < 0 || places > 12 || size >= 1e6) return numbers.map((number) => nearText(number, most, 6));
  return numbers.map((number) => quotient(number, finite(0, 1n)).toFixed(places).replace("-", "−"));
}

/** Whether one update leaves the stored weight as it is; for stochastic rounding, whether it surely does. */
export const isUnmoved = ({ w, results }, key) =>
  sameNumber(results[key].stored, w, { signs: false }) && (key !== "stochastic" || isZeroNumber(results[key].chance));

/** What became of one update: { kind: "lost" | "held" | "kept", text }. */
export function verdict(one, update, key, fmt) {
  if (isZeroNumber(update)) return { kind: "kept", text: "The update is 0: there is nothing to add." };
  const result = one.results[key];
  if (result.stored.kind !== "finite") return { kind: "lost", text: overflowText(one, result, fmt) };
  return verdicts[key](one, update, result, fmt);
}

const overflowText = ({ exact }, { stored }, fmt) =>
  `Out of range: w + dw = ${nearText(exact)} is beyond ${briefText(namedCode("largest", fmt), fmt)}, the largest value of ${fmt.label}, and becomes ${numberText(stored)}.`;

const verdicts = {
  ties_to_even(one, update, { stored }, fmt) {
    if (!isUnmoved(one, "ties_to_even")) return movedVerdict(one, update, stored, fmt);
    const why = one.share.num === one.share.den ? ", a tie, and the even neighbour is w itself." : ", so the nearest value to w + dw is w.";
    return { kind: "lost", text: `Lost: dw is ${shareText(one.share)}${why}` };
  },
  toward_zero(one, update, { stored }, fmt) {
    if (!isUnmoved(one, "toward_zero")) return movedVerdict(one, update, stored, fmt);
    const part = finite(0, one.share.num, 2n * one.share.den);
    return { kind: "lost", text: `Lost: dw is ${shortText(part)} of a gap, and away from zero only whole gaps count.` };
  },
  stochastic(one, update, { stored, other, chance }, fmt) {
    if (isZeroNumber(chance)) return movedVerdict(one, update, stored, fmt);
    const rest = finite(0, chance.den - chance.num, chance.den);
    const [near, far] = alikeTexts([stored, other]);
    return { kind: "held", text: `Kept on average: w becomes ${near} with a chance of ${percentText(rest)}, ${far} with ${percentText(chance)}.` };
  },
  kahan(one, update, { stored, c }, fmt) {
    const stays = isUnmoved(one, "kahan");
    if (!isZeroNumber(c)) return { kind: "held", text: `Kept in c: w ${stays ? "stays" : `becomes ${nearText(stored)}`}, and ${named("c", nearText(c))} is added to the next update.` };
    return stays ? { kind: "lost", text: `Lost: c should keep dw, but dw is 0 in ${fmt.label}.` } : movedVerdict(one, update, stored, fmt);
  },
  master(one, update, { stored, master }, fmt) {
    if (sameNumber(master, one.w, { signs: false })) {
      return { kind: "lost", text: "Lost even in float32: dw is less than half a gap there too." };
    }
    if (fmt.name === "float32") return movedVerdict(one, update, stored, fmt);
    const copy = isUnmoved(one, "master") ? "stays" : `is ${nearText(stored)}`;
    return { kind: "held", text: `Kept in the master, now ${nearText(master, 10, 8)}; its ${fmt.label} copy ${copy}.` };
  },
};

function movedVerdict({ w, exact }, update, stored, fmt) {
  if (sameNumber(stored, exact, { signs: false })) return { kind: "kept", text: `Kept in full: w + dw is a value of ${fmt.label}.` };
  const moved = sizeOfNumber(subtract(stored, w));
  const times = finite(0, moved.num * update.den, moved.den * update.num);
  return { kind: "kept", text: `Moved, rounded: w moves by ${nearText(moved)}, which is ${nearText(times, 4, 3)} times dw.` };
}

/** The stored value after one step, or both that it may be. */
export function storedAfter({ results }, key) {
  const { stored, other = stored } = results[key];
  if (sameNumber(stored, other) || [stored, other].some(({ kind }) => kind !== "finite")) return nearText(stored, 12, 6);
  return alikeTexts([stored, other], 12).join(" or ");
}

/** One line of the table of many updates: { stored, more, share }, with the share of the way as a double or NaN. */
export function manyText(many, key, { w, whole }) {
  const share = (x) => (x - w) / whole;
  if (key === "stochastic") {
    const { mean, sd } = spread(many.stochastic);
    return { stored: doubleText(mean, 4, 4), more: `± ${Number(sd.toPrecision(2))}`, share: share(mean), low: share(mean - sd), high: share(mean + sd) };
  }
  const [stored, held] = Array.isArray(many[key]) ? many[key] : [many[key], null];
  const more = held === null ? "" : key === "kahan" ? named("c", doubleText(held, 6, 3)) : `master ${doubleText(held, 8, 8)}`;
  return { stored: doubleText(stored), more, share: share(stored) };
}

/** A share of the way to three digits, "0 %", "103 %"; "–" where there is none. */
export function wayText(share) {
  if (!Number.isFinite(share)) return "–";
  const percent = Number((100 * share).toPrecision(3)); // a copy of the master is rounded: 100.1 % says no more than 100 %
  return `${share && Math.abs(percent) < 0.1 ? "< 0.1" : String(percent).replace("-", "−")}\u00a0%`;
}
