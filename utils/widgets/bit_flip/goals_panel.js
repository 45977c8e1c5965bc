// The goals of BitFlip on the page: one at a time, checked at each flip, kept by the browser.

import { namedCode } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { setText } from "../shared/page/elements.js";
import { forgetProgress, readProgress, writeProgress } from "../shared/page/progress.js";
import { diagnose, goalCode, isGoalMet } from "./goals.js";
import { hintsOf, solvedText } from "./hints.js";

const GOAL_SAYS = {
  invitation: "Make it by flipping bits. A typed number shows its bits, but does not count.",
  asTyped: "These are the bits. Look at them, then start again and make them yourself.",
  asStepped: "One step, and there it is. Now start again and make it by flipping bits.",
  afterwards: "These are the bits, but your flips did not make all of them. Start again and make them yourself.",
  looking: "Look around as you like. For the goal, start again and flip the bits yourself.",
};

export function goalsPanel(h, actions, model) {
  const goals = model.get("goals");
  const kept = goals.map(({ id }) => readProgress(id));
  for (const id of model.get("solved") ?? []) {
    const at = goals.findIndex((goal) => goal.id === id);
    if (at >= 0) kept[at].solved = true;
  }
  let at = Math.max(0, kept.findIndex(({ solved }) => !solved));
  let verdict = "";
  let tone = "";
  // Bits that came from elsewhere, as from a typed number, do not count; `flipped` has the bits that the reader changed.
  let way = { code: 0n, flipped: 0n, borrowed: false };

  const home = model.get("format");
  const formatOf = (goal) => FORMATS[goal.format ?? home];
  const steps = goals.map((_, i) => h("button", { class: "mp-goal-step", type: "button", on: { click: () => choose(i) } }));
  const count = h("h3", { class: "mp-goal-count" });
  const text = h("p", { class: "mp-goal-text" });
  const said = h("p", { class: "mp-goal-said" });
  const hint = h("button", { class: "mp-button mp-hint", type: "button", on: { click: giveHint } });
  const again = h("button", { class: "mp-button", type: "button", on: { click: () => choose(at) } }, "Start again");
  const next = h("button", { class: "mp-button mp-primary", type: "button", on: { click: goOn } }, "Next goal");
  const forget = h("button", { class: "mp-link", type: "button", on: { click: forgetAll } }, "forget my progress");
  const node = h("section", { class: "mp-goals", "aria-label": "Goals" },
    h("div", { class: "mp-goal-head" }, count, h("div", { class: "mp-goal-steps", role: "group", "aria-label": "All goals" }, steps)),
    roomFor(h, text, goals.map((goal) => goal.text)), roomFor(h, said, goals.flatMap((goal) => textsOf(goal, formatOf(goal)))),
    h("div", { class: "mp-goal-buttons" }, hint, again, next, forget));

  const nextGoal = () => {
    const later = kept.findIndex(({ solved }, i) => !solved && i > at);
    return later >= 0 ? later : Math.max(0, kept.findIndex(({ solved }) => !solved));
  };

  function choose(i) {
    at = i;
    begin();
  }

  function goOn() {
    choose(nextGoal());
    actions.focusBits(); // the button that was pressed is gone
  }

  // Each goal starts at 1, or at 0 where 1 is the answer: at first, after a reload and again.
  function begin() {
    const fmt = formatOf(goals[at]);
    const one = namedCode("one", fmt);
    const code = isGoalMet(goals[at], one, fmt) ? 0n : one;
    verdict = kept[at].solved ? "Solved before. Do it again, if you like." : "";
    tone = kept[at].solved ? "good" : "";
    way = { code, flipped: 0n, borrowed: false };
    actions.startAt(fmt, code, GOAL_SAYS.invitation);
  }

  function check({ fmt, code, how }) {
    if (how === "start") return;
    const goal = goals[at];
    const asked = formatOf(goal);
    const met = fmt === asked && isGoalMet(goal, code, fmt);
    follow({ code, how, elsewhere: met || fmt !== asked });
    [verdict, tone] = ["", ""];
    if (fmt !== asked) verdict = `This goal is about ${asked.label}.`;
    else if (met && !way.borrowed) succeed(code);
    else if (met) verdict = { flip: GOAL_SAYS.afterwards, step: GOAL_SAYS.asStepped }[how] ?? GOAL_SAYS.asTyped;
    else if (how === "flip" || how === "step") verdict = diagnose(goal, code, fmt);
    else if (how !== "jump") verdict = GOAL_SAYS.looking;
  }

  // The buttons 0 and 1 are as good as a start, unless they give the answer; a step may only follow the reader's flips.
  function follow({ code, how, elsewhere }) {
    if (how === "flip") way.flipped ^= code ^ way.code;
    else if (how === "jump") Object.assign(way, { flipped: 0n, borrowed: elsewhere });
    else if (how !== "step" || (elsewhere && way.flipped === 0n)) way.borrowed = true;
    way.code = code;
  }

  function succeed(code) {
    kept[at].solved = true;
    writeProgress(goals[at].id, kept[at]);
    tone = "good";
    const all = kept.every(({ solved }) => solved) ? ", and with it all goals" : "";
    verdict = `✓ Solved${all}. ${solvedText(goals[at], code, formatOf(goals[at]))}`;
    shareSolved();
  }

  function shareSolved() {
    model.set("solved", goals.filter((_, i) => kept[i].solved).map(({ id }) => id));
    model.save_changes();
  }

  function giveHint() {
    const hints = hintsOf(goals[at], formatOf(goals[at]));
    kept[at].hints = Math.min(kept[at].hints + 1, hints.length);
    writeProgress(goals[at].id, kept[at]);
    [verdict, tone] = [`Hint ${kept[at].hints} of ${hints.length}: ${hints[kept[at].hints - 1]}`, ""];
    actions.say("");
  }

  function forgetAll() {
    goals.forEach(({ id }, i) => {
      forgetProgress(id);
      kept[i] = { solved: false, hints: 0 };
    });
    shareSolved();
    choose(0);
    steps[0].focus(); // the button that was pressed is gone
  }

  return {
    node,
    check,
    restart: () => choose(at),
    feedback: () => verdict,
    begin() {
      if (kept.some(({ solved }) => solved)) shareSolved();
      begin();
    },
    draw() {
      const solved = kept.filter((goal) => goal.solved).length;
      setText(count, `Goal ${at + 1} of ${goals.length}`);
      setText(text, goals[at].text);
      setText(said, verdict);
      said.dataset.tone = tone;
      const hints = hintsOf(goals[at], formatOf(goals[at])).length;
      setText(hint, kept[at].hints < hints ? `Hint (${hints - kept[at].hints} left)` : "Hint");
      next.classList.toggle("mp-away", !kept[at].solved || solved === goals.length);
      forget.classList.toggle("mp-away", solved === 0);
      steps.forEach((step, i) => {
        setText(step, kept[i].solved ? "✓" : String(i + 1));
        step.setAttribute("aria-label", `Goal ${i + 1}${kept[i].solved ? ", solved" : ""}`);
        if (i === at) step.setAttribute("aria-current", "step");
        else step.removeAttribute("aria-current");
      });
    },
  };
}

// A node with the room that the longest of some texts takes at any width: an unseen one lies in the same place.
function roomFor(h, node, texts) {
  const longest = texts.reduce((a, b) => (b.length > a.length ? b : a), "");
  return h("div", { class: "mp-room" }, node, h("p", { class: "mp-away", "aria-hidden": "true" }, longest));
}

// All that is known beforehand of what a goal will say.
function textsOf(goal, fmt) {
  const code = goalCode(goal, fmt) ?? namedCode("nan", fmt);
  const hints = hintsOf(goal, fmt).map((text, i, { length }) => `Hint ${i + 1} of ${length}: ${text}`);
  return [...hints, `✓ Solved, and with it all goals. ${solvedText(goal, code, fmt)}`, GOAL_SAYS.afterwards];
}
