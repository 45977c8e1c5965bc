// What DotProduct says: its lanes, its numbers, and what becomes of one addition.

import { exactNumber } from "../shared/numbers/double_rounding.js";
import { aboutText } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { ADDERS, goneAt, relativeError, valueAt } from "./sums.js";

export const LANE_NAMES = ["A", "B"];
export const DATA_NAMES = { ones: "ones", quarters: "1/4 each", uniform: "uniform in [0, 1)", normal: "normal", large: "one large, many small" };
export const OPERAND_NAMES = ["float16", "bfloat16", "float8_e4m3fn"];
export const PROMOTE_CHOICES = [0, ...Array.from({ length: 8 }, (_, i) => 2 ** (i + 5))];

/** A whole number with commas between groups of three digits. */
export const wholeText = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** A double as text: all digits where there are at most `most`, else two fewer after "≈". */
export const dotText = (x, most = 9) => aboutText(exactNumber(x), most, most - 2).replace("about ", "≈\u00a0");

/** A lane in words. */
export function laneText({ adder, block, promote }) {
  const atOnce = block > 1 ? `, ${block} products at once` : "";
  return `${ADDERS[adder].label}${atOnce}${promote ? `, promoted every ${wholeText(promote)}` : ""}`;
}

/** Why an adder does not add every number of products at once; nothing where it does. */
export const blockReason = ({ kind }) => ({
  pairwise: "In pairs: products come one at a time; sums of equally many products are added, and what is left over at the end, from the smallest up.",
  kahan: "Kahan’s sum takes one product at a time.",
})[kind] ?? "";

/** A share as a percentage of three digits, a small one of fewer. */
export function percentText(share) {
  const percent = 100 * share;
  if (percent === 0) return "0 %";
  if (percent < 0.00095) {
    const [digit, power] = percent.toExponential(0).split("e");
    return `${digit}·10${superscript(Number(power))} %`;
  }
  return `${Number(percent.toPrecision(percent < 0.1 ? 2 : percent >= 99.95 ? 4 : 3))} %`;
}

/** The error of a value with its sign: "−2.4 %". */
export function errorText(value, exact) {
  if (!Number.isFinite(value)) return "–";
  if (value === exact) return "0 %";
  if (exact === 0) return "–";
  return `${value < exact ? "−" : "+"}${percentText(relativeError(value, exact))}`;
}

/** Which product comes in, and what it is. */
export function comingText({ start, stop }, { a, b, products }) {
  const of = `of ${wholeText(products.length)}`;
  if (stop - start > 1) return `Products ${wholeText(start + 1)} to ${wholeText(stop)} ${of}`;
  const texts = [a, b, products].map((values) => dotText(values[start], 6));
  const [left, right, product] = texts.map((text) => text.replace("≈\u00a0", ""));
  return `Product ${wholeText(stop)} ${of}: ${left} × ${right} ${texts.join("").includes("≈") ? "≈" : "="} ${product}`;
}

/** The names of the rows of an addition. */
export const ADDEND_NAMES = {
  product: () => "+ product", block: ({ count }) => `+ ${count} products`, wanted: () => "+ product − c",
  tree: ({ count }) => `+ ${wholeText(count)} others`, largest: () => "+ the largest", smallest: () => "+ the smallest",
};

/** What the boxes of the picture are. */
export function legendText(runs) {
  if (runs.every(({ adder }) => adder.kind !== "aligned")) return "The box is the register. Bits to the right of it fall off.";
  return "The box is the register. The largest exponent of what comes in (of a product: the sum of its factors’ exponents) sets its place, and addends are cut at its right edge. Their sum may reach further left: “after” has the box in its new place.";
}

/** What becomes of an addition, in a sentence or two. */
export function additionText(addition, { adder }) {
  const { after, end, promotedTo } = addition;
  const promoted = promotedTo === null ? "" : ` Promoted to float32, total ${dotText(promotedTo, 8)}: the register is 0 again.`;
  if (!Number.isFinite(after)) return `The total is beyond the range of ${adder.label}: ${dotText(after)} from here on.${promoted}`;
  if (end === null) return `Zero comes in, and the total stays 0.${promoted}`;
  return `${adder.kind === "aligned" ? alignedText(addition) : comingSentence(addition, adder)}${promoted}`;
}

function alignedText({ end, start, stop, gone }) {
  const place = `The largest exponent sets the end, 2${superscript(end)}: `;
  if (gone === 0) return `${place}each product is cut there.`;
  const all = stop - start;
  return `${place}${gone === all ? `all ${all}` : `${gone} of ${all}`} products lie below it and leave no trace.`;
}

const COMING_NAMES = { product: "the product", block: "the block’s sum", wanted: "what comes in", tree: "the other sum" };

function comingSentence({ addends: [{ role, value }], before, after, off, bits }, { kind }) {
  if (value === 0) return "Zero comes in: nothing to lose.";
  const name = COMING_NAMES[role];
  const all = (one, many) => (bits === 1 ? `The only bit of ${name} ${one}` : `All ${bits} bits of ${name} ${many}`);
  if (off === 0) return `${all("has", "have")} a place: nothing is lost.`;
  const kept = kind === "kahan" ? " Kahan’s c keeps the rest." : "";
  if (after === before) return `${all("falls", "fall")} off: ${kept ? "the total does not move." : "swallowed whole."}${kept}`;
  const some = `${off} of the ${bits} bits of ${name}`;
  if (kind === "cut") return `${some} ${off === 1 ? "is" : "are"} cut off.`;
  if (off === bits) return `${all("falls", "fall")} off; rounding makes one last place of ${bits === 1 ? "it" : "them"}.${kept}`;
  const way = after - before === value ? "" : after > before + value ? ": rounded up" : ": rounded down";
  return `${some} fall${off === 1 ? "s" : ""} off${way}.${kept}`;
}

/** Where a lane stops growing, in words; "" if it does not. */
export function stallText({ stalledAt, swampedAt, overflowAt }) {
  if (overflowAt !== null) return `overflows at k = ${wholeText(overflowAt)}`;
  if (stalledAt !== null) return `stalls at k = ${wholeText(stalledAt)}`;
  return swampedAt === null ? "" : `swamps from k = ${wholeText(swampedAt)} on`;
}

/** All that the table says, as one text for those who hear it. */
export function spokenState({ k, runs, exact }) {
  const parts = runs.map((run, i) => {
    const value = valueAt(run, k);
    return `${LANE_NAMES[i]}, ${laneText(run.lane)}: ${dotText(value)}, error ${errorText(value, exact)}, ${percentText(goneAt(run, k))} of the products swallowed.`;
  });
  return `After ${k} products: exactly ${dotText(exact)}. ${parts.join(" ")}`;
}
