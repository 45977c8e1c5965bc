// CodeLine: the state and its controls. The lines are in rows.js, their axis in places.js, the
// words in words.js.

import { classify, encode, finite, toHex, ulpPower, valueOf } from "../shared/numbers/codec.js";
import { asDouble } from "../shared/numbers/double_rounding.js";
import { errorText, fateOf } from "../shared/numbers/format_fate.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { bitsPanel } from "../shared/page/bit_buttons.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { formulaPieces } from "../shared/words/code_words.js";
import { codeAxis } from "./places.js";
import { codeAxisPanel, codeRow } from "./rows.js";
import { codeInFormat, codeReading, valueInShort, valueOfCode } from "./words.js";

const CL_TRAITS = ["formats", "format", "code", "axis", "view"];
const CL_MOST_LINES = 4;
const CL_MOST_BITS = 8;
const CL_AXES = { logarithmic: "logarithmic", linear: "linear" };
const CL_VIEWS = { all: "all codes", positive: "positive half", near: "near the code" };

function choiceGroup(h, label, choices, choose) {
  const buttons = Object.entries(choices).map(([name, text]) =>
    h("button", { class: "mp-button", type: "button", "data-name": name, on: { click: () => choose(name) } }, text));
  return {
    node: h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, label), h("div", { class: "mp-cl-choices", role: "group", "aria-label": label }, buttons)),
    draw(pressed, disabled = () => false) {
      for (const button of buttons) {
        button.setAttribute("aria-pressed", String(pressed(button.dataset.name)));
        button.setAttribute("aria-disabled", String(disabled(button.dataset.name)));
      }
    },
  };
}

