// The controls of NumberLine around its picture. Each maker takes h (shared/page/elements.js) and the actions, and gives
// { node, draw(state) }.

import { ROUNDINGS, toHex, ulpPower } from "../shared/numbers/codec.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { setText } from "../shared/page/elements.js";
import { compareNumbers, resultsOf, tieWinner } from "./grid.js";
import { powerOfTwo, timesFraction, viewWidth } from "./view.js";
import {
  awayText, binsText, chanceText, countText, errorText, explainRule, factsAbout, lastBitText, placeText, resultText,
  RULE_NAMES, wayText,
} from "./words.js";

const FORMAT_GROUPS = [["64 and 32 bits", 32], ["19 and 16 bits", 16], ["8 bits", 8], ["6 and 4 bits", 1]];
const VIEW_NAMES = [["x", "around x"], ["one", "around 1"], ["subnormals", "subnormals"], ["end", "the end"]];
export const DRAWS = 100;

export function linePickers(h, actions, names) {
  const select = h("select", { class: "mp-input", on: { change: () => actions.setFormat(select.value) } });
  let ceiling = Infinity;
  for (const [title, floor] of FORMAT_GROUPS) {
    const rows = names.map((name) => FORMATS[name]).filter(({ bits }) => bits >= floor && bits < ceiling);
    const options = rows.map(({ name, label }) =>
      h("option", { value: name }, label === name || name === "tf32" ? label : `${label} (${name})`));
    if (options.length) select.append(h("optgroup", { label: title }, options));
    ceiling = floor;
  }
  const take = () => actions.typeNumber(input.value);
  const input = h("input", {
    class: "mp-input", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    enterkeyhint: "done", on: { change: take, keydown: (event) => event.key === "Enter" && take() },
  });
  const saturate = h("input", { type: "checkbox", on: { change: () => actions.setSaturate(saturate.checked) } });
  const always = h("span", {});
  const node = h("div", { class: "mp-nl-pickers" },
    h("label", { class: "mp-field mp-nl-format" }, h("span", {}, "Format"), select),
    h("label", { class: "mp-field mp-grow mp-nl-x-field" }, h("span", {}, "x, any number: 3.1415, 1/3, 2^-24"), input),
    h("button", { class: "mp-button mp-nl-set", type: "button", on: { click: take } }, "Set x"),
    h("label", { class: "mp-nl-check" }, saturate, h("span", {}, "saturate", always)));
  return {
    node,
    describeBy(message) {
      input.ariaDescribedByElements = [message]; // by element, so that no id is needed; older browsers ignore it
    },
    draw({ fmt, typed, wrong, saturate: on }) {
      select.value = fmt.name;
      if (input.value !== typed) input.value = typed;
      input.setAttribute("aria-invalid", String(wrong));
      saturate.checked = on || !fmt.has_nan;
      saturate.disabled = !fmt.has_nan;
      setText(always, fmt.has_nan ? "" : " (always)");
    },
  };
}

export function viewButtons(h, actions) {
  const button = (text, label, click) => h("button", { class: "mp-button mp-nl-icon", type: "button", "aria-label": label, title: label, on: { click } }, text);
  const named = VIEW_NAMES.map(([name, text]) => [name, h("button", { class: "mp-button", type: "button", on: { click: () => actions.show(name) } }, text)]);
  const hole = h("button", { class: "mp-button", type: "button", "aria-pressed": "false", on: { click: actions.toggleHole } }, "no subnormals");
  return {
    node: h("div", { class: "mp-nl-views" },
      h("div", { class: "mp-nl-group", role: "group", "aria-label": "Move the line" },
        button("−", "zoom out", () => actions.zoom(2n, 1n)), button("+", "zoom in", () => actions.zoom(1n, 2n)),
        button("‹", "move left", () => actions.shift(-0.5)), button("›", "move right", () => actions.shift(0.5))),
      h("div", { class: "mp-nl-group", role: "group", "aria-label": "Show" }, h("span", { class: "mp-nl-caption" }, "Show"), named.map(([, node]) => node), hole)),
    draw({ fmt, withoutSubnormals }) {
      for (const [name, node] of named) {
        if (name === "subnormals") node.setAttribute("aria-disabled", String(!fmt.has_zero));
      }
      hole.setAttribute("aria-pressed", String(withoutSubnormals && fmt.has_zero));
      hole.setAttribute("aria-disabled", String(!fmt.has_zero));
    },
  };
}

