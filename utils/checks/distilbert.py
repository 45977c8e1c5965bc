"""Checks of `training/distilbert`."""

import math

import numpy as np

from utils.checks.outcome import NOT_ATTEMPTED, Outcome, as_number, correct, exercise, not_yet, time_limit
from utils.measure import mean_interval


@exercise
def check_standard_error(answer) -> Outcome:
    """The standard error, in percentage points, of an accuracy of 81 % on 2,000 test reviews."""
    value = as_number(answer)
    share, n = 0.81, 2_000
    wanted = 100 * math.sqrt(share * (1 - share) / n)
    if math.isclose(value, wanted, rel_tol=0.03):
        return correct(
            "About 0.88 points for one network. A difference of two errs by the root of 2 times that."
        )
    if math.isclose(value, wanted / 100, rel_tol=0.03):
        return not_yet("Right as a share. The question asks for percentage points: multiply by 100.")
    if math.isclose(value, 100 * share * (1 - share) / n, rel_tol=0.03):
        return not_yet("That is the variance, p (1 - p) / n. The standard error is its root.")
    if math.isclose(value, 100 * math.sqrt(share * (1 - share)), rel_tol=0.03):
        return not_yet("That is the spread of a single answer. The mean of n answers varies less, by the root of n.")
    if math.isclose(value, 1.96 * wanted, rel_tol=0.03):
        return not_yet("That is half of a 95 % interval, 1.96 standard errors. Give one standard error.")
    return not_yet(f"{value:g} is not it. Take sqrt(p (1 - p) / n) with p = 0.81 and n = 2,000, then times 100.")


@exercise
def check_z_of_difference(answer) -> Outcome:
    """How many standard errors lie between 92.61 % and 92.15 %, each measured once on 10,000 reviews."""
    value = as_number(answer)
    p, q, n = 0.9261, 0.9215, 10_000
    wanted = (p - q) / math.sqrt(p * (1 - p) / n + q * (1 - q) / n)
    if math.isclose(abs(value), wanted, rel_tol=0.05):
        return correct("About 1.2 standard errors. Less than 2, so chance alone produces such a gap often.")
    if math.isclose(abs(value), (p - q) / math.sqrt(p * (1 - p) / n), rel_tol=0.06):
        return not_yet("Both accuracies were measured, so both err: add the two variances before you take the root.")
    if math.isclose(abs(value), 100 * wanted, rel_tol=0.05):
        return not_yet("You divided points by shares. Use one unit for both: 0.46 points and 0.37 points, say.")
    return not_yet(
        f"{value:g} is not it. The difference is 0.46 points; divide it by the root of the two variances' sum."
    )


@exercise
def check_wrong_bar(answer) -> Outcome:
    """Which bar of the published memory chart cannot be right: a recipe's name."""
    text = str(answer).strip().lower()
    if text in ("float32", "32-true", "fp32"):
        return correct("TF32 stores float32, so both need the same memory: 5.37 GB in the logs. 10.42 is float64's.")
    hints = {
        "tf32": "5.37 GB is what the log says. TF32 changes how products are computed, not what is stored.",
        "float64": "10.42 GB is right for float64. Count the bytes of one weight in each of the five recipes.",
        "16-mixed": "Mixed keeps float32 weights and states, and saves on activations only: 4.31 GB is right.",
        "bf16-true": "All tensors in half the bytes of float32, and nearly half the memory of the right float32 bar.",
    }
    return not_yet(hints.get(text, f"{answer!r} is not a bar of the chart; name one of its five."))


@exercise
def check_paired_interval(answer) -> Outcome:
    """A function (a, b) -> (mean, half-width of the 95 % Student interval) of the differences a - b, seed by seed."""
    if not callable(answer):
        return not_yet("The check needs the function itself, as in check_paired_interval(paired_interval).")
    if answer([1.0, 2.0], [0.0, 0.0]) is None:
        return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the mean and the half-width.")
    rng = np.random.default_rng(0)
    with time_limit(5.0):
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
