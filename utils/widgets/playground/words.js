// What the playground says of a run.

import { FORMATS } from "../shared/numbers/formats.js";
import { powerText, shareText, sizeText } from "../shared/words/sizes.js";

export const TENSOR_NAMES = { weights: "weights", activations: "activations", gradients: "gradients", moments: "Adam’s moments", accumulator: "sums (accumulator)" };
export const RULE_NAMES = {
  ties_to_even: "nearest (ties to even)", ties_away: "nearest (ties away)", toward_zero: "toward zero",
  toward_positive: "up", toward_negative: "down", stochastic: "stochastic",
};
export const DATA_NAMES = { spiral: "two spirals", circle: "circle", corners: "corners" };
export const OPTIMIZER_NAMES = { adam: "Adam", sgd: "SGD with momentum" };

export const scaleName = (scale) => (scale === "none" ? "none" : scale === "dynamic" ? "dynamic" : `fixed, ${powerText(Math.log2(scale))}`);

const percent = (share) => `${Math.floor(1000 * share) / 10}\u00a0%`;

export const accuracyText = (accuracy, loss) => (Number.isNaN(loss) ? "NaN" : `${percent(accuracy)} right`);

/** Below a picture: the loss and the points that are right. */
export const captionText = (loss, accuracy, steps) => (steps === 0 ? `not trained, ${percent(accuracy)} right`
  : Number.isNaN(loss) ? "NaN" : `loss ${sizeText(loss)}, ${percent(accuracy)} right`);

/** The run in sentences: how far it is, how it compares with float32, and what is lost on the way. */
export function verdictText(run) {
  const { net, setup, ghost, loss, ghostLoss, diedAt } = run;
  if (net.steps === 0) return "Nothing is trained yet. Press Run.";
  const parts = [`Step ${net.steps}.`];
  if (diedAt !== null) parts.push(`The loss has been NaN since step ${diedAt}: the weights are lost.`);
  else if (ghost === net) parts.push(`The loss is ${sizeText(loss)}.`);
  else parts.push(`The loss is ${sizeText(loss)}, ${comparison(loss, ghostLoss)} (${sizeText(ghostLoss)}).`);
  const { zeros, gradients, over, lost, updates } = net.all;
  if (diedAt === null) {
    if (updates === 0 && net.skipped < net.steps) parts.push("No weight has changed: the gradients were stored as 0.");
    else if (zeros > 0.02 * gradients) parts.push(`${shareText(zeros, gradients)} of the gradients were stored as 0.`);
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
  gradients: `Gradients before they are stored in ${fmt.label}`,
  weights: `Weights before they are stored in ${fmt.label}`,
  activations: `Activations before they are stored in ${fmt.label}`,
  moments: `Moments before they are stored in ${fmt.label}`,
  accumulator: `Sums of the forward products, kept in ${fmt.label}`,
})[watched];

export const formatName = (name) => FORMATS[name].label;
