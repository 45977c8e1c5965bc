"""Every code of every format up to 19 bits, and all regions of the wide ones, against ml_dtypes, NumPy and torch."""

import ml_dtypes
import numpy as np
import pytest
import torch
from packaging.version import Version

from oracles import SMALL, WIDE, all_codes, finite_values, oracle_dtype, same_bits
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2FNUZ,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    TF32,
    FloatFormat,
    decode,
    encode,
    fields,
)
from utils.rounding import quantize, toward_zero

ALL = list(FORMATS.values())
STORED = [fmt for fmt in ALL if oracle_dtype(fmt) is not None]


def sample_codes(fmt: FloatFormat, count: int = 200_000) -> np.ndarray:
    """Random codes, and around each border of the fields the codes next to it."""
    rng = np.random.default_rng(seed=fmt.bits)
    random = rng.integers(0, 2**fmt.bits, size=count, dtype=np.uint64, endpoint=False)
    exponents = np.arange(2**fmt.exponent_bits, dtype=np.uint64) << np.uint64(fmt.mantissa_bits)
    near = np.concatenate([exponents - np.uint64(1), exponents, exponents + np.uint64(1)])
    near &= np.uint64(2 ** (fmt.bits - 1) - 1)
    return np.concatenate([random, near, near | np.uint64(fmt.sign_code)]).astype(fmt.code_dtype)


def codes_of(fmt: FloatFormat) -> np.ndarray:
    return all_codes(fmt) if fmt.bits <= 19 else sample_codes(fmt)


