"""Rounding to a format, and what it costs: the short, exact reference, in float64.

Every finite format is a grid. In the binade of x the grid's spacing is `ulp(x)`, so rounding takes three lines:
measure x in ulps, round that to a whole number, multiply back. Both scalings are by powers of two and exact, so
there is one rounding and never two. A rounding rule is a function from ulps to whole ulps.
"""

import math
from collections.abc import Callable
from numbers import Real
from typing import Protocol

import numpy as np

Rounding = Callable[[np.ndarray], np.ndarray]


class Grid(Protocol):
    """What rounding needs to know of a format. `utils.formats.FloatFormat` has it, and is built on this module."""

    mantissa_bits: int
    emin: int
    emax: int
    max: float
    smallest_normal: float
    has_nan: bool
    has_inf: bool
    has_zero: bool
    has_negative_zero: bool


def ties_to_even(q: np.ndarray) -> np.ndarray:
    """Round to the nearest whole number, a tie to the even one (IEEE 754-2019 roundTiesToEven)."""
    return np.rint(q)


def ties_away(q: np.ndarray) -> np.ndarray:
    """Round to the nearest whole number, a tie away from zero (IEEE 754-2019 roundTiesToAway)."""
    whole = np.trunc(q)
    # The remainder is exact, whereas floor(|q| + 1/2) would round 0.49999999999999994 up.
    return np.where(np.abs(q - whole) >= 0.5, whole + np.copysign(1.0, q), whole)


def toward_zero(q: np.ndarray) -> np.ndarray:
    """Drop the fraction (IEEE 754-2019 roundTowardZero)."""
    return np.trunc(q)


def toward_positive(q: np.ndarray) -> np.ndarray:
    """Round up (IEEE 754-2019 roundTowardPositive)."""
    return np.ceil(q)


def toward_negative(q: np.ndarray) -> np.ndarray:
    """Round down (IEEE 754-2019 roundTowardNegative)."""
    return np.floor(q)


RULES: dict[str, Rounding] = {
    rule.__name__: rule for rule in (ties_to_even, ties_away, toward_zero, toward_positive, toward_negative)
}  # the deterministic ones, by name


