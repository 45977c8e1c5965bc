"""What fits into so many bytes: the largest batch, predicted or tried, and three ways to make a step smaller.

Checkpointing makes activations again instead of keeping them; accumulation takes a batch in parts. (The third, moments
of 8 bits, is `utils.training.eight_bit_moments`.) Bytes of one process; 1 GB = 1e9 bytes.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from utils import measure
from utils.cost import memory
from utils.cost.live_bytes import LiveBytes
from utils.training.batches import IGNORED, Batch
from utils.training.recipes import Recipe
from utils.training.training_loop import Trainer

Fits = Callable[[int], bool]
UNCACHED = {"past_key_values": None, "use_cache": False}  # a cache would be filled in both passes


# The largest batch


def largest_batch(fits: Fits, *, most: int = 65_536) -> int:
    """Return the largest number from 1 to `most` for which `fits` is true, 0 where even 1 does not fit.

    Doubles until one does not fit, then halves the interval: about twice log2 of the answer calls. It takes for granted
    that what fits a batch fits every smaller one. Raises: ValueError for a `most` below 1.
    """
    if most < 1:
        raise ValueError(f"most {most} leaves no batch to try; take 1 or more")
    good, bad = 0, 1
    while bad <= most and fits(bad):
        good, bad = bad, 2 * bad
    bad = min(bad, most + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def predicted_fits(model: object, recipe: Recipe | str, *, budget: float, **settings: object) -> Fits:
    """Return whether a batch fits into `budget` bytes by the ledger's ceiling, as a function of the batch.

    `settings` are those of `memory.predict`: `optimizer`, `length`, `attention`, `checkpointing`, ...
    """

    def fits(batch: int) -> bool:
        return memory.predict(model, recipe, batch=batch, **settings).total <= budget

    return fits


def step_peak(trainer: Trainer, batch: Batch) -> int:
    """Take one step of training, and return the most bytes that were allocated at once, those before it included.

    On CUDA by the allocator; elsewhere what operations return, which leaves out the temporaries inside a kernel.
    """
    batch = batch.to(trainer.device)
    with trainer.recipe.on(trainer.device):
        if trainer.device.type == "cuda":
            measure.reset_peak(trainer.device)
            trainer.step(batch)
            torch.cuda.synchronize(trainer.device)
            return measure.peak(trainer.device).allocated
        with LiveBytes(_kept(trainer)) as live:
            trainer.step(batch)
    return live.peak


def _kept(trainer: Trainer) -> Iterator[torch.Tensor]:
    """Yield what a trainer holds between two steps; no list, which would hold the gradients for longer."""
    for weight in trainer.model.parameters():
        yield weight
        if weight.grad is not None:
            yield weight.grad
    for state in trainer.optimizer.state.values():
        yield from filter(torch.is_tensor, state.values())


def step_fits(trainer: Trainer, batch_of: Callable[[int], Batch], *, budget: int | None = None) -> Fits:
    """Return whether a step on `batch_of(rows)` fits, as a function of the rows: it is really taken.

    Without a `budget` in bytes the device's own memory decides: a step that runs out of it does not fit. The steps
    train the model, and its learning rate moves on.
    Raises: ValueError without a budget where there is no CUDA: a full CPU ends the process and raises nothing.
    """
    if budget is None and trainer.device.type != "cuda":
        raise ValueError(f"out of memory ends the process on {trainer.device.type}; name a budget in bytes")

    def fits(rows: int) -> bool:
        try:
            peak = step_peak(trainer, batch_of(rows))
        except torch.OutOfMemoryError:
            peak = None
        trainer.optimizer.zero_grad()
        if peak is None:
            torch.cuda.empty_cache()
        return peak is not None and (budget is None or peak <= budget)

    return fits


# Checkpointing


class Segment(nn.Module):
    """Blocks of a transformer of which only the input is kept: the backward pass runs them once more."""

    def __init__(self, blocks: Iterable[nn.Module]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, hidden: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        """Return what the blocks make of `hidden` [B, S, D]; all else goes to each of them."""
        kwargs |= {name: value for name, value in UNCACHED.items() if name in kwargs}
        return checkpoint(self._run, hidden, *args, use_reentrant=False, **kwargs)

    def _run(self, hidden: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        for block in self.blocks:
            hidden = block(hidden, *args, **kwargs)
        return hidden


def _blocks(model: nn.Module) -> tuple[nn.Module, str, nn.ModuleList]:
    """Return the module that holds a transformer's blocks, their name in it, and them."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, nn.ModuleList) and len(child):
                return parent, name, child
    raise ValueError(f"{type(model).__name__} has no list of blocks to checkpoint")


