// The tasks of SoftmaxRow: what a row still lacks to solve one. Pure functions; the texts are in goals.py.

import { doubleRounders } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { maskValue } from "./steps.js";
import { rowNumber } from "./words.js";

const isNaNs = (numbers) => numbers.every(Number.isNaN);
const isSame = (row, start, names) => names.every((name) => JSON.stringify(row[name]) === JSON.stringify(start[name]));
const DTYPES = ["format", "softmax_format"];
const KEPT_BY_TWO = {
  scores: "the scores", value: "the value of the mask", softmax: "the softmax", format: "the dtype of the scores", softmax_format: "the dtype of the softmax",
};
// Whether adding `value` makes every one of these stored scores -inf.
function hidesAll(scores, value, { format }) {
  const { stored } = maskValue({ value: String(value), format });
  return scores.every((score) => doubleRounders(FORMATS[format]).near(score + stored) === -Infinity);
}
const has = (row, hidden) => row.masked.includes(hidden);

// For each rule what is wrong with a row, a sentence, or null: of { row, its steps, those of the row of padding, the start }.
const RULES = {
  nan({ row, padding, start }) {
    if (!isSame(row, start, DTYPES)) return "Scores and softmax must stay float16.";
    if (row.softmax !== "stable") return "The softmax must subtract the largest score first.";
    if (row.mask !== "add") return "The mask must be added, and only once.";
    if (!isSame(row, start, ["scores"])) return "The scores must stay as they were.";
    const { exact } = maskValue(row);
    if (!Number.isInteger(exact)) return "The value must be a whole number.";
    if (!isNaNs(padding.weights)) return "In the row of padding, not every score is −inf after the mask is added.";
    return hidesAll(padding.stored, exact + 1, row) ? "That works, but so does a number closer to 0." : null;
  },
  leak({ row, steps: { weightSum, maskedWeight }, start }) {
    if (!isSame(row, start, ["mask", "value", "softmax", ...DTYPES])) return "Only the scores may change.";
    if (!has(row, true) || !has(row, false)) return "Mask at least one score, but not all.";
    if (maskedWeight > 0.01 * weightSum) return null;
    return `The masked weight is ${rowNumber(maskedWeight)} now.`;
  },
  two({ row, padding, start }) {
    const changed = Object.entries(KEPT_BY_TWO).filter(([name]) => !isSame(row, start, [name])).map(([, words]) => words);
    if (changed.length) return `Put back what the task began with: ${changed.join(", ")}.`;
    return isNaNs(padding.weights) ? null : "The row of padding still has finite weights.";
  },
  cast({ row, steps: { weights, maskedWeight }, padding, start }) {
    if (!isSame(row, start, ["softmax", ...DTYPES])) return "The dtypes and the softmax must stay as they were.";
    if (row.mask === "none") return "Without a mask nothing is hidden.";
    if (!has(row, true) || !has(row, false)) return "Mask at least one score, but not all.";
    if (![...weights, ...padding.weights].every(Number.isFinite)) return "There is still a weight that is NaN.";
    return maskedWeight === 0 ? null : `The masked weight is ${rowNumber(maskedWeight)}, not 0.`;
  },
};

/** What a row lacks to solve a task, as a sentence; null if nothing. */
export const lackOf = (task, row, steps, padding) => RULES[task.rule]({ row, steps, padding, start: task.start });
