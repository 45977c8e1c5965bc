"""The checks of numbers/limits: the right answer, and for each foreseen wrong one the hint that names the mistake."""

import math

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import float16

from utils.checks.numbers import limits
from utils.checks.numbers.limits_questions import PLAY_MASK, PLAY_SMALL
from utils.checks.numbers.limits_questions import WRONG_LINE as QUESTION
from utils.checks.outcome import NOT_YET
from utils.checks.questions import number
from utils.formats import BFLOAT16, FLOAT8_E5M2, FLOAT16, FORMATS
from utils.rounding import quantize

INF, NAN = math.inf, math.nan


def half(*values):
    return torch.tensor(values, dtype=float16)


# --- What the predictions claim


def test_1e_10_underflows_to_zero_and_the_smallest_subnormal_is_where_the_options_say():
    assert half(1e-10).tolist() == [0.0]
    assert [FLOAT16.smallest_subnormal, FLOAT16.smallest_normal] == [2**-24, 2**-14]


def test_a_naive_softmax_of_12_11_10_is_nan_0_0():
    e = torch.exp(half(12, 11, 10))
    weights = e / e.sum()
    assert weights[0].isnan()
    assert weights[1:].tolist() == [0, 0]
    assert torch.softmax(torch.tensor([12.0, 11, 10]), -1).numpy() == pytest.approx([0.665, 0.245, 0.090], abs=5e-4)
    assert math.exp(12) == pytest.approx(162755, abs=0.5)


def test_a_softmax_of_11_and_10_alone_is_what_one_option_says():
    weights = torch.softmax(torch.tensor([11.0, 10.0]), -1)
    assert weights.numpy() == pytest.approx([0.731, 0.269], abs=5e-4)


def test_numbers_up_to_464_are_448_in_e4m3_and_larger_ones_overflow():
    values = np.array([448, 463, 464, 464.1, 470, 479], dtype=np.float32)
    stored = values.astype(ml_dtypes.float8_e4m3fn).astype(float)
    assert stored[:3].tolist() == [448] * 3
    assert np.isnan(stored[3:]).all()


def test_e4m3_has_no_infinity_and_overflow_in_torch_is_one_of_two():
    assert str(float(torch.tensor(1000.0).to(torch.float8_e4m3fn))) in ("448.0", "nan")
    assert not torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().isinf().any()


def test_float16_is_first_off_by_a_hundredth_at_1e_6():
    off = [abs(float(half(x)) / x - 1) for x in (1e-4, 1e-5, 1e-6)]
    assert off == pytest.approx([0.0002, 0.0014, 0.0133], abs=1e-4)


def test_the_numbers_of_play_are_those_of_the_formats():
    stored = [float(quantize(-1e9, fmt)) for fmt in FORMATS.values()]
    assert sum(map(math.isfinite, stored)) == number(PLAY_MASK.answer)
    kept = [10.0**-k for k in range(1, 12) if float(quantize(10.0**-k, FLOAT8_E5M2)) > 0]
    assert min(kept) == number(PLAY_SMALL.answer)


# --- 1, 2: on paper


def test_largest_row_is_what_torch_adds_up():
    e = torch.exp(half(4))
    assert float(e) == 54.59375
    assert limits.check_largest_row(1200)
    assert float(e.repeat(1200).sum()) == 65504
    assert e.repeat(1201).sum().isinf()
    assert (e / e.repeat(1201).sum()) == 0
    total, terms = half(0), 0
    while (total + e).isfinite():  # every partial sum rounded, as one reply says
        total, terms = total + e, terms + 1
    assert terms == 1148


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (1199, "stopped at 65504"),
        (1201, "65567"),
        (65504 / 54.59375, "whole number"),
        (1199.8, "whole number"),
        (65520 / 54.59375, "whole number"),
        (1148, "partial sum"),
        (65504, "How many times"),
        (16376, "exponentials"),
        (16379, "exponentials"),
        (11, "their sum"),
        (2048, "stalls"),
        ("inf", "ends at 65504"),
        (1210, "65520"),
        (17, "65520"),
    ],
)
def test_largest_row_names_the_misconception(answer, hint):
    outcome = limits.check_largest_row(answer)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


CASTS = {
    "2e-8 to float16": 0,
    "4e-8 to float16": "2**-24",
    "3.4e38 to bfloat16": INF,
    "3e-40 to bfloat16": "3 * 2**-133",
    "61000 to E5M2": 57344,
    "61440 to E5M2": "inf",
}


