// The words of ArmPicker: numbers as text, the verdict on an arm, and what one would conclude from one seed.

import {
  gapsOf, meanInterval, meanOf, MOST_SEEDS, nanSteps, numbersOf, rankedArms, seedsNeeded, spreadOf, valuesOf,
} from "./numbers.js";

const SAID = { // of an arm, of several
  higher: ["is higher", "are higher"], lower: ["is lower", "are lower"],
  equal: ["is equal to the baseline", "are equal to the baseline"],
  cannot: ["cannot be distinguished from the baseline", "cannot be distinguished from the baseline"],
  pair: ["has one pair", "have one pair each"],
  none: ["has no number", "have no number"], missing: ["is not recorded", "are not recorded"],
};

/** |x| with this many decimals, ties away from zero: those of its first 12 digits, so that a sum's last bit is none. */
export function fixedText(x, decimals) {
  const shifted = Number((Math.abs(x) * 10 ** decimals).toPrecision(12));
  return (Math.floor(shifted + 0.5) / 10 ** decimals).toFixed(decimals);
}

/** "a, b and c". */
export const listText = (names) => [names.slice(0, -1).join(", "), ...names.slice(-1)].filter(Boolean).join(" and ");

/** A number and its unit, which stay in one line. */
export const withUnit = (text, unit) => (unit ? `${text}\u00a0${unit}` : text);

export const differenceUnit = ({ unit, difference }) => difference ?? unit;

/** The decimals of a quantity: its own, or so many that the largest of its numbers has three digits. */
export function decimalsOf(group, quantity) {
  if (quantity.decimals !== undefined) return quantity.decimals;
  const numbers = Object.keys(group.runs).flatMap((arm) => numbersOf(valuesOf(group, arm, quantity)));
  const most = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  return [100, 10, 1].filter((bound) => most < bound).length;
}

/** "81.5 ± 0.7 %", the number of one seed, or why there is none. */
export function valueText(group, arm, quantity, seed = null) {
  const all = valuesOf(group, arm, quantity);
  const numbers = numbersOf(seed === null ? all : [all[group.seeds.indexOf(seed)]]);
  if (numbers.length === 0) return nanSteps(group, arm, quantity).length ? "NaN" : "not recorded";
  const [decimals, [mean, half]] = [decimalsOf(group, quantity), meanInterval(numbers)];
  const text = `${mean < 0 ? "−" : ""}${fixedText(mean, decimals)}${half ? `\u00a0±\u00a0${fixedText(half, decimals)}` : ""}`;
  return withUnit(text, quantity.unit);
}

function nanText(group, arm, steps) {
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const runs = group.runs[arm].curves.filter((curve) => curve !== null).length;
  return `the loss was NaN at ${first === last ? `step ${first}` : `steps ${first} to ${last}`} in ${steps.length} of ${runs}`;
}

// ", 19 %": the difference as a share of the baseline; nothing where the quantity has a step of its own.
function shareText(group, baseline, quantity, gaps, mean) {
  if (quantity.step !== undefined) return "";
  const theirs = valuesOf(group, baseline, quantity);
  const percent = (100 * Math.abs(mean)) / meanOf(gaps.map(([seed]) => theirs[group.seeds.indexOf(seed)]));
  return `, ${fixedText(percent, percent >= 10 ? 0 : 1)}\u00a0%`;
}

function told(group, baseline, quantity, gaps) {
  const differences = gaps.map(([, gap]) => gap);
  const [mean, half] = meanInterval(differences);
  const [usual, unit, n] = [decimalsOf(group, quantity), differenceUnit(quantity), gaps.length];
  let decimals = half && Number(fixedText(half, usual)) === 0 ? usual + 1 : usual; // "± 0.0" would say nothing
  const signed = `${mean < 0 ? "−" : "+"}${fixedText(mean, decimals)}`;
  const side = mean > 0 ? "higher" : "lower";
  if (half === null) return ["pair", `one pair, so no interval: ${withUnit(signed, unit)}`];
  if (Math.max(...differences) === Math.min(...differences)) {
    if (mean === 0) return ["equal", `equal in each of ${n} pairs`];
    return [side, `${side} by ${withUnit(fixedText(mean, decimals), unit)}${shareText(group, baseline, quantity, gaps, mean)}, in each of ${n} pairs`];
  }
  if (Math.abs(mean) > half && fixedText(mean, decimals) === fixedText(half, decimals)) decimals += 1; // "0.5 ± 0.5" would seem to reach 0
  const spread = `\u00a0±\u00a0${fixedText(half, decimals)}`;
  if (Math.abs(mean) <= half) return ["cannot", `cannot be distinguished from ${baseline} with these ${n} pairs: ${withUnit(signed + spread, unit)}`];
  return [side, `${side} by ${withUnit(fixedText(mean, decimals) + spread, unit)}${shareText(group, baseline, quantity, gaps, mean)} (${n} pairs)`];
}

