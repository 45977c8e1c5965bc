// Rounding of doubles to a format by any rule, fast enough for a hundred million additions a second.
//
// A format's grid has one gap per binade, so a table by the double's exponent field holds all that rounding needs. For
// ties to even, x + 1.5 * 2**52 gaps leaves a double no room for parts of a gap: the processor itself rounds. All other
// steps are by powers of two and exact. codec.js says the same in BigInt, and a test compares the two.

import { namedCode, valueOf } from "../../shared/numbers/codec.js";
import { asDouble } from "../../shared/numbers/double_rounding.js";

const FIELDS = 2048; // values of a double's exponent field
const DOUBLE_BIAS = 1023;
const double = new Float64Array(1);
const words = new Uint32Array(double.buffer); // the high word comes second on every machine that has a browser

// How many gaps are kept of q gaps, which are not negative, for a number of this sign.
const KEPT = {
  ties_away: (q) => (q - Math.floor(q) >= 0.5 ? Math.floor(q) + 1 : Math.floor(q)),
  toward_zero: (q) => Math.floor(q),
  toward_positive: (q, sign) => (sign > 0 ? Math.ceil(q) : Math.floor(q)),
  toward_negative: (q, sign) => (sign < 0 ? Math.ceil(q) : Math.floor(q)),
};

// Up with the chance of the fraction, as utils.rounding.stochastic has it.
const up = (q, draw) => Math.floor(q) + (draw < q - Math.floor(q) ? 1 : 0);

// What a format is to rounding: its gaps and their inverses by exponent field, its end, and what lies past it.
function gridOf(fmt) {
  const powers = Array.from({ length: FIELDS }, (_, field) => Math.min(Math.max(field - DOUBLE_BIAS, fmt.emin), fmt.emax) - fmt.mantissa_bits);
  const max = asDouble(valueOf(namedCode("largest", fmt), fmt));
  return {
    gaps: Float64Array.from(powers, (power) => 2 ** power),
    inverses: Float64Array.from(powers, (power) => 2 ** -power),
    shifts: Float64Array.from(powers, (power) => 1.5 * 2 ** (power + 52)),
    max,
    end: max + 2 ** (fmt.emax - fmt.mantissa_bits), // the first point past the grid
    past: fmt.has_inf ? Infinity : fmt.has_nan ? NaN : max,
    isSigned: fmt.has_negative_zero,
  };
}

/**
 * A function that rounds a double to a format of at most 8 exponent bits that has a zero.
 *
 * Overflow is what codec.js makes of it without `saturate`. For `stochastic`, `dice` gives numbers in [0, 1), one for
 * each number that is rounded, whatever comes out.
 */
export function rounder(fmt, rule = "ties_to_even", dice = Math.random) {
  const grid = gridOf(fmt);
  const { gaps, inverses, shifts, max, end, past } = grid;
  const zero = (x) => (grid.isSigned && (x < 0 || Object.is(x, -0)) ? -0 : 0);
  const beyond = (x) => (Number.isNaN(x) ? x : x < 0 ? -past : past);

  if (rule === "ties_to_even") {
    if (fmt.name === "float32") return Math.fround;
    return (x) => {
      double[0] = x;
      const shift = shifts[(words[1] >>> 20) & 2047];
      const y = x + shift - shift;
      if (y <= max && y >= -max) return y === 0 ? zero(x) : y;
      return beyond(x);
    };
  }

  const kept = KEPT[rule] ?? ((q, sign) => up(sign * q, dice()) * sign);
  const last = FIELDS - 2; // the field of the largest doubles, whose gap is that of the format's last binade
  return (x) => {
    if (!Number.isFinite(x)) {
      if (rule === "stochastic") dice();
      return beyond(x);
    }
    double[0] = x;
    const [sign, size] = x < 0 ? [-1, -x] : [1, x];
    // past the end, as right before it: up is an overflow, down is the largest value
    const field = size < end ? (words[1] >>> 20) & 2047 : last;
    const q = size < end ? size * inverses[field] : end * inverses[last] * (1 - 2 ** -53);
    const y = kept(q, sign) * gaps[field];
    return y > max ? sign * past : y === 0 ? zero(x) : sign * y;
  };
}

