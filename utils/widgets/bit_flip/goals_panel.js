// The goals of BitFlip on the page: which flips count, and what is said on the way.

import { namedCode } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { SOLVED_BEFORE, taskPanel } from "../shared/page/task_panel.js";
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
  // Bits that came from elsewhere, as from a typed number, do not count; `flipped` has the bits that the reader changed.
  let way = { code: 0n, flipped: 0n, borrowed: false };

  const home = model.get("format");
  const formatOf = (goal) => FORMATS[goal.format ?? home];
  const again = h("button", { class: "mp-button", type: "button", on: { click: () => panel.restart() } }, "Start again");
  const panel = taskPanel(h, {
    tasks: goals, model, noun: "goal", label: "Goals", buttons: [again], opened: begin, goOn: actions.focusBits,
    titleOf: (at) => `Goal ${at + 1} of ${goals.length}`,
    hintsOf: (goal) => hintsOf(goal, formatOf(goal)),
    sayingsOf: (goal) => [`✓ Solved, and with it all goals. ${longestSolved(goal, formatOf(goal))}`, GOAL_SAYS.afterwards],
    say: (text) => actions.say(text.startsWith("Hint") ? "" : text), // the goal's feedback is said with every message
  });

  // Each goal starts at 1, or at 0 where 1 is the answer: at first, after a reload and again.
  function begin() {
    const goal = panel.current();
    const fmt = formatOf(goal);
    const one = namedCode("one", fmt);
    const code = isGoalMet(goal, one, fmt) ? 0n : one;
    if (panel.isSolved()) panel.tell(SOLVED_BEFORE, "good");
    else panel.tell("");
    way = { code, flipped: 0n, borrowed: false };
    actions.startAt(fmt, code, GOAL_SAYS.invitation);
  }

  function check({ fmt, code, how }) {
    if (how === "start") return;
    const goal = panel.current();
    const asked = formatOf(goal);
    const met = fmt === asked && isGoalMet(goal, code, fmt);
    follow({ code, how, elsewhere: met || fmt !== asked });
    panel.tell("");
    if (fmt !== asked) panel.tell(`This goal is about ${asked.label}.`);
    else if (met && !way.borrowed) panel.succeed(solvedText(goal, code, asked));
    else if (met) panel.tell({ flip: GOAL_SAYS.afterwards, step: GOAL_SAYS.asStepped }[how] ?? GOAL_SAYS.asTyped);
    else if (how === "flip" || how === "step") panel.tell(diagnose(goal, code, fmt));
    else if (how !== "jump") panel.tell(GOAL_SAYS.looking);
  }

  // The buttons 0 and 1 are as good as a start, unless they give the answer; a step may only follow the reader's flips.
  function follow({ code, how, elsewhere }) {
    if (how === "flip") way.flipped ^= code ^ way.code;
    else if (how === "jump") Object.assign(way, { flipped: 0n, borrowed: elsewhere });
    else if (how !== "step" || (elsewhere && way.flipped === 0n)) way.borrowed = true;
    way.code = code;
  }

  return {
    node: panel.node,
    check,
    restart: panel.restart,
    feedback: panel.feedback,
    begin() {
      if (panel.anySolved()) panel.share();
      begin();
    },
    draw: panel.draw,
  };
}

const longestSolved = (goal, fmt) => solvedText(goal, goalCode(goal, fmt) ?? namedCode("nan", fmt), fmt);