def test_casts_are_what_the_formats_say():
    formats = {"float16": FLOAT16, "bfloat16": BFLOAT16, "E5M2": FLOAT8_E5M2}
    for cast, question in limits.CASTS.items():
        value, name = cast.split(" to ")
        assert float(quantize(float(value), formats[name])) == number(question.answer), cast
        assert question.text == cast.replace(" to ", " cast to ")
    assert torch.tensor([2e-8, 4e-8]).to(float16).tolist() == [0, 2**-24]
    assert torch.tensor([3.4e38, 3e-40]).to(torch.bfloat16).tolist() == [INF, 3 * 2**-133]
    assert torch.tensor(3.4e38).isfinite()
    assert torch.tensor([61000.0, 61440.0]).to(torch.float8_e5m2).tolist() == [57344, INF]


def test_casts_takes_words_numbers_and_powers():
    assert limits.check_casts(CASTS)
    assert limits.check_casts(CASTS | {"4e-8 to float16": 5.96e-8, "3e-40 to bfloat16": 2.755e-40})
    assert limits.check_casts(CASTS | {"4e-8 to float16": 6e-8, "3e-40 to bfloat16": 2.76e-40})


@pytest.mark.parametrize(
    ("cast", "answer", "hint"),
    [
        ("2e-8 to float16", "2**-24", "below half"),
        ("2e-8 to float16", 2e-8, "Nothing smaller"),
        ("2e-8 to float16", 2**-25, "border"),
        ("2e-8 to float16", "2**-14", "Subnormals"),
        ("2e-8 to float16", "nan", "never"),
        ("4e-8 to float16", 0, "which side"),
        ("4e-8 to float16", 4e-8, "nothing but 0"),
        ("4e-8 to float16", "2**-14", "Subnormals"),
        ("3.4e38 to bfloat16", 3.39e38, "midpoint"),
        ("3.4e38 to bfloat16", BFLOAT16.max, "midpoint"),
        ("3.4e38 to bfloat16", "2**128", "does not exist"),
        ("3.4e38 to bfloat16", 3.4e38, "seven fraction bits"),
        ("3.4e38 to bfloat16", 65504, "float16's"),
        ("3e-40 to bfloat16", 0, "has subnormals"),
        ("3e-40 to bfloat16", 3e-40, "whole multiples"),
        ("3e-40 to bfloat16", 3, "Multiply"),
        ("3e-40 to bfloat16", "2**-126", "Subnormals go on"),
        ("3e-40 to bfloat16", "2**-133", "Which of its multiples"),
        ("3e-40 to bfloat16", "2**-132", "twice"),
        ("3e-40 to bfloat16", "2**-131", "whole multiple"),
        ("3e-40 to bfloat16", "2**-149", "float32's"),
        ("3e-40 to bfloat16", "2**-24", "float16's"),
        ("3e-40 to bfloat16", 1e-39, "How far apart"),
        ("61440 to E5M2", 57344, "even"),
        ("61440 to E5M2", "2**16", "What is stored"),
        ("61440 to E5M2", 61440, "8192 apart"),
        ("61440 to E5M2", 65504, "two fraction bits"),
        ("61000 to E5M2", "inf", "midpoint"),
        ("61000 to E5M2", 61000, "8192 apart"),
        ("61000 to E5M2", 61440, "midpoint"),
        ("61000 to E5M2", 49152, "one more number"),
        ("61000 to E5M2", 448, "E4M3"),
        ("61000 to E5M2", 65504, "two fraction bits"),
        ("61000 to E5M2", "nan", "does 61000 overflow"),
        ("61000 to E5M2", 5, "four numbers"),
    ],
)
def test_casts_names_the_cast_and_the_misconception(cast, answer, hint):
    outcome = limits.check_casts(CASTS | {cast: answer})
    assert outcome.status == NOT_YET
    assert cast in outcome.message
    assert hint in outcome.message


# --- 3: the wrong line


class Silent:
    """A model of three reviews, of which the first has no answer."""

    def __call__(self):
        logits = torch.tensor([[NAN, NAN], [0.0, 1.0], [1.0, 0.0]], dtype=float16)
        return type("Output", (), {"logits": logits})


