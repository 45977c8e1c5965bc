"""The measures of error: by hand, against their definitions, and at the edges."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from utils.errors import overflow_share, relative_error, sqnr_db, ulp_error, underflow_share
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FORMATS,
)
from utils.rounding import quantize, toward_zero

SIGNED = [fmt for fmt in FORMATS.values() if fmt.signed]


def test_ulp_error_by_hand():
    assert ulp_error(3.140625, 3.14, FLOAT16) == pytest.approx(0.000625 / 2**-9, rel=1e-12)
    assert ulp_error([1.0, 2.0], [1.0, 2.5], FLOAT8_E4M3FN).tolist() == [0.0, 2.0]


@given(x=st.floats(-6, 6), fmt=st.sampled_from(SIGNED))
def test_nearest_is_off_by_at_most_half_an_ulp_and_truncation_by_less_than_one(x, fmt):
    assert ulp_error(quantize(x, fmt), x, fmt) <= 0.5
    assert ulp_error(quantize(x, fmt, rounding=toward_zero), x, fmt) < 1


@example(x=1.0625, fmt=FLOAT8_E4M3FN)  # the tie 1 + u, which is off by most
@example(x=1.125, fmt=FLOAT8_E5M2)
@given(x=st.floats(1, 100), fmt=st.sampled_from([FLOAT32, FLOAT16, BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2]))
def test_the_relative_error_of_a_normal_value_is_below_the_unit_roundoff(x, fmt):
    assert relative_error(quantize(x, fmt), x) < fmt.eps / 2  # at most u / (1 + u), at 1 + u


def test_relative_error_at_zero():
    assert relative_error([0.0, 1.0, 0.0], [0.0, 0.0, 2.0]).tolist() == [0.0, math.inf, 1.0]
    assert relative_error(0.0, -0.0) == 0.0


inf, nan = math.inf, math.nan


@pytest.mark.parametrize(
    ("y", "x", "relative", "in_ulps"),
    [
        (inf, inf, 0.0, nan),
        (1.0, inf, nan, nan),
        (-inf, inf, nan, nan),
        (inf, 1.0, inf, inf),
        (nan, 1.0, nan, nan),
        (1.0, nan, nan, nan),
        (nan, inf, nan, nan),
    ],
)
def test_errors_of_what_is_not_finite_are_as_the_docstrings_say_and_nothing_warns(y, x, relative, in_ulps):
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(relative_error(y, x), relative)
        np.testing.assert_array_equal(ulp_error(y, x, FLOAT16), in_ulps)
        np.testing.assert_array_equal(ulp_error([y], [x], FLOAT16), [in_ulps])


def test_numbers_give_numbers_and_arrays_give_arrays():
    assert isinstance(relative_error(1.0, 2.0), np.float64)
    assert isinstance(ulp_error(1.0, 2.0, FLOAT16), np.float64)
    assert isinstance(sqnr_db(1.0, 2.0), float)
    assert relative_error([[1.0]], [[2.0]]).tolist() == [[0.5]]


def test_a_torch_tensor_is_taken_and_a_complex_array_refused():
    x = torch.tensor([1.0, 2.0, 4.0, 1e9], dtype=torch.bfloat16)
    assert relative_error(x, 2 * x).tolist() == [0.5] * 4
    assert ulp_error(x, x, BFLOAT16).tolist() == [0.0] * 4
    assert sqnr_db(x, x) == math.inf
    assert (overflow_share(x, FLOAT16), underflow_share(x, FLOAT16)) == (0.25, 0.0)
    for measure in (lambda x: relative_error(x, x), lambda x: sqnr_db(x, x), lambda x: overflow_share(x, FLOAT16)):
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
    assert underflow_share([0.0, half, -half, half * 1.01, 1.0, math.nan], FLOAT16) == 0.5
    assert underflow_share([0.0, 0.0], FLOAT16) == 0.0
    assert underflow_share([], FLOAT16) == 0.0


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS.values() if fmt.name != "float64"], ids=str)
def test_overflow_share_counts_what_rounds_past_the_largest_value(fmt):
    step = 2.0 ** (fmt.emax - fmt.mantissa_bits)
    tie, end = fmt.max + step / 2, fmt.max + step
    edges = [end, fmt.max, tie, np.nextafter(tie, 0), np.nextafter(tie, end), np.nextafter(fmt.max, 0), 1e300]
    x = np.concatenate([np.linspace(0.5, 1.5, 4001) * fmt.max, edges])
    if fmt.has_nan:
        over = ~np.isfinite(quantize(x, fmt))
    else:  # they saturate, so that the result does not tell: compare with the same grid, continued by one exponent
        over = np.rint(x / step) * step > fmt.max
    for value, expected in zip(edges, over[-len(edges) :], strict=True):
        assert overflow_share(value, fmt) == expected, value
    assert overflow_share(x, fmt) == np.mean(over)
    assert overflow_share(-x, fmt) == (np.mean(over) if fmt.signed else 0.0)  # NaN in E8M0, and no overflow


def test_nothing_finite_overflows_float64():
    assert overflow_share([FORMATS["float64"].max, -FORMATS["float64"].max], FORMATS["float64"]) == 0.0


def test_overflow_share_by_hand():
    assert overflow_share([464.0, 464.1, math.inf, math.nan, 1.0, -500.0], FLOAT8_E4M3FN) == 0.5
    assert overflow_share([7.0, 6.9, -8.0, 1.0], FLOAT4_E2M1FN) == 0.5
    assert overflow_share([61440.0, 61439.0], FLOAT8_E5M2) == 0.5
    assert overflow_share([1.5 * 2.0**127, 1.4 * 2.0**127], FLOAT8_E8M0FNU) == 0.5
    assert overflow_share([], FLOAT16) == 0.0
