"""The checks of eight_bits/fp8_training: the right answer, and for each foreseen wrong one the hint that names it."""

import math
import statistics
from dataclasses import replace

import pytest

from tests.book_questions import right_option
from utils import records
from utils.checks.eight_bits import fp8_training as checks
from utils.checks.eight_bits.fp8_training_questions import (
    EQUAL,
    LOSS_TIMES,
    OTHER_NETWORK,
    PAPER,
    PLAY_LENGTH,
    PLAY_SLOWER,
    SMALLEST_BOUND,
    WHOLE,
)
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.checks.questions import judge
from utils.cost.cards import ROOFS
from utils.cost.fp8_casts import MEASURED_BLOCK, break_even, predicted_ms
from utils.runs.experiment import compare_by_seed
from utils.runs.published import find_number
from utils.runs.seeds_needed import by_normal, critical_t, seeds_needed
from utils.widgets.precision_plan import PrecisionPlan


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


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (437, "maxima"),
        (437, "FP8 saves half"),
        (1748, "one operation"),
        (1748, "peak"),
        (1202, "22 - 6"),
        (2622, "three"),
        (164, "ridge"),
    ],
)
def test_break_even_names_the_misconception(answer, hint):
    outcome = checks.check_break_even(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_fp8_lm_takes_both_counts_and_the_equal_batch():
    right = {PAPER: 6, WHOLE: 9, EQUAL: 100 * (109.5 / 79.3 - 1)}
    assert checks.check_fp8_lm(right)
    assert "batch of 4" in checks.check_fp8_lm(right | {EQUAL: 100 * (121.5 / 79.3 - 1)}).message
    assert "fraction" in checks.check_fp8_lm(right | {EQUAL: 0.381}).message
    assert "four of the six" in checks.check_fp8_lm(right | {PAPER: 9}).message
    assert "in place of" in checks.check_fp8_lm(right | {WHOLE: 2 + 2 + 1 + 2 + 1}).message


def test_a_count_of_fp8_lm_does_not_give_the_other_away():
    """The page asks for both at once, so what is said of one must not hold the answer to the other."""
    paper, whole = checks.FP8_LM[PAPER], checks.FP8_LM[WHOLE]
    assert not any("all that is stored" in said or "nine" in said for said in (*paper.wrong.values(), paper.otherwise))
    assert not any(
        "is the paper's count" in said or "six," in said for said in (*whole.wrong.values(), whole.otherwise)
    )


def test_the_rest_of_the_claim_is_less_than_half_of_it():
    equal, claim = 109.5 / 79.3 - 1, 121.5 / 79.3 - 1
    assert equal > 0.7 * claim
    assert "half" not in checks.FP8_LM[EQUAL].says


def interval(by_seed, *, share=0.05, t=None, rooted=True, spread=statistics.stdev, middle=statistics.fmean):
    n = len(by_seed)
    if n < 2:
        return -math.inf, math.inf
    error = spread(by_seed) / (n**0.5 if rooted else 1)
    reach = (t or critical_t(n - 1, share)) * error
    return middle(by_seed) - reach, middle(by_seed) + reach


def within(**how):
    def rules_out(by_seed, lower, upper):
        low, high = interval(by_seed, **how)
        return lower < low and high < upper

    return rules_out


def test_rules_out_takes_two_one_sided_tests():
    assert checks.check_rules_out(within())


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda by_seed, lower, upper: interval(by_seed)[0] < 0 < interval(by_seed)[1], "no proof"),
        (lambda by_seed, lower, upper: lower < statistics.fmean(by_seed) < upper, "no proof"),
        (lambda by_seed, lower, upper: max(map(abs, by_seed)) < 0.1, "another question"),
        (lambda by_seed, lower, upper: interval(by_seed)[1] < upper, "as far away"),
        (lambda by_seed, lower, upper: within()(by_seed, -upper, upper), "its own bound"),
        (lambda by_seed, lower, upper: within()(by_seed, lower, -lower), "however low"),
        (within(rooted=False), "root of n"),
        (within(share=0.025), "interval of 90 %"),
        (within(spread=statistics.pstdev), "statistics.stdev"),
        (within(t=2.1), "Two pairs"),
        (lambda by_seed, lower, upper: 3, "True or False"),
        (lambda by_seed, lower, upper: len(by_seed) > 1 and all(lower < x < upper for x in by_seed), "each difference"),
        (lambda by_seed, lower, upper: lower < statistics.fmean(by_seed) and interval(by_seed)[1] < upper, "its lower"),
        (lambda by_seed, lower, upper: lower < interval(by_seed)[0] and statistics.fmean(by_seed) < upper, "its upper"),
        (lambda by_seed, lower, upper: within()(by_seed, -abs(lower), abs(upper)), "as they are"),
        (lambda by_seed, lower, upper: within()(by_seed, lower, abs(upper)), "as they are"),
        (within(middle=statistics.median), "median"),
        (lambda by_seed, lower, upper: len(by_seed) > 2 and within()(by_seed, lower, upper), "are enough"),
        (lambda by_seed, lower, upper: True if within()(by_seed, lower, upper) else None, "returns None"),
        (lambda by_seed, lower, upper: False, "another question"),
    ],
    ids=[
        "no difference",
        "mean",
        "largest",
        "one side",
        "by the upper",
        "by the lower",
        "root",
        "95 %",
        "ddof",
        "normal",
        "number",
        "each",
        "mean below",
        "mean above",
        "absolute",
        "absolute upper",
        "median",
        "three",
        "no else",
        "never",
    ],
)
def test_rules_out_names_the_misconception(function, hint):
    outcome = checks.check_rules_out(function)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_rules_out_needs_two_differences():
    def alone_is_enough(by_seed, lower, upper):
        return lower < by_seed[0] < upper if len(by_seed) == 1 else within()(by_seed, lower, upper)

    assert "One difference" in checks.check_rules_out(alone_is_enough).message


