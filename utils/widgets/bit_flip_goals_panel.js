// The goals of BitFlip on the page: one at a time, checked at each flip, kept by the browser.

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

  const steps = goals.map((goal, i) => h("button", { class: "mp-goal-step", type: "button", on: { click: () => choose(i) } }));
  const count = h("h3", { class: "mp-goal-count" });
  const text = h("p", { class: "mp-goal-text" });
  const said = h("p", { class: "mp-goal-said" });
  const hint = h("button", { class: "mp-button", type: "button", on: { click: giveHint } });
  const again = h("button", { class: "mp-button", type: "button", on: { click: () => choose(at) } }, "Start again");
  const next = h("button", { class: "mp-button mp-primary", type: "button", on: { click: goOn } }, "Next goal");
  const forget = h("button", { class: "mp-link", type: "button", on: { click: forgetAll } }, "forget my progress");
  const node = h("section", { class: "mp-goals", "aria-label": "Goals" },
    h("div", { class: "mp-goal-head" }, count, h("div", { class: "mp-goal-steps", role: "group", "aria-label": "All goals" }, steps)),
    text, said, h("div", { class: "mp-goal-buttons" }, hint, again, next, forget));

  const home = model.get("format");
  const formatOf = (goal) => FORMATS[goal.format ?? home];
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

  // Each goal starts at 1, or at 0 where 1 is the answer, so that it is never solved by what came before.
  function begin() {
    const fmt = formatOf(goals[at]);
    const one = namedCode("one", fmt);
    verdict = kept[at].solved ? "Solved before. Do it again, if you like." : "";
    tone = kept[at].solved ? "good" : "";
    actions.startAt(fmt, isGoalMet(goals[at], one, fmt) ? 0n : one);
  }

  function check({ fmt, code, how }) {
    if (how === "start") return;
    const goal = goals[at];
    const asked = formatOf(goal);
    [verdict, tone] = ["", ""];
    if (fmt !== asked) verdict = `This goal is about ${asked.label}.`;
    else if (!isGoalMet(goal, code, fmt)) verdict = how === "flip" || how === "step" ? diagnose(goal, code, fmt) : "";
    else if (how === "typed") verdict = "These are the bits. Look at them, then start again and make them yourself.";
    else if (how === "flip" || how === "step") succeed();
  }

  function succeed() {
    kept[at].solved = true;
    writeProgress(goals[at].id, kept[at]);
    tone = "good";
    verdict = kept.every(({ solved }) => solved) ? "✓ Solved, and with it all goals." : "✓ Solved.";
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
    feedback: () => verdict,
    begin({ fmt, code }) {
      if (kept.some(({ solved }) => solved)) shareSolved();
      if (formatOf(goals[at]) !== fmt || isGoalMet(goals[at], code, fmt)) begin();
    },
    draw() {
      const solved = kept.filter((goal) => goal.solved).length;
      setText(count, `Goal ${at + 1} of ${goals.length}`);
      setText(text, goals[at].text);
      setText(said, verdict);
      said.dataset.tone = tone;
      const hints = hintsOf(goals[at], formatOf(goals[at])).length;
      setText(hint, kept[at].hints < hints ? `Hint (${hints - kept[at].hints} left)` : "Hint");
      next.hidden = !kept[at].solved || solved === goals.length;
      forget.hidden = solved === 0;
      steps.forEach((step, i) => {
        setText(step, kept[i].solved ? "✓" : String(i + 1));
        step.setAttribute("aria-label", `Goal ${i + 1}${kept[i].solved ? ", solved" : ""}`);
        if (i === at) step.setAttribute("aria-current", "step");
        else step.removeAttribute("aria-current");
      });
    },
  };
}
