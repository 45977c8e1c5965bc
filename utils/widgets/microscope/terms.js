// The terms of a sum as text and as numbers: "1 2^-11 -1" is 1 + 2^-11 - 1 in the first three places.

import { asDouble, exactNumber, exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { aboutText, NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { PLACES } from "./adders.js";

const MOST_ODD = 15; // a significand of four bits, E4M3's

// x as odd * 2^power.
function oddPart(x) {
  let [odd, power] = [Math.abs(x), 0];
  while (odd % 1 !== 0) [odd, power] = [odd * 2, power - 1];
  while (odd !== 0 && odd % 2 === 0) [odd, power] = [odd / 2, power + 1];
  return { odd, power };
}

/** A term as text that is read back: "2^-11", "-1.5*2^-11", "12". */
export function termText(x) {
  const exponent = x === 0 ? 0 : exponentOfDouble(x);
  if (exponent >= -2 && exponent <= 6) return String(x);
  const size = Math.abs(x) / 2 ** exponent;
  return `${x < 0 ? "-" : ""}${size === 1 ? "" : `${size}*`}2^${exponent}`;
}

/** The terms as one text, without the empty places at its end. */
export function termsText(terms) {
  const last = terms.findLastIndex((x) => x !== 0);
  return terms.slice(0, last + 1).map(termText).join(" ");
}

// A number as text, exact; the advice of a fault is a term.
function readNumber(text) {
  try {
    return parseNumber(text);
  } catch (error) {
    if (error instanceof NumberTextError) throw new NumberTextError(error.message.replace(/Try .*$/, "Try 1.5, -3/8 or 1.5*2^-11."));
    throw error;
  }
}

/** Terms in all places: what is missing is 0. */
export const inPlaces = (terms) => [...terms, ...Array(PLACES - terms.length).fill(0)];

/** Read one term. Throws NumberTextError with a sentence where it is none that the unit takes. */
export function readTerm(text, { lowest, largest }) {
  if (text.trim() === "") return 0;
  const number = readNumber(text);
  const x = number.kind === "finite" ? asDouble(number) : NaN;
  if (x === 0) return 0;
  const shown = text.trim().slice(0, 24);
  const exponent = exponentOfDouble(x);
  if (!Number.isFinite(x)) throw new NumberTextError(`${shown} is no finite number.`);
  if (exponent > largest || exponent < lowest) {
    throw new NumberTextError(`${shown} is out of range: terms have sizes from 2${superscript(lowest)} up to below 2${superscript(largest + 1)}.`);
  }
  if (aboutText(number, 40) !== aboutText(exactNumber(x), 40) || oddPart(x).odd > MOST_ODD) {
    throw new NumberTextError(`${shown} has too many bits: a term is a power of two times a whole number up to ${MOST_ODD}, like 1.5*2^-11.`);
  }
  return x;
}

/** Read the terms of one text; what is no term becomes 0, and what is too much is left out. */
export function readTerms(text, range) {
  const read = (term) => {
    try {
      return readTerm(term, range);
    } catch {
      return 0; // from an address that someone has edited
    }
  };
  return inPlaces(text.split(" ").filter((term) => term !== "").slice(0, PLACES).map(read));
}

/** Whether a term is one that the unit takes. */
export const isTerm = (x, { lowest, largest }) =>
  x === 0 || (exponentOfDouble(x) >= lowest && exponentOfDouble(x) <= largest && oddPart(x).odd <= MOST_ODD);

const minus = (x) => (x < 0 ? "−" : "");

// A number of few bits as "3 × 2⁻¹²", and null for others.
function shortForm(x) {
  const { odd, power } = oddPart(x);
  if (odd > MOST_ODD) return null;
  if (power >= -3 && Math.abs(x) < 1024) return `${minus(x)}${Math.abs(x)}`;
  return `${minus(x)}${odd === 1 ? "" : `${odd} × `}2${superscript(power)}`;
}

/** A number as powers of two where a few suffice, "1 + 2⁻²³", else as a decimal number. */
export function powerText(x) {
  if (x === 0) return "0";
  const short = shortForm(x);
  if (short) return short;
  const top = 2 ** exponentOfDouble(x);
  for (const base of [top, 2 * top]) {
    const rest = shortForm(Math.abs(x) - base);
    if (rest) return x > 0 ? `${shortForm(base)} ${rest.startsWith("−") ? "−" : "+"} ${rest.replace("−", "")}` : `−(${powerText(-x)})`;
  }
  return aboutText(exactNumber(x), 14, 12).replace("about ", "≈\u00a0");
}

/** The terms of an experiment as text to be read. */
export function sumOfTerms(terms) {
  const last = Math.max(terms.findLastIndex((x) => x !== 0), 0);
  return terms.slice(0, last + 1).map(powerText).join(", ");
}
