"""Codes and their values in words: the twin of code_words.js and of `briefText` in shared/numbers/number_text.js."""

import math
from decimal import Decimal

import utils.formats as formats
from utils.formats import FloatFormat
from utils.widgets.shared.numbers.formats import format_label


def formula_text(code: int, fmt: FloatFormat) -> str:
    """Return the formula of a code with its numbers filled in, as the page's `formulaText` does."""
    sign, exponent, mantissa = (int(part) for part in formats.fields(code, fmt))
    value = float(formats.decode(code, fmt))
    if not math.isfinite(value):
        return _special_reason(value, fmt)
    normal = exponent > 0 or not fmt.has_zero
    sign_text = f"(−1)^{sign} × " if fmt.signed else ""
    fraction_text = f" × ({int(normal)} + {mantissa}/{2**fmt.mantissa_bits})" if fmt.mantissa_bits else ""
    return f"{sign_text}2^({exponent if normal else 1} − {fmt.bias}){fraction_text}"


def _special_reason(value: float, fmt: FloatFormat) -> str:
    label = format_label(fmt)
    if fmt.specials == formats.NEGATIVE_ZERO:
        return f"the code that would be −0 is the only NaN of {label}"
    if fmt.specials == formats.ALL_ONES:
        bits = "bits after the sign" if fmt.signed else "bits"
        return f"all {bits} are 1: that code is NaN, and {label} has no infinity"
    what = "the fraction is not 0: NaN" if math.isnan(value) else "the fraction is 0: infinity"
    return f"all exponent bits are 1 and {what}"


def rounded_text(value: float, digits: int) -> str:
    """Return a value as text, rounded to so many digits."""
    return f"{value:.{digits}g}".replace("-", "−").replace("inf", "∞").replace("nan", "NaN")


def value_text(value: float) -> str:
    """Return a value as text: all its digits where these are few, else as few as read back, but three."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "−∞" if value < 0 else "∞"
    exact = f"{Decimal(value):f}"
    if len(exact) > 24:
        digits = len(Decimal(repr(value)).normalize().as_tuple().digits)
        exact = f"about {value:.2e}" if digits < 3 else f"about {value!r}"
    return exact.replace("-", "−")
