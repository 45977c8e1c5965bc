// The tour: tasks one at a time, checked while the network trains, with progress that the browser keeps.

import { setText } from "../shared/page/elements.js";
import { forgetProgress, readProgress, writeProgress } from "../shared/page/progress.js";
import { lackOf, noteScale, solvedText } from "./tasks.js";

const TOUR_SAYS = {
  begin: "Press “Start the task”: it puts the knobs in place and begins to train.",
  going: "Change what you like. The task is checked while the network trains.",
  forget: "forget my progress",
  really: "really forget?",
  before: "Solved before. Do it again, if you like.",
};

const FIRST = "the run that the page began with";

/** The tour of `tasks`; `presets` by name hold where they begin. Gives { node, check(run), message(), draw() }. */
export function tourPanel(h, actions, { tasks, setupOf, model }) {
  const kept = tasks.map(({ id }) => readProgress(id));
  const tried = new Map();
  let at = Math.max(0, kept.findIndex(({ solved }) => !solved));
  let [verdict, tone] = ["", ""];
  let [latest, ignored] = [null, FIRST]; // a run that was there before the task was chosen does not solve it

  const steps = tasks.map((_, i) => h("button", { class: "mp-play-task", type: "button", on: { click: () => choose(i) } }));
  const title = h("h3", {});
  const text = h("p", { class: "mp-play-task-text" });
  const said = h("p", { class: "mp-play-task-said" });
  const begin = h("button", { class: "mp-button", type: "button", on: { click: start } }, "Start the task");
  const hint = h("button", { class: "mp-button", type: "button", on: { click: giveHint } });
  const next = h("button", { class: "mp-button mp-primary", type: "button", on: { click: goOn } }, "Next task");
  const forget = h("button", { class: "mp-link", type: "button", on: { click: forgetAll } }, TOUR_SAYS.forget);
  const node = h("section", { class: "mp-play-tour", "aria-label": "Tour" },
    h("div", { class: "mp-play-tour-head" }, title, h("div", { class: "mp-play-tasks", role: "group", "aria-label": "All tasks" }, steps)),
    text, said, h("div", { class: "mp-play-buttons" }, begin, hint, next, forget));

  function choose(i) {
    at = i;
    tried.clear();
    ignored = latest ?? FIRST;
    [verdict, tone] = kept[i].solved ? [TOUR_SAYS.before, "good"] : [TOUR_SAYS.begin, ""];
    actions.redraw(`Task ${i + 1} of ${tasks.length}. ${tasks[i].text} ${verdict}`);
  }

  function goOn() {
    const later = kept.findIndex(({ solved }, i) => !solved && i > at);
    choose(later >= 0 ? later : Math.max(0, kept.findIndex(({ solved }) => !solved)));
    begin.focus(); // the button that was pressed is gone
  }

  function start() {
    tried.clear();
    [verdict, tone] = [TOUR_SAYS.going, ""];
    ignored = null;
    actions.preset(tasks[at].preset, { run: true });
  }

  function share() {
    model.set("solved", tasks.filter((_, i) => kept[i].solved).map(({ id }) => id));
    model.save_changes();
  }

  function giveHint() {
    const { hints, id } = tasks[at];
    kept[at].hints = Math.min(kept[at].hints + 1, hints.length);
    writeProgress(id, kept[at]);
    [verdict, tone] = [`Hint ${kept[at].hints} of ${hints.length}: ${hints[kept[at].hints - 1]}`, ""];
    actions.redraw(verdict);
  }

  function forgetAll() {
    if (forget.textContent !== TOUR_SAYS.really) {
      setText(forget, TOUR_SAYS.really);
      return actions.redraw("Press again to forget which tasks you have solved.");
    }
    setText(forget, TOUR_SAYS.forget);
    tasks.forEach(({ id }, i) => {
      forgetProgress(id);
      kept[i] = { solved: false, hints: 0 };
    });
    share();
    choose(0);
    steps[0].focus(); // the button that was pressed is gone
  }

  begin.ariaDescribedByElements = [text];
  choose(at);
  return {
    node,
    /** Look whether the run solves the task; the sentence to be said where it does so now. */
    check(run, isRunning) {
      latest = run;
      if (ignored === FIRST) ignored = run;
      if (run === ignored) return "";
      noteScale(tried, run);
      if (run.net.steps === 0 || tone === "good") return "";
      const lack = lackOf(tasks[at], run, setupOf(tasks[at].preset), tried);
      if (lack !== null) {
        if (lack && !verdict.startsWith("Hint")) verdict = lack;
        return isRunning ? "" : lack;
      }
      kept[at].solved = true;
      writeProgress(tasks[at].id, kept[at]);
      const all = kept.every(({ solved }) => solved) ? ", and with it all tasks" : "";
      [verdict, tone] = [`✓ Solved${all}. ${solvedText(tasks[at], run)}`, "good"];
      share();
      return verdict;
    },
    draw() {
      const solved = kept.filter((one) => one.solved).length;
      setText(title, `Tour: task ${at + 1} of ${tasks.length}, ${solved} solved`);
      setText(text, tasks[at].text);
      setText(said, verdict);
      said.dataset.tone = tone;
      const { hints } = tasks[at];
      const hadFocus = hint.contains(document.activeElement);
      setText(hint, kept[at].hints < hints.length ? `Hint (${kept[at].hints} of ${hints.length})` : "Last hint again");
      hint.hidden = tone === "good";
      next.hidden = !kept[at].solved || kept.every((one) => one.solved);
      forget.hidden = solved === 0;
      if (hint.hidden && hadFocus) (next.hidden ? begin : next).focus();
      steps.forEach((step, i) => {
        setText(step, kept[i].solved ? "✓" : String(i + 1));
        step.setAttribute("aria-label", `Task ${i + 1}${kept[i].solved ? ", solved" : ""}`);
        if (i === at) step.setAttribute("aria-current", "step");
        else step.removeAttribute("aria-current");
      });
    },
  };
}
