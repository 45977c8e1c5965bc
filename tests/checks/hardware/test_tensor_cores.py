"""The checks of hardware/tensor_cores: the right answer, and for each foreseen wrong one the hint that names it."""

from fractions import Fraction

import pytest
import torch

from utils import fake_quantize, formats
from utils.checks.hardware import tensor_cores, tensor_cores_questions
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.checks.questions import judge, number
from utils.cost.cards import ROOFS
from utils.cost.roofline import Gemm
from utils.emulation import float32_matmul as precision
from utils.widgets.shape_to_bound.facts import least_rows

A100, L4, RTX = ROOFS["A100 SXM 80 GB"], ROOFS["L4"], ROOFS["RTX 4090"]


def table(questions, answers):
    return dict(zip(questions, answers, strict=True))


def test_the_intensities_are_those_of_the_roofline():
    shapes = (Gemm(8, 4096, 4096), Gemm(4096, 4096, 4096), Gemm(512, 512, 64))
    exact = [gemm.intensity(1, 2) for gemm in shapes]
    assert tensor_cores.check_intensity(table(tensor_cores_questions.INTENSITY, exact))
    assert tensor_cores.check_intensity(table(tensor_cores_questions.INTENSITY, (15.91, 2048, 56.9)))


@pytest.mark.parametrize(
    ("input_bytes", "output_bytes"),
    [(2, 2), (1, 1), (2, 1), (1, 4)],
    ids=["as the page prints it in bfloat16", "8-bit results", "in and out swapped", "float32 results"],
)
def test_other_bytes_are_no_answer(input_bytes, output_bytes):
    shapes = (Gemm(8, 4096, 4096), Gemm(4096, 4096, 4096), Gemm(512, 512, 64))
    wrong = [gemm.intensity(input_bytes, output_bytes) for gemm in shapes]
    assert not tensor_cores.check_intensity(table(tensor_cores_questions.INTENSITY, wrong))


@pytest.mark.parametrize(
    ("question", "close", "far"),
    [
        ("few", (15.85, 15.96), (15.5, 15.8, 16.2)),
        ("cube", (2040, 2045, 2052), (1990, 2000, 2100)),
        ("scores", (56.7, 57), (55.5, 56, 58, 58.5)),
    ],
)
def test_an_intensity_is_called_close_only_within_half_a_percent(question, close, far):
    name = f"hardware/tensor_cores/intensity-{question}"
    (asked,) = (each for each in tensor_cores_questions.INTENSITY.values() if each.id == name)
    for value in close:
        assert judge(asked, value) == (NOT_YET, "Close, but not to three digits.")
    for value in far:
        assert judge(asked, value) == (NOT_YET, asked.otherwise)


def test_the_critical_batches_are_the_smallest_that_are_bound_by_compute():
    cases = ((A100, 4096, 4096), (L4, 4096, 4096), (L4, 512, 256))
    rows = [least_rows(n, k, "bfloat16", roof) for roof, n, k in cases]
    assert rows == [166, 503, None]
    assert least_rows(512, 256, "bfloat16", A100) == 1480  # as the third reply says
    for (roof, n, k), m in zip(cases[:2], rows, strict=False):
        assert [roof.bound(Gemm(m - less, n, k), "bfloat16") for less in (1, 0)] == ["memory", "compute"]
    assert tensor_cores.check_critical_batch(table(tensor_cores_questions.CRITICAL, [m or 0 for m in rows]))
    assert tensor_cores.check_critical_batch(table(tensor_cores_questions.CRITICAL, [m or "Never" for m in rows]))
    assert not tensor_cores.check_critical_batch(table(tensor_cores_questions.CRITICAL, ["never"] * 3))


