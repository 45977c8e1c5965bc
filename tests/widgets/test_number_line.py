"""NumberLine in Python: texts are read exactly, rounded once, and refused in one sentence where they make no sense."""

import html
import math
import re
from fractions import Fraction

import pytest
import traitlets

from tests.page_states import state_of
from utils.widgets.number_line import RULE_NAMES, RULES, SHORT_LIST, NumberLine

DETERMINISTIC = {name: rule for name, rule in RULES.items() if rule}


@pytest.mark.parametrize(
    "text",
    ["", "inf", "nan", "abc", "1//2", "1,5", "()", "(1", "9^9^9", "1e99999", "n0", "0x", "2^0.5", "1/0", "0^-1", "1 2"],
)
def test_what_is_no_finite_number_is_refused_in_one_sentence(text):
    with pytest.raises(ValueError, match=re.escape(f'{text!r} is not a finite number like "3.1415", "1/3", "2^-24"')):
        NumberLine(x=text)


def test_ties_of_negative_numbers_go_to_the_even_neighbour():
    """-2.5 and -3.5 in gaps of 1: a page that rounds with Math.round gives -2 and -3 (row W37)."""
    assert NumberLine("float4_e2m1fn", "-2.5").results()["ties_to_even"] == ((-2.0, 1),)
    assert NumberLine("float8_e4m3fn", "-9.5").results()["ties_to_even"] == ((-10.0, 1),)
    assert NumberLine("float8_e4m3fn", "-8.5").results()["ties_to_even"] == ((-8.0, 1),)


@pytest.mark.parametrize(
    ("name", "x", "outcomes"),
    [
        ("float8_e4m3fn", "0.3", ((0.28125, Fraction(2, 5)), (0.3125, Fraction(3, 5)))),
        ("float8_e4m3fn", "-0.3", ((-0.3125, Fraction(3, 5)), (-0.28125, Fraction(2, 5)))),
        ("float8_e4m3fn", "0.25", ((0.25, Fraction(1)),)),
        ("float8_e5m2", "63488", ((57344.0, Fraction(1, 4)), (math.inf, Fraction(3, 4)))),
        ("float8_e5m2", "1e6", ((math.inf, Fraction(1)),)),
        ("float4_e2m1fn", "7", ((6.0, Fraction(1)),)),
        ("float8_e8m0fnu", "3", ((2.0, Fraction(1, 2)), (4.0, Fraction(1, 2)))),
        ("float8_e8m0fnu", "2^-130", ((2.0**-127, Fraction(1)),)),
    ],
)
def test_stochastic_rounding_has_the_chances_of_the_distances(name, x, outcomes):
    assert NumberLine(name, x).results()["stochastic"] == outcomes


def test_the_short_list_is_offered_by_default():
    widget = NumberLine("float8_e4m3fn", x="0.3", low="0", high="1")
    assert widget.formats == list(SHORT_LIST)
    assert (widget.low, widget.high, widget.rounding, widget.saturate) == ("0", "1", "ties_to_even", False)
    assert repr(widget) == "NumberLine('float8_e4m3fn', x='0.3', low='0', high='1', rounding='ties_to_even')"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"format": "half"}, "format 'half' is not one of float64, "),
        ({"formats": ["fp8"]}, "format 'fp8' is not one of float64, "),
        ({"rounding": "nearest"}, "rounding 'nearest' is not one of ties_to_even, "),
        ({"x": "three"}, "x: 'three' is not a finite number"),
        ({"x": ""}, "x: '' is not a finite number"),
        ({"low": "0", "high": "∞"}, "high: '∞' is not a finite number"),
        ({"low": "0"}, "low and high come together, got '0' and ''"),
        ({"low": "1", "high": "1"}, "low '1' is not below high '1'"),
        ({"low": "1", "high": "-2"}, "low '1' is not below high '-2'"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused_in_one_sentence(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        NumberLine(**arguments)


def test_a_number_in_place_of_its_text_is_refused():
    with pytest.raises(traitlets.TraitError, match="unicode string"):
        NumberLine(x=0.3)


def test_a_refused_x_changes_nothing():
    widget = NumberLine(x="1/3")
    with pytest.raises(ValueError, match="x: 'junk'"):
        widget.x = "junk"
    assert widget.x == "1/3"


def test_the_page_sends_its_state():
    widget = NumberLine()
    widget.set_state({"x": "2^-24", "low": "0", "high": "1", "rounding": "toward_zero", "saturate": True})
    assert widget.results()["toward_zero"] == ((2.0**-24, 1),)
    assert widget.rounding == "toward_zero"


def test_the_static_form_says_where_the_six_rules_send_x():
    page = html.unescape(NumberLine("float8_e4m3fn", x="464").static_html())
    assert "a line with the values of E4M3" in page
    assert "x = 464:" in page
    rows = dict(re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td>", page))
    assert rows == {
        "ties to even": "448",
        "ties away": "NaN",
        "toward zero": "448",
        "toward +∞": "NaN",
        "toward −∞": "448",
        "stochastic": "448 with 50 %, NaN with 50 %",
    }
    assert list(rows) == list(RULE_NAMES.values())


def test_the_state_of_the_page_is_json():
    state = state_of(NumberLine(x="1/3"))
    assert (state["format"], state["x"], state["low"], state["rounding"]) == ("float16", "1/3", "", "ties_to_even")
