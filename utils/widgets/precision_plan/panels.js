// The parts of PrecisionPlan: its fields, two bars of predicted time, the kinds of layers, the blocks, the call.

import { timeText } from "../shared/cost/roof_words.js";
import { copyText, setText } from "../shared/page/elements.js";
import { parseWhole, STALE } from "../shared/words/amounts.js";
import { planCode, planGain, planReason, PP_MOST, ppPercent } from "./numbers.js";

const PP_PARTS = { products: "FP8 products", quantising: "casts to FP8", kept: "bfloat16 layers", attention: "attention" };

export function planFields(h, facts, actions) {
  const wrong = h("p", { class: "mp-pp-wrong", role: "alert", hidden: true });
  const select = (label, options, name) => {
    const input = h("select", { class: "mp-input", on: { change: () => actions.set({ [name]: input.value }) } }, options.map(([value, text]) => h("option", { value }, text)));
    return { name, input, node: h("label", { class: "mp-field" }, h("span", {}, label), input) };
  };
  const number = (label, name) => {
    const input = h("input", { class: "mp-input", type: "text", inputmode: "numeric", spellcheck: "false", autocomplete: "off", on: { change: () => {
      const { amount, wrong: fault } = parseWhole(input.value, label, PP_MOST);
      const message = fault ?? actions.setCount(name, amount);
      if (!message) return;
      setText(wrong, `${message} ${STALE}`);
      wrong.hidden = false;
      input.setAttribute("aria-invalid", "true");
      actions.stale(true);
    } } });
    return { name, input, text: true, node: h("label", { class: "mp-field" }, h("span", {}, label), input) };
  };
  const fields = [
    select("Model", facts.order.map((name) => [name, name]), "model"), number("Texts in a batch", "texts"), number("Tokens of a text", "length"),
    select("Recipe", facts.recipes.map(([name]) => [name, name]), "recipe"), select("Device (data sheet)", facts.roofs.map(({ name }) => [name, name]), "device"),
  ];
  const note = h("p", { class: "mp-pp-note" });
  return {
    node: h("div", { class: "mp-pp-form" }, h("div", { class: "mp-pp-fields" }, fields.map(({ node }) => node)), note, wrong),
    draw({ plan }) {
      for (const { name, input, text } of fields) {
        input.value = text ? plan[name].toLocaleString("en") : plan[name];
        if (text) input.setAttribute("aria-invalid", "false");
      }
      const [, what] = facts.recipes.find(([name]) => name === plan.recipe);
      setText(note, `${plan.recipe}: ${what}`);
      wrong.hidden = true;
    },
  };
}

/** Predicted time as two bars: everything in bfloat16, and the plan. */
export function planBars(h) {
  const bar = (label, names) => {
    const [time, parts] = [h("span", { class: "mp-pp-time" }), names.map((name) => [name, h("span", { class: `mp-pp-part mp-pp-${name}` })])];
    return { time, parts, node: h("div", { class: "mp-pp-bar" }, h("span", { class: "mp-pp-label" }, label), time, h("div", { class: "mp-pp-track", "aria-hidden": "true" }, parts.map(([, part]) => part))) };
  };
  const [before, after] = [bar("all in bfloat16", ["kept", "attention"]), bar("this plan", Object.keys(PP_PARTS))];
  const keys = Object.entries(PP_PARTS).map(([name, text]) => [name, text, h("span", {})]);
  return {
    node: h("div", { class: "mp-pp-bars" }, before.node, after.node,
      h("p", { class: "mp-pp-legend" }, keys.map(([name, , said]) => h("span", { class: "mp-pp-key" }, h("span", { class: `mp-pp-sample mp-pp-${name}`, "aria-hidden": "true" }), said)))),
    draw(view) {
      const of = (name) => view.rows.reduce((sum, row) => sum + row[name], 0);
      const sizes = { products: of("products"), quantising: of("quantising"), kept: of("kept"), attention: view.attentionMs };
      const whole = Math.max(view.before, view.after);
      const fill = ({ time, parts }, ms, each) => {
        setText(time, timeText(ms));
        for (const [name, part] of parts) part.style.width = `${(100 * each[name]) / whole}%`;
      };
      fill(before, view.before, { kept: view.before - view.attentionMs, attention: view.attentionMs });
      fill(after, view.after, sizes);
      for (const [name, text, said] of keys) setText(said, `${text} ${sizes[name] === 0 ? "0" : timeText(sizes[name])}`);
    },
  };
}

