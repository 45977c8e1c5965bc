// A small network that is trained with a number format for each of its tensors. Its twin is reference.py, bit for bit.
//
// One step: activations are rounded where a layer ends; each product of matrices adds its terms one by one in the
// accumulator's format; gradients are rounded where they are stored, multiplied by the loss scale; the optimizer works
// in float64 on the gradients divided by that scale again, and rounds its moments and the weights as it stores them.

import { nearlyNormal, seededDice } from "../../shared/numbers/dice.js";
import { FORMATS } from "../../shared/numbers/formats.js";
import { pointsOf } from "./data.js";
import { sigmoid, softplus, tanh } from "./elementary.js";
import { rounder, sumsOfProducts } from "./rounding.js";

export const TENSORS = ["weights", "activations", "gradients", "moments", "accumulator"];
const HIDDEN = 16;
const SIZES = [2, HIDDEN, HIDDEN, 1];
const GAIN = 2; // standard deviation of the first weights, times the square root of a layer's inputs
const [BETA1, BETA2, EPS] = [0.9, 0.999, 1e-8];
const MOMENTUM = 0.9;
const LEAST_EXPONENT = -60; // binades that the histograms count; what lies beyond is counted at their ends
const BINADES = 96;

const NOTHING = { zeros: 0, under: 0, over: 0, gradients: 0, lost: 0, updates: 0, faded: 0, moments: 0 }; // counts of a step

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);
const emptyHistogram = () => ({ low: LEAST_EXPONENT, counts: new Array(BINADES).fill(0), zeros: 0, infinite: 0, nan: 0, amax: 0 });

// Count a value in a histogram as shared/plot/binades.js reads them.
function countIn(histogram, x) {
  const size = Math.abs(x);
  if (size === 0) histogram.zeros += 1;
  else if (size - size !== 0) histogram[size === Infinity ? "infinite" : "nan"] += 1;
  else {
    double[0] = size;
    const place = ((words[1] >>> 20) & 2047) - 1023 - LEAST_EXPONENT;
    histogram.counts[place < 0 ? 0 : place < BINADES ? place : BINADES - 1] += 1;
    if (size > histogram.amax) histogram.amax = size;
  }
}

/**
 * A network in training. `setup`: { data, formats, rules, scale, growth, push, optimizer, rate, batch, seed }.
 *
 * `formats` and `rules` by tensor: weights, activations, gradients, moments, accumulator; formats.master is null where
 * the weights themselves are updated. `scale` is "none", a power of two as a number, or "dynamic"; `growth`: good steps
 * after which the dynamic scale doubles; the loss is multiplied by 2**-push first.
 */
export class Net {
  constructor(setup) {
    const { formats, rules, seed, batch } = setup;
    this.setup = setup;
    // each tensor has its own dice, so that what one draws does not depend on the others
    const diceOf = (tensor) => seededDice(seed + 1000 * (1 + TENSORS.indexOf(tensor)));
    const roundTo = (tensor) => rounder(FORMATS[formats[tensor]], rules[tensor], diceOf(tensor));
    this.store = { weights: roundTo("weights"), activations: roundTo("activations"), gradients: roundTo("gradients"), moments: roundTo("moments") };
    // what only looks at the network draws no die of the training's
    const calm = rules.activations === "stochastic" ? "ties_to_even" : rules.activations;
    const still = rules.accumulator === "stochastic" ? "ties_to_even" : rules.accumulator;
    this.looking = { activations: rounder(FORMATS[formats.activations], calm), sums: sumsOfProducts(FORMATS[formats.accumulator], still) };
    this.keep = formats.master ? rounder(FORMATS[formats.master]) : this.store.weights;
    this.sums = sumsOfProducts(FORMATS[formats.accumulator], rules.accumulator, diceOf("accumulator"));
    this.points = pointsOf(setup.data);
    this.pick = seededDice(seed);
    this.layers = makeLayers(this, nearlyNormal(seed + 9000));
    this.inputs = SIZES.slice(0, -1).map((size) => withOnes(batch, size));
    this.labels = new Float64Array(batch);
    this.row = new Float64Array(HIDDEN);
    Object.assign(this, {
      scale: setup.scale === "none" ? 1 : setup.scale === "dynamic" ? 2 ** 16 : setup.scale, goodSteps: 0, powers: [1, 1],
      steps: 0, skipped: 0, loss: NaN, isFinite: true, watched: "gradients", histogram: emptyHistogram(),
      now: { ...NOTHING },
      all: { ...NOTHING },
    });
  }

