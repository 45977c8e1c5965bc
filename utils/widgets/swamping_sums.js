// Sums that grow by one increment: the page's twin of utils/accumulation.py, fast enough for millions of additions.
//
// Sums are kept in doubles, and every result is still the exact one, rounded once: rounding a + b to a double's 53 bits
// and then to p bits is the same as rounding it to p bits at once, for a and b of p bits, if 53 >= 2 p + 2 (Figueroa,
// "When is double rounding innocuous?", 1995). So p may be 25, and float32 has 24. codec.js says the same in BigInt.

const MOST_SAMPLES = 512;
const NORMAL_DRAWS = 6; // each gives two numbers of 16 bits: the sum of twelve has variance 1
const doubleView = new DataView(new ArrayBuffer(8));

/** The exponent of a double: floor(log2(|x|)); below -1000 for zero, above 1000 for what is not finite. */
function exponentOfDouble(x) {
  doubleView.setFloat64(0, x);
  return ((doubleView.getUint32(0) >>> 20) & 0x7ff) - 1023;
}

/** The exact number (codec.js) that a double is. */
export function exactNumber(x) {
  if (x === 0) return finite(0, 0n); // which float64 would write over 2**1074
  doubleView.setFloat64(0, x);
  return valueOf(doubleView.getBigUint64(0), FORMATS.float64);
}

/** The double of an exact number that has at most 53 bits, as every value of a format has. */
export function asDouble({ kind, sign, num, den }) {
  const size = kind === "nan" ? NaN : kind === "infinity" ? Infinity : Number(num) / Number(den);
  return sign ? -size : size;
}

/**
 * Functions that round a double to a format: `near` with ties to even, `random` up or down with the chances that make
 * the mean right. What leaves the range becomes what codec.js makes of it.
 */
export function doubleRounders(fmt) {
  const { emin, emax, mantissa_bits: M } = fmt;
  const max = asDouble(valueOf(namedCode("largest", fmt), fmt));
  const past = fmt.has_inf ? Infinity : fmt.has_nan ? NaN : max;
  const gaps = Float64Array.from({ length: emax - emin + 1 }, (_, i) => 2 ** (emin + i - M));
  // x + 1.5 * 2**52 gaps has no room for parts of a gap: the processor rounds there, with ties to even.
  const shifts = gaps.map((gap) => 1.5 * 2 ** 52 * gap);
  const inRange = (y, x) => (Math.abs(y) > max ? (x < 0 ? -past : past) : y);
  const outside = (x) => (Number.isNaN(x) ? x : x < 0 ? -past : past);

  function near(x) {
    const e = exponentOfDouble(x);
    if (e > emax) return outside(x);
    const shift = shifts[e < emin ? 0 : e - emin];
    const y = x + shift - shift;
    return y > max || y < -max ? inRange(y, x) : y;
  }

  function random(x, dice) {
    const e = exponentOfDouble(x);
    if (e > emax) return outside(x);
    const gap = gaps[e < emin ? 0 : e - emin];
    const whole = Math.floor(x / gap);
    return inRange((whole + (dice() < x / gap - whole ? 1 : 0)) * gap, x);
  }

  return { near: fmt.name === "float32" ? Math.fround : near, random }; // the same, and only there millions are made
}

/** Random numbers in [0, 1) from a seed: the same ones each time (mulberry32). The twin of both draws is dice.py. */
export function seededDice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Nearly normal numbers from a seed: sums of twelve numbers of 16 bits, less 6. */
export function nearlyNormal(seed) {
  const draw = seededDice(seed);
  return () => {
    let sum = 0;
    for (let i = 0; i < NORMAL_DRAWS; i += 1) {
      const bits = draw() * 2 ** 32;
      sum += (bits >>> 16) + (bits & 0xffff);
    }
    return sum / 2 ** 16 - NORMAL_DRAWS;
  };
}

/**
 * A sum before its first addition. `increment` and `start` are doubles and values of the format.
 *
 * `plain` is the sum with ties to even, `kahan` and `c` Kahan's sum and compensation, `lucky` the one with stochastic
 * rounding; `before` holds all four as they were before the last addition, `stalledAt` the number of additions at
 * which the plain sum stopped changing, or null; `leapt` is the longest leap. `samples` are points [n, plain, kahan,
 * lucky] for the plot, at most 512.
 */
