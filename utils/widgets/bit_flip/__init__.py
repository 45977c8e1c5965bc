"""BitFlip: the bits of one number as buttons, in any of the thirteen formats."""

import html
import math
from dataclasses import asdict, dataclass, fields

import traitlets

import utils.formats as formats
from utils.checks.number_text import read_number
from utils.formats import FORMATS, FloatFormat
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.words.code_words import formula_text, value_text

KINDS = (
    "zero",
    "negative_zero",
    "one",
    "largest",
    "smallest_normal",
    "smallest_subnormal",
    "largest_subnormal",
    "infinity",
    "negative_infinity",
    "nan",
)


@dataclass(frozen=True)
class Goal:
    """A code that the reader shall make out of bits: by its value, or by the kind of number that it is.

    `id` is `<chapter>/<goal>` and unique in the whole book: progress is kept under it. `value` is a number as text
    ("1.5625", "1/3", "0x1.8p-3"; rounded to the format with ties to even), `kind` is one of `KINDS`; a goal has one of
    the two. `format` is the goal's format, by default the widget's. `hints` are given one at a time; the widget adds
    three: the power of two (or the rule of the kind), the exponent field, the bits. `solved` is said when the goal is
    reached, by default the value, its code and its fields, and how far off a rounded value is.

    Raises: ValueError for a goal that says too little, too much, or what the page cannot check.
    """

    id: str
    text: str
    value: str = ""
    kind: str = ""
    format: str = ""
    hints: tuple[str, ...] = ()
    solved: str = ""

    def __post_init__(self) -> None:
        if not self.id or not self.text:
            raise ValueError(f"a goal needs an id and a text, got id {self.id!r} and text {self.text!r}")
        if bool(self.value) == bool(self.kind):
            raise ValueError(f"goal {self.id!r} needs either a value or a kind, got {self.value!r} and {self.kind!r}")
        if self.kind and self.kind not in KINDS:
            raise ValueError(f"goal {self.id!r}: kind {self.kind!r} is not one of {', '.join(KINDS)}")
        if self.format and self.format not in FORMATS:
            raise ValueError(f"goal {self.id!r}: format {self.format!r} is not one of {', '.join(FORMATS)}")
        if self.value:
            _check_value_text(self.id, self.value)

    @classmethod
    def of(cls, goal: "Goal | dict") -> "Goal":
        """Make a goal of a dict with its fields, or return a goal as it is. Raises: ValueError for unknown fields."""
        if isinstance(goal, Goal):
            return goal
        names = {field.name for field in fields(cls)}
        if unknown := set(goal) - names:
            raise ValueError(f"a goal has no {', '.join(sorted(unknown))}; its fields are {', '.join(sorted(names))}")
        return cls(**{**goal, "hints": tuple(goal.get("hints", ()))})

    def as_json(self, format: str) -> dict:
        """Return the goal as JSON values, without what is empty; `format` is the one it has if it names none."""
        goal = asdict(self) | {"format": self.format or format, "hints": list(self.hints)}
        return {key: value for key, value in goal.items() if value}


def _check_value_text(goal_id: str, text: str) -> None:
    try:
        if isinstance(read_number(text), float):
            raise ValueError("an infinity, NaN or -0")
    except ValueError:
        raise ValueError(
            f'goal {goal_id!r}: value {text!r} is not a number like "1.5625", "1/3", "0x1.8p-3";'
            " for an infinity, NaN or -0 give a kind"
        ) from None


class _Code(traitlets.Int):
    """A code: an int in Python, hexadecimal text on the wire, for a JavaScript number holds 53 bits at most."""

    def __init__(self, default_value: int = 0, **kwargs):
        super().__init__(default_value, min=0, **kwargs)
        self.tag(sync=True, to_json=lambda code, _: hex(code), from_json=lambda text, _: int(text, 16))


