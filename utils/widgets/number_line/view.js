// The part of the line that is in view: exact bounds, their change, and where on the screen a number lies.
// A view is { low, high }, two finite numbers of shared/numbers/codec.js with low < high.

import { bitLength, finite, floorLog2, pow2, subtract, ulpPower, valueOf } from "../shared/numbers/codec.js";
import { decimalDigits, digitsText } from "../shared/numbers/number_text.js";
import {
  compareNumbers, countBetween, firstPlace, halfwayAfter, lastPlace, nearestValue, numberFrom, placeBelow,
  placesBetween, signedNum, valueAtPlace,
} from "./grid.js";

const STEPS_OF_A_VIEW = 200;
const MOST_TICKS = 150;
const CLOSEST_TICKS = 4; // pixels
const MAGNET = { pixels: 4, gap: 28 }; // a drag stops on values and middles that are at least this far apart

/** num / den as a double, for numbers far outside the range of doubles too. */
export function quotient(num, den) {
  if (num === 0n) return 0;
  const size = num < 0n ? -num : num;
  const shift = 60 - (bitLength(size) - bitLength(den));
  const whole = shift >= 0 ? (size << BigInt(shift)) / den : size / (den << BigInt(-shift));
  const value = shift > 1000 ? Number(whole) * 2 ** -1000 * 2 ** (1000 - shift) : Number(whole) * 2 ** -shift;
  return num < 0n ? -value : value;
}

export const sumOfNumbers = (a, b) => subtract(a, { ...b, sign: 1 - b.sign });

export const timesFraction = (a, num, den = 1n) => numberFrom(signedNum(a) * num, a.den * den);

/** A power of two as a number. */
export function powerOfTwo(power) {
  const [num, den] = pow2(power);
  return finite(0, num, den);
}

export const viewWidth = ({ low, high }) => subtract(high, low);

/** A function from a number to its pixel in a view that is `pixels` wide; may lie far outside. */
export function pixelScale(view, pixels) {
  const [ln, ld] = [signedNum(view.low), view.low.den];
  const width = viewWidth(view);
  return (number) => pixels * quotient((signedNum(number) * ld - ln * number.den) * width.den, width.num * number.den * ld);
}

/** The number at a pixel, to 1/64 of a pixel. */
export function numberAtPixel(view, pixels, at) {
  const share = [BigInt(Math.round(at * 64)), BigInt(Math.round(pixels * 64))];
  return sumOfNumbers(view.low, timesFraction(viewWidth(view), ...share));
}

/** The nearest multiple of a step, both numbers. */
export function nearestMultiple(number, step) {
  const [top, bottom] = [signedNum(number) * step.den, number.den * step.num];
  const twice = 2n * top + bottom;
  const whole = twice >= 0n ? twice / (2n * bottom) : -((-twice + 2n * bottom - 1n) / (2n * bottom));
  return numberFrom(whole * step.num, step.den);
}

/** The largest of 1, 2, 5 times a power of ten that is not above a positive number. */
export function niceStep(number) {
  const { digits, exponent } = decimalDigits(number, 1, { cut: true });
  const lead = Number(digits) >= 5 ? 5n : Number(digits) >= 2 ? 2n : 1n;
  return exponent >= 0 ? finite(0, lead * 10n ** BigInt(exponent)) : finite(0, lead, 10n ** BigInt(-exponent));
}

/** Bounds with few bits, so that they stay small however often the view is moved. */
export function tidyView({ low, high }) {
  const width = subtract(high, low);
  const e = floorLog2(width.num, width.den);
  const tidyLow = nearestMultiple(low, powerOfTwo(e - 12));
  return { low: shortestForm(tidyLow), high: shortestForm(sumOfNumbers(tidyLow, nearestMultiple(width, powerOfTwo(e - 12)))) };
}

// Without common factors of two; all that these fractions gather are such.
function shortestForm({ sign, num, den }) {
  if (num === 0n) return finite(0, 0n);
  let twos = 0n;
  while (((num | den) >> twos & 1n) === 0n) twos += 1n;
  return finite(sign, num >> twos, den >> twos);
}

/** Whether a number is in view. */
export const isInView = (number, { low, high }) => compareNumbers(low, number) <= 0 && compareNumbers(number, high) <= 0;

/**
 * A view `num / den` times as wide. The value nearest to `about` keeps its place, or where that is not in view, the one
 * nearest to the middle. The view itself if there is nothing more to see: a closer one always holds two values.
 */
