"""What becomes of one number in a format: its fate by name, in exact arithmetic; the twin of format_fate.js.

A number is what `utils.checks.number_text` reads: a Fraction, or a float for an infinity, NaN and -0.
"""

import math
from fractions import Fraction
from typing import NamedTuple

from utils.checks.number_text import Number
from utils.formats import FloatFormat
from utils.rounding import RULES
from utils.widgets.shared.numbers.exact_rounding import round_to_grid


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


def fate(value: Number, fmt: FloatFormat, rounding: str = "ties_to_even", saturate: bool = False) -> Fate:
    """Say what the format makes of a number, as `utils.rounding.quantize` rounds, but from its exact value.

    `rounding`: a name of `utils.rounding.RULES`. `saturate`: the OFP8 conversion mode, here for every format. Raises
    KeyError for an unknown rule.
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
    rounded = abs(round_to_grid(value, fmt, RULES[rounding]))
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
