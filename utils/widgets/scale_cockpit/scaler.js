// A dynamic loss scaler over a list of the largest gradients: the decisions of torch.amp.GradScaler, step for step.

import { bitLength } from "../shared/numbers/codec.js";
import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { scaleText, sizeText } from "../shared/words/sizes.js";

export const FLOAT16_BOUND = 65520; // half an ulp beyond float16's largest value, 65504: from here on a tie and more overflow

/** Whether a step is skipped: null stands for a gradient that was infinite or NaN when it was recorded. */
export const isSkipped = (amax, scale) => amax === null || amax * scale >= FLOAT16_BOUND;

/** Replay: { scales: the scale that each step uses, skipped: [steps from 1], last: the scale after the last }. */
export function replayScaler(amaxes, { init_scale: first, growth_factor: growth, backoff_factor: backoff, growth_interval: interval }) {
  const [scales, skipped] = [[], []];
  let [scale, tracker] = [Math.fround(first), 0];
  amaxes.forEach((amax, i) => {
    scales.push(scale);
    if (isSkipped(amax, scale)) {
      skipped.push(i + 1);
      [scale, tracker] = [Math.fround(scale * backoff), 0];
      return;
    }
    tracker += 1;
    if (tracker < interval) return;
    const grown = Math.fround(scale * growth);
    if (Number.isFinite(grown)) scale = grown;
    tracker = 0;
  });
  return { scales, skipped, last: scale };
}

/** The same of a recorded run, whose `changes` are [step, the scale after it]. */
export function recordedScaler({ init, steps, changes, skipped }) {
  const scales = [];
  let [scale, next] = [init, 0];
  for (let step = 1; step <= steps; step += 1) {
    scales.push(scale);
    while (next < changes.length && changes[next][0] <= step) scale = changes[next++][1];
  }
  return { scales, skipped, last: scale };
}

// The window moves by whole binades, so every scale is a power of two.
const isPower = (x) => x > 0 && Number.isInteger(Math.log2(x));

export const SCALER_FIELDS = {
  init_scale: { label: "Initial scale", fault: "The initial scale must be a power of two that float32 holds, such as 2^16: any other factor rounds every gradient once more.", fits: (x) => isPower(x) && Math.fround(x) > 0 && Number.isFinite(Math.fround(x)) },
  growth_interval: { label: "Growth interval, steps", fault: "The growth interval must be a whole number of steps, 1 or more.", fits: (x) => Number.isInteger(x) && x >= 1 && x <= 1e9 },
  growth_factor: { label: "Growth factor", fault: "The growth factor must be a power of two above 1, such as 2.", fits: (x) => isPower(x) && x > 1 && Number.isFinite(x) },
  backoff_factor: { label: "Backoff factor", fault: "The backoff factor must be a power of two below 1, such as 0.5.", fits: (x) => isPower(x) && x < 1 },
};

/** What a reader typed, as a number that the field takes; throws NumberTextError with one sentence. */
export function readSetting(name, text) {
  const { kind, sign, num, den } = parseNumber(text);
  const value = kind === "finite" ? (sign ? -1 : 1) * quotient(num, den) : NaN;
  if (!SCALER_FIELDS[name].fits(value)) throw new NumberTextError(SCALER_FIELDS[name].fault);
  return value;
}

// num / den as a double: both cut to 64 bits first where they are longer than a double takes.
function quotient(num, den) {
  const cut = Math.max(0, Math.max(bitLength(num), bitLength(den)) - 1000);
  return Number(num >> BigInt(cut)) / Number(den >> BigInt(cut));
}

/** What becomes of a step whose largest gradient is amax: { skipped, text }. */
export function verdictOf(step, amax, scale) {
  const skipped = isSkipped(amax, scale);
  if (amax === null) return { skipped, text: `Step ${step} would be skipped: a gradient was infinite or NaN when it was recorded.` };
  const product = `the largest of all gradients, ${sizeText(amax)}, times ${scaleText(scale)} is ${sizeText(amax * scale, amax * scale < 10000 ? 3 : 5)}`;
  return skipped ? { skipped, text: `Step ${step} would be skipped: ${product}. It overflows, and one overflow is enough.` }
    : { skipped, text: `Step ${step} is taken: ${product}. It fits below ${FLOAT16_BOUND}.` };
}

/** A run of a scaler in a sentence. */
export function runText(name, { scales, skipped, last }) {
  const highest = scales.reduce((most, scale) => Math.max(most, scale), last);
  return `${name}: ${skipped.length === 0 ? "none" : skipped.length} of ${scales.length} steps skipped; the scale goes from ${scaleText(scales[0])} to ${scaleText(last)}, at most ${scaleText(highest)}.`;
}
