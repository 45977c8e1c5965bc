// Where the codes of CodeLine stand: places from 0 to 1 on an axis that all lines share, and the labels of that axis.

import { superscript } from "../shared/numbers/superscript.js";
import { valueOfCode } from "./words.js";

const CL_ZERO_BAND = 0.035; // half the part in the middle of a logarithmic axis that belongs to zero
const CL_NEAR_GAPS = 7; // to either side, where the codes near one are shown on a linear axis
const CL_NEAR_BINADES = 1.6;

const log2Size = (x) => Math.log2(Math.abs(x));

/**
 * The axis of some formats: { kind, place(x), labels }. `place` gives NaN for what is no finite number; it may lie
 * outside 0 to 1. `value` is the value that is read and `gap` the one beside it, which "near" is about.
 */
export function codeAxis(formats, { axis, view, value, gap }) {
  const near = view === "near" && Number.isFinite(value);
  if (axis === "linear") {
    const most = Math.max(...formats.map((fmt) => valueOfCode(Number(fmt.max_code), fmt)));
    const [low, high] = near ? [value - CL_NEAR_GAPS * gap, value + CL_NEAR_GAPS * gap] : [view === "positive" || !formats.some(({ signed }) => signed) ? 0 : -most, most];
    const place = (x) => (Number.isFinite(x) ? (x - low) / (high - low) : NaN);
    return { kind: "linear", place, labels: linearLabels(low, high, place) };
  }
  if (near && value !== 0) return nearLogAxis(value);
  const least = Math.min(...formats.map((fmt) => fmt.emin - (fmt.has_zero ? fmt.mantissa_bits : 0)));
  const most = Math.max(...formats.map(({ emax }) => emax)) + 1;
  const half = view === "positive" || !formats.some(({ signed }) => signed);
  const [zero, band] = half ? [0, 2 * CL_ZERO_BAND] : [0.5, CL_ZERO_BAND];
  const room = 1 - zero - band;
  const place = (x) => {
    if (!Number.isFinite(x)) return NaN;
    if (x === 0) return half ? band / 4 : zero;
    const share = (log2Size(x) - least) / (most - least);
    return x > 0 ? zero + band + share * room : zero - band - share * room;
  };
  const labels = powerLabels(least, most).flatMap((power) => [[power, 1], [power, -1]]).map(([power, sign]) =>
    ({ text: `${sign < 0 ? "−" : ""}${powerInShort(power)}`, place: place(sign * 2 ** power), rank: power % (2 * powerStep(least, most)) === 0 ? 0 : 1 }));
  return { kind: "logarithmic", place, labels: [{ text: "0", place: place(0), rank: 0 }, ...labels] };
}

function nearLogAxis(value) {
  const middle = log2Size(value);
  const sign = Math.sign(value);
  const place = (x) => (Number.isFinite(x) && Math.sign(x) === sign ? 0.5 + (sign * (log2Size(x) - middle)) / (2 * CL_NEAR_BINADES) : NaN);
  const powers = Array.from({ length: 5 }, (_, i) => Math.round(middle) - 2 + i);
  const labels = powers.map((power) => ({ text: `${sign < 0 ? "−" : ""}${powerInShort(power)}`, place: place(sign * 2 ** power), rank: 0 }));
  return { kind: "logarithmic", place, labels };
}

const powerInShort = (power) => (power === 0 ? "1" : `2${superscript(power)}`);

const powerStep = (least, most) => (most - least > 120 ? 32 : most - least > 20 ? 4 : 2);

function powerLabels(least, most) {
  const step = powerStep(least, most);
  const powers = [];
  for (let power = Math.ceil(least / step) * step; power <= most; power += step) powers.push(power);
  return powers;
}

// A round number: 40,000 or 5 × 10³⁷.
function roundText(x) {
  if (Math.abs(x) < 1e6) return x.toLocaleString("en", { maximumSignificantDigits: 6 }).replace("-", "−");
  const [lead, power] = x.toExponential().split("e+");
  return `${lead.replace("-", "−")} × 10${superscript(Number(power))}`;
}

// At most six round numbers.
function linearLabels(low, high, place) {
  const rough = (high - low) / 5;
  const step = [1, 2, 4, 5, 10].map((lead) => lead * 10 ** Math.floor(Math.log10(rough))).find((one) => one >= rough);
  const labels = [];
  for (let i = Math.ceil(low / step); i * step <= high; i += 1) {
    labels.push({ text: roundText(Number((i * step).toPrecision(6))), place: place(i * step), rank: i % 2 === 0 ? 0 : 1 });
  }
  return labels;
}

/** The code of a line that is nearest to a place; `places` are those of its codes, NaN for what stands elsewhere. */
export function nearestCode(places, at) {
  let best = -1;
  places.forEach((place, i) => {
    const off = Math.abs(place - at);
    if (off < (best < 0 ? Infinity : Math.abs(places[best] - at))) best = i;
  });
  return best;
}
