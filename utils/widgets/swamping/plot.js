// The plot of Swamping: each lane's sum against the number of additions. One SVG, redrawn as the sums grow.

import { exactNumber } from "../shared/numbers/double_rounding.js";
import { aboutText } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { sumText } from "./words.js";

const PLOT = { width: 440, height: 250, left: 80, right: 14, top: 12, bottom: 40 };

const DRAWN = ["kahan", "plain", "lucky", "exact"]; // from below

/** The lanes in the order of the table; `at` is their place in a sample, the exact one is a straight line. */
export const LANES = [
  { key: "exact", name: () => "exactly" },
  { key: "plain", name: ({ label }) => `in ${label}`, at: 1 },
  { key: "kahan", name: () => "with Kahan", at: 2 },
  { key: "lucky", name: () => "stochastically", at: 3 },
];

/** The number of additions that the axis shows: 16, then powers of two, and what a run goes to. */
export const axisEnd = (n) => Math.max(16, 2 ** Math.ceil(Math.log2(Math.max(n, 1))));

/** A whole number with commas between groups of three digits. */
export const countText = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

export function swampingPlot(h) {
  const draw = svgElements();
  const svg = draw("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, class: "mp-swamp-plot", role: "img" });

  return {
    node: h("div", { class: "mp-swamp-plot-place" }, svg),
    draw({ sum, end, stochastic }) {
      const lanes = DRAWN.filter((key) => key !== "lucky" || stochastic).map((key) => LANES.find((lane) => lane.key === key));
      const last = sum.start + end * sum.increment;
      const values = [0, sum.start, last, sum.plain, sum.kahan, stochastic ? sum.lucky : 0].filter(Number.isFinite);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const across = (n) => PLOT.left + (n / end) * (PLOT.width - PLOT.left - PLOT.right);
      const upward = (y) => PLOT.height - PLOT.bottom - ((y - low) / (high - low)) * (PLOT.height - PLOT.top - PLOT.bottom);
      svg.replaceChildren(
        ...axes(draw, { end, low, high, across, upward }),
        ...stallMark(draw, { sum, across, upward }),
        ...lanes.flatMap((lane) => lanePath(draw, lane, { sum, across, upward })),
      );
      svg.setAttribute("aria-label", `Sum against the number of additions, 0 to ${end}; the table says where each line is now.`);
    },
  };
}

function svgElements() {
  return (tag, attributes = {}, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
}

function axes(draw, { end, low, high, across, upward }) {
  const floor = PLOT.height - PLOT.bottom;
  const text = (words, x, y, anchor) => draw("text", { x, y, "text-anchor": anchor }, words);
  const line = (x1, y1, x2, y2) => draw("line", { x1, y1, x2, y2, class: "mp-swamp-grid" });
  const marks = [0, 0.25, 0.5, 0.75, 1];
  return [
    ...marks.map((part) => line(PLOT.left, upward(low + part * (high - low)), PLOT.width - PLOT.right, upward(low + part * (high - low)))),
    ...[0, 0.5, 1].map((part) => text(axisText(low + part * (high - low)), PLOT.left - 6, upward(low + part * (high - low)) + 4, "end")),
    ...[0, 0.5, 1].map((part) => text(countText(part * end), across(part * end), floor + 17, part === 1 ? "end" : "middle")),
    text("additions", (PLOT.left + PLOT.width - PLOT.right) / 2, PLOT.height - 5, "middle"),
  ];
}

function axisText(y) {
  if (Math.abs(y) < 1e5) return y === 0 ? "0" : aboutText(exactNumber(y), 4, 3).replace("about ", "");
  const power = Math.floor(Math.log10(Math.abs(y)));
  return `${(y / 10 ** power).toFixed(1).replace("-", "−")}·10${superscript(power)}`;
}

// A ring where the sum stalls, and the words in the corner that a growing sum leaves free.
function stallMark(draw, { sum, across, upward }) {
  if (sum.stalledAt === null || !Number.isFinite(sum.plain)) return [];
  const ring = (cx, cy) => draw("circle", { cx, cy, r: 6, class: "mp-swamp-stall" });
  const [x, y] = [PLOT.left + 14, sum.increment > 0 ? PLOT.top + 16 : PLOT.height - PLOT.bottom - 16];
  return [
    ring(across(sum.stalledAt), upward(sum.plain)), ring(x, y),
    draw("text", { x: x + 12, y: y + 5 }, `stalls at ${sumText(exactNumber(sum.plain))}`),
  ];
}

function lanePath(draw, { key, at }, { sum, across, upward }) {
  const now = [sum.n, sum.plain, sum.kahan, sum.lucky];
  const all = at ? [...sum.samples, now].map((sample) => [sample[0], sample[at]])
    : [[0, sum.start], [sum.n, sum.start + sum.n * sum.increment]];
  const points = all.filter(([, y]) => Number.isFinite(y)).map(([n, y]) => `${across(n).toFixed(1)},${upward(y).toFixed(1)}`);
  const [x, y] = points.at(-1).split(",");
  return [
    draw("polyline", { points: points.join(" "), class: `mp-swamp-line mp-swamp-${key}` }),
    draw("circle", { cx: x, cy: y, r: key === "kahan" ? 5 : 3.5, class: `mp-swamp-end mp-swamp-${key}` }),
  ];
}
