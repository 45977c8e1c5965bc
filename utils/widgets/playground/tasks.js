// The tasks of the tour: whether a run solves one. `tried` holds how far the runs with each fixed scale got.

import { narrowKnobs } from "./training/run.js";

const isNarrow16 = (name) => name === "float16" || name === "bfloat16";
const sameBut = (setup, start, free) => Object.keys(start).every((name) => free.includes(name) || same(setup[name], start[name]));
const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
const sorted = (value) => (value && typeof value === "object" ? Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)) : value);
const withMoments = (setup, moments) => ({ ...setup, formats: { ...setup.formats, moments } });
const TRAINING = ["data", "optimizer", "rate", "batch"]; // what a rescue must leave alone
const sameTraining = (setup, start) => TRAINING.every((name) => setup[name] === start[name]);

const RULES = {
  learned: ({ setup, accuracy }) => narrowKnobs(setup).length === 0 && accuracy >= 0.99,
  broken: ({ setup, net, accuracy, ghostAccuracy }, start) => narrowKnobs(setup).length === 1 && sameTraining(setup, start)
    && net.steps >= 300 && ghostAccuracy >= 0.9 && accuracy < 0.8,
  rescued: ({ setup, net, loss, ghostLoss }, start) => setup.formats.gradients === "float16" && setup.push >= start.push
    && sameTraining(setup, start) && net.steps >= 600 && loss <= 1.2 * ghostLoss,
  "largest-scale": ({ setup }, start, tried) => sameBut(setup, start, ["scale"]) && [...tried].some(([scale, { survived }]) =>
    survived && tried.get(2 * scale)?.died),
  updated: ({ setup, net, loss, ghostLoss }, start) => setup.formats.weights === "bfloat16" && setup.formats.master === null
    && sameTraining(setup, start) && net.steps >= 800 && loss <= 1.15 * ghostLoss,
  moments: ({ setup, net, accuracy }, start) => isNarrow16(setup.formats.moments)
    && sameBut(withMoments(setup, start.formats.moments), start, ["seed"]) && net.steps >= 600 && accuracy >= 0.99,
};

/** Whether the run solves the task that began with the setup `start`. */
export const isSolved = (task, run, start, tried) => RULES[task.rule](run, start, tried);

/** Note in `tried` how the run's fixed scale did: it died, or it survived 600 steps. */
export function noteScale(tried, { setup, net, isFiniteSoFar }) {
  if (typeof setup.scale !== "number") return;
  if (!isFiniteSoFar) tried.set(setup.scale, { died: true });
  else if (net.steps >= 600) tried.set(setup.scale, { survived: true });
}
