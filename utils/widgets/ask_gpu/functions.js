// Division and functions: their inputs, and their errors measured against what WGSL allows.
// Allowed: WGSL, "Accuracy of Concrete Floating Point Expressions"; an ulp as its section "Floating Point Accuracy" defines it.

import { exponentOfDouble } from "../shared/numbers/double_rounding.js";

export const INPUTS_EACH = 256;
const N = INPUTS_EACH;

/** The expression of each function; its inputs lie one list after another in the buffer. */
export const EXPRESSIONS = {
  reciprocal: "f(6) / f(7u + gid.x)",
  division: "f(7u + gid.x) / f(263u + gid.x)",
  sqrt: "sqrt(f(7u + gid.x))",
  exp: "exp(f(519u + gid.x))",
  log: "log(f(775u + gid.x))",
  sin: "sin(f(1031u + gid.x))",
};

/** Number i of a sequence that fills 0 to 1 evenly: multiples of the golden ratio leave no large gap. */
export const spread = (i) => (i * 0.6180339887498949) % 1;

const table = (make) => Array.from({ length: N }, (_, i) => Math.fround(make(i, spread(i))));

/** Inputs by name, float32 numbers: two of many binades, those of exp, log and sin. */
export const INPUTS = {
  wide: table((i, t) => (1 + t) * 2 ** ((i % 21) - 10)),
  other: table((i, t) => (2 - t) * 2 ** ((i % 13) - 6)),
  exponents: table((_, t) => 16 * t - 8),
  around1: table((i, t) => (1 + t) * 2 ** ((i % 7) - 3)),
  angles: table((_, t) => 6.28 * t - 3.14),
};

/** All inputs in one list, as EXPRESSIONS read it: seven words first, of which the last is 1. */
export const functionInputs = () => [0, 0, 0, 0, 0, 0, 1, ...INPUTS.wide, ...INPUTS.other, ...INPUTS.exponents, ...INPUTS.around1, ...INPUTS.angles];

const ulpOf = (x) => 2 ** (Math.max(exponentOfDouble(Math.abs(x)), -126) - 23);

// sqrt(x) may be as wrong as 1.0 / inverseSqrt(x): 2 ulp of the root's inverse, then 2.5 ulp.
function allowedOfSqrt(_, exact) {
  const inverse = 1 / exact;
  return Math.abs(1 / (inverse - 2 * ulpOf(inverse)) - exact) + 2.5 * ulpOf(exact);
}

// The inputs of each function, its exact value (to a double's precision), and the error that WGSL allows there.
const CASES = {
  reciprocal: { x: INPUTS.wide, exact: (x) => 1 / x, allowed: (_, exact) => 2.5 * ulpOf(exact) },
  division: { x: INPUTS.wide, exact: (x, i) => x / INPUTS.other[i], allowed: (_, exact) => 2.5 * ulpOf(exact) },
  sqrt: { x: INPUTS.wide, exact: Math.sqrt, allowed: allowedOfSqrt },
  exp: { x: INPUTS.exponents, exact: Math.exp, allowed: (x, exact) => (3 + 2 * Math.abs(x)) * ulpOf(exact) },
  log: { x: INPUTS.around1, exact: Math.log, allowed: (x, exact) => (isNearOne(x) ? 2 ** -21 : 3 * ulpOf(exact)), inUlps: (x) => !isNearOne(x) },
  sin: { x: INPUTS.angles, exact: Math.sin, allowed: () => 2 ** -11, inUlps: () => false },
};
const isNearOne = (x) => 0.5 <= x && x <= 2;
const fewDigits = (x) => Number(x.toPrecision(3));

/**
 * What is wrong with float32 results of a function: [the largest error in ulp, the largest share of the error that WGSL
 * allows, how many are not the nearest float32]. Where WGSL bounds the absolute error, that result is left out of the
 * first. An infinity or NaN gives Infinity.
 */
export function measureErrors(name, results) {
  const { x, exact, allowed, inUlps = () => true } = CASES[name];
  let [ulps, share, others] = [0, 0, 0];
  for (let i = 0; i < N; i++) {
    const right = exact(x[i], i);
    const error = Number.isFinite(results[i]) ? Math.abs(results[i] - right) : Infinity;
    if (inUlps(x[i])) ulps = Math.max(ulps, error / ulpOf(right));
    share = Math.max(share, error / allowed(x[i], right));
    if (results[i] !== Math.fround(right)) others += 1;
  }
  return [fewDigits(ulps), fewDigits(share), others];
}
