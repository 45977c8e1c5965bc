// DecisionTree: what you have and what you want in; the way to a recipe and its memory out, or what to check for a fault.
// The facts come from facts.py as the trait `facts`.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { ANSWER, bytesText, GIGABYTE, parseMemory, parseWhole, roomOf, STALE } from "../shared/words/amounts.js";
import { dtOutlook } from "./outlook.js";
import { dtPath, dtVerdict } from "./words.js";

const DT_TRAITS = ["task", "symptom", "card", "memory", "cards", "model", "optimizer", "batch", "length"];
const DT_MEND = "mend";

function dtButtons(h, label, rows, take) {
  const buttons = rows.map(([name, words]) => h("button", { class: "mp-button", type: "button", "data-name": name, on: { click: () => take(name) } }, words));
  return {
    node: h("div", { class: "mp-dt-buttons", role: "group", "aria-label": label }, buttons),
    draw(chosen) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.name === chosen));
    },
  };
}

function dtFields(h, facts, actions) {
  const fields = [];
  const wrong = h("p", { class: "mp-dt-wrong", role: "alert" });
  const field = (label, input, show) => {
    const words = h("span", {}, label);
    const node = h("label", { class: "mp-field" }, words, input);
    fields.push({ input, show });
    return { node, words };
  };
  const select = (label, name, options) => {
    const input = h("select", { class: "mp-input", on: { change: () => actions.set(name === "card" ? { card: input.value, memory: 0 } : { [name]: input.value }) } });
    return { ...field(label, input, (state) => { input.value = state[name]; }), fill(rows) {
      input.replaceChildren(...rows.map(([value, text]) => h("option", { value }, text)));
    }, start: options };
  };
  const typed = (label, read, name, show) => {
    const input = h("input", { class: "mp-input", type: "text", inputmode: "numeric", spellcheck: "false", autocomplete: "off", on: { change: () => {
      const { amount, wrong: message } = read(input.value);
      if (message) complain(input, message);
      else actions.set({ [name]: amount });
    } } });
    return field(label, input, (state) => { input.value = show(state); });
  };
  const whole = (label, name, most) => typed(label, (text) => parseWhole(text, label, most), name, (state) => state[name].toLocaleString("en"));

  function complain(input, message) {
    setText(wrong, `${message} ${STALE}`);
    wrong.hidden = false;
    input.setAttribute("aria-invalid", "true");
    actions.stale(true);
  }

  const card = select("Card", "card");
  card.fill(facts.order.map((name) => [name, facts.cards[name].label]));
  const model = select("Model", "model");
  const optimizer = select("Optimizer", "optimizer");
  optimizer.fill(facts.names);
  const batch = whole("Texts of a step", "batch", facts.most);
  const length = whole("Tokens of a text", "length", facts.most);
  const others = [typed("Memory (GB)", parseMemory, "memory", (state) => String(roomOf(facts, state) / GIGABYTE)), whole("Number of cards", "cards", facts.most_cards)];
  let models = null;
  return {
    node: h("div", { class: "mp-dt-form" }, h("div", { class: "mp-dt-wide" }, card.node), others.map(({ node }) => node), h("div", { class: "mp-dt-model" }, model.node), optimizer.node, batch.node, length.node, wrong),
    draw(state) {
      const generating = state.task === "generate";
      if (models !== generating) {
        model.fill(facts.models.filter((name) => !generating || facts.architectures[name].family !== "distilbert").map((name) => [name, name]));
        models = generating;
      }
      optimizer.node.hidden = generating;
      setText(length.words, generating ? "Tokens in the cache" : "Tokens of a text");
      for (const { input, show } of fields) {
        show(state);
        input.setAttribute("aria-invalid", "false");
      }
      setText(wrong, ""); // all fields show what holds again
      wrong.hidden = true;
    },
  };
}

