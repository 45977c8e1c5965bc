// Iterative refinement: the twin of utils/emulation/refinement.py, bit for bit. Sums run in the order that is written there.

import { cnArithmetic, cnZeros, conditionFactors, conditionMatrix, largestIn, powerOf, solvedBy } from "./factors.js";

const CN_STUCK = 10; // steps in which the best backward error has to halve at least once
const CN_TESTED = 1e-8; // what GMRES reduces a residual to
const CN_MOST = 50; // steps

/** The backward error at which n equations are solved. */
export const goalOf = (n) => 2 ** -52 * Math.sqrt(n);

/** b - a x, column after column, each product and each difference rounded to the format. */
export function residualOf(a, x, b, name = "float64") {
  const { stored, added } = cnArithmetic(name);
  const left = b.map(stored);
  for (let j = 0; j < x.length; j += 1) {
    const value = stored(x[j]);
    for (let i = 0; i < left.length; i += 1) left[i] = stored(added(left[i] - stored(added(stored(a[i][j]) * value))));
  }
  return left;
}

export const productOf = (a, x) => residualOf(a, x, cnZeros(a.length)).map((value) => -value);

// A sum as NumPy adds numbers that lie side by side: eight at a time.
function pairwiseSum(v) {
  if (v.length < 8) return v.reduce((sum, x) => sum + x, 0);
  const [part, whole] = [Array.from(v.subarray(0, 8)), v.length - (v.length % 8)];
  for (let i = 8; i < whole; i += 1) part[i % 8] += v[i];
  const sum = part[0] + part[1] + (part[2] + part[3]) + (part[4] + part[5] + (part[6] + part[7]));
  return v.subarray(whole).reduce((all, x) => all + x, sum);
}

const dotOf = (u, v) => pairwiseSum(u.map((x, i) => x * v[i]));
const normOf = (v) => Math.sqrt(dotOf(v, v));

function byFactors(_a, factors, r) {
  return [solvedBy(factors, r), 1];
}

// GMRES on (U^-1 L^-1 a) d = U^-1 L^-1 r: [correction, solves with the factors].
function byGmres(a, factors, r) {
  const power = powerOf(r);
  const start = solvedBy(factors, r.map((x) => x * power), true);
  const size = normOf(start);
  if (!(size > 0 && size < Infinity)) return [start, 1];
  const [basis, columns, turns, target] = [[start.map((x) => x / size)], [], [], [size]];
  while (columns.length < r.length && Math.abs(target.at(-1)) > CN_TESTED * size) {
    let v = solvedBy(factors, productOf(a, basis.at(-1)), true);
    const h = basis.map((q) => {
      const share = dotOf(q, v);
      v = v.map((x, i) => x - share * q[i]);
      return share;
    });
    h.push(normOf(v));
    basis.push(h.at(-1) ? v.map((x) => x / h.at(-1)) : v);
    turns.forEach(([c, s], i) => {
      [h[i], h[i + 1]] = [c * h[i] + s * h[i + 1], c * h[i + 1] - s * h[i]];
    });
    const [last, below] = h.splice(-2);
    const length = Math.sqrt(last * last + below * below);
    if (!(length > 0 && length < Infinity)) break;
    const [c, s] = [last / length, below / length];
    turns.push([c, s]);
    columns.push([...h, length]);
    const end = target.pop();
    target.push(c * end, -s * end);
  }
  return [combined(basis, columns, target).map((x) => x / power), 1 + columns.length];
}

// Solve the triangular system that GMRES has made, and add up the basis with that solution.
function combined(basis, columns, target) {
  const left = target.slice(0, -1);
  let found = cnZeros(basis[0].length);
  for (let k = columns.length - 1; k >= 0; k -= 1) {
    left[k] /= columns[k][k];
    for (let i = 0; i < k; i += 1) left[i] -= left[k] * columns[k][i];
    found = found.map((x, i) => x + left[k] * basis[k][i]);
  }
  return found;
}

/**
 * Solve a x = b by factors in a format: { backward, forward, solves, converged, end }, a list entry for the first solve
 * and for each step. `end`: "converged", "stuck", "most", "overflow", or why there are no factors.
 */
export function conditionRefined(a, b, { factors: name, residual, correction }) {
  const factors = conditionFactors(a, name);
  const found = { backward: [], forward: [], solves: [], converged: false, end: factors.why ?? "" };
  const correct = correction === "gmres" ? byGmres : byFactors;
  const [sizeA, sizeB] = [Math.max(...a.map((row) => row.reduce((sum, x) => sum + Math.abs(x), 0))), largestIn(b)];
  const goal = goalOf(b.length);
  let [x, r] = [cnZeros(b.length), b];
  while (!found.end) {
    const [more, count] = correct(a, factors, r);
    x = x.map((value, i) => value + more[i]);
    if (!x.every(Number.isFinite)) {
      found.end = "overflow";
      break;
    }
    const left = residualOf(a, x, b);
    found.backward.push(largestIn(left) / (sizeA * largestIn(x) + sizeB));
    found.forward.push(largestIn(x.map((value) => value - 1))); // the solution is all ones
    found.solves.push(count);
    found.end = endOf(found.backward, goal);
    r = residual === "float64" ? left : residualOf(a, x, b, residual === "factors" ? name : residual);
  }
  return { ...found, converged: found.end === "converged" };
}

function endOf(backward, goal) {
  const [steps, best] = [backward.length - 1, Math.min(...backward)];
  if (backward.at(-1) <= goal) return "converged";
  if (!Number.isFinite(backward.at(-1))) return "overflow";
  if (steps >= CN_STUCK && best > Math.min(...backward.slice(0, -CN_STUCK)) / 2) return "stuck";
  return steps >= CN_MOST ? "most" : "";
}

/** The system of a condition: [a, b], whose solution is all ones. */
export function conditionSystem(facts, condition) {
  const a = conditionMatrix(facts, condition);
  return [a, productOf(a, new Float64Array(facts.size).fill(1))];
}
