// The parts of TokensPerSecond: what the reader sets, the times of a step, the formats, and rate against bytes.

import { timeText } from "../shared/cost/roof_words.js";
import { valueSlider } from "../shared/page/choice_controls.js";
import { setText } from "../shared/page/elements.js";
import { sharePath, stretchedPlot } from "../shared/plot/stretched_plot.js";
import { bytesText, fewDigits, GIGABYTE } from "../shared/words/amounts.js";
import { TP_MOST_BATCH, TP_MOST_CONTEXT, tpComparable, tpOwnPoints } from "./bytes.js";
import { tpBatchText, tpCardText, tpContextText, tpRate } from "./words.js";

/** The model, the card, the cache, the batch and the context. */
export function tpControls(h, facts, actions) {
  const select = (label, options, take) => {
    const input = h("select", { class: "mp-input", on: { change: () => take(input.value) } }, options.map(([value, text]) => h("option", { value }, text)));
    return { input, node: h("label", { class: "mp-field" }, h("span", {}, label), input) };
  };
  const model = select("Model", facts.models.map(([name]) => [name, name]), (name) => actions.set({ model: name }));
  const card = select("Card", facts.cards.map((one) => [one.name, tpCardText(one)]), (name) => actions.set({ card: name }));
  const kv = select("Keys and values in", facts.kv_bits, (bits) => actions.set({ kv_bits: Number(bits) }));
  const slide = (label, take) => valueSlider(h, { label, take, end: actions.speak });
  const batch = slide("Batch: ", (at) => actions.drag({ batch: 2 ** at }));
  const context = slide("Context: ", (at) => actions.drag({ context: 2 ** at }));
  const head = h("input", { type: "checkbox", on: { change: () => actions.set({ head: head.checked }) } });
  return {
    node: h("div", { class: "mp-tp-controls" }, h("div", { class: "mp-tp-fields" }, model.node, card.node, kv.node, h("label", { class: "mp-check" }, head, "the head (the last matrix) in 8 or 4 bits too")),
      h("div", { class: "mp-tp-slides" }, batch.node, context.node)),
    draw(shown) {
      model.input.value = shown.model;
      card.input.value = shown.card.name;
      kv.input.value = String(shown.kv_bits);
      head.checked = shown.head;
      const power = (count) => Math.round(Math.log2(count));
      batch.draw(power(shown.batch), power(TP_MOST_BATCH), tpBatchText(shown));
      context.draw(power(shown.context), power(TP_MOST_CONTEXT), tpContextText(shown));
    },
  };
}

const tpLaneText = (best, isHere, shown) => (isHere ? `measured${best.plain ? ", a plain loop" : ""}` : best ? `estimated from ${best.card}` : tpComparable(shown) ? "measured: no rate to compare with" : "measured: a single short sequence only");

/** The time of a step: moving, with what is moved, computing, and the measured one, or that of another card, scaled. */
export function tpLanes(h) {
  const lane = (...bars) => {
    const [words, time] = [h("span", {}), h("span", { class: "mp-tp-time" })];
    const parts = bars.map((name) => h("span", { class: `mp-tp-bar mp-tp-${name}` }));
    const node = h("div", { class: "mp-tp-lane" }, words, time, h("span", { class: "mp-tp-track", "aria-hidden": "true" }, parts));
    return { words, time, parts, node };
  };
  const [moving, computing, measured] = [lane("weights", "cache"), lane("computing"), lane("measured")];
  const key = (name, words) => h("span", {}, h("span", { class: `mp-tp-sample mp-tp-${name}`, "aria-hidden": "true" }), words);
  return {
    node: h("div", { class: "mp-tp-lanes" }, moving.node, computing.node, measured.node, h("p", { class: "mp-plot-key" }, key("weights", "weights"), key("cache", "keys and values"), key("computing", "computing"), key("measured", "measured, one short sequence"))),
    draw(shown, points) {
      const [best] = [...points].sort((one, other) => other.rate - one.rate);
      const isHere = best?.card === shown.card.name;
      const took = best ? 1e3 / best.here : 0;
      const most = Math.max(shown.ms, took);
      const width = (ms) => `${((100 * ms) / most).toFixed(2)}%`;
      const share = shown.moved.weights / shown.moved.total;
      setText(moving.words, `moving ${bytesText(shown.moved.total)} for a step`);
      setText(moving.time, timeText(shown.moving));
      moving.parts[0].style.width = width(shown.moving * share);
      moving.parts[1].style.width = width(shown.moving * (1 - share));
      setText(computing.words, shown.peak ? `computing at ${fewDigits(shown.peak)} TFLOP/s` : "computing: no peak is known");
      setText(computing.time, shown.peak ? timeText(shown.computing) : "");
      computing.parts[0].style.width = width(shown.computing);
      setText(measured.words, tpLaneText(best, isHere, shown));
      setText(measured.time, best ? timeText(took) : "");
      measured.parts[0].style.width = width(took);
    },
  };
}

const TP_SHORT = { bfloat16: "bfloat16", int4: "int4, g32", "int4-g128": "int4, g128" }; // where room is scarce
const shortOf = ({ name, label }) => TP_SHORT[name] ?? label;

