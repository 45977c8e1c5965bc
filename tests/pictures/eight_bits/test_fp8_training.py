"""The picture of `eight_bits/fp8_training` has the times that the model of casts predicts, and its widths lie on both
sides of the break-even."""

import inspect

import pytest

from utils.cost.cards import ROOFS
from utils.cost.fp8_casts import BFLOAT16, break_even, predict_speedup, predicted_ms, square
from utils.pictures.eight_bits.fp8_training import products_and_casts

WIDTHS = inspect.signature(products_and_casts).parameters["widths"].default
H100 = ROOFS["H100 SXM"]


def test_each_pair_of_bars_has_the_ratio_of_the_two_predictions():
    (ax,) = products_and_casts().axes
    ends = [bars[-1].get_x() + bars[-1].get_width() for bars in (c.patches for c in ax.containers)]
    for place, width in enumerate(WIDTHS):
        _, wide, _, narrow = ends[4 * place : 4 * place + 4]
        assert wide == pytest.approx(1)
        assert 1 / narrow == pytest.approx(predict_speedup(square(width), "fp8-current", H100))


def test_the_products_alone_are_never_slower():
    (ax,) = products_and_casts().axes
    for place, width in enumerate(WIDTHS):
        wide, _, narrow, _ = (c.patches[0].get_width() for c in ax.containers[4 * place : 4 * place + 4])
        assert wide == pytest.approx(
            predicted_ms(square(width), BFLOAT16, H100, casts=False) / predicted_ms(square(width), BFLOAT16, H100)
        )
        assert narrow < wide


def test_what_is_said_of_each_width():
    (ax,) = products_and_casts().axes
    said = [text.get_text() for text in ax.texts if "×" in text.get_text()]
    even = break_even("fp8-current", H100)
    assert [("long" in text) for text in said] == [width < even for width in WIDTHS]
    assert min(WIDTHS) < even < max(WIDTHS)
    assert said == ["1.27× as long", "1.11× as fast", "1.64× as fast"]  # the alt text of the chapter
