"""DragOutlier in Python: its tensor, its numbers, what it refuses, and the table for pages without JavaScript."""

import re

import numpy as np
import pytest

from tests.page_states import states_in
from utils.runs import published
from utils.scaling import SCALINGS
from utils.widgets.drag_outlier import LABELS, DragOutlier
from utils.widgets.drag_outlier.facts import CASES, INDEX, MOST, OUTLIER_FORMATS, loss, tensor

# another draw of N(0, 1): error of the rest by outlier, and of E4M3 under one scale the zeros
MEASURED = {
    ("float8_e4m3fn", "tensor"): "E4M3 tensor",
    ("float8_e4m3fn", "1x128"): "E4M3 1x128",
    ("int8", "tensor"): "INT8 tensor",
    ("int8", "1x128"): "INT8 1x128",
    ("float4_e2m1fn", "tensor"): "E2M1 tensor",
}
OUTLIERS = (0, 30, 300, 3e3, 3e4, 3e5)


def test_the_values_are_nearly_normal():
    x = tensor().astype(float).ravel()
    assert x.shape == (128 * 1024,)
    assert abs(x.mean()) < 5 / np.sqrt(x.size)
    assert abs(x.var() - 1) < 5 * np.sqrt(2 / x.size)
    assert 4 < np.abs(x).max() < 6
    assert tensor().dtype == np.float32


@pytest.mark.parametrize("case", MEASURED, ids=" ".join)
def test_the_errors_are_those_that_were_measured(case):
    # INT8 takes its step from the largest of 131,072 draws, so that another draw differs by a tenth
    tolerance = 0.15 if case[0] == "int8" else 0.03
    measured = published.OUTLIERS[MEASURED[case]]
    assert [loss(*case, outlier).error for outlier in OUTLIERS] == pytest.approx(measured, rel=tolerance)


def test_fp8_under_one_scale_breaks_by_underflow_alone():
    zeros = [loss("float8_e4m3fn", "tensor", outlier).zeros for outlier in OUTLIERS]
    assert zeros == pytest.approx(published.OUTLIER_ZEROS, rel=0.05, abs=1e-3)
    assert loss("float8_e4m3fn", "tensor", 3e3).error < 1.01 * loss("float8_e4m3fn", "tensor", 0).error
    assert loss("int8", "tensor", 30).error > 6 * loss("int8", "tensor", 0).error


def test_a_smaller_tile_keeps_the_damage_small():
    for format in CASES:
        whole, row, block = (loss(format, scaling, 1e4).error for scaling in ("tensor", "row", "1x128"))
        assert block < row <= whole


def test_every_case_has_a_scaling_of_the_book_and_a_label():
    assert set(CASES) == set(OUTLIER_FORMATS) == set(LABELS)
    assert {scaling for scalings in CASES.values() for scaling in scalings} <= set(SCALINGS)
    assert tensor().ravel()[INDEX] != 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(outlier=-1.0), "outlier -1.0 is not in 0 to 1,000,000"),
        (dict(outlier=2e6), "outlier 2000000.0 is not in 0 to 1,000,000"),
        (dict(format="float16"), "format 'float16' is not one of float8_e4m3fn, int8, float4_e2m1fn"),
        (dict(scaling="mx"), "scaling 'mx' is not one that int8 has here: tensor, row, 1x128"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        DragOutlier(**arguments)
    shown = DragOutlier()
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=re.escape(says)):
        setattr(shown, name, value)


def test_a_page_without_javascript_gets_a_table():
    text = DragOutlier().static_html()
    assert "E4M3, one scale per tensor" in text
    rows = re.findall(r"<tr><th scope='row'>(.*?)</th>(.*?)</tr>", text)
    assert [name for name, _ in rows] == ["none", "30", "300", "3,000", "30,000", "300,000"]
    cells = re.findall(r"<td>(.*?)</td>", rows[4][1])
    assert cells[0] == f"{100 * loss('float8_e4m3fn', 'tensor', 3e4).error:.3g} % (5.1 %)"


def test_the_place_in_the_page_holds_the_state():
    shown = DragOutlier(MOST, "float4_e2m1fn", "nvfp4")
    [state] = states_in(shown._repr_mimebundle_()[0]["text/html"])
    assert state == {"outlier": 1e6, "format": "float4_e2m1fn", "scaling": "nvfp4"}
    assert shown.loss == loss("float4_e2m1fn", "nvfp4", MOST)
