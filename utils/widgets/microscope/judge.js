// Is a claim about a hidden adder right? If not, a sum on which the claimed and the hidden adder differ.

import { seededDice } from "../shared/numbers/dice.js";
import { addTerms, PLACES } from "./adders.js";
import { isTerm } from "./terms.js";

const LARGE = [0, 8, 15]; // exponents of the large term
const MULTIPLES = [1, 1.5, 1.25, 1.75];
const MOST_BELOW = 28; // binades between the large and the small term
const RANDOM_SUMS = 4000;

// Sums of a large term b and a small one s, the simplest first.
const LAYOUTS = [
  (_b, s) => [s],
  (b, s) => [b, s],
  (b, s) => [b, s, -b],
  (b, s) => [b, -s],
  (b, s) => [b, -s, -b],
  (b, s) => [b, 2 * s, s],
  (b, s) => [b, 2 * s, -s],
  (b, s) => [b, s, s],
  (b, s) => [b, s, s, -b],
  (b, s) => [b, 0, 0, 0, s, 0, 0, -b],
  (b, s) => [b, s, 0, 0, s, 0, 0, -b],
  (b, s) => [b, 0, 0, 0, -s, 0, 0, -b],
  (b, s) => [b, 0, 0, 0, s, s, 0, -b],
  (b, s) => [b, 0, s, s],
  (b, s) => [b, s, s, s, s],
  (b, s) => [b, s, s, s, -b, s, s, s],
  (b, s) => [b, s, s, s, s, s, s, -b],
  (b, s) => [b, 2 * s, 0, 0, s, 0, 0, -b],
];

function* likelySums() {
  for (const layout of LAYOUTS) {
    for (const multiple of MULTIPLES) {
      for (const large of LARGE) {
        for (let below = 1; below <= MOST_BELOW; below += 1) {
          const sum = layout(2 ** large, multiple * 2 ** (large - below));
          yield sum;
          yield sum.map((x) => -x);
        }
      }
    }
  }
}

function* randomSums() {
  const draw = seededDice(1);
  const pick = (options) => options[Math.floor(draw() * options.length)];
  for (let i = 0; i < RANDOM_SUMS; i += 1) {
    const large = pick(LARGE);
    yield Array.from({ length: PLACES }, () => pick([0, 1, -1]) * pick(MULTIPLES) * 2 ** (large - Math.floor(draw() * MOST_BELOW)));
  }
}

// The terms without those that the difference does not need.
const neededTerms = (terms, differ) =>
  terms.reduce((kept, _, i) => {
    const fewer = kept.map((x, k) => (k === i ? 0 : x));
    return differ(fewer) ? fewer : kept;
  }, terms);

/** The terms, in their range, for which two adders return different sums; null where the search finds none. */
export function findDifference(one, other, range) {
  const differ = (terms) => addTerms(one, terms) !== addTerms(other, terms);
  for (const sums of [likelySums(), randomSums()]) {
    for (const terms of sums) {
      if (terms.every((x) => isTerm(x, range)) && differ(terms)) return neededTerms(terms, differ);
    }
  }
  return null;
}

/**
 * Judge a claim: { kind, terms, claimed, hidden, experiment }.
 *
 * `kind`: "right"; "alike" if it differs in name only; "known" if experiment number `experiment` of `done`, lists of
 * terms, speaks against it; "differs" with a new sum.
 */
export function judge(hidden, claim, { done, range }) {
  if (Object.keys(hidden).every((name) => hidden[name] === claim[name])) return { kind: "right" };
  const sums = (terms) => ({ terms, claimed: addTerms(claim, terms), hidden: addTerms(hidden, terms) });
  const at = done.findIndex((terms) => addTerms(claim, terms) !== addTerms(hidden, terms));
  if (at >= 0) return { kind: "known", experiment: at + 1, ...sums(done[at]) };
  const terms = findDifference(hidden, claim, range);
  return terms ? { kind: "differs", ...sums(terms) } : { kind: "alike" };
}
