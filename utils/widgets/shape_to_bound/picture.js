// The pictures of ShapeToBound: the three matrices, the two times as bars, and the roofline. Lines are an SVG that
// stretches; words and points are elements placed in percent, so that text keeps its size on a phone.

import { attainableAt, rateOf, recordedUnder, sbCase, typeOf, typesUnder } from "../shared/cost/roof.js";
import { grouped, sbPictureText, sbRecord, timeText } from "../shared/cost/roof_words.js";
import { setText } from "../shared/page/elements.js";
import { countText, fewDigits } from "../shared/words/amounts.js";

const SB_SPAN = { from: -1, to: 4 }; // powers of ten of the operations per byte; further out where a product needs it
const SB_LETTERS = ["A", "B", "C"];

const sbPercent = (share) => `${(100 * share).toFixed(3)}%`;

/** The side of a matrix in percent of the picture: by its logarithm, so that 1 can be seen beside 100,000. */
const sideOf = (size, most) => 11 + (36 * Math.log2(size)) / Math.log2(Math.max(most, 2));

/** A [M, K] at the left, B [K, N] above, C [M, N] where they meet, with the bytes of each. */
export function matrixPanel(h) {
  const boxes = SB_LETTERS.map((letter) => h("span", { class: `mp-sb-matrix mp-sb-${letter}` }, h("span", {}, letter)));
  const rows = SB_LETTERS.map(() => ({ what: h("span", { class: "mp-sb-what" }), bytes: h("span") }));
  return {
    node: h("div", { class: "mp-sb-product" },
      h("div", { class: "mp-sb-matrices", "aria-hidden": "true" }, h("span", { class: "mp-sb-equation" }, "A · B = C"), boxes),
      h("div", { class: "mp-sb-bytes" }, rows.map(({ what, bytes }) => h("p", {}, what, " ", bytes)))),
    draw({ m, n, k, parts }) {
      const side = (size) => `${sideOf(size, Math.max(m, n, k)).toFixed(2)}%`;
      [[m, k], [k, n], [m, n]].forEach(([height, width], i) => {
        boxes[i].style.cssText = `width: ${side(width)}; height: ${side(height)}`;
        setText(rows[i].what, `${SB_LETTERS[i]} [${grouped(height)}, ${grouped(width)}]`);
        setText(rows[i].bytes, `${countText(parts[i])} bytes`);
      });
    },
  };
}

/** The time of the bytes and that of the operations, and the recorded one where there is one. */
export function timeBars(h) {
  const bars = ["moving", "computing", "recorded"].map((name) => {
    const [words, time, bar] = [h("span"), h("span", { class: "mp-sb-time" }), h("span", { class: `mp-sb-bar mp-sb-${name}` })];
    const track = h("span", { class: "mp-sb-track", "aria-hidden": "true" }, bar);
    return { words, time, bar, track, node: h("div", { class: "mp-sb-lane" }, words, time, track) };
  });
  return {
    node: h("div", { class: "mp-sb-bars" }, bars.map(({ node }) => node)),
    draw(shown, record) {
      const { moving, computing, moved, operations, roof, peak } = shown;
      const lanes = [
        [`moving ${countText(moved)} bytes at ${fewDigits(roof.bandwidth)} GB/s`, moving],
        [`computing ${countText(operations)} operations at ${fewDigits(peak)} TFLOP/s`, computing],
        [sbRecord(shown, record), record?.ms ?? 0],
      ];
      const most = Math.max(...lanes.map(([, ms]) => ms));
      lanes.forEach(([words, ms], i) => {
        setText(bars[i].words, words);
        setText(bars[i].time, i < 2 ? timeText(ms) : ""); // the words of a record have its time
        bars[i].bar.style.width = sbPercent(ms / most);
        bars[i].track.hidden = ms === 0;
        bars[i].node.hidden = words === "";
      });
    },
  };
}

/** The axes that show this roof and this product: powers of ten, `at` gives shares of the width and the height. */
export function roofAxes({ roof, intensity }) {
  const from = Math.min(SB_SPAN.from, Math.floor(Math.log10(intensity)));
  const to = Math.max(SB_SPAN.to, Math.ceil(Math.log10(intensity)));
  const low = Math.log10((10 ** from * roof.bandwidth) / 1e3);
  const high = Math.log10(3 * Math.max(...Object.values(roof.peaks)));
  return {
    from, to, low, high,
    across: (x) => (Math.log10(x) - from) / (to - from),
    up: (y) => Math.max((Math.log10(y) - low) / (high - low), 0),
  };
}

/** The types by their peak, the highest first: [[peak, [dtype, ...]], ...]. */
export function ceilingsOf(facts, roof) {
  const ceilings = new Map();
  for (const dtype of typesUnder(facts, roof)) ceilings.set(roof.peaks[dtype], [...(ceilings.get(roof.peaks[dtype]) ?? []), dtype]);
  return [...ceilings].sort(([a], [b]) => b - a);
}

