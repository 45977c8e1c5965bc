// Progress: a row for each chapter, the book's total, and the way to another browser. Sums and texts: records.js.

import { copyText, elements, setText } from "../shared/page/elements.js";
import { forgetProgress, readProgress, writeProgress } from "../shared/page/progress.js";
import {
  broughtWords, countProgress, countWord, isProgressEntry, keptWords, mergeProgress, parseProgress, PROGRESS_MOST,
  progressText, ProgressTextError,
} from "./records.js";

const PROGRESS_SAYS = {
  off: "This browser stores nothing for this page, so what you do is forgotten as soon as you leave.",
  disk: "Some browsers keep separate progress for each page opened from a disk; if a count is missing, open the book through a server (make serve).",
  copied: "Copied. Paste it here in the other browser.",
  uncopied: "The browser does not allow to copy; save a file instead.",
  saved: "Saved as a file. Open it here in the other browser.",
  full: "The browser could not store all of it; nothing that was here is lost.",
  nothing: "There is nothing to save yet.",
};
const PROGRESS_KEY = "mp-progress:";
const PROGRESS_FILE = "mixed-precision-progress.json";

// All records of this browser by id, also those of exercises that the book no longer has.
function allProgress() {
  try {
    const ids = Object.keys(localStorage).filter((key) => key.startsWith(PROGRESS_KEY)).map((key) => key.slice(PROGRESS_KEY.length));
    return Object.fromEntries(ids.map((id) => [id, readProgress(id)]).filter(([id, record]) => isProgressEntry(id, record)));
  } catch {
    return {}; // storage is off
  }
}

function storageWorks() {
  try {
    localStorage.setItem("mp-probe", "1");
    localStorage.removeItem("mp-probe");
    return true;
  } catch {
    return false;
  }
}

// A bar with its words: "3 of 8 done". `name` is what it counts, for those who do not see where it stands.
function progressMeter(h, name) {
  const bar = h("progress", { class: "mp-pg-bar", "aria-label": `${name}: done` });
  const words = h("span", { class: "mp-pg-count" });
  return {
    bar,
    words,
    draw({ total, solved }) {
      bar.max = total;
      bar.value = solved;
      bar.setAttribute("aria-valuetext", `${solved} of ${total} done`);
      setText(words, solved === total ? `✓ all ${total} done` : `${solved} of ${total} done`);
      words.dataset.tone = solved === total ? "good" : "";
    },
  };
}

// A button that asks once: "Forget 7 finished exercises?" Yes, forget / Keep them. `sum` is what there is to forget.
function forgetControl(h, { name, forget, say, after }) {
  let asking = false;
  let sum = null;
  const open = h("button", { class: "mp-link", type: "button", on: { click: () => ask(true) } }, "forget");
  open.setAttribute("aria-label", `forget the progress in ${name}`);
  const question = h("span", { class: "mp-pg-question" });
  const yes = h("button", { class: "mp-button", type: "button", on: { click: agree } }, "Yes, forget");
  const no = h("button", { class: "mp-button", type: "button", on: { click: () => ask(false) } }, "Keep them");
  const box = h("span", { class: "mp-pg-ask", role: "group", "aria-label": `Forget the progress in ${name}`, on: { keydown: escape } }, question, yes, no);

  function ask(now) {
    asking = now;
    draw(sum);
    (now ? no : open).focus();
    say(now ? question.textContent : "Kept.");
  }

  function escape(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    ask(false);
  }

  function agree() {
    const words = keptWords(sum);
    asking = false;
    forget();
    after().focus(); // the button that was pressed is gone
    say(`Forgotten: ${words}.`);
  }

  function draw(now) {
    sum = now;
    const words = keptWords(sum);
    if (!words) asking = false;
    open.hidden = asking;
    open.classList.toggle("mp-pg-away", !words);
    box.hidden = !asking;
    setText(question, `Forget ${words}?`);
  }

  return { open, box, draw };
}

function chapterRow(h, { title, page, items }, { say, redraw }) {
  const link = h("a", { class: "mp-pg-title", href: page }, title);
  const meter = progressMeter(h, title);
  const next = h("a", { class: "mp-pg-next" });
  const hints = h("span", { class: "mp-pg-hints" });
  const reset = forgetControl(h, {
    name: title, say, after: () => link,
    forget() {
      for (const { id } of items) forgetProgress(id);
      redraw();
    },
  });
  const node = h("li", { class: "mp-pg-row" }, h("div", { class: "mp-pg-head" }, link, meter.words), meter.bar,
    h("div", { class: "mp-pg-foot" }, h("span", { class: "mp-pg-way" }, next), h("span", { class: "mp-pg-aside" }, hints, reset.open)), reset.box);
  return {
    node,
    draw() {
      const sum = countProgress(items, readProgress);
      meter.draw(sum);
      setText(next, sum.next ? `Next: ${sum.next.text}` : "");
      next.hidden = !sum.next;
      if (sum.next) next.href = `${page}#${sum.next.place}`;
      setText(hints, sum.hints ? `${countWord(sum.hints, "hint")} taken` : "");
      reset.draw(sum);
    },
  };
}