def stochastic(rng: np.random.Generator) -> Rounding:
    """Make a rule that rounds up with the probability of the fraction, so that the mean is q itself.

    The draw has 53 bits, so the probability is exact to 2**-53. The same generator state gives the same result.
    Raises: TypeError if `rng` is not a NumPy Generator.
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"stochastic() needs a numpy.random.Generator, not {type(rng).__name__}: np.random.default_rng(seed)"
        )

    def rule(q: np.ndarray) -> np.ndarray:
        below = np.floor(q)
        return below + (rng.random(np.shape(q)) < q - below)

    return rule


def ulp(x, fmt: Grid) -> np.ndarray:
    """Return the format's spacing at x: the gap between neighbours in the binade of x.

    `x`: as in `quantize`. Returns float64 of that shape; below the smallest normal the spacing is that of
    the subnormals, beyond `fmt.max` that of the last binade; NaN at NaN and at the infinities.
    """
    check_format(fmt)
    return _ulp(as_float64(x), fmt)[()]


def _ulp(x: np.ndarray, fmt: Grid) -> np.ndarray:
    finite = np.isfinite(x)
    _, e = np.frexp(np.where(finite, x, 1.0))  # |x| = f * 2**e with 1/2 <= f < 1; frexp(0) gives e = 0
    e = np.where(x == 0, fmt.emin, np.minimum(np.maximum(e - 1, fmt.emin), fmt.emax)).astype(np.int32)
    return np.where(finite, np.ldexp(1.0, e - fmt.mantissa_bits), np.nan)


def round_to_grid(x, fmt: Grid, rounding: Rounding = ties_to_even) -> np.ndarray:
    """Round x on the format's grid continued by one point past `fmt.max`, which shows what overflows.

    `x`: as in `quantize`. Returns float64 of that shape, in magnitude at most `fmt.max` or that one point; infinities
    and NaN stay.
    """
    check_format(fmt)
    return _round_to_grid(as_float64(x), fmt, rounding)[()]


def _round_to_grid(x: np.ndarray, fmt: Grid, rounding: Rounding) -> np.ndarray:
    step, last_step = _ulp(x, fmt), math.ldexp(1.0, fmt.emax - fmt.mantissa_bits)
    end = fmt.max / last_step + 1.0  # the first point past the grid, in ulps
    limit = math.nextafter(end, 0.0) * last_step  # what lies beyond rounds as this does: up is overflow, down is max
    with np.errstate(over="ignore"):  # with float64's largest exponent the point past the grid is infinite
        within = np.minimum(np.maximum(x, -limit), limit)
        y = rounding(within / step) * step  # the quotient is exact: a power of two, no underflow
    return np.where(np.isinf(x), x, y)


def quantize(x, fmt: Grid, rounding: Rounding = ties_to_even, saturate: bool = False) -> np.ndarray:
    """Round x to the values of a format.

    `x`: real numbers of any shape (array, list, number, torch tensor), taken as float64: integers past 2**53 and long
    doubles are rounded to float64 first. Returns float64 of that shape; every finite result is a value of `fmt`, and
    the sign of zero is kept where the format has one. NaN stays NaN in every format.

    Overflow is decided by the rule, as in IEEE 754-2019 (7.4): what it rounds past `fmt.max` overflows, so toward
    zero nothing finite does. Overflow gives an infinity where the format has one, else NaN; with `saturate` (the
    OFP8 saturating mode) it gives `fmt.max` with the sign of x, and so do the infinities. The default shows an
    overflow, as IEEE 754 does; `fake_quantize` saturates by default, as one infinity would spoil a training step.
    Formats with neither infinity nor NaN (FP6, FP4) always saturate, as in ml_dtypes. E8M0 has neither zero nor sign:
    zero and what is negative, -Inf too, become NaN in both modes, and what is positive but below its smallest value
    becomes that value.

    Raises: TypeError for an x that is not real numbers and for an `fmt` that is not a FloatFormat.
    """
    check_format(fmt)
    x = as_float64(x)
    y = _round_to_grid(x, fmt, rounding)
    past = fmt.max if saturate or not fmt.has_nan else np.inf if fmt.has_inf else np.nan
    y = np.copysign(np.where(np.abs(y) > fmt.max, past, y), x)  # a negative that rounds to zero gives -0
    if not fmt.has_zero:
        y = np.where(x > 0, np.maximum(y, fmt.smallest_normal), np.nan)
    y = np.where(np.isnan(x), np.nan, y)
    return (y if fmt.has_negative_zero else y + 0.0)[()]  # -0 + 0 = +0; [()] makes a scalar of a 0-d array


def sqnr_db(y, x) -> float:
    """Return the signal-to-quantisation-noise ratio 10 log10(sum x**2 / sum (y - x)**2) in dB: more is better.

    `x` is the exact value, `y` what became of it: real numbers of one shape.

    Infinity when nothing was lost; -infinity where y is infinite or y - x beyond float64; NaN for a NaN or an infinite
    x. Raises: ValueError for an empty or all-zero x, which has no signal.
    """
    y, x = as_float64(y), as_float64(x)
    signal = _power_db(x)
    if signal == -math.inf:
        raise ValueError("sqnr_db needs a signal: x is empty or zero everywhere")
    with np.errstate(over="ignore", invalid="ignore"):
        noise = y - x
    return signal - _power_db(noise)


def _power_db(values: np.ndarray) -> float:
    """Return 10 log10(sum values**2), the largest value taken out so that no square leaves the range of float64."""
    peak = float(np.max(np.abs(values), initial=0.0))
    if peak == 0.0:
        return -math.inf
    if not math.isfinite(peak):
        return peak
    return 20.0 * math.log10(peak) + 10.0 * math.log10(float(np.sum((values / peak) ** 2)))


def underflow_share(x, fmt: Grid) -> float:
    """Return the share of the non-zero x that the format rounds to zero (0.0 if there are none)."""
    x = as_float64(x)
    nonzero = x[(x != 0) & ~np.isnan(x)]
    return float(np.mean(quantize(nonzero, fmt) == 0)) if nonzero.size else 0.0


def as_float64(x) -> np.ndarray:
    """Take real numbers of any shape as a float64 array.

    `x`: an array, a list, a number or a torch tensor. Raises: TypeError where NumPy would drop an imaginary part, make
    NaN of None, or read a number out of a text or a date.
    """
    if hasattr(x, "is_floating_point"):  # NumPy reads neither torch's bfloat16 nor what lies on a GPU
        x = (x.double() if x.is_floating_point() else x).cpu()
    x = np.asarray(x)
    numbers = x.dtype == object and all(isinstance(value, Real) for value in x.flat)  # fractions, long integers
    if not (numbers or np.can_cast(x.dtype, np.float64, casting="same_kind")):
        raise TypeError(f"x holds real numbers, not {x.dtype}; convert it first, for example with float(x) or x.real")
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return x.astype(np.float64, copy=False)


def as_float32(x) -> np.ndarray:
    """Take real numbers of any shape as a float32 array, rounded with ties to even; what is too large becomes infinite.

    Raises: TypeError where `as_float64` does.
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(as_float64(x), np.float32)


def check_format(fmt) -> None:
    """Raise TypeError for a name or a dtype in place of a format."""
    if not hasattr(fmt, "mantissa_bits"):  # not isinstance: the class is defined above this module
        raise TypeError(f"fmt is a FloatFormat, not {fmt!r}; by name: utils.formats.FORMATS['float16']")
