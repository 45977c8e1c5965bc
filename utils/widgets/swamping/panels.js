// The parts of Swamping: fields, buttons, the addition written out in bits, the table of lanes, Kahan's step.

import { exactNumber } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { superscript } from "../shared/numbers/superscript.js";
import { setText } from "../shared/page/elements.js";
import { countText, LANES } from "./plot.js";
import { exactSum, hasStalled } from "./sums.js";
import {
  alignedAddition, explainAddition, kahanStep, kahanStopSentence, lostText, stallSentence, sumText, ulpText,
} from "./words.js";

const ADDENDS = ["1", "1/4", "0.1"]; // two powers of two, and a number that no format has

export function swampControls(h, actions, names) {
  const format = h("select", { class: "mp-input", on: { change: () => actions.setFormat(format.value) } },
    names.map((name) => h("option", { value: name }, FORMATS[name].label)));
  const field = (label, take) => {
    const input = h("input", {
      class: "mp-input", type: "text", spellcheck: "false", autocomplete: "off", size: "10",
      on: { change: () => take(input.value) },
    });
    return { input, node: h("label", { class: "mp-field mp-swamp-number" }, label, input) };
  };
  const increment = field("Increment", actions.setIncrement);
  const start = field("Start at", actions.setStart);
  const addends = ADDENDS.map((text) => h("button", {
    class: "mp-button", type: "button", "aria-label": `add ${text} each time`, on: { click: () => actions.setIncrement(text) },
  }, text));
  const lucky = h("input", { type: "checkbox", on: { change: () => actions.setStochastic(lucky.checked) } });
  return {
    node: h("div", { class: "mp-swamp-controls" },
      h("label", { class: "mp-field" }, "Format", format), start.node,
      h("div", { class: "mp-swamp-addend" }, increment.node, addends),
      h("label", { class: "mp-check" }, lucky, " stochastic rounding too")),
    describeBy(message) {
      for (const { input } of [increment, start]) input.ariaDescribedByElements = [message];
    },
    draw({ fmt, typed, wrong, stochastic }) {
      addends.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === typed.increment.trim())));
      format.value = fmt.name;
      lucky.checked = stochastic;
      for (const [name, { input }] of [["increment", increment], ["start", start]]) {
        if (input.value !== typed[name]) input.value = typed[name];
        input.setAttribute("aria-invalid", String(wrong === name));
      }
    },
  };
}

