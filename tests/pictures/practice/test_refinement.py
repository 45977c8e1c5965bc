"""The picture of `practice/refinement` shows the corrections and solutions of the loop."""

from fractions import Fraction

import pytest
from matplotlib.patches import Polygon, Rectangle

from utils import plots
from utils.pictures.practice.refinement import LEFT, WIDE, same_solver_again


def numbers(ax, color):
    """The numbers in one colour, from the top."""
    found = [text for text in ax.texts if text.get_color() == color and text.get_text()[0].isdigit()]
    return [text.get_text().rstrip("…") for text in sorted(found, key=lambda text: -text.get_position()[1])]


def test_each_row_is_a_step_of_the_loop():
    (ax,) = same_solver_again().axes
    x, corrections, solutions, left = Fraction(0), [], [], []
    for _ in range(3):
        corrections.append(Fraction(3, 10) * (1 - 3 * x))
        x += corrections[-1]
        solutions.append(x)
        left.append(Fraction(1, 3) - x)
    assert [float(text) for text in numbers(ax, plots.INK)] == [float(c) for c in corrections]
    assert [Fraction(text) for text in numbers(ax, WIDE)] == solutions
    assert [float(text) for text in numbers(ax, LEFT)] == pytest.approx([float(part) for part in left], rel=0.02)


def test_the_solver_fills_nine_tenths_of_every_bar_and_the_rest_becomes_the_next_one():
    (ax,) = same_solver_again().axes
    boxes = sorted({(-box.get_y(), box.get_x(), box.get_width()) for box in ax.patches if isinstance(box, Rectangle)})
    for (y, start, given), (below, cut, rest) in zip(boxes[::2], boxes[1::2], strict=True):
        assert y == below
        assert cut == pytest.approx(start + given)
        assert given == pytest.approx(9 * rest)
    zooms = [patch.get_xy() for patch in ax.patches if isinstance(patch, Polygon)]
    assert len(zooms) == 2
    for (cut, _), (end, _), (right, _), (left, _), *_ in zooms:
        assert end == right
        assert end - left == pytest.approx(10 * (end - cut))
