"""Condition in Python: its systems, its solutions, what it refuses, and the table for pages without JavaScript."""

import re

import numpy as np
import pytest

from tests.page_states import state_of
from utils.emulation.refinement import Refinement, rotations
from utils.widgets.condition import Condition, end_text
from utils.widgets.condition.facts import CONDITIONS, FACTORS, LETTERS, SEED, SIZE, make_facts, refined, system


def test_the_conditions_are_one_two_and_five_of_each_power_of_ten():
    assert CONDITIONS[:4] == (1, 2, 5, 10)
    assert CONDITIONS[-1] == 1e10
    assert len(CONDITIONS) == 31


@pytest.mark.parametrize("condition", [1.0, 2e3, 1e10])
def test_a_system_has_its_condition_and_all_ones_solve_it(condition):
    a, b = system(condition)
    assert np.linalg.cond(a) == pytest.approx(condition, rel=1e-5)
    assert np.abs(a.sum(1) - b).max() < 1e-14


def test_the_letters_are_the_rotations():
    for letters, round in zip(make_facts()["rotations"], rotations(SIZE, SEED), strict=True):
        numbers = [LETTERS.index(letter) for letter in letters]
        assert [numbers[0::3], numbers[1::3], numbers[2::3]] == [part.tolist() for part in round]


@pytest.mark.parametrize(
    ("factors", "last", "fails"),
    [("float32", 2e8, 1e9), ("float16", 2e4, 1e6), ("bfloat16", 2e3, 1e4), ("float8_e4m3fn", 20.0, 1e3)],
)
def test_each_format_ends_about_where_the_condition_times_its_roundoff_is_ten(factors, last, fails):
    u = FACTORS[factors].eps / 2
    assert 0.1 < last * u < 30
    assert refined(last, factors).converged
    assert not refined(fails, factors).converged
    if factors != "float8_e4m3fn":
        assert refined(fails, factors, correction="gmres").converged


def test_a_narrow_residual_repairs_nothing_beyond_itself():
    assert refined(1e2, "float16").converged
    best = min(refined(1e2, "float16", "float32").backward_errors)
    assert 1e-9 < best < 1e-7
    assert min(refined(1e2, "float16", "factors").backward_errors) > 1e-6


@pytest.mark.parametrize(
    ("why", "errors", "text"),
    [
        ("converged after 1 steps", (1e-5, 1e-16), "1 step"),
        ("converged after 0 steps", (1e-16,), "0 steps"),
        ("stuck at 1.3e-05: 10 steps did not halve it", (1e-5,) * 11, "stuck"),
        ("not there after 50 steps: 1e-09", (1e-9,) * 51, "not in 50"),
        ("step 1 overflowed", (1.0,), "overflow"),
        ("a pivot is 0: in float8_e4m3fn the matrix is singular", (), "no factors"),
    ],
)
def test_an_end_is_said_in_a_few_words(why, errors, text):
    assert end_text(Refinement(None, errors, errors, (1,) * len(errors), why.startswith("converged"), why)) == text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(condition=0.5), "condition 0.5 is not in 1 to 1e+10"),
        (dict(condition=float("nan")), "condition nan is not in 1 to 1e+10"),
        (dict(factors="tf32"), "factors 'tf32' is not one of float64, float32, float16, bfloat16, float8_e4m3fn"),
        (dict(residual="float16"), "residual 'float16' is not one of float64, float32, factors"),
        (dict(correction="cg"), "correction 'cg' is not one of factors, gmres"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Condition(**arguments)
    shown = Condition()
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=re.escape(says)):
        setattr(shown, name, value)


def test_a_page_without_javascript_gets_a_table():
    text = Condition().static_html()
    assert "residuals in float64, corrections by the factors" in text
    rows = dict(re.findall(r"<tr><th scope='row'>(.*?)</th>(.*?)</tr>", text))
    assert list(rows)[:4] == ["10", "100", "1,000", "10,000"]
    cells = re.findall(r"<td>(.*?)</td>", rows["10,000"])
    assert cells == [end_text(refined(1e4, name)) for name in FACTORS]
    assert cells[2:4] == ["21 steps", "stuck"]


def test_the_place_in_the_page_holds_the_state():
    shown = Condition(condition=2e5, factors="bfloat16", residual="factors", correction="gmres")
    state = {"condition": 2e5, "factors": "bfloat16", "residual": "factors", "correction": "gmres"}
    assert state_of(shown) == state | {"facts": make_facts()}
    assert shown.solved is refined(2e5, "bfloat16", "factors", "gmres")
    assert repr(Condition(factors="float32")) == (
        "Condition(1000, 'float32', residual='float64', correction='factors': converged after 2 steps)"
    )
