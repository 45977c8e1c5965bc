// What ArmPicker draws: a row with its dots for each arm, the differences, the ranks by seed, and the loss curves.

import { setText } from "../shared/page/elements.js";
import { farGap, meanInterval, meanOf, nanSteps, numbersOf, rankedArms, ticksOf, valuesOf } from "./numbers.js";
import { differenceUnit, neededText, remarkText, valueText, verdictOf, withUnit } from "./words.js";

const LINE_COLOURS = 4; // of widget.css; beyond them the lines are dashed, then dotted
const LINE_DASHES = ["", "7 4", "2 4"];

const percentOf = (share) => `${(100 * share).toFixed(2)}%`;

/** A scale over these numbers with some room on both sides: at(x) is the place of x, 0 to 1. */
function scaleOver(numbers) {
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const room = most > least ? 0.06 * (most - least) : Math.abs(most) / 20 || 1;
  const [low, high] = [least - room, most + room];
  return { low, high, ticks: ticksOf(low, high), at: (x) => (x - low) / (high - low) };
}

// The ends of what is drawn of these numbers: dots, and the interval of their mean.
function endsOf(numbers) {
  if (numbers.length === 0) return [];
  const [mean, half] = meanInterval(numbers);
  return [...numbers, mean - (half ?? 0), mean + (half ?? 0)];
}

function marksOf(h, scale, numbers, { isBar = false } = {}) {
  const mark = (kind, share, style = "") => h("span", { class: `mp-ap-${kind}`, style: `left: ${percentOf(share)};${style}` });
  if (numbers.length === 0) return [];
  if (isBar) return [mark("bar", 0, ` width: ${percentOf(scale.at(numbers[0]))}`)];
  const [mean, half] = meanInterval(numbers);
  const interval = half ? [mark("interval", scale.at(mean - half), ` width: ${percentOf(scale.at(mean + half) - scale.at(mean - half))}`)] : [];
  return [...interval, mark("mean", scale.at(mean)), ...numbers.map((x) => mark("dot", scale.at(x)))];
}

// What stands in the place of an arm's dots beyond the axis: an arrow to its side, and its number.
function farMark(h, gap, number) {
  const text = number.toFixed(1).replace("-", "−");
  return h("span", { class: `mp-ap-far mp-ap-far-${gap < 0 ? "low" : "high"}` }, gap < 0 ? `← ${text}` : `${text} →`);
}

function gridOf(h, { ticks, at }) {
  return ticks.map((tick) => h("span", { class: "mp-ap-grid", style: `left: ${percentOf(at(tick.at))}` }));
}

/** A text whose names of arms do not break at their hyphens. */
export function unbrokenNames(h, text, arms) {
  const names = [...arms].sort((a, b) => b.length - a.length);
  return text.split(new RegExp(`(${names.join("|")})`)).map((part) => (arms.includes(part) ? h("span", { class: "mp-ap-name" }, part) : part));
}

function axisOf(h) {
  const node = h("div", { class: "mp-ap-axis", "aria-hidden": "true" });
  return {
    node,
    draw(scale, unit) {
      node.replaceChildren(...(scale?.ticks ?? []).map((tick, i, all) =>
        h("span", { class: "mp-ap-tick", style: `left: ${percentOf(scale.at(tick.at))}` }, i === all.length - 1 ? withUnit(tick.text, unit) : tick.text)));
    },
  };
}

