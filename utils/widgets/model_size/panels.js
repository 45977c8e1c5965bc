// The parts of ModelSize: its fields, the stacked bar with the card's capacity, the ledger, and what changes save.

import { isAdapted, MS_MOST } from "../shared/cost/training_bytes.js";
import { setText } from "../shared/page/elements.js";
import { bytesText, GIGABYTE, parseMemory, parseWhole, STALE } from "../shared/words/amounts.js";
import { changeText, largestText, modelText, MS_CHANGES, msFits, partsText, perParameterText } from "./words.js";

const OWN_SIZES = "own sizes";

export function sizeFields(h, facts, actions) {
  const fields = [];
  const wrong = h("p", { class: "mp-ms-wrong", role: "alert" });
  const field = (label, input, draw) => {
    fields.push({ input, draw });
    return h("label", { class: "mp-field" }, h("span", {}, label), input);
  };
  const select = (label, options, take, value) => {
    const input = h("select", { class: "mp-input", on: { change: () => take(input.value) } }, options.map(([key, text]) => h("option", { value: key }, text)));
    return field(label, input, (plan) => { input.value = value(plan); });
  };
  const named = (label, name) => select(label, facts.choices[name], (key) => actions.set({ [name]: name === "stage" ? Number(key) : key }), (plan) => plan[name]);
  // A field of text; `read` gives { take } or { wrong }, a sentence.
  const text = (label, read, show, extra = {}) => {
    const input = h("input", { class: "mp-input", type: "text", inputmode: "numeric", spellcheck: "false", autocomplete: "off", ...extra, on: { change: () => {
      const { take, wrong: message } = read(input.value);
      if (message) complain(input, message);
      else take();
    } } });
    return field(label, input, (plan) => { input.value = show(plan); });
  };
  const number = (label, name, most = MS_MOST) => text(label, (typed) => whole(typed, label, (count) => actions.set({ [name]: count }), most), (plan) => plan[name].toLocaleString("en"));
  const size = ([name, label]) => text(label, (typed) => whole(typed, label, (count) => {
    const fault = actions.setSize(name, count);
    if (fault) complain(fields.find(({ size: own }) => own === name).input, fault);
  }), (plan) => plan.sizes[name].toLocaleString("en"));

  function complain(input, message) {
    setText(wrong, `${message} ${STALE}`);
    wrong.hidden = false;
    input.setAttribute("aria-invalid", "true");
    actions.stale(true);
  }

  const memory = (typed) => {
    const { amount, wrong: message } = parseMemory(typed);
    return { wrong: message, take: () => actions.set({ memory: amount }) };
  };
  const check = (label, name) => {
    const input = h("input", { type: "checkbox", on: { change: () => actions.set({ [name]: input.checked }) } });
    fields.push({ input, draw: (plan) => { input.checked = plan[name]; } });
    return h("label", { class: "mp-check" }, input, label);
  };
  const [count, parts] = ["count", "parts-wrong"].map((name) => h("p", { class: `mp-ms-${name}` }));
  const sizes = facts.sizes.map((row) => {
    const node = size(row);
    fields.at(-1).size = row[0];
    return node;
  });
  const [method, rank] = [named("Trained", "method"), number("Rank of adapters", "rank", facts.most_rank)];
  const group = (label, ...nodes) => h("div", { class: "mp-ms-group", role: "group", "aria-label": label }, nodes);
  const card = h("div", { class: "mp-ms-card" }, named("Card", "card"));
  return {
    node: h("div", { class: "mp-ms-form" },
      group("What is trained", h("div", { class: "mp-ms-model" }, select("Model", [...facts.order.map((name) => [name, name]), ["", OWN_SIZES]], actions.setModel, (plan) => plan.model), count,
        h("button", { class: "mp-button", type: "button", on: { click: actions.reset } }, "Reset")), h("div", { class: "mp-ms-sizes" }, sizes)),
      group("How", method, rank, named("Recipe", "recipe"), named("Optimizer", "optimizer"), number("Batch of each card", "batch"), number("Length, tokens", "length"), named("Attention", "attention"),
        number("Parts (accumulation)", "accumulate"), check("checkpointing", "checkpointing"), check("padded texts", "padded"), parts),
      group("On which cards", card, text("Memory (GB)", memory, (plan) => String(actions.room(plan) / GIGABYTE), { inputmode: "decimal" }),
        number("Number of cards", "shards"), named("ZeRO stage", "stage")), wrong),
    draw(plan, { ledger, trained }) {
      for (const { input, draw } of fields) {
        draw(plan);
        if (input.type === "text") input.setAttribute("aria-invalid", "false");
      }
      fields.find(({ size: name }) => name === "groups").input.disabled = plan.sizes.family !== "llama"; // others share no keys
      const adapted = isAdapted(facts, plan);
      method.lastElementChild.disabled = facts.projections[plan.sizes.family].length === 0; // a classifier is trained as a whole
      rank.lastElementChild.disabled = !adapted;
      setText(count, modelText(plan, Number(ledger.parameters), trained));
      count.classList.toggle("mp-ms-over", plan.length > plan.sizes.positions);
      setText(parts, partsText(plan));
      parts.hidden = parts.textContent === "";
      setText(wrong, ""); // all fields show what holds again
      wrong.hidden = true;
    },
  };
}

