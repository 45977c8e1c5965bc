"""AmaxHistory in Python: what delayed scaling does to a series, what it says, and what it refuses."""

import math
import re

import numpy as np
import pytest

from tests.page_states import states_in
from utils import records
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2
from utils.scaling import scale_from_amax
from utils.widgets.amax_history import AmaxHistory, check_series

MADE_UP = "Made up for a test."
SERIES = {"a": [1.0, 2.0, 4.0, 32.0, 4.0, 4.0, 0.0, 4.0], "b": [3e-5] * 8}
DISTILBERT = "amax-distilbert-32-true-small-imdb-cpu-seed0"


def widget(**kwargs):
    return AmaxHistory(SERIES, MADE_UP, **{"history": 2} | kwargs)


def test_the_first_step_has_the_scale_1_and_each_other_that_of_the_steps_before():
    largest = [1, 2, 4, 32, 32, 4, 4]  # of the last two that are not 0
    expected = [1.0, *(scale_from_amax(amax, FLOAT8_E4M3FN) for amax in largest)]
    assert widget().scales.tolist() == expected
    assert widget(choose="most_recent").scales.tolist()[1:6] == [448 / amax for amax in (1, 2, 4, 32, 4)]
    assert widget(margin=1).scales.tolist()[1:] == [scale / 2 for scale in expected[1:]]


def test_a_step_saturates_where_its_amax_rounds_past_the_largest_value():
    assert widget().saturated.tolist() == [False, True, True, True, False, False, False, False]
    assert not widget(margin=1, history=8).saturated[1]  # 2 where 1 was known: the margin is just enough
    assert widget(margin=1).saturated.tolist().index(True) == 3
    near = AmaxHistory({"a": [448.0, 448.0 * 464 / 448, 448.0 * 466 / 448]}, MADE_UP, history=3, choose="max")
    assert near.saturated.tolist() == [False, False, False]  # 464 is a tie, and goes to 448; then 464 is known
    assert AmaxHistory({"a": [448.0, 466.0]}, MADE_UP).saturated.tolist() == [False, True]


def test_a_spike_multiplies_one_step():
    spiked = widget(tensor="b", spike_step=5, spike=4)
    assert spiked.amaxes.tolist() == [float(np.float32(3e-5)) * (16 if i == 4 else 1) for i in range(8)]
    assert spiked.saturated.tolist() == [i == 4 for i in range(8)]
    assert spiked.scales[5] == scale_from_amax(np.float32(3e-5) * 16, FLOAT8_E4M3FN)


def test_steps_are_told_in_words():
    assert widget(step=1).verdict == (
        "Step 1: nothing is known yet, so the scale is 1. Here the amax is 1, which times 1 is 1: it fits below 448, "
        "and 8.8 binades stay unused."
    )
    assert widget(step=4).verdict == (
        "Step 4: the scale comes from the largest of steps 2 to 3, 4. Here the amax is 32, which times 112 is 3,580, "
        "more than 448: it saturates, and the largest value is cut to 12.5\u00a0% of itself."
    )
    assert widget(step=7).verdict.endswith("Here the amax is 0, which times 112 is 0.")
    assert widget(tensor="b", step=1).verdict.endswith(
        "is 3\u00a0×\u00a010⁻⁵. That rounds to 0, and so does everything else: the step is lost."
    )
    near = AmaxHistory({"a": [448.0, 464.0, 448.0]}, MADE_UP, step=2)
    assert near.verdict.endswith("times 1 is 464, a little past 448: it is rounded to that, not cut.")
    assert widget(step=8).verdict.startswith("Step 8: the scale comes from the largest of steps 5 to 6, 4.")
    assert widget(step=8, choose="most_recent").verdict.startswith("Step 8: the scale comes from step 6, 4.")


def test_the_run_is_told_in_words():
    unused = (math.log2(448) + 3 + 3 + 0) / 4  # steps 1, 5, 6 and 8; step 7 has nothing
    assert widget().summary == (
        "Delayed scaling: 3 of 8 steps saturate, and in step 4 the largest value is cut to 12.5\u00a0% of itself. "
        f"Where nothing saturates, {unused:.1f} binades stay unused on average. Current scaling would leave none "
        "unused and never saturate, but has to find each amax before it rounds."
    )
    assert widget(tensor="b").summary.startswith(
        "Delayed scaling: no step saturates. In step 1 everything becomes 0. "
        "Where nothing saturates, 0.0 binades stay unused"
    )
    twice = AmaxHistory({"a": [1e-5, 2e-20, 1e-5]}, MADE_UP)
    assert twice.lost.tolist() == [True, True, False]
    assert "In 2 steps everything becomes 0." in twice.summary
    assert "one of 8 steps saturates" in widget(tensor="b", spike_step=3).summary


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(tensor="c"), "tensor 'c' is not one of a, b"),
        (dict(format="float16"), "format 'float16' is not one of float8_e4m3fn, float8_e5m2"),
        (dict(formats={"a": "int8"}), "formats has 'int8', which is not one of float8_e4m3fn, float8_e5m2"),
        (dict(choose="mean"), "choose 'mean' is not one of max, most_recent"),
        (dict(history=0), "history 0 is not in 1 to 1024"),
        (dict(margin=-1), "margin -1 is not in 0 to 8"),
        (dict(spike=17), "spike 17 is not in -16 to 16"),
        (dict(step=9), "step 9 is not in 1 to 8, the steps of 'a'"),
        (dict(spike_step=-1), "spike_step -1 is not in 0 to 8, the steps of 'a'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        widget(**arguments)
    shown = widget()
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=re.escape(says)):
        setattr(shown, name, value)


