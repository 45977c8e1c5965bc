"""EveryFormat in Python: its texts are read exactly, its fates are those of utils.rounding, its state is JSON."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.oracles import SMALL, grid, same_bits
from utils import rounding
from utils.checks.number_text import read_number
from utils.formats import FORMATS, FloatFormat
from utils.rounding import RULES
from utils.widgets.every_format import ORDERS, PRESETS, EveryFormat, error_text
from utils.widgets.shared.numbers.format_fate import fate

ADAM, MASK = Fraction(1, 10**8), -(10**9)


def values_around(fmt: FloatFormat) -> np.ndarray:
    """Ends of the regions, ties, and both float64 neighbours of each, with both signs; float64 values all."""
    last, least, normal = float(rounding.ulp(fmt.max, fmt)), fmt.smallest_subnormal, fmt.smallest_normal
    usual = [
        0.0,
        1.0,
        0.1,
        1 / 3,
        448,
        464,
        65504,
        65520,
        1e-8,
        1e9,
        5e-324,
        1.7976931348623157e308,
        2.0**-25,
        2.0**-24,
    ]
    ones = [fmt.eps, 1 + fmt.eps / 2, 1 + 1.5 * fmt.eps, 2.0**-1022]
    small = [least, least / 2, least / 4, 1.5 * least, 2.5 * least, normal - least, normal - least / 2, normal]
    with np.errstate(over="ignore"):
        large = [fmt.max, *(fmt.max + share * last for share in (-0.5, 0.25, 0.5, 1)), 4 * fmt.max]
        points = np.array([*usual, *ones, *small, *large])
        points = np.concatenate([points, np.nextafter(points, 0), np.nextafter(points, np.inf)])
    return np.unique(np.concatenate([points, -points]))


def as_number(x: float):
    return float(x) if not math.isfinite(x) or x == 0 else Fraction(float(x))


@pytest.mark.parametrize("saturate", [False, True], ids=["overflowing", "saturating"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_what_is_stored_is_what_quantize_gives(fmt, rule, saturate):
    values = np.concatenate([values_around(fmt), [-0.0, np.inf, -np.inf]])
    with np.errstate(over="ignore"):
        expected = rounding.quantize(values, fmt, rounding=getattr(rounding, rule), saturate=saturate)
    got = np.array([float(fate(as_number(x), fmt, rule, saturate).stored) for x in values])
    wrong = np.flatnonzero(~same_bits(got, expected))
    assert wrong.size == 0, f"{values[wrong[0]]!r} became {got[wrong[0]]!r} instead of {expected[wrong[0]]!r}"


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_the_fate_of_a_value_follows_from_the_list_of_all_values(fmt):
    """Ties to even, without saturation: the class of each result is read off the format's sorted values."""
    every = grid(fmt)
    held, end = set(every[:-1]), every[-1]
    tie_past_max = (every[-2] + end) / 2
    tie_stays = fmt.max_code % 2 == 0 and fmt.mantissa_bits > 0  # E4M3FN alone ends on an even code
    for x in values_around(fmt):
        if not np.isfinite(x) or x == 0 or (x < 0 and not fmt.has_zero):
            continue
        got, size = fate(Fraction(float(x)), fmt), abs(Fraction(float(x)))
        if size > tie_past_max or (size == tie_past_max and not tie_stays):
            expected = "overflow" if fmt.has_nan else "saturated"
        elif size in held:
            expected = "subnormal" if size < fmt.smallest_normal else "exact"
        elif size <= every[1] / 2 if fmt.has_zero else size < every[0]:
            expected = "underflow"
        else:
            expected = "subnormal" if abs(got.stored) < fmt.smallest_normal else "rounded"
        assert got.kind == expected, (x, got)


NAMED = [
    ("0.1", "float16", {}, "rounded"),
    ("65504", "float16", {}, "exact"),
    ("65519.99", "float16", {}, "rounded"),
    ("65520", "float16", {}, "overflow: to ∞"),
    ("-65520", "float16", {}, "overflow: to −∞"),
    ("65520", "float16", {"rounding": "toward_zero"}, "rounded"),
    ("65536", "float16", {"rounding": "toward_zero"}, "too large: stops at 65504"),
    ("65536", "float16", {"rounding": "toward_zero", "saturate": True}, "saturated: to 65504"),
    ("-1e9", "float16", {"rounding": "toward_positive"}, "too large: stops at −65504"),
    ("inf", "float16", {}, "kept"),
    ("inf", "float16", {"saturate": True}, "saturated: to 65504"),
    ("1e-8", "float16", {}, "underflow: to 0"),
    ("-1e-8", "float16", {}, "underflow: to −0"),
    ("-1e-8", "float8_e4m3fnuz", {}, "underflow: to 0"),
    ("2^-25", "float16", {}, "underflow: to 0"),  # the tie goes to the even one of 0 and 2^-24
    ("2^-25 + 2^-60", "float16", {}, "subnormal: 1 of 11 bits left"),
    ("2^-24", "float16", {}, "subnormal: 1 of 11 bits left"),
    ("1e-5", "float16", {}, "subnormal: 8 of 11 bits left"),
    ("464", "float8_e4m3fn", {}, "rounded"),
    ("464 + 2^-60", "float8_e4m3fn", {}, "overflow: to NaN (no infinity)"),  # float64 could not tell it from 464
    ("465", "float8_e4m3fn", {"saturate": True}, "saturated: to 448"),
    ("inf", "float8_e4m3fn", {}, "overflow: to NaN (no infinity)"),
    ("1e39", "float32", {"saturate": True}, "saturated: to its largest"),
    ("1e9", "float4_e2m1fn", {}, "saturated: to 6 (no ∞, no NaN)"),
    ("nan", "float4_e2m1fn", {}, "NaN lost: no code for it"),
    ("nan", "float8_e8m0fnu", {}, "kept"),
    ("-1", "float8_e8m0fnu", {}, "cannot hold a sign: NaN"),
    ("0", "float8_e8m0fnu", {}, "cannot hold a zero: NaN"),
    ("2^-140", "float8_e8m0fnu", {}, "underflow: to its smallest"),
    ("1e300", "float8_e8m0fnu", {}, "overflow: to NaN (no infinity)"),
    ("-0", "float8_e4m3fnuz", {}, "sign of zero lost"),
    ("-0", "float16", {}, "exact"),
    ("1/3", "float64", {}, "rounded"),
    ("1e400", "float64", {}, "overflow: to ∞"),
]


