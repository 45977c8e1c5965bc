"""The rows of the standards' tables, each with the table that it comes from."""

from typing import NamedTuple

import numpy as np
import pytest

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
    FloatFormat,
    decode,
    encode,
)
from utils.rounding import quantize

OFP8 = "OCP OFP8 1.0"  # OCP 8-bit Floating Point Specification, revision 1.0, 2023
MX = "OCP MX 1.0"  # OCP Microscaling Formats Specification, version 1.0, 2023
IEEE = "IEEE 754-2019 table 3.5"
FNUZ = "arXiv 2206.02915"
README = "ml_dtypes README"

NAN = "nan"
INF = "inf"


def rows(fmt, source, **fields):
    return [pytest.param(fmt, field, value, id=f"{fmt} {field}, {source}") for field, value in fields.items()]


@pytest.mark.parametrize(
    ("fmt", "field", "value"),
    [
        # p, emax, bias, w and t of the table; 3.3: emin = 1 - emax
        *rows(FLOAT16, IEEE, bits=16, precision=11, emax=15, bias=15, exponent_bits=5, mantissa_bits=10, emin=-14),
        *rows(FLOAT32, IEEE, bits=32, precision=24, emax=127, bias=127, exponent_bits=8, mantissa_bits=23, emin=-126),
        *rows(FLOAT64, IEEE, bits=64, precision=53, emax=1023, bias=1023, exponent_bits=11, mantissa_bits=52),
        *rows(FLOAT64, IEEE, emin=-1022),
        # 3.3: the largest value is b**emax * (b - b**(1 - p)), the smallest normal b**emin, the smallest of all
        # b**emin * b**(1 - p)
        *rows(FLOAT16, f"{IEEE}, 3.3", max=65504.0, smallest_normal=2.0**-14, smallest_subnormal=2.0**-24),
        *rows(FLOAT32, f"{IEEE}, 3.3", max=(2 - 2.0**-23) * 2.0**127, smallest_normal=2.0**-126),
        *rows(FLOAT32, f"{IEEE}, 3.3", smallest_subnormal=2.0**-149, eps=2.0**-23),
        *rows(FLOAT64, f"{IEEE}, 3.3", max=(2 - 2.0**-52) * 2.0**1023, smallest_normal=2.0**-1022),
        *rows(FLOAT64, f"{IEEE}, 3.3", smallest_subnormal=2.0**-1074, eps=2.0**-52),
        # table 1: exponent parameters; table 2: value encodings
        *rows(FLOAT8_E4M3FN, f"{OFP8} table 1", bits=8, exponent_bits=4, mantissa_bits=3, bias=7, emax=8, emin=-6),
        *rows(FLOAT8_E4M3FN, f"{OFP8} table 2", has_inf=False, has_nan=True, max=448.0, smallest_subnormal=2.0**-9),
        *rows(FLOAT8_E4M3FN, f"{OFP8} table 2", smallest_normal=2.0**-6, has_negative_zero=True),
        *rows(FLOAT8_E5M2, f"{OFP8} table 1", bits=8, exponent_bits=5, mantissa_bits=2, bias=15, emax=15, emin=-14),
        *rows(FLOAT8_E5M2, f"{OFP8} table 2", has_inf=True, has_nan=True, max=57344.0, smallest_subnormal=2.0**-16),
        *rows(FLOAT8_E5M2, f"{OFP8} table 2", smallest_normal=2.0**-14, has_negative_zero=True, inf_code=0x7C),
        *rows(FLOAT6_E2M3FN, f"{MX} FP6", bits=6, exponent_bits=2, mantissa_bits=3, emin=0, has_negative_zero=True),
        *rows(FLOAT6_E3M2FN, f"{MX} FP6", bits=6, exponent_bits=3, mantissa_bits=2, emin=-2, has_negative_zero=True),
        *rows(FLOAT4_E2M1FN, f"{MX} FP4", bits=4, exponent_bits=2, mantissa_bits=1, emin=0, has_negative_zero=True),
        *rows(FLOAT4_E2M1FN, README, eps=0.5),
        *rows(FLOAT6_E2M3FN, f"{MX} FP6", bias=1, emax=2, max=7.5, smallest_normal=1.0, smallest_subnormal=0.125),
        *rows(FLOAT6_E3M2FN, f"{MX} FP6", bias=3, emax=4, max=28.0, smallest_normal=0.25, smallest_subnormal=0.0625),
        *rows(FLOAT4_E2M1FN, f"{MX} FP4", bias=1, emax=2, max=6.0, smallest_normal=1.0, smallest_subnormal=0.5),
        *rows(FLOAT6_E2M3FN, f"{MX} FP6", has_nan=False, has_inf=False),
        *rows(FLOAT6_E3M2FN, f"{MX} FP6", has_nan=False, has_inf=False),
        *rows(FLOAT4_E2M1FN, f"{MX} FP4", has_nan=False, has_inf=False),
        *rows(FLOAT8_E8M0FNU, f"{MX} E8M0", bias=127, emax=127, emin=-127, signed=False, has_zero=False, has_inf=False),
        *rows(FLOAT8_E8M0FNU, f"{MX} E8M0", nan_code=0xFF, bits=8, exponent_bits=8, mantissa_bits=0),
        *rows(FLOAT8_E8M0FNU, f"{MX} E8M0", max=2.0**127, smallest_normal=2.0**-127, has_nan=True),
        # one bias higher, one NaN, no negative zero
        *rows(FLOAT8_E4M3FNUZ, FNUZ, bias=8, max=240.0, nan_code=0x80, has_negative_zero=False),
        *rows(FLOAT8_E5M2FNUZ, FNUZ, bias=16, max=57344.0, nan_code=0x80, has_negative_zero=False),
        *rows(FLOAT8_E4M3FNUZ, README, emax=7),
        *rows(FLOAT8_E5M2FNUZ, README, emax=15),
        *rows(BFLOAT16, README, bits=16, exponent_bits=8, mantissa_bits=7, bias=127, precision=8),
        *rows(BFLOAT16, f"{IEEE} with its widths", emax=127, emin=-126, max=(2 - 2.0**-7) * 2.0**127, eps=2.0**-7),
        *rows(BFLOAT16, f"{IEEE} with its widths", smallest_normal=2.0**-126, smallest_subnormal=2.0**-133),
        # the exponent of float32 and the fraction of float16
        *rows(TF32, "NVIDIA A100 white paper", bits=19, exponent_bits=8, mantissa_bits=10),
    ],
)
def test_a_property_is_what_the_specification_says(fmt, field, value):
    assert getattr(fmt, field) == value


