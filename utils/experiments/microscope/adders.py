"""Hypotheses about how one addition rounds, in whole numbers, and those among them that a set of answers leaves.

An `Adder` takes any number of addends at once. Tensor cores were found to shift all addends to the exponent of the
largest, to cut off what lies more than a few extra bits below its last place, and to truncate the sum (Fasi, Higham,
Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021). IEEE 754 adds exactly and
rounds once.

A number is a Python int in steps of 2**-512: products of float32 fit, and only the rule under test rounds.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from utils.experiments.microscope.summation_tree import Node, list_nodes
from utils.rounding import RULES

STEPS = 512  # a number is a multiple of 2**-512, a factor of 2**-256
MOST_EXTRA = 6  # more extra bits cannot be told from all


def to_whole(value: float, steps: int = STEPS) -> int:
    """Return value * 2**steps. Raises: ValueError where that is not a whole number."""
    numerator, denominator = value.as_integer_ratio()
    result, rest = divmod(numerator << steps, denominator)
    if rest:
        raise ValueError(f"{value} is no multiple of 2**-{steps}")
    return result


@dataclass(frozen=True)
class Product:
    """The exact product of two factors, in steps of 2**-512.

    `exponent`: where an adder aligns it; None: by the product itself. The sum of its factors' exponents is one less
    where the significands' product is 2 or more, and may be more where a factor is subnormal.
    """

    value: int
    exponent: int | None = None

    @classmethod
    def of(cls, a: float, b: float, emin: int = -STEPS // 2) -> "Product":
        """Multiply exactly; the exponent is the sum of the factors', none of which is below `emin` of their format."""
        if not a or not b:
            return cls(0)
        exponent = sum(max(math.frexp(x)[1] - 1, emin) for x in (a, b)) + STEPS  # in steps: 2**e is 1 << e + STEPS
        return cls(to_whole(a, STEPS // 2) * to_whole(b, STEPS // 2), exponent)  # a 2**256 * b 2**256 = a b 2**512


@dataclass(frozen=True)
class Adder:
    """One addition: exact, or of addends that were cut; then rounded to `precision` significant bits.

    `rounding`: a name in `utils.rounding.RULES`. `extra_bits`: kept of each addend below the last place of a total with
    the largest addend's exponent; None: all. `by_factors`: products are aligned by the sum of their factors' exponents.
    `carries`: the sum of cut addends is not rounded: one that grows past its largest addend keeps the longer total.
    """

    precision: int
    rounding: str
    extra_bits: int | None = None
    by_factors: bool = False
    carries: bool = False

    def add(self, addends: Sequence[Product]) -> int:
        """Add in steps of 2**-512; a sum of earlier additions is a `Product` without an exponent."""
        if self.extra_bits is None:
            return self.rounded(sum(addend.value for addend in addends))
        exponents = [self._align(addend) for addend in addends if addend.value]
        if not exponents:
            return 0
        cut = max(0, max(exponents) - (self.precision - 1) - self.extra_bits)  # bits below 2**cut are dropped
        total = sum((abs(addend.value) >> cut << cut) * (1 if addend.value > 0 else -1) for addend in addends)
        return total if self.carries else self.rounded(total)

    def _align(self, addend: Product) -> int:
        if self.by_factors and addend.exponent is not None:
            return addend.exponent
        return abs(addend.value).bit_length() - 1  # floor(log2 |value|)

    def rounded(self, value: int) -> int:
        """Round to `precision` significant bits by the rule."""
        drop = abs(value).bit_length() - self.precision  # low bits
        return value if drop <= 0 else round_whole(value, drop, self.rounding) << drop


def round_whole(value: int, drop: int, rounding: str) -> int:
    """Round value / 2**drop to a whole number; the twin of `utils.rounding.RULES` in whole numbers of any length."""
    below, half = value >> drop, 1 << drop - 1  # floor(value / 2**drop), also of negative values
    rest = value - (below << drop)  # 0 <= rest < 2 half
    up = {
        "toward_negative": False,
        "toward_positive": rest > 0,
        "toward_zero": rest > 0 and value < 0,
        "ties_away": rest > half or (rest == half and value > 0),
        "ties_to_even": rest > half or (rest == half and below & 1),  # a tie goes up from an odd number
    }[rounding]
    return below + bool(up)


class AdditionAnswer(NamedTuple):
    """Addends of one addition, what the next addition subtracted (None: nothing), and what was left."""

    addends: Sequence[Product]
    taken: Product | None
    left: int


def find_surviving(answers: Iterable[AdditionAnswer], precision: int) -> list[Adder]:
    """Return the adders of this precision that give every answer.

    The five rules are tried with 0 to 6 extra bits or all, and the adders that cut in the same way and keep carries.
    The next addition is taken to be of the same kind: what it cuts cannot be told from what the first one cut.
    """
    cuts = list(itertools.product(range(MOST_EXTRA + 1), (False, True)))
    adders = [Adder(precision, rule, *cut) for rule in RULES for cut in [(None, False), *cuts]]
    adders += [Adder(precision, "toward_zero", *cut, carries=True) for cut in cuts]
    for answer in answers:
        adders = [adder for adder in adders if _subtract(adder, answer) == answer.left]
    return adders


def _subtract(adder: Adder, answer: AdditionAnswer) -> int:
    """Return what an adder would leave: the sum of the addends, minus what is subtracted next."""
    total = adder.add(answer.addends)
    return total if answer.taken is None else adder.add([Product(total), answer.taken])


def find_common(adders: Sequence[Adder], name: str) -> tuple[bool, object]:
    """Return whether all adders agree in one attribute, and its value."""
    values = {getattr(adder, name) for adder in adders}
    return (True, values.pop()) if len(values) == 1 else (False, None)


def add_tree(tree: Node, products: Sequence[Product], adder_of: Callable[[Node], Adder]) -> int:
    """Add products along a tree, each addition by its own adder; in steps of 2**-512."""
    done: dict[int, int] = {}
    for node, _ in reversed(list_nodes(tree)):
        addends = [products[c] if isinstance(c, int) else Product(done[id(c)]) for c in node.children]
        done[id(node)] = adder_of(node).add(addends)
    return done[id(tree)]
