"""The pictures of Part I: a code and its two rulers; an addend and the gap that it does not cross."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from utils import formats, plots
from utils.rounding import quantize, ulp

WIDTH_INCHES = 4.8  # a phone shows it nearly as large as it is


def code_and_rulers(code: int = 0x4180, fmt: formats.FloatFormat = formats.FLOAT16) -> Figure:
    """Draw a code above two rulers: the exponent chooses the binade, the fraction the place inside it.

    `code`: of a positive normal number in `fmt`, near 1, so that its binade lies on the upper ruler.
    """
    value = float(formats.decode(code, fmt))
    fields = formats.fields(code, fmt)
    power = int(fields.exponent) - fmt.bias
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.1))
    ax.set(xlim=(0, 16), ylim=(0, 10.5))
    ax.axis("off")
    _bits(ax, code, fmt, y=9)

    low, high = power - 5, power + 5  # the powers of two on the upper ruler
    start = 8 - 1.4 * 0.5
    place = {p: start + 1.4 * (p - power) for p in range(low, high + 2)}
    left, right = place[power], place[power + 1]
    _ruler(ax, y=5.6, color=plots.EXPONENT)
    for p, x in place.items():
        if 0.6 < x < 15.4:
            ax.plot([x, x], [5.35, 5.85], color=plots.INK_SOFT, linewidth=1)
            ax.text(x, 6.4, f"{2.0**p:g}", ha="center", va="center", fontsize=10, color=plots.INK)
    ax.add_patch(Rectangle((left, 5.42), right - left, 0.36, facecolor=plots.EXPONENT, linewidth=0))
    _arrow(ax, (5.6, 8.9), ((left + right) / 2, 5.9), plots.EXPONENT)

    ends = (1.2, 14.8)
    ax.add_patch(
        Polygon([(left, 5.35), (right, 5.35), (ends[1], 1.6), (ends[0], 1.6)], color=plots.EXPONENT_TINT, zorder=0)
    )
    ax.plot(ends, [1.4, 1.4], color=plots.FRACTION, linewidth=1.5)
    for step in range(9):
        x = ends[0] + step / 8 * (ends[1] - ends[0])
        ax.plot([x, x], [1.15, 1.65], color=plots.INK_SOFT, linewidth=1)
        if step % 2 == 0:
            label = f"{2.0**power * (1 + step / 8):g}"
            ax.text(x, 0.5, label, ha="center", va="center", fontsize=10, color=plots.INK)
    share = value / 2.0**power - 1
    x = ends[0] + share * (ends[1] - ends[0])
    ax.plot(x, 1.4, "o", color=plots.FRACTION, markersize=9)
    ax.text(x, 2.35, f"{value:g}", ha="center", va="center", fontsize=13, weight="bold", color=plots.FRACTION)
    _arrow(ax, (13, 8.9), (x + 0.85, 2.55), plots.FRACTION)
    return fig


def _bits(ax: Axes, code: int, fmt: formats.FloatFormat, y: float) -> None:
    for place, color in enumerate(plots.field_colors(fmt)):
        bit = code >> (fmt.bits - 1 - place) & 1
        x = place * 16 / fmt.bits
        box = (x + 0.06, y), 16 / fmt.bits - 0.12, 1.25
        ax.add_patch(Rectangle(*box, facecolor=plots.TINTS[color], edgecolor=color, linewidth=1.2))
        ax.text(
            x + 8 / fmt.bits, y + 0.58, str(bit), ha="center", va="center", family="monospace", fontsize=12, color=color
        )


def _ruler(ax: Axes, y: float, color: str) -> None:
    arrow = {"arrowstyle": "<|-|>", "color": color, "linewidth": 1.5, "mutation_scale": 10, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (0, y), (16, y), arrowprops=arrow)


def _arrow(ax: Axes, start: tuple, end: tuple, color: str) -> None:
    bend = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-0.04", "color": color, "linewidth": 1.6}
    ax.annotate("", end, start, arrowprops={**bend, "mutation_scale": 13, "shrinkA": 2, "shrinkB": 2})


def addend_and_gap(addend: float = 0.3, totals: tuple[float, float] = (2.0, 256.0)) -> Figure:
    """Draw an addend at a small and at a large total in bfloat16: it moves the one and is lost in the other.

    `totals`: powers of two; half a gap above the first is less than `addend`, half a gap above the second is more.
    """
    fmt = formats.BFLOAT16
    fig, axes = plt.subplots(2, figsize=(WIDTH_INCHES, 3.2))
    spans = ((0.08, 0.6), (4.2, 6.6))  # what is shown below and above each total
    for ax, total, (below, above) in zip(axes, totals, spans, strict=True):
        gap = float(ulp(total, fmt))
        left, right = total - below, total + above
        down = total - gap / 2 * np.arange(1, int(2 * below / gap) + 1)  # below a power of two the gap is half as wide
        up = total + gap * np.arange(int(above / gap) + 1)
        ticks = np.concatenate([down, up])
        ax.set(xlim=(left, right), ylim=(-1.3, 2.0))
        ax.axis("off")
        ax.plot([left, right], [0, 0], color=plots.INK_SOFT, linewidth=1)
        ax.vlines(ticks, -0.3, 0.3, color=plots.LOOKS["bfloat16"].color, linewidth=1)
        named = ticks if len(ticks) < 20 else [total, total + addend]
        for tick in named:
            ax.text(tick, -0.5, f"{tick:g}", ha="center", va="top", fontsize=10, color=plots.INK)
        result = float(quantize(total + addend, fmt))
        bend = {"arrowstyle": "-|>", "color": plots.FRACTION, "linewidth": 1.8, "mutation_scale": 13}
        ax.annotate("", (total + addend, 0.55), (total, 0.55), arrowprops={**bend, "shrinkA": 0, "shrinkB": 0})
        ax.text(total + addend / 2, 0.85, f"+{addend:g}", ha="center", fontsize=11, color=plots.FRACTION)
        ax.plot(result, 0, "o", color=plots.FRACTION, markersize=8)
        if result == total:
            middle = total + gap / 2
            ax.axvspan(total - gap / 4, middle, ymin=0.28, ymax=0.46, color=plots.FRACTION_TINT, zorder=0)
            ax.plot([middle, middle], [-0.3, 1.5], color=plots.FRACTION, linewidth=1, linestyle=":")
            ax.text(middle, 1.6, "halfway", ha="left", fontsize=10, color=plots.FRACTION)
    return fig
