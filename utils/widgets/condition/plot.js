// The two pictures of Condition: errors after each solve, and the solves that each format needs by the condition.

import { sharePath, stretchedPlot } from "../shared/plot/stretched_plot.js";
import { goalOf } from "./refined.js";
import { CN_LABELS, cnSize, CONDITIONS, roundoffOf } from "./words.js";

const CN_ERRORS = { low: -17, high: 1 }; // powers of ten
const CN_MOST_SOLVES = 128;
const CN_SPANS = [12, 24, 36, 52, 70, 130]; // solves that the first picture may show

const cnHeight = (error) => (Number.isNaN(error) ? NaN : Math.min(Math.max((Math.log10(error) - CN_ERRORS.low) / (CN_ERRORS.high - CN_ERRORS.low), 0), 1));
const cnAcross = (condition) => Math.log10(condition) / 10;
const cnUp = (solves) => Math.log2(solves) / Math.log2(CN_MOST_SOLVES);

/** The solves with the factors up to each entry of a solution. */
export function solvesUpTo({ solves }) {
  let sum = 0;
  return solves.map((count) => {
    sum += count;
    return sum;
  });
}

/** The errors after each solve: of the chosen format both, of the others the backward error. */
export function errorPlot(h) {
  const plot = stretchedPlot(h, { name: "mp-cn-errors" });
  return {
    node: plot.node,
    draw({ state, all }) {
      const chosen = all[state.factors];
      const most = CN_SPANS.find((span) => span >= (solvesUpTo(chosen).at(-1) ?? 0)) ?? CN_SPANS.at(-1);
      const across = (solves) => solves / most;
      const line = (found, errors) => sharePath(solvesUpTo(found).map((solves, i) => [across(solves), cnHeight(errors[i])]).filter(([x]) => x <= 1));
      const goal = cnHeight(goalOf(state.size));
      const others = Object.entries(all).filter(([name]) => name !== state.factors);
      plot.draw({
        lines: [["mp-cn-goal", sharePath([[0, goal], [1, goal]])], ...others.map(([name, found]) => [`mp-cn-other mp-cn-${name}`, line(found, found.backward)]),
          [`mp-cn-forward mp-cn-${state.factors}`, line(chosen, chosen.forward)], [`mp-cn-backward mp-cn-${state.factors}`, line(chosen, chosen.backward)]],
        across: [[0, "0"], [0.5, String(most / 2)], [1, `${most} solves`]],
        up: [0, -4, -8, -12, -16].map((power) => [cnHeight(10 ** power), cnSize(10 ** power, 1)]),
        label: `Errors after each solve with ${CN_LABELS[state.factors]} factors. Backward error: ${chosen.backward.length ? `${cnSize(chosen.backward[0])} at first, ${cnSize(chosen.backward.at(-1))} after ${solvesUpTo(chosen).at(-1)} solves` : "none"}.`,
      });
      const dots = (errors, kind) => solvesUpTo(chosen).map((solves, i) => [`mp-cn-dot mp-cn-${state.factors}${kind}`, across(solves), cnHeight(errors[i])]).filter(([, x, y]) => x <= 1 && !Number.isNaN(y));
      plot.mark([...dots(chosen.forward, " mp-cn-hollow"), ...dots(chosen.backward, "")]);
    },
  };
}

/** The solves that each format needs, by the condition; a wall where it fails. Pressing sets the condition. */
export function mapPlot(h, actions) {
  const plot = stretchedPlot(h, {
    name: "mp-cn-map",
    point: ({ x }) => actions.drag({ condition: CONDITIONS.reduce((best, one) => (Math.abs(cnAcross(one) - x) < Math.abs(cnAcross(best) - x) ? one : best)) }),
    end: () => actions.speak(),
  });
  const total = (found) => (found.converged ? solvesUpTo(found).at(-1) : NaN);
  return {
    node: plot.node,
    draw({ state, known }) {
      const names = Object.keys(CN_LABELS).sort((a, b) => (a === state.factors) - (b === state.factors));
      const lines = names.flatMap((name) => {
        const points = CONDITIONS.map((condition) => [condition, known(condition, name)]).filter(([, found]) => found);
        const fails = points.find(([, { converged }]) => !converged);
        const kind = `mp-cn-${name}${name === state.factors ? " mp-cn-chosen" : ""}`;
        const wall = fails ? sharePath([[cnAcross(fails[0]), 0], [cnAcross(fails[0]), 1]]) : "";
        return [[`mp-cn-wall ${kind}`, wall], [`mp-cn-needs ${kind}`, sharePath(points.map(([condition, found]) => [cnAcross(condition), cnUp(total(found))]))]];
      });
      plot.draw({
        lines, across: [0, 2, 4, 6, 8, 10].map((power) => [power / 10, cnSize(10 ** power, 1)]),
        up: [1, 2, 4, 8, 16, 32, 64].map((solves) => [cnUp(solves), String(solves)]),
        label: "Solves that each format of the factors needs, against the condition: the line of a format ends at a wall where it fails. The table has the numbers of the condition that is set.",
      });
    },
    mark({ state, all }) {
      const edge = cnAcross(1 / roundoffOf(state.factors));
      const spots = Object.entries(all).filter(([, { converged }]) => converged)
        .map(([name, found]) => [`mp-cn-dot mp-cn-${name}`, cnAcross(state.condition), cnUp(total(found))]);
      plot.mark([["mp-cursor", cnAcross(state.condition), null], ...(edge < 1 ? [["mp-cursor mp-cn-edge", edge, null], ["mp-cn-edge-word", edge, 0.93, "κu = 1"]] : []), ...spots]);
    },
  };
}
