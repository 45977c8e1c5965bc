// The two pictures of GroupOutlier: the row with the levels of each group, and error against bits per weight.

import { sharePath, stretchedPlot } from "../shared/plot/stretched_plot.js";
import { GO_REACH, GROUP_BITS } from "./codes.js";
import { GO_KINDS, goNumber, goOutlier } from "./words.js";

const GO_INNER = 0.3; // of the height, on either side of 0: there the axis is linear
const GO_LEAST_GAP = 0.011; // of the height, between two levels that are drawn
const GO_PRICES = { low: 3.6, high: 11.4 }; // bits per weight
const GO_ERRORS = { low: Math.log10(0.002), high: Math.log10(1.4) };

/** The height of a value in the picture: linear up to `height`, beyond it by its logarithm. */
export function goHeight(x, height) {
  const size = Math.abs(x) / height;
  const up = size <= 1 ? GO_INNER * size : GO_INNER + ((0.5 - GO_INNER) * Math.log(size)) / Math.log(GO_REACH);
  return Math.min(Math.max(0.5 + Math.sign(x) * up, 0), 1);
}

/** The value at a height of the picture. */
export function goValueAt(share, height) {
  const up = Math.abs(share - 0.5);
  return Math.sign(share - 0.5) * height * (up <= GO_INNER ? up / GO_INNER : GO_REACH ** ((up - GO_INNER) / (0.5 - GO_INNER)));
}

/** The outlier of the list that a place in the picture means: none where the other weights are. */
export function nearestSize(share, height, sizes) {
  const x = goValueAt(share, height);
  if (Math.abs(x) < 0.85 * height) return 0;
  return sizes.filter((size) => size * x > 0).reduce((best, size) => (Math.abs(Math.log(size / x)) < Math.abs(Math.log(best / x)) ? size : best));
}

const box = (left, right, low, high) => `${sharePath([[left, low], [left, high], [right, high], [right, low]])}z`;
const bar = (i, count, low, high) => sharePath([[(i + 0.5) / count, low], [(i + 0.5) / count, high]]);

// The levels of a group: lines where they are far enough apart to be seen, else the band that they cover.
function levelPaths({ inverse, low, high }, from, to, height) {
  if (goHeight(inverse, height) - goHeight(0, height) < GO_LEAST_GAP) {
    return { rungs: "", band: box(from, to, goHeight(low * inverse, height), goHeight(high * inverse, height)) };
  }
  let [rungs, last] = ["", -1];
  for (let code = low; code <= high; code += 1) {
    const at = goHeight(code * inverse, height);
    if (at - last < GO_LEAST_GAP) continue; // far out, where the axis is logarithmic
    rungs += sharePath([[from, at], [to, at]]);
    last = at;
  }
  return { rungs, band: "" };
}

