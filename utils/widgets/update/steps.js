// Updates of one weight: a single one exactly (BigInt), and many, fast, with the same results.
//
// Many: doubles hold the values of every format here. The update is any fraction, so weight + update is rounded to odd
// first: a double whose last bit is 1 where something was cut off. Rounding that to at most 51 bits gives what rounding
// the exact sum gives (Boldo and Melquiond, 2008; utils/accumulation.py does the same).

import {
  bitLength, finite, gapPower, namedCode, neighbours, pow2, round, sameNumber, subtract, ulpPower, valueOf,
} from "../shared/numbers/codec.js";
import { seededDice } from "../shared/numbers/dice.js";
import { asDouble, doubleRounders, exactNumber, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";

/** The ways of keeping a weight that are compared; `more` are the bits kept beside each weight of `bits` bits. */
export const KEEPINGS = [
  { key: "ties_to_even", label: "ties to even" },
  { key: "toward_zero", label: "toward zero" },
  { key: "stochastic", label: "stochastic" },
  { key: "kahan", label: "Kahan", more: (bits) => bits },
  { key: "master", label: "float32 master", more: (bits) => (bits < 32 ? 32 : 0) },
];

const RUNS = 100; // of stochastic rounding, for its spread

export const plusNumber = (a, b) => subtract(a, { ...b, sign: 1 - b.sign });
export const sizeOfNumber = (number) => ({ ...number, sign: 0 });
export const isZeroNumber = ({ kind, num }) => kind === "finite" && num === 0n;

/** a / b for exact numbers, as a double with about 50 right bits. */
export function quotient(a, b) {
  const [num, den] = [a.num * b.den, a.den * b.num];
  if (num === 0n) return 0;
  const shift = 60 - bitLength(num) + bitLength(den);
  const size = Number(shift >= 0 ? (num << BigInt(shift)) / den : num / (den << BigInt(-shift))) * 2 ** -shift;
  return a.sign === b.sign ? size : -size;
}

const rounded = (number, fmt, rounding = "ties_to_even") =>
  (number.kind === "finite" ? valueOf(round(number, fmt, { rounding }).code, fmt) : number);

/**
 * One update of the weight with this code, each number exact.
 *
 * Gives { w, exact, below, above, up, down, gap, share, results }: `below` and `above` are the codes of w's neighbours
 * (null past the end), `down` and `up` the gaps to them, `gap` the one on the side of the update, and `share` is
 * |update| / (gap / 2). `results` has { stored } by way of keeping: with { c } for Kahan, with { master }, and with
 * { other, chance } for stochastic rounding, where `chance` is that of `other`, the one farther from zero.
 */
export function oneUpdate(code, update, fmt) {
  const w = valueOf(code, fmt);
  const exact = plusNumber(w, update);
  const { down: below, up: above } = neighbours(code, fmt);
  const gapTo = (next) => finite(0, ...pow2(gapPower(code, next, fmt) ?? ulpPower(w, fmt)));
  const [up, down] = [gapTo(above), gapTo(below)];
  const gap = update.sign ? down : up;
  const share = finite(0, 2n * update.num * gap.den, update.den * gap.num);
  const results = {
    ties_to_even: { stored: rounded(exact, fmt) },
    toward_zero: { stored: rounded(exact, fmt, "toward_zero") },
    stochastic: chances(exact, fmt),
    kahan: kahanUpdate(w, finite(0, 0n), update, fmt),
    master: masterUpdate(exact, fmt),
  };
  return { w, exact, below, above, up, down, gap, share, results };
}

function chances(exact, fmt) {
  const stored = rounded(exact, fmt, "toward_zero");
  if (sameNumber(stored, exact, { signs: false })) return { stored, other: stored, chance: finite(0, 0n) };
  const other = rounded(exact, fmt, exact.sign ? "toward_negative" : "toward_positive");
  const gap = finite(0, ...pow2(ulpPower(exact, fmt)));
  const rest = sizeOfNumber(subtract(exact, stored));
  const past = rest.num * gap.den >= rest.den * gap.num; // far past the end: as good as certain
  return { stored, other, chance: past ? finite(0, 1n) : finite(0, rest.num * gap.den, rest.den * gap.num) };
}

/** Kahan's step, as utils/training/optimizers.py makes it: s = w + c + update; the new w is s, rounded; c is what that cut off. */
export function kahanUpdate(w, c, update, fmt) {
  const sum = plusNumber(plusNumber(w, c), update);
  const stored = rounded(sum, fmt);
  return { stored, c: stored.kind === "finite" ? rounded(subtract(sum, stored), fmt) : { ...stored, kind: "nan" } };
}

function masterUpdate(exact, fmt) {
  const master = rounded(exact, FORMATS.float32);
  return { master, stored: rounded(master, fmt) };
}

const asValues = new Float64Array(1); // one double,
const asCodes = new BigUint64Array(asValues.buffer); // and its bits

function doubleOfCode(code) {
  asCodes[0] = code;
  return asValues[0];
}

function codeOfDouble(x) {
  asValues[0] = x;
  return asCodes[0];
}

const nearestDouble = (number) => doubleOfCode(round(number, FORMATS.float64).code);

/** A function that adds the update, an exact number, to a double, and rounds the sum to odd. */
export function oddAdder(update) {
  const hi = nearestDouble(update);
  const isHeld = Number.isFinite(hi);
  const rest = isHeld ? subtract(update, exactNumber(hi)) : finite(0, 0n);
  const lo = isZeroNumber(rest) ? 0 : quotient(rest, finite(0, 1n)) || (rest.sign ? -Number.MIN_VALUE : Number.MIN_VALUE);
  return function add(x) {
    const sum = x + hi;
    if (!Number.isFinite(sum)) return sum;
    const back = sum - x;
    let lost = x - (sum - back) + (hi - back); // x + hi = sum + lost (Knuth's TwoSum)
    if (lo !== 0) {
      if (Math.abs(sum) < Math.abs(hi) || (lost !== 0 && Math.abs(lost) < 2 * Math.abs(lo))) return oddSumExactly(x, update);
      if (lost === 0) lost = lo;
    }
    if (lost === 0) return sum;
    const code = codeOfDouble(sum);
    if (code & 1n) return sum;
    if (sum === 0) return lost > 0 ? Number.MIN_VALUE : -Number.MIN_VALUE;
    return doubleOfCode(lost > 0 === sum > 0 ? code + 1n : code - 1n);
  };
}

function oddSumExactly(x, update) {
  const { code, exact } = round(plusNumber(exactNumber(x), update), FORMATS.float64, { rounding: "toward_zero" });
  return doubleOfCode(exact ? code : code | 1n);
}

/**
 * The weight after `count` updates, kept in each way; `w` is a double, a value of the format.
 *
 * Gives { ties_to_even, toward_zero, kahan: [w, c], master: [copy, master], stochastic: one for each run }.
 */
export function manyUpdates({ fmt, w, update, count, seed = 1, runs = RUNS }) {
  const add = oddAdder(update);
  const { near, random } = doubleRounders(fmt);
  const { near: nearInFloat32 } = doubleRounders(FORMATS.float32);
  const truncate = truncation(fmt);
  const master = repeated(w, count, (x) => nearInFloat32(add(x)));
  return {
    ties_to_even: repeated(w, count, (x) => near(add(x))),
    toward_zero: repeated(w, count, (x) => truncate(add(x))),
    kahan: kahanUpdates({ w, count, update, add, near, fmt }),
    master: [near(master), master],
    stochastic: stochasticUpdates({ w, count, hi: nearestDouble(update), random, seed, runs }),
  };
}

// What no longer changes stays as it is: that is the end.
function repeated(start, count, step) {
  let x = start;
  for (let i = 0; i < count; i += 1) {
    const next = step(x);
    if (Object.is(next, x)) break;
    x = next;
  }
  return x;
}

// s = w + c + update; w = s, rounded; c = s - w, rounded. The sums of two are exact as doubles, or BigInt makes the step.
function kahanUpdates({ w: start, count, update, add, near, fmt }) {
  let [w, c] = [start, 0];
  for (let i = 0; i < count && Number.isFinite(w); i += 1) {
    const x = w + c;
    const t = near(add(x));
    if (!isExactSum(w, c, x) || !isExactSum(x, -t, x - t)) {
      const step = kahanUpdate(exactNumber(w), exactNumber(c), update, fmt);
      [w, c] = [asDouble(step.stored), asDouble(step.c)];
    } else [w, c] = [t, near(add(x - t))];
  }
  return [w, c];
}

function isExactSum(a, b, sum) {
  const back = sum - a;
  return a - (sum - back) + (b - back) === 0;
}

// Here the sum may be a plain double: the chance of each neighbour is right to 2**(precision - 53).
function stochasticUpdates({ w, count, hi, random, seed, runs }) {
  return Array.from({ length: runs }, (_, run) => {
    const dice = seededDice(1000 * seed + run);
    let x = w;
    for (let i = 0; i < count; i += 1) x = random(x + hi, dice);
    return x;
  });
}

// A double to a format, toward zero; what lies past the largest value becomes that.
function truncation({ emin, mantissa_bits: M, name }) {
  const max = asDouble(valueOf(namedCode("largest", FORMATS[name]), FORMATS[name]));
  return (x) => {
    if (Math.abs(x) >= max) return Math.sign(x) * max;
    const gap = 2 ** (Math.max(exponentOfDouble(x), emin) - M);
    return Math.trunc(x / gap) * gap;
  };
}

/** Mean and standard deviation of runs; both NaN where one of them has left the range. */
export function spread(runs) {
  const mean = runs.reduce((sum, x) => sum + x, 0) / runs.length;
  return { mean, sd: Math.sqrt(runs.reduce((sum, x) => sum + (x - mean) ** 2, 0) / Math.max(runs.length - 1, 1)) };
}