@contextlib.contextmanager
def checkpointed(model: nn.Module, *, every: int = 1) -> Iterator[None]:
    """Keep only the input of every `every`-th block inside this context; the last segment may be shorter.

    The recompute runs under the autocast of the forward pass and draws the same dropout, so the gradients are the same.
    Raises: ValueError for `every` below 1, or a model without a list of blocks.
    Source: Chen et al. 2016, arXiv 1604.06174.
    """
    if every < 1:
        raise ValueError(f"every {every} makes segments of no block; take 1 or more")
    parent, name, blocks = _blocks(model)
    segments = [Segment(blocks[first : first + every]) for first in range(0, len(blocks), every)]
    setattr(parent, name, nn.ModuleList(segments).train(model.training))
    try:
        yield
    finally:
        setattr(parent, name, blocks)


@dataclass(frozen=True)
class Cost:
    """What a step costs if every `every`-th block is checkpointed, 0: none.

    `saved`: bytes that autograd keeps between the passes. `peak`: the most bytes at once beside weights and optimizer.
    `forwards`: how often each block runs forward. `seconds`: processor time of both passes, the median.
    """

    every: int
    saved: int
    peak: int
    forwards: float
    seconds: float


def checkpointing_costs(
    trainer: Trainer, batch: Batch, *, every: Iterable[int] = (0, 1), repeats: int = 3
) -> list[Cost]:
    """Return one `Cost` for each entry of `every`, measured on forward and backward passes; nothing is updated.

    The processor time of all threads, so that other programs do not count; it differs from run to run.
    """
    batch = batch.to(trainer.device)
    costs = []
    for segment in every:
        inside = checkpointed(trainer.model, every=segment) if segment else contextlib.nullcontext()
        with inside, trainer.recipe.on(trainer.device):
            costs.append(_cost(trainer, batch, segment=segment, repeats=repeats))
    trainer.optimizer.zero_grad()
    return costs


def _cost(trainer: Trainer, batch: Batch, *, segment: int, repeats: int) -> Cost:
    def both() -> None:
        trainer.optimizer.zero_grad()
        trainer.loss(batch).backward()

    trainer.optimizer.zero_grad()
    with measure.SavedBytes(trainer.model) as saved:
        trainer.loss(batch)
    _, _, blocks = _blocks(trainer.model)
    single = [block for part in blocks for block in (part.blocks if isinstance(part, Segment) else [part])]
    calls = []
    hooks = [block.register_forward_pre_hook(lambda *_: calls.append(1)) for block in single]
    with LiveBytes() as live:
        both()
    for hook in hooks:
        hook.remove()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        both()
        times.append(1e3 * (time.process_time() - begin))
    median = measure.Timing(tuple(times)).median / 1e3
    return Cost(segment, saved.total, live.peak, len(calls) / len(single), median)


def dtypes_of_both_passes(trainer: Trainer, batch: Batch) -> dict[str, tuple[torch.dtype, ...]]:
    """Return the dtype of the output of each part of the first block, in the forward pass and in the recompute.

    Both passes are taken, with every block checkpointed.
    """
    _, _, blocks = _blocks(trainer.model)
    seen: dict[str, list[torch.dtype]] = {}
    hooks = []
    for name, part in blocks[0].named_modules():
        if not list(part.children()) and list(part.parameters()):
            seen[name] = []
            append = seen[name].append
            hooks.append(part.register_forward_hook(lambda *call, append=append: append(call[-1].dtype)))
    whole = set_checkpoint_early_stop(False)  # or the recompute ends inside the last part, before its hook
    with checkpointed(trainer.model), whole, trainer.recipe.on(trainer.device):
        trainer.loss(batch.to(trainer.device)).backward()
    for hook in hooks:
        hook.remove()
    trainer.optimizer.zero_grad()
    return {name: tuple(kinds) for name, kinds in seen.items()}


# Accumulation


def accumulate_gradients(trainer: Trainer, batch: Batch, *, parts: int) -> torch.Tensor:
    """Add the gradients of a batch in `parts` micro-batches to `.grad`, and return the loss of the whole batch.

    Each loss counts by its labels, so that the sum is the gradient of the whole batch up to rounding: a mean over
    tokens is not a mean of means. Activations are those of one part. Call it inside `recipe.on(device)`, then step.
    Raises: ValueError when there are more parts than rows.
    """
    rows = len(batch.ids)
    if not 1 <= parts <= rows:
        raise ValueError(f"{parts} parts do not divide {rows} rows; take from 1 to {rows}")
    counted = (batch.labels != IGNORED).sum()
    total = torch.zeros((), device=trainer.device)
    for part in _split(batch, parts):
        share = (part.labels != IGNORED).sum() / counted
        loss = trainer.loss(part.to(trainer.device)) * share.to(trainer.device)
        trainer.scaler.scale(loss).backward()
        total += loss.detach()
    return total


def _split(batch: Batch, parts: int) -> Iterator[Batch]:
    fields = (field.tensor_split(parts) for field in (batch.ids, batch.mask, batch.labels))
    for ids, mask, labels in zip(*fields, strict=True):
        yield replace(batch, ids=ids, mask=mask, labels=labels)
