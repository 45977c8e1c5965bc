"""The picture of `numbers/limits` says what its numbers say."""

import math

import pytest

from utils.formats import FORMATS
from utils.pictures.numbers import limits
from utils.rounding import quantize


def test_each_bar_reaches_from_the_smallest_to_the_largest_number_of_its_format():
    (ax,) = limits.two_ends().axes
    for row, name in enumerate(limits.SHOWN):
        fmt = FORMATS[name]
        bars = [bar for bar in ax.patches if bar.get_y() < row < bar.get_y() + bar.get_height()]
        pale, full = sorted(bars, key=lambda bar: bar.get_x())
        ends = pale.get_x(), full.get_x(), full.get_x() + full.get_width()
        assert ends == pytest.approx([math.log2(x) for x in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.max)])


def test_every_mark_lies_outside_float16_and_inside_bfloat16():
    narrow, wide = FORMATS["float16"], FORMATS["bfloat16"]
    for value, _ in limits.MARKS:
        assert not narrow.smallest_subnormal / 2 < abs(value) <= narrow.max
        assert wide.smallest_normal < abs(value) < wide.max


def test_a_bar_that_the_picture_cuts_has_an_arrow_at_each_end():
    (ax,) = limits.two_ends().axes
    inside = [text for text in ax.texts if text.get_text() in "←→"]
    wide = [row for row, name in enumerate(limits.SHOWN) if FORMATS[name].max > 2.0**limits.HIGH]
    assert sorted(text.get_position()[1] for text in inside) == sorted(2 * wide)
    for row in wide:
        assert FORMATS[limits.SHOWN[row]].smallest_subnormal < 2.0**limits.LOW


def test_the_number_that_labels_a_bar_is_a_number_of_that_format():
    (ax,) = limits.two_ends().axes
    labels = [text.get_text() for text in ax.texts if ": " in text.get_text()]
    assert len(labels) == len(limits.SHOWN)
    for label, name in zip(labels, limits.SHOWN, strict=True):
        shown, largest = float(label.partition(": ")[2]), FORMATS[name].max
        assert shown == pytest.approx(largest, rel=2e-3)
        assert math.isfinite(quantize(shown, FORMATS[name]))