/** The way to the recipe: questions and answers, then the verdict and the bytes. */
function dtResult(h, facts) {
  const path = h("ol", { class: "mp-dt-path" });
  const verdict = h("p", { class: "mp-verdict mp-dt-verdict" });
  const body = h("tbody", {});
  const heads = ["on each card", "bytes"].map((text) => h("th", { scope: "col" }, text));
  return {
    node: h("div", { class: "mp-dt-result" }, h("h3", {}, "The way"), path, verdict, h("table", { class: "mp-table" }, h("thead", {}, h("tr", {}, heads)), body), h("p", { class: "mp-dt-source" }, facts.left_out)),
    draw(state) {
      const decision = dtOutlook(facts, state);
      path.replaceChildren(...dtPath(facts, state, decision).map(([question, answer]) => h("li", {}, h("span", { class: "mp-dt-question" }, question), " ", h("span", { class: "mp-dt-answer" }, answer))));
      setText(verdict, dtVerdict(facts, decision));
      verdict.dataset.fits = String(decision.fits);
      const rows = facts.items.filter(([name]) => decision.items[name]).map(([name, label]) => [label, decision.items[name]]);
      body.replaceChildren(...[...rows, ["together", decision.total]].map(([label, bytes]) => h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, bytesText(bytes)))));
      return verdict.textContent;
    },
  };
}

/** Whether this is a page of the built book, where the other chapters lie beside it; JupyterLab has other addresses. */
const inBook = () => document.querySelector("[data-mp-widget]") !== null;

/** What to look at, given what a run shows. */
function dtLooks(h, facts, actions) {
  const buttons = dtButtons(h, "What the run shows", facts.symptoms, (symptom) => actions.set({ symptom }));
  const looks = h("ol", { class: "mp-dt-path" });
  return {
    node: h("div", { class: "mp-dt-result" }, buttons.node, h("h3", {}, "Check, in this order"), looks),
    draw({ symptom }) {
      const [, words, rows] = facts.symptoms.find(([name]) => name === symptom);
      buttons.draw(symptom);
      const named = (chapter, page) => (page && inBook() ? h("a", { href: page }, chapter) : chapter);
      looks.replaceChildren(...rows.map(([look, chapter, page]) => h("li", {}, h("span", { class: "mp-dt-question" }, look), " ", h("span", { class: "mp-dt-answer" }, "→ ", named(chapter, page)))));
      return `${words}: ${rows.length} checks, the first: ${rows[0][0]}`;
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const read = () => readTraits(model, DT_TRAITS);
  const status = h("p", { class: "mp-unseen", role: "status" });
  const answer = h("div", { role: "group", "aria-label": ANSWER.fresh });
  const save = bindModel(model, DT_TRAITS, draw, stop.signal);
  const actions = {
    stale(on) {
      answer.toggleAttribute("data-stale", on);
      answer.setAttribute("aria-label", on ? ANSWER.stale : ANSWER.fresh);
      if (on) setText(status, ""); // the next answer is said even if it is the same
    },
    set(change) {
      const other = change.task === "generate" && facts.architectures[model.get("model")].family === "distilbert" ? { model: "GPT-2" } : {};
      save({ ...other, ...change });
      setText(status, draw());
    },
  };
  const tasks = dtButtons(h, "What it is about", facts.tasks, (task) => actions.set({ task }));
  const [form, result, looks] = [dtFields(h, facts, actions), dtResult(h, facts), dtLooks(h, facts, actions)];

  function draw() {
    const state = read();
    const mending = state.task === DT_MEND;
    tasks.draw(state.task);
    form.node.hidden = result.node.hidden = mending;
    looks.node.hidden = !mending;
    actions.stale(false);
    if (mending) return looks.draw(state);
    form.draw(state);
    return result.draw(state);
  }

  answer.append(result.node, looks.node);
  el.classList.add("mp-widget", "mp-decision-tree");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-dt" }, tasks.node, form.node, answer, status)));
  draw();
  return () => stop.abort();
}

export default { render };
