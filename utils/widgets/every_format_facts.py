"""What becomes of one number in a format: its fate by name, in exact arithmetic; the twin of every_format_fate.js.

A number is a Fraction; the infinities, NaN and -0, which no Fraction can be, are floats.
"""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from utils.formats import FloatFormat

Number = Fraction | float

MOST_CHARACTERS, MOST_EXPONENT, MOST_BITS = 2000, 5000, 20000  # as in number_text.js
ALMOST_ONE = 1 - Fraction(1, 2**64)
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
TOKEN = re.compile(
    r"\s*(?:(?P<based>0x(?=\.?[\da-f])[\da-f]*(?:\.[\da-f]*)?(?:p[+-]?\d+)?|0b(?=\.?[01])[01]*(?:\.[01]*)?)"
    r"|(?P<decimal>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(?P<sign>[-+*/^()]))"
)

# A rule takes a magnitude in ulps and whether the number is negative, and gives whole ulps.
RULES: dict[str, Callable[[Fraction, bool], int]] = {
    "ties_to_even": lambda q, negative: round(q),
    "ties_away": lambda q, negative: math.floor(q + Fraction(1, 2)),
    "toward_zero": lambda q, negative: math.floor(q),
    "toward_positive": lambda q, negative: math.floor(q) if negative else math.ceil(q),
    "toward_negative": lambda q, negative: math.ceil(q) if negative else math.floor(q),
}


class Fate(NamedTuple):
    """What a format makes of a number: the name of its fate, the value stored, its error, the fate in words.

    `kind`: "kept" (an infinity or NaN), "exact", "rounded", "subnormal", "underflow", "overflow", "saturated", "held"
    (too large, but the rule never rounds past the largest), "sign_lost", "no_sign", "no_zero" or "nan_lost".
    `stored` is None where nothing is. `error` is |stored - value| / |value|: infinite for an infinity out of a finite
    value, None where it has no meaning. `bits_left`: significant bits of a subnormal, else None.
    """

    kind: str
    stored: Number | None
    error: Number | None
    words: str
    bits_left: int | None = None


def read_number(text: str) -> Number:
    """Read what the page reads: 0.1, 1/3, 2^-24, 1 + 2**-11, 0x1.8p-3, 0b1.01, 1.6 × 2⁻⁷, inf, nan.

    Raises ValueError for anything else, and for more digits or larger exponents than the page takes.
    """
    plain = re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda run: "^" + run[0].translate(SUPERSCRIPTS), text.strip().lower())
    for typed, meant in (("−", "-"), ("–", "-"), ("×", "*"), ("·", "*"), ("÷", "/"), ("∞", "inf"), ("**", "^")):
        plain = plain.replace(typed, meant)
    plain = re.sub(r"(?<=\d)_(?=[\da-f])", "", plain)
    if special := re.fullmatch(r"([+-]?)\s*(inf|infinity|nan)", plain):
        return float(special[1] + special[2])
    tokens, at = [], 0
    while at < len(plain) and (found := TOKEN.match(plain, at)):
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    try:
        if at < len(plain) or not tokens or len(plain) > MOST_CHARACTERS:
            raise ValueError("no number, or a long one")
        tokens.append(("end", ""))
        value = _sum(tokens)
        if tokens[0][0] != "end":
            raise ValueError("a sign too many")
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f'value {text!r} is not a number like "0.1", "1/3", "2^-24", "0x1.8p-3", "inf", "nan"'
        ) from None
    return -0.0 if value == 0 and re.match(r"-\s*[\d.]", plain) else value


def _take(tokens: list, signs: str) -> str:
    return tokens.pop(0)[1] if tokens[0][0] == "sign" and tokens[0][1] in signs else ""


def _sum(tokens: list) -> Fraction:
    left = _product(tokens)
    while sign := _take(tokens, "+-"):
        right = _product(tokens)
        left = left + right if sign == "+" else left - right
    return left


def _product(tokens: list) -> Fraction:
    left = _signed(tokens)
    while sign := _take(tokens, "*/"):
        right = _signed(tokens)
        left = left * right if sign == "*" else left / right
    return left


def _signed(tokens: list) -> Fraction:
    if sign := _take(tokens, "+-"):
        return _signed(tokens) if sign == "+" else -_signed(tokens)
    base = _atom(tokens)
    if not _take(tokens, "^"):
        return base
    exponent = _signed(tokens)
    size = base.numerator.bit_length() + base.denominator.bit_length()
    if exponent.denominator != 1 or abs(exponent) * size > MOST_BITS:
        raise ValueError("an exponent is a whole number, and not a huge one")
    return base**exponent.numerator


def _atom(tokens: list) -> Fraction:
    kind, text = tokens.pop(0)
    if kind == "decimal":
        _check_exponent(text.partition("e")[2])
        return Fraction(text)
    if kind == "based":
        return _based(text)
    if text != "(":
        raise ValueError("a number is missing")
    inside = _sum(tokens)
    if not _take(tokens, ")"):
        raise ValueError("a bracket is not closed")
    return inside


