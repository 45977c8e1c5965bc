"""The picture of `eight_bits/block_formats`: an outlier takes from whoever shares its scale."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from utils import plots
from utils.formats import FLOAT4_E2M1FN
from utils.pictures.drawing import WIDTH_INCHES
from utils.scaling import SCALINGS, quantize_tiles

COUNT, OUTLIER, AT = 64, 60.0, 24  # values, the large one among them, and its place
VALUES = np.random.default_rng(5).standard_normal(COUNT).astype(np.float32)
VALUES[AT] = OUTLIER
ROWS = (  # a scaling, its title, and how many values share a scale
    ("tensor", "one scale for all 64", COUNT),
    ("mx-rceil", "MXFP4: a scale for 32", 32),
    ("nvfp4", "NVFP4: a scale for 16", 16),
)
HIGHEST = 2.6  # where a bar is cut off


def outlier_and_neighbours() -> Figure:
    """Draw 64 values with an outlier, then what E2M1 stores of them with a scale for all, for 32 and for 16."""
    fig, axes = plt.subplots(len(ROWS) + 1, figsize=(WIDTH_INCHES, 5.2), layout="constrained")
    _draw_bars(axes[0], VALUES, np.zeros(COUNT, bool))
    axes[0].set_title("64 numbers, one of them 60", loc="left", fontsize=10)
    for ax, (name, label, block) in zip(axes[1:], ROWS, strict=True):
        stored = quantize_tiles(VALUES[None], FLOAT4_E2M1FN, SCALINGS[name]).dequantize()[0]
        zero = stored == 0
        _draw_bars(ax, stored, zero)
        _draw_blocks(ax, block)
        ax.set_title(label, loc="left", fontsize=10)
        ax.set_title(f"{zero.sum()} become 0", loc="right", fontsize=10, color=plots.SIGN)
    return fig


def _draw_bars(ax: Axes, x: np.ndarray, zero: np.ndarray) -> None:
    """Draw the values as bars; those that became 0 as dots, the outlier as a bar that goes on."""
    ax.set(xlim=(-1, COUNT), ylim=(-HIGHEST - 0.9, HIGHEST + 0.3))
    ax.axis("off")
    places = np.arange(COUNT)
    colors = np.where(places == AT, plots.SIGN, plots.LOOKS["float4_e2m1fn"].color)
    ax.axhline(0, color=plots.LINE, linewidth=0.8, zorder=0)
    ax.bar(places[~zero], np.clip(x, -HIGHEST, HIGHEST)[~zero], 0.7, color=colors[~zero])
    ax.plot(places[zero], np.zeros(zero.sum()), "o", color=plots.SIGN, markersize=2.2)
    ax.text(AT + 0.9, HIGHEST - 0.1, f"⋮ {x[AT]:.3g}", ha="left", va="top", fontsize=9, color=plots.SIGN)


def _draw_blocks(ax: Axes, block: int) -> None:
    """Draw a bracket below each group of values that shares a scale, in another colour where the outlier is."""
    for start in range(0, COUNT, block):
        color = plots.SIGN if start <= AT < start + block else plots.EXPONENT
        left, right, foot = start - 0.35, start + block - 0.65, -HIGHEST - 0.4
        ax.plot([left, left, right, right], [foot + 0.4, foot, foot, foot + 0.4], color=color, linewidth=1.8)
