"""The picture of `numbers/stability` says what its numbers say."""

import math

import numpy as np
import pytest

from utils import plots
from utils.pictures.numbers.stability import shifted_scores


def test_only_the_largest_score_overflows_and_after_the_shift_none_does():
    left, right = shifted_scores().axes
    points = [[line for line in ax.lines if line.get_marker() == "o"] for ax in (left, right)]
    assert [point.get_color() == plots.SIGN for point in points[0]] == [False, False, True]
    assert [point.get_color() == plots.SIGN for point in points[1]] == [False, False, False]
    for point in points[0] + points[1]:
        assert point.get_ydata()[0] == pytest.approx(math.exp(point.get_xdata()[0]))


def test_the_ratios_stay():
    left, right = (
        [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "o"] for ax in shifted_scores().axes
    )
    assert [a / b for a, b in zip(left, right, strict=True)] == pytest.approx([math.exp(12)] * 3)


def test_the_labels_are_what_float16_stores():
    left, right = ([text.get_text() for text in ax.texts] for ax in shifted_scores().axes)
    assert left == [f"{float(np.float16(math.exp(x))):.0f}" for x in (10, 11)] + ["∞"] == ["22032", "59872", "∞"]
    assert right[:3] == [f"{float(np.float16(math.exp(x))):.2g}" for x in (-2, -1, 0)]
