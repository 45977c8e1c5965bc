"""Choose a carrier dtype that holds total + product exactly, and round it there in few passes over memory.

Adding the products of a matrix product one by one is 8192 times the same small work, so each operation on all totals
counts. A *carrier* is the dtype, float32 or float64, in which the exact sum rounded once is found. The rounding takes
the cheapest way that the operands allow: none (float32 in float32), a cast there and back, or the carrier's own
rounding, moved to the format's last bit by a large constant that is added and taken away again.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from utils.fake_quantize import fake_quantize
from utils.formats import BFLOAT16, FLOAT16, FLOAT32, FloatFormat

PIECE = 2**16  # numbers measured at once: they stay in the cache
GUARD = 4  # bits: a tie of the total, one binade lower after a subtraction, and the place of the product beside it
HEADROOM = 4  # roundings upwards may let a total grow past the sum of the products' sizes, but not by this factor
SMALLEST_FACTOR = 2.0**-40  # of operands whose products float32 surely holds
SMALLEST_SUM = 2.0**-103  # no nonzero sum of such products is smaller: 2**-80, and 23 bits less after cancellation
NATIVE = (FLOAT16, BFLOAT16, FLOAT32)  # torch adds two of them in float32 and rounds once: 2 p + 2 <= 24, or p = 24


@dataclass(frozen=True)
class Extent:
    """What the finite values of a float32 matrix need: significant bits, and the sizes that occur."""

    precision: int
    smallest: float  # the least size that is not zero; infinity where all are
    largest: float
    last_bit: float  # a power of two of which all are multiples; infinity where all are zero
    finite: bool


def extent(x: torch.Tensor) -> Extent:
    """Measure a float32 tensor. A subnormal number counts with the leading bit that it has not, on the safe side."""
    if x.numel() == 0:
        return Extent(precision=1, smallest=math.inf, largest=0.0, last_bit=math.inf, finite=True)
    pieces = [_measured(piece) for piece in x.reshape(-1).split(PIECE)]
    lowest, smallest, last_bit, minus_largest = torch.stack(pieces).amin(dim=0).tolist()
    if not math.isfinite(minus_largest):
        return replace(extent(finite(x)), finite=False)
    return Extent(24 - int(math.log2(lowest)), smallest, -minus_largest, last_bit, finite=True)


def _measured(x: torch.Tensor) -> torch.Tensor:
    """Return the least of: the last bit of a significand as an integer, a size that is not zero, its last bit, -|x|."""
    size = x.abs()
    code = size.view(torch.int32)
    lowest = code | 1 << 23
    lowest &= -lowest
    others = torch.where(lowest < 1 << 23, code ^ lowest, 0).view(torch.float32)  # a power of two is its own last bit
    some = size > 0
    smallest, last_bit = (torch.where(some, y, math.inf).amin() for y in (size, size - others))
    return torch.stack([lowest.amin().float(), smallest, last_bit, -size.amax()]).double()


def finite(x: torch.Tensor) -> torch.Tensor:
    """The values, with 0 in place of infinities and NaN."""
    return x.nan_to_num(0.0, 0.0, 0.0)


def exact_in_float32(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Say whether float32 holds every product of float32 a [M, K] and b [K, N], and every sum of their sizes."""
    return _exact_in_float32(extent(a), extent(b), count=a.shape[1])


def _exact_in_float32(a: Extent, b: Extent, count: int) -> bool:
    small = min(a.smallest, b.smallest) >= SMALLEST_FACTOR
    return small and a.precision + b.precision <= 24 and a.largest * b.largest * count < 2.0**120


def add_to_odd(x: torch.Tensor, y: torch.Tensor) -> None:
    """Add float64 y to x in place, rounded to odd: a later rounding to 51 bits or less rounds the exact sum once.

    That is how `utils.accumulation` adds (Boldo and Melquiond, 2008). What is lost comes from Knuth's TwoSum.
    """
    total = x + y
    moved = total - x
    lost = (x - (total - moved) + (y - moved)).nan_to_num_(0.0, 0.0, 0.0)
    away = (lost.sign_() * total.sign()).nan_to_num_(0.0).long()  # 1: the exact sum is the larger in size
    code = total.view(torch.int64)
    code += away * (~code & 1)
    x.copy_(total)


def widening(narrow: torch.Tensor, wide: torch.Tensor) -> Callable[[], object]:
    """Return the function that copies one tensor to another; float16 to float64 by way of float32, thrice as fast."""
    if narrow.dtype == torch.float16 and wide.dtype == torch.float64:
        between = torch.empty_like(narrow, dtype=torch.float32)
        return lambda: wide.copy_(between.copy_(narrow))
    return lambda: wide.copy_(narrow)


