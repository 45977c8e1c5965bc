"""The picture of `numbers/stability`: three scores whose exponentials fit once the largest one is subtracted."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from utils import plots
from utils.formats import FLOAT16
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize

LABELS = ((-0.3, 1.5, "right"), (0.3, 1 / 2.6, "left"), (0.5, 1 / 1.5, "left"))  # to the right, times, side


def shifted_scores(scores: tuple[float, float, float] = (10.0, 11.0, 12.0)) -> Figure:
    """Draw the exponentials of the scores, as they are and with the largest subtracted, and the end of float16.

    The labels are the exponentials as float16 stores them.
    """
    fig, axes = plt.subplots(1, 2, figsize=(WIDTH_INCHES, 2.9), sharey=True, layout="constrained")
    for ax, shift, title in zip(axes, (0.0, max(scores)), ("as they are", f"minus {max(scores):g}"), strict=True):
        x = np.array(scores) - shift
        wide = np.linspace(x.min() - 2.5, x.max() + 3, 200)
        ax.plot(wide, np.exp(wide), color=plots.INK_SOFT, linewidth=1.2)
        ax.axhspan(FLOAT16.max, 1e7, color=plots.SIGN_TINT, zorder=0)
        ax.axhline(FLOAT16.max, color=plots.SIGN, linewidth=1.2)
        for at, (dx, times, side) in zip(x, LABELS, strict=True):
            stored = float(quantize(float(np.exp(at)), FLOAT16))
            color = plots.FRACTION if np.isfinite(stored) else plots.SIGN
            ax.plot(at, np.exp(at), "o", color=color, markersize=8)
            label = f"{stored:.2g}" if shift else f"{stored:.0f}".replace("inf", "∞")
            size = 14 if label == "∞" else 10
            ax.text(at + dx, np.exp(at) * times, label, ha=side, va="center", fontsize=size, color=color)
        ax.set(yscale="log", ylim=(1e-3, 1e7), xticks=x, xlabel="score", title=title)
        ax.set_xticklabels([f"{at:g}".replace("-", "−") for at in x])
    axes[1].text(axes[1].get_xlim()[0] + 0.2, FLOAT16.max * 2, "float16 ends", fontsize=10, color=plots.SIGN)
    axes[0].set_ylabel("exp(score)")
    return fig
