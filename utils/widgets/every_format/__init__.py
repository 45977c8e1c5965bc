"""EveryFormat: one number, and what becomes of it in each of the thirteen formats."""

import html
import math
from decimal import Decimal
from fractions import Fraction

import traitlets

from utils.checks.number_text import Number, read_number
from utils.formats import FORMATS
from utils.rounding import RULES
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.format_fate import Fate, fate
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.static_table import static_table
from utils.widgets.shared.words.code_words import value_text

PRESETS = (
    ("0.1", ""),
    ("1e-8", "Adam’s ε"),
    ("1e-5", "layer norm’s ε"),
    ("2^-24", "float16’s smallest"),
    ("448", "E4M3’s largest"),
    ("65504", "float16’s largest"),
    ("65520", "first to overflow"),
    ("162754.79", "exp(12)"),
    ("-1e9", "a mask"),
)
ORDERS = ("error", "width", "range")


class EveryFormat(BookWidget):
    """Give one number, and see its bits, its stored value, its error and its fate in every format at once.

    `value`: a number as text, read exactly: "0.1", "1/3", "2^-24", "-1e9", "inf", "nan". `formats`: the names of the
    formats to show, by default all thirteen. `rounding`: one of the five rules of `utils.rounding` by name. `saturate`:
    whether what is too large becomes the largest value. `order`: "error", "width" or "range". `presets`: numbers to
    choose from, each a text or a pair (text, label). All are read and set from Python while the page shows the widget.

    Raises: ValueError for a text that is no number and for an unknown format, rule or order.
    """

    book_name = "every_format"

    value = traitlets.Unicode("0.1").tag(sync=True)
    formats = traitlets.List(traitlets.Unicode()).tag(sync=True)
    rounding = traitlets.Unicode("ties_to_even").tag(sync=True)
    saturate = traitlets.Bool(False).tag(sync=True)
    order = traitlets.Unicode("error").tag(sync=True)
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, value: str = "0.1", *, formats=None, presets=PRESETS, **kwargs):
        super().__init__(
            value=value,
            formats=list(FORMATS if formats is None else formats),
            presets=[_preset(preset) for preset in presets],
            **kwargs,
        )

    @property
    def number(self) -> Number:
        """The number itself: a Fraction, or a float for an infinity, NaN and -0."""
        return read_number(self.value)

    @property
    def fates(self) -> dict[str, Fate]:
        """What becomes of the number, by the name of the format."""
        return {name: fate(self.number, FORMATS[name], self.rounding, self.saturate) for name in self.formats}

    @traitlets.validate("value")
    def _valid_value(self, proposal) -> str:
        read_number(proposal["value"])
        return proposal["value"]

    @traitlets.validate("formats")
    def _valid_formats(self, proposal) -> list[str]:
        for name in proposal["value"]:
            one_of(name, FORMATS, "format")
        return proposal["value"]

    @traitlets.validate("rounding")
    def _valid_rounding(self, proposal) -> str:
        return one_of(proposal["value"], RULES, "rounding")

    @traitlets.validate("order")
    def _valid_order(self, proposal) -> str:
        return one_of(proposal["value"], ORDERS, "order")

    @traitlets.validate("presets")
    def _valid_presets(self, proposal) -> list[dict]:
        return [_preset(preset) for preset in proposal["value"]]

    def __repr__(self) -> str:
        return f"EveryFormat({self.value!r}, rounding={self.rounding!r}, saturate={self.saturate})"

    def static_html(self) -> str:
        """Show what becomes of the number as a table, for pages without JavaScript."""
        rows = []
        for name, (kind, stored, error, words, _) in self.fates.items():
            text = "—" if kind == "nan_lost" else value_text(float(stored))
            rows.append((format_label(FORMATS[name]), text, error_text(error), words))
        return (
            f"<p>What becomes of {html.escape(self.value)} in each format:</p>"
            f"{static_table('mp-ef-static', ('format', 'stored', 'relative error', 'fate'), rows)}"
            "<p class='mp-static-note'>Here a field takes any other number; that needs JavaScript.</p>"
        )


def error_text(error: Number | None) -> str:
    """Return a relative error in percent, a very small one as a power of two, as the page does."""
    if error is None:
        return "—"
    if error == 0 or error == math.inf:
        return "0" if error == 0 else "∞"
    if error < Fraction(1, 10**5) or error >= 10:
        return f"2^{round(_log2(Fraction(error)))}"
    percent = 100 * Fraction(error)
    if Fraction(9995, 100) <= percent < 100:
        return "> 99.9 %"
    places = 2 - math.floor(math.log10(percent))  # three digits in all, a tie away from 0, as in the page
    whole = math.floor(percent * Fraction(10) ** places + Fraction(1, 2))
    return f"{Decimal(whole).scaleb(-places).normalize():f} %"


def _log2(x: Fraction) -> float:
    return math.log2(x.numerator) - math.log2(x.denominator)


def _preset(preset) -> dict:
    if isinstance(preset, dict) and preset.keys() <= {"value", "label"} and "value" in preset:
        preset = (preset["value"], preset.get("label", ""))
    elif isinstance(preset, str):
        preset = (preset, "")
    try:
        value, label = preset
    except (TypeError, ValueError):
        raise ValueError(f'a preset is a text or a pair like ("1e-8", "Adam’s ε"), not {preset!r}') from None
    read_number(value)
    return {"value": value, "label": label}
