"""GroupOutlier: a row of weights in 4 or 8 bits, a scale for each group of it, and one outlier that can be dragged."""

import math
from collections.abc import Sequence

import traitlets

from utils.widgets.group_outlier.facts import BITS, COUNT, GROUPS, MOST, Loss, check_weights, loss
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table
from utils.widgets.shared.words.amounts import few_digits

STATIC_CASES = tuple((bits, symmetric) for bits in BITS for symmetric in (True, False))


class GroupOutlier(BookWidget):
    """Set the size of the groups and drag one outlier through a row; the page shows what all other weights lose.

    `weights`: 256 finite numbers, taken as float32; none for a generated row, nearly normal with a deviation of 0.02.
    `outlier`: what stands in the place of the weight number `place` (from 1), 0 for none. `bits`: 4 or 8; `group`: how
    many weights share a scale, of `group_outlier_facts.GROUPS`; `symmetric`: whether there is no zero point. All are
    read and set from Python while the page shows the widget; `loss` has the numbers of the case that is shown.

    Raises: ValueError for what is not one of those.
    """

    book_name = "group_outlier"

    weights = traitlets.List(traitlets.Float()).tag(sync=True)
    outlier = traitlets.Float(0.5).tag(sync=True)
    place = traitlets.Int(84).tag(sync=True)
    bits = traitlets.Int(4).tag(sync=True)
    group = traitlets.Int(64).tag(sync=True)
    symmetric = traitlets.Bool(True).tag(sync=True)

    def __init__(self, weights: Sequence[float] = (), **kwargs):
        super().__init__(weights=[float(x) for x in weights], **kwargs)

    @property
    def loss(self) -> Loss:
        """What the other weights lose in the case that is shown."""
        return loss(tuple(self.weights), self.outlier, self.place, self.bits, self.group, self.symmetric)

    @traitlets.validate("weights")
    def _valid_weights(self, proposal) -> list[float]:
        check_weights(proposal["value"])
        return proposal["value"]

    @traitlets.validate("outlier")
    def _valid_outlier(self, proposal) -> float:
        if not (math.isfinite(proposal["value"]) and abs(proposal["value"]) <= MOST):
            raise ValueError(f"outlier {proposal['value']} is not in -{MOST:,.0f} to {MOST:,.0f}")
        return proposal["value"]

    @traitlets.validate("place")
    def _valid_place(self, proposal) -> int:
        if not 1 <= proposal["value"] <= COUNT:
            raise ValueError(f"place {proposal['value']} is not in 1 to {COUNT}")
        return proposal["value"]

    @traitlets.validate("bits", "group")
    def _valid_choice(self, proposal) -> int:
        name = proposal["trait"].name
        return one_of(proposal["value"], {"bits": BITS, "group": GROUPS}[name], name)

    def __repr__(self) -> str:
        kind = "symmetric" if self.symmetric else "asymmetric"
        return f"GroupOutlier(int{self.bits}, {kind}, group={self.group}, outlier={self.outlier:g} at {self.place})"

    def static_html(self) -> str:
        """Show error, zeros and bits per weight by group size, for pages without JavaScript."""
        names = [f"int{bits}, {'symmetric' if symmetric else 'asymmetric'}" for bits, symmetric in STATIC_CASES]
        rows = [
            (str(group) if group < COUNT else "the row", *(self._cell(*case, group) for case in STATIC_CASES))
            for group in GROUPS
        ]
        outlier = f"an outlier of {self.outlier:g}" if self.outlier else "no outlier"
        return (
            f"<p>A row of {COUNT} weights with {outlier}, in 4 or 8 bits, by how many weights share a scale: bits per"
            " weight, the relative error of all other weights, and in brackets the share of them that becomes 0. Here"
            " the outlier can be dragged and the group size slid; that needs JavaScript.</p>"
            f"{static_table('mp-go-static', ('one scale for', *names), rows)}"
        )

    def _cell(self, bits: int, symmetric: bool, group: int) -> str:
        lost = loss(tuple(self.weights), self.outlier, self.place, bits, group, symmetric)
        return f"{few_digits(lost.bits)} bits: {100 * lost.error:.3g} % ({100 * lost.zeros:.2g} %)"
