// The dot products of DotProduct: the twin of facts.py, and through it of utils/emulation/rounded_matmul.py and
// utils/emulation/tensor_core.py. Products of two operands of at most 11 bits are exact in a double.

import { nearlyNormal, seededDice } from "../shared/numbers/dice.js";
import { doubleRounders, doubleView, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";

/** How each lane adds; `blocks` are the numbers of products that it may add at once. */
export const ADDERS = {
  float32: { label: "float32", kind: "running", format: "float32", block: 1 },
  float16: { label: "float16", kind: "running", format: "float16", block: 1 },
  bfloat16: { label: "bfloat16", kind: "running", format: "bfloat16", block: 1 },
  "float16-pairwise": { label: "float16, in pairs", kind: "pairwise", format: "float16", block: 1 },
  "bfloat16-pairwise": { label: "bfloat16, in pairs", kind: "pairwise", format: "bfloat16", block: 1 },
  "float16-kahan": { label: "float16, Kahan", kind: "kahan", format: "float16", block: 1 },
  "bfloat16-kahan": { label: "bfloat16, Kahan", kind: "kahan", format: "bfloat16", block: 1 },
  "fp8-14bit": { label: "14 bits, total cut", kind: "cut", bits: 14, block: 32 },
  "fp8-aligned": { label: "14 bits, addends cut", kind: "aligned", bits: 14, block: 32 },
  volta: { label: "24 bits, addends cut", kind: "aligned", bits: 24, block: 4 },
};

export const MOST_PRODUCTS = 65536;
const FEWEST_AFTER = 8; // products after a stall, so that the last one alone makes none

export const blocksOf = ({ kind }) => (kind === "pairwise" || kind === "kahan" ? [1] : [1, 4, 8, 16, 32]);

/** Significant bits of a lane's register. */
export const widthOf = ({ format, bits }) => bits ?? FORMATS[format].mantissa_bits + 1;

/** The place of the leading bit of a double that is not 0. */
export const leadingPlace = (x) => exponentOfDouble(x);

/**
 * The operands and their exact products, as doubles: { a, b, products, exponents }.
 *
 * `exponents`: where a unit aligns the products, the sums of their factors' exponents, of which none is below the
 * lowest of the format; −∞ for 0.
 */
export function operandPairs({ data, products: count, operands, seed }) {
  const [a, b, products, exponents] = [0, 1, 2, 3].map(() => new Float64Array(count));
  const { emin } = FORMATS[operands];
  const exponent = (x) => Math.max(exponentOfDouble(x), emin);
  const { near } = doubleRounders(FORMATS[operands]);
  const draw = (data === "normal" ? nearlyNormal : seededDice)(seed);
  const random = () => near(draw());
  const next = { ones: () => 1, quarters: () => 0.5, large: (k) => (k === 0 ? 32 : 0.125), uniform: random, normal: random }[data];
  for (let k = 0; k < count; k += 1) {
    a[k] = next(k);
    b[k] = next(k);
    products[k] = a[k] * b[k];
    exponents[k] = products[k] === 0 ? -Infinity : exponent(a[k]) + exponent(b[k]);
  }
  return { a, b, products, exponents };
}

/** The exact sums of the first 0, 1, 2, ... products, each as the double next to it. */
export function exactSums(products) {
  const sums = new Float64Array(products.length + 1);
  let [high, low] = [0, 0];
  for (let k = 0; k < products.length; k += 1) {
    const sum = high + products[k];
    const back = sum - high;
    low += high - (sum - back) + (products[k] - back); // what the addition lost: Knuth's TwoSum
    high = sum;
    sums[k + 1] = high + low;
  }
  return sums;
}

/** a + b rounded to odd: rounding that to at most 51 bits is rounding the exact sum (utils/accumulation.py). */
export function oddSum(a, b) {
  const sum = a + b;
  const back = sum - a;
  const lost = a - (sum - back) + (b - back);
  if (lost === 0 || !Number.isFinite(sum)) return sum;
  doubleView.setFloat64(0, sum);
  const code = doubleView.getBigUint64(0);
  if (code & 1n) return sum;
  doubleView.setBigUint64(0, lost > 0 === sum > 0 ? code + 1n : code - 1n);
  return doubleView.getFloat64(0);
}

/** A function that cuts off all but `bits` significant bits of a double. */
export const cutter = (bits) => (x) => {
  if (x === 0 || !Number.isFinite(x)) return x;
  const gap = 2 ** (exponentOfDouble(x) - bits + 1);
  return Math.trunc(x / gap) * gap;
};

/** The unit of the last place that the addends of an aligned block keep. */
export function alignedUnit(total, exponents, { start, stop, bits }) {
  let top = total === 0 ? -Infinity : exponentOfDouble(total);
  for (let k = start; k < stop; k += 1) top = Math.max(top, exponents[k]);
  return 2 ** (top - bits + 1); // 0 where there are only zeros
}

const nonzero = (products, start, stop) => {
  let count = 0;
  for (let k = start; k < stop; k += 1) if (products[k] !== 0) count += 1;
  return count;
};

// How the kinds add the products start ... stop - 1 to `state.total`; each gives how many of them left no trace.
const STEPS = {
  running(products, { format }) {
    const { near } = doubleRounders(FORMATS[format]);
    return (state, start, stop) => {
      let sum = oddSum(state.total, products[start]);
      for (let k = start + 1; k < stop; k += 1) sum += products[k];
      return keep(state, near(sum)) ? 0 : nonzero(products, start, stop);
    };
  },
  cut(products, { bits }) {
    const cut = cutter(bits);
    return (state, start, stop) => {
      let sum = state.total;
      for (let k = start; k < stop; k += 1) sum += products[k];
      return keep(state, cut(sum)) ? 0 : nonzero(products, start, stop);
    };
  },
  aligned(products, { bits }, exponents) {
    const cut = cutter(bits);
    return (state, start, stop) => {
      const unit = alignedUnit(state.total, exponents, { start, stop, bits });
      if (unit === 0) return 0;
      let [sum, gone] = [Math.trunc(state.total / unit), 0];
      for (let k = start; k < stop; k += 1) {
        const whole = Math.trunc(products[k] / unit);
        if (whole === 0 && products[k] !== 0) gone += 1;
        sum += whole;
      }
      state.total = cut(sum * unit);
      return gone;
    };
  },
  kahan(products, { format }) {
    const { near } = doubleRounders(FORMATS[format]);
    return (state, start) => {
      const { total, c } = state;
      const wanted = near(oddSum(products[start], -c));
      state.total = near(oddSum(total, wanted));
      state.c = near(near(state.total - total) - wanted);
      return products[start] !== 0 && state.total === total && state.c === c ? 1 : 0;
    };
  },
  pairwise(products, { format }) {
    const { near } = doubleRounders(FORMATS[format]);
    return (state, start) => {
      let [sum, size, gone] = [products[start], 1, 0];
      if (!state.trees.length) state.count = 0;
      for (; state.count & size; size *= 2) { // like a binary counter: two trees of one size become one
        const other = state.trees.pop();
        const both = near(oddSum(other, sum));
        if ((both === other && sum !== 0) || (both === sum && other !== 0)) gone += size;
        sum = both;
      }
      state.trees.push(sum);
      state.count += 1;
      const { trees } = state;
      state.total = near(trees.at(-1)); // a product that waits is rounded, as in utils/accumulation.py
      for (let i = trees.length - 2; i >= 0; i -= 1) state.total = near(oddSum(trees[i], state.total));
      return gone;
    };
  },
};

function keep(state, next) {
  const changed = next !== state.total;
  state.total = next;
  return changed;
}

/**
 * All additions of one lane.
 *
 * `pairs`: of `operandPairs`. Gives { lane, adder, block, count, exponents, registers, values, gone, c, promotions, stalledAt, swampedAt, overflowAt }. By
 * addition, from 0: `registers` is the register after it, `values` what the dot product is by then (with what was
 * promoted), `gone` how many products have left no trace so far, `c` Kahan's compensation. `promotions` are numbers of
 * products. From `stalledAt` products on, none changes the register any more; from `swampedAt` on, most do not.
 */
export function runLane({ products, exponents }, lane) {
  const adder = ADDERS[lane.adder];
  const block = lane.block || adder.block;
  const count = Math.ceil(products.length / block);
  const [registers, values, c] = [0, 1, 2].map(() => new Float64Array(count));
  const gone = new Uint32Array(count);
  const promotions = [];
  const step = STEPS[adder.kind](products, adder, exponents);
  const fresh = () => ({ total: 0, c: 0, trees: [], count: 0 });
  let [state, promoted, lost] = [fresh(), null, 0];
  for (let n = 0; n < count; n += 1) {
    const stop = Math.min((n + 1) * block, products.length);
    lost += step(state, n * block, stop);
    registers[n] = state.total;
    c[n] = state.c;
    gone[n] = lost;
    values[n] = promoted === null ? state.total : Math.fround(promoted + Math.fround(state.total));
    if (lane.promote && stop % lane.promote === 0) {
      promoted = values[n];
      promotions.push(stop);
      state = fresh();
    }
  }
  const run = { lane, adder, block, count, exponents, registers, values, gone, c, promotions };
  return Object.assign(run, stallOf(run, products));
}

// Where the register no longer moves, or mostly does not. One that is promoted starts again, and so has no such place.
function stallOf(run, products) {
  const none = { stalledAt: null, swampedAt: null, overflowAt: null };
  const { adder, block, count, registers, gone, promotions } = run;
  const at = (n) => Math.min((n + 1) * block, products.length);
  const over = registers.findIndex((x) => !Number.isFinite(x));
  if (over >= 0) return { ...none, overflowAt: at(over) };
  if (adder.kind === "pairwise" || promotions.some((k) => k < products.length)) return none;
  let still = count - 1;
  while (still > 0 && registers[still - 1] === registers[still] && gone[still] > gone[still - 1]) still -= 1;
  const rest = products.subarray(at(still));
  if (rest.length >= FEWEST_AFTER || (rest.length > 0 && rest.every((x) => x === products[at(still) - 1]))) {
    return { ...none, stalledAt: at(still) };
  }
  return { ...none, swampedAt: swampedFrom(run, products.length, at) };
}

// From where on most products leave no trace: most of the next ones, and most of all that are left.
function swampedFrom({ block, count, gone }, all, at) {
  const near = Math.max(FEWEST_AFTER, all / 16);
  const most = (from, to) => 2 * (gone[to] - gone[from]) > at(to) - at(from);
  for (let n = 0; all - at(n) >= near; n += 1) {
    if (most(n, Math.min(n + Math.ceil(near / block), count - 1)) && most(n, count - 1)) return at(n);
  }
  return null;
}

/** The smallest step in products at which all lanes have something to show. */
export const stepOf = (runs) => Math.max(...runs.map(({ block }) => block));

/** What a lane is worth after k products, a multiple of its block or all of them; 0 before the first. */
export const valueAt = ({ values, block }, k) => (k === 0 ? 0 : values[Math.ceil(k / block) - 1]);

/** The share of the first k products that left no trace. */
export const goneAt = ({ gone, block }, k) => (k === 0 ? 0 : gone[Math.ceil(k / block) - 1] / k);

/** The relative error of a value, 0 for none. */
export const relativeError = (value, exact) => (value === exact ? 0 : Math.abs(value - exact) / Math.abs(exact));