def _based(text: str) -> Fraction:
    digits, _, power = text[2:].partition("p")
    whole, _, fraction = digits.partition(".")
    _check_exponent(power)
    base = 16 if text[1] == "x" else 2
    return Fraction(int(whole + fraction, base), base ** len(fraction)) * Fraction(2) ** int(power or 0)


def _check_exponent(text: str) -> None:
    if abs(int(text or 0)) > MOST_EXPONENT:
        raise ValueError("a huge exponent")


def floor_log2(x: Fraction) -> int:
    """Give the largest e with 2**e <= x, for a positive x."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def _grid(size: Fraction, fmt: FloatFormat, rule: str, negative: bool) -> Fraction:
    """Round a positive magnitude on the format's grid, continued by one point past its largest value."""
    e = min(max(floor_log2(size), fmt.emin), fmt.emax)
    step = Fraction(2) ** (e - fmt.mantissa_bits)
    last = Fraction(fmt.max) / step
    q = min(size / step, last + ALMOST_ONE) if e == fmt.emax else size / step
    return RULES[rule](q, negative) * step


def fate(value: Number, fmt: FloatFormat, rounding: str = "ties_to_even", saturate: bool = False) -> Fate:
    """Say what the format makes of a number, as `utils.rounding.quantize` rounds, but from its exact value.

    `rounding`: a name of `RULES`. `saturate`: the OFP8 conversion mode, here for every format. Raises KeyError for an
    unknown rule.
    """
    if value != value:
        return (
            Fate("kept", value, None, "kept")
            if fmt.has_nan
            else Fate("nan_lost", None, None, "NaN lost: no code for it")
        )
    if isinstance(value, float) and math.isfinite(value) and value != 0:
        value = Fraction(value)  # only -0, the infinities and NaN stay floats
    negative = value < 0 or (isinstance(value, float) and math.copysign(1, value) < 0)
    if not fmt.has_zero and (value == 0 or negative):
        what = "zero" if value == 0 else "sign"
        return Fate(f"no_{what}", math.nan, None, f"cannot hold a {what}: NaN")
    if value == 0:
        lost = negative and not fmt.has_negative_zero
        return Fate("sign_lost", 0.0, 0, "sign of zero lost") if lost else Fate("exact", value, 0, "exact")
    if isinstance(value, float):  # an infinity: NaN and -0 have left above
        if fmt.has_inf and not saturate:
            return Fate("kept", value, None, "kept")
        return _too_large(value, fmt, negative, saturate)
    size, largest = abs(value), Fraction(fmt.max)
    rounded = _grid(size, fmt, rounding, negative)
    if rounded > largest:
        return _too_large(value, fmt, negative, saturate)
    if not fmt.has_zero:
        rounded = max(rounded, Fraction(fmt.smallest_normal))
    stored = -rounded if negative else rounded
    error = abs(rounded - size) / size
    last_step = Fraction(2) ** (fmt.emax - fmt.mantissa_bits)
    if rounded == largest and size >= largest + last_step:
        kind, words = ("saturated", "saturated: to") if saturate or not fmt.has_nan else ("held", "too large: stops at")
        return Fate(kind, stored, error, f"{words} {_short(stored, 'its largest')}{_why(fmt)}")
    if rounded == 0:
        minus = negative and fmt.has_negative_zero
        return Fate("underflow", -0.0 if minus else 0.0, 1, f"underflow: to {'−' if minus else ''}0")
    if not fmt.has_zero and size < fmt.smallest_normal:
        return Fate("underflow", stored, error, "underflow: to its smallest")
    if rounded < fmt.smallest_normal:
        bits = int(rounded / Fraction(fmt.smallest_subnormal)).bit_length()
        return Fate("subnormal", stored, error, f"subnormal: {bits} of {fmt.precision} bits left", bits)
    return Fate("rounded" if error else "exact", stored, error, "rounded" if error else "exact")


def _too_large(value: Number, fmt: FloatFormat, negative: bool, saturate: bool) -> Fate:
    infinite = isinstance(value, float)
    if saturate or not fmt.has_nan:
        stored = Fraction(-fmt.max if negative else fmt.max)
        error = None if infinite else abs(stored - value) / abs(value)
        return Fate("saturated", stored, error, f"saturated: to {_short(stored, 'its largest')}{_why(fmt)}")
    if fmt.has_inf:
        stored = -math.inf if negative else math.inf
        return Fate("overflow", stored, math.inf, f"overflow: to {'−' if negative else ''}∞")
    return Fate("overflow", math.nan, None, "overflow: to NaN (no infinity)")


def _why(fmt: FloatFormat) -> str:
    """The reason why a format has no other choice than to saturate."""
    return "" if fmt.has_nan else " (no ∞, no NaN)"


def _short(value: Fraction, otherwise: str) -> str:
    """A number of a few digits as text, a longer one in words."""
    text = f"{float(value):g}".replace("-", "−")
    return text if "e" not in text and Fraction(text.replace("−", "-")) == value else otherwise
