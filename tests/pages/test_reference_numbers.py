"""The numbers that Parts I and II are held against: each row of the list of facts as its id, and where it is tested.

A row of the form W1 is one of the errata, 3.6 and 3.7 are reference numbers, and "text 7" is something that the book
has to cover. A row that another file tests is named in ELSEWHERE, and not tested again.
"""

import math
import re
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

from utils.accumulation import kahan_sum, running_sum
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    decode,
    encode,
)
from utils.loss_scaling import DynamicLossScaler, StaticLossScaler
from utils.rounding import quantize, stochastic, ulp

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    # row: (file, test, a text that stands in the test or in its parameters)
    "text 1, text 8, text 12, text 47: every code as NumPy has it": (
        "test_formats.py",
        "test_every_code_has_the_value_that_ml_dtypes_or_numpy_gives_it",
        "fmt",
        "ALL",
    ),
    "text 2: 1.1001000000 is 1.5625": (
        "test_spec_tables.py",
        "test_a_code_has_the_value_of_the_specification",
        '"0.01111.1001000000", 1.5625',
    ),
    "text 3, text 38: largest values and the other fields of finfo": (
        "test_formats.py",
        "test_properties_equal_those_of_finfo",
        "fmt.max == float(info.max)",
    ),
    "text 37, W25: the rows of the table of formats": (
        "test_spec_tables.py",
        "test_a_property_is_what_the_specification_says",
        'f"{MX} E8M0", bias=127',
    ),
    "3.6: E4M3 and E5M2 end at 448 and 57344": (
        "test_spec_tables.py",
        "test_a_property_is_what_the_specification_says",
        "max=448.0",
        "max=57344.0",
    ),
    "3.6: 254 finite codes in E4M3; 248 finite, 6 NaN and 2 infinite in E5M2": (
        "test_spec_tables.py",
        "test_so_many_codes_are_finite_nan_or_infinite",
        "FLOAT8_E4M3FN, 254, 2, 0",
        "FLOAT8_E5M2, 248, 6, 2",
    ),
    "3.6: the unit roundoff of E4M3 and E5M2 is 6.25 and 12.5 percent": (
        "test_spec_tables.py",
        "test_the_unit_roundoff_is_half_of_eps",
        "(FLOAT8_E4M3FN, 0.0625), (FLOAT8_E5M2, 0.125)",
    ),
    "3.6: FNUZ, FP6 and FP4 end at 240, 57344, 28, 7.5 and 6": (
        "test_spec_tables.py",
        "test_a_property_is_what_the_specification_says",
        "bias=8, max=240.0",
        "bias=16, max=57344.0",
        "max=28.0",
        "max=7.5",
        "max=6.0",
    ),
    "W26: the eight values of E2M1": (
        "test_spec_tables.py",
        "test_the_values_of_e2m1_are_these_eight_with_a_sign",
        "[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]",
    ),
    "W31: under bfloat16 autocast a scale grows to 2^24 in 400 steps at interval 50": (
        "test_loss_scaling.py",
        "test_under_bfloat16_autocast_the_scale_only_grows_to_2_24_in_400_steps",
        "growth_interval=50",
        "range(400)",
        "(2.0**24, 0, 0.0)",
    ),
}


@pytest.mark.parametrize(("file", "test", "texts"), [(f, t, more) for f, t, *more in ELSEWHERE.values()], ids=ELSEWHERE)
def test_the_row_is_tested_where_the_list_says(file, test, texts):
    source = (TESTS / file).read_text("utf8")
    assert f"\ndef {test}(" in source
    before, after = source.split(f"\ndef {test}(")
    decorators = before[before.rindex("\n\n\n") :]  # of this test alone
    missing = [text for text in texts if text not in decorators + after.split("\n\n\n")[0]]
    assert missing == []


def digits(value, places=6):
    """A value as the list of facts writes it: rounded to so many significant digits."""
    return float(f"{float(value):.{places - 1}e}")


def fp16(bits):
    return float(decode(int(bits.replace(" ", ""), 2), FLOAT16))


