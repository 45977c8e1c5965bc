// The decision of DecisionTree and RecipePicker: `utils.cost.decide.decide` in the page's language. Bytes are BigInt, as in a ledger.

import { fitsIn, roomOf } from "../words/amounts.js";
import { waysOf } from "./recipe_ways.js";
import { added, dividedUp, isAdapted, msLedger, weightTensors } from "./training_bytes.js";

const dtSum = (items) => Object.values(items).reduce((sum, bytes) => sum + bytes, 0n);

const dtParameters = (facts, name) => added(weightTensors(facts, facts.architectures[name]).map(([values, times]) => values * times));

/** The named model nearest in size, by ratio, that can do the task: `nearest` in utils/cost/decide.py. */
function dtNearest(facts, parameters, task) {
  const away = (name) => {
    const size = Number(dtParameters(facts, name));
    return Math.max(parameters / size, size / parameters);
  };
  const able = facts.models.filter((name) => task !== "generate" || facts.architectures[name].family !== "distilbert");
  return able.reduce((best, name) => (away(name) < away(best) ? name : best));
}

/** The bytes of a training step, by item; for a number of parameters those of the model like it, scaled. */
function dtTraining(facts, { card, model }, like, plan) {
  const { parameters: _, activations, logits, ...ledger } = msLedger(facts, {
    ...plan, rank: facts.rank, sizes: facts.architectures[like], attention: "sdpa", padded: true, card, stage: plan.shards > 1 ? 3 : 0, cached: false,
  });
  const parameters = dtParameters(facts, like);
  const asked = model === like ? parameters : BigInt(model);
  const scaled = Object.entries(ledger).map(([name, bytes]) => [name, dividedUp(bytes * asked, parameters)]);
  return { ...Object.fromEntries(scaled), activations: activations - ledger.casts, logits };
}

/** Weights, and keys and values; half bits are counted, and rounded up. */
function dtGenerating(facts, { model }, like, plan) {
  const sizes = facts.architectures[like];
  const wide = plan.recipe === "32-true" && plan.bits === 16;
  const parameters = model === like ? dtParameters(facts, like) : BigInt(model);
  const { layers, groups, width, heads } = sizes;
  const values = [2, layers, groups, width / heads, plan.batch, plan.length, wide ? 4 : 2].reduce((size, n) => size * BigInt(n), 1n);
  const weights = dividedUp(parameters * BigInt(2 * (wide ? 32 : plan.bits)), 16n);
  return { weights: dividedUp(weights, BigInt(plan.shards)), cache: dividedUp(values, BigInt(plan.shards)) };
}

/** The levers in the order in which they are pulled: [name, what it sets or null]. */
function dtLevers(facts, { task, cards, optimizer }, ways, sizes) {
  const mine = [`sharding over ${cards} cards`, () => (cards > 1 ? { shards: cards } : null)];
  const others = ways.slice(1).map((recipe) => [recipe, () => ({ recipe })]);
  if (task === "generate") return [...others, mine, ...facts.bits.filter(([, bits]) => bits < 16).map(([name, bits]) => [name, () => ({ bits })])];
  const beside = { recipe: ways[0], optimizer };
  const own = task === "fine_tune" ? facts.adapters.filter(([, method]) => isAdapted(facts, { method, sizes })) : [];
  return [
    ["the batch in parts", ({ batch }) => (batch > 1 ? { accumulate: batch } : null)],
    ["checkpointing", () => ({ checkpointing: true })],
    mine,
    ["8-bit Adam", (plan) => (plan.optimizer === "adamw" ? { optimizer: "adamw-8bit" } : null)],
    ...others,
    ...own.map(([name, method]) => [name, () => ({ ...beside, method })]),
  ];
}

/** The bytes of a plan, by item. */
const dtBytes = (facts, state, like, plan) => (state.task === "generate" ? dtGenerating : dtTraining)(facts, state, like, plan);

/** All bytes of a plan, for the model `like` of a decision. */
export const dtTotal = (facts, state, like, plan) => dtSum(dtBytes(facts, state, like, plan));

/** The levers that hold in the plan, without recipes, and of bits and adapters the last: `levers` of a decision. */
export function dtHeld(facts, { plan, taken }) {
  const held = new Map([["8-bit Adam", plan.optimizer === "adamw-8bit"]]);
  for (const [name, bits] of facts.bits) held.set(name, bits === plan.bits);
  for (const [name, method] of facts.adapters) held.set(name, method === plan.method);
  return taken.map(({ lever }) => lever).filter((lever) => !(lever in facts.recipes) && (held.get(lever) ?? true));
}

/** The same decision as `decide`, without `outlook.js`; bytes as numbers. The model of the state is a name, or a number of parameters. */
export function dtDecide(facts, state) {
  const { card, task, optimizer, batch } = state;
  const like = typeof state.model === "number" ? dtNearest(facts, state.model, task) : state.model;
  const length = state.length ?? Math.min(facts.tokens, facts.architectures[like].positions);
  const room = BigInt(roomOf(facts, state));
  const ways = waysOf(facts.cards[card], task);
  const count = (plan) => dtBytes(facts, state, like, plan);
  let plan = { recipe: ways[0], optimizer, batch, length, accumulate: 1, checkpointing: false, shards: 1, bits: 16, method: "full" };
  let items = count(plan);
  const bare = dtSum(items);
  const taken = [];
  for (const [lever, change] of dtLevers(facts, state, ways, facts.architectures[like])) {
    if (fitsIn(dtSum(items), room)) break;
    const set = change(plan);
    if (!set) continue;
    plan = { ...plan, ...set };
    items = count(plan);
    taken.push({ lever, total: Number(dtSum(items)), fits: fitsIn(dtSum(items), room) });
  }
  const total = dtSum(items);
  return {
    plan, taken, like, first: ways[0], bare: Number(bare), total: Number(total), room: Number(room), fits: fitsIn(total, room),
    items: Object.fromEntries(Object.entries(items).map(([name, bytes]) => [name, Number(bytes)])),
  };
}