  /** The outputs (logits) for the first `count` rows of the inputs. */
  forward(count, { activations, sums, watch = "" }) {
    const { layers, inputs, histogram, row } = this;
    layers.forEach(({ fanIn, fanOut, used, out }, l) => {
      const [x, next] = [inputs[l], inputs[l + 1]];
      for (let b = 0; b < count; b += 1) {
        if (!next) {
          sums(x, b * fanIn, 1, used, 0, 1, fanIn, out, b, 1, 1);
          if (watch === "accumulator") countIn(histogram, out[b]);
          continue;
        }
        sums(x, b * fanIn, 1, used, 0, 1, fanIn, row, 0, fanOut, fanIn);
        for (let j = 0; j < fanOut; j += 1) {
          if (watch === "accumulator") countIn(histogram, row[j]);
          const a = tanh(row[j]);
          if (watch === "activations") countIn(histogram, a);
          next[b * (fanOut + 1) + j] = activations(a);
        }
      }
    });
    return layers.at(-1).out;
  }

  /** One step of training. */
  step() {
    const { setup, points, inputs, labels, store } = this;
    for (let b = 0; b < setup.batch; b += 1) {
      const [x, y, label] = points[Math.floor(this.pick() * points.length)];
      inputs[0][b * 3] = store.activations(x);
      inputs[0][b * 3 + 1] = store.activations(y);
      labels[b] = label;
    }
    this.now = { ...NOTHING };
    this.histogram = emptyHistogram();
    const used = this.scale;
    this.lossAndItsGradient(used);
    this.backward();
    this.steps += 1;
    if (!this.adaptScale()) this.update(used);
    for (const name in this.all) this.all[name] += this.now[name];
  }

  lossAndItsGradient(scale) {
    const { setup: { batch, push }, labels } = this;
    const outputs = this.forward(batch, { activations: this.store.activations, sums: this.sums, watch: this.watched });
    const factor = (scale * 2 ** -push) / batch; // powers of two
    const { delta } = this.layers.at(-1);
    let sum = 0;
    for (let b = 0; b < batch; b += 1) {
      sum += softplus(outputs[b]) - outputs[b] * labels[b];
      delta[b] = this.storeGradient((sigmoid(outputs[b]) - labels[b]) * factor);
    }
    this.loss = sum / batch;
  }

  storeGradient(value) {
    const { now } = this;
    const stored = this.store.gradients(value);
    now.gradients += 1;
    if (this.watched === "gradients") countIn(this.histogram, value);
    if (stored === 0) {
      now.zeros += 1;
      if (value !== 0) now.under += 1;
    }
    if (stored - stored !== 0 && value - value === 0) now.over += 1;
    return stored;
  }

  backward() {
    const { layers, inputs, sums, row, setup: { batch } } = this;
    for (let l = layers.length - 1; l >= 0; l -= 1) {
      const { fanIn, fanOut, used, gradient, delta } = layers[l];
      const x = inputs[l];
      for (let j = 0; j < fanOut; j += 1) {
        sums(delta, j, fanOut, x, 0, fanIn, batch, gradient, j * fanIn, fanIn, 1);
        for (let i = j * fanIn; i < (j + 1) * fanIn; i += 1) gradient[i] = this.storeGradient(gradient[i]);
      }
      if (l === 0) return;
      const below = layers[l - 1].delta;
      for (let b = 0; b < batch; b += 1) {
        sums(delta, b * fanOut, 1, used, 0, fanIn, fanOut, row, 0, fanIn - 1, 1);
        for (let i = 0; i < fanIn - 1; i += 1) {
          const a = x[b * fanIn + i];
          below[b * (fanIn - 1) + i] = this.storeGradient((1 - a * a) * row[i]);
        }
      }
    }
  }

  // The dynamic scale after the backward pass; true where the step is skipped.
  adaptScale() {
    this.isFinite = this.layers.every(({ gradient }) => gradient.every((g) => g - g === 0));
    if (this.setup.scale !== "dynamic") return false;
    if (!this.isFinite) {
      Object.assign(this, { scale: this.scale / 2, goodSteps: 0, skipped: this.skipped + 1 });
      return true;
    }
    this.goodSteps += 1;
    if (this.goodSteps === this.setup.growth) Object.assign(this, { scale: this.scale * 2, goodSteps: 0 });
    return false;
  }

