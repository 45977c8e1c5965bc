"""SoftmaxRow in Python: its steps against torch's operations, its sentences, what it refuses, and its static form."""

import html
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.page_states import state_of
from utils.checks.numbers import stability_questions as questions
from utils.checks.questions import number
from utils.formats import FORMATS
from utils.rounding import quantize
from utils.widgets.softmax_row import SoftmaxRow
from utils.widgets.softmax_row.facts import (
    FORMAT_NAMES,
    MASKS,
    MOST_COPIES,
    PRESETS,
    SOFTMAXES,
    START,
    ScoreRow,
    exact_sum,
    make_facts,
    softmax_steps,
)
from utils.widgets.softmax_row.words import row_number, said_number, sum_number, verdict

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
ODD = ("inf", "-inf", "nan", "70000", "-65510", "1e39", "-1e39", "11.09", "88.8", "1/3", "2^-24", "-0")


def some_rows(count, seed=5):
    """Random rows of all lengths, ways, formats and numbers of copies; a third of them with odd scores."""
    rng = np.random.default_rng(seed)
    for n in range(count):
        size = int(rng.integers(1, 7))
        scores = [f"{x:.4g}" for x in rng.normal(0, rng.choice([1, 10, 40]), size)]
        if n % 3 == 0:
            scores[int(rng.integers(size))] = str(rng.choice(ODD))
        yield ScoreRow(
            tuple(scores),
            tuple(bool(x) for x in rng.random(size) < rng.choice([0, 0.4, 1])),
            str(rng.choice(FORMAT_NAMES)),
            str(rng.choice(list(SOFTMAXES))),
            str(rng.choice(list(MASKS))),
            int(rng.choice([1, 1, 2, 3, 1000, 65_519, 65_520, MOST_COPIES])),
        )


def every_way():
    """Each way of masking, format and softmax for the row at the start, one padded throughout, and the presets'."""
    rows = {row.scores + row.masked: row for row in (START, *PRESETS.values())}.values()
    for row in rows:
        for mask in MASKS:
            for name in FORMAT_NAMES:
                for softmax in SOFTMAXES:
                    yield replace(row, mask=mask, format=name, softmax=softmax)


def same(ours, theirs):
    np.testing.assert_array_equal(np.array(ours, float), theirs.double().numpy())


# The steps


@pytest.mark.parametrize("row", [*every_way(), *some_rows(150)], ids=repr)
def test_each_step_is_the_one_that_torch_takes(row):
    dtype, steps = DTYPES[row.format], softmax_steps(row)
    lowest, hidden = torch.finfo(dtype).min, torch.tensor(row.masked)
    x = torch.tensor(steps.stored, dtype=torch.float64).to(dtype)
    same(steps.stored, x)
    added = {"add_1e4": [-1e4], "add_1e9": [-1e9], "add_lowest": [lowest], "add_lowest_twice": [lowest] * 2}
    for value in added.get(row.mask, []):
        x = torch.where(hidden, x + torch.tensor(value, dtype=torch.float64).to(dtype), x)
    if row.mask.startswith("put"):
        x = x.masked_fill(hidden, lowest if row.mask == "put_lowest" else -math.inf)
    same(steps.after, x)
    if row.softmax == "stable":
        x = x - x.max()
        same(steps.shifted, x)
    e = x.double().exp().to(dtype)
    same(steps.exps, e)
    total = torch.tensor(steps.total, dtype=torch.float64).to(dtype)
    same(steps.weights, e / total)


@pytest.mark.parametrize("row", list(some_rows(60, seed=6)), ids=repr)
def test_the_sum_is_exact_and_rounded_once(row):
    steps = softmax_steps(row)
    exact = row.copies * math.fsum(steps.exps) if all(map(math.isfinite, steps.exps)) else sum(steps.exps)
    assert steps.exact_sum == pytest.approx(exact, rel=1e-15, nan_ok=True)
    np.testing.assert_equal(steps.total, float(quantize(steps.exact_sum, row.fmt)))


def test_a_sum_next_to_a_tie_is_rounded_from_its_exact_value():
    # 2049 is halfway between two float16 numbers; float64 would lose what lies beside it
    assert exact_sum([2049.0, 2.0**-60], 1) > 2049
    assert float(exact_sum([2049.0, 2.0**-60], 1)) == 2049
    assert exact_sum([1.0, math.inf], 3) == math.inf
    assert math.isnan(exact_sum([math.inf, math.nan], 3))
    assert exact_sum([], 9) == 0


