// What DecisionTree says besides the decision: over how many cards it would fit, and how fast text comes at most.

import { dtDecide, dtTotal } from "../shared/cost/decide.js";
import { fitsIn, GIGABYTE } from "../shared/words/amounts.js";

/** How many cards it takes with all levers; 0 where no number does. */
function dtCards(facts, state, { like, plan, room }) {
  const fits = (shards) => fitsIn(dtTotal(facts, state, like, { ...plan, shards }), BigInt(room));
  let shards = plan.shards;
  while (shards && !fits(shards)) shards = 2 * shards <= facts.most_cards ? 2 * shards : 0;
  return shards;
}

/** The GB/s of the smallest board with so much memory, or of the largest: `roof` of a card in utils/cost/cards.py. */
function dtBandwidth({ memory, bandwidth }, room) {
  const board = memory.findIndex((size) => size * GIGABYTE >= room);
  return bandwidth.at(board); // -1 where none has so much: the last
}

/** The whole decision of `decide`: with `cards`, `bandwidth` in GB/s and `tokens_per_second`. */
export function dtOutlook(facts, state) {
  const decision = dtDecide(facts, state);
  const cards = dtCards(facts, state, decision);
  const bandwidth = dtBandwidth(facts.cards[state.card], decision.room);
  const isRead = state.task === "generate" && bandwidth && cards === 1;
  return { ...decision, cards, bandwidth, tokens_per_second: isRead ? (1e9 * bandwidth * state.batch) / decision.total : null };
}
