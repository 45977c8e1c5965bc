// BlockEditor: values that share a scale, in bits. The arithmetic is in block.js, the facts come from
// facts.py as the trait `facts`.

import { encode, namedCode, valueOf } from "../shared/numbers/codec.js";
import { asDouble } from "../shared/numbers/double_rounding.js";
import { FORMATS } from "../shared/numbers/formats.js";
import { NumberTextError, parseNumber } from "../shared/numbers/number_text.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { fewDigits } from "../shared/words/amounts.js";
import { blockView } from "./block.js";
import { barGrid, blockControls, formatTable, scalePanelOf, valuePanelOf } from "./panels.js";
import { beFactor, beText, beVerdict, cellFate, scaleFlipText } from "./words.js";

const BE_TRAITS = ["element", "scaling", "values", "tensor_amax", "scales", "codes", "selected", "samples"];
const BE_INVITATION = "Choose a value; change it, or flip a bit of its code or of the scale.";

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const verdict = h("p", { class: "mp-verdict mp-be-verdict" });
  const message = h("p", { class: "mp-be-message" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const local = { message: BE_INVITATION, wrong: null };
  let view = null;
  const save = bindModel(model, BE_TRAITS, followModel, stop.signal);
  const read = () => readTraits(model, BE_TRAITS);
  const tileIndex = () => Math.floor(model.get("selected") / view.way.block);
  const ownScales = () => view.tiles.map(({ code }) => Number(code));
  const ownCodes = () => view.cells.map(({ code }) => Number(code));

  function update(change, said = "") {
    save(change);
    local.wrong = null;
    draw();
    local.message = typeof said === "function" ? said() : said;
    speak();
  }

  function speak() {
    setText(message, local.message);
    message.classList.toggle("mp-wrong", local.wrong !== null);
    setText(status, [local.message, local.wrong ? "" : verdict.textContent].filter(Boolean).join(" "));
  }

  function refuse(field, text) {
    Object.assign(local, { message: text, wrong: { field } });
    draw();
    speak();
  }

  // What a reader typed, as a float32; a number past its range is refused.
  function readFinite(text, field, take) {
    try {
      const x = asDouble(valueOf(encode(parseNumber(text), FORMATS.float32), FORMATS.float32));
      if (!Number.isFinite(x)) return refuse(field, "Here values are finite numbers of float32. A NaN of a whole block is made by its scale: 0xFF.");
      return take(x);
    } catch (error) {
      if (!(error instanceof NumberTextError)) throw error;
      return refuse(field, error.message);
    }
  }

  const anew = { scales: [], codes: [] };
  const chosenCell = () => view.cells[model.get("selected")];

  function putValue(x) {
    const values = [...model.get("values")];
    values[model.get("selected")] = x;
    update({ values, ...anew }, () => `The block is encoded anew. ${cellFate(chosenCell())}`);
  }

  const actions = {
    set: (change) => update({ ...change, ...anew }),
    setFormat(label) {
      const { element, scalings } = facts.formats.find((row) => row.label === label);
      const before = model.get("scaling");
      actions.set({ element, scaling: scalings.includes(before) ? before : scalings[0] });
    },
    setSample: (name) => update({ values: [...model.get("samples").find(([known]) => known === name)[1]], tensor_amax: 0, ...anew }),
    setTensor: (text) => readFinite(text, "tensor", (x) => {
      const own = Math.max(...view.tiles.map(({ amax }) => amax));
      if (Math.abs(x) < own) return refuse("tensor", `The tensor holds these values: its amax is at least ${beText(own)}.`);
      return update({ tensor_amax: Math.abs(x), ...anew }, `The tensor's largest value is ${beText(Math.abs(x))}: its scale makes room for that.`);
    }),
    select(i) {
      if (i !== model.get("selected")) update({ selected: i }, () => `Value ${i + 1}: ${cellFate(chosenCell())}`);
    },
    setValue: (text) => readFinite(text, "value", putValue),
    changeValue(change) {
      const x = Math.fround(change(chosenCell().x));
      if (Number.isFinite(x)) putValue(x);
      else refuse("value", "That is beyond the largest float32.");
    },
    flipCode(bit) {
      const codes = ownCodes();
      const [i, before] = [model.get("selected"), chosenCell()];
      codes[i] ^= 2 ** bit;
      update({ codes, scales: ownScales() }, () => `Bit ${bit} of the code is now ${(chosenCell().code >> BigInt(bit)) & 1n}: ${beText(before.stored)} became ${beText(chosenCell().stored)}.`);
    },
    flipScale(bit) {
      const [scales, codes, i] = [ownScales(), ownCodes(), tileIndex()];
      const before = view.tiles[i].code;
      scales[i] ^= 2 ** bit;
      update({ scales, codes }, () => scaleFlipText(bit, before, view.tiles[i].code, view, view.tiles[i]));
    },
    stepScale(by) {
      const [scales, i] = [ownScales(), tileIndex()];
      const last = Number(namedCode("largest", view.narrow));
      scales[i] = Math.min(Math.max(scales[i] + by, view.narrow.has_zero ? 1 : 0), last);
      update({ scales, codes: [] }, () => `inv_scale ${beFactor(view.tiles[i].scaleInv)}; the values are encoded with it.`);
    },
    encodeAgain() {
      if (model.get("codes").length) update({ codes: [] }, "The values are encoded with this scale.");
    },
    byRule() {
      if (model.get("codes").length || model.get("scales").length) update(anew, "Scale and codes are those of the rule.");
    },
  };
  const parts = [blockControls(h, facts, actions), barGrid(h, actions), valuePanelOf(h, actions), scalePanelOf(h, actions), formatTable(h, facts, actions)];
  const [controls, grid, value, scale, table] = parts.map(({ node }) => node);

  function draw() {
    const state = read();
    view = blockView(facts, state);
    for (const part of parts) part.draw({ state, view, samples: state.samples, wrong: local.wrong });
    setText(verdict, beVerdict(view, fewDigits(facts.bits[state.element][state.scaling])));
  }

  function followModel() {
    Object.assign(local, { message: "Set from Python.", wrong: null });
    draw();
    setText(message, local.message);
  }

  el.classList.add("mp-widget", "mp-block-editor");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-be" }, controls, verdict, grid, message, h("div", { class: "mp-be-parts" }, value, scale), table, status)));
  draw();
  setText(message, local.message);
  return () => stop.abort();
}

export default { render };
