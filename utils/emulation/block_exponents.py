"""The largest exponent among the products of a block: where an adder of aligned addends cuts.

The exponent of a product is the sum of its factors' exponents. The largest of such sums over a block is a product of
matrices with "largest" in the place of + and + in the place of times. An ordinary product finds it as well: where each
factor is replaced by 2**(stride * exponent), the sum over at most 2**(stride - 1) products lies from
2**(stride * largest) up to, and not at, 2**(stride * (largest + 1)). So its exponent has the largest one, in strides.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from utils.emulation.carriers import codes

AHEAD = 8  # blocks that are looked at in one call
STRIDES = (4, 8)  # powers of two: a shift divides by them
FIELD = 0xFF << 23  # the exponent in the code of a float32


def powers(x: torch.Tensor, lowest: int) -> torch.Tensor:
    """Return 2**exponent of each number, float32 or float64; 0 of 0. No exponent is below `lowest`."""
    code, mask = codes(x)
    return torch.where(x == 0, 0.0, (code & mask).view(x.dtype).clamp_(min=2.0**lowest))


class LargestPowers:
    """The powers of two of the largest exponents, for block after block of products.

    `left` [K, M, 1] and `right` [K, 1, N]: `powers` of the factors. `smallest`: a power of two; a block without a
    product, or whose largest exponent lies below it, may give it or less than any product has. `beside`: the least
    size of a number to which products are added, which must not be cut for the sake of a block without any.
    """

    def __init__(
        self, left: torch.Tensor, right: torch.Tensor, block: int, *, smallest: float, beside: float = math.inf
    ):
        self.left, self.right, self.block, self.smallest = left, right, block, smallest
        self.stride = None
        if left.dtype == torch.float32:
            self._spread(beside)

    def of_rows(self, part: slice) -> Callable[[int, int], torch.Tensor]:
        """Return the function (start, stop) -> [rows, N] for the products start ... stop - 1, of block after block."""
        return self._one_by_one(part) if self.stride is None else self._by_products(part)

    def _one_by_one(self, part: slice) -> Callable[[int, int], torch.Tensor]:
        left, right = self.left[:, part], self.right
        scratch = left.new_empty(self.block, left.shape[1], right.shape[2])
        maxima = torch.empty_like(scratch[0])

        def largest(start: int, stop: int) -> torch.Tensor:
            products = torch.mul(left[start:stop], right[start:stop], out=scratch[: stop - start])
            return torch.amax(products, dim=0, out=maxima).clamp_(min=self.smallest)

        return largest

    def _by_products(self, part: slice) -> Callable[[int, int], torch.Tensor]:
        left, right = self.left[:, :, part].transpose(1, 2), self.right
        sums = left.new_empty(AHEAD * self.pieces, left.shape[1], right.shape[2])
        shift, field, lowest = (torch.tensor(x, dtype=torch.int32, device=left.device) for x in self.decoding)

        def look_ahead(first: int) -> torch.Tensor:
            batch = slice(first * self.pieces, (first + AHEAD) * self.pieces)
            maxima = torch.bmm(left[batch], right[batch], out=sums[: len(left[batch])])
            if self.pieces > 1:
                maxima = maxima.view(-1, self.pieces, *maxima.shape[1:]).amax(dim=1)
            code = maxima.view(torch.int32)
            torch.bitwise_right_shift(code, shift, out=code)
            code.bitwise_and_(field).add_(lowest)
            return maxima

        ready = {}

        def largest(start: int, stop: int) -> torch.Tensor:
            batch, within = divmod(start // self.block, AHEAD)
            if batch not in ready:
                ready.clear()
                ready[batch] = look_ahead(batch * AHEAD)
            return ready[batch][within]

        return largest

    def _spread(self, beside: float) -> None:
        """Replace each power by the one of `stride` times its exponent, where float32 has room for the sums of them."""
        ends = [_ends(x) for x in (self.left, self.right)]
        if None in ends:  # nothing but zeros
            return
        (low, high), (lowest_right, highest_right) = ends
        lowest = low + lowest_right
        if beside < math.inf:
            lowest = min(lowest, math.frexp(beside)[1])  # what a block of zeros gives lies one below
        span = high + highest_right - lowest
        fitting = [stride for stride in STRIDES if stride * (span + 2) <= 255]
        if not fitting:
            return
        self.stride = fitting[0] if self.block <= 2 ** (fitting[0] - 1) else fitting[-1]
        piece = min(self.block, 2 ** (self.stride - 1))
        self.pieces = -(-self.block // piece)
        start = min(254 - self.stride * (high - low), 126 + self.stride)  # of the left exponents, as they are stored
        self.left = self._in_pieces(_strides(self.left[:, :, 0], self.stride, low, start), piece)
        rest = 127 + self.stride - start
        self.right = self._in_pieces(_strides(self.right[:, 0], self.stride, lowest - low, rest), piece)
        self.decoding = int(math.log2(self.stride)), FIELD, (lowest + 126) << 23

    def _in_pieces(self, x: torch.Tensor, piece: int) -> torch.Tensor:
        """Cut [K, n] into [blocks * pieces, piece, n]; missing products are 0."""
        blocks = -(-len(x) // self.block)
        if missing := blocks * self.block - len(x):
            x = F.pad(x, (0, 0, 0, missing))
        x = x.view(blocks, self.block, -1)
        if missing := self.pieces * piece - self.block:
            x = F.pad(x, (0, 0, 0, missing))
        return x.reshape(blocks * self.pieces, piece, -1)


def _ends(x: torch.Tensor) -> tuple[int, int] | None:
    """Return the least and the largest exponent of powers of two, zeros left out; None where there is nothing else."""
    largest = float(x.amax()) if x.numel() else 0.0
    if largest == 0:
        return None
    smallest = float(torch.where(x > 0, x, math.inf).amin())
    return int(math.log2(smallest)), int(math.log2(largest))


def _strides(x: torch.Tensor, stride: int, low: int, start: int) -> torch.Tensor:
    """Return the powers whose stored exponents are start + stride * (exponent - low)."""
    exponents = x.view(torch.int32).bitwise_right_shift(23).sub_(127 + low)
    spread = exponents.mul_(stride).add_(start).bitwise_left_shift_(23).view(torch.float32)
    return torch.where(x > 0, spread, 0.0)
