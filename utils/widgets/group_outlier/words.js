// What GroupOutlier says: its choices, its numbers, and what becomes of the other weights.

export const GO_KINDS = [[true, "symmetric"], [false, "asymmetric"]];

/** A share as a percentage of three digits, or of `digits`. */
export const goShare = (share, digits = 3) => `${Number((100 * share).toPrecision(digits))}\u00a0%`;

const goMinus = (text) => text.replace("-", "−");

/** A weight with its sign, three digits. */
export const goNumber = (x, digits = 3) => goMinus(String(Number(x.toPrecision(digits))));

/** The outlier as the reader sees it; 0 is none. */
export const goOutlier = (size) => (size === 0 ? "none" : goNumber(size));

export const groupName = (group, count) => (group === count ? "the row" : String(group));

/** What shares a scale, in the middle of a sentence. */
const sharedBy = ({ group }, count) => (group === count ? `one scale for all ${count} weights` : `a scale for every ${group} weights`);

/** The format and its price. */
function priceText(state, { bits }, count) {
  const parts = [`${state.bits} of the code`, `16 / ${state.group} of the scale`, ...(state.symmetric ? [] : [`8 / ${state.group} of the zero point`])];
  return `int${state.bits}, ${state.symmetric ? "symmetric" : "asymmetric"}, ${sharedBy(state, count)}: ${goNumber(bits, 5)} bits per weight (${parts.join(" + ")}).`;
}

/** How the scale of the outlier's group comes about, and what it does. */
function stepText(state, view, row) {
  const { scales, own } = view;
  const { inverse, zero, low, high } = scales[own];
  const values = row.slice(own * state.group, (own + 1) * state.group);
  const amax = values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const what = state.group === row.length ? "row" : state.outlier ? "outlier’s group" : `group of weight ${state.place}`;
  const steps = `one step here is ${goNumber(inverse)} in bfloat16: what lies within half a step of 0 becomes 0`;
  if (state.symmetric) return `The largest magnitude of the ${what} is ${goNumber(amax)}. That becomes code ${high}, so ${steps}.`;
  return `The ${what} reaches from ${goNumber(least)} to ${goNumber(most)}. That is cut into ${high - low} steps, 0 is code ${zero}; ${steps}.`;
}

/** One case in words. */
export function groupVerdict(state, view, row, quiet) {
  const all = state.outlier ? "Of the other weights," : "Of all weights,";
  const whose = state.outlier ? "all the others" : "the row";
  const beside = state.outlier ? `; without the outlier it would be ${goShare(quiet.error)}` : "";
  return `${priceText(state, view, row.length)} ${stepText(state, view, row)} ${all} ${goShare(view.zeros / view.count)} become 0. The error of ${whose} is ${goShare(view.error)}${beside}.`;
}
