// The tasks of SoftmaxRow on the page: they begin with a row of their own, and are checked at each change after that.

import { SOLVED_BEFORE, taskPanel } from "../shared/page/task_panel.js";
import { lackOf } from "./tasks.js";

const SAYS = {
  begin: "Press “Start the task”: it puts the row and the mask in place.",
  going: "Change what you like. The task is checked at each change.",
};

/** The panel of the tasks: { node, check(row, steps, padding), feedback(), leave(), draw() }; `leave` where another row is put in place. */
export function taskControl(h, { goals, model, start, say }) {
  let isGoing = false;
  const begin = h("button", { class: "mp-button", type: "button", on: { click: () => {
    isGoing = true;
    panel.tell(SAYS.going);
    start(panel.current().start);
  } } }, "Start the task");
  const panel = taskPanel(h, {
    tasks: goals, model, noun: "task", label: "Tasks", buttons: [begin], say, goOn: () => begin.focus(),
    titleOf: (at, solved) => `Task ${at + 1} of ${goals.length}, ${solved} solved`,
    hintsOf: ({ hints }) => hints,
    sayingsOf: ({ says }) => [`✓ Solved, and with it all tasks. ${says}`],
    opened(at) {
      rest();
      if (isShown) say(`Task ${at + 1} of ${goals.length}. ${goals[at].text} ${panel.feedback()}`);
    },
  });
  // No task is going on: what the panel says then.
  function rest() {
    isGoing = false;
    if (panel.isSolved()) panel.tell(SOLVED_BEFORE, "good");
    else panel.tell(SAYS.begin);
  }
  let isShown = false; // what is opened first is not spoken
  panel.chooseFirst();
  isShown = true;
  return {
    node: panel.node,
    check(row, steps, padding) {
      if (!isGoing) return;
      const lack = lackOf(panel.current(), row, steps, padding);
      if (lack === null) panel.succeed(panel.current().says);
      else panel.tell(lack);
    },
    feedback: () => (isGoing ? panel.feedback() : ""),
    leave: () => isGoing && rest(),
    draw: panel.draw,
  };
}
