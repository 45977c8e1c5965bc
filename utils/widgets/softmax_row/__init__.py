"""SoftmaxRow: a mask and the softmax of a few scores, step by step, and of the same row as padding."""

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
    LOWEST,
    MASKS,
    MOST_COPIES,
    MOST_SCORES,
    SAME,
    SOFTMAXES,
    START,
    VALUES,
    ScoreRow,
    SoftmaxSteps,
    make_facts,
    read_mask_value,
    softmax_steps,
)
from utils.widgets.softmax_row.goals import TASKS
from utils.widgets.softmax_row.words import row_number, sum_number, verdict

CHOICES = {"format": FORMAT_NAMES, "softmax": SOFTMAXES, "mask": MASKS, "softmax_format": (SAME, *FORMAT_NAMES)}


class SoftmaxRow(BookWidget):
    """Choose a mask and follow two rows through the softmax: one with some padding, and one that is all padding.

    `scores`: one to six numbers, or texts that are read exactly: 8, "1/3", "-inf". `masked`: which of them are padding;
    scores beyond its end are not. `format`: that of scores and mask, "float16", "bfloat16" or "float32";
    `softmax_format`: that of the softmax, "" for the same. `softmax`: "naive", or "stable", which subtracts the largest
    score first. `mask`: a key of `facts.MASKS`, from "none" to "put"; `value`: what it adds or puts, "lowest" for
    torch.finfo(dtype).min of the scores, or a number below 0 as text. `copies`: how many times the row is repeated, 1
    to 200,000. All are read and set from Python while the page shows the widget; `steps` and `padding_steps` have the
    numbers, `verdict` and `padding_verdict` the sentences, `solved` the ids of the solved tasks; `tasks=False` shows
    none.

    Each operation is rounded to its format. The exponential is float64's, rounded; the sum of all exponentials is exact
    and rounded once, at the end. It is not a running sum.

    Raises: ValueError for what is not one of those.
    """

    book_name = "softmax_row"

    scores = traitlets.List(traitlets.Unicode()).tag(sync=True)
    masked = traitlets.List(traitlets.Bool()).tag(sync=True)
    format = traitlets.Unicode("float16").tag(sync=True)
    softmax = traitlets.Unicode("stable").tag(sync=True)
    mask = traitlets.Unicode("add").tag(sync=True)
    value = traitlets.Unicode(LOWEST).tag(sync=True)
    softmax_format = traitlets.Unicode(SAME).tag(sync=True)
    copies = traitlets.Int(1).tag(sync=True)
    goals = traitlets.List(traitlets.Dict()).tag(sync=True)
    solved = traitlets.List(traitlets.Unicode()).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        scores: Sequence[str | float] | None = None,
        masked: Sequence[bool] | None = None,
        *,
        value: str | float = LOWEST,
        tasks: bool = True,
        **kwargs,
    ):
        if masked is None:
            masked = START.masked if scores is None else ()
        scores = START.scores if scores is None else scores
        if len(masked) > len(scores):
            raise ValueError(f"masked has {len(masked)} entries for {len(scores)} scores")
        super().__init__(
            scores=list(map(str, scores)),
            masked=list(map(bool, masked)),
            value=str(value),
            goals=[task.as_json() for task in TASKS] if tasks else [],
            **kwargs,
        )

    @traitlets.default("facts")
    def _facts(self) -> dict:
        return make_facts()

    @property
    def row(self) -> ScoreRow:
        """The row and how it is computed."""
        masked = (*self.masked, *[False] * len(self.scores))[: len(self.scores)]
        how = (self.format, self.softmax, self.mask, self.copies, self.value, self.softmax_format)
        return ScoreRow(tuple(self.scores), masked, *how)

    @property
    def steps(self) -> SoftmaxSteps:
        """All numbers that the page shows of the row."""
        return softmax_steps(self.row)

    @property
    def padding_steps(self) -> SoftmaxSteps:
        """The same with every score masked."""
        return softmax_steps(self.row.padding)

    @property
    def verdict(self) -> str:
        """Where the first number came from that is not finite, and what the weights add up to."""
        return verdict(self.steps)

    @property
    def padding_verdict(self) -> str:
        """The same of the row of padding."""
        return verdict(self.padding_steps)

    @traitlets.validate("scores")
    def _valid_scores(self, proposal) -> list[str]:
        if not 1 <= len(proposal["value"]) <= MOST_SCORES:
            raise ValueError(f"{len(proposal['value'])} scores: one to {MOST_SCORES} can be shown")
        for text in proposal["value"]:
            read_number(text)
        return proposal["value"]

    @traitlets.validate("value")
    def _valid_value(self, proposal) -> str:
        if proposal["value"] != LOWEST:
            read_mask_value(proposal["value"])
        return proposal["value"]

    @traitlets.validate("format", "softmax", "mask", "softmax_format")
    def _valid_choice(self, proposal) -> str:
        name = proposal["trait"].name
        return one_of(proposal["value"], CHOICES[name], name)

    @traitlets.validate("copies")
    def _valid_copies(self, proposal) -> int:
        if not 1 <= proposal["value"] <= MOST_COPIES:
            raise ValueError(f"copies {proposal['value']} is not in 1 to {MOST_COPIES}")
        return proposal["value"]

    def __repr__(self) -> str:
        how = f"{self.format!r}, softmax={self.softmax!r}, mask={self.mask!r}, value={self.value!r}"
        return f"SoftmaxRow({self.scores}, {self.masked}, {how}, copies={self.copies})"

    def static_html(self) -> str:
        """Show the steps of both rows, and what each mask makes of a row of padding, for pages without JavaScript."""
        steps = self.steps
        copies = f", {self.copies:,} times" if self.copies > 1 else ""
        value = VALUES.get(self.value, self.value)
        mask = "" if self.mask == "none" else f" The mask is {html.escape(value)}, {_how(self.mask)}."
        padding = (
            ""
            if self.mask == "none"
            else f"<p>The same row, all of it padding. {html.escape(self.padding_verdict)}</p>"
            f"{static_table('mp-sr-static', *_step_table(self.padding_steps))}"
        )
        return (
            f"<p>The softmax of a row of scores{copies} in {self.format}, {SOFTMAXES[self.softmax]}.{mask}"
            f" {html.escape(verdict(steps))}</p>"
            f"{static_table('mp-sr-static', *_step_table(steps))}"
            f"{padding}"
            "<p>If every score of this row is padding and the largest is subtracted first, the weights add up to:</p>"
            f"{static_table('mp-sr-static', ('mask', *FORMAT_NAMES), _padding_rows(self.row))}"
            "<p class='mp-static-note'>Here scores, mask and dtypes can be changed, and there are tasks; that needs "
            "JavaScript.</p>"
        )