/** What the rule does with x, the tie's last bits, and the button that draws lots. */
export function lessonPanel(h, actions) {
  const text = h("p", { class: "mp-nl-said" });
  const bits = h("p", { class: "mp-nl-bits" });
  const roll = h("button", { class: "mp-button", type: "button", on: { click: actions.roll } }, `roll ${DRAWS} times`);
  const rolled = h("span", { class: "mp-nl-rolled" });
  const bar = h("span", { class: "mp-nl-bar", "aria-hidden": "true" });
  const dice = h("div", { class: "mp-nl-dice" }, roll, bar, rolled);
  const node = h("div", { class: "mp-nl-lesson" }, text, bits, dice);
  return {
    node, text,
    draw({ x, rule, fmt, shown, saturate, message, wrong, sample, view }) {
      const said = explainRule(x, rule, fmt, { shown, saturate });
      setText(text, message || said.text);
      node.dataset.rule = rule;
      text.classList.toggle("mp-wrong", wrong);
      const away = awayText(x, view, shown);
      const small = isTooSmallToSee(x, view, fmt) ? ["The gap here is too narrow to be seen: choose “around x”."] : [];
      if (away) bits.replaceChildren(`${away} of this view: choose “around x” to see it.`);
      else bits.replaceChildren(...(said.tie && !message ? tieNodes(h, said.tie, rule, fmt) : small));
      bits.hidden = rule === "stochastic" && !away;
      dice.hidden = rule !== "stochastic";
      bar.hidden = !sample;
      if (sample) bar.replaceChildren(...sample.counts.map((count, i) => h("span", { class: i ? "mp-nl-up" : "mp-nl-down", style: `flex-grow:${count}` })));
      setText(rolled, sample?.text ?? (resultsOf(x, fmt, { saturate }).stochastic.length > 1 ? "Each draw goes up or down by chance." : "Here there is one way to go."));
    },
  };
}

const isTooSmallToSee = (x, view, fmt) =>
  compareNumbers(timesFraction(powerOfTwo(ulpPower(x, fmt)), 150n), viewWidth(view)) < 0;

// "0.28125 has the significand 1.001, 0.3125 has 1.010": the last bits marked, the winner in bold.
function tieNodes(h, { below, above }, rule, fmt) {
  const winner = tieWinner(below, fmt, rule);
  return [below, above].flatMap((place, i) => {
    const [start, last] = lastBitText(place, fmt);
    const significand = h("span", { class: "mp-nl-significand" }, start, h("b", { class: "mp-nl-last" }, last));
    const text = `${placeText(place, fmt)} has ${i ? "" : "the significand "}`;
    return [i ? ", " : "", h("span", { class: `mp-nl-tie${place === winner ? " mp-nl-winner" : ""}` }, text, significand)];
  });
}

export function factsPanel(h) {
  const rows = [0, 1, 2].map(() => [h("dt", {}), h("dd", {})]);
  return {
    node: h("dl", { class: "mp-nl-facts" }, rows.map((pair) => h("div", {}, pair))),
    draw({ x, fmt }) {
      factsAbout(x, fmt).forEach(([name, text], i) => {
        setText(rows[i][0], name);
        setText(rows[i][1], text);
      });
    },
  };
}

/** The six rules with their results for x, each with the radio button that chooses it. */
export function rulesTable(h, actions) {
  const group = `mp-nl-${Math.random().toString(36).slice(2)}`; // one group of radio buttons for each widget of a page
  const rows = ROUNDINGS.map((rule) => {
    const radio = h("input", { type: "radio", name: group, value: rule, on: { change: () => radio.checked && actions.setRule(rule) } });
    const cells = [h("td", { class: "mp-nl-stored" }), h("td", {}), h("td", { class: "mp-nl-code" })];
    const more = rule === "stochastic" ? h("span", { class: "mp-nl-offer" }, "choose it to roll") : null;
    const row = h("tr", { "data-rule": rule, on: { click: () => radio.checked || actions.setRule(rule) } },
      h("th", { scope: "row" }, h("label", {}, radio, h("span", {}, RULE_NAMES[rule], more))), cells);
    return { rule, radio, cells, row };
  });
  const head = ["rounding rule", "stored", "error, ulp", "code"].map((text) => h("th", { scope: "col", class: text === "code" ? "mp-nl-code" : null }, text));
  return {
    node: h("div", { role: "radiogroup", "aria-label": "Rounding rule" }, h("table", { class: "mp-nl-rules" },
      h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(({ row }) => row)))),
    draw({ x, fmt, rule: chosen, saturate }) {
      const results = resultsOf(x, fmt, { saturate });
      for (const { rule, radio, cells, row } of rows) {
        radio.checked = rule === chosen;
        row.classList.toggle("mp-nl-now", rule === chosen);
        const outcomes = results[rule];
        fillLines(h, cells[0], outcomes.map((outcome) => storedText(x, outcome, fmt, outcomes.length > 1)));
        fillLines(h, cells[1], outcomes.map(({ code }) => errorText(x, code, fmt)));
        fillLines(h, cells[2], outcomes.map(({ code }) => toHex(code, fmt)));
      }
    },
  };
}

const storedText = (x, { code, chance }, fmt, several) =>
  `${wayText(x, code, fmt)}\u00a0${resultText(code, fmt)}${several ? ` (${chanceText(chance)})` : ""}`.trim();

function fillLines(h, cell, texts) {
  while (cell.children.length > texts.length) cell.lastChild.remove();
  texts.forEach((text, i) => {
    if (!cell.children[i]) cell.append(h("span", {}));
    setText(cell.children[i], text);
  });
}

/** The line under the picture: how many values are in view, and what the bins mean. */
export function captionPanel(h) {
  const count = h("span", { class: "mp-nl-count" });
  const bins = h("span", {});
  return {
    node: h("p", { class: "mp-nl-legend" }, count, " ", bins),
    draw({ view, fmt, rule }) {
      setText(count, countText(view, fmt));
      setText(bins, binsText(rule, fmt));
    },
  };
}
