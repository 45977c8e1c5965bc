// The tour: tasks one at a time, checked while the network trains, with progress that the browser keeps.

import { SOLVED_BEFORE, taskPanel } from "../shared/page/task_panel.js";
import { lackOf, LONGEST_LACK, noteScale, solvedText, waitText } from "./tasks.js";

const BEGIN = "Press “Start the task”: it puts the knobs in place and begins to train.";
const FIRST = "the run that the page began with";

/** The tour of `tasks`; `presets` by name hold where they begin. Gives { node, check(run), draw(), enter() }. */
export function tourPanel(h, actions, { tasks, setupOf, model }) {
  const tried = new Map();
  let [latest, ignored] = [null, FIRST]; // a run that was there before the task was chosen does not solve it
  let isBegun = false; // before, a run may solve the task, and nothing is said of what it lacks

  const begin = h("button", { class: "mp-button", type: "button", on: { click: start } }, "Start the task");
  const read = h("a", { class: "mp-play-read" });
  const panel = taskPanel(h, {
    tasks, model, noun: "task", label: "Tour", buttons: [begin, read], opened, say: actions.redraw, goOn: () => begin.focus(),
    titleOf: (at, solved) => `Tour: task ${at + 1} of ${tasks.length}, ${solved} solved`,
    hintsOf: ({ hints }) => hints,
    sayingsOf: ({ says }) => [`✓ Solved, and with it all tasks. ${says}`, LONGEST_LACK],
  });

  function opened(at) {
    tried.clear();
    [ignored, isBegun] = [latest ?? FIRST, false];
    if (panel.isSolved()) panel.tell(SOLVED_BEFORE, "good");
    else panel.tell(BEGIN);
    actions.redraw(`Task ${at + 1} of ${tasks.length}. ${tasks[at].text} ${panel.feedback()}`);
  }

  function start() {
    tried.clear();
    panel.tell("");
    [ignored, isBegun] = [null, true];
    actions.preset(panel.current().preset, { run: true });
  }

  begin.ariaDescribedByElements = [panel.node.querySelector(".mp-goal-text")];
  panel.chooseFirst();
  return {
    node: panel.node,
    /** Look whether the run solves the task; the sentence to be said where it does so now. */
    check(run, isRunning) {
      if (latest && run !== latest && panel.tone() === "good") panel.tell(SOLVED_BEFORE, "good"); // that was another run
      latest = run;
      if (ignored === FIRST) ignored = run;
      if (run === ignored) return "";
      noteScale(tried, run);
      if (panel.tone() === "good") return "";
      const task = panel.current();
      const lack = run.net.steps === 0 ? "" : lackOf(task, run, setupOf(task.preset), tried);
      if (lack === null) {
        panel.succeed(solvedText(task, run));
        return panel.feedback();
      }
      if (!isBegun) return "";
      if (!panel.feedback().startsWith("Hint")) panel.tell(lack || waitText(task, run));
      return isRunning ? "" : lack;
    },
    draw() {
      const { chapter, title } = panel.current();
      read.textContent = title;
      read.setAttribute("href", `${chapter}.html`);
      // outside the book's page the chapters lie elsewhere
      read.hidden = !chapter || !panel.isSolved() || !read.closest(".bd-content");
      panel.draw();
    },
    /** Bring the reader here. */
    enter() {
      panel.node.scrollIntoView();
      begin.focus({ preventScroll: true });
    },
  };
}
