// Playground: a small network that trains in the page, with a number format for each of its tensors.

import { copyText, elements, setText } from "../shared/page/elements.js";
import { linkTo, readAddress, writeAddress } from "../shared/page/address.js";
import { bindModel } from "../shared/page/model.js";
import { fromAddress, isStart, START, toAddress } from "./address.js";
import { countPanel, histogramPanel, knobPanel, presetPanel, runPanel } from "./panels.js";
import { axisOf, fieldPicture, lossPlot, scalePlot } from "./picture.js";
import { TENSORS } from "./training/net.js";
import { newRun } from "./training/run.js";
import { tourPanel } from "./tour.js";
import { captionText, lossNote, verdictText } from "./words.js";

const NAME = "playground";
const RATE = 150; // steps a second, so that learning can be watched
const FRAME_MS = 10; // of each frame for training, so that the page stays alive
const FIELD_MS = 120; // between two pictures of the field
const LONGEST_LEG = 1000; // steps until a run pauses by itself
const LONGEST_LINK = 20_000; // steps that a link may ask for
const LEG_SECONDS = 8; // that they may take
const OTHER_SEEDS = 5;
const TWO_COLUMNS = 600; // pixels of width from which on widget.css has two columns
const CHANGED = "You changed the setting. Choose one from the list to go back to it.";
const FROM_ADDRESS = "This setting is from the address of the page. Choose one from the list to leave it.";

