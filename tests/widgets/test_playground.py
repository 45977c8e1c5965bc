"""Playground in Python: its setups, its presets, the static form, and the reference training."""

import html
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from utils.formats import FORMATS, decode
from utils.rounding import RULES, quantize
from utils.widgets.playground import Playground
from utils.widgets.playground.presets import BFLOAT16_GAP, CHAPTERS, E4M3_LAST, E4M3_MAX, PRESETS, TOUR
from utils.widgets.playground.training.data import points_of
from utils.widgets.playground.training.elementary import sigmoid, softplus, tanh
from utils.widgets.playground.training.reference import CAST, COUNTS, ReferenceNet, Rounder
from utils.widgets.playground.training.setup import DATA, NAMES, TENSORS, Setup

BOOK = Path(__file__).parents[2] / "book"
X = np.concatenate([np.linspace(-30, 30, 2001), 10.0 ** np.arange(-300, 3), -(10.0 ** np.arange(-300, 3))])


def test_exp_tanh_and_log_are_right_to_a_few_ulps():
    with np.errstate(over="ignore"):
        exact = np.tanh(X), 1 / (1 + np.exp(-X)), np.logaddexp(0, X)
    for ours, theirs in zip((tanh(X), sigmoid(X), softplus(X)), exact, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-15, atol=0)
    edges = np.array([np.inf, -np.inf, np.nan, -0.0, 800.0, -800.0])
    np.testing.assert_array_equal(tanh(edges), [1, -1, np.nan, -0.0, 1, -1])
    np.testing.assert_array_equal(sigmoid(edges), [1, 0, np.nan, 0.5, 1, 0])
    np.testing.assert_array_equal(softplus(edges)[[0, 1, 2, 4, 5]], [np.inf, 0, np.nan, 800, 0])


@pytest.mark.parametrize("kind", DATA)
def test_the_points_are_in_two_classes_of_about_one_size(kind):
    points = points_of(kind)
    assert points.shape == (512, 3)
    assert np.abs(points[:, :2]).max() <= 1
    assert 0.25 < points[:, 2].mean() < 0.75


@pytest.mark.parametrize("rule", RULES)
def test_a_rounder_is_quantize(rule):
    rounded = Rounder(FORMATS["float8_e5m2"], rule)(X)
    np.testing.assert_array_equal(rounded, quantize(X, FORMATS["float8_e5m2"], RULES[rule]))


@pytest.mark.parametrize("name", CAST)
def test_a_cast_has_the_bits_of_quantize(name):
    fmt = FORMATS[name]
    rng = np.random.default_rng(0)
    spread = rng.standard_normal(20_000) * 2.0 ** rng.integers(fmt.emin - 30, fmt.emax + 3, 20_000)
    codes = rng.integers(0, fmt.max_code, 20_000, dtype=np.uint64)
    ties = (decode(codes, fmt) + decode(codes + np.uint64(1), fmt)) / 2
    end = float(fmt.max) + 2.0 ** (fmt.emax - fmt.mantissa_bits - 1)  # from here on it is infinite
    edges = [end, np.nextafter(end, 0), 1e300, np.inf, 0.0, 5e-324]
    x = np.concatenate([X, spread, ties, np.nextafter(ties, np.inf), np.nextafter(ties, 0), edges])
    x = np.concatenate([x, -x])
    bits = Rounder(fmt, "ties_to_even")(x).view(np.uint64)
    np.testing.assert_array_equal(bits, quantize(x, fmt, RULES["ties_to_even"]).view(np.uint64))
    assert np.isnan(Rounder(fmt, "ties_to_even")(np.array([np.nan]))).all()


def test_stochastic_draws_are_one_stream_however_they_are_asked_for():
    x = np.full(1000, 1 + 2**-4)
    whole = Rounder(FORMATS["float8_e4m3fn"], "stochastic", 7)(x)
    parts = Rounder(FORMATS["float8_e4m3fn"], "stochastic", 7)
    np.testing.assert_array_equal(np.concatenate([parts(x[:300]), parts(x[300:])]), whole)
    assert set(whole) == {1.0, 1.125}
    assert whole.mean() == pytest.approx(1 + 2**-4, abs=0.006)


def test_a_product_rounds_after_each_term():
    ones = np.ones((1, 4096))
    assert Rounder(FORMATS["bfloat16"], "ties_to_even").product(ones, ones) == 256
    assert Rounder(FORMATS["float16"], "ties_to_even").product(ones, ones) == 2048
    assert Rounder(FORMATS["float32"], "ties_to_even").product(ones, ones) == 4096


