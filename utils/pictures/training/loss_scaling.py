"""The picture of `training/loss_scaling`: a loss scale moves the gradients through the window of float16."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from utils import plots, records
from utils.emulation.exponent_histogram import Histogram
from utils.pictures.drawing import WIDTH_INCHES
from utils.training import watch

ZERO_BELOW, INFINITE_FROM = -25, 16  # the binades that float16 rounds to 0 and to infinity
LEFT, RIGHT = -46, 34


def _recorded_gradients() -> Histogram:
    """Return the activation gradients of the first layer of a small DistilBERT, at its last watched step."""
    runs = records.load_all(experiment="watched-distilbert")
    run = next(run for run in runs if run.device["kind"] == "cpu")
    return Histogram.from_json(watch.recorded(run)["histograms"]["activation gradients"]["layer 1"][-1])


def gradients_in_window(powers: tuple[int, ...] = (0, 16, 32)) -> Figure:
    """Draw the recorded gradients times 2**power, a row for each power, above the binades that float16 holds."""
    histogram = _recorded_gradients()
    fig, axes = plt.subplots(len(powers), figsize=(WIDTH_INCHES, 3.7), sharex=True)
    for ax, power in zip(axes, powers, strict=True):
        at = histogram.low + power + np.arange(len(histogram.counts))
        share = np.array(histogram.counts) / histogram.nonzero
        kept = (at >= ZERO_BELOW) & (at < INFINITE_FROM)
        ax.axvspan(ZERO_BELOW, INFINITE_FROM, color=plots.EXPONENT_TINT, zorder=0, linewidth=0)
        style = {"width": 0.86, "align": "edge", "linewidth": 0}
        ax.bar(at[kept], share[kept], color=plots.LOOKS["float16"].color, **style)
        ax.bar(at[~kept], share[~kept], color=plots.SIGN, **style)
        name = "not scaled" if power == 0 else f"times $2^{{{power}}}$"
        ax.text(LEFT + 0.5, 0.96, name, transform=ax.get_xaxis_transform(), va="top", fontsize=11, color=plots.INK)
        ends = (
            (at < ZERO_BELOW, ZERO_BELOW - 0.8, "right", "0"),
            (at >= INFINITE_FROM, INFINITE_FROM + 0.8, "left", "∞"),
        )
        for lost, x, side, result in ends:
            if share[lost].sum() > 0.005:
                text = f"{share[lost].sum():.0%} become {result}"
                ax.text(x, 0.5, text, transform=ax.get_xaxis_transform(), ha=side, fontsize=9.5, color=plots.SIGN)
        ax.set(xlim=(LEFT, RIGHT), yticks=[], ylim=(0, 1.08 * share.max()))
        ax.grid(visible=False)
        ax.spines["left"].set_visible(False)
    axes[0].text((ZERO_BELOW + INFINITE_FROM) / 2, 1.04, "what float16 can hold", ha="center", va="bottom",
                 transform=axes[0].get_xaxis_transform(), fontsize=10, color=plots.EXPONENT)  # fmt: skip
    ticks = range(-40, 33, 8)
    axes[-1].set_xticks(ticks, [f"$2^{{{tick}}}$" for tick in ticks])
    axes[-1].set_xlabel("size of a gradient")
    return fig
