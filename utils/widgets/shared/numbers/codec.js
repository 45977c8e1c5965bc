// Codes and values of every format, exactly, in BigInt: the page's twin of utils/formats.py and utils/rounding.py.
//
// A code is a BigInt. A number is { kind: "finite" | "infinity" | "nan", sign: 0 | 1, num, den }, with num and den
// BigInts and den > 0; the sign stands apart so that -0 exists.

export const ROUNDINGS = [
  "ties_to_even", "ties_away", "toward_zero", "toward_positive", "toward_negative", "stochastic",
];

const ALMOST_ONE = { num: (1n << 64n) - 1n, den: 1n << 64n };

export const bitLength = (n) => {
  const hex = n.toString(16);
  return n === 0n ? 0 : 4 * hex.length - Math.clz32(parseInt(hex[0], 16)) + 28;
};

export const pow2 = (power) => (power >= 0 ? [1n << BigInt(power), 1n] : [1n, 1n << BigInt(-power)]);

export const finite = (sign, num, den = 1n) => ({ kind: "finite", sign, num, den });

/** The largest e with 2**e <= num / den. */
export function floorLog2(num, den) {
  const e = bitLength(num) - bitLength(den);
  const fits = e >= 0 ? num >= den << BigInt(e) : num << BigInt(-e) >= den;
  return fits ? e : e - 1;
}

/** The stored fields of a code: sign as 0 or 1, exponent as a Number, fraction as a BigInt. */
export function fields(code, fmt) {
  const M = BigInt(fmt.mantissa_bits);
  return {
    sign: fmt.signed ? Number(code >> BigInt(fmt.bits - 1)) : 0,
    exponent: Number((code >> M) & ((1n << BigInt(fmt.exponent_bits)) - 1n)),
    fraction: code & ((1n << M) - 1n),
  };
}

/** The class of a code: "zero", "subnormal", "normal", "infinity" or "nan". */
export function classify(code, fmt) {
  const { sign, exponent, fraction } = fields(code, fmt);
  const top = exponent === 2 ** fmt.exponent_bits - 1;
  if (fmt.specials === "ieee" && top) return fraction === 0n ? "infinity" : "nan";
  if (fmt.specials === "all_ones" && top && fraction === (1n << BigInt(fmt.mantissa_bits)) - 1n) return "nan";
  if (fmt.specials === "negative_zero" && sign === 1 && exponent === 0 && fraction === 0n) return "nan";
  if (exponent > 0 || !fmt.has_zero) return "normal";
  return fraction === 0n ? "zero" : "subnormal";
}

/** A code taken apart: its class, its fields, and significand * 2**power, its magnitude where it is finite. */
export function decode(code, fmt) {
  const kind = classify(code, fmt);
  const field = fields(code, fmt);
  const hidden = kind === "normal" ? 1n << BigInt(fmt.mantissa_bits) : 0n;
  const e = kind === "normal" ? field.exponent - fmt.bias : fmt.emin;
  return { kind, ...field, significand: hidden + field.fraction, power: e - fmt.mantissa_bits };
}

/** The number that a code stands for. */
export function valueOf(code, fmt) {
  const { kind, sign, significand, power } = decode(code, fmt);
  if (kind === "nan" || kind === "infinity") return { kind, sign, num: 0n, den: 1n };
  const [up, down] = pow2(power);
  return finite(sign, significand * up, down);
}

/** The difference a - b of two finite numbers. */
export function subtract(a, b) {
  const left = (a.sign ? -a.num : a.num) * b.den;
  const right = (b.sign ? -b.num : b.num) * a.den;
  const num = left - right;
  return finite(num < 0n ? 1 : 0, num < 0n ? -num : num, a.den * b.den);
}

/** Whether two numbers are the same; a zero equals a zero of the other sign unless `signs` is asked for. */
export function sameNumber(a, b, { signs = true } = {}) {
  if (a.kind !== b.kind) return false;
  if (a.kind === "nan") return true;
  if (a.sign !== b.sign && (signs || a.kind === "infinity" || a.num !== 0n)) return false;
  return a.kind === "infinity" || a.num * b.den === b.num * a.den;
}

/** The exponent of the format's spacing at a finite number: ulp(x) = 2**ulpPower(x). */
export function ulpPower(number, fmt) {
  const e = number.num === 0n ? fmt.emin : floorLog2(number.num, number.den);
  return Math.min(Math.max(e, fmt.emin), fmt.emax) - fmt.mantissa_bits;
}

// Whether a rule goes up to the next magnitude from `rest.num / rest.den` of the way there.
function goesUp(rule, { rest, odd, sign, random }) {
  const twice = 2n * rest.num;
  switch (rule) {
    case "ties_to_even": return twice > rest.den || (twice === rest.den && odd);
    case "ties_away": return twice >= rest.den;
    case "toward_zero": return false;
    case "toward_positive": return rest.num > 0n && sign === 0;
    case "toward_negative": return rest.num > 0n && sign === 1;
    case "stochastic": return BigInt(Math.floor(random() * 2 ** 53)) * rest.den < rest.num << 53n;
    default: throw new RangeError(`no rounding rule is called "${rule}"; there are ${ROUNDINGS.join(", ")}`);
  }
}

/**
 * Round a number to a format, once, from its exact value.
 *
 * Returns { code, exact, tie, overflow }. Overflow gives what utils.rounding.quantize gives: an infinity where the
 * format has one, else NaN; with `saturate`, and in formats that have neither, the largest value.
 * Throws a RangeError for a NaN that the format cannot hold.
 */
