"""The checks of training/distilbert: the right answer, and for each foreseen wrong one the hint that names it."""

import math
import statistics

import pytest
import torch

import book_rules as rules
from tests.book_questions import right_option
from utils import records
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.checks.training import distilbert as checks
from utils.checks.training.distilbert_questions import (
    ACTIVATIONS,
    EVIDENCE,
    HOW_OFTEN_SEEN,
    LARGER_EPSILON,
    MOST_MEMORY,
    PLACE,
    SEED_COUNT,
)
from utils.cost import memory
from utils.measure import mean_interval
from utils.runs import experiment, raschka2023
from utils.runs.seeds_needed import probability_to_see, seeds_needed
from utils.widgets.arm_picker import words
from utils.widgets.arm_picker.facts import arms_of

STUDENT_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}


@pytest.mark.parametrize(
    "answer",
    [26612, 26600, 27000, "4 * 0.1408 / 0.0046**2", 10_000 * (2 * 0.38 / 0.46) ** 2, 10_000 * (2 / 1.2) ** 2, 27335],
)
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
        (10_000, "half of 0.0046"),
        (26.612, "decimal point"),
    ],
)
def test_the_test_size_names_the_misconception(answer, hint):
    outcome = checks.check_test_size(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize("answer", [0.8, 0.775, 0.46 / 0.59, 0.46 / (2**0.5 * 0.43)])
def test_z_takes_a_rounded_answer(answer):
    assert checks.check_z_of_difference(answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (0.46 / 0.41, "Both"),
        (0.46 / 0.43, "Both"),
        (77.5, "unit"),
        (0.46, "0.46 points"),
        (0.46 / 0.84, "add as squares"),
        (0.59, "is the standard error"),
        (1.23, "10,000"),
        (0.46 / 0.38, "10,000"),
        (-0.775, "no sign"),
    ],
)
def test_z_names_the_misconception(answer, hint):
    outcome = checks.check_z_of_difference(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_the_evidence_against_the_first_claim_rounds_less_than_float32_and_is_better():
    shown = raschka2023.BY_NAME
    assert right_option(EVIDENCE).text == "float64"
    assert round(shown["float64"].accuracy - shown["float32"].accuracy, 1) == 2.2
    learned = [run for run in raschka2023.RUNS if run.accuracy > 60]
    assert max(learned, key=lambda run: run.accuracy).name == "bf16-true"


def test_what_the_forward_pass_saves_takes_most_of_the_memory():
    held = memory.predict("DistilBERT", "32-true", batch=12, length=512)
    parts = held.weights, held.gradients, held.optimizer, held.activations
    assert [f"{part / 1e9:.2f}" for part in parts[:3]] == ["0.27", "0.27", "0.54"]
    assert parts[3] > held.total / 2
    options = [option.text for option in MOST_MEMORY.options]
    assert options.index(right_option(MOST_MEMORY).text) == parts.index(max(parts))
    narrow = memory.predict("DistilBERT", "16-mixed", batch=12, length=512)
    assert (narrow.weights, narrow.gradients, narrow.optimizer) == parts[:3]


def paired(a, b):
    return mean_interval(x - y for x, y in zip(a, b, strict=True))


def by_hand(a, b):
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    half = STUDENT_T[len(gaps) - 1] * statistics.stdev(gaps) / len(gaps) ** 0.5
    return statistics.fmean(gaps), half


def by_wrong_row(a, b):
    """The half-width with Student's t of n degrees of freedom."""
    table = {**STUDENT_T, 8: 2.306}
    return paired(a, b)[1] / table[len(a) - 1] * table[len(a)]


def ends_of(a, b):
    mean, half = paired(a, b)
    return mean - half, mean + half


def in_float32(a, b):
    gaps = torch.tensor(a) - torch.tensor(b)
    return gaps.mean(), STUDENT_T.get(len(a) - 1, 2.365) * gaps.std() / len(a) ** 0.5


@pytest.mark.parametrize("function", [paired, by_hand, in_float32])
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
        (lambda a, b: (paired(a, b)[0], by_wrong_row(a, b)), "1 degree of freedom"),
        (lambda a, b: ends_of(a, b), "two ends"),
        (lambda a, b: paired(a, b)[::-1], "wrong order"),
        (lambda a, b: (paired(a, b)[0], math.nan), "is NaN"),
        (lambda a, b: (paired(a, b)[0], max(paired(a, b)[1], 0.01)), "equal differences"),
        (lambda a, b: (paired(a, b)[0], 7.0), "half-width should be"),
        (lambda a, b: 3, "TypeError"),
    ],
    ids=[
        "sign",
        "mean",
        "unpaired",
        "ddof",
        "normal",
        "root",
        "width",
        "error",
        "row",
        "ends",
        "order",
        "NaN",
        "equal",
        "half",
        "3",
    ],
)
def test_paired_interval_names_the_misconception(function, hint):
    outcome = checks.check_paired_interval(function)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def small_runs():
    every = records.load_all(experiment="distilbert")
    return [r for r in every if (r.size, r.data_name, r.device["kind"]) == ("small", "imdb", "cpu")]


