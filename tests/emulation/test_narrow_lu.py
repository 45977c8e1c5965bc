"""The factors against exact fractions and torch's own, what is rounded where, and every way in which they fail."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from utils.accumulation import add
from utils.emulation.narrow_lu import FactorsFailed, factorize, rounder, squeeze
from utils.emulation.refinement import matrix
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E8M0FNU, FLOAT16, FLOAT32, FLOAT64, TF32
from utils.rounding import quantize


def parts(factors):
    """L and U in float64."""
    lu = np.asarray(factors.lu, np.float64)
    return np.tril(lu, -1) + np.eye(len(lu)), np.triu(lu)


def scaled(a, factors):
    return (factors.rows[:, None] * a * factors.columns)[factors.order]


@pytest.mark.parametrize("fmt", [FLOAT64, FLOAT32, TF32, FLOAT16, BFLOAT16, FLOAT8_E4M3FN], ids=str)
def test_the_factors_multiply_to_the_matrix_up_to_their_rounding(fmt):
    a = matrix(40, 10.0, seed=1)
    factors = factorize(a, fmt)
    lower, upper = parts(factors)
    # One rounding of L or U in the step in which an entry is finished, and one of the matrix before; the sums between
    # them are float32, or float64 for float64 factors.
    sums = max(FLOAT64 if fmt is FLOAT64 else FLOAT32, fmt, key=lambda f: f.precision).eps
    bound = 3 * fmt.eps / 2 + 40 * sums
    size = np.abs(lower) @ np.abs(upper)
    assert (np.abs(scaled(a, factors) - lower @ upper) <= bound * size + fmt.smallest_subnormal * 2).all()
    assert (quantize(lower, fmt) == lower).all()
    assert (quantize(upper, fmt) == upper).all()
    assert np.abs(lower).max() == 1  # partial pivoting


def test_float64_factors_are_those_of_exact_fractions():
    a = [[2.0, 1.0, 1.0], [4.0, 3.0, 3.0], [8.0, 7.0, 9.0]]
    factors = factorize(a, FLOAT64)
    lower, upper = parts(factors)
    exact = [
        [sum((Fraction(x) * Fraction(y) for x, y in zip(row, column, strict=True)), Fraction(0)) for column in upper.T]
        for row in lower
    ]
    assert list(factors.order) == [2, 0, 1]
    assert upper[0].tolist() == [8, 7, 9]
    assert lower[1:, 0].tolist() == [0.25, 0.5]
    assert [[float(x) for x in row] for row in exact] == np.array(a)[factors.order].tolist()


@pytest.mark.parametrize(("fmt", "dtype"), [(FLOAT32, torch.float32), (FLOAT64, torch.float64)])
def test_float32_and_float64_factors_pivot_as_torch_does_and_agree_with_it(fmt, dtype):
    a = matrix(60, 100.0, seed=2)
    lu, pivots = torch.linalg.lu_factor(torch.tensor(a, dtype=dtype))
    order = np.arange(60)
    for k, pivot in enumerate(pivots.tolist()):
        order[[k, pivot - 1]] = order[[pivot - 1, k]]
    factors = factorize(a, fmt)
    assert (factors.order == order).all()
    assert np.abs(factors.lu - lu.numpy()).max() < 100 * 60 * fmt.eps


def test_sums_in_float16_round_every_product_and_every_difference():
    a = matrix(12, 10.0, seed=4) + 4 * np.eye(12)  # no rows are exchanged
    left = np.array(quantize(a, FLOAT16))
    for k in range(12):
        for i in range(k + 1, 12):
            left[i, k] = quantize(left[i, k] / left[k, k], FLOAT16)
            left[i, k + 1 :] = add(left[i, k + 1 :], -quantize(left[i, k] * left[k, k + 1 :], FLOAT16), FLOAT16)
    found = factorize(a, FLOAT16, sums=FLOAT16)
    assert (found.order == np.arange(12)).all()
    assert (np.asarray(found.lu, np.float64) == left).all()
    assert (found.lu != factorize(a, FLOAT16).lu).any()  # float32 sums


def test_the_solution_solves_the_system_of_the_factors():
    a = matrix(30, 10.0, seed=3)
    for fmt in (FLOAT64, FLOAT32, FLOAT16):
        factors = factorize(a, fmt, squeezed=True)
        lower, upper = parts(factors)
        made = np.empty_like(a)
        made[factors.order] = lower @ upper
        made = made / factors.rows[:, None] / factors.columns
        r = np.linspace(-1, 2, 30) * 1e-300  # scaled to 1 first, or float32 would hold zeros
        sums = FLOAT64 if fmt is FLOAT64 else FLOAT32
        assert np.abs(made @ factors.solve(r) - r).max() < 1000 * sums.eps * np.abs(r).max()
        assert np.abs(made @ factors.solve(r, wide=True) - r).max() < 1000 * FLOAT64.eps * np.abs(r).max()


def test_squeezing_scales_by_powers_of_two_into_the_range():
    a = matrix(20, 10.0) * np.geomspace(1e-12, 1e12, 20)[:, None] * np.geomspace(1e-8, 1, 20)
    rows, columns = squeeze(a, FLOAT16)
    assert (np.frexp(rows)[0] == 0.5).all()
    assert (np.frexp(columns)[0] == 0.5).all()
    size = np.abs(rows[:, None] * a * columns)
    assert FLOAT16.max / 64 < size.max() <= FLOAT16.max / 16
    assert (size.max(0) > FLOAT16.max / 64).all()
    for fmt in (FLOAT64, FLOAT32, BFLOAT16):  # no further up than float16
        assert (squeeze(a, fmt)[0] == rows).all()
    narrow = np.abs(squeeze(a, FLOAT8_E4M3FN)[0][:, None] * a * columns)
    assert 448 / 64 < narrow.max() <= 448 / 16
    assert np.isfinite(np.asarray(factorize(a, FLOAT16, squeezed=True).lu)).all()


def test_an_overflow_names_the_remedy_and_the_remedy_works():
    a = 1e6 * matrix(20, 10.0)
    with pytest.raises(FactorsFailed, match=r"overflow: the matrix reaches .*float16 ends at 65504; squeezed=True"):
        factorize(a, FLOAT16)
    with pytest.raises(FactorsFailed, match="overflow"):
        factorize(a, FLOAT8_E4M3FN)  # has no infinity: NaN
    assert np.isfinite(factorize(a, FLOAT16, squeezed=True).lu).all()
    assert np.isfinite(factorize(a, BFLOAT16).lu).all()


def test_factors_that_grow_beyond_the_range_are_an_overflow_too():
    with pytest.raises(FactorsFailed, match="the factors grow beyond 65504"):
        factorize([[1.0, 60000.0], [-1.0, 60000.0]], FLOAT16)


def test_a_pivot_that_rounding_makes_zero_is_said():
    a = [[1.0, 1.0], [1.0, 1.0 + 2**-9]]
    assert np.diag(factorize(a, FLOAT16).lu).tolist() == [1, 2**-9]
    with pytest.raises(FactorsFailed, match="a pivot is 0: in bfloat16 the matrix is singular"):
        factorize(a, BFLOAT16)
    with pytest.raises(FactorsFailed, match="a pivot is 0"):
        factorize(np.zeros((2, 2)), FLOAT32)


@pytest.mark.parametrize("a", [np.ones((2, 3)), np.ones(4), np.full((2, 2), np.nan), np.ones((0, 0))])
def test_what_is_no_square_matrix_of_numbers_is_refused(a):
    with pytest.raises(ValueError, match="square"):
        factorize(a)


def test_a_format_that_float32_cannot_emulate_is_refused():
    from utils.formats import FloatFormat

    with pytest.raises(ValueError, match="12 bits cannot be emulated"):
        rounder(FloatFormat("12 bits", 8, 11, bias=127))
    with pytest.raises(ValueError, match="cannot be emulated"):
        rounder(FLOAT8_E8M0FNU)
    with pytest.raises(TypeError, match="FloatFormat"):
        rounder("float16")
