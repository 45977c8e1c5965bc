"""NumberLine: the values of a format as ticks on a line, and where each rounding rule sends a number x."""

import ast
import html
import re
from fractions import Fraction
from math import inf

import numpy as np
import traitlets

from utils import rounding as rules
from utils.formats import FORMATS, FloatFormat
from utils.rounding import Rounding, quantize
from utils.widgets.bit_flip import value_text
from utils.widgets.book_widget import BookWidget, format_label

RULES: dict[str, Rounding | None] = {
    "ties_to_even": rules.ties_to_even,
    "ties_away": rules.ties_away,
    "toward_zero": rules.toward_zero,
    "toward_positive": rules.toward_positive,
    "toward_negative": rules.toward_negative,
    "stochastic": None,  # two results, each with a probability
}
RULE_NAMES = {name: name.replace("_", " ").replace("positive", "+∞").replace("negative", "−∞") for name in RULES}
SHORT_LIST = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")

_MOST_EXPONENT = 5000
_MOST_BITS = 20000
_TOKEN = re.compile(
    r"0x([\da-f]*)(?:\.([\da-f]*))?(?:p([+-]?\d+))?|0b([01]*)(?:\.([01]*))?|(?:\d+\.?\d*|\.\d+)(?:e([+-]?\d+))?"
)


def read_number(text: str) -> tuple[bool, Fraction]:
    """Read a number exactly, as the page does: "3.1415", "1/3", "2^-24", "0x1.8p-3", "1 + 2^-11".

    Returns its sign (True for minus, of zero too) and its magnitude. Raises ValueError for anything else, infinities
    and NaN included: they have no place on the line.
    """
    refusal = ValueError(f'{text!r} is not a finite number like "3.1415", "1/3", "2^-24"')
    numbers: list[Fraction] = []

    def keep(token: re.Match) -> str:
        numbers.append(_token_value(token, refusal))
        return f"n{len(numbers) - 1}"

    plain = text.lower().replace("−", "-").replace("×", "*").replace("**", "^")
    if len(text) > 2000 or re.search(r"n|__|//|[^\da-fxp.+\-*/^()\s_]", plain):
        raise refusal
    plain = re.sub(r"(?<=\d)_(?=[\da-f])", "", plain)
    try:
        tree = ast.parse(_TOKEN.sub(keep, plain).strip().replace("^", "**"), mode="eval")
        return _evaluate(tree.body, numbers)
    except (SyntaxError, ZeroDivisionError, OverflowError, RecursionError, _NoNumber):
        raise refusal from None


class _NoNumber(Exception):
    """Text that parses, but as no number."""


def _token_value(token: re.Match, refusal: ValueError) -> Fraction:
    text = token[0]
    whole, part, power, bits, bit_part, ten = token.groups()
    if any(abs(int(exponent)) > _MOST_EXPONENT for exponent in (power, ten) if exponent):
        raise refusal
    if not text.startswith(("0x", "0b")):
        return Fraction(text)
    digits, after, base = (whole, part or "", 16) if text[1] == "x" else (bits, bit_part or "", 2)
    if not digits + after:
        raise refusal
    return Fraction(int(digits + after, base)) * Fraction(2) ** int(power or 0) / base ** len(after)


def _evaluate(node: ast.AST, numbers: list[Fraction]) -> tuple[bool, Fraction]:
    match node:
        case ast.Name(id=name) if re.fullmatch(r"n\d+", name):
            return False, numbers[int(name[1:])]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
            sign, size = _evaluate(operand, numbers)
            return sign != isinstance(op, ast.USub), size
        case ast.BinOp(left=left, op=op, right=right):
            return _operation(op, _evaluate(left, numbers), _evaluate(right, numbers))
    raise _NoNumber


def _operation(op: ast.operator, left: tuple[bool, Fraction], right: tuple[bool, Fraction]) -> tuple[bool, Fraction]:
    (sign, a), (other, b) = left, right
    match op:
        case ast.Mult():
            return sign != other, a * b
        case ast.Div():
            return sign != other, a / b
        case ast.Add() | ast.Sub():
            y = (-a if sign else a) + (-b if other != isinstance(op, ast.Sub) else b)
            return y < 0, abs(y)
        case ast.Pow() if b.denominator == 1 and b * _bits(a) <= _MOST_BITS:
            return sign and b % 2 == 1, a ** (-int(b) if other else int(b))
    raise _NoNumber


def _bits(x: Fraction) -> int:
    return x.numerator.bit_length() + x.denominator.bit_length()


def quantize_exact(sign: bool, size: Fraction, fmt: FloatFormat, rounding: Rounding, saturate: bool = False) -> float:
    """Round a fraction that float64 may not hold, once, as `utils.rounding.quantize` rounds what it holds.

    The rule sees the number of gaps, with its fraction replaced by one on the same side of the middle: 1/4, 1/2, 3/4.
    """
    e = min(max(_floor_log2(size), fmt.emin), fmt.emax) if size else fmt.emin
    step = Fraction(2) ** (e - fmt.mantissa_bits)
    end = Fraction(fmt.max) / (Fraction(2) ** (fmt.emax - fmt.mantissa_bits)) + 1
    gaps = min(size / step, end - Fraction(1, 4)) if e == fmt.emax else size / step
    whole = gaps.numerator // gaps.denominator
    rest = gaps - whole
    stand_in = whole % 2 + (0.0 if rest == 0 else 0.5 if 2 * rest == 1 else 0.25 if 2 * rest < 1 else 0.75)
    rounded = abs(float(rounding(np.float64(-stand_in if sign else stand_in))))
    y = (whole - whole % 2 + Fraction(rounded)) * step
    if size and not fmt.has_zero:
        y = max(y, Fraction(fmt.smallest_normal))
    magnitude = inf if y > Fraction(fmt.max) else float(y)
    return float(quantize(-magnitude if sign else magnitude, fmt, saturate=saturate))


