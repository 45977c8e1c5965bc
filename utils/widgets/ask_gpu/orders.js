// The order of a sum from its results: which ones a mask has swallowed. The twin of the orders in readings.py.

export const LOOP_PLACES = 16;
export const TREE_PLACES = 64;
export const LANES_MOST = 128; // lanes of a subgroup, the most that WGSL knows

/** The pairs of places that a kernel has asked for: place 0 with each other, then each with the last. */
export const pairsOf = (n) => [
  ...Array.from({ length: n - 1 }, (_, p) => [0, p + 1]),
  ...Array.from({ length: Math.max(0, n - 2) }, (_, p) => [p + 1, n - 1]),
];

// How many ones are lost with the mask in place i and its negative in place j > i, of n places: those of the smallest
// sum that holds both.
const LOST = {
  chain: (_, j) => j - 1,
  backward: (i, _, n) => n - 2 - i,
  neighbours: (i, j) => 2 ** (32 - Math.clz32(i ^ j)) - 2,
  halves: (i, j, n) => n / ((i ^ j) & -(i ^ j)) - 2,
  wide: () => 0,
};

/** The name of the order in which every pair keeps `kept` ones; null where it is none of these. */
export function nameOrder(n, kept) {
  const pairs = pairsOf(n);
  const fits = (lost) => pairs.every(([i, j], p) => kept[p] === n - 2 - lost(i, j, n));
  return Object.keys(LOST).find((name) => fits(LOST[name])) ?? null;
}