def code_row(fmt, bits, value, source):
    return pytest.param(fmt, bits, value, id=f"{fmt} {bits}, {source}")


@pytest.mark.parametrize(
    ("fmt", "bits", "value"),
    [
        # OFP8 table 2 (also table 1 of Micikevicius et al., arXiv 2209.05433)
        code_row(FLOAT8_E4M3FN, "0.1111.111", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E4M3FN, "1.1111.111", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E4M3FN, "0.0000.000", 0.0, f"{OFP8} table 2"),
        code_row(FLOAT8_E4M3FN, "1.0000.000", "-0.0", f"{OFP8} table 2"),
        code_row(FLOAT8_E4M3FN, "0.1111.110", 1.75 * 2**8, f"{OFP8} table 2, max normal"),
        code_row(FLOAT8_E4M3FN, "0.0001.000", 2.0**-6, f"{OFP8} table 2, min normal"),
        code_row(FLOAT8_E4M3FN, "0.0000.111", 0.875 * 2.0**-6, f"{OFP8} table 2, max subnormal"),
        code_row(FLOAT8_E4M3FN, "0.0000.001", 2.0**-9, f"{OFP8} table 2, min subnormal"),
        code_row(FLOAT8_E5M2, "0.11111.00", INF, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "1.11111.00", "-inf", f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "0.00000.00", 0.0, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "1.00000.00", "-0.0", f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "1.11111.01", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "1.11111.10", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "1.11111.11", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "0.11111.01", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "0.11111.10", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "0.11111.11", NAN, f"{OFP8} table 2"),
        code_row(FLOAT8_E5M2, "0.11110.11", 1.75 * 2.0**15, f"{OFP8} table 2, max normal"),
        code_row(FLOAT8_E5M2, "0.00001.00", 2.0**-14, f"{OFP8} table 2, min normal"),
        code_row(FLOAT8_E5M2, "0.00000.11", 0.75 * 2.0**-14, f"{OFP8} table 2, max subnormal"),
        code_row(FLOAT8_E5M2, "0.00000.01", 2.0**-16, f"{OFP8} table 2, min subnormal"),
        # OCP MX 1.0
        code_row(FLOAT6_E2M3FN, "0.11.111", 7.5, f"{MX} FP6, max normal"),
        code_row(FLOAT6_E2M3FN, "0.01.000", 1.0, f"{MX} FP6, min normal"),
        code_row(FLOAT6_E2M3FN, "0.00.111", 0.875, f"{MX} FP6, max subnormal"),
        code_row(FLOAT6_E2M3FN, "0.00.001", 0.125, f"{MX} FP6, min subnormal"),
        code_row(FLOAT6_E3M2FN, "0.111.11", 28.0, f"{MX} FP6, max normal"),
        code_row(FLOAT6_E3M2FN, "0.001.00", 0.25, f"{MX} FP6, min normal"),
        code_row(FLOAT6_E3M2FN, "0.000.11", 0.1875, f"{MX} FP6, max subnormal"),
        code_row(FLOAT6_E3M2FN, "0.000.01", 0.0625, f"{MX} FP6, min subnormal"),
        code_row(FLOAT4_E2M1FN, "0.11.1", 6.0, f"{MX} FP4, max normal"),
        code_row(FLOAT4_E2M1FN, "0.01.0", 1.0, f"{MX} FP4, min normal"),
        code_row(FLOAT4_E2M1FN, "0.00.1", 0.5, f"{MX} FP4, subnormal"),
        code_row(FLOAT6_E2M3FN, "0.00.000", 0.0, f"{MX} FP6, zero"),
        code_row(FLOAT6_E2M3FN, "1.00.000", "-0.0", f"{MX} FP6, zero"),
        code_row(FLOAT6_E2M3FN, "1.11.111", -7.5, f"{MX} FP6, max normal"),
        code_row(FLOAT6_E3M2FN, "0.000.00", 0.0, f"{MX} FP6, zero"),
        code_row(FLOAT6_E3M2FN, "1.000.00", "-0.0", f"{MX} FP6, zero"),
        code_row(FLOAT6_E3M2FN, "1.111.11", -28.0, f"{MX} FP6, max normal"),
        code_row(FLOAT4_E2M1FN, "1.00.0", "-0.0", f"{MX} FP4, zero"),
        code_row(FLOAT4_E2M1FN, "1.11.1", -6.0, f"{MX} FP4, max normal"),
        code_row(FLOAT8_E8M0FNU, "00000000", 2.0**-127, f"{MX} E8M0, smallest"),
        code_row(FLOAT8_E8M0FNU, "01111111", 1.0, f"{MX} E8M0"),
        code_row(FLOAT8_E8M0FNU, "11111110", 2.0**127, f"{MX} E8M0, largest"),
        code_row(FLOAT8_E8M0FNU, "11111111", NAN, f"{MX} E8M0"),
        # FNUZ
        code_row(FLOAT8_E4M3FNUZ, "1.0000.000", NAN, FNUZ),
        code_row(FLOAT8_E4M3FNUZ, "0.1111.111", 240.0, FNUZ),
        code_row(FLOAT8_E4M3FNUZ, "0.0001.000", 2.0**-7, FNUZ),
        code_row(FLOAT8_E4M3FNUZ, "0.0000.001", 2.0**-10, FNUZ),
        code_row(FLOAT8_E5M2FNUZ, "1.00000.00", NAN, FNUZ),
        code_row(FLOAT8_E5M2FNUZ, "0.11111.11", 57344.0, FNUZ),
        code_row(FLOAT8_E5M2FNUZ, "0.00001.00", 2.0**-15, FNUZ),
        code_row(FLOAT8_E5M2FNUZ, "0.00000.01", 2.0**-17, FNUZ),
        # IEEE 754-2019, 3.4
        code_row(FLOAT16, "0.11110.1111111111", 65504.0, "IEEE 754-2019 3.4, largest"),
        code_row(FLOAT16, "0.00000.0000000001", 2.0**-24, "IEEE 754-2019 3.4, smallest"),
        code_row(FLOAT16, "1.11111.0000000000", "-inf", "IEEE 754-2019 3.4"),
        code_row(FLOAT16, "0.11111.0000000001", NAN, "IEEE 754-2019 3.4"),
        code_row(FLOAT16, "0.01111.1001000000", 1.5625, "worked by hand in chapter bits"),
        code_row(BFLOAT16, "0.11111110.1111111", (2 - 2.0**-7) * 2.0**127, "bfloat16 max, 3.39e38"),
        code_row(TF32, "0.11111110.1111111111", (2 - 2.0**-10) * 2.0**127, "TF32 max, 3.40e38"),
    ],
)
def test_a_code_has_the_value_of_the_specification(fmt, bits, value):
    code = int(bits.replace(".", ""), 2)
    assert len(bits.replace(".", "")) == fmt.bits
    got = float(decode(code, fmt))
    if value == NAN:
        assert got != got
    else:
        assert got == float(value), got
        assert encode(got, fmt) == code


