"""What SoftmaxRow computes: a mask and a softmax of a few scores, each step rounded; the twin of steps.js.

Every step is exact or correctly rounded in float64, and then rounded to the format: for a sum, a difference or a
quotient of two numbers of at most 24 bits, that is the same as rounding once (Figueroa, 1995). The exponential is that
of float64, whose own error of at most one last place can only matter where the result lies next to the middle between
two numbers of the format. The sum of all exponentials is exact and rounded once, at the end; it is not a running sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from utils.checks.number_text import read_number
from utils.formats import FORMATS, FloatFormat
from utils.rounding import quantize
from utils.widgets.shared.numbers.exact_rounding import quantize_exact

FORMAT_NAMES = ("float16", "bfloat16", "float32")
SOFTMAXES = {"naive": "as written", "stable": "minus the largest"}
MASKS = {"none": "not at all", "add": "add", "add_twice": "add twice", "put": "masked_fill"}
LOWEST = "lowest"  # of the format of the scores: torch.finfo(dtype).min
VALUES = {
    LOWEST: "dtype’s lowest",
    "-inf": "−inf",
    "-1e9": "−1e9",
    "-65504": "−65504",
    "-1e4": "−1e4",
    "-10": "−10",
    "-3.4028234663852886e38": "float32’s lowest",
}
SAME = ""  # the softmax computes in the format of the scores
MOST_SCORES, MOST_COPIES = 6, 200_000


@dataclass(frozen=True)
class ScoreRow:
    """A row of scores as the reader sets it, and how its softmax is computed.

    `scores`: numbers as text, read exactly. `masked`: which of them are padding. `format`: of the scores and of the
    mask; `softmax_format`: that of the softmax, `SAME` or one of `FORMAT_NAMES`. `softmax`, `mask`: of `SOFTMAXES` and
    `MASKS`. `value`: the mask's, `LOWEST` or a number as text. `copies`: how often the row stands in the row that is
    computed.
    """

    scores: tuple[str, ...]
    masked: tuple[bool, ...]
    format: str = "float16"
    softmax: str = "stable"
    mask: str = "add"
    copies: int = 1
    value: str = LOWEST
    softmax_format: str = SAME

    @property
    def fmt(self) -> FloatFormat:
        """The format of the scores."""
        return FORMATS[self.format]

    @property
    def inner(self) -> FloatFormat:
        """The format in which the softmax computes."""
        return FORMATS[self.softmax_format or self.format]

    @property
    def padding(self) -> ScoreRow:
        """The same row with every score masked."""
        return replace(self, masked=(True,) * len(self.scores))

    @property
    def exact_value(self) -> Fraction | float:
        """The value of the mask, not yet rounded to the format."""
        return -self.fmt.max if self.value == LOWEST else read_mask_value(self.value)

    @property
    def addends(self) -> int:
        """How many masks are added to a masked score."""
        return {"add": 1, "add_twice": 2}.get(self.mask, 0)


def read_mask_value(text: str) -> Fraction | float:
    """Read the value of a mask exactly.

    Raises: ValueError for what is neither a number below 0 nor -inf.
    """
    value = read_number(text)
    if not value < 0:
        raise ValueError(f"{text!r} is not below 0: a mask makes scores smaller")
    return value


@dataclass(frozen=True)
class SoftmaxSteps:
    """What a softmax makes of a row: a list for each step, in the order of the scores.

    `stored`: the scores in their format. `after`: what the mask makes of them. `cast`: these in the format of the
    softmax, and so is all that follows. `largest` and `shifted`: the largest of these, and each less it; None in a
    naive softmax. `exps`: the exponentials. `exact_sum`: that of all copies, as
    float64, and `total`: in the format. `weights`: of one copy. `weight_sum` and `masked_weight`: of all copies, and of
    the masked scores among them, exact and then rounded to float64.
    """

    row: ScoreRow
    stored: tuple[float, ...]
    after: tuple[float, ...]
    cast: tuple[float, ...]
    largest: float | None
    shifted: tuple[float, ...] | None
    exps: tuple[float, ...]
    exact_sum: float
    total: float
    weights: tuple[float, ...]
    weight_sum: float
    masked_weight: float

    @property
    def exponents(self) -> tuple[float, ...]:
        """What the exponential is taken of."""
        return self.cast if self.shifted is None else self.shifted


START = ScoreRow(("8", "-20", "3", "1"), (False, True, False, False))
PRESETS = {
    "12, 11, 10": ScoreRow(("12", "11", "10"), (False,) * 3, softmax="naive", mask="none"),
    "add −1e9": ScoreRow(START.scores, START.masked, value="-1e9"),
    "too weak": ScoreRow(("3", "9", "1", "2"), START.masked, format="float32", value="-10"),
    "two masks": ScoreRow(START.scores, START.masked, format="bfloat16", mask="add_twice"),
    "a cast": ScoreRow(
        START.scores, START.masked, "float32", mask="put", value="-3.4028234663852886e38", softmax_format="float16"
    ),
    "a long row": ScoreRow(("10",), (False,), mask="none", copies=65_520),
}


def softmax_steps(row: ScoreRow) -> SoftmaxSteps:
    """Compute the softmax of a row, step by step: the mask in the format of the scores, the rest in its own."""
    fmt = row.inner
    stored = [quantize_exact(read_number(score), row.fmt) for score in row.scores]
    after = [_masked(x, row) if hidden else x for x, hidden in zip(stored, row.masked, strict=True)]
    cast = [rounded(x, fmt) for x in after]
    largest = _largest(cast) if row.softmax == "stable" else None
    shifted = None if largest is None else tuple(rounded(x - largest, fmt) for x in cast)
    exps = [rounded(_exp(x), fmt) for x in (cast if shifted is None else shifted)]
    exact = exact_sum(exps, row.copies)
    total = quantize_exact(exact, fmt)
    weights = [rounded(_ratio(x, total), fmt) for x in exps]
    kept = [weight for weight, hidden in zip(weights, row.masked, strict=True) if hidden]
    return SoftmaxSteps(
        row,
        tuple(stored),
        tuple(after),
        tuple(cast),
        largest,
        shifted,
        tuple(exps),
        float(exact),
        total,
        tuple(weights),
        float(exact_sum(weights, row.copies)),
        float(exact_sum(kept, row.copies)),
    )


def exact_sum(values: Sequence[float], copies: int) -> Fraction | float:
    """Return the sum of so many copies of some numbers: a Fraction, or a float where one is not finite."""
    if not all(map(math.isfinite, values)):
        return sum(values)  # an infinity or NaN, and all of them are 0 or more
    return copies * sum(map(Fraction, values), Fraction(0))


def rounded(x: float, fmt: FloatFormat) -> float:
    """Round a float64 to a format, as a float."""
    return float(quantize(x, fmt))


def _masked(x: float, row: ScoreRow) -> float:
    value = quantize_exact(row.exact_value, row.fmt)
    if row.mask == "put":
        return value
    for _ in range(row.addends):
        x = rounded(x + value, row.fmt)
    return x


def _largest(values: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, values)) else max(values)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _ratio(x: float, total: float) -> float:
    if total == 0:  # each exponential is 0
        return math.nan
    return x / total


def make_facts() -> dict:
    """Return what the page shows as choices: names with what they are called, and the presets."""
    return {
        "formats": [[name, name] for name in FORMAT_NAMES],
        "softmaxes": [list(pair) for pair in SOFTMAXES.items()],
        "masks": [list(pair) for pair in MASKS.items()],
        "values": [list(pair) for pair in VALUES.items()],
        "presets": [{"label": label, **as_json(row)} for label, row in PRESETS.items()],
        "most_scores": MOST_SCORES,
        "most_copies": MOST_COPIES,
    }


def as_json(row: ScoreRow) -> dict:
    """Return a row as the traits of the widget hold it."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(row).items()}
