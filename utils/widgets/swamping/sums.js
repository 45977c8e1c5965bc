// Sums that grow by one increment: the page's twin of utils/accumulation.py, fast enough for millions of additions.

import { finite, namedCode, subtract, valueOf } from "../shared/numbers/codec.js";
import { seededDice } from "../shared/numbers/dice.js";
import { asDouble, doubleRounders, exactNumber, exponentOfDouble } from "../shared/numbers/double_rounding.js";

const MOST_SAMPLES = 512;

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
