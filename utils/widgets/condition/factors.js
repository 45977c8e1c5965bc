// A matrix of a set condition and its factors in a narrow format: the twin of utils/emulation/narrow_lu.py and of `matrix` in
// utils/emulation/refinement.py, bit for bit. A matrix is an array of rows.

import { doubleRounders, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";

const CN_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"; // for the numbers 0 to 63

export const cnZeros = (n) => new Float64Array(n);
export const largestIn = (v) => v.reduce((most, x) => Math.max(most, Math.abs(x)), 0); // NaN stays

/** The functions that store a number in a format, and that round what is computed with numbers of it. */
export function cnArithmetic(name) {
  const same = (x) => x;
  if (name === "float64") return { stored: same, added: same };
  return { stored: name === "float32" ? Math.fround : doubleRounders(FORMATS[name]).near, added: Math.fround };
}

/** The matrix of a condition: singular values from 1 down to 1 / condition, mixed by rotations of rows and columns. */
export function conditionMatrix({ size, rotations }, condition) {
  const step = Math.fround(condition ** (-1 / (size - 1)));
  const a = Array.from({ length: size }, () => cnZeros(size));
  for (let i = 0, value = 1; i < size; i += 1, value *= step) a[i][i] = value;
  rotations.forEach((letters, number) => {
    for (let at = 0; at < letters.length; at += 3) {
      const [first, second, tangent] = [0, 1, 2].map((more) => CN_LETTERS.indexOf(letters[at + more]));
      const t = tangent / 64;
      const [c, s] = [(1 - t * t) / (1 + t * t), (2 * t) / (1 + t * t)];
      for (let i = 0; i < size; i += 1) {
        const [p, q] = number % 2 ? [[i, first], [i, second]] : [[first, i], [second, i]];
        const [x, y] = [a[p[0]][p[1]], a[q[0]][q[1]]];
        a[p[0]][p[1]] = c * x - s * y;
        a[q[0]][q[1]] = s * x + c * y;
      }
    }
  });
  return a;
}

/** The power of two that brings the largest magnitude into 1/2 ... 1; 1 for zeros and infinities. */
export function powerOf(r) {
  const largest = largestIn(r);
  return largest > 0 && largest < Infinity ? 2 ** -(exponentOfDouble(largest) + 1) : 1;
}

/** L and U in one matrix, and the order of the rows, by elimination with partial pivoting; { why } where there are none. */
export function conditionFactors(a, name) {
  const { stored, added } = cnArithmetic(name);
  const n = a.length;
  const [lu, order] = [a.map((row) => row.map((x) => added(stored(x)))), a.map((_, i) => i)];
  for (let k = 0; k < n; k += 1) {
    let pivot = k;
    for (let i = k + 1; i < n; i += 1) if (Math.abs(lu[i][k]) > Math.abs(lu[pivot][k])) pivot = i;
    [lu[k], lu[pivot], order[k], order[pivot]] = [lu[pivot], lu[k], order[pivot], order[k]];
    const top = lu[k];
    for (let j = k; j < n; j += 1) top[j] = stored(top[j]);
    if (!top[k] || !Number.isFinite(top[k])) break;
    for (let i = k + 1; i < n; i += 1) {
      const row = lu[i];
      row[k] = stored(added(row[k] / top[k]));
      for (let j = k + 1; j < n; j += 1) row[j] = added(row[j] - added(row[k] * top[j]));
    }
  }
  if (!lu.every((row) => row.every(Number.isFinite))) return { why: "overflow" };
  if (!lu.every((row, k) => row[k])) return { why: "a pivot is 0" };
  return { lu, order, added };
}

/** What the factors give for a right-hand side, in their arithmetic, or with `wide` in float64. */
export function solvedBy({ lu, order, added }, r, wide = false) {
  const [power, n] = [powerOf(r), r.length];
  const round = wide ? (x) => x : added;
  const y = Float64Array.from(order, (at) => round(r[at] * power));
  for (let k = 0; k < n; k += 1) for (let i = k + 1; i < n; i += 1) y[i] = round(y[i] - round(lu[i][k] * y[k]));
  for (let k = n - 1; k >= 0; k -= 1) {
    y[k] = round(y[k] / lu[k][k]);
    for (let i = 0; i < k; i += 1) y[i] = round(y[i] - round(lu[i][k] * y[k]));
  }
  return y.map((x) => x / power);
}
