// The tour: tasks one at a time, checked while the network trains, with progress that the browser keeps.

import { SOLVED_BEFORE, taskPanel } from "../shared/page/task_panel.js";
import { lackOf, LONGEST_LACK, noteScale, solvedText } from "./tasks.js";

const TOUR_SAYS = {
  begin: "Press “Start the task”: it puts the knobs in place and begins to train.",
  going: "Change what you like. The task is checked while the network trains.",
};
const FIRST = "the run that the page began with";

/** The tour of `tasks`; `presets` by name hold where they begin. Gives { node, check(run), draw() }. */
export function tourPanel(h, actions, { tasks, setupOf, model }) {
  const tried = new Map();
  let [latest, ignored] = [null, FIRST]; // a run that was there before the task was chosen does not solve it

  const begin = h("button", { class: "mp-button", type: "button", on: { click: start } }, "Start the task");
  const panel = taskPanel(h, {
    tasks, model, noun: "task", label: "Tour", buttons: [begin], opened, say: actions.redraw, goOn: () => begin.focus(),
    titleOf: (at, solved) => `Tour: task ${at + 1} of ${tasks.length}, ${solved} solved`,
    hintsOf: ({ hints }) => hints,
    sayingsOf: ({ says }) => [`✓ Solved, and with it all tasks. ${says}`, LONGEST_LACK],
  });

  function opened(at) {
    tried.clear();
    ignored = latest ?? FIRST;
    if (panel.isSolved()) panel.tell(SOLVED_BEFORE, "good");
    else panel.tell(TOUR_SAYS.begin);
    actions.redraw(`Task ${at + 1} of ${tasks.length}. ${tasks[at].text} ${panel.feedback()}`);
  }

  function start() {
    tried.clear();
    panel.tell(TOUR_SAYS.going);
    ignored = null;
    actions.preset(panel.current().preset, { run: true });
  }

  begin.ariaDescribedByElements = [panel.node.querySelector(".mp-goal-text")];
  panel.chooseFirst();
  return {
    node: panel.node,
    /** Look whether the run solves the task; the sentence to be said where it does so now. */
    check(run, isRunning) {
      latest = run;
      if (ignored === FIRST) ignored = run;
      if (run === ignored) return "";
      noteScale(tried, run);
      if (run.net.steps === 0 || panel.tone() === "good") return "";
      const task = panel.current();
      const lack = lackOf(task, run, setupOf(task.preset), tried);
      if (lack === null) {
        panel.succeed(solvedText(task, run));
        return panel.feedback();
      }
      if (lack && !panel.feedback().startsWith("Hint")) panel.tell(lack);
      return isRunning ? "" : lack;
    },
    draw: panel.draw,
  };
}
