// One addition of DotProduct, written out in bits: the register, what comes in, and what falls off its end.

import { doubleRounders, doubleView, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { alignedUnit, leadingPlace, oddSum, widthOf } from "./sums.js";

const MOST_PLACES = 40; // columns of the picture: as many digits as a phone has room for
const FEWEST_PLACES = 20;

/** The place of the last bit that is 1 of a double that is not 0. */
export function lastPlace(x) {
  doubleView.setFloat64(0, x);
  const [high, low] = [doubleView.getUint32(0), doubleView.getUint32(4)];
  const zeros = low !== 0 ? 31 - Math.clz32(low & -low) : 63 - Math.clz32((high | 0x100000) & -(high | 0x100000));
  return exponentOfDouble(x) - 52 + zeros;
}

/** The bit of a double at a place: 0 or 1. */
export const bitAt = (x, place) => Math.floor(Math.abs(x) / 2 ** place) % 2;

/** The bits of an addend and how many of them lie below the place `end`: { bits, off }. */
export function bitsOff(x, end) {
  if (x === 0 || !Number.isFinite(x)) return { bits: 0, off: 0 };
  const [first, last] = [leadingPlace(x), lastPlace(x)];
  return { bits: first - last + 1, off: Math.max(0, Math.min(end, first + 1) - last) };
}

/**
 * The addition of a lane that takes in the k-th product, k from 1 on.
 *
 * Gives { start, stop, before, addends, after, end, top, off, bits, gone, promotedTo }: the products start ... stop - 1
 * come in as `addends`, rows of { role, value, count }; `end` and `top` are the places of the register's last and first
 * bit, null if it is empty; `bits` the addends' bits and `off` how many fall off, `gone` how many of the products leave
 * no trace; `promotedTo` is the float32 total after a promotion, or null.
 */
export function additionAt(run, products, k) {
  const { block, registers, values, adder, lane } = run;
  const n = Math.ceil(k / block) - 1;
  const [start, stop] = [n * block, Math.min((n + 1) * block, products.length)];
  const first = lane.promote > 0 && start % lane.promote === 0; // the register has just been emptied
  const before = n === 0 || first ? 0 : registers[n - 1];
  const came = { start, stop, before, after: registers[n], ...COMINGS[adder.kind]({ run, products, start, stop, before, c: n === 0 || first ? 0 : run.c[n - 1] }) };
  const width = widthOf(adder);
  const counts = came.addends.map(({ value }) => bitsOff(value, came.end));
  const sum = (name) => counts.reduce((total, one) => total + one[name], 0);
  return {
    ...came, top: came.end === null ? null : came.end + width - 1, off: sum("off"), bits: sum("bits"),
    gone: run.gone[n] - (n === 0 ? 0 : run.gone[n - 1]), promotedTo: run.promotions.includes(stop) ? values[n] : null,
  };
}

/** The place of the last bit that a register of this adder has for a sum; null for 0 and what is not finite. */
export function endFor(sum, { format, bits }) {
  if (sum === 0 || !Number.isFinite(sum)) return null;
  if (!format) return leadingPlace(sum) - bits + 1;
  const { emin, emax, mantissa_bits: M } = FORMATS[format];
  return Math.min(Math.max(leadingPlace(sum), emin), emax) - M;
}

const COMINGS = {
  running: oneAddend,
  cut: oneAddend,
  kahan({ run, products, start, before, c }) {
    const { near } = doubleRounders(FORMATS[run.adder.format]);
    const value = near(products[start] - c);
    return { addends: [{ role: "wanted", value, count: 1 }], end: endFor(before + value, run.adder), c };
  },
  pairwise({ run, products, stop }) {
    const from = run.lane.promote ? Math.floor((stop - 1) / run.lane.promote) * run.lane.promote : 0;
    const { near } = doubleRounders(FORMATS[run.adder.format]);
    const count = stop - from;
    if (count === 1) return { before: 0, addends: [{ role: "product", value: products[from], count: 1 }], end: endFor(products[from], run.adder) };
    const half = 2 ** Math.ceil(Math.log2(count) - 1);
    const [before, value] = count === 2 ? products.subarray(from, stop)
      : [treeSum(products, from, half, near), treeSum(products, from + half, count - half, near)];
    return { before, addends: [{ role: "tree", value, count: count - half }], end: endFor(before + value, run.adder) };
  },
  aligned({ run, products, start, stop, before }) {
    const { bits } = run.adder;
    const unit = alignedUnit(before, run.exponents, { start, stop, bits });
    const sorted = [...products.subarray(start, stop)].filter((x) => x !== 0).sort((x, y) => Math.abs(y) - Math.abs(x));
    const [largest = 0, smallest = 0] = [sorted[0], sorted.at(-1)];
    const addends = [{ role: "largest", value: largest, count: 1 }, { role: "smallest", value: smallest, count: 1 }];
    return { addends: sorted.length > 1 ? addends : addends.slice(0, 1), end: unit === 0 ? null : Math.log2(unit) };
  },
};

function oneAddend({ run, products, start, stop, before }) {
  let value = 0;
  for (let k = start; k < stop; k += 1) value += products[k];
  const role = stop - start === 1 ? "product" : "block";
  return { addends: [{ role, value, count: stop - start }], end: endFor(before + value, run.adder) };
}

/** The sum of `count` products from `from` on, in pairs; the last one of an odd number waits, and is rounded. */
export function treeSum(products, from, count, near) {
  if (count === 1) return near(products[from]);
  if (count === 2) return near(oddSum(products[from], products[from + 1]));
  const half = 2 ** Math.ceil(Math.log2(count) - 1);
  return near(oddSum(treeSum(products, from, half, near), treeSum(products, from + half, count - half, near)));
}

/** The places of all products: { top, low } of the largest and of the last bit of any; null if all are 0. */
export function placesOfProducts(products) {
  let [large, low] = [0, Infinity];
  for (let k = 0; k < products.length; k += 1) {
    const x = products[k];
    if (x === 0) continue;
    large = Math.max(large, Math.abs(x));
    low = Math.min(low, lastPlace(x));
  }
  return large === 0 ? null : { top: leadingPlace(large), low };
}

// The places of a lane's registers: of the largest one's first bit, and of the last one's end.
function placesOfRun({ registers, adder }) {
  let [most, last] = [0, 0];
  for (let n = 0; n < registers.length; n += 1) {
    const x = Math.abs(registers[n]);
    if (x === 0 || !(x < Infinity)) continue;
    most = Math.max(most, x);
    last = x;
  }
  return most === 0 ? [] : [{ top: leadingPlace(most), low: leadingPlace(last) - widthOf(adder) + 1 }];
}

/** The places that the picture shows during the whole run: { top, low }, so that the register is seen to move. */
export function placesOf(runs, ofProducts) {
  if (ofProducts === null) return { top: 0, low: 1 - FEWEST_PLACES };
  const places = [ofProducts, ...runs.flatMap(placesOfRun)];
  const top = Math.max(...places.map((one) => one.top));
  const wanted = Math.min(top - FEWEST_PLACES + 2, ...places.map((one) => one.low)) - 1;
  return { top, low: Math.max(wanted, top - MOST_PLACES + 1) };
}