export function zoomView(view, { num, den, about, fmt }) {
  const width = viewWidth(view);
  const middle = timesFraction(sumOfNumbers(view.low, view.high), 1n, 2n);
  const point = isInView(about, view) ? about : middle;
  const { value } = nearestValue(point, fmt);
  const still = isInView(value, view) ? value : point;
  const least = powerOfTwo(ulpPower(still, fmt) - 3);
  const most = powerOfTwo(fmt.emax + 3);
  const wanted = timesFraction(width, num, den);
  if (compareNumbers(wanted, num > den ? most : least) === (num > den ? 1 : -1)) return view; // nothing more to see
  const low = subtract(still, timesFraction(subtract(still, view.low), num, den));
  const zoomed = tidyView({ low, high: sumOfNumbers(low, wanted) });
  if (num > den) return zoomed;
  const isGood = (closer) => countBetween(closer.low, closer.high, fmt) >= 2n;
  if (isInView(about, view) && !isInView(about, zoomed)) { // the value and `about` both, where there is room for them
    const between = timesFraction(sumOfNumbers(still, about), 1n, 2n);
    const both = tidyView(aroundPoint(between, timesFraction(wanted, 1n, 2n)));
    if (isInView(about, both) && isInView(still, both) && isGood(both)) return both;
  }
  return isGood(zoomed) ? zoomed : view;
}

/** The view moved by a part of its width; positive: to larger numbers. It stays near the format's values. */
export function panView(view, share, fmt) {
  const by = timesFraction(viewWidth(view), BigInt(Math.round(share * 4096)), 4096n);
  const end = powerOfTwo(fmt.emax + 3);
  const moved = { low: sumOfNumbers(view.low, by), high: sumOfNumbers(view.high, by) };
  const outside = share > 0 ? compareNumbers(moved.high, end) > 0 : compareNumbers(moved.low, { ...end, sign: 1 }) < 0;
  return outside ? view : tidyView(moved);
}

const aroundPoint = (point, reach) => ({ low: subtract(point, reach), high: sumOfNumbers(point, reach) });

/** The views with names: "x", "one", "subnormals", "end"; null where the format has no such part. */
export function namedView(name, { fmt, x }) {
  const max = valueOf(lastPlace(fmt), fmt);
  const step = powerOfTwo(fmt.emax - fmt.mantissa_bits);
  if (name === "end") {
    const view = aroundPoint(max, timesFraction(step, 4n));
    return tidyView(view.low.sign ? { ...view, low: finite(0, 0n) } : view);
  }
  if (name === "one") {
    const view = aroundPoint(finite(0, 1n), powerOfTwo(2 - fmt.mantissa_bits));
    const least = finite(0, 3n, 8n); // where the gap is wide, the binade below 1 and a little more
    return tidyView(compareNumbers(view.low, least) < 0 ? { ...view, low: least } : view);
  }
  if (name === "subnormals") {
    const border = powerOfTwo(fmt.emin);
    return fmt.has_zero ? tidyView({ low: timesFraction(border, -1n, 4n), high: timesFraction(border, 9n, 4n) }) : null;
  }
  const size = { ...x, sign: 0 };
  if (compareNumbers(size, sumOfNumbers(max, timesFraction(step, 3n))) > 0) { // far beyond: the end and x
    const near = subtract(max, timesFraction(step, 3n));
    const far = sumOfNumbers(size, timesFraction(subtract(size, max), 1n, 4n));
    return tidyView(x.sign ? { low: { ...far, sign: 1 }, high: { ...near, sign: 1 } } : { low: near, high: far });
  }
  const reach = timesFraction(powerOfTwo(ulpPower(x, fmt)), 7n, 2n);
  const view = aroundPoint(x, reach);
  if (!fmt.signed && !x.sign && view.low.sign) return tidyView({ low: timesFraction(reach, -1n, 8n), high: view.high });
  return tidyView(view);
}

/** Where a drag to a pixel puts x: on a value or a middle that is near, else on a short decimal. */
export function draggedTo(view, pixels, at, fmt) {
  const number = numberAtPixel(view, pixels, at);
  const scale = pixelScale(view, pixels);
  const { place } = placeBelow(number, fmt);
  if (place >= firstPlace(fmt) - 1n && place <= lastPlace(fmt) && (fmt.has_zero || place >= 0n)) {
    const stops = [valueAtPlace(place, fmt), halfwayAfter(place, fmt), valueAtPlace(place + 1n, fmt)];
    if (scale(stops[2]) - scale(stops[0]) >= MAGNET.gap) {
      const stop = stops.find((point) => Math.abs(scale(point) - at) <= MAGNET.pixels);
      if (stop) return stop;
    }
  }
  return nearestMultiple(number, niceStep(timesFraction(viewWidth(view), 1n, BigInt(Math.ceil(pixels)))));
}

