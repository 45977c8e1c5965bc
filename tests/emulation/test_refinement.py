"""Refinement converges and fails where it should, its residuals are what they say, its matrices have their condition.

The counts at n = 500 are those of an independent trial with torch's LU (factors rounded at the end), up to one or two
steps: float32 converges to a condition of 1e7 and fails at 1e8, float16 to 1e4 and fails at 1e6, bfloat16 at 1e2 and
not at 1e4.
"""

import numpy as np
import pytest

from utils.emulation.refinement import (
    by_factors,
    by_factors_wide,
    by_gmres,
    matrix,
    product,
    refine,
    residual_of,
    rotations,
)
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16, FLOAT32, FLOAT64
from utils.rounding import quantize


def system(n, condition, seed=0):
    """A matrix of a condition, and the right-hand side whose solution is all ones."""
    a = matrix(n, condition, seed)
    return a, product(a, np.ones(n))


@pytest.mark.parametrize(
    ("fmt", "condition", "steps"),
    [
        (FLOAT32, 1e2, 2),
        (FLOAT32, 1e4, 3),
        (FLOAT32, 1e6, 4),
        (FLOAT32, 1e7, 7),
        (FLOAT16, 1e2, 5),
        (FLOAT16, 1e4, 15),
        (BFLOAT16, 1e2, 9),
    ],
)
def test_it_converges_to_float64_below_the_limit_of_its_factors(fmt, condition, steps):
    a, b = system(500, condition)
    found = refine(a, b, factors=fmt, exact=np.ones(500))
    assert found.converged, found.why
    assert abs(found.steps - steps) <= 1
    assert found.backward_errors[-1] <= 500**0.5 * 2**-52
    assert found.forward_errors[-1] < 500 * condition * 2**-52  # the condition in the infinity norm is larger
    assert found.solves == (1,) * (found.steps + 1)
    assert found.why == f"converged after {found.steps} steps"


@pytest.mark.parametrize(("fmt", "condition"), [(FLOAT32, 1e8), (FLOAT32, 1e9), (FLOAT16, 1e6), (BFLOAT16, 1e4)])
def test_it_fails_above_the_limit_and_gmres_with_the_same_factors_does_not(fmt, condition):
    a, b = system(500, condition)
    found = refine(a, b, factors=fmt)
    assert not found.converged
    assert found.backward_errors[-1] > 1e-9
    assert found.why.startswith("stuck at")
    assert found.x is not None
    assert np.isfinite(found.x).all()
    small = system(100, 10 * condition)
    assert not refine(*small, factors=fmt).converged
    rescued = refine(*small, factors=fmt, correct=by_gmres)
    assert rescued.converged, rescued.why
    assert rescued.backward_errors[-1] <= 10 * 2**-52


def test_a_step_of_gmres_is_the_solution_of_the_system():
    a, b = system(30, 1e3)
    found = refine(a, b, factors=BFLOAT16, correct=by_gmres, most=0)
    assert np.abs(found.x - np.ones(30)).max() < 1e-8 * 1e3
    assert 2 < sum(found.solves) <= 31
    assert refine(np.eye(3), np.zeros(3), correct=by_gmres).x.tolist() == [0, 0, 0]
    assert refine(np.eye(3), np.full(3, 2e-300), correct=by_gmres).x.tolist() == [2e-300] * 3


@pytest.mark.parametrize("residual", [FLOAT32, FLOAT16], ids=str)
def test_a_narrow_residual_leaves_the_error_at_its_own_rounding(residual):
    a, b = system(60, 100.0)
    found = refine(a, b, factors=FLOAT16, residual=residual)
    assert not found.converged
    assert residual.eps / 100 < min(found.backward_errors) < 10 * residual.eps
    assert refine(a, b, factors=FLOAT16).converged


def test_a_narrow_solution_can_be_no_better_than_its_format():
    a, x = matrix(60, 1e3), np.linspace(1, 2, 60)
    b = product(a, x)
    found = refine(a, b, factors=FLOAT16, solution=FLOAT32, exact=x)
    assert not found.converged
    assert (found.x == quantize(found.x, FLOAT32)).all()
    # Residuals in float64 still make every digit right that float32 has (Moler 1967), whatever the condition costs.
    assert found.forward_errors[-1] <= FLOAT32.eps
    poor = refine(a, b, factors=FLOAT16, solution=FLOAT32, residual=FLOAT32, exact=x)
    assert poor.forward_errors[-1] > 10 * FLOAT32.eps


def test_factors_that_fail_give_no_numbers_but_a_reason():
    a, b = system(20, 10.0)
    found = refine(1e6 * a, b, factors=FLOAT16)
    assert (found.x, found.backward_errors, found.converged, found.steps) == (None, (), False, 0)
    assert "squeezed=True" in found.why
    assert refine(1e6 * a, 1e6 * b, factors=FLOAT16, squeezed=True).converged
    assert "a pivot is 0" in refine(np.ones((2, 2)), np.ones(2)).why


@pytest.mark.parametrize("fmt", [FLOAT64, FLOAT32, BFLOAT16, FLOAT16], ids=str)
def test_a_squeezed_matrix_is_solved_like_the_plain_one(fmt):
    a, b = system(100, 100.0)
    plain, squeezed = refine(a, b, factors=fmt), refine(a, b, factors=fmt, squeezed=True)
    assert plain.converged
    assert squeezed.converged
    assert abs(plain.steps - squeezed.steps) <= 1
    rows = np.geomspace(1e-30, 1e30, 100)
    assert refine(rows[:, None] * a, rows * b, factors=fmt, squeezed=True).converged


