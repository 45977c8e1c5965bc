"""ScaleExplorer in Python: scaled, rounded and taken back as utils.scaling does; words; what is refused."""

import html
import math
import re

import numpy as np
import pytest
import torch

from tests.page_states import state_of
from utils.formats import FLOAT8_E4M3FN, FORMATS
from utils.rounding import sqnr_db
from utils.scaling import SCALINGS, quantize_tiles
from utils.widgets.scale_explorer import ScaleExplorer
from utils.widgets.scale_explorer.facts import MOST_VALUES, SCALED_FORMATS, carry, curve_range, db_text, number_in_short

TENSORS = ("weights", "activations", "gradients", "one outlier")


@pytest.mark.parametrize("name", SCALED_FORMATS)
@pytest.mark.parametrize("tensor", TENSORS)
def test_with_the_exact_scale_it_is_a_tensor_scaled_by_its_amax(name, tensor):
    widget = ScaleExplorer(tensor=tensor, format=name)
    expected = quantize_tiles(widget.values, FORMATS[name], SCALINGS["tensor"])
    assert widget.scale == expected.scale[0, 0]
    assert widget.carried.inv_scale == expected.inv_scale[0, 0]
    assert np.array_equal(widget.carried.stored, expected.values)
    assert np.array_equal(widget.carried.back, expected.dequantize())


@pytest.mark.parametrize("name", SCALED_FORMATS)
def test_the_counts_add_up_and_are_those_of_rounded_values(name):
    x = np.float32([0, 1e-30, 3e-6, 0.01, 1, 6, 500, 7e4, -7e4])
    for saturate in (False, True):
        carried = carry(x, FORMATS[name], 1, saturate=saturate)
        counts = carried.counts
        assert sum(counts.values()) == x.size
        assert counts["already"] == 1
        assert counts["zero"] == int((carried.stored == 0).sum()) - 1
        lost = ~np.isfinite(carry(x, FORMATS[name], 1, saturate=False).stored)
        assert counts["past"] == (int(lost.sum()) if FORMATS[name].has_nan else int((np.abs(x) > 7.75).sum()))


def test_the_curve_has_a_plateau_a_slope_and_a_cliff():
    widget = ScaleExplorer(tensor="weights")
    curve = widget.curve
    best = max(curve.values())
    plateau = [k for k, db in curve.items() if db > best - 1]
    assert plateau == list(range(plateau[0], plateau[-1] + 1))
    assert len(plateau) >= 8
    assert curve[plateau[-1] + 3] < best - 15  # saturation
    assert curve[plateau[0] - 6] < best - 15  # underflow
    assert curve[plateau[-1]] == sqnr_db(carry(widget.values, FLOAT8_E4M3FN, 2.0 ** plateau[-1]).back, widget.values)


def test_the_curve_holds_scale_1_and_the_exact_one():
    for tensor in TENSORS:
        for name in SCALED_FORMATS:
            widget = ScaleExplorer(tensor=tensor, format=name)
            span = curve_range(widget.carried.amax, FORMATS[name])
            assert 0 in span
            assert span[0] <= math.log2(widget.scale) <= span[-1]


def test_an_outlier_makes_the_ratio_good_and_the_median_bad():
    carried = ScaleExplorer(tensor="one outlier", format="float4_e2m1fn").carried
    assert carried.db > 60
    assert carried.median_error == 1
    assert carried.counts["zero"] == 255


