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

/** What the number field shows of a code: its value if that is short, else the shortest text that reads back to it. */
export function numberInput(code, fmt) {
  const number = valueOf(code, fmt);
  if (number.kind !== "finite") return numberText(number, 1, { ascii: true });
  const exact = decimalDigits(number, 12);
  return digitsText(exact.exact ? exact : shortestDigits(code, fmt), { sign: number.sign, ascii: true });
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
  const node = h("div", { class: "mp-bits", role: "toolbar", on: { keydown } });
  let buttons = []; // by bit: buttons[0] is the last of the fraction
  let focus = 0;
  let shownFormat = null;

  function build(fmt) {
    const [wide, narrow] = [gridLayout(fmt, 19), gridLayout(fmt, 8)];
    node.style.setProperty("--wide", wide.template);
    node.style.setProperty("--narrow", narrow.template);
    node.setAttribute("aria-label", `The ${fmt.bits} bits of ${fmt.label}. Arrow keys move, space flips.`);
    buttons = Array.from({ length: fmt.bits }, (_, bit) => h("button", {
      class: `mp-bit mp-${fieldOfBit(bit, fmt)}`, type: "button", tabindex: "-1", "aria-label": bitName(bit, fmt),
      style: `--wide-column:${wide.cells[bit]};--narrow-column:${narrow.cells[bit]}`,
      on: { click: () => actions.flip(bit), focus: () => rove(bit) },
    }, h("span", { class: "mp-digit" }), h("span", { class: "mp-place" }, placeValue(bit, fmt))));
    node.replaceChildren(...buttons.toReversed());
    rove(fmt.bits - 1);
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
    node,
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

/** Where a magnitude lies on the ruler, from 0 (smallest value) to 1 (end of the largest binade); null off it. */
export function rulerPlace(number, fmt) {
  if (number.kind !== "finite" || number.num === 0n) return null;
  const e = floorLog2(number.num, number.den);
  const [up, down] = pow2(-e);
  const significand = Number((number.num * up * 4096n) / (number.den * down)) / 4096;
  const low = fmt.emin - fmt.mantissa_bits;
  return (e + Math.log2(significand) - low) / (fmt.emax + 1 - low);
}

export function rulerPanel(h) {
  const caption = h("span", {});
  const key = h("span", { class: "mp-zone-key" }, "subnormal");
  const marker = h("span", { class: "mp-marker" });
  const zone = h("span", { class: "mp-zone" });
  const one = h("span", { class: "mp-tick" });
  const [low, border, unit, high] = ["low", "at", "at", "high"].map((side) => h("span", { class: `mp-end-${side}` }));
  const node = h("div", { class: "mp-ruler", "aria-hidden": "true" }, // the class and the value say it in words
    h("p", { class: "mp-ruler-caption" }, caption, key),
    h("div", { class: "mp-strip" }, zone, one, marker),
    h("p", { class: "mp-ruler-ends" }, low, border, unit, high));
  return {
    node,
    draw({ fmt, code }) {
      const place = rulerPlace(valueOf(code, fmt), fmt);
      const [zoneEnd, atOne] = [rulerPlace(valueOf(namedCode("smallest_normal", fmt), fmt), fmt), rulerPlace(finite(0, 1n), fmt)];
      setText(caption, `All sizes of ${fmt.label}, by powers of two`);
      key.hidden = !fmt.has_zero;
      marker.hidden = place === null;
      if (place !== null) marker.style.left = `${100 * place}%`;
      zone.style.width = `${100 * zoneEnd}%`;
      for (const node of [one, unit]) node.style.left = `${100 * atOne}%`;
      border.style.left = `${100 * zoneEnd}%`;
      border.hidden = zoneEnd < 0.14 || Math.abs(zoneEnd - atOne) < 0.1;
      setText(low, `2${superscript(fmt.emin - fmt.mantissa_bits)}`);
      setText(border, `2${superscript(fmt.emin)}`);
      setText(unit, "1");
      setText(high, aboutText(valueOf(BigInt(fmt.max_code), fmt)).replace("about ", "≈\u00a0"));
    },
  };
}

export function codePanel(h, actions) {
  const hex = h("input", {
    class: "mp-input mp-hex", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    on: {
      change: () => actions.typeCode(hex.value),
      keydown: (event) => event.key === "Enter" && actions.typeCode(hex.value),
    },
  });
  const parts = ["sign", "exponent", "fraction"].map((field) => h("span", { class: `mp-ink-${field}` }));
  const binary = h("span", { class: "mp-binary" }, parts);
  let bits = "";
  const copy = (what, text) => {
    const button = h("button", {
      class: "mp-button mp-copy", type: "button", "aria-label": `copy the ${what} code`,
      on: { click: async () => actions.say((await copyText(text(), button)) ? `Copied ${text()}` : `Copy it by hand: ${text()}`) },
    }, "copy");
    return button;
  };
  const node = h("div", { class: "mp-codes" },
    h("div", { class: "mp-code" }, h("label", { class: "mp-field" }, h("span", {}, "Hex code"), hex), copy("hex", () => hex.value)),
    h("div", { class: "mp-code mp-grow" }, h("span", { class: "mp-field" }, h("span", {}, "Binary code"), binary), copy("binary", () => `0b${bits}`)));
  return {
    node,
    draw({ fmt, code }) {
      hex.value = toHex(code, fmt);
      hex.size = hex.value.length;
      bits = toBinary(code, fmt);
      const ends = [0, fmt.signed ? 1 : 0, fmt.bits - fmt.mantissa_bits, fmt.bits];
      parts.forEach((part, i) => setText(part, bits.slice(ends[i], ends[i + 1])));
    },
  };
}

const SHORTCUTS = [
  ["zero", "0"], ["one", "1"], ["largest", "largest"], ["smallest_normal", "smallest normal"],
  ["smallest_subnormal", "smallest subnormal"], ["infinity", "∞"], ["nan", "NaN"],
];

export function shortcutsPanel(h, actions) {
  const button = (text, click, label) => h("button", { class: "mp-button", type: "button", "aria-label": label, on: { click } }, text);
  const named = SHORTCUTS.map(([name, text]) => [name, button(text, () => actions.jump(name), text === "∞" ? "infinity" : null)]);
  const sign = button("±", actions.changeSign, "change the sign");
  const node = h("div", { class: "mp-shortcuts", role: "group", "aria-label": "Go to" },
    sign, named.map(([, node]) => node), button("reset", actions.reset, null));
  return {
    node,
    draw({ fmt }) {
      sign.hidden = !fmt.signed;
      for (const [name, node] of named) node.hidden = namedCode(name, fmt) === null;
    },
  };
}
