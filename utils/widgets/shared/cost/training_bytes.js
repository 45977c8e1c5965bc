// The bytes of a training step, item by item: `utils.cost.memory.predict` in the page's language. Bytes are BigInt, because a
// batch times the square of a length can be more than a double counts exactly.

export const MS_MOST = 1_000_000; // of a batch, a length and the like
const GRADIENTS_OF_LOGITS = 2n; // tensors like the log-probabilities that the backward pass of the loss makes

/** Why a transformer cannot have these sizes, in a sentence; "" if it can. */
export function sizesFault({ width, heads, groups }) {
  if (width % heads === 0 && heads % groups === 0) return "";
  return `Width ${width}, ${heads} heads and ${groups} heads of keys do not fit: the heads must divide the width, and the heads of keys the heads.`;
}

/** Whether adapters are trained beside frozen weights: of a classifier all weights are trained whatever is asked for. */
export const isAdapted = (facts, { method = "full", sizes }) => method !== "full" && facts.projections[sizes.family].length > 0;

/** The value of each letter that a size may name: `Architecture.dimensions`, with B texts, S tokens in each and adapters of rank R. */
function dimensionsOf(sizes, batch, length, rank = 0) {
  const { width: D, heads: H, groups, hidden: F, vocabulary: V, classes: C, positions: P } = sizes;
  const E = D / H;
  const values = { V, D, F, H, E, G: groups * E, Q: 3 * D, P, C, B: batch, S: length, R: rank };
  return Object.fromEntries(Object.entries(values).map(([letter, value]) => [letter, BigInt(value)]));
}

const product = (letters, values) => [...letters].reduce((size, letter) => size * values[letter], 1n);
export const added = (numbers) => numbers.reduce((sum, number) => sum + number, 0n);
export const dividedUp = (bytes, parts) => (bytes + parts - 1n) / parts;

/** The weight tensors of a model: [values of one, how many of them there are]. */
export function weightTensors(facts, sizes) {
  const values = dimensionsOf(sizes, 1, 1);
  const { once, head, layer } = facts.weights[sizes.family];
  const shapes = (rows, times) => rows.map((letters) => [product(letters, values), times]);
  return [...shapes(once, 1n), ...(sizes.tied ? [] : shapes(head, 1n)), ...shapes(layer, BigInt(sizes.layers))];
}

/** The matrices that are trained in LoRA, as `weightTensors`: `Adapters.weights` in utils/cost/architectures.py. */
export function adapterTensors(facts, { sizes, rank }) {
  const values = dimensionsOf(sizes, 1, 1, rank);
  return facts.projections[sizes.family].flatMap(([outputs, inputs]) => [`R${inputs}`, `${outputs}R`].map((letters) => [product(letters, values), BigInt(sizes.layers)]));
}

/** Bytes of a matrix in NF4: `nf4_bytes`. */
function nf4Bytes({ bits, block, constants }, values) {
  const blocks = dividedUp(values, BigInt(block));
  return dividedUp(values * BigInt(bits), 8n) + blocks + 4n * dividedUp(blocks, BigInt(constants));
}

/** Bytes of the frozen weights, the matrices of the blocks in NF4 if so asked: `Adapters.frozen_bytes`. */
function frozenBytes(facts, { sizes, method }, itemsize) {
  const whole = added(weightTensors(facts, sizes).map(([values, times]) => itemsize * values * times));
  if (method !== "qlora") return whole;
  const values = dimensionsOf(sizes, 1, 1);
  const matrices = facts.weights[sizes.family].layer.filter((letters) => letters.length === 2).map((letters) => product(letters, values));
  return whole + BigInt(sizes.layers) * added(matrices.map((size) => nf4Bytes(facts.nf4, size) - itemsize * size));
}

/** What recipe and adapters decide of the conditions: `words` in utils/cost/activations.py. */
function recipeWords({ words, compute }, method, adapted) {
  const mixed = words.includes("mixed");
  if (!adapted) return words;
  return ["true", "frozen", mixed ? "cast" : "uncast", mixed && method === "lora" ? "copied" : "shared", compute === 4 ? "" : "recast"];
}

/** The words that hold, of those that a row of saved tensors asks for: `utils.cost.activations.conditions`. */
function conditionsOf({ sizes, attention, checkpointing, padded }, words, device, batch) {
  const kernel = sizes.attention_dropout > 0 && device === "cpu" ? "math" : "fused";
  const held = {
    [padded ? "padded" : "full"]: true, [attention === "eager" ? attention : kernel]: true, [device]: true,
    single: batch === 1, plain: !checkpointing,
    dropout: sizes.dropout > 0, "attention-dropout": sizes.attention_dropout > 0, "head-dropout": sizes.head_dropout > 0,
  };
  return new Set([...words, ...Object.keys(held).filter((word) => held[word])]);
}