@pytest.mark.parametrize(("text", "name", "options", "words"), NAMED)
def test_a_fate_is_called_by_its_name(text, name, options, words):
    assert fate(read_number(text), FORMATS[name], **options).words == words


def test_the_error_is_relative_and_exact():
    assert fate(0.5, FORMATS["float16"]) == fate(Fraction(1, 2), FORMATS["float16"])
    assert fate(Fraction(1, 10), FORMATS["float8_e4m3fn"]).error == Fraction(1, 64)  # 13/128 - 1/10 = 1/640
    assert fate(ADAM, FORMATS["float16"]).error == 1
    assert fate(Fraction(65520), FORMATS["float16"]).error == math.inf
    assert fate(Fraction(465), FORMATS["float8_e4m3fn"]).error is None


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1), "100 %"),
        (Fraction(9999, 10000), "> 99.9 %"),
        (Fraction(1, 64), "1.56 %"),
        (Fraction(1, 10**5), "0.001 %"),
        (Fraction(1, 2**26), "2^-26"),
        (Fraction(2**13), "2^13"),
        (math.inf, "∞"),
        (None, "—"),
    ],
)
def test_an_error_is_given_in_per_cent_or_as_a_power_of_two(error, text):
    assert error_text(error) == text


def test_the_state_is_json_and_has_the_defaults():
    state = json.loads(json.dumps(EveryFormat().book_state()))
    assert state.pop("presets") == [{"value": value, "label": label} for value, label in PRESETS]
    assert state == {
        "value": "0.1",
        "formats": list(FORMATS),
        "rounding": "ties_to_even",
        "saturate": False,
        "order": ORDERS[0],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value": "much"}, "value 'much' is not a number"),
        ({"formats": ["float12"]}, "format 'float12' is not one of float64, float32"),
        ({"rounding": "up"}, "rounding 'up' is not one of ties_to_even"),
        ({"order": "colour"}, "order 'colour' is not one of error, width, range"),
        ({"presets": ["much"]}, "value 'much' is not a number"),
        ({"presets": [("1", "2", "3")]}, "a preset is a text or a pair"),
    ],
)
def test_a_bad_argument_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        EveryFormat(**options)


def test_presets_are_texts_pairs_or_dicts():
    given = ["1", ("2", "two"), {"value": "3", "label": "three"}]
    labels = [preset["label"] for preset in EveryFormat(presets=given).presets]
    assert labels == ["", "two", "three"]


def test_the_fates_follow_the_traits():
    widget = EveryFormat("65520", formats=["float16", "float32"])
    assert {name: fate.kind for name, fate in widget.fates.items()} == {"float16": "overflow", "float32": "exact"}
    widget.saturate = True
    assert widget.fates["float16"].stored == 65504
    widget.value = "-1/4"
    assert widget.fates["float16"].stored == Fraction(-1, 4)


def test_every_preset_shows_an_overflow_an_underflow_or_an_error():
    shown = {fate.kind for value, _ in PRESETS for fate in EveryFormat(value).fates.values()}
    assert shown == {"exact", "rounded", "subnormal", "underflow", "overflow", "saturated", "no_sign"}


def test_the_static_form_is_a_table_of_all_formats():
    text = EveryFormat("65520").static_html()
    assert text.count("<tr>") == 14
    assert "<th scope='row'>float16</th><td>∞</td><td>∞</td><td>overflow: to ∞</td>" in text
    assert "<th scope='row'>TF32</th><td>65536</td><td>0.0244 %</td><td>rounded</td>" in text
    assert "<td>—</td><td>—</td><td>NaN lost" in EveryFormat("nan").static_html()


def test_the_static_form_escapes_what_was_given():
    assert "<" not in EveryFormat("1 + 1").static_html().split("becomes of ")[1].split(" in each")[0]


def test_repr_says_the_value_and_the_modes():
    assert repr(EveryFormat("1/3", saturate=True)) == "EveryFormat('1/3', rounding='ties_to_even', saturate=True)"
