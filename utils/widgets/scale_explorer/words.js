// What ScaleExplorer says: the twin of the words in facts.py.

import { exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { largestOf } from "../shared/numbers/scaling.js";
import { powerText, sizeText, withCommas } from "../shared/words/sizes.js";

const SE_FLOAT32_ERROR = 2 ** -22; // of amax * (max / amax), two roundings

/** A number with few digits: 57,344, 0.0625, 1.234 × 10⁻⁸; what is whole exactly, a long power of two as one. */
export function numberInShort(x, digits = 4) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x < 0 ? "−∞" : "∞";
  const size = Math.abs(x);
  if (Number.isInteger(size) && size < 1e6) return (x < 0 ? "−" : "") + size.toLocaleString("en");
  const long = size > 0 && size === 2 ** exponentOfDouble(size) && !(size >= 1e-3 && size < 1e6);
  return (x < 0 ? "−" : "") + (long ? powerText(exponentOfDouble(size)) : withCommas(sizeText(size, digits)));
}

/** A ratio in dB with one decimal, or what it is instead. */
export function dbText(db) {
  if (Number.isNaN(db) || db === -Infinity) return "none";
  if (db === Infinity) return "∞ dB";
  const tenths = Math.abs(db).toFixed(1);
  return `${db < 0 && Number(tenths) ? "−" : ""}${tenths} dB`;
}

/** A relative error in percent; what float32 alone rounds away as less than 0.001 %. */
export function relativeText(error) {
  if (!Number.isFinite(error)) return "–";
  return error > 0 && error < 1e-5 ? "less than 0.001\u00a0%" : `${sizeText(100 * error)}\u00a0%`;
}

/** The sentence of facts.py. */
export function scaleSentence(carried, saturate) {
  const { fmt, counts, x } = carried;
  const { already } = counts;
  const parts = [
    endClause(counts.zero, "becomes zero", "become zero"), endClause(counts.subnormal, "is subnormal", "are subnormal"),
    endClause(counts.past, ...pastWords(fmt, saturate)),
  ];
  const zeros = already ? ` (${already} ${already === 1 ? "was" : "were"} zero already.)` : "";
  return `${fmt.label}, scale ${numberInShort(carried.scale)}: amax ${numberInShort(carried.amax)} lands at ${landingText(carried)}. `
    + `Of ${x.length} values ${parts.join(", ")}.${zeros} SQNR: ${dbText(carried.db)}, median error: ${relativeText(carried.medianError)}.`;
}

function landingText({ fmt, landing, past }) {
  const max = largestOf(fmt);
  const [there, largest] = [numberInShort(landing), numberInShort(max)];
  if (Math.abs(landing - max) <= max * SE_FLOAT32_ERROR) return `${largest}, the largest value`;
  if (past.includes(true)) return `${there}, past the largest value, ${largest}`;
  if (landing > max) return `${there}, which is rounded to the largest value, ${largest}`;
  return `${there}, below the largest value, ${largest}`;
}

/** What becomes of a value that is too large, of one and of many. */
export function pastWords(fmt, saturate) {
  if (saturate || !fmt.has_nan) return ["saturates", "saturate"];
  const end = fmt.has_inf ? "∞" : "NaN";
  return [`becomes ${end}`, `become ${end}`];
}

const endClause = (n, one, many) => (n === 0 ? `none ${one}` : `${n} ${n === 1 ? one : many}`);