// The fold with which progress goes from browser to browser.
function movePanel(h, { say, redraw }) {
  const said = h("p", { class: "mp-pg-said" });
  const field = h("textarea", { class: "mp-input mp-pg-text", rows: 3, spellcheck: "false", autocomplete: "off" });
  const file = h("input", { class: "mp-pg-file", type: "file", accept: ".json,.txt,application/json,text/plain", on: { change: openFile } });
  const button = (text, click) => h("button", { class: "mp-button", type: "button", on: { click } }, text);
  const copy = button("Copy as text", copyAll);
  const node = h("details", { class: "mp-pg-move" }, h("summary", {}, "Take your progress to another browser"),
    h("div", { class: "mp-pg-stack" },
      h("p", {}, "Save your progress here, then open this page in the other browser and bring it in. What is already done there is kept."),
      h("div", { class: "mp-pg-buttons" }, button("Save as a file", saveFile), copy),
      h("label", { class: "mp-field" }, "Bring in a saved file", file),
      h("label", { class: "mp-field" }, "or paste the text", field),
      h("div", { class: "mp-pg-buttons" }, button("Bring in the text", () => take(field.value))), said));

  function tell(text, bad = false) {
    setText(said, text);
    said.dataset.tone = bad ? "bad" : "";
    if (bad) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
    say(text);
  }

  function saveFile() {
    const records = allProgress();
    if (!Object.keys(records).length) return tell(PROGRESS_SAYS.nothing);
    const url = URL.createObjectURL(new Blob([progressText(records)], { type: "application/json" }));
    h("a", { href: url, download: PROGRESS_FILE }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
    tell(PROGRESS_SAYS.saved);
  }

  async function copyAll() {
    const records = allProgress();
    if (!Object.keys(records).length) return tell(PROGRESS_SAYS.nothing);
    const worked = await copyText(progressText(records), copy);
    tell(worked ? PROGRESS_SAYS.copied : PROGRESS_SAYS.uncopied, !worked);
  }

  async function openFile() {
    const [chosen] = file.files;
    if (!chosen) return;
    if (chosen.size > 4 * PROGRESS_MOST) tell(`“${chosen.name}” is far larger than a saved progress can be; nothing was changed.`, true);
    else take(await chosen.text());
    file.value = ""; // so that the same file can be chosen again
  }

  function take(text) {
    let theirs;
    try {
      theirs = parseProgress(text);
    } catch (error) {
      if (!(error instanceof ProgressTextError)) throw error;
      return tell(error.message, true);
    }
    const mine = allProgress();
    const ids = Object.keys(theirs);
    const solved = ids.filter((id) => theirs[id].solved);
    for (const id of ids) writeProgress(id, mergeProgress(mine[id] ?? { solved: false, hints: 0 }, theirs[id]));
    redraw();
    const now = allProgress();
    if (!solved.every((id) => now[id]?.solved)) return tell(PROGRESS_SAYS.full, true);
    field.value = "";
    tell(broughtWords(solved.length, solved.filter((id) => !mine[id]?.solved).length));
  }

  return node;
}

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const chapters = model.get("chapters") ?? [];
  el.classList.add("mp-widget", "mp-progress");
  if (!chapters.length) {
    el.replaceChildren(h("div", { class: "mp-panel" }, h("p", {}, model.get("note"))));
    return () => stop.abort();
  }

  const status = h("p", { class: "mp-unseen", role: "status" });
  const say = (text) => setText(status, text);
  const works = storageWorks();
  const everything = chapters.flatMap(({ items }) => items);
  const rows = chapters.map((chapter) => chapterRow(h, chapter, { say, redraw: draw }));
  const total = progressMeter(h, "The whole book");
  const heading = h("h3", { class: "mp-pg-total", tabindex: "-1" }, "The whole book");
  const hints = h("span", { class: "mp-pg-hints" });
  const reset = forgetControl(h, {
    name: "the whole book", say, after: () => heading,
    forget() {
      for (const { id } of everything) forgetProgress(id);
      draw();
    },
  });

  function draw() {
    const sum = countProgress(everything, readProgress);
    total.draw(sum);
    setText(hints, sum.hints ? `${countWord(sum.hints, "hint")} taken` : "");
    reset.draw(sum);
    for (const row of rows) row.draw();
  }

  const warning = !works ? PROGRESS_SAYS.off : location.protocol === "file:" ? PROGRESS_SAYS.disk : "";
  el.replaceChildren(h("div", { class: "mp-panel" }, h("div", { class: "mp-pg-stack" },
    h("div", { class: "mp-pg-book" }, h("div", { class: "mp-pg-head" }, heading, total.words), total.bar,
      h("div", { class: "mp-pg-foot" }, h("span", { class: "mp-pg-way" }), h("span", { class: "mp-pg-aside" }, hints, reset.open)), reset.box),
    h("ol", { class: "mp-pg-list" }, rows.map(({ node }) => node)),
    warning ? h("p", { class: "mp-pg-warning" }, warning) : null,
    works ? movePanel(h, { say, redraw: draw }) : null, status)));
  draw();

  // Many changes at once are drawn once.
  let waiting = false;
  function drawSoon() {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      draw();
    });
  }

  const options = { signal: stop.signal };
  addEventListener("storage", drawSoon, options); // another tab
  addEventListener("pageshow", drawSoon, options); // back from another page
  addEventListener("mp-progress", drawSoon, options); // this page
  document.addEventListener("visibilitychange", drawSoon, options);
  return () => stop.abort();
}

export default { render, linkable: false };
