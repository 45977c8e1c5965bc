"""The picture of `practice/refinement`: a solver that is wrong by a tenth, asked again for what is still missing."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from utils import plots
from utils.pictures.drawing import WIDTH_INCHES

NARROW, WIDE, LEFT = plots.LOOKS["bfloat16"].color, plots.LOOKS["float32"].color, plots.FRACTION
START, LENGTH, HEIGHT = 0.3, 10.4, 0.9  # of a bar, on a sheet from 0 to 16


def same_solver_again(number: int = 3, factor: float = 0.3, rows: int = 3) -> Figure:
    """Draw how `number` x = 1 is solved by a solver that multiplies by `factor` in place of 1 / `number`.

    Each bar is what is still missing of x, magnified to one length; the solver fills the same share of each.
    """
    share = number * factor
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.7))
    ax.set(xlim=(0, 16), ylim=(-1.1, 2.6 * rows - 0.5))
    ax.axis("off")
    x, missing = 0.0, 1 / number
    for row in range(rows):
        y = 2.6 * (rows - 1 - row)
        x += share * missing
        _bar(ax, y, share, correction=share * missing, left=(1 - share) * missing)
        ax.text(15.9, y + HEIGHT / 2, f"{x:.{row + 1}f}", ha="right", va="center", fontsize=13, color=WIDE)
        if row + 1 < rows:
            _zoom(ax, y, share, times=1 / (1 - share))
        missing *= 1 - share
    top = 2.6 * (rows - 1) + HEIGHT + 0.35
    ax.text(START, top, f"what is missing of x = 1/{number}", ha="left", va="bottom", fontsize=10, color=plots.INK)
    ax.text(15.9, top, "x", ha="right", va="bottom", fontsize=12, color=WIDE, style="italic")
    ax.text(START, -0.25, "the correction", ha="left", va="top", fontsize=10, color=plots.INK)
    ax.text(START + LENGTH, -0.25, "what it leaves", ha="right", va="top", fontsize=10, color=LEFT)
    return fig


def _bar(ax: Axes, y: float, share: float, *, correction: float, left: float) -> None:
    """Draw what is missing as a bar: the part that the solver gives, and the part that it leaves."""
    cut = START + share * LENGTH
    for x, width, color in ((START, cut - START, NARROW), (cut, START + LENGTH - cut, LEFT)):
        box = Rectangle((x, y), width, HEIGHT, facecolor=plots.PAPER, edgecolor=color, linewidth=1.6)
        ax.add_patch(box)
        ax.add_patch(Rectangle((x, y), width, HEIGHT, facecolor=color, alpha=0.25, linewidth=0))
    ax.text(
        (START + cut) / 2, y + HEIGHT / 2, f"{correction:.3g}", ha="center", va="center", fontsize=12, color=plots.INK
    )
    ax.text(START + LENGTH + 0.25, y + HEIGHT / 2, f"{left:.2g}…", ha="left", va="center", fontsize=10, color=LEFT)


def _zoom(ax: Axes, y: float, share: float, *, times: float) -> None:
    """Draw the part that is left growing to the length of the next bar."""
    cut, end, below = START + share * LENGTH, START + LENGTH, y - 2.6 + HEIGHT
    ax.add_patch(Polygon([(cut, y), (end, y), (end, below), (START, below)], facecolor=LEFT, alpha=0.12, linewidth=0))
    ax.text(end - 0.3, (y + below) / 2, f"× {times:.0f}", ha="right", va="center", fontsize=10, color=LEFT)