/** x one fine step on: to the next short decimal, but never past a value or a middle that can be told apart. */
export function fineStep(x, direction, view, fmt) {
  const step = niceStep(timesFraction(viewWidth(view), 1n, BigInt(STEPS_OF_A_VIEW)));
  let next = nearestMultiple(x, step);
  if (compareNumbers(next, x) !== direction) next = sumOfNumbers(next, timesFraction(step, BigInt(direction)));
  const { place, exact } = placeBelow(x, fmt);
  const lower = direction < 0 && exact ? place - 1n : place; // the gap into which the step leads
  if (lower < firstPlace(fmt) - (fmt.has_zero ? 1n : 0n) || lower > lastPlace(fmt)) return next;
  const stops = [valueAtPlace(lower, fmt), halfwayAfter(lower, fmt), valueAtPlace(lower + 1n, fmt)];
  if (compareNumbers(subtract(stops[2], stops[0]), timesFraction(step, 4n)) < 0) return next;
  const between = stops.filter((stop) => compareNumbers(stop, x) === direction && compareNumbers(next, stop) === direction);
  return between.length ? between[direction > 0 ? 0 : between.length - 1] : next;
}

/** The next value of the format above (1) or below (-1) x; null at the end. */
export function valueStep(x, direction, fmt) {
  const { place, exact } = placeBelow(x, fmt);
  const next = direction > 0 ? place + 1n : exact ? place - 1n : place;
  const [least, most] = [firstPlace(fmt), lastPlace(fmt)];
  if (direction > 0 ? next > most : next < least) return null;
  return valueAtPlace(direction > 0 ? (next < least ? least : next) : next > most ? most : next, fmt);
}

/** A finite number as text that reads back to it exactly, in Python too: "0.3", "1/3", "3*2^-151". */
export function exactText(number) {
  const digits = decimalDigits(number, 25);
  if (digits.exact) return digitsText(digits, { sign: number.sign, ascii: true });
  const twos = bitLength(number.den) - 1;
  const minus = number.sign ? "-" : "";
  if (number.den !== 1n << BigInt(twos)) return `${minus}${number.num}/${number.den}`;
  let [num, power] = [number.num, -twos];
  while ((num & 1n) === 0n) [num, power] = [num >> 1n, power + 1];
  return `${minus}${num}*2^${power}`;
}

/**
 * The values in view as runs of one spacing: { from, to, power, dense, kind }, from and to places (from <= to), in the
 * order of the line. A dense run is drawn as one band; `power` is the exponent of its gap, null where it has several.
 * kind: "subnormal", "normal", or "mixed" for binades too narrow to be told apart. At most 150 ticks are not dense.
 */
export function runsInView(view, pixels, fmt) {
  const { first, last } = placesBetween(view.low, view.high, fmt);
  if (last < first) return [];
  const screen = { width: viewWidth(view), pixels, fmt };
  const positive = last >= 0n ? runsOfSide(first > 0n ? first : 0n, last, screen) : [];
  const negative = first < 0n ? runsOfSide(last < 0n ? -last : 1n, -first, screen) : [];
  return [...negative.toReversed().map((run) => ({ ...run, from: -run.to, to: -run.from })), ...positive];
}

// From the largest binade down, until a binade is too narrow; what is left is one band. Places count from zero.
function runsOfSide(low, high, { fmt, width, pixels }) {
  const M = BigInt(fmt.mantissa_bits);
  const apart = Math.max(CLOSEST_TICKS, pixels / MOST_TICKS);
  const runs = [];
  for (let top = high; top >= low;) {
    const field = top >> M;
    const subnormal = field === 0n && fmt.has_zero;
    const start = field << M;
    const from = start < low ? low : start;
    const power = (subnormal ? fmt.emin : Number(field) - fmt.bias) - fmt.mantissa_bits;
    const [num, den] = pow2(power);
    const gap = pixels * quotient(num * width.den, den * width.num);
    if (gap * Number(1n << M) < apart && from > low) { // this binade and all below it
      runs.unshift({ from: low, to: top, power: null, dense: true, kind: subnormal ? "subnormal" : "mixed" });
      break;
    }
    runs.unshift({ from, to: top, power, dense: gap < apart, kind: subnormal ? "subnormal" : "normal" });
    top = from - 1n;
  }
  return runs;
}
