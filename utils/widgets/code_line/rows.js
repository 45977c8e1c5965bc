// The lines of CodeLine: one for each format, with a mark for each code, and what is read on them.

import { classify, fields } from "../shared/numbers/codec.js";
import { setText } from "../shared/page/elements.js";
import { nearestCode } from "./places.js";
import { censusText, codeReading, codesInOrder, valueInShort, valueOfCode } from "./words.js";

const CL_MARKS = { normal: [0.62, 0.9], power: [0.4, 0.9], subnormal: [0.62, 0.9], zero: [0.25, 0.9], nan: [0.25, 0.55] };
const MOST_VALUE_LABELS = 40;
const clPercent = (place) => `${(100 * place).toFixed(3)}%`;

function clSvg(name, classes) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({ class: name, viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" })) svg.setAttribute(key, value);
  const paths = classes.map((one) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("class", one);
    path.setAttribute("vector-effect", "non-scaling-stroke");
    return path;
  });
  svg.append(...paths);
  return { svg, paths };
}

// What a mark is: the powers of two are longer, and a NaN between numbers (FNUZ) hangs from above.
function markOf(code, fmt) {
  const kind = classify(BigInt(code), fmt);
  if (kind === "normal" && fields(BigInt(code), fmt).fraction === 0n) return "power";
  return kind;
}

/** One line: { fmt, node, placeOf(code), draw(view), drawLink(from, to, exact) }; the link comes from the line above. */
export function codeRow(h, fmt, actions) {
  const codes = codesInOrder(fmt);
  const values = codes.map((code) => valueOfCode(code, fmt));
  const marks = codes.map((code) => markOf(code, fmt));
  const names = Object.keys(CL_MARKS);
  const { svg, paths } = clSvg("mp-cl-marks", names.map((name) => `mp-cl-${name}`));
  const dot = h("span", { class: "mp-cl-dot" });
  const labels = h("span", { class: "mp-cl-values" });
  const [left, right] = [-1, 1].map((side) => h("span", { class: "mp-cl-end" }, endText(h, fmt, side)));
  const plot = h("span", { class: "mp-cl-plot" }, svg, labels, dot);
  const strip = h("div", { class: "mp-cl-strip", role: "slider", tabindex: "0", "aria-label": `Codes of ${fmt.label}, in the order of their values`,
    "aria-valuemin": "0", "aria-valuemax": String(codes.length - 1), on: { keydown, pointermove, pointerleave, click } }, left, plot, right);
  const stored = h("span", {});
  const link = clSvg("mp-cl-link", ["mp-cl-way"]);
  let places = [];
  let index = 0;

  const hasEnd = (side) => codes.some((code, i) => !Number.isFinite(values[i]) && endSide(code, fmt) === side);

  function keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 2 ** fmt.mantissa_bits, PageDown: -(2 ** fmt.mantissa_bits) };
    const ends = { Home: 0, End: codes.length - 1 };
    const next = event.key in steps ? index + steps[event.key] : ends[event.key];
    if (next === undefined) return;
    event.preventDefault();
    actions.read(fmt, codes[Math.min(Math.max(next, 0), codes.length - 1)]);
  }

  function codeAt(event) {
    const box = plot.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width;
    const side = at < -0.005 ? -1 : at > 1.005 ? 1 : 0;
    if (side && hasEnd(side)) return codes.find((code, i) => !Number.isFinite(values[i]) && endSide(code, fmt) === side);
    const found = nearestCode(places, at);
    return found < 0 ? null : codes[found];
  }

  function pointermove(event) {
    if (event.pointerType === "mouse") actions.preview(fmt, codeAt(event));
  }

  function pointerleave() {
    actions.preview(null, null);
  }

  function click(event) {
    const code = codeAt(event);
    if (code !== null) actions.read(fmt, code);
  }

  // The dot: what is read, or what this line makes of it; at an end for what is no number.
  function drawDot(code, isRead) {
    const at = codes.indexOf(code);
    dot.hidden = at < 0;
    if (at < 0) return;
    const place = Number.isNaN(places[at]) && marks[at] !== "nan" && Number.isFinite(values[at]) ? NaN : places[at];
    const side = Number.isFinite(values[at]) || !Number.isNaN(place) ? 0 : endSide(code, fmt);
    dot.hidden = side === 0 && !(place >= -0.001 && place <= 1.001);
    dot.style.left = side === 0 ? clPercent(place) : side < 0 ? "calc(0% - 1.15rem)" : "calc(100% + 1.15rem)";
    dot.classList.toggle("mp-cl-read", isRead);
  }

  return {
    fmt,
    node: h("div", { class: "mp-cl-row" }, h("p", { class: "mp-cl-head" }, h("strong", {}, fmt.label), " ", h("span", { class: "mp-cl-census" }, h("span", {}, censusText(fmt))), " ", h("span", { class: "mp-cl-stored" }, stored)), strip, link.svg),
    placeOf: (code) => places[codes.indexOf(code)],
    draw({ axis, axisKey, read, code, isRead, words }) {
      if (svg.dataset.axis !== axisKey) {
        svg.dataset.axis = axisKey;
        places = values.map((x, i) => (marks[i] === "nan" && fmt.specials === "negative_zero" ? axis.place(0) : axis.place(x)));
        names.forEach((name, n) => paths[n].setAttribute("d", marksOf(name)));
        labels.replaceChildren(...valueLabels(h, { values, places, marks }));
      }
      drawDot(code, isRead);
      index = code === null ? codes.indexOf(0) : codes.indexOf(code);
      strip.classList.toggle("mp-cl-now", isRead);
      strip.setAttribute("aria-valuenow", String(index));
      strip.setAttribute("aria-valuetext", code === null ? `${read}: no code of ${fmt.label}` : codeReading(code, fmt));
      setText(stored, isRead ? "" : words);
    },
    drawLink(from, to, exact) {
      const both = from >= 0 && from <= 1 && to >= 0 && to <= 1;
      link.paths[0].setAttribute("d", both ? `M${from.toFixed(5)} 0L${to.toFixed(5)} 1` : "");
      link.paths[0].classList.toggle("mp-cl-off", !exact);
    },
  };

  function marksOf(name) {
    const [top, bottom] = CL_MARKS[name];
    return marks.map((mark, i) => (mark === name && places[i] >= -0.001 && places[i] <= 1.001 ? `M${places[i].toFixed(5)} ${top}V${bottom}` : "")).join("");
  }
}

