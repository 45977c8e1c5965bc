// The controls of ShapeToBound, and what it says below the picture.

import { recordedUnder, recordOf, SB_MOST, sbCase, typeOf } from "../shared/cost/roof.js";
import { deviceLabel, grouped, sbChange, sbRows, timeText } from "../shared/cost/roof_words.js";
import { setText } from "../shared/page/elements.js";
import { countText, fewDigits, parseWhole, STALE } from "../shared/words/amounts.js";

const SB_SIZES = { m: "M, rows of C", n: "N, columns of C", k: "K, summed over" };

/** M, N and K: a field for any number, a slider for powers of two. */
export function sizeControls(h, actions) {
  const wrong = h("p", { class: "mp-sb-wrong", role: "alert" });
  const sizes = Object.entries(SB_SIZES).map(([name, label]) => {
    const input = h("input", { class: "mp-input", type: "text", inputmode: "numeric", spellcheck: "false", autocomplete: "off", on: { change: () => {
      const { amount, wrong: fault } = parseWhole(input.value, name.toUpperCase(), SB_MOST);
      if (!fault) return actions.set({ [name]: amount });
      setText(wrong, `${fault} ${STALE}`);
      wrong.hidden = false;
      input.setAttribute("aria-invalid", "true");
      return actions.stale(true);
    } } });
    const slider = h("input", {
      class: "mp-sb-slider", type: "range", min: 0, max: Math.log2(SB_MOST), step: 1, "aria-label": `${name.toUpperCase()}, by powers of two`,
      on: { input: () => actions.show({ [name]: 2 ** Number(slider.value) }), change: () => actions.speak() },
    });
    return { name, input, slider, node: h("div", { class: "mp-sb-size" }, h("label", { class: "mp-field" }, h("span", {}, label), input), slider) };
  });
  return {
    node: h("div", { class: "mp-sb-sizes", role: "group", "aria-label": "Shape" }, sizes.map(({ node }) => node), wrong),
    draw(shown) {
      for (const { name, input, slider } of sizes) {
        input.value = grouped(shown[name]);
        input.setAttribute("aria-invalid", "false");
        slider.value = Math.round(Math.log2(shown[name]));
        slider.setAttribute("aria-valuetext", grouped(shown[name]));
      }
      setText(wrong, ""); // all fields show what holds again
      wrong.hidden = true;
    },
  };
}

const isProduct = ({ m, n, k }, [, pm, pn, pk]) => m === pm && n === pn && k === pk;

/** Products to start from: buttons for the first ones, a list of those of models and of the recorded ones. */
export function productPicker(h, facts, actions) {
  const take = ([, m, n, k]) => actions.set({ m, n, k });
  const stories = facts.stories.map((row) => [row, h("button", { class: "mp-button", type: "button", on: { click: () => take(row) } }, row[0])]);
  let rows = [];
  const select = h("select", { class: "mp-input", on: { change: () => select.value && take(rows[Number(select.value)]) } });
  let drawn = null;

  // The options: own sizes, the products of models, and what is recorded of this type on this device.
  function build(roof, dtype) {
    const points = recordedUnder(facts, roof, dtype).map(([device, all]) => [`recorded on ${device}`, all.map(([m, n, k]) => [`${m} × ${n} × ${k}`, m, n, k])]);
    rows = [];
    const groups = [...facts.products, ...points].filter(([, all]) => all.length).map(([label, all]) => h("optgroup", { label }, all.map((row) => {
      rows.push(row);
      return h("option", { value: rows.length - 1 }, row[0]);
    })));
    select.replaceChildren(h("option", { value: "" }, "choose one"), ...groups);
  }

  return {
    stories: h("div", { class: "mp-sb-choices", role: "group", "aria-label": "Start from" }, stories.map(([, button]) => button)),
    node: h("label", { class: "mp-field" }, h("span", {}, "Known product"), select),
    draw(shown) {
      const { roof, type } = shown;
      if (drawn !== `${roof.name} ${type.dtype}`) build(roof, type.dtype);
      drawn = `${roof.name} ${type.dtype}`;
      for (const [row, button] of stories) button.setAttribute("aria-pressed", String(isProduct(shown, row)));
      const found = rows.findIndex((row) => isProduct(shown, row));
      select.value = found < 0 ? "" : String(found);
    },
  };
}

