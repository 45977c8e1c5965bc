// The mask of SoftmaxRow: how it is applied, its value from a list or typed, and the dtype of the softmax after it.

import { FORMATS } from "../shared/numbers/formats.js";
import { largestNumber } from "./steps.js";

const OWN = "own";
const LOWEST = "lowest";

/** The value of the mask as its field shows it. */
export const valueText = ({ value, format }) => (value === LOWEST ? String(-largestNumber(FORMATS[format])) : value);

/** Selects for the way of masking, the value and the softmax's dtype, and a field for a value of the reader's own. */
export function maskControls(h, actions, facts) {
  const select = (options, take) => {
    const node = h("select", { class: "mp-input", on: { change: () => take(node.value) } }, options.map(([value, label]) => h("option", { value }, label)));
    return node;
  };
  const field = (label, ...controls) => h("label", { class: "mp-field" }, h("span", {}, label), controls);
  const inner = select([["", "as the scores"], ...facts.formats], (value) => actions.set({ softmax_format: value }));
  const mask = select(facts.masks, (value) => actions.set({ mask: value }));
  const value = select([...facts.values, [OWN, "own number"]], (chosen) => {
    if (chosen !== OWN) return actions.takeValue(chosen);
    number.focus();
    number.select();
  });
  const number = h("input", {
    class: "mp-input mp-sr-value", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    on: { input: () => actions.typeValue(number.value, { refuse: false }), change: () => actions.typeValue(number.value, { refuse: true }), keydown: (event) => event.key === "Enter" && actions.typeValue(number.value, { refuse: true }) },
  });
  return {
    nodes: [
      field("Dtype of the softmax", inner), field("Way of masking", mask), field("Value of the mask", value), field("Its number", number),
    ],
    describeBy(message) {
      number.ariaDescribedByElements = [message];
    },
    draw({ row, typed, faults }) {
      inner.value = row.softmax_format;
      mask.value = row.mask;
      value.value = facts.values.some(([name]) => name === row.value) ? row.value : OWN;
      if (number.value !== typed.value) number.value = typed.value;
      number.setAttribute("aria-invalid", String("value" in faults));
      for (const node of [value, number]) node.disabled = row.mask === "none";
    },
  };
}