@pytest.mark.parametrize(("copies", "weight"), [(65_519, quantize(1 / 65504, FORMATS["float16"])), (65_520, 0)])
def test_a_float16_row_ends_at_65520_ones(copies, weight):
    steps = softmax_steps(replace(PRESETS["a long row"], copies=copies))
    assert steps.weights == (weight,)
    assert steps.total == (65504 if weight else math.inf)


def test_the_presets_show_what_they_are_called():
    steps = {label: softmax_steps(row) for label, row in PRESETS.items()}
    assert np.isnan(steps["12, 11, 10"].weights).tolist() == [True, False, False]
    assert steps["one masked, −1e9"].weights[1] == 0
    assert steps["one masked, −1e9"].weight_sum == pytest.approx(1, abs=1e-3)
    for label in ("all padding, −1e9", "two masks, bfloat16"):
        assert np.isnan(steps[label].weights).all()
    assert steps["a long row"].weights == (0,)
    assert all(len(row.scores) == len(row.masked) for row in PRESETS.values())


# What is said


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            START,
            "−20 + (−65504) is −65524, too far beyond −65504, so float16 stores −inf. exp(−inf) is 0, so no NaN "
            "follows. The weights add up to 0.99978.",
        ),
        (
            PRESETS["12, 11, 10"],
            "exp(12) is 162755, too far beyond 65504, so float16 stores inf. The sum is inf too, and inf / inf is NaN. "
            "1 of the 3 weights is NaN, and so is their sum.",
        ),
        (
            PRESETS["all padding, −1e9"],
            "The mask, −1e9, is too far beyond −65504, so float16 stores it as −inf. Now the largest score is −inf, "
            "and −inf − (−inf) is NaN. All 4 weights are NaN, and so is their sum.",
        ),
        (
            PRESETS["two masks, bfloat16"],
            "−3.38953e38 + (−3.38953e38) is −6.77906e38, too far beyond −3.38953e38, so bfloat16 stores −inf. Now the "
            "largest score is −inf, and −inf − (−inf) is NaN. All 4 weights are NaN, and so is their sum.",
        ),
        (
            PRESETS["a long row"],
            "The 65,520 exponentials add up to 65520, too far beyond 65504, so float16 stores their sum as inf. A "
            "number divided by inf is 0. The weights add up to 0.",
        ),
        (
            replace(PRESETS["a long row"], copies=65_519),
            "Every number is finite. The weights add up to 0.99974.",
        ),
        (
            replace(START, masked=(True,) * 4, mask="put_lowest"),
            "Every number is finite. The weights add up to 1, all of it on masked scores.",
        ),
        (
            replace(START, masked=(True,) * 4, mask="put_lowest", softmax="naive"),
            "Every exponential is 0, so their sum is 0, and 0 / 0 is NaN. All 4 weights are NaN, and so is their sum.",
        ),
        (
            replace(START, mask="put_inf"),
            "The mask puts −inf in place of a score, on purpose. exp(−inf) is 0, so no NaN follows. "
            "The weights add up to 0.99978.",
        ),
        (
            replace(START, masked=(True,) * 4, mask="put_inf"),
            "The mask puts −inf in place of every score, on purpose. Now the largest score is −inf, and "
            "−inf − (−inf) is NaN. All 4 weights are NaN, and so is their sum.",
        ),
        (
            replace(START, mask="none", masked=(False, False, True, False)),
            "Every number is finite. The weights add up to 0.99978, 0.00668 of it on masked scores.",
        ),
        (
            ScoreRow(("30", "-20"), (False, True), mask="put_lowest"),
            "−65504 − 30 is −65534, too far beyond −65504, so float16 stores −inf. exp(−inf) is 0, so no NaN follows. "
            "The weights add up to 1.",
        ),
        (
            ScoreRow(("70000", "1"), (True, False), mask="add_1e9", softmax="naive"),
            "Score 1 is too far beyond 65504, so float16 stores it as inf. inf + (−inf) is NaN, and the sum takes it "
            "to every weight. Both weights are NaN, and so is their sum.",
        ),
        (
            ScoreRow(("inf", "1"), (False, False), copies=7),
            "Score 1 is inf from the start. Now the largest score is inf, and inf − inf is NaN. "
            "Both weights of each copy are NaN, and so is their sum.",
        ),
        (
            ScoreRow(("1", "-∞"), (False, False)),
            "Score 2 is −inf from the start. exp(−inf) is 0, so no NaN follows. The weights add up to 1.",
        ),
        (
            ScoreRow(("nan",), (False,)),
            "Score 1 is NaN from the start. NaN stays NaN, and the sum takes it to every weight. The weight is NaN.",
        ),
        (
            ScoreRow(("nan", "2"), (True, False), mask="put_inf"),
            "Score 1 is NaN from the start. The mask puts another number in its place. exp(−inf) is 0, so no NaN "
            "follows. The weights add up to 1.",
        ),
        (
            ScoreRow(("inf", "2"), (True, False), mask="put_lowest"),
            "Score 1 is inf from the start. The mask puts another number in its place. The weights add up to 1.",
        ),
        (
            ScoreRow(("1000", "-20"), (False, True), softmax="naive"),
            "−20 + (−65504) is −65524, too far beyond −65504, so float16 stores −inf. exp(1000) is too far beyond "
            "65504, so float16 stores inf. The sum is inf too, and inf / inf is NaN. 1 of the 2 weights is NaN, and so "
            "is their sum.",
        ),
        (
            ScoreRow(("88.7228394",), (False,), "float32", "naive"),
            "exp(88.72284) is 3.40282e38, slightly too far beyond 3.40282e38, so float32 stores inf. The sum is inf "
            "too, and inf / inf is NaN. The weight is NaN.",
        ),
    ],
)
def test_the_verdict_says_where_the_first_odd_number_came_from(row, says):
    assert verdict(softmax_steps(row)) == says