def values_of(code: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """What ml_dtypes or NumPy says the codes are worth, as float64."""
    if fmt is TF32:  # a TF32 code is the top of a float32 code
        code, dtype = code.astype(np.uint32) << np.uint32(13), np.dtype(np.float32)
    else:
        dtype = oracle_dtype(fmt)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return code.view(dtype).astype(np.float64)


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_every_code_has_the_value_that_ml_dtypes_or_numpy_gives_it(fmt):
    code = codes_of(fmt)
    bad = ~same_bits(decode(code, fmt), values_of(code, fmt))
    assert not bad.any(), (code[bad][:5], decode(code[bad][:5], fmt), values_of(code[bad][:5], fmt))


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_decoding_raises_no_floating_point_exception(fmt):
    with np.errstate(all="raise", under="ignore"):
        decode(codes_of(fmt), fmt)


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_encode_inverts_decode_on_every_code_that_is_not_nan(fmt):
    code = codes_of(fmt)
    code = code[~np.isnan(decode(code, fmt))]
    back = encode(decode(code, fmt), fmt)
    assert back.dtype == fmt.code_dtype
    np.testing.assert_array_equal(back, code)


@pytest.mark.parametrize("fmt", [fmt for fmt in SMALL if fmt.torch_dtype is not None], ids=str)
def test_every_code_has_the_value_that_torch_gives_it(fmt):
    code = all_codes(fmt)
    theirs = torch.from_numpy(code.view(f"int{code.itemsize * 8}")).view(fmt.torch_dtype).double().numpy()
    assert same_bits(decode(code, fmt), theirs).all()


def test_torch_dtypes_are_those_with_one_value_an_element():
    without = {"tf32", "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn"}
    assert {fmt.name for fmt in ALL if fmt.torch_dtype is None} == without
    for fmt in ALL:
        if fmt.name not in without:
            assert fmt.torch_dtype is getattr(torch, fmt.name)
            assert fmt.torch_dtype.itemsize * 8 == fmt.bits


@pytest.mark.parametrize(
    "fmt",
    [
        pytest.param(FloatFormat("float16", 4, 3, bias=7), id="float16's name, another layout"),
        pytest.param(FloatFormat("nn", 5, 10, bias=15), id="a module of torch"),
        pytest.param(FloatFormat("int8", 4, 3, bias=7), id="a dtype of torch that is no float"),
    ],
)
def test_a_format_of_ones_own_has_no_torch_dtype_whatever_its_name(fmt):
    assert fmt.torch_dtype is None


@pytest.mark.parametrize("fmt", STORED, ids=str)
def test_properties_equal_those_of_finfo(fmt):
    info = ml_dtypes.finfo(oracle_dtype(fmt))
    assert fmt.bits == info.bits
    assert fmt.max == float(info.max)
    assert fmt.eps == float(info.eps)
    assert fmt.smallest_normal == float(info.smallest_normal)
    assert fmt.smallest_subnormal == float(info.smallest_subnormal)
    assert fmt.emin == info.minexp
    assert fmt.mantissa_bits == info.nmant
    assert fmt.exponent_bits == info.nexp


@pytest.mark.parametrize("fmt", [fmt for fmt in ALL if fmt.torch_dtype and fmt is not FLOAT8_E8M0FNU], ids=str)
def test_properties_equal_those_of_torch_finfo(fmt):
    info = torch.finfo(fmt.torch_dtype)
    assert (fmt.bits, fmt.max, fmt.smallest_normal) == (info.bits, info.max, info.smallest_normal)
    if fmt is not FLOAT8_E5M2FNUZ or Version(torch.__version__) >= Version("2.15"):
        assert fmt.eps == info.eps


def test_torch_finfo_halves_the_eps_of_e5m2fnuz_up_to_2_13():
    one = torch.tensor(1.0).to(torch.float8_e5m2fnuz)
    following = (one.view(torch.uint8) + 1).view(torch.float8_e5m2fnuz).double()
    assert following - 1 == FLOAT8_E5M2FNUZ.eps == 0.25
    assert torch.finfo(torch.float8_e5m2fnuz).eps == (0.125 if Version(torch.__version__) < Version("2.15") else 0.25)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_properties_follow_from_the_list_of_values(fmt):
    values = finite_values(fmt)
    code, value = all_codes(fmt), decode(all_codes(fmt), fmt)
    assert fmt.max == float(values[-1]) == decode(fmt.max_code, fmt)
    assert fmt.has_zero == (values[0] == 0)
    assert fmt.smallest_subnormal == float(values[1] if fmt.has_zero else values[0])
    assert fmt.has_inf == np.isinf(value).any()
    assert fmt.has_nan == np.isnan(value).any()
    assert fmt.has_negative_zero == (np.signbit(value) & (value == 0)).any()
    assert fmt.precision == fmt.mantissa_bits + 1
    assert fmt.max < 2.0 ** (fmt.emax + 1) <= 2 * fmt.max
    if fmt.has_nan:
        assert np.isnan(decode(fmt.nan_code, fmt))
        assert fmt.nan_code in code
    if fmt.has_inf:
        assert decode(fmt.inf_code, fmt) == np.inf


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_fields_put_together_give_the_code_again(fmt):
    code = codes_of(fmt)
    sign, exponent, mantissa = (field.astype(np.uint64) for field in fields(code, fmt))
    assert sign.max() <= 1
    assert exponent.max() < 2**fmt.exponent_bits
    assert mantissa.max() < 2**fmt.mantissa_bits
    width = np.uint64(fmt.exponent_bits + fmt.mantissa_bits)
    np.testing.assert_array_equal(sign << width | exponent << np.uint64(fmt.mantissa_bits) | mantissa, code)


def test_fields_of_minus_six_in_float16():
    assert fields(encode(-6.0, FLOAT16), FLOAT16) == (1, 17, 512)  # -1.5 * 2**(17 - 15)
    assert fields(encode(-6.0, FLOAT16), FLOAT16).exponent.dtype == np.uint16


@pytest.mark.parametrize("fmt", [fmt for fmt in STORED if fmt.has_nan], ids=str)
def test_every_nan_encodes_to_one_quiet_nan(fmt):
    payload = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    code = encode(payload, fmt)
    assert (code == fmt.nan_code).all()
    if fmt.has_inf:  # IEEE 754-2019, 6.2.1: the first bit of a quiet NaN's fraction is 1
        assert int(fields(code[0], fmt).mantissa) == 2 ** (fmt.mantissa_bits - 1)


@pytest.mark.parametrize("fmt", [FLOAT6_E3M2FN, FLOAT6_E2M3FN, FLOAT4_E2M1FN], ids=str)
def test_encoding_a_nan_where_there_is_none_says_what_to_do(fmt):
    with pytest.raises(ValueError, match=f"{fmt.name} has no NaN: replace NaNs"):
        encode([1.0, np.nan], fmt)


def test_encode_passes_the_rule_and_saturation_on():
    assert decode(encode(1.9, FLOAT4_E2M1FN, rounding=toward_zero), FLOAT4_E2M1FN) == 1.5
    assert decode(encode(1e9, FLOAT8_E4M3FN, saturate=True), FLOAT8_E4M3FN) == 448
    assert np.isnan(decode(encode(1e9, FLOAT8_E4M3FN), FLOAT8_E4M3FN))
    assert encode(-0.0, FLOAT8_E4M3FNUZ) == 0
    assert encode(0.0, FLOAT8_E8M0FNU) == 255


def test_scalars_lists_and_arrays_keep_their_shape():
    assert isinstance(decode(0, FLOAT16), np.float64)
    assert isinstance(encode(1.0, BFLOAT16), np.uint16)
    assert decode([[0x3C00], [0x4000]], FLOAT16).tolist() == [[1.0], [2.0]]
    assert encode(np.ones((2, 0, 3)), FLOAT16).shape == (2, 0, 3)
    assert decode([0x7FF0000000000000, 1], FLOAT64).tolist() == [np.inf, 2.0**-1074]
    assert decode([1, 2**63 + 1], FLOAT64).tolist() == [2.0**-1074, -(2.0**-1074)]  # NumPy makes floats of this list
    assert decode(2**63, FLOAT64) == 0.0
    assert encode(7, FLOAT4_E2M1FN) == encode(6.0, FLOAT4_E2M1FN)


@pytest.mark.parametrize("code", [256, -1, [0, 300], 2**70])
def test_a_code_out_of_range_is_named(code):
    bad = code if isinstance(code, int) else 300
    with pytest.raises(ValueError, match=rf"code {bad} is not in 0 \.\.\. 255: float8_e4m3fn has 8 bits"):
        decode(code, FLOAT8_E4M3FN)


@pytest.mark.parametrize("code", [1.0, [1.5], "0x3c", None, True, [True, False], [1, True], np.array([True])])
def test_a_code_that_is_not_an_integer_is_refused_with_the_remedy(code):
    with pytest.raises(TypeError, match=r"a code is an unsigned integer.*use encode\(\)"):
        decode(code, FLOAT16)


@pytest.mark.parametrize("function", [decode, encode, fields])
def test_a_name_in_place_of_a_format_is_refused_with_the_remedy(function):
    with pytest.raises(TypeError, match=r"fmt is a FloatFormat, not 'float16'; by name: .*FORMATS\['float16'\]"):
        function(1, "float16")


def test_inf_and_nan_codes_that_do_not_exist_say_so():
    with pytest.raises(ValueError, match=r"float8_e4m3fn has no infinity; its largest value is 448\.0"):
        _ = FLOAT8_E4M3FN.inf_code
    with pytest.raises(ValueError, match="float4_e2m1fn has no NaN"):
        _ = FLOAT4_E2M1FN.nan_code


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (dict(exponent_bits=12, mantissa_bits=3, bias=7), "this codec covers 1 to 11 and 0 to 52"),
        (dict(exponent_bits=8, mantissa_bits=60, bias=7), "this codec covers 1 to 11 and 0 to 52"),
        (dict(exponent_bits=8, mantissa_bits=10, bias=2000), "bias 2000 leaves the range of float64"),
        (dict(exponent_bits=8, mantissa_bits=10, bias=-2000), "bias -2000 leaves the range of float64"),
        (dict(exponent_bits=4, mantissa_bits=3, bias=7, specials="fn"), "specials 'fn' is not one of ieee, all_ones"),
        (dict(exponent_bits=4, mantissa_bits=3, bias=7, signed=False), "a sign and a zero come together"),
        (dict(exponent_bits=4, mantissa_bits=0, bias=7, specials="none"), "a sign and a zero come together"),
        (dict(exponent_bits=1, mantissa_bits=3, bias=0), "at least 2 exponent bits"),
        (dict(exponent_bits=8, mantissa_bits=0, bias=127, signed=False), "1 fraction bit"),
        (dict(exponent_bits=8, mantissa_bits=52, bias=127), "52 fraction bits .*; use at most 50"),
        (dict(exponent_bits=8, mantissa_bits=51, bias=127), "51 fraction bits .*; use at most 50"),
        (dict(exponent_bits=8, mantissa_bits=0, bias=127, specials="negative_zero", signed=False), "needs a sign"),
    ],
)
def test_a_layout_that_cannot_be_treated_exactly_is_refused(layout, message):
    with pytest.raises(ValueError, match=message):
        FloatFormat("mine", **layout)


