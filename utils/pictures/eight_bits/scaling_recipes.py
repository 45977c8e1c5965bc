"""The picture of `eight_bits/scaling_recipes`: which values share a scale, along the rows and along the columns."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils import plots
from utils.pictures.drawing import WIDTH_INCHES

TILES: dict[str, tuple[float, float]] = {"tensor": (8, 8), "row": (1, 8), "1×128": (1, 4), "128×128": (4, 4)}
SIZE = 8  # of a matrix; 4 stands for 128 values, but a row is drawn 1 high, or it could not be seen
OUTLIER = (2, 5)  # row and column
STEP = 10.4


def shared_scales() -> Figure:
    """Draw what shares an outlier's scale in four matrices, for a sum along the rows and for one along the columns."""
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.0), layout="constrained")
    for column, (name, (height, width)) in enumerate(TILES.items()):
        left = column * STEP
        ax.text(left + SIZE / 2, SIZE + 0.7, name, ha="center", fontsize=10, color=plots.INK)
        again = height != width  # the other sum needs other tiles
        _matrix(ax, left, 0, (height, width), plots.EXPONENT, plots.EXPONENT_TINT)
        color, tint = (plots.SIGN, plots.SIGN_TINT) if again else (plots.EXPONENT, plots.EXPONENT_TINT)
        _matrix(ax, left, -STEP - 1.6, (width, height), color, tint)
        words = "new scales" if again else "same scales"
        ax.text(left + SIZE / 2, -STEP - 3.1, words, ha="center", fontsize=9, color=color)
    _arrow(ax, (0, -0.8), (SIZE, -0.8))
    ax.text(SIZE + 0.5, -0.85, "a sum along the rows", va="center", fontsize=9, color=plots.INK_SOFT)
    _arrow(ax, (-1, -STEP - 1.6 + SIZE), (-1, -STEP - 1.6))
    ax.text(
        -1.9,
        -STEP - 1.6 + SIZE / 2,
        "along the columns",
        ha="center",
        va="center",
        rotation=90,
        fontsize=9,
        color=plots.INK_SOFT,
    )
    ax.set(xlim=(-2.6, 3 * STEP + SIZE + 0.3), ylim=(-STEP - 3.6, SIZE + 1.9))
    ax.set_aspect("equal")
    ax.axis("off")
    return fig


def _matrix(ax: Axes, left: float, bottom: float, tile: tuple[float, float], color: str, tint: str) -> None:
    """Draw a matrix with the tile that holds the outlier; `tile`: its rows and columns."""
    row, column = (at // size * size for at, size in zip(OUTLIER, tile, strict=True))
    place = (left + column, bottom + SIZE - row - tile[0])
    ax.add_patch(Rectangle(place, tile[1], tile[0], facecolor=tint, edgecolor=color, linewidth=1.4))
    ax.add_patch(Rectangle((left, bottom), SIZE, SIZE, fill=False, edgecolor=plots.INK_SOFT, linewidth=1))
    ax.plot(left + OUTLIER[1] + 0.5, bottom + SIZE - OUTLIER[0] - 0.5, "o", color=plots.INK, markersize=4)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    bend = {"arrowstyle": "-|>", "color": plots.INK_SOFT, "linewidth": 1.4, "mutation_scale": 9}
    ax.annotate("", end, start, arrowprops={**bend, "shrinkA": 0, "shrinkB": 0})
