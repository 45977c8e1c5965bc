// One training step, block by block: its lines of torch, the tensors after each block, and what breaks.
//
// A plan is { recipe, overflow, accumulate, clip, broken, norm, scale, maxNorm }: names, switches and three numbers.

import { superscript } from "../shared/numbers/superscript.js";

export const STEP_RECIPES = {
  "32-true": { weights: "float32", compute: "float32" },
  "16-mixed": { weights: "float32", compute: "float16", isMixed: true, hasScaler: true },
  "bf16-mixed": { weights: "float32", compute: "bfloat16", isMixed: true },
  "16-true": { weights: "float16", compute: "float16" },
  "bf16-true": { weights: "bfloat16", compute: "bfloat16" },
};

/** What can be done wrong: its words, its blocks, and what a step must have for it. */
export const BREAKS = {
  clip_first: { label: "clip before unscale_", marks: ["unscale", "clip"], needs: { recipe: "16-mixed", clip: true } },
  always: { label: "always advance the scheduler", marks: ["schedule"], needs: { recipe: "16-mixed" } },
  inverted: { label: "advance it if S fell", marks: ["schedule"], needs: { recipe: "16-mixed" } },
  no_scale: { label: "no scale", marks: ["scale", "backward"], needs: { recipe: "16-mixed" } },
  no_update: { label: "forget update", marks: ["update"], needs: { recipe: "16-mixed" } },
  no_zero: { label: "forget zero_grad", marks: ["zero", "backward"], needs: {} },
};

export const usesScaler = ({ recipe, broken }) => STEP_RECIPES[recipe].hasScaler === true && broken !== "no_scale";

/** A positive number in few characters: 32768, 0.5, 1.53 × 10⁻⁵. */
export function fewDigits(x, count = 3) {
  if (Number.isInteger(x) && x < 1e7) return String(x);
  const [digits, power] = x.toExponential(count - 1).split("e").map(Number);
  return power >= -4 && power < 6 ? String(Number(x.toPrecision(count))) : `${digits}\u00a0×\u00a010${superscript(power)}`;
}

/** The same with as many digits as show that it is not `other`: 0.49998 beside 0.5. */
export function digitsApart(x, other) {
  for (let count = 3; count < 12; count++) if (fewDigits(x, count) !== fewDigits(other, count)) return fewDigits(x, count);
  return fewDigits(x);
}

/** What of a step changes for a break, in words; "" if nothing. */
export function forcedWords(name, { recipe, clip }) {
  const needs = BREAKS[name]?.needs ?? {};
  const forced = [needs.recipe && needs.recipe !== recipe && `in ${needs.recipe}`, needs.clip && !clip && "with clip"].filter(Boolean);
  return forced.length ? `Now ${forced.join(" ")}, which this mistake needs. ` : "";
}

const BLOCK_NAMES = {
  zero: "zero_grad", forward: "forward", loss: "loss", scale: "scale", backward: "backward", again: "second batch",
  unscale: "unscale_", clip: "clip", check: "check", step: "step", update: "update", schedule: "scheduler",
};

/** The blocks in their order: [{ key, name, kind }], kind "" or "off", "skipped", "warned". */
export function stepBlocks(plan) {
  const keys = Object.keys(BLOCK_NAMES);
  if (plan.broken === "clip_first") keys.splice(keys.indexOf("unscale"), 2, "clip", "unscale");
  const scaled = usesScaler(plan);
  const isOff = (key) => (["scale", "unscale", "check", "update"].includes(key) && !scaled)
    || (key === "again" && !plan.accumulate) || (key === "clip" && !plan.clip);
  const isSkipped = (key) => plan.overflow && scaled && (key === "step" || (key === "schedule" && !BREAKS[plan.broken]?.marks.includes(key)));
  const marks = [...(BREAKS[plan.broken]?.marks ?? []), ...(plan.overflow && !scaled ? ["step"] : [])];
  return keys.map((key) => ({
    key,
    name: key === "forward" && STEP_RECIPES[plan.recipe].isMixed ? "autocast forward" : BLOCK_NAMES[key],
    kind: marks.includes(key) ? "warned" : isOff(key) ? "off" : isSkipped(key) ? "skipped" : "",
  }));
}

