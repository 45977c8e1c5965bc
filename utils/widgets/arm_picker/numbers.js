// The numbers of ArmPicker: means with their Student intervals, differences by seed, and the order that one seed gives.
// The data are those of facts.py; words.py is the twin of this part and of words.js in Python.

// Student's t, 97.5 % quantile for 1, 2, ... 10 degrees of freedom.
const STUDENT_T = [12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814];
const NORMAL = 1.959964; // the same quantile of the normal distribution
export const MOST_SEEDS = 9999;

/** Student's t for a 95 % interval. Beyond the table the expansion in 1 / degrees, Abramowitz and Stegun 26.7.5. */
export function studentT(degrees) {
  if (degrees <= STUDENT_T.length) return STUDENT_T[degrees - 1];
  const x = NORMAL;
  return x + (x ** 3 + x) / (4 * degrees) + (5 * x ** 5 + 16 * x ** 3 + 3 * x) / (96 * degrees ** 2)
    + (3 * x ** 7 + 19 * x ** 5 + 17 * x ** 3 - 15 * x) / (384 * degrees ** 3);
}

export const meanOf = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

/** The standard deviation of a sample. */
export function spreadOf(values) {
  const mean = meanOf(values);
  return Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (values.length - 1));
}

/** [mean, half the width of its 95 % Student interval]; null for the width of a single value. As utils.measure does. */
export function meanInterval(values) {
  if (values.length < 2) return [meanOf(values), null];
  return [meanOf(values), (studentT(values.length - 1) * spreadOf(values)) / Math.sqrt(values.length)];
}

/** The fewest seeds whose interval would be no wider than ± `step`, at this spread; null where 9999 are too few. */
export function seedsNeeded(spread, step) {
  let n = Math.max(2, Math.floor(((NORMAL * spread) / step) ** 2)); // the true quantile is larger
  if (n > MOST_SEEDS) return null;
  while ((studentT(n - 1) * spread) / Math.sqrt(n) > step) n += 1;
  return n <= MOST_SEEDS ? n : null;
}

/** The numbers of an arm, one for each seed of the group; null where there is none. */
export function valuesOf(group, arm, { at }) {
  const values = group.runs[arm]?.values[at] ?? null;
  return Array.isArray(values) ? values : group.seeds.map(() => values);
}

export const numbersOf = (values) => values.filter((x) => x !== null);

/** Whether any run of the group has a number of this quantity. */
export const isRecorded = (group, quantity) => Object.keys(group.runs).some((arm) => numbersOf(valuesOf(group, arm, quantity)).length);

/** The steps at which runs of an arm lost their number of this quantity. */
export function nanSteps(group, arm, quantity) {
  if (quantity.finite === false || !isRecorded(group, quantity)) return [];
  return (group.runs[arm]?.nan ?? []).filter(Boolean);
}

/** Differences of an arm and the baseline, by seed: [[seed, difference], ...]. */
export function gapsOf(group, arm, baseline, quantity) {
  const [ours, theirs] = [arm, baseline].map((name) => valuesOf(group, name, quantity));
  return group.seeds.map((seed, i) => [seed, ours[i], theirs[i]]).filter(([, a, b]) => a !== null && b !== null)
    .map(([seed, a, b]) => [seed, Number((a - b).toFixed(9))]);
}

/** How far an arm lies from the baseline where that is too far for a common axis; null where it is not. */
export function farGap(group, arm, baseline, quantity) {
  const gaps = gapsOf(group, arm, baseline, quantity).map(([, gap]) => gap);
  const isFar = quantity.far !== undefined && gaps.length > 0 && Math.abs(meanOf(gaps)) > quantity.far;
  return isFar ? meanOf(gaps) : null;
}

/** The rank of each arm for each seed, 1 for the best; without the arms that lack a number for some seed. */
export function rankedArms(group, arms, quantity) {
  const better = quantity.better ?? -1;
  const held = arms.map((arm) => [arm, valuesOf(group, arm, quantity)]).filter(([, values]) => !values.includes(null));
  return held.map(([arm, values]) => [arm, values.map((x, i) => 1 + held.filter(([, theirs]) => better * theirs[i] > better * x).length)]);
}

/** Ticks that divide [low, high] in round steps, at most six. */
export function ticksOf(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => ({ at: (first + i) * step, text: ((first + i) * step).toFixed(decimals).replace("-", "−") }));
}