/** Heights from the top down, each below the one before by at least `gap`, and none below `floor`. */
export function spreadDown(heights, gap, floor) {
  const placed = [];
  for (const height of heights) placed.push(Math.min(height, (placed.at(-1) ?? Infinity) - gap));
  return placed.map((height, i) => Math.max(height, floor + gap * (placed.length - 1 - i)));
}

/** The roofline of a device, all its ceilings, and the product on the roof of its type. */
export function roofPicture(h, facts, signal) {
  const svgNode = (tag, name) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    node.setAttribute("class", `mp-sb-${name}`);
    return node;
  };
  const names = ["memory-zone", "compute-zone", "grid", "ceilings", "roof", "reach", "ridge-line"];
  const paths = Object.fromEntries(names.map((name) => [name, svgNode("path", name)]));
  const svg = svgNode("svg", "lines");
  for (const [name, value] of Object.entries({ viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" })) svg.setAttribute(name, value);
  svg.append(...Object.values(paths));
  const word = (name, text) => h("span", { class: `mp-sb-${name}` }, text);
  const [ticks, levels, labels, marks] = ["ticks", "levels", "labels", "marks"].map((name) => word(name));
  const [dot, dotWord, ridgeWord] = [word("dot"), word("dot-word"), word("ridge-word")];
  const zones = ["memory", "compute"].map((name) => h("span", { class: `mp-sb-zone-word mp-sb-${name}-word` }, h("span", {}, `bound by ${name}`)));
  const caption = h("p", { class: "mp-sb-caption" });
  const plot = h("div", { class: "mp-sb-plot" }, svg, labels, zones, marks, ridgeWord, dot, dotWord);
  const picture = h("div", { class: "mp-sb-picture", role: "img" }, levels, plot, ticks);
  let [isRight, isRecorded] = [false, false];

  function placeWord() {
    const others = plot.querySelectorAll(".mp-sb-labels > span, .mp-sb-zone-word > span, .mp-sb-ridge-word, .mp-sb-this > span");
    placeFreely(dotWord, plot, [...others].map(boxOf), wordPlaces(isRight, isRecorded));
  }

  const observer = new ResizeObserver(placeWord);
  observer.observe(plot);
  signal.addEventListener("abort", () => observer.disconnect());
  return {
    node: h("div", { class: "mp-sb-figure" }, h("span", { class: "mp-sb-axis", "aria-hidden": "true" }, "TFLOP/s"), picture, h("span", { class: "mp-sb-axis mp-sb-axis-x", "aria-hidden": "true" }, "operations per byte"),
      caption),
    draw(shown, record) {
      const axes = roofAxes(shown);
      for (const [name, d] of Object.entries(roofPaths(facts, shown, axes))) paths[name].setAttribute("d", d);
      ticks.replaceChildren(...tickMarks(h, axes));
      levels.replaceChildren(...levelMarks(h, axes));
      labels.replaceChildren(...ceilingLabels(h, facts, shown, axes));
      marks.replaceChildren(...recordMarks(h, facts, shown, axes));
      const edge = axes.across(shown.ridge);
      setText(ridgeWord, `ridge ${fewDigits(shown.ridge)}`);
      ridgeWord.style.setProperty("--at", sbPercent(edge));
      zones[0].style.cssText = `left: 0; width: ${sbPercent(edge)}`;
      zones[1].style.cssText = `left: ${sbPercent(edge)}; right: 0`;
      const [x, y] = [axes.across(shown.intensity), axes.up(shown.reached)];
      dot.style.cssText = dotWord.style.cssText = `left: ${sbPercent(x)}; bottom: ${sbPercent(y)}`;
      [isRight, isRecorded] = [x > 0.7, Boolean(record)];
      picture.classList.toggle("mp-sb-left", isRight);
      setText(dotWord, record ? "predicted" : "this product");
      placeWord();
      picture.setAttribute("aria-label", sbPictureText(shown, record));
      setText(caption, `Thick: every M from 1 on, with this N and K. Dotted: the roofs of the other types.${marks.childElementCount ? " Diamonds: recorded." : ""}`);
    },
  };
}

// The places around the point for its word, the preferred one first: below it, or above where the recorded point is below.
function wordPlaces(isRight, isRecorded) {
  const [near, far] = isRight ? ["left", "right"] : ["right", "left"];
  const [one, other] = isRecorded ? ["above", "below"] : ["below", "above"];
  const sides = [near, far, "middle"];
  return [...sides.map((side) => `${one} ${side}`), near, far, ...sides.map((side) => `${other} ${side}`), ...sides.map((side) => `below far ${side}`)];
}

function boxOf(node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  return range.getBoundingClientRect();
}

/** Put a word at the first of its places that lies within the frame and touches no other box, else nowhere. */
function placeFreely(word, frame, taken, places) {
  const { left, right, top, bottom } = frame.getBoundingClientRect();
  const isFree = (place) => {
    word.dataset.at = place;
    const box = boxOf(word);
    if (box.left < left || box.right > right || box.top < top || box.bottom > bottom) return false;
    return taken.every((other) => box.right <= other.left || other.right <= box.left || box.bottom <= other.top || other.bottom <= box.top);
  };
  word.dataset.at = places.find(isFree) ?? "nowhere";
}

// The lines and the zones, as paths in the unit square.
function roofPaths(facts, shown, { from, to, low, high, across, up }) {
  const { roof, type, ridge, peak, limit } = shown;
  const at = (x, y) => `${across(x).toFixed(4)} ${(1 - up(y)).toFixed(4)}`;
  const slope = (x) => (x * roof.bandwidth) / 1e3;
  const [left, right, edge] = [10 ** from, 10 ** to, across(ridge).toFixed(4)];
  const ceilings = ceilingsOf(facts, roof);
  const [top] = ceilings[0];
  const powers = (least, most) => Array.from({ length: Math.floor(most) - Math.ceil(least) + 1 }, (_, i) => 10 ** (Math.ceil(least) + i));
  const first = sbCase({ ...shown, m: 1 }, type, roof).intensity;
  const reach = [first, ...(first < ridge && ridge < limit ? [ridge] : []), Math.max(limit, first)];
  return {
    "memory-zone": `M0 1L${at(left, slope(left))}L${at(ridge, peak)}L${edge} 1z`,
    "compute-zone": `M${edge} 1L${at(ridge, peak)}L${at(right, peak)}L1 1z`,
    grid: [...powers(from, to).map((x) => `M${across(x).toFixed(4)} 0v1`), ...powers(low, high).map((y) => `M0 ${(1 - up(y)).toFixed(4)}h1`)].join(""),
    ceilings: `M${at(ridge, peak)}L${at((1e3 * top) / roof.bandwidth, top)}${ceilings.map(([y]) => `M0 ${(1 - up(y)).toFixed(4)}h1`).join("")}`,
    roof: `M${at(left, slope(left))}L${at(ridge, peak)}L${at(right, peak)}`,
    reach: `M${reach.map((x) => at(x, attainableAt(roof, x, type.dtype))).join("L")}`,
    "ridge-line": `M${edge} 0V1`,
  };
}

function tickMarks(h, { from, to, across }) {
  return Array.from({ length: to - from + 1 }, (_, i) => {
    const node = h("span", {}, grouped(Number((10 ** (from + i)).toPrecision(1))));
    node.style.left = sbPercent(across(10 ** (from + i)));
    return node;
  });
}

function levelMarks(h, { low, high }) {
  const first = Math.ceil(low - 1e-9);
  return Array.from({ length: Math.floor(high) - first + 1 }, (_, i) => {
    const node = h("span", {}, (10 ** (first + i)).toLocaleString("en", { maximumFractionDigits: 6 }));
    node.style.bottom = sbPercent((first + i - low) / (high - low));
    return node;
  });
}

// At the left, where nothing but the ceilings' dotted ends is drawn.
function ceilingLabels(h, facts, { roof, type }, { up }) {
  const ceilings = ceilingsOf(facts, roof);
  const heights = spreadDown(ceilings.map(([peak]) => up(peak)), 0.062, 0.15); // above the words of the zones
  return ceilings.map(([peak, dtypes], i) => {
    const text = `${dtypes.map((dtype) => typeOf(facts, dtype).label).join(", ")} ${fewDigits(peak)}`;
    const node = h("span", { class: dtypes.includes(type.dtype) ? "mp-sb-now" : null }, text);
    node.style.bottom = sbPercent(heights[i]);
    return node;
  });
}

// Slow ones lie below the picture and are left out, but for the one that is asked for.
function recordMarks(h, facts, { m, n, k, type, roof }, { low, across, up }) {
  return recordedUnder(facts, roof, type.dtype).flatMap(([, points]) => points.flatMap(([pm, pn, pk, ms]) => {
    const { intensity, operations } = sbCase({ m: pm, n: pn, k: pk }, type, roof);
    const isThis = pm === m && pn === n && pk === k;
    if (!isThis && rateOf(operations, ms) < 10 ** low) return [];
    const node = h("span", { class: isThis ? "mp-sb-mark mp-sb-this" : "mp-sb-mark" }, isThis ? h("span", {}, "recorded") : null);
    node.style.cssText = `left: ${sbPercent(across(intensity))}; bottom: ${sbPercent(up(rateOf(operations, ms)))}`;
    return [node];
  }));
}
