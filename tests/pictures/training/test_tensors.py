"""The picture of `training/tensors` says what its numbers say."""

import pytest
import torch
from matplotlib.colors import to_hex

from utils import plots
from utils.emulation.exponent_histogram import histogram
from utils.pictures.training.tensors import exponents_and_windows

KINDS = ["weights", "activations", "activation gradients", "weight gradients", "updates"]


def bars(figure):
    """The bars of the histograms, as (exponent, colour) from top to bottom and left to right."""
    return [
        (round(bar.get_x() + bar.get_width() / 2 - 0.5), to_hex(bar.get_facecolor()))
        for bar in figure.axes[0].patches
        if bar.get_width() == pytest.approx(0.86)
    ]


def texts(figure):
    return [text.get_text().replace("\n", " ") for text in figure.axes[0].texts]


def test_the_recorded_kinds_stand_below_each_other_and_one_loses_a_tenth():
    shown = texts(exponents_and_windows())
    assert [text for text in shown if text in KINDS] == KINDS
    assert [text for text in shown if "lost" in text] == ["10 % lost"]


def test_the_windows_are_those_of_casts():
    figure = exponents_and_windows()
    shown = texts(figure)
    assert "float16: 11 bits" in shown
    assert "bfloat16: 8 bits" in shown
    assert "$2^{-134}$ ←" in shown
    assert "→ $2^{128}$" in shown
    below, above = torch.tensor(2.0**-25), torch.tensor(2.0**-25 * 1.01)
    assert (below.half(), above.half() > 0) == (0, True)
    assert (torch.tensor(2.0**-134).bfloat16(), torch.tensor(2.0**-134 * 1.01).bfloat16() > 0) == (0, True)
    window = next(bar for bar in figure.axes[0].patches if to_hex(bar.get_facecolor()) == plots.LOOKS["float16"].color)
    assert any(bar.get_x() == -25 and bar.get_width() == 41 for bar in figure.axes[0].patches), window


def test_what_float16_makes_zero_has_another_colour_and_its_share_is_that_of_a_cast():
    x = torch.tensor([2.0**-27, 2.0**-26, 2.0**-24, 1.0])
    figure = exponents_and_windows({"these": histogram(x)})
    colors = dict(bars(figure))
    lost = {-27: plots.SIGN, -26: plots.SIGN}
    assert colors == {e: lost.get(e, plots.EXPONENT) for e in range(-27, 1)}
    assert f"{100 * (x.half() == 0).float().mean().item():.0f} % lost" in texts(figure)