def test_the_prediction_about_five_pairs_is_the_power_of_the_t_test():
    gaps = experiment.compare_by_seed(small_runs())["bf16-mixed"].by_seed
    spread = round(100 * statistics.stdev(gaps), 2)
    assert f"s = {spread} points" in HOW_OFTEN_SEEN.text
    assert right_option(HOW_OFTEN_SEEN).text == "one in five"
    assert probability_to_see(5, 0.25, spread=spread) == pytest.approx(0.2, abs=0.02)
    assert probability_to_see(5, 0.46, spread=spread) == pytest.approx(0.5, abs=0.02)
    assert probability_to_see(5, 2 / 3, spread=spread) == pytest.approx(0.8, abs=0.03)
    for exact in (spread, 100 * statistics.stdev(gaps)):  # what the question gives, what the table counts with
        assert 20 < seeds_needed(0.25, spread=exact) < 23
    assert STUDENT_T[4] * spread / 5**0.5 == pytest.approx(0.5, abs=0.02)  # the interval reaches this far


def test_the_prediction_about_a_larger_epsilon_is_the_step_in_float16():
    g = torch.tensor(0.005, dtype=torch.float16)
    m, v, eps = 0.1 * g, 0.001 * g * g, torch.tensor(1e-4, dtype=torch.float16)
    assert v == 0
    assert (m / 0.1 / eps).item() == pytest.approx(50, rel=0.01)
    assert (m / eps).item() == pytest.approx(5, rel=0.01)
    assert right_option(LARGER_EPSILON).text == "fifty learning rates"


def test_a_larger_epsilon_lets_one_seed_of_five_learn_something():
    right = sorted(r.results["accuracy"] for r in small_runs() if r.recipe == "16-true-eps")
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
    assert ranks["16-mixed"][4] == int(PLACE.answer) + 1
    against = words.verdict_of(group, "16-mixed", "32-true", accuracy).differences
    assert [sum(gap > 0 for gap in against.values()), sum(gap >= 0 for gap in told.values())] == [3, 3]
    saved = words.quantity_of(data, "saved_activations")
    assert f", {ACTIVATIONS.answer}\u00a0%" in words.verdict_of(group, "bf16-mixed", "32-true", saved).text
    assert ", 50\u00a0%" in words.verdict_of(group, "bf16-true", "32-true", saved).text
    assert words.value_text(group, "bf16-mixed", saved).startswith("35")