/** The lines of the step: [{ text, blocks, wrong }]; they run as they stand. */
export function stepLines(plan) {
  const { recipe, accumulate, clip, broken, maxNorm } = plan;
  const { isMixed, compute } = STEP_RECIPES[recipe];
  const scaled = usesScaler(plan);
  const lines = [];
  const add = (text, blocks, wrong = false) => lines.push({ text, blocks, wrong });
  add(broken === "no_zero" ? "# optimizer.zero_grad()" : "optimizer.zero_grad()", ["zero"], broken === "no_zero");
  if (accumulate) add("for x, y in batches:", ["again"]);
  const pad = accumulate ? "    " : "";
  if (isMixed) add(`${pad}with torch.autocast(device, torch.${compute}):`, ["forward"]);
  add(`${pad}${isMixed ? "    " : ""}logits = model(x)`, ["forward"]);
  add(`${pad}loss = loss_fn(logits.float(), y)${accumulate ? " / 2" : ""}`, ["loss"]);
  add(`${pad}${scaled ? "scaler.scale(loss)" : "loss"}.backward()`, ["scale", "backward"], broken === "no_scale");
  const unscale = () => scaled && clip && add("scaler.unscale_(optimizer)", ["unscale"], broken === "clip_first");
  if (broken !== "clip_first") unscale();
  if (clip) add(`clip_grad_norm_(model.parameters(), ${maxNorm})`, ["clip"], broken === "clip_first");
  if (broken === "clip_first") unscale();
  if (!scaled) {
    add("optimizer.step()", ["step"], plan.overflow);
    add("scheduler.step()", ["schedule"]);
    return lines;
  }
  add("scaler.step(optimizer)", clip ? ["check", "step"] : ["unscale", "check", "step"]);
  if (broken !== "always") add("before = scaler.get_scale()", ["update", "schedule"]);
  add(broken === "no_update" ? "# scaler.update()" : "scaler.update()", ["update"], broken === "no_update");
  if (broken === "always") add("scheduler.step()", ["schedule"], true);
  else {
    add(`if scaler.get_scale() ${broken === "inverted" ? "<" : ">="} before:`, ["schedule"], broken === "inverted");
    add("    scheduler.step()", ["schedule"], broken === "inverted");
  }
  return lines;
}

/** The norm of all gradients after the blocks up to `key`: null before there are any, else a number; it may be infinite. */
export function gradientNorm(plan, key) {
  const keys = stepBlocks(plan).map((block) => block.key);
  const done = (name) => keys.indexOf(name) <= keys.indexOf(key);
  if (!done("backward")) return null;
  if (plan.overflow) return Infinity;
  const scaled = usesScaler(plan);
  let norm = plan.norm * (scaled ? plan.scale : 1);
  for (const name of keys) {
    if (!done(name)) break;
    if (name === "unscale" && scaled) norm /= plan.scale;
    if (name === "clip" && plan.clip) norm = Math.min(norm, plan.maxNorm);
  }
  return norm;
}

/** The tensors after a block: [{ name, dtype, note }]; the note says whether they carry S. */
export function stepTensors(plan, key) {
  const { weights, compute, isMixed } = STEP_RECIPES[plan.recipe];
  const keys = stepBlocks(plan).map((block) => block.key);
  const done = (name) => keys.indexOf(name) <= keys.indexOf(key);
  const scaled = usesScaler(plan);
  const rows = [{ name: "weights", dtype: weights, note: plan.overflow && !scaled && done("step") ? "includes NaN" : "" }];
  if (done("forward") && !done("backward")) rows.push({ name: "activations", dtype: isMixed ? `${compute} and float32` : compute, note: "kept for backward" });
  if (done("loss") && !done("unscale")) rows.push({ name: "loss", dtype: "float32", note: done("scale") && scaled ? "× S" : "" });
  const norm = gradientNorm(plan, key);
  if (norm !== null) {
    const carries = scaled && !done("unscale");
    const text = Number.isFinite(norm) ? `norm ${carries ? fewDigits(norm) : digitsApart(norm, plan.norm)}` : plan.clip && done("clip") ? "includes NaN" : "includes ∞";
    rows.push({ name: "gradients", dtype: weights, note: `${carries ? "× S, " : ""}${text}` });
  } else if (plan.broken === "no_zero") rows.push({ name: "gradients", dtype: weights, note: "from the previous step" });
  rows.push({ name: "Adam’s moments", dtype: weights, note: "" });
  if (scaled) {
    const next = plan.overflow && done("update") && plan.broken !== "no_update" ? plan.scale / 2 : plan.scale;
    rows.push({ name: "S", dtype: "float32", note: fewDigits(next) });
  }
  return rows;
}

