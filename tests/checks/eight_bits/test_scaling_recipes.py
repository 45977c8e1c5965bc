"""The checks of eight_bits/scaling_recipes: the right answer, and for each foreseen wrong one its hint."""

import numpy as np
import pytest

from utils import records
from utils.checks.eight_bits import scaling_recipes
from utils.checks.eight_bits import scaling_recipes_questions as questions
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2
from utils.rounding import quantize
from utils.scaling import SCALINGS, DelayedScaling, Scaling

AMAXES = (2, 2, 2.05, 3, 5, 7, 12.2, 30, 31, 130)


def filled(table, values):
    return dict(zip(table, values, strict=True))


def test_the_history_is_that_of_delayed_scaling():
    delayed = DelayedScaling(FLOAT8_E4M3FN, history=3, margin=1)
    for amax in (0.5, 2, 0.25):
        scale = float(delayed.update(amax))
    left = float(quantize(7 * scale, FLOAT8_E4M3FN, saturate=True)) / scale
    answer = filled(questions.HISTORY, (scale, left, float(delayed.update(7))))
    assert scaling_recipes.check_history(answer)


def test_the_first_step_that_saturates_is_that_of_delayed_scaling():
    def first(margin):
        delayed = DelayedScaling(FLOAT8_E4M3FN, history=3, margin=margin)
        for step, amax in enumerate(AMAXES, 1):
            if np.isnan(quantize(amax * delayed.scale, FLOAT8_E4M3FN)):
                return step
            delayed.update(amax)

    assert scaling_recipes.check_first_step(filled(questions.FIRST_STEP, map(first, range(3))))


def test_the_question_of_the_remedy_has_the_number_of_the_record():
    record = records.load("amax-distilbert-32-true-small-imdb-cpu-seed0")
    amaxes = np.float32(record.samples["amax"]["gradients"]["distilbert.transformer.layer.1.attention.k_lin"])
    delayed, count = DelayedScaling(FLOAT8_E5M2, history=1), 0
    for amax in amaxes:
        count += not np.isfinite(quantize(amax * delayed.scale, FLOAT8_E5M2))
        delayed.update(amax)
    assert f" {count} of {len(amaxes)} steps" in questions.P_REMEDY.text


def test_the_shapes_of_the_scales_are_those_of_the_tiles():
    tiles = SCALINGS["1x128"].tiles
    rows, columns = tiles((1024, 2048))
    answer = filled(questions.WGRAD_SCALES, (tiles((2048, 1024))[1], rows, columns, tiles((512, 2048))[0]))
    assert scaling_recipes.check_wgrad_scales(answer)


def test_the_storage_is_what_the_scalings_say():
    def bits(*tile):
        return Scaling("tile", "a tile", tile).bits_per_value(FLOAT8_E4M3FN)

    assert scaling_recipes.check_storage(filled(questions.STORAGE, (bits(1, 64), bits(32, 32), 2 * bits(1, 128) / 8)))


# --- The product


def one_by_one(x, w, scale_x, scale_w):
    """The same in another way: take the scales out before the sum."""

    def there_and_back(values, scale):
        return np.vectorize(lambda one: float(quantize(one * scale, FLOAT8_E4M3FN, saturate=True)) / scale)(values)

    return there_and_back(x, scale_x) @ there_and_back(w, scale_w).T


def test_the_product_may_be_written_in_another_way():
    outcome = scaling_recipes.check_fp8_product(one_by_one)
    assert outcome, outcome.message


def test_the_last_case_saturates():
    x, w = scaling_recipes._operands()
    assert np.isnan(scaling_recipes.fp8_product(x, w, *scaling_recipes.CASES[-1], saturate=False)).any()


def made(**fault):
    def product(x, w, scale_x, scale_w):
        both = {"times": scale_x * scale_w, "none": 1.0, "x": 1 / scale_x, "w": 1 / scale_w}
        back = both.get(fault.get("back"))
        return scaling_recipes.fp8_product(x, w, scale_x, scale_w, saturate=fault.get("saturate", True), back=back)

    return product


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        (made(back="times"), "times as large", "a second time"),
        (made(back="times", saturate=False), "times as large", "a second time"),
        (made(back="none"), "times as large", "still in the sum"),
        (made(back="x"), "times as large", "of w is still"),
        (made(back="w"), "times as large", "of x is still"),
        (made(saturate=False), "NaN", "Saturate"),
        (lambda x, w, scale_x, scale_w: x @ w.T, "nothing was rounded", "through E4M3"),
        (lambda x, w, scale_x, scale_w: 1.01 * one_by_one(x, w, scale_x, scale_w), "1.00%", "Compare"),
        (lambda x, w, scale_x, scale_w: one_by_one(x, w, scale_x, scale_w).T, "not (3, 5)", ""),
        (lambda x, w, scale_x, scale_w: 1 / 0, "ZeroDivisionError", ""),
    ],
)
def test_the_product_names_the_mistake(wrong, message, hint):
    outcome = scaling_recipes.check_fp8_product(wrong)
    assert outcome.status == NOT_YET
    assert message in outcome.message
    assert hint in outcome.hint


def test_a_scale_used_twice_is_named():
    def wrong(x, w, scale_x, scale_w):
        return scaling_recipes.fp8_product(x, w, scale_x, scale_w, back=1 / scale_x**2)

    assert "its own scale" in scaling_recipes.check_fp8_product(wrong).hint


def test_a_product_that_returns_nothing_was_not_attempted():
    assert scaling_recipes.check_fp8_product(lambda *given: None).status == NOT_ATTEMPTED
    assert scaling_recipes.check_fp8_product(3.0).status == NOT_YET
