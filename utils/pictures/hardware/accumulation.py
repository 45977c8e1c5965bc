"""The picture of `hardware/accumulation`: a register of 14 bits that moves left, and the long sums in it."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils import plots
from utils.accumulation import running_sum
from utils.formats import FLOAT8_E4M3FN, FloatFormat
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize, ties_to_even, toward_zero

BITS = 14
PRODUCT = 11 / 16 * 13 / 16  # of two E4M3 numbers: 8 bits, from 2**-1 on
TOTALS = (2.828125, 90.5703125, 724.5625)  # each fits into 14 bits
LAST = -8  # the power of two of its last bit
SEEN = (9, -12)  # the powers of two from left to right
REGISTER = FloatFormat("14 bits", 8, BITS - 1, bias=127)


def register_that_cuts(totals: tuple[float, ...] = TOTALS, sums: int = 48, count: int = 4096) -> Figure:
    """Draw one product beside growing totals, and the course of long sums that cut, round or are promoted.

    `totals`: values of 14 bits; the larger one is, the more bits of the product lie right of the register's end.
    """
    fig, (bits, course) = plt.subplots(2, figsize=(WIDTH_INCHES, 5.2), height_ratios=(1.35, 1), layout="constrained")
    _draw_registers(bits, totals)
    _draw_course(course, sums, count)
    return fig


def _kept(product: float, total: float) -> float:
    """Return what of a product lies inside the register when it holds this total."""
    step = 2.0 ** (_top(total) + 1 - BITS)
    return np.floor(product / step) * step


def _top(value: float) -> int:
    return int(np.floor(np.log2(value)))


def _draw_registers(ax: Axes, totals: tuple[float, ...]) -> None:
    left, right = SEEN
    ax.set(xlim=(left + 0.7, right - 0.7), ylim=(-3.2 * len(totals) + 1.4, 1.6))
    ax.axis("off")
    for row, total in enumerate(totals):
        y, end = -3.2 * row, _top(total) + 1 - BITS
        box = (end - 0.5, y - 1.45), BITS, 1.95
        ax.add_patch(Rectangle(*box, facecolor=plots.EXPONENT_TINT, edgecolor=plots.EXPONENT, linewidth=1.4))
        _draw_row(ax, total, y, plots.EXPONENT, end)
        _draw_row(ax, PRODUCT, y - 1, plots.FRACTION, end)
        lost = 1 - _kept(PRODUCT, total) / PRODUCT
        ax.text(left + 0.5, y + 0.65, f"total {total:.4g}", fontsize=10, color=plots.EXPONENT, va="bottom")
        label = f"+ product, {100 * lost:.2g} % of it cut off" if lost else "+ product, all of it arrives"
        color = plots.SIGN if lost else plots.FRACTION
        ax.text(right - 0.5, y + 0.65, label, fontsize=10, color=color, ha="right", va="bottom")


def _draw_row(ax: Axes, value: float, y: float, color: str, end: int) -> None:
    """Draw the bits of a value at their powers of two: a 1 is a square, a 0 a point; those below `end` are cut."""
    for power in range(_top(value), min(end, LAST) - 1, -1):
        if int(value / 2.0**power) & 1:
            cut = power < end
            look = {"markerfacecolor": plots.PAPER, "markeredgecolor": plots.SIGN} if cut else {"color": color}
            ax.plot(power, y, "s", markersize=7, **look)
        elif power >= end:
            ax.plot(power, y, "s", markersize=2, color=color)


def _draw_course(ax: Axes, sums: int, count: int) -> None:
    rng = np.random.default_rng(0)
    factors = quantize(rng.random((2, sums, count)), FLOAT8_E4M3FN)
    products = factors[0] * factors[1]
    right = products.cumsum(axis=1)
    parts = products.reshape(sums, -1, 128)
    inside = running_sum(parts.reshape(-1, 128), REGISTER, toward_zero).reshape(parts.shape)
    before = np.concatenate([np.zeros((sums, 1)), inside[:, :-1, -1].cumsum(axis=1)], axis=1)
    courses = {
        "cut": (running_sum(products, REGISTER, toward_zero), plots.SIGN),
        "rounded": (running_sum(products, REGISTER, ties_to_even), plots.INK_SOFT),
        "promoted": ((before[:, :, None] + inside).reshape(products.shape), plots.EXPONENT),
    }
    places = np.arange(16, count + 1, 16)
    for name, (totals, color) in courses.items():
        share = 100 * (totals / right).mean(axis=0)[places - 1]
        ax.plot(places, share, color=color, linewidth=2, linestyle="--" if name == "rounded" else "-")
    ax.text(2200, 96.0, "cut off", color=plots.SIGN, fontsize=10, ha="right", va="top")
    ax.text(count, 100.35, "cut, and promoted every 128", fontsize=10, ha="right", color=plots.EXPONENT)
    ax.text(count, 99.4, "rounded", fontsize=10, ha="right", va="top", color=plots.INK_SOFT)
    ax.set(xlim=(0, count), ylim=(92.5, 101.8), ylabel="% of the exact sum")
    ax.set_xticks([0, 1024, 2048, 3072, 4096], labels=["0", "1,024", "2,048", "3,072", "4,096"])
    ax.set_xlabel("products added")
