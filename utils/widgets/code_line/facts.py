"""What CodeLine says in Python: the codes of a narrow format in the order of their values, and each in words."""

import math
from collections import Counter
from decimal import Decimal

import numpy as np

from utils.formats import ALL_ONES, FORMATS, IEEE, FloatFormat, decode
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.words.sizes import power_text

MOST_BITS = 8
LINE_FORMATS = tuple(name for name, fmt in FORMATS.items() if fmt.bits <= MOST_BITS)
ONE = {"normal": "normal", "subnormal": "subnormal", "zero": "zero", "infinity": "infinity", "nan": "NaN"}
MANY = ONE | {"zero": "zeros", "infinity": "infinities"}
DECIMALS = (2.0**-7, 2.0**20)  # in between a value is written in decimals, outside as 1.75 × 2⁻¹⁶


def codes_in_order(fmt: FloatFormat) -> list[int]:
    """Return all codes of a format from the most negative to the largest; NaNs and infinities by their bits."""
    codes = list(range(2**fmt.bits))
    return codes[: fmt.sign_code - 1 : -1] + codes[: fmt.sign_code] if fmt.signed else codes


def value_of(code: int, fmt: FloatFormat) -> float:
    """Return the value of one code."""
    return float(decode(code, fmt))


def kind_of(code: int, fmt: FloatFormat) -> str:
    """Return the class of a code, one of `ONE`."""
    value = value_of(code, fmt)
    if math.isnan(value) or math.isinf(value):
        return "nan" if math.isnan(value) else "infinity"
    if value == 0:
        return "zero"
    return "subnormal" if abs(value) < fmt.smallest_normal else "normal"


def value_in_short(value: float) -> str:
    """Return a value exactly: 448, 57,344, 0.0625, 1.75 × 2⁻¹⁶."""
    if math.isnan(value):
        return "NaN"
    minus = "−" if math.copysign(1.0, value) < 0 else ""
    size = abs(value)
    if size == 0 or math.isinf(size):
        return f"{minus}{'∞' if size else '0'}"
    if DECIMALS[0] <= size < DECIMALS[1]:
        return f"{minus}{Decimal(size).normalize():,f}"
    significand, exponent = math.frexp(size)
    power = power_text(exponent - 1)
    return f"{minus}{power}" if significand == 0.5 else f"{minus}{2 * significand:g} × {power}"


def census_text(fmt: FloatFormat) -> str:
    """Say how many codes are what: 256 codes: 238 normal, 14 subnormal, 2 zeros, 2 NaN."""
    counts = Counter(kind_of(code, fmt) for code in range(2**fmt.bits))
    parts = [f"{n} {(ONE if n == 1 else MANY)[kind]}" for kind in ONE if (n := counts[kind])]
    return f"{2**fmt.bits} codes: {', '.join(parts)}"


def reading(code: int, fmt: FloatFormat) -> str:
    """Say what one code is, and how far its neighbours are: what the page says too."""
    value = value_of(code, fmt)
    name = f"{format_label(fmt)} 0x{code:0{-(-fmt.bits // 4)}X} is {value_in_short(value)}"
    if not math.isfinite(value):
        return f"{name}: {_reason(fmt, infinite=math.isinf(value))}."
    return f"{name}, {_rank(code, fmt)}. {_neighbours(value, fmt)}"


def _reason(fmt: FloatFormat, *, infinite: bool) -> str:
    if fmt.specials == IEEE:
        return f"its exponent bits are all 1 and its fraction is {'' if infinite else 'not '}0"
    if fmt.specials == ALL_ONES:
        return f"its bits{' after the sign' if fmt.signed else ''} are all 1"
    return f"the code that would be −0 is the only NaN of {format_label(fmt)}"


def _rank(code: int, fmt: FloatFormat) -> str:
    kind, size = kind_of(code, fmt), code & ~fmt.sign_code
    if kind == "zero":
        return "its zero with a sign" if code else "its zero"
    normal = 2**fmt.mantissa_bits if fmt.has_zero else 0
    named = {fmt.max_code: "largest value", normal: "smallest normal number"}
    if fmt.has_zero:
        named = {1: "smallest subnormal number", normal - 1: "largest subnormal number"} | named
    if fmt.has_zero and normal == 2:
        named[1] = "only subnormal number"
    minus = "minus " if code != size else ""
    return f"{minus}its {named[size]}" if size in named else f"a {kind} number"


def _neighbours(value: float, fmt: FloatFormat) -> str:
    values = np.unique(decode(np.arange(2**fmt.bits), fmt) + 0.0)  # −0 + 0 = 0: one zero
    values = values[np.isfinite(values)]
    at = int(np.searchsorted(values, value))
    near = [float(values[i]) for i in (at - 1, at + 1) if 0 <= i < values.size]
    gaps = [value_in_short(abs(other - value)) for other in near]
    names = [value_in_short(other) for other in near]
    if len(near) == 1:
        return f"Its only neighbour is {names[0]}, at a distance of {gaps[0]}."
    if gaps[0] == gaps[1]:
        return f"Its neighbours are {names[0]} and {names[1]}, each at a distance of {gaps[0]}."
    return f"Its neighbours are {names[0]} and {names[1]}, at distances of {gaps[0]} and {gaps[1]}."
