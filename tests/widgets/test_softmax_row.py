"""SoftmaxRow in Python: its steps against torch's operations, its sentences, what it refuses, and its static form."""

import html
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.page_states import state_of
from utils.checks.number_text import read_number
from utils.checks.numbers import stability_questions as questions
from utils.checks.questions import number
from utils.formats import FORMATS
from utils.rounding import quantize
from utils.widgets.shared.numbers.exact_rounding import quantize_exact
from utils.widgets.softmax_row import SoftmaxRow
from utils.widgets.softmax_row.facts import (
    FORMAT_NAMES,
    LOWEST,
    MASKS,
    MOST_COPIES,
    PRESETS,
    SAME,
    SOFTMAXES,
    START,
    VALUES,
    ScoreRow,
    exact_sum,
    make_facts,
    softmax_steps,
)
from utils.widgets.softmax_row.goals import TASKS
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
            str(rng.choice([*VALUES, "-0.5", "-1/3", "-65519", "-65520", "-2^120", "-1e-9", "-1e400"])),
            str(rng.choice([SAME, SAME, *FORMAT_NAMES])),
        )


def every_way():
    """Each mask, value, format and softmax for the row at the start, one of padding alone, and the presets' rows."""
    rows = {row.scores + row.masked: row for row in (START, START.padding, *PRESETS.values())}.values()
    for row in rows:
        for mask in MASKS:
            for value in VALUES if mask != "none" else (LOWEST,):
                for name in FORMAT_NAMES:
                    for softmax in SOFTMAXES:
                        yield replace(row, mask=mask, value=value, format=name, softmax=softmax, softmax_format=SAME)


def every_cast():
    """Each pair of formats of scores and softmax, for each mask and value."""
    for name in FORMAT_NAMES:
        for inner in FORMAT_NAMES:
            for mask in ("add", "put"):
                for value in VALUES:
                    yield replace(START, format=name, softmax_format=inner, mask=mask, value=value)


def same(ours, theirs):
    np.testing.assert_array_equal(np.array(ours, float), theirs.double().numpy())


# The steps


def value_of(row):
    """The mask's value as torch has it, of the dtype of the scores."""
    if row.value == LOWEST:
        return torch.finfo(DTYPES[row.format]).min
    return quantize_exact(read_number(row.value), FORMATS[row.format])


@pytest.mark.parametrize(
    "rows", [list(every_way()), list(every_cast()), list(some_rows(300))], ids=["ways", "casts", "random"]
)
def test_each_step_is_the_one_that_torch_takes(rows):
    for row in rows:
        dtype, inner, steps = DTYPES[row.format], DTYPES[row.softmax_format or row.format], softmax_steps(row)
        value, hidden = torch.tensor(value_of(row), dtype=torch.float64).to(dtype), torch.tensor(row.masked)
        x = torch.tensor(steps.stored, dtype=torch.float64).to(dtype)
        same(steps.stored, x)
        for _ in range({"add": 1, "add_twice": 2}.get(row.mask, 0)):
            x = torch.where(hidden, x + value, x)
        if row.mask == "put":
            x = x.masked_fill(hidden, value)
        same(steps.after, x)
        x = x.to(inner)
        same(steps.cast, x)
        if row.softmax == "stable":
            x = x - x.max()
            same(steps.shifted, x)
        e = x.double().exp().to(inner)
        same(steps.exps, e)
        total = torch.tensor(steps.total, dtype=torch.float64).to(inner)
        same(steps.weights, e / total)


def pairs_of_rows():
    """The start row and its padding, with each mask, value and dtype."""
    return [
        row
        for name in FORMAT_NAMES
        for way in every_way()
        if way.scores == START.scores and way.format == name and way.softmax == "stable"
        for row in (way, way.padding)
    ]


def test_torch_softmax_computes_16_bits_in_float32_and_rounds_the_weights():
    """torch's own kernel on this CPU: the row with the softmax in float32, and only its weights rounded."""
    for row in pairs_of_rows():
        steps = softmax_steps(replace(row, softmax_format="float32"))
        dtype = DTYPES[row.format]
        theirs = torch.softmax(torch.tensor(steps.after, dtype=torch.float64).to(dtype), -1)
        ours = torch.tensor(steps.weights, dtype=torch.float64).to(dtype)
        if row.format == "float32":  # its exp and its sum may be off by an ulp each
            torch.testing.assert_close(ours, theirs, rtol=3 * 2.0**-23, atol=0, equal_nan=True)
            assert torch.equal(ours == 0, theirs == 0)
        else:
            same(ours.double().numpy(), theirs)


