"""CodeLine: all codes of narrow formats as marks on lines above one another, to be read one by one."""

import html
import math
from fractions import Fraction

import traitlets

from utils.formats import FORMATS, FloatFormat
from utils.widgets.code_line.facts import LINE_FORMATS, census_text, reading, value_in_short, value_of
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.format_fate import Fate, fate
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.static_table import static_table

MOST_LINES = 4
AXES = ("logarithmic", "linear")
VIEWS = ("all", "positive", "near")


class CodeLine(BookWidget):
    """Read the codes of one to four narrow formats on lines above one another, and what the others make of each.

    `formats`: names in `LINE_FORMATS`, those of at most 8 bits, one line for each. `format`: the line on which a code
    is read, by default the first; `code`: that code. `axis`: "logarithmic" or "linear". `view`: "all" codes, the
    "positive" half, or the codes "near" the one that is read. All of them are read and set from Python while the page
    shows the widget.

    Raises: ValueError for an unknown or wider format, two lines of one format, and a code that the format has not.
    """

    book_name = "code_line"

    formats = traitlets.List(traitlets.Unicode()).tag(sync=True)
    format = traitlets.Unicode().tag(sync=True)
    code = traitlets.Int(0x38).tag(sync=True)
    axis = traitlets.Unicode("logarithmic").tag(sync=True)
    view = traitlets.Unicode("all").tag(sync=True)

    def __init__(self, formats=("float8_e4m3fn", "float8_e5m2"), code: int | None = None, **kwargs):
        formats = list(formats)
        if not formats:
            raise ValueError("formats is empty: name one to four of " + ", ".join(LINE_FORMATS))
        name = kwargs.pop("format", formats[0])
        code = _code_of_one(_line_format(name)) if code is None else code
        super().__init__(formats=formats, format=name, code=code, **kwargs)
        self._check_choice(self.formats, self.format, self.code)

    @property
    def fmt(self) -> FloatFormat:
        """The format of the code that is read."""
        return FORMATS[self.format]

    @property
    def sentence(self) -> str:
        """What the code is, in words: what the page says too."""
        return reading(self.code, self.fmt)

    @property
    def fates(self) -> dict[str, Fate]:
        """What the other lines make of the value of the code, by the name of the format."""
        value = value_of(self.code, self.fmt)
        number = Fraction(value) if math.isfinite(value) and value else value
        return {name: fate(number, FORMATS[name]) for name in self.formats if name != self.format}

    @traitlets.validate("formats", "format", "code")
    def _valid_choice(self, proposal):
        if not self._cross_validation_lock:  # at the start all come at once: __init__ looks at them together
            choice = {name: getattr(self, name) for name in ("formats", "format", "code")}
            self._check_choice(**(choice | {proposal["trait"].name: proposal["value"]}))
        return proposal["value"]

    @traitlets.validate("axis")
    def _valid_axis(self, proposal) -> str:
        return one_of(proposal["value"], AXES, "axis")

    @traitlets.validate("view")
    def _valid_view(self, proposal) -> str:
        return one_of(proposal["value"], VIEWS, "view")

    @staticmethod
    def _check_choice(formats, format, code) -> None:
        for name in formats:
            _line_format(name)
        if not 1 <= len(set(formats)) == len(formats) <= MOST_LINES:
            raise ValueError(f"formats {', '.join(formats)} are not 1 to {MOST_LINES} different ones")
        if format not in formats:
            raise ValueError(f"format {format!r} is not one of the lines {', '.join(formats)}")
        if not 0 <= code < 2 ** FORMATS[format].bits:
            raise ValueError(f"code {code} is not in 0 to {2 ** FORMATS[format].bits - 1}, the codes of {format}")

    def __repr__(self) -> str:
        return f"CodeLine({self.formats!r}, {self.sentence!r})"

    def static_html(self) -> str:
        """Count the codes of each line and name its ends, for pages without JavaScript."""
        rows = [_row_of(FORMATS[name]) for name in self.formats]
        heads = ("format", "its codes", "largest", "smallest normal", "smallest above 0", "values from 1 to below 2")
        return (
            f"<p>Here all codes of {', '.join(format_label(FORMATS[name]) for name in self.formats)} stand on lines"
            f" above one another; that needs JavaScript. {html.escape(self.sentence)}</p>"
            f"{static_table('mp-cl-static', heads, rows)}"
        )


def _row_of(fmt: FloatFormat) -> tuple[str, ...]:
    ends = (fmt.max, fmt.smallest_normal, fmt.smallest_subnormal)
    return format_label(fmt), census_text(fmt), *map(value_in_short, ends), str(2**fmt.mantissa_bits)


def _code_of_one(fmt: FloatFormat) -> int:
    return fmt.bias << fmt.mantissa_bits


def _line_format(name: str) -> FloatFormat:
    return FORMATS[one_of(name, LINE_FORMATS, "format")]
