// The parts of SoftmaxRow: presets and choices, the scores, and the table of steps with a bar in each cell.

import { choiceButtons } from "../shared/page/choice_controls.js";
import { setText } from "../shared/page/elements.js";
import { withCommas } from "../shared/words/sizes.js";
import { maskControls } from "./mask_controls.js";
import { innerFormat } from "./steps.js";
import { rowNumber, sumNumber } from "./words.js";

const SR_REACH = 65504; // where the bar of a score ends; to there it grows with the logarithm
const SR_NARROW = 6; // characters of a number in the table of a phone
export const SR_TRAITS = ["scores", "masked", "format", "softmax", "mask", "copies", "value", "softmax_format"];

/** Whether a row is that of a preset. */
export const isPreset = (preset, row) => SR_TRAITS.every((name) => JSON.stringify(preset[name]) === JSON.stringify(row[name]));

/** Rows to start from, the formats, the softmax, the mask and the number of copies. */
export function rowControls(h, actions, facts) {
  const presets = facts.presets.map(({ label, ...row }) => ({ row, button: h("button", { class: "mp-button", type: "button", on: { click: () => actions.preset(row) } }, label) }));
  const buttons = (label, options, trait) => choiceButtons(h, { label, options, take: (value) => actions.set({ [trait]: value }), name: "mp-sr-buttons" });
  const [format, softmax] = [buttons("Dtype of scores and mask", facts.formats, "format"), buttons("Softmax", facts.softmaxes, "softmax")];
  const mask = maskControls(h, actions, facts);
  const copies = h("input", {
    class: "mp-input mp-sr-count", type: "text", inputmode: "numeric", autocomplete: "off", size: "7",
    on: { change: () => actions.typeCopies(copies.value), keydown: stepCopies },
  });
  const step = (by, text, name) => h("button", { class: "mp-button mp-sr-step", type: "button", "aria-label": name, on: { click: () => actions.stepCopies(by) } }, text);

  function stepCopies(event) {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions.stepCopies(by);
  }

  return {
    node: h("div", { class: "mp-sr-controls" },
      h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, "Rows to try"), h("div", { class: "mp-sr-presets", role: "group", "aria-label": "Rows to try" }, presets.map(({ button }) => button))),
      h("div", { class: "mp-sr-choices" }, format.node, softmax.node, mask.nodes)),
    copies: h("div", { class: "mp-field" }, h("span", { "aria-hidden": "true" }, "Copies of the row"),
      h("div", { class: "mp-sr-copies" }, step(-1, "−", "One copy fewer"), h("label", {}, h("span", { class: "mp-unseen" }, "Copies of the row"), copies), step(1, "+", "One copy more"))),
    describeBy(message) {
      copies.ariaDescribedByElements = [message];
      mask.describeBy(message);
    },
    draw(view) {
      const { row, typed, faults } = view;
      for (const preset of presets) preset.button.setAttribute("aria-pressed", String(isPreset(preset.row, row)));
      format.press(row.format);
      softmax.press(row.softmax);
      mask.draw(view);
      if (copies.value !== typed.copies) copies.value = typed.copies;
      copies.setAttribute("aria-invalid", String("copies" in faults));
    },
  };
}

/** A field for each score, and whether it is masked; `copies`: the control of how often the row is repeated. */
export function scoreFields(h, actions, most, copies) {
  const fields = Array.from({ length: most }, (_, i) => {
    const input = h("input", {
      class: "mp-input mp-sr-score", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      on: { input: () => actions.typeScore(i, input.value, { refuse: false }), change: () => actions.typeScore(i, input.value, { refuse: true }), keydown: (event) => event.key === "Enter" && actions.typeScore(i, input.value, { refuse: true }) },
    });
    const box = h("input", { type: "checkbox", "aria-label": `Score ${i + 1} is masked`, on: { change: () => actions.mask(i, box.checked) } });
    const node = h("div", { class: "mp-sr-field" }, h("label", { class: "mp-field" }, h("span", {}, `Score ${i + 1}`), input),
      h("label", { class: "mp-check" }, box, h("span", {}, "masked")));
    return { node, input, box };
  });
  const less = h("button", { class: "mp-button", type: "button", on: { click: () => actions.resize(-1) } }, "remove the last");
  const more = h("button", { class: "mp-button", type: "button", on: { click: () => actions.resize(1) } }, "add a score");
  return {
    node: h("div", { class: "mp-sr-scores" }, h("div", { class: "mp-sr-fields", role: "group", "aria-label": "Scores" }, fields.map(({ node }) => node)),
      h("div", { class: "mp-sr-size" }, more, less, copies)),
    describeBy(message) {
      for (const { input } of fields) input.ariaDescribedByElements = [message];
    },
    draw({ row, typed, faults }) {
      fields.forEach(({ node, input, box }, i) => {
        node.hidden = i >= typed.scores.length;
        const text = typed.scores[i] ?? "";
        if (input.value !== text) input.value = text;
        input.setAttribute("aria-invalid", String(i in faults));
        box.checked = row.masked[i] === true;
      });
      more.setAttribute("aria-disabled", String(typed.scores.length >= most));
      less.setAttribute("aria-disabled", String(typed.scores.length <= 1));
    },
  };
}

/** What a number is called and coloured as: "inf", "minus-inf", "nan" or "finite". */
export const kindOf = (x) => (Number.isNaN(x) ? "nan" : x === Infinity ? "inf" : x === -Infinity ? "minus-inf" : "finite");

