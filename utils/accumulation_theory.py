"""What the error of a long sum should be: bounds that say why a curve has its slope, and a prediction of its height.

All errors are relative. The bounds are relative to the sum of the products' sizes, sum |a_i b_i|, which is the sum
itself where no product is negative; where products cancel, the error relative to the small sum is larger.
"""

import math
from typing import NamedTuple

import numpy as np

from utils.emulation.accumulators import Accumulator
from utils.rounding import Rounding, ties_to_even

FLOAT32_ROUNDOFF = 2.0**-24  # of the total that others are promoted to


class Prediction(NamedTuple):
    """The expected relative error of a sum of products none of which is negative, and its spread around that."""

    drift: float  # with its sign: below 0 where the sum comes out too small
    walk: float  # standard deviation

    @property
    def error(self) -> float:
        """The root of the mean square, which a relative Frobenius error estimates."""
        return math.hypot(self.drift, self.walk)


def depth(one: Accumulator, count: int) -> int:
    """Return how often a product is rounded, at most, on its way into a sum of `count`, promotions left out.

    Once for each block that follows in a running total; where addends are cut, each of them counts as one more. The
    height of the tree in pairs. Kahan's sum answers for 2, whatever the count (Higham, Accuracy and Stability of
    Numerical Algorithms, 2002, 4.2 and 4.3).
    """
    if one.order == "pairwise":
        return max(0, count - 1).bit_length()
    if one.order == "kahan":
        return 2
    length = min(count, one.promote or count)
    return math.ceil(length / one.block) + (length if one.aligned else 0)


def worst_case(one: Accumulator, count: int) -> float:
    """Bound the error by depth times unit roundoff, relative to sum |a_i b_i|: slope 1 for a running total.

    Higham 2002, 4.2; for blocks Blanchard, Higham and Mary, SISC 42, A1541, 2020. First order in the unit roundoff.
    """
    return depth(one, count) * one.unit_roundoff + _promotions(one, count) * FLOAT32_ROUNDOFF


def random_walk(one: Accumulator, count: int) -> float:
    """Return sqrt(depth) times unit roundoff: how errors grow that are as often up as down, slope 1/2.

    The probabilistic bound is this times a factor that grows slowly with the certainty asked for (Higham and Mary, SISC
    41, A2815, 2019). Its assumption, errors of mean 0, holds under stochastic rounding (Connolly, Higham and Mary, SISC
    43, A566, 2021), to nearest while the total is not much larger than its addends, and never where bits are cut.
    """
    return math.hypot(
        math.sqrt(depth(one, count)) * one.unit_roundoff, math.sqrt(_promotions(one, count)) * FLOAT32_ROUNDOFF
    )


def stall(one: Accumulator, largest: float) -> float:
    """Return the power of two from which on a total stays, if no product is above `largest`, a power of two.

    Infinite for sums without one running total, and for stochastic rounding; promoted totals never get that far.
    """
    if one.order != "running" or one.promote or one.rounding.__name__ == "rule":
        return math.inf
    at_once = 1 if one.aligned else one.block
    bits = one.precision if one.rounding is ties_to_even else one.precision - 1
    return math.ldexp(largest * at_once, bits)


def predicted(one: Accumulator, products, count: int) -> Prediction:
    """Predict the error of a running total of `count` products that are like the samples given, none negative.

    While the total stays in one binade, its last bit g is worth the same, and an addend x comes in as a multiple of g.
    The mean of (rounded x) - x is the drift of a step, its variance the spread. So the binades are crossed one after
    the other, each in a number of steps that the mean rounded addend decides; where that is 0, the total stalls.

    `products`: at least one block of them, any shape. Raises ValueError for sums that have no running total.
    """
    if one.order != "running":
        raise ValueError(f"{one.name} has no running total; bounds are in worst_case and random_walk")
    products = np.asarray(products, dtype=np.float64).ravel()
    at_once = 1 if one.aligned else one.block
    addends = products[: products.size // at_once * at_once].reshape(-1, at_once).sum(axis=1)
    length = min(count, one.promote or count)
    parts = count / length
    total, variance = _crossed(addends, math.ceil(length / at_once), one)
    ideal = addends.mean() * math.ceil(length / at_once)
    return Prediction(total / ideal - 1, math.sqrt(variance / parts) / ideal)


def _crossed(addends: np.ndarray, steps: int, one: Accumulator) -> tuple[float, float]:
    """Return the expected total after so many steps, and the variance that rounding gives it.

    The step that enters a binade is rounded to its gap, and so is the first one, from 0.
    """
    total = variance = 0.0
    while steps > 0:
        below = 2.0 ** math.floor(math.log2(total + addends.mean()))  # the binade in which the next total lies
        mean, spread = _step(addends, below * 2.0 ** (1 - one.precision), one.rounding)
        taken = min(steps, max(1, math.floor((2 * below - total) / mean))) if mean > 0 else steps
        total, variance, steps = total + taken * mean, variance + taken * spread, steps - taken
    return total, variance


def _step(addends: np.ndarray, gap: float, rounding: Rounding) -> tuple[float, float]:
    """Return the mean of the addends rounded to multiples of the gap, and the variance of what that changes.

    Beside an even and beside an odd total, where a tie goes the other way.
    """
    kept = gap * np.stack([rounding(addends / gap), rounding(addends / gap + 1) - 1])
    return kept.mean(), (kept - addends).var()


def _promotions(one: Accumulator, count: int) -> int:
    return math.ceil(count / one.promote) if one.promote else 0