/**
 * A function (a, i, di, b, j, dj, n, out, at, count, step) that writes `count` sums of n products to out[at], ...: of
 * a[i], a[i + di], ... times b[j], b[j + dj], ..., then from b[j + step] on. Each sum is rounded after each product.
 *
 * A product of two numbers of up to 24 bits is exact in a double. The sum is one addition of doubles, then rounded.
 * Rounding to nearest goes through four sums at a time, because each addition has to wait for the one before.
 */
export function sumsOfProducts(fmt, rule = "ties_to_even", dice = Math.random) {
  if (rule !== "ties_to_even") return sumsWith(rounder(fmt, rule, dice));
  return fmt.name === "float32" ? sumsInFloat32 : nearestSums(fmt);
}

function nearestSums(fmt) {
  const { shifts, max, past } = gridOf(fmt);
  const four = new Float64Array(4);
  const high = new Uint32Array(four.buffer);
  const inRange = (rounded, exact) => {
    if (rounded <= max && rounded >= -max) return rounded;
    return Number.isNaN(exact) ? exact : exact < 0 ? -past : past;
  };
  const one = (a, i, di, b, j, dj, n) => {
    let sum = 0;
    for (let k = 0; k < n; k += 1, i += di, j += dj) {
      const exact = sum + a[i] * b[j];
      double[0] = exact;
      const shift = shifts[(words[1] >>> 20) & 2047];
      sum = inRange(exact + shift - shift, exact);
    }
    return sum;
  };
  return (a, i, di, b, j, dj, n, out, at, count, step) => {
    let c = 0;
    for (; c + 4 <= count; c += 4) {
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      let from = i;
      let j0 = j + c * step;
      for (let k = 0; k < n; k += 1, from += di, j0 += dj) {
        const x = a[from];
        const e0 = s0 + x * b[j0];
        const e1 = s1 + x * b[j0 + step];
        const e2 = s2 + x * b[j0 + 2 * step];
        const e3 = s3 + x * b[j0 + 3 * step];
        four[0] = e0;
        four[1] = e1;
        four[2] = e2;
        four[3] = e3;
        const h0 = shifts[(high[1] >>> 20) & 2047];
        const h1 = shifts[(high[3] >>> 20) & 2047];
        const h2 = shifts[(high[5] >>> 20) & 2047];
        const h3 = shifts[(high[7] >>> 20) & 2047];
        s0 = inRange(e0 + h0 - h0, e0);
        s1 = inRange(e1 + h1 - h1, e1);
        s2 = inRange(e2 + h2 - h2, e2);
        s3 = inRange(e3 + h3 - h3, e3);
      }
      out[at + c] = s0;
      out[at + c + 1] = s1;
      out[at + c + 2] = s2;
      out[at + c + 3] = s3;
    }
    for (; c < count; c += 1) out[at + c] = one(a, i, di, b, j + c * step, dj, n);
  };
}

function sumsInFloat32(a, i, di, b, j, dj, n, out, at, count, step) {
  const { fround } = Math;
  let c = 0;
  for (; c + 4 <= count; c += 4) {
    let [s0, s1, s2, s3] = [0, 0, 0, 0];
    for (let k = 0, from = i, j0 = j + c * step; k < n; k += 1, from += di, j0 += dj) {
      const x = a[from];
      s0 = fround(s0 + x * b[j0]);
      s1 = fround(s1 + x * b[j0 + step]);
      s2 = fround(s2 + x * b[j0 + 2 * step]);
      s3 = fround(s3 + x * b[j0 + 3 * step]);
    }
    out[at + c] = s0;
    out[at + c + 1] = s1;
    out[at + c + 2] = s2;
    out[at + c + 3] = s3;
  }
  for (; c < count; c += 1) {
    let sum = 0;
    for (let k = 0, from = i, j0 = j + c * step; k < n; k += 1, from += di, j0 += dj) sum = fround(sum + a[from] * b[j0]);
    out[at + c] = sum;
  }
}

const sumsWith = (round) => (a, i, di, b, j, dj, n, out, at, count, step) => {
  for (let c = 0; c < count; c += 1) {
    let sum = 0;
    for (let k = 0, from = i, to = j + c * step; k < n; k += 1, from += di, to += dj) sum = round(sum + a[from] * b[to]);
    out[at + c] = sum;
  }
};
