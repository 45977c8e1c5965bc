"""The picture of `practice/quantization` is true: circle, ellipse and arrows follow from its weights and inputs."""

import numpy as np
import torch
from matplotlib.patches import Ellipse

from utils.pictures.practice.quantization import (
    COMPENSATED,
    NEAREST,
    TOGETHER,
    WEIGHTS,
    errors_that_cancel,
)
from utils.quantization import gptq

H = torch.tensor([[1.0, TOGETHER], [TOGETHER, 1.0]])
CODES = [(x, y) for x in range(-3, 8) for y in range(-3, 8)]


def output_error(code):
    d = torch.tensor(code) - torch.tensor(WEIGHTS)
    return (d @ H @ d).sqrt().item()


def closed(patch):
    """Where a point lies: 1 on the curve, less inside."""
    angle = np.deg2rad(patch.angle)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])

    def at(point):
        u, v = turn @ np.subtract(point, patch.center)
        return (2 * u / patch.width) ** 2 + (2 * v / patch.height) ** 2

    return at


def curves():
    (ax,) = errors_that_cancel().axes
    circle, ellipse = sorted((p for p in ax.patches if isinstance(p, Ellipse)), key=lambda p: p.width - p.height)
    return closed(circle), closed(ellipse)


def test_the_codes_are_those_of_both_ways_of_rounding():
    assert tuple(np.round(WEIGHTS).astype(int)) == NEAREST
    w = 7 * torch.tensor([[*WEIGHTS, 7.0]]) / 7  # a third weight makes the step 1
    wide = torch.eye(3)
    wide[:2, :2] = H
    small = gptq.compensated(w, wide, bits=4, group=None)
    assert tuple(small.integers()[0, :2].tolist()) == COMPENSATED
    assert min(CODES, key=output_error) == COMPENSATED


def test_each_curve_goes_through_its_code():
    circle, ellipse = curves()
    assert abs(circle(NEAREST) - 1) < 1e-6
    assert abs(ellipse(COMPENSATED) - 1) < 1e-6
    assert circle(COMPENSATED) > 1
    assert ellipse(NEAREST) > 2


def test_the_ellipse_is_that_of_equal_errors_of_the_output():
    _, ellipse = curves()
    for code in CODES:
        assert abs(ellipse(code) - (output_error(code) / output_error(COMPENSATED)) ** 2) < 1e-3


def test_the_arrows_end_where_the_loop_moves_the_weights():
    (ax,) = errors_that_cancel().axes
    ends = [tuple(text.xy) for text in ax.texts if getattr(text, "arrow_patch", None)]
    U = torch.linalg.cholesky(torch.linalg.inv(H), upper=True)
    moved = WEIGHTS[1] - (WEIGHTS[0] - 2) / U[0, 0] * U[0, 1]
    np.testing.assert_allclose(ends, [(2, WEIGHTS[1]), (2, moved)], rtol=1e-5)
