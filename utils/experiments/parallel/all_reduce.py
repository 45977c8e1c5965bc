"""Emulate an all-reduce for any number of ranks: each ends with the same sum of the arrays of all.

    gradients = torch.randn(8, 4096)                                 # [N, n]: one row per rank
    all_reduce(gradients, order="ring", wire=BFLOAT16)               # float32 [n]: what every rank holds afterwards
    bytes_sent(4096, ranks=8, itemsize=2)                            # 14336.0 bytes per rank

Additions are made in float32. Every value that travels is rounded to the format of the `wire`, sums included. For wires
of at most p = 11 significant bits that is one rounding of the exact sum, because float32's 24 bits are at least 2p + 2
(Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
"""

from collections.abc import Callable
from functools import partial

import torch

from utils.fake_quantize import fake_quantize
from utils.formats import FLOAT32, FloatFormat

PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}  # how often a full array goes round
MEANS = ("before", "after", "split")


def all_reduce(
    gradients: torch.Tensor, *, order: str = "ring", wire: FloatFormat = FLOAT32, mean: str | None = None
) -> torch.Tensor:
    """Return what every rank holds after an all-reduce of the rows of `gradients` [N, n]: float32 [n].

    `order`: "ring": each of N chunks begins at another rank and is rounded at every hop; "tree": neighbours first, then
    neighbours of these sums, log2(N) levels; "gather": one rank gets all N values of a chunk, adds them in float32 in
    the order of the ranks, and rounds once; "gloo": the ring of torch's gloo, which runs the other way (measured with
    torch 2.13 for arrays up to some MB: chunk c begins at rank c - 1 and goes on to lower ranks).
    `mean`: None for the sum; "before": every rank divides by N before it sends; "after": the sum is divided; "split":
    by about sqrt(N) before and by the rest after, what FSDP2 does in float16 (`find_divisors`). The result of each
    division is a value of `wire` again. What overflows becomes infinite or NaN, as on a real wire.
    Raises: ValueError for an unknown order or mean, a shape without ranks, or a wire wider than float32.
    """
    if order not in _ORDERS:
        raise ValueError(f"unknown order {order!r}; the known ones are {', '.join(_ORDERS)}")
    if gradients.ndim != 2:
        raise ValueError(f"gradients of shape {tuple(gradients.shape)}: give [N, n], one row a rank")
    if wire.precision > FLOAT32.precision:
        raise ValueError(f"{wire.name} on the wire: the additions are made in float32, so no wire may be wider")
    _check_ranks(len(gradients))
    before, after = find_divisors(len(gradients), mean) if mean else (1, 1)

    def round_to_wire(values: torch.Tensor) -> torch.Tensor:
        return values if wire is FLOAT32 else fake_quantize(values, wire, saturate=False)

    sent = round_to_wire(gradients.float())
    if before != 1:
        sent = round_to_wire(sent / before)
    total = _ORDERS[order](sent, round_to_wire)
    return total if after == 1 else round_to_wire(total / after)


def find_divisors(ranks: int, mean: str) -> tuple[float, float]:
    """Return the divisors before and after the sum of N values that make it their mean.

    Source of "split": `_get_gradient_divide_factors` of torch.distributed.fsdp, for a float16 reduction.
    Raises: ValueError for an unknown mean.
    """
    if mean not in MEANS:
        raise ValueError(f"unknown mean {mean!r}; the known ones are {', '.join(MEANS)}")
    before = {"before": ranks, "after": 1}.get(mean, 1)
    while mean == "split" and ranks % before == 0 and ranks / before > before:
        before *= 2
    return before, ranks / before  # their product is N


def count_roundings(ranks: int, order: str) -> int:
    """Return the most roundings of a sum that lie between a gradient of one rank and the result."""
    hops = ranks - 1
    return {"ring": hops, "gloo": hops, "tree": hops.bit_length(), "gather": 1}[order]


def count_rounds(ranks: int, order: str) -> int:
    """Return how many messages wait for each other: they take the time of an all-reduce of a small array."""
    hops = ranks - 1
    return 2 * {"ring": hops, "gloo": hops, "tree": hops.bit_length(), "gather": min(hops, 1)}[order]


def count_bytes_sent(elements: int, *, ranks: int, itemsize: int, collective: str = "all_reduce") -> float:
    """Return the bytes that a rank sends, on average over the ranks, for an array of `elements` on each of them.

    The array of an all-gather is the gathered one, that of a reduce-scatter the one before. Each sends (N - 1)/N of it,
    and an all-reduce is both, in whatever order; no method in which only ranks add sends less (Patarasuk and Yuan,
    2009).
    """
    _check_ranks(ranks)
    return PASSES[collective] * (ranks - 1) / ranks * elements * itemsize  # passes (N - 1) / N n bytes


def _add_in_ring(sent: torch.Tensor, round_to_wire: Callable, *, first: int = 0, step: int = 1) -> torch.Tensor:
    """Add up chunk c along the ring: from rank c + `first`, in steps of 1 or -1."""
    ranks, elements = sent.shape
    missing = -elements % ranks  # so that N chunks are equal
    chunks = torch.nn.functional.pad(sent, (0, missing)).view(ranks, ranks, -1)  # [rank, chunk, elements of a chunk]
    chunk = torch.arange(ranks, device=sent.device)
    total = chunks[(chunk + first) % ranks, chunk]  # [chunk, elements of a chunk]: each from its first rank
    for hop in range(1, ranks):
        total = round_to_wire(total + chunks[(chunk + first + hop * step) % ranks, chunk])
    return total.flatten()[:elements]


def _add_in_tree(sent: torch.Tensor, round_to_wire: Callable) -> torch.Tensor:
    while len(sent) > 1:
        paired = round_to_wire(sent[0:-1:2] + sent[1::2])
        sent = torch.cat([paired, sent[-1:]]) if len(sent) % 2 else paired  # an odd one waits
    return sent[0]


def _add_gathered(sent: torch.Tensor, round_to_wire: Callable) -> torch.Tensor:
    total = sent[0]
    for row in sent[1:]:
        total = total + row
    return round_to_wire(total)


_ORDERS = {
    "ring": _add_in_ring,
    "tree": _add_in_tree,
    "gather": _add_gathered,
    "gloo": partial(_add_in_ring, first=-1, step=-1),
}
ORDERS = tuple(_ORDERS)


def _check_ranks(ranks: int) -> None:
    if ranks < 1:
        raise ValueError(f"{ranks} ranks: there must be one at least")
