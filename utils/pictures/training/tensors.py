"""The picture of `training/tensors`: where the values of a network lie, and the windows of two formats."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils import plots, records
from utils.emulation.exponent_histogram import Histogram
from utils.formats import BFLOAT16, FLOAT16, FloatFormat
from utils.pictures.drawing import WIDTH_INCHES
from utils.training import watch

LEFT, RIGHT = -44, 24  # the exponents that are shown


def exponents_and_windows(histograms: Mapping[str, Histogram] | None = None) -> Figure:
    """Draw histograms of exponents, a row each, with float16's window over them and bfloat16's below.

    `histograms`: by the name of the kind; by default those of the recorded DistilBERT in the middle of its training.
    What float16 makes zero is drawn in another colour, and its share stands beside it.
    """
    shown = _recorded() if histograms is None else histograms
    rows = len(shown)
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 0.5 * rows + 1.7))
    _draw_fates(ax, foot=1 - rows)
    for row, (kind, histogram) in enumerate(shown.items()):
        _draw_row(ax, histogram, -row, kind)
    for row, fmt in ((rows - 0.1, FLOAT16), (rows + 0.75, BFLOAT16)):
        _draw_window(ax, fmt, -row)
    powers = range(-40, 25, 8)
    ax.set_xticks(powers, [f"$2^{{{k}}}$" for k in powers], size=10)
    ax.set(xlim=(LEFT, RIGHT), ylim=(-rows - 1.1, 1.6), yticks=[], xlabel="magnitude")
    ax.grid(visible=False)
    ax.spines.left.set_visible(False)
    return fig


def _recorded() -> dict[str, Histogram]:
    """The histograms of the DistilBERT of the chapter, all layers together, at the recorded step in the middle."""
    run = watch.recorded(records.load("watched-distilbert-32-true-small-imdb-cpu-seed0"))
    at = len(run["steps"]) // 2
    return {
        kind: sum((Histogram.from_json(steps[at]) for steps in groups.values()), Histogram())
        for kind, groups in run["histograms"].items()
    }


def _edges(fmt: FloatFormat) -> tuple[int, int, int]:
    """The exponents where a format begins to round up from zero, to hold all its bits, and to overflow."""
    return fmt.emin - fmt.mantissa_bits - 1, fmt.emin, fmt.emax + 1


def _draw_fates(ax: Axes, foot: float) -> None:
    """Draw the parts of float16's window behind the histograms, and say what becomes of the values in each."""
    zero, normal, top = _edges(FLOAT16)
    edges, alphas = (LEFT, zero, normal, top, RIGHT), (0, 0.07, 0.17, 0)
    labels = ("become 0", "fewer bits", f"all {FLOAT16.precision} bits", "infinite")
    for start, end, alpha, label in zip(edges, edges[1:], alphas, labels, strict=False):
        box = (start, foot), end - start, 1.02 - foot
        ax.add_patch(Rectangle(*box, color=plots.LOOKS["float16"].color, alpha=alpha, linewidth=0, zorder=0))
        ax.text((start + end) / 2, 1.3, label, ha="center", va="center", fontsize=10, color=plots.INK_SOFT)


def _draw_row(ax: Axes, histogram: Histogram, foot: float, kind: str) -> None:
    zero, _, top = _edges(FLOAT16)
    exponents = np.arange(len(histogram.counts)) + histogram.low
    heights = 0.8 * np.array(histogram.counts) / max(histogram.counts)
    colors = np.where(exponents < zero, plots.SIGN, plots.EXPONENT)
    ax.bar(exponents + 0.5, heights, 0.86, bottom=foot, color=colors)
    ax.plot([LEFT, RIGHT], [foot, foot], color=plots.LINE, linewidth=0.8, zorder=0)
    ax.text(top - 0.5, foot + 0.42, kind.replace(" ", "\n"), ha="right", va="center", fontsize=10, linespacing=0.95)
    lost = histogram.flushed(FLOAT16)
    if lost > 0.01:
        ax.text(
            zero - 0.5, foot + 0.85, f"{100 * lost:.0f} % lost", ha="right", va="top", fontsize=10, color=plots.SIGN
        )


def _draw_window(ax: Axes, fmt: FloatFormat, middle: float) -> None:
    """Draw the window of a format as a bar, with its significant bits, and arrows where it goes on."""
    zero, _, top = _edges(fmt)
    start, end = max(zero, LEFT), min(top, RIGHT)
    ax.barh(middle, end - start, 0.6, start, color=plots.LOOKS[fmt.name].color)
    ink = plots.PAPER if fmt is FLOAT16 else plots.INK
    label = f"{fmt.name}: {fmt.precision} bits"
    ax.text((start + end) / 2, middle - 0.02, label, ha="center", va="center", fontsize=10, color=ink)
    if zero < LEFT:
        ax.text(LEFT + 0.7, middle - 0.02, f"$2^{{{zero}}}$ ←", ha="left", va="center", fontsize=10, color=ink)
        ax.text(RIGHT - 0.7, middle - 0.02, f"→ $2^{{{top}}}$", ha="right", va="center", fontsize=10, color=ink)
