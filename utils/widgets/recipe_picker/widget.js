// RecipePicker: which recipe suits a card, a task and a size. The facts come from advice.py
// as the trait `facts`.

import { dtDecide, dtHeld } from "../shared/cost/decide.js";
import { copyText, elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import {
  ANSWER, bytesText, COMMA, countText, fewDigits, GIGABYTE, parseMemory, readNumber, roomOf, STALE, usableOf,
} from "../shared/words/amounts.js";

const MOST_PARAMETERS = 1e13;
const UNITS = { "": 1, k: 1e3, thousand: 1e3, m: 1e6, million: 1e6, b: 1e9, g: 1e9, billion: 1e9, t: 1e12, trillion: 1e12 };
const MARKS = { tensor: "●", native: "●", emulated: "◐", none: "○" };
const KINDS_OF_BYTES = {
  weights: "weights", gradients: "gradients", optimizer: "Adam's two moments", casts: "autocast's 16-bit copies",
  activations: "activations", logits: "gradients of the logits", cache: "keys and values",
};
const LEAST_SHARE = 1e-6; // of the total; a smaller row says nothing
const OF_TEXTS = ["activations", "logits", "cache"]; // they grow with the text, not with the parameters

const inOrder = (facts, table) => facts.order[table].map((name) => [name, facts[table][name]]);

/** The decision about one text, with its words: `advise` in advice.py. */
export function advise(facts, { card, task, parameters, memory }) {
  const decision = dtDecide(facts, { card, task, memory, model: parameters, optimizer: "adamw", batch: 1, cards: 1 });
  const { plan, items, total, room, fits, like } = decision;
  const { recipe, length } = plan;
  const levers = dtHeld(facts, decision);
  const second = recipe !== decision.first;
  const { device, support } = facts.cards[card];
  const adapters = levers.find((lever) => lever in facts.loaded);
  const own = facts.code[task][[...levers].reverse().find((lever) => lever in facts.code[task]) ?? recipe];
  const code = adapters ? facts.loaded[adapters] + facts.code.train[recipe] : own;
  const words = { once: levers.map((lever) => facts.once[lever] ?? "").join(""), device, dtype: facts.dtypes[recipe] };
  return {
    recipe,
    levers,
    reason: task !== "generate" ? (adapters ? `adapters-${recipe}` : recipe) : second ? "generate-emulated" : `generate-${recipe}`,
    scaler: recipe === "16-mixed",
    emulated: support[facts.dtypes[recipe]] === "emulated",
    items,
    total,
    spare: Number(usableOf(room)) - total,
    fits,
    like,
    length,
    code: code.replace(/\{(once|device|dtype)\}/g, (_, name) => words[name]),
  };
}

/** Read "66M", "1.3 billion", "7e9" or "124,439,808" as { count } of parameters; { wrong } says why it is none. */
export function parseCount(text) {
  const read = readNumber(text);
  if (read?.comma) return { wrong: `“${text}” ${COMMA} 7.5B.` };
  const amount = read ? read.value * UNITS[read.unit] : NaN;
  if (Number.isNaN(amount)) {
    return { wrong: `“${text}” is not a number of parameters: write it like 66M, 1.3 billion or 124439808.` };
  }
  if (amount < 1) return { wrong: `“${text}” is less than one parameter: is a unit missing, as in 0.5B?` };
  if (amount > MOST_PARAMETERS) return { wrong: `“${text}” is more than ${countText(MOST_PARAMETERS)} parameters.` };
  if (read.unit === "" && !Number.isInteger(amount)) {
    return { wrong: `“${text}” is not a whole number of parameters: is a unit missing, as in 7.5B?` };
  }
  return { count: Math.round(amount) };
}

/** What the memory says about the recipe, in a few sentences. */
export function fitText(facts, state, { total, spare, fits, like, length }) {
  const what = state.task === "generate" ? "keys and values" : "activations";
  const counted = `The ${what} are those of one text of ${length.toLocaleString("en")} tokens in ${like}.`;
  const amount = `${bytesText(total)} of ${bytesText(roomOf(facts, state))}`;
  if (!fits) return `${amount}: it does not fit, because a tenth stays free for what is not counted; ${bytesText(-spare)} are missing. ${facts.too_big[state.task]} ${counted}`;
  return `${amount}: it fits. With a tenth kept free for what is not counted, ${bytesText(spare)} are left. ${counted}`;
}

function controls(h, facts, actions) {
  const cards = inOrder(facts, "cards").map(([value, { label }]) => h("option", { value }, label));
  const card = h("select", { class: "mp-input", on: { change: () => actions.set({ card: card.value, memory: 0 }) } }, cards);
  const tasks = inOrder(facts, "tasks").map(([name, label]) =>
    h("button", { class: "mp-button", type: "button", "data-task": name, on: { click: () => actions.set({ task: name }) } }, label));
  const wrong = h("p", { class: "mp-rp-wrong", role: "alert" });
  const text = (label, read, extra) => {
    const input = h("input", { class: "mp-input", type: "text", spellcheck: "false", autocomplete: "off", ...extra, on: { change: () => read(input.value) } });
    return { input, node: h("label", { class: "mp-field" }, h("span", {}, label), input) };
  };
  const size = text("Parameters", (typed) => {
    const { count, wrong: message } = parseCount(typed);
    if (message) complain(size, message);
    else actions.set({ parameters: count });
  }, {});
  const memory = text("Memory (GB)", (typed) => {
    const { amount, wrong: message } = parseMemory(typed);
    if (message) complain(memory, message);
    else actions.set({ memory: amount });
  }, { inputmode: "decimal" });
  const models = facts.examples.map(([name, count]) =>
    h("button", { class: "mp-link", type: "button", on: { click: () => actions.set({ parameters: count }) } }, name));

  function complain({ input }, message) {
    setText(wrong, `${message} ${STALE}`);
    wrong.hidden = false;
    input.setAttribute("aria-invalid", "true");
    actions.stale(true);
  }

  const group = h("div", { class: "mp-rp-tasks", role: "group", "aria-label": "Task" }, tasks);
  return {
    node: h("div", { class: "mp-rp-form" },
      h("label", { class: "mp-field mp-grow" }, h("span", {}, "Card"), card), memory.node,
      h("div", { class: "mp-field" }, h("span", {}, "Task"), group),
      h("div", { class: "mp-field mp-rp-size" }, size.node, h("span", { class: "mp-rp-models" }, "for example ", models)), wrong),
    draw(state) {
      card.value = state.card;
      for (const button of tasks) button.setAttribute("aria-pressed", String(button.dataset.task === state.task));
      size.input.value = state.parameters.toLocaleString("en");
      memory.input.value = String(roomOf(facts, state) / GIGABYTE);
      setText(wrong, ""); // both fields show what holds again
      wrong.hidden = true;
      for (const { input } of [size, memory]) input.setAttribute("aria-invalid", "false");
    },
  };
}

function answer(h, facts) {
  const name = h("span", { class: "mp-rp-recipe" });
  const scaler = h("span", { class: "mp-rp-chip" });
  const full = h("span", { class: "mp-rp-chip mp-rp-full" }, "does not fit");
  const how = h("span", {});
  const why = h("p", {});
  const note = h("p", { class: "mp-rp-note" });
  return {
    node: h("div", { class: "mp-rp-answer" }, h("p", {}, name, " ", how, " ", scaler, " ", full), why, note),
    draw({ card, task }, advice) {
      setText(name, advice.recipe);
      setText(scaler, advice.scaler ? "needs a loss scaler" : "no loss scaler");
      scaler.hidden = task === "generate";
      full.hidden = advice.fits;
      setText(how, advice.levers.length ? `with ${advice.levers.join(" and ")}` : "");
      setText(why, [facts.reasons[advice.reason], ...advice.levers.map((lever) => facts.levers[lever])].join(" "));
      setText(note, facts.cards[card].note);
      note.hidden = note.textContent === "";
    },
  };
}

function support(h, facts) {
  const list = h("ul", { class: "mp-rp-types" });
  const title = h("h3", {});
  return {
    node: h("div", {}, title, list),
    draw({ card }) {
      const { label, architecture, support: states } = facts.cards[card];
      setText(title, `What ${architecture ? `the ${label}, ${architecture},` : "it"} multiplies`);
      list.replaceChildren(...inOrder(facts, "types").map(([type, name]) =>
        h("li", { "data-state": states[type] }, h("span", { "aria-hidden": "true" }, `${MARKS[states[type]]} `), h("strong", {}, name), ` ${facts.states[states[type]]}`)));
    },
  };
}

function ledger(h, facts) {
  const body = h("tbody", {});
  const fill = h("span", { class: "mp-rp-fill" });
  const bar = h("div", { class: "mp-rp-bar", "aria-hidden": "true" }, fill);
  const fit = h("p", { class: "mp-rp-fit" });
  const heads = ["kind", "per parameter", "in all"].map((text) => h("th", { scope: "col" }, text));
  return {
    node: h("div", {}, h("h3", {}, "What it needs"), h("table", {}, h("thead", {}, h("tr", {}, heads)), body), bar, fit),
    draw(state, advice) {
      const kinds = Object.entries(KINDS_OF_BYTES).filter(([kind]) => advice.items[kind] > LEAST_SHARE * advice.total);
      const row = (label, bytes, each) => h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, each), h("td", {}, bytesText(bytes)));
      const rows = kinds.map(([kind, label]) => row(label, advice.items[kind], OF_TEXTS.includes(kind) ? "" : fewDigits(advice.items[kind] / state.parameters)));
      body.replaceChildren(...rows, row(`together, for ${countText(state.parameters)} parameters`, advice.total, ""));
      fill.style.width = `${Math.min(100, (100 * advice.total) / roomOf(facts, state))}%`;
      bar.dataset.fits = String(advice.fits);
      setText(fit, fitText(facts, state, advice));
    },
  };
}

