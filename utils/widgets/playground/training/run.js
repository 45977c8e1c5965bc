// A training and its float32 twin, with what the page shows of both: the losses, the scale, and counts by step.

import { Net, TENSORS } from "./net.js";

export const SMOOTH = 50; // steps that a loss is averaged over where it is compared
const KEPT = 400; // points of a curve; beyond them every second one goes

const FLOAT32 = {
  formats: { ...Object.fromEntries(TENSORS.map((tensor) => [tensor, "float32"])), master: null },
  rules: Object.fromEntries(TENSORS.map((tensor) => [tensor, "ties_to_even"])), scale: "none", push: 0,
};

/** The same training with nothing narrow in it. */
export const ghostOf = (setup) => ({ ...setup, ...FLOAT32 });

/** The ids of the knobs that differ from the float32 training: "weights", "weights rounding", "master", "scale", "push". */
export function narrowKnobs(setup) {
  const ghost = ghostOf(setup);
  const changed = (kind, text) => Object.keys(ghost[kind]).filter((tensor) => setup[kind][tensor] !== ghost[kind][tensor]).map(text);
  return [...changed("formats", (tensor) => tensor), ...changed("rules", (tensor) => `${tensor} rounding`),
    ...["scale", "push"].filter((name) => setup[name] !== ghost[name])];
}

// The mean of the last losses, as they come.
function smoothed() {
  const last = [];
  return {
    add(loss) {
      last.push(loss);
      if (last.length > SMOOTH) last.shift();
    },
    mean: () => last.reduce((sum, loss) => sum + loss, 0) / last.length,
  };
}

/** A run of a setup: advance(steps), and what has become of it. `newGhost` makes its float32 twin. */
export function newRun(setup, newGhost = (twin) => new Net(twin)) {
  const net = new Net(setup);
  const ghost = narrowKnobs(setup).length ? newGhost(ghostOf(setup)) : net;
  const [ours, theirs] = [smoothed(), smoothed()];
  let [every, waiting] = [1, 0];
  const run = {
    setup, net, ghost, curve: [], skips: [], isFiniteSoFar: true, accuracy: net.accuracy(), ghostAccuracy: ghost.accuracy(),
    loss: NaN, ghostLoss: NaN, diedAt: null,
    first: null, // { step } and its counts: the first step that was not skipped
    advance(steps) {
      for (let i = 0; i < steps; i += 1) {
        net.step();
        if (ghost !== net) ghost.step();
        ours.add(net.loss);
        theirs.add(ghost.loss);
        if (net.skipped > run.skips.length) run.skips.push(net.steps);
        if (!net.isFinite && setup.scale !== "dynamic") run.isFiniteSoFar = false;
        if (run.diedAt === null && Number.isNaN(net.loss)) run.diedAt = net.steps;
        if (!run.first && net.now.moments) run.first = { step: net.steps, ...net.now };
        note();
      }
      Object.assign(run, { loss: ours.mean(), ghostLoss: theirs.mean() });
    },
    /** Count the points that are right; after `advance`, as often as they are shown. */
    judge() {
      run.accuracy = net.accuracy();
      run.ghostAccuracy = ghost === net ? run.accuracy : ghost.accuracy();
    },
  };

  // One point for every `every` steps: [step, loss, float32 loss, scale].
  function note() {
    waiting += 1;
    if (waiting < every) return;
    waiting = 0;
    run.curve.push([net.steps, net.loss, ghost.loss, net.scale]);
    if (run.curve.length <= KEPT) return;
    run.curve = run.curve.filter((_, i) => i % 2 === 1);
    every *= 2;
  }
  return run;
}
