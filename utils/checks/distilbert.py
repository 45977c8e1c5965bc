"""Checks of `training/distilbert`."""

import math

import numpy as np

from utils.checks.distilbert_questions import PAIRED_INTERVAL, STANDARD_ERROR, WRONG_BAR, Z_OF_DIFFERENCE
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    correct,
    exercise,
    judged,
    not_yet,
    paper,
    time_limit,
)
from utils.measure import mean_interval

check_standard_error = paper(STANDARD_ERROR)
check_z_of_difference = paper(Z_OF_DIFFERENCE)


@exercise(asks=WRONG_BAR)
def check_wrong_bar(answer) -> Outcome:
    """Which bar of the published memory chart cannot be right: a recipe's name."""
    text = str(answer).strip().lower()
    text = "float32" if text in ("32-true", "fp32") else text
    bars = [option.text.lower() for option in WRONG_BAR.options]
    if text not in bars:
        return not_yet(f"{answer!r} is not a bar of the chart; name one of its five.")
    return judged(WRONG_BAR, bars.index(text))


@exercise(asks=PAIRED_INTERVAL)
def check_paired_interval(answer) -> Outcome:
    """A function (a, b) -> (mean, half-width of the 95 % Student interval) of the differences a - b, seed by seed."""
    if not callable(answer):
        return not_yet("The check needs the function itself, as in check_paired_interval(paired_interval).")
    rng = np.random.default_rng(0)
    with time_limit(5.0):
        if (said := answer([1.0, 2.0], [0.0, 0.0])) is None or said is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the mean and the half-width.")
        for n in (2, 3, 5, 8):
            luck = rng.normal(92, 1.0, n)  # what both runs of a seed share
            a, b = luck + rng.normal(0.1, 0.1, n), luck + rng.normal(0, 0.1, n)
            mean, half = (float(part) for part in answer(a.tolist(), b.tolist()))
            wanted_mean, wanted_half = mean_interval(a - b)
            if math.isclose(mean, -wanted_mean, rel_tol=1e-6):
                return not_yet("The sign is turned round: the difference is a - b.")
            if not math.isclose(mean, wanted_mean, rel_tol=1e-6):
                return not_yet(f"For {n} seeds the mean should be {wanted_mean:.4f}, yours is {mean:.4f}.")
            if math.isclose(half, wanted_half, rel_tol=1e-3):
                continue
            unpaired = math.hypot(mean_interval(a)[1], mean_interval(b)[1])
            if math.isclose(half, unpaired, rel_tol=1e-3):
                return not_yet("That is the unpaired interval. Subtract seed by seed first: the shared luck drops out.")
            if math.isclose(half, wanted_half * math.sqrt((n - 1) / n), rel_tol=1e-3):
                return not_yet("The spread divides by n; from a sample it divides by n - 1 (ddof=1).")
            if math.isclose(half, 1.96 * np.std(a - b, ddof=1) / math.sqrt(n), rel_tol=1e-2):
                return not_yet(
                    f"1.96 is for many runs. With {n} seeds take Student's t for {n - 1} degrees of freedom."
                )
            return not_yet(f"For {n} seeds the half-width should be {wanted_half:.4f}, yours is {half:.4f}.")
    return correct("Pairing removes what the two runs of a seed share, as far as they share anything.")
