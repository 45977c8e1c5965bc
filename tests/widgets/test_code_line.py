"""CodeLine in Python: the order of the codes, what is said of each, and what is refused."""

import html
import math
import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from tests.page_states import state_of
from utils.formats import FORMATS, decode
from utils.widgets.code_line import CodeLine
from utils.widgets.code_line.facts import LINE_FORMATS, census_text, codes_in_order, reading, value_in_short


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_the_order_holds_each_code_once_and_its_values_grow(name):
    fmt = FORMATS[name]
    codes = codes_in_order(fmt)
    assert sorted(codes) == list(range(2**fmt.bits))
    values = [value for value in decode(np.array(codes), fmt).tolist() if not math.isnan(value)]
    assert values == sorted(values)
    assert all(a < b for a, b in pairwise(values) if (a, b) != (0.0, 0.0))


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_the_census_is_that_of_ml_dtypes(name):
    fmt = FORMATS[name]
    values = np.arange(2**fmt.bits, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float64)
    least = float(ml_dtypes.finfo(getattr(ml_dtypes, name)).smallest_normal)
    counts = Counter({"NaN": int(np.isnan(values).sum()), "infinit": int(np.isinf(values).sum())})
    finite = np.abs(values[np.isfinite(values)])
    counts["zero"] = int((finite == 0).sum())
    counts["subnormal"] = int(((finite > 0) & (finite < least)).sum())
    counts[" normal"] = int((finite >= least).sum())
    said = census_text(fmt)
    assert said.startswith(f"{2**fmt.bits} codes: ")
    for word, count in counts.items():
        assert (f"{count} {word.strip()}" in said.split(": ")[1]) == (count > 0), (word, said)


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("float8_e4m3fn", 0x7E, "E4M3 0x7E is 448, its largest value. Its only neighbour is 416, at a distance of 32."),
        ("float8_e4m3fn", 0xFF, "E4M3 0xFF is NaN: its bits after the sign are all 1."),
        (
            "float8_e4m3fn",
            0x38,
            "E4M3 0x38 is 1, a normal number. Its neighbours are 0.9375 and 1.125, at distances of 0.0625 and 0.125.",
        ),
        (
            "float8_e4m3fn",
            0x87,
            "E4M3 0x87 is −0.013671875, minus its largest subnormal number. Its neighbours are "
            "−0.015625 and −0.01171875, each at a distance of 2⁻⁹.",
        ),
        (
            "float8_e5m2",
            0x7B,
            "E5M2 0x7B is 57,344, its largest value. Its only neighbour is 49,152, at a distance of 8,192.",
        ),
        ("float8_e5m2", 0xFC, "E5M2 0xFC is −∞: its exponent bits are all 1 and its fraction is 0."),
        ("float8_e5m2", 0x7D, "E5M2 0x7D is NaN: its exponent bits are all 1 and its fraction is not 0."),
        (
            "float8_e5m2",
            0x03,
            "E5M2 0x03 is 1.5 × 2⁻¹⁵, its largest subnormal number. Its neighbours are 2⁻¹⁵ and "
            "2⁻¹⁴, each at a distance of 2⁻¹⁶.",
        ),
        ("float8_e4m3fnuz", 0x80, "E4M3FNUZ 0x80 is NaN: the code that would be −0 is the only NaN of E4M3FNUZ."),
        (
            "float8_e8m0fnu",
            0x00,
            "E8M0 0x00 is 2⁻¹²⁷, its smallest normal number. Its only neighbour is 2⁻¹²⁶, at a distance of 2⁻¹²⁷.",
        ),
        ("float8_e8m0fnu", 0xFF, "E8M0 0xFF is NaN: its bits are all 1."),
        (
            "float4_e2m1fn",
            0x1,
            "E2M1 0x1 is 0.5, its only subnormal number. Its neighbours are 0 and 1, each at a distance of 0.5.",
        ),
        (
            "float4_e2m1fn",
            0x8,
            "E2M1 0x8 is −0, its zero with a sign. Its neighbours are −0.5 and 0.5, each at a distance of 0.5.",
        ),
    ],
)
def test_a_code_is_read_in_words(name, code, says):
    assert reading(code, FORMATS[name]) == says


