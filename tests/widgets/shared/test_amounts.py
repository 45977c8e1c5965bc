"""Amounts in Python: rounded as a page rounds them. The test of this name in tests/browser compares
them with the page's."""

import pytest

from utils.widgets.shared.words.amounts import bytes_text, few_digits


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.03328, "0.0333"),
        (0.125, "0.125"),
        (0.0625, "0.0625"),
        (62.25, "62.3"),  # a tie, away from zero
        (989.4, "989"),
        (1978.9, "1,979"),
        (123_456, "123,500"),
        (1.0, "1"),
        (-38.04, "-38"),
    ],
)
def test_a_number_has_few_digits(x, text):
    assert few_digits(x) == text


def test_bytes_are_in_gigabytes_from_a_hundredth_of_one_on():
    assert [bytes_text(size) for size in (9_999_999, 10_000_000, 1_241_579_667_456)] == ["10 MB", "0.01 GB", "1,242 GB"]
