"""ScaleCockpit in Python: its scaler against torch's, its sentences against the data, and what it refuses."""

import html
import math
import re

import numpy as np
import pytest
import torch

from tests.page_states import state_of
from tests.watched import SHARES, STEPS, crafted, one, record, run_of_a_scaler
from utils.formats import FLOAT16
from utils.widgets.scale_cockpit import ScaleCockpit, replay, traced_scales
from utils.widgets.shared.plot.binades import ALL, fates_text, histogram_of
from utils.widgets.shared.words.sizes import scale_text, size_text

TRACE, AMAXES = run_of_a_scaler()
SETTINGS = {"init_scale": 65536.0, "growth_interval": 2000, "growth_factor": 2.0, "backoff_factor": 0.5}


def torch_replay(amaxes, *, init_scale, growth_interval, growth_factor, backoff_factor):
    """Let torch.amp.GradScaler go over steps whose one gradient is amax * scale, rounded to float16."""
    scaler = torch.amp.GradScaler(
        "cpu",
        init_scale=init_scale,
        growth_interval=growth_interval,
        growth_factor=growth_factor,
        backoff_factor=backoff_factor,
    )
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scales, skipped = [], []
    for step, amax in enumerate(amaxes, 1):
        scales.append(scaler.get_scale())
        scaler.scale(torch.zeros(()))
        size = math.nan if amax is None else amax * scales[-1]
        weight.grad = torch.tensor([size], dtype=torch.float64).half().float()
        skipped += [step] * (not weight.grad.isfinite())
        scaler.step(optimizer)
        scaler.update()
    return scales, skipped


def scaler_cases():
    """Random series of largest gradients with random settings; the ends of float32 and of float16 among them."""
    rng = np.random.default_rng(seed=11)
    for _ in range(12):
        settings = {
            "init_scale": float(np.float32(2.0 ** rng.uniform(0, 24))),
            "growth_interval": int(rng.integers(1, 12)),
            "growth_factor": float(rng.choice([2.0, 1.5, 1.1, 4.0])),
            "backoff_factor": float(rng.choice([0.5, 0.25, 0.9, 0.1])),
        }
        amaxes = np.float32(np.exp2(rng.normal(0, 4, 150))).astype(float).tolist()
        for step in rng.integers(0, 150, 5):
            amaxes[step] = None
        yield amaxes, settings
    yield [0.0] * 40, {**SETTINGS, "init_scale": 2.0**120, "growth_interval": 2}  # growth ends before infinity
    yield [None] * 300, SETTINGS  # the scale goes to 0 in float32
    yield [65520 / 65536, math.nextafter(65520 / 65536, 0)], SETTINGS


@pytest.mark.parametrize(("amaxes", "settings"), list(scaler_cases()))
def test_the_replay_makes_the_decisions_of_torch(amaxes, settings):
    assert replay(amaxes, **settings) == torch_replay(amaxes, **settings)


def test_a_trace_says_what_each_step_used():
    trace = {"init": 8, "growth_interval": 2, "steps": 6, "changes": [[1, 4], [3, 8], [6, 16]], "skipped": [1]}
    assert traced_scales(trace) == [8, 4, 4, 8, 8, 8]
    assert traced_scales(TRACE) == replay(AMAXES, **SETTINGS | {"growth_interval": 50})[0]


def test_the_settings_are_those_of_the_trace():
    widget = ScaleCockpit(record(), TRACE, amaxes=AMAXES)
    assert (widget.init_scale, widget.growth_interval, widget.growth_factor) == (65536.0, 50, 2.0)
    assert widget.simulated == (traced_scales(TRACE), TRACE["skipped"])
    assert widget.recorded["kinds"] == ["activation gradients", "weight gradients"]
    assert set(widget.recorded["histograms"]) == set(widget.recorded["kinds"])
    assert (widget.step, widget.kind, widget.group, widget.log2_scale) == (300, "activation gradients", ALL, None)
    assert ScaleCockpit(record()).growth_interval == 2000


def test_the_sentence_is_that_of_the_nearest_watched_step_at_the_scale_of_the_scaler():
    widget = ScaleCockpit(record(), TRACE, amaxes=AMAXES, step=70)
    assert (widget.watched_step, widget.scaler_scale) == (50, 2.0**14)
    histogram = histogram_of(record(), "activation gradients", ALL, 50)
    assert widget.sentence == fates_text(histogram, FLOAT16, 14)
    widget.log2_scale = 3
    assert widget.sentence == fates_text(histogram, FLOAT16, 3)


