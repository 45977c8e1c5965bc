// What the playground says of a run.

import { FORMATS } from "../shared/numbers/formats.js";
import { powerText, shareText, sizeText } from "../shared/words/sizes.js";

export const TENSOR_NAMES = { weights: "weights", activations: "activations", gradients: "gradients", moments: "moments", accumulator: "sums (accumulator)" };
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
  const { under, gradients, over, lost, updates } = net.all;
  if (diedAt === null) {
    if (updates === 0 && net.skipped < net.steps) parts.push("No weight has changed: the gradients became 0 when they were stored.");
    else if (under > 0.02 * gradients) parts.push(`${shareText(under, gradients)} of the gradients became 0 when they were stored.`);
    if (lost > 0.02 * updates) parts.push(`${shareText(lost, updates)} of the updates changed nothing.`);
  }
  if (setup.scale === "dynamic") parts.push(`The scale is ${powerText(Math.log2(net.scale))}, and ${net.skipped} ${net.skipped === 1 ? "step was" : "steps were"} skipped.`);
  else if (over > 0 && diedAt === null) parts.push(`${over} gradients overflowed.`);
  return parts.join(" ");
}

function comparison(loss, ghostLoss) {
  const ratio = loss / ghostLoss;
  if (ratio > 1.15) return `${sizeText(ratio, 2)} times that of float32`;
  return ratio < 0.87 ? "less than that of float32" : "about that of float32";
}

/** Above the histogram. */
export const histogramTitle = (watched, fmt) => ({
  gradients: `Gradients of the last step, before they are stored in ${fmt.label}`,
  weights: `Weights of the last step, before they are stored in ${fmt.label}`,
  activations: `Activations of the last step, before they are stored in ${fmt.label}`,
  moments: `Moments of the last step, before they are stored in ${fmt.label}`,
  accumulator: `Sums of the last forward pass, kept in ${fmt.label}`,
})[watched];

/** The label of a format, with its bits where the label does not name them. */
export function formatName(name) {
  const { label, bits } = FORMATS[name];
  return label.includes(bits) ? label : `${label}, ${bits} bits`;
}
