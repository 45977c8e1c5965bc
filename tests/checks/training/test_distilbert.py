"""The checks of training/distilbert: the right answer, and for each foreseen wrong one the hint that names it."""

import math
import statistics

import pytest
import torch

from tests.book_questions import right_option
from utils import records
from utils.checks.outcome import NOT_YET
from utils.checks.training import distilbert as checks
from utils.checks.training.distilbert_questions import (
    LARGER_EPSILON,
    PLACE,
    PRICE,
    SEED_COUNT,
    SEEDS_NEEDED,
    WRONG_BAR,
)
from utils.measure import mean_interval
from utils.runs import experiment, raschka2023
from utils.runs.seeds_needed import seeds_needed
from utils.widgets.arm_picker import words
from utils.widgets.arm_picker.facts import arms_of

STUDENT_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}


@pytest.mark.parametrize("answer", [26612, 26600, 27000, "4 * 0.1408 / 0.0046**2"])
def test_the_test_size_takes_a_rounded_answer(answer):
    assert checks.check_test_size(answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (10_000 * 2 / 1.226, "square root"),
        (6653, "one standard error"),
        (13306, "inside the square"),
        (53224, "together"),
        (4 * 0.9215 * 0.0785 / 0.0046**2, "Both"),
        (10_000, "solve for n"),
    ],
)
def test_the_test_size_names_the_misconception(answer, hint):
    outcome = checks.check_test_size(answer)
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


def test_the_wrong_bar_is_the_only_one_that_the_log_contradicts():
    shown = {run.name: run for run in raschka2023.RUNS}
    for option in WRONG_BAR.options:
        assert option.right == (shown[option.text].charted_gb != shown[option.text].reserved_gb)


def paired(a, b):
    return mean_interval(x - y for x, y in zip(a, b, strict=True))


def by_hand(a, b):
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    half = STUDENT_T[len(gaps) - 1] * statistics.stdev(gaps) / len(gaps) ** 0.5
    return statistics.fmean(gaps), half


def by_wrong_row(a, b):
    """The half-width with Student's t of n degrees of freedom, where the table has it."""
    table = {**STUDENT_T, 8: 2.306}
    return paired(a, b)[1] / table[len(a) - 1] * table[len(a)] if len(a) > 2 else paired(a, b)[1]


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
        (lambda a, b: (paired(a, b)[0], paired(a, b)[1] * math.sqrt(len(a))), "single difference"),
        (lambda a, b: (paired(a, b)[0], 2 * paired(a, b)[1]), "whole width"),
        (lambda a, b: (paired(a, b)[0], paired(a, b)[1] / STUDENT_T[len(a) - 1]), "one standard error"),
        (lambda a, b: (paired(a, b)[0], by_wrong_row(a, b)), "degrees of freedom"),
        (lambda a, b: (paired(a, b)[0], math.nan), "is NaN"),
        (lambda a, b: (paired(a, b)[0], max(paired(a, b)[1], 0.01)), "equal differences"),
        (lambda a, b: (paired(a, b)[0], 7.0), "half-width should be"),
        (lambda a, b: 3, "TypeError"),
    ],
    ids=["sign", "mean", "unpaired", "ddof", "normal", "root", "width", "error", "row", "NaN", "equal", "half", "3"],
)
def test_paired_interval_names_the_misconception(function, hint):
    outcome = checks.check_paired_interval(function)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def small_runs():
    every = records.load_all(experiment="distilbert")
    return [r for r in every if (r.size, r.data_name, r.device["kind"]) == ("small", "imdb", "cpu")]


def test_the_prediction_about_the_seeds_follows_from_the_recorded_spread():
    gaps = experiment.compare_by_seed(small_runs())["bf16-mixed"].by_seed
    spread = 100 * statistics.stdev(gaps)
    assert round(spread, 1) == 0.4
    assert right_option(SEEDS_NEEDED).text == "about twenty"
    assert 18 <= seeds_needed(0.25, spread=spread) <= 24
    assert 18 <= seeds_needed(0.25, spread=0.4) <= 24
    assert seeds_needed(1 / 9, spread=0.4) == pytest.approx(100, abs=6)


def test_the_prediction_about_a_larger_epsilon_is_what_was_recorded():
    right = sorted(r.results["accuracy"] for r in small_runs() if r.recipe == "16-true-eps")
    assert right_option(LARGER_EPSILON).text == "hardly better than guessing"
    assert right[3] < 0.52 < 0.6 < right[4]
    assert {r.results["nan_step"] for r in small_runs() if r.recipe == "16-true-eps"} == {None}


def test_the_tasks_of_the_widget_have_the_recorded_answers():
    data = arms_of(small_runs())
    group, accuracy = data["groups"][0], words.quantity_of(data, "accuracy")
    told = words.verdict_of(group, "16-mixed", "bf16-mixed", accuracy).differences
    assert sum(gap > 0 for gap in told.values()) == int(SEED_COUNT.answer)
    assert sum(gap == 0 for gap in told.values()) == 1
    ranks = words.ranked(group, data["arms"], accuracy)
    assert ranks["16-mixed"][3] == 1
    assert ranks["16-mixed"][4] == int(PLACE.answer)
    optimizer = words.quantity_of(data, "optimizer")
    for option in PRICE.options:
        kind = words.verdict_of(group, option.text, "32-true", optimizer).kind
        assert (kind == "equal") == option.right


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
        ({"clean": True}, "No NaN. But Adam's first step", "loses that update"),
        ({"weights_dtype": torch.float32}, "float32 now", "What else is narrow"),
        ({"moments": torch.float32, "gradient": torch.float32, "sign": -1.0}, "uphill", "subtracts"),
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
