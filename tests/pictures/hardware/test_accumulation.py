"""The picture of `hardware/accumulation` says what its numbers say."""

import numpy as np
import pytest

from utils.pictures.hardware.accumulation import BITS, PRODUCT, REGISTER, TOTALS, _kept, register_that_cuts
from utils.rounding import quantize, toward_zero


def test_the_totals_fit_and_the_product_arrives_less_and_less():
    assert [float(quantize(total, REGISTER)) for total in TOTALS] == list(TOTALS)
    arrived = [_kept(PRODUCT, total) / PRODUCT for total in TOTALS]
    assert arrived[0] == 1 > arrived[1] > arrived[2]
    for total in TOTALS:  # the sums stay in their binade, so what is cut of a sum is what is cut of the product
        assert float(quantize(total + PRODUCT, REGISTER, rounding=toward_zero)) - total == _kept(PRODUCT, total)


def test_hollow_squares_are_the_bits_that_are_cut():
    bits, course = register_that_cuts(sums=4).axes
    hollow = [line.get_xdata()[0] for line in bits.lines if line.get_markerfacecolor() == "#ffffff"]
    assert sum(2.0**power for power in hollow) == sum(PRODUCT - _kept(PRODUCT, total) for total in TOTALS)
    assert {patch.get_width() for patch in bits.patches} == {BITS}
    ends = {line.get_ydata()[-1] for line in course.lines}
    assert min(ends) == pytest.approx(100 * (1 - 0.066), abs=0.3)
    assert all(np.sort(list(ends))[1:] > 99.5)
