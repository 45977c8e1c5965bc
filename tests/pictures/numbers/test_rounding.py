"""The picture of `numbers/rounding` says what its numbers say."""

from utils.formats import BFLOAT16
from utils.pictures.numbers.rounding import addend_and_gap
from utils.rounding import quantize


def test_an_addend_moves_the_small_total_and_is_lost_in_the_large_one():
    upper, lower = addend_and_gap().axes
    dots = [next(line for line in ax.lines if line.get_marker() == "o").get_xdata()[0] for ax in (upper, lower)]
    assert dots == [float(quantize(2.3, BFLOAT16)), 256.0]
    said = [[text.get_text() for text in ax.texts] for ax in (upper, lower)]
    assert "+0.3" in said[0]
    assert "+0.3" in said[1]
    assert "halfway" not in said[0]
    assert "halfway" in said[1]
