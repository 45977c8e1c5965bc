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
from utils.widgets.condition import facts


def test_steps_are_those_of_the_logarithm():
    answers = {}
    for name in questions.STEPS:
        first, factor = (float(part.split()[-1]) for part in name.split(","))
        answers[name] = math.ceil(math.log(1e-12 / first) / math.log(factor))
        assert first * factor ** answers[name] <= 1e-12 < first * factor ** (answers[name] - 1)
    assert checks.check_steps(answers)
    assert "Round up" in checks.check_steps(answers | {"first error 1e-2, factor 0.2": 14}).message
    assert "without the first x" in checks.check_steps(answers | {"first error 1e-2, factor 5e-3": 6}).message


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
    right = questions.SAFE if ku < 1 else questions.MAYBE if ku <= 30 else questions.FAILS
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


def test_the_replies_of_the_play_tasks_are_those_of_the_widget():
    def last(name):
        return max(condition for condition in facts.CONDITIONS if facts.refined(condition, name).converged)

    assert float(questions.PLAY_BORDER.answer) == last("bfloat16")
    assert last("float16") == 50_000
    assert [f"{last(name) * facts.FACTORS[name].eps / 2:.2g}" for name in ("bfloat16", "float16")] == ["7.8", "24"]
    assert last("float16") / last("bfloat16") == 25
    solves = facts.refined(1e6, "float16", "float64", "gmres").solves
    assert sum(solves) == 39
    assert float(questions.PLAY_COST.answer) == sum(solves) * 6 / facts.SIZE
    low, high = (float(end) for end in next(iter(questions.PLAY_COST.within)).split(" to "))
    assert all(
        low < cost < high for cost in (sum(solves) * 3 / facts.SIZE, *(count * 6 / facts.SIZE for count in solves))
    )


def test_a_float32_residual_leaves_five_digits_of_the_puzzle():
    a, exact = matrix(200, condition=100.0), np.linspace(1, 2, 200)
    found = refine(a, product(a, exact), factors=FLOAT16, residual=FLOAT32, exact=exact)
    assert 3e-6 < found.forward_errors[-1] < 1e-5
    assert right_option(questions.NARROW_RESIDUAL).text == "Five or so"


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


def x_in_float32(solve, a, b, steps):
    x = solve(b).astype(np.float32)
    for _ in range(steps):
        x += solve(b - a @ x).astype(np.float32)
    return x


def residual_for_the_factors(solve, a, b, steps):
    x = solve(b)
    for _ in range(steps):
        x = x + solve((b - a @ x).astype(np.float16))  # "the factors are float16"
    return x


def b_becomes_the_residual(solve, a, b, steps):
    x = solve(b)
    for _ in range(steps):
        b = b - a @ x
        x = x + solve(b)
    return x


def residual_in_place(solve, a, b, steps):
    x = d = solve(b)
    for _ in range(steps):
        b -= a @ d
        d = solve(b)
        x = x + d
    return x


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (x_in_float32, "keep it in float64"),
        (residual_for_the_factors, "Give `solve` the float64 one"),
        (b_becomes_the_residual, "the original b"),
        (residual_in_place, "may still need them"),
    ],
)
def test_the_loop_withstands_a_good_student(function, hint):
    outcome = checks.check_refined(function)
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
