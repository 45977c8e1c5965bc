"""SoftmaxRow: the softmax of a few scores with a mask, step by step in a narrow format."""

import html
from collections.abc import Sequence
from dataclasses import replace

import traitlets

from utils.checks.number_text import read_number
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table
from utils.widgets.softmax_row.facts import (
    FORMAT_NAMES,
    MASKS,
    MOST_COPIES,
    MOST_SCORES,
    SOFTMAXES,
    START,
    ScoreRow,
    SoftmaxSteps,
    make_facts,
    softmax_steps,
)
from utils.widgets.softmax_row.words import row_number, sum_number, verdict

CHOICES = {"format": FORMAT_NAMES, "softmax": SOFTMAXES, "mask": MASKS}


class SoftmaxRow(BookWidget):
    """Mask a row of scores and take its softmax; see each step in the format, and where inf and NaN come from.

    `scores`: one to six numbers, or texts that are read exactly: 8, "1/3", "-inf". `masked`: which of them are padding;
    scores beyond its end are not. `format`: "float16", "bfloat16" or "float32". `softmax`: "naive", or "stable", which
    subtracts the largest score first. `mask`: a key of `facts.MASKS`, from "none" to "put_inf". `copies`: how many
    times the row is repeated, 1 to 200,000. All are read and set from Python while the page shows the widget; `steps`
    has the numbers and `verdict` the sentence.

    Each operation is rounded to the format. The exponential is float64's, rounded; the sum of all exponentials is exact
    and rounded once, at the end. It is not a running sum.

    Raises: ValueError for what is not one of those.
    """

    book_name = "softmax_row"

    scores = traitlets.List(traitlets.Unicode()).tag(sync=True)
    masked = traitlets.List(traitlets.Bool()).tag(sync=True)
    format = traitlets.Unicode("float16").tag(sync=True)
    softmax = traitlets.Unicode("stable").tag(sync=True)
    mask = traitlets.Unicode("add_lowest").tag(sync=True)
    copies = traitlets.Int(1).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(self, scores: Sequence[str | float] | None = None, masked: Sequence[bool] | None = None, **kwargs):
        if masked is None:
            masked = START.masked if scores is None else ()
        scores = START.scores if scores is None else scores
        if len(masked) > len(scores):
            raise ValueError(f"masked has {len(masked)} entries for {len(scores)} scores")
        super().__init__(scores=list(map(str, scores)), masked=list(map(bool, masked)), **kwargs)

    @traitlets.default("facts")
    def _facts(self) -> dict:
        return make_facts()

    @property
    def row(self) -> ScoreRow:
        """The row and how it is computed."""
        masked = (*self.masked, *[False] * len(self.scores))[: len(self.scores)]
        return ScoreRow(tuple(self.scores), masked, self.format, self.softmax, self.mask, self.copies)

    @property
    def steps(self) -> SoftmaxSteps:
        """All numbers that the page shows."""
        return softmax_steps(self.row)

    @property
    def verdict(self) -> str:
        """Where the first number came from that is not finite, and what the weights add up to."""
        return verdict(self.steps)

    @traitlets.validate("scores")
    def _valid_scores(self, proposal) -> list[str]:
        if not 1 <= len(proposal["value"]) <= MOST_SCORES:
            raise ValueError(f"{len(proposal['value'])} scores: one to {MOST_SCORES} can be shown")
        for text in proposal["value"]:
            read_number(text)
        return proposal["value"]

    @traitlets.validate("format", "softmax", "mask")
    def _valid_choice(self, proposal) -> str:
        name = proposal["trait"].name
        return one_of(proposal["value"], CHOICES[name], name)

    @traitlets.validate("copies")
    def _valid_copies(self, proposal) -> int:
        if not 1 <= proposal["value"] <= MOST_COPIES:
            raise ValueError(f"copies {proposal['value']} is not in 1 to {MOST_COPIES}")
        return proposal["value"]

    def __repr__(self) -> str:
        how = f"{self.format!r}, softmax={self.softmax!r}, mask={self.mask!r}, copies={self.copies}"
        return f"SoftmaxRow({self.scores}, {self.masked}, {how})"

    def static_html(self) -> str:
        """Show the steps of the row, and what each mask makes of a row of padding, for pages without JavaScript."""
        steps = self.steps
        copies = f", {self.copies:,} times" if self.copies > 1 else ""
        return (
            f"<p>The softmax of a row of scores{copies} in {self.format}, {SOFTMAXES[self.softmax]}. The mask:"
            f" {MASKS[self.mask]}. {html.escape(verdict(steps))}</p>"
            f"{static_table('mp-sr-static', *_step_table(steps))}"
            "<p>If every score of this row is padding and the largest is subtracted first, the weights add up to:</p>"
            f"{static_table('mp-sr-static', ('mask', *FORMAT_NAMES), _padding_rows(self.row))}"
            "<p class='mp-static-note'>Here scores, mask and format can be changed; that needs JavaScript.</p>"
        )


def _step_table(steps: SoftmaxSteps) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heads and the rows of the static table: a row for each score, and the sum."""
    row = steps.row
    shifted = [] if steps.shifted is None else [steps.shifted]
    columns = [steps.stored, steps.after, *shifted, steps.exps, steps.weights]
    names = [f"{text} (masked)" if hidden else text for text, hidden in zip(row.scores, row.masked, strict=True)]
    rows = [(name.replace("-", "−"), *map(row_number, numbers)) for name, *numbers in zip(names, *columns, strict=True)]
    blank = [""] * (len(columns) - 2)
    last = ("sum", *blank, sum_number(steps.total), sum_number(steps.weight_sum))
    less = ("minus the largest",) if shifted else ()
    return ("score", "stored", "after the mask", *less, "exp", "weight"), [*rows, last]


def _padding_rows(row: ScoreRow) -> list[tuple[str, ...]]:
    padding = replace(row, masked=(True,) * len(row.scores), softmax="stable")

    def sum_of(mask: str, name: str) -> str:
        return row_number(softmax_steps(replace(padding, mask=mask, format=name)).weight_sum)

    return [(label, *(sum_of(mask, name) for name in FORMAT_NAMES)) for mask, label in MASKS.items()]