def read_back(text):
    """The number that a value's text means, exactly."""
    found = re.fullmatch(r"(−?)(?:([\d.,]+)|(?:([\d.]+) × )?2([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))", text)
    sign, decimal, significand, power = found.groups()
    exponent = int((power or "⁰").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    size = Fraction((decimal or significand or "1").replace(",", "")) * Fraction(2) ** exponent
    return -size if sign else size


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_the_text_of_a_value_is_exact(name):
    for value in decode(np.arange(2 ** FORMATS[name].bits), FORMATS[name]).tolist():
        if math.isfinite(value):
            assert read_back(value_in_short(value)) == Fraction(value), value_in_short(value)


def test_the_other_lines_say_what_they_store():
    widget = CodeLine(["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"], code=0x7E)
    assert {name: (fate.kind, fate.stored) for name, fate in widget.fates.items()} == {
        "float8_e5m2": ("exact", 448),
        "float4_e2m1fn": ("saturated", 6),
    }
    assert CodeLine(code=0x80).fates["float8_e5m2"].kind == "exact"
    assert CodeLine(format="float8_e5m2", code=0x7B).fates["float8_e4m3fn"].kind == "overflow"


def test_it_starts_at_one():
    for name in LINE_FORMATS:
        assert decode(CodeLine([name]).code, FORMATS[name]) == 1
    assert repr(CodeLine(code=0x7E)) == (
        "CodeLine(['float8_e4m3fn', 'float8_e5m2'], 'E4M3 0x7E is 448, its largest value. Its only neighbour is 416, "
        "at a distance of 32.')"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"formats": []}, "formats is empty"),
        ({"formats": ["float16"]}, "format 'float16' is not one of float8_e4m3fn, "),
        ({"formats": ["float8_e5m2"] * 2}, "are not 1 to 4 different ones"),
        ({"formats": LINE_FORMATS[:5]}, "are not 1 to 4 different ones"),
        ({"format": "float4_e2m1fn"}, "format 'float4_e2m1fn' is not one of the lines float8_e4m3fn, float8_e5m2"),
        ({"code": 256}, "code 256 is not in 0 to 255"),
        ({"formats": ["float4_e2m1fn"], "code": 16}, "code 16 is not in 0 to 15"),
        ({"axis": "polar"}, "axis 'polar' is not one of logarithmic, linear"),
        ({"view": "negative"}, "view 'negative' is not one of all, positive, near"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        CodeLine(**arguments)


def test_a_refused_choice_changes_nothing_and_a_page_sends_all_at_once():
    widget = CodeLine()
    with pytest.raises(ValueError, match="code 300"):
        widget.code = 300
    assert widget.code == 0x38
    widget.set_state({"formats": ["float4_e2m1fn"], "format": "float4_e2m1fn", "code": 7})
    assert widget.sentence == "E2M1 0x7 is 6, its largest value. Its only neighbour is 4, at a distance of 2."


def test_the_static_form_and_the_state():
    widget = CodeLine()
    page = html.unescape(widget.static_html())
    assert widget.sentence in page
    rows = re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td><td>(.*?)</td>", page)
    assert rows == [
        ("E4M3", "256 codes: 238 normal, 14 subnormal, 2 zeros, 2 NaN", "448"),
        ("E5M2", "256 codes: 240 normal, 6 subnormal, 2 zeros, 2 infinities, 6 NaN", "57,344"),
    ]
    assert state_of(widget) == {
        "axis": "logarithmic",
        "code": 0x38,
        "format": "float8_e4m3fn",
        "formats": ["float8_e4m3fn", "float8_e5m2"],
        "view": "all",
    }
