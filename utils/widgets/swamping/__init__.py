"""Swamping: a number added again and again to a growing sum, until nothing happens."""

import html
import math
from fractions import Fraction
from functools import partial

import traitlets

from utils.accumulation import stall
from utils.checks.number_text import read_number
from utils.formats import FORMATS, FloatFormat
from utils.rounding import ulp
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.exact_rounding import quantize_exact
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.words.code_words import rounded_text

SUMMABLE = tuple(name for name, fmt in FORMATS.items() if fmt.has_zero and fmt.precision <= 24)
USUAL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "tf32", "float32")
LIMITS = {"steps": (1, 1_000_000), "count": (0, 100_000_000)}  # the page itself counts past 2**24, in float32
_number = partial(rounded_text, digits=10)


class Swamping(BookWidget):
    """Add an increment to a sum in a narrow format, with Kahan's sum and the exact one beside it.

    `format`: a name in `SUMMABLE`; `formats`: the names that the reader may choose from. `increment` and `start`:
    numbers as text ("1", "0.1", "1/3"), so that they are exact; both are rounded to the format before the first
    addition. `steps`: how many additions the button "run" makes. `count`: how many have been made; setting it from
    Python shows the sum at that point. `stochastic`: whether there is a lane with stochastic rounding.

    Raises: ValueError for a format that is not summable here, a text that is no finite number, an increment that is 0
    in the format, for a number beyond its largest value, and for a `steps` or a `count` outside `LIMITS`.
    """

    book_name = "swamping"

    format = traitlets.Unicode("bfloat16").tag(sync=True)
    increment = traitlets.Unicode("1").tag(sync=True)
    start = traitlets.Unicode("0").tag(sync=True)
    steps = traitlets.Int(4096).tag(sync=True)
    count = traitlets.Int(0).tag(sync=True)
    stochastic = traitlets.Bool(False).tag(sync=True)
    formats = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, format: str = "bfloat16", increment: str = "1", steps: int = 4096, *, formats=USUAL, **kwargs):
        super().__init__(format=format, increment=increment, steps=steps, formats=list(formats), **kwargs)
        for name in ("increment", "start"):
            stored, text = _stored(getattr(self, name), self.fmt), getattr(self, name)
            if not math.isfinite(stored):
                raise ValueError(f"{name} {text!r} is beyond the largest value, {self.fmt.max} in {self.format}")
            if stored == 0 and name == "increment":
                raise ValueError(f"increment {text!r} is 0 in {self.format}; choose another format or number")

    @property
    def fmt(self) -> FloatFormat:
        """The format itself."""
        return FORMATS[self.format]

    @property
    def stored_increment(self) -> float:
        """The increment as the format holds it: rounded once, from its exact value."""
        return _stored(self.increment, self.fmt)

    @property
    def stored_start(self) -> float:
        """The start as the format holds it."""
        return _stored(self.start, self.fmt)

    @traitlets.validate("format")
    def _valid_format(self, proposal) -> str:
        return one_of(proposal["value"], SUMMABLE, "format")

    @traitlets.validate("formats")
    def _valid_formats(self, proposal) -> list[str]:
        return [one_of(name, SUMMABLE, "format") for name in proposal["value"]]

    @traitlets.validate("increment", "start")
    def _valid_number(self, proposal) -> str:
        text = proposal["value"]
        try:
            Fraction(read_number(text))
        except (ValueError, OverflowError):  # no number; an infinity
            raise ValueError(
                f'{proposal["trait"].name} {text!r} is not a finite number like "1", "0.1" or "1/3"'
            ) from None
        return text

    @traitlets.validate("steps", "count")
    def _valid_count(self, proposal) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        least, most = LIMITS[name]
        if not least <= value <= most:
            raise ValueError(f"{name} {value} is not in {least} to {most}")
        return value

    def static_html(self) -> str:
        """Say where the sum stops, and why, for pages without JavaScript."""
        label, increment = format_label(self.fmt), html.escape(self.increment)
        increments = list(dict.fromkeys([self.increment, "1/4"]))
        heads = "".join(f"<th>adding {html.escape(text)} stops at</th>" for text in increments)
        rows = "".join(
            f"<tr><th>{format_label(FORMATS[name])}</th>"
            + "".join(f"<td>{self._end_in(FORMATS[name], text)}</td>" for text in increments)
            + "</tr>"
            for name in self.formats
        )
        return (
            f"<p>A sum in {label} to which {increment} is added again and again{self._from_start()}: "
            f"{self._why()}</p>"
            f'<table class="mp-swamp-static"><thead><tr><th>format</th>{heads}</tr></thead>'
            f"<tbody>{rows}</tbody></table>"
            '<p class="mp-static-note">Here the additions can be made one by one and watched in bits; '
            "that needs JavaScript.</p>"
        )

    def _from_start(self) -> str:
        return "" if self.stored_start == 0 else f", from {html.escape(self.start)} on"

    def _stall_in(self, fmt: FloatFormat, increment: str) -> float:
        return stall(_stored(increment, fmt), fmt, start=_stored(self.start, fmt))

    def _end_in(self, fmt: FloatFormat, increment: str) -> str:
        in_range = math.isfinite(_stored(increment, fmt)) and math.isfinite(_stored(self.start, fmt))
        return _number(self._stall_in(fmt, increment)) if in_range else "out of range"

    def _why(self) -> str:
        end = self._stall_in(self.fmt, self.increment)
        if not math.isfinite(end):
            return f"it overflows to {_number(end)}."
        gap = float(ulp(end, self.fmt))
        share = abs(self.stored_increment) / gap
        size = (
            "half of that gap, a tie that goes to the neighbour whose last bit is 0"
            if share == 0.5
            else "less than half of that gap"
        )
        return (
            f"it stops at {_number(end)}. There the gap to the next number is {_number(gap)}, and the increment is "
            f"{size}. Kahan’s sum keeps what was rounded off and goes on."
        )


def _stored(text: str, fmt: FloatFormat) -> float:
    """Round the exact number to the format, once."""
    return quantize_exact(Fraction(read_number(text)), fmt)
