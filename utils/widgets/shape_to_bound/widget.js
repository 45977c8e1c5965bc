// ShapeToBound: which roof bounds a product of matrices. The facts come from facts.py as the trait `facts`;
// the numbers are computed in shared/cost/roof.js.

import { nearestType, recordOf, roofOf, sbCase, typeOf } from "../shared/cost/roof.js";
import { sbLacks, sbPrediction, sbVerdict } from "../shared/cost/roof_words.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { ANSWER } from "../shared/words/amounts.js";
import { changePanel, placePicker, productPicker, sizeControls, typeTable } from "./panels.js";
import { matrixPanel, roofPicture, timeBars } from "./picture.js";

const SB_TRAITS = ["m", "n", "k", "dtype", "device"];
const SB_LEAD = "A [M, K] · B [K, N] = C [M, N]. In a layer, M counts tokens, K inputs and N outputs; in the gradient of its weights, K counts the tokens. Which takes longer: moving the three matrices, or computing?";

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const [prediction, source] = ["prediction", "source"].map((name) => h("p", { class: `mp-sb-${name}` }));
  const verdict = h("p", { class: "mp-verdict mp-sb-verdict" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const result = h("div", { class: "mp-sb-result", role: "group", "aria-label": ANSWER.fresh });
  const save = bindModel(model, SB_TRAITS, followModel, stop.signal);

  function read() {
    const [m, n, k, dtype, device] = SB_TRAITS.map((name) => model.get(name));
    const roof = roofOf(facts, device);
    return sbCase({ m, n, k }, typeOf(facts, nearestType(facts, roof, dtype)), roof);
  }

  const actions = {
    stale(on) {
      result.toggleAttribute("data-stale", on);
      result.setAttribute("aria-label", on ? ANSWER.stale : ANSWER.fresh);
      if (on) setText(status, ""); // the next answer is said even if it is the same
    },
    speak: (first = "") => setText(status, `${first}${first && " "}${verdict.textContent} ${prediction.textContent}`),
    show(change) { // while a slider moves nothing is said
      place.say("");
      save(change);
      draw();
    },
    set(change) {
      actions.show(change);
      actions.speak();
    },
    setType(dtype) {
      const { roof } = read();
      if (dtype in roof.peaks) return actions.set({ dtype });
      place.say(sbLacks(facts, roof, dtype));
      return setText(status, sbLacks(facts, roof, dtype));
    },
    setDevice(device) {
      const [roof, { type }] = [roofOf(facts, device), read()];
      const dtype = nearestType(facts, roof, type.dtype);
      const lacks = dtype === type.dtype ? "" : `${sbLacks(facts, roof, type.dtype)} Now ${typeOf(facts, dtype).label}.`;
      actions.show({ device, dtype });
      place.say(lacks);
      actions.speak(lacks);
    },
  };
  const [picker, sizes, place] = [productPicker(h, facts, actions), sizeControls(h, actions), placePicker(h, facts, actions)];
  const [matrices, bars, picture] = [matrixPanel(h), timeBars(h), roofPicture(h, facts, stop.signal)];
  const [changes, table] = [changePanel(h, facts, actions), typeTable(h, facts)];

  function draw() {
    const shown = read();
    const found = recordOf(facts, shown);
    for (const part of [picker, sizes, place, matrices, bars, picture, changes, table]) part.draw(shown, found);
    setText(verdict, sbVerdict(shown));
    verdict.dataset.bound = shown.bound;
    setText(prediction, sbPrediction(shown));
    const { notes, source: where } = shown.roof;
    setText(source, `The roof: ${where}${notes && `; ${notes}`}. ${facts.left_out}`);
    actions.stale(false);
  }

  function followModel() {
    place.say("");
    draw();
  }

  result.append(verdict, h("div", { class: "mp-sb-columns" }, matrices.node, bars.node), prediction, picture.node, changes.node, table.node);
  el.classList.add("mp-widget", "mp-shape-to-bound");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-sb" }, h("p", { class: "mp-sb-lead" }, SB_LEAD), picker.stories,
    h("div", { class: "mp-sb-places" }, picker.node, place.node), sizes.node, place.types, result, source, status)));
  place.say("");
  draw();
  return () => stop.abort();
}

export default { render };
