// PrecisionPlan: which layers of a training step are multiplied in FP8. The facts come from facts.py as
// the trait `facts`; the numbers are computed in numbers.js.

import { roofOf } from "../shared/cost/roof.js";
import { elements, setText } from "../shared/page/elements.js";
import { bindModel, readTraits } from "../shared/page/model.js";
import { ANSWER } from "../shared/words/amounts.js";
import { planVerdict, planView, PP_MOST } from "./numbers.js";
import { blockStrip, callPanel, kindTable, planBars, planFields } from "./panels.js";

const PP_TRAITS = ["model", "texts", "length", "recipe", "device", "exclude"];

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const facts = model.get("facts");
  const verdict = h("p", { class: "mp-verdict mp-pp-verdict" });
  const status = h("p", { class: "mp-unseen", role: "status" });
  const result = h("div", { class: "mp-pp-result", role: "group", "aria-label": ANSWER.fresh });
  const source = h("p", { class: "mp-pp-source" });
  const save = bindModel(model, PP_TRAITS, draw, stop.signal);
  const read = () => readTraits(model, PP_TRAITS);
  const headsOf = (name) => facts.models[name].kinds.filter(({ block }) => !block).map((kind) => kind.name);
  // What can be left out, in the order of the call: kinds as they follow each other, then blocks.
  const namesOf = (name) => {
    const { kinds, blocks, layers } = facts.models[name];
    return [...kinds.map((kind) => kind.name), ...Array.from({ length: layers }, (_, i) => `${blocks}.${i}`)];
  };
  const ordered = (names) => namesOf(model.get("model")).filter((name) => names.includes(name));

  function store(change) {
    save(change);
    draw();
    setText(status, verdict.textContent);
  }

  const actions = {
    stale(on) {
      result.toggleAttribute("data-stale", on);
      result.setAttribute("aria-label", on ? ANSWER.stale : ANSWER.fresh);
      if (on) setText(status, ""); // the next answer is said even if it is the same
    },
    set(change) {
      const fits = !("model" in change) || model.get("exclude").every((name) => namesOf(change.model).includes(name));
      store(fits ? change : { ...change, exclude: headsOf(change.model) });
    },
    setCount(name, amount) {
      const tokens = amount * model.get(name === "texts" ? "length" : "texts");
      if (tokens > PP_MOST) return `That is ${tokens.toLocaleString("en")} tokens; the plan counts up to ${PP_MOST.toLocaleString("en")}.`;
      store({ [name]: amount });
      return "";
    },
    toggle(name) {
      const exclude = model.get("exclude");
      store({ exclude: ordered(exclude.includes(name) ? exclude.filter((one) => one !== name) : [...exclude, name]) });
    },
    toggleBlock: (i) => actions.toggle(`${facts.models[model.get("model")].blocks}.${i}`),
    blocks(out) {
      const { blocks } = facts.models[model.get("model")];
      const kinds = model.get("exclude").filter((name) => !name.startsWith(`${blocks}.`));
      store({ exclude: ordered([...kinds, ...out.map((i) => `${blocks}.${i}`)]) });
    },
    reset: () => store({ exclude: headsOf(model.get("model")) }),
  };
  const [form, bars, kinds, strip, call] = [planFields(h, facts, actions), planBars(h), kindTable(h, actions), blockStrip(h, actions), callPanel(h, actions)];

  function draw() {
    const view = planView(facts, read());
    for (const part of [form, bars, kinds, call]) part.draw(view);
    strip.draw(view, facts.models[view.plan.model]);
    setText(verdict, planVerdict(view));
    const roof = roofOf(facts, view.plan.device);
    setText(source, `${facts.others} ${facts.left_out} The roof: ${roof.source}.`);
    actions.stale(false);
  }

  result.append(verdict, bars.node, kinds.node, strip.node, call.node);
  el.classList.add("mp-widget", "mp-precision-plan");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-pp" }, form.node, result, source, status)));
  draw();
  return () => stop.abort();
}

export default { render };