@pytest.mark.parametrize(
    ("values", "chosen", "says"),
    [
        (
            [1, 448],
            {},
            "E4M3, scale 1: amax 448 lands at 448, the largest value. Of 2 values none becomes zero, none "
            "is subnormal, none saturates. SQNR: ∞ dB, median error: 0\u00a0%.",
        ),
        (
            [0, 0, 1e-4, 448],
            {},
            "Of 4 values 1 becomes zero, none is subnormal, none saturates. (2 were zero already.) "
            "SQNR: 133.0 dB, median error: 100\u00a0%.",
        ),
        (
            [0.01, 448],
            {"rule": "hand", "log2_scale": 1},
            "amax 448 lands at 896, past the largest value, 448. Of 2 "
            "values none becomes zero, none is subnormal, 1 saturates. SQNR: 6.0 dB, median error: 50\u00a0%.",
        ),
        (
            [0.01, 448],
            {"rule": "hand", "log2_scale": 1, "saturate": False},
            "1 becomes NaN. SQNR: none, median error: –.",
        ),
        ([1, 3e5], {"format": "float8_e5m2", "rule": "hand", "saturate": False}, "1 becomes ∞. SQNR: none"),
        ([2.0**-6, 448], {}, "none is subnormal"),  # the smallest normal number itself
        ([2.0**-6 - 2.0**-20, 448], {}, "1 is subnormal"),
        ([1, 460], {"rule": "hand"}, "lands at 460, which is rounded to the largest value, 448."),
        ([1, 448], {"margin": 2}, "scale 0.25: amax 448 lands at 112, below the largest value, 448."),
        ([1, 300], {"rule": "power_of_two"}, "scale 1: amax 300 lands at 300, below"),
        ([1, 7], {"format": "float4_e2m1fn", "rule": "hand", "saturate": False}, "1 saturates. SQNR: 17.0 dB"),
    ],
)
def test_the_sentence_says_what_the_scale_does(values, chosen, says):
    assert says in ScaleExplorer({"x": values}, **chosen).sentence


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (448, "448"),
        (57344, "57,344"),
        (17715.2, "17,720"),
        (0.0625, "0.0625"),
        (2.0**-15, "2⁻¹⁵"),
        (-(2.0**20), "−2²⁰"),
        (1.5e-5, "1.5\u00a0×\u00a010⁻⁵"),
        (0, "0"),
        (math.nan, "NaN"),
        (-math.inf, "−∞"),
        (0.0019531, "0.001953"),
    ],
)
def test_a_number_has_few_digits(number, text):
    assert number_in_short(number) == text


def test_a_ratio_has_one_decimal():
    assert [db_text(x) for x in (31.649, 0.0, -0.01, -2.5, math.inf)] == [
        "31.6 dB",
        "0.0 dB",
        "0.0 dB",
        "−2.5 dB",
        "∞ dB",
    ]
    assert [db_text(x) for x in (math.nan, -math.inf)] == ["none", "none"]


def test_of_many_values_the_largest_is_kept():
    x = np.random.default_rng(1).normal(size=(100, 77)).astype(np.float32)
    x[3, 5] = -99.25
    widget = ScaleExplorer({"x": x})
    assert widget.values.size == MOST_VALUES
    assert widget.carried.amax == 99.25
    assert np.isin(widget.values, x).all()  # to the bit, after their way through decimals
    same = ScaleExplorer({"x": torch.tensor(x)})
    assert same.tensors == widget.tensors
    half = ScaleExplorer({"x": torch.tensor(x).bfloat16().requires_grad_()})
    assert half.carried.amax == 99.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tensors": {}}, "tensors is empty"),
        ({"tensors": {"x": []}}, "the values are all zero, or none"),
        ({"tensors": {"x": [0.0, 0.0]}}, "the values are all zero, or none"),
        ({"tensors": {"x": [1.0, math.nan]}}, "the values hold an infinity or NaN"),
        ({"tensors": {"x": [1e39]}}, "the values hold an infinity or NaN"),
        ({"tensor": "biases"}, "tensor 'biases' is not one of weights, activations, gradients, one outlier"),
        ({"format": "bfloat16"}, "format 'bfloat16' is not one of float16, float8_e4m3fn, "),
        ({"rule": "amax"}, "rule 'amax' is not one of exact, power_of_two, hand"),
        ({"log2_scale": 101}, "log2_scale 101 is not in -100 to 100"),
        ({"margin": 11}, "margin 11 is not in 0 to 10"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ScaleExplorer(**arguments)


def test_a_refused_choice_changes_nothing():
    widget = ScaleExplorer()
    with pytest.raises(ValueError, match="tensor 'biases'"):
        widget.tensor = "biases"
    assert widget.tensor == "weights"
    widget.set_state({"tensor": "gradients", "rule": "hand", "log2_scale": 24})
    assert widget.scale == 2.0**24


def test_the_static_form_and_the_state():
    widget = ScaleExplorer({"x": [0.5, 3]}, source="Two numbers.")
    page = html.unescape(widget.static_html())
    assert widget.sentence in page
    assert "Two numbers." in page
    rows = re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td>", page)
    assert rows == [("E4M3", "149.3"), ("E5M2", "19,110"), ("E2M1", "2")]
    assert state_of(widget)["tensors"] == {"x": [0.5, 3.0]}
    assert repr(widget).startswith("ScaleExplorer('x', 'E4M3, scale 149.3: amax 3 lands at 448, the largest value. ")
    assert "made, with a seed" in ScaleExplorer().source
