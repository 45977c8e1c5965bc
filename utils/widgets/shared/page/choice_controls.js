// Controls that several widgets share: buttons of which one is pressed, and a slider that says its value.

import { setText } from "./elements.js";

/** { node, press(value) }: a button for each of `options`, pairs of a value and its text; `take(value)` at a click. */
export function choiceButtons(h, { label, options, take, name }) {
  const buttons = options.map(([value, text]) => ({ value, button: h("button", { class: "mp-button", type: "button", on: { click: () => take(value) } }, text) }));
  return {
    node: h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, label), h("div", { class: name, role: "group", "aria-label": label }, buttons.map(({ button }) => button))),
    press(chosen) {
      for (const { value, button } of buttons) button.setAttribute("aria-pressed", String(value === chosen));
    },
  };
}

/** { node, draw(at, most, text) }: a slider over whole numbers from 0; `take(at)` while it moves, `end()` when it is let go. */
export function valueSlider(h, { label, take, end }) {
  const shown = h("strong", {});
  const input = h("input", { type: "range", min: 0, step: 1, on: { input: () => take(Number(input.value)), change: end } });
  return {
    node: h("label", { class: "mp-slide" }, h("span", {}, label, shown), input),
    draw(at, most, text) {
      input.max = String(most);
      input.value = String(at);
      input.setAttribute("aria-valuetext", text);
      setText(shown, text);
    },
  };
}
