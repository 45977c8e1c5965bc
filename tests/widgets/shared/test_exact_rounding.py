"""Fractions are rounded once, as `quantize` rounds what float64 holds."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.oracles import SMALL, midpoints, same_bits
from utils.formats import FORMATS
from utils.rounding import RULES, quantize, ties_to_even
from utils.widgets.shared.numbers.exact_rounding import floor_log2, quantize_exact


@pytest.mark.parametrize("x", [Fraction(1), Fraction(3, 2), Fraction(1, 3), Fraction(2**60 - 1), Fraction(1, 2**70)])
def test_the_binary_logarithm_is_rounded_down(x):
    assert Fraction(2) ** floor_log2(x) <= x < Fraction(2) ** (floor_log2(x) + 1)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fmt", [*(fmt for fmt in SMALL if fmt.bits <= 8), FORMATS["float16"]], ids=str)
def test_a_fraction_is_rounded_as_quantize_rounds_the_same_double(fmt, rule, saturate):
    low, middle, high = midpoints(fmt)
    values = np.concatenate([low, middle, high, (low + middle) / 2, (middle + high) / 2, [2 * fmt.max, 1e-45]])
    values = np.concatenate([values, -values])
    values = values[:: max(1, len(values) // 160)]
    expected = quantize(values, fmt, RULES[rule], saturate=saturate)
    got = np.array([quantize_exact(float(v) if v == 0 else Fraction(v), fmt, RULES[rule], saturate) for v in values])
    wrong = np.flatnonzero(~same_bits(got, expected))
    assert wrong.size == 0, f"{values[wrong[0]]!r}: {got[wrong[0]]!r} instead of {expected[wrong[0]]!r}"


@pytest.mark.parametrize("name", ["float64", "float32", "float16"])
@pytest.mark.parametrize("sign", [False, True])
def test_what_float64_cannot_hold_is_rounded_once(name, sign):
    fmt = FORMATS[name]
    above_tie = 1 + Fraction(fmt.eps) / 2 + Fraction(1, 10**40)  # as a double this is a tie, which goes to 1
    up, one = 1 + fmt.eps, 1.0
    rounded = {rule: quantize_exact(-above_tie if sign else above_tie, fmt, RULES[rule]) for rule in RULES}
    minus = -1 if sign else 1
    assert rounded == {
        "ties_to_even": minus * up,
        "ties_away": minus * up,
        "toward_zero": minus * one,
        "toward_positive": -one if sign else up,
        "toward_negative": -up if sign else one,
    }


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_far_beyond_every_format_overflows_and_what_is_far_below_underflows(name):
    fmt = FORMATS[name]
    huge, tiny = Fraction(10) ** 400, Fraction(1, 10**400)
    assert same_bits(quantize_exact(huge, fmt, ties_to_even), quantize(math.inf, fmt))
    assert quantize_exact(huge, fmt, RULES["toward_zero"]) == fmt.max
    assert quantize_exact(tiny, fmt, ties_to_even) == (0.0 if fmt.has_zero else fmt.smallest_normal)
    assert quantize_exact(tiny, fmt, RULES["toward_positive"]) == fmt.smallest_subnormal
