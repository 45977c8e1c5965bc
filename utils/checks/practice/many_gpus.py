"""Checks of `practice/many_gpus`."""

import math
from collections.abc import Callable

import torch

from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    as_number,
    correct,
    exercise,
    not_yet,
    paper_table,
)
from utils.checks.practice.many_gpus_questions import (
    BYTES_ON_THE_WIRE,
    FLOAT32_REDUCE,
    MEAN_OF_ONES,
    RING_BY_HAND,
    SHARDED_NORM,
)

check_bytes_on_the_wire = paper_table(
    BYTES_ON_THE_WIRE,
    says="A safe sum, 16-bit weights and shards on every rank cost no more bytes than plain DDP.",
)
check_ring_by_hand = paper_table(
    RING_BY_HAND,
    says="The same three numbers, and the place in the array decides whether two ones meet in time.",
)
check_mean_of_ones = paper_table(
    MEAN_OF_ONES,
    says="A ring lets a small number meet a large sum, a tree lets equals meet.",
)


# --- A float32 reduce -------------------------------------------------------------------------------------------------


@exercise(asks=FLOAT32_REDUCE, takes="float32_reduce")
def check_float32_reduce(answer) -> Outcome:
    """A function (list of bfloat16 tensors) -> their mean, bfloat16, rounded once."""
    for gradients in _reduce_cases():
        kept = [gradient.clone() for gradient in gradients]
        returned = answer([gradient.clone() for gradient in gradients])
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the mean.")
        if not isinstance(returned, torch.Tensor) or returned.shape != kept[0].shape:
            return not_yet(f"Return a tensor of the shape of one gradient, {tuple(kept[0].shape)}.")
        if returned.dtype != torch.bfloat16:
            return not_yet(f"The mean is to travel on in bfloat16, and yours is {returned.dtype}.")
        if not torch.equal(returned, _mean(kept)):
            return not_yet(_reduce_fault(returned, kept))
    return correct("One rounding, of a sum that has been added in float32: the flat line of the figure.")


def _reduce_cases() -> list[list[torch.Tensor]]:
    """Return gradients whose float32 sums are exact, in whatever order: small multiples of powers of two."""
    draw = torch.Generator().manual_seed(0)
    cases = []
    for ranks, elements in ((600, 64), (3, 64), (7, 5), (1, 4)):
        values = torch.randint(-64, 160, (ranks, elements), generator=draw) / 64
        cases.append(list(values.bfloat16()))
    return cases


def _mean(gradients: list[torch.Tensor]) -> torch.Tensor:
    return (torch.stack(gradients).float().sum(0) / len(gradients)).bfloat16()


def _running(gradients: list[torch.Tensor]) -> torch.Tensor:
    total = gradients[0]
    for gradient in gradients[1:]:
        total = total + gradient
    return total


def _reduce_fault(returned: torch.Tensor, gradients: list[torch.Tensor]) -> str:
    """Say what is wrong with a mean."""
    ranks = len(gradients)
    wide = torch.stack(gradients).float().sum(0)
    foreseen = [
        (wide.bfloat16(), f"That is the sum. The mean is a {ranks}th of it, if {ranks} ranks take part."),
        (
            _running(gradients) / ranks,
            "The total was bfloat16 after each addition: that is the ring. Add `.float()`s.",
        ),
        (
            _running([gradient / ranks for gradient in gradients]),
            "Divided in bfloat16 first, and added in bfloat16 as well.",
        ),
        (
            sum((gradient / ranks).float() for gradient in gradients).bfloat16(),
            "Added in float32, but each gradient was divided in bfloat16 before, and rounded there.",
        ),
        (wide.bfloat16() / ranks, "The sum was rounded to bfloat16, and the division rounded again. Divide first."),
        ((wide / max(ranks - 1, 1)).bfloat16(), f"Divided by {ranks - 1}: the owner of the chunk is a rank as well."),
        (gradients[0], "That is the gradient of rank 0 alone."),
    ]
    for value, hint in foreseen:
        if torch.equal(returned, value):
            return hint
    place = int((returned != _mean(gradients)).nonzero()[0])
    return (
        f"{ranks} ranks: at place {place} your mean is {float(returned[place])!r}, "
        f"it should be {float(_mean(gradients)[place])!r}."
    )


# --- The norm of shards -----------------------------------------------------------------------------------------------


@exercise(asks=SHARDED_NORM, takes="sharded_norm")
def check_sharded_norm(answer) -> Outcome:
    """A function (list of bfloat16 tensors) -> the norm of all their numbers, a float."""
    for shards in _norm_cases():
        returned = answer([shard.clone() for shard in shards])
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the norm.")
        norm, right = as_number(returned), _norm(shards)
        if not math.isclose(norm, right, rel_tol=1e-4):
            return not_yet(_norm_fault(norm, shards, right))
    return correct("Squares are added over all ranks, and the root is taken once: now all ranks clip alike.")


def _norm_cases() -> list[list[torch.Tensor]]:
    draw = torch.Generator().manual_seed(1)
    sizes = (((40, 100), (50, 100), (7,)), ((3,), (5,)), ((64,),))
    return [[torch.randn(size, generator=draw).bfloat16() for size in rank_sizes] for rank_sizes in sizes]


def _norm(shards: list[torch.Tensor], of: Callable = torch.Tensor.double) -> float:
    return math.sqrt(sum(float(of(shard).square().sum()) for shard in shards))


def _norm_fault(norm: float, shards: list[torch.Tensor], right: float) -> str:
    """Say what is wrong with a norm."""
    own = [_norm([shard]) for shard in shards]
    foreseen = [
        (own[0], "That is the norm of rank 0's shard. Another rank would find another one, and clip otherwise."),
        (sum(own), "These are the norms of the shards, added. Add their squares, then take the root."),
        (max(own), "That is the largest norm of a shard. Add the squares of all."),
        (sum(own) / len(own), "That is the mean of the norms. Add the squares of all shards, then take the root."),
        (right**2, "That is the square of the norm: the root is missing."),
        (math.sqrt(sum(norm**2 for norm in own) / len(own)), "The squares were averaged over the ranks. Add them."),
        (max(float(shard.abs().max()) for shard in shards), "That is the largest entry, another norm."),
    ]
    for value, hint in foreseen:
        if math.isclose(norm, value, rel_tol=1e-4):
            return hint
    if math.isclose(norm, right, rel_tol=0.02):
        return f"{norm!r} is near {right:.6g}, but not in float32: was a square or a sum rounded to bfloat16?"
    return f"{len(shards)} shards: your norm is {norm!r}, it should be {right:.6g}."
