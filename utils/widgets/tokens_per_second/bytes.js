// The bytes of a step of generation and what a card makes of them: the twin of facts.py. All counts
// stay below 2 ** 53, so that doubles hold them.

import { fitsIn } from "../shared/words/amounts.js";

export const TP_MOST_BATCH = 1024;
export const TP_MOST_CONTEXT = 2 ** 17;
export const TP_READ_UP_TO = 256; // tokens of context up to which a rate of a short sequence is shown

/** The row of a model, a format and a card by their names. */
export const tpModel = ({ models }, name) => models.find(([known]) => known === name)[1];
export const tpFormat = ({ formats }, name) => formats.find((format) => format.name === name);
export const tpCard = ({ cards }, name) => cards.find((card) => card.name === name);

/** What a step moves, in bytes: { weights, cacheRead, cacheWritten, total }, as `utils.cost.token_bytes.predicted`. */
export function tpMoved(sizes, format, { batch, context, kv_bits: kv, head }) {
  const { width: D, hidden: F, vocabulary: V, layers, heads, groups, tied } = sizes;
  const G = groups * (D / heads);
  const linear = layers * (2 * D * (D + G) + 3 * D * F);
  const norms = D * (2 * layers + 1);
  const headBits = V * D * (head && !tied ? format.bits : format.other);
  const rows = tied ? 0 : batch * D;
  const weights = Math.round((linear * format.bits + (norms + rows) * format.other + headBits) / 8);
  const cacheOf = (tokens) => Math.round((2 * layers * G * tokens * batch * (kv || format.other)) / 8);
  const [cacheRead, cacheWritten] = [cacheOf(context), cacheOf(1)];
  return { weights, cacheRead, cacheWritten, total: weights + cacheRead + cacheWritten };
}

function tpOperations({ width: D, hidden: F, vocabulary: V, layers, heads, groups }, { batch, context }) {
  const linear = 2 * D * (D + groups * (D / heads)) + 3 * D * F;
  return 2 * batch * (layers * (linear + 2 * D * context) + V * D);
}

/** A LLaMA that writes, with everything that is shown of it. `state` has the widget's traits. */
export function tpCase(facts, state) {
  const [sizes, format, card] = [tpModel(facts, state.model), tpFormat(facts, state.weights), tpCard(facts, state.card)];
  const moved = tpMoved(sizes, format, state);
  const operations = tpOperations(sizes, state);
  const wanted = format.other === 32 ? ["float32"] : ["bfloat16", "float16", "float32"];
  const peak = card.peaks[wanted.find((dtype) => dtype in card.peaks)] ?? null;
  const moving = 1e3 * (moved.total / (1e9 * card.bandwidth));
  const computing = peak ? 1e3 * (operations / (1e12 * peak)) : 0;
  const ms = Math.max(moving, computing);
  const rows = sizes.tied ? 0 : sizes.vocabulary - state.batch;
  const held = moved.total + Math.round((rows * sizes.width * format.other) / 8);
  const room = card.memory * 1e9;
  return { ...state, sizes, format, card, moved, operations, peak, moving, computing, ms, held, room, rate: (1e3 * state.batch) / ms, fits: !room || fitsIn(held, room) };
}

/** Whether measured rates, which are of one short sequence, say something about a state. */
export const tpComparable = ({ batch, context }) => batch === 1 && context <= TP_READ_UP_TO;

const tpShared = (facts, points, { bandwidth: own }) => points.map((point) => {
  const { bandwidth } = tpCard(facts, point.card);
  return { ...point, share: (point.rate * point.bytes) / (1e9 * bandwidth), here: (point.rate * own) / bandwidth };
});

/** The measured rates of a model on a card, each with its share of what the bandwidth allows; none where tpComparable
 * denies them. */
export function tpPoints(facts, state) {
  if (!tpComparable(state)) return [];
  return tpShared(facts, facts.points.filter(({ model, card }) => model === state.model && card === state.card), tpCard(facts, state.card));
}

/** The card whose rates estimate those of another one, the same in every format: the nearest bandwidth. A plain loop
 * says nothing of other cards, and a card without data sheet gets no estimate. */
function tpSourceCard(facts, points, own) {
  const times = (name) => [tpCard(facts, name).bandwidth / own.bandwidth].map((ratio) => Math.max(ratio, 1 / ratio))[0];
  const names = own.measured ? [] : points.filter(({ card, plain }) => !plain && !tpCard(facts, card).measured).map(({ card }) => card);
  return names.length ? names.reduce((best, name) => (times(name) < times(best) ? name : best)) : null;
}

/** The measured rates of the chosen weights; where this card has none, that of tpSourceCard, scaled in `here`. */
export function tpOwnPoints(facts, state) {
  if (!tpComparable(state)) return [];
  const name = state.card.name ?? state.card; // of a state, or of a case
  const own = tpCard(facts, name);
  const ofModel = facts.points.filter(({ model }) => model === state.model);
  const same = ofModel.filter(({ weights }) => weights === state.weights);
  const onCard = same.filter(({ card }) => card === name);
  const source = tpSourceCard(facts, ofModel, own);
  return tpShared(facts, onCard.length ? onCard : same.filter(({ card, plain }) => card === source && !plain).slice(0, 1), own);
}
