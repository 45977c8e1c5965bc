"""The twin of net.js in NumPy, bit for bit: a small network trained with a number format for each of its tensors.

Rounding is `utils.rounding.quantize`. The loops over a product's terms are those of the page, because the order of the
additions is a part of the result; everything else is done for a whole array at once.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from utils.formats import FORMATS, FloatFormat
from utils.rounding import RULES, quantize
from utils.widgets.playground.training.data import points_of
from utils.widgets.playground.training.elementary import sigmoid, softplus, tanh
from utils.widgets.playground.training.setup import TENSORS, Setup
from utils.widgets.shared.numbers.dice import STEP, dice, nearly_normal

SIZES = (2, 16, 16, 1)
GAIN = 2  # standard deviation of the first weights, times the square root of a layer's inputs
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
MOMENTUM = 0.9
CAST = {"float32": np.float32, "float16": np.float16}  # NumPy's cast rounds as quantize, far faster
COUNTS = ("zeros", "under", "over", "gradients", "lost", "updates", "faded", "moments")  # of a step


class Rounder:
    """Rounds arrays to a format by a rule; the stochastic rule takes one number of its own dice per value, in order."""

    def __init__(self, fmt: FloatFormat, rule: str, seed: int = 0):
        self.fmt, self.rule, self.seed, self.drawn = fmt, rule, seed, 0

    def draws(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """Return the next numbers of the dice, in an array of this shape; None for a rule that needs none."""
        if self.rule != "stochastic":
            return None
        count = math.prod(shape)
        start = (self.seed + self.drawn * STEP) % 2**32
        self.drawn += count
        return dice(start, count).reshape(shape)

    def __call__(self, x: np.ndarray, draws: np.ndarray | None = None) -> np.ndarray:
        """Return x rounded, float64 of its shape; `draws`: numbers drawn earlier, of the same shape."""
        x = np.asarray(x, dtype=np.float64)
        if self.rule == "ties_to_even" and self.fmt.name in CAST:
            with np.errstate(over="ignore"):  # what is too large becomes an infinity, as in quantize
                return x.astype(CAST[self.fmt.name]).astype(np.float64)
        if self.rule != "stochastic":
            return quantize(x, self.fmt, RULES[self.rule])
        draws = self.draws(x.shape) if draws is None else draws
        return quantize(x, self.fmt, lambda q: np.floor(q) + (draws < q - np.floor(q)))

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a @ b.T, each sum rounded after each term: [n, K] and [m, K] give [n, m]."""
        draws = self.draws((len(a), len(b), a.shape[1]))
        total = np.zeros((len(a), len(b)))
        for k in range(a.shape[1]):
            total = self(total + np.outer(a[:, k], b[:, k]), None if draws is None else draws[:, :, k])
        return total


@dataclass
class DenseLayer:
    """A layer: weights [outputs, inputs + 1], kept and used; gradient and moments alike; `delta`: [batch, outputs]."""

    kept: np.ndarray
    used: np.ndarray
    gradient: np.ndarray = field(init=False)
    delta: np.ndarray = field(init=False)

    def __post_init__(self):
        self.first, self.second = np.zeros_like(self.kept), np.zeros_like(self.kept)


