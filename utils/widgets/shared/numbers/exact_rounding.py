"""Rounding of numbers that float64 may not hold: fractions, once and exactly, by the rules of `utils.rounding`."""

import math
from fractions import Fraction

import numpy as np

from utils.formats import FloatFormat
from utils.rounding import Rounding, quantize, ties_to_even


def floor_log2(x: Fraction) -> int:
    """Return the largest e with 2**e <= x, for a positive x."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def gap(size: Fraction, fmt: FloatFormat) -> Fraction:
    """Return the format's spacing at a magnitude, as `utils.rounding.ulp` does."""
    e = min(max(floor_log2(size), fmt.emin), fmt.emax) if size else fmt.emin
    return Fraction(2) ** (e - fmt.mantissa_bits)


def round_to_grid(x: Fraction, fmt: FloatFormat, rounding: Rounding = ties_to_even) -> Fraction:
    """Round x on the format's grid continued by one point past `fmt.max`, as `utils.rounding.round_to_grid` does.

    `rounding`: a deterministic rule. It sees the number of gaps with its fraction replaced by one on the same side of
    the middle, 1/4, 1/2 or 3/4, which float64 holds.
    """
    size, step = abs(x), gap(abs(x), fmt)
    last_step = Fraction(2) ** (fmt.emax - fmt.mantissa_bits)
    end = Fraction(fmt.max) / last_step + 1  # the first point past the grid, in gaps
    gaps = min(size / step, end - Fraction(1, 4)) if step == last_step else size / step
    whole = gaps.numerator // gaps.denominator
    rest = gaps - whole
    stand_in = whole % 2 + (0.0 if rest == 0 else 0.5 if 2 * rest == 1 else 0.25 if 2 * rest < 1 else 0.75)
    rounded = abs(float(rounding(np.float64(-stand_in if x < 0 else stand_in))))
    y = (whole - whole % 2 + Fraction(rounded)) * step
    return -y if x < 0 else y


def quantize_exact(
    x: Fraction | float, fmt: FloatFormat, rounding: Rounding = ties_to_even, saturate: bool = False
) -> float:
    """Round a number to the values of a format, as `utils.rounding.quantize` rounds what float64 holds."""
    if isinstance(x, float):
        return float(quantize(x, fmt, rounding, saturate))
    y = round_to_grid(x, fmt, rounding)
    if x > 0 and not fmt.has_zero:
        y = max(y, Fraction(fmt.smallest_normal))
    size = math.inf if abs(y) > Fraction(fmt.max) else float(abs(y))
    return float(quantize(-size if x < 0 else size, fmt, saturate=saturate))
