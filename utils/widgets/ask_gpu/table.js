// The table: a row for each question, a column for each device. On a phone a row becomes a block (widget.css), so that
// roles are written down: a changed `display` would take them away.

import { answerOf, readAnswer } from "./readings.js";

const OWN = "this run";

/** Whether two of the devices gave different answers to a row. */
export function isDisputed(row, devices) {
  const texts = devices.filter(({ answers }) => answers[row.name]).map(({ answers }) => readAnswer(row, answers));
  return new Set(texts).size > 1;
}

/** Whether a row is shown: `only` is a topic, "differ" or "" for all. */
export const isShown = (row, only, devices) => only === "" || (only === "differ" ? isDisputed(row, devices) : row.topic === only);

function answerCell(h, row, device, ieee) {
  const text = answerOf(row, device);
  const differs = device !== ieee && device.answers[row.name] && ieee.answers[row.name] && text !== readAnswer(row, ieee.answers);
  return h("td", { role: "cell", "data-differs": Boolean(differs), "data-none": !device.answers[row.name], "data-own": device.name === OWN },
    h("span", { class: "mp-ag-device", "aria-hidden": "true" }, device.name),
    h("span", {}, differs ? h("span", { class: "mp-unseen" }, "differs: ") : null, text, differs ? h("span", { "aria-hidden": "true" }, " †") : null));
}

function questionCell(h, { what, why, allows, section }) {
  return h("th", { scope: "row", role: "rowheader" }, what, why ? h("span", { class: "mp-ag-why" }, why) : null,
    h("span", { class: "mp-ag-allows" }, `WGSL § ${section}: ${allows}`));
}

/** The reader's own answers as a device, to stand before the recorded ones. */
export const ownDevice = (answers) => ({ name: OWN, about: "this browser", answers });

/** A table of the rows that are shown, by topic (pairs of its name and title). `devices`: { name, about, answers, missing }. */
export function answerTable(h, { rows, topics, devices, ieee }) {
  const heads = [h("th", { scope: "col", role: "columnheader" }, "what was computed"),
    ...devices.map(({ name, about }) => h("th", { scope: "col", role: "columnheader" }, name, h("span", { class: "mp-ag-about" }, about)))];
  const bodies = topics.map(([topic, title]) => [title, rows.filter((row) => row.topic === topic)]).filter(([, part]) => part.length);
  return h("table", { class: "mp-ag-table", role: "table", "aria-label": "What was computed, and what each device answered" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    bodies.map(([title, part]) => h("tbody", { role: "rowgroup" },
      h("tr", { role: "row", class: "mp-ag-topic" }, h("th", { scope: "rowgroup", role: "rowheader", colspan: String(1 + devices.length) }, title)),
      part.map((row) => h("tr", { role: "row" }, questionCell(h, row), devices.map((device) => answerCell(h, row, device, ieee)))))));
}