/** The length of a number's bar, from -1 to 1: of a score by its logarithm, else as a share of `whole`. */
export function barLength(x, whole = null) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? 0 : Math.sign(x);
  if (whole !== null) return whole > 0 ? x / whole : 0;
  return Math.sign(x) * Math.min(Math.log1p(Math.abs(x)) / Math.log1p(SR_REACH), 1);
}

const narrowForms = [(x) => rowNumber(x, 2, 4), (x) => exponential(x, 1), (x) => exponential(x, 0)];

const exponential = (x, places) => x.toExponential(places).replace("e+", "e").replace(/-/g, "−");

const shortest = (x, forms) => forms.map((form) => form(x)).find((text) => text.length <= SR_NARROW) ?? exponential(x, 0);

/** A number in at most six characters, for a phone. */
export const narrowNumber = (x) => shortest(x, narrowForms);

/** A sum in at most six characters, whose digits show how far it is from 1. */
export const narrowSum = (x) => shortest(x, [(sum) => rowNumber(sum, 4, 5), ...narrowForms]);

// A number with as many characters as there is room for.
function numberSpan(h, textOf = rowNumber, narrowOf = narrowNumber) {
  const [wide, narrow] = [h("span", { class: "mp-sr-wide" }), h("span", { class: "mp-sr-narrow" })];
  return {
    node: h("span", { class: "mp-sr-number" }, wide, narrow),
    draw(x) {
      setText(wide, textOf(x));
      setText(narrow, narrowOf(x));
    },
  };
}

// Whether the softmax computes in a format that may lack a masked score: float32 has all numbers of the others.
const isNarrowed = (row, inner) => inner.name !== row.format && inner.name !== "float32";

function captionText(name, row, inner) {
  const own = inner.name === row.format ? "" : `, softmax in ${inner.name}`;
  const copies = row.copies > 1 ? `, repeated ${withCommas(String(row.copies))} times` : "";
  return `${name} in ${row.format}${own}${copies}, step by step`;
}

// The steps of every score, and the sums below; `name`: of the row.
function stepTable(h, most, name) {
  const columns = ["stored", "after", "cast", "shifted", "exps", "weights"];
  const heads = columns.map((column) => h("th", { scope: "col" }, { stored: "stored", after: "after the mask", cast: "", shifted: "minus the largest", exps: "exp", weights: "weight" }[column]));
  const rows = Array.from({ length: most }, (_, i) => {
    const badge = h("span", { class: "mp-sr-badge" }, "masked");
    const cells = columns.map((column) => {
      const [number, bar] = [numberSpan(h), h("span", { class: "mp-sr-fill" })];
      const isSigned = !["exps", "weights"].includes(column);
      return { number, bar, room: isSigned ? 50 : 100, node: h("td", {}, number.node, h("span", { class: `mp-sr-bar${isSigned ? " mp-sr-signed" : ""}`, "aria-hidden": "true" }, bar)) };
    });
    return { badge, cells, node: h("tr", {}, h("th", { scope: "row" }, h("span", { class: "mp-unseen" }, "score "), String(i + 1), badge), cells.map(({ node }) => node)) };
  });
  const sums = columns.map(() => {
    const number = numberSpan(h, sumNumber, narrowSum);
    return { number, node: h("td", {}, number.node) };
  });
  const caption = h("caption", {});
  const table = h("table", { class: "mp-table mp-sr-table" }, caption, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "score"), heads)),
    h("tbody", {}, rows.map(({ node }) => node)), h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "sum"), sums.map(({ node }) => node))));

  function show(cell, x, length) {
    cell.number.draw(x);
    cell.node.dataset.kind = kindOf(x);
    cell.bar.style.width = `${(Math.abs(length) * cell.room).toFixed(1)}%`;
    cell.bar.toggleAttribute("data-below", length < 0);
  }

  return {
    node: table,
    draw({ row, steps }) {
      const inner = innerFormat(row);
      const isShown = columns.map((column) => steps[column] !== null && (column !== "cast" || isNarrowed(row, inner)));
      setText(caption, captionText(name, row, inner));
      setText(heads[2], `as ${inner.name}`);
      table.toggleAttribute("data-cast", isShown[2]);
      const largestExp = Math.max(0, ...steps.exps.filter(Number.isFinite));
      const lengthOf = { exps: (x) => barLength(x, largestExp), weights: (x) => Math.min(barLength(x * row.copies, 1), 1) };
      const origin = columns.findIndex((column, k) => isShown[k] && steps[column].some(Number.isNaN)); // where NaN begins
      columns.forEach((column, k) => {
        for (const node of [heads[k], sums[k].node]) node.hidden = !isShown[k];
        rows.forEach(({ cells }, i) => {
          cells[k].node.hidden = !isShown[k];
          if (!isShown[k] || i >= row.masked.length) return;
          const x = steps[column][i];
          show(cells[k], x, (lengthOf[column] ?? barLength)(x));
          cells[k].node.toggleAttribute("data-origin", k === origin && Number.isNaN(x));
        });
      });
      rows.forEach(({ node, badge }, i) => {
        node.hidden = i >= row.masked.length;
        badge.hidden = row.masked[i] !== true;
      });
      [[4, steps.total], [5, steps.weightSum]].forEach(([k, x]) => {
        sums[k].number.draw(x);
        sums[k].node.dataset.kind = kindOf(x);
      });
    },
  };
}

/** What is said of a row, and its steps. */
export function resultPart(h, most, name) {
  const verdict = h("p", { class: "mp-verdict mp-sr-verdict" });
  const table = stepTable(h, most, name);
  return {
    text: () => verdict.textContent,
    node: h("div", { class: "mp-sr-result" }, verdict, table.node),
    draw(row, { steps, verdict: text }) {
      setText(verdict, text);
      table.draw({ row, steps });
    },
  };
}
