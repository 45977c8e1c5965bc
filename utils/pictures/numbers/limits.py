"""The picture of `numbers/limits`: where five formats begin and end, and which common numbers lie outside."""

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from utils import plots
from utils.formats import FORMATS
from utils.pictures.drawing import WIDTH_INCHES
from utils.widgets.shared.numbers.formats import format_label

SHOWN = ("float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn")
MARKS = ((1e-12, "ε 1e-12"), (1e-8, "ε 1e-8"), (math.exp(12), "exp(12)"), (-1e9, "mask −1e9"))
BEHIND = {"facecolor": plots.PAPER, "edgecolor": "none", "pad": 1}  # of words that a line would cross
LOW, HIGH = -44, 44  # powers of two at the ends of the ruler


def two_ends() -> Figure:
    """Draw the range of each format as a bar, pale where it is subnormal, and four numbers as dotted lines."""
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.1))
    for row, name in enumerate(SHOWN):
        fmt, color = FORMATS[name], plots.LOOKS[name].color
        least, normal, high = np.log2([fmt.smallest_subnormal, fmt.smallest_normal, fmt.max])
        ax.barh(row, normal - least, left=least, height=0.62, color=color, alpha=0.35)
        ax.barh(row, high - normal, left=normal, height=0.62, color=color)
        inside = f"{fmt.max:.2e}" if high > HIGH else f"{fmt.max:g}"
        ax.text(
            (max(normal, LOW) + min(high, HIGH)) / 2,
            row,
            f"{format_label(fmt)}: {inside}",
            ha="center",
            va="center",
            fontsize=10,
            color="white",
        )
        if high > HIGH:  # the picture cuts the bar
            for place, end in ((LOW + 1, "←"), (HIGH - 1, "→")):
                side = "left" if place < 0 else "right"
                ax.text(place, row, end, ha=side, va="center", fontsize=13, color="white")
        else:
            past = "∞" if fmt.has_inf else "NaN or largest"
            beside = {"va": "center", "fontsize": 10, "color": plots.INK, "bbox": BEHIND}
            ax.text(least - 1.5, row, "0 ←", ha="right", **beside)
            ax.text(max(high, 18) + 1, row, f"→ {past}", **beside)
    for value, label in MARKS:
        place = math.log2(abs(value))
        ax.vlines(place, -0.5, len(SHOWN) - 0.5, color=plots.INK_SOFT, linewidth=1, linestyle=":")
        start = {"ha": "left", "x": place - 3} if value < 0 else {"ha": "center", "x": place}  # beside exp(12)
        ax.text(y=-0.6, s=label, va="bottom", fontsize=10, color=plots.INK, bbox=BEHIND, **start)
    ticks = range(-40, 41, 20)
    ax.set(xlim=(LOW, HIGH), ylim=(len(SHOWN) - 0.4, -1.1), yticks=[], xticks=ticks)
    ax.set_xticklabels([f"$2^{{{tick}}}$" for tick in ticks])
    for side in ("left", "top", "right"):
        ax.spines[side].set_visible(False)
    return fig
