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
    MEAN_OF_EQUALS,
    RING_BY_HAND,
    SHARDED_NORM,
)

check_bytes_on_the_wire = paper_table(
    BYTES_ON_THE_WIRE,
    says="With bfloat16 weights and float32 sums, FSDP2 sends no more bytes than plain DDP.",
)
check_ring_by_hand = paper_table(
    RING_BY_HAND,
    says="The same three gradients, and the place in the array decides the sum.",
)
check_mean_of_equals = paper_table(
    MEAN_OF_EQUALS,
    says="On a ring, a small gradient meets a large sum. In a tree, equals meet.",
)


_WEIGHTED_NARROW = "Added in float32, but each gradient was multiplied by its weight in bfloat16, and rounded there."

# --- A float32 reduce -------------------------------------------------------------------------------------------------


@exercise(asks=FLOAT32_REDUCE, takes="float32_reduce")
def check_float32_reduce(answer) -> Outcome:
    """A function (list of bfloat16 means, list of numbers of examples) -> mean over all examples, bfloat16."""
    for gradients, examples in _reduce_cases():
        returned = answer([gradient.clone() for gradient in gradients], list(examples))
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the mean.")
        if not isinstance(returned, torch.Tensor) or returned.shape != gradients[0].shape:
            return not_yet(f"Return a tensor of the shape of one gradient, {tuple(gradients[0].shape)}.")
        if returned.dtype != torch.bfloat16:
            return not_yet(f"The mean is to travel on in bfloat16, and yours is {returned.dtype}.")
        if not _is_mean(returned, gradients, examples).all():
            return not_yet(_reduce_fault(returned, gradients, examples))
    return correct("Weighted and added in float32, and rounded once: the flat line of the chapter's figure.")


def _reduce_cases() -> list[tuple[list[torch.Tensor], list[int]]]:
    """Return gradients and examples whose float32 sums are exact, multiples of 1/64; the last case has a NaN."""
    draw = torch.Generator().manual_seed(0)
    cases = []
    for ranks, elements in ((600, 64), (3, 64), (7, 5), (1, 4), (4, 6)):
        values = torch.randint(-64, 160, (ranks, elements), generator=draw) / 64
        examples = torch.randint(1, 32, (ranks,), generator=draw).tolist()
        cases.append((list(values.bfloat16()), examples))
    cases[-1][0][2][3] = torch.nan
    return cases