def _floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


class NumberLine(BookWidget):
    """Move x on the line of a format's values and see where each rounding rule sends it.

    `format`: a name of `utils.formats.FORMATS`. `x`, `low`, `high`: numbers as text, read exactly ("0.3", "1/3",
    "2^-24"); without `low` and `high` the line shows the values around x. `rounding`: a name of `RULES`, the rule that
    is drawn. `formats`: the names that the reader may choose from. `saturate`: whether what overflows is stored as the
    largest value. All of them are read and set from Python while the page shows the widget; a drag is sent when it
    ends.

    Raises ValueError for an unknown format or rule, for text that is no finite number, and for low >= high.
    """

    book_name = "number_line"
    esm_parts = (
        *BookWidget.esm_parts, "number_line_grid", "number_line_view", "number_line_words", "number_line_geometry",
        "number_line_picture", "number_line_panels",
    )  # fmt: skip

    format = traitlets.Unicode("float16").tag(sync=True)
    x = traitlets.Unicode("0.3").tag(sync=True)
    low = traitlets.Unicode("").tag(sync=True)
    high = traitlets.Unicode("").tag(sync=True)
    rounding = traitlets.Unicode("ties_to_even").tag(sync=True)
    formats = traitlets.List(traitlets.Unicode()).tag(sync=True)
    saturate = traitlets.Bool(False).tag(sync=True)

    def __init__(self, format: str = "float16", x: str = "0.3", *, formats=SHORT_LIST, **kwargs):
        super().__init__(format=format, x=x, formats=list(formats), **kwargs)
        self._check_bounds()

    @property
    def fmt(self) -> FloatFormat:
        """The format itself."""
        return FORMATS[self.format]

    def results(self) -> dict[str, tuple[tuple[float, Fraction], ...]]:
        """Give what each rule makes of x: by its name the possible values, each with its probability."""
        sign, size = read_number(self.x)

        def stored(rule: Rounding) -> float:
            return quantize_exact(sign, size, self.fmt, rule, saturate=self.saturate)

        found = {name: ((stored(rule), Fraction(1)),) for name, rule in RULES.items() if rule}
        return found | {"stochastic": self._chances(sign, size, stored)}

    def _chances(self, sign: bool, size: Fraction, stored) -> tuple[tuple[float, Fraction], ...]:
        fmt = self.fmt
        e = min(max(_floor_log2(size), fmt.emin), fmt.emax) if size else fmt.emin
        gaps = size / Fraction(2) ** (e - fmt.mantissa_bits)
        out = gaps - gaps.numerator // gaps.denominator  # away from zero
        far = size >= Fraction(fmt.max) + Fraction(2) ** (fmt.emax - fmt.mantissa_bits)
        small = not fmt.has_zero and (sign or size < Fraction(fmt.smallest_normal))
        if out == 0 or far or small:
            return ((stored(rules.ties_to_even), Fraction(1)),)
        up = 1 - out if sign else out
        pair = ((stored(rules.toward_negative), 1 - up), (stored(rules.toward_positive), up))
        return pair if pair[0][0] != pair[1][0] else ((pair[0][0], Fraction(1)),)

    @traitlets.validate("format")
    def _valid_format(self, proposal) -> str:
        return _known(proposal["value"], FORMATS, "format")

    @traitlets.validate("formats")
    def _valid_formats(self, proposal) -> list[str]:
        return [_known(name, FORMATS, "format") for name in proposal["value"]]

    @traitlets.validate("rounding")
    def _valid_rounding(self, proposal) -> str:
        return _known(proposal["value"], RULES, "rounding")

    @traitlets.validate("x", "low", "high")
    def _valid_number(self, proposal) -> str:
        name, text = proposal["trait"].name, proposal["value"]
        if text or name == "x":
            try:
                read_number(text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return text

    def _check_bounds(self) -> None:
        if bool(self.low) != bool(self.high):
            raise ValueError(f"low and high come together, got {self.low!r} and {self.high!r}")
        if self.low and _signed(self.low) >= _signed(self.high):
            raise ValueError(f"low {self.low!r} is not below high {self.high!r}")

    def __repr__(self) -> str:
        bounds = f", low={self.low!r}, high={self.high!r}" if self.low else ""
        return f"NumberLine({self.format!r}, x={self.x!r}{bounds}, rounding={self.rounding!r})"

    def static_html(self) -> str:
        """Show what the six rules make of x, for pages without JavaScript."""
        rows = "".join(
            f"<tr><th scope='row'>{RULE_NAMES[name]}</th><td>{html.escape(_outcomes_text(outcomes))}</td></tr>"
            for name, outcomes in self.results().items()
        )
        label = format_label(self.fmt)
        return (
            f"<p>Here is a line with the values of {label}, on which x can be moved; it needs JavaScript."
            f" Where each rounding rule sends x = {html.escape(self.x)}:</p>"
            f"<table class='mp-nl-static'><thead><tr><th scope='col'>rounding rule</th>"
            f"<th scope='col'>stored in {label}</th></tr></thead><tbody>{rows}</tbody></table>"
        )


def _signed(text: str) -> Fraction:
    sign, size = read_number(text)
    return -size if sign else size


def _outcomes_text(outcomes: tuple[tuple[float, Fraction], ...]) -> str:
    if len(outcomes) == 1:
        return value_text(outcomes[0][0])
    return ", ".join(f"{value_text(value)} with {float(100 * chance):.3g} %" for value, chance in outcomes)


def _known(name: str, table: dict, what: str) -> str:
    if name not in table:
        raise ValueError(f"{what} {name!r} is not one of {', '.join(table)}")
    return name
