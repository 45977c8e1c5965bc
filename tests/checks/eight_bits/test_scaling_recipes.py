"""The checks of eight_bits/scaling_recipes: the right answer, and for each foreseen wrong one its hint."""

import numpy as np
import pytest
import torch

from utils import records
from utils.checks.eight_bits import scaling_recipes
from utils.checks.eight_bits import scaling_recipes_questions as questions
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.checks.questions import number
from utils.experiments import amax_series
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2
from utils.rounding import quantize
from utils.scaling import SCALINGS, DelayedScaling
from utils.widgets.amax_history import AmaxHistory
from utils.widgets.drag_outlier.facts import loss

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


RECORD = records.load("amax-distilbert-32-true-small-imdb-cpu-seed0")


def test_half_of_the_steps_saturate_with_the_scale_of_the_step_before():
    amaxes = np.float32(RECORD.samples["amax"]["gradients"]["distilbert.transformer.layer.1.attention.k_lin"])
    delayed, count = DelayedScaling(FLOAT8_E5M2, history=1), 0
    delayed.update(amaxes[0])
    for amax in amaxes[1:]:
        count += not np.isfinite(quantize(amax * delayed.scale, FLOAT8_E5M2))
        delayed.update(amax)
    text = questions.P_STEP_BEFORE.text
    assert f"these {len(amaxes) - 1} steps" in text
    assert f"2 to {len(amaxes)}" in text
    assert 0.45 < count / (len(amaxes) - 1) < 0.55


@pytest.mark.parametrize(("fmt", "rise"), [(FLOAT8_E5M2, 1 / 14), (FLOAT8_E4M3FN, 1 / 28)])
def test_a_rise_saturates_from_half_a_gap_on(fmt, rise):
    assert np.isfinite(quantize(fmt.max * (1 + 0.999 * rise), fmt))
    assert not np.isfinite(quantize(fmt.max * (1 + 1.001 * rise), fmt))
    tie = fmt.max + round(fmt.max * rise)
    assert np.isfinite(quantize(tie, fmt)) == (fmt.name == "float8_e4m3fn")


def widget(**settings):
    name = "gradients, layer 1, attention.k_lin"
    return AmaxHistory.of_series(amax_series.of_record(RECORD), only=("inputs", "gradients"), tensor=name, **settings)


def test_the_spike_leaves_the_history_where_the_answer_says():
    replay = widget(history=16, spike_step=100, spike=6)
    plain = widget(history=16)
    differ = np.flatnonzero(replay.scales != plain.scales) + 1
    assert differ[-1] == number(questions.PLAY_LAST.answer)
    assert differ[0] == 101
    assert replay.saturated[99]
    assert not replay.saturated[100:116].any()
    unused = np.log2(FLOAT8_E5M2.max / replay.products[100:116])
    assert 4 < unused.min() < unused.max() < 7
    for step in (115, 117):
        replay.step = step
        first, last = replay.verdict.split("steps ")[1].split(",")[0].split(" to ")
        assert f"steps {first} to {last}" in questions.PLAY_LAST.wrong[str(step)]


def test_the_smallest_margin_is_the_answer():
    cut = [int(widget(history=1, margin=margin).saturated.sum()) for margin in range(5)]
    assert cut.index(0) == number(questions.PLAY_MARGIN.answer)
    assert cut[2] == 1
    assert not widget(history=16, margin=2).saturated.any()


def test_the_coarsest_scales_are_the_answer():
    names = ("tensor", "row", "1x128", "nvfp4")
    errors = [loss("float4_e2m1fn", name, 300).error for name in names]
    right = [option.right for option in questions.PLAY_COARSEST.options]
    assert [error < 0.2 for error in errors].index(True) == right.index(True)
    assert loss("float4_e2m1fn", "tensor", 300).zeros > 0.999


def test_the_shapes_of_the_scales_are_those_of_the_tiles():
    tiles = SCALINGS["1x128"].tiles
    rows, columns = tiles((1024, 2048))
    answer = filled(questions.WGRAD_SCALES, (tiles((2048, 1024))[1], rows, columns, tiles((512, 2048))[0]))
    assert scaling_recipes.check_wgrad_scales(answer)


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
        (made(saturate=False), "NaN", "told to saturate"),
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


