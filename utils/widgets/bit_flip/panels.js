// The parts of BitFlip on the page. Each maker takes h (shared/page/elements.js) and the actions, and gives { node, draw(view) }.
// A view is { fmt, code, decoded, typed, message, wrong }.

import { finite, gapPower, neighbours, pow2, valueOf } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import {
  aboutText, briefText, decimalDigits, digitsText, exactDecimal, numberText, shortestDigits,
} from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { setText } from "../shared/page/elements.js";
import { formulaPieces, KIND_WORDS } from "../shared/words/code_words.js";

const GROUPS = [["64 and 32 bits", 32], ["19 and 16 bits", 16], ["8 bits", 8], ["6 and 4 bits", 1]];
const MOST_DIGITS = 21; // every value of float16 fits

export function controlsPanel(h, actions, names) {
  const select = h("select", { class: "mp-input", on: { change: () => actions.setFormat(select.value) } });
  let ceiling = Infinity;
  for (const [title, floor] of GROUPS) {
    const rows = names.map((name) => FORMATS[name]).filter(({ bits }) => bits >= floor && bits < ceiling);
    const options = rows.map(({ name, label }) =>
      h("option", { value: name }, label === name || name === "tf32" ? label : `${label} (${name})`));
    if (options.length) select.append(h("optgroup", { label: title }, options));
    ceiling = floor;
  }
  const take = () => actions.typeNumber(input.value);
  const input = h("input", {
    class: "mp-input mp-number", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    enterkeyhint: "done", on: { change: take, keydown: (event) => event.key === "Enter" && take() },
  });
  const node = h("div", { class: "mp-controls" },
    h("label", { class: "mp-field mp-format" }, h("span", {}, "Format"), select),
    h("label", { class: "mp-field mp-grow" }, h("span", {}, "Number"), input),
    h("button", { class: "mp-button", type: "button", on: { click: take } }, "Round it"));
  return {
    node,
    describeBy(node) {
      input.ariaDescribedByElements = [node]; // by element, so that no id is needed; older browsers ignore it
    },
    draw({ fmt, code, typed, wrong }) {
      select.value = fmt.name;
      const shortest = typed ?? numberInput(code, fmt);
      if (input.value !== shortest) input.value = shortest;
      input.setAttribute("aria-invalid", String(wrong === "number"));
    },
  };
}

/** What the number field shows of a code: its value if that is short, else a short text that reads back to it. */
export function numberInput(code, fmt) {
  const number = valueOf(code, fmt);
  if (number.kind !== "finite") return numberText(number, 1, { ascii: true });
  const exact = decimalDigits(number, 12);
  return digitsText(exact.exact ? exact : shortestDigits(code, fmt, 3), { sign: number.sign, ascii: true });
}

export function legendPanel(h) {
  const names = ["sign", "exponent", "fraction"];
  const items = Object.fromEntries(names.map((name) => [name, h("span", { class: `mp-key mp-${name}` })]));
  const node = h("p", { class: "mp-legend" }, Object.values(items));
  return {
    node,
    draw({ fmt, decoded }) {
      const bits = (count) => `${count} bit${count === 1 ? "" : "s"}`;
      setText(items.sign, fmt.signed ? `sign ${decoded.sign}` : "no sign");
      setText(items.exponent, `exponent field ${decoded.exponent} (${bits(fmt.exponent_bits)})`);
      setText(items.fraction, fmt.mantissa_bits ? `fraction field ${decoded.fraction} (${bits(fmt.mantissa_bits)})` : "no fraction");
      items.sign.hidden = !fmt.signed;
      items.fraction.hidden = !fmt.mantissa_bits;
    },
  };
}