// { take } or { wrong }
function whole(text, label, take, most = MS_MOST) {
  const { amount, wrong } = parseWhole(text, label, most);
  return { wrong, take: () => take(amount) };
}

/** The items of the ledger on top of each other, from the left, and a line where the card ends. */
export function sizeBar(h, { items }) {
  const parts = Object.fromEntries(items.map(([item]) => [item, h("span", { class: `mp-ms-part mp-ms-${item}` })]));
  const [line, words] = [h("span", { class: "mp-ms-line" }), h("span", { class: "mp-ms-line-word" })];
  return {
    node: h("div", { class: "mp-ms-bar", "aria-hidden": "true" }, h("div", { class: "mp-ms-parts" }, Object.values(parts)), line, words),
    draw(plan, { ledger, total, room }) {
      const whole = Math.max(total, room);
      for (const [item, part] of Object.entries(parts)) {
        part.style.width = `${(100 * Number(ledger[item])) / whole}%`;
        part.hidden = ledger[item] === 0n;
      }
      const at = (100 * room) / whole;
      line.style.left = `${at}%`;
      words.style.cssText = at > 50 ? `right: ${100 - at}%` : `left: ${at}%`;
      setText(words, `${plan.card}: ${bytesText(room)}`);
    },
  };
}

export function sizeLedger(h, { items }) {
  const row = (label, sample) => {
    const [bytes, each] = [h("td", {}), h("td", {})];
    return { bytes, each, node: h("tr", {}, h("th", { scope: "row" }, sample ? h("span", { class: `mp-ms-sample mp-ms-${sample}`, "aria-hidden": "true" }) : null, label), bytes, each) };
  };
  const rows = {};
  for (const [item, label] of items) {
    rows[item] = row(label, item);
    if (item === "activations") rows.casts = row("of these, 16-bit copies");
  }
  rows.total = row("together");
  rows.casts.node.className = "mp-ms-casts";
  rows.total.node.className = "mp-ms-total";
  const heads = ["what", "bytes", "per parameter"].map((text) => h("th", { scope: "col" }, text));
  return {
    node: h("table", { class: "mp-table" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, Object.values(rows).map(({ node }) => node))),
    draw(_plan, { ledger, total }) {
      for (const [item, { bytes, each, node }] of Object.entries(rows)) {
        const size = item === "total" ? total : Number(ledger[item]);
        setText(bytes, size === 0 ? "none" : bytesText(size));
        setText(each, size === 0 ? "0" : perParameterText(size, Number(ledger.parameters)));
        node.toggleAttribute("data-none", size === 0);
      }
    },
  };
}

export function savingList(h, { costs }, actions) {
  const rows = Object.keys(MS_CHANGES).map((name) => {
    const button = h("button", { class: "mp-button", type: "button", on: { click: () => actions.apply(name) } }, name);
    const said = h("span", {});
    return { name, button, said, node: h("li", {}, button, said, h("p", { class: "mp-ms-cost" }, costs[name])) };
  });
  const largest = h("p", { class: "mp-ms-largest" });
  const take = h("button", { class: "mp-button", type: "button", on: { click: actions.takeLargest } }, "take it");
  return {
    node: h("div", { class: "mp-ms-changes" }, h("h3", {}, "What one change saves"), h("ul", { class: "mp-ms-savings" }, rows.map(({ node }) => node)), h("div", { class: "mp-ms-most" }, largest, take)),
    draw(plan, { savings, total, room, largest: batch }) {
      rows.forEach(({ name, button, said }, i) => {
        const saving = savings[i];
        setText(said, changeText(plan, saving, msFits(total, room) === "true"));
        button.setAttribute("aria-disabled", String(saving.bytes === null));
        button.setAttribute("aria-label", `${name}: ${said.textContent}`);
      });
      setText(largest, largestText(batch));
      take.setAttribute("aria-disabled", String(batch === 0 || batch === plan.batch));
    },
  };
}