VALUES = {
    # bits
    "text 3: 65504 is (2 - 2^-10) * 2^15": ((2 - 2.0**-10) * 2.0**15, FLOAT16.max),
    "text 3: and -65504 the lowest, in NumPy": (
        [float(end) for end in (np.finfo(np.float16).max, np.finfo(np.float16).min)],
        [FLOAT16.max, -FLOAT16.max],
    ),
    "W1: the smallest positive float16 is 2^-14 * 1/1024 = 5.96e-8": (digits(fp16("0 00000 0000000001"), 3), 5.96e-8),
    "W1: the printed formula 2^(1-15) * (1+1/1024) equals 6.109e-5": (
        digits(2.0 ** (1 - 15) * (1 + 1 / 1024), 4),
        6.109e-5,
    ),
    "text 4: 2^-24, in NumPy too": (FLOAT16.smallest_subnormal, float(np.finfo(np.float16).smallest_subnormal)),
    "text 5: the smallest subnormal": (digits(fp16("0 00000 0000000001"), 9), 5.96046448e-8),
    "text 5: the largest subnormal": (digits(fp16("0 00000 1111111111"), 9), 6.09755516e-5),
    "text 5: the smallest normal": (digits(fp16("0 00001 0000000000"), 9), 6.10351562e-5),
    "text 5: the largest below 1": (fp16("0 01110 1111111111"), 0.99951171875),
    "text 5: the smallest above 1": (fp16("0 01111 0000000001"), 1.0009765625),
    "text 5: infinity": (fp16("0 11111 0000000000"), math.inf),
    "text 10, W8: bfloat16 ends at 3.38953e38": (digits(BFLOAT16.max), 3.38953e38),
    "W8: which is (2 - 2^-7) * 2^127": (BFLOAT16.max, (2 - 2.0**-7) * 2.0**127),
    "W8: in torch too": (torch.finfo(torch.bfloat16).max, BFLOAT16.max),
    "W8: 3.40282e38 is float32's": (digits(FLOAT32.max), 3.40282e38),
    "text 15: float16 has 3 exponent bits fewer than float32": (FLOAT32.exponent_bits - FLOAT16.exponent_bits, 3),
    "text 15: and 13 fraction bits fewer": (FLOAT32.mantissa_bits - FLOAT16.mantissa_bits, 13),
    "W26: the eps of E2M1 is 0.5": (FLOAT4_E2M1FN.eps, 0.5),
    "W26: in ml_dtypes too": (float(ml_dtypes.finfo(ml_dtypes.float4_e2m1fn).eps), 0.5),
    "3.6: smallest normal and subnormal of E4M3": (
        (FLOAT8_E4M3FN.smallest_normal, FLOAT8_E4M3FN.smallest_subnormal),
        (2.0**-6, 2.0**-9),
    ),
    "3.6: smallest normal and subnormal of E5M2": (
        (FLOAT8_E5M2.smallest_normal, FLOAT8_E5M2.smallest_subnormal),
        (2.0**-14, 2.0**-16),
    ),
    # rounding
    "text 7: 3.141 in float16": (float(quantize(3.141, FLOAT16)), 3.140625),
    "text 7: 3.1415 in float16": (float(quantize(3.1415, FLOAT16)), 3.140625),
    "text 7: 3.142 in float16": (float(quantize(3.142, FLOAT16)), 3.142578125),
    "text 7: torch agrees": (torch.tensor([3.141, 3.1415, 3.142]).half().tolist(), [3.140625, 3.140625, 3.142578125]),
    "text 7: the ulp there is 0.001953": (digits(ulp(3.141, FLOAT16), 4), 0.001953),
    "text 13: 1/3 in float64": (
        f"{float(quantize(Fraction(1, 3), FLOAT64)):.60f}",
        "0.333333333333333314829616256247390992939472198486328125000000",
    ),
    "text 13: 1/3 in float32": (
        f"{float(quantize(1 / 3, FLOAT32)):.60f}",
        "0.333333343267440795898437500000000000000000000000000000000000",
    ),
    "text 13: 1/3 in float16": (
        f"{float(quantize(1 / 3, FLOAT16)):.60f}",
        "0.333251953125000000000000000000000000000000000000000000000000",
    ),
    "text 13: torch agrees": (
        [torch.tensor(1 / 3, dtype=dtype).item() for dtype in (torch.float64, torch.float32, torch.float16)],
        [float(quantize(1 / 3, fmt)) for fmt in (FLOAT64, FLOAT32, FLOAT16)],
    ),
    "W3: the ulp of float16 at 1e-3 is 9.5e-7": (digits(ulp(1e-3, FLOAT16), 2), 9.5e-7),
    "W3: at 3.14 it is 0.00195": (digits(ulp(3.14, FLOAT16), 3), 0.00195),
    "W3: at 2048 it is 2": (float(ulp(2048.0, FLOAT16)), 2.0),
    "W3: gaps run from 5.96e-8 to 32": ([digits(ulp(x, FLOAT16), 3) for x in (0.0, 65504.0)], [5.96e-8, 32.0]),
    "text 9, W4: the ulp at 0.5 is 4.9e-4": (digits(ulp(0.5, FLOAT16), 2), 4.9e-4),
    "text 9, W4: at 0.1 it is 6.1e-5": (digits(ulp(0.1, FLOAT16), 2), 6.1e-5),
    "W5: 1 + 0.0006 is 1.00098 in float16, though 0.0006 < eps": (
        digits(torch.tensor(1.0).half() + torch.tensor(0.0006).half()),
        1.00098,
    ),
    "W5: eps is the gap after 1": (FLOAT16.eps, fp16("0 01111 0000000001") - 1.0),
    "W6: subnormals of float16 go 1024 times lower": (FLOAT16.smallest_normal / FLOAT16.smallest_subnormal, 1024.0),
    "W6: tiny and smallest_normal are one value": (
        torch.finfo(torch.float16).tiny,
        torch.finfo(torch.float16).smallest_normal,
    ),
    "W6: which is the smallest normal": (torch.finfo(torch.float16).tiny, FLOAT16.smallest_normal),
    # limits
    "text 14: 10**6 in float32": (float(quantize(10**6, FLOAT32)), 1e6),
    "text 14: in float16": (float(quantize(10**6, FLOAT16)), math.inf),
    "text 14: in float16, torch": (torch.tensor(10**6, dtype=torch.float32).half().item(), math.inf),
    "text 14: in bfloat16": (float(quantize(10**6, BFLOAT16)), 999424.0),
    "text 14: in E5M2": (float(quantize(10**6, FLOAT8_E5M2)), math.inf),
    "text 14: in E4M3": (float(quantize(10**6, FLOAT8_E4M3FN)), math.nan),
    "text 14: in E4M3, saturated": (float(quantize(10**6, FLOAT8_E4M3FN, saturate=True)), 448.0),
    "3.7: float16 overflows above ln 65504 = 11.0899": (digits(math.log(65504)), 11.0899),
    "3.7: -1e9 in float16": (float(quantize(-1e9, FLOAT16)), -math.inf),
    "3.7: -1e9 in float16, torch": (torch.tensor(-1e9).half().item(), -math.inf),
    "W29: what underflows is a subnormal": (digits(quantize(1e-5, FLOAT16), 5), 1.0014e-5),
    "W29: or 0": ([float(quantize(x, FLOAT16)) for x in (1e-9, 2.0**-25)], [0.0, 0.0]),
    "W29: in torch too": (torch.tensor([1e-5, 1e-9]).half().tolist(), [float(quantize(1e-5, FLOAT16)), 0.0]),
}


