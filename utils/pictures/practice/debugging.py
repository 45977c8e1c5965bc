"""The picture of `practice/debugging`: three steps of a tiny network in bfloat16, around the birth of a NaN."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from utils import plots
from utils.formats import BFLOAT16
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize

STAGES = ("weights", "layer 1", "layer 2", "layer 3", "loss", "gradients", "new weights")
RATE = 5.0  # of the learning: far too large, so that one step is enough
COLUMNS = ("a good step", "the next one", "and the next")
HALF_WIDTH, HALF_HEIGHT = 1.6, 0.36
FIRST, APART = 5.2, 4.3  # the middle of the first column, and from one to the next

Weights = tuple[float, float, float]


def birth_and_echoes(weights: Weights = (1.5, 2.0, 2.0)) -> Figure:
    """Draw three steps of three layers with one weight each, and the loss of the puzzle for a target of 1.

    Their input is 1, and each operation is rounded to bfloat16. The first place that is not finite is the birth.
    """
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 4.3), layout="constrained")
    ax.set(xlim=(0, 15.6), ylim=(0.5 - len(STAGES), 1.1))
    ax.axis("off")
    for row, stage in enumerate(STAGES):
        ax.text(3.2, -row, stage, ha="right", va="center", fontsize=10, color=plots.INK)
    born = False
    for column, title in enumerate(COLUMNS):
        x, values = FIRST + column * APART, _step_values(weights)
        ax.text(x, 0.8, title, ha="center", va="center", fontsize=10.5, color=plots.INK)
        for row, stage in enumerate(values):
            birth = not born and not np.isfinite(stage).all()
            born = born or birth
            _draw_box(ax, x, row, stage, birth=birth)
            if row:
                _draw_arrow(ax, x, row)
        weights = values[-1]
    return fig


def _step_values(weights: Weights) -> list[tuple[float, ...]]:
    """Return what each of `STAGES` holds in one step, in bfloat16."""
    w1, w2, w3 = weights
    with np.errstate(all="ignore"):
        h1 = _rounded(w1)
        h2 = _rounded(w2 * h1)
        z = _rounded(w3 * h2)
        p = _rounded(1 / (1 + np.exp(-z)))
        rest = np.float64(_rounded(1 - p))
        loss = _rounded(-(np.log(p) + 0 * np.log(rest)))
        slope = _rounded((-1 / p + 0 / rest) * p * rest)  # of the loss at z
        gradients = tuple(_rounded(slope * factor) for factor in (w3 * w2, w3 * h1, h2))
        moved = tuple(_rounded(w - RATE * g) for w, g in zip(weights, gradients, strict=True))
    return [weights, (h1,), (h2,), (z,), (loss,), gradients, moved]


def _rounded(value: float) -> float:
    return float(quantize(float(value), BFLOAT16))


def _draw_box(ax: Axes, x: float, row: int, values: tuple[float, ...], *, birth: bool) -> None:
    finite = np.isfinite(values).all()
    color = plots.INK_SOFT if finite else plots.SIGN
    box = FancyBboxPatch(
        (x - HALF_WIDTH, -row - HALF_HEIGHT),
        2 * HALF_WIDTH,
        2 * HALF_HEIGHT,
        boxstyle="round,pad=0,rounding_size=0.15",
    )
    box.set(facecolor=plots.PAPER if finite else plots.SIGN_TINT, edgecolor=color, linewidth=3 if birth else 1)
    ax.add_patch(box)
    digits = ".1g" if min(map(abs, values)) < 0.1 else ".1f"
    text = " ".join(f"{value:{digits}}" for value in values).replace("-0.", "−.")
    text = text if finite else "birth: −∞" if birth else "NaN"
    size, weight = 10.5 if len(values) == 1 or not finite else 8, "bold" if birth else "normal"
    tone = plots.INK if finite else plots.SIGN
    ax.text(x, -row, text, ha="center", va="center", fontsize=size, color=tone, weight=weight)


def _draw_arrow(ax: Axes, x: float, row: int) -> None:
    """Draw an arrow from the box above."""
    style = {"arrowstyle": "-|>", "color": plots.INK_SOFT, "linewidth": 1, "mutation_scale": 7}
    ends = (x, -row + HALF_HEIGHT), (x, 1 - row - HALF_HEIGHT)
    ax.annotate("", *ends, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})
