// AskGpu: on a press, what this browser's GPU answers to small WGSL kernels, beside recorded answers of other devices.

import { elements, setText } from "../shared/page/elements.js";
import { bindModel } from "../shared/page/model.js";
import { askGpu } from "./answers.js";
import { NoAnswer } from "./device.js";
import { answerTable, isShown, ownDevice } from "./table.js";
import { briefTexts, deviceText, INSTEAD, missingText, verdictText } from "./words.js";

const PROMISE = "Small kernels run on your GPU for a second or two, and then it is released. Nothing is stored or sent: a reload of the page forgets the answers.";
const KEY = "† marks an answer that is not that of IEEE 754. Another kernel on the same device may be compiled differently. Fused: rounded once where two operations round twice. Subnormal: below the smallest normal number. Ulp: the gap between neighbouring floats. Sections of WGSL, draft of August 2026:";
const [ASK, AGAIN, ASKING] = ["Ask this GPU", "Ask again", "Asking …"];

function filterButtons(h, topics, choose) {
  const options = [...topics, ["differ", "where any two differ"], ["", "all"]];
  const buttons = options.map(([only, text]) =>
    h("button", { class: "mp-button", type: "button", "data-only": only, on: { click: () => choose(only) } }, text));
  return {
    node: h("div", { class: "mp-ag-filter", role: "group", "aria-label": "Rows" }, buttons),
    draw(only) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.only === only));
    },
  };
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const [rows, topics, sections, recorded] = ["rows", "topics", "sections", "recorded"].map((trait) => model.get(trait));
  const save = bindModel(model, ["only"], draw, stop.signal);
  const ieee = recorded[0];
  let [own, device, asking] = [null, null, false];

  const button = h("button", { class: "mp-button mp-primary", type: "button", on: { click: ask } }, ASK);
  const says = h("p", { class: "mp-verdict mp-ag-says", role: "status" });
  const words = h("div", { class: "mp-ag-words", hidden: true });
  const filter = filterButtons(h, topics, (only) => {
    save({ only });
    draw();
  });
  const place = h("div", { class: "mp-ag-place" });
  const key = h("p", { class: "mp-ag-key" });

  function showButton() {
    setText(button, asking ? ASKING : own ? AGAIN : ASK);
    if (asking) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }

  async function ask() {
    if (asking) return;
    asking = true;
    showButton();
    setText(says, "Waiting for the browser’s GPU.");
    let answered = null;
    let trouble = "";
    try {
      answered = await askGpu({ gpu: navigator.gpu, isSecureContext }, (opened) => {
        device = opened;
        setText(says, "The kernels are running.");
      });
    } catch (error) {
      trouble = error instanceof NoAnswer ? error.message : `The browser could not run the kernels (${error.message}).`;
    }
    asking = false;
    device = null;
    if (stop.signal.aborted) return;
    own = answered;
    draw();
    setText(says, own ? verdictText(rows, own.answers, ieee) : `${trouble} ${INSTEAD}`);
    words.hidden = !own;
    words.replaceChildren(...(own ? ownWords() : []));
  }

  function ownWords() {
    const sentences = briefTexts(rows, own.answers).map((text) => h("li", {}, text));
    return [h("p", {}, deviceText(own)), h("p", {}, "In this run:"), h("ul", {}, sentences), h("p", {}, missingText(own))].filter(({ textContent }) => textContent);
  }

  function draw() {
    const only = model.get("only");
    const devices = own ? [ownDevice(own.answers), ...recorded] : recorded;
    showButton();
    filter.draw(only);
    const shown = rows.filter((row) => isShown(row, only, devices));
    place.replaceChildren(answerTable(h, { rows: shown, topics, devices, ieee }));
    const cited = Object.entries(sections).filter(([number]) => shown.some(({ section }) => section === number));
    setText(key, `${KEY} ${cited.map(([number, title]) => `${number} ${title}`).join("; ")}.`);
  }

  el.classList.add("mp-widget", "mp-ask-gpu");
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-ag" },
    h("div", { class: "mp-ag-ask" }, button, h("p", {}, PROMISE)), says, words, filter.node, place, key)));
  setText(says, "Not asked yet. The table has the recorded answers of two software renderers, and those of IEEE 754 with nothing fused except fma.");
  draw();
  return () => {
    stop.abort();
    device?.destroy();
  };
}

export default { render };