/** The measured rate with its share of the bandwidth, † for a plain loop; after ≈ the rate of another card, scaled. */
const tpReadText = (facts, shown) => tpOwnPoints(facts, shown).map(({ rate, share, here, card, plain }) => {
  const of = `(${Math.round(100 * share)}\u00a0%)`;
  return card === shown.card.name ? `${tpRate(rate)}${plain ? "\u00a0†" : ""} ${of}` : shown.fits ? `≈ ${fewDigits(here)} ${of}` : "–";
}).join(", ") || "–";

/** Every format of the weights: a button for each, what it moves, the limit, and what was measured or estimated. */
export function tpTable(h, facts, actions) {
  const heads = ["weights in", "GB a step", "tokens/s at most", "GB held", "measured, or\u00a0≈"];
  const fine = (i) => (i === 3 ? "mp-tp-fine" : null);
  const rows = facts.formats.map((format) => {
    const button = h("button", { class: "mp-button mp-tp-name", type: "button", "aria-label": format.label, on: { click: () => actions.set({ weights: format.name }) } },
      h("span", { class: "mp-tp-fine" }, format.label), h("span", { class: "mp-tp-short" }, shortOf(format)));
    const cells = heads.slice(1).map((_, i) => h("td", { class: fine(i + 1) }));
    return { format, button, cells, node: h("tr", {}, h("th", { scope: "row" }, button), cells) };
  });
  return {
    node: h("table", { class: "mp-table mp-tp-table" }, h("thead", {}, h("tr", {}, heads.map((text, i) => h("th", { scope: "col", class: fine(i) }, text)))), h("tbody", {}, rows.map(({ node }) => node))),
    draw(shown, all) {
      for (const { format, button, cells, node } of rows) {
        const one = all.find((found) => found.format.name === format.name);
        const texts = [fewDigits(one.moved.total / GIGABYTE), one.fits ? fewDigits(one.rate) : "too large", fewDigits(one.held / GIGABYTE), tpReadText(facts, one)];
        texts.forEach((text, i) => setText(cells[i], text));
        button.setAttribute("aria-pressed", String(format.name === shown.format.name));
        node.toggleAttribute("data-none", !one.fits);
      }
    },
  };
}

const tpLogTicks = (low, high, text) => {
  const found = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    for (const digit of [1, 2, 5]) {
      const at = (Math.log10(digit) + power - low) / (high - low);
      if (at >= 0 && at <= 1) found.push([at, text(Number(`${digit}e${power}`))]);
    }
  }
  return found;
};

/** Tokens a second against the bytes of a step: the line of the bandwidth, the formats on it, what was measured below. */
export function tpPlot(h, actions) {
  let spots = [];
  const plot = stretchedPlot(h, {
    name: "mp-tp-plot",
    point: ({ x }) => actions.drag({ weights: spots.reduce((best, one) => (Math.abs(one.x - x) < Math.abs(best.x - x) ? one : best)).name }),
    end: () => actions.speak(),
  });
  return {
    node: plot.node,
    draw(shown, all, points) {
      const bytes = [...all.map(({ moved }) => moved.total), ...points.map((point) => point.bytes)];
      const rates = [...all.map(({ rate }) => rate), ...points.map(({ rate }) => rate)];
      const [left, right] = [Math.log10(Math.min(...bytes) / 1.35), Math.log10(Math.max(...bytes) * 1.35)];
      const [low, high] = [Math.log10(Math.min(...rates) / 1.6), Math.log10(Math.max(...rates) * 1.6)];
      const across = (size) => (Math.log10(size) - left) / (right - left);
      const up = (rate) => Math.min(Math.max((Math.log10(rate) - low) / (high - low), 0), 1);
      const line = Array.from({ length: 41 }, (_, i) => 10 ** (left + ((right - left) * i) / 40)).map((size) => [size, (1e9 * shown.card.bandwidth * shown.batch) / size])
        .filter(([, rate]) => Math.log10(rate) >= low && Math.log10(rate) <= high);
      spots = all.map(({ format, moved }) => ({ name: format.name, x: across(moved.total) }));
      plot.draw({
        lines: [["mp-tp-line", sharePath(line.map(([size, rate]) => [across(size), up(rate)]))]],
        across: tpLogTicks(left, right, bytesText), up: tpLogTicks(low, high, fewDigits),
        label: `Tokens a second against the bytes of a step, both by their logarithm: ${shown.format.label} at ${bytesText(shown.moved.total)} and ${fewDigits(shown.rate)}. The line is the bandwidth; ${points.length || "no"} measured rates lie below it.`,
      });
      const [x, y] = [across(shown.moved.total), up(shown.rate)];
      plot.mark([...all.map((one) => [`mp-tp-spot${one.format.name === shown.format.name ? " mp-tp-chosen" : ""}`, across(one.moved.total), up(one.rate)]),
        ...points.map((point) => [`mp-tp-diamond${point.weights === shown.format.name ? " mp-tp-chosen" : ""}`, across(point.bytes), up(point.rate)]),
        [`mp-tp-word${x > 0.7 ? " mp-tp-left" : ""}`, x, y, shortOf(shown.format)]]);
    },
  };
}
