"""The picture of `your_machine`: eight products of 16 bits, by an instruction for the format and without one."""

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils import plots
from utils.pictures.drawing import WIDTH_INCHES, draw_arrow

A, B = (3, 1, 4, 1, 5, 9, 2, 6), (2, 7, 1, 8, 2, 1, 8, 3)
NARROW, WIDE = plots.LOOKS["bfloat16"].color, plots.LOOKS["float32"].color
REGISTER = 7.2  # the width of 128 bits in the picture; the whole picture is 16 wide
LEFT, RIGHT = 0.2, 8.6


def _native(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply eight pairs and add neighbours in float32, as VDPBF16PS does with a register of 128 bits."""
    return (a.float() * b.float()).reshape(4, 2).sum(1)


def _widened(a: torch.Tensor, b: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return the four registers that a and b take in float32, even places and odd ones, and the sums of two products.

    A bfloat16 is the upper half of a float32, so one shift or one mask over the register widens every second number.
    """
    registers = [half for x in (a, b) for half in (x.float()[0::2], x.float()[1::2])]
    even_a, odd_a, even_b, odd_b = registers
    return registers, torch.addcmul(even_a * even_b, odd_a, odd_b)


def two_ways(a: tuple[int, ...] = A, b: tuple[int, ...] = B) -> Figure:
    """Draw the same sums of two products twice: one instruction for bfloat16, and six where there is none.

    Each frame is a register of 128 bits, each box a number as wide as its bits.
    """
    a16, b16 = (torch.tensor(values, dtype=torch.bfloat16) for values in (a, b))
    registers, sums = _widened(a16, b16)
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 4.1))
    ax.set(xlim=(0, 16), ylim=(0, 13.6))
    ax.axis("off")
    for x, title in ((LEFT, "native"), (RIGHT, "emulated")):
        ax.text(x + REGISTER / 2, 13.2, title, ha="center", va="center", fontsize=12, weight="bold", color=plots.INK)
        _register(ax, a16, x, 11.3, NARROW)
        _register(ax, b16, x, 9.9, NARROW)
    for place, values in enumerate(registers):
        _register(
            ax, values, RIGHT, (7.3, 4.35, 6.0, 3.05)[place], WIDE
        )  # a, b of the even places above those of the odd
    _register(ax, _native(a16, b16), LEFT, 0.2, WIDE)
    _register(ax, sums, RIGHT, 0.2, WIDE)
    _step(ax, LEFT, (9.8, 1.6), "× and +", 1)
    _step(ax, RIGHT, (9.8, 8.6), "widen", len(registers))
    _step(ax, RIGHT, (2.9, 1.6), "× and +", 2)
    return fig


def _register(ax: Axes, values: torch.Tensor, x: float, y: float, color: str) -> None:
    """Draw a register of 128 bits as a row of boxes, one per number."""
    width = REGISTER / len(values)
    for place, value in enumerate(values.tolist()):
        left = x + place * width
        box = Rectangle((left, y), width, 1.2, facecolor=plots.PAPER, edgecolor=color, linewidth=1.3)
        ax.add_patch(box)
        ax.text(left + width / 2, y + 0.57, f"{value:g}", ha="center", va="center", fontsize=10.5, color=color)


def _step(ax: Axes, x: float, height: tuple[float, float], what: str, count: int) -> None:
    """Draw an arrow from one height down to another, with what is done beside it and in how many instructions."""
    middle = x + REGISTER / 2
    draw_arrow(ax, (middle, height[0]), (middle, height[1]), plots.INK)
    y = sum(height) / 2
    ax.text(middle - 0.45, y, what, ha="right", va="center", fontsize=10.5, color=plots.INK)
    plural = "s" if count > 1 else ""
    text = f"{count} instruction{plural}"
    ax.text(middle + 0.45, y, text, ha="left", va="center", fontsize=10.5, color=plots.INK)