/** One row for each arm: whether it is chosen, its dots, and its number. */
export function armRows(h, actions, { arms }) {
  const axis = axisOf(h);
  const rows = arms.map((arm, i) => {
    const box = h("input", { type: "checkbox", on: { change: () => actions.choose(arm, box.checked) } });
    const sample = h("span", { class: `mp-ap-sample mp-ap-line-${i % LINE_COLOURS} mp-ap-dash-${Math.floor(i / LINE_COLOURS)}`, "aria-hidden": "true" });
    const [track, value, role] = [h("span", { class: "mp-ap-track", "aria-hidden": "true" }), h("span", { class: "mp-ap-value" }), h("span", { class: "mp-ap-role" })];
    const node = h("div", { class: "mp-ap-row" }, h("label", { class: "mp-check" }, box, h("span", {}, arm, " ", role), sample), track, value);
    return { arm, node, box, sample, track, value, role };
  });
  return {
    node: h("div", { class: "mp-ap-rows", role: "group", "aria-label": "Arms" }, rows.map(({ node }) => node), h("div", { class: "mp-ap-row mp-ap-axis-row" }, axis.node)),
    draw({ group, baseline, shown, quantity, seed }) {
      const numbers = Object.fromEntries(shown.map((arm) => {
        const all = valuesOf(group, arm, quantity);
        return [arm, numbersOf(seed === null ? all : [all[group.seeds.indexOf(seed)]])];
      }));
      // one scale for all seeds, so that a bar can be compared from seed to seed
      const far = Object.fromEntries(shown.map((arm) => [arm, farGap(group, arm, baseline, quantity)]));
      const ends = shown.filter((arm) => far[arm] === null).flatMap((arm) => endsOf(numbersOf(valuesOf(group, arm, quantity))));
      const scale = ends.length ? scaleOver(ends) : null;
      for (const { arm, node, box, sample, track, value, role } of rows) {
        const isShown = shown.includes(arm);
        box.checked = isShown;
        box.disabled = arm === baseline || (!isShown && !group.runs[arm]);
        node.classList.toggle("mp-ap-off", !isShown);
        setText(role, arm === baseline ? "(baseline)" : "");
        sample.hidden = quantity.name !== "loss" || !isShown;
        const marks = () => {
          if (far[arm] === null) return marksOf(h, scale, numbers[arm], { isBar: seed !== null });
          return numbers[arm].length ? [farMark(h, far[arm], meanOf(numbers[arm]))] : [];
        };
        track.replaceChildren(...(isShown && scale ? [...gridOf(h, scale), ...marks()] : []));
        setText(value, isShown || !group.runs[arm] ? valueText(group, arm, quantity, seed) : "");
      }
      axis.draw(scale, quantity.unit);
    },
  };
}

/** The difference of each chosen arm and the baseline: its dots by seed, and what they say. */
export function gapPanel(h) {
  const [title, list, axis] = [h("strong", { class: "mp-ap-title" }), h("ul", { class: "mp-ap-gaps" }), axisOf(h)];
  const node = h("div", { class: "mp-ap-part" }, title, list, h("div", { class: "mp-ap-gap mp-ap-axis-row" }, axis.node));
  return {
    node,
    draw({ group, baseline, others, quantity, seed, arms }) {
      node.hidden = seed !== null || others.length === 0;
      if (node.hidden) return;
      const verdicts = others.map((arm) => [arm, verdictOf(group, arm, baseline, quantity)]);
      const far = Object.fromEntries(others.map((arm) => [arm, farGap(group, arm, baseline, quantity)]));
      const ends = verdicts.filter(([arm]) => far[arm] === null).flatMap(([, { gaps }]) => endsOf(gaps.map(([, gap]) => gap)));
      const scale = verdicts.some(([, { gaps }]) => gaps.length) ? scaleOver([0, ...ends]) : null;
      const unit = differenceUnit(quantity);
      setText(title, `Difference from ${baseline}, seed by seed`);
      list.replaceChildren(...verdicts.map(([arm, { kind, text, gaps }]) => {
        const [needed, remark] = [neededText(group, baseline, quantity, gaps), remarkText(group, arm)];
        const zero = () => h("span", { class: "mp-ap-zero", style: `left: ${percentOf(scale.at(0))}` });
        return h("li", { class: `mp-ap-gap mp-ap-${kind}`, "data-arm": arm },
          h("div", {}, h("p", { class: "mp-ap-verdict" }, h("strong", { class: "mp-ap-name" }, arm), " ", h("span", {}, unbrokenNames(h, text, arms)), "."),
            h("p", { class: "mp-ap-what" }, [needed, remark].filter(Boolean).join(" "))),
          gaps.length ? h("span", { class: "mp-ap-track", "aria-hidden": "true" }, gridOf(h, scale), zero(),
            far[arm] === null ? marksOf(h, scale, gaps.map(([, gap]) => gap)) : farMark(h, far[arm], far[arm])) : null);
      }));
      axis.draw(scale, unit);
    },
  };
}

