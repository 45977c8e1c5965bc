"""The picture of `training/training_loop`: one step as a loop, with the dtype of what each arrow carries."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon

from utils import formats, plots
from utils.pictures.drawing import WIDTH_INCHES, draw_arrow
from utils.rounding import quantize

WIDE, NARROW, SCALED = plots.LOOKS["float32"].color, plots.LOOKS["float16"].color, plots.SIGN
PLACES = {  # the middle of each box
    "weights": (8, 14.6),
    "forward": (2.7, 11.4),
    "loss": (2.7, 7.7),
    "× S": (2.7, 4),
    "backward": (8, 2.2),
    ".grad": (13.3, 4),
    "unscale_": (13.3, 7.7),
    "clip, step": (13.3, 11.4),
    "S": (8, 7.7),
}
ARROWS = {  # from, to: the dtype of what is handed over
    ("weights", "forward"): "float16",
    ("forward", "loss"): "float32",
    ("loss", "× S"): "float32",
    ("× S", "backward"): "float32",
    ("backward", ".grad"): "float16",
    (".grad", "unscale_"): "float32",
    ("unscale_", "clip, step"): "float32",
    ("clip, step", "weights"): "float32",
}


def step_as_a_loop(gradient: float = 2e-8, scale: float = 65536.0) -> Figure:
    """Draw one training step in float16 as a loop; the tint marks what is `scale` times too large.

    Below it one true gradient: without the scale in float16, with it in `.grad`, and after `unscale_`.
    """
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 4.7))
    ax.set(xlim=(0, 16), ylim=(-2.4, 15.6))
    ax.axis("off")
    zone = [(5.7, 0.3), (15.8, 0.3), (15.8, 7.7), (10.8, 7.7), (10.8, 5.3), (5.7, 5.3)]
    ax.add_patch(Polygon(zone, facecolor=plots.SIGN_TINT, linewidth=0, zorder=0))
    ax.text(8.2, 4.4, "S times too large", ha="center", va="center", fontsize=10, color=SCALED)
    repeated = [(0.2, 0.5), (10.5, 0.5), (10.5, 3.5), (5.3, 3.5), (5.3, 12.5), (0.2, 12.5)]
    ax.add_patch(Polygon(repeated, facecolor="none", edgecolor=plots.INK_SOFT, linestyle=(0, (4, 3)), linewidth=1))
    ax.text(0.6, 1.1, "for each part", ha="left", va="center", fontsize=10, color=plots.INK_SOFT)
    for name, (x, y) in PLACES.items():
        _box(ax, name, x, y)
    for (start, end), dtype in ARROWS.items():
        _carry(ax, start, end, dtype)
    draw_arrow(ax, (11.1, 7.7), (9.0, 7.7), plots.INK_SOFT)
    ax.text(10.05, 8.5, "update", ha="center", va="center", fontsize=10, color=plots.INK_SOFT)
    ax.text(10.05, 6.9, "inf?", ha="center", va="center", fontsize=10, color=plots.INK_SOFT)
    draw_arrow(ax, (7.1, 7.2), (4.3, 4.85), plots.INK_SOFT)
    _follow(ax, gradient, scale)
    return fig


def _box(ax: Axes, name: str, x: float, y: float) -> None:
    """Draw a named box around its middle; the scale is a small one."""
    half = 0.9 if name == "S" else 2.2
    shape = FancyBboxPatch((x - half, y - 0.75), 2 * half, 1.5, boxstyle="round,pad=0,rounding_size=0.4", zorder=2)
    shape.set(facecolor=plots.PAPER, edgecolor=SCALED if "S" in name else plots.INK, linewidth=1.3)
    ax.add_patch(shape)
    ax.text(x, y, name, ha="center", va="center", fontsize=11, color=SCALED if "S" in name else plots.INK, zorder=3)


def _carry(ax: Axes, start: str, end: str, dtype: str) -> None:
    """Draw an arrow between two boxes, with the dtype beside it."""
    (x0, y0), (x1, y1) = PLACES[start], PLACES[end]
    up, right = (1 if y1 > y0 else -1), (1 if x1 > x0 else -1)
    if x0 == x1:
        tail, head, label = (x0, y0 + 0.85 * up), (x1, y1 - 0.85 * up), (x0 + 0.3, (y0 + y1) / 2, "left")
    elif start in ("weights", "backward"):  # out of a side, into the top or the foot of the next
        tail, head = (x0 + 2.3 * right, y0), (x1, y1 - 0.85 * up)
        label = (2.6, 14.2, "center") if start == "weights" else (12.9, 1.7, "center")
    else:  # out of the top or the foot, into a side
        tail, head = (x0, y0 + 0.85 * up), (x1 - 2.3 * right, y1)
        label = (13.4, 14.2, "center") if end == "weights" else (2.6, 2.2, "center")
    color = NARROW if dtype == "float16" else WIDE
    draw_arrow(ax, tail, head, color)
    x, y, align = label
    ax.text(x, y, dtype, ha=align, va="center", fontsize=10, color=color, zorder=3)


def _follow(ax: Axes, gradient: float, scale: float) -> None:
    """Write what becomes of one gradient, without the scale and with it."""
    lost, kept = (float(quantize(gradient * factor, formats.FLOAT16)) for factor in (1.0, scale))
    caption = f"a gradient of {gradient:g}, with S = {scale:g}: {kept:.3g} when scaled,\n"
    caption += f"{kept / scale:.3g} after unscale_, but {lost:g} in float16 if it is never scaled"
    ax.text(8, -1.2, caption, ha="center", va="center", fontsize=10, color=plots.INK)
