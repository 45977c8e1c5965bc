"""The checks of practice/refinement: the right answer, and for each foreseen wrong one the hint that names it."""

import math

import numpy as np
import pytest

from tests.book_questions import right_option
from utils.checks.outcome import NOT_ATTEMPTED, NOT_YET
from utils.checks.practice import refinement as checks
from utils.checks.practice import refinement_questions as questions
from utils.emulation.refinement import matrix, product, refine
from utils.formats import BFLOAT16, FLOAT16, FLOAT32, TF32
from utils.rounding import quantize


def test_steps_are_those_of_the_logarithm():
    answers = {}
    for name in questions.STEPS:
        first, factor = (float(part.split()[-1]) for part in name.split(","))
        answers[name] = math.ceil(math.log(1e-12 / first) / math.log(factor))
        assert first * factor ** answers[name] <= 1e-12 < first * factor ** (answers[name] - 1)
    assert checks.check_steps(answers)
    assert "Round up" in checks.check_steps(answers | {"first error 1e-2, factor 0.2": 14}).message
    assert "whole" not in checks.check_steps(answers | {"first error 1e-2, factor 5e-3": 6}).message


@pytest.mark.parametrize(
    ("name", "fmt", "condition"),
    [
        ("float32, condition 1e6", FLOAT32, 1e6),
        ("float16, condition 1e4", FLOAT16, 1e4),
        ("bfloat16, condition 1e4", BFLOAT16, 1e4),
        ("TF32, condition 1e3", TF32, 1e3),
        ("float32, condition 1e10", FLOAT32, 1e10),
    ],
)
def test_what_converges_is_what_does(name, fmt, condition):
    ku = condition * fmt.eps / 2
    right = questions.SAFE if ku < 1 else questions.MAYBE if ku <= 10 else questions.FAILS
    assert right_option(questions.CONVERGES[name]).text == right
    a = matrix(100, condition)
    assert refine(a, product(a, np.ones(100)), factors=fmt).converged == (right != questions.FAILS)
    shown = f"{float(f'{ku:.2g}'):g}"
    assert ku < 1 or all(f"is {shown}" in option.says for option in questions.CONVERGES[name].options)


def test_the_right_answers_of_the_tables_are_correct_and_a_wrong_one_gets_its_hint():
    verdicts = {name: right_option(question).text for name, question in questions.CONVERGES.items()}
    assert checks.check_converges(verdicts)
    assert "8 bits" in checks.check_converges(verdicts | {"bfloat16, condition 1e4": questions.SAFE}).message
    faults = {name: right_option(question).text for name, question in questions.BUGS.items()}
    assert sorted(faults.values()) == sorted(
        [questions.ROUNDED, questions.NARROW_X, questions.NARROW_R, questions.REPLACED]
    )
    assert checks.check_bugs(faults)
    assert "Its own residual" not in checks.check_bugs(faults | {"loop C": questions.NARROW_R}).message
    assert "1e-16" in checks.check_bugs(faults | {"loop C": questions.NARROW_R}).message


def test_the_broken_loops_show_what_the_replies_say():
    loops = {}
    for name, rows in checks.broken_loops().items():
        loops[name] = np.array([error for error, _ in rows]), [residual for _, residual in rows]
    first = loops["loop A"][0][0]
    assert 0.005 < first < 0.03  # one percent or so
    assert 1e-6 < loops["loop A"][0][2:].min() < 2e-5
    errors = loops["loop B"][0]
    assert (errors[1::2] > 1).all()
    assert (errors[2::2] < 4 * first).all()
    errors, residuals = loops["loop C"]
    assert np.allclose(errors[1:], errors[-1], rtol=0.05)
    assert errors[-1] > first / 2
    assert residuals[-1] < 1e-15
    errors = loops["loop D"][0]
    assert FLOAT16.eps / 4 < errors[-1] <= FLOAT16.eps / 2


# --- Write it


def right(solve, a, b, steps):
    x = solve(b)
    for _ in range(steps):
        x = x + solve(b - a @ x)
    return x


def from_zero(solve, a, b, steps):
    x = np.zeros(len(b))
    for _ in range(steps + 1):
        x += solve(b - a @ x)
    return x


def with_fault(fault):
    def refined(solve, a, b, steps):
        x = solve(b)
        for _ in range(steps + (fault == "late") - (fault == "early")):
            used = quantize(a, FLOAT16) if fault == "rounded" else a
            missing = b - used @ x
            if fault == "float32":
                missing = b.astype(np.float32) - a.astype(np.float32) @ x.astype(np.float32)
            correction = solve(missing)
            if fault == "once":
                return x
            if fault == "twice":
                correction = solve(missing)
            x = correction if fault == "replaced" else x - correction if fault == "minus" else x + correction
        return x

    return refined


@pytest.mark.parametrize("function", [right, from_zero])
def test_the_loop_may_be_written_in_any_way(function):
    outcome = checks.check_refined(function)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ("minus", "wrong way"),
        ("replaced", "Add it to x"),
        ("late", "too many"),
        ("early", "too few"),
        ("rounded", "rounded matrix"),
        ("float32", "compute b - A x in float64"),
        ("once", "nothing was added"),
        ("twice", "are enough"),
    ],
)
def test_the_loop_names_the_mistake(fault, hint):
    outcome = checks.check_refined(with_fault(fault))
    assert outcome.status == NOT_YET
    assert hint in outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda solve, a, b, steps: np.ones(3), "40 unknowns"),
        (lambda solve, a, b, steps: b * np.nan, "not finite"),
        (lambda solve, a, b, steps: np.linalg.solve(a, b), "is off by"),
        (lambda solve, a, b, steps: b @ "x", "stop"),
        (3.0, "function itself"),
    ],
)
def test_the_loop_knows_other_mistakes(wrong, hint):
    outcome = checks.check_refined(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


def test_a_loop_that_returns_nothing_was_not_attempted():
    assert checks.check_refined(lambda *given: None).status == NOT_ATTEMPTED
