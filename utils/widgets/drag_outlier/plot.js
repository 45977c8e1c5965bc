// The two pictures of DragOutlier: the values by powers of two with the window of the scale, and the error curves.

import { exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { superscript } from "../shared/numbers/superscript.js";
import { narrowFormat } from "../shared/numbers/scaling.js";
import { setText } from "../shared/page/elements.js";
import { inShare, sharePath, stretchedPlot } from "../shared/plot/stretched_plot.js";
import { powerText } from "../shared/words/sizes.js";
import { OUTLIER_CASES, OUTLIERS } from "./errors.js";
import { OUTLIER_LABELS, outlierText } from "./words.js";

const VALUE_SPAN = { low: -14, high: 21 }; // powers of two
const ERROR_SPAN = { low: Math.log10(0.004), high: Math.log10(1.3) };
const FIRST_OUTLIER = 1; // where the axis of the outliers begins; left of the least one stands "none"

const valueShare = (size) => (Math.log2(size) - VALUE_SPAN.low) / (VALUE_SPAN.high - VALUE_SPAN.low);
const outlierShare = (size) => (size === 0 ? 0 : Math.log10(size / FIRST_OUTLIER) / Math.log10(1e6 / FIRST_OUTLIER));
const errorHeight = (error) => (Math.log10(error) - ERROR_SPAN.low) / (ERROR_SPAN.high - ERROR_SPAN.low);

/** The outlier of the list that is nearest to a size, on a logarithmic scale; none below the least. */
export function nearestOutlier(size) {
  if (size < Math.sqrt(OUTLIERS[1])) return 0;
  return OUTLIERS.slice(1).reduce((best, one) => (Math.abs(Math.log(one / size)) < Math.abs(Math.log(best / size)) ? one : best));
}

/** Counts of the values by power of two, in the order of the axis. */
export function binadesOf(x) {
  const counts = new Array(VALUE_SPAN.high - VALUE_SPAN.low).fill(0);
  for (const value of x) if (value !== 0) counts[Math.max(exponentOfDouble(value) - VALUE_SPAN.low, 0)] += 1;
  return counts;
}

/** The values, the outlier to drag, and the ranges that the scales of its block and of another one let in. */
export function valuesPlot(h, actions, x) {
  const counts = binadesOf(x);
  const most = Math.max(...counts);
  const bars = counts.map((count, i) => {
    const [left, right] = [i, i + 1].map((at) => (at + (at === i ? 0.08 : -0.08)) / counts.length);
    return count ? `${sharePath([[left, 0], [left, (0.86 * count) / most], [right, (0.86 * count) / most], [right, 0]])}z` : "";
  }).join("");
  const plot = stretchedPlot(h, {
    name: "mp-do-values",
    point: ({ x: share }) => actions.drag({ outlier: nearestOutlier(2 ** (VALUE_SPAN.low + share * (VALUE_SPAN.high - VALUE_SPAN.low))) }),
    end: () => actions.speak(),
  });
  const strip = () => {
    const [text, fading, full] = [h("span", { class: "mp-do-what" }), h("span", { class: "mp-do-fading" }), h("span", { class: "mp-do-full" })];
    return { text, fading, full, node: h("div", { class: "mp-do-strip" }, text, h("div", { class: "mp-do-track", "aria-hidden": "true" }, fading, full)) };
  };
  const [own, other] = [strip(), strip()];
  const place = (node, from, to) => {
    const [left, right] = [from, to].map((size) => Math.min(Math.max(valueShare(size), 0), 1));
    node.style.left = inShare(left);
    node.style.width = inShare(right - left);
  };
  const fill = ({ fading, full }, inverse, fmt) => {
    place(fading, (fmt.smallest / 2) * inverse, fmt.normal * inverse);
    place(full, fmt.normal * inverse, fmt.max * inverse);
  };
  return {
    node: h("div", { class: "mp-do-picture" }, plot.node, own.node, other.node),
    draw({ state, loss, quiet }) {
      const fmt = narrowFormat(state.format);
      const edge = Math.min(Math.max(valueShare((fmt.smallest / 2) * loss.inverse), 0), 1);
      const lost = state.scaling === "tensor" ? `${sharePath([[0, 0], [0, 1], [edge, 1], [edge, 0]])}z` : "";
      plot.draw({
        lines: [["mp-do-lost", lost], ["mp-do-bars", bars]],
        across: Array.from({ length: 7 }, (_, i) => -10 + 5 * i).map((power) => [(power - VALUE_SPAN.low) / (VALUE_SPAN.high - VALUE_SPAN.low), powerText(power)]), up: [],
        label: `How many of the values lie in each power of two: nearly all between 2⁻⁶ and 4. The outlier: ${outlierText(state.outlier)}.`,
      });
      const at = state.outlier ? valueShare(state.outlier) : 0.62;
      plot.mark([["mp-handle", at, 0.3, ""], [`mp-do-name${at > 0.7 ? " mp-do-left" : ""}`, at, 0.42, state.outlier ? outlierText(state.outlier) : "drag an outlier in"],
        ...(lost ? [["mp-do-word", Math.min(edge, 0.32) / 2, null, edge > 0.12 ? "becomes 0" : ""]] : [])]);
      const [name, whose] = [OUTLIER_LABELS[state.format], state.scaling === "row" ? "row" : "block"];
      setText(own.text, `What ${loss.other === null ? "the one scale" : `the scale of the outlier’s ${whose}`} lets into ${name} (pale: with fewer digits)`);
      setText(other.text, loss.other === null ? "What it would let in without the outlier" : `What the scale of another ${whose} lets in`);
      fill(own, loss.inverse, fmt);
      fill(other, loss.other ?? quiet.inverse, fmt);
    },
  };
}

/** The error of the rest against the outlier: one line for each case, as far as they are computed. */
export function curvesPlot(h, actions) {
  const plot = stretchedPlot(h, {
    name: "mp-do-curves",
    point: ({ x: share }) => actions.drag({ outlier: nearestOutlier(FIRST_OUTLIER * (1e6 / FIRST_OUTLIER) ** share) }),
    end: () => actions.speak(),
  });
  const chosen = (state, format, scaling) => (state.format === format && state.scaling === scaling ? " mp-do-chosen" : "");
  const cases = Object.entries(OUTLIER_CASES).flatMap(([format, scalings]) => scalings.map((scaling) => [format, scaling]));
  return {
    node: plot.node,
    draw({ state, curves }) {
      const last = ([format, scaling]) => (chosen(state, format, scaling) ? 1 : 0);
      plot.draw({
        lines: [...cases].sort((a, b) => last(a) - last(b)).map(([format, scaling]) => [
          `mp-do-${format} mp-do-${scaling}${chosen(state, format, scaling)}`,
          sharePath((curves.get(`${format} ${scaling}`) ?? []).map(([outlier, error]) => [outlierShare(outlier), errorHeight(error)])),
        ]),
        across: [[0, "none"], ...[1, 2, 3, 4, 5, 6].map((power) => [outlierShare(10 ** power), power < 4 ? String(10 ** power) : `10${superscript(power)}`])],
        up: [[0.01, "1 %"], [0.03, "3 %"], [0.1, "10 %"], [0.3, "30 %"], [1, "100 %"]].map(([error, text]) => [errorHeight(error), text]),
        label: "The error of the rest against the size of the outlier, one line for each format and scale; the table says where each line is now.",
      });
    },
    mark({ state, losses }) {
      plot.mark([["mp-cursor", outlierShare(state.outlier), null], ...cases.map(([format, scaling]) => [
        `mp-do-spot mp-do-${format}${chosen(state, format, scaling)}`, outlierShare(state.outlier), errorHeight(losses[format][scaling].error),
      ])]);
    },
  };
}
