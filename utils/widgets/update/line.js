// The short line of Update: w, its neighbours, the zone in which an update is lost, and where w + dw lies.

import { finite, neighbours, subtract, valueOf } from "../shared/numbers/codec.js";
import { briefText } from "../shared/numbers/number_text.js";
import { setText } from "../shared/page/elements.js";
import { isZeroNumber, quotient } from "./steps.js";
import { alikeTexts, named, percentText } from "./words.js";

const MOST_TICKS = 36; // between the edges of the line; beyond that the ticks would be a grey band

/** What the band on the line means, by way of keeping. */
export const ZONE_WORDS = {
  ties_to_even: "dead zone: if w + dw lies here, w stays",
  stochastic: "no dead zone: the nearer neighbour is the likelier one",
  kahan: "if w + dw lies here, w stays, and c keeps dw",
  master: "if the master lies here, the copy stays",
};

/**
 * Where everything stands on the line, in percent of its width from the left.
 *
 * Gives { ticks: [{ at, code, name }], zone: [left, right] or null, from, to, stored: [{ at, number, chance }] }.
 */
export function linePlaces(one, code, update, key, fmt) {
  const unit = one.up.num * one.down.den >= one.down.num * one.up.den ? one.up : one.down; // the wider gap
  const offset = (number) => quotient(subtract(number, one.w), unit);
  const to = quotient(update, unit);
  const half = Math.max(1.7, 1.2 * Math.abs(to));
  const place = (x) => 50 + (50 * x) / half;
  const [up, down] = [quotient(one.up, unit), quotient(one.down, unit)];
  return {
    ticks: lineTicks(one, code, half, offset, fmt).map(({ x, ...tick }) => ({ ...tick, at: place(x) })),
    zone: zoneOf(one.w, key, up, down)?.map(place) ?? null,
    from: 50, to: place(to), isFar: half > 1.75,
    stored: storedPlaces(one.results[key], offset, half, place),
  };
}

function zoneOf(w, key, up, down) {
  if (key === "stochastic") return null;
  if (key !== "toward_zero") return [-down / 2, up / 2];
  return [w.sign || isZeroNumber(w) ? -down : 0, w.sign && !isZeroNumber(w) ? 0 : up];
}

function storedPlaces({ stored, other, chance }, offset, half, place) {
  const both = [{ number: stored, chance: null }];
  if (other && !isZeroNumber(chance)) {
    both[0].chance = finite(0, chance.den - chance.num, chance.den);
    both.push({ number: other, chance });
  }
  return both.filter(({ number }) => number.kind === "finite" && Math.abs(offset(number)) <= half * 1.001)
    .map((mark) => ({ ...mark, at: place(offset(mark.number)) }));
}

// The values in view, from w outward; too many of them are left out but for w.
function lineTicks({ below, above }, code, half, offset, fmt) {
  const ticks = [{ x: 0, code, name: "w" }];
  for (const [first, side] of [[below, "down"], [above, "up"]]) {
    const found = [];
    for (let next = first; next !== null && found.length <= MOST_TICKS; next = neighbours(next, fmt)[side]) {
      const number = valueOf(next, fmt);
      if (number.kind !== "finite") break;
      const x = offset(number);
      if (Math.abs(x) > half * 1.001) break;
      if (!(isZeroNumber(number) && x === 0)) found.push({ x, code: next, name: next === first ? side : "" });
    }
    if (found.length > MOST_TICKS) return ticks;
    ticks.push(...found);
  }
  return ticks;
}

export function linePanel(h) {
  const line = h("div", { class: "mp-up-line", "aria-hidden": "true" });
  const key = h("span", { class: "mp-up-swatch", "aria-hidden": "true" });
  const words = h("span");
  const node = (kind, style, ...text) => h("span", { class: `mp-up-${kind}`, style }, ...text);
  const at = (percent) => `left: ${percent.toFixed(2)}%`;
  const span = (a, b) => `left: ${Math.min(a, b).toFixed(2)}%; width: ${Math.abs(b - a).toFixed(2)}%`;
  const inside = (percent) => Math.min(Math.max(percent, 12), 88); // a text keeps off the edges
  return {
    node: h("div", {}, line, h("p", { class: "mp-up-legend" }, key, words)),
    draw({ one, code, update, keeping, fmt }) {
      const { ticks, zone, from, to, stored, isFar } = linePlaces(one, code, update, keeping, fmt);
      const kind = `mp-up-zone-${["kahan", "master"].includes(keeping) ? "held" : "dead"}`;
      const shown = ticks.filter(({ name }) => name === "w" || (name && !isFar)).sort((a, b) => a.at - b.at);
      const texts = shown.length > 1 ? alikeTexts(shown.map(({ code: tick }) => valueOf(tick, fmt))) : [briefText(code, fmt, 9)];
      line.replaceChildren(
        ...(zone ? [node(`zone ${kind}`, span(...zone))] : []),
        node("axis", ""),
        ...ticks.map(({ at: x, name }) => node(`tick${name === "w" ? " mp-up-tick-w" : ""}`, at(x))),
        node("arrow", span(from, to)),
        node("goal", at(to)),
        node("goal-text", at(inside(to)), "w + dw"),
        ...shown.map(({ at: x, name }, i) =>
          node(name === "w" ? "label mp-up-label-w" : "label", at(inside(x)), name === "w" ? named("w", texts[i]) : texts[i])),
        ...stored.map(({ at: x }) => node("stored", at(x))),
        ...storedTexts(stored).map(({ x, text }) => node("stored-text", at(inside(x)), text)),
      );
      line.classList.toggle("mp-up-dense", ticks.length === 1);
      key.hidden = !zone;
      key.className = `mp-up-swatch ${kind}`;
      setText(words, ZONE_WORDS[keeping] ?? ZONE_WORDS.ties_to_even);
    },
  };
}

function storedTexts(stored) {
  if (stored.length === 2 && Math.abs(stored[0].at - stored[1].at) < 16) {
    return [{ x: stored[1].at, text: "either" }];
  }
  return stored.map(({ at: x, chance }) => ({ x, text: chance === null ? "stored" : percentText(chance) }));
}
