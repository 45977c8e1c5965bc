"""Count the paired seeds that it takes to see a difference between two recipes, or to rule one out.

    seeds_needed(0.25, spread=0.4)  # 23 pairs: a mean difference of 0.25 is seen in four experiments of five

Two recipes run from the same seeds. Their differences, seed by seed, have a mean and a standard deviation: the
`spread`, in the unit of the `difference`. They are taken to be normal and independent. A difference is seen if
Student's paired t test finds that the mean is not 0. `error` is how often it may do so where the true mean is 0 (both
sides together), `power` how often it must where the true mean is `difference`. For m comparisons at once, pass
error / m (Bonferroni).

On paper, n = ((z(1 - error/2) + z(power)) * spread / difference)**2 with z the quantile of the normal distribution
(`by_normal`). That takes the spread as known. It is measured in the same few runs, which `seeds_needed` pays for.
Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, chapter 2; ruling out: Schuirmann 1987, doi
10.1007/BF01068419 (two one-sided tests).
"""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from scipy.integrate import quad
from scipy.special import chdtri, nctdtr, ndtr, stdtrit  # scipy.stats has the same in 0.5 s more of import

MOST = 2**16  # pairs that are tried
TAIL = 1e-12  # the probability of the spreads that are left out on either side
_NORMAL = NormalDist()


def by_normal(difference: float, *, spread: float, power: float = 0.8, error: float = 0.05) -> float:
    """Return the number of pairs by the formula on paper, not rounded; below about 30 it is too small.

    Raises: ValueError for a difference of 0, a spread that is not positive, or shares outside 0 ... 1.
    """
    _check_arguments(difference, spread, power, error)
    z = _NORMAL.inv_cdf(1 - error / 2) + _NORMAL.inv_cdf(power)
    return (z * spread / difference) ** 2  # n at which difference / (spread / sqrt(n)) = z


def seeds_needed(difference: float, *, spread: float, power: float = 0.8, error: float = 0.05) -> int:
    """Return the smallest number of pairs at which a true `difference` is seen with probability `power`.

    Raises: ValueError as `by_normal`, and where it would take more than `MOST` pairs.
    """
    _check_arguments(difference, spread, power, error)
    return _find_fewest(lambda pairs: probability_to_see(pairs, difference, spread=spread, error=error), power)


def seeds_to_rule_out(
    difference: float, *, spread: float, true: float = 0.0, power: float = 0.8, error: float = 0.05
) -> int:
    """Return the smallest number of pairs that shows two recipes to differ by less than `difference`.

    It is shown when the interval of 1 - 2 `error` (90 % for 5 %) around the mean lies within plus and minus the
    difference. `true` is their true difference, 0 for equal recipes; the nearer to `difference`, the more pairs it
    takes.
    Raises: ValueError as `seeds_needed`.
    """
    _check_arguments(difference, spread, power, error)
    return _find_fewest(
        lambda pairs: probability_to_rule_out(pairs, difference, spread=spread, true=true, error=error), power
    )


def probability_to_see(pairs: int, difference: float, *, spread: float, error: float = 0.05) -> float:
    """Return the probability that `pairs` paired seeds show a true mean difference to be unlike 0.

    Raises: ValueError for less than 2 pairs: one pair has no spread.
    """
    shift, limit = abs(_standardize(pairs, difference, spread)), critical_t(pairs - 1, error / 2)
    # t of a mean that is not 0 follows the noncentral distribution: P(t > limit) + P(t < -limit)
    far = nctdtr(pairs - 1, shift, -limit)
    if math.isnan(far):  # SciPy 1.17, from a shift of about 8 on, where this tail is below 1e-14
        far = 0.0
    return float(1 - nctdtr(pairs - 1, shift, limit) + far)


def probability_to_rule_out(
    pairs: int, difference: float, *, spread: float, true: float = 0.0, error: float = 0.05
) -> float:
    """Return the probability that `pairs` paired seeds rule out a mean difference that large; `true`: what it is.

    Raises: ValueError for less than 2 pairs.
    """
    room, limit = abs(_standardize(pairs, difference, spread)), critical_t(pairs - 1, error)
    shift, half = _standardize(pairs, true, spread), (pairs - 1) / 2
    # s^2 (n - 1) follows chi-squared with n - 1 degrees, so s has the density 2 h^h / gamma(h) s^(2h - 1) exp(-h s^2)
    constant = math.log(2) + half * math.log(half) - math.lgamma(half)

    def density(s: float) -> float:
        """Of s, the measured spread over the true one, times P(both ends of the interval lie within the room)."""
        within = ndtr(room - limit * s - shift) - ndtr(limit * s - room - shift)
        return within * math.exp(constant + (2 * half - 1) * math.log(s) - half * s * s)

    low, high = (math.sqrt(chdtri(2 * half, tail) / (2 * half)) for tail in (1 - TAIL, TAIL))
    high = min(high, room / limit)  # with more spread the interval is wider than the room
    return quad(density, low, high)[0] if low < high else 0.0


def simulate_seen(
    pairs: int,
    difference: float,
    *,
    spread: float,
    generator: np.random.Generator,
    trials: int = 10_000,
    error: float = 0.05,
) -> float:
    """Return the share of `trials` drawn experiments that see the difference: the check of `probability_to_see`.

    Each draws `pairs` normal differences and takes the t test of their mean.
    """
    drawn = generator.normal(difference, spread, (trials, pairs))
    t = drawn.mean(1) * math.sqrt(pairs) / drawn.std(1, ddof=1)  # Student's t of each experiment, [trials]
    return float(np.mean(np.abs(t) > critical_t(pairs - 1, error / 2)))


def critical_t(freedom: int, share: float) -> float:
    """Return the t that Student's distribution with `freedom` degrees exceeds with probability `share` (one side)."""
    return float(-stdtrit(freedom, share))


def _find_fewest(probability: Callable[[int], float], power: float) -> int:
    high = 2
    while probability(high) < power:
        high *= 2
        if high > MOST:
            raise ValueError(f"more than {MOST:,} pairs: the difference is too small beside the spread to be seen")
    low = high // 2  # too few, or the fewest that there are
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if probability(middle) >= power else (middle, high)
    return high


def _standardize(pairs: int, difference: float, spread: float) -> float:
    """Return difference / (spread / sqrt(pairs)): the mean in units of its standard error."""
    if pairs < 2:
        raise ValueError(f"{pairs} pairs say nothing of their spread; take at least 2")
    return difference * math.sqrt(pairs) / spread


def _check_arguments(difference: float, spread: float, power: float, error: float) -> None:
    if not (difference and spread > 0 and math.isfinite(difference / spread)):
        raise ValueError(f"difference {difference}, spread {spread}: both must be finite, and neither may be 0")
    if not (0 < power < 1 and 0 < error < 1):
        raise ValueError(f"power {power} and error {error} must lie between 0 and 1")
