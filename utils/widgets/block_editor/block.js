// A row of values with shared scales: the twin of quantize_tiles in utils/scaling.py, for the blocks of one row; their
// scales are those of shared/numbers/scaling.js. All arithmetic with scales is float32: a double's result, rounded once more
// (shared/numbers/double_rounding.js says why that is the same).

import { encode, finite, round, valueOf } from "../shared/numbers/codec.js";
import { asDouble, exactNumber } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { narrowFormat, scaleOfInverse, storedScale, tensorScaleOf } from "../shared/numbers/scaling.js";

export const beDecoded = (code, fmt) => asDouble(valueOf(code, fmt));
const beNumber = (x) => (x === 0 ? finite(Object.is(x, -0) ? 1 : 0, 0n) : exactNumber(x));
const beRounded = (x, fmt) => round(beNumber(x), fmt, { saturate: true });

/**
 * The values of a state in its format: { fmt, way, narrow, tensorAmax, tensorInv, tiles, cells, totals }.
 *
 * A tile is a block: its values `from` ... `to` - 1, their `amax`, the code of its scale `byRule`, and of the one that
 * it has, `scaleInv` and `scale`. A cell is a value: `x`, `scaled`, the code that it has, what that `stored` is worth,
 * and its `fate`. `scales` and `codes` of the state are what the reader has set; where they are empty a rule decides.
 */
export function blockView(facts, { element, scaling, values, tensor_amax: given, scales, codes }) {
  const [fmt, way] = [FORMATS[element], facts.scalings[scaling]];
  const narrow = FORMATS[way.scale_format];
  const x = values.map(Math.fround);
  const starts = x.map((_, i) => i).filter((i) => i % way.block === 0);
  const amaxes = starts.map((from) => Math.max(...x.slice(from, from + way.block).map(Math.abs)));
  const tensorAmax = Math.max(Math.fround(given), ...amaxes);
  const [own, kept] = [element, way.scale_format].map((name) => narrowFormat(name));
  const tensorScale = tensorScaleOf(tensorAmax, way, own, kept);
  const tensorInv = Math.fround(1 / tensorScale);
  const tiles = starts.map((from, i) => {
    const byRule = encode(exactNumber(storedScale(amaxes[i], way, own, { narrow: kept, tensorScale })), narrow);
    const code = scales.length === starts.length ? BigInt(scales[i]) : byRule; // a kernel may send the format first
    const scaleInv = Math.fround(beDecoded(code, narrow) * tensorInv);
    return { from, to: from + way.block, amax: amaxes[i], byRule, code, scaleInv, scale: scaleOfInverse(scaleInv) };
  });
  const cells = x.map((value, i) => beCell(value, codes.length ? BigInt(codes[i]) : null, tiles[Math.floor(i / way.block)], fmt));
  return { fmt, way, narrow, tensorAmax, tensorInv, tiles, cells, totals: beTotals(cells) };
}

function beCell(x, given, { scale, scaleInv }, fmt) {
  const scaled = Math.fround(x * scale);
  const { code: own, overflow } = Number.isNaN(scale) ? { code: 0n } : beRounded(scaled, fmt);
  const code = given ?? own;
  const worth = beDecoded(code, fmt);
  const stored = Math.fround(worth * scaleInv);
  const fate = beFate({ x, stored, overflow, byHand: code !== own });
  return { x, scaled, code, worth, stored, fate };
}

function beFate({ x, stored, overflow, byHand }) {
  if (Number.isNaN(stored)) return "nan";
  if (byHand) return "by hand";
  if (stored === x) return "exact";
  if (stored === 0) return "zero"; // with a scale of 0 what saturates too
  return overflow ? "saturated" : "rounded";
}

/** How many values saturate and become 0, and the error: the root of the squares of y − x over those of x. */
export function beTotals(cells) {
  const squares = (size) => cells.reduce((sum, cell) => sum + size(cell) ** 2, 0);
  const signal = squares(({ x }) => x);
  const count = (fate) => cells.filter((cell) => cell.fate === fate).length;
  return { saturated: count("saturated"), zeros: count("zero"), error: signal === 0 ? null : Math.sqrt(squares(({ x, stored }) => stored - x) / signal) };
}
