"""Independent answers to hold ours against: ml_dtypes, NumPy, and exact rational arithmetic."""

from bisect import bisect_right
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np

from utils.formats import FORMATS, FloatFormat

SMALL = [fmt for fmt in FORMATS.values() if fmt.bits <= 16]
WIDE = [fmt for fmt in FORMATS.values() if fmt.bits > 16]


def oracle_dtype(fmt: FloatFormat) -> np.dtype | None:
    """The NumPy or ml_dtypes dtype of a format; None for TF32, which no library stores."""
    if fmt.name == "tf32":
        return None
    return np.dtype(getattr(ml_dtypes, fmt.name, None) or fmt.name)


def all_codes(fmt: FloatFormat) -> np.ndarray:
    return np.arange(2**fmt.bits, dtype=np.uint64).astype(fmt.code_dtype)


def finite_values(fmt: FloatFormat) -> list[Fraction]:
    """Every non-negative finite value, in order, from the definition of the fields alone."""
    values = []
    for code in range(2 ** (fmt.exponent_bits + fmt.mantissa_bits)):
        e, m = code >> fmt.mantissa_bits, code & (2**fmt.mantissa_bits - 1)
        top = 2**fmt.exponent_bits - 1
        if e == top and (fmt.specials == "ieee" or (fmt.specials == "all_ones" and m == 2**fmt.mantissa_bits - 1)):
            continue
        fraction = Fraction(m, 2**fmt.mantissa_bits)
        if e == 0 and fmt.mantissa_bits:
            values.append(fraction * Fraction(2) ** (1 - fmt.bias))
        else:
            values.append((1 + fraction) * Fraction(2) ** (e - fmt.bias))
    return values


def same_bits(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Elementwise: the same float64, the sign of zero included, or both NaN."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    return (ours.view(np.uint64) == theirs.view(np.uint64)) | (np.isnan(ours) & np.isnan(theirs))


@cache
def grid(fmt: FloatFormat) -> tuple[Fraction, ...]:
    """The non-negative finite values and, last, the first point past them: overflow begins on the way there."""
    values = finite_values(fmt)
    last_step = Fraction(2) ** (fmt.emax - fmt.mantissa_bits)
    return (*values, values[-1] + last_step)


def round_exactly(x: float, fmt: FloatFormat, rule: str, saturate: bool = False) -> float:
    """Round x by searching the sorted values of the format, in rational arithmetic: slow, and nothing to get wrong.

    `rule` is the name of a function of `utils.rounding`. NaN is not this function's business.
    """
    sign, values = (-1.0 if np.signbit(x) else 1.0), grid(fmt)
    if not fmt.has_zero and x <= 0:
        return np.nan
    up = {"toward_positive": sign > 0, "toward_negative": sign < 0, "toward_zero": False}
    if np.isinf(x):
        result = values[-1]
    else:
        size = abs(Fraction(float(x)))
        low = min(bisect_right(values, size) - 1, len(values) - 2)
        if low < 0:  # below the smallest value of a format without zero
            return float(values[0])
        middle = (values[low] + values[low + 1]) / 2
        # The significand's last bit decides a tie: that of the code, except where there is only the hidden bit.
        tie_up = rule == "ties_away" or low % 2 == 1 or fmt.mantissa_bits == 0
        nearest_up = size > middle or (size == middle and tie_up)
        result = values[low + int(size != values[low] and up.get(rule, nearest_up))]
    if result == values[-1]:
        past = fmt.max if saturate or not fmt.has_nan else np.inf if fmt.has_inf else np.nan
        return sign * past
    return sign * float(result) if result or fmt.has_negative_zero else 0.0


def midpoints(fmt: FloatFormat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of neighbours among the non-negative values and the point half way, as float64: low, middle, high.

    The last pair is `fmt.max` and the point past it.
    """
    values = np.array([float(value) for value in grid(fmt)])
    return values[:-1], (values[:-1] + values[1:]) / 2, values[1:]
