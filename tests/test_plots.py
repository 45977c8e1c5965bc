"""The figures: one look a format, the colours of the pages, and a drawing that has as many boxes as bits."""

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.patches import Rectangle

from book_rules import contrast
from utils import plots
from utils.diagnostics.dtype_probe import Stage
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E8M0FNU, FLOAT16, FORMATS

matplotlib.use("Agg")
TOKENS = Path(plots.__file__).parent / "widgets" / "shared/page/tokens.css"


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


class TestDtypeGraph:
    """One block of a transformer as boxes in the lanes of their dtypes."""

    STAGES = (
        Stage("q_lin", "linear", "bfloat16", (("float32", "bfloat16"),) * 3),
        Stage("activation", "gelu", "bfloat16", ()),
        Stage("sa_layer_norm", "layer_norm", "float32", (("bfloat16", "float32"),)),
        Stage("input_layernorm", "", "float32", ()),
    )

    def test_every_box_stands_in_the_lane_of_its_dtype(self):
        ax = plots.dtype_graph(self.STAGES).axes[0]
        at = {text.get_text(): text.get_position()[0] for text in ax.texts}
        assert at["float32"] < at["bfloat16"]  # the wide one left
        assert at["q_lin"] == at["gelu"] == at["bfloat16"]
        assert at["sa_layer_norm"] == at["input_layernorm"] == at["float32"]

    def test_every_arrow_says_how_many_tensors_are_cast(self):
        ax = plots.dtype_graph(self.STAGES).axes[0]
        assert [text.get_text() for text in ax.texts if "cast" in text.get_text()] == ["3 casts", "1 cast"]
        arrows = [text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None)]
        assert len(arrows) == 2

    def test_a_box_has_the_colour_of_its_format(self):
        ax = plots.dtype_graph(self.STAGES).axes[0]
        edges = [matplotlib.colors.to_hex(box.get_edgecolor()) for box in ax.patches if not box.get_fill()]
        assert edges == [plots.LOOKS[stage.dtype].color for stage in self.STAGES]

    def test_nothing_to_draw_and_an_unknown_dtype_are_refused(self):
        with pytest.raises(ValueError, match="no stages to draw"):
            plots.dtype_graph([])
        with pytest.raises(ValueError, match="no look for 'int8'"):
            plots.dtype_graph([Stage("add", "add", "int8", ())])