class BitFlip(BookWidget):
    """Flip the bits of one number and see what it becomes.

    `format`: a name of `utils.formats.FORMATS`; setting it keeps the value, rounded. `code`: the bits as an int; by
    default those of 1. `formats`: the names that the reader may choose from, by default all. `goals`: `Goal`s or dicts
    of their fields. `saturate`: whether a number beyond the largest is stored as the largest. `solved`: ids of the
    goals that the reader has reached. `compact`: fold the ruler, the codes and the quick buttons away, for a first
    meeting. All but `compact` are read and set from Python while the page shows the widget. In the page a goal starts
    at 1, or at 0 where 1 is the answer, whatever `code` says.

    Raises: ValueError for an unknown format, a code with too many bits, or a goal that cannot be checked.
    """

    book_name = "bit_flip"

    format = traitlets.Unicode("float16").tag(sync=True)
    code = _Code()
    formats = traitlets.List(traitlets.Unicode()).tag(sync=True)
    goals = traitlets.List(traitlets.Dict()).tag(sync=True)
    saturate = traitlets.Bool(False).tag(sync=True)
    solved = traitlets.List(traitlets.Unicode()).tag(sync=True)
    compact = traitlets.Bool(False).tag(sync=True)

    def __init__(self, format: str = "float16", code: int | None = None, *, formats=(), goals=(), **kwargs):
        goals = [Goal.of(goal) for goal in goals]
        if len({goal.id for goal in goals}) < len(goals):
            raise ValueError(f"two goals have one id: {', '.join(goal.id for goal in goals)}")
        self._known_format = format
        super().__init__(
            format=format,
            code=start_code(FORMATS[one_of(format, FORMATS, "format")]) if code is None else code,
            formats=list(formats),
            goals=[goal.as_json(format) for goal in goals],
            **kwargs,
        )

    @property
    def fmt(self) -> FloatFormat:
        """The format itself."""
        return FORMATS[self.format]

    @property
    def value(self) -> float:
        """The value of the code: exact, as float64 holds every value of every format here."""
        return float(formats.decode(self.code, self.fmt))

    @traitlets.validate("format")
    def _valid_format(self, proposal) -> str:
        return one_of(proposal["value"], FORMATS, "format")

    @traitlets.validate("formats")
    def _valid_formats(self, proposal) -> list[str]:
        return [one_of(name, FORMATS, "format") for name in proposal["value"]]

    @traitlets.validate("code")
    def _valid_code(self, proposal) -> int:
        code, fmt = proposal["value"], self.fmt
        if code >= 2**fmt.bits:
            raise ValueError(
                f"code {code:#x} is too long: {fmt.name} has {fmt.bits} bits, at most {2**fmt.bits - 1:#x}"
            )
        return code

    def set_state(self, sync_data: dict) -> None:
        """Take the state that the page sends; it has rounded the code to its format already."""
        self._known_format = sync_data.get("format", self._known_format)
        super().set_state(sync_data)

    @traitlets.observe("format")
    def _keep_value(self, change) -> None:
        if change["new"] == self._known_format:
            return  # set by the page or by the constructor, together with its code
        value = formats.decode(self.code, FORMATS[self._known_format])
        self._known_format = change["new"]
        if math.isnan(value) and not self.fmt.has_nan:
            value = 0.0
        self.code = int(formats.encode(value, self.fmt, saturate=self.saturate))

    def __repr__(self) -> str:
        return f"BitFlip({self.format!r}, code={self.code:#0{2 + -(-self.fmt.bits // 4)}x}, value={self.value!r})"

    def static_html(self) -> str:
        """Show the bits by field, the value and the formula, for pages without JavaScript."""
        bits = f"{self.code:0{self.fmt.bits}b}"
        cells = "".join(
            f'<span class="mp-bit mp-{_field_of(place, self.fmt)}" data-bit="{bit}">{bit}</span>'
            for place, bit in zip(reversed(range(len(bits))), bits, strict=True)
        )
        shown = html.escape(f"{value_text(self.value)}: {formula_text(self.code, self.fmt)}")
        return (
            f'<p class="mp-bits-static"><code>{cells}</code></p>'
            f"<p>{format_label(self.fmt)} code {self.code:#x} is {shown}.</p>"
            '<p class="mp-static-note">Here are buttons that flip each bit; they need JavaScript.</p>'
        )


def start_code(fmt: FloatFormat) -> int:
    """Return the code of 1, where a reader starts."""
    return int(formats.encode(1.0, fmt))


def _field_of(place: int, fmt: FloatFormat) -> str:
    if place < fmt.mantissa_bits:
        return "fraction"
    return "exponent" if place < fmt.mantissa_bits + fmt.exponent_bits else "sign"