@pytest.mark.parametrize("row", [*every_way(), *some_rows(300, seed=8)], ids=repr)
def test_the_verdict_names_what_is_there(row):
    steps = softmax_steps(row)
    said = verdict(steps)
    numbers = [*steps.stored, *steps.after, *(steps.shifted or ()), *steps.exps, steps.total, *steps.weights]
    assert ("Every number is finite." in said) == all(map(math.isfinite, numbers))
    assert ("NaN" in said.replace("no NaN follows", "")) == any(map(math.isnan, numbers))
    assert "inf" in said or "from the start" in said or not any(map(math.isinf, numbers))
    assert len(said) < 330
    if math.isfinite(steps.weight_sum):
        assert f"add up to {sum_number(steps.weight_sum)}" in said


@pytest.mark.parametrize(
    ("x", "text", "said"),
    [
        (0.0, "0", "0"),
        (-0.0, "0", "0"),
        (8.0, "8", "8"),
        (-20.0, "−20", "−20"),
        (11.09375, "11.094", "11.09375"),
        (0.006744384765625, "0.00674", "0.00674438"),
        (9.12e-4, "9.12e−4", "9.12e−4"),
        (0.9996, "1", "0.9996"),
        (-65504.0, "−65504", "−65504"),
        (162754.79, "162755", "162755"),
        (1000.5, "1001", "1001"),
        (999999.5, "1000000", "1000000"),
        (-3.3895313892515355e38, "−3.39e38", "−3.38953e38"),
        (math.inf, "inf", "inf"),
        (-math.inf, "−inf", "−inf"),
        (math.nan, "NaN", "NaN"),
    ],
)
def test_a_number_has_few_digits_in_the_table_and_more_in_a_sentence(x, text, said):
    assert (row_number(x), said_number(x)) == (text, said)


# The tasks under the widget


def test_the_largest_score_with_two_decimals_is_that_of_the_task():
    def weight(score):
        return softmax_steps(ScoreRow((score,), (False,), softmax="naive", mask="none")).weights[0]

    best = max(n for n in range(1000, 1200) if weight(f"{n / 100:.2f}") == 1)
    assert number(questions.PLAY_SCORE.answer) == best / 100
    assert weight("11.0859375") == 1
    assert math.isnan(weight("11.09"))
    assert quantize(11.09, FORMATS["float16"]) == 11.09375
    assert round(math.exp(11.09)) == 65513
    assert round(math.exp(11.09375)) == 65759
    assert number("11.090110718526951") == math.log(65520)


