"""The picture of `eight_bits/fp8_training`: a layer's step in bfloat16 and FP8, its products and its casts."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from utils import plots
from utils.cost.cards import ROOFS
from utils.cost.fp8_casts import BFLOAT16, predicted_ms, square
from utils.pictures.drawing import WIDTH_INCHES

ROW, GAP, THICK = 1.0, 0.9, 0.8  # from one bar to the next, between two widths, and how thick a bar is
TINTS = {"#d55e00": "#fde6d3", "#8a2f69": "#f6dfec"}  # of the two colours


def products_and_casts(
    widths: tuple[int, ...] = (1024, 2048, 8192), device: str = "H100 SXM", recipe: str = "fp8-current"
) -> Figure:
    """Draw how long the training step of a square layer takes by the data sheet, each width as a share of bfloat16."""
    roof = ROOFS[device]
    wide, narrow = plots.LOOKS["bfloat16"].color, plots.LOOKS["float8_e4m3fn"].color
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 3.7))
    for place, width in enumerate(widths):
        layer, y = square(width), place * (2 * ROW + GAP)
        whole = predicted_ms(layer, BFLOAT16, roof)
        for row, name, color in ((0, BFLOAT16, wide), (1, recipe, narrow)):
            products = predicted_ms(layer, name, roof, casts=False) / whole
            casts = predicted_ms(layer, name, roof) / whole - products
            ax.barh(y + row * ROW, products, THICK, color=color)
            ax.barh(y + row * ROW, casts, THICK, left=products, facecolor=TINTS[color], edgecolor=color, hatch="////")
            label = "bfloat16" if name == BFLOAT16 else "FP8"
            ax.text(-0.03, y + row * ROW, label, ha="right", va="center", fontsize=10, color=color)
            if name != BFLOAT16:
                total = products + casts
                ax.text(
                    max(total, 1) + 0.04, y + row * ROW, _in_words(total), va="center", fontsize=10, color=plots.INK
                )
        ax.text(0, y - 0.72, f"width {width:,}", ha="left", va="center", fontsize=10, color=plots.INK)
    ax.text(0.03, ROW, "products", va="center", fontsize=10, color=plots.PAPER)
    box = {"facecolor": TINTS[narrow], "edgecolor": "none", "pad": 1.5}
    products = predicted_ms(square(widths[0]), recipe, roof, casts=False)
    whole = predicted_ms(square(widths[0]), BFLOAT16, roof)
    middle = (products + predicted_ms(square(widths[0]), recipe, roof)) / 2 / whole
    ax.text(middle, ROW, "casts", ha="center", va="center", fontsize=10, color=narrow, bbox=box)
    ax.axvline(1, color=plots.INK_SOFT, linewidth=1, linestyle=":", zorder=0)
    ax.set(xlim=(-0.24, 1.72), ylim=(len(widths) * (2 * ROW + GAP) - GAP - 0.4, -1.2))
    ax.axis("off")
    return fig


def _in_words(share: float) -> str:
    """Say how long a step takes that lasts this share of another."""
    return f"{share:.2f}× as long" if share > 1 else f"{1 / share:.2f}× as fast"
