// A row of values with shared scales: the twin of quantize_tiles in utils/scaling.py, for the blocks of one row. All
// arithmetic with scales is float32: a double's result, rounded once more (swamping_sums.js says why that is the same).

const BE_LEAST_EXPONENT = -127; // of E8M0, to 127

const beDecoded = (code, fmt) => asDouble(valueOf(code, fmt));
const beNumber = (x) => (x === 0 ? finite(Object.is(x, -0) ? 1 : 0, 0n) : exactNumber(x));
const beRounded = (x, fmt) => round(beNumber(x), fmt, { saturate: true });

const ceilLog2 = (x) => exponentOfDouble(x) + (x === 2 ** exponentOfDouble(x) ? 0 : 1);

/** From the largest magnitude of a block, above 0, to the exponent of the power of two that it stores. */
export const BE_RULES = {
  floor: (amax, fmt) => exponentOfDouble(amax) - fmt.emax,
  ceil: (amax, fmt) => ceilLog2(Math.fround(amax / largestOf(fmt))),
  round(amax, fmt) {
    const e = exponentOfDouble(amax);
    return e - fmt.emax + (amax / 2 ** e >= 2 - 2 ** -(fmt.mantissa_bits + 1) ? 1 : 0); // it rounds up to 2
  },
};

/** The exponent that a rule gives; the least one for a block of zeros. */
export function sharedExponent(amax, fmt, rule) {
  if (amax === 0) return BE_LEAST_EXPONENT;
  return Math.min(Math.max(BE_RULES[rule](amax, fmt), BE_LEAST_EXPONENT), -BE_LEAST_EXPONENT);
}

// The code of the scale that a block's rule gives it.
function ruledScale(amax, fmt, way, tensorScale) {
  const narrow = FORMATS[way.scale_format];
  if (way.rule !== "exact") return BigInt(sharedExponent(amax, fmt, way.rule) + narrow.bias);
  const wanted = Math.fround(Math.fround(amax / largestOf(fmt)) * tensorScale);
  const { code } = beRounded(wanted, narrow);
  return code === 0n ? namedCode("smallest_subnormal", narrow) : code; // a scale of 0 would lose the block
}

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
  const tensorScale = way.tensor_scale ? scaleFromAmax(tensorAmax, largestOf(fmt) * largestOf(narrow)) : 1;
  const tensorInv = Math.fround(1 / tensorScale);
  const tiles = starts.map((from, i) => {
    const byRule = ruledScale(amaxes[i], fmt, way, tensorScale);
    const code = scales.length === starts.length ? BigInt(scales[i]) : byRule; // a kernel may send the format first
    const scaleInv = Math.fround(beDecoded(code, narrow) * tensorInv);
    const scale = Math.min(Math.fround(1 / scaleInv), MOST_SCALE);
    return { from, to: from + way.block, amax: amaxes[i], byRule, code, scaleInv, scale };
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
