"""The picture of `practice/capstone`: the moments of a training step, and what two levers do to the highest of them."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from utils import plots
from utils.pictures.drawing import WIDTH_INCHES

AT_REST = 38.6  # GB of float32 weights and moments of Llama 3.2 3B: 12 bytes for each of 3.2127e9 parameters
GRADIENTS = 12.9  # GB
PEAKS = {  # GB in the forward pass, the backward pass and the update, as the chapter's script prints them
    "default": (70.9, 71.9, 64.3),
    "with checkpointing": (51.8, 54.6, 64.3),
    "and with fused=True": (51.8, 54.6, 51.4),
}
BACKWARD, UPDATE, END = 4.0, 8.0, 10.0  # where the phases begin, and the end of the step
PHASES = {"forward": (0.0, BACKWARD), "backward": (BACKWARD, UPDATE), "update": (UPDATE, END)}
WORD = {"ha": "center", "va": "center", "fontsize": 10}
TEETH = 6  # blocks that are made again


def three_moments() -> Figure:
    """Draw the bytes of a step for each plan of `PEAKS`; between the peaks the line is schematic."""
    fig, axes = plt.subplots(len(PEAKS), 1, figsize=(WIDTH_INCHES, 5.2), sharex=True, layout="constrained")
    for ax, (plan, peaks) in zip(axes, PEAKS.items(), strict=True):
        x, y = _skyline(peaks, again="checkpointing" in plan or "fused" in plan)
        ax.fill_between(x, AT_REST, y, color=plots.FRACTION_TINT, linewidth=0)
        ax.fill_between([0, END], 0, AT_REST, color=plots.EXPONENT_TINT, linewidth=0)
        ax.plot(x, y, color=plots.INK_SOFT, linewidth=1.3)
        for place in (BACKWARD, UPDATE):
            ax.axvline(place, color=plots.LINE, linewidth=1, linestyle=":", zorder=0)
        _label(ax, peaks)
        ax.set(xlim=(-0.1, END + 0.1), ylim=(0, 106), xticks=[], yticks=[])
        ax.text(0, 98, plan, ha="left", va="center", fontsize=11, color=plots.INK)
        ax.grid(visible=False)
        for side in ax.spines.values():
            side.set_visible(False)
        if peaks[-1] > AT_REST + GRADIENTS:
            ax.fill_between(
                [UPDATE + 0.1, END - 0.1], AT_REST + GRADIENTS, peaks[-1], color=plots.SIGN_TINT, linewidth=0
            )
            ax.text(
                END - 1,
                (AT_REST + GRADIENTS + peaks[-1]) / 2,
                "temporaries",
                color=plots.SIGN,
                **WORD | {"fontsize": 9},
            )
    axes[0].text(END / 2, AT_REST / 2, "weights and moments", color=plots.EXPONENT, **WORD)
    axes[0].text(2.9, 46, "activations", color=plots.FRACTION, **WORD)
    axes[0].text(UPDATE - 1.3, 46, "gradients", color=plots.FRACTION, **WORD)
    for phase, (begin, end) in PHASES.items():
        middle = (begin + end) / 2
        axes[-1].text(middle, -4, phase, ha="center", va="top", fontsize=10, color=plots.INK_SOFT)
    return fig


def _skyline(peaks: tuple[float, float, float], *, again: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of the line: it goes through the three peaks; `again`: blocks are made again, one by one."""
    forward, backward, update = peaks
    gathered = AT_REST + GRADIENTS
    kept = forward - (10 if again else 4)  # before the loss
    points = [(0, AT_REST), (BACKWARD - 0.4, kept), (BACKWARD - 0.25, forward), (BACKWARD, forward)]
    if again:
        width = (UPDATE - BACKWARD) / TEETH
        for tooth in range(TEETH):
            begin, share = BACKWARD + tooth * width, (tooth + 1) / TEETH
            floor = kept + (gathered - kept) * share
            points += [(begin + 0.1, floor - 1), (begin + 0.6 * width, forward), (begin + 0.7 * width, floor)]
        points += [(UPDATE - 0.15, backward)]  # the embedding's two gradients are added
    else:
        points += [(BACKWARD + 0.2, backward), (BACKWARD + 0.45, kept)]
    points += [(UPDATE - 0.1, gathered), (UPDATE + 0.1, update), (END - 0.1, update), (END, AT_REST)]
    x, y = np.array(points).T
    return x, y


def _label(ax: Axes, peaks: tuple[float, float, float]) -> None:
    """Write each peak above its phase, the highest one in bold."""
    for (begin, end), size in zip(PHASES.values(), peaks, strict=True):
        highest = size == max(peaks)
        ax.text(
            (begin + end) / 2,
            size + 4,
            f"{size:.1f} GB",
            ha="center",
            va="bottom",
            fontsize=12 if highest else 10,
            weight="bold" if highest else "normal",
            color=plots.SIGN if highest else plots.INK_SOFT,
        )
        if highest:
            ax.plot([begin, end], [size, size], color=plots.SIGN, linewidth=1.6)
