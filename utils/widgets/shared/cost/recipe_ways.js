// Which recipes suit a card: `suited` of utils/cost/decide.py in the page's language.

/** The recipes that suit a card and a task, the best first. */
export function waysOf(card, task) {
  const bfloat16 = card.support.bfloat16 !== "emulated";
  const gpu = card.device === "cuda";
  if (task === "generate") return bfloat16 ? ["bf16-true"] : gpu ? ["16-true"] : ["32-true", "bf16-true"];
  if (bfloat16) return task === "fine_tune" ? ["bf16-mixed", "bf16-true"] : ["bf16-mixed"];
  return gpu ? ["16-mixed"] : ["32-true"];
}
