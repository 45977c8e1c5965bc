"""The picture of `practice/many_gpus`: gradients of one weight, added hop by hop on a ring, or all by one owner."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from utils import formats, plots
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize

NARROW, WIDE, LOST = plots.LOOKS["bfloat16"].color, plots.LOOKS["float32"].color, plots.FRACTION
PLACES = (1.6, 5.87, 10.13, 14.4)  # the middle of each GPU, from 0 to 16
HALF = 1.35  # of a GPU's width


def ring_and_owner(gradients: tuple[float, ...] = (300.0, 1.0, 1.0, 2.0)) -> Figure:
    """Draw how four GPUs add their gradients of one weight: in bfloat16 hop by hop, and in float32 on one of them.

    Each of the gradients is a value of bfloat16.
    """
    fig, (ring, owner) = plt.subplots(2, 1, figsize=(WIDTH_INCHES, 4.6), height_ratios=(1, 1.25))
    for ax, top, bottom in ((ring, 7.2, 0.2), (owner, 7.4, -1.5)):
        ax.set(xlim=(0, 16), ylim=(bottom, top))
        ax.axis("off")
    _draw_ring(ring, gradients)
    _draw_owner(owner, gradients)
    return fig


def _draw_ring(ax: Axes, gradients: tuple[float, ...]) -> None:
    """Each GPU adds its gradient to what arrives, rounds, and sends the result on."""
    ax.text(0.1, 6.6, "A ring: the sum travels", ha="left", va="center", fontsize=11, color=plots.INK)
    total = 0.0
    for place, gradient in zip(PLACES, gradients, strict=True):
        rounded = float(quantize(total + gradient, formats.BFLOAT16))
        lost = place != PLACES[0] and rounded == total
        _gpu(ax, place, 3.0, gradient, LOST if lost else plots.INK)
        if lost:
            ax.text(place, 1.1, "rounded away", ha="center", va="center", fontsize=9.5, color=LOST)
        end = PLACES[PLACES.index(place) + 1] - HALF if place != PLACES[-1] else None
        if end is not None:
            _arrow(ax, (place + HALF, 3.0), (end, 3.0))
            ax.text((place + HALF + end) / 2, 3.75, f"{rounded:g}", ha="center", va="center", fontsize=11, color=NARROW)
        total = rounded
    ax.text(PLACES[-1], 5.2, f"{total:g}", ha="center", va="center", fontsize=13, color=NARROW, weight="bold")
    _arrow(ax, (PLACES[-1], 4.1), (PLACES[-1], 4.75))


def _draw_owner(ax: Axes, gradients: tuple[float, ...]) -> None:
    """The last GPU gets all gradients as they are, adds them in float32, and rounds once."""
    ax.text(0.1, 6.8, "An owner: the gradients travel", ha="left", va="center", fontsize=11, color=plots.INK)
    *others, own = gradients
    for place, gradient in zip(PLACES, others, strict=False):
        _gpu(ax, place, 4.4, gradient, plots.INK)
        _arrow(ax, (place, 3.3), (place, 1.2))
        ax.text(place + 0.3, 2.3, f"{gradient:g}", ha="left", va="center", fontsize=11, color=NARROW)
    _gpu(ax, PLACES[-1], 4.4, own, plots.INK)
    ax.annotate("", (PLACES[-1], 1.2), (PLACES[-1], 3.3), arrowprops=_line(WIDE))
    ax.text(PLACES[-1] - 0.3, 2.3, f"its own {own:g}", ha="right", va="center", fontsize=11, color=WIDE)
    box = FancyBboxPatch((0.25, -0.9), 15.5, 2.0, boxstyle="round,pad=0,rounding_size=0.3")
    box.set(facecolor=plots.PAPER, edgecolor=WIDE, linewidth=1.3)
    ax.add_patch(box)
    terms = " + ".join(f"{gradient:g}" for gradient in gradients)
    total = sum(gradients)
    rounded = float(quantize(total, formats.BFLOAT16))
    ax.text(0.7, 0.1, f"the last GPU, in float32: {terms} = {total:g}", ha="left", va="center", fontsize=10, color=WIDE)
    ax.text(15.3, 0.1, f"{rounded:g}", ha="right", va="center", fontsize=13, color=NARROW, weight="bold")


def _gpu(ax: Axes, x: float, y: float, gradient: float, color: str) -> None:
    """Draw a GPU with its own gradient."""
    box = FancyBboxPatch((x - HALF, y - 1.05), 2 * HALF, 2.1, boxstyle="round,pad=0,rounding_size=0.3")
    box.set(facecolor=plots.PAPER, edgecolor=plots.INK, linewidth=1.3)
    ax.add_patch(box)
    ax.text(x, y + 0.5, "GPU", ha="center", va="center", fontsize=9, color=plots.INK_SOFT)
    ax.text(x, y - 0.35, f"{gradient:g}", ha="center", va="center", fontsize=12, color=color)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw a message in bfloat16."""
    ax.annotate("", end, start, arrowprops=_line(NARROW))


def _line(color: str) -> dict:
    return {"arrowstyle": "-|>", "color": color, "linewidth": 1.6, "mutation_scale": 11, "shrinkA": 1, "shrinkB": 1}