# --- What a scale loses


def by_codes(x, scale):
    """By the book's quantizer: NaN is past the end."""
    values = x.numpy().reshape(-1)
    values = values[values != 0]
    if not values.size:
        return 0.0, 0.0
    codes = quantize(values.astype(np.float64) * scale, FLOAT8_E4M3FN)
    return float(np.mean(np.isnan(codes))), float(np.mean(codes == 0))


def test_the_shares_may_be_counted_from_codes():
    outcome = scaling_recipes.check_lost_shares(by_codes)
    assert outcome, outcome.message


def test_the_shares_of_the_check_are_those_of_the_quantizer():
    x = torch.randn(4000, generator=torch.Generator().manual_seed(0)).mul(3).exp()
    for scale in (1.0, 10.0, 0.01):
        assert scaling_recipes.lost_shares(x, scale) == pytest.approx(by_codes(x, scale))


def counted(past=464.0, below=2.0**-10, of_all=False, past_or_at=False, empty=True):
    """A solution of a good student, with one mistake or another."""

    def lost_shares(x, scale):
        scaled = (x * scale).flatten().abs()
        if not of_all:
            scaled = scaled[x.flatten() != 0]
        if empty and not scaled.numel():
            return 0.0, 0.0
        high = scaled >= past if past_or_at else scaled > past
        return high.float().mean().item(), (scaled <= below).float().mean().item()

    return lost_shares


def test_a_solution_without_a_mistake_is_right():
    assert scaling_recipes.check_lost_shares(counted())


def saturated_codes(x, scale):
    """Codes at the end of the format, which some values reach without a loss."""
    scaled = x[x != 0] * scale
    codes = scaled.clamp(-448, 448).to(torch.float8_e4m3fn).float()
    if not scaled.numel():
        return 0.0, 0.0
    return (codes.abs() == 448).float().mean().item(), (codes == 0).float().mean().item()


def lost_on_the_page(x, scale):
    """The page's `lost`: it divides by the number of all values."""
    codes = (x * scale).clamp(-448, 448).to(torch.float8_e4m3fn).float()
    return ((x * scale).abs() > 464).float().mean().item(), ((codes == 0) & (x != 0)).float().mean().item()


def all_that_fits(x, scale):
    """Leaves infinities out."""
    scaled = x * scale
    return counted()(scaled[scaled.isfinite()], 1.0)


def without_the_sign(x, scale):
    """Forgets that a negative value saturates too."""
    scaled = x[x != 0] * scale
    return (scaled > 464).float().mean().item(), (scaled.abs() <= 2.0**-10).float().mean().item()


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        (counted(past=448.0), "450 and 464", "480"),
        (counted(past_or_at=True), "450 and 464", "480"),
        (counted(below=2.0**-9), "0.0015", "half of it"),
        (counted(of_all=True), "are 0 before", "number of values"),
        (lost_on_the_page, "are 0 before", "number of values"),
        (saturated_codes, "largest numbers of E4M3", "not its code"),
        (all_that_fits, "infinite", "past the end"),
        (counted(empty=False), "zeros only", "mean of no values"),
        (lambda x, scale: counted()(x, 1.0), "200", "Scale x"),
        (without_the_sign, "saturate", "Scale x"),
        (lambda x, scale: counted()(x, scale)[::-1], "saturates", "Scale x"),
        (lambda x, scale: torch.tensor(counted()(x, scale)), "two Python floats", ""),
        (lambda x, scale: tuple(map(torch.tensor, counted()(x, scale))), "two Python floats", ""),
        (lambda x, scale: counted()(x.mul_(scale), 1.0), "changes x", ""),
    ],
)
def test_the_shares_name_the_mistake(wrong, message, hint):
    outcome = scaling_recipes.check_lost_shares(wrong)
    assert outcome.status == NOT_YET
    assert message in outcome.message
    assert hint in outcome.hint
