"""DotProduct: K exact products added in a narrow register, and the bits that slide out of it."""

import html
import math
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
import torch
import traitlets

from utils.emulation.accumulators import ACCUMULATORS
from utils.formats import FORMATS
from utils.widgets.dot_product.facts import DATA, MOST, OPERANDS, Lane, operands
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.formats import format_label
from utils.widgets.shared.words.code_words import rounded_text

MOST_STATIC = 4096  # products: a table without JavaScript takes about a second to compute
LIMITS = {"products": (1, MOST), "seed": (0, 2**32 - 1)}
_number = partial(rounded_text, digits=8)


class DotProduct(BookWidget):
    """Add the products of two vectors as the units of matrix products do, and see each addition in bits.

    `products`: K, how many there are. `data`: what the vectors hold, a key of `dot_product_facts.DATA`; `operands`:
    the format that they are rounded to; `seed`: of the random ones. `lanes`: one or two ways of adding, each a `Lane`
    (as a trait: its `state()`). `added`: how many products have been added at the point that is shown, None for all.
    `log`: whether the axes are logarithmic. All are read and set from Python while the page shows the widget.

    Raises: ValueError for a name or a number that is not one of those.
    """

    book_name = "dot_product"

    products = traitlets.Int(4096).tag(sync=True)
    data = traitlets.Unicode("uniform").tag(sync=True)
    operands = traitlets.Unicode("float16").tag(sync=True)
    seed = traitlets.Int(1).tag(sync=True)
    lanes = traitlets.List(traitlets.Dict()).tag(sync=True)
    added = traitlets.Int(4096).tag(sync=True)
    log = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        products: int = 4096,
        lanes: Sequence[Lane | str] = (Lane("float16"), Lane("float16", promote=128)),
        *,
        added: int | None = None,
        **kwargs,
    ):
        states = [(Lane(lane) if isinstance(lane, str) else lane).state() for lane in lanes]
        added = min(max(products, 0), MOST) if added is None else added
        super().__init__(products=products, lanes=states, added=added, **kwargs)
        if self.added > self.products:
            raise ValueError(f"added {self.added} is more than the {self.products} products that there are")

    @property
    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """The two vectors, values of the format of the operands: float64 [products] each."""
        return operands(self.data, self.products, self.operands, self.seed)

    def total(self, lane: Lane) -> float:
        """Add all products as the lane does."""
        return float(lane.matmul(*_row_and_column(*self.vectors, self.operands)))

    @traitlets.validate("products", "seed")
    def _valid_count(self, proposal) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        least, most = LIMITS[name]
        if not least <= value <= most:
            raise ValueError(f"{name} {value} is not in {least} to {most}")
        return value

    @traitlets.validate("added")
    def _valid_added(self, proposal) -> int:
        if not 0 <= proposal["value"] <= MOST:
            raise ValueError(f"added {proposal['value']} is not in 0 to {MOST}")
        return proposal["value"]

    @traitlets.validate("data", "operands")
    def _valid_choice(self, proposal) -> str:
        name = proposal["trait"].name
        return one_of(proposal["value"], {"data": DATA, "operands": OPERANDS}[name], name)

    @traitlets.validate("lanes")
    def _valid_lanes(self, proposal) -> list[dict]:
        if len(proposal["value"]) not in (1, 2):
            raise ValueError(f"{len(proposal['value'])} lanes: one or two can be shown")
        try:
            return [Lane(**state).state() for state in proposal["value"]]
        except TypeError:
            raise ValueError(f"a lane has adder, block and promote, not {proposal['value']!r}") from None

    def static_html(self) -> str:
        """Show what each accumulator makes of the products, for pages without JavaScript."""
        count = min(self.products, MOST_STATIC)
        lanes = tuple(Lane(**state) for state in self.lanes)
        exact, totals = _ends(self.data, count, self.operands, self.seed, lanes)
        rows = "".join(
            f"<tr><th scope='row'>{html.escape(label)}</th><td>{_number(end)}</td><td>{_error(end, exact)}</td></tr>"
            for label, end in totals.items()
        )
        only = f" (here the first {count:,})" if count < self.products else ""
        return (
            f"<p>{self.products:,} products{only} of {format_label(FORMATS[self.operands])} numbers, "
            f"{DATA[self.data]}: each product is exact, and together they are {_number(exact)}. What is left of that "
            "depends on the register that they are added in.</p>"
            '<table class="mp-dot-static"><thead><tr><th scope="col">accumulator</th><th scope="col">sum</th>'
            f'<th scope="col">error</th></tr></thead><tbody>{rows}</tbody></table>'
            '<p class="mp-static-note">Here each addition can be watched in bits; that needs JavaScript.</p>'
        )


@lru_cache(maxsize=64)
def _ends(data: str, count: int, operand_format: str, seed: int, lanes: tuple[Lane, ...]):
    """Return the exact sum, and each lane's and each known accumulator's, by its label."""
    a, b = operands(data, count, operand_format, seed)
    rows = {lane.label: lane.matmul for lane in lanes}
    rows |= {accumulator.label: accumulator.matmul for accumulator in ACCUMULATORS.values()}
    x, y = _row_and_column(a, b, operand_format)
    return math.fsum(a * b), {label: float(add(x, y)) for label, add in rows.items()}


def _row_and_column(a: np.ndarray, b: np.ndarray, operand_format: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return [1, K] and [K, 1] in the dtype of the operands, which says where their exponents end."""
    x, y = (torch.from_numpy(vector).to(FORMATS[operand_format].torch_dtype) for vector in (a, b))
    return x[None], y[:, None]


def _error(value: float, exact: float) -> str:
    if value == exact:
        return "0 %"
    if exact == 0 or not math.isfinite(value):
        return "–"
    return f"{100 * (value - exact) / abs(exact):+.2g} %".replace("-", "−")
