"""The measures of error: by hand, against their definitions, and at the edges."""

import math

import numpy as np
import pytest
import torch

from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16
from utils.rounding import quantize, sqnr_db, underflow_share

inf, nan = math.inf, math.nan


def test_a_torch_tensor_is_taken_and_a_complex_array_refused():
    x = torch.tensor([1.0, 2.0, 4.0, 1e9], dtype=torch.bfloat16)
    assert sqnr_db(x, x) == math.inf
    assert isinstance(sqnr_db(2 * x, x), float)
    assert underflow_share(x * 2.0**-26, FLOAT16) == 0.5
    for measure in (lambda x: sqnr_db(x, x), lambda x: underflow_share(x, FLOAT16)):
        with pytest.raises(TypeError, match="x holds real numbers, not complex128"):
            measure([1j])


def test_sqnr_by_hand_and_for_a_uniform_error():
    assert sqnr_db([1.1], [1.0]) == pytest.approx(20.0)
    assert sqnr_db([1.0, 2.0], [1.0, 2.0]) == math.inf
    # Rounding to multiples of 2**-k leaves a uniform error of variance 4**-k / 12: 6.02 dB for each bit.
    x = np.random.default_rng(seed=1).uniform(1, 2, size=100_000)
    for fmt in (FLOAT16, BFLOAT16, FLOAT8_E4M3FN):
        expected = 10 * math.log10((7 / 3) / (fmt.eps**2 / 12))
        assert sqnr_db(quantize(x, fmt), x) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("exponent", [-1060, -600, 0, 600, 1021])
def test_sqnr_does_not_depend_on_the_unit(exponent):
    y, x = np.ldexp([0.75, 2.5, 0.0], exponent), np.ldexp([1.0, 2.0, 0.0], exponent)
    with np.errstate(all="raise", under="ignore"):
        assert sqnr_db(y, x) == pytest.approx(10 * math.log10(5 / 0.3125), abs=1e-9)


def test_sqnr_of_an_error_far_larger_or_far_smaller_than_the_signal():
    with np.errstate(all="raise", under="ignore"):
        assert sqnr_db([1e200], [1e-200]) == pytest.approx(-8000)
        assert sqnr_db([1.0, 1e-200], [1.0, 2e-200]) == pytest.approx(4000)
        assert sqnr_db([5e-324], [1e-323]) == pytest.approx(20 * math.log10(2))


@pytest.mark.parametrize(
    ("y", "x", "expected"),
    [
        ([inf, 1.0], [1.0, 1.0], -inf),
        ([-1.7e308], [1.7e308], -inf),
        ([inf, nan], [1.0, 1.0], nan),
        ([nan, 1.0], [1.0, 1.0], nan),
        ([1.0, 1.0], [nan, 1.0], nan),
        ([inf, 1.0], [inf, 1.0], nan),
        ([1.0, 1.0], [inf, 1.0], nan),
    ],
)
def test_sqnr_of_what_is_not_finite_is_as_the_docstring_says_and_nothing_warns(y, x, expected):
    with np.errstate(all="raise"):
        assert sqnr_db(y, x) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("x", [[], [0.0, 0.0]])
def test_sqnr_of_nothing_says_that_there_is_no_signal(x):
    with pytest.raises(ValueError, match="needs a signal: x is empty or zero everywhere"):
        sqnr_db(x, x)


def test_underflow_share_counts_the_nonzero_values_that_become_zero():
    half = FLOAT16.smallest_subnormal / 2  # the tie goes to zero
    assert underflow_share([0.0, 0.0, half, -half, half * 1.01, 1.0, math.nan], FLOAT16) == 0.5
    assert underflow_share([0.0, 0.0], FLOAT16) == 0.0
    assert underflow_share([], FLOAT16) == 0.0
