"""Find the order of a sum with masks: 2**mask in one place, -2**mask in another, and count which ones are lost.

`utils.experiments.microscope.summation_tree` makes the tree of these counts.
"""

import math
import random
from collections.abc import Sequence

from utils.experiments.microscope import summation_tree
from utils.experiments.microscope.crafted_sums import Sums
from utils.experiments.microscope.summation_tree import Node, NoTree

SPANS = (40, 34, 30, 24, 20)  # log2 of the mask over a 1: past the bits of a total and those of the count
WIDE = (66, 100)  # for a total that loses nothing there; a model that adds a block in float64 shows that at 66
CHECKS = 32  # pairs of places that are tried at last
SIGNS = ((1, 1), (-1, 1), (1, -1), (-1, -1))  # of the mask in the first place, and of the ones
MOST_ASKED = 40_000  # sums for one tree


def find_order(sums: Sums) -> tuple[Node | None, str]:
    """Return the tree of the sum, or None and why there is none."""
    rng = random.Random(0)
    pairs = [tuple(rng.sample(range(sums.places), 2)) for _ in range(CHECKS)]
    why, spans = "no two products of this dtype lie far enough apart", list(SPANS)
    while spans:
        span = spans.pop(0)
        mask = min(sums.highest, span // 2)
        if mask - span < sums.lowest:
            continue
        try:
            return _find_tree(sums, mask, mask - span, pairs), ""
        except NothingLost as error:
            why, spans = str(error), [wide for wide in WIDE if wide > span]
        except NoTree as error:
            why = str(error)
    return None, why


class NothingLost(NoTree):
    """A total holds the mask and the ones."""


def _find_tree(sums: Sums, mask: int, one_exponent: int, pairs: list[tuple[int, int]]) -> Node:
    """Return the tree by masks 2**mask and ones 2**one_exponent. Raises: NoTree where there is none."""
    lost = LostOnes(sums, mask, one_exponent)
    if not any(lost([(0, place) for place in range(1, sums.places)])):
        raise NothingLost(f"beside an addend 2^{mask - one_exponent} times as large a 1 is not lost")
    tree = summation_tree.find_tree(lost, sums.places)
    if lost(pairs) != summation_tree.predict_lost(tree, pairs):
        raise NoTree("pairs of places lose other ones than their order says")
    return tree


class LostOnes:
    """The function that `summation_tree.find_tree` asks: 2**mask in place i, -2**mask in place j.

    All other places hold 2**one_exponent.

    It uses no more ones at a time than the sum can count (`most`): a bfloat16 result cannot be 257. If a total is
    rounded in one direction, a small addend of the other sign takes a whole last place off the mask, and nothing can be
    counted. Then the pair is asked again with other signs, and finally with fewer and fewer ones: a single 1 that gives
    no count is lost. Raises: NoTree where the sum counts nothing or overflows, or where too many sums would be needed.
    """

    def __init__(self, sums: Sums, mask: int, one_exponent: int):
        self.sums, self.mask, self.unit, self.asked = sums, 2.0**mask, 2.0**one_exponent, 0
        sizes = [sums.places >> halvings for halvings in range(sums.places.bit_length())]
        counted = (
            size for size in sizes if sums.ask("ones", [{0: 0.0}], self.unit, (0, size)) == [(size - 1) * self.unit]
        )
        self.most = next(counted, 0)  # the largest size that is counted
        if self.most < 8:
            raise NoTree(f"ones of 2^{one_exponent} are not counted")

    def __call__(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        lost = [0] * len(pairs)
        for first in range(0, self.sums.places, self.most):
            within = first, min(first + self.most, self.sums.places)
            for n, count in enumerate(self._count_within(pairs, within)):
                lost[n] += count
        return lost

    def _count_within(self, pairs: Sequence[tuple[int, int]], within: tuple[int, int]) -> list[int]:
        counts: dict[int, int] = {}
        ones_in = [within[1] - within[0] - sum(within[0] <= place < within[1] for place in pair) for pair in pairs]
        for mask_sign, sign in SIGNS:
            waiting = [n for n in range(len(pairs)) if n not in counts]
            for n, result in zip(waiting, self._ask([pairs[n] for n in waiting], mask_sign, sign, within), strict=True):
                if not math.isfinite(result):
                    raise NoTree(f"{self.mask:g} overflows")
                left = sign * result / self.unit
                if 0 <= left <= ones_in[n] and left == int(left):
                    counts[n] = ones_in[n] - int(left)
        uncounted = [n for n in range(len(pairs)) if n not in counts]
        for half in _halve(*within) if uncounted else ():
            for n, count in zip(uncounted, self._count_within([pairs[n] for n in uncounted], half), strict=True):
                counts[n] = counts.get(n, 0) + count
        return [counts.get(n, 1) for n in range(len(pairs))]

    def _ask(self, pairs: Sequence[tuple[int, int]], mask_sign: int, sign: int, within: tuple[int, int]) -> list[float]:
        self.asked += len(pairs)
        if self.asked > MOST_ASKED:
            raise NoTree(f"more than {MOST_ASKED} sums would have to be asked for")
        crafted = [{i: mask_sign * self.mask, j: -mask_sign * self.mask} for i, j in pairs]
        return self.sums.ask("order", crafted, sign * self.unit, within)


def _halve(first: int, end: int) -> list[tuple[int, int]]:
    """Part places at a power of two, where blocks end; one place has no parts."""
    half = 1 << (end - first - 1).bit_length() - 1 if end - first > 1 else 0
    return [(first, first + half), (first + half, end)] if half else []