/** The ranks that each seed gives, the one that is looked at marked. */
export function rankTable(h) {
  const [head, body] = [h("tr", {}), h("tbody", {})];
  const caption = h("caption", {}, "Rank of each recipe, by seed");
  const node = h("div", { class: "mp-ap-part" }, h("table", { class: "mp-ap-ranks" }, caption, h("thead", {}, head), body));
  return {
    node,
    draw({ group, shown, quantity, seed }) {
      const ranks = rankedArms(group, shown, quantity);
      node.hidden = seed === null || ranks.length < 2;
      if (node.hidden) return;
      const at = group.seeds.indexOf(seed);
      const now = (i) => (i === at ? "mp-ap-now" : null);
      head.replaceChildren(h("th", { scope: "col" }, "recipe"), ...group.seeds.map((name, i) => h("th", { scope: "col", class: now(i) }, `seed ${name}`)));
      body.replaceChildren(...ranks.map(([arm, its]) => h("tr", {}, h("th", { scope: "row" }, arm),
        its.map((rank, i) => h("td", { class: [now(i), rank === 1 ? "mp-ap-first" : null].filter(Boolean).join(" ") || null }, String(rank))))));
    },
  };
}

// The mean of the curves of some runs, part by part, as far as all of them go.
function meanCurve(curves) {
  const length = Math.min(...curves.map((curve) => curve.length));
  return Array.from({ length }, (_, i) => curves.reduce((sum, curve) => sum + curve[i], 0) / curves.length / 1000);
}

/** The loss against the step, for the quantity "loss" alone. */
export function curvePanel(h, { arms }) {
  const shape = (tag, name) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    node.setAttribute("class", name);
    return node;
  };
  const [svg, levels, title, ends] = [shape("svg", "mp-ap-lines"), h("span", { class: "mp-ap-levels" }), h("strong", { class: "mp-ap-title" }), h("p", { class: "mp-ap-ends" })];
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("viewBox", "0 0 1 1");
  const node = h("div", { class: "mp-ap-part" }, title, h("div", { class: "mp-ap-curves", "aria-hidden": "true" }, levels, svg), ends);
  return {
    node,
    draw({ group, shown, quantity, seed, points }) {
      node.hidden = quantity.name !== "loss";
      if (node.hidden) return;
      const lines = shown.filter((arm) => group.runs[arm]).map((arm) => {
        const all = group.runs[arm].curves;
        const curves = (seed === null ? all : [all[group.seeds.indexOf(seed)]]).filter((curve) => curve?.length);
        return { arm, line: curves.length ? meanCurve(curves) : [], isNaN: nanSteps(group, arm, quantity).length > 0 };
      }).filter(({ line }) => line.length);
      const scale = lines.length ? scaleOver(lines.flatMap(({ line }) => line)) : null;
      const place = (x, i) => `${((i + 0.5) / points).toFixed(4)} ${(1 - scale.at(x)).toFixed(4)}`;
      svg.replaceChildren(...lines.flatMap(({ arm, line, isNaN }) => {
        const i = arms.indexOf(arm);
        const path = shape("path", `mp-ap-line-${i % LINE_COLOURS}`);
        path.setAttribute("d", `M${line.map(place).join("L")}`);
        path.setAttribute("stroke-dasharray", LINE_DASHES[Math.floor(i / LINE_COLOURS) % LINE_DASHES.length]);
        const stop = shape("path", "mp-ap-stop");
        stop.setAttribute("d", `M${place(line.at(-1), line.length - 1)}h0`);
        return isNaN ? [path, stop] : [path];
      }));
      levels.replaceChildren(...(scale?.ticks ?? []).map((tick) => h("span", { class: "mp-ap-level", style: `bottom: ${percentOf(scale.at(tick.at))}` }, h("span", {}, tick.text))));
      setText(title, `Training loss, ${seed === null ? "mean over the seeds" : `seed ${seed}`}`);
      ends.replaceChildren(h("span", {}, "step 1"), lines.some(({ isNaN }) => isNaN) ? h("span", {}, h("span", { class: "mp-ap-stop-sample", "aria-hidden": "true" }), "the loss became NaN") : "", h("span", {}, `step ${group.steps}`));
    },
  };
}
