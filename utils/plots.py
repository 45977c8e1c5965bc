"""The book's figures: one style, and one colour, marker and line for each format through all chapters.

Call `style()` once, in the import cell. Colours are those of Okabe and Ito, which differ under every common colour
blindness; the three field colours are those of the pages (`utils/widgets/shared/page/tokens.css`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils.formats import FORMATS, FloatFormat

SIGN, EXPONENT, FRACTION = "#a53f00", "#005a8f", "#8a2f69"
SIGN_TINT, EXPONENT_TINT, FRACTION_TINT = "#ffe4d1", "#d6eaf8", "#f6dfec"
TINTS = {SIGN: SIGN_TINT, EXPONENT: EXPONENT_TINT, FRACTION: FRACTION_TINT}
INK, INK_SOFT, LINE, PAPER = "#1c1f24", "#4c545f", "#d4d8de", "#ffffff"
WIDTH_INCHES = 7.2


class Look(NamedTuple):
    """How a format is drawn in every figure of the book."""

    color: str
    marker: str
    linestyle: str


# Related formats share a hue; marker and line tell them apart.
LOOKS: dict[str, Look] = {
    "float64": Look("#1c1f24", "s", "-"),
    "float32": Look("#5c6670", "o", "-"),
    "tf32": Look("#5c6670", "D", "--"),
    "float16": Look("#0072b2", "o", "-"),
    "bfloat16": Look("#d55e00", "^", "-"),
    "float8_e4m3fn": Look("#8a2f69", "o", "-"),
    "float8_e4m3fnuz": Look("#8a2f69", "D", "--"),
    "float8_e5m2": Look("#007a5a", "^", "-"),
    "float8_e5m2fnuz": Look("#007a5a", "v", "--"),
    "float8_e8m0fnu": Look("#8f6a00", "P", ":"),
    "float6_e3m2fn": Look("#1f8fc4", "^", "-."),
    "float6_e2m3fn": Look("#1f8fc4", "o", "-."),
    "float4_e2m1fn": Look("#c25a93", "X", "-"),
}


def style() -> None:
    """Set the book's figure style in this kernel: size, type, light card, sharp PNGs."""
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina")
    plt.rcParams.update(
        {
            "figure.figsize": (WIDTH_INCHES, 3.2),
            "figure.facecolor": PAPER,  # an explicit light card stays readable on the dark theme
            "axes.facecolor": PAPER,
            "savefig.facecolor": PAPER,
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.edgecolor": INK_SOFT,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK_SOFT,
            "ytick.color": INK_SOFT,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": LINE,
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "legend.frameon": False,
        }
    )


def look(fmt: FloatFormat | str) -> dict[str, str]:
    """Return the keyword arguments of `Axes.plot` for a format. Raises: ValueError for a format without a look."""
    name = str(fmt)
    if name not in LOOKS:
        raise ValueError(f"no look for {name!r}; the book's formats are {', '.join(LOOKS)}")
    return LOOKS[name]._asdict()


def field_colors(fmt: FloatFormat) -> list[str]:
    """Return the colour of each bit's field, from the sign at the left to the last fraction bit."""
    return [SIGN] * fmt.signed + [EXPONENT] * fmt.exponent_bits + [FRACTION] * fmt.mantissa_bits


def layouts(formats: Sequence[FloatFormat] = tuple(FORMATS.values())) -> Figure:
    """Draw the fields of formats to one scale: a row each, one box a bit, the sign at the left."""
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 0.36 * len(formats) + 0.6))
    for row, fmt in enumerate(formats):
        for x, color in enumerate(field_colors(fmt)):
            ax.add_patch(Rectangle((x, row - 0.36), 1, 0.72, facecolor=TINTS[color], edgecolor=color, linewidth=0.8))
        ax.text(-0.6, row, fmt.name, ha="right", va="center", family="monospace", fontsize=9)
        counts = f"{int(fmt.signed)} + {fmt.exponent_bits} + {fmt.mantissa_bits}"
        ax.text(fmt.bits + 0.6, row, counts, va="center", fontsize=8, color=INK_SOFT)
    first = formats[0]
    starts = {"sign": 0, "exponent": int(first.signed), "fraction": int(first.signed) + first.exponent_bits}
    for (name, x), color in zip(starts.items(), (SIGN, EXPONENT, FRACTION), strict=True):
        ha, x = ("right", 0.2) if name == "sign" else ("left", x + 0.4)
        ax.text(x, -0.75, name, ha=ha, color=color, fontsize=9)
    ax.set(xlim=(-15, 71), ylim=(len(formats) - 0.4, -1.3))
    ax.axis("off")
    return fig