@pytest.mark.parametrize("width", [5.0, True, "5", None, np.int64(5)], ids=repr)
@pytest.mark.parametrize("field", ["exponent_bits", "mantissa_bits", "bias"])
def test_a_width_that_is_not_an_int_is_refused(field, width):
    with pytest.raises(TypeError, match=f"mine: {field} is an int, not "):
        FloatFormat("mine", **(dict(exponent_bits=5, mantissa_bits=10, bias=15) | {field: width}))


def test_the_range_of_float64_is_used_to_its_ends():
    low = FloatFormat("low", exponent_bits=2, mantissa_bits=3, bias=1072)  # its smallest subnormal is 2**(1 - 1072 - 3)
    assert low.smallest_subnormal == decode(1, low) == 2.0**-1074
    assert encode(2.0**-1074, low) == 1
    high = FloatFormat("high", exponent_bits=2, mantissa_bits=3, bias=-1021)  # its largest exponent is 2 + 1021
    assert high.max == decode(high.max_code, high) == 1.875 * 2.0**1023
    with np.errstate(all="raise"):
        assert quantize([1.9 * 2.0**1023, 1.95 * 2.0**1023], high).tolist() == [high.max, np.inf]
    for bias in (1073, -1022):
        with pytest.raises(ValueError, match="leaves the range of float64"):
            FloatFormat("mine", exponent_bits=2, mantissa_bits=3, bias=bias)