@pytest.mark.parametrize(("got", "expected"), VALUES.values(), ids=VALUES)
def test_the_number_is_that_of_the_list(got, expected):
    assert got == expected or (isinstance(expected, float) and math.isnan(expected) and math.isnan(got)), got


def test_every_row_of_parts_one_and_two_is_here_or_in_the_list():
    rows = {f"w{n}" for n in (1, 3, 4, 5, 6, 8, 25, 26, 27, 28, 29, 38, 44)}
    rows |= {f"text {n}" for n in (*range(1, 11), *range(12, 16), 37, 38, 39, 47)} | {"3 6", "3 7"}
    rows |= {f"w{n}" for n in (30, 31, 42)}  # Part II: loss scaling
    names = " ".join([*ELSEWHERE, *VALUES, *(name for name in globals() if name.startswith("test_"))])
    named = set(re.findall(r"\bw\d+|text \d+|\b3 [67]", re.sub(r"[_.]", " ", names.lower())))
    assert rows - named == set()


# bits


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS.values() if fmt.bits <= 16 and fmt.signed], ids=str)
def test_w27_and_text_39_codes_keep_the_order_of_values_only_among_the_non_negative(fmt):
    value = decode(np.arange(2**fmt.bits), fmt)
    positive, negative = value[: fmt.sign_code], value[fmt.sign_code :]
    assert (np.diff(positive[np.isfinite(positive)]) > 0).all()
    assert (np.diff(negative[np.isfinite(negative)]) < 0).all()


