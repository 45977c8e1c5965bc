// Microscope: a hidden adder returns sums, and the reader names its properties. The state and its changes.

import { exponentOfDouble } from "../shared/numbers/double_rounding.js";
import { NumberTextError } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { readProgress, writeProgress } from "../shared/page/progress.js";
import { addTerms, randomAdder } from "./adders.js";
import { judge } from "./judge.js";
import { answerPanel, claimPanel, levelPanel, notebook, termPlaces } from "./panels.js";
import { inPlaces, isTerm, readTerm, readTerms, sumOfTerms, termsText } from "./terms.js";
import { answerTexts, SCOPE_SAYS, verdictText } from "./words.js";

const SCOPE_TRAITS = ["level", "seed", "terms", "experiments"];
const MOST_CHARACTERS = 280; // of all experiments in an address; the loader leaves out what is longer than 300
const MOST_CLAIMED = 30; // bits

const INTRODUCTION = [
  "A matrix unit adds in secret, and its float32 results do not say how.",
  "So ask it: 1\u00a0+\u00a0x\u00a0−\u00a01 returns x where the total has room for both, and something else where it has not.",
  "If all three meet in one addition, it shows instead how much is kept of an addend, and 1\u00a0+\u00a0x alone shows the total.",
  "Press Add, then halve the smallest term and add again, until something is lost.",
].join(" ");

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const [goals, facts] = [model.get("goals"), model.get("facts")];
  const levels = [...goals, facts.random];
  const solved = new Set([...(model.get("solved") ?? []), ...goals.map(({ id }) => id).filter((id) => readProgress(id).solved)]);
  // `typed` stands in a place and may be faulty: then `wrong` has its place and a sentence.
  const state = { terms: [], done: [], typed: "", wrong: null, claims: {}, verdict: "", tone: "", counterexample: null };
  const notebooks = new Map(); // the experiments of the adders that were there before
  const save = bindModel(model, SCOPE_TRAITS, follow, stop.signal);

  const level = () => levels.find(({ name }) => name === model.get("level"));
  const range = () => ({ lowest: level().lowest, largest: facts.largest });
  const adder = () => (level() === facts.random ? randomAdder(model.get("seed"), facts.choices) : level().adder);
  const notebookName = () => `${model.get("level")} ${level() === facts.random ? model.get("seed") : ""}`;
  const say = (text) => setText(status, status.textContent === text ? `${text}\u00a0` : text);

  const seedAfter = () => (model.get("seed") % facts.most_seed) + 1;

  function setTerms(terms) {
    state.terms = inPlaces(terms);
    state.wrong = null;
    save({ terms: termsText(state.terms) });
    draw();
  }

  // The newest experiments, as many as an address has room for.
  function saveExperiments() {
    let texts = state.done.map(termsText);
    while (texts.join(";").length > MOST_CHARACTERS) texts = texts.slice(1);
    save({ experiments: texts.join(";") });
  }

  function begin(name, seed = model.get("seed")) {
    const next = levels.find((one) => one.name === name);
    notebooks.set(notebookName(), state.done);
    save({ level: name, seed, terms: next.begin, experiments: "" });
    follow();
    state.done = notebooks.get(notebookName()) ?? [];
    saveExperiments();
    draw();
    say(`${next.title}. ${next.told}`);
  }

  const changed = (i, x) => state.terms.map((term, k) => (k === i ? x : term));
  const put = (i, x) => {
    if (isTerm(x, range())) setTerms(changed(i, x));
    else say("No smaller and no larger term: that is the end of the range.");
  };

  function type(i, text) {
    try {
      setTerms(changed(i, readTerm(text, range())));
      return true;
    } catch (error) {
      if (!(error instanceof NumberTextError)) throw error;
      Object.assign(state, { typed: text, wrong: { place: i, text: error.message } });
      draw();
      say(error.message);
      return false;
    }
  }

  const actions = {
    choose: (name) => begin(name),
    setSeed(text) {
      const seed = Number(text);
      if (Number.isInteger(seed) && seed >= 1 && seed <= facts.most_seed) return begin(facts.random.name, seed);
      show(`A seed is a whole number from 1 to ${facts.most_seed}. It is still ${model.get("seed")}.`, "");
      say(state.verdict);
    },
    nextSeed: () => begin(facts.random.name, seedAfter()),
    type,
    put,
    scale: (i, factor) => put(i, state.terms[i] === 0 ? 1 : state.terms[i] * factor),
    quarter(i) {
      const x = state.terms[i] || 1;
      const power = 2 ** exponentOfDouble(x);
      put(i, Math.sign(x) * (Math.abs(x) + power / 4 >= 2 * power ? power : Math.abs(x) + power / 4));
    },
    shrink() {
      if (state.wrong) return say(state.wrong.text);
      const least = Math.min(...state.terms.filter((x) => x !== 0).map(Math.abs));
      const terms = state.terms.map((x) => (Math.abs(x) === least ? x / 2 : x));
      if (!terms.every((x) => isTerm(x, range()))) return say("The smallest term is at the end of the range.");
      setTerms(terms);
      actions.add();
    },
    turn: () => setTerms(state.terms.map((x) => (x === 0 ? 0 : -x))),
    load: (text) => setTerms(readTerms(text, range())),
    step(i, text, factor) {
      if (type(i, text)) actions.scale(i, factor);
    },
    enter(i, text) {
      if (type(i, text)) actions.add();
    },
    add() {
      if (state.wrong) return say(state.wrong.text);
      state.done.push(state.terms);
      saveExperiments();
      draw();
      const { power } = answerTexts(addTerms(adder(), state.terms));
      say(`Experiment ${state.done.length}: ${sumOfTerms(state.terms)} returns ${power}.`);
    },
    take(terms) {
      setTerms(terms);
      say(`In the places: ${sumOfTerms(terms)}.`);
    },
    clear() {
      state.done = [];
      saveExperiments();
      draw();
      places.addButton.focus(); // the button that was pressed is gone
    },
    claim(name, text) {
      state.claims[name] = text;
    },
    takeCounterexample() {
      const { counterexample } = state;
      if (counterexample === null) return;
      state.counterexample = null;
      actions.take(counterexample);
      places.addButton.focus();
    },
    judge() {
      const answer = claimed();
      if (typeof answer === "string") show(answer, "");
      else conclude(judge(adder(), answer, { done: state.done, range: range() }));
      say(state.verdict);
    },
    next() {
      const at = goals.indexOf(level());
      const later = [...goals.slice(at + 1), ...goals].find(({ id }) => !solved.has(id));
      begin((later ?? facts.random).name, later ? undefined : seedAfter());
      places.addButton.focus();
    },
  };

  // The adder that the reader claims, with the hidden one's properties where nothing is asked; or what is missing.
  function claimed() {
    if (state.done.length === 0) return SCOPE_SAYS.ask;
    const claim = { ...adder() };
    for (const name of level().asks) {
      const text = (state.claims[name] ?? "").trim();
      if (text === "") return SCOPE_SAYS.choose;
      claim[name] = name === "bits" ? Number(text) : facts.choices[name][Number(text)][0];
    }
    return Number.isInteger(claim.bits) && claim.bits >= 2 && claim.bits <= MOST_CLAIMED ? claim : SCOPE_SAYS.bits;
  }

  function conclude(found) {
    const isRight = found.kind === "right" || found.kind === "alike";
    const { id } = level();
    if (isRight) solved.add(id);
    if (isRight && level() !== facts.random) {
      writeProgress(id, { ...readProgress(id), solved: true });
      model.set("solved", goals.map((goal) => goal.id).filter((one) => solved.has(one)));
      model.save_changes();
    }
    show(verdictText(found, level()), isRight ? "good" : "", found.kind === "differs" ? found.terms : null);
  }

  function show(verdict, tone, counterexample = null) {
    Object.assign(state, { verdict, tone, counterexample });
    draw();
  }

  const status = h("p", { class: "mp-unseen", role: "status" });
  const view = { goals, facts };
  const [chosen, places, answer] = [levelPanel(h, actions, view), termPlaces(h, actions, facts.presets), answerPanel(h)];
  const [notes, claim] = [notebook(h, actions), claimPanel(h, actions, view)];

  function draw() {
    const now = {
      ...state, level: level(), seed: model.get("seed"), adder: adder(), solved, latest: state.done.at(-1) ?? null,
      isSolved: state.tone === "good",
    };
    for (const part of [chosen, places, answer, notes, claim]) part.draw(now);
  }

  function follow() {
    const isNamed = solved.has(level().id) && level() !== facts.random;
    Object.assign(state, {
      terms: readTerms(model.get("terms"), range()), wrong: null, claims: {}, counterexample: null, tone: "",
      verdict: isNamed ? SCOPE_SAYS.before : SCOPE_SAYS.start,
      done: model.get("experiments").split(";").filter((text) => text !== "").map((text) => readTerms(text, range())),
    });
    solved.delete(facts.random.id);
    draw();
  }

  if (!level()) throw new Error(`no level is called ${model.get("level")}`);
  follow();
  el.classList.add("mp-widget", "mp-microscope");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-scope" }, h("p", { class: "mp-scope-intro" }, INTRODUCTION),
    chosen.node, places.node, answer.node, notes.node, claim.node, status)));
  return () => stop.abort();
}

export default { render };
