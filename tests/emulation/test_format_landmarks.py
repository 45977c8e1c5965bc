"""The table of special values: against ml_dtypes' and torch's finfo, against every code, and against its CSV."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from packaging.version import Version

from tests.oracles import SMALL, all_codes, finite_values, oracle_dtype
from utils.emulation.format_landmarks import COUNTS, CSV, HEADER, counts, csv_text, landmarks, read_csv
from utils.formats import FLOAT16, FORMATS, decode, encode

EVERY = pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
EVERY_SMALL = pytest.mark.parametrize("fmt", SMALL, ids=str)


@EVERY
def test_a_value_with_a_code_is_what_the_code_means(fmt):
    for name, (value, code) in landmarks(fmt).items():
        if code is None:
            continue
        assert 0 <= code < 2**fmt.bits
        again = float(decode(code, fmt))
        assert again == value or (again != again and name == "nan"), name
        assert math.copysign(1, again) == math.copysign(1, value), name
        assert int(encode(value, fmt)) == code, name


@EVERY_SMALL
def test_the_landmarks_are_those_of_the_sorted_values(fmt):
    values = [float(value) for value in finite_values(fmt)]
    at = {name: value for name, (value, _) in landmarks(fmt).items()}
    one = values.index(1.0)
    assert at["max"] == values[-1]
    assert at["smallest_above_one"] == values[one + 1] == 1 + at["eps"]
    assert at["largest_below_one"] == values[one - 1]
    assert at["unit_roundoff"] == at["eps"] / 2
    assert ("smallest_subnormal" in at) == ("zero" in at) == fmt.has_zero
    if fmt.has_zero:
        normal = values.index(at["smallest_normal"])
        assert at["largest_subnormal"] == values[normal - 1]
        assert at["smallest_subnormal"] == values[1]
        assert at["lowest"] == -values[-1]
        # below the smallest normal the gaps no longer halve
        assert values[normal] - values[normal - 1] == values[normal + 1] - values[normal] == values[1]
    else:
        assert at["smallest_normal"] == values[0]
        assert "lowest" not in at


@EVERY_SMALL
def test_the_codes_are_counted_right(fmt):
    values = decode(all_codes(fmt), fmt)
    counted = counts(fmt)
    assert counted["finite_codes"] == np.isfinite(values).sum()
    assert counted["nan_codes"] == np.isnan(values).sum()
    assert counted["infinity_codes"] == np.isinf(values).sum()
    assert counted["zero_codes"] == (values == 0).sum()


@pytest.mark.parametrize("name", ["float32", "float64", "tf32"])
def test_the_codes_of_the_wide_formats_add_up(name):
    fmt, counted = FORMATS[name], counts(FORMATS[name])
    assert counted["finite_codes"] + counted["nan_codes"] + counted["infinity_codes"] == 2**fmt.bits
    assert counted["nan_codes"] == 2 * (2**fmt.mantissa_bits - 1)


@EVERY
def test_all_whole_numbers_up_to_the_last_are_held_and_the_next_is_not(fmt):
    last = counts(fmt)["whole_numbers"]
    some = np.arange(1, last + 1) if last <= 2**24 else last - np.arange(1000)
    numbers = some.astype(np.float64)
    if last <= 2**17:
        assert np.array_equal(decode(encode(numbers, fmt), fmt), numbers)
    else:
        assert np.array_equal(decode(encode(numbers[-1000:], fmt), fmt), numbers[-1000:])
    if fmt.bits < 64:  # float64 cannot ask about 2**53 + 1
        assert float(decode(encode(last + 1.0, fmt), fmt)) != last + 1


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS.values() if fmt.bits in (16, 19)], ids=str)
def test_so_many_decimal_digits_survive_and_one_more_does_not(fmt):
    kept = counts(fmt)["digits_kept"]

    def survives(digits):
        wholes = range(10 ** (digits - 1), 10**digits)
        numbers = np.array([float(f"{whole}e{exponent}") for whole in wholes for exponent in range(-40, 40)])
        numbers = numbers[(fmt.smallest_normal <= numbers) & (numbers <= fmt.max)]
        stored = decode(encode(numbers, fmt), fmt)
        return np.all([f"{a:.{digits - 1}e}" == f"{b:.{digits - 1}e}" for a, b in zip(numbers, stored, strict=True)])

    assert survives(kept)
    assert not survives(kept + 1)


@EVERY_SMALL
def test_so_many_digits_lead_back_to_the_same_value(fmt):
    needed = counts(fmt)["digits_needed"]
    values = np.array([float(value) for value in finite_values(fmt) if value >= Fraction(fmt.smallest_normal)])

    def back(digits):
        return decode(encode(np.array([float(f"{value:.{digits - 1}e}") for value in values]), fmt), fmt)

    assert np.array_equal(back(needed), values)
    if fmt == FLOAT16:
        assert not np.array_equal(back(needed - 1), values)


NUMPY_NAMES = {  # quantity: its name in numpy.finfo and ml_dtypes.finfo
    "max": "max",
    "smallest_normal": "smallest_normal",
    "smallest_subnormal": "smallest_subnormal",
    "eps": "eps",
    "bits": "bits",
    "exponent_bits": "nexp",
    "mantissa_bits": "nmant",
    "emin": "minexp",
}


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "tf32"])
def test_finfo_of_numpy_and_ml_dtypes_agrees(name):
    fmt = FORMATS[name]
    numbers = counts(fmt) | {key: value for key, (value, _) in landmarks(fmt).items()}
    info = ml_dtypes.finfo(oracle_dtype(fmt))
    for quantity, theirs in NUMPY_NAMES.items():
        if quantity in numbers:
            assert float(getattr(info, theirs)) == numbers[quantity], quantity
    if name != "float64":  # NumPy counts one more for the wide formats, ml_dtypes for all
        assert info.maxexp == numbers["emax"] + 1
    assert float(info.tiny) == numbers["smallest_normal"]
    assert float(info.epsneg) == 1 - numbers["largest_below_one"]  # u, except where subnormals come before 1
    assert float(info.min) == numbers.get("lowest", numbers["smallest_normal"])  # E8M0 has no sign


# torch up to 2.13 is wrong: code 0x41 follows that of 1, and means 1.25
TORCH_EPS = {"float8_e5m2fnuz": 0.125} if Version(torch.__version__) < Version("2.15") else {}


def test_the_number_after_1_in_e5m2fnuz_is_not_what_torch_finfo_says():
    codes = torch.tensor([0x40, 0x41], dtype=torch.uint8).view(torch.float8_e5m2fnuz)
    assert codes.float().tolist() == [1.0, 1.25]


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.torch_dtype])
def test_finfo_of_torch_agrees(name):
    fmt, info = FORMATS[name], torch.finfo(FORMATS[name].torch_dtype)
    at = {key: value for key, (value, _) in landmarks(fmt).items()}
    assert (info.max, info.bits) == (at["max"], fmt.bits)
    assert info.eps == TORCH_EPS.get(name, at["eps"])
    assert info.min == at.get("lowest", at["smallest_normal"])
    assert info.tiny == info.smallest_normal == at["smallest_normal"]
    assert not hasattr(info, "smallest_subnormal")


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_torchs_resolution_is_made_of_the_digits_kept(name):
    info = torch.finfo(FORMATS[name].torch_dtype)
    assert info.resolution == 10.0 ** -counts(FORMATS[name])["digits_kept"]


def test_the_csv_of_the_book_is_the_table():
    assert CSV.read_text("utf8") == csv_text(), "run: python -m utils.emulation.format_landmarks"


def test_the_csv_reads_back_to_the_same_values():
    rows = read_csv(csv_text())
    found = {(row["format"], row["quantity"]): row for row in rows}
    assert len(found) == len(rows) == sum(len(counts(f)) + len(landmarks(f)) for f in FORMATS.values())
    for fmt in FORMATS.values():
        assert {name: int(found[fmt.name, name]["decimal"]) for name in COUNTS} == counts(fmt)
        for name, (value, code) in landmarks(fmt).items():
            row = found[fmt.name, name]
            assert repr(float(row["decimal"])) == repr(value)
            assert row["code"] == "" if code is None else int(row["code"], 16) == code
            assert row["hex"] == "" if not math.isfinite(value) else float.fromhex(row["hex"]) == value


def test_the_csv_says_what_its_columns_are():
    assert csv_text().startswith(f"# {HEADER[0]}\n")
    assert "float16,max,65504,0x1.ffc0000000000p+15,0x7BFF\n" in csv_text()
    assert "float8_e8m0fnu,smallest_normal,5.877471754111438e-39,0x1.0000000000000p-127,0x00\n" in csv_text()
    assert "float4_e2m1fn,eps,0.5,0x1.0000000000000p-1,\n" in csv_text()