def test_text_39_flipping_the_sign_bit_and_for_negatives_all_bits_sorts_by_value():
    code = np.arange(2**16, dtype=np.uint32)
    value = decode(code, FLOAT16)
    key = np.where(code & 0x8000, code ^ 0xFFFF, code ^ 0x8000)
    ordered = value[np.argsort(key)]
    ordered = ordered[~np.isnan(ordered)]
    assert (np.diff(ordered[np.isfinite(ordered)]) >= 0).all()
    assert ordered[0] == -np.inf
    assert ordered[-1] == np.inf


# rounding


@pytest.mark.parametrize("fmt", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_w3_and_text_6_the_fields_of_torch_finfo_mean_this(fmt):
    info = torch.finfo(fmt.torch_dtype)
    assert (info.bits, info.max, info.min) == (fmt.bits, fmt.max, -fmt.max)
    assert (info.eps, info.tiny, info.smallest_normal) == (fmt.eps, fmt.smallest_normal, fmt.smallest_normal)
    # A count of decimal digits, of the stored fraction bits: with the hidden bit float32 would have 1e-7.
    assert info.resolution == pytest.approx(10.0 ** -math.floor(fmt.mantissa_bits * math.log10(2)), rel=1e-6)


def test_w3_resolution_is_no_gap():
    assert torch.finfo(torch.float16).resolution == 0.001
    gaps = np.unique(ulp(decode(np.arange(FLOAT16.max_code + 1), FLOAT16), FLOAT16))
    assert not (gaps == 0.001).any()
    assert (gaps[0], gaps[-1], len(gaps)) == (2.0**-24, 32.0, 30)


def test_w4_every_stored_value_is_exact_and_precision_is_relative():
    for value in (0.1, 0.5, 3.14, 1000.3):
        assert quantize(quantize(value, FLOAT16), FLOAT16) == quantize(value, FLOAT16)
    x = np.exp2(np.linspace(-14, 15.9, 400))
    share = ulp(x, FLOAT16) / x
    assert (share > 2.0**-11).all()
    assert (share <= 2.0**-10).all()


def test_w5_half_of_eps_is_where_one_begins_to_move():
    one, u = np.float16(1), FLOAT16.eps / 2
    assert one + np.float16(u) == 1.0  # the tie
    assert one + np.float16(u * 1.01) == 1.0 + FLOAT16.eps
    assert quantize(1 + u * 1.01, FLOAT16) == 1 + FLOAT16.eps


@pytest.mark.parametrize(
    ("w", "update", "lost"), [(1024.0, 0.4, True), (2.0**-10, 2.0**-14, False), (1.0, 2.0**-11, True)]
)
def test_w28_an_update_is_lost_below_half_an_ulp_of_the_weight_whatever_eps_is(w, update, lost):
    assert (update < FLOAT16.eps) == (w < 1000)  # eps would judge the first two wrongly
    assert (update <= ulp(w, FLOAT16) / 2) == lost
    assert (float(quantize(w + update, FLOAT16)) == w) == lost
    assert (float(np.float16(w) + np.float16(update)) == w) == lost
    assert (float(torch.tensor(w).half() + torch.tensor(update).half()) == w) == lost


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_text_13_no_value_of_the_format_is_nearer_to_a_third(fmt):
    code = int(encode(1 / 3, fmt))
    assert float(decode(code, fmt)) == float(quantize(1 / 3, fmt))
    below, here, above = (abs(Fraction(float(decode(code + n, fmt))) - Fraction(1, 3)) for n in (-1, 0, 1))
    assert here < min(below, above)


# limits


def test_3_7_exp_in_float16_overflows_above_ln_65504():
    below, above = np.float16(11.0859375), np.float16(11.09375)  # neighbours in float16
    assert float(below) < math.log(65504) < float(above)
    with np.errstate(over="ignore"):
        assert np.isfinite(np.exp(below))
        assert np.exp(above) == np.inf
    assert torch.exp(torch.tensor([11.0859375, 11.09375]).half()).isinf().tolist() == [False, True]
    assert np.isfinite(quantize(math.exp(11.0899), FLOAT16))
    assert quantize(math.exp(11.0905), FLOAT16) == np.inf


def softmax16(x, shift, total):
    """The softmax with every step rounded to float16; `total` adds the exponentials."""

    def rounded(y):
        return quantize(y, FLOAT16)

    with np.errstate(invalid="ignore"):  # inf / inf
        e = rounded(np.exp(rounded(np.array(x) - shift)))
        return rounded(e / rounded(total(e)))


def test_3_7_a_naive_softmax_in_float16_is_nan_and_a_stable_one_is_right():
    x = [12.0, 11.0, 10.0]
    np.testing.assert_array_equal(softmax16(x, shift=0.0, total=np.sum), [np.nan, 0.0, 0.0])
    stable = [0.6655, 0.24475, 0.0901]  # the list cuts 0.24475 off to 0.2447
    np.testing.assert_allclose(softmax16(x, shift=12.0, total=np.sum), stable, atol=5e-5)
    with np.errstate(over="ignore", invalid="ignore"):
        for shift, expected in [(0, [np.nan, 0.0, 0.0]), (12, stable)]:
            e = np.exp(np.float16(x) - np.float16(shift))  # NumPy and torch add float16 in float32
            np.testing.assert_allclose((e / e.sum()).astype(float), expected, atol=5e-5)
            e = (torch.tensor(x).half() - shift).exp()
            np.testing.assert_allclose((e / e.sum()).double(), expected, atol=5e-5)


def test_3_7_a_softmax_whose_total_is_added_in_float16_is_another_one():
    in_float16 = softmax16([12.0, 11.0, 10.0], shift=12.0, total=lambda e: running_sum(e, FLOAT16)[-1])
    assert [round(float(p), 4) for p in in_float16] == [0.665, 0.2446, 0.09]


def test_w38_e4m3_overflows_to_nan_in_ml_dtypes_and_saturates_or_not_in_torch():
    x = np.float32([448, 464, 464.1, 480, 1e4, np.inf])
    with np.errstate(invalid="ignore"):
        theirs = x.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
    np.testing.assert_array_equal(theirs, [448, 448, np.nan, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(theirs, quantize(x, FLOAT8_E4M3FN))
    cast = torch.from_numpy(x).to(torch.float8_e4m3fn).float().numpy()
    both = [theirs, np.full(6, 448.0)]
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13):
        both = both[1:]  # since 2026-04, pytorch#178817
    assert any(np.array_equal(cast, row, equal_nan=True) for row in both), cast


def test_w38_e5m2_goes_to_infinity_from_61440_on():
    x = np.float32([57344, 61439, 61440, 1e6])
    with np.errstate(over="ignore"):
        theirs = x.astype(ml_dtypes.float8_e5m2).astype(np.float64)
    assert theirs.tolist() == torch.from_numpy(x).to(torch.float8_e5m2).tolist() == [57344.0, 57344.0, np.inf, np.inf]
    assert quantize(x, FLOAT8_E5M2).tolist() == theirs.tolist()


def test_w29_nothing_underflows_to_nan_or_infinity():
    x = np.exp2(-np.arange(10.0, 200.0))
    for fmt in (FLOAT16, BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2):
        y = quantize(x, fmt)
        assert np.isfinite(y).all()
        assert (y <= x).all()
        assert encode(fmt.smallest_subnormal / 2, fmt) == 0
    assert torch.from_numpy(x).half().isfinite().all()


@pytest.mark.skipif(torch.version.cuda is not None, reason="about a build of torch without CUDA")
def test_w44_is_autocast_available_says_true_for_cuda_without_cuda():
    assert not torch.cuda.is_available()
    assert torch.amp.is_autocast_available("cuda") is True


# sums


def test_3_7_4096_ones_end_at_2048_in_float16_and_at_256_in_bfloat16():
    ones = np.ones(4096)
    assert running_sum(ones, FLOAT16)[-1] == 2048.0
    assert running_sum(ones, BFLOAT16)[-1] == 256.0
    assert np.add.accumulate(np.ones(4096, np.float16))[-1] == 2048.0
    total = torch.zeros((), dtype=torch.bfloat16)
    for one in torch.ones(4096, dtype=torch.bfloat16):
        total = total + one
    assert total == 256.0
    assert torch.ones(4096, dtype=torch.bfloat16).sum() == 4096.0  # torch's own sum is kept in float32


@pytest.mark.parametrize("increment", [1e-3, float(quantize(1e-3, BFLOAT16))], ids=["as it is", "rounded to bfloat16"])
def test_3_7_a_thousand_thousandths_added_to_1_in_bfloat16(increment):
    thousand = np.full(1000, increment)
    assert running_sum(thousand, BFLOAT16, start=1.0)[-1] == 1.0
    assert kahan_sum(thousand, BFLOAT16, start=1.0).totals[-1] == 2.0
    runs = 500
    ends = running_sum(thousand, BFLOAT16, rounding=stochastic(np.random.default_rng(0)), start=np.ones(runs))[:, -1]
    # One addition has the mean d and the variance d (gap - d): the gap is 2**-7 below 2, and 2**-6 above. So the
    # standard deviation of a sum lies between the two roots; 0.086 does, as half of the sums pass 2 late or not at all.
    low, high = (math.sqrt(1000 * increment * (gap - increment)) for gap in (2.0**-7, 2.0**-6))
    assert low < 0.086 < high
    assert low * (1 - 5 / math.sqrt(2 * runs)) <= ends.std() <= high
    assert abs(ends.std() - 0.086) <= 5 * 0.086 / math.sqrt(2 * runs)
    assert abs(ends.mean() - (1 + 1000 * increment)) <= 5 * high / math.sqrt(runs)
    assert abs(ends.mean() - 2.0002) <= 5 * high / math.sqrt(runs)


def test_3_7_a_thousand_ten_thousandths_added_to_1_in_float16():
    assert running_sum(np.full(1000, 1e-4), FLOAT16, start=1.0)[-1] == 1.0
    total = np.float16(1)
    for _ in range(1000):
        total = total + np.float16(1e-4)
    assert total == 1.0


# loss scaling


def schedule_steps(dtype):
    """Train 400 steps under autocast; count the steps of three learning rate schedules, and of the weights."""
    weight = torch.nn.Parameter(torch.ones(8, 4))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    scaler = DynamicLossScaler(growth_interval=50)
    steps = {"<": 0, ">=": 0, "not skipped": 0, "weights": 0}
    for _ in range(400):
        optimizer.zero_grad()
        before, old_scale = weight.detach().clone(), scaler.get_scale()
        with torch.autocast("cpu", dtype=dtype):
            loss = (torch.full((3, 8), 0.1) @ weight).float().mean()
        scaler.scale(loss).backward()  # scale / 12 enters `@`: 43691 at 2**19, and 87381 > 65504 at 2**20
        scaler.step(optimizer)
        scaler.update()
        steps["<"] += scaler.get_scale() < old_scale
        steps[">="] += scaler.get_scale() >= old_scale
        steps["not skipped"] += not scaler.skipped
        steps["weights"] += not torch.equal(weight, before)
    return steps


def test_w30_the_inverted_condition_steps_the_schedule_only_where_the_weights_do_not_step():
    assert schedule_steps(torch.bfloat16) == {"<": 0, ">=": 400, "not skipped": 400, "weights": 400}
    assert schedule_steps(torch.float16) == {"<": 4, ">=": 396, "not skipped": 396, "weights": 396}


def test_w42_loss_scaling_multiplies_the_loss_and_changes_no_dtype():
    dtypes, losses, weight_grads = [], [], []
    for scale in (1.0, 1024.0):
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(8, 4))
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        scaler = StaticLossScaler(scale)
        with torch.autocast("cpu", dtype=torch.float16):
            output = torch.randn(3, 8) @ weight
        output.retain_grad()
        loss = output.float().square().mean()
        scaled = scaler.scale(loss)
        scaled.backward()
        scaler.step(optimizer)
        losses.append((loss.item(), scaled.item()))
        weight_grads.append(weight.grad)
        kept = (loss, scaled, output, output.grad, weight, weight.grad, optimizer.state[weight]["momentum_buffer"])
        dtypes.append([tensor.dtype for tensor in kept])
    float16, float32 = torch.float16, torch.float32
    assert dtypes == [[float32, float32, float16, float16, float32, float32, float32]] * 2
    assert losses[0] == (losses[1][0], losses[1][1] / 1024)
    assert weight_grads[0].abs().max() > 0
    torch.testing.assert_close(*weight_grads, rtol=2.0**-10, atol=2.0**-20)