def in_fp8(layer, name, ends=("0", "1", "22", "23")):
    fits = layer.in_features % 16 == layer.out_features % 16 == 0
    parts = name.split(".")
    return fits and parts[-1] != "lm_head" and parts[2] not in ends


def in_the_middle(name):
    return name != "lm_head" and name.split(".")[2] not in ("0", "1", "22", "23")


def by_beginning(layer, name):
    ends = tuple(f"model.layers.{block}" for block in (0, 1, 22, 23))
    return layer.out_features % 16 == 0 and name != "lm_head" and not name.startswith(ends)


def test_the_filter_leaves_head_and_both_ends():
    assert checks.check_in_fp8(in_fp8)


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda layer, name: name == "lm_head" or in_fp8(layer, name), "the logits"),
        (by_beginning, "whole parts"),
        (lambda layer, name: name != "lm_head" and in_fp8(layer, name, ("0", "23")), "first two or the last two"),
        (lambda layer, name: name != "lm_head" and in_fp8(layer, name, ("1", "2", "23", "24")), "count from 0"),
        (
            lambda layer, name: name != "lm_head" and name.split(".")[2] not in ("0", "1", "22", "23"),
            "a multiple of 16",
        ),
        (lambda layer, name: "mlp" in name and in_fp8(layer, name), "in the middle"),
        (lambda layer, name: 1, "True or False"),
        (lambda layer, name: in_the_middle(name) and layer.out_features % 16 == 0, "24 inputs"),
        (lambda layer, name: in_the_middle(name) and layer.in_features % 16 == 0, "40 outputs"),
        (
            lambda layer, name: in_the_middle(name) and (layer.in_features + layer.out_features) % 16 == 0,
            "a multiple of 16",
        ),
        (lambda layer, name: in_the_middle(name) and layer.weight.numel() % 16 == 0, "a multiple of 16"),
        (
            lambda layer, name: in_the_middle(name) and "k_proj" not in name and "v_proj" not in name,
            "k_proj (256 → 64) stays wide",
        ),
        (
            lambda layer, name: in_fp8(layer, name) and "k_proj" not in name and "v_proj" not in name,
            "k_proj (256 → 64) stays wide",
        ),
        (lambda layer, name: True if in_fp8(layer, name) else None, "returns None"),
        (lambda layer, name: int(name.split(".")[2]) in range(2, 22), "For lm_head it stops with IndexError"),
        (lambda layer, name: int(name[13:15].rstrip(".")) in range(2, 22), "For lm_head it stops with ValueError"),
    ],
    ids=[
        "head",
        "prefix",
        "one each",
        "from 1",
        "sizes",
        "MLP alone",
        "number",
        "outputs alone",
        "inputs alone",
        "sum",
        "weights",
        "names",
        "sizes and names",
        "no else",
        "no third part",
        "no number",
    ],
)
def test_the_filter_names_the_misconception(function, hint):
    outcome = checks.check_in_fp8(function)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_function_without_an_answer_is_not_attempted():
    assert checks.check_in_fp8(lambda layer, name: None).status == NOT_ATTEMPTED
    assert checks.check_rules_out(lambda by_seed, lower, upper: None).status == NOT_ATTEMPTED


