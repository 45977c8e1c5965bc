// The hidden adders of Microscope: the twin of adders.py. Terms are multiples of 2^-24 up to 2^16 in size, so that every
// sum of eight is exact in a double; only the rule under test rounds.

import { seededDice } from "../shared/numbers/dice.js";
import { exponentOfDouble } from "../shared/numbers/double_rounding.js";

export const PLACES = 8;
const SMALLEST_NORMAL = 2 ** -14; // float16's

const floorHalf = (x) => Math.floor(x + 0.5);
const evenHalf = (x) => (x % 1 === 0.5 || x % 1 === -0.5 ? 2 * Math.round(x / 2) : floorHalf(x));

// Whole numbers from ones with a fraction.
const ROUND = {
  ties_to_even: evenHalf,
  ties_away: (x) => Math.sign(x) * floorHalf(Math.abs(x)),
  toward_zero: Math.trunc,
  toward_negative: Math.floor,
  toward_positive: Math.ceil,
};

function rounded(x, { bits, rule }) {
  if (x === 0) return 0;
  const gap = 2 ** (exponentOfDouble(x) - bits + 1);
  return ROUND[rule](x / gap) * gap;
}

function addOnce(addends, adder) {
  const sum = (values) => values.reduce((total, x) => total + x, 0);
  if (adder.extra === null) return rounded(sum(addends), adder);
  const exponents = addends.filter((x) => x !== 0).map(exponentOfDouble);
  if (!exponents.length) return 0;
  const gap = 2 ** (Math.max(...exponents) - adder.bits + 1 - adder.extra);
  return rounded(sum(addends.map((x) => Math.trunc(x / gap) * gap)), adder);
}

/** The sum that an adder returns for up to eight terms, doubles. */
export function addTerms(adder, terms) {
  const kept = (x) => (adder.flush && Math.abs(x) < SMALLEST_NORMAL ? 0 : x);
  let values = Array.from({ length: PLACES }, (_, i) => kept(terms[i] ?? 0));
  if (adder.order === "pairs") {
    while (values.length > 1) values = values.filter((_, i) => i % 2 === 0).map((x, i) => addOnce([x, values[2 * i + 1]], adder));
    return values[0];
  }
  let total = 0;
  for (let start = 0; start < PLACES; start += adder.order) total = addOnce([total, ...values.slice(start, start + adder.order)], adder);
  return total;
}

/** Draw an adder; `choices` has the keys of each property, as facts.choices. */
export function randomAdder(seed, { extra, rule, order, flush, bits: [least, most] }) {
  const draw = seededDice(seed);
  const bits = least + Math.floor(draw() * (most - least + 1));
  const pick = (options) => options[Math.floor(draw() * options.length)][0];
  return { bits, extra: pick(extra), rule: pick(rule), order: pick(order), flush: pick(flush) };
}
