"""NumberLine: the values of a format as ticks on a line, and where each rounding rule sends a number x."""

import html
from fractions import Fraction
from math import inf

import traitlets

from utils import rounding as rules
from utils.checks.number_text import Number, read_number
from utils.formats import FORMATS, FloatFormat
from utils.rounding import Rounding
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.exact_rounding import gap, quantize_exact
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.static_table import static_table
from utils.widgets.shared.words.code_words import value_text

RULES: dict[str, Rounding | None] = {**rules.RULES, "stochastic": None}  # two results, each with a probability
RULE_NAMES = {name: name.replace("_", " ").replace("positive", "+∞").replace("negative", "−∞") for name in RULES}
SHORT_LIST = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")


class NumberLine(BookWidget):
    """Move x on the line of a format's values and see where each rounding rule sends it.

    `format`: a name of `utils.formats.FORMATS`. `x`, `low`, `high`: numbers as text, read exactly ("0.3", "1/3",
    "2^-24"); without `low` and `high` the line shows the values around x. `rounding`: a name of `RULES`, the rule that
    is drawn. `formats`: the names that the reader may choose from. `saturate`: whether what overflows is stored as the
    largest value. All of them are read and set from Python while the page shows the widget; a drag is sent when it
    ends.

    Raises: ValueError for an unknown format or rule, for text that is no finite number, and for low >= high.
    """

    book_name = "number_line"

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
        """Return what each rule makes of x: by its name the possible values, each with its probability."""
        x = _finite(self.x)

        def stored(rule: Rounding) -> float:
            return quantize_exact(x, self.fmt, rule, saturate=self.saturate)

        outcomes = {name: ((stored(rule), Fraction(1)),) for name, rule in rules.RULES.items()}
        return outcomes | {"stochastic": self._chances(Fraction(x), stored)}

    def _chances(self, x: Fraction, stored) -> tuple[tuple[float, Fraction], ...]:
        fmt, size, sign = self.fmt, abs(x), x < 0
        gaps = size / gap(size, fmt)
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
        return one_of(proposal["value"], FORMATS, "format")

    @traitlets.validate("formats")
    def _valid_formats(self, proposal) -> list[str]:
        return [one_of(name, FORMATS, "format") for name in proposal["value"]]

    @traitlets.validate("rounding")
    def _valid_rounding(self, proposal) -> str:
        return one_of(proposal["value"], RULES, "rounding")

    @traitlets.validate("x", "low", "high")
    def _valid_number(self, proposal) -> str:
        name, text = proposal["trait"].name, proposal["value"]
        if text or name == "x":
            try:
                _finite(text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return text

    def _check_bounds(self) -> None:
        if bool(self.low) != bool(self.high):
            raise ValueError(f"low and high come together, got {self.low!r} and {self.high!r}")
        if self.low and _finite(self.low) >= _finite(self.high):
            raise ValueError(f"low {self.low!r} is not below high {self.high!r}")

    def __repr__(self) -> str:
        bounds = f", low={self.low!r}, high={self.high!r}" if self.low else ""
        return f"NumberLine({self.format!r}, x={self.x!r}{bounds}, rounding={self.rounding!r})"

    def static_html(self) -> str:
        """Show what the six rules make of x, for pages without JavaScript."""
        rows = [(RULE_NAMES[name], _outcomes_text(outcomes)) for name, outcomes in self.results().items()]
        label = format_label(self.fmt)
        return (
            f"<p>Here is a line with the values of {label}, on which x can be moved; it needs JavaScript."
            f" Where each rounding rule sends x = {html.escape(self.x)}:</p>"
            f"{static_table('mp-nl-static', ('rounding rule', f'stored in {label}'), rows)}"
        )


def _finite(text: str) -> Number:
    """Read a number that has a place on the line: a Fraction, or -0.0."""
    try:
        value = read_number(text)
    except ValueError:
        value = inf
    if isinstance(value, float) and value != 0:
        raise ValueError(f'{text!r} is not a finite number like "3.1415", "1/3", "2^-24"')
    return value


def _outcomes_text(outcomes: tuple[tuple[float, Fraction], ...]) -> str:
    if len(outcomes) == 1:
        return value_text(outcomes[0][0])
    return ", ".join(f"{value_text(value)} with {float(100 * chance):.3g} %" for value, chance in outcomes)
