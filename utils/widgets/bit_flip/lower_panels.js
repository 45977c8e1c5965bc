// The lower parts of BitFlip: the ruler, the codes, the quick buttons, and the fold that can hold all three.
// Made and drawn as those in panels.js.

import { finite, floorLog2, namedCode, pow2, toBinary, toHex, valueOf } from "../shared/numbers/codec.js";
import { aboutText } from "../shared/numbers/number_text.js";
import { superscript } from "../shared/numbers/superscript.js";
import { copyText, setText } from "../shared/page/elements.js";

/** Where a magnitude lies on the ruler, from 0 (smallest value) to 1 (end of the largest binade); null off it. */
export function rulerPlace(number, fmt) {
  if (number.kind !== "finite" || number.num === 0n) return null;
  const e = floorLog2(number.num, number.den);
  const [up, down] = pow2(-e);
  const significand = Number((number.num * up * 4096n) / (number.den * down)) / 4096;
  const low = fmt.emin - fmt.mantissa_bits;
  return (e + Math.log2(significand) - low) / (fmt.emax + 1 - low);
}

export function rulerPanel(h) {
  const caption = h("span", {});
  const key = h("span", { class: "mp-zone-key" }, "subnormal");
  const marker = h("span", { class: "mp-marker" });
  const zone = h("span", { class: "mp-zone" });
  const one = h("span", { class: "mp-tick" });
  const [low, border, unit, high] = ["low", "at", "at", "high"].map((side) => h("span", { class: `mp-end-${side}` }));
  const node = h("div", { class: "mp-ruler", "aria-hidden": "true" }, // the class and the value say it in words
    h("p", { class: "mp-ruler-caption" }, caption, key),
    h("div", { class: "mp-strip" }, zone, one, marker),
    h("p", { class: "mp-ruler-ends" }, low, border, unit, high));
  return {
    node,
    draw({ fmt, code }) {
      const place = rulerPlace(valueOf(code, fmt), fmt);
      const [zoneEnd, atOne] = [rulerPlace(valueOf(namedCode("smallest_normal", fmt), fmt), fmt), rulerPlace(finite(0, 1n), fmt)];
      setText(caption, `All sizes of ${fmt.label}, by powers of two`);
      key.hidden = !fmt.has_zero;
      marker.hidden = place === null;
      if (place !== null) marker.style.left = `${100 * place}%`;
      zone.style.width = `${100 * zoneEnd}%`;
      for (const node of [one, unit]) node.style.left = `${100 * atOne}%`;
      border.style.left = `${100 * zoneEnd}%`;
      border.hidden = zoneEnd < 0.14 || Math.abs(zoneEnd - atOne) < 0.1;
      setText(low, `2${superscript(fmt.emin - fmt.mantissa_bits)}`);
      setText(border, `2${superscript(fmt.emin)}`);
      setText(unit, "1");
      setText(high, aboutText(valueOf(BigInt(fmt.max_code), fmt)).replace("about ", "≈\u00a0"));
    },
  };
}

export function codePanel(h, actions) {
  const hex = h("input", {
    class: "mp-input mp-hex", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    on: {
      change: () => actions.typeCode(hex.value),
      keydown: (event) => event.key === "Enter" && actions.typeCode(hex.value),
    },
  });
  const parts = ["sign", "exponent", "fraction"].map((field) => h("span", { class: `mp-ink-${field}` }));
  const binary = h("span", { class: "mp-binary" }, parts);
  let bits = "";
  const copy = (what, text) => {
    const button = h("button", {
      class: "mp-button mp-copy", type: "button", "aria-label": `copy the ${what} code`,
      on: { click: async () => actions.say((await copyText(text(), button)) ? `Copied ${text()}` : `Copy it by hand: ${text()}`) },
    }, "copy");
    return button;
  };
  const node = h("div", { class: "mp-codes" },
    h("div", { class: "mp-code" }, h("label", { class: "mp-field" }, h("span", {}, "Hex code"), hex), copy("hex", () => hex.value)),
    h("div", { class: "mp-code mp-grow" }, h("span", { class: "mp-field" }, h("span", {}, "Binary code"), binary), copy("binary", () => `0b${bits}`)));
  return {
    node,
    draw({ fmt, code }) {
      hex.value = toHex(code, fmt);
      hex.size = hex.value.length;
      bits = toBinary(code, fmt);
      const ends = [0, fmt.signed ? 1 : 0, fmt.bits - fmt.mantissa_bits, fmt.bits];
      parts.forEach((part, i) => setText(part, bits.slice(ends[i], ends[i + 1])));
    },
  };
}

const SHORTCUTS = [
  ["zero", "0"], ["one", "1"], ["largest", "largest"], ["smallest_normal", "smallest normal"],
  ["smallest_subnormal", "smallest subnormal"], ["infinity", "∞"], ["nan", "NaN"],
];

/** The quick buttons; without `all` those alone that give no goal away. */
export function shortcutsPanel(h, actions, { all = true } = {}) {
  const button = (text, click, label) => h("button", { class: "mp-button", type: "button", "aria-label": label, on: { click } }, text);
  const offered = all ? SHORTCUTS : SHORTCUTS.filter(([name]) => name === "zero" || name === "one");
  const named = offered.map(([name, text]) => [name, button(text, () => actions.jump(name), text === "∞" ? "infinity" : null)]);
  const sign = button("±", actions.changeSign, "change the sign");
  const node = h("div", { class: "mp-shortcuts", role: "group", "aria-label": "Go to" },
    sign, named.map(([, node]) => node), button("reset", actions.reset, null));
  return {
    node,
    draw({ fmt }) {
      sign.hidden = !fmt.signed;
      for (const [name, node] of named) node.hidden = namedCode(name, fmt) === null;
    },
  };
}

/** Some panels in one fold, closed at first. */
export function foldedPanel(h, panels) {
  return {
    node: h("details", { class: "mp-more" },
      h("summary", {}, "More: ruler, codes, quick buttons"), h("div", { class: "mp-stack" }, panels.map(({ node }) => node))),
    draw: (view) => panels.forEach((panel) => panel.draw(view)),
  };
}