def test_what_overflows_on_the_way_is_said_and_the_last_finite_solution_kept():
    found = refine([[1e-300]], [1e300], factors=FLOAT64)
    assert found.why == "step 0 overflowed"
    assert found.x.tolist() == [0]
    assert not found.converged


def test_too_few_steps_are_said():
    a, b = system(60, 1e3)
    found = refine(a, b, factors=BFLOAT16, most=3)
    assert found.why.startswith("not there after 3 steps")
    assert (found.steps, found.converged) == (3, False)


def test_eight_bits_are_enough_for_a_matrix_of_a_small_condition():
    a, b = system(100, 10.0)
    found = refine(a, b, factors=FLOAT8_E4M3FN, exact=np.ones(100))
    assert found.converged
    assert found.forward_errors[-1] < 1e-13


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6, 1e10])
@pytest.mark.parametrize("n", [2, 15, 100])
def test_a_matrix_has_the_condition_and_the_norm_that_it_is_asked_for(n, condition):
    values = np.linalg.svd(matrix(n, condition, seed=5), compute_uv=False)
    assert values[0] == pytest.approx(1, abs=1e-12)
    assert values[0] / values[-1] == pytest.approx(condition, rel=4e-8 * n + condition * 1e-14)


def test_the_rows_of_a_matrix_are_mixed():
    a = matrix(64, 1.0, seed=6)  # a rotation
    assert np.abs(a).max() < 6 / 64**0.5
    assert len({matrix(8, 10.0, seed).tobytes() for seed in range(5)}) == 5
    assert (matrix(8, 10.0, 3) == matrix(8, 10.0, 3)).all()


def test_a_matrix_is_what_its_rotations_make_of_the_singular_values():
    n, condition = 6, 1e3
    a = np.diag([float(np.float32(condition ** (-1 / 5))) ** k for k in range(n)])
    planes = rotations(n, 4)
    assert len(planes) == 8 * 3
    for number, (first, second, tangents) in enumerate(planes):
        turn = np.eye(n)
        for i, j, t in zip(first, second, tangents / 64, strict=True):
            angle = 2 * np.arctan(t)
            turn[i, i] = turn[j, j] = np.cos(angle)
            turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
        a = turn @ a if number % 2 == 0 else a @ turn.T
    assert np.abs(a - matrix(n, condition, 4)).max() < 1e-14


@pytest.mark.parametrize(("n", "condition"), [(1, 10.0), (4, 0.5), (4, np.inf), (4, np.nan)])
def test_a_matrix_that_cannot_be_is_refused(n, condition):
    with pytest.raises(ValueError, match="condition"):
        matrix(n, condition)


def test_substitutions_in_float64_change_an_answer_and_not_what_converges():
    for condition, converges in ((1e3, True), (1e6, False)):
        a, b = system(100, condition)
        plain, wide = (refine(a, b, factors=FLOAT16, correct=correct) for correct in (by_factors, by_factors_wide))
        assert plain.converged == wide.converged == converges
        assert plain.backward_errors[0] != wide.backward_errors[0]
        assert plain.backward_errors[0] == pytest.approx(wide.backward_errors[0], rel=0.1)


@pytest.mark.parametrize("correct", [by_factors, by_factors_wide, by_gmres])
def test_many_right_hand_sides_are_solved_together_as_each_alone(correct):
    a, x = matrix(40, 100.0), np.linspace(-1, 2, 120).reshape(40, 3) ** 3
    b = product(a, x) * [1.0, 1e-200, 0.0]  # each column has a scale of its own
    together = refine(a, b, factors=BFLOAT16, correct=correct)
    assert together.converged
    for column in range(3):
        alone = refine(a, b[:, column], factors=BFLOAT16, correct=correct)
        assert np.abs(together.x[:, column] - alone.x).max() <= 1e-13 * np.abs(alone.x).max()
        assert together.steps >= alone.steps
    first = refine(a, b[:, 0], factors=BFLOAT16, most=0)
    assert (refine(a, b, factors=BFLOAT16, most=0).x[:, 0] == first.x).all()


@pytest.mark.parametrize(("a", "b"), [(np.eye(2), np.ones(3)), (np.eye(2), [1, np.inf]), (np.ones((2, 3)), np.ones(2))])
def test_shapes_and_numbers_that_do_not_fit_are_refused(a, b):
    with pytest.raises(ValueError, match="shape"):
        refine(a, b)


def test_a_residual_rounds_each_product_and_difference_in_its_order():
    a, x, b = np.array([[3.0, 1.0, 2049.0], [1.0, 0.0, 0.0]]), np.array([0.1, 1.0, 1.0]), np.array([1.0, 1.0])
    rounded = [quantize(value, FLOAT16) for value in (0.1, 2049.0)]
    first = quantize(1 - quantize(3 * rounded[0], FLOAT16), FLOAT16)
    expected = quantize(quantize(first - 1, FLOAT16) - rounded[1], FLOAT16)
    assert residual_of(a, x, b, fmt=FLOAT16)[0] == expected
    assert residual_of(a, x, b)[0] == 1 - 3 * 0.1 - 1 - 2049
    assert (product(a, x) == -residual_of(a, x, np.zeros(2))).all()
