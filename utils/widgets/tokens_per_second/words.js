// TokensPerSecond in words: the twin of facts.py.

import { deviceLabel, timeText } from "../shared/cost/roof_words.js";
import { bytesText, fewDigits } from "../shared/words/amounts.js";
import { TP_READ_UP_TO, tpComparable } from "./bytes.js";

const tpGrouped = (count) => count.toLocaleString("en");

/** What the card has to hold. */
function tpHeld({ held, room, fits }) {
  const text = `Weights, keys and values take ${bytesText(held)}`;
  if (!room) return `${text}.`;
  return `${text} of ${bytesText(room)}${fits ? "." : ": too much, because a tenth stays free."}`;
}

/** The rate, what decides it, and what the card has to hold. */
export function tpVerdict(shown) {
  const { rate, batch, moved, peak, moving, computing, card } = shown;
  const each = batch > 1 ? `, ${fewDigits(rate / batch)} for each of ${tpGrouped(batch)} sequences` : "";
  const reads = `a step reads ${bytesText(moved.weights)} of weights, and moves ${bytesText(moved.cacheRead + moved.cacheWritten)} of keys and values`;
  const why = computing > moving
    ? `Computing decides: ${fewDigits(peak)} TFLOP/s take ${timeText(computing)} for a step, moving takes ${timeText(moving)}; ${reads}.`
    : `The bytes decide: ${reads}: ${timeText(moving)} at ${fewDigits(card.bandwidth)} GB/s.`;
  return `At most ${fewDigits(rate)} tokens a second${each}. ${why} ${tpHeld(shown)}`;
}

/** A measured rate as its source has it. */
export const tpRate = (rate) => rate.toLocaleString("en", { maximumFractionDigits: 2 });

/** Measured rates in a sentence or two each; `points` are those of tpOwnPoints. */
export function tpMeasured(points, shown) {
  if (!tpComparable(shown)) return `Measured rates are of a single sequence, and a short one: see them with a batch of 1 and a context of at most ${TP_READ_UP_TO}.`;
  if (points.length === 0) return `There is no rate of this model in ${shown.format.label} to compare with: the limit stands alone.`;
  return points.map((point) => tpMeasuredOn(point, shown)).join(" ");
}

function tpMeasuredOn({ rate, bytes, share, here, source, card }, shown) {
  const read = `${tpRate(rate)} tokens a second from ${bytesText(bytes)} a step, ${Math.round(100 * share)}\u00a0% of`;
  if (card === shown.card.name) return `Measured with a batch of 1: ${read} the bandwidth (${source}).`;
  return `No rate in this format is published for this card. On ${card}: ${read} its bandwidth (${source}). Scaled by the bandwidth, that would be ${fewDigits(here)} here: an estimate, not a measurement.`;
}

/** A card with its bandwidth. */
export const tpCardText = ({ name, measured, bandwidth }) => `${deviceLabel({ name, measured })}, ${fewDigits(bandwidth)} GB/s`;

export const tpBatchText = ({ batch }) => (batch === 1 ? "1 sequence" : `${tpGrouped(batch)} sequences`);

/** The context beside what the model was built for. */
export function tpContextText({ context, sizes: { positions } }) {
  if (context > positions) return `${tpGrouped(context)}, built for ${tpGrouped(positions)}`;
  return context === 1 ? "1 token" : `${tpGrouped(context)} tokens`;
}