/** The rows of what autograd saves in a forward pass: `utils.cost.activations.list_terms`. */
function savedRows(facts, plan, batch) {
  const adapted = isAdapted(facts, plan);
  const own = facts.recipes[plan.recipe];
  const recipe = adapted ? { ...own, weights: own.compute, wide: Math.max(own.compute, 4) } : own; // of frozen weights
  const values = dimensionsOf(plan.sizes, batch, plan.length, plan.rank ?? 0);
  const held = conditionsOf(plan, recipeWords(own, plan.method, adapted), facts.cards[plan.card].device, batch);
  const { once, layer, checkpointed, mask } = facts.saved[plan.sizes.family];
  const holds = ([, , when]) => when.split(" ").every((word) => word === "" || word.split("|").some((one) => held.has(one)));
  const sizes = (rows, times) => rows.filter(holds).map(([size, dtype, , isCopy, count, isLogits]) =>
    ({ isCopy, isLogits, bytes: times * BigInt(count * recipe[dtype]) * product(size, values) }));
  const layers = BigInt(plan.sizes.layers);
  return [...sizes(once, 1n), ...(plan.checkpointing ? [...sizes(mask, 1n), ...sizes(checkpointed, layers)] : sizes(layer, layers))];
}

/**
 * The bytes of these rows, and the parts of them that copies of weights and log-probabilities take. With checkpointing
 * and a batch in parts, autocast's cache holds the copies of all weights beside the gradients, unless it is off (`cached`).
 */
function savedBytes(facts, plan, batch) {
  const rows = savedRows(facts, plan, batch);
  const cached = plan.cached !== false && plan.checkpointing && plan.accumulate > 1;
  const all = cached
    ? [...rows.filter(({ isCopy }) => !isCopy), ...savedRows(facts, { ...plan, checkpointing: false }, batch).filter(({ isCopy }) => isCopy)]
    : rows;
  return [all, all.filter(({ isCopy }) => isCopy), all.filter(({ isLogits }) => isLogits)].map((rows) => added(rows.map(({ bytes }) => bytes)));
}

/** Bytes of the optimizer's moments and counters; in 8 bits each block adds 4 bytes, and small tensors stay wide. */
function optimizerBytes(tensors, recipe, { moments, bytes_of: wide, counted, block, least }) {
  const inBlocks = (values) => (values < BigInt(least) ? 4n * values : values + 4n * dividedUp(values, BigInt(block)));
  const one = block ? inBlocks : (values) => BigInt(recipe[wide]) * values;
  const counter = counted ? BigInt(recipe.counter) : 0n;
  return added(tensors.map(([values, times]) => times * (BigInt(moments) * one(values) + counter)));
}

/** The ledger of one card: `utils.cost.memory.predict`. A plan has the widget's traits, and always the sizes of its model. */
export function msLedger(facts, plan) {
  const recipe = facts.recipes[plan.recipe];
  const adapted = isAdapted(facts, plan);
  const counted = (rows) => added(rows.map(([values, times]) => values * times));
  const whole = weightTensors(facts, plan.sizes);
  const tensors = adapted ? adapterTensors(facts, plan) : whole;
  const trained = counted(tensors);
  const frozen = adapted ? frozenBytes(facts, plan, BigInt(recipe.compute)) : 0n;
  const [saved, copies, logits] = savedBytes(facts, plan, Math.ceil(plan.batch / plan.accumulate));
  const casts = plan.stage === 3 && plan.shards > 1 ? 0n : copies; // a layer's copy goes with its gathered weights
  const sharded = (bytes, stage) => (plan.stage >= stage ? dividedUp(bytes, BigInt(plan.shards)) : bytes);
  return {
    weights: sharded(frozen + BigInt(recipe.weights) * trained, 3),
    master: sharded(BigInt(recipe.master) * trained, 1),
    gradients: sharded(BigInt(recipe.gradients) * trained, 2),
    optimizer: sharded(optimizerBytes(tensors, recipe, facts.optimizers[plan.optimizer]), 1),
    activations: saved - copies + casts,
    casts,
    parameters: adapted ? counted(whole) + trained : trained,
    logits: GRADIENTS_OF_LOGITS * logits,
  };
}
