"""Update in Python: what is stored after one update and after many, and what the widget refuses."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.page_states import states_in
from utils.accumulation import kahan_sum, running_sum
from utils.formats import BFLOAT16, FLOAT16, FLOAT32, FORMATS
from utils.rounding import quantize, toward_zero
from utils.training.optimizers import Kahan, Master, Nearest
from utils.widgets.update import HOLDABLE, KEEPINGS, USUAL, Update, gap_beside, kahan_updated, updated


def test_it_starts_with_a_lost_update_in_bfloat16():
    widget = Update()
    assert widget.book_state() == {
        "weight": "1",
        "update": "0.001",
        "format": "bfloat16",
        "keeping": "ties_to_even",
        "count": 1000,
        "formats": list(USUAL),
    }
    assert widget.fmt is BFLOAT16
    assert (widget.stored("ties_to_even"), float(widget.share)) == (1.0, 0.256)


def test_a_thousand_updates_are_lost_or_kept_as_the_facts_say():
    """Facts 3.7: 1 + 1000 x 1e-3 in bfloat16 is 1.0 with ties to even, 2.0 with Kahan; in float16 1e-4 is lost."""
    got = {keeping: Update().stored(keeping, 1000) for keeping in KEEPINGS if keeping != "stochastic"}
    assert got == {"ties_to_even": 1.0, "toward_zero": 1.0, "kahan": 2.0, "master": 2.0}
    assert Update("1", "1e-4", "float16").stored("ties_to_even", 1000) == 1.0


@pytest.mark.parametrize(
    ("weight", "share", "stored"),
    [("1", 0.0256, 1.0), ("0.05", 0.8192, 0.050048828125), ("0.001", 26.2144, 0.0010986328125)],
)
def test_the_same_update_is_lost_beside_a_large_weight_and_kept_beside_a_small_one(weight, share, stored):
    """Row W28: the test is relative to the gap at w, not to eps."""
    widget = Update(weight, "1e-4")
    assert (float(widget.share), widget.stored("ties_to_even")) == (share, stored)


def test_below_a_power_of_two_half_a_gap_is_half_as_wide():
    assert (gap_beside(1.0, BFLOAT16, below=False), gap_beside(1.0, BFLOAT16, below=True)) == (2**-7, 2**-8)
    assert (gap_beside(-1.0, BFLOAT16, below=False), gap_beside(-1.0, BFLOAT16, below=True)) == (2**-8, 2**-7)
    assert gap_beside(1.5, BFLOAT16, below=True) == gap_beside(1.5, BFLOAT16, below=False) == Fraction(1, 128)
    assert gap_beside(0.0, FLOAT16, below=True) == gap_beside(2.0**-14, FLOAT16, below=True) == Fraction(2) ** -24
    assert updated(1.0, Fraction(-3, 2**10), BFLOAT16, "ties_to_even") == 1 - 2**-8
    assert updated(1.0, Fraction(3, 2**10), BFLOAT16, "ties_to_even") == 1.0


@pytest.mark.parametrize("name", HOLDABLE)
@pytest.mark.parametrize("update", [1 / 8, 3 / 1024, -(2.0**-9), 2.0**-14])
def test_the_steps_are_those_of_the_sums_of_the_book(name, update):
    fmt, start = FORMATS[name], float(quantize(0.75, FORMATS[name]))
    totals, compensations = kahan_sum(np.full(40, update), fmt, start=start)
    for count in range(1, 41):  # up to the first time that kahan_sum has to round update + c too
        weight, c = kahan_updated(start, Fraction(update), fmt, count)
        assert (weight, c) == (totals[count - 1], -compensations[count - 1])  # c is added here, subtracted there
        if float(quantize(update + c, fmt)) != update + c:
            break
    for keeping, rule in (("ties_to_even", {}), ("toward_zero", {"rounding": toward_zero})):
        expected = running_sum(np.full(40, update), fmt, start=start, **rule)[-1]
        assert updated(start, Fraction(update), fmt, keeping, 40) == expected
    master = running_sum(np.full(40, update), FLOAT32, start=start)[-1]
    assert updated(start, Fraction(update), fmt, "master", 40) == quantize(master, fmt)


@pytest.mark.parametrize(("name", "dtype"), [("bfloat16", torch.bfloat16), ("float16", torch.float16)])
@pytest.mark.parametrize("store", [Nearest(), Kahan(), Master()], ids=["ties_to_even", "kahan", "master"])
@pytest.mark.parametrize("update", [3 / 1024, -(2.0**-9), 2.0**-13, 5 * 2.0**-12])
def test_the_steps_are_those_of_the_optimizers(name, dtype, store, update):
    """Updates of few bits: float32, in which the optimizer adds, is as good as exact for them."""
    weight = torch.tensor([0.75], dtype=dtype)
    state = store.begin(weight)
    for number in range(60):
        new = store.value(weight, state)
        new += update  # in place, as the optimizer does
        store.keep(new, weight, state, number=number)
    keeping = {Nearest: "ties_to_even", Kahan: "kahan", Master: "master"}[type(store)]
    assert weight.item() == updated(0.75, Fraction(update), FORMATS[name], keeping, 60)
    if keeping == "kahan":
        assert state["compensation"].item() == -kahan_updated(0.75, Fraction(update), FORMATS[name], 60)[1]


def test_an_update_is_never_rounded_on_its_way():
    """2**-8 is half a gap above 1, a tie; 2**-100 more is not, and float64 would not see it."""
    assert Update(update="2^-8").stored("ties_to_even") == 1.0
    assert Update(update="2^-8 + 2^-100").stored("ties_to_even") == 1 + 2**-7


def test_what_leaves_the_range_becomes_what_the_format_has():
    assert Update("65504", "1e4", "float16").stored("ties_to_even") == math.inf
    assert math.isnan(Update("448", "100", "float8_e4m3fn").stored("ties_to_even"))
    assert Update("448", "100", "float8_e4m3fn").stored("toward_zero") == 448
    assert not math.isfinite(Update("65504", "1e4", "float16").stored("kahan", 10))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(format="float64"), "format 'float64' is not one of float32, "),
        (dict(format="float8_e8m0fnu"), "format 'float8_e8m0fnu' is not one of"),
        (dict(formats=["half"]), "format 'half' is not one of"),
        (dict(weight="one"), "weight 'one' is not a finite number like"),
        (dict(update="inf"), "update 'inf' is not a finite number"),
        (dict(update="1/0"), "update '1/0' is not a finite number"),
        (dict(weight="7e4", format="float16"), "weight '7e4' is beyond the largest value, 65504.0 in float16"),
        (dict(keeping="luck"), "keeping 'luck' is not one of ties_to_even, "),
        (dict(count=7), "count 7 is not one of 1, 10, 100, 1000"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Update(**arguments)


def test_a_page_without_javascript_says_what_is_stored():
    text = Update().static_html()
    assert "One update of 0.001 with ties to even gives 1: the update is 0.256 of half the gap" in text
    assert "After 1000 such updates, exactly 2:" in text
    for name, stored in [("ties to even", "1"), ("Kahan, a second number beside it", "2")]:
        assert f"<tr><th>{name}</th><td>{stored}</td></tr>" in text
    assert "After one update, exactly 0.4997:" in Update("0.5", "-1e-3*0.3", count=1).static_html()


def test_the_place_in_the_page_holds_the_state():
    data = Update("0.5", "-1e-3*0.3", keeping="kahan")._repr_mimebundle_()[0]["text/html"]
    assert data.startswith('<div class="mp-widget" data-mp-widget="update"')
    [state] = states_in(data)
    assert (state["weight"], state["update"], state["keeping"]) == ("0.5", "-1e-3*0.3", "kahan")
