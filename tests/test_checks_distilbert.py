"""The checks of training/distilbert: the right answer, and for each foreseen wrong one the hint that names it."""

import math
import statistics

import pytest

from tests.book_questions import right_option
from utils import records
from utils.checks import distilbert as checks
from utils.checks.distilbert_questions import SEED_SPREAD
from utils.checks.outcome import NOT_YET
from utils.measure import mean_interval

STUDENT_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}


@pytest.mark.parametrize("answer", [0.88, 0.877, "100 * 0.0088"])
def test_standard_error_takes_a_rounded_answer(answer):
    assert checks.check_standard_error(answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (0.0088, "percentage points"),
        (100 * 0.1539 / 2e3, "variance"),
        (39.2, "single answer"),
        (1.72, "95 %"),
        (3, "sqrt"),
    ],
)
def test_standard_error_names_the_misconception(answer, hint):
    outcome = checks.check_standard_error(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize("answer", [1.2, 1.23])
def test_z_takes_a_rounded_answer(answer):
    assert checks.check_z_of_difference(answer)


@pytest.mark.parametrize(("answer", "hint"), [(1.76, "Both"), (122, "unit"), (0.46, "0.46 points"), (-1.22, "no sign")])
def test_z_names_the_misconception(answer, hint):
    outcome = checks.check_z_of_difference(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_wrong_bar_is_that_of_float32():
    assert checks.check_wrong_bar("float32")
    for name in ("TF32", "float64", "16-mixed", "bf16-true"):
        assert checks.check_wrong_bar(name).status == NOT_YET
    assert "not a bar" in checks.check_wrong_bar("int8").message


def paired(a, b):
    return mean_interval(x - y for x, y in zip(a, b, strict=True))


def by_hand(a, b):
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    half = STUDENT_T[len(gaps) - 1] * statistics.stdev(gaps) / len(gaps) ** 0.5
    return statistics.fmean(gaps), half


@pytest.mark.parametrize("function", [paired, by_hand])
def test_paired_interval_takes_a_right_function(function):
    assert checks.check_paired_interval(function)


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda a, b: (-paired(a, b)[0], paired(a, b)[1]), "a - b"),
        (lambda a, b: (0.0, paired(a, b)[1]), "mean should be"),
        (lambda a, b: (paired(a, b)[0], math.hypot(mean_interval(a)[1], mean_interval(b)[1])), "unpaired"),
        (lambda a, b: (paired(a, b)[0], paired(a, b)[1] * math.sqrt((len(a) - 1) / len(a))), "n - 1"),
        (lambda a, b: (paired(a, b)[0], 1.96 / STUDENT_T[len(a) - 1] * paired(a, b)[1]), "Student"),
        (lambda a, b: (paired(a, b)[0], 7.0), "half-width should be"),
        (lambda a, b: 3, "TypeError"),
    ],
    ids=["sign", "mean", "unpaired", "ddof", "normal", "half", "not a pair"],
)
def test_paired_interval_names_the_misconception(function, hint):
    outcome = checks.check_paired_interval(function)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_prediction_about_the_seeds_is_what_was_recorded():
    runs = [r for r in records.load_all(experiment="distilbert") if r.size == "small" and r.data_name == "imdb"]
    percent = [100 * r.results["accuracy"] for r in runs if r.recipe == "32-true"]
    assert right_option(SEED_SPREAD).text == "about 1 point"
    assert 0.5 < max(percent) - min(percent) < 2
