// The picture of NumberLine: one layer for the line, drawn when the view or the rule changes, and one for x.

import { finite } from "../shared/numbers/codec.js";
import {
  binShapes, chanceShapes, fitLabels, gapBrackets, LINE_ROWS, linesPath, lostZones, marksPath, placePair,
  placesWithBins, rectanglesPath, runExtent, tickLabels, tieMarks, trianglesPaths,
} from "./geometry.js";
import { firstPlace, lastPlace, placeBelow, placeOfCode, resultsOf, valueAtPlace } from "./grid.js";
import { isInView, pixelScale, powerOfTwo, quotient, runsInView } from "./view.js";
import { awayText, chanceText, placeSentence, placeText, powerName, resultText, xIs } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const LOST_WORDS = { nan: "NaN", infinity: "∞", saturates: "saturates" };

function shape(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const textAt = (x, y, text, kind, anchor = "middle") =>
  shape("text", { x: x.toFixed(1), y: y.toFixed(1), class: `mp-nl-text mp-nl-${kind}`, "text-anchor": anchor }, text);

/** The stage: the picture with the handle of x over it. Gives { node, draw(view), drawPoint(view), resize() }. */
export function stagePanel(h, actions) {
  const line = shape("g", {});
  const point = shape("g", {});
  const marks = shape("path", { class: "mp-nl-marks" }); // over the bin of x
  const picture = shape("svg", { class: "mp-nl-picture", "aria-hidden": "true", focusable: "false" });
  picture.append(line, point, marks);
  const handle = h("div", {
    class: "mp-nl-handle", role: "slider", tabindex: "0", "aria-label": "x, the number that is rounded",
    "aria-valuemin": "0", "aria-valuemax": "100", on: { keydown },
  });
  const node = h("div", { class: "mp-nl-stage" }, picture, handle);
  let pixels = 640;
  let em = 13.6;
  let measure = (text) => text.length * em * 0.56;
  let drag = null;
  let knob = 0; // the pixel of x

  function keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 1, PageDown: -1 };
    const whole = event.shiftKey || event.key.startsWith("Page");
    if (event.key in ways) actions.step(ways[event.key], whole ? "value" : "fine");
    else if (event.key === "Home" || event.key === "End") actions.toEdge(event.key === "End" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  const at = (event) => event.clientX - node.getBoundingClientRect().left;

  function down(event) {
    if (event.button !== 0 || drag) return;
    const onHandle = event.target === handle;
    drag = { id: event.pointerId, kind: onHandle ? "x" : "pan", start: at(event), last: at(event), moved: false };
    drag.offset = onHandle ? drag.start - knob : 0; // where in the handle it was taken
    node.setPointerCapture(event.pointerId);
    if (onHandle) handle.focus({ preventScroll: true });
    if (onHandle) event.preventDefault(); // no selection of text
  }

  function move(event) {
    if (!drag || event.pointerId !== drag.id) return;
    const now = at(event);
    if (!drag.moved && Math.abs(now - drag.start) < 4) return;
    drag.moved = true;
    if (drag.kind === "x") actions.drag(Math.min(Math.max(now - drag.offset, 0), pixels), pixels);
    else {
      node.classList.add("mp-nl-panning");
      actions.pan((drag.last - now) / pixels);
    }
    drag.last = now;
  }

  function up(event) {
    if (!drag || event.pointerId !== drag.id) return;
    const { kind, moved, start } = drag;
    drag = null;
    node.classList.remove("mp-nl-panning");
    if (event.type === "pointercancel") return kind === "x" && moved && actions.dragEnd();
    if (kind === "pan" && !moved) {
      actions.drag(start, pixels);
      handle.focus({ preventScroll: true });
    }
    if (kind === "x" ? moved : true) actions.dragEnd(kind === "pan" && moved);
  }

  return {
    node, handle,
    listen(signal) {
      for (const [type, listener] of [["pointerdown", down], ["pointermove", move], ["pointerup", up], ["pointercancel", up]]) {
        node.addEventListener(type, listener, { signal });
      }
    },
    // True if the width or the size of the text has changed.
    resize() {
      const width = node.clientWidth;
      if (!width) return false;
      const style = getComputedStyle(picture);
      const size = parseFloat(style.fontSize) || em;
      if (width === pixels && size === em) return false;
      [pixels, em] = [width, size];
      const context = document.createElement("canvas").getContext("2d");
      if (context) {
        context.font = `600 ${style.fontSize} ${style.fontFamily}`;
        const known = new Map();
        measure = (text) => {
          if (!known.has(text)) known.set(text, context.measureText(text).width);
          return known.get(text);
        };
      }
      return true;
    },
    draw(state) {
      const rows = rowsInPixels(em, showsHole(state, pixels));
      picture.setAttribute("height", rows.height);
      node.style.height = `${rows.height}px`;
      const { nodes, marks: at } = lineShapes(state, { rows, pixels, measure });
      line.replaceChildren(...nodes);
      marks.setAttribute("d", marksPath(at, (rows.strip + rows.axis) / 2, em * 0.36));
    },
    drawPoint(state) {
      const rows = rowsInPixels(em, showsHole(state, pixels));
      const scale = pixelScale(state.view, pixels);
      knob = Math.min(Math.max(scale(state.x), 0), pixels);
      handle.style.left = `${knob}px`;
      handle.style.top = `${rows.handle}px`;
      handle.classList.toggle("mp-nl-away", !isInView(state.x, state.view));
      handle.setAttribute("aria-valuenow", (100 * knob / pixels).toFixed(1));
      handle.setAttribute("aria-valuetext", placeSentence(state.x, state.fmt, state.shown));
      point.replaceChildren(...pointShapes(state, { rows, pixels, measure, scale, em }));
    },
  };
}

// Whether the second line, without subnormal numbers, is drawn: only where a pixel of the hole at least is in view.
function showsHole({ withoutSubnormals, fmt, view }, pixels) {
  if (!withoutSubnormals || !fmt.has_zero) return false;
  const scale = pixelScale(view, pixels);
  const border = powerOfTwo(fmt.emin);
  const [left, right] = [fmt.signed ? { ...border, sign: 1 } : finite(0, 0n), border].map((end) => Math.min(Math.max(scale(end), 0), pixels));
  return right - left >= 1;
}

function rowsInPixels(em, ghost) {
  const rows = Object.fromEntries(Object.entries(LINE_ROWS).map(([name, value]) => [name, value * em]));
  return { ...rows, height: ghost ? rows.ghostEnd : rows.end };
}

// Everything but x.
function lineShapes({ view, fmt, rule, saturate, withoutSubnormals }, { rows, pixels, measure }) {
  const hasHole = showsHole({ withoutSubnormals, fmt, view }, pixels);
  const scale = pixelScale(view, pixels);
  const screen = { fmt, scale, pixels, saturate, rule, measure };
  const runs = runsInView(view, pixels, fmt);
  const places = placesWithBins(runs, view, fmt);
  const ticks = ticksByHeight(runs, fmt, scale);
  const strip = rows.axis - rows.strip;
  const nodes = stripShapes(places, screen, { rows, strip });
  for (const zone of lostZones(rule, screen)) nodes.push(...lostShapes(zone, { rows, strip, measure, fmt }));
  const brackets = gapBrackets(runs, screen);
  nodes.push(shape("path", { class: "mp-nl-subnormal", d: rectanglesPath(brackets.filter(({ kind }) => kind === "subnormal"), rows.axis, rows.tall - rows.axis) }));
  nodes.push(
    shape("path", { class: "mp-nl-dense", d: rectanglesPath(denseShapes(runs, screen), rows.axis, rows.minor - rows.axis) }),
    shape("path", { class: "mp-nl-minor", d: linesPath(ticks.minor, rows.axis, rows.minor) }),
    shape("path", { class: "mp-nl-tall", d: linesPath(ticks.tall, rows.axis, rows.tall) }),
    shape("path", { class: "mp-nl-axis", d: `M0 ${rows.axis}H${pixels}` }),
  );
  const labels = fitLabels(tickLabels(runs, screen), pixels, measure);
  for (const { at, middle, name, decimal, kind } of labels) {
    if (kind !== "value") nodes.push(shape("path", { class: `mp-nl-${kind}-line`, d: linesPath([at], kind === "border" ? rows.strip : rows.axis, rows.tall) }));
    if (name) nodes.push(textAt(middle, rows.name, name, kind === "value" ? "name" : kind));
    nodes.push(textAt(middle, name ? rows.decimal : rows.name, decimal, "decimal"));
  }
  for (const { left, right, text, kind } of brackets) {
    nodes.push(shape("path", { class: `mp-nl-bracket mp-nl-bracket-${kind}`, d: `M${left + 1} ${rows.bracket - 4}V${rows.bracket}H${right - 1}V${rows.bracket - 4}` }));
    if (text) nodes.push(textAt((left + right) / 2, rows.gap, text, kind === "subnormal" ? "subnormal-text" : "gap"));
  }
  if (hasHole) nodes.push(...ghostShapes(runs, { rows, fmt, scale, pixels, measure }));
  return { nodes, marks: tieMarks(places, rule, screen) };
}

function stripShapes(places, screen, { rows, strip }) {
  if (screen.rule === "stochastic") {
    const [even, odd] = trianglesPaths(chanceShapes(places, screen), rows.strip, rows.axis, screen.pixels);
    return [shape("path", { class: "mp-nl-even", d: even }), shape("path", { class: "mp-nl-odd", d: odd })];
  }
  const bins = binShapes(places, screen.rule, screen);
  return [true, false].map((even) =>
    shape("path", { class: even ? "mp-nl-even" : "mp-nl-odd", d: rectanglesPath(bins.filter((bin) => bin.even === even), rows.strip, strip) }));
}

function lostShapes({ left, right, how, sign }, { rows, strip, measure, fmt }) {
  const nodes = [shape("path", { class: "mp-nl-lost", d: rectanglesPath([{ left, right }], rows.strip, strip) })];
  const end = placeText(sign ? firstPlace(fmt) : lastPlace(fmt), fmt, 6);
  const minus = sign && how === "infinity" ? "−" : "";
  const texts = how === "saturates" ? [`saturates: ${end}`, `→ ${end}`, end] : [`becomes ${minus}${LOST_WORDS[how]}`, `${minus}${LOST_WORDS[how]}`];
  const text = texts.find((candidate) => measure(candidate) <= right - left - 6);
  if (text) nodes.push(textAt((left + right) / 2, rows.strip + strip * 0.66, text, "lost-text"));
  return nodes;
}

// Ticks at their pixels: tall ones at zero and at the powers of two.
function ticksByHeight(runs, fmt, scale) {
  const ticks = { minor: [], tall: [] };
  const M = BigInt(fmt.mantissa_bits);
  for (const { from, to, dense } of runs) {
    if (dense) continue;
    for (let place = from; place <= to; place += 1n) {
      const size = place < 0n ? -place : place;
      const tall = size === 0n || size === lastPlace(fmt) || (size >> M > 0n && (size & ((1n << M) - 1n)) === 0n);
      ticks[tall ? "tall" : "minor"].push(scale(valueAtPlace(place, fmt)));
    }
  }
  return ticks;
}

const denseShapes = (runs, { fmt, scale, pixels }) =>
  runs.filter(({ dense }) => dense).map((run) => {
    const { low, high } = runExtent(run, fmt);
    return { left: Math.min(Math.max(scale(low), 0), pixels), right: Math.min(Math.max(scale(high), 0), pixels) };
  });

// The second line: the format as it would be without subnormal numbers.
function ghostShapes(runs, { rows, fmt, scale, pixels, measure }) {
  const normal = runs.filter(({ kind }) => kind === "normal");
  const ticks = ticksByHeight(normal, fmt, scale);
  const border = powerOfTwo(fmt.emin);
  const [left, zero, right] = [{ ...border, sign: 1 }, finite(0, 0n), border].map((number) => Math.min(Math.max(scale(number), 0), pixels));
  const width = powerName(fmt.mantissa_bits);
  const texts = [`Without subnormals: a hole ${width} gaps wide`, `a hole, ${width} gaps wide`, "a hole", ""];
  const nodes = [
    shape("path", { class: "mp-nl-hole", d: rectanglesPath([{ left, right: zero }, { left: zero, right }].filter((hole) => hole.right > hole.left), rows.ghostAxis, rows.ghostTick - rows.ghostAxis) }),
    shape("path", { class: "mp-nl-dense", d: rectanglesPath(denseShapes(normal, { fmt, scale, pixels }), rows.ghostAxis, rows.ghostTick - rows.ghostAxis) }),
    shape("path", { class: "mp-nl-minor", d: linesPath([...ticks.minor, ...ticks.tall, ...(zero > 0 && zero < pixels ? [zero] : [])], rows.ghostAxis, rows.ghostTick) }),
    shape("path", { class: "mp-nl-axis", d: `M0 ${rows.ghostAxis}H${pixels}` }),
  ];
  const text = texts.find((candidate) => measure(candidate) <= Math.max(right - zero, zero - left, pixels * 0.6));
  const middle = right > zero ? (zero + right) / 2 : (left + zero) / 2;
  const half = measure(text) / 2;
  nodes.push(textAt(Math.min(Math.max(middle, half), pixels - half), rows.ghostText, text, "hole-text"));
  return nodes;
}

// x, its neighbours and where the rule sends it.
function pointShapes({ x, fmt, view, rule, saturate, shown }, { rows, pixels, measure, scale, em }) {
  const nodes = [];
  const at = scale(x);
  const away = awayText(x, view, shown);
  const name = away ? (at < 0 ? `← ${away}` : `${away} →`) : xIs(x, shown);
  const half = measure(name) / 2;
  const clamped = Math.min(Math.max(at, 0), pixels);
  nodes.push(textAt(Math.min(Math.max(clamped, half), pixels - half), rows.label, name, "x"));
  if (away) return nodes;
  const outcomes = resultsOf(x, fmt, { saturate })[rule];
  const places = outcomes.map(({ code }) => placeOfCode(code, fmt));
  const single = outcomes.length === 1;
  if (single && places[0] !== null && rule !== "stochastic") {
    const [bin] = binShapes([places[0]], rule, { fmt, scale, pixels });
    if (bin && bin.right - bin.left > 3) {
      nodes.push(shape("path", { class: "mp-nl-chosen", d: rectanglesPath([bin], rows.strip, rows.axis - rows.strip) }));
    }
  }
  nodes.push(shape("path", { class: "mp-nl-drop", d: `M${clamped} ${rows.arrow}V${rows.axis}` }));
  const { below, above } = neighbourPlaces(x, fmt);
  const targets = single ? [target(outcomes[0], places[0])] : outcomes.map((outcome, i) => target(outcome, places[i]));

  // Where an outcome is drawn: at its value, or below x itself for what is no value on the line.
  function target({ code, chance }, place) {
    const to = place === null ? at : scale(valueAtPlace(place, fmt));
    return { code, chance, place, to, text: place === null ? resultText(code, fmt) : placeText(place, fmt), won: true };
  }
  const onLine = fmt.has_zero || !(x.sign || x.num === 0n);
  const others = [below, above].filter((place) => onLine && place !== null && !places.includes(place))
    .map((place) => ({ place, to: scale(valueAtPlace(place, fmt)), text: placeText(place, fmt), won: false }));
  const labels = [...targets, ...others].sort((a, b) => a.to - b.to || Number(b.won) - Number(a.won)).slice(0, 2);
  for (const label of labels) {
    if (label.to < 0) label.text = `← ${label.text}`;
    if (label.to > pixels) label.text = `${label.text} →`;
  }
  // many digits in a narrow picture: their ends tell them apart
  if (labels.reduce((sum, { text }) => sum + measure(text) + 10, 0) > pixels) for (const label of labels) label.text = `…${label.text.slice(-7)}`;
  const middles = placePair(labels.map(({ to }) => to), labels.map(({ text }) => measure(text)), pixels);
  labels.forEach((label, i) => {
    const middle = middles[i];
    const tick = Math.min(Math.max(label.to, 0), pixels);
    nodes.push(textAt(middle, rows.values, label.text, label.won ? "won" : "other"));
    nodes.push(shape("path", { class: "mp-nl-leader", d: `M${middle.toFixed(1)} ${(rows.values + em * 0.3).toFixed(1)}L${tick.toFixed(1)} ${rows.strip.toFixed(1)}` }));
    if (label.won) nodes.push(...arrowShapes({ from: clamped, to: middle, chance: label.chance, rows, em, alone: single, measure, pixels }));
  });
  return nodes;
}

// An arrow from x to a label; its thickness is the chance.
function arrowShapes({ from, to, chance, rows, em, alone, measure, pixels }) {
  const share = quotient(chance.num, chance.den);
  const width = alone ? 2.5 : 1 + 6 * share;
  const head = Math.max(5, width * 1.3);
  const tip = rows.tip;
  const bend = Math.abs(from - to) < 1 ? `V${tip - head}` : `C${from} ${tip - head} ${to} ${rows.arrow} ${to} ${tip - head}`;
  const nodes = [
    shape("path", { class: "mp-nl-arrow", d: `M${from} ${rows.arrow}${bend}`, "stroke-width": width.toFixed(2) }),
    shape("path", { class: "mp-nl-head", d: `M${to - head} ${tip - head}H${to + head}L${to} ${tip}Z` }),
  ];
  if (!alone) {
    const text = chanceText(chance);
    const left = to < from;
    const room = left ? to - head - 4 : pixels - to - head - 4;
    if (room >= measure(text)) nodes.push(textAt(left ? to - head - 4 : to + head + 4, tip - 0.35 * em, text, "chance", left ? "end" : "start"));
  }
  return nodes;
}

/** The places of the values next to a number: { below, above }, both its own where it is a value, null where none is. */
export function neighbourPlaces(x, fmt) {
  const { place, exact } = placeBelow(x, fmt);
  const inGrid = (candidate) => (candidate < firstPlace(fmt) || candidate > lastPlace(fmt) ? null : candidate);
  if (exact) return { below: inGrid(place), above: inGrid(place) };
  return { below: inGrid(place > lastPlace(fmt) ? lastPlace(fmt) : place), above: inGrid(place < firstPlace(fmt) - 1n ? firstPlace(fmt) : place + 1n) };
}
