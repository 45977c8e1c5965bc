// What Condition says: its choices, sizes as powers of ten, and how a solution came about.

import { FORMATS } from "../shared/numbers/formats.js";
import { superscript } from "../shared/numbers/superscript.js";
import { goalOf } from "./refined.js";

export const CN_LABELS = { float64: "float64", float32: "float32", float16: "float16", bfloat16: "bfloat16", float8_e4m3fn: "E4M3" };
export const CN_RESIDUALS = [["float64", "float64"], ["float32", "float32"], ["factors", "as the factors"]];
const CN_GROWN = "x has grown until b − A x is beyond the end of its format";
export const CN_CORRECTIONS = [["factors", "the factors"], ["gmres", "GMRES"]];

/** The conditions that can be set: 1, 2, 5, 10 ... 10¹⁰. */
export const CONDITIONS = Array.from({ length: 31 }, (_, i) => Number(`${[1, 2, 5][i % 3]}e${Math.floor(i / 3)}`));

/** A size with `digits` digits, as a power of ten where it is far from 1. */
export function cnSize(x, digits = 2) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : "∞";
  if (x === 0 || (x >= 1e-3 && x < 1e3)) return String(Number(x.toPrecision(digits)));
  const [significand, power] = x.toExponential(digits - 1).split("e");
  const ten = `10${superscript(Number(power))}`;
  return Number(significand) === 1 ? ten : `${Number(significand)}\u00a0×\u00a0${ten}`;
}

/** Half the gap after 1, relative: the unit roundoff of a format. */
export const roundoffOf = (name) => 2 ** -(FORMATS[name].mantissa_bits + 1);

/** How a solution ended, in a few words for a table. */
export function endText({ converged, end, backward }) {
  const steps = backward.length - 1;
  if (converged) return steps === 1 ? "1 step" : `${steps} steps`;
  return backward.length ? { stuck: "stuck", most: `not in ${steps}`, overflow: "overflow" }[end] : "no factors";
}

const cnCount = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function endSentence({ end, backward, solves }, { correction, size }) {
  const [steps, best] = [backward.length - 1, cnSize(Math.min(...backward))];
  const all = solves.reduce((sum, count) => sum + count, 0);
  const cost = correction === "gmres" ? `${cnCount(steps, "step")} of GMRES, ${all} solves with the factors in all,` : cnCount(steps, "step");
  if (end === "overflow") return `It overflows after ${cost}: ${CN_GROWN}.`;
  if (end === "stuck") return `It is stuck: ten steps do not halve the backward error, ${best} at best.`;
  if (end !== "converged") return `It is not there after ${cost}: the backward error is ${best}.`;
  const useless = Math.max(...solves) > size ? ` A step took ${size + 1} solves, which is enough without any help from the factors.` : "";
  if (steps === 0) return `That needs no further step: the backward error is ${best}.${useless}`;
  const share = (backward.at(-1) / backward[0]) ** (1 / steps);
  const each = correction === "gmres" ? useless : ` Each step divides the backward error by ${cnSize(1 / share)} on average.`;
  return `After ${cost} the backward error is ${best}; the goal is ${cnSize(goalOf(size))}.${each}`;
}

// What a residual in a narrow format does where GMRES corrects: its own products with A are float64 all the same.
function spoiltText({ factors, residual, correction }, { forward }) {
  if (correction !== "gmres" || residual === "float64" || factors === "float64" || !(forward[1] > forward[0])) return "";
  const name = CN_LABELS[residual === "factors" ? factors : residual];
  return `GMRES multiplies by A in float64 here, so the first x is good. Each correction of a ${name} residual spoils it: the second x is wrong by ${cnSize(forward[1])}.`;
}

/** One solution in words; `wide` is the one with float64 factors. */
export function conditionVerdict(state, found, wide) {
  const { condition, factors } = state;
  const u = roundoffOf(factors);
  const opening = `${CN_LABELS[factors]} factors, κ = ${cnSize(condition, 1)}: κu = ${cnSize(condition * u)}, with u = 2${superscript(Math.log2(u))}.`;
  if (found.backward.length === 0) return `${opening} There are no factors: ${found.end === "overflow" ? "a number overflows" : found.end}.`;
  const first = `${state.correction === "gmres" ? "GMRES'" : "The"} first x is wrong by ${cnSize(found.forward[0])}.`;
  const digits = found.converged && factors !== "float64" ? ` x is then wrong by ${cnSize(found.forward.at(-1))}; float64 factors give ${cnSize(wide.forward.at(-1))}.` : "";
  return `${opening} ${first} ${spoiltText(state, found) || endSentence(found, state)}${digits}`;
}
