"""The picture of `hardware/memory`: what a training step of LLaMA 7B holds, and what ways to save memory take away."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from utils import plots
from utils.cost.cards import GIGABYTE
from utils.cost.memory import predict
from utils.pictures.drawing import WIDTH_INCHES

TEXT = {"batch": 1, "length": 2_048, "attention": "sdpa"}
AGAIN = {"checkpointing": True}
WAYS = {
    "autocast to bfloat16": ("bf16-mixed", {}),
    "and checkpointing": ("bf16-mixed", AGAIN),
    "and 8-bit Adam": ("bf16-mixed", {**AGAIN, "optimizer": "adamw-8bit"}),
    "bfloat16 weights with Kahan sums, 8-bit Adam": ("bf16-true-kahan", {**AGAIN, "optimizer": "adamw-8bit"}),
    "frozen bfloat16 weights and LoRA": ("bf16-mixed", {**AGAIN, "method": "lora"}),
    "frozen 4-bit weights and QLoRA": ("bf16-mixed", {**AGAIN, "method": "qlora"}),
}
CARDS = {24: "RTX 4090", 80: "H100"}  # GB
ITEMS = {  # its colour, hatch, and the word in the first bar
    "weights": (plots.EXPONENT, "", "weights"),
    "gradients": (plots.SIGN, "", "gradients"),
    "optimizer": (plots.FRACTION, "", "Adam's m and v"),
    "casts": (plots.EXPONENT, "////", ""),
    "kept": (plots.INK_SOFT, "", "kept"),
}


def training_ledger() -> Figure:
    """Draw a bar of gigabytes for each way, item by item, and a line where each card ends if the bar leaves it free."""
    fig, ax = plt.subplots(figsize=(WIDTH_INCHES, 4.3))
    for row, (way, (recipe, how)) in enumerate(WAYS.items()):
        left = 0.0
        for item, size in _items(recipe, how).items():
            color, hatch, word = ITEMS[item]
            face = plots.TINTS[color] if hatch else color
            ax.barh(row, size, left=left, height=0.5, color=face, edgecolor=color if hatch else face, hatch=hatch)
            if row == 0:
                ax.text(left + size / 2, row, word, ha="center", va="center", fontsize=9, color="white")
            left += size
        title = ax.text(0, row - 0.3, f"{way}:", va="bottom", fontsize=10, color=plots.INK)
        after = {"xycoords": title, "textcoords": "offset points", "va": "bottom"}
        ax.annotate(f"{left:.1f}", (1, 0), (4, 0), **after, fontsize=10, weight="bold", color=plots.INK)
        for size in CARDS:
            if left < size:
                ax.plot([size, size], [row - 0.25, row + 0.33], color=plots.INK, linewidth=1.2, linestyle=":")
    ax.annotate(
        "16-bit copies",
        (114, -0.27),
        (128, -0.72),
        ha="center",
        fontsize=9,
        color=plots.EXPONENT,
        arrowprops={"arrowstyle": "-", "color": plots.EXPONENT, "linewidth": 0.8},
    )
    for size, card in CARDS.items():
        ax.text(size, len(WAYS) - 0.45, f"{card}:\n{size} GB", ha="center", va="top", fontsize=9, color=plots.INK)
    ax.set(xlim=(0, 139), ylim=(len(WAYS) + 0.2, -1), yticks=[], xticks=[])
    ax.grid(visible=False)
    for side in ax.spines.values():
        side.set_visible(False)
    return fig


def _items(recipe: str, how: dict) -> dict[str, float]:
    """Return gigabytes by item; `kept` is what autograd keeps, without copies, and the gradients of the logits."""
    ledger = predict("LLaMA 7B", recipe, **TEXT, **how)
    sizes = {
        "weights": ledger.weights + ledger.master,
        "gradients": ledger.gradients,
        "optimizer": ledger.optimizer,
        "casts": ledger.casts,
        "kept": ledger.activations - ledger.casts + ledger.logits,
    }
    return {item: size / GIGABYTE for item, size in sizes.items()}
