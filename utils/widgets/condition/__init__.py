"""Condition: a linear system of a set condition, solved by factors in a narrow format and refined."""

import traitlets

from utils.emulation.refinement import Refinement
from utils.widgets.condition.facts import CONDITIONS, CORRECTIONS, FACTORS, RESIDUALS, SIZE, make_facts, refined
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.static_table import static_table

STATIC_CONDITIONS = (10.0, 1e2, 1e3, 1e4, 1e6, 1e8, 1e10)


class Condition(BookWidget):
    """Set the condition of a system and the format of its factors; the page solves it, and refines the solution.

    `condition`: 1 to 10**10. `factors`: the format of L and U, of `condition_facts.FACTORS`. `residual`: the format of
    b - A x, of `RESIDUALS`. `correction`: "factors", or "gmres" with the factors as its preconditioner. The system is
    the same for everyone, `utils.emulation.refinement.matrix` of 32 rows. All are read and set from Python while the
    page shows the widget; `solved` is the solution.

    Raises: ValueError for what is not one of those.
    """

    book_name = "condition"

    condition = traitlets.Float(1e3).tag(sync=True)
    factors = traitlets.Unicode("float16").tag(sync=True)
    residual = traitlets.Unicode("float64").tag(sync=True)
    correction = traitlets.Unicode("factors").tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    @traitlets.default("facts")
    def _facts(self) -> dict:
        return make_facts()

    @property
    def solved(self) -> Refinement:
        """The solution that the page shows."""
        return refined(self.condition, self.factors, self.residual, self.correction)

    @traitlets.validate("condition")
    def _valid_condition(self, proposal) -> float:
        if not 1 <= proposal["value"] <= CONDITIONS[-1]:
            raise ValueError(f"condition {proposal['value']} is not in 1 to {CONDITIONS[-1]:.0e}")
        return proposal["value"]

    @traitlets.validate("factors", "residual", "correction")
    def _valid_choice(self, proposal) -> str:
        name = proposal["trait"].name
        options = {"factors": FACTORS, "residual": RESIDUALS, "correction": CORRECTIONS}[name]
        return one_of(proposal["value"], options, name)

    def __repr__(self) -> str:
        how = f"residual={self.residual!r}, correction={self.correction!r}"
        return f"Condition({self.condition:g}, {self.factors!r}, {how}: {self.solved.why})"

    def static_html(self) -> str:
        """Say how many steps each format needs, and where it fails, for pages without JavaScript."""
        heads = ("condition", *map(format_label, FACTORS.values()))
        rows = []
        for condition in STATIC_CONDITIONS:
            refinements = [refined(condition, name, self.residual, self.correction) for name in FACTORS]
            rows.append((f"{condition:,.0f}", *map(end_text, refinements)))
        by = "GMRES" if self.correction == "gmres" else "the factors"
        return (
            f"<p>A system of {SIZE} equations, solved by factors in a narrow format and refined: residuals in"
            f" {RESIDUALS[self.residual]}, corrections by {by}. By the condition of the matrix: how many steps until"
            " the backward error is at float64's rounding. Here condition and formats can be changed; that needs"
            f" JavaScript.</p>{static_table('mp-cn-static', heads, rows)}"
        )


def end_text(refinement: Refinement) -> str:
    """Say in a few words how a refinement ended: "5 steps", "stuck", "no factors"."""
    if refinement.converged:
        return "1 step" if refinement.steps == 1 else f"{refinement.steps} steps"
    if not refinement.backward_errors:
        return "no factors"
    ways = {"stuck": "stuck", "not": f"not in {refinement.steps}", "step": "overflow"}  # the first word of `why`
    return ways[refinement.why.split()[0]]