/** The type and the device. */
export function placePicker(h, facts, actions) {
  const lacking = h("p", { class: "mp-sb-lacking" });
  const types = facts.types.map(([dtype, label]) => [dtype, h("button", { class: "mp-button", type: "button", on: { click: () => actions.setType(dtype) } }, label)]);
  const option = (roof) => h("option", { value: roof.name }, deviceLabel(roof));
  const [sheets, measured] = [false, true].map((was) => facts.roofs.filter((roof) => roof.measured === was).map(option));
  const group = (label, options) => (options.length ? h("optgroup", { label }, options) : null);
  const select = h("select", { class: "mp-input", on: { change: () => actions.setDevice(select.value) } }, group("data sheets", sheets), group("measured", measured));
  return {
    node: h("label", { class: "mp-field" }, h("span", {}, "Device"), select),
    types: h("div", { class: "mp-sb-choices mp-sb-type", role: "group", "aria-label": "Type of A and B" }, h("span", { "aria-hidden": "true" }, "A and B in"), types.map(([, button]) => button), lacking),
    say(text) {
      setText(lacking, text);
      lacking.hidden = text === "";
    },
    draw({ type, roof }) {
      select.value = roof.name;
      for (const [dtype, button] of types) {
        button.setAttribute("aria-pressed", String(dtype === type.dtype));
        button.setAttribute("aria-disabled", String(!(dtype in roof.peaks)));
      }
    },
  };
}

/** What would change the bound: more rows; and what the type has changed. */
export function changePanel(h, facts, actions) {
  const [rows, gain] = ["rows", "gain"].map((name) => h("p", { class: `mp-sb-${name}` }));
  const title = h("h3", {});
  let least = null;
  const button = h("button", { class: "mp-button", type: "button", on: { click: () => least && actions.set({ m: least }) } });
  return {
    node: h("div", { class: "mp-sb-columns" }, h("div", { class: "mp-sb-change" }, h("h3", {}, "How many rows it takes"), rows, button),
      h("div", { class: "mp-sb-change" }, title, gain)),
    draw(shown) {
      least = shown.least !== null && shown.least <= SB_MOST ? Number(shown.least) : null;
      setText(rows, sbRows(shown));
      setText(title, `What ${shown.type.label} changes`);
      setText(gain, sbChange(facts, shown));
      setText(button, least === null ? "no M to take" : `take M = ${grouped(least)}`);
      button.setAttribute("aria-disabled", String(least === null || least === shown.m));
    },
  };
}

/** The same product in every type of the device, with what is recorded of it where anything is. */
export function typeTable(h, facts) {
  const heads = { type: "type", moved: "bytes moved", intensity: "op./byte", ridge: "ridge", bound: "bound by", ms: "predicted", record: "recorded" };
  const cell = (tag, name, ...more) => h(tag, { class: `mp-sb-at-${name}`, ...(tag === "th" ? { scope: "col" } : {}) }, ...more);
  const rows = facts.types.map(([dtype, label]) => {
    const cells = Object.keys(heads).slice(1).map((name) => cell("td", name));
    return { dtype, cells, node: h("tr", {}, h("th", { scope: "row" }, label), cells) };
  });
  const node = h("table", { class: "mp-table mp-sb-types" }, h("caption", {}, "The same product in every type"),
    h("thead", {}, h("tr", {}, Object.entries(heads).map(([name, text]) => cell("th", name, text)))), h("tbody", {}, rows.map((row) => row.node)));

  // What stands in a row: nothing where the device lacks the type.
  function textsOf(shape, roof, dtype) {
    if (!(dtype in roof.peaks)) return Array(6).fill("–");
    const one = sbCase(shape, typeOf(facts, dtype), roof);
    const record = recordOf(facts, one);
    return [countText(one.moved), fewDigits(one.intensity), fewDigits(one.ridge), one.bound, timeText(one.ms), record ? timeText(record.ms) : "–"];
  }

  return {
    node,
    draw({ m, n, k, roof, type }) {
      const isRecorded = facts.types.some(([dtype]) => recordedUnder(facts, roof, dtype).some(([, points]) => points.length));
      node.classList.toggle("mp-sb-unrecorded", !isRecorded);
      for (const row of rows) {
        textsOf({ m, n, k }, roof, row.dtype).forEach((text, i) => setText(row.cells[i], text));
        row.node.toggleAttribute("data-none", !(row.dtype in roof.peaks));
        row.node.toggleAttribute("data-now", row.dtype === type.dtype);
        if (row.dtype === type.dtype) row.node.setAttribute("aria-current", "true");
        else row.node.removeAttribute("aria-current");
      }
    },
  };
}
