// What the playground draws: where the network sees which class, the losses, and the scale of the loss.

import { sharePath, stretchedPlot } from "../shared/plot/stretched_plot.js";
import { superscript } from "../shared/numbers/superscript.js";
import { powerText, sizeText } from "../shared/words/sizes.js";
import { sigmoid } from "./training/elementary.js";

const SIDE = 32; // points of the field across and up
const PIXELS = 320; // of the canvas, whatever its size in the page
const LOSS = { low: -3, lowest: -5, high: 2 }; // powers of ten: the axis goes further down where a loss does
const ENDS = [600, 1000, 2000, 4000, 8000, 16000]; // of the axis of steps

const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

// The colours of the page as it is now, light or dark.
function colours(node) {
  const style = getComputedStyle(node);
  const of = (name) => channels(style.getPropertyValue(`--mp-${name}`).trim());
  return { one: of("exponent"), zero: of("sign"), paper: of("paper"), ink: style.getPropertyValue("--mp-ink").trim(), nan: of("line") };
}

/** A square with the classes that a network sees, and the points. Gives { node, draw(net) }. */
export function fieldPicture(h, label) {
  const canvas = h("canvas", { width: PIXELS, height: PIXELS, role: "img", class: "mp-play-field" });
  const small = document.createElement("canvas");
  small.width = small.height = SIDE;
  const caption = h("figcaption", { class: "mp-play-caption" });
  return {
    node: h("figure", { class: "mp-play-figure" }, canvas, caption),
    draw(net, text) {
      const palette = colours(canvas);
      const pen = small.getContext("2d");
      const image = pen.createImageData(SIDE, SIDE);
      net.field(SIDE).forEach((logit, i) => image.data.set([...shade(logit, palette), 255], 4 * i));
      pen.putImageData(image, 0, 0);
      const big = canvas.getContext("2d");
      big.imageSmoothingEnabled = true;
      big.drawImage(small, 0, 0, PIXELS, PIXELS);
      drawPoints(big, net.points, palette);
      caption.replaceChildren(h("strong", {}, `${label}:`), ` ${text}`);
      canvas.setAttribute("aria-label", `${label}: ${text}. Orange and blue are the two classes that the network sees.`);
    },
  };
}

function shade(logit, { one, zero, paper, nan }) {
  if (Number.isNaN(logit)) return nan;
  const chance = sigmoid(Math.max(-30, Math.min(30, logit)));
  const [colour, share] = chance > 0.5 ? [one, 2 * chance - 1] : [zero, 1 - 2 * chance];
  return colour.map((channel, i) => Math.round(paper[i] + (channel - paper[i]) * 0.55 * share));
}

function drawPoints(pen, points, { one, zero, paper }) {
  pen.lineWidth = 1.5;
  pen.strokeStyle = `rgb(${paper.join(" ")})`;
  for (const [k, [x, y, label]] of points.entries()) {
    if (k % 4 > 1) continue; // every second pair, so that the field stays visible
    pen.beginPath();
    if (label === 1) pen.arc(((x + 1) / 2) * PIXELS, ((1 - y) / 2) * PIXELS, 4.2, 0, 2 * Math.PI);
    else pen.rect(((x + 1) / 2) * PIXELS - 3.6, ((1 - y) / 2) * PIXELS - 3.6, 7.2, 7.2);
    pen.fillStyle = `rgb(${(label === 1 ? one : zero).join(" ")})`;
    pen.fill();
    pen.stroke();
  }
}

const height = (loss, low) => (Number.isFinite(loss) ? Math.min(Math.max((Math.log10(loss) - low) / (LOSS.high - low), 0), 1) : NaN);

// The curve in at most 120 parts, the mean of each, so that a batch's luck does not hide the trend.
function thinned(curve, column) {
  const part = Math.max(1, Math.ceil(curve.length / 120));
  const points = [];
  for (let at = 0; at < curve.length; at += part) {
    const some = curve.slice(at, at + part);
    points.push([some.at(-1)[0], some.reduce((sum, row) => sum + row[column], 0) / some.length]);
  }
  return points;
}

/** The losses of both networks against the steps. */
export function lossPlot(h) {
  const plot = stretchedPlot(h, { name: "mp-play-losses" });
  let [shown, low] = [null, LOSS.low];
  return {
    node: plot.node,
    draw({ run, most }) {
      if (run !== shown) [shown, low] = [run, LOSS.low];
      while (low > LOSS.lowest && Math.min(run.loss, run.ghostLoss) < 10 ** low) low -= 1; // and not up again in this run
      const line = (column) => sharePath(thinned(run.curve, column).map(([step, loss]) => [step / most, height(loss, low)]));
      plot.draw({
        lines: [["mp-play-own", line(1)], ["mp-play-ghost", line(2)]], // the dashes above, so that two equal curves are seen as two
        across: [[0, "0"], [0.5, String(most / 2)], [1, `${most} steps`]],
        up: [-5, -4, -3, -2, -1, 0, 1, 2].filter((power) => power >= low).map((power) => [(power - low) / (LOSS.high - low), power < -3 ? `10${superscript(power)}` : String(10 ** power)]),
        label: run.curve.length ? `Losses after ${run.net.steps} steps: ${sizeText(run.loss)}, float32 ${sizeText(run.ghostLoss)}.` : "Losses: no step yet.",
      });
      const above = run.loss > 10 ** LOSS.high ? [["mp-play-died", 0.02, 0.9, `now ${sizeText(run.loss)}`]] : [];
      plot.mark(run.diedAt === null ? above : [["mp-cursor", run.diedAt / most, null], ["mp-play-died", Math.min(run.diedAt / most, 0.9), 0.75, "NaN"]]);
    },
  };
}

/** The scale of the loss as a staircase, with a mark for each step that was skipped. */
export function scalePlot(h) {
  const plot = stretchedPlot(h, { name: "mp-play-scales" });
  const title = h("h3", { class: "mp-play-title" }, "Loss scale");
  const node = h("div", { class: "mp-play-part" }, title, plot.node);
  return {
    node,
    draw({ run, most }) {
      node.hidden = run.setup.scale === "none";
      if (node.hidden) return;
      const powers = run.curve.map(([, , , scale]) => Math.log2(scale));
      const [low, high] = [Math.min(0, ...powers), Math.max(20, ...powers)];
      const up = (power) => (power - low) / (high - low);
      plot.draw({
        lines: [["mp-play-own", sharePath(run.curve.map(([step], i) => [step / most, up(powers[i])]))]],
        across: [[0, "0"], [1, String(most)]],
        up: [low, (low + high) / 2, high].map((power) => [up(power), powerText(Math.round(power))]),
        label: `The loss scale is ${powerText(Math.log2(run.net.scale))}; ${run.skips.length} steps were skipped.`,
      });
      plot.mark(run.skips.slice(-60).map((step) => ["mp-play-skip", step / most, 0]));
    },
  };
}

/** The number of steps that the plots show. */
export const axisOf = (steps) => ENDS.find((end) => end >= steps) ?? steps;