class HalfAdam:
    """Adam as the exercise prints it, with what a learner may change as attributes of the class."""

    m_dtype, v_dtype, gradient, eps, clean = torch.float16, torch.float16, torch.float16, 1e-8, False
    correct, sign, weights_dtype = True, 1.0, None

    def __init__(self, weights, lr=1e-3):
        self.weights, self.lr, self.t = list(weights), lr, 0
        for w in self.weights if self.weights_dtype else ():
            w.data = w.data.to(self.weights_dtype)
        self.m = [torch.zeros_like(w, dtype=self.m_dtype) for w in self.weights]
        self.v = [torch.zeros_like(w, dtype=self.v_dtype) for w in self.weights]

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


class RootAdam(HalfAdam):
    """It keeps 1,024 √v in float16 and m in bfloat16: four bytes, wide enough, but the small changes of v are lost."""

    m_dtype = torch.bfloat16

    @torch.no_grad()
    def step(self):
        self.t += 1
        for w, m, root in zip(self.weights, self.m, self.v, strict=True):
            g, v = w.grad.float(), (root.float() / 1024) ** 2
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            root.copy_(1024 * v.sqrt())
            w -= self.lr * (m / (1 - 0.9**self.t)) / ((v / (1 - 0.999**self.t)).sqrt() + self.eps)


class ScaledAdam(HalfAdam):
    """It keeps 1,024 m in float16, and v in float32: six bytes, as allowed."""

    v_dtype = torch.float32

    @torch.no_grad()
    def step(self):
        self.t += 1
        for w, m, v in zip(self.weights, self.m, self.v, strict=True):
            g = w.grad.float()
            m += 0.1 * (1024 * g - m)
            v += 0.001 * (g * g - v)
            w -= self.lr * (m.float() / 1024 / (1 - 0.9**self.t)) / ((v / (1 - 0.999**self.t)).sqrt() + self.eps)


class NarrowProducts(HalfAdam):
    """Its v is float32, but the other lines calculate in float16, g² perhaps too."""

    v_dtype, wide_square = torch.float32, False

    @torch.no_grad()
    def step(self):
        self.t += 1
        for w, m, v in zip(self.weights, self.m, self.v, strict=True):
            g = w.grad
            m += 0.1 * (g - m)
            v += 0.001 * ((g.float() if self.wide_square else g) ** 2 - v)
            w -= self.lr * (m / (1 - 0.9**self.t)) / ((v / (1 - 0.999**self.t)).sqrt() + self.eps)


class WideStep(HalfAdam):
    """It calculates in float32, and stores what m and v are afterwards, or forgets to."""

    stores = True

    @torch.no_grad()
    def step(self):
        self.t += 1
        for w, m, v in zip(self.weights, self.m, self.v, strict=True):
            g = w.grad.float()
            new_m, new_v = m + 0.1 * (g - m), v + 0.001 * (g * g - v)
            if self.stores:
                m.copy_(new_m)
                v.copy_(new_v)
            w -= self.lr * (new_m / (1 - 0.9**self.t)) / ((new_v / (1 - 0.999**self.t)).sqrt() + self.eps)


WIDE, SHORT = torch.float32, torch.bfloat16


def variant(**changes):
    return type("HalfAdam", (HalfAdam,), changes)


@pytest.mark.parametrize("right", [variant(m_dtype=SHORT, v_dtype=WIDE, gradient=WIDE), ScaledAdam])
def test_the_rescue_is_a_wide_second_moment_and_a_short_first_one(right):
    assert checks.check_rescue(right)