@pytest.mark.parametrize(
    ("series", "says"),
    [
        ({}, "series holds no tensor"),
        ({"a": [1.0, float("nan")]}, "series 'a': the amax of step 2 is nan"),
        ({"a": [-1.0, 1.0]}, "series 'a': the amax of step 1 is -1.0"),
        (
            {"a": [2.0**101, 1.0]},
            "series 'a': the amax of step 1 is 2.5353012e+30; take numbers of 0 to 2**100",
        ),
        ({"a": [1.0, 1.0], "b": [1.0, 1.0, 1.0]}, "series has 2 and 3 steps"),
        ({"a": [1.0]}, "series has 1 steps"),
    ],
)
def test_a_series_that_cannot_be_replayed_is_refused(series, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        check_series(series)


def recorded(**kwargs):
    record = records.load(DISTILBERT)
    found = {"model": "DistilBERT", "recipe": "32-true", "data": "reviews", "device": "a CPU", "date": "2026-11-22"}
    found["series"] = [
        {"kind": kind, "name": name, "values": values}
        for kind, by_name in record.samples["amax"].items()
        for name, values in by_name.items()
    ]  # as utils.experiments.amax_series.of_record gives them, which would import transformers
    return AmaxHistory.of_series(found, **kwargs)


def test_a_recorded_training_is_shown_with_where_it_comes_from():
    shown = recorded(only=("gradients",), tensor="gradients, layer 0, attention.k_lin", format="float8_e5m2")
    assert all(name.startswith("gradients, layer ") for name in shown.series)
    assert shown.source == (
        "Recorded: DistilBERT, recipe 32-true, on reviews; a CPU, 2026-11-22. The scales are replayed."
    )
    assert shown.saturated.any()
    assert recorded(margin=2, tensor=shown.tensor).saturated.sum() < recorded(tensor=shown.tensor).saturated.sum()
    assert (shown.formats[shown.tensor], set(shown.formats.values())) == ("float8_e5m2", {"float8_e5m2"})
    assert recorded(tensor=shown.tensor).format == "float8_e5m2"
    assert recorded(tensor="inputs, layer 0, ffn.lin2").format == recorded().format == "float8_e4m3fn"
    weights = recorded(tensor="weights, layer 0, ffn.lin2", margin=1)
    assert not weights.saturated.any()  # weights move slowly


def test_a_series_that_was_not_finite_is_left_out():
    found = {"model": "m", "recipe": "r", "data": "d", "device": "c", "date": "today"}
    found["series"] = [
        {"kind": "inputs", "name": "model.layers.0.mlp.down_proj", "values": [1.0, 2.0]},
        {"kind": "inputs", "name": "model.layers.1.mlp.down_proj", "values": [1.0, None]},
    ]
    assert list(AmaxHistory.of_series(found).series) == ["inputs, layer 0, mlp.down_proj"]
    with pytest.raises(ValueError, match="series holds no tensor"):
        AmaxHistory.of_series(found, only=("weights",))


def test_a_page_without_javascript_says_what_each_history_does():
    text = widget(format="float8_e5m2").static_html()
    rows = re.findall(r"<tr><th scope='row'>(\d+)</th><td>(.*?)</td>", text)
    assert [row for row, _ in rows] == ["1", "4", "16", "64"]
    assert rows[1][1].startswith("Delayed scaling: 3 of 8 steps saturate")
    assert MADE_UP in text
    assert FLOAT8_E5M2.max > 1000


def test_the_place_in_the_page_holds_the_state():
    [state] = states_in(widget(step=4, spike_step=2)._repr_mimebundle_()[0]["text/html"])
    assert state == {
        "series": SERIES | {"b": [2.99999992e-05] * 8},  # nine digits of the float32 nearest to 3e-5
        "source": MADE_UP,
        "tensor": "a",
        "format": "float8_e4m3fn",
        "formats": {},
        "history": 2,
        "margin": 0,
        "choose": "max",
        "step": 4,
        "spike_step": 2,
        "spike": 6,
    }
