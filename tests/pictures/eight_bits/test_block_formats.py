"""The picture of `eight_bits/block_formats` shows what is stored: the outlier's block is lost, and no other."""

import numpy as np

from utils.formats import FLOAT4_E2M1FN
from utils.pictures.eight_bits.block_formats import AT, COUNT, HIGHEST, ROWS, VALUES, outlier_and_neighbours
from utils.scaling import SCALINGS, quantize_tiles


def lost(ax):
    """The places of the dots: values that became 0."""
    return next(line for line in ax.lines if line.get_marker() == "o").get_xdata().astype(int).tolist()


def test_all_neighbours_of_the_outlier_become_0():
    for ax, (_, _, block) in zip(outlier_and_neighbours().axes[1:], ROWS, strict=True):
        start = AT // block * block
        assert set(range(start, start + block)) - {AT} <= set(lost(ax))
        elsewhere = [at for at in lost(ax) if not start <= at < start + block]
        assert len(elsewhere) < 6
        assert ax.get_title("right") == f"{len(lost(ax))} become 0"


def test_the_bars_are_the_stored_values():
    for ax, (name, _, _) in zip(outlier_and_neighbours().axes[1:], ROWS, strict=True):
        stored = quantize_tiles(VALUES[None], FLOAT4_E2M1FN, SCALINGS[name]).dequantize()[0]
        bars = [bar.get_height() for bar in ax.patches]
        np.testing.assert_allclose(bars, np.clip(stored[stored != 0], -HIGHEST, HIGHEST))
        assert any(text.get_text().endswith(f"{stored[AT]:.3g}") for text in ax.texts)


def test_a_bracket_for_each_scale():
    for ax, (_, _, block) in zip(outlier_and_neighbours().axes[1:], ROWS, strict=True):
        assert sum(len(line.get_xdata()) == 4 for line in ax.lines) == COUNT // block
