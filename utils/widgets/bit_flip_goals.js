// Goals of BitFlip: which code is meant, and what to tell a reader who is not there yet. Pure functions.

/** The code that a goal asks for; null for a kind with several codes (any NaN). */
export function goalCode(goal, fmt) {
  if (goal.kind === "nan") return null;
  return goal.kind ? namedCode(goal.kind, fmt) : encode(parseNumber(goal.value), fmt);
}

export function isGoalMet(goal, code, fmt) {
  return goal.kind === "nan" ? classify(code, fmt) === "nan" : code === goalCode(goal, fmt);
}

/** One kind sentence about the way from a code to the goal: the misconception where one can be seen, else the next step. */
export function diagnose(goal, code, fmt) {
  const target = goalCode(goal, fmt);
  const now = decode(code, fmt);
  if (target === null) return towardNaN(now, fmt);
  const aim = decode(target, fmt);
  return aboutClass(goal, now, aim, fmt) ?? aboutSign(now, aim) ?? aboutBiasAndLead(now, aim, fmt) ??
    aboutOneBit(code ^ target, fmt) ?? aboutFields(now, aim) ?? aboutSize(code, target, fmt);
}

function towardNaN(now, fmt) {
  if (now.kind === "infinity") return "Infinity: you are close. NaN has the same exponent, and a fraction that is not 0.";
  if (fmt.specials === "ieee") return "Not yet: NaN starts with an exponent field of all ones.";
  if (fmt.specials === "all_ones") return "Not yet: this format has one NaN for each sign, with every bit after the sign set.";
  return "Not yet: this format gives NaN a code that other formats use for a kind of zero.";
}

function aboutClass(goal, now, aim, fmt) {
  if (now.kind === "infinity" && aim.kind !== "infinity") {
    return goal.kind === "largest" ? "One step too far: this is infinity." : "That is infinity: all exponent bits are 1. Clear one of them.";
  }
  if (now.kind === "nan") {
    if (aim.kind === "infinity") return "That is NaN: for infinity the fraction must be 0.";
    return goal.kind === "largest" ? "One step too far: this is NaN." : "That is NaN, not a number. Change a bit back.";
  }
  if (aim.kind === "infinity") return "A finite number so far. Infinity has an exponent field of all ones and a fraction of 0.";
  if (aim.kind === "subnormal" && now.kind === "normal") {
    const edge = now.exponent === 1 && now.fraction === 0n;
    return edge ? "That is the smallest normal number. Below it, with exponent field 0, lie the subnormal ones."
      : "That is a normal number. A subnormal one has exponent field 0.";
  }
  if (aim.kind === "normal" && now.kind === "subnormal") return "That is a subnormal number: its exponent field is 0. A normal one has at least one exponent bit set.";
  if (goal.kind === "largest" && fmt.specials === "all_ones" && now.exponent === aim.exponent - 1 && isFull(now.fraction, fmt)) {
    return "The largest, if the top exponent were reserved as in IEEE 754. This format uses it for numbers: go on.";
  }
  return null;
}

const isFull = (fraction, fmt) => fraction === (1n << BigInt(fmt.mantissa_bits)) - 1n;

function aboutSign(now, aim) {
  if (now.significand !== aim.significand || now.power !== aim.power || now.sign === aim.sign) return null;
  if (aim.kind === "zero") return aim.sign ? "That is zero, the positive one. The other zero differs in one bit." : "That is −0. The sign bit does not count as size, but it is stored.";
  return "The right size with the wrong sign.";
}

// The two classic slips: the exponent stored without its bias, the leading 1 stored with the fraction.
function aboutBiasAndLead(now, aim, fmt) {
  if (now.kind !== "normal" || aim.kind !== "normal") return null;
  if (now.exponent !== aim.exponent && now.exponent === aim.exponent - fmt.bias) {
    return `You stored the exponent itself, ${now.exponent}. What is stored is the exponent plus the bias: ${now.exponent} + ${fmt.bias}.`;
  }
  const withLead = ((1n << BigInt(fmt.mantissa_bits)) | aim.fraction) >> 1n;
  if (now.exponent === aim.exponent && aim.fraction !== 0n && now.fraction === withLead) {
    return "It looks as if you stored the leading 1 as well. A normal number has it for free: the fraction starts after the point.";
  }
  return null;
}

function aboutOneBit(difference, fmt) {
  if (difference & (difference - 1n)) return null;
  return `One bit is still wrong, in the ${fieldOfBit(bitLength(difference) - 1, fmt)}.`.replace("in the sign", "the sign bit");
}

function aboutFields(now, aim) {
  if (now.kind !== aim.kind || now.kind !== "normal") return null;
  if (now.exponent === aim.exponent) return "The exponent is right. Now the fraction.";
  if (now.fraction === aim.fraction && aim.fraction !== 0n) {
    const steps = aim.exponent - now.exponent;
    return `The fraction is right. The exponent field is ${Math.abs(steps)} too ${steps > 0 ? "small" : "large"}.`;
  }
  return null;
}

function aboutSize(code, target, fmt) {
  const gap = subtract(valueOf(target, fmt), valueOf(code, fmt));
  const text = aboutText({ ...gap, sign: 0 });
  return `Not yet: ${text} too ${gap.sign ? "large" : "small"}.`;
}

/** Hints of a goal in the order in which they are given: its own, then which bits are 1 in each field. */
export function hintsOf(goal, fmt) {
  const target = goalCode(goal, fmt);
  const last = target === null ? [] : [fieldHint(target, fmt)];
  return [...(goal.hints ?? []), ...last];
}

function fieldHint(target, fmt) {
  const { sign, exponent, fraction } = fields(target, fmt);
  const parts = [`the exponent field is ${exponent}`];
  if (fmt.signed) parts.unshift(`the sign bit is ${sign}`);
  if (fmt.mantissa_bits) parts.push(`the fraction field is ${fraction} of ${1n << BigInt(fmt.mantissa_bits)}`);
  return `In the target ${parts.join(", ")}.`;
}
