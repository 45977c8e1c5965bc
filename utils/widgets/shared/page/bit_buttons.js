// The bits of a code as buttons: a grid for wide widgets and one for narrow ones, one stop of the keyboard.
// Names and worth of a bit are those of shared/words/code_words.js; the rules are in controls.css.

import { fieldOfBit } from "../numbers/codec.js";
import { bitName, placeValue } from "../words/code_words.js";
import { setText } from "./elements.js";

/** Columns of the bit grid, and where each bit stands in it: the last bit always in the last column. */
export function gridLayout(fmt, perRow) {
  const columns = fmt.bits <= perRow ? fmt.bits : perRow > 8 ? 16 : 8;
  const oneRow = columns === fmt.bits;
  const breaks = [];
  for (let column = 1; column < columns; column += 1) {
    const bit = columns - column; // the last row's bit to the right of the break is bit - 1
    const field = fieldOfBit(bit, fmt) !== fieldOfBit(bit - 1, fmt);
    if (oneRow ? field : column % (columns / 2) === 0) breaks.push(column);
  }
  const cells = Array.from({ length: fmt.bits }, (_, bit) => {
    const column = columns - (bit % columns);
    return column + breaks.filter((at) => at < column).length;
  });
  const template = Array.from({ length: columns }, (_, i) => (breaks.includes(i + 1) ? "var(--cell) var(--break)" : "var(--cell)"));
  return { template: template.join(" "), cells };
}

export function bitsPanel(h, actions) {
  const bits = h("div", { class: "mp-bits", role: "toolbar", on: { keydown } });
  const keys = h("p", { class: "mp-keys", "aria-hidden": "true" }, "Keys on a bit: 0 and 1 set it and move right, space flips it, arrows move.");
  let buttons = []; // by bit: buttons[0] is the last of the fraction
  let focus = 0;
  let shownFormat = null;

  function build(fmt) {
    const [wide, narrow] = [gridLayout(fmt, 19), gridLayout(fmt, 8)];
    bits.style.setProperty("--wide", wide.template);
    bits.style.setProperty("--narrow", narrow.template);
    bits.setAttribute("aria-label", `The ${fmt.bits} bits of ${fmt.label}. Arrow keys move, space flips, 0 and 1 set the bit and move right.`);
    buttons = Array.from({ length: fmt.bits }, (_, bit) => h("button", {
      class: `mp-bit mp-${fieldOfBit(bit, fmt)}`, type: "button", tabindex: "-1", "aria-label": bitName(bit, fmt),
      style: `--wide-column:${wide.cells[bit]};--narrow-column:${narrow.cells[bit]}`,
      on: { click: () => flip(bit), focus: () => rove(bit) },
    }, h("span", { class: "mp-digit" }), h("span", { class: "mp-place" }, placeValue(bit, fmt))));
    bits.replaceChildren(...buttons.toReversed());
    rove(fmt.bits - 1);
  }

  // Some browsers do not focus a button that is clicked; the keys shall work from there on.
  function flip(bit) {
    buttons[bit].focus({ preventScroll: true });
    actions.flip(bit);
  }

  function rove(bit) {
    buttons[focus]?.setAttribute("tabindex", "-1");
    focus = bit;
    buttons[bit].setAttribute("tabindex", "0");
  }

  function go(bit) {
    if (bit < 0 || bit >= buttons.length) return;
    rove(bit);
    buttons[bit].focus();
  }

  function keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rowLength(buttons);
    const moves = {
      ArrowLeft: focus + 1, ArrowRight: focus - 1, ArrowUp: focus + row, ArrowDown: focus - row,
      Home: buttons.length - 1, End: 0,
    };
    if (event.key in moves) go(moves[event.key]);
    else if (event.key === "0" || event.key === "1") { // typing bits writes them, from left to right
      if (buttons[focus].getAttribute("aria-pressed") !== String(event.key === "1")) actions.flip(focus);
      go(focus - 1);
    } else return;
    event.preventDefault();
  }

  return {
    node: h("div", { class: "mp-bits-and-keys" }, bits, keys),
    focus: () => buttons[focus].focus(),
    draw({ fmt, code }) {
      if (shownFormat !== fmt.name) build(fmt);
      shownFormat = fmt.name;
      buttons.forEach((button, bit) => {
        const digit = String((code >> BigInt(bit)) & 1n);
        button.setAttribute("aria-pressed", String(digit === "1"));
        setText(button.firstChild, digit);
      });
    },
  };
}

// How many bits stand in the last row of the grid as it is laid out now.
function rowLength(buttons) {
  const above = buttons.findIndex(({ offsetTop }) => offsetTop < buttons[0].offsetTop);
  return above < 0 ? buttons.length : above;
}
