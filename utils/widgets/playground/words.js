// What the playground says of a run.

import { FORMATS } from "../shared/numbers/formats.js";
import { overflowBound } from "../shared/plot/binades.js";
import { powerText, shareText, sizeText } from "../shared/words/sizes.js";
import { SMOOTH } from "./training/run.js";

export const TENSOR_NAMES = { weights: "weights", activations: "activations", gradients: "gradients", moments: "moments", accumulator: "sums (accumulator)" };
export const KNOB_NAMES = { // by the ids of narrowKnobs
  ...TENSOR_NAMES, ...Object.fromEntries(Object.entries(TENSOR_NAMES).map(([id, name]) => [`${id} rounding`, `the rounding of ${name}`])),
  master: "the float32 master copy", scale: "the loss scale", push: "k of “Loss × 2⁻ᵏ”",
};
export const RULE_NAMES = {
  ties_to_even: "nearest, even", ties_away: "nearest, away", toward_zero: "toward zero",
  toward_positive: "up", toward_negative: "down", stochastic: "stochastic",
};
export const DATA_NAMES = { spiral: "two spirals", circle: "circle", corners: "corners" };
export const OPTIMIZER_NAMES = { adam: "Adam", sgd: "SGD with momentum" };

export const scaleName = (scale) => (typeof scale === "string" ? scale : `${scale} (${powerText(Math.log2(scale))})`);

export const percent = (share) => `${Math.floor(1000 * share) / 10}\u00a0%`;

/** Below a picture: the loss and the points that are right. */
export const captionText = (loss, accuracy, steps) => (steps === 0 ? `not trained, ${percent(accuracy)} right`
  : Number.isNaN(loss) ? "NaN" : `loss ${sizeText(loss)}, ${percent(accuracy)} right`);

/** The run in sentences: how far it is, how it compares with float32, and what is lost on the way. */
export function verdictText(run) {
  const { net, setup, ghost, loss, ghostLoss, accuracy, ghostAccuracy, diedAt } = run;
  if (net.steps === 0) return "Nothing is trained yet. Press Run.";
  const parts = [`Step ${net.steps}.`];
  if (diedAt !== null) parts.push(`The loss has been NaN since step ${diedAt}: the weights are lost.`);
  else if (ghost === net) parts.push(`The loss is ${sizeText(loss)}, with ${percent(accuracy)} right.`);
  else parts.push(`The loss is ${sizeText(loss)}, with ${percent(accuracy)} right: ${comparison(loss, ghostLoss)} (${sizeText(ghostLoss)}, ${percent(ghostAccuracy)}).`);
  if (diedAt === null) parts.push(lossesText(run));
  if (setup.scale === "dynamic") parts.push(`The scale is ${powerText(Math.log2(net.scale))}, and ${net.skipped} ${net.skipped === 1 ? "step was" : "steps were"} skipped.`);
  else if (net.all.over > 0 && diedAt === null) parts.push(`${net.all.over} gradients overflowed.`);
  return parts.filter(Boolean).join(" ");
}

const shareOf = (n, total, what) => (n === total ? `All ${what}` : `${shareText(n, total)} of the ${what}`);

/** What was lost on the way to the loss of a run, in sentences. */
export function lossesText({ net, setup, first }) {
  const { under, gradients, lost, updates } = net.all;
  const parts = [];
  if (first && first.faded > 0.02 * first.moments) {
    const isAdam = setup.optimizer === "adam";
    const some = shareOf(first.faded, first.moments, isAdam ? "second moments" : "momentum values").replace("All", "all");
    parts.push(`In step ${first.step}, ${some} became 0 when they were stored${isAdam ? ", and there Adam divided by its ε alone" : ""}.`);
  }
  if (updates === 0 && net.skipped < net.steps) parts.push(`No weight has changed${under ? ": the gradients became 0 when they were stored" : ""}.`);
  else if (under > 0.02 * gradients) parts.push(`${shareText(under, gradients)} of the gradients became 0 when they were stored.`);
  if (lost > 0.02 * updates) parts.push(`${shareOf(lost, updates, "updates")} changed nothing.`);
  return parts.join(" ");
}

function comparison(loss, ghostLoss) {
  const ratio = loss / ghostLoss;
  if (ratio > 1.15) return `${sizeText(ratio, 2)} times that of float32`;
  return ratio < 0.87 ? "less than that of float32" : "about that of float32";
}

/** Below the losses: what a loss and a share of right points are taken over. */
export const lossNote = ({ net: { points } }) => `A loss in words is the mean over the last ${SMOOTH} batches, so it moves even while no weight does. The share right is that of all ${points.length} points.`;

/** Above the histogram. */
export const histogramTitle = (watched, fmt) => ({
  gradients: `Gradients of the last step, before they are stored in ${fmt.label}`,
  weights: `Weights of the last step, before they are stored in ${fmt.label}`,
  activations: `Activations of the last step, before they are stored in ${fmt.label}`,
  moments: `Moments of the last step, before they are stored in ${fmt.label}`,
  accumulator: `Sums of the last forward pass, kept in ${fmt.label}`,
})[watched];

/** What a format can hold: its bits, and its range without a sign. */
export function formatText(fmt) {
  const { label, exponent_bits, mantissa_bits, emin, emax, has_inf, has_nan } = fmt;
  const max = overflowBound(fmt) - 2 ** (emax - mantissa_bits - 1);
  const past = has_inf ? "becomes ∞" : has_nan ? "becomes NaN" : "is stored as that";
  return `${label} has ${exponent_bits} exponent bits and ${mantissa_bits} mantissa bits: ${powerText(emin - mantissa_bits)} to ${sizeText(max, 5)}; what is larger after rounding ${past}.`;
}

/** Below the histogram: what its shares are shares of. */
export function histogramNote({ counts, zeros, infinite, nan }, { diedAt }) {
  const some = counts.reduce((sum, n) => sum + n, 0);
  const all = some + zeros + infinite + nan;
  if (all === 0) return "No step yet.";
  const parts = [];
  if (some) parts.push("Shares of the values that are not 0 before they are stored.");
  if (zeros) parts.push(`${shareOf(zeros, all, "values")} were 0 already.`);
  if (infinite + nan) parts.push(`${shareOf(infinite + nan, all, "values")} are NaN or infinite${diedAt === null ? "" : `; the loss has been NaN since step ${diedAt}`}.`);
  return parts.join(" ");
}

/** The label of a format, with its bits where the label does not name them. */
export function formatName(name) {
  const { label, bits } = FORMATS[name];
  return label.includes(bits) ? label : `${label}, ${bits} bits`;
}