@pytest.mark.parametrize(
    ("fmt", "finite", "nans", "infinities"),
    [
        pytest.param(FLOAT8_E4M3FN, 254, 2, 0, id=f"E4M3, {OFP8} table 2"),
        pytest.param(FLOAT8_E5M2, 248, 6, 2, id=f"E5M2, {OFP8} table 2"),
        pytest.param(FLOAT8_E4M3FNUZ, 255, 1, 0, id=f"E4M3FNUZ, {FNUZ}"),
        pytest.param(FLOAT8_E5M2FNUZ, 255, 1, 0, id=f"E5M2FNUZ, {FNUZ}"),
        pytest.param(FLOAT8_E8M0FNU, 255, 1, 0, id=f"E8M0, {MX}"),
        pytest.param(FLOAT6_E3M2FN, 64, 0, 0, id=f"E3M2, {MX}"),
        pytest.param(FLOAT6_E2M3FN, 64, 0, 0, id=f"E2M3, {MX}"),
        pytest.param(FLOAT4_E2M1FN, 16, 0, 0, id=f"E2M1, {MX}"),
        pytest.param(FLOAT16, 63488, 2046, 2, id="float16, IEEE 754-2019 3.4"),
        pytest.param(BFLOAT16, 65280, 254, 2, id="bfloat16, IEEE 754-2019 3.4 with its widths"),
    ],
)
def test_so_many_codes_are_finite_nan_or_infinite(fmt, finite, nans, infinities):
    values = decode(list(range(2**fmt.bits)), fmt)
    counted = (np.isfinite(values).sum(), np.isnan(values).sum(), np.isinf(values).sum())
    assert counted == (finite, nans, infinities)