/** What the pairs of an arm and the baseline say: { kind, text, gaps: [[seed, difference], ...] }. */
export function verdictOf(group, arm, baseline, quantity) {
  const nan = nanSteps(group, arm, quantity);
  const none = (kind, text) => ({ kind, text, gaps: [] });
  const isEmpty = (name) => numbersOf(valuesOf(group, name, quantity)).length === 0;
  if (isEmpty(arm)) return nan.length ? none("none", `no number: ${nanText(group, arm, nan)}`) : none("missing", "not recorded");
  if (isEmpty(baseline)) {
    const why = nanSteps(group, baseline, quantity).length ? "its loss was NaN" : "it is not recorded";
    return none("none", `nothing to compare with: ${baseline} has no number, ${why}`);
  }
  const gaps = gapsOf(group, arm, baseline, quantity);
  const leftOut = nan.length ? `; ${nanText(group, arm, nan)}, which is left out` : "";
  if (gaps.length === 0) return none("none", `no pair: no seed has a number for both${leftOut}`);
  const [kind, text] = told(group, baseline, quantity, gaps);
  return { kind, text: text + leftOut, gaps };
}

/** How many seeds it would take to see a small difference with this spread; "" where that is not the question: the
 *  seeds do not matter, the difference is far beyond its interval, or the spread is twenty such differences. */
export function neededText(group, baseline, quantity, gaps) {
  const differences = gaps.map(([, gap]) => gap);
  const spread = gaps.length < 2 ? 0 : spreadOf(differences);
  if (spread === 0) return "";
  const [[mean, half], step] = [meanInterval(differences), quantity.step ?? meanOf(numbersOf(valuesOf(group, baseline, quantity))) / 20];
  if (Math.abs(mean) > 2 * half || spread > 20 * step) return "";
  const needed = seedsNeeded(spread, step);
  const count = needed === null ? `more than ${MOST_SEEDS} seeds` : `about ${needed} seeds`;
  return `With this spread, ± ${quantity.step_words ?? "5 %"} takes ${count}.`;
}

/** What the device made of an arm; "" where that is what its name says. */
export function remarkText(group, arm) {
  const remark = group.runs[arm]?.remark;
  return remark ? `${remark[0].toUpperCase()}${remark.slice(1)}.` : "";
}

/** The verdicts on all arms in a sentence. */
export function summaryText(group, others, baseline, quantity) {
  if (others.length === 0) return `Tick a recipe to compare it with ${baseline}.`;
  const verdicts = others.map((arm) => verdictOf(group, arm, baseline, quantity));
  const kinds = others.map((arm, i) => [arm, verdicts[i].kind]);
  const clauses = Object.entries(SAID).map(([kind, [one, several]]) => {
    const names = kinds.filter(([, its]) => its === kind).map(([arm]) => arm);
    return names.length ? `${listText(names)} ${names.length === 1 ? one : several}` : "";
  });
  const { label } = quantity;
  const uncorrected = countUncorrected(verdicts);
  const [alone, after] = uncorrected ? [", each comparison taken alone", ` Not corrected for ${uncorrected} comparisons.`] : ["", ""];
  return `${label[0].toUpperCase()}${label.slice(1)}, against ${baseline}${alone}: ${clauses.filter(Boolean).join("; ")}.${after}`;
}

// How many intervals were looked at where at least one of several excludes 0, else 0.
function countUncorrected(verdicts) {
  const intervals = verdicts.filter(({ kind, gaps }) => ["higher", "lower", "cannot"].includes(kind) && meanInterval(gaps.map(([, gap]) => gap))[1]);
  if (intervals.length < 2 || intervals.every(({ kind }) => kind === "cannot")) return 0;
  return intervals.length;
}

// The arms in the order that one seed gives: "a, then b = c".
function orderText(ranks, i) {
  const places = [...new Set(ranks.map(([, its]) => its[i]))].sort((a, b) => a - b);
  return places.map((place) => ranks.filter(([, its]) => its[i] === place).map(([arm]) => arm).join(" = ")).join(", then ");
}

/** What one would conclude from one seed alone, and what the other seeds say of it. */
export function oneSeedText(group, arms, quantity, seed) {
  const [ranks, { seeds }] = [rankedArms(group, arms, quantity), group];
  if (ranks.length < 2) return `Seed ${seed} alone says nothing: tick recipes that have a number for every seed.`;
  const orders = seeds.map((_, i) => orderText(ranks, i));
  const text = `Seed ${seed} alone says: ${orders[seeds.indexOf(seed)]}.`;
  if (seeds.length === 1) return `${text} No other seed was recorded.`;
  const different = new Set(orders).size;
  if (different === 1) return `${text} All ${seeds.length} seeds give this order.`;
  const firsts = ranks.map(([arm, its]) => [arm, its.filter((rank) => rank === 1).length]).filter(([, count]) => count);
  const shared = seeds.filter((_, i) => ranks.filter(([, its]) => its[i] === 1).length > 1).length;
  const tie = shared ? ` (shared in ${shared})` : "";
  return `${text} The ${seeds.length} seeds give ${different} orders; first is ${listText(firsts.map(([arm, count]) => `${arm} in ${count}`))}${tie}.`;
}
