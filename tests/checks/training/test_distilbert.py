"""The checks of training/distilbert: the right answer, and for each foreseen wrong one the hint that names it."""

import math
import statistics

import pytest
import torch

from tests.book_questions import right_option
from utils import records
from utils.checks.outcome import NOT_YET
from utils.checks.training import distilbert as checks
from utils.checks.training.distilbert_questions import SEED_SPREAD, WHO_FAILS
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


def test_the_prediction_about_the_failure_is_what_was_recorded():
    runs = [r for r in records.load_all(experiment="distilbert") if r.size == "small" and r.data_name == "imdb"]
    asked = {option.text: option.right for option in WHO_FAILS.options}
    for record in runs:
        if record.recipe in asked:
            assert (record.results["accuracy"] < 0.55) == asked[record.recipe], record.name


class HalfAdam:
    """Adam as the exercise gives it, with what a learner may change as attributes of the class."""

    moments, gradient, eps, clean = torch.float16, torch.float16, 1e-8, False
    correct, sign, weights_dtype = True, 1.0, None

    def __init__(self, weights, lr=1e-3):
        self.weights, self.lr, self.t = list(weights), lr, 0
        for w in self.weights if self.weights_dtype else ():
            w.data = w.data.to(self.weights_dtype)
        self.m = [torch.zeros_like(w, dtype=self.moments) for w in self.weights]
        self.v = [torch.zeros_like(w, dtype=self.moments) for w in self.weights]

    @torch.no_grad()
    def step(self):
        self.t += 1
        for w, m, v in zip(self.weights, self.m, self.v, strict=True):
            g = w.grad.to(self.gradient)
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            t = self.t if self.correct else 1
            update = m / (1 - 0.9**t) / ((v / (1 - 0.999**t)).sqrt() + self.eps)
            w -= self.sign * self.lr * (update.nan_to_num(0, 0, 0) if self.clean else update)


def variant(**changes):
    return type("HalfAdam", (HalfAdam,), changes)


def test_the_rescue_is_moments_in_float32():
    assert checks.check_rescue(variant(moments=torch.float32, gradient=torch.float32))


@pytest.mark.parametrize(
    ("changes", "says", "hint"),
    [
        ({}, "is NaN", "0/0"),
        ({"moments": torch.float32}, "A gradient of 1e-6 moves", "In which dtype is g squared"),
        ({"eps": 1e-7}, "A gradient of 1e-6 moves|Adam's first step", "root of v"),
        ({"eps": 1e-4}, "No NaN. But Adam's first step", "A large eps"),
        ({"clean": True}, "No NaN. But Adam's first step", "update that is lost"),
        ({"weights_dtype": torch.float32}, "float32 now", "beside the weights"),
        ({"moments": torch.float32, "gradient": torch.float32, "sign": -1.0}, "uphill", "subtracted"),
        ({"moments": torch.float32, "gradient": torch.float32, "correct": False}, "After 30 steps", "step to step"),
        ({"step": lambda self: None}, "have not moved", "in place"),
    ],
    ids=["as given", "squares", "eps 1e-7", "eps 1e-4", "nan_to_num", "wide weights", "sign", "correction", "nothing"],
)
def test_the_rescue_names_the_misconception(changes, says, hint):
    outcome = checks.check_rescue(variant(**changes))
    assert outcome.status == NOT_YET
    assert any(text in outcome.message for text in says.split("|")), outcome.message
    assert hint in outcome.hint
