// What delayed scaling does in every step of AmaxHistory: the twin of __init__.py, and its words.

import { doubleRounders, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { delayedScales, largestOf, scaleFromAmax } from "../shared/numbers/scaling.js";
import { scaleText, shareText, sizeText, withCommas } from "../shared/words/sizes.js";

const CURRENT_SAYS = "Current scaling would leave none unused and never saturate, but has to find each amax before it rounds.";

/** All steps of a state: amaxes (float32), scales, what the largest value becomes, whether it saturates or is lost. */
export function replayed(state) {
  const fmt = FORMATS[state.format];
  const max = largestOf(fmt);
  const { near } = doubleRounders(fmt);
  const amaxes = state.series[state.tensor].map(Math.fround);
  if (state.spike_step) amaxes[state.spike_step - 1] = Math.fround(amaxes[state.spike_step - 1] * 2 ** state.spike);
  const scales = delayedScales(amaxes, { ...state, max });
  const products = amaxes.map((amax, i) => Math.fround(amax * scales[i]));
  return { state, max, amaxes, scales, products, over: products.map((product) => !Number.isFinite(near(product))), lost: products.map((product, i) => amaxes[i] > 0 && near(product) === 0), current: amaxes.map((amax) => scaleFromAmax(amax, max)) };
}

function lostText(lost) {
  const steps = lost.flatMap((one, i) => (one ? [i + 1] : []));
  if (steps.length > 1) return `In ${steps.length} steps everything becomes 0. `;
  return steps.length ? `In step ${steps[0]} everything becomes 0. ` : "";
}

const keptText = (product, max) => `the largest value is cut to ${shareText(max, product)} of itself`;

/** All steps in two sentences. */
export function historySummary({ products, over, lost, max }) {
  const count = over.filter(Boolean).length;
  const how = count === 0 ? "no step saturates" : count === 1 ? `one of ${over.length} steps saturates` : `${count} of ${over.length} steps saturate`;
  const most = products.reduce((best, product, i) => (product > products[best] ? i : best), 0);
  const worst = count ? `, and in step ${most + 1} ${keptText(products[most], max)}` : "";
  const fitting = products.filter((product, i) => !over[i] && !lost[i] && product > 0);
  const unused = fitting.reduce((sum, product) => sum + Math.log2(max / product), 0) / (fitting.length || 1);
  return `Delayed scaling: ${how}${worst}. ${lostText(lost)}Where nothing saturates, ${Math.max(unused, 0).toFixed(1)} binades stay unused on average. ${CURRENT_SAYS}`;
}

function originText({ amaxes, state }, at) {
  const known = amaxes.map((_, i) => i).filter((i) => i < at && amaxes[i] > 0);
  if (known.length === 0) return "nothing is known yet, so the scale is 1.";
  const held = known.slice(state.choose === "most_recent" ? -1 : -state.history);
  const largest = sizeText(Math.max(...held.map((i) => amaxes[i])));
  return held.length === 1 ? `the scale comes from step ${held[0] + 1}, ${largest}.`
    : `the scale comes from the largest of steps ${held[0] + 1} to ${held.at(-1) + 1}, ${largest}.`;
}

/** One step in words. */
export function stepVerdict(view, step) {
  const at = step - 1;
  const { max, products, over, lost, amaxes, scales } = view;
  const [product, scale] = [products[at], scales[at]];
  const told = `Step ${step}: ${originText(view, at)} Here the amax is ${sizeText(amaxes[at])}, which times ${withCommas(scaleText(scale))} is ${withCommas(sizeText(product))}`;
  if (over[at]) return `${told}, more than ${withCommas(String(max))}: it saturates, and ${keptText(product, max)}.`;
  if (product === 0) return `${told}.`;
  if (lost[at]) return `${told}. That rounds to 0, and so does everything else: the step is lost.`;
  if (product > max) return `${told}, a little past ${withCommas(String(max))}: it is rounded to that, not cut.`;
  return `${told}: it fits below ${withCommas(String(max))}, and ${Math.max(Math.log2(max / product), 0).toFixed(1)} binades stay unused.`;
}

/** The powers of two that the amaxes of a view need, with room above for what a scale lets in. */
export function amaxSpan({ amaxes, state }) {
  const seen = amaxes.filter((amax) => amax > 0).map(exponentOfDouble);
  const low = Math.min(...seen, 0x7fff) === 0x7fff ? 0 : Math.min(...seen);
  const high = Math.max(...seen, low);
  return { low: low - 1, high: Math.max(high + 3 + Math.min(state.margin, 3), low + 6) };
}
