"""The picture of `numbers/rounding`: an addend and the gap that it does not cross."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from utils import formats, plots
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize, ulp


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
