"""The picture of `numbers/stability`: three scores whose exponentials fit once the largest one is subtracted."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from utils import plots
from utils.formats import FLOAT16
from utils.pictures.drawing import WIDTH_INCHES
from utils.rounding import quantize

LABELS = ((3, -13, "left"), (8, -9, "left"), (-4, 11, "right"))  # points to the right and up, side: none on a line


def shifted_scores(scores: tuple[float, float, float] = (10.0, 11.0, 12.0)) -> Figure:
    """Draw the exponentials of the scores, as they are and with the largest subtracted, and the end of float16.

    The labels are the exponentials as float16 stores them.
    """
    fig, axes = plt.subplots(1, 2, figsize=(WIDTH_INCHES, 3.3), sharey=True, layout="constrained")
    for ax, shift, title in zip(axes, (0.0, max(scores)), ("as they are", f"minus {max(scores):g}"), strict=True):
        x = np.array(scores) - shift
        wide = np.linspace(x.min() - 1.4, x.max() + 1.4, 200)
        ax.plot(wide, np.exp(wide), color=plots.INK_SOFT, linewidth=1.2)
        ax.axhspan(FLOAT16.max, 1e7, color=plots.SIGN_TINT, zorder=0)
        ax.axhline(FLOAT16.max, color=plots.SIGN, linewidth=1.2)
        for at, (right, up, side) in zip(x, LABELS, strict=True):
            stored = float(quantize(float(np.exp(at)), FLOAT16))
            color = plots.FRACTION if np.isfinite(stored) else plots.SIGN
            ax.plot(at, np.exp(at), "o", color=color, markersize=8)
            label = f"{stored:.2g}" if shift else f"{stored:.0f}".replace("inf", "∞")
            size = 14 if label == "∞" else 10
            look = {"ha": side, "va": "center", "fontsize": size, "color": color}
            ax.annotate(label, (at, np.exp(at)), (right, up), textcoords="offset points", **look)
        ax.set(yscale="log", ylim=(1e-2, 1e7), xticks=x, xlabel="score", title=title)
        ax.grid(visible=False, axis="x")
        ax.set_xticklabels([f"{at:g}".replace("-", "−") for at in x])
    axes[1].text(axes[1].get_xlim()[0] + 0.2, FLOAT16.max * 2, "float16 ends", fontsize=10, color=plots.SIGN)
    axes[0].set_ylabel("exp(score)")
    return fig
