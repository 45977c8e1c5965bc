// A plot whose lines are an SVG that stretches and whose words are elements in percent, so that text keeps its size on
// a phone. Places are shares of the width, from the left, and of the height, from below.

import { powerText } from "../words/sizes.js";

const STRETCHED = 1000; // units of the drawing, both ways

export const inShare = (share) => `${(100 * share).toFixed(2)}%`;

/** A path through [across, up] shares; NaN lifts the pen. */
export function sharePath(points) {
  let pen = "M";
  let path = "";
  for (const [x, y] of points) {
    if (Number.isNaN(y)) {
      pen = "M";
      continue;
    }
    path += `${pen}${(STRETCHED * x).toFixed(1)} ${(STRETCHED * (1 - y)).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

/** A staircase of equal steps: one height for each. */
export const stairsPath = (heights) => sharePath(heights.flatMap((y, i) => [[i / heights.length, y], [(i + 1) / heights.length, y]]));

/**
 * { node, draw }. `draw({ lines, marks, across, up, label })`: lines are [class, path], marks [class, across, up, text],
 * `across` and `up` ticks [share, text]. `point({ x, y }, event)` is called where the reader presses and drags, `end()`
 * when the press is over.
 */
export function stretchedPlot(h, { name, point = null, end = null }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${STRETCHED} ${STRETCHED}`);
  svg.setAttribute("preserveAspectRatio", "none");
  const [words, marked] = [h("div", {}), h("div", {})];
  const press = (event) => {
    if (event.type === "pointermove" && !plot.hasPointerCapture(event.pointerId)) return;
    if (event.type === "pointerdown") plot.setPointerCapture(event.pointerId);
    const box = plot.getBoundingClientRect();
    const within = (share) => Math.min(Math.max(share, 0), 1);
    point({ x: within((event.clientX - box.left) / box.width), y: within((box.bottom - event.clientY) / box.height) }, event);
  };
  const on = { ...(point && { pointerdown: press, pointermove: press }), ...(end && { lostpointercapture: () => end() }) };
  const plot = h("div", { class: `mp-plot ${name}`, role: "img", on }, svg, words, marked);
  return {
    node: plot,
    draw({ lines, across, up, label }) {
      svg.replaceChildren(...lines.map(([kind, d]) => {
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("class", kind);
        path.setAttribute("d", d);
        return path;
      }));
      const tick = (kind, side) => ([share, text]) => {
        const node = h("span", { class: kind }, text);
        node.style[side] = inShare(share);
        return node;
      };
      words.replaceChildren(...up.map(tick("mp-plot-up", "bottom")), ...across.map(([share, text]) =>
        tick(`mp-plot-across${share === 0 ? " mp-plot-first" : share === 1 ? " mp-plot-last" : ""}`, "left")([share, text])));
      plot.setAttribute("aria-label", label);
    },
    /** What moves while the lines stay. */
    mark(marks) {
      marked.replaceChildren(...marks.map(([kind, x, y, text = ""]) => {
        const node = h("span", { class: kind }, text);
        if (x !== null) node.style.left = inShare(x);
        if (y !== null) node.style.bottom = inShare(y);
        return node;
      }));
    },
  };
}

/** Whole powers of two from `low` to `high`, at most `most` of them, as ticks. */
export function powerTicks(low, high, most = 5) {
  const every = Math.ceil((high - low) / most);
  return Array.from({ length: high - low + 1 }, (_, i) => low + i).filter((power) => power % every === 0)
    .map((power) => [(power - low) / (high - low), powerText(power)]);
}