@pytest.mark.parametrize("rows", ["-295", "-295.85", "-296"])
def test_where_the_equation_gives_negative_rows_the_reply_says_what_that_means(rows):
    ridge, n, k = L4.ridge("bfloat16"), 512, 256
    assert 1 / (1 / ridge - 1 / n - 1 / k) == pytest.approx(-295.85, abs=0.01)
    assert judge(tensor_cores_questions.CRITICAL[tensor_cores_questions.L4_NARROW], number(rows)).message.startswith(
        "A negative M"
    )


def test_the_limit_of_the_narrow_layer_is_known_with_and_without_its_fraction():
    question = tensor_cores_questions.CRITICAL[tensor_cores_questions.L4_NARROW]
    replies = {judge(question, rows).message for rows in (512 * 256 / (512 + 256), 170.67, 170, 171)}
    assert replies == {question.wrong["171"]}


def test_the_values_of_tf32_are_those_of_the_format():
    x = torch.tensor([0.31])
    both = [precision.tf32_cut(x).item(), fake_quantize.fake_quantize(x, formats.TF32).item()]
    assert both == [Fraction(1269, 4096), Fraction(1270, 4096)]
    assert tensor_cores.check_tf32(table(tensor_cores_questions.TF32, both))
    assert tensor_cores.check_tf32(table(tensor_cores_questions.TF32, ("1269/4096", "0.31005859375")))


def test_the_ratios_of_float64_are_those_of_the_roofline():
    cube, row = Gemm(8192, 8192, 8192), Gemm(1, 8192, 8192)
    ratios = [
        roof.predicted_ms(gemm, "float64") / roof.predicted_ms(gemm, "float32")
        for roof in (A100, RTX)
        for gemm in (cube, row)
    ]
    assert ratios == pytest.approx([1, 2, 64, 2])
    assert tensor_cores.check_float64(table(tensor_cores_questions.FLOAT64, ratios))


def test_the_row_takes_three_times_as_long_on_an_l4_and_the_square_product_meets_its_memory():
    row, square = Gemm(1, 16384, 8192), Gemm(512, 512, 512)
    v100 = ROOFS["V100 SXM2"]
    assert L4.predicted_ms(row, "float32") / v100.predicted_ms(row, "float32") == pytest.approx(3)
    assert [roof.bound(square, "float32") for roof in (v100, L4)] == ["compute", "memory"]
    moved = square.moved(4, 4)
    times = [L4.computing_ms(square.operations, "float32"), v100.moving_ms(moved)]
    times += [v100.computing_ms(square.operations, "float32"), L4.moving_ms(moved)]
    computing_l4, moving_v100, computing_v100, moving_l4 = (f"{1e3 * ms:.1f} µs" for ms in times)
    half, _, three, right = sorted(tensor_cores_questions.SQUARE_ON_L4.options, key=lambda option: option.right)
    assert right.right
    assert right.text.startswith("About 0.6 times")
    assert L4.predicted_ms(square, "float32") / v100.predicted_ms(square, "float32") == pytest.approx(0.6, abs=0.02)
    assert f"{moved / 1e6:.1f} MB take {moving_l4}" in right.says
    assert computing_l4 in right.says
    assert computing_l4 in half.says
    assert moving_v100 in three.says
    assert computing_v100 in three.says


def test_the_ridge_in_tokens_does_not_reach_the_ridge_in_operations_per_byte():
    h100 = ROOFS["H100 SXM"]
    assert h100.ridge("bfloat16") == pytest.approx(295, abs=0.5)
    (option,) = (each for each in tensor_cores_questions.HOW_MANY_TOKENS.options if each.text.startswith("About 295"))
    assert not option.right
    assert f"{h100.intensity(Gemm(295, 4096, 4096), 'bfloat16'):.0f} operations per byte" in option.says


