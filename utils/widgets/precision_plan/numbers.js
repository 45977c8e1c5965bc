// What a plan of FP8 layers predicts: the twin of facts.py.

import { roofOf, sbCase } from "../shared/cost/roof.js";
import { timeText } from "../shared/cost/roof_words.js";
import { fewDigits } from "../shared/words/amounts.js";

export const PP_MULTIPLE = 16; // of every size of an FP8 product
export const PP_MOST = 2 ** 17; // tokens of a batch
const PP_WIDE = { dtype: "bfloat16", read: 2, written: 2 };
const PP_NARROW = { dtype: "float8", read: 1, written: 2 };

const ppSum = (rows, size) => rows.reduce((sum, row) => sum + size(row), 0);

/** Every kind of linear layer of a plan: its size, how many are in FP8, operations, and ms of all of them. */
export function planRows(facts, { model, texts, length, recipe, device, exclude }) {
  const { layers, blocks, kinds } = facts.models[model];
  const roof = roofOf(facts, device);
  const [, , moved] = facts.recipes.find(([name]) => name === recipe);
  return kinds.map((kind) => {
    const { outputs, inputs } = kind;
    const rows = kind.texts ? texts : texts * length;
    const gemms = [[rows, outputs, inputs], [rows, inputs, outputs], [outputs, inputs, rows]].map(([m, n, k]) => ({ m, n, k }));
    const count = kind.block ? layers : 1;
    const fits = outputs % PP_MULTIPLE === 0 && inputs % PP_MULTIPLE === 0;
    const out = exclude.includes(kind.name) || !fits;
    const whole = kind.block ? Array.from({ length: layers }, (_, i) => `${blocks}.${i}`).filter((name) => exclude.includes(name)).length : 0;
    const converted = out ? 0 : count - whole;
    const values = [rows * inputs, outputs * inputs, rows * outputs];
    const casting = (bytes) => count * (1e3 * (values.reduce((sum, size, i) => sum + bytes[i] * size, 0) / (1e9 * roof.bandwidth)));
    const [multiplying, narrow] = [PP_WIDE, PP_NARROW].map((type) => count * ppSum(gemms, (gemm) => sbCase(gemm, type, roof).ms));
    const wide = multiplying + casting(facts.wide_casts);
    const casts = casting(moved);
    const cost = (converted / count) * (narrow + casts);
    return {
      kind, count, converted, fits, wide, narrow, casts, operations: count * ppSum(gemms, ({ m, n, k }) => 2 * m * n * k),
      products: (converted / count) * narrow, quantising: (converted / count) * casts, kept: ((count - converted) / count) * wide, now: ((count - converted) / count) * wide + cost,
    };
  });
}

/** A plan with all that is shown of it; times in ms. */
export function planView(facts, plan) {
  const rows = planRows(facts, plan);
  const { layers, width } = facts.models[plan.model];
  const attention = 12 * layers * plan.texts * plan.length * plan.length * width;
  const attentionMs = 1e3 * (attention / (1e12 * roofOf(facts, plan.device).peaks.bfloat16));
  const operations = ppSum(rows, (row) => row.operations) + attention;
  return {
    plan, rows, attention, attentionMs, operations, noKernel: (!facts.multiply_mx.includes(plan.device) && facts.no_kernel[plan.recipe]) || "",
    share: ppSum(rows, (row) => row.operations * (row.converted / row.count)) / operations,
    before: ppSum(rows, (row) => row.wide) + attentionMs, after: ppSum(rows, (row) => row.now) + attentionMs,
    converted: ppSum(rows, (row) => row.converted), count: ppSum(rows, (row) => row.count),
  };
}

/** How much of the step is in FP8, and what the roofline says that this is worth. */
export function planVerdict({ converted, count, share, before, after, noKernel }) {
  const done = `${converted} of ${count} linear layers, ${ppPercent(share)} of the operations of all products, in FP8.`;
  if (converted === 0) return `${done} convert() refuses a plan without any.`;
  const gain = before / after;
  const most = fewDigits(Math.max(gain, 1 / gain));
  const times = most === "1" ? "about as long" : `${most} times as ${gain >= 1 ? "fast" : "long"}`;
  return `${done} By the roofline: ${timeText(after)} instead of ${timeText(before)}, ${times}. ${noKernel}`.trim();
}

/** A share in percent; what is there and hardly counts as less than 0.01 %. */
export const ppPercent = (share) => (share > 0 && share < 1e-4 ? "<\u00a00.01\u00a0%" : `${fewDigits(100 * share)}\u00a0%`);

/** The call that makes a plan true. */
export function planCode({ recipe, exclude }) {
  const names = exclude.map((name) => `"${name}"`).join(", ");
  return `convert(model, "${recipe}", exclude=(${names}${exclude.length === 1 ? "," : ""}))`;
}

/** What FP8 would make of one kind of layers: how many times as fast, the casts counted. */
export const planGain = ({ wide, narrow, casts }) => wide / (narrow + casts);

/** Why a kind of layers stays as it is, or what to know of it. */
export function planReason({ kind, fits, converted }, inPlan) {
  if (!fits) return `${kind.outputs.toLocaleString("en")} × ${kind.inputs.toLocaleString("en")}: a size is no multiple of ${PP_MULTIPLE}, so it always stays`;
  if (kind.why) return kind.why;
  return converted === 0 && inPlan ? "left out by you" : "";
}
