// DecisionTree in words: the questions on the way to a recipe and their answers, and the decision in a sentence.

import { dtHeld } from "../shared/cost/decide.js";
import { bytesText, fewDigits } from "../shared/words/amounts.js";

/** Questions and answers: `path` in facts.py. */
export function dtPath(facts, { card, task }, decision) {
  const { label, multiplies } = facts.cards[card];
  const scaler = decision.first === "16-mixed" ? ", with a loss scaler" : "";
  const fit = decision.taken.length === 0 && decision.fits;
  const question = (lever) => (task === "generate" && facts.generating[lever]) || facts.questions.find(([begin]) => lever.startsWith(begin))[1];
  const steps = [
    [`Which type should the ${label} multiply in?`, `${multiplies}: ${decision.first}${scaler}.`],
    ["Does it fit, with a tenth to spare?", `${bytesText(decision.bare)} of ${bytesText(decision.room)}: ${fit ? "yes" : "no"}.`],
    ...decision.taken.map(({ lever, total, fits }) => [question(lever), `${bytesText(total)}: ${fits ? "it fits" : "not yet"}.`]),
  ];
  const most = facts.most_cards.toLocaleString("en");
  if (!decision.fits) steps.push(["Over how many cards would it fit?", decision.cards ? `Over ${decision.cards.toLocaleString("en")} (of 2, 4, 8 and so on).` : `Over ${most} it would not: a smaller model.`]);
  return steps;
}

/** The decision in a sentence or two: `verdict` in facts.py. */
export function dtVerdict(facts, decision) {
  const levers = dtHeld(facts, decision).map((lever) => `, ${lever}`).join("");
  const text = `${decision.plan.recipe}${levers}: ${bytesText(decision.total)} of ${bytesText(decision.room)}`;
  if (!decision.fits) return `${text}, too much for one card.`;
  if (decision.tokens_per_second === null) return `${text}.`;
  const bandwidth = decision.bandwidth.toLocaleString("en");
  return `${text}. At most ${fewDigits(decision.tokens_per_second)} tokens/s: ${bandwidth} GB/s over these bytes.`;
}
