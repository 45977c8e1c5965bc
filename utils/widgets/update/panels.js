// The parts of Update: its fields with their sliders, what became of one update, and the table of many.

import { finite } from "../shared/numbers/codec.js";
import { asDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { setText } from "../shared/page/elements.js";
import { linePanel } from "./line.js";
import { isZeroNumber, KEEPINGS, manyUpdates, oneUpdate, plusNumber, quotient } from "./steps.js";
import {
  fateText, manyText, nearText, readWeight, storedAfter, typedText, verdict, wayText,
} from "./words.js";

const TENTHS = ["1", "1.3", "1.6", "2", "2.5", "3.2", "4", "5", "6.3", "8"]; // ten steps to a power of ten

const wholeNumbers = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const place = (text, size) => ({ text, size });
const bySize = (places) => places.sort((a, b) => a.size - b.size);

// Four places to a binade, with every power of two. Text is decimal where it is short.
function weightPlaces() {
  return wholeNumbers(-14, 8).flatMap((e) => [1, 1.25, 1.5, 1.75].map((part) => {
    const binary = part === 1 ? `2^${e}` : `${part}*2^${e}`;
    return place(e >= -5 ? String(part * 2 ** e) : binary, part * 2 ** e);
  }));
}

// Ten places to a power of ten, and every power of two: halves of gaps are such.
function updatePlaces() {
  const tenths = wholeNumbers(-8, 0).flatMap((decade) => TENTHS.map((tenth) => {
    const text = `${tenth}e${decade}`;
    return place(decade >= -4 ? String(Number(text)) : text, Number(text));
  }));
  const twos = wholeNumbers(-26, -4).map((e) => place(`2^${e}`, 2 ** e)); // from 1/8 on tenths are enough
  return bySize([...tenths, ...twos, place("10", 10)]);
}

/** The places of each slider, by size: { text, size }. */
export const SLIDER_PLACES = { weight: weightPlaces(), update: updatePlaces() };

/** The place on a slider that is nearest to a number, as an index of SLIDER_PLACES. */
export function sliderPlace(name, number) {
  const size = isZeroNumber(number) ? 0 : Math.abs(quotient(number, finite(0, 1n)));
  const apart = SLIDER_PLACES[name].map((one) => Math.abs(Math.log2(one.size) - Math.log2(size)));
  return size === 0 ? 0 : apart.indexOf(Math.min(...apart));
}

export function updateControls(h, actions, names) {
  const format = h("select", { class: "mp-input", on: { change: () => actions.setFormat(format.value) } },
    names.map((name) => h("option", { value: name }, FORMATS[name].label)));
  const term = (name, label) => {
    const input = h("input", { class: "mp-input", type: "text", spellcheck: "false", autocomplete: "off", size: "8", on: { change: () => actions.setText(name, input.value) } });
    const slider = h("input", {
      type: "range", min: 0, max: SLIDER_PLACES[name].length - 1, step: 1, "aria-label": `${label}, coarsely`,
      on: { input: () => actions.slide(name, Number(slider.value)), change: () => actions.slideEnd() },
    });
    return { input, slider, node: h("div", { class: "mp-up-term" }, h("label", { class: "mp-field" }, label, input), slider) };
  };
  const terms = {
    weight: term("weight", "w, the weight"),
    update: term("update", "dw, added to it: −lr·g"),
  };
  return {
    node: h("div", { class: "mp-up-controls" }, terms.weight.node, terms.update.node,
      h("label", { class: "mp-field mp-up-format" }, "Format of w", format)),
    describeBy(message) {
      for (const { input } of Object.values(terms)) input.ariaDescribedByElements = [message];
    },
    draw({ fmt, typed, wrong, numbers }) {
      format.value = fmt.name;
      for (const [name, { input, slider }] of Object.entries(terms)) {
        if (input.value !== typed[name]) input.value = typed[name];
        input.setAttribute("aria-invalid", String(wrong === name));
        slider.value = sliderPlace(name, numbers[name]);
        slider.setAttribute("aria-valuetext", nearText(numbers[name]));
      }
    },
  };
}

/** Buttons of which one is pressed: [[key, text]]. */
export function choiceRow(h, label, choices, take) {
  const buttons = choices.map(([key, text]) => [key, h("button", { class: "mp-button", type: "button", on: { click: () => take(key) } }, text)]);
  return {
    node: h("div", { class: "mp-up-choices", role: "group", "aria-label": label }, buttons.map(([, button]) => button)),
    draw: (chosen) => buttons.forEach(([key, button]) => button.setAttribute("aria-pressed", String(key === chosen))),
  };
}

export function oneUpdatePanel(h, actions) {
  const ways = choiceRow(h, "How the weight is kept", KEEPINGS.map(({ key, label }) => [key, label]), actions.setKeeping);
  const line = linePanel(h);
  const facts = Object.fromEntries(["w", "exact", "half", "stored"].map((name) => [name, { key: h("dt"), value: h("dd") }]));
  const said = h("p", { class: "mp-up-said" });
  return {
    node: h("div", { class: "mp-up-one" }, h("p", { class: "mp-up-title" }, "One update, and the weight is kept with"), ways.node, line.node,
      h("dl", { class: "mp-up-facts" }, Object.values(facts).map(({ key, value }) => h("div", {}, key, value))), said),
    draw(state) {
      const { one, update, keeping, fmt, weight, good } = state;
      ways.draw(keeping);
      line.draw(state);
      const set = (name, key, value) => { setText(facts[name].key, key); setText(facts[name].value, value); };
      set("w", "w as stored", `${nearText(one.w, 14, 6)}${weight.exact ? "" : ` for ${typedText(good.weight, weight.number)}`}`);
      set("exact", "w + dw exactly", nearText(one.exact, 16, 12));
      set("half", "half the gap to the next", halfText(one, update));
      set("stored", "stored", storedAfter(one, keeping));
      const { kind, text } = verdict(one, update, keeping, fmt);
      setText(said, text);
      said.className = `mp-up-said mp-up-${kind}`;
    },
  };
}

// Half the gap on the side of the update, and how much of it the update is.
function halfText({ gap, up, down, share }, update) {
  const half = nearText(finite(0, gap.num, 2n * gap.den), 10, 4);
  const side = up.num * down.den === down.num * up.den ? "" : update.sign ? " below" : " above";
  return isZeroNumber(update) ? `${half}${side}` : `${half}${side}; |dw| is ${nearText(share, 3, 3)} of it`;
}

const OTHER_WEIGHTS = ["1", "0.05", "0.001"];

/** The same update at other weights: what is lost at one is kept at another. */
export function otherWeightsPanel(h, actions) {
  const buttons = OTHER_WEIGHTS.map((text) => {
    const share = h("span");
    return { text, share, button: h("button", { class: "mp-button mp-up-other", type: "button", on: { click: () => actions.setText("weight", text) } }, h("b", {}, `w = ${text}`), share) };
  });
  const title = h("p", { class: "mp-up-title" });
  return {
    node: h("div", { class: "mp-up-others" }, title, h("div", { class: "mp-up-other-row", role: "group", "aria-label": "The same dw, another w" }, buttons.map(({ button }) => button))),
    draw({ fmt, update, good, keeping }) {
      setText(title, `The same dw = ${typedText(good.update, update)} beside another w, kept the same way`);
      for (const { text, share, button } of buttons) {
        const one = oneUpdate(readWeight(text, fmt).code, update, fmt);
        setText(share, fateText(one, update, keeping, fmt));
        button.setAttribute("aria-pressed", String(good.weight.trim() === text));
      }
    },
  };
}

export const COUNTS = [1, 10, 100, 1000];

export function manyUpdatesPanel(h, actions) {
  const counts = choiceRow(h, "How many updates", COUNTS.map((count) => [count, count === 1 ? "once" : `${count} times`]), actions.setCount);
  const caption = h("caption");
  const exact = h("td", { class: "mp-up-number" });
  const rows = Object.fromEntries(KEEPINGS.map(({ key, label }) => {
    const [stored, more, percent, bits] = [h("span"), h("small"), h("span", { class: "mp-up-percent" }), h("small")];
    const [bar, range] = [h("span", { class: "mp-up-bar" }), h("span", { class: "mp-up-range" })];
    const row = h("tr", {}, h("th", { scope: "row" }, label, " ", bits), h("td", { class: "mp-up-number" }, stored, " ", more),
      h("td", {}, h("span", { class: "mp-up-way" }, h("span", { class: "mp-up-track", "aria-hidden": "true" }, bar, range), percent)));
    return [key, { row, stored, more, percent, bits, bar, range }];
  }));
  const head = ["kept", "stored", "of the way"].map((title) => h("th", { scope: "col" }, title));
  const table = h("table", { class: "mp-up-table" }, caption, h("thead", {}, h("tr", {}, head)), h("tbody", {},
    h("tr", {}, h("th", { scope: "row" }, "exactly"), exact, h("td", { class: "mp-up-percent" }, "100\u00a0%")),
    KEEPINGS.map(({ key }) => rows[key].row)));
  return {
    node: h("div", { class: "mp-up-many" }, h("div", { class: "mp-up-many-head" }, h("p", { class: "mp-up-title" }, "The same update again and again"), counts.node), table),
    draw({ fmt, one, update, count, keeping, good }) {
      counts.draw(count);
      const times = finite(update.sign, update.num * BigInt(count), update.den);
      const [w, whole] = [asDouble(one.w), quotient(times, finite(0, 1n))];
      setText(caption, `From ${nearText(one.w, 8, 5).replace("≈\u00a0", "")}, ${count === 1 ? "one update" : `${count} updates`} of ${typedText(good.update, update)}`);
      setText(exact, nearText(plusNumber(one.w, times), 10, 6));
      const many = manyUpdates({ fmt, w, update, count });
      for (const { key, more: beside = () => 0 } of KEEPINGS) {
        const { stored, more, share, low = share, high = share } = manyText(many, key, { w, whole });
        const row = rows[key];
        setText(row.stored, stored);
        setText(row.more, more);
        setText(row.bits, `${[fmt.bits, beside(fmt.bits)].filter(Boolean).join(" + ")} bits`);
        setText(row.percent, wayText(share));
        const [from, to] = [low, high].map((x) => 80 * Math.min(Math.max(x || 0, 0), 1.25)); // 100 % of the way is at 80 % of the track
        row.bar.style.width = `${(from + to) / 2}%`;
        row.range.style.cssText = `left: ${from}%; width: ${to - from}%`;
        row.range.hidden = to === from;
        row.row.classList.toggle("mp-up-chosen", key === keeping);
      }
    },
  };
}
