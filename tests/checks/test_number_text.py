"""Numbers as text: read exactly, and refused in one sentence."""

import math
from fractions import Fraction

import pytest

from utils.checks.number_text import read_number

MASK = -(10**9)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("-1e9", MASK),
        (".5", Fraction(1, 2)),
        ("2^-24", Fraction(1, 2**24)),
        ("2**-24", Fraction(1, 2**24)),
        ("2⁻²⁴", Fraction(1, 2**24)),
        ("-2^2", -4),  # a power binds tighter than a sign
        ("2^3^2", 512),
        ("1 + 2^-11", 1 + Fraction(1, 2048)),
        ("(1 + 2^-11) × 2^3", 8 + Fraction(1, 256)),
        ("1.6 × 2^-7", Fraction(16, 1280)),
        ("−1/−4", Fraction(1, 4)),
        ("10 - 3 - 2", 5),
        ("0x1.8p-3", Fraction(3, 16)),
        ("0xFF", 255),
        ("0b1.01", Fraction(5, 4)),
        ("1_000", 1000),
        ("inf", math.inf),
        ("-∞", -math.inf),
        ("Infinity", math.inf),
    ],
)
def test_a_number_is_read_exactly(text, value):
    assert read_number(text) == value


def test_minus_zero_and_nan_are_read():
    assert math.copysign(1, read_number("-0.0")) == -1
    assert math.isnan(read_number("NaN"))
    assert read_number("-0.5").denominator == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk",
        "1e",
        "0x",
        "0b",
        "1..2",
        "1,5",
        "1/0",
        "0^-1",
        "2^0.5",
        "(1",
        "1)",
        "1 2",
        "--",
        "1e99999",
        "9^99999",
        "1" * 2001,
        "2^",
        "0b12",
        "__import__('os')",
    ],
)
def test_what_is_no_number_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r'is not a number like "0\.1"'):
        read_number(text)
