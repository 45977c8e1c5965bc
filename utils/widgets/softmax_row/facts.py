"""What SoftmaxRow computes: a softmax of a few scores, each step rounded to a format; the twin of steps.js.

Every step is exact or correctly rounded in float64, and then rounded to the format: for a sum, a difference or a
quotient of two numbers of at most 24 bits, that is the same as rounding once (Figueroa, 1995). The exponential is that
of float64, whose own error of at most one last place can only matter where the result lies next to the middle between
two numbers of the format. The sum of all exponentials is exact and rounded once, at the end; it is not a running sum.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from utils.checks.number_text import read_number
from utils.formats import FORMATS, FloatFormat
from utils.rounding import quantize
from utils.widgets.shared.numbers.exact_rounding import quantize_exact

FORMAT_NAMES = ("float16", "bfloat16", "float32")
SOFTMAXES = {"naive": "as written", "stable": "minus the largest"}
MASKS = {
    "none": "none",
    "add_1e4": "add −10000",
    "add_1e9": "add −1e9",
    "add_lowest": "add the lowest number",
    "add_lowest_twice": "add the lowest twice (two masks)",
    "put_lowest": "replace with the lowest number",
    "put_inf": "replace with −inf",
}
MOST_SCORES, MOST_COPIES = 6, 200_000


@dataclass(frozen=True)
class ScoreRow:
    """A row of scores as the reader sets it, and how its softmax is computed.

    `scores`: numbers as text, read exactly. `masked`: which of them are padding. `format`, `softmax`, `mask`: of
    `FORMAT_NAMES`, `SOFTMAXES` and `MASKS`. `copies`: how often the row stands in the row that is computed.
    """

    scores: tuple[str, ...]
    masked: tuple[bool, ...]
    format: str = "float16"
    softmax: str = "stable"
    mask: str = "add_lowest"
    copies: int = 1

    @property
    def fmt(self) -> FloatFormat:
        """The format itself."""
        return FORMATS[self.format]

    @property
    def addends(self) -> tuple[float, ...]:
        """What the mask adds to a masked score, one after the other; not yet rounded to the format."""
        lowest = -self.fmt.max
        added = {"add_1e4": (-1e4,), "add_1e9": (-1e9,), "add_lowest": (lowest,), "add_lowest_twice": (lowest, lowest)}
        return added.get(self.mask, ())

    @property
    def put(self) -> float | None:
        """What the mask puts in the place of a masked score, or None."""
        return {"put_lowest": -self.fmt.max, "put_inf": -math.inf}.get(self.mask)


@dataclass(frozen=True)
class SoftmaxSteps:
    """What a softmax makes of a row: a list for each step, in the order of the scores.

    `stored`: the scores in the format. `after`: what the mask makes of them. `largest` and `shifted`: the largest of
    these, and each less it; None in a naive softmax. `exps`: the exponentials. `exact_sum`: that of all copies, as
    float64, and `total`: in the format. `weights`: of one copy. `weight_sum` and `masked_weight`: of all copies, and of
    the masked scores among them, exact and then rounded to float64.
    """

    row: ScoreRow
    stored: tuple[float, ...]
    after: tuple[float, ...]
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
        return self.after if self.shifted is None else self.shifted


START = ScoreRow(("8", "-20", "3", "1"), (False, True, False, False))
_ALL = (True,) * 4
PRESETS = {
    "12, 11, 10": ScoreRow(("12", "11", "10"), (False,) * 3, softmax="naive", mask="none"),
    "one masked, −1e9": ScoreRow(START.scores, START.masked, mask="add_1e9"),
    "all padding, −1e9": ScoreRow(START.scores, _ALL, mask="add_1e9"),
    "two masks, bfloat16": ScoreRow(START.scores, _ALL, format="bfloat16", mask="add_lowest_twice"),
    "a long row": ScoreRow(("10",), (False,), mask="none", copies=65_520),
}


def softmax_steps(row: ScoreRow) -> SoftmaxSteps:
    """Compute the softmax of a row in its format, step by step."""
    fmt = row.fmt
    stored = [quantize_exact(read_number(score), fmt) for score in row.scores]
    after = [_masked(x, row) if hidden else x for x, hidden in zip(stored, row.masked, strict=True)]
    largest = _largest(after) if row.softmax == "stable" else None
    shifted = None if largest is None else tuple(rounded(x - largest, fmt) for x in after)
    exps = [rounded(_exp(x), fmt) for x in (after if shifted is None else shifted)]
    exact = exact_sum(exps, row.copies)
    total = quantize_exact(exact, fmt)
    weights = [rounded(_ratio(x, total), fmt) for x in exps]
    kept = [weight for weight, hidden in zip(weights, row.masked, strict=True) if hidden]
    return SoftmaxSteps(
        row,
        tuple(stored),
        tuple(after),
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
    if row.put is not None:
        return row.put
    for addend in row.addends:
        x = rounded(x + rounded(addend, row.fmt), row.fmt)
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
    presets = [
        {
            "label": label,
            "scores": list(row.scores),
            "masked": list(row.masked),
            "format": row.format,
            "softmax": row.softmax,
            "mask": row.mask,
            "copies": row.copies,
        }
        for label, row in PRESETS.items()
    ]
    return {
        "formats": [[name, name] for name in FORMAT_NAMES],
        "softmaxes": [list(pair) for pair in SOFTMAXES.items()],
        "masks": [list(pair) for pair in MASKS.items()],
        "presets": presets,
        "most_scores": MOST_SCORES,
        "most_copies": MOST_COPIES,
    }