/** What a block does, and what happens without it: [text, text]. */
export function blockWords(plan, key) {
  const { weights, compute, isMixed } = STEP_RECIPES[plan.recipe];
  const { scale, overflow, accumulate, clip } = plan;
  const S = fewDigits(scale);
  const scaled = usesScaler(plan);
  if (["scale", "unscale", "check", "update"].includes(key) && !scaled) return [noScaler(plan), ""];
  const instead = brokenWords[`${plan.broken} ${key}`];
  if (instead) return [instead, ""];
  const found = overflow ? "it has, so this step will be skipped" : "it has not";
  const words = {
    zero: ["The gradients of the previous step are dropped: .grad is None.", "Without it, gradients of earlier steps stay in the sum."],
    forward: isMixed
      ? [`The weights stay float32. Under autocast, matrix products read them as ${compute}; other operations run in float32. The two lists of operations differ between CPU and CUDA.`, "backward needs no autocast: each operation runs backward in the dtype of its forward pass."]
      : [`No autocast: every operation runs in ${compute}, the dtype of the weights.`, ""],
    loss: [`The logits are converted to float32, and the loss is computed in float32.${accumulate ? " It is halved, because the two batches together should give a mean." : ""}`,
      compute === "float16" ? `In float16, a loss beyond 65504 would be infinite${scaled ? "; and backward would begin with S in float16, which is infinite from S = 2¹⁶ on" : ""}.` : compute === "bfloat16" ? "In bfloat16, the loss would have two or three digits." : ""],
    scale: [`The loss is multiplied by S = ${S}. By the chain rule, every gradient carries the same factor.`, "Without it, small gradients become 0 in float16."],
    backward: [`The gradients go back through the layers in ${compute}${scaled ? ", S times as large" : ""}. In .grad they are ${weights}, like the weights.`,
      scaled ? "Without it, there are no gradients, and scaler.step raises an AssertionError." : "Without it, there are no gradients, and no weight moves."],
    again: accumulate
      ? [`forward, loss${scaled ? ", scale" : ""} and backward run once more, and .grad is now the sum over both batches.${scaled ? " S is the same for both, because update comes after the second." : ""}`, "Without the / 2 in the loss, the gradient would be twice as large."]
      : ["Switched off: the step uses one batch.", ""],
    unscale: [`It multiplies every gradient by 1/S, in float32 and in place, and notes whether one is infinite or NaN.${clip ? "" : " Without clipping, it has no line of its own: scaler.step does it."}`,
      clip ? "Without it, clip would measure S times the norm, and scaler.step would unscale only after that." : ""],
    clip: clip ? [clipWords(plan), "It comes after unscale_, so that it measures the true norm."] : ["Switched off.", ""],
    check: [`scaler.step looks at what unscale_ has noted: has a gradient overflowed? Here ${found}.`, "Without it, one infinite gradient would turn a weight into NaN."],
    step: scaled && overflow ? ["Skipped: weights and moments stay as they were.", ""]
      : [`AdamW moves the ${weights} weights${overflow ? "; infinity / infinity is NaN" : ""}.`, weights === "float32" ? "In float32, small updates are kept." : `Updates below half a gap of ${weights} are lost.`],
    update: [overflow ? `S falls from ${S} to ${fewDigits(scale / 2)}.` : `S stays at ${S}; after 2000 good steps in a row, it doubles.`, "Without it, the next step raises a RuntimeError."],
    schedule: [scaled && overflow ? "It waits, because no step was taken." : "The learning rate advances, once for each step that was taken.", scaled ? "After a skipped step, S has fallen, hence the >=." : ""],
  };
  return words[key];
}

// What a block does where it is the broken one, by what is broken and the block.
const brokenWords = {
  "no_zero zero": "Left out: .grad still holds the gradients of the last step.",
  "no_update update": "Left out: S does not change, and the scaler still waits for update.",
  "always schedule": "The learning rate advances whether a step was taken or not.",
  "inverted schedule": "The learning rate advances if S fell, that is, if no step was taken.",
  "clip_first unscale": "It multiplies every gradient by 1/S, but clip has already measured them.",
};

function clipWords({ norm, maxNorm, overflow, scale, broken }) {
  if (overflow) return "The norm is infinite, so finite gradients become 0 and infinite ones become NaN.";
  const seen = broken === "clip_first" ? norm * scale : norm;
  return seen > maxNorm
    ? `The norm is ${fewDigits(seen)}, which is more than ${fewDigits(maxNorm)}, so all gradients are multiplied by ${digitsApart(maxNorm / seen, 1)}.`
    : `The norm is ${fewDigits(seen)}, which is at most ${fewDigits(maxNorm)}, so nothing changes.`;
}

