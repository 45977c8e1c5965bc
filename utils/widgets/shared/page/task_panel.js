// Tasks one at a time: round buttons for all of them, hints, and the progress that the browser keeps under their ids.
// What a task asks and when it is solved is its widget's business; the rules are in controls.css.

import { setText } from "./elements.js";
import { forgetProgress, readProgress, writeProgress } from "./progress.js";

export const SOLVED_BEFORE = "Solved before. Do it again, if you like.";
const FORGET = { ask: "forget my progress", sure: "really forget?", says: "Press again to forget what you have solved." };

/**
 * A panel for `tasks`, each { id, text }, which the widget calls `noun`s ("task").
 *
 * `label`: of the region. `titleOf(at, solved)`: its heading. `hintsOf(task)`: texts. `sayingsOf(task)`: what else the
 * panel may say, so that it keeps the room free. `buttons`: the widget's own. `opened(at)`: a task was chosen.
 * `say(text)`: draw, and speak the text. `goOn()`: where the focus goes when "Next task" was pressed.
 *
 * Gives { node, current(), isSolved(), tell(text, tone), succeed(text), feedback(), tone(), choose(at), chooseFirst(),
 * share(), draw() }.
 */
export function taskPanel(h, { tasks, model, noun, label, titleOf, hintsOf, sayingsOf, buttons, opened, say, goOn }) {
  const kept = tasks.map(({ id }) => readProgress(id));
  for (const id of model.get("solved") ?? []) {
    const i = tasks.findIndex((task) => task.id === id);
    if (i >= 0) kept[i].solved = true;
  }
  const name = noun[0].toUpperCase() + noun.slice(1);
  const firstOpen = () => Math.max(0, kept.findIndex(({ solved }) => !solved));
  let [at, verdict, tone] = [firstOpen(), "", ""];

  const button = (text, style, click, more = {}) => h("button", { class: style, type: "button", on: { click, ...more } }, text);
  const steps = tasks.map((_, i) => button("", "mp-goal-step", () => choose(i)));
  const title = h("h3", { class: "mp-goal-count" });
  const text = h("p", { class: "mp-goal-text" });
  const told = h("p", { class: "mp-goal-said" });
  const hint = button("", "mp-button mp-hint", giveHint);
  const next = button(`Next ${noun}`, "mp-button mp-primary", chooseNext);
  const forget = button(FORGET.ask, "mp-link", forgetAll, { blur: () => setText(forget, FORGET.ask) });
  const node = h("section", { class: "mp-goals", "aria-label": label },
    h("div", { class: "mp-goal-head" }, title, h("div", { class: "mp-goal-steps", role: "group", "aria-label": `All ${noun}s` }, steps)),
    roomFor(h, text, tasks.map((task) => task.text)), roomFor(h, told, tasks.flatMap((task) => [...numbered(hintsOf(task)), ...sayingsOf(task)])),
    h("div", { class: "mp-goal-buttons" }, buttons, hint, next, forget));

  function choose(i) {
    at = i;
    opened(i);
  }

  function chooseNext() {
    const later = kept.findIndex(({ solved }, i) => !solved && i > at);
    choose(later >= 0 ? later : firstOpen());
    goOn(); // the button that was pressed is gone
  }

  function tell(words, mood = "") {
    [verdict, tone] = [words, mood];
  }

  function share() {
    model.set("solved", tasks.filter((_, i) => kept[i].solved).map(({ id }) => id));
    model.save_changes();
  }

  function giveHint() {
    const hints = numbered(hintsOf(tasks[at]));
    kept[at].hints = Math.min(kept[at].hints + 1, hints.length);
    writeProgress(tasks[at].id, kept[at]);
    tell(hints[kept[at].hints - 1]);
    say(verdict);
  }

  function forgetAll() {
    if (forget.textContent !== FORGET.sure) {
      setText(forget, FORGET.sure);
      return say(FORGET.says);
    }
    tasks.forEach(({ id }, i) => {
      forgetProgress(id);
      kept[i] = { solved: false, hints: 0 };
    });
    share();
    choose(0);
    steps[0].focus(); // the button that was pressed is gone
  }

  return {
    node, choose, share, tell,
    chooseFirst: () => choose(firstOpen()),
    current: () => tasks[at],
    isSolved: () => kept[at].solved,
    feedback: () => verdict,
    tone: () => tone,
    restart: () => choose(at),
    anySolved: () => kept.some(({ solved }) => solved),
    /** The task is solved, and this is what there is to learn from it. */
    succeed(words) {
      kept[at].solved = true;
      writeProgress(tasks[at].id, kept[at]);
      const all = kept.every(({ solved }) => solved) ? `, and with it all ${noun}s` : "";
      tell(`✓ Solved${all}. ${words}`, "good");
      share();
    },
    draw() {
      const solved = kept.filter((one) => one.solved).length;
      setText(title, titleOf(at, solved));
      setText(text, tasks[at].text);
      setText(told, verdict);
      told.dataset.tone = tone;
      const left = hintsOf(tasks[at]).length - kept[at].hints;
      setText(hint, left > 0 ? `Hint (${left} left)` : "Hint");
      next.classList.toggle("mp-away", !kept[at].solved || solved === tasks.length);
      forget.classList.toggle("mp-away", solved === 0);
      steps.forEach((step, i) => {
        setText(step, kept[i].solved ? "✓" : String(i + 1));
        step.setAttribute("aria-label", `${name} ${i + 1}${kept[i].solved ? ", solved" : ""}`);
        if (i === at) step.setAttribute("aria-current", "step");
        else step.removeAttribute("aria-current");
      });
    },
  };
}

const numbered = (hints) => hints.map((text, i) => `Hint ${i + 1} of ${hints.length}: ${text}`);

// A node with the room that the longest of some texts takes at any width: an unseen one lies in the same place.
function roomFor(h, node, texts) {
  const longest = texts.reduce((a, b) => (b.length > a.length ? b : a), "");
  return h("div", { class: "mp-room" }, node, h("p", { class: "mp-away", "aria-hidden": "true" }, longest));
}
