"""The ledger of a training step: which tensors there are, in which dtype, and how many bytes they take.

    predict("LLaMA 7B", "bf16-mixed", batch=8, length=2_048).total
    measured(trainer, batch) == predict(trainer.model, trainer.recipe, batch=8, length=512)

Predicted from a model's sizes and a recipe, and measured from real tensors, in bytes (1 GB = 1e9 bytes). Not in it:
buffers, temporaries, the workspace of kernels, the allocator's blocks, the CUDA context.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from utils.recipes import Recipe

if TYPE_CHECKING:
    from utils.batches import Batch
    from utils.fine_tuning import Trainer

OPTIMIZERS = ("adamw", "adamw-8bit", "sgd-momentum", "sgd")
STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Ledger:
    """Bytes of one process, by what the tensors are for.

    `weights`: what the forward pass reads, tied weights once. `master`: what the optimizer keeps of the weights beside
    them, a float32 copy or Kahan's compensation. `optimizer`: moments and step counters. `activations`: what autograd
    saves for the backward pass. `casts`: the part of `activations` that autocast's 16-bit copies of weights take.
    `parameters`: their number, of the whole model.
    """

    weights: int
    master: int
    gradients: int
    optimizer: int
    activations: int
    casts: int
    parameters: int

    @property
    def at_rest(self) -> int:
        """Bytes between two steps, when the gradients are freed: weights, master and optimizer."""
        raise NotImplementedError

    @property
    def total(self) -> int:
        """Bytes of everything at once: the ceiling.

        No moment holds more of these tensors. The end of the forward pass holds less, unless gradients are being
        accumulated: `zero_grad` has freed the gradients. During the backward pass activations go as gradients come.
        """
        raise NotImplementedError

    @property
    def per_parameter(self) -> float:
        """Bytes of weights, master, gradients and optimizer for each parameter, and the casts."""
        raise NotImplementedError


def predict(
    model: "nn.Module | Architecture | str",  # noqa: F821
    recipe: Recipe | str = "32-true",
    *,
    optimizer: str = "adamw",
    batch: int = 1,
    length: int = 512,
    attention: str = "eager",
    checkpointing: bool = False,
    accumulate: int = 1,
    shards: int = 1,
    stage: int = 0,
) -> Ledger:
    """Return the ledger of training `model` on batches of `batch` texts of `length` tokens, of one process.

    `model`: a DistilBERT, GPT-2 or LLaMA of transformers, an `architectures.Architecture`, or a name in
    `architectures.NAMED`. Any other model has a ledger for `batch=0`, that is without activations.
    `optimizer`: one of `OPTIMIZERS`. `attention`: "eager", or "sdpa" with one fused kernel.
    `accumulate`: the micro-batches that `batch` is split into. `shards`, `stage`: ZeRO over that many processes, each
    with a `batch` of its own (Rajbhandari et al. 2020, arXiv 1910.02054).
    Raises: ValueError for a name, an optimizer, an attention or a stage that is not known.
    """
    raise NotImplementedError


def measured(trainer: "Trainer", batch: "Batch") -> Ledger:
    """Return the bytes of a trainer's tensors as they are, and of what a forward pass of `batch` saves.

    Ask after a step: before the first one there are no gradients and no moments.
    """
    raise NotImplementedError


def of_tensors(model: nn.Module, optimizer: torch.optim.Optimizer, forward: Callable[[], torch.Tensor]) -> Ledger:
    """Return the same for a loop of your own: `forward` computes the loss of one batch."""
    raise NotImplementedError


@dataclass(frozen=True)
class Count:
    """A published number of bytes per parameter as rows (what, bytes), with what it leaves out and where it stands."""

    name: str
    rows: tuple[tuple[str, int], ...]
    leaves_out: str
    source: str

    @property
    def total(self) -> int:
        """Bytes per parameter."""
        raise NotImplementedError


COUNTS: tuple[Count, ...] = ()


def reconcile() -> list[dict[str, int | str]]:
    """Return one row for each tensor of `COUNTS`: its name, and its bytes per parameter in each of the counts."""
    raise NotImplementedError


def widget_data() -> dict:
    """Return what a page needs to compute `predict` by itself, as plain JSON values.

    Keys: "architectures" (name: sizes), "recipes", "optimizers" (bytes per parameter), "saved" (rows of monomials for
    each family), and "vectors": cases (the arguments of `predict`) with their ledgers.
    """
    raise NotImplementedError
