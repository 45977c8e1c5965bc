// The parts of BitFlip on the page. Each maker takes h (page.js) and the actions, and gives { node, draw(view) }.
// A view is { fmt, code, decoded, typed, message, wrong }.

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
