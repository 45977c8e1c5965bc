// The decision of DecisionTree: `utils.decide.decide` in the page's language. Bytes are BigInt, as in a ledger.

import { waysOf } from "../shared/cost/recipe_ways.js";
import { dividedUp, msLedger } from "../shared/cost/training_bytes.js";
import { roomOf } from "../shared/words/amounts.js";

const dtFits = (total, room) => 10n * total <= 9n * room;
const dtSum = (items) => Object.values(items).reduce((sum, bytes) => sum + bytes, 0n);

/** The bytes of a training step, by item. */
function dtTraining(facts, state, plan) {
  const { weights, master, gradients, optimizer, activations, casts } = msLedger(facts, {
    ...plan, sizes: facts.architectures[state.model], attention: "sdpa", padded: true, card: state.card, stage: plan.shards > 1 ? 3 : 0,
  });
  return { weights, master, gradients, optimizer, casts, activations: activations - casts };
}

/** Weights, and keys and values; half bits are counted, and rounded up. */
function dtGenerating(facts, state, plan) {
  const sizes = facts.architectures[state.model];
  const wide = plan.recipe === "32-true" && plan.bits === 16;
  const { parameters } = msLedger(facts, { ...plan, sizes, attention: "sdpa", padded: true, card: state.card, stage: 0, shards: 1, batch: 1, length: 1, accumulate: 1 });
  const { layers, groups, width, heads } = sizes;
  const values = [2, layers, groups, width / heads, plan.batch, plan.length, wide ? 4 : 2].reduce((size, n) => size * BigInt(n), 1n);
  const weights = dividedUp(parameters * BigInt(2 * (wide ? 32 : plan.bits)), 16n);
  return { weights: dividedUp(weights, BigInt(plan.shards)), cache: dividedUp(values, BigInt(plan.shards)) };
}

/** The levers in the order in which they are pulled: [name, what it sets or null]. */
function dtLevers(facts, { task, cards }, ways) {
  const mine = [`sharding over ${cards} cards`, () => (cards > 1 ? { shards: cards } : null)];
  const others = ways.slice(1).map((recipe) => [recipe, () => ({ recipe })]);
  if (task === "generate") return [...others, mine, ...facts.bits.filter(([, bits]) => bits < 16).map(([name, bits]) => [name, () => ({ bits })])];
  return [
    ["the batch in parts", ({ batch }) => (batch > 1 ? { accumulate: batch } : null)],
    ["checkpointing", () => ({ checkpointing: true })],
    mine,
    ["8-bit Adam", ({ optimizer }) => (optimizer === "adamw" ? { optimizer: "adamw-8bit" } : null)],
    ...others,
  ];
}

/** How many cards it takes with all levers; 0 where no number does. */
function dtCards(facts, count, plan, room) {
  let shards = plan.shards;
  while (shards && !dtFits(dtSum(count({ ...plan, shards })), room)) shards = 2 * shards <= facts.most_cards ? 2 * shards : 0;
  return shards;
}

/** The same decision as `decide`; bytes as numbers. */
export function dtDecide(facts, state) {
  const { card, task, optimizer, batch, length } = state;
  const room = BigInt(roomOf(facts, state));
  const ways = waysOf(facts.cards[card], task);
  const count = (plan) => (task === "generate" ? dtGenerating : dtTraining)(facts, state, plan);
  let plan = { recipe: ways[0], optimizer, batch, length, accumulate: 1, checkpointing: false, shards: 1, bits: 16 };
  let items = count(plan);
  const bare = dtSum(items);
  const taken = [];
  for (const [lever, change] of dtLevers(facts, state, ways)) {
    if (dtFits(dtSum(items), room)) break;
    const set = change(plan);
    if (!set) continue;
    plan = { ...plan, ...set };
    items = count(plan);
    taken.push({ lever, total: Number(dtSum(items)), fits: dtFits(dtSum(items), room) });
  }
  const total = dtSum(items);
  const cards = dtCards(facts, count, plan, room);
  const { bandwidth } = facts.cards[card];
  const speed = task === "generate" && bandwidth && cards === 1 ? (1e9 * bandwidth * batch) / Number(total) : null;
  return {
    plan, taken, cards, first: ways[0], bare: Number(bare), total: Number(total), room: Number(room), fits: dtFits(total, room),
    items: Object.fromEntries(Object.entries(items).map(([name, bytes]) => [name, Number(bytes)])), tokens_per_second: speed,
  };
}
