// The tasks of the tour: whether a run solves one. `tried` holds how far the runs with each fixed scale got.

import { FORMATS } from "../shared/numbers/formats.js";
import { sizeText } from "../shared/words/sizes.js";
import { narrowKnobs } from "./training/run.js";
import { KNOB_NAMES, lossesText, percent } from "./words.js";

const isNarrow16 = (name) => name === "float16" || name === "bfloat16";
const sameBut = (setup, start, free) => Object.keys(start).every((name) => free.includes(name) || same(setup[name], start[name]));
const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
const sorted = (value) => (value && typeof value === "object" ? Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)) : value);
const withMoments = (setup, moments) => ({ ...setup, formats: { ...setup.formats, moments } });
const TRAINING = ["data", "optimizer", "rate", "batch"]; // what a rescue must leave alone
const sameTraining = (setup, start) => TRAINING.every((name) => setup[name] === start[name]);

const NO_TRAINING = "The data, the optimizer, the learning rate and the batch must stay as they were.";
const ONE_WAY = "This rule moves every weight the same way. The loss may be low at first, but run on to step 2000. Find a rule that is right on average.";
const FIRST_CHECK = { broken: 300, rescued: 600, "largest-scale": 600, updated: 800, moments: 600 }; // steps
export const LONGEST_LACK = ONE_WAY; // so that the tour keeps the room free
const narrowNames = (setup) => narrowKnobs(setup).map((id) => KNOB_NAMES[id]);
const times = (run) => sizeText(run.loss / run.ghostLoss, 2);
const keyOf = ({ seed }, scale) => `${seed} ${scale}`;

// For each task: what is still wrong, as a sentence; "" if the run has to go on; null if it is solved.
const RULES = {
  learned({ setup, accuracy, net }) {
    const narrow = narrowNames(setup);
    if (narrow.length) return `Something is not float32 here: ${narrow.join(", ")}.`;
    if (accuracy >= 0.99) return null;
    return net.steps >= 1000 ? `${percent(accuracy)} of the points are right so far. Let it run on.` : "";
  },
  broken({ setup, net, accuracy, ghostAccuracy }, start) {
    const narrow = narrowNames(setup);
    if (narrow.length === 0) return "All is float32 so far. Give one tensor another format.";
    if (narrow.length > 1) return `${narrow.length} things differ from float32: ${narrow.join(", ")}. Change only one.`;
    if (!sameTraining(setup, start)) return NO_TRAINING;
    if (net.steps < FIRST_CHECK.broken || ghostAccuracy < 0.9) return "";
    return accuracy < 0.8 ? null : `${percent(accuracy)} of the points are right after ${net.steps} steps. Try another format or another tensor.`;
  },
  rescued({ setup, net, loss, ghostLoss }, start) {
    if (setup.formats.gradients !== "float16") return "The gradients must stay in float16.";
    if (setup.push < start.push) return `k must stay at ${start.push}: the gradients are not to become larger that way.`;
    if (!sameTraining(setup, start)) return NO_TRAINING;
    if (net.steps < FIRST_CHECK.rescued) return "";
    return loss <= 1.2 * ghostLoss ? null : `After ${net.steps} steps the loss is ${times({ loss, ghostLoss })} times that of float32.`;
  },
  "largest-scale"({ setup, net, diedAt }, start, tried) {
    if (typeof setup.scale !== "number") return "Choose a fixed scale.";
    if (!sameBut(setup, start, ["scale", "seed"])) return "Only the scale and the seed may change.";
    const [now, twice, half] = [1, 2, 0.5].map((factor) => tried.get(keyOf(setup, factor * setup.scale)));
    if (now === "survived" && twice === "died") return null;
    if (now === "died" && half === "survived") return null;
    if (now === "survived") return `${setup.scale} survives 600 steps. Does ${2 * setup.scale}?`;
    return now === "died" ? `${setup.scale} ends in NaN at step ${diedAt ?? net.steps}. Does ${setup.scale / 2} survive?` : "";
  },
  updated({ setup, net, loss, ghostLoss }, start) {
    if (setup.formats.weights !== "bfloat16") return "The weights must stay in bfloat16.";
    if (setup.formats.master !== null) return "It has to work without a master copy.";
    if (!sameTraining(setup, start)) return NO_TRAINING;
    if (setup.rules.weights.startsWith("toward")) return ONE_WAY;
    if (net.steps < FIRST_CHECK.updated) return "";
    return loss <= 1.15 * ghostLoss ? null : `After ${net.steps} steps the loss is ${times({ loss, ghostLoss })} times that of float32.`;
  },
  moments({ setup, net, accuracy }, start) {
    const { moments } = setup.formats;
    if (!sameBut(withMoments(setup, start.formats.moments), start, ["seed"])) return "Only the format of the moments may change.";
    if (!isNarrow16(moments)) return `${FORMATS[moments].label} takes ${FORMATS[moments].bits} bits. The task asks for 16.`;
    if (net.steps < FIRST_CHECK.moments) return "";
    return accuracy >= 0.99 ? null : `${percent(accuracy)} of the points are right after ${net.steps} steps.`;
  },
};

/** What a run still lacks to solve the task that began with the setup `start`: null if nothing, "" if only time. */
export const lackOf = (task, run, start, tried) => RULES[task.rule](run, start, tried);

/** What to say of a run that only has to go on. */
export function waitText({ rule }, { net }) {
  if (net.steps >= (FIRST_CHECK[rule] ?? 0)) return "The task is checked while the network trains.";
  return `The task is checked at step ${FIRST_CHECK[rule]}.`;
}

/** What to say to a run that solves a task. */
export function solvedText(task, run) {
  const { setup, isFiniteSoFar } = run;
  if (task.rule === "broken") return `${task.says} ${lossesText(run)}`;
  if (task.rule !== "largest-scale") return task.says;
  const largest = isFiniteSoFar ? setup.scale : setup.scale / 2;
  return `With seed ${setup.seed}, ${largest} is the largest: ${2 * largest} ends in NaN. ${task.says}`;
}

/** Whether the run solves the task. */
export const isSolved = (...what) => lackOf(...what) === null;

/** Note in `tried` how the run's fixed scale did: it died, or it survived 600 steps. */
export function noteScale(tried, { setup, net, isFiniteSoFar }) {
  if (typeof setup.scale !== "number") return;
  if (!isFiniteSoFar) tried.set(keyOf(setup, setup.scale), "died");
  else if (net.steps >= FIRST_CHECK["largest-scale"]) tried.set(keyOf(setup, setup.scale), "survived");
}