function code(h) {
  const text = h("code", {});
  const copy = h("button", { class: "mp-button", type: "button", on: { click } }, "Copy");
  async function click() {
    setText(copy, (await copyText(text.textContent, copy)) ? "Copied" : "Select it and copy");
  }
  return {
    node: h("div", {}, h("div", { class: "mp-rp-code-head" }, h("h3", {}, "In torch"), copy), h("pre", { tabindex: "0", role: "region", "aria-label": "Lines of torch" }, text)),
    draw(_state, advice) {
      setText(text, advice.code);
      setText(copy, "Copy");
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const names = ["card", "task", "parameters", "memory"];
  const save = bindModel(model, names, draw, stop.signal);
  const read = () => readTraits(model, names);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const result = h("div", { class: "mp-rp-result", role: "group", "aria-label": ANSWER.fresh });
  const actions = {
    stale(on) {
      result.toggleAttribute("data-stale", on);
      result.setAttribute("aria-label", on ? ANSWER.stale : ANSWER.fresh);
      if (on) setText(status, ""); // the next answer is said even if it is the same
    },
    set(change) {
      save(change);
      draw();
      const state = read();
      const advice = advise(facts, state);
      setText(status, `${[advice.recipe, ...advice.levers].join(", ")}. ${fitText(facts, state, advice)}`);
    },
  };
  const panels = [controls(h, facts, actions), answer(h, facts), support(h, facts), ledger(h, facts), code(h)];

  function draw() {
    const state = read();
    const advice = advise(facts, state);
    for (const panel of panels) panel.draw(state, advice);
    actions.stale(false);
  }

  const [form, reply, types, sums, lines] = panels.map(({ node }) => node);
  result.append(reply, h("div", { class: "mp-rp-columns" }, types, sums), lines);
  el.classList.add("mp-widget", "mp-recipe-picker");
  const source = h("p", { class: "mp-rp-source" }, facts.source);
  el.replaceChildren(h("div", { class: "mp-panel" }, form, result, source, status));
  draw();
  return () => stop.abort();
}

export default { render };
