// OpLookup: a table of operations with a search field and a filter. The rows come from __init__.py as the trait `rows`.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";

const OL_MARKS = { narrow: "↓", wide: "↑", promote: "⇡", follows: "=", error: "×" };
const OL_DIFFERS = "differs";
const OL_WHY = {
  "": "Choose a rule, and read why autocast has it.",
  [OL_DIFFERS]: "The lists of the two devices are not the same: a model that is stable on one may not be on the other.",
};
const OL_PREFIX = /^(torch\.)?(nn\.)?(functional\.|f\.|linalg\.|tensor\.)?/;
const OL_IN_PLACE = /^([a-z0-9_]*[a-z0-9])_\s*(\(.*)?$/;
const OL_LEFT_ALONE = "In-place forms (names that end in “_”) are left alone: the tensor keeps its dtype.";
// Modules without a rule of their own: each is made of several operations.
const OL_SEVERAL = new Set([
  "lstm", "gru", "rnn", "multiheadattention", "transformer", "transformerencoder", "transformerdecoder",
  "transformerencoderlayer", "transformerdecoderlayer",
]);

const withoutPrefix = (text) => text.trim().toLowerCase().replace(OL_PREFIX, "");

/** A name as it is compared: "F.layer_norm", "nn.LayerNorm" and "layer norm" are all "layernorm". */
export const plainName = (text) => withoutPrefix(text).replace(/[^a-z0-9]/g, "");

const plainNames = ({ name, also }) => [name, ...also].map(plainName);
const inPlaceBase = (query) => withoutPrefix(query).match(OL_IN_PLACE)?.[1];

/** Whether a row is called what is typed, and does not only contain it. */
function isCalled(row, query) {
  const wanted = plainName(query);
  return wanted ? plainNames(row).includes(wanted) : row.also.includes(query.trim());
}

/** The names of the rows that a query means: those that contain it; of a qualified name that a row has, that row. */
export function namesLike(query, rows) {
  const wanted = plainName(query);
  const [base, called] = [inPlaceBase(query), rows.filter((row) => isCalled(row, query))];
  let like = called;
  if (query.trim() === "") like = rows;
  else if (OL_SEVERAL.has(wanted)) like = [];
  else if (base) like = rows.filter(({ name }) => name.toLowerCase().includes(`${base}_`));
  else if (wanted && !(called.length && query.includes("."))) like = rows.filter((row) => plainNames(row).some((name) => name.includes(wanted)));
  return like.map(({ name }) => name);
}

/** Whether a row passes the filter: a rule of either device, or rules that differ. */
export function passes({ here, there }, rule) {
  if (rule === "") return true;
  return rule === OL_DIFFERS ? here !== there : here === rule || there === rule;
}

// A long name may break after an underscore or a bracket.
const brokenName = (h, name) => name.split(/(?<=[_(])/).flatMap((part) => [part, h("wbr")]);

function olCell(h, rules, rule, note) {
  return h("td", { "data-rule": rule },
    h("span", { class: "mp-ol-mark", "aria-hidden": "true" }, OL_MARKS[rule]), h("span", {}, rules[rule].label),
    note ? h("span", { class: "mp-ol-note" }, ` ${note}`) : null);
}

function olTable(h, rows, rules, heads) {
  const bodies = new Map();
  for (const row of rows) {
    if (!bodies.has(row.group)) bodies.set(row.group, []);
    const node = h("tr", {}, h("th", { scope: "row" }, brokenName(h, row.name)), olCell(h, rules, row.here, row.here_note), olCell(h, rules, row.there, row.there_note));
    bodies.get(row.group).push({ row, node });
  }
  const groups = [...bodies].map(([group, lines]) => ({
    lines,
    node: h("tbody", {}, h("tr", { class: "mp-ol-group" }, h("th", { colspan: "3", scope: "rowgroup" }, group)), lines.map(({ node }) => node)),
  }));
  const head = h("thead", {}, h("tr", {}, ["operation", ...heads].map((text) => {
    const [name, ...rest] = text.split(": ");
    return h("th", { scope: "col" }, name, rest.length ? h("span", { class: "mp-ol-note" }, ` ${rest.join(": ")}`) : null);
  })));
  const box = h("div", { class: "mp-ol-box", tabindex: "0", role: "region", "aria-label": "Operations" },
    h("table", {}, head, groups.map(({ node }) => node)));
  return {
    node: box,
    draw(shown) {
      for (const group of groups) {
        for (const { row, node } of group.lines) node.hidden = !shown.has(row.name);
        group.node.hidden = group.lines.every(({ node }) => node.hidden);
      }
      box.hidden = shown.size === 0;
      box.scrollTop = 0;
    },
  };
}

function olFilter(h, rows, rules, heads, choose) {
  const others = { "": "all", [OL_DIFFERS]: `${heads.map((head) => head.split(":")[0]).join(" and ")} differ` };
  const names = ["", ...Object.keys(rules).filter((rule) => rows.some((row) => passes(row, rule))), OL_DIFFERS];
  const buttons = names.map((rule) =>
    h("button", { class: "mp-button mp-ol-rule", type: "button", "data-rule": rule, on: { click: () => choose(rule) } },
      OL_MARKS[rule] ? h("span", { class: "mp-ol-mark", "aria-hidden": "true" }, OL_MARKS[rule]) : null,
      `${rules[rule]?.label ?? others[rule]} `, h("span", { class: "mp-ol-count" }, String(rows.filter((row) => passes(row, rule)).length))));
  const why = h("p", { class: "mp-ol-why" });
  return {
    node: h("div", { class: "mp-ol-filter" }, h("div", { class: "mp-ol-rules", role: "group", "aria-label": "Rule" }, buttons), why),
    draw(rule) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.rule === rule));
      setText(why, rules[rule]?.why ?? OL_WHY[rule]);
    },
  };
}

