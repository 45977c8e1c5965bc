"""The reference against ml_dtypes, NumPy, torch and exact rational arithmetic."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oracles import SMALL, grid, midpoints, oracle_dtype, round_exactly, same_bits
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    TF32,
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

ALL = list(FORMATS.values())
RULES = [ties_to_even, ties_away, toward_zero, toward_positive, toward_negative]
SATURATING = {"float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn"}


def name(rule) -> str:
    return rule.__name__


def both_signs(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, -x])


def report(x, ours, theirs, same):
    return [(float(a).hex(), float(b), float(c)) for a, b, c in zip(x[~same], ours[~same], theirs[~same], strict=True)][
        :5
    ]


# To nearest: every value, every midpoint, both neighbours


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_values_midpoints_and_their_float32_neighbours_round_as_in_ml_dtypes(fmt):
    with np.errstate(over="ignore"):  # the point past bfloat16's largest value is past float32's too
        low, middle, high = (np.float32(values) for values in midpoints(fmt))
    x = both_signs(
        np.concatenate([low, high, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(9e9))])
    )
    x = x[np.isfinite(x)]
    if fmt is FLOAT8_E8M0FNU:
        x = x[np.abs(x) != np.nextafter(np.float32(1.5 * 2.0**-127), np.float32(0))]  # see the finding below
    with np.errstate(over="ignore"):
        theirs = x.astype(oracle_dtype(fmt)).astype(np.float64)
    ours = quantize(x, fmt)
    same = same_bits(ours, theirs)
    assert same.all(), report(x, ours, theirs, same)


@pytest.mark.parametrize("fmt", [*SMALL, TF32], ids=str)
def test_the_float64_neighbours_of_every_midpoint_fall_to_their_own_side(fmt):
    low, middle, high = midpoints(fmt)
    if fmt.has_nan:  # the last pair overflows upwards
        high[-1] = np.inf if fmt.has_inf else np.nan
    else:
        high[-1] = fmt.max
    even = np.where(np.arange(len(low)) % 2 == 0, low, high) if fmt.has_zero else high
    for sign in (1.0, -1.0) if fmt.signed else (1.0,):
        zero = -0.0 if fmt.has_negative_zero else 0.0  # -0 + -0 = -0, -0 + 0 = 0
        assert same_bits(quantize(sign * np.nextafter(middle, 0), fmt), sign * low + zero).all()
        assert same_bits(quantize(sign * middle, fmt), sign * even + zero).all()
        assert same_bits(quantize(sign * np.nextafter(middle, np.inf), fmt), sign * high).all()


def test_ml_dtypes_rounds_a_float64_twice_and_quantize_once():
    just_above_a_tie = 1.0625 + 2.0**-52  # E4M3 has 1 and 1.125 there, so the nearest is 1.125
    assert quantize(just_above_a_tie, FLOAT8_E4M3FN) == 1.125
    assert np.float32(just_above_a_tie) == 1.0625  # to float32 it is the tie itself, and the tie goes to 1
    assert float(np.float64(just_above_a_tie).astype(ml_dtypes.float8_e4m3fn)) == 1.0


@pytest.mark.parametrize("fmt", [FLOAT16, FLOAT32], ids=str)
def test_float64_inputs_of_all_magnitudes_round_as_in_numpy(fmt):
    rng = np.random.default_rng(seed=1)
    exponent = rng.uniform(fmt.emin - fmt.mantissa_bits - 3, fmt.emax + 2, size=300_000)
    x = both_signs(np.exp2(exponent))
    value = both_signs(np.abs(quantize(x[:100_000], fmt)))
    with np.errstate(over="ignore"):
        middle = value + ulp(value, fmt) / 2
        x = np.concatenate([x, middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)])
        theirs = x.astype(oracle_dtype(fmt)).astype(np.float64)
    same = same_bits(quantize(x, fmt), theirs)
    assert same.all(), report(x, quantize(x, fmt), theirs, same)


def test_float64_is_left_as_it_is():
    code = np.random.default_rng(seed=2).integers(0, 2**64, size=100_000, dtype=np.uint64)
    x = code.view(np.float64)
    x = np.concatenate([x[~np.isnan(x)], [0.0, -0.0, np.inf, -np.inf, 2.0**-1074, FLOAT64.max]])
    for rule in RULES:
        assert same_bits(quantize(x, FLOAT64, rounding=rule), x).all()


def test_tf32_cuts_a_float32_to_ten_fraction_bits_with_ties_to_even():
    code = np.random.default_rng(seed=3).integers(0, 0x7F800000, size=200_000, dtype=np.uint32)
    code = np.concatenate([code, code & 0x7FFFE000, code & 0x7FFFE000 | 0x1000])  # values of TF32 and ties between them
    nearest = (code + 0xFFF + (code >> 13 & 1)) & np.uint32(0xFFFFE000)
    assert same_bits(quantize(code.view(np.float32), TF32), nearest.view(np.float32)).all()


@pytest.mark.parametrize("fmt", [FLOAT16, BFLOAT16, FLOAT8_E5M2, FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ], ids=str)
def test_torch_casts_agree_inside_the_range(fmt):
    low, middle, _ = (np.float32(values[:-1]) for values in midpoints(fmt))
    x = both_signs(np.concatenate([low, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, low.max())]))
    theirs = torch.from_numpy(x).to(fmt.torch_dtype).double().numpy()
    same = same_bits(quantize(x, fmt), theirs)
    assert same.all(), report(x, quantize(x, fmt), theirs, same)


# All rules


@pytest.mark.parametrize("rule", RULES, ids=name)
@pytest.mark.parametrize("fmt", [*SMALL, TF32], ids=str)
def test_every_rule_agrees_with_a_search_among_the_exact_values(fmt, rule):
    rng = np.random.default_rng(seed=4)
    low, middle, high = midpoints(fmt)
    some = np.unique(
        np.concatenate([np.arange(4), rng.integers(0, len(low), 20), len(low) - 1 - np.arange(3)]) % len(low)
    )
    x = np.concatenate(
        [
            low[some],
            middle[some],
            np.nextafter(middle[some], 0),
            np.nextafter(middle[some], np.inf),
            np.nextafter(low[some], np.inf),
            np.nextafter(high[some], 0),
            np.exp2(rng.uniform(fmt.emin - fmt.mantissa_bits - 2, fmt.emax + 3, size=50)),
            [0.0, 2.0**-1074, 1e300, np.inf, np.nextafter(high[-1], 0), high[-1]],
        ]
    )
    for saturate in (False, True):
        ours = quantize(both_signs(x), fmt, rounding=rule, saturate=saturate)
        theirs = np.array([round_exactly(value, fmt, rule=name(rule), saturate=saturate) for value in both_signs(x)])
        same = same_bits(ours, theirs)
        assert same.all(), report(both_signs(x), ours, theirs, same)


def test_ties_away_does_not_add_a_half():
    below_half = 0.49999999999999994  # floor(below_half + 1/2) is 1: the sum is rounded
    assert math.floor(below_half + 0.5) == 1
    assert ties_away(np.array([below_half, -below_half, 0.5, 1.5, -2.5])).tolist() == [0, 0, 1, 2, -3]


@pytest.mark.parametrize(
    ("rule", "positive", "negative"),
    [
        pytest.param(ties_to_even, "inf", "-inf", id="roundTiesToEven carries all overflows to infinity"),
        pytest.param(ties_away, "inf", "-inf", id="roundTiesToAway carries all overflows to infinity"),
        pytest.param(toward_zero, "max", "-max", id="roundTowardZero carries all overflows to the largest number"),
        pytest.param(toward_negative, "max", "-inf", id="roundTowardNegative: +max, and -inf"),
        pytest.param(toward_positive, "inf", "-max", id="roundTowardPositive: -max, and +inf"),
    ],
)
@pytest.mark.parametrize("fmt", [FLOAT32, TF32, FLOAT16, BFLOAT16, FLOAT8_E5M2], ids=str)
def test_overflow_follows_ieee_754_2019_clause_7_4(fmt, rule, positive, negative):
    value = {"inf": np.inf, "-inf": -np.inf, "max": fmt.max, "-max": -fmt.max}
    beyond = fmt.max + np.array([0.75, 1.0, 7.0]) * ulp(fmt.max, fmt)
    for x in (*beyond, 1e300):
        assert quantize(x, fmt, rounding=rule) == value[positive]
        assert quantize(-x, fmt, rounding=rule) == value[negative]
    for infinity in (np.inf, -np.inf):  # an infinity is exact, it does not overflow
        assert quantize(infinity, fmt, rounding=rule) == infinity


@pytest.mark.parametrize("fmt", ALL, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=name)
def test_saturation_gives_the_largest_value_for_overflow_and_for_infinity(fmt, rule):
    x = np.array([np.inf, 1e308 if fmt is not FLOAT64 else np.inf])
    assert (quantize(x, fmt, rounding=rule, saturate=True) == fmt.max).all()
    negative = quantize(-x, fmt, rounding=rule, saturate=True)
    assert (negative == -fmt.max).all() if fmt.signed else np.isnan(negative).all()
    assert np.isnan(quantize(np.nan, fmt, rounding=rule, saturate=True))


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_without_saturation_overflow_is_infinity_or_nan_or_in_mx_formats_the_largest_value(fmt):
    got = quantize([np.inf, -np.inf], fmt)
    if fmt.name in SATURATING:
        assert got.tolist() == [fmt.max, -fmt.max]
        with np.errstate(over="ignore"):
            theirs = np.float32([np.inf, -np.inf, 1e9]).astype(oracle_dtype(fmt)).astype(np.float64)
        assert theirs.tolist() == [fmt.max, -fmt.max, fmt.max]
    elif fmt.has_inf:
        assert got.tolist() == [np.inf, -np.inf]
    else:
        assert np.isnan(got).all()


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_nan_stays_nan_and_zero_keeps_the_sign_it_can_have(fmt):
    assert np.isnan(quantize(np.nan, fmt))
    if fmt.has_zero:
        assert same_bits(quantize([0.0, -0.0], fmt), [0.0, -0.0 if fmt.has_negative_zero else 0.0]).all()
        tiny = fmt.smallest_subnormal / 4 if fmt is not FLOAT64 else 0.0
        assert same_bits(quantize([tiny, -tiny], fmt), [0.0, -0.0 if fmt.has_negative_zero else 0.0]).all()


# E8M0: no zero, no sign


def test_e8m0_agrees_with_ml_dtypes_except_between_its_two_smallest_values():
    code = np.arange(2**32, step=2**12 - 1, dtype=np.uint64).astype(np.uint32)
    x = code.view(np.float32)
    x = np.concatenate([x[np.isfinite(x)], np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-127])])
    x = x[~((x > 2.0**-127) & (x < 1.5 * 2.0**-127))]
    theirs = x.astype(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    ours = quantize(x, FLOAT8_E8M0FNU)
    same = same_bits(ours, theirs)
    assert same.all(), report(x, ours, theirs, same)
    positive = np.isfinite(x) & (x > 0)
    torchs = torch.from_numpy(x).to(torch.float8_e8m0fnu).double().numpy()
    assert same_bits(ours, torchs)[positive].all()


def test_ml_dtypes_and_torch_round_up_between_the_two_smallest_e8m0_values():
    x = np.float32([2.0**-127 * 1.001, 2.0**-127 * 1.25])  # subnormal in float32; the nearest power is 2**-127
    assert (quantize(x, FLOAT8_E8M0FNU) == 2.0**-127).all()
    assert (x.astype(ml_dtypes.float8_e8m0fnu).astype(np.float64) == 2.0**-126).all()
    assert (torch.from_numpy(x).to(torch.float8_e8m0fnu).double() == 2.0**-126).all()


def test_torch_gives_zero_and_negative_values_an_e8m0_that_is_not_theirs():
    x = np.float32([0.0, -0.0, -1.0, -3.0])
    torchs = torch.from_numpy(x).to(torch.float8_e8m0fnu).double().numpy()
    assert torchs.tolist() == [2.0**-127, 2.0**-127, 1.0, 4.0]  # the sign is dropped, zero becomes the smallest value
    assert np.isnan(quantize(x, FLOAT8_E8M0FNU)).all()


def test_a_tie_in_e8m0_goes_up_because_the_significand_2_is_even_and_1_is_odd():
    x = 1.5 * np.exp2(np.arange(-127.0, 127.0))
    assert (quantize(x, FLOAT8_E8M0FNU) == x / 0.75).all()


# ulp


@pytest.mark.parametrize("fmt", [*SMALL, TF32], ids=str)
def test_ulp_is_the_gap_to_the_next_value_away_from_zero(fmt):
    low, middle, high = midpoints(fmt)
    np.testing.assert_array_equal(ulp(low, fmt), high - low)
    np.testing.assert_array_equal(ulp(-middle, fmt), high - low)
    assert ulp(0.0, fmt) == fmt.smallest_subnormal
    assert ulp(1e300, fmt) == high[-1] - low[-1]
    assert np.isnan(ulp([np.nan, np.inf, -np.inf], fmt)).all()


def test_ulp_of_float32_and_float64_is_numpys_spacing():
    x = np.exp2(np.random.default_rng(seed=5).uniform(-149, 127, size=10_000)).astype(np.float32)
    np.testing.assert_array_equal(ulp(x, FLOAT32), np.spacing(x).astype(np.float64))
    np.testing.assert_array_equal(ulp(x, FLOAT64), np.spacing(x.astype(np.float64)))
    assert ulp(3.14, FLOAT16) == 2.0**-9


# Properties


finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.one_of(finite, st.floats(-600, 600), st.floats(-1e-4, 1e-4))
formats = st.sampled_from(ALL)
rules = st.sampled_from(RULES)


@given(x=st.one_of(anything, st.floats()), fmt=formats, rule=rules, saturate=st.booleans())
def test_rounding_twice_is_rounding_once(x, fmt, rule, saturate):
    once = quantize(x, fmt, rounding=rule, saturate=saturate)
    assert same_bits(quantize(once, fmt, rounding=rule, saturate=saturate), once)


@given(x=anything, y=anything, fmt=formats, rule=rules)
def test_rounding_never_swaps_two_numbers(x, y, fmt, rule):
    if fmt is FLOAT8_E8M0FNU:
        x, y = abs(x) + 2.0**-127, abs(y) + 2.0**-127
    low, high = quantize([min(x, y), max(x, y)], fmt, rounding=rule, saturate=True)
    assert low <= high


@given(
    x=anything, fmt=formats.filter(lambda fmt: fmt.signed), rule=st.sampled_from([ties_to_even, ties_away, toward_zero])
)
def test_symmetric_rules_treat_both_signs_alike(x, fmt, rule):
    ours = quantize(-x, fmt, rounding=rule)
    assert same_bits(ours, -quantize(x, fmt, rounding=rule) + (0.0 if not fmt.has_negative_zero else -0.0))


@given(x=anything, fmt=formats.filter(lambda fmt: fmt.signed))
def test_the_directed_rules_mirror_each_other(x, fmt):
    up, down = quantize(x, fmt, rounding=toward_positive), quantize(-x, fmt, rounding=toward_negative)
    assert same_bits(up, -down + (0.0 if not fmt.has_negative_zero else -0.0))


@given(x=anything, fmt=formats)
def test_nearest_is_off_by_at_most_half_an_ulp(x, fmt):
    if fmt is FLOAT8_E8M0FNU:
        x = max(abs(x), 2.0**-127)
    x = max(-fmt.max, min(x, fmt.max))
    for rule in (ties_to_even, ties_away):
        error = abs(Fraction(float(quantize(x, fmt, rounding=rule))) - Fraction(x))
        assert error <= Fraction(float(ulp(x, fmt))) / 2


@given(x=anything, fmt=formats)
def test_the_directed_rules_bracket_x_by_at_most_one_ulp(x, fmt):
    if fmt is FLOAT8_E8M0FNU:
        x = max(abs(x), 2.0**-127)
    x = max(-fmt.max, min(x, fmt.max))
    down, up, inward = (quantize(x, fmt, rounding=rule) for rule in (toward_negative, toward_positive, toward_zero))
    assert down <= x <= up
    assert Fraction(float(up)) - Fraction(float(down)) <= Fraction(float(ulp(x, fmt)))
    assert inward == (down if x > 0 else up)


@given(x=st.floats(-500, 500), seed=st.integers(0, 9))
def test_every_rule_gives_one_of_the_two_neighbours(x, seed):
    down, up = (quantize(x, FLOAT8_E4M3FN, rounding=rule, saturate=True) for rule in (toward_negative, toward_positive))
    for rule in (*RULES, stochastic(np.random.default_rng(seed))):
        assert quantize(x, FLOAT8_E4M3FN, rounding=rule, saturate=True) in (down, up)


@given(code=st.integers(0, 2**16 - 1), rule=rules)
def test_a_value_of_the_format_is_left_alone_by_every_rule(code, rule):
    for fmt in SMALL:
        value = decode(code % 2**fmt.bits, fmt)
        assert same_bits(quantize(value, fmt, rounding=rule), value)


# Stochastic


@pytest.mark.parametrize("share", [0.001, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT8_E5M2FNUZ, BFLOAT16, FLOAT4_E2M1FN], ids=str)
def test_stochastic_rounding_goes_up_with_the_probability_of_the_fraction(fmt, share):
    n = 40_000
    rule = stochastic(np.random.default_rng(seed=6))
    for low in (1.0, 2.0, fmt.smallest_normal - fmt.smallest_subnormal, -1.0):
        step = float(ulp(low, fmt))
        got = quantize(np.full(n, low + math.copysign(share * step, low)), fmt, rounding=rule)
        away = np.mean(np.abs(got) > abs(low))
        assert abs(away - share) <= 5 * math.sqrt(share * (1 - share) / n), (low, away)


def test_stochastic_rounding_repeats_with_its_generator_and_leaves_values_alone():
    x = np.random.default_rng(seed=7).standard_normal((40, 5))
    first, second, other = (
        quantize(x, FLOAT8_E5M2, rounding=stochastic(np.random.default_rng(seed))) for seed in (8, 8, 9)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    value = decode(np.arange(128), FLOAT8_E4M3FNUZ)
    assert same_bits(quantize(value, FLOAT8_E4M3FNUZ, rounding=stochastic(np.random.default_rng(1))), value).all()


def test_stochastic_overflow_happens_only_past_the_largest_value():
    rule = stochastic(np.random.default_rng(seed=10))
    got = quantize(np.full(20_000, 65504.0 + 8.0), FLOAT16, rounding=rule)  # a quarter of the way to 65536
    assert set(np.unique(got)) == {65504.0, np.inf}
    assert abs(np.mean(np.isinf(got)) - 0.25) <= 5 * math.sqrt(0.25 * 0.75 / 20_000)
    assert (quantize(np.full(1000, 1e9), FLOAT16, rounding=rule, saturate=True) == 65504.0).all()


class Scripted(np.random.Generator):
    """A generator that gives the draws it was told to, and keeps what it was asked."""

    def __init__(self, draws):
        super().__init__(np.random.PCG64(0))
        self.draws, self.asked = np.asarray(draws), []

    def random(self, *args, **options):
        self.asked.append((args, options))
        return self.draws


def test_stochastic_asks_once_for_a_float64_draw_of_each_element_and_goes_up_where_it_is_below_the_fraction():
    rng = Scripted([[0.0, 0.0, 0.25], [np.nextafter(0.25, 0), 0.25, np.nextafter(1.0, 0)]])
    got = stochastic(rng)(np.array([[3.0, 3.25, 3.25], [-2.75, -2.75, np.nextafter(1.0, 0)]]))
    assert got.tolist() == [[3.0, 4.0, 3.0], [-2.0, -3.0, 0.0]]  # a draw that equals the fraction stays below
    assert rng.asked in ([(((2, 3),), {})], [(((2, 3),), {"dtype": np.float64})])


def test_stochastic_wants_a_generator():
    with pytest.raises(TypeError, match=r"needs a numpy.random.Generator, not int: np.random.default_rng\(seed\)"):
        stochastic(7)


# What it takes and gives


def test_any_shape_and_any_real_dtype_come_back_as_float64():
    assert quantize([[1, 2], [3, 4]], FLOAT4_E2M1FN).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert isinstance(quantize(0.3, FLOAT16), np.float64)
    assert quantize(np.zeros((0, 3)), FLOAT16).shape == (0, 3)
    assert quantize(np.arange(8, dtype=np.int8)[::2], FLOAT6_E2M3FN).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert quantize(ml_dtypes.bfloat16(3.0), FLOAT6_E3M2FN) == 3.0


def test_no_input_warns():
    with np.errstate(all="raise", under="ignore"):
        for fmt in ALL:
            quantize([1.7e308, -1.7e308, 2.0**-1074, 0.0, np.inf, -np.inf, np.nan], fmt)
            assert np.isnan(quantize(np.uint32(0x7F800001).view(np.float32), fmt))  # a signalling NaN


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64], ids=str)
def test_a_tensor_of_a_gpu_is_fetched(dtype):
    class OnGpu:
        """What is asked of a tensor that NumPy cannot read."""

        def is_floating_point(self):
            return dtype.is_floating_point

        def double(self):
            assert self.is_floating_point()
            return self

        def cpu(self):
            return torch.tensor([1, 3], dtype=dtype)

        def __array__(self, *_, **__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    assert quantize(OnGpu(), FLOAT6_E3M2FN).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn], ids=str)
def test_a_torch_tensor_is_taken_whatever_float_it_holds(dtype):
    assert quantize(torch.tensor([[1.25, -3.5]]).to(dtype), FLOAT4_E2M1FN).tolist() == [[1.0, -4.0]]
    assert quantize(torch.tensor([3]), FLOAT16).tolist() == [3.0]


@pytest.mark.parametrize(
    "x",
    [
        1j,
        np.array([1 + 2j]),
        torch.tensor([1j]),
        None,
        [1.0, None],
        np.datetime64("2024-01-01"),
        np.timedelta64(3, "s"),
        "1.5",
        ["float16"],
        b"1",
        {},
    ],
    ids=repr,
)
def test_what_is_not_a_real_number_is_refused_with_the_remedy(x):
    for function in (quantize, ulp):
        with pytest.raises(TypeError, match=r"x holds real numbers, not .*; convert"):
            function(x, FLOAT16)


@pytest.mark.parametrize("fmt", ["float16", np.float16, torch.float16, None], ids=repr)
def test_what_is_not_a_format_is_refused_with_the_remedy(fmt):
    for function in (quantize, ulp):
        with pytest.raises(TypeError, match=r"fmt is a FloatFormat, not .*; by name: .*FORMATS\['float16'\]"):
            function(1.0, fmt)


def test_python_numbers_without_a_numpy_dtype_are_taken_as_the_nearest_float64():
    assert quantize([Fraction(1, 3), 2**70, True], FLOAT64).tolist() == [1 / 3, 2.0**70, 1.0]


def test_integers_past_two_to_the_53_are_rounded_to_float64_first_as_the_docstring_says():
    x = 2**60 + 2**36 + 1  # just above a tie of float32, and in float64 the tie itself
    assert float(x) == 2**60 + 2**36
    assert quantize(x, FLOAT32) == quantize(np.int64(x), FLOAT32) == 2.0**60


def test_the_grid_of_the_oracle_ends_one_step_past_the_largest_value():
    assert grid(FLOAT8_E4M3FN)[-2:] == (448, 480)
    assert grid(FLOAT4_E2M1FN) == (0, Fraction(1, 2), 1, Fraction(3, 2), 2, 3, 4, 6, 8)
