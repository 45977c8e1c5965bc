"""The hidden adders of Microscope: what each returns for eight terms; the twin of adders.js."""

from dataclasses import dataclass

from utils.experiments.microscope.adders import STEPS, Adder, Product, to_whole
from utils.formats import FLOAT16
from utils.widgets.shared.numbers.dice import dice

PLACES = 8  # terms of a sum; an empty place holds 0
RULES = {
    "ties_to_even": "to nearest, ties to even",
    "ties_away": "to nearest, ties away from zero",
    "toward_zero": "cut off, toward zero",
    "toward_negative": "down, toward −∞",
    "toward_positive": "up, toward +∞",
}  # names of `utils.rounding.RULES`
EXTRAS = {
    0: "cut at the total’s last place",
    1: "cut one bit below the last place",
    2: "cut two bits below the last place",
    None: "not cut: the sum is exact, then rounded",
}
ORDERS = {
    1: "one after the other",
    "pairs": "in pairs, then pairs of sums",
    4: "four at once, then the next four",
    8: "all eight at once",
}
FLUSHES = {False: "kept", True: "read as 0"}
LEAST_BITS, MOST_BITS = 7, 24  # of a random adder


@dataclass(frozen=True)
class HiddenAdder:
    """How a unit adds eight terms.

    `bits`: significant bits of the total. `extra`: bits of an addend kept below the last place that a total has with
    the largest addend's exponent, the rest cut off toward zero; None: all. `rule`: how the sum is then rounded to
    `bits`, a key of `RULES`. `order`: how many terms meet the total in one addition, or "pairs". `flush`: whether terms
    below float16's smallest normal number, 2**-14, are read as 0.
    """

    bits: int
    extra: int | None = None
    rule: str = "ties_to_even"
    order: int | str = 1
    flush: bool = False

    def add(self, terms: list[float]) -> float:
        """Return the sum of up to eight terms, multiples of 2**-256."""
        if len(terms) > PLACES:
            raise ValueError(f"{len(terms)} terms: there are {PLACES} places")
        kept = [0.0 if self.flush and abs(x) < FLOAT16.smallest_normal else x for x in terms]
        whole = [to_whole(x) for x in [*kept, *[0.0] * (PLACES - len(kept))]]
        adder = Adder(self.bits, self.rule, self.extra)
        add_once = lambda values: adder.add([Product(value) for value in values])  # noqa: E731
        if self.order == "pairs":
            while len(whole) > 1:
                whole = [add_once(whole[i : i + 2]) for i in range(0, len(whole), 2)]
            return whole[0] / (1 << STEPS)
        total = 0
        for start in range(0, PLACES, self.order):
            total = add_once([total, *whole[start : start + self.order]])
        return total / (1 << STEPS)


def random_adder(seed: int) -> HiddenAdder:
    """Draw an adder, the same one as the page does."""
    bits, extra, rule, order, flush = dice(seed, 5)
    pick = lambda options, x: list(options)[int(x * len(options))]  # noqa: E731
    return HiddenAdder(
        LEAST_BITS + int(bits * (MOST_BITS - LEAST_BITS + 1)),
        pick(EXTRAS, extra),
        pick(RULES, rule),
        pick(ORDERS, order),
        pick(FLUSHES, flush),
    )
