"""The published benchmark: what its numbers say of each other, and what the logs give."""

import pytest

from utils.runs import raschka2023
from utils.training.recipes import RECIPES


def test_one_bar_of_the_memory_chart_is_not_what_the_log_says():
    wrong = [run for run in raschka2023.RUNS if run.charted_gb != run.reserved_gb]
    assert [run.name for run in wrong] == ["float32"]
    assert wrong[0].charted_gb == raschka2023.BY_NAME["float64"].reserved_gb


def test_a_run_has_as_many_operations_as_the_parameters_ask_for():
    assert raschka2023.count_operations() == pytest.approx(
        1.54e16 + 7.3e14, rel=0.04
    )  # 6 and 2 for each weight and token


@pytest.mark.parametrize(("name", "tflops"), [("float64", 10.9), ("float32", 12.4), ("TF32", 33), ("bf16-true", 52)])
def test_the_rate_is_operations_over_time(name, tflops):
    run = raschka2023.BY_NAME[name]
    assert run.tflops == pytest.approx(tflops, rel=0.05)
    assert run.tflops < run.peak_tflops


def test_every_run_has_a_recipe_of_the_book():
    assert {run.recipe for run in raschka2023.RUNS} - {"32-true-high"} <= set(RECIPES)


def test_high_and_medium_are_one_way_to_multiply_on_an_a100():
    high = raschka2023.BY_NAME["TF32"]
    assert (raschka2023.MEDIUM.accuracy, raschka2023.MEDIUM.reserved_gb) == (high.accuracy, high.reserved_gb)
    assert raschka2023.MEDIUM.minutes == pytest.approx(high.minutes, rel=0.01)


def test_the_same_float32_run_repeats_in_plain_pytorch_and_moves_with_the_version_and_the_epoch():
    assert raschka2023.ANSWERED == 9_996
    float32, mixed = raschka2023.BY_NAME["float32"], raschka2023.BY_NAME["16-mixed"]
    for minutes in (raschka2023.PLAIN_MINUTES, raschka2023.FIRST_MINUTES, raschka2023.BEST_MINUTES):
        assert pytest.approx(float32.minutes, rel=0.05) == minutes  # so they ran without TF32 too
    plain = raschka2023.PLAIN_ACCURACY, raschka2023.PLAIN_TRAINED, raschka2023.PLAIN_VALIDATED[-1]
    assert plain == (float32.accuracy, raschka2023.LOGGED_TRAINED, raschka2023.LOGGED_VALIDATED)
    assert max(raschka2023.PLAIN_VALIDATED) - raschka2023.PLAIN_VALIDATED[-1] > 2
    assert float32.accuracy < raschka2023.FIRST_ACCURACY < mixed.accuracy < raschka2023.BEST_ACCURACY
    for name, accuracies in raschka2023.REPEATED.items():
        assert set(accuracies) == {raschka2023.BY_NAME[name].accuracy}