def values_on_a_line(ax: Axes, values: np.ndarray, row: float, fmt: FloatFormat, label: str | None = None) -> None:
    """Draw values as ticks on one line of an axis; `row` is its height, `label` (by default the name) stands left."""
    ax.vlines(values, row - 0.3, row + 0.3, color=LOOKS[fmt.name].color, linewidth=1.0)
    ax.text(-0.01, row, label or fmt.name, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=9)


def dtype_graph(stages: Sequence) -> Figure:
    """Draw boxes in their order from top to bottom, each in the lane of the dtype in which it computes.

    `stages`: what `utils.diagnostics.dtype_probe.DtypeProbe.stages` gives. An arrow from another lane is what autocast
    casts for the box, and says how many tensors that are. Raises: ValueError for a dtype without a look, or without any
    stage.
    """
    if not stages:
        raise ValueError("there are no stages to draw")
    lanes = {stage.dtype for stage in stages}.union(*(cast for stage in stages for cast in stage.casts))
    names = sorted(lanes, key=lambda name: (-FORMATS[name].bits if name in FORMATS else 0, name))
    looks = {name: look(name) for name in names}
    pitch, width = WIDTH_INCHES / len(names), WIDTH_INCHES / len(names) - 1
    middle = {name: pitch * (lane + 0.5) for lane, name in enumerate(names)}
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 0.44 * len(stages) + 0.6))
    for name in names:
        lane = (middle[name] - width / 2, middle[name] + width / 2)
        ax.axvspan(*lane, color=looks[name]["color"], alpha=0.07, linewidth=0)
        ax.vlines(lane, len(stages) - 0.4, -1.3, color=looks[name]["color"], alpha=0.5, linewidth=1, zorder=0.8)
        ax.text(
            middle[name], -0.85, name, ha="center", va="center", fontsize=14, weight="bold", color=looks[name]["color"]
        )
    for row, pair in enumerate(pairwise(middle[stage.dtype] for stage in stages)):  # level where casts are named
        ax.plot(np.repeat(pair, 2), row + np.array([0, 0.5, 0.5, 1]), color=INK_SOFT, linewidth=1.4, zorder=0.9)
    for row, stage in enumerate(stages):
        _stage_box(ax, stage, row, middle[stage.dtype], width, looks[stage.dtype]["color"])
        for source in dict.fromkeys(source for source, _ in stage.casts if source != stage.dtype):
            side = 1 if middle[source] > middle[stage.dtype] else -1
            end = middle[stage.dtype] + side * width / 2
            start = middle[source] - side * width / 2
            arrow = {"arrowstyle": "-|>", "color": looks[stage.dtype]["color"], "linewidth": 1.6, "mutation_scale": 14}
            ax.annotate("", (end, row), (start, row), arrowprops={**arrow, "shrinkA": 0, "shrinkB": 0})
            count = sum(cast[0] == source for cast in stage.casts)
            text = f"{count} cast{'s' if count > 1 else ''}"
            ax.text((start + end) / 2, row - 0.1, text, ha="center", va="baseline", fontsize=11.5, color=INK)
    ax.set(xlim=(0, WIDTH_INCHES), ylim=(len(stages) - 0.4, -1.3))
    ax.axis("off")
    return fig


def _stage_box(ax: Axes, stage, row: float, x: float, width: float, color: str) -> None:
    text = stage.label
    if stage.op not in ("", "linear") and stage.op not in stage.label:
        text = stage.op
    for face, alpha in ((PAPER, 1), (color, 0.16)):
        ax.add_patch(Rectangle((x - width / 2, row - 0.36), width, 0.72, facecolor=face, alpha=alpha))
    box = Rectangle((x - width / 2, row - 0.36), width, 0.72, fill=False, edgecolor=color, linewidth=1.4)
    ax.add_patch(box)
    ax.text(x, row, text, ha="center", va="center", fontsize=13, color=INK)
