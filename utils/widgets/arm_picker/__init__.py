"""ArmPicker: recorded arms of one experiment beside each other, seed by seed, and what one seed alone would say."""

import html

import traitlets

from utils.widgets.arm_picker import words
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table

BASELINE = "32-true"
FIRST_CHOSEN = ("16-mixed", "bf16-mixed", "16-true", "bf16-true")  # where they are recorded


class ArmPicker(BookWidget):
    """Pick a baseline, other arms and a quantity; the page compares them seed by seed.

    `data`: what `arm_facts.arms_of(records)` gives. `baseline`: an arm of it; `chosen`: the arms beside it, by default
    those of `FIRST_CHOSEN` that are recorded. `quantity`: a name of `arm_facts.QUANTITIES`. `device`: which group of
    records, counted from 0: what was recorded on two devices is never compared. `seed`: None for all seeds, or the one
    that is looked at alone. All but `data` are read and set from Python while the page shows it; `verdicts` and
    `summary` follow them.

    Raises: ValueError, in one sentence, for what the data do not hold.
    """

    book_name = "arm_picker"

    data = traitlets.Dict().tag(sync=True)
    baseline = traitlets.Unicode().tag(sync=True)
    chosen = traitlets.List(traitlets.Unicode()).tag(sync=True)
    quantity = traitlets.Unicode("accuracy").tag(sync=True)
    device = traitlets.Int(0).tag(sync=True)
    seed = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, data: dict, *, baseline: str | None = None, chosen=None, device: int = 0, **kwargs):
        _check_number(device, data["groups"], "device")
        recorded = list(data["groups"][device]["runs"])
        if baseline is None:
            baseline = BASELINE if BASELINE in recorded else recorded[0]
        if chosen is None:
            others = [arm for arm in recorded if arm != baseline]
            chosen = [arm for arm in others if arm in FIRST_CHOSEN] or others
        super().__init__(data=data, device=device, baseline=baseline, chosen=list(chosen), **kwargs)

    @property
    def group(self) -> dict:
        """The runs of the device that is looked at."""
        return self.data["groups"][self.device]

    @property
    def others(self) -> list[str]:
        """The chosen arms in the order of all arms, without the baseline."""
        return [arm for arm in self.data["arms"] if arm in self.chosen and arm != self.baseline]

    @property
    def verdicts(self) -> dict[str, words.Verdict]:
        """What the pairs say of each of the others."""
        row = words.quantity_of(self.data, self.quantity)
        return {arm: words.verdict_of(self.group, arm, self.baseline, row) for arm in self.others}

    @property
    def summary(self) -> str:
        """What all seeds say, or what one would conclude from one of them."""
        row = words.quantity_of(self.data, self.quantity)
        if self.seed is None:
            return words.summary_of(self.group, self.others, self.baseline, row)
        arms = [arm for arm in self.data["arms"] if arm == self.baseline or arm in self.others]
        return words.one_seed_text(self.group, arms, row, self.seed)

    @traitlets.validate("baseline")
    def _valid_baseline(self, proposal) -> str:
        return one_of(proposal["value"], self.data["arms"], "baseline")

    @traitlets.validate("chosen")
    def _valid_chosen(self, proposal) -> list[str]:
        return [one_of(arm, self.data["arms"], "chosen") for arm in proposal["value"]]

    @traitlets.validate("quantity")
    def _valid_quantity(self, proposal) -> str:
        return one_of(proposal["value"], [row["name"] for row in self.data["quantities"]], "quantity")

    @traitlets.validate("device")
    def _valid_device(self, proposal) -> int:
        return _check_number(proposal["value"], self.data["groups"], "device")

    @traitlets.validate("seed")
    def _valid_seed(self, proposal) -> int | None:
        return None if proposal["value"] is None else one_of(proposal["value"], self.group["seeds"], "seed")

    @traitlets.observe("device")
    def _keep_the_seed_only_where_it_is_recorded(self, change) -> None:
        if self.seed not in (None, *self.group["seeds"]):
            self.seed = None

    def __repr__(self) -> str:
        beside = f"baseline={self.baseline!r}, chosen={self.chosen!r}"
        return f"ArmPicker({beside}, quantity={self.quantity!r}, device={self.group['device']!r}, seed={self.seed})"

    def static_html(self) -> str:
        """Show every recorded arm and what its pairs with the baseline say, for pages without JavaScript."""
        row, group = words.quantity_of(self.data, self.quantity), self.group
        rows = []
        for arm in self.data["arms"]:
            value = words.value_text(group, arm, row)
            told = "baseline" if arm == self.baseline else words.verdict_of(group, arm, self.baseline, row).text
            rows.append((arm, value, words.by_seed_text(group, arm, row), told))
        seeds = f"seeds {words.listed([str(seed) for seed in group['seeds']])}"
        heads = ("recipe", row["label"], seeds, f"against {self.baseline}, seed by seed")
        where = f"{group['device']}; {group['conditions']}. ± is the 95 % Student interval over the seeds."
        return (
            "<p>Here recorded recipes are compared by any quantity, seed by seed or from one seed alone; that needs "
            f"JavaScript. {html.escape(self.summary)}</p>{static_table('mp-ap-static', heads, rows)}"
            f"<p class='mp-static-note'>Recorded on {html.escape(where)}</p>"
        )


def _check_number(number: int, groups: list[dict], what: str) -> int:
    if not 0 <= number < len(groups):
        raise ValueError(f"{what} {number} is not in 0 to {len(groups) - 1}, the places of records")
    return number
