"""Update: one update added to one weight, what is stored, and what many such updates add up to."""

import html
import math
from fractions import Fraction
from functools import partial

import traitlets

from utils.checks.number_text import read_number
from utils.formats import FLOAT32, FORMATS, FloatFormat
from utils.rounding import toward_zero
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.exact_rounding import gap, quantize_exact
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.words.code_words import rounded_text

KEEPINGS = ("ties_to_even", "toward_zero", "stochastic", "kahan", "master")
COUNTS = (1, 10, 100, 1000)
HOLDABLE = tuple(name for name, fmt in FORMATS.items() if fmt.has_zero and fmt.precision <= 24)
USUAL = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float32")
_text = partial(rounded_text, digits=12)


class Update(BookWidget):
    """Add an update to a weight and see what is stored: lost, rounded, or kept somewhere else.

    `weight`, `update`: numbers as text, read exactly ("0.05", "1e-4", "2^-9", "-1e-3*0.3"). The weight is rounded to
    the format first; the update, which is added and may be negative, is taken as it is. `format`: a name in `HOLDABLE`.
    `keeping`: a name in `KEEPINGS`, the way of keeping that the picture shows. `count`: one of `COUNTS`, how often the
    update is made in the table. `formats`: the names that the reader may choose from. All but `formats` are read and
    set from Python while the page shows the widget.

    Raises: ValueError for a text that is no finite number, a weight beyond the largest value of the format, and a name
    or a count that is not one of those.
    """

    book_name = "update"

    weight = traitlets.Unicode("1").tag(sync=True)
    update = traitlets.Unicode("0.001").tag(sync=True)
    format = traitlets.Unicode("bfloat16").tag(sync=True)
    keeping = traitlets.Unicode("ties_to_even").tag(sync=True)
    count = traitlets.Int(1000).tag(sync=True)
    formats = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, weight: str = "1", update: str = "0.001", format: str = "bfloat16", *, formats=USUAL, **kwargs):
        super().__init__(weight=weight, update=update, format=format, formats=list(formats), **kwargs)
        if not math.isfinite(self.stored_weight):
            raise ValueError(f"weight {weight!r} is beyond the largest value, {self.fmt.max} in {self.format}")

    @property
    def fmt(self) -> FloatFormat:
        """The format itself."""
        return FORMATS[self.format]

    @property
    def stored_weight(self) -> float:
        """The weight as the format holds it: rounded once, from its exact value."""
        return quantize_exact(Fraction(read_number(self.weight)), self.fmt)

    @property
    def exact_update(self) -> Fraction:
        """The update as it was typed."""
        return Fraction(read_number(self.update))

    @property
    def share(self) -> Fraction:
        """|update| in units of half the gap beside the stored weight, on the side of the update."""
        return abs(self.exact_update) / (gap_beside(self.stored_weight, self.fmt, below=self.exact_update < 0) / 2)

    def stored(self, keeping: str, count: int = 1) -> float:
        """Return the stored weight after `count` updates, for each way of keeping but the stochastic one."""
        return updated(self.stored_weight, self.exact_update, self.fmt, keeping, count)

    @traitlets.validate("weight", "update")
    def _valid_number(self, proposal) -> str:
        text = proposal["value"]
        try:
            Fraction(read_number(text))
        except (ValueError, OverflowError):  # no number; an infinity
            raise ValueError(
                f'{proposal["trait"].name} {text!r} is not a finite number like "0.05", "1e-4", "2^-9" or "1/3"'
            ) from None
        return text

    @traitlets.validate("format")
    def _valid_format(self, proposal) -> str:
        return one_of(proposal["value"], HOLDABLE, "format")

    @traitlets.validate("formats")
    def _valid_formats(self, proposal) -> list[str]:
        return [one_of(name, HOLDABLE, "format") for name in proposal["value"]]

    @traitlets.validate("keeping")
    def _valid_keeping(self, proposal) -> str:
        return one_of(proposal["value"], KEEPINGS, "keeping")

    @traitlets.validate("count")
    def _valid_count(self, proposal) -> int:
        return one_of(proposal["value"], COUNTS, "count")

    def static_html(self) -> str:
        """Say what is stored after one update and after many, for pages without JavaScript."""
        label, weight, update = format_label(self.fmt), html.escape(self.weight), html.escape(self.update)
        rows = "".join(
            f"<tr><th>{name}</th><td>{_text(self.stored(keeping, self.count))}</td></tr>"
            for keeping, name in (
                ("ties_to_even", "ties to even"),
                ("toward_zero", "toward zero"),
                ("kahan", "Kahan, a second number beside it"),
                ("master", "a copy of a float32 master"),
            )
        )
        exact = float(Fraction(self.stored_weight) + self.count * self.exact_update)
        times = "one update" if self.count == 1 else f"{self.count} such updates"
        return (
            f"<p>In {label} {weight} is stored as {_text(self.stored_weight)}. One update of {update} with ties to "
            f"even gives {_text(self.stored('ties_to_even'))}: the update is {float(self.share):.3g} of half the gap "
            f"to the next value. After {times}, exactly {_text(exact)}:</p>"
            f'<table class="mp-up-static"><thead><tr><th>kept</th><th>stored</th></tr></thead><tbody>{rows}</tbody>'
            '</table><p class="mp-static-note">Here weight, update and format can be changed, and stochastic rounding '
            "compared; that needs JavaScript.</p>"
        )