const endSide = (code, fmt) => (fmt.specials === "negative_zero" ? 0 : fields(BigInt(code), fmt).sign ? -1 : 1);

// What stands outside the numbers at one end, a line of text each.
function endText(h, fmt, side) {
  const lost = codesInOrder(fmt).filter((code) => ["nan", "infinity"].includes(classify(BigInt(code), fmt)) && endSide(code, fmt) === side);
  const kinds = new Set(lost.map((code) => classify(BigInt(code), fmt)));
  return ["infinity", "nan"].filter((kind) => kinds.has(kind)).map((kind) => h("span", {}, kind === "nan" ? "NaN" : `${side < 0 ? "−" : ""}∞`));
}

// The values themselves, where the marks stand far enough apart; powers of two before others.
function valueLabels(h, { values, places, marks }) {
  const seen = values.map((x, i) => ({ x, place: places[i], rank: marks[i] === "power" ? 0 : 1 })).filter(({ x, place }) => place >= 0.02 && place <= 0.98 && Number.isFinite(x) && !Object.is(x, -0));
  if (seen.length > MOST_VALUE_LABELS) return [];
  const texts = seen.map(({ x }) => valueInShort(x));
  const labels = seen.map((one, i) => ({ ...one, text: texts[i] }));
  return spacedLabels(h, "mp-cl-value", labels, roomOf(labels, [0.07, 0.16]));
}

// The room for the longest of some labels, at least `least`: 7 pixels a letter, of some 460 and of 240 on a phone.
function roomOf(labels, least) {
  const longest = Math.max(0, ...labels.map(({ text }) => text.length));
  return [Math.max(least[0], 0.0155 * longest), Math.max(least[1], 0.03 * longest)];
}

// Those labels that have room beside those of lower rank; "mp-cl-some" where a phone has no room.
function spacedLabels(h, name, labels, [apart, apartOnPhone]) {
  const kept = [];
  return [...labels].sort((a, b) => a.rank - b.rank).flatMap(({ text, place }) => {
    const near = (those) => Math.min(Infinity, ...those.map((one) => Math.abs(one.place - place)));
    if (near(kept) < apart) return [];
    const some = near(kept.filter((one) => !one.some)) < apartOnPhone;
    kept.push({ place, some });
    const label = h("span", { class: `${name}${some ? " mp-cl-some" : ""}` }, text);
    label.style.left = clPercent(place);
    return [label];
  });
}

/** The axis under the lines. */
export function codeAxisPanel(h) {
  const node = h("div", { class: "mp-cl-axis", "aria-hidden": "true" });
  const place = h("span", { class: "mp-cl-ticks" });
  node.append(place);
  return {
    node,
    draw({ axis, axisKey }) {
      if (node.dataset.axis === axisKey) return;
      node.dataset.axis = axisKey;
      const seen = axis.labels.filter(({ place: at }) => at >= 0 && at <= 1);
      place.replaceChildren(...spacedLabels(h, "mp-cl-tick", seen, roomOf(seen, [0.045, 0.13])));
    },
  };
}