function noScaler({ recipe, broken }) {
  if (broken === "no_scale") return "Left out, together with the scaler: that is what is broken here.";
  return {
    "32-true": "Not needed: float32 holds gradients down to 10⁻⁴⁵.",
    "bf16-mixed": "Not needed: bfloat16 has the exponents of float32, so small gradients survive.",
    "bf16-true": "Not needed: bfloat16 has the exponents of float32, so small gradients survive.",
    "16-true": "Not possible: GradScaler refuses float16 gradients, because 1/S would make them underflow after all.",
  }[recipe];
}

/** What this step comes to, or what the broken one does: { isWrong, text }. */
export function stepVerdict(plan) {
  if (plan.broken) return { isWrong: true, text: consequences[plan.broken](plan) };
  const { recipe, overflow, scale } = plan;
  if (!usesScaler(plan)) {
    if (overflow) return { isWrong: true, text: `Nothing in ${recipe} checks for the overflow: AdamW turns that weight into NaN, and the next loss is NaN.` };
    const text = {
      "16-true": `No scaler can help here. Gradients below 2⁻²⁵ ≈ ${fewDigits(2 ** -25)} are 0, and small updates are lost.`,
      "bf16-true": "No scale is needed, but small updates are lost: the weights are bfloat16.",
      "bf16-mixed": "No scale is needed: bfloat16 has the exponents of float32. The weights are float32.",
      "32-true": "Everything is float32: no autocast, no scale.",
    }[recipe];
    return { isWrong: false, text };
  }
  return overflow
    ? { isWrong: false, text: `The step is skipped, S falls from ${fewDigits(scale)} to ${fewDigits(scale / 2)}, and the scheduler waits.` }
    : { isWrong: false, text: `All gradients are finite: the weights move, S stays at ${fewDigits(scale)}, and the scheduler advances.` };
}

const consequences = {
  clip_first({ norm, scale, maxNorm, overflow }) {
    if (overflow) return "A gradient is infinite, so the step is skipped: no harm this time.";
    const seen = norm * scale;
    if (seen <= maxNorm) return `clip sees ${fewDigits(norm)} × ${fewDigits(scale)} = ${fewDigits(seen)}, which is at most ${fewDigits(maxNorm)}: no harm this time.`;
    const due = Math.min(norm, maxNorm);
    return `clip sees ${fewDigits(norm)} × ${fewDigits(scale)} = ${fewDigits(seen)} and cuts it to ${fewDigits(maxNorm)}. Unscaling then leaves ${digitsApart(maxNorm / scale, due)} instead of ${fewDigits(due)}: ${digitsApart(maxNorm / scale / due, 1)} of the gradient.`;
  },
  always({ scale, overflow }) {
    if (!overflow) return "No harm in this step. Let a gradient overflow, and look again.";
    return `No weight has moved, but the learning rate has. S falls from ${fewDigits(scale)} to ${fewDigits(scale / 2)}; if the next gradients overflow too, the schedule will be two steps ahead.`;
  },
  inverted: ({ overflow }) => (overflow
    ? "The scheduler advances now, in the one step that changed nothing."
    : "S did not fall, so the scheduler waits in this step and in every good one: the learning rate does not change."),
  no_scale: ({ scale, overflow }) => `Gradients below 2⁻²⁵ ≈ ${fewDigits(2 ** -25)} become 0 in float16; with S = ${fewDigits(scale)} only those below ${fewDigits(2 ** -25 / scale)} would.${overflow ? " And nothing checks for the infinite one, which turns a weight into NaN." : ""}`,
  no_update: ({ scale, clip, overflow }) => `The next ${clip ? "unscale_" : "scaler.step"} raises a RuntimeError, because the scaler still waits for update(). S stays at ${fewDigits(scale)}${overflow ? ", although a gradient overflowed" : ""}.`,
  no_zero(plan) {
    const { norm, scale, overflow } = plan;
    if (!usesScaler(plan)) return overflow
      ? "The infinity stays in .grad, and infinity plus any gradient is infinite, so no later step can be right."
      : `The next gradient is added to this one: if both are the same, the norm is 2 × ${fewDigits(norm)} = ${fewDigits(2 * norm)}, and ${fewDigits(10 * norm)} after ten steps.`;
    return overflow
      ? `The infinity stays in .grad, so every later step is skipped too: after 20 of them S is ${fewDigits(scale * 2 ** -20)}.`
      : `unscale_ hides the mistake: in the next step, .grad is this gradient plus S times the new one, and dividing by S leaves 1/${fewDigits(scale)} of this one. An infinity would stay forever: let a gradient overflow.`;
  },
};
