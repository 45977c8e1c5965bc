"""Microscope: a hidden adder answers sums, and the reader names its properties."""

import json

import traitlets

from utils.checks.number_text import superscript
from utils.widgets.microscope.adders import (
    EXTRAS,
    FLUSHES,
    LEAST_BITS,
    MOST_BITS,
    ORDERS,
    RULES,
    HiddenAdder,
    random_adder,
)
from utils.widgets.microscope.levels import LARGEST, LEVELS, PRESETS, RANDOM
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.static_table import static_table

BY_NAME = {level.name: level for level in (*LEVELS, RANDOM)}
MOST_SEED = 9999
STATIC_SMALL = ((1.0, -8), (1.0, -9), (1.5, -9), (1.75, -9), (1.0, -10))  # multiple, power of two
STATIC_ADDERS = {"the first unit": HiddenAdder(9), "the second unit": HiddenAdder(10, rule="toward_zero")}


class Microscope(BookWidget):
    """Ask a hidden adder for sums of up to eight terms, and name its bits, its rule and its order from the answers.

    `level`: a name in `levels.LEVELS`, or "random" for the adder that `seed` draws. `terms`: the sum in the places, as
    text such as "1 2^-11 -1". `experiments`: the sums that have been asked for, ";" between them; the last ones, as
    many as an address has room for. `solved`: the ids of the levels that are solved. All are read and set from Python.

    Raises: ValueError for an unknown level and for a seed outside 1 ... 9999.
    """

    book_name = "microscope"

    level = traitlets.Unicode("nearest").tag(sync=True)
    seed = traitlets.Int(1).tag(sync=True)
    terms = traitlets.Unicode("").tag(sync=True)
    experiments = traitlets.Unicode("").tag(sync=True)
    goals = traitlets.List(traitlets.Dict()).tag(sync=True)
    solved = traitlets.List(traitlets.Unicode()).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init__(self, level: str = "nearest", seed: int = 1, terms: str | None = None, **kwargs):
        begin = BY_NAME[one_of(level, BY_NAME, "level")].begin
        super().__init__(level=level, seed=seed, terms=begin if terms is None else terms, **kwargs)

    @traitlets.default("goals")
    def _goals(self) -> list[dict]:
        return [level.as_json() for level in LEVELS]

    @traitlets.default("facts")
    def _facts(self) -> dict:
        choices = {"extra": EXTRAS, "rule": RULES, "order": ORDERS, "flush": FLUSHES}
        return {
            "random": RANDOM.as_json(),
            "presets": [list(preset) for preset in PRESETS],
            "largest": LARGEST,
            "most_seed": MOST_SEED,
            "choices": {
                "bits": [LEAST_BITS, MOST_BITS],
                **{name: [[key, text] for key, text in options.items()] for name, options in choices.items()},
            },
        }

    @property
    def adder(self) -> HiddenAdder:
        """The hidden adder."""
        return random_adder(self.seed) if self.level == RANDOM.name else BY_NAME[self.level].adder

    @traitlets.validate("level")
    def _valid_level(self, proposal) -> str:
        return one_of(proposal["value"], BY_NAME, "level")

    @traitlets.validate("seed")
    def _valid_seed(self, proposal) -> int:
        if not 1 <= proposal["value"] <= MOST_SEED:
            raise ValueError(f"seed {proposal['value']} is not in 1 to {MOST_SEED}")
        return proposal["value"]

    def __repr__(self) -> str:
        return f"Microscope({self.level!r}, seed={self.seed}, terms={json.dumps(self.terms)})"

    def static_html(self) -> str:
        """Show what two adders return for 1 + x − 1, and what that says of them, for pages without JavaScript."""
        rows = []
        for multiple, power in STATIC_SMALL:
            x = multiple * 2.0**power
            sums = [adder.add([1.0, x, -1.0]) for adder in STATIC_ADDERS.values()]
            rows.append((_small_text(x), *map(_small_text, sums)))
        return (
            "<p>What two hidden units return for 1 + x − 1, each with one addition after the other:</p>"
            f"{static_table('mp-scope-static', ('x', *STATIC_ADDERS), rows)}"
            "<p>The first returns 2⁻⁸ and loses 2⁻⁹: its totals have 9 bits, and after 1 comes 1 + 2⁻⁸. It makes "
            "2⁻⁸ of 1.5 × 2⁻⁹, three quarters of that step, so it rounds to nearest; the half goes to 1, which is "
            "even. The second still returns 2⁻⁹, so it has 10 bits. It returns only 2⁻⁹ for 1.5 × 2⁻⁹ and for "
            "1.75 × 2⁻⁹: what does not fit is cut off.</p>"
            '<p class="mp-static-note">Here hidden adders answer the sums that you choose; that needs JavaScript.</p>'
        )


def _small_text(x: float) -> str:
    """Return 0, 2⁻ᵏ or 1.5 × 2⁻ᵏ as text."""
    if x == 0:
        return "0"
    multiple, power = x, 0
    while multiple < 1:
        multiple, power = 2 * multiple, power - 1
    return f"{'' if multiple == 1 else f'{multiple:g} × '}2{superscript(power)}"
