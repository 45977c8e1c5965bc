// What DotProduct shows of the sum: the last addition of each lane in bits, and the table of all lanes.

import { superscript } from "../shared/numbers/superscript.js";
import { setText } from "../shared/page/elements.js";
import { additionAt, bitAt, endFor, lastPlace } from "./bits.js";
import { goneAt, leadingPlace, valueAt, widthOf } from "./sums.js";
import {
  ADDEND_NAMES, additionText, comingText, dotText, errorText, LANE_NAMES, laneText, legendText, percentText, stallText,
  wholeText,
} from "./words.js";

/** The addition that takes in the k-th product, written out in bits; all lanes stand over the same places. */
export function bitsPanel(h) {
  const [title, legend] = [h("p", { class: "mp-dot-title" }), h("p", { class: "mp-dot-legend" })];
  const axis = h("div", { class: "mp-dot-bits mp-dot-axis", "aria-hidden": "true" });
  const lanes = LANE_NAMES.map((_, i) => lanePicture(h, i));
  const node = h("div", { class: "mp-dot-picture" }, title,
    legend, h("div", { class: "mp-dot-row" }, axis), lanes.map((lane) => lane.node));
  return {
    node,
    draw({ runs, places }) {
      node.style.setProperty("--columns", places.top - places.low + 1);
      axis.replaceChildren(...axisMarks(h, places));
      setText(legend, legendText(runs));
      lanes.forEach((lane, i) => lane.draw(runs[i]));
    },
    move({ k, runs, pairs, places }) {
      const additions = runs.map((run) => additionAt(run, pairs.products, Math.max(k, 1)));
      const widest = additions.reduce((most, one) => (one.stop - one.start > most.stop - most.start ? one : most));
      setText(title, `${k === 0 ? "Next: " : ""}${comingText(widest, pairs)}`);
      additions.forEach((addition, i) => lanes[i].move(addition, runs[i], places));
    },
  };
}

function axisMarks(h, { top, low }) {
  const marks = [];
  for (let place = Math.floor(top / 4) * 4; place >= low; place -= 4) {
    marks.push(h("span", { class: `mp-dot-place${place % 8 ? " mp-dot-fine" : ""}`, style: `--at:${top - place + 1}` }, `2${superscript(place)}`));
  }
  return marks;
}

// One lane: a heading, its rows, and a sentence. The rows stay, so that the box can move from place to place.
function lanePicture(h, i) {
  const [name, stall] = [h("p", { class: "mp-dot-heading" }), h("p", { class: "mp-dot-stall" })];
  const rows = Array.from({ length: 4 }, () => bitRow(h));
  const said = h("p", { class: "mp-dot-said" });
  rows[3].node.classList.add("mp-dot-after");
  const node = h("div", { class: `mp-dot-register mp-dot-lane-${i}` }, h("div", { class: "mp-dot-head" }, h("span", { class: `mp-dot-name mp-dot-lane-${i}` }, LANE_NAMES[i]), name, stall),
    rows.map((row) => row.node), said);
  return {
    node,
    draw(run) {
      node.hidden = run === undefined;
      if (!run) return;
      setText(name, laneText(run.lane));
      const where = stallText(run);
      setText(stall, where && `${run.swampedAt === null ? "○" : "◌"} ${where}`); // as the ring in the plot
      rows[2].node.hidden = run.adder.kind !== "aligned";
      const [isLong, isPromoted] = [run.adder.kind === "aligned" || run.adder.kind === "kahan", run.lane.promote > 0];
      said.classList.toggle("mp-dot-longer", isLong !== isPromoted);
      said.classList.toggle("mp-dot-longest", isLong && isPromoted);
    },
    move(addition, run, places) {
      const { before, after, addends, end, top, off, bits } = addition;
      const width = widthOf(run.adder);
      const own = (x) => (x === 0 || !Number.isFinite(x) ? null : leadingPlace(x) - width + 1);
      const box = end === null ? null : { top, end };
      rows[0].draw({ label: "register", value: before, last: own(before), box, places });
      [addends[0], addends[1]].forEach((addend, j) => {
        if (addend) rows[1 + j].draw({ label: ADDEND_NAMES[addend.role](addend), value: addend.value, last: null, box, places });
        else rows[1 + j].draw({ label: "", value: null, box, places });
      });
      const last = endFor(after, run.adder);
      const afterBox = last === null ? null : { top: last + width - 1, end: last }; // the register follows its sum
      rows[3].draw({ label: "after", value: after, last: own(after), box: afterBox, places });
      setText(said, additionText(addition, run));
      node.classList.toggle("mp-dot-lost", bits > 0 && off === bits && after === before);
    },
  };
}