// Raised digits in a font where they sit well; monospaced ones are set apart in many systems.
const powersApart = (h, text) =>
  text.split(/([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/).map((part, i) => (i % 2 ? h("span", { class: "mp-power" }, part) : part)).filter(Boolean);

export function valuePanel(h) {
  const value = h("p", { class: "mp-value" });
  const kind = h("span", { class: "mp-kind" });
  const more = h("button", { class: "mp-link", type: "button", on: { click: () => unfold(!open) } });
  const formula = h("p", { class: "mp-formula" });
  let open = false;
  let shown = null;

  function unfold(to) {
    open = to;
    const { fmt, code, digits } = shown;
    const number = valueOf(code, fmt);
    value.replaceChildren(...powersApart(h, open ? exactDecimal(code, fmt).replace("-", "−") : valueText(number)));
    setText(more, open ? "show fewer digits" : `show all ${digits} digits`);
    more.setAttribute("aria-expanded", String(open));
    value.classList.toggle("mp-long", open || value.textContent.length > 16);
  }

  return {
    node: h("div", { class: "mp-reading" }, value, h("p", { class: "mp-about" }, kind, more), formula),
    draw({ fmt, code, decoded }) {
      const number = valueOf(code, fmt);
      const digits = number.kind === "finite" ? decimalDigits(number).digits.length : 0;
      shown = { fmt, code, digits };
      unfold(false);
      more.hidden = digits <= MOST_DIGITS;
      setText(kind, KIND_WORDS[decoded.kind]);
      const pieces = formulaNodes(h, formulaPieces(code, fmt));
      const last = h("span", { class: "mp-evaluated" }, powersApart(h, evaluated(decoded, fmt)));
      const isNumber = number.kind === "finite";
      formula.classList.toggle("mp-reason", !isNumber);
      formula.replaceChildren(...(isNumber ? ["= ", ...pieces, " ", last] : ["Here ", ...pieces, "."]));
    },
  };
}

// All of float16 fits; a power of ten takes the room of some digits.
function valueText(number) {
  const all = numberText(number, MOST_DIGITS);
  return all.includes("…") && all.includes("×") ? numberText(number, MOST_DIGITS - 3) : all;
}

// The last step of the formula, where it is short: " = 2⁻⁴ × 1.599609375".
function evaluated({ kind, sign, significand, power }, fmt) {
  if (kind !== "normal" && kind !== "subnormal") return "";
  const digits = decimalDigits(finite(0, significand, 1n << BigInt(fmt.mantissa_bits)), 12);
  if (!digits.exact || fmt.mantissa_bits === 0) return "";
  return `= ${sign ? "−" : ""}2${superscript(power + fmt.mantissa_bits)} × ${digitsText(digits)}`;
}

function formulaNodes(h, pieces) {
  return pieces.map(({ text, field, raised }) =>
    h(raised ? "sup" : "span", { class: field && `mp-ink-${field}` }, text));
}

export function neighboursPanel(h, actions) {
  const step = (name, arrow) => {
    const text = h("span", { class: "mp-step-value" });
    const gap = h("span", { class: "mp-step-gap" });
    const button = h("button", { class: `mp-button mp-step mp-step-${name}`, type: "button", on: { click: () => actions.step(name) } },
      h("span", { class: "mp-step-name" }, arrow), text, gap);
    return { button, text, gap };
  };
  const [down, up] = [step("down", "↓ next smaller"), step("up", "↑ next larger")];
  return {
    node: h("div", { class: "mp-neighbours" }, down.button, up.button),
    draw({ fmt, code }) {
      const next = neighbours(code, fmt);
      for (const [name, { button, text, gap }] of [["down", down], ["up", up]]) {
        const to = next[name];
        button.setAttribute("aria-disabled", String(to === null));
        text.replaceChildren(...powersApart(h, to === null ? "none" : briefText(to, fmt, 14)));
        setText(gap, gapText(code, to, fmt));
      }
    },
  };
}

function gapText(code, to, fmt) {
  if (to === null) return "\u00a0";
  const power = gapPower(code, to, fmt);
  if (power === null) return "no gap to measure";
  const [up, down] = pow2(power);
  const plain = aboutText(finite(0, up, down), 7);
  return `gap 2${superscript(power)} ${plain.startsWith("about") ? plain.replace("about ", "≈\u00a0") : `= ${plain}`}`;
}
