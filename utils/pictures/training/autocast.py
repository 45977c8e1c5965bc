"""The picture of `training/autocast`: a network in two lanes, with a cast wherever an arrow changes lanes."""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from utils import plots
from utils.pictures.drawing import WIDTH_INCHES

LANES = {"float32": 6.1, "bfloat16": 2.2}  # the height of the boxes of each
PLACES = {"input": 1.7, "weight 1": 4.6, "linear 1": 4.6, "GELU": 8.0, "weight 2": 11.4, "linear 2": 11.4, "loss": 14.4}


def _measured_dtypes() -> dict[str, str]:
    """Return the dtype in which each box of the picture is stored or computed, and that of the weights' gradients."""
    x = torch.ones(2, 4)
    w1, w2 = (torch.ones(4, 4, requires_grad=True) for _ in "12")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = F.linear(x, w1)
        middle = F.gelu(first)
        last = F.linear(middle, w2)
        loss = F.mse_loss(last, x)
    loss.backward()
    tensors = {"input": x, "weight 1": w1, "linear 1": first, "GELU": middle, "weight 2": w2, "linear 2": last}
    tensors |= {"loss": loss, "gradient 1": w1.grad, "gradient 2": w2.grad}
    return {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in tensors.items()}


def two_lanes() -> Figure:
    """Draw two linear layers under autocast: what is float32 above, what is bfloat16 below."""
    dtypes = _measured_dtypes()
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 2.7))
    ax.set(xlim=(0, 16), ylim=(0, 9))
    ax.axis("off")
    for dtype, (low, high) in {"float32": (4.55, 8.9), "bfloat16": (0.1, 4.35)}.items():
        color = plots.LOOKS[dtype].color
        ax.add_patch(Rectangle((0, low), 16, high - low, color=color, alpha=0.08, linewidth=0))
        ax.add_patch(Rectangle((0, low), 16, high - low, fill=False, edgecolor=color, alpha=0.5, linewidth=1))
        label = (high - 0.25, "top") if dtype == "float32" else (low + 0.25, "bottom")
        ax.text(0.25, label[0], dtype, va=label[1], fontsize=11, weight="bold", color=color)
    for name in PLACES:
        _box(ax, name, dtypes[name])
    for source, target in (("input", "linear 1"), ("linear 1", "GELU"), ("GELU", "linear 2"), ("linear 2", "loss")):
        _arrow(ax, source, target, dtypes)
    for number in "12":
        _arrow(ax, f"weight {number}", f"linear {number}", dtypes, shift=-0.45)
        _arrow(ax, f"linear {number}", f"weight {number}", dtypes, shift=0.45, backward=True)
    ax.text(PLACES["weight 2"] - 0.65, 4.0, "cast", ha="right", va="center", fontsize=10, color=plots.INK)
    ax.text(PLACES["weight 1"] + 0.65, 4.0, "gradient", ha="left", va="center", fontsize=10, color=plots.INK)
    return fig


def _label(name: str) -> str:
    return name.rstrip(" 12")


def _box(ax: Axes, name: str, dtype: str) -> None:
    x, y, color = PLACES[name], LANES[dtype], plots.LOOKS[dtype].color
    box = FancyBboxPatch(
        (x - 1.15, y - 0.65),
        2.3,
        1.3,
        boxstyle="round,pad=0,rounding_size=0.25",
        facecolor=plots.PAPER,
        edgecolor=color,
    )
    box.set_linewidth(1.5)
    ax.add_patch(box)
    ax.text(x, y, _label(name), ha="center", va="center", fontsize=11, color=plots.INK)


def _arrow(ax: Axes, source: str, target: str, dtypes: dict[str, str], shift: float = 0, backward: bool = False):
    """Draw an arrow between two boxes, in the colour of the dtype that arrives."""
    start, end = (LANES[dtypes[name]] for name in (source, target))
    x, to = PLACES[source] + shift, PLACES[target] + shift
    if start == end:
        x, to = x + 1.15, to - 1.15
    else:
        step = 0.65 if end > start else -0.65
        start, end = start + step, end - step
        if x != to:
            x, to = (x, to - 0.85) if end < start else (x + 0.85, to)
    color = plots.LOOKS[dtypes[target.replace("weight", "gradient") if backward else target]].color
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.8, "mutation_scale": 13, "shrinkA": 1, "shrinkB": 1}
    ax.annotate("", (to, end), (x, start), arrowprops=style | ({"linestyle": (0, (4, 2))} if backward else {}))
