"""The checks of practice/refinement: the right answer, and for each foreseen wrong one the hint that names it."""

import math

import numpy as np
import pytest
import torch

from book_rules import BOOK, read_page
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
    assert "one fewer" in checks.check_steps(answers | {"first error 1e-2, factor 0.2": 16}).message


@pytest.mark.parametrize(
    ("name", "fmt", "condition"),
    [
        ("float32, condition 3e6", FLOAT32, 3e6),
        ("float16, condition 3e4", FLOAT16, 3e4),
        ("bfloat16, condition 3e4", BFLOAT16, 3e4),
        ("TF32, condition 1500", TF32, 1500),
        ("float32, condition 3e10", FLOAT32, 3e10),
    ],
)
def test_what_converges_is_what_does(name, fmt, condition):
    ku = condition * fmt.eps / 2
    right = questions.SAFE if ku < 1 else questions.MAYBE if ku <= 30 else questions.FAILS
    assert right_option(questions.CONVERGES[name]).text == right
    a = matrix(100, condition)
    found = refine(a, product(a, np.ones(100)), factors=fmt)
    assert found.converged == (right != questions.FAILS)
    assert right != questions.MAYBE or f"in {found.steps} steps" in right_option(questions.CONVERGES[name]).says
    shown = f"{float(f'{ku:.2g}'):g}"
    assert ku < 1 or all(f"is {shown}" in option.says for option in questions.CONVERGES[name].options)


def test_the_right_answers_of_the_tables_are_correct_and_a_wrong_one_gets_its_hint():
    verdicts = {name: right_option(question).text for name, question in questions.CONVERGES.items()}
    assert checks.check_converges(verdicts)
    assert "8 bits" in checks.check_converges(verdicts | {"bfloat16, condition 3e4": questions.SAFE}).message
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
    border = facts.refined(5000.0, "bfloat16")
    assert "not there after 50 steps" in border.why  # "within 50 steps", asks the question
    a, b = facts.system(5000.0)
    assert f"take {refine(a, b, factors=BFLOAT16, most=100).steps} steps" in questions.PLAY_BORDER.says
    assert [f"{last(name) * facts.FACTORS[name].eps / 2:.2g}" for name in ("bfloat16", "float16")] == ["7.8", "24"]
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
    assert right_option(questions.NARROW_RESIDUAL).text == "About five"


def test_no_system_of_the_widget_converges_above_30_and_each_does_below_1():
    for name, fmt in facts.FACTORS.items():
        for condition in facts.CONDITIONS:
            ku = condition * fmt.eps / 2
            assert 1 <= ku <= 30 or facts.refined(condition, name).converged == (ku < 1), (name, condition)


# --- The script of In short


@pytest.fixture(scope="module")
def script():
    cell = next(cell for cell in read_page(BOOK / "practice" / "refinement.ipynb") if cell.kind == "code")
    names = {}
    exec(cell.source[: cell.source.index("torch.manual_seed")], names)
    return names["solve"]


def system(power, n=100):
    a = torch.from_numpy(matrix(n, 10.0**power).copy())
    exact = torch.linspace(1, 2, n, dtype=torch.float64)
    return a, exact, torch.from_numpy(product(a.numpy(), exact.numpy()))


@pytest.mark.parametrize("power", [1, 3, 5, 7])
def test_the_script_is_as_accurate_as_float64_factors(script, power):
    a, exact, b = system(power)
    x, steps = script(a, b)
    assert 2 <= steps <= 12
    assert (x - exact).abs().max() <= 5 * (torch.linalg.solve(a, b) - exact).abs().max() + 1e-15


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**20, 2.0**40])
def test_the_unit_of_a_row_does_not_matter_to_the_script(script, unit):
    a, exact, b = system(6.5, 300)
    a[5], b[5] = unit * a[5], unit * b[5]  # one large row would hide what is left in all others
    x, _ = script(a, b)
    assert (x - exact).abs().max() <= 3 * (torch.linalg.solve(a, b) - exact).abs().max()


@pytest.mark.parametrize("unit", [12, 60, 200, -200])
def test_units_of_the_columns_do_not_matter_to_the_script(script, unit):
    a, exact, b = system(2)
    units = torch.logspace(0, -unit, len(b), dtype=torch.float64)
    x, steps = script(a * units, b)
    assert steps <= 4
    assert (x * units - exact).abs().max() < 1e-12


def test_the_script_knows_its_edges(script):
    a, _, b = system(2)
    assert script(a, 0 * b)[0].abs().max() == 0
    assert script(1e150 * a, b)[1] <= 4
    assert script(*system(10)[::2])[1] is None
    assert script(torch.eye(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))[0].tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="singular"):
        script(0 * a, b)
    with pytest.raises(AssertionError):
        script(a.float(), b.float())


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


def scaled(size, *, zero=False):
    """The loop with each right-hand side divided by its size, as in the script of In short."""

    def refined(solve, a, b, steps):
        x = np.zeros(len(b)) if zero else solve(b)
        for _ in range(steps + zero):
            r = b - a @ x
            x = x + size(r) * solve(r / size(r))
        return x

    return refined


SCALED = [
    scaled(lambda r: abs(r).max()),
    scaled(lambda r: abs(r).max(), zero=True),
    scaled(np.linalg.norm),
    scaled(lambda r: 1e-3),
]


@pytest.mark.parametrize("function", [right, from_zero, *SCALED])
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


def by_the_library(solve, a, b, steps):
    return refine(a, b, factors=FLOAT16, most=steps).x


def until_it_is_small(solve, a, b, steps):
    x = solve(b)
    for _ in range(steps):
        r = b - a @ x
        if abs(r).max() < 1e-15:
            break
        x = x + solve(r)
    return x


def in_the_unit_of_the_factors(solve, a, b, steps):
    x = solve(b)
    for _ in range(steps):
        x = x + quantize(solve(b - a @ x), FLOAT16)  # a correction below 2^-24 becomes 0
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


def the_first_residual(solve, a, b, steps):
    x = solve(b)
    r = b - a @ x
    for _ in range(steps):
        x = x + solve(r)
    return x


def until_it_is_fair(solve, a, b, steps):
    x = solve(b)
    for _ in range(steps):
        r = b - a @ x
        if abs(r).max() < 1e-5:
            break
        x = x + solve(r)
    return x


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (x_in_float32, "keep it in float64"),
        (the_first_residual, "still that of the first x"),
        (until_it_is_fair, "`solve` was called 2 times; 3 steps take 4"),
        (by_the_library, "`solve` was called 0 times"),
        (until_it_is_small, "8 steps take 9"),
        (in_the_unit_of_the_factors, "is off by"),
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
        (lambda solve, a, b, steps: np.linalg.solve(a, b), "`solve` was never called"),
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
