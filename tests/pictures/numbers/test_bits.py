"""The picture of `numbers/bits` says what its numbers say."""

import pytest

from utils.formats import BFLOAT16, FLOAT16, encode
from utils.pictures.numbers.bits import code_and_rulers


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize(
    ("value", "fmt", "bits", "ends"),
    [
        (2.75, FLOAT16, "0100000110000000", ("2", "4")),
        (0.75, FLOAT16, "0011101000000000", ("0.5", "1")),
        (1.0, BFLOAT16, "0011111110000000", ("1", "2")),
    ],
)
def test_a_code_is_drawn_with_its_bits_its_binade_and_its_value(value, fmt, bits, ends):
    shown = texts(code_and_rulers(int(encode(value, fmt)), fmt))
    assert "".join(shown[: fmt.bits]) == bits
    marks = [text for text in shown[fmt.bits :] if text]
    assert marks[:3] == ["sign", "exponent", "fraction"]
    assert f"{value:g}" in marks
    assert all(marks.count(end) >= 2 for end in ends)  # on both rulers


def test_the_point_stands_at_its_share_of_the_way():
    figure = code_and_rulers()
    (dot,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    ruler = next(line for line in figure.axes[0].lines if len(set(line.get_ydata())) == 1 and line.get_marker() != "o")
    start, end = ruler.get_xdata()
    assert (dot.get_xdata()[0] - start) / (end - start) == pytest.approx(0.375)