def test_a_mask_that_is_added_and_a_float_mask_of_torch_give_the_same():
    """F.scaled_dot_product_attention without scaling, whose values are the identity: its output is the weights."""
    for value in ("-10", "-1e4", "-1e9"):
        row = replace(START, format="float32", value=value)
        steps = softmax_steps(row)
        scores = torch.tensor([float(x) for x in row.scores]).reshape(1, 4, 1)
        mask = torch.tensor([float(value) if hidden else 0.0 for hidden in row.masked])
        out = torch.nn.functional.scaled_dot_product_attention(
            torch.ones(1, 1, 1), scores, torch.eye(4)[None], attn_mask=mask[None], scale=1.0
        )
        torch.testing.assert_close(out[0, 0].double(), torch.tensor(steps.weights).double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("row", list(some_rows(60, seed=6)), ids=repr)
def test_the_sum_is_exact_and_rounded_once(row):
    steps = softmax_steps(row)
    exact = row.copies * math.fsum(steps.exps) if all(map(math.isfinite, steps.exps)) else sum(steps.exps)
    assert steps.exact_sum == pytest.approx(exact, rel=1e-15, nan_ok=True)
    np.testing.assert_equal(steps.total, float(quantize(steps.exact_sum, row.inner)))


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
    assert steps["add −1e9"].weights[1] == steps["a cast"].weights[1] == 0
    assert steps["add −1e9"].weight_sum == pytest.approx(1, abs=1e-3)
    assert steps["too weak"].masked_weight > 0.01
    for label in ("add −1e9", "two masks", "a cast"):
        assert np.isnan(softmax_steps(PRESETS[label].padding).weights).all()
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
            PRESETS["add −1e9"].padding,
            "The mask, −1e9, is too far beyond −65504, so float16 stores it as −inf. Now the largest score is −inf, "
            "and −inf − (−inf) is NaN. All 4 weights are NaN, and so is their sum.",
        ),
        (
            PRESETS["two masks"].padding,
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
            replace(START, masked=(True,) * 4, mask="put"),
            "Every number is finite. The weights add up to 1, all of it on masked scores.",
        ),
        (
            replace(START, masked=(True,) * 4, mask="put", softmax="naive"),
            "Every exponential is 0, so their sum is 0, and 0 / 0 is NaN. All 4 weights are NaN, and so is their sum.",
        ),
        (
            replace(START, mask="put", value="-inf"),
            "The mask puts −inf in place of a score, on purpose. exp(−inf) is 0, so no NaN follows. "
            "The weights add up to 0.99978.",
        ),
        (
            replace(START, masked=(True,) * 4, mask="put", value="-inf"),
            "The mask puts −inf in place of every score, on purpose. Now the largest score is −inf, and "
            "−inf − (−inf) is NaN. All 4 weights are NaN, and so is their sum.",
        ),
        (
            replace(START, mask="none", masked=(False, False, True, False)),
            "Every number is finite. The weights add up to 0.99978, 0.00668 of it on masked scores.",
        ),
        (
            PRESETS["a cast"],
            "The softmax is computed in float16: −3.40282e38 is too far beyond −65504, so float16 stores it as −inf. "
            "exp(−inf) is 0, so no NaN follows. The weights add up to 0.99978.",
        ),
        (
            PRESETS["too weak"],
            "Every number is finite. The weights add up to 1, 0.012 of it on masked scores.",
        ),
        (
            replace(START.padding, value="-inf"),
            "The mask adds −inf to every score, on purpose. Now the largest score is −inf, and −inf − (−inf) is NaN. "
            "All 4 weights are NaN, and so is their sum.",
        ),
        (
            replace(START, format="bfloat16", value="-3.4028234663852886e38"),
            "The mask, −3.40282e38, is too far beyond −3.38953e38, so bfloat16 stores it as −inf. exp(−inf) is 0, so "
            "no NaN follows. The weights add up to 0.99977.",
        ),
        (
            ScoreRow(("30", "-20"), (False, True), mask="put"),
            "−65504 − 30 is −65534, too far beyond −65504, so float16 stores −inf. exp(−inf) is 0, so no NaN follows. "
            "The weights add up to 1.",
        ),
        (
            ScoreRow(("70000", "1"), (True, False), value="-1e9", softmax="naive"),
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
            ScoreRow(("nan", "2"), (True, False), mask="put", value="-inf"),
            "Score 1 is NaN from the start. The mask puts another number in its place. exp(−inf) is 0, so no NaN "
            "follows. The weights add up to 1.",
        ),
        (
            ScoreRow(("inf", "2"), (True, False), mask="put"),
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


@pytest.mark.parametrize("rows", [list(every_way()), list(every_cast()), list(some_rows(500, seed=8))])
def test_the_verdict_names_what_is_there(rows):
    for row in rows:
        steps = softmax_steps(row)
        said = verdict(steps)
        numbers = [*steps.stored, *steps.after, *steps.cast, *(steps.shifted or ()), *steps.exps, *steps.weights]
        numbers.append(steps.total)
        assert ("Every number is finite." in said) == all(map(math.isfinite, numbers)), row
        assert ("NaN" in said.replace("no NaN follows", "")) == any(map(math.isnan, numbers)), row
        assert "inf" in said or "from the start" in said or not any(map(math.isinf, numbers)), row
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
        row = replace(PRESETS["a long row"], scores=("3", "2"), masked=(False, False), copies=copies)
        return softmax_steps(row).weights == (0, 0)

    longest = int(number(questions.PLAY_COPIES.answer))
    assert [is_zero(n) for n in (1, 2, 2048, 47_886, longest, longest + 1, MOST_COPIES)] == [False] * 5 + [True] * 2


def test_the_score_from_which_the_lowest_number_added_makes_nan_is_that_of_the_task():
    def weights(score):
        row = ScoreRow((str(score),) * 4, (True,) * 4, mask="add")
        return softmax_steps(row).weights

    first = max(n for n in range(-100, 100) if math.isnan(weights(n)[0]))
    assert number(questions.PLAY_MASK.answer) == first == -16
    assert all(map(math.isnan, weights(-17)))
    assert weights(-15) == (0.25,) * 4


# The tasks


def test_each_task_begins_unsolved_and_its_ids_are_those_of_the_chapter():
    assert len({task.id for task in TASKS}) == len(TASKS) >= 3
    for task in TASKS:
        assert task.id.startswith("numbers/stability/mask-")
        assert len(task.hints) >= 2
    nan, leak, two, cast = (softmax_steps(task.start.padding) for task in TASKS)
    assert np.isfinite(nan.weights).all()
    assert two.weights == (0.25,) * 4
    assert np.isnan(cast.weights).all()
    assert softmax_steps(TASKS[1].start).masked_weight == 0
    assert np.isfinite(leak.weights).all()


def test_the_mask_that_the_first_task_asks_for_is_the_whole_number_closest_to_zero():
    start = TASKS[0].start.padding
    values = range(-65_000, -66_000, -1)
    found = next(value for value in values if np.isnan(softmax_steps(replace(start, value=str(value))).weights).all())
    assert found == -65425


# The widget


def test_the_place_in_the_page_holds_the_state():
    assert state_of(SoftmaxRow()) == {
        "scores": ["8", "-20", "3", "1"],
        "masked": [False, True, False, False],
        "format": "float16",
        "softmax": "stable",
        "mask": "add",
        "value": "lowest",
        "softmax_format": "",
        "copies": 1,
        "facts": make_facts(),
        "goals": [task.as_json() for task in TASKS],
        "solved": [],
    }
    assert SoftmaxRow(tasks=False).goals == []


def test_scores_may_be_numbers_and_those_beyond_the_mask_are_not_masked():
    widget = SoftmaxRow([1.5, "1/3", np.float64(-2), 4], [True], mask="put", value=-math.inf, format="float32")
    assert widget.row == ScoreRow(
        ("1.5", "1/3", "-2.0", "4"), (True, False, False, False), "float32", mask="put", value="-inf"
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
        ({"mask": "add -1e9"}, "mask 'add -1e9' is not one of none, add, add_twice, put"),
        ({"softmax_format": "float8"}, "softmax_format 'float8' is not one of , float16, bfloat16, float32"),
        ({"value": "5"}, "'5' is not below 0: a mask makes scores smaller"),
        ({"value": "nan"}, "'nan' is not below 0: a mask makes scores smaller"),
        ({"value": "much"}, "value 'much' is not a number"),
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
    assert SoftmaxRow().padding_verdict in page
    rows = [
        (head, re.findall(r"<td>(.*?)</td>", cells)) for head, cells in re.findall(r"row'>(.*?)</th>(.*?)</tr>", page)
    ]
    assert rows[1] == ("−20 (masked)", ["−20", "−inf", "−inf", "0", "0"])
    assert rows[4] == ("sum", ["", "", "", "1.0078", "0.99978"])
    assert dict(rows[10:]) == {
        "dtype’s lowest, added": ["1", "1", "1"],
        "−inf, added": ["NaN", "NaN", "NaN"],
        "−1e9, added": ["NaN", "1", "1"],
        "−65504, added": ["1", "1", "1"],
        "−1e4, added": ["1", "1", "1"],
        "−10, added": ["1", "1", "1"],
        "float32’s lowest, added": ["NaN", "NaN", "1"],
        "dtype’s lowest, put in place of the score": ["1", "1", "1"],
        "−inf, put in place of the score": ["NaN", "NaN", "NaN"],
        "−1e9, put in place of the score": ["NaN", "1", "1"],
        "−65504, put in place of the score": ["1", "1", "1"],
        "−1e4, put in place of the score": ["1", "1", "1"],
        "−10, put in place of the score": ["1", "1", "1"],
        "float32’s lowest, put in place of the score": ["NaN", "NaN", "1"],
        "dtype’s lowest, added twice": ["NaN", "NaN", "NaN"],
    }
    naive = SoftmaxRow([1], softmax="naive", copies=65_520).static_html()
    assert "minus the largest</th>" not in naive
    assert "a row of scores, 65,520 times in float16, as written" in naive


def test_the_repr_says_how_it_is_computed():
    assert repr(SoftmaxRow([1], mask="none")) == (
        "SoftmaxRow(['1'], [], 'float16', softmax='stable', mask='none', value='lowest', copies=1)"
    )
