// What Microscope says: names of properties, an answer, and the verdict on a claim.

import { encode, toBinary, toHex } from "../shared/numbers/codec.js";
import { exactNumber } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { numberText } from "../shared/numbers/number_text.js";
import { powerText, sumOfTerms } from "./terms.js";

export const PROPERTY_NAMES = {
  bits: "Bits of the total", rule: "The sum is rounded", order: "Terms meet the total",
  extra: "Each addend is", flush: "Subnormal terms are",
};

const NUMBERS = ["no", "one", "two", "three", "four", "five"];
const FLOAT32 = FORMATS.float32;

/** An answer as the unit hands it over, a float32: { power, decimal, hex, fields }, fields the sign, exponent, fraction. */
export function answerTexts(x) {
  const code = encode(exactNumber(x), FLOAT32);
  const bits = toBinary(code, FLOAT32);
  return {
    power: powerText(x), decimal: numberText(exactNumber(x), 30), hex: toHex(code, FLOAT32),
    fields: [bits.slice(0, 1), bits.slice(1, 9), bits.slice(9)],
  };
}

/** What is known of a level's adder beforehand, and how much there is to name. */
export const askedText = ({ asks, told }) => `${told} Results are float32 numbers. Name ${asks.length === 1 ? "one property" : `${NUMBERS[asks.length]} properties`}.`;

export const SCOPE_SAYS = {
  ask: "Ask first: a claim without an experiment is a guess.",
  choose: "Choose an answer for each property.",
  bits: "The bits of a total are a whole number from 2 to 30.",
  empty: "No experiment yet.",
  start: "After some experiments, say what it is. A wrong claim is answered by a sum that contradicts it.",
  before: "Named before. Do it again, if you like.",
};

/** The verdict on a claim, of `judge`: a sentence or two. */
export function verdictText({ kind, terms, claimed, hidden, experiment }, { says }) {
  if (kind === "right") return `✓ Right. ${says}`;
  if (kind === "alike") return `✓ Right: no sum that these places hold tells your adder from the hidden one. ${says}`;
  const both = `your adder would return ${powerText(claimed)}, the hidden one returned ${powerText(hidden)}`;
  if (kind === "known") return `Not yet: your experiment ${experiment} contradicts it. For ${sumOfTerms(terms)} ${both}.`;
  return `Not yet. Your experiments allow it, but for ${sumOfTerms(terms)} ${both.replace("returned", "returns")}.`;
}
