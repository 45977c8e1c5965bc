"""Where the values of a tensor lie: counts by binade, and from them what any format would do to each value.

The binade of x is its exponent e: 2**e <= |x| < 2**(e + 1). A scale that is a power of two moves every value by the
same number of binades and changes nothing else, so one count answers for all formats and all such scales.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import torch

from utils.formats import FloatFormat
from utils.rounding import check_format

_PIECE = 2**20  # elements: scratch arrays that fit into the caches halve the time on a CPU
# dtype -> (integers of its width, fraction bits, exponent of the smallest subnormal)
_CARRIERS = {torch.float32: (torch.int32, 23, -149), torch.float64: (torch.int64, 52, -1074)}


@dataclass(frozen=True)
class Histogram:
    """How many values lie in each binade: `counts[i]` of them have 2**(low + i) <= |x| < 2**(low + i + 1).

    `powers[i]` says how many of those are 2**(low + i) itself: they decide ties. Zeros, infinities and NaN are counted
    apart, so what was zero before any conversion is never taken for a loss. `amax` is the largest finite |x|.

    Shares are shares of the `nonzero` values, which are finite and not zero, and 0.0 where there are none; `scale` is
    a power of two that multiplies all values first, without rounding. Then flushed, subnormal and overflowing values
    and those that stay in the normal range add up to 1.
    """

    low: int = 0
    counts: tuple[int, ...] = ()
    powers: tuple[int, ...] = ()
    zeros: int = 0
    infinite: int = 0
    nan: int = 0
    amax: float = 0.0

    def __post_init__(self) -> None:
        if len(self.powers) != len(self.counts):
            raise ValueError(f"{len(self.powers)} powers for {len(self.counts)} counts: one for each binade")

    @property
    def nonzero(self) -> int:
        """How many values are finite and not zero."""
        return sum(self.counts)

    @property
    def total(self) -> int:
        """How many values were counted."""
        return self.nonzero + self.zeros + self.infinite + self.nan

    def __add__(self, other: Histogram) -> Histogram:
        """Return the histogram of the values of both."""
        if not isinstance(other, Histogram):
            return NotImplemented
        counts, powers = {}, {}
        for part in (self, other):
            for e, (count, power) in enumerate(zip(part.counts, part.powers, strict=True), part.low):
                counts[e] = counts.get(e, 0) + count
                powers[e] = powers.get(e, 0) + power
        return _from_binades(
            counts,
            powers,
            zeros=self.zeros + other.zeros,
            infinite=self.infinite + other.infinite,
            nan=self.nan + other.nan,
            amax=max(self.amax, other.amax),
        )

    def scaled(self, scale: float) -> Histogram:
        """Return the histogram of the same values times `scale`, a power of two: each moves to another binade.

        Raises: ValueError for another scale, or one that takes amax out of the range of float64.
        """
        shift = _exponent_of(scale)
        amax = math.ldexp(self.amax, shift) if shift + math.frexp(self.amax)[1] <= 1024 else math.inf
        if math.isinf(amax) or math.ldexp(amax, -shift) != self.amax:
            raise ValueError(f"amax {self.amax} times 2**{shift} is beyond float64")
        low = self.low + shift if self.counts else 0
        return Histogram(low, self.counts, self.powers, self.zeros, self.infinite, self.nan, amax)

    def below(self, exponent: int) -> int:
        """Return how many non-zero values are smaller than 2**exponent."""
        return sum(self.counts[: max(0, exponent - self.low)])

    def flushed(self, fmt: FloatFormat, scale: float = 1.0) -> float:
        """Return the share that the format rounds to 0 (ties to even); exact.

        Those are the values up to half the smallest subnormal; that half itself is a tie, and goes to 0.
        Raises: ValueError for a scale that is no power of two and for a format without zero, TypeError for no format.
        """
        return self._share(self._flushed(_check(fmt), _exponent_of(scale)))

    def subnormal(self, fmt: FloatFormat, scale: float = 1.0) -> float:
        """Return the share that lies below the smallest normal value and is not flushed; exact.

        It counts what the value is before it is rounded: a few round up to the smallest normal value.
        Raises: as `flushed`.
        """
        shift = _exponent_of(scale)
        return self._share(self.below(_check(fmt).emin - shift) - self._flushed(fmt, shift))

    def overflowing(self, fmt: FloatFormat, scale: float = 1.0) -> float:
        """Return the share that surely rounds past `fmt.max` (ties to even), whatever the format makes of it.

        The border lies inside the last binade of the format: at 65520 of [32768, 65536) for float16. What lies in that
        binade is decided by amax alone: below the border none overflows, and beyond it one does, at least. So 0.0
        means that none overflows, and the true share is between this one and `overflowing_at_most`.
        Raises: as `flushed`.
        """
        return self._share(self._overflowing(_check(fmt), _exponent_of(scale))[0])

    def overflowing_at_most(self, fmt: FloatFormat, scale: float = 1.0) -> float:
        """Return what `overflowing` is if amax overflows and all that share the last binade of the format with it.

        Raises: as `flushed`.
        """
        return self._share(self._overflowing(_check(fmt), _exponent_of(scale))[1])

    def scale_keeping(self, fmt: FloatFormat, share: float) -> float:
        """Return the smallest power of two by which the values are multiplied so that `share` of them stay non-zero.

        Nothing overflows: the scale is at most `largest_scale(fmt)`, and every power of two between the two will do.
        Raises: ValueError when no such scale exists, for a `share` outside 0 ... 1, and as `flushed`.
        """
        if not 0 < share <= 1:
            raise ValueError(f"share {share} is not in 0 ... 1")
        largest = _exponent_of(self.largest_scale(fmt))
        lowest = fmt.emin - fmt.mantissa_bits - 1 - self.low - len(self.counts)  # all of them are flushed there
        for shift in range(lowest, largest + 1):
            if self.nonzero - self._flushed(fmt, shift) >= Fraction(share) * self.nonzero:
                return math.ldexp(1.0, shift)
        kept = 1 - self._share(self._flushed(fmt, largest))
        raise ValueError(
            f"no scale keeps {share:.2%} of the values in {fmt.name}: 2**{largest}, the largest without overflow,"
            f" keeps {kept:.2%}"
        )

    def largest_scale(self, fmt: FloatFormat) -> float:
        """Return the largest power of two by which the values can be multiplied before one rounds past `fmt.max`.

        At most 2**1023, the largest that a float holds.
        Raises: ValueError when there is no value that is finite and not zero, and as `flushed`.
        """
        _check(fmt)
        if not self.nonzero:
            raise ValueError("no value is finite and not zero: every scale is as good as any other")
        shift = fmt.emax - math.frexp(self.amax)[1] + 1  # amax reaches the last binade
        return math.ldexp(1.0, min(1023, shift - 1 if self._overflowing(fmt, shift)[0] else shift))

    def as_json(self) -> dict:
        """Return plain JSON values; "powers", {exponent: count}, is left out where no value is a power of two."""
        fields = {
            "low": self.low,
            "counts": list(self.counts),
            "zeros": self.zeros,
            "infinite": self.infinite,
            "nan": self.nan,
            "amax": self.amax,
        }
        powers = {str(e): count for e, count in enumerate(self.powers, self.low) if count}
        return fields | {"powers": powers} if powers else fields

    @classmethod
    def from_json(cls, fields: dict) -> Histogram:
        """Return what `as_json` was made from."""
        low, counts = fields["low"], tuple(fields["counts"])
        powers = fields.get("powers", {})
        by_binade = tuple(powers.get(str(e), 0) for e in range(low, low + len(counts)))
        return cls(low, counts, by_binade, fields["zeros"], fields["infinite"], fields["nan"], fields["amax"])

    def _share(self, count: int) -> float:
        return count / self.nonzero if self.nonzero else 0.0

    def _flushed(self, fmt: FloatFormat, shift: int) -> int:
        border = fmt.emin - fmt.mantissa_bits - 1 - shift  # half the smallest subnormal is 2**border: a tie, to 0
        at = border - self.low
        return self.below(border) + (self.powers[at] if 0 <= at < len(self.powers) else 0)

    def _overflowing(self, fmt: FloatFormat, shift: int) -> tuple[int, int]:
        """Return how many overflow at least, and at most."""
        beyond = self.nonzero - self.below(fmt.emax + 1 - shift)
        last = self.nonzero - self.below(fmt.emax - shift) - beyond
        if not last:
            return beyond, beyond
        if beyond:  # amax lies further out and says nothing about the last binade
            return beyond, beyond + last - self._power(fmt.emax - shift)
        over = _rounds_past_max(Fraction(self.amax) * Fraction(2) ** shift, fmt)
        return int(over), last - self._power(fmt.emax - shift) if over else 0

    def _power(self, e: int) -> int:
        return self.powers[e - self.low] if 0 <= e - self.low < len(self.powers) else 0


def histogram(x: torch.Tensor) -> Histogram:
    """Count the values of a tensor by binade, on its device; exact, float32's and float64's subnormals included.

    `x`: any floating dtype, shape, strides and device. The narrow dtypes are widened to float32 first, which is exact.
    Raises: TypeError for a tensor that is not of a floating dtype.
    """
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        raise TypeError(f"x is a tensor of a floating dtype, not {getattr(x, 'dtype', type(x).__name__)}")
    flat, histogram = x.detach().reshape(-1), Histogram()
    for start in range(0, flat.numel(), _PIECE):
        histogram += _counted(flat[start : start + _PIECE])
    return histogram


def _counted(x: torch.Tensor) -> Histogram:
    """Count one piece by its bits: they are in the order of the magnitudes."""
    x = x if x.dtype in _CARRIERS else x.float()
    integers, fraction, bottom = _CARRIERS[x.dtype]
    code = x.view(integers) & torch.iinfo(integers).max  # without the sign
    # Stored exponent E: 2E for a power of two, 2E + 1 for what lies between two; 0 for zero, 1 for a subnormal.
    slot = (code - 1).bitwise_right_shift_(fraction).add_(code >> fraction).add_(1)
    slots = 2 ** (torch.finfo(x.dtype).bits - fraction)
    slot_counts = torch.bincount(slot, minlength=slots).tolist()
    top, infinity = int(code.max()), (slots // 2 - 1) << fraction
    if top >= infinity:
        top = int(code.masked_fill(code >= infinity, 0).max())
    first = bottom + fraction - 1  # stored exponent E means 2**(E + first)
    used = [e for e in range(1, slots // 2 - 1) if slot_counts[2 * e] or slot_counts[2 * e + 1]]
    powers = {e + first: slot_counts[2 * e] for e in used}
    counts = {e + first: slot_counts[2 * e] + slot_counts[2 * e + 1] for e in used}
    if slot_counts[1]:
        _add_subnormals(code[(code > 0) & (code < 2**fraction)], counts, powers, bottom=bottom)
    amax = torch.tensor(top, dtype=integers).view(x.dtype).item()
    return _from_binades(counts, powers, zeros=slot_counts[0], infinite=slot_counts[-2], nan=slot_counts[-1], amax=amax)


def _add_subnormals(code: torch.Tensor, counts: dict, powers: dict, *, bottom: int) -> None:
    """Add subnormals, which are code * 2**bottom: below 2**53, so that float64 gives the exponent of a code exactly."""
    significand, exponent = torch.frexp(code.double())
    for e, count in enumerate(torch.bincount(exponent).tolist(), bottom - 1):
        counts[e] = counts.get(e, 0) + count
    for e, count in enumerate(torch.bincount(exponent[significand == 0.5]).tolist(), bottom - 1):
        powers[e] = powers.get(e, 0) + count


def _from_binades(counts: dict[int, int], powers: dict[int, int], **others) -> Histogram:
    used = [e for e, count in counts.items() if count]
    if not used:
        return Histogram(**others)
    span = range(min(used), max(used) + 1)
    by_binade = (tuple(counted.get(e, 0) for e in span) for counted in (counts, powers))
    return Histogram(span[0], *by_binade, **others)


def _exponent_of(scale: float) -> int:
    """Return the exponent of a power of two."""
    significand, exponent = math.frexp(scale)
    if significand != 0.5:
        raise ValueError(
            f"scale {scale} is not a power of two: it would move values into other binades, and some only within one"
        )
    return exponent - 1


def _check(fmt: FloatFormat) -> FloatFormat:
    check_format(fmt)
    if not fmt.has_zero:
        raise ValueError(f"{fmt.name} has neither zero nor sign: it holds scales, and no tensor can be cast to it")
    return fmt


def _rounds_past_max(x: Fraction, fmt: FloatFormat) -> bool:
    """Say whether x > 0 is nearer to the first point past `fmt.max`; a tie goes there if the code of max is odd."""
    half_ulp = Fraction(2) ** (fmt.emax - fmt.mantissa_bits - 1)
    border = Fraction(fmt.max) + half_ulp
    return x >= border if fmt.max_code % 2 else x > border