def test_fp8_speeds_up_attention_by_half_of_what_bfloat16_gained_over_tf32():
    h100, heads = ROOFS["H100 SXM"], 64
    result, factor = Gemm(512, 512, heads), Gemm(512, heads, 512)  # the 512 x 512 matrix is written, or read
    products = 2 * [result] + 4 * [factor]  # a step: forward one of each, backward two products for each

    def gain(gemms, dtype, wide="float32"):
        return sum(h100.predicted_ms(g, wide) for g in gemms) / sum(h100.predicted_ms(g, dtype) for g in gemms)

    right, *others = sorted(tensor_cores_questions.ATTENTION_FP8.options, key=lambda option: not option.right)
    texts = [option.text for option in others]
    assert right.text.startswith(f"{gain(products, 'float8'):.1f} times")
    assert f"{gain([result], 'float8', 'bfloat16'):.1f} times" in right.says
    assert f"{gain([factor], 'float8', 'bfloat16'):.1f} times" in right.says
    assert texts[0].startswith(f"{gain(products, 'bfloat16'):.1f} times")
    assert texts[1].startswith(f"{gain([result], 'float8'):.1f} times")
    assert texts[2].startswith(f"{2 * gain(products, 'bfloat16'):.1f} times")
    assert texts[3].startswith(f"{h100.peak('float8') / h100.peak('float32'):.1f} times")


def test_play_asks_for_the_least_tokens_and_its_replies_are_true():
    h100, h200 = ROOFS["H100 SXM"], ROOFS["H200 SXM"]
    faster = [
        m
        for m in range(1, 400)
        if h100.predicted_ms(Gemm(m, 4096, 4096), "tf32") < h200.predicted_ms(Gemm(m, 4096, 4096), "float32")
    ]
    question = tensor_cores_questions.PLAY_TF32
    assert faster == list(range(int(question.answer), 400))
    assert least_rows(4096, 4096, "float32", h100) == 41
    assert str(least_rows(4096, 4096, "float32", h200)) in question.wrong
    assert str(least_rows(4096, 4096, "tf32", h100)) in question.wrong
    for m in set(range(1, 40)) - {20, 29}:  # these two have replies of their own
        bounds = {h100.bound(Gemm(m, 4096, 4096), "tf32"), h200.bound(Gemm(m, 4096, 4096), "float32")}
        says = judge(question, m).message
        assert ("moving decides on both" in says) == (bounds == {"memory"})
        assert ("already bound by compute" in says) == ("compute" in bounds)
    assert "takes less than the 20.4 µs" in judge(question, 39).message
    assert 1e3 * h100.predicted_ms(Gemm(39, 4096, 4096), "tf32") == pytest.approx(20.4, abs=0.05)
    assert judge(question, 347) == judge(question, 345)


def test_play_names_the_times_of_the_cube():
    cube = Gemm(8192, 8192, 8192)
    names = {"FP8 on the H200": ("H200 SXM", "float8"), "bfloat16 on the B200": ("B200", "bfloat16")}
    names |= {"FP8 on the MI300X": ("MI300X", "float8"), "FP8 on the B200": ("B200", "float8")}
    for option in tensor_cores_questions.PLAY_CUBE.options:
        card, dtype = names[option.text]
        ms = ROOFS[card].predicted_ms(cube, dtype)
        assert option.says.startswith(f"{ms:.3g} ms")
        assert option.right == (ms < 0.3)
    assert ROOFS["H100 SXM"].predicted_ms(cube, "float32") == pytest.approx(16.4, abs=0.05)


def test_three_parts_of_bfloat16_hold_every_bit_of_float32_and_two_do_not():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    for count, is_whole in ((2, False), (3, True)):
        parts = precision.bfloat16_parts(x, count)
        assert torch.equal(sum(reversed(parts)), x) == is_whole
    (right,) = (option for option in tensor_cores_questions.NINE_PRODUCTS.options if option.right)
    assert right.text == "9"


@pytest.mark.parametrize(
    ("check", "questions"),
    [
        (tensor_cores.check_intensity, tensor_cores_questions.INTENSITY),
        (tensor_cores.check_critical_batch, tensor_cores_questions.CRITICAL),
        (tensor_cores.check_tf32, tensor_cores_questions.TF32),
        (tensor_cores.check_float64, tensor_cores_questions.FLOAT64),
    ],
)
def test_a_foreseen_mistake_gets_its_own_words(check, questions):
    right = {key: question.answer for key, question in questions.items()}
    for key, question in questions.items():
        for wrong, hint in question.wrong.items():
            outcome = check(right | {key: wrong})
            assert outcome.status == NOT_YET
            assert outcome.message == f"{key}: {hint}"


