"""The picture of `training/master_weights` says what its numbers say."""

import numpy as np
import torch

from utils.formats import BFLOAT16
from utils.pictures.training.master_weights import weight_and_master
from utils.rounding import quantize


def dots(ax, marker):
    return next(line for line in ax.lines if line.get_marker() == marker).get_ydata().tolist()


def test_the_weight_alone_never_moves_and_torch_agrees():
    alone, _ = weight_and_master().axes
    w = torch.ones((), dtype=torch.bfloat16)
    for _ in range(7):
        w += 0.003
    assert dots(alone, "o") == [1.0] * 8 == [w.item()] * 8


def test_the_copy_is_the_master_rounded():
    _, pair = weight_and_master().axes
    masters = [1 + 0.003 * step for step in range(8)]
    np.testing.assert_allclose(dots(pair, "s"), masters, rtol=1e-12)
    assert dots(pair, "o") == [float(quantize(master, BFLOAT16)) for master in masters]
    assert len(set(dots(pair, "o"))) == 4


def test_the_lines_are_the_bfloat16_numbers_above_1():
    alone, _ = weight_and_master().axes
    named = [text.get_text() for text in alone.texts]
    assert named[:4] == ["1", "1.0078", "1.0156", "1.0234"]
    assert float(torch.tensor(1.0234).bfloat16()) == 1 + 3 * 2**-7
