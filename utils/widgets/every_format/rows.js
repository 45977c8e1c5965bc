// EveryFormat: the table, a row for each format. Rows are made once and then only change their texts and their order.

import { finite, namedCode, pow2, subtract, toBinary, toHex, ulpPower } from "../shared/numbers/codec.js";
import { compareErrors, errorText, storedText } from "../shared/numbers/format_fate.js";
import { aboutText, briefText, numberText } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { setText } from "../shared/page/elements.js";
import { axisPanel, barPanel, rangeOf } from "./axis.js";

const MOST_DIGITS_IN_DETAIL = 60;
const MOST_BITS_IN_ROW = 16;

const bitFields = (h) => ["sign", "exponent", "fraction"].map((field) => h("span", { class: `mp-ef-${field}` }));

// Write a code into the three spans of its fields; a long fraction may end in dots.
function writeBits([sign, exponent, fraction], code, fmt, most = Infinity) {
  const bits = code === null ? "" : toBinary(code, fmt);
  const lead = fmt.signed ? 1 : 0;
  setText(sign, bits.slice(0, lead));
  setText(exponent, bits.slice(lead, lead + fmt.exponent_bits));
  const rest = bits.slice(lead + fmt.exponent_bits);
  const room = Math.max(4, most - lead - fmt.exponent_bits);
  setText(fraction, rest.length > room ? `${rest.slice(0, room)}…` : rest);
}

// What a row shows when it is opened: every digit, the code, every bit, the error in gaps.
function detailPanel(h, fmt) {
  const spans = bitFields(h);
  const bits = h("span", { class: "mp-ef-bits" }, spans);
  const [exact, code, off] = [h("p", {}), h("span", {}), h("p", {})];
  return {
    node: h("div", { class: "mp-ef-detail", role: "cell" }, exact, h("p", {}, code, bits), off),
    draw(number, fate) {
      writeBits(spans, fate.code, fmt);
      setText(code, fate.code === null ? "No code stands for it." : `Code ${toHex(fate.code, fmt)}: `);
      setText(exact, `${fmt.label} stores ${fate.stored === null ? "nothing that means it" : numberText(fate.stored, MOST_DIGITS_IN_DETAIL)}.`);
      setText(off, gapText(number, fate, fmt));
    },
  };
}

/** How far off a stored value is, in gaps, and how wide the gap is; or what the format can hold instead. */
export function gapText(number, { stored, error, tie }, fmt) {
  if (number.kind !== "finite" || stored === null || stored.kind !== "finite") return rangeText(fmt);
  const power = ulpPower(number, fmt);
  const gap = `the gap here is 2${superscript(power)}`;
  if (error.num === 0n) return `Nothing is lost; ${gap}.`;
  const off = subtract(stored, number);
  const [up, down] = pow2(-power);
  const gaps = aboutText(finite(0, off.num * up, off.den * down), 3, 3);
  return `It is ${off.sign ? "low" : "high"} by ${aboutText({ ...off, sign: 0 })}, or ${gaps} ulp: ${gap}.${tie ? " A tie." : ""}`;
}

const rangeText = (fmt) => {
  const smallest = namedCode(fmt.has_zero ? "smallest_subnormal" : "smallest_normal", fmt);
  return `${fmt.label} reaches from ${briefText(smallest, fmt)} to ${briefText(BigInt(fmt.max_code), fmt)}.`;
};

function rowPanel(h, fmt, place) {
  const detail = detailPanel(h, fmt);
  const toggle = h("button", { class: "mp-ef-name", type: "button", "aria-expanded": "false", on: { click } }, fmt.label);
  const spans = bitFields(h);
  const bits = h("span", { class: "mp-ef-bits", "aria-hidden": "true" }, spans);
  const stored = h("div", { class: "mp-ef-stored", role: "cell" });
  const error = h("div", { class: "mp-ef-error", role: "cell" });
  const mark = h("span", { class: "mp-ef-mark", "aria-hidden": "true" });
  const words = h("span", {});
  const fateCell = h("div", { class: "mp-ef-fate", role: "cell" }, mark, words);
  const bar = barPanel(h, fmt);
  const node = h("div", { class: "mp-ef-row", role: "row" },
    h("div", { class: "mp-ef-head", role: "rowheader" }, toggle, bits), stored, error, fateCell, bar.node, detail.node);
  let shown = null;
  detail.node.hidden = true;

  function click() {
    detail.node.hidden = !detail.node.hidden;
    toggle.setAttribute("aria-expanded", String(!detail.node.hidden));
    if (shown) detail.draw(...shown);
  }

  return {
    node, fmt, place,
    draw(number, fate) {
      shown = [number, fate];
      node.dataset.fate = fate.kind;
      writeBits(spans, fate.code, fmt, MOST_BITS_IN_ROW);
      setText(stored, storedText(fate));
      setText(error, errorText(fate.error));
      setText(mark, fate.mark);
      setText(words, fate.words);
      bar.draw(number, fate.stored);
      if (!detail.node.hidden) detail.draw(number, fate);
    },
  };
}

const ROW_ORDERS = {
  error: (fates) => (a, b) => compareErrors(fates.get(a), fates.get(b)),
  width: () => (a, b) => b.fmt.bits - a.fmt.bits,
  range: () => (a, b) => rangeOf(b.fmt) - rangeOf(a.fmt),
};

/** The table; `summary` and `slider` stand over it. draw({ number, fates, order, still }): `still` keeps the rows in place. */
export function rowsPanel(h, formats, summary, slider) {
  const rows = formats.map((fmt, place) => rowPanel(h, fmt, place));
  const header = h("div", { class: "mp-ef-row mp-ef-header", role: "row" },
    h("span", { class: "mp-ef-head", role: "columnheader" }, "Format"),
    h("span", { class: "mp-ef-stored", role: "columnheader" }, "Stored"),
    h("span", { class: "mp-ef-error", role: "columnheader" }, "Error"),
    h("span", { class: "mp-unseen", role: "columnheader" }, "Fate"));
  const body = h("div", { class: "mp-ef-body", role: "rowgroup" }, rows.map(({ node }) => node));
  const table = h("div", { class: "mp-ef-table", role: "table", "aria-label": "What each format stores" }, h("div", { role: "rowgroup" }, header), body);
  return {
    node: h("div", { class: "mp-ef-results" }, summary, h("div", { class: "mp-ef-scale" }, slider, axisPanel(h)), table),
    draw({ number, fates, order, still }) {
      rows.forEach((row, i) => row.draw(number, fates[i]));
      if (still) return;
      const byRow = new Map(rows.map((row, i) => [row, fates[i]]));
      const compare = ROW_ORDERS[order](byRow);
      const sorted = [...rows].sort((a, b) => compare(a, b) || a.place - b.place).map(({ node }) => node);
      if (sorted.some((node, i) => body.children[i] !== node)) body.append(...sorted);
    },
  };
}