def evaluation(instead=None):
    lines = [instead if option.right and instead else option.text.strip("`\n") for option in QUESTION.options]
    scope = {}
    exec("\n".join(lines), scope)
    return scope["accuracy"](Silent(), [({}, torch.tensor([0, 1, 1]))])


def test_the_line_with_argmax_takes_a_nan_for_an_answer_and_the_others_do_not():
    assert evaluation() == 2 / 3
    honest = "        guesses = logits.argmax(-1).where(~logits.isnan().any(-1), -1)"
    assert evaluation(honest) == 1 / 3


# --- 4: fate


def fate(x, fmt):
    if math.isnan(x):
        return "nan"
    size = abs(x)
    last = 2.0 ** (math.frexp(fmt.max)[1] - 1 - fmt.mantissa_bits)
    if size >= fmt.max + last / 2:
        return "infinite"
    if 0 < size <= fmt.smallest_subnormal / 2:
        return "zero"
    gap = 2.0 ** (math.frexp(max(size, fmt.smallest_normal))[1] - 1 - fmt.mantissa_bits)
    return "exact" if size % gap == 0 else "rounded"


def test_fate_takes_a_right_answer():
    outcome = limits.check_fate(fate)
    assert outcome, outcome.message


def past_the_largest(x, fmt):
    return "infinite" if abs(x) > fmt.max else fate(x, fmt)


def strictly_past_the_midpoint(x, fmt):
    end = fmt.max + 2.0 ** (math.frexp(fmt.max)[1] - 1 - fmt.mantissa_bits) / 2
    return "rounded" if abs(x) == end else fate(x, fmt)


def below_the_smallest(x, fmt):
    return "zero" if 0 < abs(x) < fmt.smallest_subnormal else fate(x, fmt)


def tie_goes_up(x, fmt):
    return "rounded" if abs(x) == fmt.smallest_subnormal / 2 else fate(x, fmt)


def without_subnormals(x, fmt):
    return "zero" if 0 < abs(x) < fmt.smallest_normal else fate(x, fmt)


def gaps_that_shrink(x, fmt):
    if not 0 < abs(x) < fmt.smallest_normal or abs(x) <= fmt.smallest_subnormal / 2:
        return fate(x, fmt)
    return "exact" if abs(x) % 2.0 ** (math.frexp(abs(x))[1] - 1 - fmt.mantissa_bits) == 0 else "rounded"


def compares_with_nan(x, fmt):
    return "nan" if x == NAN else ("exact" if math.isnan(x) else fate(x, fmt))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (past_the_largest, "nearer to the largest number"),
        (strictly_past_the_midpoint, "the tie goes to the even neighbour"),
        (below_the_smallest, "so it rounds up to it"),
        (tie_goes_up, "half of the smallest number"),
        (without_subnormals, 'is "zero", but should be "exact"'),
        (gaps_that_shrink, "does not get narrower"),
        (compares_with_nan, "math.isnan"),
        (lambda x, fmt: "zero" if x == 0 else fate(x, fmt), "nothing is lost"),
        (lambda x, fmt: fate(x, fmt) if x >= 0 or math.isnan(x) else fate(-x, FLOAT16) + "!", "not one of these"),
        (lambda x, fmt: "exact" if x < 0 else fate(x, fmt), "abs(x)"),
        (lambda x, fmt: "infinity" if x == INF else fate(x, fmt), "not one of these"),
        (lambda x, fmt: fate(x, FLOAT16), "bfloat16"),
    ],
)
def test_fate_names_the_mistake(wrong, hint):
    outcome = limits.check_fate(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_fate_says_not_attempted_and_names_the_number_that_gets_no_word():
    assert "returns nothing" in limits.check_fate(lambda x, fmt: None).message
    outcome = limits.check_fate(lambda x, fmt: fate(x, fmt) if x else None)
    assert outcome.status == NOT_YET
    assert "fate(0.0, float16) is None" in outcome.message


def test_fate_names_the_call_that_stops_with_an_exception():
    def without_nan(x, fmt):
        return fate(float(int(x)) if x != x else x, fmt)

    outcome = limits.check_fate(without_nan)
    assert outcome.status == NOT_YET
    assert "fate(nan, float16) stops with ValueError: cannot convert float NaN to integer" in outcome.message
    assert "fate(1.0, float16) stops with KeyError" in limits.check_fate(lambda x, fmt: {}[x]).message
