"""Sums in a narrow format against exact fractions, and the stall of a sum against adding until nothing changes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oracles import SMALL, round_exactly, same_bits
from utils.accumulation import add, kahan_sum, matmul, pairwise_sum, running_sum, stall
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    TF32,
    FloatFormat,
    decode,
)
from utils.rounding import (
    quantize,
    stochastic,
    ties_away,
    ties_to_even,
    toward_negative,
    toward_positive,
    toward_zero,
    ulp,
)

RULES = [ties_to_even, ties_away, toward_zero, toward_positive, toward_negative]
ONE = [[1.0]]
SUMMED = [fmt for fmt in FORMATS.values() if fmt.has_zero and fmt is not FLOAT64]
WIDEST = FloatFormat("widest", exponent_bits=9, mantissa_bits=50, bias=255)  # 51 significant bits
LOWEST = FloatFormat("lowest", exponent_bits=2, mantissa_bits=3, bias=1072)  # down to the last bit of float64
HIGHEST = FloatFormat("highest", exponent_bits=2, mantissa_bits=3, bias=-1021)  # up to the largest float64


def round_fraction(x: Fraction, fmt: FloatFormat, rule: str = "ties_to_even") -> float:
    """Round an exact number: its place on the grid as a fraction, a comparison with one half, an integer."""
    size, sign = abs(x), -1 if x < 0 else 1
    e = size.numerator.bit_length() - size.denominator.bit_length()  # floor(log2), or 1 more
    e = min(max(e - (size < Fraction(2) ** e), fmt.emin), fmt.emax)
    step = Fraction(2) ** (e - fmt.mantissa_bits)
    end = Fraction(fmt.max) + step  # for what lies in the last binade or beyond
    whole, rest = divmod(min(size, end - step / 2**60) / step, 1)
    up = {
        "ties_to_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "ties_away": rest >= Fraction(1, 2),
        "toward_zero": False,
        "toward_positive": rest > 0 and sign > 0,
        "toward_negative": rest > 0 and sign < 0,
    }[rule]
    rounded = (whole + up) * step
    if rounded > fmt.max:
        return sign * (fmt.max if not fmt.has_nan else math.inf if fmt.has_inf else math.nan)
    return sign * float(rounded)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("fmt", [fmt for fmt in SMALL if fmt.has_zero and fmt.bits <= 8], ids=str)
def test_the_oracle_agrees_with_the_search_among_all_values(fmt, rule):
    for x in np.linspace(-1.2 * fmt.max, 1.2 * fmt.max, 301):
        theirs = round_exactly(x, fmt, rule=rule.__name__)
        assert same_bits(abs(round_fraction(Fraction(x), fmt, rule.__name__)), abs(theirs)), x


finite = st.one_of(st.floats(-1e30, 1e30), st.floats(-600, 600), st.floats(-1e-4, 1e-4), st.floats(-1, 1))
summed = st.sampled_from([*SUMMED, WIDEST])


@given(a=finite, b=finite, fmt=summed, rule=st.sampled_from(RULES))
@example(a=1.0, b=2.0**-8 + 2.0**-60, fmt=BFLOAT16, rule=ties_to_even)  # above a tie by less than float64 shows
@example(a=1.0, b=2.0**-8 - 2.0**-60, fmt=BFLOAT16, rule=ties_to_even)
@example(a=1.0, b=-(2.0**-100), fmt=FLOAT32, rule=toward_negative)
@example(a=-1.0, b=2.0**-100, fmt=FLOAT32, rule=toward_zero)
@example(a=1.0, b=2.0**-100, fmt=WIDEST, rule=toward_positive)
def test_an_addition_is_the_exact_sum_rounded_once(a, b, fmt, rule):
    exact = Fraction(a) + Fraction(b)
    got = float(add(a, b, fmt, rounding=rule))
    theirs = round_fraction(exact, fmt, rule.__name__)
    assert got == theirs or (math.isnan(got) and math.isnan(theirs)), (got, theirs)


@given(
    value=st.integers(0, 2**16 - 1),
    half=st.sampled_from([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0]),
    tiny=st.integers(-52, -20),
    sign=st.sampled_from([-1, 1]),
    fmt=st.sampled_from(SUMMED),
    rule=st.sampled_from(RULES),
)
def test_what_lies_next_to_a_value_or_a_tie_falls_to_its_own_side(value, half, tiny, sign, fmt, rule):
    a = float(quantize(decode(value, FLOAT16), fmt, saturate=True))
    if not math.isfinite(a):
        return
    b = float(ulp(a, fmt)) * (half + sign * 2.0**tiny)  # a + b has more bits than float64
    got, theirs = float(add(a, b, fmt, rounding=rule)), round_fraction(Fraction(a) + Fraction(b), fmt, rule.__name__)
    assert got == theirs or (math.isnan(got) and math.isnan(theirs)), (a, b, got, theirs)


def test_one_rounding_and_not_two():
    above_the_tie = 2.0**-8 + 2.0**-60
    assert 1.0 + above_the_tie == 1.0 + 2.0**-8  # float64 rounds the rest away,
    assert quantize(1.0 + above_the_tie, BFLOAT16) == 1.0  # and then the tie goes to even
    assert add(1.0, above_the_tie, BFLOAT16) == 1.0 + 2.0**-7
    assert add(1.0, 2.0**-300, FLOAT32, rounding=toward_positive) == 1.0 + 2.0**-23


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("fmt", [LOWEST, HIGHEST], ids=str)
def test_additions_are_exact_to_the_ends_of_float64(fmt, rule):
    values = decode(np.arange(fmt.max_code + 1), fmt)
    a, b = np.meshgrid(np.concatenate([values, -values]), values[:: 1 if fmt is LOWEST else 3])
    got = add(a, b, fmt, rounding=rule)
    if fmt is LOWEST:  # what is beyond its largest value is no matter of additions
        a, b, got = (x[np.abs(a + b) <= fmt.max] for x in (a, b, got))
    theirs = np.array(
        [round_fraction(Fraction(x) + Fraction(y), fmt, rule.__name__) for x, y in zip(a.flat, b.flat, strict=True)]
    )
    np.testing.assert_array_equal(got.ravel(), theirs)


def test_float64_adds_as_numpy_does():
    rng = np.random.default_rng(seed=1)
    a, b = rng.standard_normal((2, 10_000)) * np.exp2(rng.uniform(-40, 40, size=(2, 10_000)))
    np.testing.assert_array_equal(add(a, b, FLOAT64), a + b)


def test_infinities_and_nan_do_what_ieee_754_says_and_nothing_warns():
    with np.errstate(all="raise", under="ignore"):
        got = add(
            [np.inf, -np.inf, np.inf, np.nan, 1.7e308, -1.7e308], [1.0, 1.0, -np.inf, 1.0, 1.7e308, -1.7e308], FLOAT16
        )
        assert got.tolist()[:2] == [np.inf, -np.inf]
        assert np.isnan(got[2:4]).all()
        assert got.tolist()[4:] == [np.inf, -np.inf]
        assert add(1.7e308, 1.7e308, FLOAT16, rounding=toward_zero) == 65504.0  # finite: it rounds as finite does
        assert add(FLOAT64.max, FLOAT64.max, FLOAT64) == np.inf


# Running sums

SUMMANDS = st.lists(st.floats(-100, 100), min_size=1, max_size=8)


def exact_running_sum(values, fmt, rule="ties_to_even", start=0.0):
    total, totals = Fraction(start), []
    for value in values:
        total = Fraction(round_fraction(total + Fraction(value), fmt, rule))
        totals.append(float(total))
    return totals


@settings(max_examples=50)
@given(
    values=SUMMANDS, fmt=st.sampled_from([FLOAT16, BFLOAT16, TF32, FLOAT32, FLOAT6_E2M3FN]), rule=st.sampled_from(RULES)
)
def test_every_total_of_a_running_sum_is_rounded_once(values, fmt, rule):
    assert running_sum(values, fmt, rounding=rule).tolist() == exact_running_sum(values, fmt, rule.__name__)


def test_a_running_sum_starts_at_a_value_of_the_format():
    assert running_sum([1.0, 1.0], BFLOAT16, start=255.0).tolist() == [256.0, 256.0]
    assert running_sum([0.0], BFLOAT16, start=1.001).tolist() == [1.0]
    assert running_sum([0.0], BFLOAT16, rounding=toward_positive, start=1.001).tolist() == [1.0]  # as documented


@pytest.mark.parametrize("function", [running_sum, lambda *a: kahan_sum(*a).totals, lambda *a: kahan_sum(*a)[1]])
def test_rows_are_summed_apart(function):
    values = np.random.default_rng(seed=2).standard_normal((3, 2, 12))
    got = function(values, BFLOAT16)
    assert got.shape == (3, 2, 12)
    for row in np.ndindex(3, 2):
        np.testing.assert_array_equal(got[row], function(values[row], BFLOAT16))


def test_a_start_may_have_an_entry_for_each_run():
    got = running_sum([1.0, 2.0], FLOAT16, start=[0.0, 10.0, 2048.0])
    assert got.tolist() == [[1.0, 3.0], [11.0, 13.0], [2048.0, 2050.0]]
    assert kahan_sum([1.0, 2.0], FLOAT16, start=[0.0, 10.0]).totals.tolist() == [[1.0, 3.0], [11.0, 13.0]]
    assert kahan_sum([1.0, 1.0], FLOAT16, start=[0.0, 2048.0]).compensations.tolist() == [[0.0, 0.0], [-1.0, 0.0]]


def test_no_values_make_no_totals():
    assert running_sum(np.zeros((3, 0)), FLOAT16).shape == (3, 0)
    assert kahan_sum([], FLOAT16).compensations.shape == (0,)
    assert pairwise_sum(np.zeros((3, 0)), FLOAT16).tolist() == [0.0, 0.0, 0.0]
    assert pairwise_sum([], FLOAT16) == 0.0


def test_many_stochastic_runs_are_one_call_and_right_on_average():
    runs, n = 4000, 100
    ones = np.ones(n)
    totals = running_sum(ones, FLOAT8_E4M3FN, rounding=stochastic(np.random.default_rng(3)), start=np.full(runs, 16.0))
    assert totals.shape == (runs, n)
    # from 16 on the gap is 2, then 4, 8: one addition has at most the variance of a coin with gap 8
    spread = 8 * math.sqrt(1 / 8 * 7 / 8) * math.sqrt(n)
    assert abs(totals[:, -1].mean() - 116.0) <= 5 * spread / math.sqrt(runs)
    assert len(np.unique(totals[:, -1])) > 3
    assert running_sum(ones, FLOAT8_E4M3FN, start=16.0)[-1] == 16.0


# Kahan


@settings(max_examples=50)
@given(
    values=SUMMANDS,
    fmt=st.sampled_from([FLOAT16, BFLOAT16, FLOAT32]),
    rule=st.sampled_from(RULES),
    start=st.integers(-9, 9),
)
def test_every_operation_of_kahans_sum_is_rounded_once(values, fmt, rule, start):
    def rounded(x):
        return Fraction(round_fraction(x, fmt, rule.__name__))

    total, c, expected = Fraction(start), Fraction(0), []
    for value in values:
        y = rounded(Fraction(value) - c)
        t = rounded(total + y)
        c = rounded(rounded(t - total) - y)
        total = t
        expected.append((float(total), float(c)))
    got = kahan_sum(values, fmt, rounding=rule, start=float(start))
    assert list(zip(got.totals.tolist(), got.compensations.tolist(), strict=True)) == expected


def test_kahan_hands_the_lost_one_on():
    totals, compensations = kahan_sum([1.0, 1.0, 1.0], BFLOAT16, start=256.0)
    assert totals.tolist() == [256.0, 258.0, 260.0]
    assert compensations.tolist() == [-1.0, 0.0, 1.0]  # 1 too little: it comes with the next one. In the end 1 too much


@pytest.mark.parametrize("fmt", [FLOAT16, BFLOAT16, TF32, FLOAT32], ids=str)
def test_kahans_error_does_not_grow_with_n(fmt):
    values = quantize(np.random.default_rng(seed=4).uniform(0, 1, size=(8, 500)), fmt)
    exact = values.sum(axis=-1)  # 500 values of at most 24 bits below 1: float64 has room for a sum of theirs
    u = fmt.eps / 2
    bound = (2 * u + 4 * 500 * u**2) * exact
    assert (np.abs(kahan_sum(values, fmt).totals[:, -1] - exact) <= bound).all()
    assert (np.abs(running_sum(values, fmt)[:, -1] - exact) > bound).any()  # plain sums break it


def test_after_an_overflow_kahans_sum_is_nan():
    totals, compensations = kahan_sum([60000.0, 60000.0, 1.0], FLOAT16)
    assert totals[1] == np.inf
    assert not np.isfinite(compensations[1:]).any()
    assert np.isnan(totals[2])


# Pairwise


@settings(max_examples=50)
@given(values=SUMMANDS, fmt=st.sampled_from([FLOAT16, BFLOAT16, FLOAT32, FLOAT6_E2M3FN]), rule=st.sampled_from(RULES))
def test_a_pairwise_sum_rounds_every_node_of_its_tree(values, fmt, rule):
    def rounded(x):
        return Fraction(round_fraction(x, fmt, rule.__name__))

    level = [rounded(Fraction(value)) for value in values] if len(values) == 1 else list(map(Fraction, values))
    while len(level) > 1:
        pairs = [rounded(a + b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + ([rounded(level[-1])] if len(level) % 2 else [])
    assert float(pairwise_sum(values, fmt, rounding=rule)) == float(level[0])


def test_a_pairwise_sum_is_as_many_roundings_deep_as_n_has_bits():
    assert pairwise_sum(np.ones(4096), BFLOAT16) == 4096.0
    values = quantize(np.random.default_rng(seed=5).uniform(0, 1, size=(20, 1000)), BFLOAT16)
    exact = values.sum(axis=-1)
    error = np.abs(pairwise_sum(values, BFLOAT16) - exact) / exact
    assert error.shape == (20,)
    assert (error <= 10 * 2.0**-8 / (1 - 10 * 2.0**-8)).all()  # Higham 2002, 4.2: gamma of log2(1024)
    assert (np.abs(running_sum(values, BFLOAT16)[:, -1] - exact) / exact > 0.3).all()


# The stall


@pytest.mark.parametrize(
    ("fmt", "value"),
    [
        (FLOAT16, 2048),
        (BFLOAT16, 256),
        (TF32, 2048),
        (FLOAT8_E4M3FN, 16),
        (FLOAT8_E5M2, 8),
        (FLOAT32, 2**24),
        (FLOAT64, 2**53),
    ],
    ids=str,
)
def test_adding_one_stalls_at_two_to_the_precision(fmt, value):
    assert stall(1.0, fmt) == value == 2**fmt.precision
    assert stall(-1.0, fmt) == -value


def add_until_nothing_changes(increment, fmt, start):
    total = float(quantize(start, fmt))
    while True:
        following = round_fraction(Fraction(total) + Fraction(increment), fmt)
        if following == total or not math.isfinite(following):
            return following
        total = following


INCREMENTS = (
    1.0,
    0.1,
    1e-3,
    1 / 3,
    0.75,
    1.25,
    1.5,
    1.75,
    3.0,
    5.0,
    7.0,
    2.5,
    0.375,
    2.0**-6,
    2.0**-9,
    2.0**-10,
    3e-3,
    13.0,
    20.0,
    100.0,
    448.0,
    1e6,
)


@pytest.mark.parametrize("start", [0.0, 1.0, 3.3, -0.7, -20.0, 240.0])
@pytest.mark.parametrize(
    "fmt", [fmt for fmt in FORMATS.values() if fmt.has_zero and fmt.precision <= 4] + [BFLOAT16], ids=str
)
def test_the_stall_is_where_adding_again_and_again_ends(fmt, start):
    wide = fmt is BFLOAT16
    for increment in INCREMENTS[:: 7 if wide else 1]:
        if wide and increment < 0.01:
            continue
        for sign in (1, -1):
            ours = stall(sign * increment, fmt, start=start)
            theirs = add_until_nothing_changes(sign * increment, fmt, start)
            assert ours == theirs or (math.isnan(ours) and math.isnan(theirs)), (sign * increment, ours, theirs)


def test_ties_decide_where_a_sum_stalls():
    assert stall(1.0, FLOAT8_E4M3FN) == 16  # half the gap, and 16 is even
    assert stall(1.0, FLOAT8_E4M3FN, start=18.0) == 20  # from 18, which is odd, the tie goes on to 20
    assert stall(1.25, FLOAT8_E4M3FN) == 32  # more than half of the gap 2: it passes 16
    assert stall(np.nextafter(1.0, 2.0), FLOAT8_E4M3FN) == 32  # the increment is not rounded first
    assert stall(np.nextafter(1.0, 0.0), FLOAT8_E4M3FN, start=18.0) == 18


def test_a_sum_that_comes_from_below_zero_stalls_at_the_first_wide_gap():
    assert stall(1.0, BFLOAT16, start=-1000.0) == -1000.0  # the gap is 4
    assert stall(1.0, BFLOAT16, start=-300.0) == -300.0  # gap 2, a tie, -300 / 2 is even
    assert stall(1.0, BFLOAT16, start=-302.0) == -300.0  # -151 is odd: the tie goes on
    assert stall(1.0, BFLOAT16, start=-256.0) == 256.0  # upwards from -256 the gaps are 1
    assert stall(0.5, BFLOAT16, start=-256.0) == -256.0  # a tie, and -256 is even


def test_a_sum_that_nothing_stops_overflows():
    assert stall(40.0, FLOAT16) == np.inf
    assert stall(-40.0, FLOAT16) == -np.inf
    assert math.isnan(stall(32.0, FLOAT8_E4M3FN))
    assert stall(5.0, FLOAT4_E2M1FN) == 6.0  # E2M1 saturates: its largest value stays
    assert stall(16.0, FLOAT8_E4M3FN) == 256.0  # gap 32: a tie


def test_adding_nothing_stalls_at_the_start():
    assert stall(0.0, FLOAT16, start=3.0) == 3.0
    assert stall(2.0**-30, FLOAT16) == 0.0
    assert stall(1e-10, BFLOAT16, start=1.001) == 1.0  # the start is rounded to the format


# What is refused


@pytest.mark.parametrize("function", [running_sum, kahan_sum, pairwise_sum, lambda x, fmt, **k: add(x, x, fmt, **k)])
def test_what_cannot_be_added_exactly_is_refused_with_the_limit(function):
    with pytest.raises(ValueError, match="float64 has 53 significant bits: float64 sums are exact for at most 51"):
        function([1.0], FLOAT64, rounding=toward_zero)
    wide = FloatFormat("wide", exponent_bits=11, mantissa_bits=51, bias=1023)
    with pytest.raises(ValueError, match="wide has 52 significant bits"):
        function([1.0], wide)
    with pytest.raises(ValueError, match="float8_e8m0fnu has no zero and no sign: it holds scales, not sums"):
        function([1.0], FLOAT8_E8M0FNU)
    with pytest.raises(TypeError, match="fmt is a FloatFormat, not 'float16'"):
        function([1.0], "float16")
    with pytest.raises(TypeError, match="x holds real numbers"):
        function([1j], FLOAT16)


@pytest.mark.parametrize("function", [running_sum, kahan_sum, pairwise_sum])
def test_a_number_is_no_sum(function):
    with pytest.raises(ValueError, match=r"needs an axis to run along, not the number 1\.0; pass an array"):
        function(1.0, FLOAT16)


@pytest.mark.parametrize(("increment", "start"), [(np.inf, 0.0), (np.nan, 0.0), (1.0, np.inf)])
def test_a_stall_is_between_finite_numbers(increment, start):
    with pytest.raises(ValueError, match="has no stall: give finite numbers"):
        stall(increment, FLOAT16, start=start)


def test_a_stall_is_of_one_increment():
    with pytest.raises(ValueError, match="takes one increment and one start"):
        stall([1.0, 2.0], FLOAT16)


# Matrix products


@pytest.mark.parametrize(("fmt", "total"), [(FLOAT16, 2048), (BFLOAT16, 256), (FLOAT32, 4096)], ids=str)
def test_4096_ones_end_where_the_accumulator_stalls(fmt, total):
    assert matmul(np.ones((1, 4096)), np.ones((4096, 1)), fmt).tolist() == [[total]]
    assert matmul(np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16), accumulator=fmt) == total
    assert matmul([[1] * 4096], [[1]] * 4096, accumulator=fmt, chunk=32) == 4096  # in steps of 32 nothing stalls


@settings(max_examples=50)
@given(
    a=st.lists(st.lists(st.floats(-9, 9, width=32), min_size=5, max_size=5), min_size=1, max_size=3),
    b=st.lists(st.lists(st.floats(-9, 9, width=32), min_size=2, max_size=2), min_size=5, max_size=5),
    fmt=st.sampled_from([FLOAT16, BFLOAT16, TF32, FLOAT32, WIDEST]),
    rule=st.sampled_from(RULES),
)
def test_every_total_of_a_product_is_the_exact_sum_rounded_once(a, b, fmt, rule):
    got = matmul(a, b, fmt, rounding=rule)
    assert got.shape == (len(a), 2)
    for m, n in np.ndindex(got.shape):
        products = [Fraction(x) * Fraction(row[n]) for x, row in zip(a[m], b, strict=True)]
        assert got[m, n] == exact_running_sum(products, fmt, rule.__name__)[-1]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, np.int64(4), 100])
def test_a_chunk_of_products_is_added_before_it_is_rounded(chunk):
    rng = np.random.default_rng(seed=6)
    a, b = (rng.integers(-2000, 2000, shape) / 8 for shape in ((3, 20), (20, 4)))  # chunks span less than 53 bits
    expected = np.zeros((3, 4))
    for start in range(0, 20, chunk):
        parts = a[:, start : start + chunk, None] * b[None, start : start + chunk]
        expected = quantize(expected + parts.sum(axis=1), BFLOAT16)
    np.testing.assert_array_equal(matmul(a, b, BFLOAT16, chunk), expected)


def test_a_product_of_infinity_and_zero_is_nan_and_nothing_warns():
    with np.errstate(all="raise", under="ignore"):
        got = matmul([[np.inf, 1.0], [1e300, 1e300]], [[0.0, 1.0], [1.0, 1e300]], FLOAT16, chunk=2)
    assert np.isnan(got[0, 0])
    assert got[1].tolist() == [np.inf, np.inf]


def test_a_product_without_summands_is_zero():
    assert matmul(np.zeros((2, 0)), np.zeros((0, 3))).tolist() == [[0.0] * 3] * 2
    assert matmul(np.zeros((0, 2)), np.zeros((2, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1.0, 2.0]], [[1.0, 2.0]]), ValueError, r"a is \(1, 2\) and b is \(1, 2\); they have to be \[M, K\]"),
        (([1.0, 2.0], [1.0, 2.0]), ValueError, r"a is \(2,\) and b is \(2,\)"),
        ((ONE, ONE, FLOAT16, 0), ValueError, "chunk is a whole number from 1 on, not 0"),
        ((ONE, ONE, FLOAT16, 1.5), ValueError, r"chunk is a whole number from 1 on, not 1\.5"),
        ((ONE, ONE, FLOAT16, True), ValueError, "chunk is a whole number from 1 on, not True"),
        ((ONE, ONE, "float16"), ValueError, "accumulator is a FloatFormat, not 'float16'; take .* one of .*float16, "),
        ((ONE, ONE, "half"), ValueError, "accumulator is a FloatFormat, not 'half'"),
        ((ONE, ONE, 16), TypeError, "fmt is a FloatFormat, not 16"),
        ((ONE, ONE, FLOAT8_E8M0FNU), ValueError, "holds scales, not sums"),
        ((ONE, ONE, FLOAT64, 1, toward_zero), ValueError, "float64 sums are exact for at most 51"),
        (([[1j]], ONE), TypeError, "x holds real numbers"),
    ],
)
def test_a_product_that_makes_no_sense_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        matmul(*arguments)
