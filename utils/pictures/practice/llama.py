"""The picture of `practice/llama`: the time of one token, launched kernel by kernel and launched at once."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils import plots
from utils.pictures.drawing import WIDTH_INCHES

LAUNCH, WIDE, NARROW = plots.INK_SOFT, plots.EXPONENT, plots.FRACTION
KERNELS = 6  # of one token
LAUNCH_TIME, READ_TIME = 1.8, 1.0  # of one launch, and of one kernel that reads weights of 16 bits
HEIGHT = 0.85  # of a lane
LOOPS = (("A plain loop: the CPU launches every kernel", 9.2), ("Compiled: one launch for all kernels", 2.2))
ROWS = ((16, WIDE, 1.0, 1.9), (8, NARROW, 0.5, -0.9))  # bits, colour, share of the bytes, height above a loop's middle


def one_token() -> Figure:
    """Draw when the kernels of one token run: in a plain loop and compiled, with weights of 16 and of 8 bits."""
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 4.2))
    ax.set(xlim=(-1.3, 14.2), ylim=(1.1, 14.0))
    ax.axis("off")
    for (title, middle), starts_of in zip(LOOPS, (_launched_one_by_one, _launched_at_once), strict=True):
        ax.text(-1.3, middle + 4.25, title, ha="left", va="center", fontsize=11, color=plots.INK)
        for bits, color, share, above in ROWS:
            _draw_token(ax, starts_of(share * READ_TIME), share * READ_TIME, y=middle + above, bits=bits, color=color)
    return fig


def _launched_one_by_one(read: float) -> list[float]:
    """When each kernel starts: as soon as it is launched and the kernel before it has ended."""
    starts = []
    for kernel in range(1, KERNELS + 1):
        free = starts[-1] + read if starts else 0.0
        starts.append(max(LAUNCH_TIME * kernel, free))
    return starts


def _launched_at_once(read: float) -> list[float]:
    """When each kernel starts: all wait for one launch, and each for the kernel before it."""
    return [LAUNCH_TIME + read * kernel for kernel in range(KERNELS)]


def _draw_token(ax: Axes, starts: list[float], read: float, *, y: float, bits: int, color: str) -> None:
    """Draw the launches, the kernels below them, and where the token ends; `y` is the foot of the kernels."""
    alone = starts == _launched_at_once(read)
    for launch in range(1 if alone else KERNELS):
        _box(ax, LAUNCH_TIME * launch, y + HEIGHT + 0.12, LAUNCH_TIME, LAUNCH)
    for start in starts:
        _box(ax, start, y, read, color)
    end = starts[-1] + read
    ax.vlines(end, y - 0.1, y + 2 * HEIGHT + 0.2, color=color, linewidth=1.8)
    ax.text(end + 0.15, y + HEIGHT / 2, f"{bits} bits", ha="left", va="center", fontsize=10, color=color)
    for text, lane, ink in (("CPU", y + HEIGHT + 0.12, LAUNCH), ("GPU", y, color)):
        ax.text(-0.2, lane + HEIGHT / 2, text, ha="right", va="center", fontsize=9, color=ink)


def _box(ax: Axes, x: float, y: float, width: float, color: str) -> None:
    tint = plots.TINTS.get(color, plots.LINE)
    ax.add_patch(Rectangle((x + 0.04, y), width - 0.08, HEIGHT, facecolor=tint, edgecolor=color, linewidth=1.2))
