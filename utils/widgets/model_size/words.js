// ModelSize in words: what each item is, the verdict on the card, the largest item and the change that saves the most.

import { MS_MOST } from "../shared/cost/training_bytes.js";
import { bytesText, countText, fitsIn } from "../shared/words/amounts.js";

const MS_WHOLE = "distilbert"; // the family that has no adapters

/** What each change sets, given the plan; null where it is made already or cannot be. */
export const MS_CHANGES = {
  checkpointing: ({ checkpointing }) => (checkpointing ? null : { checkpointing: true }),
  "8-bit Adam": ({ optimizer }) => (optimizer === "adamw" ? { optimizer: "adamw-8bit" } : null),
  "bf16-true": ({ recipe }) => (recipe === "bf16-true" ? null : { recipe: "bf16-true" }),
  LoRA: ({ method, sizes }) => (method === "full" && sizes.family !== MS_WHOLE ? { method: "lora" } : null),
  QLoRA: ({ method, sizes }) => (method !== "qlora" && sizes.family !== MS_WHOLE ? { method: "qlora" } : null),
  "sharding over 8": ({ shards, stage }) => (stage === 3 && shards >= 8 ? null : { shards: Math.max(shards, 8), stage: 3 }),
  "half the batch": ({ batch }) => (batch < 2 ? null : { batch: Math.floor(batch / 2) }),
};
const MS_NOT_OPEN = {
  checkpointing: () => "is on",
  "8-bit Adam": ({ optimizer }) => (optimizer === "adamw-8bit" ? "is on" : "it is not Adam"),
  "bf16-true": () => "is on",
  LoRA: ({ method, sizes }) => (sizes.family === MS_WHOLE ? "not for a classifier" : method === "lora" ? "is on" : "QLoRA is on"),
  QLoRA: ({ sizes }) => (sizes.family === MS_WHOLE ? "not for a classifier" : "is on"),
  "sharding over 8": () => "is on",
  "half the batch": () => "it is 1",
};

/** Bytes for each parameter, three digits of them. */
export const perParameterText = (bytes, parameters) => String(Number((Number(bytes) / parameters).toPrecision(3)));

/** How large the model is, how much of it is trained, and how long its texts may be. */
export function modelText({ sizes: { positions }, length }, parameters, trained) {
  const over = length > positions ? ": yours are longer" : "";
  const part = trained < parameters ? ` (${countText(trained)} trained)` : "";
  return `${countText(parameters)} parameters${part}, texts of up to ${positions.toLocaleString("en")} tokens${over}`;
}

/** "true" where a tenth of the card is left for what is not counted, "close" where less of it is, else "false". */
export const msFits = (total, room) => (total > room ? "false" : fitsIn(total, room) ? "true" : "close");

/** Whether it fits, and by how much. */
export function msVerdict({ total, room, shards }) {
  const spare = bytesText(Math.abs(room - total));
  const where = shards > 1 ? " on each of them" : "";
  const words = {
    false: `it is ${spare} too large.`,
    true: `it fits, with ${spare} to spare.`,
    close: `too close to tell, with ${spare} for all that is not counted.`,
  };
  return `${bytesText(total)} of ${bytesText(room)}${where}: ${words[msFits(total, room)]}`;
}

/** The largest item, and the one change that saves the most; `items` as the facts have them. */
export function msSentence({ ledger, total, savings }, items) {
  const [name, , words] = items.reduce((best, item) => (ledger[item[0]] > ledger[best[0]] ? item : best));
  const share = Math.round((100 * Number(ledger[name])) / total);
  const best = savings.reduce((most, one) => (one.bytes > (most?.bytes ?? 0) ? one : most), null);
  const change = best ? `One change saves the most: ${best.name}, ${savingText(best.bytes)}.` : "None of the changes saves anything.";
  return `The biggest item is ${words}: ${bytesText(Number(ledger[name]))}, ${share}\u00a0% of the total. ${change}`;
}

/** A saving with its sign; a change that costs bytes says so. */
export const savingText = (bytes) => (bytes === 0 ? "nothing" : `${bytes > 0 ? "−" : "+"}${bytesText(Math.abs(bytes))}`);

/** What stands beside a change: its saving, whether it would then fit, or why there is none. */
export function changeText(plan, { name, bytes, fits }, fitsNow) {
  if (bytes === null) return MS_NOT_OPEN[name](plan);
  return `${savingText(bytes)}${!fitsNow && fits ? ": fits" : ""}`;
}

/** What is wrong with the number of parts; "" if nothing is. */
export const partsText = ({ accumulate, batch }) => (accumulate > batch ? "More parts than texts: a part holds one text at least." : "");

/** The largest batch that fits, in a sentence. */
export function largestText(largest) {
  if (largest === 0) return "Not even a batch of 1 fits.";
  return `Largest batch that fits: ${largest.toLocaleString("en")}${largest === MS_MOST ? " or more" : ""}.`;
}
