"""The picture of `numbers/bits`: a code and its two rulers."""

from itertools import groupby

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from utils import formats, plots
from utils.pictures.drawing import WIDTH_INCHES, draw_arrow, draw_bits, draw_ruler


def code_and_rulers(code: int = 0x4180, fmt: formats.FloatFormat = formats.FLOAT16) -> Figure:
    """Draw a code above two rulers: the exponent chooses the binade, the fraction the place inside it.

    `code`: of a positive normal number in `fmt`, near 1, so that its binade lies on the upper ruler.
    """
    value = float(formats.decode(code, fmt))
    fields = formats.fields(code, fmt)
    power = int(fields.exponent) - fmt.bias
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.3))
    ax.set(xlim=(0, 16), ylim=(0, 11.2))
    ax.axis("off")
    draw_bits(ax, code, fmt, y=9)
    names = {plots.SIGN: "sign", plots.EXPONENT: "exponent", plots.FRACTION: "fraction"}
    for color, places in groupby(range(fmt.bits), plots.field_colors(fmt).__getitem__):
        places = list(places)
        x = (places[0] + places[-1] + 1) / 2 * 16 / fmt.bits
        ax.text(x, 10.75, names[color], ha="center", va="center", fontsize=10, color=color)

    low, high = power - 5, power + 5  # the powers of two on the upper ruler
    start = 8 - 1.4 * 0.5
    place = {p: start + 1.4 * (p - power) for p in range(low, high + 2)}
    left, right = place[power], place[power + 1]
    draw_ruler(ax, y=5.6, color=plots.EXPONENT)
    for p, x in place.items():
        if 0.6 < x < 15.4:
            ax.plot([x, x], [5.35, 5.85], color=plots.INK_SOFT, linewidth=1)
            ax.text(x, 6.4, f"{2.0**p:g}", ha="center", va="center", fontsize=10, color=plots.INK)
    ax.add_patch(Rectangle((left, 5.42), right - left, 0.36, facecolor=plots.EXPONENT, linewidth=0))
    draw_arrow(ax, (5.6, 8.9), ((left + right) / 2, 5.9), plots.EXPONENT)

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
    draw_arrow(ax, (13, 8.9), (x + 0.85, 2.55), plots.FRACTION)
    return fig