def gap_beside(weight: float, fmt: FloatFormat, below: bool) -> Fraction:
    """Return the distance of a value of the format to the next one; below a power of two it is half of that above."""
    step = gap(abs(Fraction(weight)), fmt)
    inward = weight > 0 if below else weight < 0
    is_power = weight != 0 and math.frexp(abs(weight))[0] == 0.5 and abs(weight) > fmt.smallest_normal
    return step / 2 if inward and is_power else step


def updated(weight: float, update: Fraction, fmt: FloatFormat, keeping: str, count: int = 1) -> float:
    """Return a weight after `count` equal updates, each sum exact and rounded once; the twin of steps.js.

    `weight`: a value of the format. `keeping`: "ties_to_even"; "toward_zero"; "kahan" as in `kahan_updated`; "master",
    a float32 weight of which the result is a copy.

    Raises: ValueError for another way of keeping.
    """
    if keeping == "kahan":
        return kahan_updated(weight, update, fmt, count)[0]
    if keeping == "master":
        return quantize_exact(updated(weight, update, FLOAT32, "ties_to_even", count), fmt)
    rule = {"toward_zero": {"rounding": toward_zero}, "ties_to_even": {}}
    one_of(keeping, rule, "keeping")
    for _ in range(count):
        before, weight = weight, _rounded(Fraction(weight) + update, fmt, **rule[keeping])
        if weight == before or not math.isfinite(weight):
            break
    return weight


def kahan_updated(weight: float, update: Fraction, fmt: FloatFormat, count: int = 1) -> tuple[float, float]:
    """Return (weight, c) after `count` updates: s = weight + c + update; weight = s, c = s - weight, each rounded.

    The algorithm of `utils.training.optimizers.Kahan`, with an exact s for its float32 one and the other sign of c: c
    starts at 0 and is what the weight still lacks. `utils.accumulation.kahan_sum` rounds update + c to the format as
    well.
    """
    c = 0.0
    for _ in range(count):
        total = Fraction(weight) + Fraction(c) + update
        weight = _rounded(total, fmt)
        if not math.isfinite(weight):
            return weight, math.nan
        c = _rounded(total - Fraction(weight), fmt)
    return weight, c


def _rounded(total: Fraction, fmt: FloatFormat, **rule) -> float:
    step = gap(abs(total), fmt)
    nearest = round(total / step) * step  # Python's round sends ties of fractions to even, and takes no time
    if not rule and abs(nearest) <= fmt.max:
        return float(nearest)
    return quantize_exact(total, fmt, **rule) if total else 0.0
