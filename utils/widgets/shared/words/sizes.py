"""Magnitudes and shares as people read them: the twin of sizes.js. Ties are rounded away from zero, as pages do."""

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

from utils.checks.number_text import superscript

_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)


def share_text(n: int, total: int) -> str:
    """Return n of total in percent, with three digits, and never as 0 or all where it is not."""
    percent = 100 * n / total
    text = format(_THREE_DIGITS.create_decimal(Decimal(percent)).normalize(), "f")
    if n > 0 and percent < 0.01:
        return "less than 0.01\u00a0%"
    return "more than 99.9\u00a0%" if text == "100" and n < total else f"{text}\u00a0%"


def power_text(power: int) -> str:
    """Return 2**power as the page writes it: 1, 2¹⁰, 2⁻³."""
    return "1" if power == 0 else "2" + superscript(power)


def scale_text(scale: float) -> str:
    """Return a scale as the page writes it: 2¹⁶ where it is a power of two."""
    significand, exponent = math.frexp(scale)
    return power_text(exponent - 1) if significand == 0.5 else size_text(scale)


def size_text(x: float, digits: int = 3) -> str:
    """Return a magnitude with a few digits, as the page does."""
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(x))
    if x == 0 or 1e-3 <= x < 1e6:
        return format(rounded.normalize(), "f")
    power = rounded.adjusted()
    return f"{rounded.scaleb(-power).normalize():f}\u00a0×\u00a010{power_text(power)[1:]}"


def with_commas(text: str) -> str:
    """Return text that begins with a whole number with commas between its groups of three digits."""
    return re.sub(r"^\d{4,}", lambda match: f"{int(match[0]):,}", text)
