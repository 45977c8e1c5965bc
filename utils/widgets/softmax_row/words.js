// What SoftmaxRow says: its numbers, and where the first came from that is not finite; the twin of words.py.

import { doubleRounders } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { withCommas } from "../shared/words/sizes.js";
import { addendsOf, innerFormat, largestNumber, maskValue } from "./steps.js";

/** A number as text: a whole one from 1000 to a million; else `large` digits, or `small` ones below 1 and far from it. */
export function rowNumber(x, small = 3, large = 5) {
  if (Number.isNaN(x)) return "NaN";
  const [sign, size] = [x < 0 ? "−" : "", Math.abs(x)];
  if (size === Infinity) return `${sign}inf`;
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-3) {
    const [significand, power] = size.toExponential(small - 1).split("e");
    return `${sign}${Number(significand)}e${Number(power)}`.replace("-", "−");
  }
  if (size >= 1000) return `${sign}${size.toFixed(0)}`;
  return `${sign}${Number(size.toPrecision(size >= 1 ? large : small))}`;
}

/** A number as a sentence has it, with more digits. */
export const saidNumber = (x) => rowNumber(x, 6, 7);

/** A sum, whose digits show how far it is from 1. */
export const sumNumber = (x) => rowNumber(x, 5, 5);

const bracketed = (x) => (x < 0 ? `(${saidNumber(x)})` : saidNumber(x));
const firstInfinite = (values) => values.findIndex((x) => !Number.isFinite(x));

// A number beyond the end of the format, and what is stored in its place.
function beyond(x, fmt, stores = "") {
  const end = saidNumber(Math.sign(x) * largestNumber(fmt));
  const slightly = saidNumber(x) === end ? "slightly " : "";
  return `${slightly}too far beyond ${end}, so ${fmt.name} stores ${stores}${x < 0 ? "−inf" : "inf"}.`;
}

const isReplaced = (i, { mask, masked }) => masked[i] && mask === "put";

// Where the first score came from that is not finite: typed, masked, or less the largest.
function scoreSentence(row, { stored, after, cast, largest, shifted }) {
  const inner = innerFormat(row);
  const [typed, masked, narrowed, less] = [stored, after, cast, shifted ?? []].map(firstInfinite);
  if (typed >= 0) return typedSentence(typed, row, stored[typed]);
  if (masked >= 0) return maskSentence(row, stored[masked]);
  if (narrowed >= 0) return `The softmax is computed in ${inner.name}: ${saidNumber(after[narrowed])} is ${beyond(after[narrowed], inner, "it as ")}`;
  if (less < 0) return "";
  const exact = cast[less] - largest;
  return `${saidNumber(cast[less])} − ${bracketed(largest)} is ${saidNumber(exact)}, ${beyond(exact, inner)}`;
}

function typedSentence(i, row, x) {
  const fromStart = Number.isNaN(x) || /inf|∞/.test(row.scores[i].toLowerCase());
  const said = `Score ${i + 1} is ${fromStart ? `${saidNumber(x)} from the start.` : beyond(x, FORMATS[row.format], "it as ")}`;
  return isReplaced(i, row) ? `${said} The mask puts another number in its place.` : said;
}

function maskSentence(row, score) {
  const fmt = FORMATS[row.format];
  const { near } = doubleRounders(fmt);
  const { exact, stored } = maskValue(row);
  if (Number.isFinite(exact) && !Number.isFinite(stored)) return `The mask, ${saidNumber(exact)}, is ${beyond(exact, fmt, "it as ")}`;
  let x = score;
  for (let i = 0; i < addendsOf(row) && Number.isFinite(stored); i += 1) {
    const sum = x + stored;
    if (!Number.isFinite(near(sum))) return `${saidNumber(x)} + ${bracketed(stored)} is ${saidNumber(sum)}, ${beyond(sum, fmt)}`;
    x = near(sum);
  }
  const which = row.masked.length > 1 && row.masked.every(Boolean) ? "every score" : "a score";
  return `The mask ${row.mask === "put" ? `puts −inf in place of ${which}` : `adds −inf to ${which}`}, on purpose.`;
}

// Which exponential is too large, or that their sum is, where all before is finite.
function overflowSentence(row, { cast, shifted, exps, exactSum, total }) {
  const exponents = shifted ?? cast;
  const at = exponents.findIndex((x, i) => Number.isFinite(x) && exps[i] === Infinity);
  if (at >= 0) {
    const x = exponents[at];
    const power = x < 709 ? Math.exp(x) : Infinity;
    return `exp(${saidNumber(x)})${power < Infinity ? ` is ${saidNumber(power)},` : " is"} ${beyond(power, innerFormat(row))}`;
  }
  if (total !== Infinity || !exps.every(Number.isFinite)) return "";
  const count = withCommas(String(exps.length * row.copies));
  return `The ${count} exponentials add up to ${saidNumber(exactSum)}, ${beyond(exactSum, innerFormat(row), "their sum as ")} A number divided by inf is 0.`;
}

// Where NaN came from first, if not from a score itself.
function nanSentence(row, { stored, after, largest, shifted, total, weights }) {
  if (after.some(Number.isNaN)) {
    const fromStart = stored.some((x, i) => Number.isNaN(x) && !isReplaced(i, row));
    return `${fromStart ? "NaN stays NaN" : "inf + (−inf) is NaN"}, and the sum takes it to every weight.`;
  }
  if (shifted?.some(Number.isNaN)) {
    const which = saidNumber(largest);
    return `Now the largest score is ${which}, and ${which} − ${bracketed(largest)} is NaN.`;
  }
  if (!weights.some(Number.isNaN)) return "";
  return total === Infinity ? "The sum is inf too, and inf / inf is NaN." : "Every exponential is 0, so their sum is 0, and 0 / 0 is NaN.";
}

/** What the weights add up to. */
export function weightsSentence({ copies }, { weights, weightSum, maskedWeight }) {
  const [count, nans] = [weights.length, weights.filter(Number.isNaN).length];
  if (nans) {
    if (count === 1) return "The weight is NaN.";
    const each = copies > 1 ? " of each copy" : "";
    const some = `${nans} of the ${count} weights${each} ${nans === 1 ? "is" : "are"}`;
    const every = count === 2 ? `Both weights${each} are` : `All ${count} weights${each} are`;
    return `${nans === count ? every : some} NaN, and so is their sum.`;
  }
  const text = `The weights add up to ${sumNumber(weightSum)}`;
  if (maskedWeight === 0) return `${text}.`;
  if (maskedWeight === weightSum) return `${text}, all of it on masked scores.`;
  return `${text}, ${rowNumber(maskedWeight)} of it on masked scores.`;
}

/** Where the first number came from that is not finite, where NaN did, and what the weights add up to. */
export function rowVerdict(row, steps) {
  const known = [scoreSentence, overflowSentence, nanSentence].map((sentence) => sentence(row, steps)).filter(Boolean);
  const exponents = steps.shifted ?? steps.cast;
  if (exponents.includes(-Infinity) && !steps.weights.some(Number.isNaN)) known.splice(1, 0, "exp(−inf) is 0, so no NaN follows.");
  return [...(known.length ? known : ["Every number is finite."]), weightsSentence(row, steps)].join(" ");
}