class Block(NamedTuple):
    """A block of `size` elements that share one scale."""

    element: FloatFormat
    size: int
    scale: FloatFormat


@pytest.mark.parametrize(
    ("block", "bits_per_value", "reach"),
    [
        # MX table 1: element formats, k = 32, E8M0 scales; the largest value is the element's times the scale's
        pytest.param(Block(FLOAT8_E5M2, 32, FLOAT8_E8M0FNU), 8.25, 57344 * 2.0**127, id=f"MXFP8 E5M2, {MX} table 1"),
        pytest.param(Block(FLOAT8_E4M3FN, 32, FLOAT8_E8M0FNU), 8.25, 448 * 2.0**127, id=f"MXFP8 E4M3, {MX} table 1"),
        pytest.param(Block(FLOAT6_E3M2FN, 32, FLOAT8_E8M0FNU), 6.25, 28 * 2.0**127, id=f"MXFP6 E3M2, {MX} table 1"),
        pytest.param(Block(FLOAT6_E2M3FN, 32, FLOAT8_E8M0FNU), 6.25, 7.5 * 2.0**127, id=f"MXFP6 E2M3, {MX} table 1"),
        pytest.param(Block(FLOAT4_E2M1FN, 32, FLOAT8_E8M0FNU), 4.25, 6 * 2.0**127, id=f"MXFP4 E2M1, {MX} table 1"),
        # besides, a tensor of NVFP4 has one float32 factor
        pytest.param(Block(FLOAT4_E2M1FN, 16, FLOAT8_E4M3FN), 4.5, 6 * 448.0, id="NVFP4, Transformer Engine's page"),
    ],
)
def test_a_block_takes_so_many_bits_and_reaches_so_far(block, bits_per_value, reach):
    assert (block.size * block.element.bits + block.scale.bits) / block.size == bits_per_value
    assert block.element.max * block.scale.max == reach


