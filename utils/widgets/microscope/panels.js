// The parts of Microscope: the levels, the places of the terms, the answer, the notebook, and the claim.

import { setText } from "../shared/page/elements.js";
import { addTerms, PLACES } from "./adders.js";
import { powerText, sumOfTerms, termText } from "./terms.js";
import { answerTexts, askedText, PROPERTY_NAMES, SCOPE_SAYS } from "./words.js";

/** The levels as numbered buttons, and what is told of the one that is hidden now. */
export function levelPanel(h, actions, { goals, facts }) {
  const all = [...goals, facts.random];
  const steps = all.map(({ name, title }, i) => h("button", {
    class: "mp-scope-step", type: "button", on: { click: () => actions.choose(name) },
  }, i < goals.length ? String(i + 1) : title));
  const title = h("h3", {});
  const told = h("p", { class: "mp-scope-told" });
  const seed = h("input", {
    class: "mp-input mp-scope-seed", type: "text", inputmode: "numeric", size: "5", autocomplete: "off",
    on: { change: () => actions.setSeed(seed.value) },
  });
  const next = h("button", { class: "mp-button", type: "button", on: { click: actions.nextSeed } }, "next seed");
  const seeds = h("div", { class: "mp-scope-seeds" }, h("label", { class: "mp-field" }, "Seed", seed), next);
  return {
    node: h("div", { class: "mp-scope-level" }, h("div", { class: "mp-scope-head" }, title,
      h("div", { class: "mp-scope-steps", role: "group", "aria-label": "Hidden adders" }, steps)), told, seeds),
    draw({ level, solved, seed: drawn }) {
      const number = all.indexOf(level) + 1;
      setText(title, number > goals.length ? level.title : `Adder ${number}: ${level.title}`);
      setText(told, askedText(level));
      seeds.hidden = level.name !== facts.random.name;
      seed.value = String(drawn);
      steps.forEach((step, i) => {
        const isSolved = solved.has(all[i].id);
        if (i < goals.length) setText(step, isSolved ? "✓" : String(i + 1));
        step.setAttribute("aria-label", `${i < goals.length ? `Adder ${i + 1}: ` : ""}${all[i].title}${isSolved ? ", named" : ""}`);
        if (all[i] === level) step.setAttribute("aria-current", "step");
        else step.removeAttribute("aria-current");
      });
    },
  };
}

/** Eight places for terms, and buttons that change one of them or several. */
export function termPlaces(h, actions, presets) {
  const button = (text, click, label) => h("button", { class: "mp-button", type: "button", "aria-label": label, on: { click } }, text);
  let at = 1;
  const fields = Array.from({ length: PLACES }, (_, i) => {
    const keys = { ArrowUp: () => actions.step(i, input.value, 2), ArrowDown: () => actions.step(i, input.value, 0.5), Enter: () => actions.enter(i, input.value) };
    const input = h("input", {
      class: "mp-input mp-scope-term", type: "text", spellcheck: "false", autocomplete: "off", "aria-label": `Term ${i + 1}`,
      on: {
        focus: () => {
          at = i;
          setText(name, `Term ${i + 1}`);
        },
        change: () => actions.type(i, input.value),
        keydown: (event) => {
          if (!Object.hasOwn(keys, event.key)) return;
          event.preventDefault();
          keys[event.key]();
        },
      },
    });
    return input;
  });
  const name = h("span", { class: "mp-scope-which" }, "Term 2");
  const tells = h("p", { class: "mp-scope-tells" }, "Press one to see what it tells.");
  const message = h("p", { class: "mp-scope-message" });
  for (const input of fields) input.ariaDescribedByElements = [message];
  const own = [
    button("× 2", () => actions.scale(at, 2), "× 2: double the term"), button("÷ 2", () => actions.scale(at, 0.5), "÷ 2: halve the term"),
    button("+ ¼", () => actions.quarter(at), "+ ¼: the next of 1, 1.25, 1.5, 1.75 times the power of two"),
    button("±", () => actions.scale(at, -1), "±: turn the term’s sign"), button("0", () => actions.put(at, 0), "0: empty the term"),
  ];
  const add = h("button", { class: "mp-button mp-primary mp-scope-add", type: "button", on: { click: actions.add } }, "Add");
  return {
    node: h("div", { class: "mp-scope-sum" },
      h("div", { class: "mp-scope-buttons", role: "group", "aria-label": "Sums to begin with" },
        h("span", { class: "mp-scope-which" }, "Begin with"), presets.map(([text, terms, what]) => button(text, () => {
          actions.load(terms);
          setText(tells, what);
        }))), tells,
      h("div", { class: "mp-scope-places", role: "group", "aria-label": "Terms" },
        fields.map((input, i) => h("div", { class: "mp-scope-place" }, h("span", { "aria-hidden": "true" }, String(i + 1)), input))), message,
      h("div", { class: "mp-scope-buttons", role: "group", "aria-label": "Change terms" }, name, own, button("all signs ±", actions.turn)),
      h("div", { class: "mp-scope-go" }, add, button("halve the smallest and add", actions.shrink),
        h("p", { class: "mp-scope-keys" }, "In a field: ↑ and ↓ double and halve the term, Enter adds."))),
    addButton: add,
    draw({ terms, typed, wrong }) {
      fields.forEach((input, i) => {
        const text = wrong?.place === i ? typed : termText(terms[i]);
        if (input.value !== text) input.value = text;
        input.setAttribute("aria-invalid", String(wrong?.place === i));
        input.classList.toggle("mp-scope-none", terms[i] === 0);
      });
      setText(message, wrong?.text ?? "");
    },
  };
}

