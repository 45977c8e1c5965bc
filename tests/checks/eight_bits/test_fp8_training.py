"""The checks of eight_bits/fp8_training: the right answer, and for each foreseen wrong one the hint that names it."""

import statistics

import pytest

from tests.book_questions import right_option
from utils import records
from utils.checks.eight_bits import fp8_training as checks
from utils.checks.eight_bits.fp8_training_questions import EQUAL, OTHER_NETWORK, PAPER, TWICE_THE_PEAK, WHOLE
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.cost.cards import ROOFS
from utils.cost.fp8_casts import PUBLISHED, break_even
from utils.runs.seeds_needed import by_normal, critical_t, seeds_needed


def test_seeds_are_those_of_the_formula():
    assert checks.check_seeds(32)
    assert 31 < by_normal(0.25, spread=0.5) < 32
    assert seeds_needed(0.25, spread=0.5) == 34  # as the answer says


@pytest.mark.parametrize(
    ("answer", "hint"),
    [(31, "Round up"), (34, "as known"), (16, "0.84"), (63, "without pairs"), (8, "twice"), (3, "squar")],
)
def test_seeds_name_the_misconception(answer, hint):
    outcome = checks.check_seeds(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_break_even_is_that_of_the_model_up_to_a_multiple_of_16():
    assert checks.check_break_even(16 / 3 * 163.9)
    assert checks.check_break_even(break_even("fp8-current", ROOFS["RTX 4090"]))


@pytest.mark.parametrize(("answer", "hint"), [(437, "amax"), (1202, "22 - 6"), (2622, "three"), (164, "ridge")])
def test_break_even_names_the_misconception(answer, hint):
    outcome = checks.check_break_even(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_fp8_lm_takes_both_counts_and_the_equal_batch():
    right = {PAPER: 6, WHOLE: 9, EQUAL: 100 * (109.5 / 79.3 - 1)}
    assert checks.check_fp8_lm(right)
    assert "batch of 4" in checks.check_fp8_lm(right | {EQUAL: 100 * (121.5 / 79.3 - 1)}).message
    assert "all that is stored" in checks.check_fp8_lm(right | {PAPER: 9}).message


def interval(by_seed, *, share=0.05, t=None, rooted=True, spread=statistics.stdev):
    n = len(by_seed)
    error = spread(by_seed) / (n**0.5 if rooted else 1)
    reach = (t or critical_t(n - 1, share)) * error
    return statistics.fmean(by_seed) - reach, statistics.fmean(by_seed) + reach


def within(**how):
    def rules_out(by_seed, bound):
        low, high = interval(by_seed, **how)
        return -bound < low and high < bound

    return rules_out


def test_rules_out_takes_two_one_sided_tests():
    assert checks.check_rules_out(within())


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda by_seed, bound: interval(by_seed)[0] < 0 < interval(by_seed)[1], "no proof"),
        (lambda by_seed, bound: abs(statistics.fmean(by_seed)) < bound, "no proof"),
        (lambda by_seed, bound: max(map(abs, by_seed)) < 0.1, "another question"),
        (lambda by_seed, bound: interval(by_seed)[1] < bound, "as far away"),
        (within(rooted=False), "root of n"),
        (within(share=0.025), "interval of 90 %"),
        (within(spread=statistics.pstdev), "statistics.stdev"),
        (within(t=2.1), "Two pairs"),
        (lambda by_seed, bound: 3, "True or False"),
        (lambda by_seed, bound: False, "another question"),
    ],
    ids=["no difference", "mean", "largest", "one side", "root", "95 %", "ddof", "normal", "number", "never"],
)
def test_rules_out_names_the_misconception(function, hint):
    outcome = checks.check_rules_out(function)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_excluded_takes_head_first_and_last():
    assert checks.check_excluded(lambda blocks: ("lm_head", "model.layers.0", f"model.layers.{blocks - 1}"))


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda blocks: ("model.layers.0", f"model.layers.{blocks - 1}"), "takes the place"),
        (lambda blocks: ("lm_head", "model.layers.1", f"model.layers.{blocks}"), "counted from 0"),
        (lambda blocks: ("lm_head", "model.layers.0", "model.layers.2"), "Of 4 blocks"),
        (lambda blocks: ("lm_head", "model.layers.0", f"model.layers.{blocks - 1}", "q_proj"), "neither"),
        (lambda blocks: ("model", "lm_head"), "neither"),
        (lambda blocks: "lm_head", "a tuple"),
    ],
    ids=["head", "from 1", "of three", "too much", "all", "text"],
)
def test_excluded_names_the_misconception(function, hint):
    outcome = checks.check_excluded(function)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_function_without_an_answer_is_not_attempted():
    assert checks.check_excluded(lambda blocks: None).status == NOT_ATTEMPTED
    assert checks.check_rules_out(lambda by_seed, bound: None).status == NOT_ATTEMPTED


def final_accuracy(recipe):
    runs = records.load_all(experiment="distilbert-width64")
    return [run.results["accuracy"] for run in runs if run.recipe == recipe and run.data_name == "generated"]


def test_the_prediction_about_the_other_network_is_what_was_recorded():
    assert right_option(OTHER_NETWORK).text == "E5M2 gradients train, E4M3 gradients fail"
    assert min(final_accuracy("fp8-unscaled")) > 0.9
    assert max(final_accuracy("fp8-unscaled-e4m3")) < 0.55


def test_the_prediction_about_the_speed_is_what_was_published():
    small, large = PUBLISHED
    assert right_option(TWICE_THE_PEAK).text == "slower"
    assert small.faster < 1 < large.faster
    assert large.layer.operations == 256 * small.layer.operations
