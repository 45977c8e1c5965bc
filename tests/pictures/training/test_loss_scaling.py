"""The picture of `training/loss_scaling` says what its numbers say."""

import pytest
from matplotlib.colors import to_hex

from utils import plots
from utils.formats import FLOAT16
from utils.pictures.training import loss_scaling


def test_what_is_drawn_as_lost_is_what_float16_loses():
    found = loss_scaling._recorded_gradients()
    for ax, power in zip(loss_scaling.gradients_in_window().axes, (0, 16, 32), strict=True):
        zero, infinite = found.flushed(FLOAT16, 2.0**power), found.overflowing(FLOAT16, 2.0**power)
        lost = sum(bar.get_height() for bar in ax.patches if to_hex(bar.get_facecolor()) == plots.SIGN)
        assert lost == pytest.approx(zero + infinite, abs=1e-4)
        said = [text.get_text() for text in ax.texts]
        assert (f"{zero:.0%} become 0" in said) == (power == 0)
        assert (f"{infinite:.0%} become ∞" in said) == (power == 32)
        assert max(zero, infinite) < 1e-4 or power != 16
