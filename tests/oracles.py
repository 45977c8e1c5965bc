"""Independent answers to hold ours against: ml_dtypes, NumPy, and exact rational arithmetic."""

from fractions import Fraction

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
