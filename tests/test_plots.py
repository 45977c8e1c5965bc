"""The figures: one look a format, the colours of the pages, and a drawing that has as many boxes as bits."""

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.patches import Rectangle

from book_rules import contrast
from utils import plots
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E8M0FNU, FLOAT16, FORMATS

matplotlib.use("Agg")
TOKENS = Path(plots.__file__).parent / "widgets" / "tokens.css"


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


def test_every_format_has_a_look_of_its_own():
    assert set(plots.LOOKS) == set(FORMATS)
    assert len(set(plots.LOOKS.values())) == len(FORMATS)
    assert plots.look(FLOAT16) == plots.look("float16") == plots.LOOKS["float16"]._asdict()


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no look for 'int8'; the book's formats are float64"):
        plots.look("int8")


@pytest.mark.parametrize("name", ["sign", "exponent", "fraction"])
def test_field_colours_are_those_of_the_pages(name):
    light = TOKENS.read_text("utf8").split("}")[0]
    page = dict(re.findall(r"--mp-([\w-]+): (#[0-9a-f]{6})", light))
    assert getattr(plots, name.upper()) == page[name]
    assert getattr(plots, f"{name.upper()}_TINT") == page[f"{name}-tint"]


def test_every_mark_stands_out_from_the_paper():
    for name, look in plots.LOOKS.items():
        assert contrast(look.color, plots.PAPER) >= 3, (name, look.color)  # WCAG 2.2, 1.4.11


def test_field_colours_follow_the_bits():
    one = [plots.SIGN] + [plots.EXPONENT] * 4 + [plots.FRACTION] * 3
    assert plots.field_colors(FLOAT8_E4M3FN) == one
    assert plots.field_colors(FLOAT8_E8M0FNU) == [plots.EXPONENT] * 8


def test_layouts_draws_one_box_for_each_bit():
    boxes = [patch for patch in plots.layouts().axes[0].patches if isinstance(patch, Rectangle)]
    assert len(boxes) == sum(fmt.bits for fmt in FORMATS.values())


def test_values_on_a_line_draws_one_tick_for_each_value():
    ax = plt.subplots()[1]
    plots.values_on_a_line(ax, [0.5, 1.0, 2.0], 0, FLOAT16)
    assert [segment[0][0] for segment in ax.collections[0].get_segments()] == [0.5, 1.0, 2.0]