function render({ model, el }) {
  const stop = new AbortController();
  const h = elements(stop.signal);
  const { presets, offered } = model.get("facts");
  const tasks = model.get("goals");
  const setupOf = (name) => applied(presets.find((preset) => preset.name === name));
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)");
  const home = model.get("setup"); // what the page shows without an address
  let [run, watched, isRunning, isSeen, frame, linkText] = [null, model.get("watched"), false, true, 0, "Copy link"];
  let [last, pictured, goal, rate, notice, unnamed] = [0, 0, LONGEST_LEG, RATE, "", CHANGED];
  let isHeld = false; // the reader paused it, and it stays so until Run is pressed
  const save = bindModel(model, ["setup", "watched", "goal"], followModel, stop.signal);

  function begin(setup, { write = true, leg = LONGEST_LEG } = {}) {
    run = newRun(setup);
    run.net.watched = watched;
    [goal, rate] = [leg, Math.max(RATE, leg / LEG_SECONDS)];
    share();
    if (!write || !model.isInPage) return;
    if (leg === LONGEST_LEG) writeAddress(NAME, same(setup, home) ? null : toAddress(setup));
    else writeAddress(NAME, { ...toAddress(setup), steps: leg }); // a link to a step stays one until a knob is turned
  }

  // What Python reads: the knobs, how far the run is, and its curves.
  function share() {
    const { net, curve, loss, accuracy } = run;
    const finite = (x) => (Number.isFinite(x) ? x : null);
    save({ setup: run.setup, watched, steps: net.steps, loss: finite(loss), accuracy, curve: curve.map((row) => row.map(finite)) });
  }

  // Anew with another setup; it trains on where something was trained before and was not paused.
  function change(setup, { says = "", leg } = {}) {
    const goesOn = isRunning || (run.net.steps > 0 && !isHeld);
    halt();
    [notice, unnamed] = ["", CHANGED];
    begin(setup, { leg });
    if (goesOn) start();
    draw(`${says}${goesOn ? "Training from step 0." : "Back at step 0. Press Run."}`);
  }

  const actions = {
    preset(name, { run: startNow = false } = {}) {
      const preset = presets.find((one) => one.name === name);
      if (!preset) return;
      watched = preset.watched;
      change({ ...setupOf(name), seed: run.setup.seed }, { says: `${preset.says} ` });
      if (startNow && !isRunning) {
        start();
        draw();
      }
    },
    toggle() {
      if (isRunning) {
        halt();
        isHeld = true;
        return draw(verdictText(run));
      }
      if (run.net.steps >= goal) [goal, rate] = [run.net.steps + LONGEST_LEG, RATE];
      start();
      draw();
    },
    steps(count) {
      halt();
      isHeld = true;
      advance(count);
      draw(verdictText(run));
    },
    restart() {
      isHeld = !isRunning;
      change(run.setup);
    },
    nextSeed: () => (run.setup.seed % OTHER_SEEDS) + 1,
    otherSeed: () => change({ ...run.setup, seed: actions.nextSeed() }, { says: `Seed ${actions.nextSeed()}. ` }),
    set: (some) => change({ ...run.setup, ...some }),
    format: (tensor, value) => change({ ...run.setup, formats: { ...run.setup.formats, [tensor]: value } }),
    rule: (tensor, value) => change({ ...run.setup, rules: { ...run.setup.rules, [tensor]: value } }),
    watch(tensor) {
      watched = run.net.watched = tensor;
      if (!isRunning && run.net.steps > 0) advance(1); // the histogram is that of a step
      share();
      draw();
    },
    async copyLink(event) {
      const { steps } = run.net;
      const worked = await copyText(linkTo(NAME, { ...toAddress(run.setup), ...(watched !== watchedIn(run.setup) && { histogram: watched }), ...(steps && { steps }) }), event.currentTarget ?? el);
      linkText = worked ? "Copied" : "Not copied";
      draw(worked ? `The link to this setting${steps ? `, to be trained to step ${steps},` : ""} is copied.` : "The link could not be copied. It is in the address of the page.");
      setTimeout(() => {
        linkText = "Copy link";
        if (!stop.signal.aborted) draw();
      }, 2000);
    },
    redraw: (text = "") => run && draw(text),
  };

  function advance(count) {
    run.advance(count);
    run.judge();
  }

  function start() {
    [isRunning, isHeld] = [true, false];
    last = 0;
    if (isCalm.matches) { // no motion: the whole leg at once, in slices
      frame = requestAnimationFrame(slice);
    } else frame = requestAnimationFrame(tick);
  }

  function halt() {
    cancelAnimationFrame(frame);
    isRunning = false;
    run?.judge();
    if (run) share();
  }

  function slice() {
    const end = performance.now() + 4 * FRAME_MS;
    while (performance.now() < end && run.net.steps < goal) run.advance(Math.min(10, goal - run.net.steps));
    if (run.net.steps < goal) frame = requestAnimationFrame(slice);
    else finish();
  }

  function tick(now) {
    const due = last ? Math.min(Math.ceil(((now - last) * rate) / 1000), goal - run.net.steps) : 1;
    last = now;
    const end = performance.now() + FRAME_MS;
    if (isSeen) {
      for (let i = 0; i < due && performance.now() < end; i += 1) run.advance(1);
    }
    if (run.net.steps >= goal) return finish();
    if (now - pictured > FIELD_MS && isSeen) {
      pictured = now;
      run.judge();
      draw();
    }
    frame = requestAnimationFrame(tick);
  }

  function finish() {
    halt();
    draw(verdictText(run));
  }

  const presetOf = (setup) => presets.find((preset) => same(setupOf(preset.name), { ...setup, seed: START.seed }));
  const watchedIn = (setup) => presetOf(setup)?.watched ?? "gradients"; // by a link that names none

  const [verdict, status] = [h("p", { class: "mp-verdict mp-play-verdict" }), h("p", { class: "mp-unseen", role: "status" })];
  const [own, ghost] = [fieldPicture(h, "your formats"), fieldPicture(h, "float32")];
  const [presetPart, runPart, losses, scales, counts, histogram, knobs] = [
    presetPanel(h, actions, presets), runPanel(h, actions), lossPlot(h), scalePlot(h), countPanel(h), histogramPanel(h, actions), knobPanel(h, actions, offered),
  ];
  const tour = tasks.length ? tourPanel(h, actions, { tasks, setupOf, model }) : null;

  function draw(speak = "") {
    const said = tour?.check(run, isRunning) ?? "";
    const view = { run, watched, isRunning, linkText, notice, unnamed, preset: presetOf(run.setup), most: axisOf(run.net.steps) };
    for (const part of [presetPart, runPart, losses, scales, counts, histogram, knobs]) part.draw(view);
    tour?.draw();
    const { net, loss, ghostLoss, accuracy, ghostAccuracy } = run;
    own.draw(net, captionText(loss, accuracy, net.steps));
    ghost.draw(run.ghost, captionText(ghostLoss, ghostAccuracy, net.steps));
    setText(verdict, verdictText(run));
    const text = [speak, said].filter(Boolean).join(" ");
    if (text) setText(status, status.textContent === text ? `${text}\u00a0` : text); // the same again is said again
    if (said.startsWith("✓")) share();
  }

  function enterTour() {
    writeAddress(NAME, same(run.setup, home) ? null : toAddress(run.setup)); // so that the link works again
    tour?.enter();
  }

  function followModel(trait) {
    if (trait === "setup") change(model.get("setup"));
    else if (trait === "watched") actions.watch(model.get("watched"));
    else if (trait === "goal" && model.get("goal") > run.net.steps) actions.steps(model.get("goal") - run.net.steps);
  }

  // What the address names: { setup, shown, leg }, the tensor of the histogram and the steps to train; or { isTour }, or null.
  function addressed() {
    const state = model.isInPage ? readAddress(NAME) : null;
    if (!state) return null;
    const { steps = "", histogram = "", ...knobs } = state;
    if ("tour" in state) return { isTour: true };
    const setup = fromAddress(knobs, offered);
    const leg = /^[1-9]\d*$/.test(steps) ? Math.min(Number(steps), LONGEST_LINK) : LONGEST_LEG;
    const unknown = Object.keys(knobs).filter((name) => toAddress(setup)[name] !== knobs[name] && !isStart(name, knobs[name]));
    notice = unknown.length ? `The link has a value that is not offered here: ${unknown.map((name) => `${name}=${knobs[name]}`).join(", ")}.` : "";
    unnamed = FROM_ADDRESS;
    return { setup, leg, shown: TENSORS.includes(histogram) ? histogram : watchedIn(setup) };
  }

  if (model.isInPage) { // a link on this page to a setting
    addEventListener("hashchange", () => {
      const named = addressed();
      if (!named) return;
      if (named.isTour) return enterTour();
      watched = named.shown;
      const unknown = notice;
      change(named.setup, { says: unknown ? `${unknown} ` : "", leg: named.leg });
      [notice, unnamed] = [unknown, FROM_ADDRESS];
      el.scrollIntoView();
      presetPart.focus();
      if (!isRunning) start();
    }, { signal: stop.signal });
  }
  const named = addressed();
  watched = named?.shown ?? watched;
  begin(named?.setup ?? model.get("setup"), { write: false, leg: named?.leg });
  el.classList.add("mp-widget", "mp-playground");
  const key = (name, text) => h("span", {}, h("span", { class: `mp-play-key ${name}` }), text);
  const stage = h("div", { class: "mp-play-stage" }, h("div", { class: "mp-play-top" }, runPart.node, h("div", { class: "mp-play-pictures" }, own.node, ghost.node)), verdict,
    h("div", {}, h("h3", { class: "mp-play-title" }, "Loss"), losses.node, h("p", { class: "mp-plot-key" }, key("mp-play-own-key", "your formats"), key("mp-play-ghost-key", "float32")), h("p", { class: "mp-play-note" }, lossNote(run))));
  const side = h("div", { class: "mp-play-side" }, tour?.node, knobs.node, runPart.more, scales.node);
  const low = h("div", { class: "mp-play-low" }, histogram.node, h("h3", { class: "mp-play-title" }, "All steps so far"), counts.node);
  const play = h("div", { class: "mp-play" }, presetPart.node, stage, side, status);
  const settle = () => { // where there are two columns, the histogram stands below the pictures, else below the knobs
    const column = play.clientWidth >= TWO_COLUMNS ? stage : side;
    if (low.parentNode !== column) column.append(low);
  };
  el.replaceChildren(h("div", { class: "mp-panel", role: "region", "aria-label": "Playground" }, play));
  settle();
  draw();
  if (named?.isTour) enterTour();

  const watcher = new IntersectionObserver(([{ isIntersecting }]) => {
    isSeen = isIntersecting;
    if (isSeen && !isRunning) draw(); // with the page's colours, which are known only now
    if (isSeen && model.get("autorun") && run.net.steps === 0 && !isRunning && !isCalm.matches) start();
  });
  watcher.observe(el);
  const room = new ResizeObserver(settle);
  room.observe(play);
  const themes = new MutationObserver(() => draw());
  themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    cancelAnimationFrame(frame);
    watcher.disconnect();
    room.disconnect();
    themes.disconnect();
    stop.abort();
  };
}

// The start with the changes of a preset.
function applied({ changes }) {
  const { formats, rules, ...others } = changes;
  return { ...START, ...others, formats: { ...START.formats, ...formats }, rules: { ...START.rules, ...rules } };
}

const sorted = (value) => (value && typeof value === "object" ? Object.entries(value).map(([name, one]) => [name, sorted(one)]).sort(([a], [b]) => (a < b ? -1 : 1)) : value);
const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

export default { render, linkable: false };