/** The kinds of linear layers: a switch for each, its share, what FP8 is worth there. */
export function kindTable(h, actions) {
  const heads = [["layers", ""], ["outputs × inputs", "mp-pp-wide"], ["operations", ""], ["bfloat16", "mp-pp-wide"], ["FP8 + casts", ""], ["gain", ""]];
  const body = h("tbody", {});
  let drawn = null;
  let rows = [];

  function build({ plan, rows: all }) {
    rows = all.map(({ kind, fits }) => {
      const button = h("button", { class: "mp-button mp-pp-kind", type: "button", on: { click: () => fits && actions.toggle(kind.name) } }, h("span", { class: "mp-pp-name" }, kind.name), " ", h("span", { class: "mp-pp-in" }));
      const cells = heads.slice(1).map(([, style]) => h("td", { class: style || null }));
      const why = h("td", { colspan: heads.length, class: "mp-pp-why" });
      return { button, cells, why, nodes: [h("tr", {}, h("th", { scope: "row" }, button), cells), h("tr", { class: "mp-pp-reason" }, why)] };
    });
    body.replaceChildren(...rows.flatMap(({ nodes }) => nodes));
    drawn = plan.model;
  }

  return {
    node: h("table", { class: "mp-table mp-pp-kinds" }, h("caption", {}, "Which layers: press one to leave it in bfloat16, or to take it to FP8"),
      h("thead", {}, h("tr", {}, heads.map(([text, style]) => h("th", { scope: "col", class: style || null }, text)))), body),
    draw(view) {
      if (drawn !== view.plan.model) build(view);
      view.rows.forEach((row, i) => {
        const { button, cells, why, nodes } = rows[i];
        const on = row.converted > 0;
        const what = !on ? "bfloat16" : row.converted < row.count ? `FP8 ${row.converted}/${row.count}` : "FP8";
        setText(button.lastChild, what);
        button.setAttribute("aria-pressed", String(on));
        button.setAttribute("aria-disabled", String(!row.fits));
        const gain = planGain(row);
        const texts = [`${row.kind.outputs.toLocaleString("en")} × ${row.kind.inputs.toLocaleString("en")}`, ppPercent(row.operations / view.operations), timeText(row.wide),
          row.fits ? timeText(row.narrow + row.casts) : "–", row.fits ? `${gain.toFixed(2)}×` : "–"];
        cells.forEach((cell, j) => setText(cell, texts[j]));
        cells.at(-1).classList.toggle("mp-pp-slower", row.fits && gain < 1);
        const reason = planReason(row, !view.plan.exclude.includes(row.kind.name));
        setText(why, reason && `${row.kind.name}: ${reason}`);
        nodes[1].hidden = reason === "";
      });
    },
  };
}

/** The blocks: one switch each, as one stop of the keyboard. */
export function blockStrip(h, actions) {
  const strip = h("div", { class: "mp-pp-blocks", role: "toolbar", "aria-label": "Blocks, from the first on. Arrow keys move, space switches between FP8 and bfloat16.", on: { keydown } });
  const all = h("button", { class: "mp-button", type: "button", on: { click: () => actions.blocks([]) } }, "all blocks");
  const ends = h("button", { class: "mp-button", type: "button", on: { click: () => actions.blocks([0, buttons.length - 1]) } }, "not the first and the last");
  let buttons = [];
  let focus = 0;

  function rove(i) {
    buttons[focus]?.setAttribute("tabindex", "-1");
    focus = i;
    buttons[i].setAttribute("tabindex", "0");
  }

  function keydown(event) {
    const moves = { ArrowLeft: focus - 1, ArrowRight: focus + 1, Home: 0, End: buttons.length - 1 };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves)) return;
    event.preventDefault();
    if (!buttons[moves[event.key]]) return;
    rove(moves[event.key]);
    buttons[focus].focus();
  }

  return {
    node: h("div", { class: "mp-pp-strip" }, h("h3", {}, "Which blocks"), strip, h("div", { class: "mp-pp-row" }, all, ends)),
    draw({ plan }, { layers, blocks }) {
      if (buttons.length !== layers) {
        focus = 0;
        buttons = Array.from({ length: layers }, (_, i) => h("button", { class: "mp-button", type: "button", tabindex: "-1", on: { click: () => actions.toggleBlock(i), focus: () => rove(i) } }, String(i)));
        strip.replaceChildren(...buttons);
        rove(0);
      }
      buttons.forEach((button, i) => {
        const out = plan.exclude.includes(`${blocks}.${i}`);
        button.setAttribute("aria-pressed", String(!out));
        button.setAttribute("aria-label", `block ${i}: ${out ? "bfloat16" : "FP8"}`);
      });
    },
  };
}

/** The call, to be copied. */
export function callPanel(h, actions) {
  const code = h("code", {});
  const said = h("span", { class: "mp-pp-copied" });
  const copy = h("button", { class: "mp-button", type: "button", on: { click: async () => setText(said, (await copyText(code.textContent, copy)) ? "copied" : "select it and copy it") } }, "copy");
  const reset = h("button", { class: "mp-button", type: "button", on: { click: actions.reset } }, "convert()'s own choice");
  return {
    node: h("div", { class: "mp-pp-call" }, h("pre", { tabindex: "0", "aria-label": "The call that makes this plan true" }, code), h("div", { class: "mp-pp-row" }, copy, reset, said)),
    draw({ plan }) {
      const text = planCode(plan);
      if (code.textContent !== text) setText(said, "");
      setText(code, text);
    },
  };
}
