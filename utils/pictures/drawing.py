"""What several pictures share: the width of a phone, a code in boxes, a ruler, an arrow."""

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from utils import formats, plots

WIDTH_INCHES = 4.8  # a phone shows it nearly as large as it is


def draw_bits(ax: Axes, code: int, fmt: formats.FloatFormat, y: float) -> None:
    """Draw the bits of a code as a row of boxes from 0 to 16, in the colours of its fields, with its foot at `y`."""
    for place, color in enumerate(plots.field_colors(fmt)):
        bit = code >> (fmt.bits - 1 - place) & 1
        x = place * 16 / fmt.bits
        box = (x + 0.06, y), 16 / fmt.bits - 0.12, 1.25
        ax.add_patch(Rectangle(*box, facecolor=plots.TINTS[color], edgecolor=color, linewidth=1.2))
        ax.text(
            x + 8 / fmt.bits, y + 0.58, str(bit), ha="center", va="center", family="monospace", fontsize=12, color=color
        )


def draw_ruler(ax: Axes, y: float, color: str) -> None:
    """Draw a line from 0 to 16 with an arrow at each end."""
    arrow = {"arrowstyle": "<|-|>", "color": color, "linewidth": 1.5, "mutation_scale": 10, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (0, y), (16, y), arrowprops=arrow)


def draw_arrow(ax: Axes, start: tuple, end: tuple, color: str) -> None:
    """Draw a slightly bent arrow from one point to another."""
    bend = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-0.04", "color": color, "linewidth": 1.6}
    ax.annotate("", end, start, arrowprops={**bend, "mutation_scale": 13, "shrinkA": 2, "shrinkB": 2})
