"""Values in words: signs and what is not finite, as the pages write them."""

import math

import pytest

from utils.widgets.shared.words.code_words import rounded_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1 / 3, "−0.3333"), (2.0**-30, "9.313e−10"), (math.inf, "∞"), (-math.inf, "−∞"), (math.nan, "NaN")],
)
def test_a_value_is_rounded_to_so_many_digits(value, text):
    assert rounded_text(value, 4) == text
