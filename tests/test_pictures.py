"""The chapters' pictures: each says what its numbers say, and fits a phone."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

from utils.formats import BFLOAT16, FLOAT16, encode
from utils.pictures import numbers
from utils.rounding import quantize

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


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
    shown = texts(numbers.code_and_rulers(int(encode(value, fmt)), fmt))
    assert "".join(shown[: fmt.bits]) == bits
    marks = [text for text in shown[fmt.bits :] if text]
    assert f"{value:g}" in marks
    assert all(marks.count(end) >= 2 for end in ends)  # on both rulers


def test_the_point_stands_at_its_share_of_the_way():
    figure = numbers.code_and_rulers()
    (dot,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    ruler = next(line for line in figure.axes[0].lines if len(set(line.get_ydata())) == 1 and line.get_marker() != "o")
    start, end = ruler.get_xdata()
    assert (dot.get_xdata()[0] - start) / (end - start) == pytest.approx(0.375)


def test_an_addend_moves_the_small_total_and_is_lost_in_the_large_one():
    upper, lower = numbers.addend_and_gap().axes
    dots = [next(line for line in ax.lines if line.get_marker() == "o").get_xdata()[0] for ax in (upper, lower)]
    assert dots == [float(quantize(2.3, BFLOAT16)), 256.0]
    said = [[text.get_text() for text in ax.texts] for ax in (upper, lower)]
    assert "+0.3" in said[0]
    assert "+0.3" in said[1]
    assert "halfway" not in said[0]
    assert "halfway" in said[1]


@pytest.mark.parametrize("draw", [numbers.code_and_rulers, numbers.addend_and_gap], ids=lambda draw: draw.__name__)
def test_a_picture_is_hardly_wider_than_a_phone(draw):
    assert draw().get_figwidth() <= numbers.WIDTH_INCHES <= 5