/** What is shown, in a sentence: which rows, and for what is not there no dtype. */
export function foundText(shown, rows, query, rule, rules) {
  const [typed, all, count, base] = [query.trim(), rows.length, shown.size, inPlaceBase(query)];
  if (OL_SEVERAL.has(plainName(query))) {
    return `“${typed}” is made of several operations, and each follows its own rule. Print their dtypes with PrintDtypes, as in “Autocast opened”.`;
  }
  const hasForm = rows.some(({ name }) => name === `${base}_ (in place)`);
  const inPlace = base && !hasForm && (count === 0 || rows.some((row) => isCalled(row, base))) ? OL_LEFT_ALONE : "";
  if (count === 0 && inPlace) return inPlace;
  const which = rule === "" ? "" : rule === OL_DIFFERS ? " with two different rules" : ` with the rule “${rules[rule].label}”`;
  if (count === 0 && rule) return `No operation “${typed}”${which}.`;
  if (count === 0) return `“${typed}” is not among these ${all}. Autocast may still cast it, or what it calls. Print its dtypes with PrintDtypes, as in “Autocast opened”.`;
  if (typed === "") return `${count === all ? "All" : `${count} of`} ${all} operations${which}.`;
  if (hasForm || rows.some((row) => isCalled(row, query) && !base)) return `${count} of ${all} operations for “${typed}”${which}.`;
  return `No operation is called “${typed}”, but ${count} of ${all}${which} contain${count === 1 ? "s" : ""} it. ${inPlace}`.trim();
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const [rows, heads] = [model.get("rows"), model.get("heads")];
  const save = bindModel(model, ["query", "rule"], draw, stop.signal);
  const rules = Object.fromEntries(model.get("rules").map((rule) => [rule.name, rule]));
  const field = h("input", { class: "mp-input", type: "search", spellcheck: "false", autocomplete: "off", autocapitalize: "off", on: { input: () => set({ query: field.value }) } });
  const filter = olFilter(h, rows, rules, heads, (rule) => set({ rule: rule === model.get("rule") ? "" : rule }));
  const table = olTable(h, rows, rules, heads);
  const found = h("p", { class: "mp-ol-found", role: "status" });

  function set(change) {
    save(change);
    draw();
  }

  function draw() {
    const [query, rule] = [model.get("query"), model.get("rule")];
    if (field.value !== query) field.value = query;
    const like = new Set(namesLike(query, rows));
    const shown = new Set(rows.filter((row) => like.has(row.name) && passes(row, rule)).map(({ name }) => name));
    filter.draw(rule);
    table.draw(shown);
    setText(found, foundText(shown, rows, query, rule, rules));
  }

  el.classList.add("mp-widget", "mp-op-lookup");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-ol" },
    h("label", { class: "mp-field" }, h("span", {}, "Find an operation, such as softmax, nn.LayerNorm or F.mse_loss"), field), filter.node, found, table.node)));
  draw();
  return () => stop.abort();
}

export default { render };