def _weigh(
    gradients: list[torch.Tensor], examples: list[int], dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    """Return the sum over the examples of each rank, rounded to `dtype`."""
    return [gradient.to(dtype) * count for gradient, count in zip(gradients, examples, strict=True)]


def _mean(gradients: list[torch.Tensor], examples: list[int]) -> torch.Tensor:
    return (sum(_weigh(gradients, examples)) / sum(examples)).bfloat16()


def _is_mean(returned: torch.Tensor, gradients: list[torch.Tensor], examples: list[int]) -> torch.Tensor:
    """Whether each element is the mean, rounded once; an error of float32 may decide a tie either way."""
    terms = torch.stack(_weigh(gradients, examples, torch.float64)) / sum(examples)
    wide, slack = terms.sum(0), 1e-6 * terms.abs().sum(0)
    near = [(wide + way * slack).bfloat16() for way in (-1, 0, 1)]
    same = torch.stack([returned == value for value in near]).any(0)
    return same | (returned.isnan() & wide.isnan())


def _running(gradients: list[torch.Tensor], dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    total = gradients[0].to(dtype)
    for gradient in gradients[1:]:
        total = total + gradient.to(dtype)
    return total


def _reduce_fault(returned: torch.Tensor, gradients: list[torch.Tensor], examples: list[int]) -> str:
    """Say what is wrong with a mean."""
    ranks, count = len(gradients), sum(examples)
    exact, rounded = (_weigh(gradients, examples, dtype) for dtype in (torch.float32, torch.bfloat16))
    wide, plain = sum(exact), torch.stack(gradients).float().sum(0)
    if wide.isnan().any() and returned.isfinite().all():
        return "One rank has a NaN, and your mean hides it. A NaN must stay visible, or nobody skips the step."
    cut = ((wide / count).view(torch.int32) & -(2**16)).view(torch.float32)
    shares = [number / count for number in examples]
    foreseen = [
        (wide.bfloat16(), f"That is the sum over the examples. Divide it by their number, here {count}."),
        (
            (plain / ranks).bfloat16(),
            "That is the plain mean over the ranks, as in the hook. A rank with few examples must count less.",
        ),
        (plain.bfloat16(), "That is the plain sum over the ranks. Weight each gradient by its number of examples."),
        (
            (wide / ranks).bfloat16(),
            f"Divided by the number of ranks, {ranks}. Divide by the number of all examples, {count}.",
        ),
        (
            (_running(rounded) / count),
            "The total was bfloat16 after each addition, as on a ring. Convert to float32 before you multiply and add.",
        ),
        (
            (_running(exact) / count),
            "The total was bfloat16 after each addition, as on a ring. Add in float32.",
        ),
        (
            (_running(exact, torch.float16).float() / count).bfloat16(),
            "The total was float16 after each addition. Its 11 bits are too few for so many ranks.",
        ),
        (
            (sum(product.float() for product in rounded) / count).bfloat16(),
            _WEIGHTED_NARROW,
        ),
        (
            sum((gradient * share).float() for gradient, share in zip(gradients, shares, strict=True)).bfloat16(),
            _WEIGHTED_NARROW,
        ),
        (
            _running([gradient * share for gradient, share in zip(gradients, shares, strict=True)]),
            "Each gradient was multiplied by its share in bfloat16, and then added in bfloat16 as well.",
        ),
        (wide.bfloat16() / count, "The sum was rounded to bfloat16, and the quotient again. Divide before you round."),
        (((wide + exact[0]) / count).bfloat16(), "The gradient of rank 0 was added twice."),
        (((wide - exact[0]) / count).bfloat16(), "The gradient of rank 0 is missing."),
        (cut.bfloat16(), "The last 16 bits were cut off. Round to nearest: `.bfloat16()` does."),
        (gradients[0], "That is the gradient of rank 0 alone."),
    ]
    for value, hint in foreseen:
        if torch.equal(returned, value):
            return hint
    place = int((~_is_mean(returned, gradients, examples)).nonzero()[0])
    return (
        f"{ranks} ranks: at place {place} your mean is {float(returned[place])!r}, "
        f"it should be {float(_mean(gradients, examples)[place])!r}."
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
    broken = as_number(answer([torch.ones(3).bfloat16(), torch.tensor([1.0, math.nan]).bfloat16()]))
    if math.isfinite(broken):
        return not_yet(f"One shard holds a NaN, and the norm is {broken:.6g}. A NaN has to stay visible.")
    return correct("The squares are added over all ranks, and the root is taken once, so all ranks clip alike.")


def _norm_cases() -> list[list[torch.Tensor]]:
    """Return shards of each rank: several, one without elements, one rank, zeros."""
    draw = torch.Generator().manual_seed(1)
    sizes = (((40, 100), (50, 100), (7,)), ((3,), (0,), (5,)), ((64,),))
    cases = [[torch.randn(size, generator=draw).bfloat16() for size in rank_sizes] for rank_sizes in sizes]
    return [*cases, [torch.zeros(3).bfloat16()] * 2]


def _norm(shards: list[torch.Tensor], of: Callable = torch.Tensor.double) -> float:
    return math.sqrt(sum(float(of(shard).square().sum()) for shard in shards))


def _norm_fault(norm: float, shards: list[torch.Tensor], right: float) -> str:
    """Say what is wrong with a norm."""
    own, count = [_norm([shard]) for shard in shards], sum(shard.numel() for shard in shards)
    foreseen = [
        (own[0], "That is the norm of rank 0's shard. Another rank would find another norm, and clip differently."),
        (sum(own), "These are the norms of the shards, added. Add their squares, then take the root."),
        (max(own), "That is the largest norm of a shard. Add the squares of all of them."),
        (sum(own) / len(own), "That is the mean of the norms. Add the squares of all shards, then take the root."),
        (right**2, "That is the square of the norm: the root is missing."),
        (right / math.sqrt(len(own)), "The squares were averaged over the ranks. Add them."),
        (right / math.sqrt(count), "The squares were averaged over the elements. Add them."),
        (
            math.sqrt(sum(norm**2 / shard.numel() for norm, shard in zip(own, shards, strict=True) if shard.numel())),
            "The squares were averaged inside each shard. Add them.",
        ),
        (max(float(shard.abs().max()) for shard in shards if shard.numel()), "That is the largest entry."),
    ]
    for value, hint in foreseen:
        if math.isclose(norm, value, rel_tol=1e-4):
            return hint
    if math.isnan(norm):
        return "Your norm is NaN. Can it handle a rank whose shard has no elements, and gradients of 0?"
    if math.isclose(norm, right, rel_tol=0.02):
        return f"{norm!r} is near {right:.6g}, but not in float32: was a square, a norm or a sum rounded to bfloat16?"
    return f"{len(shards)} shards: your norm is {norm!r}, it should be {right:.6g}."