def test_the_class_as_it_is_printed_is_not_an_attempt():
    assert checks.check_rescue(HalfAdam).status == NOT_ATTEMPTED
    page = rules.read_page(rules.BOOK / "training" / "distilbert.ipynb")
    (printed,) = (cell.source for cell in page if "class HalfAdam" in cell.source)
    space = {"torch": torch, "checks": checks}
    exec(printed, space)
    assert checks.check_rescue(space["HalfAdam"]).status == NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("changes", "says", "hint"),
    [
        ({"m_dtype": WIDE, "v_dtype": WIDE}, "A gradient of 1e-6 moves", "In which dtype is g squared"),
        ({"m_dtype": SHORT, "v_dtype": WIDE}, "A gradient of 1e-6 moves", "In which dtype is g squared"),
        ({"eps": 1e-7}, "A gradient of 1e-6 moves|Adam's first step", "float16 stores that as 0"),
        ({"eps": 1e-4}, "No NaN. But Adam's first step", "A larger eps"),
        ({"clean": True}, "No NaN. But Adam's first step", "a NaN replaced with 0"),
        ({"m_dtype": SHORT, "v_dtype": WIDE, "gradient": WIDE, "eps": 0}, "is NaN", "only eps can prevent 0/0"),
        ({"m_dtype": SHORT, "v_dtype": WIDE, "gradient": WIDE, "eps": 1e-4}, "No NaN", "v is right"),
        ({"step": NarrowProducts.step, "v_dtype": WIDE, "wide_square": False}, "No NaN", "In which dtype is g squared"),
        ({"step": NarrowProducts.step, "v_dtype": WIDE, "wide_square": True}, "No NaN", "v is right"),
        ({"step": WideStep.step, "stores": True, "m_dtype": WIDE}, "After 30 steps", "A float16 tensor that you keep"),
        ({"step": WideStep.step, "stores": True}, "After 30 steps", "A float16 tensor that you keep"),
        ({"step": WideStep.step, "stores": False}, "After 30 steps", "Write m and v into it in place"),
        ({"step": WideStep.step, "stores": False, "v_dtype": WIDE}, "After 30 steps", "Write m and v into it"),
        ({"weights_dtype": WIDE}, "float32 now", "What else is narrow"),
        ({"m_dtype": SHORT, "v_dtype": WIDE, "gradient": WIDE, "sign": -1.0}, "uphill", "subtracts"),
        ({"m_dtype": SHORT, "v_dtype": WIDE, "gradient": WIDE, "correct": False}, "After 30 steps", "step to step"),
        ({"m_dtype": WIDE, "v_dtype": WIDE, "gradient": WIDE}, "keeps 8 bytes", "v changes by a thousandth"),
        ({"v_dtype": WIDE, "gradient": WIDE}, "Only the smallest gradient", "a tenth of that gradient"),
        ({"m_dtype": WIDE, "v_dtype": SHORT, "gradient": WIDE}, "after 3,000 is", "so small a change"),
        ({"m_dtype": SHORT, "v_dtype": SHORT, "gradient": WIDE}, "after 3,000 is", "so small a change"),
        ({"step": RootAdam.step, "m_dtype": SHORT}, "after 3,000 is", "so small a change"),
        ({"step": lambda self: None}, "have not moved", "in place"),
    ],
    ids=[
        "squares",
        "squares, bfloat16 m",
        "eps 1e-7",
        "eps 1e-4",
        "nan_to_num",
        "no eps",
        "eps 1e-4, wide v",
        "narrow squares and products",
        "narrow products",
        "float16 v stored",
        "float16 m and v stored",
        "nothing stored",
        "nothing stored, wide v",
        "wide weights",
        "sign",
        "correction",
        "eight bytes",
        "float16 m",
        "bfloat16 v",
        "four bytes",
        "root",
        "nothing",
    ],
)
def test_the_rescue_names_the_misconception(changes, says, hint):
    outcome = checks.check_rescue(variant(**changes))
    assert outcome.status == NOT_YET
    assert any(text in outcome.message for text in says.split("|")), outcome.message
    assert hint in outcome.hint


def test_moments_that_the_check_cannot_see_are_asked_for():
    kept = {}

    class Hidden(variant(m_dtype=WIDE, v_dtype=WIDE, gradient=WIDE)):
        @property
        def m(self):
            return kept[id(self), "m"]

        @m.setter
        def m(self, moments):
            kept[id(self), "m"] = moments

        @property
        def v(self):
            return kept[id(self), "v"]

        @v.setter
        def v(self, moments):
            kept[id(self), "v"] = moments

    assert "where are m and v" in checks.check_rescue(Hidden).message
