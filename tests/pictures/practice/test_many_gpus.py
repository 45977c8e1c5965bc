"""The picture of `practice/many_gpus` adds as an emulated ring and an emulated gather do."""

import torch

from utils.experiments.parallel.all_reduce import all_reduce
from utils.formats import BFLOAT16
from utils.pictures.practice.many_gpus import NARROW, ring_and_owner


def numbers(ax):
    """The numbers that stand on the wires and at the end, from the left."""
    return [float(text.get_text()) for text in ax.texts if text.get_color() == NARROW]


def test_the_ring_loses_the_ones_and_the_owner_keeps_them():
    ring, owner = ring_and_owner().axes
    gradients = torch.tensor([[300.0], [1.0], [1.0], [2.0]])
    assert numbers(ring) == [300, 300, 300, 302]
    assert numbers(owner) == [300, 1, 1, 304]
    assert all_reduce(gradients, order="ring", wire=BFLOAT16).item() == 302
    assert all_reduce(gradients, order="gather", wire=BFLOAT16).item() == 304


def test_the_owner_is_the_last_gpu_and_sends_itself_nothing():
    _, owner = ring_and_owner().axes
    texts = {text.get_text(): text.get_color() for text in owner.texts}
    assert texts["its own 2"] != NARROW
    assert any(text.startswith("the last GPU, in float32") for text in texts)


def test_only_what_is_lost_is_marked():
    ring, owner = ring_and_owner().axes
    assert [text.get_text() for text in ring.texts].count("rounded away") == 2
    assert "rounded away" not in [text.get_text() for text in owner.texts]