@pytest.mark.parametrize(
    ("widget", "says"),
    [
        (
            lambda: ScaleCockpit(one(SHARES), log2_scale=27),
            "Step 1 is taken: the largest of all gradients, 1.22 × 10⁻⁴, times 2²⁷ is 16384. It fits below 65520.",
        ),
        (
            lambda: ScaleCockpit(one(SHARES), log2_scale=30),
            "Step 1 would be skipped: the largest of all gradients, 1.22 × 10⁻⁴, times 2³⁰ is 131070. It overflows,"
            " and one overflow is enough.",
        ),
        (
            lambda: ScaleCockpit(one(crafted([1], 0, infinite=1))),
            "Step 1 would be skipped: a gradient was infinite or NaN when it was recorded.",
        ),
        (
            lambda: ScaleCockpit(one(SHARES), amaxes=[math.inf, 1.0], step=1),
            "Step 1 would be skipped: a gradient was infinite or NaN when it was recorded.",
        ),
        (
            lambda: ScaleCockpit(one(SHARES), amaxes=[0.5, 65520 / 65536], step=2),
            "Step 2 would be skipped: the largest of all gradients, 1, times 2¹⁶ is 65520. It overflows, and one"
            " overflow is enough.",
        ),
        (
            lambda: ScaleCockpit(one(SHARES), amaxes=[0.5, 1e-9], step=2),
            "Step 2 is taken: the largest of all gradients, 1 × 10⁻⁹, times 2¹⁶ is 6.55 × 10⁻⁵. It fits below 65520.",
        ),
    ],
)
def test_the_verdict_is_about_the_largest_gradient_of_all(widget, says):
    assert widget().verdict.replace("\u00a0", " ") == says


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (65520.0, "65500"),
        (0.00123456, "0.00123"),
        (9.999e-4, "1 × 10⁻³"),
        (2.5e6, "2.5 × 10⁶"),
        (999999.0, "1000000"),
        (1.25e-30, "1.25 × 10⁻³⁰"),
    ],
)
def test_a_size_has_three_digits(x, text):
    assert size_text(x).replace("\u00a0", " ") == text


def test_a_scale_is_a_power_of_two_where_it_is_one():
    assert [scale_text(x) for x in (1.0, 65536.0, 0.5, 98304.0)] == ["1", "2¹⁶", "2⁻¹", "98300"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"trace": {"init": 1}}, "trace has no growth_interval; it needs init, growth_interval, steps, "),
        ({"trace": {**TRACE, "steps": 0}}, "trace: init, growth_interval and steps must be positive"),
        ({"trace": {**TRACE, "changes": [[5, 2.0], [4, 1.0]]}}, "trace: changes and skipped must name steps in 1"),
        ({"trace": {**TRACE, "skipped": [301]}}, "trace: changes and skipped must name steps in 1 to 300"),
        ({"trace": {**TRACE, "changes": [[5, 0.0]]}}, "every scale in changes must be a positive number"),
        ({"trace": TRACE, "amaxes": [1.0]}, "amaxes has 1 steps, the trace 300; they are of one run"),
        ({"amaxes": [1.0, -2.0], "step": 1}, "amaxes: -2.0 of step 2 is not a number of 0 or more"),
        ({"kind": "weights"}, "kind 'weights' is not one of activation gradients, weight gradients"),
        ({"group": "layer 9"}, "group 'layer 9' has no activation gradients"),
        ({"step": 301}, "step 301 is not in 1 to 300, the steps of the run"),
        ({"log2_scale": -1}, "log2_scale -1 is not in 0 to 32"),
        ({"init_scale": 0.0}, "init_scale 0.0 is not a power of two within float32"),
        ({"init_scale": 1000.0}, "init_scale 1000.0 is not a power of two within float32"),
        ({"init_scale": 2.0**128}, "init_scale 3.402823669209385e+38 is not a power of two within float32"),
        ({"growth_interval": 0}, "growth_interval 0 is not 1 or more"),
        ({"growth_factor": 1.0}, "growth_factor 1.0 is not a power of two above 1"),
        ({"growth_factor": 1.5}, "growth_factor 1.5 is not a power of two above 1"),
        ({"backoff_factor": 1.0}, "backoff_factor 1.0 is not a power of two below 1"),
        ({"backoff_factor": -0.5}, "backoff_factor -0.5 is not a power of two below 1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ScaleCockpit(record(), **arguments)


def test_a_record_without_gradients_is_refused():
    with pytest.raises(ValueError, match="recorded has no gradients, only weights"):
        ScaleCockpit(one(SHARES, kind="weights"))


def test_the_page_sends_its_state():
    widget = ScaleCockpit(record(), TRACE, amaxes=AMAXES)
    widget.set_state({"step": 12, "log2_scale": 20, "growth_interval": 7, "kind": "weight gradients"})
    assert widget.verdict.startswith("Step 12 would be skipped")
    widget.set_state({"log2_scale": None})
    assert widget.scale == widget.simulated[0][11]


def test_the_static_form_says_what_each_loss_scale_does():
    widget = ScaleCockpit(record(), TRACE, amaxes=AMAXES)
    page = html.unescape(widget.static_html())
    assert widget.verdict in page
    assert widget.sentence in page
    rows = dict(re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td>", page))
    assert list(rows) == ["1", "2⁸", "2¹⁶", "2²⁴"]
    assert f"float16, scale 2⁸: {rows['2⁸']}" == fates_text(widget.histogram, FLOAT16, 8)


def test_the_state_of_the_page_is_json_without_infinities():
    widget = ScaleCockpit(record(), amaxes=[1.0] * (STEPS[-1] - 1) + [math.inf])
    state = state_of(widget)
    assert state["amaxes"][-1] is None
    assert state["log2_scale"] is None
