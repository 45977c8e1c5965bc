"""The picture of `eight_bits/fp8` says what its numbers say."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from utils import plots
from utils.pictures.eight_bits import fp8


def dots(figure):
    """The dots, as (row, power of two, colour)."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return [(line.get_ydata()[0], line.get_xdata()[0], to_hex(line.get_color())) for line in lines]


def test_the_numbers_below_are_what_torch_stores_and_the_dots_above_become_zero():
    figure = fp8.values_onto_codes()
    values = torch.tensor(fp8.VALUES)
    assert not values.to(torch.float8_e4m3fn).float().any()
    stored = (values * 448 / values.max()).to(torch.float8_e4m3fn).float()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert [text for text in texts if text in {f"{x:g}" for x in stored.tolist()}] == [f"{x:g}" for x in stored]
    assert "all become 0" in texts
    assert "times 640,000" in texts
    above = [(power, color) for row, power, color in dots(figure) if row == fp8.ROWS[0]]
    assert [color for _, color in above] == [plots.SIGN] * len(values)
    assert [power for power, _ in above] == pytest.approx(np.log2(fp8.VALUES).tolist())


def test_a_multiplication_moves_all_dots_by_the_same_distance():
    figure = fp8.values_onto_codes()
    above, below = ([power for row, power, _ in dots(figure) if row == wanted] for wanted in fp8.ROWS)
    assert np.subtract(below, above) == pytest.approx(np.log2(640_000))


def test_what_e4m3_holds_is_not_red():
    figure = fp8.values_onto_codes((0.28, 0.003, 2e-5))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "1 becomes 0" in texts
    assert [color for row, _, color in dots(figure) if row == fp8.ROWS[0]].count(plots.SIGN) == 1
