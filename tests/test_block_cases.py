"""Blocks that torchao quantized (tests/block_cases.json, written by tests/block_cases.py), and where we differ."""

import json
from pathlib import Path

import numpy as np
import pytest

from utils.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E8M0FNU, FORMATS, decode, encode
from utils.scaling import SCALINGS, quantize_blocks, quantize_tiles

RECORD = json.loads((Path(__file__).parent / "block_cases.json").read_text("utf8"))
RULES = {"FLOOR": "floor", "RCEIL": "rceil", "CEIL": "ceil-log2", "EVEN": "round"}
CASES = [pytest.param(case, id=f"{case['fmt']} {case['mode']}") for case in RECORD["mx"]]


def floats(rows: list[str]) -> np.ndarray:
    return np.array([np.frombuffer(bytes.fromhex(row), "<f4") for row in rows])


def octets(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np.uint8)


def mx(rows: np.ndarray, case: dict):
    return quantize_blocks(rows, FORMATS[case["fmt"]], rule=RULES[case["mode"]])


def test_the_cases_cover_every_rule_and_every_element_format():
    assert len(RECORD["mx"]) == 4 * 5
    assert len(RECORD["rows"]) > 40


@pytest.mark.parametrize("case", CASES)
def test_mx_blocks_have_the_codes_of_torchao(case):
    q = mx(floats(RECORD["rows"]), case)
    np.testing.assert_array_equal(encode(q.stored, FLOAT8_E8M0FNU).reshape(-1), octets(case["scales"]))
    np.testing.assert_array_equal(encode(q.values, q.fmt).reshape(-1), octets(case["codes"]))


def test_nvfp4_blocks_have_the_codes_of_torchao():
    q = quantize_tiles(floats(RECORD["nvfp4_rows"]), FLOAT4_E2M1FN, SCALINGS["nvfp4"])
    np.testing.assert_array_equal(encode(q.stored, FLOAT8_E4M3FN).reshape(-1), octets(RECORD["nvfp4"]["scales"]))
    np.testing.assert_array_equal(encode(q.values, q.fmt).reshape(-1), octets(RECORD["nvfp4"]["codes"]))


# Where we differ


def odd(case: dict, reason: str):
    """Return the row, what we make of it, and the codes of torchao's scale and values."""
    row = floats([RECORD["odd_rows"][reason]])
    return row, mx(row, case), int(octets(case["odd"][reason]["scales"])[0]), octets(case["odd"][reason]["codes"])


def test_torchao_takes_the_logarithm_in_float32_and_misses_what_is_an_ulp_past_a_power_of_two():
    case = next(case for case in RECORD["mx"] if (case["fmt"], case["mode"]) == ("float8_e4m3fn", "RCEIL"))
    row, q, scale, _ = odd(case, "1.75 * 2**-3 and an ulp")
    assert encode(q.stored, FLOAT8_E8M0FNU).item() == scale + 1
    assert np.abs(row).max() / 2.0 ** (scale - 127) > FLOAT8_E4M3FN.max  # theirs saturates, if only by an ulp


def test_torchao_divides_by_more_than_it_stores_where_that_is_subnormal_in_float32():
    case = next(case for case in RECORD["mx"] if (case["fmt"], case["mode"]) == ("float8_e5m2", "FLOOR"))
    row, q, scale, codes = odd(case, "2**-112")
    assert scale == encode(q.stored, FLOAT8_E8M0FNU).item() == 0
    assert (q.dequantize()[0, 0], row[0, 0]) == (-(2.0**-112), -(2.0**-112))
    assert decode(codes[0], q.fmt) == q.values[0, 0] / 2  # by 2**-126 where 2**-127 is stored: half of it comes back


@pytest.mark.parametrize("case", CASES)
def test_an_infinity_has_no_say_in_our_scale_and_takes_all_of_torchaos(case):
    row, q, scale, _ = odd(case, "infinity")
    assert scale >= 127 + 128 - FORMATS[case["fmt"]].emax  # 2**120 for E4M3: its neighbours become 0
    assert q.stored.item() <= 1.0
    assert q.values[0, 3] == q.fmt.max
    without = row.copy()
    without[0, 3] = 0.0
    assert (np.delete(q.values, 3) == np.delete(mx(without, case).values, 3)).all()


@pytest.mark.parametrize("case", CASES)
def test_a_nan_stays_alone_here_and_takes_its_block_with_it_in_torchao(case):
    row, q, scale, _ = odd(case, "nan")
    assert scale == FLOAT8_E8M0FNU.nan_code
    assert np.isfinite(q.stored).all()
    assert np.flatnonzero(np.isnan(q.values)).tolist() == np.flatnonzero(np.isnan(row)).tolist() == [3]
