"""BitFlip in Python: its code is an int, it is checked, and it keeps its value when the format changes."""

import html
import math
import re

import pytest
import traitlets

from tests.page_states import state_of
from utils.formats import FORMATS, decode
from utils.widgets.bit_flip import BitFlip, Goal
from utils.widgets.shared.words.code_words import formula_text, value_text


def test_it_starts_at_one_in_float16():
    widget = BitFlip()
    assert (widget.format, widget.code, widget.value, widget.solved) == ("float16", 0x3C00, 1.0, [])
    assert repr(widget) == "BitFlip('float16', code=0x3c00, value=1.0)"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_starts_at_one(name):
    assert BitFlip(name).value == 1.0


def test_the_code_is_an_int_in_python_and_hexadecimal_text_on_the_wire():
    widget = BitFlip("float64", 0x3FF0000000000001)  # a JavaScript number would lose the last bit
    assert widget.get_state()["code"] == "0x3ff0000000000001"
    widget.set_state({"code": "0x3ff0000000000003"})
    assert widget.code == 0x3FF0000000000003
    assert widget.value == 1 + 3 * 2.0**-52


def test_the_code_can_be_set():
    widget = BitFlip()
    widget.code = 0x3E40
    assert widget.value == 1.5625


@pytest.mark.parametrize("code", [-1, 2**16])
def test_a_code_that_does_not_fit_is_refused_and_changes_nothing(code):
    widget = BitFlip()
    with pytest.raises((ValueError, traitlets.TraitError), match=r"too long|code"):
        widget.code = code
    assert widget.code == 0x3C00


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"format 'half' is not one of float64, .*float4_e2m1fn"):
        BitFlip("half")
    widget = BitFlip()
    with pytest.raises(ValueError, match="format 'fp16'"):
        widget.format = "fp16"
    with pytest.raises(ValueError, match="format 'fp16'"):
        BitFlip(formats=["fp16"])


@pytest.mark.parametrize(
    ("name", "value"),
    [("bfloat16", 0.10009765625), ("float8_e4m3fn", 0.1015625), ("float64", 0.0999755859375), ("float4_e2m1fn", 0.0)],
)
def test_setting_the_format_keeps_the_value_rounded(name, value):
    widget = BitFlip("float16", 0x2E66)  # 0.0999755859375
    widget.format = name
    assert widget.value == value


def test_a_nan_becomes_zero_where_the_format_has_none():
    widget = BitFlip("float16", 0x7E00)
    assert math.isnan(widget.value)
    widget.format = "float6_e3m2fn"
    assert widget.value == 0.0


def test_the_page_sends_format_and_code_together():
    widget = BitFlip("float16", 0x3C00)
    widget.set_state({"format": "float8_e4m3fn", "code": "0x2a"})
    assert (widget.format, widget.code, widget.value) == ("float8_e4m3fn", 0x2A, 0.3125)
    widget.set_state({"format": "float64", "code": "0x3fd0000000000000"})
    assert widget.value == 0.25


def test_the_format_can_be_set_again_after_the_page_has_set_it():
    widget = BitFlip("float16", 0x3C00)
    widget.set_state({"format": "float8_e4m3fn", "code": "0x2a"})
    widget.format = "float16"
    assert widget.value == 0.3125


def test_solved_goals_are_readable():
    widget = BitFlip(goals=[Goal("bits/a", "Make 2.", value="2")])
    widget.set_state({"solved": ["bits/a"]})
    assert widget.solved == ["bits/a"]


def test_goals_may_be_dicts_and_travel_without_empty_fields():
    widget = BitFlip(goals=[{"id": "bits/a", "text": "Make 2.", "value": "2", "hints": ["Count."]}])
    goal = {"id": "bits/a", "text": "Make 2.", "value": "2", "hints": ["Count."], "format": "float16"}
    assert widget.goals == [goal]


def test_a_goal_may_bring_the_words_that_end_it():
    widget = BitFlip(goals=[Goal("bits/a", "Make 2.", value="2", solved="The power is 1.")])
    assert widget.goals[0]["solved"] == "The power is 1."


def test_the_compact_form_is_chosen_in_python():
    assert BitFlip().compact is False
    assert BitFlip(compact=True).book_state()["compact"] is True


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ({"id": "a", "text": "t"}, "either a value or a kind"),
        ({"id": "a", "text": "t", "value": "1", "kind": "nan"}, "either a value or a kind"),
        ({"id": "a", "text": "t", "kind": "biggest"}, "kind 'biggest' is not one of zero, "),
        ({"id": "a", "text": "t", "value": "one"}, "value 'one' is not a number"),
        ({"id": "a", "text": "t", "value": "1/0"}, "value '1/0' is not a number"),
        ({"id": "a", "text": "t", "value": "1", "format": "half"}, "format 'half'"),
        ({"id": "", "text": "t", "value": "1"}, "needs an id and a text"),
        ({"id": "a", "text": "t", "value": "1", "hint": "x"}, "a goal has no hint"),
    ],
)
def test_a_goal_that_cannot_be_checked_is_refused(goal, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        BitFlip(goals=[goal])


def test_two_goals_with_one_id_are_refused():
    with pytest.raises(ValueError, match="one id"):
        BitFlip(goals=[Goal("a", "t", value="1"), Goal("a", "u", value="2")])


@pytest.mark.parametrize(
    ("name", "code", "formula"),
    [
        ("float16", 0x3E40, "(−1)^0 × 2^(15 − 15) × (1 + 576/1024)"),
        ("float16", 0x8001, "(−1)^1 × 2^(1 − 15) × (0 + 1/1024)"),
        ("float16", 0x7C00, "all exponent bits are 1 and the fraction is 0: infinity"),
        ("float16", 0x7C01, "all exponent bits are 1 and the fraction is not 0: NaN"),
        ("float8_e4m3fn", 0x7F, "all bits after the sign are 1: that code is NaN, and E4M3 has no infinity"),
        ("float8_e5m2fnuz", 0x80, "the code that would be −0 is the only NaN of E5M2FNUZ"),
        ("float8_e8m0fnu", 0x00, "2^(0 − 127)"),
    ],
)
def test_the_formula_has_its_numbers_filled_in(name, code, formula):
    assert formula_text(code, FORMATS[name]) == formula


def test_the_static_form_shows_the_bits_by_field_the_value_and_the_formula():
    page = BitFlip("float8_e4m3fn", 0xAA).static_html()
    cells = re.findall(r'mp-bit mp-(\w+)" data-bit="(\d)">(\d)<', page)
    assert [field for field, _, _ in cells] == ["sign", *["exponent"] * 4, *["fraction"] * 3]
    assert "".join(digit for _, _, digit in cells) == "10101010"
    assert "E4M3 code 0xaa is −0.3125: (−1)^1 × 2^(5 − 7) × (1 + 2/8)." in html.unescape(page)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1015625, "0.1015625"), (-0.0, "−0"), (math.inf, "∞"), (math.nan, "NaN"), (5e-324, "about 4.94e−324")],
)
def test_values_are_shown_with_all_digits_where_these_are_few(value, text):
    assert value_text(value) == text


def test_the_state_of_the_page_is_json_with_the_goals():
    widget = BitFlip(goals=[Goal("bits/a", "Make “2” & more.", value="2")])
    state = state_of(widget)
    assert (state["code"], state["format"], state["goals"][0]["text"]) == ("0x3c00", "float16", "Make “2” & more.")
    assert decode(int(state["code"], 16), FORMATS[state["format"]]) == 1.0
