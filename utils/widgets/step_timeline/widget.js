// StepTimeline: the blocks of one training step; each can be pressed, and the order can be broken.

import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { blockWords, BREAKS, forcedWords, STEP_RECIPES, stepBlocks, stepLines, stepTensors, stepVerdict } from "./facts.js";

const STEP_FIELDS = { norm: "norm of the gradients", scale: "scale S", max_norm: "max_norm of clip" };
const STEP_SWITCHES = { overflow: "a gradient overflows", accumulate: "accumulate over 2 batches", clip: "clip" };
const STEP_TRAITS = ["recipe", "overflow", "accumulate", "clip", "broken", "block", ...Object.keys(STEP_FIELDS)];

/** A positive number of moderate size from text; throws a NumberTextError that names the field. */
export function readPositive(text, name) {
  const number = parseNumber(text);
  const value = number.kind === "finite" && number.sign === 0 ? Number(number.num) / Number(number.den) : NaN;
  if (!(value >= 1e-12 && value <= 1e12)) throw new NumberTextError(`The ${name} must be a number from 10⁻¹² to 10¹², such as 0.5 or 2^16.`);
  return value;
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const state = { wrong: "", refused: "", forced: "", typed: {}, values: {} };
  const save = bindModel(model, STEP_TRAITS, followModel, stop.signal);

  const plan = () => ({
    ...readTraits(model, ["recipe", "overflow", "accumulate", "clip", "broken"]),
    norm: state.values.norm, scale: state.values.scale, maxNorm: state.values.max_norm,
  });

  function store(change, { speak = "verdict", forced = "" } = {}) {
    save(change);
    if (speak === "verdict") state.forced = forced;
    draw();
    setText(status, speak === "verdict" ? state.forced + stepVerdict(plan()).text : speak);
  }

  // A break that the chosen recipe or switch does not show ends.
  function change(values) {
    const broken = values.broken ?? model.get("broken");
    const { recipe, clip } = BREAKS[broken]?.needs ?? {};
    const next = { recipe: model.get("recipe"), clip: model.get("clip"), ...values };
    if ((recipe && next.recipe !== recipe) || (clip && !next.clip)) return store({ ...values, broken: "" });
    store(values);
  }

  // What a break needs is set, and the verdict says so.
  const setBroken = (broken) => store({ ...BREAKS[broken]?.needs, broken }, { forced: forcedWords(broken, plan()) });

  function setNumber(name, text) {
    state.typed[name] = text;
    try {
      state.values[name] = readPositive(text, STEP_FIELDS[name]);
      Object.assign(state, { wrong: "", refused: "" });
      for (const other of Object.keys(STEP_FIELDS)) state.typed[other] = other === name ? text : model.get(other);
      store({ [name]: text });
    } catch (error) {
      if (!(error instanceof NumberTextError)) throw error;
      Object.assign(state, { wrong: name, refused: `${error.message} The step below still uses ${model.get(name)}.` });
      draw();
      setText(status, state.refused);
    }
  }

  const recipe = h("select", { class: "mp-input", on: { change: () => change({ recipe: recipe.value }) } },
    Object.keys(STEP_RECIPES).map((name) => h("option", { value: name }, name)));
  const switches = Object.entries(STEP_SWITCHES).map(([name, label]) => {
    const input = h("input", { type: "checkbox", on: { change: () => change({ [name]: input.checked }) } });
    return { name, input, node: h("label", { class: "mp-st-check" }, input, label) };
  });
  const fields = Object.entries(STEP_FIELDS).map(([name, label]) => {
    const input = h("input", { class: "mp-input", type: "text", size: "6", spellcheck: "false", autocomplete: "off", on: { change: () => setNumber(name, input.value) } });
    return { name, input, node: h("label", { class: "mp-field" }, label, input) };
  });
  const breaks = Object.entries({ "": { label: "nothing" }, ...BREAKS }).map(([name, { label }]) =>
    [name, h("button", { class: "mp-button", type: "button", on: { click: () => setBroken(name) } }, label)]);
  const verdictLine = h("p", { class: "mp-st-verdict" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const blocks = h("ol", { class: "mp-st-blocks", "aria-label": "The blocks of one step; use the arrow keys to move along them", on: { keydown: walk } });
  const [title, what, without] = [h("p", { class: "mp-st-title" }), h("p"), h("p", { class: "mp-st-soft" })];
  const tensors = h("tbody");
  const table = h("table", { class: "mp-st-tensors" }, h("caption", {}, "Tensors after this block"),
    h("thead", {}, h("tr", {}, ["tensor", "dtype", "carries"].map((head) => h("th", { scope: "col" }, head)))), tensors);
  const code = h("code");
  const detail = h("li", { class: "mp-st-columns" }, h("div", { class: "mp-st-detail" }, title, what, without, table),
    h("div", { class: "mp-st-detail" }, h("pre", { class: "mp-st-listing" }, code), h("div", { class: "mp-st-row" }, fields.map(({ node }) => node))));
  const places = stepBlocks({ recipe: "32-true" }).map((_, i) =>
    h("li", { class: "mp-st-place" }, h("button", { type: "button", on: { click: () => choose(stepBlocks(plan())[i].key) } })));
  blocks.append(...places);
  for (const { input } of fields) input.ariaDescribedByElements = [verdictLine];

  function walk(event) {
    const buttons = places.map((place) => place.firstChild);
    const at = buttons.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (!buttons[to]) return;
    choose(stepBlocks(plan())[to].key);
  }

  function choose(block) {
    store({ block }, { speak: "" });
    blocks.querySelector("[tabindex='0']").focus();
  }

  function drawBlocks(now, chosen) {
    const said = { warned: ", broken", off: ", not in this step", skipped: ", skipped" };
    stepBlocks(now).forEach(({ key, name, kind }, i) => {
      const button = places[i].firstChild;
      button.replaceChildren(h("span", { class: "mp-st-number", "aria-hidden": "true" }, kind === "warned" ? "!" : String(i + 1)),
        h("span", {}, name, h("span", { class: "mp-unseen" }, said[kind] ?? "")));
      button.className = `mp-st-block mp-st-${kind || "on"}`;
      button.tabIndex = key === chosen ? 0 : -1;
      if (key === chosen) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
      if (key === chosen && places[i].nextSibling !== detail) places[i].after(detail); // the style sheet may show it last
    });
  }

  function draw() {
    const now = plan();
    const chosen = model.get("block");
    recipe.value = now.recipe;
    for (const { name, input } of switches) input.checked = now[name];
    for (const { name, input } of fields) {
      if (input.value !== state.typed[name]) input.value = state.typed[name];
      input.setAttribute("aria-invalid", String(state.wrong === name));
    }
    for (const [name, button] of breaks) button.setAttribute("aria-pressed", String(name === now.broken));
    const { isWrong, text } = stepVerdict(now);
    setText(verdictLine, state.refused || state.forced + text);
    verdictLine.classList.toggle("mp-wrong", isWrong || state.refused !== "");
    drawBlocks(now, chosen);
    const block = stepBlocks(now).find(({ key }) => key === chosen);
    const [does, otherwise] = blockWords(now, chosen);
    setText(title, `${block.name}${block.kind === "skipped" ? " (skipped)" : ""}`);
    setText(what, does);
    setText(without, otherwise);
    tensors.replaceChildren(...stepTensors(now, chosen).map(({ name, dtype, note }) =>
      h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, dtype), h("td", { class: note.startsWith("× S") ? "mp-st-scaled" : null }, note))));
    code.replaceChildren(...stepLines(now).map(({ text: line, blocks: of, wrong }) => {
      const indent = line.length - line.trimStart().length;
      return h("span", { class: `mp-st-code${of.includes(chosen) ? " mp-st-here" : ""}${wrong ? " mp-st-bad" : ""}`, style: `--indent: ${indent}` }, line);
    }));
  }

  function followModel() {
    Object.assign(state, { wrong: "", refused: "", forced: "" });
    for (const name of Object.keys(STEP_FIELDS)) {
      state.typed[name] = model.get(name);
      state.values[name] = readPositive(state.typed[name], STEP_FIELDS[name]);
    }
    draw();
  }

  el.classList.add("mp-widget", "mp-step-timeline");
  followModel();
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-st-stack" },
    h("div", { class: "mp-st-row" }, h("label", { class: "mp-field" }, "Recipe", recipe), switches.map(({ node }) => node)),
    h("div", { class: "mp-st-row mp-st-breaks", role: "group", "aria-label": "Break it" }, h("span", { class: "mp-st-soft", "aria-hidden": "true" }, "Break it:"), breaks.map(([, button]) => button)),
    verdictLine, blocks, status)));
  return () => stop.abort();
}

export default { render };
