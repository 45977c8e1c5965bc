// An answer in words. The twin of readings.py.

import { valueOf } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { numberText } from "../shared/numbers/number_text.js";
import { fewDigits } from "../shared/words/amounts.js";
import { INPUTS_EACH } from "./functions.js";
import { nameOrder } from "./orders.js";

const ORDER_WORDS = {
  chain: "one after another",
  backward: "one after another, from the last",
  neighbours: "neighbours first, then these pairs",
  halves: "the halves first, place by place",
  wide: "in an order not seen, as no 1 was lost",
};
const MISSING = "not offered";

function valuesText({ format }, answer) {
  const fmt = FORMATS[format];
  const mask = (1n << BigInt(fmt.bits)) - 1n;
  return answer.map((code) => numberText(valueOf(BigInt(code) & mask, fmt), 6)).join(", ");
}

/** The case, [codes, text], that an answer in codes is; undefined where the row does not foresee it. */
export const caseOf = ({ cases }, answer) => cases.find(([codes]) => codes.length === answer.length && codes.every((code, at) => code === answer[at]));

const READERS = {
  cases: (reading, answer) => caseOf(reading, answer)?.[1] ?? valuesText(reading, answer),
  values: valuesText,
  order(_, [places, ...kept]) {
    const name = nameOrder(places, kept);
    return `${places} numbers, ${name ? ORDER_WORDS[name] : "in another order"}`;
  },
  distinct(_, answer) {
    const count = new Set(answer).size;
    return count > 1 ? `${count} different sums in ${answer.length} runs` : `the same sum in ${answer.length} runs`;
  },
  error(_, [ulps, share, others]) {
    if (others === 0) return `the nearest float32 for all ${INPUTS_EACH} inputs`;
    const [percent, tried] = [`${fewDigits(100 * share)} % of the allowed`, `in ${INPUTS_EACH} inputs`];
    return ulps ? `errors up to ${fewDigits(ulps)} ulp ${tried}, ${percent}` : `errors up to ${percent} ${tried}`;
  },
};

/** The answer to a row in words; `missing` where there is none. */
export function readAnswer(row, answers, missing = MISSING) {
  const answer = answers[row.name];
  return answer ? READERS[row.reading.kind](row.reading, answer) : missing;
}

/** What a device, { answers, missing, remarks }, says to a row: its answer, or what stands in its place. */
export const answerOf = (row, { answers, missing, remarks }) => readAnswer(row, answers, remarks?.[row.name] ?? missing);