export function round(number, fmt, { rounding = "ties_to_even", saturate = false, random = Math.random } = {}) {
  const sign = number.sign;
  if (number.kind === "nan") return { code: nanCode(fmt), exact: true, tie: false, overflow: false };
  if (!fmt.has_zero && (sign === 1 || (number.kind === "finite" && number.num === 0n))) {
    return { code: nanCode(fmt), exact: false, tie: false, overflow: false }; // E8M0: neither zero nor sign
  }
  if (number.kind === "infinity") {
    return { code: pastTheEnd(sign, fmt, saturate), exact: fmt.has_inf && !saturate, tie: false, overflow: true };
  }
  if (number.num === 0n) return { code: withSign(0n, sign, fmt), exact: true, tie: false, overflow: false };

  const M = BigInt(fmt.mantissa_bits);
  const hidden = 1n << M;
  const e = Math.max(floorLog2(number.num, number.den), fmt.emin);
  const [down, up] = pow2(e - fmt.mantissa_bits); // one ulp, as a quotient
  const scaled = { num: number.num * up, den: number.den * down };
  let steps = scaled.num / scaled.den;
  let rest = { num: scaled.num % scaled.den, den: scaled.den };
  // A carry out of the fraction runs into the exponent field, which is how the codes are meant to continue.
  let code = steps + (BigInt(e - fmt.emin) << M) - (fmt.has_zero ? 0n : hidden);
  const max = BigInt(fmt.max_code);
  if (code > max) { // all that lies beyond the end of the grid rounds as what lies right before that end
    [code, rest] = [max, ALMOST_ONE];
    steps = hidden + (max & (hidden - 1n));
  }
  if (goesUp(rounding, { rest, odd: steps % 2n === 1n, sign, random })) code += 1n;
  if (!fmt.has_zero && code < 0n) code = 0n;
  if (code > max) return { code: pastTheEnd(sign, fmt, saturate), exact: false, tie: false, overflow: true };
  return { code: withSign(code, sign, fmt), exact: rest.num === 0n, tie: 2n * rest.num === rest.den, overflow: false };
}

/** The code of a number, rounded as `round` does. */
export const encode = (number, fmt, options) => round(number, fmt, options).code;

function withSign(code, sign, fmt) {
  if (!sign || (code === 0n && !fmt.has_negative_zero)) return code;
  return code | (1n << BigInt(fmt.bits - 1));
}

function nanCode(fmt) {
  if (!fmt.has_nan) throw new RangeError(`${fmt.label} has no NaN: all its codes are numbers.`);
  return BigInt(fmt.nan_code);
}

function pastTheEnd(sign, fmt, saturate) {
  if (saturate || !fmt.has_nan) return withSign(BigInt(fmt.max_code), sign, fmt);
  return fmt.has_inf ? withSign(BigInt(fmt.inf_code), sign, fmt) : nanCode(fmt);
}

/** The codes of the next smaller and the next larger value, across zero and up to infinity; null where none is. */
export function neighbours(code, fmt) {
  if (classify(code, fmt) === "nan") return { down: null, up: null };
  const signBit = fmt.signed ? 1n << BigInt(fmt.bits - 1) : 0n;
  const negative = fmt.signed && (code & signBit) !== 0n;
  const place = negative ? -(code - signBit) : code; // codes counted away from zero, in the order of the values
  const end = BigInt(fmt.has_inf ? fmt.inf_code : fmt.max_code);
  const at = (next, fromBelow) => {
    if (next > end || next < (fmt.signed ? -end : 0n)) return null;
    if (next === 0n) return fromBelow ? withSign(0n, 1, fmt) : 0n;
    return next < 0n ? signBit - next : next;
  };
  return { down: at(place - 1n, false), up: at(place + 1n, fmt.signed) };
}

/** The exponent of the gap between two neighbouring finite codes: the gap is 2**gapPower(a, b); null if one is not. */
export function gapPower(a, b, fmt) {
  if (a === null || b === null) return null;
  const [x, y] = [valueOf(a, fmt), valueOf(b, fmt)];
  if (x.kind !== "finite" || y.kind !== "finite") return null;
  const gap = subtract(x, y);
  return floorLog2(gap.num, gap.den);
}

/** The code of a value with a name, or null where the format has none. */
export function namedCode(name, fmt) {
  const smallest = fmt.has_zero ? 1n : 0n;
  const normal = fmt.has_zero ? 1n << BigInt(fmt.mantissa_bits) : 0n;
  switch (name) {
    case "zero": return fmt.has_zero ? 0n : null;
    case "negative_zero": return fmt.has_negative_zero ? 1n << BigInt(fmt.bits - 1) : null;
    case "one": return encode(finite(0, 1n), fmt);
    case "largest": return BigInt(fmt.max_code);
    case "smallest_normal": return normal;
    case "smallest_subnormal": return fmt.has_zero ? smallest : null;
    case "largest_subnormal": return fmt.has_zero ? normal - 1n : null;
    case "infinity": return fmt.has_inf ? BigInt(fmt.inf_code) : null;
    case "negative_infinity": return fmt.has_inf ? BigInt(fmt.inf_code) | (1n << BigInt(fmt.bits - 1)) : null;
    case "nan": return fmt.has_nan ? BigInt(fmt.nan_code) : null;
    default: throw new RangeError(`no value is called "${name}"`);
  }
}

export const toHex = (code, fmt) => `0x${code.toString(16).toUpperCase().padStart(Math.ceil(fmt.bits / 4), "0")}`;

export const toBinary = (code, fmt) => code.toString(2).padStart(fmt.bits, "0");

/** The part of a code that a bit belongs to; bit 0 is the last of the fraction. */
export function fieldOfBit(bit, fmt) {
  if (bit < fmt.mantissa_bits) return "fraction";
  return bit < fmt.mantissa_bits + fmt.exponent_bits ? "exponent" : "sign";
}