def codes(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """View x as integers, beside the mask of the exponent: `code & mask` is the code of 2**floor(log2 |x|).

    That of 0 and of subnormal numbers is 0. The mask is a tensor, because to make one of an int takes time.
    """
    code, mask = (torch.int64, 0x7FF << 52) if x.dtype == torch.float64 else (torch.int32, 0xFF << 23)
    return x.view(code), torch.tensor(mask, dtype=code, device=x.device)


class Totals:
    """Totals of a format: the dtypes that they are added and kept in, and the rounding of what came out of an addition.

    `carrier`: torch.float32 or torch.float64, for a total and a product. `native`: the dtype of the format where
    torch's own addition of two of its values rounds once, else None. `home`: one of the two, for totals alone. A zero
    to which a small negative sum is rounded may have either sign. `pairs_fit`: the carrier holds the sums of pairs of
    products; else they have to be added by `add_to_odd`.
    """

    def __init__(
        self, fmt: FloatFormat, carrier: torch.dtype, *, bound: float, last_bit: float, all_finite: bool, pairs_fit=True
    ):
        self.fmt, self.carrier, self.pairs_fit = fmt, carrier, pairs_fit
        self.native = fmt.torch_dtype if fmt in NATIVE else None
        self.home = self.native or carrier
        self.overflows = not all_finite or bound * HEADROOM > fmt.max
        self.least_binade = 0.0 if last_bit >= fmt.smallest_subnormal else 2.0**fmt.emin
        self.casts = self.native is not None and (carrier == torch.float32 or fmt == FLOAT32)
        exact = carrier == torch.float64 and fmt.has_negative_zero  # float32 has no room for the constants
        self.shifts = exact and not self.casts and not (self.overflows and self.native is None)

    def rounding(self, x: torch.Tensor, out: torch.Tensor | None = None) -> Callable[[], None]:
        """Return the function that rounds what is in x when it is called, to nearest and ties to even.

        `x`: contiguous, of the carrier's dtype; overwritten. `out`: where the result goes, of dtype `home`; None: x.
        The function holds views and scratch memory, because to make them takes as long as a pass over a small tile.
        """
        prepare = self._shift(x) if self.shifts else self._emulate(x) if not self.casts else None
        back = out is None
        if back and self.home != self.carrier and (self.casts or self.overflows):
            out = torch.empty_like(x, dtype=self.home)

        if out is None or out is x:
            return prepare or (lambda: None)

        widen = widening(out, x) if back else None

        def round_once() -> None:
            if prepare is not None:
                prepare()
            out.copy_(x)
            if widen is not None:
                widen()

        return round_once

    def rounding_of_sum(self, x: torch.Tensor) -> Callable[[], None]:
        """Return the function that rounds a sum of two totals, of dtype `home`, in place; native sums are rounded."""
        return (lambda: None) if self.native else self.rounding(x)

    def _shift(self, x: torch.Tensor) -> Callable[[], None]:
        large = torch.empty_like(x)
        (code, mask), (large_code, _) = codes(x), codes(large)
        lift = 1.5 * 2.0 ** (52 - self.fmt.mantissa_bits)  # times a binade: its last bit is the format's
        # An infinity must not meet an infinite constant.
        limits = {"max": 2.0**self.fmt.emax} if self.overflows else {}
        limits |= {"min": self.least_binade} if self.least_binade else {}

        def shift() -> None:
            torch.bitwise_and(code, mask, out=large_code)  # 2**floor(log2 |x|)
            if limits:
                large.clamp_(**limits)
            x.add_(large, alpha=lift).sub_(large, alpha=lift)

        return shift

    def _emulate(self, x: torch.Tensor) -> Callable[[], None]:
        return lambda: fake_quantize(x, self.fmt, saturate=False, out=x)


def totals(a: torch.Tensor, b: torch.Tensor, fmt: FloatFormat, *, chunked=False, paired=False) -> Totals | None:
    """Choose the carrier for float32 a [M, K] and b [K, N]; None where in neither dtype an addition rounds once.

    `chunked`: sums of products come in float64. `paired`: products are added to products, whose bits may not fit beside
    each other.
    """
    if not fmt.has_zero or fmt.precision > 24 or fmt.exponent_bits > 8 or a.numel() == 0 or b.numel() == 0:
        return None
    left, right = extent(a), extent(b)
    bits = fmt.precision + left.precision + right.precision + GUARD
    span = _pair_bits(finite(a), finite(b), left, right) if paired else 0
    last_bit, all_finite = left.last_bit * right.last_bit, left.finite and right.finite
    bound = left.largest * right.largest * a.shape[1]
    if bound * HEADROOM > fmt.max:  # too coarse a bound would cost passes: Cauchy and Schwarz know a better one
        lengths = (finite(x).square().sum(dim=axis).amax().sqrt() for x, axis in ((a, 1), (b, 0)))
        bound = 1.01 * math.prod(map(float, lengths))

    def held_in(carrier, **how):
        return Totals(fmt, carrier, bound=bound, last_bit=last_bit, all_finite=all_finite, **how)

    fits = fmt == FLOAT32 or max(bits, span) <= 24
    if fits and not chunked and _exact_in_float32(left, right, a.shape[1]):
        return held_in(torch.float32)
    return held_in(torch.float64, pairs_fit=span <= 53) if bits <= 53 else None


def _pair_bits(a: torch.Tensor, b: torch.Tensor, left: Extent, right: Extent) -> int:
    """Return the bits from the leading one of a sum of two neighbouring products to the last one of either, or more."""
    pairs = a.shape[1] // 2  # the last one of an odd number has no neighbour
    if pairs == 0:
        return 0
    (largest_a, low_a), (largest_b, low_b) = _ends(a[:, : 2 * pairs], 0, left), _ends(b[: 2 * pairs], 1, right)
    high = torch.frexp((largest_a * largest_b).view(pairs, 2).sum(dim=1)).exponent
    return int((high - (low_a + low_b).view(pairs, 2).amin(dim=1)).amax())


def _ends(x: torch.Tensor, axis: int, whole: Extent) -> tuple[torch.Tensor, torch.Tensor]:
    """Along an axis: the largest size, as float64, and an exponent with all of x multiples of 2**exponent."""
    largest, smallest = [], []
    for piece in x.split(max(1, PIECE // x.shape[axis]), dim=1 - axis):
        size = piece.abs()
        largest.append(size.amax(dim=axis))
        smallest.append(torch.where(size > 0, size, 1.0).amin(dim=axis))
    low = torch.frexp(torch.cat(smallest)).exponent - whole.precision
    last = 0 if math.isinf(whole.last_bit) else math.frexp(whole.last_bit)[1] - 1
    return torch.cat(largest).double(), low.clamp_(min=last)
