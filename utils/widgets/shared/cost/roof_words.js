// A product under a roof in words: the twin of roof_words.py and of shape_to_bound/facts.py.

import { fewDigits } from "../words/amounts.js";
import { rateOf, sbCase, typeOf } from "./roof.js";

// What each type is compared with: the one that it takes the place of, else the first of the others that the device has.
const SB_BESIDE = { float64: "float32", float32: "float64", tf32: "float32", float16: "float32", bfloat16: "float32", float8: "bfloat16" };
const SB_WIDE = ["bfloat16", "float16", "tf32", "float32", "float64"];

/** A time in the unit that leaves no zeros before it. */
export function timeText(ms) {
  for (const [least, factor, unit] of [[1e3, 1e-3, "s"], [1, 1, "ms"], [1e-3, 1e3, "µs"]]) {
    if (ms >= 0.9995 * least) return `${fewDigits(ms * factor)}\u00a0${unit}`;
  }
  return `${fewDigits(ms * 1e6)}\u00a0ns`;
}

export const deviceLabel = ({ name, measured }) => (measured ? `${name}, measured` : name);

export const grouped = (count) => count.toLocaleString("en");

/** What bounds the product, and by how much. */
export function sbVerdict({ moving, computing, bound }) {
  const times = fewDigits(Math.max(moving, computing) / Math.min(moving, computing));
  if (times === "1") return "At the ridge: moving and computing take equally long.";
  if (bound === "memory") return `Bound by memory: moving takes ${times} times as long as computing.`;
  return `Bound by compute: computing takes ${times} times as long as moving.`;
}

/** The time, and the share of the peak that it is. */
export function sbPrediction({ ms, reached, peak }) {
  return `Predicted: ${timeText(ms)}, the longer of the two. That is ${fewDigits(reached)} of ${fewDigits(peak)} TFLOP/s, or ${fewDigits((100 * reached) / peak)}\u00a0%.`;
}

/** The recorded time beside the predicted one; without one, what others have reached on the card, or nothing. */
export function sbRecord({ ms, type, roof, peak }, record) {
  if (!record) {
    const rate = roof.reached?.[type.dtype];
    return rate ? `The fastest ${type.label} product published for this card: ${fewDigits(rate)} TFLOP/s, ${fewDigits((100 * rate) / peak)}\u00a0% of the peak.` : "";
  }
  return `Recorded on ${record.device}: ${timeText(record.ms)}, ${fewDigits((100 * ms) / record.ms)}\u00a0% of the predicted speed.`;
}

/** That a device does not multiply in a type. */
export const sbLacks = (facts, { name }, dtype) => `${name} has no products in ${typeOf(facts, dtype).label}.`;

/** How many rows M would make, or keep, the product bound by compute. */
export function sbRows({ n, k, bound, least, limit, ridge }) {
  const withThese = `With N = ${grouped(n)} and K = ${grouped(k)}`;
  if (least === null) return `${withThese} no M is enough: it stays below ${fewDigits(limit)} operations per byte; the ridge is at ${fewDigits(ridge)}.`;
  return bound === "compute" ? `${withThese} it is bound by compute down to M = ${grouped(least)}.` : `${withThese} it is bound by compute from M = ${grouped(least)} on.`;
}

/** The type of the device beside which another is looked at; undefined where it has no other. */
export const comparedWith = (dtype, roof) => [SB_BESIDE[dtype], ...SB_WIDE].find((other) => other in roof.peaks && other !== dtype);

/** What the type changes beside another one: the bytes, the roof, and which of the two this product feels. */
export function sbChange(facts, after) {
  const { type, roof } = after;
  const beside = comparedWith(type.dtype, roof);
  if (!beside) return `${roof.name} has no other type to compare it with.`;
  const before = sbCase(after, typeOf(facts, beside), roof);
  const [share, higher] = [fewDigits((100 * after.moved) / before.moved), fewDigits(after.peak / before.peak)];
  const moved = share === "100" ? `as many bytes as ${before.type.label}` : `${share}\u00a0% of ${before.type.label}'s bytes`;
  const under = higher === "1" ? "the same roof" : `a roof ${higher} times as high`;
  return `${type.label} moves ${moved}, under ${under}. ${gainText(before, after)}`;
}

function gainText(before, after) {
  const gain = before.ms / after.ms;
  const times = gain >= 1 ? `${fewDigits(gain)} times as fast` : `${fewDigits(1 / gain)} times as long`;
  const decides = before.bound !== after.bound ? "Both decide." : after.bound === "memory" ? "The bytes decide." : "The roof decides.";
  const isSame = fewDigits(Math.max(gain, 1 / gain)) === "1";
  return `This product: ${isSame ? `${timeText(after.ms)} in both` : `${timeText(after.ms)} instead of ${timeText(before.ms)}, ${times}`}. ${decides}`;
}

/** The picture in words. */
export function sbPictureText({ type, roof, ridge, peak, intensity, reached, operations }, record) {
  const beside = record ? ` The recorded point is at ${fewDigits(rateOf(operations, record.ms))}.` : "";
  return `Roofline of ${deviceLabel(roof)} in ${type.label}: TFLOP/s rise with the operations per byte to ${fewDigits(peak)} at the ridge, ${fewDigits(ridge)}, and stay there. `
    + `This product is at ${fewDigits(intensity)} operations per byte and ${fewDigits(reached)} TFLOP/s.${beside}`;
}