# --- The switches


def by_old_switch(function):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        return function()
    finally:
        torch.set_float32_matmul_precision(before)


def by_context(function):
    with precision.allowing("high"):
        return function()


@pytest.fixture(autouse=True)
def switches_as_they_were():
    before = precision.switches()
    yield
    assert precision.switches() == before


@pytest.mark.parametrize("right", [by_old_switch, by_context])
def test_the_switch_may_be_restored_in_any_way(right):
    outcome = tensor_cores.check_in_tf32(right)
    assert outcome, outcome.message


def test_medium_is_told_apart_from_high():
    def by_medium(function):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("medium")
        try:
            return function()
        finally:
            torch.set_float32_matmul_precision(before)

    outcome = tensor_cores.check_in_tf32(by_medium)
    assert outcome
    assert "bfloat16" in outcome.message


def as_printed(function):
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    result = function()
    torch.set_float32_matmul_precision("highest")
    return result


def by_new_switch(function):
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        return function()
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def always_highest(function):
    torch.set_float32_matmul_precision("high")
    try:
        return function()
    finally:
        torch.set_float32_matmul_precision("highest")


def never_restored(function):
    torch.set_float32_matmul_precision("high")
    return function()


def not_when_it_raises(function):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    result = function()
    torch.set_float32_matmul_precision(before)
    return result


def by_older_flag(function):
    """A good student's: another old switch, after which this one cannot be read."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return function()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def by_newer_word(function):
    """A good student's: asks the newer switch, which calls both "high" and "medium" tf32."""
    before = "high" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"
    torch.set_float32_matmul_precision("high")
    try:
        return function()
    finally:
        torch.set_float32_matmul_precision(before)


def convolutions_off(function):
    """A good student's: restores the products, and turns the convolutions off, which were on."""
    try:
        return by_old_switch(function)
    finally:
        torch.backends.cudnn.allow_tf32 = False


def convolutions_new(function):
    """A good student's: allows TF32 everywhere, by the newer switch for convolutions."""
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    return by_old_switch(function)


def swallows(function):
    try:
        return by_old_switch(function)
    except Exception:
        return None


def twice(function):
    function()
    return by_old_switch(function)


def without_result(function):
    by_old_switch(function)


def off(function):
    return function()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (as_printed, 'If "highest" was set before, torch.get_float32_matmul_precision() raises RuntimeError'),
        (by_new_switch, "raises RuntimeError"),
        (always_highest, 'It was "high" before'),
        (never_restored, 'It was "highest" before'),
        (not_when_it_raises, "When the function raises, the switch"),
        (swallows, "swallowed"),
        (by_older_flag, 'If "medium" was set before, torch.get_float32_matmul_precision() raises RuntimeError'),
        (by_newer_word, 'It was "medium" before'),
        (convolutions_off, "Afterwards torch.backends.cudnn."),
        (convolutions_new, "Afterwards torch.backends.cudnn."),
        (twice, "called 2 times"),
        (without_result, "not what the function returned"),
        (off, "TF32 is not allowed"),
    ],
)
def test_the_switch_names_the_mistake(wrong, message):
    outcome = tensor_cores.check_in_tf32(wrong)
    assert outcome.status == NOT_YET
    assert message in outcome.message


def test_a_function_that_is_not_called_is_not_attempted():
    assert tensor_cores.check_in_tf32(lambda function: ...).status == NOT_ATTEMPTED
    assert tensor_cores.check_in_tf32(lambda function: "the result").status == NOT_YET
    assert tensor_cores.check_in_tf32("high").status == NOT_YET
