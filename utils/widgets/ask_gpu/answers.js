// Ask a GPU: from the kernels' words to an answer for each row of the table.

import { openDevice, runKernels } from "./device.js";
import { EXPRESSIONS, measureErrors } from "./functions.js";
import { floatOf, KERNELS } from "./kernels.js";
import { LOOP_PLACES, pairsOf, TREE_PLACES } from "./orders.js";

// An order: its number of places, then the ones that each pair of places keeps.
const orderAnswer = (places, words) => [places, ...words.slice(0, pairsOf(places).length).map(floatOf)];
const AS_ORDER = {
  order_loop: (words) => orderAnswer(LOOP_PLACES, words),
  order_tree: (words) => orderAnswer(TREE_PLACES, words),
  order_subgroup: ([lanes, ...words]) => orderAnswer(lanes, words),
};

/** The answers of { kernel: words }: a list of numbers by the name of its row. */
export function answersOf(outputs) {
  const answers = {};
  for (const [kernel, words] of Object.entries(outputs)) {
    let at = 0;
    for (const [name, count] of Object.entries(KERNELS[kernel].outputs)) {
      const part = words.slice(at, at + count * (KERNELS[kernel].runs ?? 1));
      at += part.length;
      answers[name] = name in EXPRESSIONS ? measureErrors(name, part.map(floatOf)) : (AS_ORDER[name]?.(part) ?? part);
    }
  }
  return answers;
}

/**
 * Run every kernel that this browser's GPU can run. `browser`: { gpu, isSecureContext }; `opened(device)` is called with
 * the device, so that somebody else can destroy it. Nothing is kept. Throws NoAnswer (device.js).
 *
 * Returns { answers, features, refused, vendor, architecture, software }.
 */
export async function askGpu(browser, opened = () => {}) {
  const { device, ...facts } = await openDevice(browser);
  opened(device);
  const { outputs, refused } = await runKernels({ device, ...facts }, KERNELS);
  return { ...facts, refused, answers: answersOf(outputs) };
}
