// What is said to an answer: the page's twin of `judge` in utils/checks/questions.py. Numbers are compared as float64, as there.

import { encode } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";

export const QUIZ_ROUNDED =
  "Close, but not exact: the exact value can be written down, for example as a power of two or as a fraction.";

export const QUIZ_IMPRECISE = "Close, but not close enough. Work it out with more digits.";
const MUST_BE_EXACT = 1e-5; // a smaller tolerance is that of the arithmetic

/** The float64 nearest to a number as parseNumber gives it. */
export function nearestDouble(number) {
  if (number.kind === "nan") return NaN;
  const bits = new BigUint64Array([encode(number, FORMATS.float64)]);
  return new Float64Array(bits.buffer)[0];
}

/** Whether a question asks for a code, which may also be written as bits: its answer begins with 0x or 0b. */
const asksForCode = ({ answer }) => /^0[xb]/i.test(answer);

/** Read what was typed: a number, with its unit or without, or bits with blanks between them where a code is asked for;
 * the quotation marks of a string of Python may stand around it. Throws NumberTextError. */
export function readQuizNumber(typed, question) {
  const trimmed = typed.trim().replace(/^(["'])(.*)\1$/, "$2").trim();
  const text = question.unit && trimmed.endsWith(question.unit) ? trimmed.slice(0, -question.unit.length) : trimmed;
  const bits = text.replace(/\s+/g, "");
  if (asksForCode(question) && /^(?!0b)[0-9a-f]*[a-f][0-9a-f]*$/i.test(bits)) {
    throw new NumberTextError(`Write 0x before a hexadecimal code: 0x${bits.toUpperCase()}.`);
  }
  if (!asksForCode(question) && /^[01]+(\s+[01]+)+$/.test(trimmed)) {
    throw new NumberTextError("Those are the bits of a code. The question asks for its value, a number.");
  }
  const spaced = asksForCode(question) && /^(0b)?[01]{2,}$/i.test(bits);
  try {
    return nearestDouble(parseNumber(spaced ? `0b${bits.replace(/^0b/i, "")}` : text));
  } catch (error) {
    if (!asksForCode(question) || !(error instanceof NumberTextError)) throw error;
    throw new NumberTextError("That cannot be read as a code. Write it like 0x1C, 0b11100 or 0 0011 100.");
  }
}

/** Judge a float64: { right, says }, with the sentence that belongs to it. */
export function judgeNumber(question, value) {
  const read = (text) => nearestDouble(parseNumber(text));
  const { answer, wrong = {}, within = {}, tolerance = 0, near = 0 } = question;
  const wanted = read(answer);
  if (sameDouble(value, wanted, tolerance)) return { right: true, says: question.says };
  const known = Object.keys(wrong).filter((text) => sameDouble(value, read(text), tolerance))
    .sort((a, b) => Math.abs(value - read(a)) - Math.abs(value - read(b)));
  if (known.length) return { right: false, says: wrong[known[0]] };
  const isWithin = (range) => {
    const [low, high] = range.split(" to ").map(read);
    return low <= value && value <= high;
  };
  const range = Object.keys(within).find(isWithin);
  if (range) return { right: false, says: within[range] };
  const rounded = !asksForCode(question) && mayBeRounded(value, wanted, near);
  const close = tolerance < MUST_BE_EXACT ? QUIZ_ROUNDED : QUIZ_IMPRECISE;
  return { right: false, says: rounded ? close : question.otherwise };
}

function sameDouble(value, wanted, tolerance) {
  if (Number.isNaN(value) || Number.isNaN(wanted)) return Number.isNaN(value) && Number.isNaN(wanted);
  return value === wanted || (Number.isFinite(wanted) && Math.abs(value - wanted) <= tolerance * Math.abs(wanted));
}

// A whole number is rounded to tens or more.
function mayBeRounded(value, wanted, near) {
  return sameDouble(value, wanted, near) && (wanted % 1 !== 0 || (value % 10 === 0 && wanted % 10 !== 0));
}

const QUIZ_MARKUP = /\s*^```\n([\s\S]*?)\n```$\s*|`([^`\n]+)`/gm;

const QUIZ_POWER = /(?<=[\w)])(?:\^|\*\*)(-?\d+|k\b)/g;
const HANGING = 2; // a line of code that is broken goes on so many characters further in than it began

const withPowers = (text) => text.replace(QUIZ_POWER, (_, exponent) => (exponent === "k" ? "ᵏ" : superscript(exponent)));

// A line of code; where it is broken, the rest does not look like a line of its own. A line that stands alone, as an
// answer, is set in by the page and not by its blanks: else a long first word would leave an empty line behind.
function codeLine(h, line, _, lines) {
  const word = line.trimStart();
  const [depth, text] = [line.length - word.length, lines.length > 1 ? line : word];
  const node = h("span", { class: "mp-quiz-line" }, text);
  node.style.setProperty("--mp-inset", `${depth + HANGING}ch`);
  node.style.setProperty("--mp-outdent", `${text === line ? -depth - HANGING : -HANGING}ch`);
  return node;
}

/** The nodes of a text: its code in <code>, lines of code in <code class="mp-quiz-lines">, everything else as text, with
 * 2^-3 as 2⁻³. */
export function textNodes(h, text) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(QUIZ_MARKUP)) {
    const [all, lines, code] = found;
    nodes.push(withPowers(text.slice(at, found.index)));
    nodes.push(lines === undefined ? h("code", {}, code) : h("code", { class: "mp-quiz-lines" }, ...lines.split("\n").map((...line) => codeLine(h, ...line))));
    at = found.index + all.length;
  }
  return [...nodes, withPowers(text.slice(at))].filter((node) => node !== "");
}
