// exp, tanh and log1p from additions, products and quotients alone, which every browser rounds alike; Math.exp and
// Math.tanh may differ from one browser to the next in the last bit. The twin of elementary.py.

const LN2_HIGH = 0.6931471803691238; // ln 2 in two parts; the first has 20 zeros at its end, so that k times it is exact
const LN2_LOW = 1.9082149292705877e-10;
const EXP_TERMS = Float64Array.from({ length: 14 }, (_, i) => {
  let factorial = 1;
  for (let n = 2; n <= i + 1; n += 1) factorial *= n;
  return 1 / factorial;
}); // 1/1!, 1/2!, ... 1/14!
const LOG_TERMS = Float64Array.from({ length: 18 }, (_, i) => 2 / (2 * i + 1));
const ITSELF = 2 ** -28; // tanh(x) is x to the last bit up to here
const POWERS = new Float64Array(1024).fill(1); // of two, by doubling: 2 ** k is a power function too
for (let k = 1; k < 1024; k += 1) POWERS[k] = 2 * POWERS[k - 1];

// exp(r) - 1 for |r| <= ln(2) / 2.
function nearZero(r) {
  let sum = EXP_TERMS[13];
  for (let i = 12; i >= 0; i -= 1) sum = sum * r + EXP_TERMS[i];
  return sum * r;
}

/** exp(x) - 1 for x from 0 to 700. */
function expm1(x) {
  const k = Math.floor(x / (LN2_HIGH + LN2_LOW) + 0.5);
  const r = x - k * LN2_HIGH - k * LN2_LOW;
  return k === 0 ? nearZero(r) : POWERS[k] * nearZero(r) + (POWERS[k] - 1);
}

/** The hyperbolic tangent. */
export function tanh(x) {
  const size = x < 0 ? -x : x;
  if (!(size >= ITSELF)) return x; // NaN too
  if (size > 22) return x < 0 ? -1 : 1;
  const e = expm1(2 * size);
  const y = e / (e + 2);
  return x < 0 ? -y : y;
}

/** The logistic function 1 / (1 + exp(-x)). */
export function sigmoid(x) {
  if (Number.isNaN(x)) return x;
  const size = x < 0 ? -x : x;
  const e = 1 / (1 + (size > 700 ? Infinity : expm1(size))); // exp(-|x|)
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/** log(1 + exp(x)), what the loss of a class costs. */
export function softplus(x) {
  if (Number.isNaN(x)) return x;
  const size = x < 0 ? -x : x;
  const u = 1 / (1 + (size > 700 ? Infinity : expm1(size)));
  const s = u / (2 + u); // log(1 + u) = 2 atanh(s), with s at most 1/3
  const square = s * s;
  let sum = LOG_TERMS[17];
  for (let i = 16; i >= 0; i -= 1) sum = sum * square + LOG_TERMS[i];
  return (x < 0 ? 0 : x) + sum * s;
}