def test_the_longest_row_is_that_of_the_task():
    def is_zero(copies):
        return softmax_steps(replace(PRESETS["a long row"], copies=copies)).weights == (0,)

    longest = int(number(questions.PLAY_COPIES.answer))
    assert [is_zero(n) for n in (1, 2, 2048, 65_504, longest, longest + 1, MOST_COPIES)] == [False] * 5 + [True] * 2


def test_the_score_from_which_the_lowest_number_added_makes_nan_is_that_of_the_task():
    def weights(score):
        row = ScoreRow((str(score),) * 4, (True,) * 4, mask="add_lowest")
        return softmax_steps(row).weights

    first = max(n for n in range(-100, 100) if math.isnan(weights(n)[0]))
    assert number(questions.PLAY_MASK.answer) == first == -16
    assert all(map(math.isnan, weights(-17)))
    assert weights(-15) == (0.25,) * 4


# The widget


def test_the_place_in_the_page_holds_the_state():
    assert state_of(SoftmaxRow()) == {
        "scores": ["8", "-20", "3", "1"],
        "masked": [False, True, False, False],
        "format": "float16",
        "softmax": "stable",
        "mask": "add_lowest",
        "copies": 1,
        "facts": make_facts(),
    }


def test_scores_may_be_numbers_and_those_beyond_the_mask_are_not_masked():
    widget = SoftmaxRow([1.5, "1/3", np.float64(-2), 4], [True], mask="put_inf", format="float32")
    assert widget.row == ScoreRow(
        ("1.5", "1/3", "-2.0", "4"), (True, False, False, False), "float32", "stable", "put_inf"
    )
    assert widget.steps.after[0] == -math.inf
    widget.scores = ["5"]
    assert widget.row.masked == (True,)
    assert widget.verdict == verdict(softmax_steps(widget.row))
    assert SoftmaxRow([1, 2]).row.masked == (False, False)
    assert SoftmaxRow(masked=[True] * 4).row == replace(START, masked=(True,) * 4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"scores": []}, "0 scores: one to 6 can be shown"),
        ({"scores": ["1"] * 7}, "7 scores: one to 6 can be shown"),
        ({"scores": ["much"]}, "value 'much' is not a number"),
        ({"scores": [1], "masked": [True, False]}, "masked has 2 entries for 1 scores"),
        ({"format": "float8_e4m3fn"}, "format 'float8_e4m3fn' is not one of float16, bfloat16, float32"),
        ({"softmax": "fast"}, "softmax 'fast' is not one of naive, stable"),
        ({"mask": "add -1e9"}, "mask 'add -1e9' is not one of none, add_1e4, add_1e9"),
        ({"copies": 0}, "copies 0 is not in 1 to 200000"),
        ({"copies": 200_001}, "copies 200001 is not in 1 to 200000"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        SoftmaxRow(**arguments)


def test_a_page_without_javascript_gets_the_steps_and_the_ways():
    page = html.unescape(SoftmaxRow().static_html())
    assert SoftmaxRow().verdict in page
    rows = {
        head: re.findall(r"<td>(.*?)</td>", cells) for head, cells in re.findall(r"row'>(.*?)</th>(.*?)</tr>", page)
    }
    assert rows["−20 (masked)"] == ["−20", "−inf", "−inf", "0", "0"]
    assert rows["sum"] == ["", "", "", "1.0078", "0.99978"]
    assert [rows[label] for label in MASKS.values()] == [
        ["1", "1", "1"],
        ["1", "1", "1"],
        ["NaN", "1", "1"],
        ["1", "1", "1"],
        ["NaN", "NaN", "NaN"],
        ["1", "1", "1"],
        ["NaN", "NaN", "NaN"],
    ]
    naive = SoftmaxRow([1], softmax="naive", copies=65_520).static_html()
    assert "minus the largest</th>" not in naive
    assert "a row of scores, 65,520 times in float16, as written" in naive


def test_the_repr_says_how_it_is_computed():
    assert repr(SoftmaxRow([1], mask="none")) == (
        "SoftmaxRow(['1'], [], 'float16', softmax='stable', mask='none', copies=1)"
    )