  update(scale) {
    const { setup: { optimizer, rate, push }, store, keep, now, layers, watched, histogram } = this;
    const unscale = 2 ** push / scale; // a power of two
    const isAdam = optimizer === "adam";
    this.powers = [this.powers[0] * BETA1, this.powers[1] * BETA2];
    const [rest1, rest2] = [1 - this.powers[0], 1 - this.powers[1]];
    for (const { gradient, first, second, kept, used } of layers) {
      for (let i = 0; i < kept.length; i += 1) {
        const g = gradient[i] * unscale;
        let change;
        if (isAdam) {
          first[i] = store.moments(BETA1 * first[i] + (1 - BETA1) * g);
          const square = BETA2 * second[i] + (1 - BETA2) * g * g;
          if (watched === "moments") countIn(histogram, square); // the smaller ones of the two
          second[i] = store.moments(square);
          noteMoment(now, square, second[i]);
          change = (rate * (first[i] / rest1)) / (Math.sqrt(second[i] / rest2) + EPS);
        } else {
          const momentum = MOMENTUM * first[i] + g;
          if (watched === "moments") countIn(histogram, momentum);
          first[i] = store.moments(momentum);
          noteMoment(now, momentum, first[i]);
          change = rate * first[i];
        }
        if (watched === "weights") countIn(histogram, kept[i] - change);
        const next = keep(kept[i] - change);
        if (change !== 0) {
          now.updates += 1;
          if (next === kept[i]) now.lost += 1;
        }
        kept[i] = next;
        used[i] = keep === store.weights ? next : store.weights(next);
      }
    }
  }

  /** The outputs at size * size points of the square, row by row from its top left. */
  field(size) {
    const { setup: { batch }, inputs, looking } = this;
    const out = new Float64Array(size * size);
    const at = (k) => (2 * (k + 0.5)) / size - 1;
    for (let from = 0; from < out.length; from += batch) {
      const count = Math.min(batch, out.length - from);
      for (let b = 0; b < count; b += 1) {
        inputs[0][b * 3] = looking.activations(at((from + b) % size));
        inputs[0][b * 3 + 1] = looking.activations(-at(Math.floor((from + b) / size)));
      }
      out.set(this.forward(count, looking).subarray(0, count), from);
    }
    return out;
  }

  /** The share of all points that are classified correctly; an output that is not a number is wrong. */
  accuracy() {
    const { setup: { batch }, inputs, looking, points } = this;
    let right = 0;
    for (let from = 0; from < points.length; from += batch) {
      const count = Math.min(batch, points.length - from);
      for (let b = 0; b < count; b += 1) {
        inputs[0][b * 3] = looking.activations(points[from + b][0]);
        inputs[0][b * 3 + 1] = looking.activations(points[from + b][1]);
      }
      const outputs = this.forward(count, looking);
      for (let b = 0; b < count; b += 1) right += points[from + b][2] === 1 ? outputs[b] > 0 : outputs[b] < 0;
    }
    return right / points.length;
  }
}

// Adam's second moment, or the momentum of SGD: those that are not 0, and those of them that are stored as 0.
function noteMoment(now, value, stored) {
  if (value === 0) return;
  now.moments += 1;
  if (stored === 0) now.faded += 1;
}

function makeLayers({ keep, store, setup: { batch } }, normal) {
  return SIZES.slice(1).map((fanOut, l) => {
    const fanIn = SIZES[l] + 1; // the bias is the last weight of a row; its input is 1
    const kept = Float64Array.from({ length: fanOut * fanIn }, (_, n) =>
      (n % fanIn === fanIn - 1 ? 0 : keep(normal() * (GAIN / Math.sqrt(SIZES[l])))));
    return {
      fanIn, fanOut, kept, used: keep === store.weights ? kept : kept.map(store.weights), gradient: new Float64Array(kept.length),
      first: new Float64Array(kept.length), second: new Float64Array(kept.length),
      out: new Float64Array(batch), delta: new Float64Array(batch * fanOut),
    };
  });
}

function withOnes(batch, size) {
  const x = new Float64Array(batch * (size + 1));
  for (let b = 0; b < batch; b += 1) x[b * (size + 1) + size] = 1;
  return x;
}
