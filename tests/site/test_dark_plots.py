"""The colours of plots on the dark theme: as readable as on white, as far apart for each eye, known by their hue."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import dark_plots
from book_rules import contrast
from utils import plots

# What a dichromat sees, in linear sRGB: Viénot, Brettel and Mollon, 1999.
EYES = {
    "all cones": np.eye(3),
    "no L cones": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
    "no M cones": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
}
COLORS = sorted({look.color for look in plots.LOOKS.values()} | {plots.SIGN, plots.EXPONENT, plots.FRACTION})
TOKENS = Path(__file__).parents[2] / "utils" / "widgets" / "shared/page/tokens.css"


def rgb(color):
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def in_the_dark(*colors):
    """The dark theme's colours of these, as "#rrggbb"."""
    found = dark_plots.for_the_dark(np.array([rgb(color) for color in colors], np.uint8))
    return ["#" + bytes(color).hex() for color in found]


def seen(colors, eye):
    """OKLab of what an eye sees of colours: [n, 3]."""
    linear = np.linalg.inv(dark_plots.TO_LMS)  # to_oklab goes through the cones' response to linear sRGB
    cones = (dark_plots.to_oklab([rgb(color) for color in colors]) @ np.linalg.inv(dark_plots.TO_LAB).T) ** 3
    shown = np.clip(cones @ linear.T @ EYES[eye].T, 0, 1)
    return np.cbrt(shown @ dark_plots.TO_LMS.T) @ dark_plots.TO_LAB.T


def test_paper_and_ink_are_those_of_the_dark_theme():
    dark = re.findall(r"--mp-(paper|ink): (#\w{6})", TOKENS.read_text("utf8"))[2:4]
    assert dict(dark) == {"paper": "#" + bytes(dark_plots.PAPER).hex(), "ink": "#" + bytes(dark_plots.INK).hex()}
    paper, ink = in_the_dark(plots.PAPER, plots.INK)
    assert paper == dict(dark)["paper"]
    assert contrast(ink, paper) >= 12


@pytest.mark.parametrize("color", [*COLORS, plots.INK_SOFT])
def test_a_colour_stands_out_on_the_dark_paper_as_it_does_on_white(color):
    paper, dark = in_the_dark(plots.PAPER, color)
    assert contrast(dark, paper) >= max(4.5, 0.85 * contrast(color, plots.PAPER))  # WCAG 2.2, 1.4.3


@pytest.mark.parametrize("color", [color for color in COLORS if color not in (plots.INK, "#5c6670")])
def test_a_colour_keeps_its_hue(color):
    _, a, b = dark_plots.to_oklab(rgb(color))
    _, dark_a, dark_b = dark_plots.to_oklab(rgb(in_the_dark(color)[0]))
    assert abs(np.angle((dark_a + 1j * dark_b) / (a + 1j * b), deg=True)) < 10


@pytest.mark.parametrize("eye", EYES)
def test_the_two_closest_colours_are_as_far_apart_as_on_white(eye):
    def closest(colors):
        return min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen(colors, eye), 2))

    assert closest(in_the_dark(*COLORS)) >= 0.9 * closest(COLORS)


def test_the_soft_edge_of_a_line_stays_between_line_and_ground():
    line, steps = np.array(rgb("#0072b2")), np.linspace(0, 1, 9)[:, None]
    edge = np.round(255 + steps * (line - 255)).astype(np.uint8)
    dark = dark_plots.to_oklab(dark_plots.for_the_dark(edge))[:, 0]
    assert (np.diff(dark) > 0).all()


def test_only_pictures_with_white_corners_are_on_paper():
    pixels = np.full((4, 5, 3), 255, np.uint8)
    assert dark_plots.is_on_paper(pixels)
    assert (dark_plots.dark_plot(pixels) == dark_plots.PAPER).all()
    pixels[-1, -1] = 0
    assert not dark_plots.is_on_paper(pixels)