def test_the_values_of_e2m1_are_these_eight_with_a_sign():
    positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]  # OCP MX 1.0, FP4
    assert decode(list(range(16)), FLOAT4_E2M1FN).tolist() == positive + [-value for value in positive]


@pytest.mark.parametrize(
    ("fmt", "unit_roundoff"),
    [(FLOAT8_E4M3FN, 0.0625), (FLOAT8_E5M2, 0.125), (FLOAT16, 2.0**-11), (BFLOAT16, 2.0**-8), (FLOAT32, 2.0**-24)],
    ids=str,
)
def test_the_unit_roundoff_is_half_of_eps(fmt, unit_roundoff):
    assert fmt.eps / 2 == 2.0**-fmt.precision == unit_roundoff
    assert quantize(1 + unit_roundoff, fmt) == 1  # the tie goes to the even significand
    assert quantize(1 + 1.0001 * unit_roundoff, fmt) == 1 + fmt.eps


@pytest.mark.parametrize(
    ("fmt", "x", "plain", "saturated"),
    [
        pytest.param(FLOAT8_E4M3FN, 464.0, 448.0, 448.0, id=f"E4M3 464 is the tie to 448, {OFP8} 5.2"),
        pytest.param(FLOAT8_E4M3FN, 464.1, NAN, 448.0, id=f"E4M3 past 464, {OFP8} 5.2"),
        pytest.param(FLOAT8_E4M3FN, float("inf"), NAN, 448.0, id=f"E4M3 infinity, {OFP8} 5.2"),
        pytest.param(FLOAT8_E5M2, 61439.9, 57344.0, 57344.0, id=f"E5M2 below 61440, {OFP8} 5.2"),
        pytest.param(FLOAT8_E5M2, 61440.0, INF, 57344.0, id=f"E5M2 61440 is the tie past the end, {OFP8} 5.2"),
        pytest.param(FLOAT8_E5M2, float("inf"), INF, 57344.0, id=f"E5M2 infinity, {OFP8} 5.2"),
        pytest.param(FLOAT16, 65519.99, 65504.0, 65504.0, id="float16 below 65520, IEEE 754-2019 7.4"),
        pytest.param(FLOAT16, 65520.0, INF, 65504.0, id="float16 65520, IEEE 754-2019 7.4"),
        pytest.param(FLOAT6_E3M2FN, 1e9, 28.0, 28.0, id="E3M2 past the end, as in ml_dtypes"),
        pytest.param(FLOAT4_E2M1FN, float("inf"), 6.0, 6.0, id="E2M1 infinity, as in ml_dtypes"),
    ],
)
def test_overflow_in_the_two_conversion_modes(fmt, x, plain, saturated):
    for sign in (1, -1):
        got = float(quantize(sign * x, fmt))
        assert got != got if plain == NAN else got == sign * float(plain)
        assert quantize(sign * x, fmt, saturate=True) == sign * saturated


def test_the_table_names_the_thirteen_formats_as_ml_dtypes_does():
    assert " ".join(FORMATS) == (
        "float64 float32 tf32 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
        "float8_e8m0fnu float6_e3m2fn float6_e2m3fn float4_e2m1fn"
    )
    assert all(fmt.name == name for name, fmt in FORMATS.items())
