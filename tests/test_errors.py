"""The measures of error: by hand, against their definitions, and at the edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.errors import overflow_share, relative_error, sqnr_db, ulp_error, underflow_share
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
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


@given(x=st.floats(1, 100), fmt=st.sampled_from([FLOAT32, FLOAT16, BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2]))
def test_the_relative_error_of_a_normal_value_is_below_the_unit_roundoff(x, fmt):
    assert relative_error(quantize(x, fmt), x) <= fmt.eps / 2


def test_relative_error_at_zero():
    assert relative_error([0.0, 1.0, 0.0], [0.0, 0.0, 2.0]).tolist() == [0.0, math.inf, 1.0]
    assert relative_error(0.0, -0.0) == 0.0


def test_sqnr_by_hand_and_for_a_uniform_error():
    assert sqnr_db([1.1], [1.0]) == pytest.approx(20.0)
    assert sqnr_db([1.0, 2.0], [1.0, 2.0]) == math.inf
    # Rounding to multiples of 2**-k leaves a uniform error of variance 4**-k / 12: 6.02 dB for each bit.
    x = np.random.default_rng(seed=1).uniform(1, 2, size=100_000)
    for fmt in (FLOAT16, BFLOAT16, FLOAT8_E4M3FN):
        expected = 10 * math.log10((7 / 3) / (fmt.eps**2 / 12))
        assert sqnr_db(quantize(x, fmt), x) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("x", [[], [0.0, 0.0]])
def test_sqnr_of_nothing_says_that_there_is_no_signal(x):
    with pytest.raises(ValueError, match="needs a signal: x is empty or zero everywhere"):
        sqnr_db(x, x)


def test_underflow_share_counts_the_nonzero_values_that_become_zero():
    half = FLOAT16.smallest_subnormal / 2  # the tie goes to zero
    assert underflow_share([0.0, half, -half, half * 1.01, 1.0, math.nan], FLOAT16) == 0.5
    assert underflow_share([0.0, 0.0], FLOAT16) == 0.0
    assert underflow_share([], FLOAT16) == 0.0


@pytest.mark.parametrize("fmt", [fmt for fmt in SIGNED if fmt.name != "float64"], ids=str)
def test_overflow_share_counts_what_rounds_past_the_largest_value(fmt):
    end = 2.0 ** (fmt.emax + 1)
    x = np.concatenate([np.linspace(0.5, 1.5, 4001) * fmt.max, [end, fmt.max, np.nextafter(fmt.max, 0)]])
    if fmt.has_nan:
        expected = np.mean(~np.isfinite(quantize(x, fmt)))
    else:  # they saturate, so that the result does not tell: compare with the same grid, continued by one exponent
        step = 2.0 ** (fmt.emax - fmt.mantissa_bits)
        expected = np.mean(np.rint(x / step) * step > fmt.max)
    assert overflow_share(x, fmt) == overflow_share(-x, fmt) == pytest.approx(expected, abs=0)


def test_overflow_share_by_hand():
    assert overflow_share([464.0, 464.1, math.inf, math.nan, 1.0, -500.0], FLOAT8_E4M3FN) == 0.5
    assert overflow_share([7.0, 6.9, -8.0, 1.0], FLOAT4_E2M1FN) == 0.5
    assert overflow_share([61440.0, 61439.0], FLOAT8_E5M2) == 0.5
    assert overflow_share([], FLOAT16) == 0.0