/** What came back last: as powers of two, in decimal, in hexadecimal and as bits. */
export function answerPanel(h) {
  const [asked, sum, decimal, hex] = ["mp-scope-asked", "mp-scope-back", "mp-scope-decimal", "mp-scope-hex"].map((name) => h("p", { class: name }));
  const fields = ["sign", "exponent", "fraction"].map((name) => h("span", { class: `mp-scope-${name}` }));
  const bits = h("p", { class: "mp-scope-bits" }, fields);
  return {
    node: h("div", { class: "mp-scope-answer" }, asked, sum, decimal, hex, bits),
    draw({ adder, latest, terms, wrong }) {
      for (const node of [sum, decimal, hex, bits]) node.classList.toggle("mp-scope-away", latest === null);
      const isOld = latest !== null && (wrong !== null || latest.some((x, i) => x !== terms[i]));
      const said = isOld ? ["Not added yet. Before, the unit added", "and returned"] : ["The unit adds", "and returns"];
      setText(asked, latest ? `${said[0]} ${sumOfTerms(latest)} ${said[1]}` : "The unit has not been asked yet. Press Add.");
      const texts = answerTexts(latest ? addTerms(adder, latest) : 0);
      setText(sum, texts.power);
      setText(decimal, `in decimal ${texts.decimal}`);
      setText(hex, `float32 ${texts.hex}`);
      fields.forEach((field, i) => setText(field, texts.fields[i]));
    },
  };
}

/** The experiments of this level, the newest first. */
export function notebook(h, actions) {
  const caption = h("caption", {});
  const rows = h("tbody", {});
  const head = ["no.", "terms", "returned", "exactly"].map((text) => h("th", { scope: "col" }, text));
  const clear = h("button", { class: "mp-link", type: "button", on: { click: actions.clear } }, "begin the notebook anew");
  return {
    node: h("div", { class: "mp-scope-notes" }, h("div", { class: "mp-scope-scroll", tabindex: "0", role: "region", "aria-label": "Notebook" },
      h("table", { class: "mp-table mp-scope-table" }, caption, h("thead", {}, h("tr", {}, head)), rows)), clear),
    draw({ done, adder }) {
      setText(caption, done.length ? `Notebook: ${done.length} experiment${done.length === 1 ? "" : "s"}` : `Notebook. ${SCOPE_SAYS.empty}`);
      clear.classList.toggle("mp-scope-away", done.length === 0);
      rows.replaceChildren(...done.map((terms, i) => {
        const again = h("button", { class: "mp-scope-again", type: "button", "aria-label": `Put experiment ${i + 1} into the places`, on: { click: () => actions.take(terms) } }, String(i + 1));
        const exact = terms.reduce((total, x) => total + x, 0);
        const cells = [sumOfTerms(terms), powerText(addTerms(adder, terms)), powerText(exact)].map((text) => h("td", {}, text));
        return h("tr", {}, h("th", { scope: "row" }, again), cells);
      }).reverse());
    },
  };
}

/** What the reader says that the adder is, and what becomes of it. */
export function claimPanel(h, actions, { facts }) {
  const bits = h("input", { class: "mp-input mp-scope-count", type: "text", inputmode: "numeric", autocomplete: "off", size: "4", on: {
    input: () => actions.claim("bits", bits.value),
    keydown: ({ key }) => key === "Enter" && actions.judge(),
  } });
  const select = (name) => {
    const options = [["", "?"], ...facts.choices[name].map(([, text], i) => [String(i), text])];
    const node = h("select", { class: "mp-input", on: { change: () => actions.claim(name, node.value) } }, options.map(([value, text]) => h("option", { value }, text)));
    return node;
  };
  const inputs = { bits, ...Object.fromEntries(["rule", "order", "extra", "flush"].map((name) => [name, select(name)])) };
  const fields = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, h("label", { class: "mp-field" }, h("span", {}, PROPERTY_NAMES[name]), input)]));
  const verdict = h("p", { class: "mp-verdict mp-scope-verdict" });
  const take = h("button", { class: "mp-button", type: "button", on: { click: actions.takeCounterexample } }, "put this sum into the places");
  const say = h("button", { class: "mp-button", type: "button", on: { click: actions.judge } }, "This is the adder");
  const next = h("button", { class: "mp-button mp-primary", type: "button", on: { click: actions.next } }, "Next adder");
  return {
    node: h("section", { class: "mp-scope-claim", "aria-label": "Your claim" }, h("h3", {}, "What is it?"),
      h("div", { class: "mp-scope-fields" }, Object.values(fields)),
      h("div", { class: "mp-scope-buttons" }, say, take, next), verdict),
    draw({ level, claims, verdict: text, tone, counterexample, isSolved }) {
      for (const [name, input] of Object.entries(inputs)) {
        fields[name].hidden = !level.asks.includes(name);
        if (input.value !== (claims[name] ?? "")) input.value = claims[name] ?? "";
      }
      setText(verdict, text);
      verdict.dataset.tone = tone;
      take.hidden = counterexample === null;
      next.hidden = !isSolved;
    },
    focus: () => (next.hidden ? say : next).focus(),
  };
}