/** The row: a bar for each weight, what it becomes, and the levels that its group has. The outlier can be dragged. */
export function rowPlot(h, actions) {
  let shape = null;
  const plot = stretchedPlot(h, {
    name: "mp-go-row",
    point({ x, y }) {
      const place = Math.min(Math.floor(x * shape.count) + 1, shape.count);
      actions.drag({ place, outlier: nearestSize(y, shape.height, shape.sizes) });
    },
    end: () => actions.speak(),
  });
  return {
    node: plot.node,
    draw({ state, view, row, height, sizes }) {
      const count = row.length;
      shape = { count, height, sizes };
      const zero = goHeight(0, height);
      const isOutlier = (i) => state.outlier && i === state.place - 1;
      const paths = { weights: "", lost: "", outlier: "", stored: "" };
      row.forEach((x, i) => {
        const kind = isOutlier(i) ? "outlier" : x !== 0 && view.stored[i] === 0 ? "lost" : "weights";
        paths[kind] += bar(i, count, zero, goHeight(x, height));
        const at = goHeight(view.stored[i], height);
        paths.stored += sharePath([[i / count, at], [(i + 1) / count, at]]);
      });
      const share = (group) => [(group * state.group) / count, ((group + 1) * state.group) / count];
      const levels = view.scales.map((scale, group) => levelPaths(scale, ...share(group), height));
      const edges = view.scales.slice(1).map((_, group) => sharePath([[share(group)[1], 0], [share(group)[1], 1]])).join("");
      const [low, high] = [goHeight(-height, height), goHeight(height, height)];
      const ticks = [-10 * height, -height, -height / 2, 0, height / 2, height, 10 * height];
      plot.draw({
        lines: [
          ["mp-go-band", state.outlier && view.scales.length > 1 ? box(...share(view.own), 0, 1) : ""], ["mp-go-far", `${box(0, 1, 0, low)}${box(0, 1, high, 1)}`],
          ["mp-go-covered", levels.map(({ band }) => band).join("")], ["mp-go-rungs", levels.map(({ rungs }) => rungs).join("")], ["mp-go-edges", edges],
          ["mp-go-weights", paths.weights], ["mp-go-lost", paths.lost], ["mp-go-outlier", paths.outlier], ["mp-go-stored", paths.stored],
        ],
        across: [[0, "weight 1"], [0.5, String(count / 2)], [1, String(count)]], up: ticks.map((x) => [goHeight(x, height), goNumber(x)]),
        label: `${count} weights as bars, most of them between ${goNumber(-height)} and ${goNumber(height)}, and the levels that each group of ${state.group} can store. Beyond, heights go by their logarithm. ${view.zeros} weights become 0. The outlier: ${goOutlier(state.outlier)}.`,
      });
      const [x, y] = [(state.place - 0.5) / count, goHeight(row[state.place - 1], height)];
      plot.mark([["mp-handle", x, y, ""], [`mp-go-name${x > 0.6 ? " mp-go-left" : ""}`, x, Math.min(Math.max(y, 0.06), 0.94), state.outlier ? goNumber(state.outlier) : "drag an outlier out"]]);
    },
  };
}

/** Error against bits per weight: a line for each format, a point for each group size. */
export function pricePlot(h, actions) {
  const across = (bits) => (bits - GO_PRICES.low) / (GO_PRICES.high - GO_PRICES.low);
  const up = (error) => Math.min(Math.max((Math.log10(error) - GO_ERRORS.low) / (GO_ERRORS.high - GO_ERRORS.low), 0), 1);
  let points = [];
  const plot = stretchedPlot(h, {
    name: "mp-go-prices",
    point({ x, y }) {
      const far = (one) => Math.hypot(across(one.price) - x, up(one.error) - y);
      const { bits, symmetric, group } = points.reduce((best, one) => (far(one) < far(best) ? one : best));
      actions.drag({ bits, symmetric, group });
    },
    end: () => actions.speak(),
  });
  const kind = ({ bits, symmetric }) => `mp-go-int${bits}${symmetric ? "" : " mp-go-asymmetric"}`;
  return {
    node: plot.node,
    draw({ state, cases }) {
      points = cases;
      const lines = GROUP_BITS.flatMap((bits) => GO_KINDS.map(([symmetric]) => cases.filter((one) => one.bits === bits && one.symmetric === symmetric)));
      plot.draw({
        lines: lines.map((line) => [kind(line[0]), sharePath(line.map(({ price, error }) => [across(price), up(error)]))]),
        across: [4, 5, 6, 7, 8, 9, 10, 11].map((bits) => [across(bits), String(bits)]),
        up: [[0.003, "0.3 %"], [0.01, "1 %"], [0.03, "3 %"], [0.1, "10 %"], [0.3, "30 %"], [1, "100 %"]].map(([error, text]) => [up(error), text]),
        label: "The error of the other weights against bits per weight: a line for int4 and int8, symmetric and asymmetric, and on it a point for each group size; the table has the numbers of the chosen format.",
      });
      const chosen = (one) => one.bits === state.bits && one.symmetric === state.symmetric && one.group === state.group;
      plot.mark([...[...cases].sort((a, b) => chosen(a) - chosen(b)).map((one) => [`mp-go-spot ${kind(one)}${chosen(one) ? " mp-go-chosen" : ""}`, across(one.price), up(one.error)]),
        ...GROUP_BITS.map((bits) => {
          const last = cases.filter((one) => one.bits === bits && one.symmetric).at(-1);
          return [`mp-go-word mp-go-int${bits}`, across(last.price), Math.min(up(last.error) + 0.08, 0.95), `int${bits}`];
        })]);
    },
  };
}
