"""The picture of `hardware/tensor_cores`: two products, and what each of them waits for in each type."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils import plots
from utils.cost.cards import ROOFS, TYPES
from utils.cost.roofline import Gemm, Roof
from utils.pictures.drawing import WIDTH_INCHES

DTYPES = ("float32", "tf32", "bfloat16", "float8")
MOVING, COMPUTING = plots.SIGN, plots.EXPONENT


def two_waits(card: str = "H100 SXM", tokens: int = 4096, width: int = 4096) -> Figure:
    """Draw a layer for one token and for many: its matrices to scale, and the times to move and to compute them."""
    fig, axes = plt.subplots(2, 2, figsize=(WIDTH_INCHES, 4.1), height_ratios=(1, 2.2), width_ratios=(1.2, 1))
    for column, (m, title) in enumerate(((1, "1 token"), (tokens, f"{tokens} tokens"))):
        _shapes(axes[0, column], m / width, title, margin=(0.52, 0.1)[column])
        _bars(axes[1, column], Gemm(m, width, width), ROOFS[card], labels=column == 0)
    return fig


def _shapes(ax: Axes, height: float, title: str, *, margin: float) -> None:
    """Draw [M, K] @ [K, N] -> [M, N] to scale: the weights are 1 by 1, and M is `height` times as long."""
    ax.set(xlim=(-margin, 4 + margin), ylim=(-0.15, 1.55), aspect="equal")
    ax.axis("off")
    for x, tall, sign in ((0, height, "×"), (1.5, 1, "="), (3, height, "")):
        at = (x, 0.5 - tall / 2)
        face = plots.LINE if x == 1.5 else plots.EXPONENT_TINT
        ax.add_patch(Rectangle(at, 1, tall, facecolor=face, edgecolor=plots.INK, linewidth=1.2))
        ax.text(x + 1.25, 0.5, sign, ha="center", va="center", fontsize=12)
    ax.text(2, 0.5, "weights", ha="center", va="center", fontsize=8, color=plots.INK)
    ax.text(2, 1.2, title, ha="center", va="bottom", fontsize=11, weight="bold", color=plots.INK)


def _bars(ax: Axes, gemm: Gemm, roof: Roof, *, labels: bool) -> None:
    """Draw two bars per type, one under the other: moving and computing; the longer one has its time beside it."""
    waits = {dtype: _waits(gemm, roof, dtype) for dtype in DTYPES}
    longest = max(max(pair) for pair in waits.values())
    ax.set(xlim=(-0.62 * longest if labels else 0, 1.4 * longest), ylim=(len(DTYPES) - 0.3, -0.95))
    ax.axis("off")
    ax.vlines(0, -0.5, len(DTYPES) - 0.5, color=plots.INK_SOFT, linewidth=1)
    for row, (dtype, pair) in enumerate(waits.items()):
        if labels:
            ax.text(-0.05 * longest, row, TYPES[dtype], ha="right", va="center", fontsize=10, color=plots.INK)
        for wait, y, color in zip(pair, (row - 0.19, row + 0.19), (MOVING, COMPUTING), strict=True):
            decides = wait == max(pair)
            ax.barh(y, wait, height=0.34, color=color, alpha=1 if decides else 0.4, linewidth=0)
            if decides:
                text = f"{1e3 * wait:.0f} µs"
                ax.text(wait + 0.04 * longest, y, text, ha="left", va="center", fontsize=10, color=color)
    names = ("moving", MOVING), ("computing", COMPUTING)
    for (name, color), x in zip(names, (0.0, 0.54), strict=True):
        ax.text(x * 1.2 * longest, -0.62, name, ha="left", va="bottom", fontsize=9.5, weight="bold", color=color)


def _waits(gemm: Gemm, roof: Roof, dtype: str) -> tuple[float, float]:
    """Return the milliseconds that moving and computing take at least."""
    moved = gemm.operations / roof.intensity(gemm, dtype)
    return roof.moving_ms(moved), roof.computing_ms(gemm.operations, dtype)
