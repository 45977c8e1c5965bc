"""The picture of `practice/quantization`: two errors of a row may add up in its output, or cancel."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from utils import plots
from utils.pictures.drawing import WIDTH_INCHES

WEIGHTS = (2.4, 1.45)  # of a row, in steps of its grid
TOGETHER = 0.9  # the correlation of the two inputs
NEAREST, COMPENSATED = (2, 1), (2, 2)  # rounded one by one; the second one after the first one's error
LEFT, RIGHT, FOOT, TOP = 0.9, 3.6, 0.52, 2.3
ANGLE = -45  # degrees: the direction in which two equal errors of opposite sign cancel


def errors_that_cancel() -> Figure:
    """Draw two weights among the codes, a circle of equal error of the weights, an ellipse of that of the output."""
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.2), layout="constrained")
    ax.set(xlim=(LEFT, RIGHT), ylim=(FOOT, TOP), aspect="equal")
    ax.axis("off")
    codes = [(x, y) for x in (1, 2, 3) for y in range(1, 3)]
    ax.plot(*zip(*codes, strict=True), "o", color=plots.INK_SOFT, markersize=7, zorder=1)
    for x, y in codes:
        if (x, y) not in (NEAREST, COMPENSATED):
            ax.text(x + 0.07, y + 0.05, f"{x}, {y}", fontsize=9.5, color=plots.INK_SOFT)
    _draw_equal_errors(ax)
    _draw_steps(ax)
    _draw_code(ax, NEAREST, plots.SIGN, "nearest: 2, 1", (-0.07, -0.08))
    _draw_code(ax, COMPENSATED, plots.FRACTION, "GPTQ: 2, 2", (0.0, 0.15))
    ax.plot(*WEIGHTS, "*", color=plots.INK, markersize=13, zorder=4)
    ax.text(
        WEIGHTS[0] + 0.26, WEIGHTS[1] + 0.28, "the\nweights", fontsize=10, color=plots.INK, ha="center", va="center"
    )
    return fig


def _draw_equal_errors(ax: Axes) -> None:
    """Draw the circle through the nearest code, and the ellipse through the other one."""
    radius = float(np.hypot(*np.subtract(NEAREST, WEIGHTS)))
    ax.add_patch(Ellipse(WEIGHTS, 2 * radius, 2 * radius, fill=False, edgecolor=plots.SIGN, linewidth=1.2,
                         linestyle="--"))  # fmt: skip
    size = _output_error(COMPENSATED)  # half axes: along the errors that cancel, and across
    along, across = size / np.sqrt(1 - TOGETHER), size / np.sqrt(1 + TOGETHER)
    ax.add_patch(Ellipse(WEIGHTS, 2 * along, 2 * across, angle=ANGLE, edgecolor=plots.FRACTION, linewidth=1.4,
                         facecolor=plots.TINTS[plots.FRACTION], zorder=0))  # fmt: skip
    ax.text(2.83, 0.68, "equal errors\nof the output", fontsize=10, color=plots.FRACTION, ha="left", va="center")
    ax.text(1.75, 1.5, "equal errors\nof the weights", fontsize=10, color=plots.SIGN, ha="right", va="center")


def _draw_steps(ax: Axes) -> None:
    """Draw how the first weight is rounded, the second one moved by what that cost, and then rounded."""
    moved = WEIGHTS[1] + TOGETHER * (WEIGHTS[0] - COMPENSATED[0])
    path = (WEIGHTS, (COMPENSATED[0], WEIGHTS[1]), (COMPENSATED[0], moved))
    for number, (start, end) in enumerate(pairwise(path), 1):
        ax.annotate("", end, start, zorder=3,
                    arrowprops={"arrowstyle": "-|>", "color": plots.FRACTION, "linewidth": 1.6, "mutation_scale": 11,
                                "shrinkA": 4 if number == 1 else 0, "shrinkB": 0})  # fmt: skip
        middle = np.add(start, end) / 2
        shift = (0, 0.1) if number == 1 else (0.08, 0)  # inside the ellipse
        ax.text(*(middle + shift), str(number), fontsize=10, color=plots.FRACTION, ha="center", va="center")


def _draw_code(ax: Axes, code: tuple[int, int], color: str, label: str, shift: tuple) -> None:
    ax.plot(*code, "o", color=color, markersize=9, zorder=3)
    ax.text(*np.add(code, shift), label, fontsize=10.5, color=color, ha="right", va="center")


def _output_error(code: tuple[int, int]) -> float:
    """Return the root of the mean squared error of the output, for inputs of variance 1 that go together."""
    d = np.subtract(code, WEIGHTS)
    return float(np.sqrt(d @ np.array([[1.0, TOGETHER], [TOGETHER, 1.0]]) @ d))