export function swampButtons(h, actions) {
  const button = (text, click, more = "") => h("button", { class: `mp-button ${more}`, type: "button", on: { click } }, text);
  const run = button("run", actions.toggleRun, "mp-primary mp-swamp-run");
  const stall = button("to the stall", actions.toTheStall);
  const others = [button("add one", () => actions.add(1)), button("add 10", () => actions.add(10))];
  const [back, reset] = [button("one back", actions.stepBack), button("reset", actions.reset)];
  const arrows = { ArrowRight: () => actions.add(1), ArrowLeft: actions.stepBack };
  const keydown = (event) => {
    if (!Object.hasOwn(arrows, event.key) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    arrows[event.key]();
  };
  return {
    node: h("div", {},
      h("div", { class: "mp-swamp-buttons", role: "group", "aria-label": "Additions", on: { keydown } }, others, back, run, stall, reset),
      h("p", { class: "mp-swamp-keys" }, "On these buttons the key → adds one, and ← takes it back.")),
    draw({ job, steps, sum, wrong }) {
      setText(run, job ? "pause" : sum.n < steps ? `run to ${countText(steps)}` : `run ${countText(steps)} more`);
      for (const node of [...others, run, reset]) node.setAttribute("aria-disabled", String(wrong !== ""));
      back.setAttribute("aria-disabled", String(wrong !== "" || sum.n === 0));
      stall.setAttribute("aria-disabled", String(wrong !== "" || (job === null && hasStalled(sum))));
    },
  };
}

export function additionPanel(h) {
  const title = h("p", { class: "mp-swamp-title" });
  const ulp = h("p", { class: "mp-swamp-ulp" });
  const rows = h("div", { class: "mp-swamp-rows" });
  const said = h("p", { class: "mp-swamp-said" });
  return {
    node: h("div", { class: "mp-swamp-addition" }, h("div", { class: "mp-swamp-head" }, title, ulp), rows, said),
    draw({ fmt, sum }) {
      const { plain } = sum.before ?? { plain: sum.start };
      const [a, b] = [exactNumber(plain), exactNumber(sum.increment)];
      setText(title, sum.n === 0 ? "The first addition" : `Addition ${countText(sum.n)}`);
      const isOver = a.kind !== "finite";
      rows.classList.toggle("mp-swamp-away", isOver);
      said.classList.toggle("mp-swamp-stalled", hasStalled(sum));
      if (isOver) {
        setText(ulp, "");
        setText(said, `${sumText(a)} + ${sumText(b)} = ${sumText(a)}: from here no addition leads back.`);
        return;
      }
      const addition = alignedAddition(a, b, fmt);
      setText(ulp, a.num === 0n ? "" : ulpText(b, addition.end)); // a sum of 0 has no ulp that would tell anything
      rows.style.setProperty("--columns", addition.top - addition.low + 1);
      rows.replaceChildren(placesRow(h, addition), ...addition.rows.map((row) => bitsRow(h, row, addition)));
      const more = addition.more > 0 ? ` (${addition.more} more bits to the right are not drawn.)` : "";
      setText(said, `${stallSentence(sum) || explainAddition(a, b, fmt)}${more}`);
    },
  };
}

// The powers of two above the first and the last bit that the result keeps, and the word for what is beyond.
function placesRow(h, { top, end, low }) {
  const place = (power) => h("span", { class: "mp-swamp-place", style: `--at:${top - power + 1}` }, `2${superscript(power)}`);
  const off = h("span", { class: "mp-swamp-falls", style: `--at:${top - end + 2}` }, "falls off");
  return h("div", { class: "mp-swamp-row mp-swamp-places", "aria-hidden": "true" }, h("span", { class: "mp-swamp-bits" },
    top - end > 3 ? place(top) : null, place(end), end - low >= 3 ? off : null));
}

function bitsRow(h, { label, number, bits }, { top, end }) {
  const cells = bits.map((bit, i) => {
    const power = top - i;
    const kinds = [bit === "" ? "mp-swamp-none" : "", power < end ? "mp-swamp-off" : "", power === end - 1 ? "mp-swamp-cut" : ""];
    return h("span", { class: `mp-swamp-bit ${kinds.filter(Boolean).join(" ")}` }, bit);
  });
  const kept = bits.filter((_, i) => top - i >= end).join("");
  const lost = bits.filter((_, i) => top - i < end).join("");
  const spoken = `bits ${kept || "none"}${lost ? `, falling off ${lost}` : ""}`;
  return h("div", { class: `mp-swamp-row${label === "stored" ? " mp-swamp-stored" : ""}` },
    h("span", { class: "mp-swamp-label" }, label),
    h("span", { class: "mp-swamp-bits", role: "img", "aria-label": spoken }, cells),
    h("span", { class: "mp-swamp-value" }, sumText(number)));
}

export function lanesPanel(h) {
  const caption = h("caption", {});
  const rows = Object.fromEntries(LANES.map(({ key }) => {
    const [value, lost, label] = [h("td"), h("td"), h("span")];
    const swatch = h("span", { class: `mp-swamp-key mp-swamp-${key}`, "aria-hidden": "true" });
    return [key, { row: h("tr", {}, h("th", { scope: "row" }, swatch, label), value, lost), value, lost, label }];
  }));
  const head = ["added", "sum", "lost"].map((title) => h("th", { scope: "col" }, title));
  const table = h("table", { class: "mp-table mp-swamp-lanes" }, caption, h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, LANES.map(({ key }) => rows[key].row)));
  const note = h("p", { class: "mp-swamp-gained" });
  return {
    node: h("div", {}, table, note),
    draw({ fmt, sum, stochastic }) {
      setText(caption, `After ${countText(sum.n)} addition${sum.n === 1 ? "" : "s"}`);
      const exact = exactSum(sum);
      for (const { key, at, name } of LANES) {
        setText(rows[key].label, name(fmt));
        const number = at ? exactNumber(sum[key]) : exact;
        setText(rows[key].value, sumText(number));
        setText(rows[key].lost, at ? lostText(number, exact, exactNumber(sum.start)) : "");
      }
      rows.lucky.row.hidden = !stochastic;
      const gained = LANES.some(({ key }) => !rows[key].row.hidden && rows[key].lost.textContent.startsWith("gained"));
      setText(note, gained ? "Gained: more was rounded up than down." : "");
    },
  };
}

export function kahanPanel(h) {
  const lines = h("dl", { class: "mp-swamp-steps" });
  const why = h("p", {});
  return {
    node: h("div", { class: "mp-swamp-kahan-step" }, h("p", { class: "mp-swamp-title" }, "Kahan’s step"), lines, why),
    draw({ sum }) {
      const step = kahanStep(sum);
      lines.replaceChildren(...step.lines.flatMap(([name, text, meaning]) =>
        [h("dt", {}, `${name} =`), h("dd", { class: "mp-swamp-sum" }, text), h("dd", { class: "mp-swamp-meaning" }, meaning)]));
      setText(why, kahanStopSentence(sum) || step.why);
    },
  };
}
