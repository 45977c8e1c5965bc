"""The picture of `eight_bits/fp8`: one multiplication moves small numbers onto the codes of E4M3."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from utils import plots
from utils.formats import FLOAT8_E4M3FN, decode
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize

VALUES = (0.0007, 0.0001, 2e-5, 4e-6, 2e-7)  # gradients, the amax first
LEFT, RIGHT = -23.4, 10.8  # powers of two
ROWS = (1.0, 0.0)  # the codes above, and the same codes below
TICK = 0.16


def values_onto_codes(values: tuple[float, ...] = VALUES) -> Figure:
    """Draw positive values over the codes of E4M3, as they are and multiplied by 448 / amax.

    What is rounded to 0 is red. The numbers at the lower row are what E4M3 stores.
    """
    fmt = FLOAT8_E4M3FN
    scale = fmt.max / max(values)
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.2), layout="constrained")
    ax.axis("off")
    ax.set(xlim=(LEFT, RIGHT), ylim=(-0.62, 1.5))
    codes = decode(np.arange(1, fmt.max_code + 1), fmt)
    for row in ROWS:
        _draw_codes(ax, np.log2(codes), row)
    for x in values:
        start, end = np.log2(x), np.log2(x * scale)
        lost = float(quantize(x, fmt)) == 0
        before = plots.SIGN if lost else plots.FRACTION
        ax.annotate("", (end, ROWS[1] + 0.14), (start, ROWS[0] - 0.1),
                    arrowprops={"arrowstyle": "-|>", "color": plots.INK_SOFT, "linewidth": 1, "mutation_scale": 9,
                                "shrinkA": 3, "shrinkB": 3})  # fmt: skip
        ax.plot(start, ROWS[0], "o", color=before, markersize=7, zorder=3)
        ax.plot(end, ROWS[1], "o", color=plots.FRACTION, markersize=7, zorder=3)
        stored = float(quantize(x * scale, fmt))
        ax.text(end, ROWS[1] - 0.15, f"{stored:g}", ha="center", va="top", fontsize=9.5, color=plots.FRACTION)
    zeros = sum(float(quantize(x, fmt)) == 0 for x in values)
    words = {0: "", 1: "1 becomes 0", len(values): "all become 0"}.get(zeros, f"{zeros} become 0")
    ax.text(np.log2(values).mean(), ROWS[0] + 0.17, words, ha="center", va="bottom", fontsize=10, color=plots.SIGN)
    ax.text(0.5, ROWS[0] + 0.22, "the codes of E4M3", ha="center", va="bottom", fontsize=10, color=plots.EXPONENT)
    ax.text(1.5, 0.7, f"times {scale:,.0f}", ha="left", va="center", fontsize=11, color=plots.INK)
    ax.text(LEFT + 0.2, ROWS[1] - 0.12, "divide the product\nby it afterwards", ha="left", va="top", fontsize=9.5,
            color=plots.INK_SOFT)  # fmt: skip
    for power in (-16, -8, 0, 8):
        ax.text(power, -0.44, f"$2^{{{power}}}$", ha="center", va="top", fontsize=9, color=plots.INK_SOFT)
    return fig


def _draw_codes(ax: Axes, powers: np.ndarray, y: float) -> None:
    ax.hlines(y, powers.min(), powers.max(), color=plots.EXPONENT, linewidth=1)
    ax.vlines(powers, y - TICK / 2, y + TICK / 2, color=plots.EXPONENT, linewidth=0.5)
    ax.hlines(y, LEFT, powers.min(), color=plots.LINE, linewidth=1, linestyle=":")