def _how(mask: str) -> str:
    return {"add": "added", "add_twice": "added twice", "put": "put in place of the score"}[mask]


def _step_table(steps: SoftmaxSteps) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heads and the rows of the static table: a row for each score, and the sum."""
    row = steps.row
    shifted = [] if steps.shifted is None else [steps.shifted]
    inner = steps.row.inner
    cast = [] if steps.cast == steps.after else [steps.cast]
    columns = [steps.stored, steps.after, *cast, *shifted, steps.exps, steps.weights]
    names = [f"{text} (masked)" if hidden else text for text, hidden in zip(row.scores, row.masked, strict=True)]
    rows = [(name.replace("-", "−"), *map(row_number, numbers)) for name, *numbers in zip(names, *columns, strict=True)]
    blank = [""] * (len(columns) - 2)
    last = ("sum", *blank, sum_number(steps.total), sum_number(steps.weight_sum))
    less = ("minus the largest",) if shifted else ()
    named = (f"as {inner.name}",) if cast else ()
    return ("score", "stored", "after the mask", *named, *less, "exp", "weight"), [*rows, last]


def _padding_rows(row: ScoreRow) -> list[tuple[str, ...]]:
    padding = replace(row.padding, softmax="stable", softmax_format=SAME)
    ways = [(mask, value) for mask in ("add", "put") for value in VALUES] + [("add_twice", LOWEST)]

    def sum_of(mask: str, value: str, name: str) -> str:
        return row_number(softmax_steps(replace(padding, mask=mask, value=value, format=name)).weight_sum)

    return [
        (f"{VALUES[value]}, {_how(mask)}", *(sum_of(mask, value, name) for name in FORMAT_NAMES))
        for mask, value in ways
    ]
