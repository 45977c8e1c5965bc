"""Swamping in Python: its numbers are texts, it is checked, and its static form says where the sums stop."""

import re

import pytest

from tests.page_states import states_in
from utils.formats import BFLOAT16, FLOAT16, FLOAT32, FORMATS
from utils.rounding import quantize
from utils.widgets.swamping import SUMMABLE, USUAL, Swamping


def test_it_starts_with_ones_in_bfloat16():
    widget = Swamping()
    assert widget.book_state() == {
        "format": "bfloat16",
        "increment": "1",
        "start": "0",
        "steps": 4096,
        "count": 0,
        "stochastic": False,
        "formats": list(USUAL),
    }
    assert widget.fmt is BFLOAT16


def test_every_format_that_has_room_in_float64_can_be_summed():
    assert set(FORMATS) - set(SUMMABLE) == {"float64", "float8_e8m0fnu"}
    for name in SUMMABLE:
        assert Swamping(name).stored_increment == 1.0


@pytest.mark.parametrize(
    ("text", "fmt", "stored"),
    [
        ("0.1", BFLOAT16, 0.10009765625),
        ("1/3", FLOAT16, 0.333251953125),
        ("-1e-3", BFLOAT16, -0.00099945068359375),
        ("0.1", FLOAT32, float(quantize(0.1, FLOAT32))),
        # 2**-60 above the tie of bfloat16, and 2**-80: float64 would make a tie of it
        ("1.00390625000000000086736173798840354720596224069595336914062", BFLOAT16, 1.0078125),
        (f"{2**88 + 2**80 + 1}/{2**88}", BFLOAT16, 1.0078125),
        (f"{2**88 + 2**80 - 1}/{2**88}", BFLOAT16, 1.0),
    ],
)
def test_an_increment_is_rounded_once_from_its_text(text, fmt, stored):
    assert Swamping(fmt.name, text).stored_increment == stored
    assert Swamping(fmt.name, start=text).stored_start == stored


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(format="float64"), "format 'float64' is not one of float32, "),
        (dict(format="float8_e8m0fnu"), "format 'float8_e8m0fnu' is not one of"),
        (dict(formats=["half"]), "format 'half' is not one of"),
        (dict(increment="one"), "increment 'one' is not a finite number like"),
        (dict(increment="inf"), "increment 'inf' is not a finite number"),
        (dict(start="1/0"), "start '1/0' is not a finite number"),
        (dict(format="float16", increment="1e-9"), "increment '1e-9' is 0 in float16; choose another format or number"),
        (dict(format="float8_e4m3fn", increment="1e400"), "is beyond the largest value, 448.0 in float8_e4m3fn"),
        (dict(format="float16", increment="7e4"), "is beyond the largest value, 65504.0 in float16"),
        (dict(format="float16", start="7e4"), "start '7e4' is beyond the largest value, 65504.0 in float16"),
        (dict(steps=0), "steps 0 is not in 1 to 1000000"),
        (dict(steps=10**7), "steps 10000000 is not in 1 to 1000000"),
        (dict(count=-1), "count -1 is not in 0 to"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Swamping(**arguments)


def test_the_state_that_the_page_sends_is_taken():
    widget = Swamping()
    widget.set_state({"format": "float32", "increment": "1/8", "start": "-0.5", "count": 2**24 + 1})
    assert (widget.stored_increment, widget.stored_start, widget.count) == (0.125, -0.5, 2**24 + 1)


def test_a_page_without_javascript_says_where_the_sums_stop_and_why():
    text = Swamping().static_html()
    assert (
        "it stops at 256. There the gap to the next number is 2, and the increment is half of that gap, a tie" in text
    )
    assert "<th>adding 1 stops at</th><th>adding 1/4 stops at</th>" in text
    for label, value in [("float16", 2048), ("bfloat16", 256), ("E4M3", 16), ("E5M2", 8), ("TF32", 2048)]:
        assert f"<tr><th>{label}</th><td>{value}</td><td>{value // 4}</td></tr>" in text
    assert "<tr><th>float32</th><td>16777216</td><td>4194304</td></tr>" in text


def test_the_static_form_follows_start_and_increment():
    text = Swamping("bfloat16", "1e-3", start="1").static_html()
    assert "1e-3 is added again and again, from 1 on: it stops at 1. There the gap" in text
    assert "is less than half of that gap" in text
    assert "it overflows to NaN." in Swamping("float8_e4m3fn", "32").static_html()
    assert "it overflows to ∞." in Swamping("float16", "64").static_html()
    assert "it overflows to −∞." in Swamping("float16", "-64").static_html()
    assert "<td>0</td>" in Swamping("float32", "1e-9").static_html()  # in float16 that is 0, and nothing grows
    assert Swamping("bfloat16", "1/4").static_html().count("stops at</th>") == 1
    assert "<th>float16</th><td>out of range</td>" in Swamping("float32", "1e5").static_html()


def test_the_place_in_the_page_holds_the_state():
    data = Swamping("float16", "0.1", stochastic=True)._repr_mimebundle_()[0]["text/html"]
    assert data.startswith('<div class="mp-widget" data-mp-widget="swamping"')
    [state] = states_in(data)
    assert (state["format"], state["increment"], state["stochastic"]) == ("float16", "0.1", True)