function bitRow(h) {
  const [label, value, box, cells] = [h("span", { class: "mp-dot-label" }), h("span", { class: "mp-dot-value" }), h("span", { class: "mp-dot-box" }), h("span", { class: "mp-dot-cells" })];
  const bits = h("span", { class: "mp-dot-bits", role: "img" }, cells, box);
  return {
    node: h("div", { class: "mp-dot-row" }, label, bits, value),
    draw({ label: name, value: x, last, box: window, places }) {
      setText(label, name);
      setText(value, x === null ? "" : dotText(x, 8));
      const drawn = x === null || x === 0 || !Number.isFinite(x) ? [] : drawnBits(x, last ?? lastPlace(x), places);
      cells.replaceChildren(...drawn.map(({ place, bit }) => h("span", {
        class: `mp-dot-bit${window && place < window.end ? " mp-dot-off" : ""}`, style: `--at:${places.top - place + 1}`,
      }, bit)));
      const kept = drawn.filter(({ place }) => !window || place >= window.end).map(({ bit }) => bit).join("");
      const lost = drawn.filter(({ place }) => window && place < window.end).map(({ bit }) => bit).join("");
      bits.setAttribute("aria-label", `bits ${kept || "none"}${lost ? `, falling off ${lost}` : ""}`);
      bits.classList.toggle("mp-dot-more", drawn.length > 0 && (last ?? lastPlace(x)) < places.low);
      box.hidden = window === null;
      if (window) placeBox(box, window, places);
    },
  };
}

// The bits of a number from its first to its last place, as far as there are columns.
function drawnBits(x, last, { top, low }) {
  const drawn = [];
  for (let place = Math.min(leadingPlace(x), top); place >= Math.max(last, low); place -= 1) drawn.push({ place, bit: String(bitAt(x, place)) });
  return drawn;
}

function placeBox(box, { top, end }, places) {
  const columns = places.top - places.low + 1;
  const left = Math.max(places.top - top, 0);
  const right = Math.min(places.top - end + 1, columns);
  box.style.left = `${(100 * left) / columns}%`;
  box.style.width = `${(100 * Math.max(right - left, 0)) / columns}%`;
  box.classList.toggle("mp-dot-open", end < places.low);
}

/** What each lane is worth after k products, its error, and how many products left no trace. */
export function sumTable(h) {
  const caption = h("caption", {});
  const row = (swatch) => {
    const [label, value, error, gone] = [h("span"), h("td"), h("td"), h("td")];
    return { label, value, error, gone, node: h("tr", {}, h("th", { scope: "row" }, swatch, " ", label), value, error, gone) };
  };
  const exactRow = row(h("span", { class: "mp-dot-key", "aria-hidden": "true" }));
  const rows = LANE_NAMES.map((name, i) => row(h("span", { class: `mp-dot-name mp-dot-lane-${i}` }, name)));
  setText(exactRow.label, "exactly");
  const head = ["added", "sum", "error", "swallowed"].map((text) => h("th", { scope: "col" }, text));
  return {
    node: h("table", { class: "mp-table mp-dot-table" }, caption, h("thead", {}, h("tr", {}, head)), h("tbody", {}, exactRow.node, rows.map((one) => one.node))),
    move({ k, runs, exacts, state }) {
      setText(caption, `After ${wholeText(k)} of ${wholeText(state.products)} products`);
      setText(exactRow.value, dotText(exacts[k], 8));
      rows.forEach(({ node, label, value, error, gone }, i) => {
        node.hidden = runs[i] === undefined;
        if (node.hidden) return;
        setText(label, laneText({ ...runs[i].lane, block: 0 }));
        setText(value, dotText(valueAt(runs[i], k), 8));
        setText(error, errorText(valueAt(runs[i], k), exacts[k]));
        setText(gone, percentText(goneAt(runs[i], k)));
      });
    },
  };
}
