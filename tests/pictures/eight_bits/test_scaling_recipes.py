"""The picture of `eight_bits/scaling_recipes`: which tiles serve both sums, and that the outlier lies in each."""

from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from utils import plots
from utils.pictures.eight_bits.scaling_recipes import SIZE, TILES, shared_scales


def tiles(color):
    """The shaded tiles with an edge of this colour: (x, y, width, height)."""
    (ax,) = shared_scales().axes
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_fill()]
    named = [box for box in boxes if box.get_facecolor()[:3] == to_rgb(plots.TINTS[color])]
    return [(*box.get_xy(), box.get_width(), box.get_height()) for box in named]


def test_a_tile_serves_both_sums_where_it_is_square():
    assert len(tiles(plots.EXPONENT)) == len(TILES) + 2
    turned = [(width, height) for _, _, width, height in tiles(plots.SIGN)]
    assert turned == [(1, SIZE), (1, SIZE / 2)]


def test_the_outlier_lies_in_each_tile():
    (ax,) = shared_scales().axes
    dots = [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if line.get_marker() == "o"]
    boxes = tiles(plots.EXPONENT) + tiles(plots.SIGN)
    assert len(dots) == len(boxes) == 2 * len(TILES)
    for x, y in dots:
        assert sum(a < x < a + width and b < y < b + height for a, b, width, height in boxes) == 1


def test_the_words_say_which_scales_are_new():
    (ax,) = shared_scales().axes
    words = [text.get_text() for text in ax.texts if text.get_text().endswith("scales")]
    assert words == ["same scales", "new scales", "new scales", "same scales"]