export function newSum({ fmt, increment, start = 0, seed = 1 }) {
  const sum = {
    fmt, increment, start, n: 0, plain: start, kahan: start, c: 0, lucky: start, before: null, stalledAt: null, leapt: 0,
    samples: [[0, start, start, start]], stride: 1, dice: seededDice(seed), ...doubleRounders(fmt),
  };
  return Object.assign(sum, { reach: exactReach(sum) });
}

// Up to which magnitude every whole multiple of the last bit of start and increment is a value of the format.
function exactReach({ fmt, increment, start }) {
  const last = (x) => {
    let gap = 2 ** (Math.max(exponentOfDouble(x), fmt.emin) - fmt.mantissa_bits);
    while (x !== 0 && x % (2 * gap) === 0) gap *= 2;
    return x === 0 ? Infinity : gap;
  };
  const max = asDouble(valueOf(namedCode("largest", fmt), fmt));
  return Math.min(Math.min(last(increment), last(start)) * 2 ** (fmt.mantissa_bits + 1), max);
}

/** How many of the next additions are exact for every lane, so that n of them are one multiplication. */
export function exactAdditions({ increment, plain, kahan, c, lucky, reach }) {
  if (kahan !== plain || lucky !== plain || c !== 0 || !(Math.abs(plain) <= reach)) return 0;
  return Math.floor((increment > 0 ? reach - plain : reach + plain) / Math.abs(increment));
}

/**
 * Add the increment `count` times, or with `untilStall` until one changes nothing or overflows, if that is sooner.
 * Additions that are exact are made in one leap. `sum.stalledAt` becomes the number of additions at the stall.
 */
export function addMore(sum, count, { untilStall = false } = {}) {
  const end = sum.n + count;
  while (sum.n < end) {
    const leap = Math.min(exactAdditions(sum), end - sum.n);
    if (leap > 0) leapAhead(sum, leap);
    else addOneByOne(sum, Math.min(end - sum.n, sum.stride), untilStall);
    takeSample(sum);
    if (untilStall && sum.stalledAt !== null) break;
  }
  if (hasStalled(sum)) sum.stalledAt ??= sum.n;
}

function leapAhead(sum, count) {
  const last = sum.plain + (count - 1) * sum.increment;
  sum.before = { plain: last, kahan: last, c: 0, lucky: last };
  sum.plain = sum.kahan = sum.lucky = last + sum.increment;
  sum.n += count;
  sum.leapt = Math.max(sum.leapt, count);
  sum.stride = Math.max(sum.stride, 2 ** Math.floor(Math.log2(sum.n / MOST_SAMPLES)));
}

function addOneByOne(sum, count, untilStall) {
  const { increment, near, random, dice } = sum;
  let { plain, kahan, c, lucky, stalledAt } = sum;
  let last = count - 1;
  for (let i = 0; i <= last; i += 1) {
    const next = near(plain + increment);
    if (stalledAt === null && (next === plain || !(Math.abs(next) < Infinity))) {
      stalledAt = sum.n + i + (next === plain ? 0 : 1);
      if (untilStall) last = i; // after the addition that changes nothing, or overflows
    }
    if (i === last) sum.before = { plain, kahan, c, lucky };
    plain = next;
    const y = near(increment - c);
    const t = near(kahan + y);
    c = near(near(t - kahan) - y);
    kahan = t;
    lucky = random(lucky + increment, dice);
  }
  Object.assign(sum, { plain, kahan, c, lucky, stalledAt, n: sum.n + last + 1 });
}

function takeSample(sum) {
  sum.samples.push([sum.n, sum.plain, sum.kahan, sum.lucky]);
  if (sum.samples.length < MOST_SAMPLES) return;
  sum.samples = sum.samples.filter((_, i) => i % 2 === 0);
  sum.stride *= 2;
}

/** Whether another addition leaves the plain sum as it is: it has stalled, or left the range. */
export const hasStalled = ({ plain, increment, near }) => Object.is(near(plain + increment), plain);

/** What the sum would be without any rounding, as an exact number. */
export function exactSum({ n, increment, start }) {
  const d = exactNumber(increment);
  return subtract(exactNumber(start), finite(1 - d.sign, d.num * BigInt(n), d.den));
}