@pytest.mark.parametrize("specials", ["ieee", "all_ones", "negative_zero"])
@pytest.mark.parametrize("mantissa_bits", [49, 50])
def test_the_widest_fractions_overflow_half_a_step_past_the_largest_value(mantissa_bits, specials):
    wide = FloatFormat("wide", exponent_bits=8, mantissa_bits=mantissa_bits, bias=127, specials=specials)
    step = 2.0 ** (wide.emax - mantissa_bits)
    tie_is_in = wide.max_code % 2 == 0
    x = wide.max + np.array([0.25, 0.5, 0.75, 1.0, 2.0]) * step
    assert np.isfinite(quantize(x, wide)).tolist() == [True, tie_is_in, False, False, False]
    assert not np.isfinite(quantize(1e300, wide))
    assert quantize(1e300, wide, rounding=toward_zero) == wide.max


def test_fifty_two_fraction_bits_are_for_the_exponents_of_float64():
    mine = FloatFormat("mine", exponent_bits=11, mantissa_bits=52, bias=1023)
    assert quantize(FLOAT64.max, mine) == FLOAT64.max


def test_a_format_of_ones_own_needs_one_line():
    mine = FloatFormat("float8_e3m4", exponent_bits=3, mantissa_bits=4, bias=3)
    theirs = ml_dtypes.finfo(ml_dtypes.float8_e3m4)
    assert (mine.max, mine.smallest_subnormal) == (float(theirs.max), float(theirs.smallest_subnormal))
    code = np.arange(256, dtype=np.uint8)
    assert same_bits(decode(code, mine), code.view(ml_dtypes.float8_e3m4).astype(np.float64)).all()


def test_formats_are_values_one_can_compare_print_and_look_up():
    assert FORMATS["float16"] is FLOAT16
    assert FloatFormat("float16", 5, 10, bias=15) == FLOAT16
    assert {FLOAT16: 1}[FloatFormat("float16", 5, 10, bias=15)] == 1
    assert f"{FLOAT32}" == "float32"
    assert [fmt.bits for fmt in WIDE] == [64, 32, 19]