def test_the_float32_network_is_that_of_torch():
    import torch

    setup = Setup()
    net = ReferenceNet(setup)
    layers = [torch.tensor(layer.kept, dtype=torch.float64, requires_grad=True) for layer in net.layers]
    rows, label = net.points[:8, :2], torch.tensor(net.points[:8, 2])
    x = torch.tensor(rows)
    for weights in layers:
        z = torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64)], 1) @ weights.T
        x = z.tanh()
    torch.nn.functional.binary_cross_entropy_with_logits(z[:, 0], label).backward()
    net.now = dict.fromkeys(COUNTS, 0)
    inputs, outputs = net.forward(rows, net.activations, net.accumulator)
    np.testing.assert_allclose(outputs, z[:, 0].detach(), rtol=1e-5)
    net.layers[-1].delta = ((sigmoid(outputs) - net.points[:8, 2]) / 8)[:, None]
    net._backward(inputs)
    for ours, theirs in zip(net.layers, layers, strict=True):
        np.testing.assert_allclose(ours.gradient, theirs.grad, rtol=1e-4, atol=1e-6)


def test_a_dynamic_scale_halves_at_an_overflow_and_doubles_after_good_steps():
    net = ReferenceNet(Setup(scale="dynamic", growth=20).change(formats={"gradients": "float8_e4m3fn"}))
    scales = []
    for _ in range(80):
        net.step()
        scales.append(net.scale)
    assert scales[0] == 2.0**15
    assert net.skipped == sum(later < earlier for earlier, later in zip([2.0**16, *scales], scales, strict=False))
    assert {later / earlier for earlier, later in itertools.pairwise(scales)} <= {0.5, 1.0, 2.0}
    assert 2.0 in {later / earlier for earlier, later in itertools.pairwise(scales)}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_a_setup_that_the_page_offers(preset):
    widget = Playground(preset.name)
    assert Setup(**widget.setup) == preset.setup
    assert widget.watched == preset.watched


def test_a_task_begins_with_a_preset_and_has_hints():
    names = {preset.name for preset in PRESETS}
    assert len({task.id for task in TOUR}) == len(TOUR) == 6
    assert all(task.preset in names and task.hints for task in TOUR)


def test_a_solved_task_leads_to_a_chapter_by_its_title():
    for chapter, title in CHAPTERS.items():
        cells = json.loads((BOOK / f"{chapter}.ipynb").read_text("utf8"))["cells"]
        assert "".join(cells[0]["source"]).splitlines()[0] == f"# {title}"
    assert {task.chapter for task in TOUR} == {"", *CHAPTERS}


def test_the_numbers_in_the_words_are_those_of_the_formats():
    e4m3 = FORMATS["float8_e4m3fn"]
    assert quantize(np.array([E4M3_LAST]), e4m3)[0] == E4M3_MAX == 448
    assert np.isnan(quantize(np.array([np.nextafter(E4M3_LAST, 500)]), e4m3)[0])
    assert quantize(np.array([1 + 0.51 * BFLOAT16_GAP]), FORMATS["bfloat16"])[0] == 1 + BFLOAT16_GAP
    assert quantize(np.array([1 + 0.49 * BFLOAT16_GAP]), FORMATS["bfloat16"])[0] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "moons"}, "data 'moons' is not one of spiral, circle, corners"),
        ({"scale": 1000.0}, r"scale 1000.0 is not a power of two from 2 to 2\*\*24"),
        ({"scale": "static"}, "scale 'static' is not one of none, dynamic"),
        ({"rate": 1.0}, "rate 1.0 is not one of 0.001"),
        ({"formats": {"gradients": "float8_e8m0fnu"}}, "format of gradients 'float8_e8m0fnu' is not one of float32"),
        ({"formats": {"master": "float16"}}, "format of master 'float16' is not one of None, float32"),
        ({"rules": {"moments": "odd"}}, "rounding of moments 'odd' is not one of ties_to_even"),
    ],
)
def test_a_setup_that_is_not_offered_is_one_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        Setup().change(**changes)


def test_a_widget_refuses_what_it_does_not_have():
    with pytest.raises(ValueError, match="preset 'fp4' is not one of"):
        Playground("fp4")
    with pytest.raises(ValueError, match="tensor 'bias' is not one of"):
        Playground(watched="bias")
    with pytest.raises(ValueError, match="batch 3 is not one of"):
        Playground().setup = vars(Setup()) | {"batch": 3}


def test_the_static_form_lists_the_settings():
    text = Playground().static_html()
    assert all(html.escape(preset.says) in text for preset in PRESETS)


def test_every_format_of_a_knob_has_exact_products():
    assert "float32" in NAMES
    assert "float64" not in NAMES
    assert all(2 * FORMATS[name].precision <= 53 for name in NAMES)
    assert set(TENSORS) < set(Setup().formats)
    assert math.isclose(Setup().rate, 0.01)