// The code that is read: its bits, which can be flipped, its value and where that comes from.
function readingPanel(h, actions) {
  const hex = h("span", { class: "mp-cl-hex" });
  const bits = bitsPanel(h, actions);
  const value = h("strong", { class: "mp-cl-is" });
  const formula = h("span", { class: "mp-cl-formula" });
  const sentence = h("p", { class: "mp-cl-sentence" });
  return {
    node: h("div", { class: "mp-cl-reading" }, h("div", { class: "mp-cl-code" }, hex, bits.node), h("p", { class: "mp-cl-worth" }, value, " ", formula), sentence),
    draw({ fmt, code }) {
      bits.draw({ fmt, code: BigInt(code) });
      setText(hex, `${fmt.label} ${toHex(BigInt(code), fmt)}`);
      const kind = classify(BigInt(code), fmt);
      setText(value, valueInShort(valueOfCode(code, fmt)));
      const pieces = kind === "nan" || kind === "infinity" ? [] : formulaPieces(BigInt(code), fmt);
      formula.replaceChildren(...(pieces.length ? ["= "] : []), ...pieces.map(({ text, field, raised }) => h(raised ? "sup" : "span", { class: field ? `mp-${field}` : null }, text)));
      setText(sentence, codeReading(code, fmt));
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const state = { preview: null };
  const status = h("p", { class: "mp-unseen", role: "status" });
  const lines = h("div", { class: "mp-cl-lines" });
  const known = Object.values(FORMATS).filter(({ bits }) => bits <= CL_MOST_BITS);
  let rows = [];
  const save = bindModel(model, CL_TRAITS, followModel, stop.signal);

  function store(change) {
    save(change);
    draw();
  }

  const say = (text) => setText(status, text);

  const actions = {
    read(fmt, code) {
      state.preview = null;
      store({ format: fmt.name, code });
    },
    preview(fmt, code) {
      if (model.get("view") === "near") return; // the picture would run away from the pointer
      state.preview = fmt === null || code === null ? null : { fmt, code };
      draw();
    },
    flip(bit) {
      const fmt = FORMATS[model.get("format")];
      actions.read(fmt, Number(BigInt(model.get("code")) ^ (1n << BigInt(bit))));
      say(codeReading(model.get("code"), fmt));
    },
    toggleFormat(name) {
      const shown = model.get("formats");
      const has = shown.includes(name);
      if (has && shown.length === 1) return say("One line stays.");
      if (!has && shown.length === CL_MOST_LINES) return say(`There is room for ${CL_MOST_LINES} lines: take one away first.`);
      const formats = known.map((fmt) => fmt.name).filter((one) => (one === name ? !has : shown.includes(one)));
      const now = { format: model.get("format"), code: model.get("code") };
      if (!formats.includes(now.format)) Object.assign(now, moved(FORMATS[now.format], now.code, FORMATS[formats[0]]));
      store({ formats, ...now });
      return say(`Lines of ${formats.map((one) => FORMATS[one].label).join(", ")}.`);
    },
    setAxis: (axis) => store({ axis }),
    setView: (view) => store({ view }),
  };

  // The same value on another line, or 1 where it has none.
  function moved(fmt, code, other) {
    const found = codeInFormat(valueOf(BigInt(code), fmt), other);
    return { format: other.name, code: found ?? Number(encode(finite(0, 1n), other)) };
  }

  const reading = readingPanel(h, actions);
  const axisPanel = codeAxisPanel(h);
  const [formats, axes, views] = [
    choiceGroup(h, "Lines", Object.fromEntries(known.map(({ name, label }) => [name, label])), actions.toggleFormat),
    choiceGroup(h, "Axis", CL_AXES, actions.setAxis), choiceGroup(h, "Show", CL_VIEWS, actions.setView),
  ];

  function buildRows(names) {
    rows = names.map((name) => rows.find(({ fmt }) => fmt.name === name) ?? codeRow(h, FORMATS[name], actions));
    // moved only where they differ, so that the line that has the focus keeps it
    const wanted = [...rows.map(({ node }) => node), axisPanel.node];
    if (wanted.some((node, i) => lines.children[i] !== node) || lines.children.length !== wanted.length) lines.replaceChildren(...wanted);
  }

  function draw() {
    const names = model.get("formats");
    buildRows(names);
    const held = { fmt: FORMATS[model.get("format")], code: model.get("code") };
    const { fmt, code } = state.preview ?? held;
    const number = valueOf(BigInt(code), fmt);
    const view = { axis: model.get("axis"), view: model.get("view"), value: asDouble(number), gap: 2 ** ulpPowerOf(number, fmt) };
    const axisKey = [names, view.axis, view.view, ...(view.view === "near" ? [view.value, view.gap] : [])].join();
    const axis = codeAxis(rows.map((row) => row.fmt), view);
    const read = valueInShort(view.value);
    const seen = rows.map((row) => {
      const isRead = row.fmt === fmt;
      const fate = isRead ? null : fateOf(number, row.fmt, {});
      const own = isRead ? code : fate.code === null ? null : Number(fate.code);
      row.draw({ axis, axisKey, read, code: own, isRead, words: fate && fateInShort(read, fate) });
      return { place: row.placeOf(own), exact: isRead || fate.error?.num === 0n };
    });
    rows.forEach((row, i) => i && row.drawLink(seen[i - 1].place, seen[i].place, seen[i - 1].exact && seen[i].exact));
    axisPanel.draw({ axis, axisKey });
    reading.draw({ fmt, code });
    formats.draw((name) => names.includes(name), (name) => (names.includes(name) ? names.length === 1 : names.length === CL_MOST_LINES));
    axes.draw((name) => name === view.axis);
    views.draw((name) => name === view.view);
  }

  function followModel() {
    state.preview = null;
    draw();
  }

  el.classList.add("mp-widget", "mp-code-line");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-cl" },
    h("div", { class: "mp-cl-controls" }, formats.node, axes.node, views.node),
    h("p", { class: "mp-cl-hint" }, "Point at a mark, or click it. Flip the bits below. ", h("span", { class: "mp-cl-keys" }, "Keys on a line: ← → to the next code, Page up and Page down by a binade.")),
    lines, keyOfMarks(h), reading.node, status)));
  draw();
  return () => stop.abort();
}

// The exponent of the gap at a number; at what is not finite that of the largest value.
const ulpPowerOf = (number, fmt) => ulpPower(number.kind === "finite" ? number : valueOf(BigInt(fmt.max_code), fmt), fmt);

/** What a line makes of a value: "448: exact", "0.25: rounded, 11.1 %". */
export function fateInShort(read, fate) {
  if (fate.stored === null) return "no code for NaN";
  if (fate.kind.startsWith("no_")) return `${read}: ${fate.words}`;
  if (fate.error === null || fate.error.num === 0n) return `${read}: ${fate.words}`;
  const off = fate.error.infinite || ["underflow", "overflow"].includes(fate.kind) ? "" : `, error ${errorText(fate.error)}`;
  const to = ["rounded", "subnormal"].includes(fate.kind) ? ` to ${valueInShort(asDouble(fate.stored))}` : "";
  return `${read}: ${fate.kind === "subnormal" ? "rounded" : fate.words}${to}${off}`;
}

function keyOfMarks(h) {
  const sample = (name, text) => h("span", {}, h("span", { class: `mp-cl-sample mp-cl-${name}-sample`, "aria-hidden": "true" }), text);
  return h("p", { class: "mp-cl-key" }, sample("power", "normal, longer at powers of two"), sample("subnormal", "subnormal"), sample("zero", "zero"), sample("dot", "read"), sample("ring", "what another line stores"));
}

export default { render };