def results(experiment, text, recipe, value):
    runs = records.load_all(experiment=experiment)
    return [run.results[value] for run in runs if run.recipe == recipe and run.data_name == text]


def test_the_prediction_about_the_factor_is_what_was_recorded():
    losses = {
        name: statistics.fmean(results("llama-width128", "tinyshakespeare", name, "loss"))
        for name in ("bf16-mixed", "fp8-unscaled", "fp8-unscaled-loss-scale")
    }
    assert right_option(LOSS_TIMES).text == "It ends within 1 % of bfloat16's loss"
    assert losses["fp8-unscaled-loss-scale"] == pytest.approx(losses["bf16-mixed"], rel=0.01)
    assert losses["fp8-unscaled"] > 1.2 * losses["bf16-mixed"]


def test_the_prediction_about_the_other_network_is_what_was_recorded():
    def accuracies(name):
        return results("distilbert-width64", "generated", name, "accuracy")

    assert right_option(OTHER_NETWORK).text == "It learns with E5M2 gradients and fails with E4M3 gradients"
    assert min(accuracies("fp8-unscaled")) > 0.9
    assert max(accuracies("fp8-unscaled-e4m3")) < 0.55


def test_the_prediction_about_the_verdicts_is_what_was_recorded():
    runs = [run for run in records.load_all(experiment="llama-width128") if run.data_name == "tinyshakespeare"]
    gaps = compare_by_seed(runs, baseline="bf16-mixed", value="loss")
    base = {run.seed: run.results["loss"] for run in runs if run.recipe == "bf16-mixed"}
    rest = {}
    for name in ("fp8-current", "fp8-delayed", "fp8-row", "fp8-block"):
        by_seed = [100 * gap / base[seed] for seed, gap in zip(gaps[name].seeds, gaps[name].by_seed, strict=True)]
        assert abs(statistics.fmean(by_seed)) < 0.25
        assert not within(share=0.05 / 7)(by_seed, -0.25, 0.25)  # seven recipes are compared
        rest[name] = by_seed
    mean, error = statistics.fmean(rest["fp8-current"]), statistics.stdev(rest["fp8-current"]) / 5**0.5
    bounds = {share: abs(mean) + critical_t(4, share) * error for share in (0.05, 0.05 / 7)}
    assert (round(mean, 2), round(error, 2)) == (0.01, 0.26)
    assert [round(bound, 1) for bound in bounds.values()] == [0.6, 1.1]
    assert right_option(SMALLEST_BOUND).text == "About 1.1 %"


def shortest_text(**changes):
    """The shortest text, in multiples of 64 tokens, with which a plan for LLaMA 7B is faster."""
    start = PrecisionPlan(texts=1, length=64, **changes).plan
    plans = (replace(start, length=length) for length in range(64, 4096, 64))
    return next(plan.length for plan in plans if plan.after < plan.before)


def test_play_is_what_the_widget_says():
    assert str(shortest_text()) == PLAY_LENGTH.answer
    for length in range(512, 640):
        plan = PrecisionPlan(texts=1, length=length).plan
        said = judge(PLAY_LENGTH, length).message
        assert ("longer" in said) == (plan.after > plan.before), length
    assert "H200" in PLAY_LENGTH.wrong[str(shortest_text(device="H200 SXM"))]
    assert "fp8-delayed" in PLAY_LENGTH.wrong[str(shortest_text(recipe="fp8-delayed"))]
    plan = PrecisionPlan("DistilBERT", texts=32, length=512).plan
    slower = [row.kind.name for row in plan.rows if row.kind.block and row.narrow + row.casts > row.wide]
    assert slower == ["q_lin", "k_lin", "v_lin", "out_lin"]
    assert len(slower) == int(PLAY_SLOWER.answer)


def test_bytes_do_not_rank_recipes():
    """By the model blocks are as fast as delayed scaling; measured, they are slower than current scaling."""
    recipes = ("current", "delayed", "block")
    roof = ROOFS["H200 SXM"]
    model = {
        name: sum(predicted_ms(layer, f"fp8-{name}", roof, weight_bytes=2) for layer in MEASURED_BLOCK)
        for name in recipes
    }
    measured = {name: find_number(f"te-h200, {name}, ms") for name in recipes}
    assert model["block"] == pytest.approx(model["delayed"], rel=0.01)
    assert model["block"] < model["current"]
    assert measured["delayed"] < measured["current"] < measured["block"]