class ReferenceNet:
    """A network in training, with the numbers of `Net` in net.js under the same names."""

    def __init__(self, setup: Setup):
        self.setup = setup
        formats, rules, seed = setup.formats, setup.rules, setup.seed

        def rounder(tensor):
            return Rounder(FORMATS[formats[tensor]], rules[tensor], seed + 1000 * (1 + TENSORS.index(tensor)))

        self.weights, self.activations, self.gradients, self.moments, self.accumulator = map(rounder, TENSORS)
        master = formats["master"]
        self.keep = Rounder(FORMATS[master], "ties_to_even") if master else self.weights
        self.points = points_of(setup.data)
        self.picked = 0
        self.layers = self._make_layers()
        self.scale = {"none": 1.0, "dynamic": 2.0**16}.get(setup.scale, setup.scale)
        self.good_steps = self.steps = self.skipped = 0
        self.powers = [1.0, 1.0]
        self.loss, self.is_finite = math.nan, True
        self.now: dict[str, int] = {}

    def _make_layers(self) -> list[DenseLayer]:
        layers, seed, used = [], self.setup.seed + 9000, 0
        sizes = list(itertools.pairwise(SIZES))
        normal = nearly_normal(seed, sum(fan_in * fan_out for fan_in, fan_out in sizes))
        for fan_in, fan_out in sizes:
            drawn = normal[used : used + fan_in * fan_out].reshape(fan_out, fan_in)
            used += drawn.size
            kept = np.zeros((fan_out, fan_in + 1))  # the bias is the last weight of a row; its input is 1
            kept[:, :-1] = self.keep(drawn * (GAIN / math.sqrt(fan_in)))
            layers.append(DenseLayer(kept, kept if self.keep is self.weights else self.weights(kept)))
        return layers

    def forward(self, rows: np.ndarray, activations: Rounder, accumulator: Rounder) -> tuple[list, np.ndarray]:
        """Return the input of each layer, [n, inputs + 1], and the outputs (logits) [n]; `rows`: [n, 2]."""
        inputs, x = [], activations(rows)
        for layer in self.layers:
            x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
            inputs.append(x)
            z = accumulator.product(x, layer.used)
            x = activations(tanh(z)) if layer is not self.layers[-1] else z
        return inputs, x[:, 0]

    def step(self) -> None:
        """Make one step of training."""
        setup, batch = self.setup, self.setup.batch
        start = (setup.seed + self.picked * STEP) % 2**32
        self.picked += batch
        points = self.points[np.floor(dice(start, batch) * len(self.points)).astype(int)]
        labels, scale = points[:, 2], self.scale
        self.now = dict.fromkeys(COUNTS, 0)
        inputs, outputs = self.forward(points[:, :2], self.activations, self.accumulator)
        factor = scale * 2.0**-setup.push / batch
        self.loss = float(np.cumsum(softplus(outputs) - outputs * labels)[-1] / batch)
        self.layers[-1].delta = self._store_gradient((sigmoid(outputs) - labels) * factor)[:, None]
        self._backward(inputs)
        self.steps += 1
        if not self._adapt_scale():
            self._update(scale)

    def _store_gradient(self, value: np.ndarray) -> np.ndarray:
        stored, now = self.gradients(value), self.now
        now["gradients"] += value.size
        now["zeros"] += int(np.sum(stored == 0))
        now["under"] += int(np.sum((stored == 0) & (value != 0)))
        now["over"] += int(np.sum(np.isfinite(value) & ~np.isfinite(stored)))
        return stored

    def _backward(self, inputs: list) -> None:
        for layer, below, x in zip(self.layers[::-1], [*self.layers[-2::-1], None], inputs[::-1], strict=True):
            layer.gradient = self._store_gradient(self.accumulator.product(layer.delta.T, x.T))
            if below is not None:
                a = x[:, :-1]
                back = self.accumulator.product(layer.delta, layer.used[:, :-1].T)
                below.delta = self._store_gradient((1 - a * a) * back)

    def _adapt_scale(self) -> bool:
        """Let the dynamic scale follow; return whether the step is skipped."""
        self.is_finite = all(np.isfinite(layer.gradient).all() for layer in self.layers)
        if self.setup.scale != "dynamic":
            return False
        if not self.is_finite:
            self.scale, self.good_steps, self.skipped = self.scale / 2, 0, self.skipped + 1
            return True
        self.good_steps += 1
        if self.good_steps == self.setup.growth:
            self.scale, self.good_steps = self.scale * 2, 0
        return False

    def _update(self, scale: float) -> None:
        setup, now = self.setup, self.now
        unscale = 2.0**setup.push / scale
        self.powers = [self.powers[0] * BETA1, self.powers[1] * BETA2]
        rest1, rest2 = (1 - power for power in self.powers)
        for layer in self.layers:
            g = layer.gradient * unscale
            if setup.optimizer == "adam":
                first, second = BETA1 * layer.first + (1 - BETA1) * g, BETA2 * layer.second + (1 - BETA2) * g * g
                layer.first, layer.second = self._both_moments(first, second)
                self._note_moments(second, layer.second)
                change = (setup.rate * (layer.first / rest1)) / (np.sqrt(layer.second / rest2) + EPS)
            else:
                momentum = MOMENTUM * layer.first + g
                layer.first = self.moments(momentum)
                self._note_moments(momentum, layer.first)
                change = setup.rate * layer.first
            kept = self.keep(layer.kept - change)
            now["updates"] += int(np.sum(change != 0))
            now["lost"] += int(np.sum((change != 0) & (kept == layer.kept)))
            layer.kept, layer.used = kept, kept if self.keep is self.weights else self.weights(kept)

    def _note_moments(self, values: np.ndarray, stored: np.ndarray) -> None:
        self.now["moments"] += int(np.sum(values != 0))
        self.now["faded"] += int(np.sum((values != 0) & (stored == 0)))

    def _both_moments(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return both moments rounded, the two of a weight one after the other: [2, outputs, inputs + 1]."""
        return np.moveaxis(self.moments(np.stack([first, second], axis=-1)), -1, 0)

    def accuracy(self) -> float:
        """Return the share of all points that are classified correctly; an output that is NaN is wrong."""

        def calm(rounder):
            return Rounder(rounder.fmt, "ties_to_even" if rounder.rule == "stochastic" else rounder.rule)

        _, outputs = self.forward(self.points[:, :2], calm(self.activations), calm(self.accumulator))
        right = np.where(self.points[:, 2] == 1, outputs > 0, outputs < 0)
        return float(right.mean())
