"""The picture of `training/master_weights`: the same updates, added to a bfloat16 weight and to a float32 master."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from utils import formats, plots
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize, ulp


def weight_and_master(update: float = 0.003, start: float = 1.0, steps: int = 7) -> Figure:
    """Draw equal updates that a bfloat16 weight loses one by one, and a float32 master that adds them up.

    `update` is less than half the gap above `start`, a value of bfloat16.
    """
    fmt = formats.BFLOAT16
    gap = float(ulp(start, fmt))
    rungs = start + gap * np.arange(np.ceil(steps * update / gap) + 1)
    fig, (alone, pair) = plt.subplots(1, 2, figsize=(WIDTH_INCHES, 3.4), sharey=True, width_ratios=(0.8, 1))
    for ax in (alone, pair):
        ax.set(xlim=(-0.7, steps + 0.7), ylim=(start - 0.45 * gap, rungs[-1] + 0.25 * gap))
        ax.axis("off")
        ax.hlines(rungs, -0.5, steps + 0.5, color=plots.INK_SOFT, linewidth=1)
        ax.hlines(rungs[:-1] + gap / 2, -0.5, steps + 0.5, color=plots.INK_SOFT, linewidth=1.4, linestyle=":")
    for rung in rungs:
        alone.text(-0.7, rung, f"{rung:.5g}", ha="right", va="center", fontsize=9, color=plots.INK)
    weight, master = start, start
    copies = [start]
    for step in range(1, steps + 1):
        _arrow(alone, step, weight, weight + update)
        weight = float(quantize(weight + update, fmt))
        _arrow(pair, step, master, master + update)
        master += update
        copies.append(float(quantize(master, fmt)))
    narrow, wide = plots.LOOKS["bfloat16"].color, plots.LOOKS["float32"].color
    places = np.arange(steps + 1)
    alone.plot(places, np.full(steps + 1, weight), "o", color=narrow, markersize=7)
    pair.step(places, copies, where="post", color=narrow, linewidth=1)
    pair.plot(places, copies, "o", color=narrow, markersize=7)
    pair.plot(places, start + update * places, "s", color=wide, markersize=4, zorder=3)
    alone.text(steps + 0.4, start + 0.56 * gap, "halfway", ha="right", fontsize=9, color=plots.INK_SOFT)
    alone.text(steps / 2, start - 0.2 * gap, "bfloat16 weight", ha="center", va="top", fontsize=10, color=narrow)
    pair.text(steps, start + gap / 4, "its bfloat16 copy", ha="right", va="center", fontsize=10, color=narrow)
    pair.text(steps, start - 0.2 * gap, "float32 master", ha="right", va="top", fontsize=10, color=wide)
    return fig


def _arrow(ax: Axes, x: float, low: float, high: float) -> None:
    bend = {"arrowstyle": "-|>", "color": plots.FRACTION, "linewidth": 1.6, "mutation_scale": 9}
    ax.annotate("", (x, high), (x, low), arrowprops={**bend, "shrinkA": 0, "shrinkB": 0})
