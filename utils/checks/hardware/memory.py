"""Checks of `hardware/memory`."""

from collections.abc import Callable

import torch

from utils.checks.hardware.memory_questions import EVERY_K, QUANTIZE_BLOCKS, SEVEN_BILLION, SIXTEEN_EIGHTEEN_TWENTY
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    Unreadable,
    correct,
    exercise,
    not_yet,
    paper,
    paper_table,
)
from utils.training.eight_bit_moments import BLOCK, code_table, quantize

check_every_k = paper(EVERY_K)
check_seven_billion = paper_table(
    SEVEN_BILLION,
    says="Three of the four fit on a card with 80 GB. The rest of it is for the activations.",
)
check_sixteen_eighteen_twenty = paper_table(
    SIXTEEN_EIGHTEEN_TWENTY,
    says="None of these counts is wrong. They count different tensors, so always ask which.",
)


# --- A quantizer ------------------------------------------------------------------------------------------------------


@exercise(asks=QUANTIZE_BLOCKS, takes="quantize_blocks")
def check_quantize_blocks(answer) -> Outcome:
    """A function (x, table) -> (codes, absmax) for a float32 tensor of one axis, in blocks of 256 values."""
    table = code_table(signed=True)
    for x, hint in _cases():
        copy = x.clone()
        returned = answer(copy, table.clone())
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the codes and the maxima.")
        if not torch.equal(copy, x):
            return not_yet("The function changes x. Make a new tensor.")
        codes, absmax = _pair(returned, x)
        if fault := _fault(codes, absmax, x, table):
            return not_yet(f"{fault} {hint}".strip())
    return correct(
        "Every code is the nearest one, also in the short block at the end. In a block of zeros any code will do, "
        "because its maximum is 0."
    )


def _cases() -> list[tuple[torch.Tensor, str]]:
    """Return tensors, and what to think of where one of them alone goes wrong."""
    draw = torch.Generator().manual_seed(0)
    plain = torch.randn(4 * BLOCK, generator=draw)
    outlier, short, zeros = plain.clone(), plain[: 2 * BLOCK + 10], plain.clone()
    squares = 1e-12 * plain[:BLOCK].square()
    outlier[300] = -1e4
    zeros[:BLOCK] = 0
    return [
        (plain, ""),
        (outlier, "One block holds a large negative value here."),
        (short, "The last block is shorter than the others here."),
        (zeros, "One block holds only zeros here."),  # 0 / 0 is any code, times 0
        (squares, "The values are as small as second moments here: an epsilon beside the maximum would count."),
        (plain[:3], "There is one block of three values here."),
    ]


def _pair(returned: object, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Read what was returned; raises Unreadable with a sentence."""
    if not isinstance(returned, tuple | list) or len(returned) != 2 or not all(map(torch.is_tensor, returned)):
        raise Unreadable("Return two tensors: the codes, and the largest magnitude of each block.")
    codes, absmax = returned
    blocks = -(-len(x) // BLOCK)
    if codes.dtype != torch.uint8:
        raise Unreadable(f"The codes are {codes.dtype}: a code is one byte, torch.uint8.")
    if codes.shape != x.shape:
        raise Unreadable(f"There are {len(x)} values, so there should be as many codes; yours are {list(codes.shape)}.")
    if absmax.shape != (blocks,):
        raise Unreadable(
            f"{len(x)} values are {blocks} blocks of {BLOCK}, each with a maximum of its own; "
            f"yours have the shape {list(absmax.shape)}."
        )
    if absmax.dtype != torch.float32:
        raise Unreadable(f"The maxima are {absmax.dtype}: keep them in float32.")
    return codes, absmax


def _fault(codes: torch.Tensor, absmax: torch.Tensor, x: torch.Tensor, table: torch.Tensor) -> str | None:
    """Say what is wrong with the codes and maxima of x; None where nothing is."""
    right = quantize(x, signed=True)
    if not torch.equal(absmax, right.absmax):
        largest = quantize(x.abs(), signed=True).absmax
        signed = torch.stack([part.amax() for part in x.split(BLOCK)])
        if torch.equal(absmax, signed) and not torch.equal(signed, largest):
            return "A maximum is that of the values; take that of their magnitudes."
        if torch.equal(absmax, x.abs().amax().expand_as(absmax)):
            return "All blocks have the maximum of the whole tensor: take each block's own."
        at = int((absmax != right.absmax).nonzero()[0])
        fault = (
            f"The maximum of block {at} is {float(absmax[at]):.6g}; "
            f"the largest magnitude of its values is {float(right.absmax[at]):.6g}."
        )
        others = torch.isin(absmax, x.abs()).all()  # magnitudes of x, but of the wrong blocks
        return f"{fault} Blocks are neighbours, 256 at a time." if others else fault
    scale = absmax.repeat_interleave(BLOCK)[: len(x)]
    error = (table[codes.int()] * scale - x).abs()
    best = (table[right.codes.int()] * scale - x).abs()
    worse = error > best + 1e-6 * scale
    if not worse.any():
        return None
    undivided = _codes(x, table, torch.bucketize)
    below = _codes(x / scale, table, lambda y, middles: torch.searchsorted(table, y, right=True) - 1)
    if torch.equal(codes, undivided):
        return "The values are compared with the table before they are divided by the maximum of their block."
    if _same(codes, below, worse):
        return "A code is the one below the value: take the nearer of the two neighbours."
    at = int(worse.nonzero()[0])
    return (
        f"Value {at}, {float(x[at]):.6g} with the maximum {float(scale[at]):.6g}, has the code {int(codes[at])}; "
        f"the nearest is {int(right.codes[at])}."
    )


def _codes(quotients: torch.Tensor, table: torch.Tensor, place: Callable) -> torch.Tensor:
    return place(quotients, (table[:-1] + table[1:]) / 2).clamp(0, len(table) - 1).to(torch.uint8)


def _same(codes: torch.Tensor, other: torch.Tensor, where: torch.Tensor) -> bool:
    return bool(where.any()) and torch.equal(codes[where], other[where])
