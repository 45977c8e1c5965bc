"""The decoder that records a CUDA graph, on a GPU that is not there: nothing in the graph waits or copies."""

import pytest
import torch

from fake_cuda import CUDA, Waits, card
from utils.quantization.weight_formats import converted, weight_report
from utils.training.recipes import RECIPES
from utils.workloads import models
from utils.workloads.decoders import WARMUPS, recorded
from utils.workloads.generation import WAYS, Writer, generate
from utils.workloads.models import LlamaShape

SHAPE = LlamaShape(width=128, heads=4, groups=2, hidden=256, layers=2, positions=32, vocabulary=64)
RECIPE = RECIPES["bf16-true"]


def small(name="bfloat16"):
    model = models.build_llama(SHAPE, device=CUDA)
    return converted(model, name, compute=None if name == "bfloat16" else torch.bfloat16)


@pytest.mark.parametrize("name", ["bfloat16", "int8", "int4", "float8"])
def test_the_step_is_recorded_once_and_replayed_for_every_token(monkeypatch, name):
    with card(monkeypatch) as calls:
        writer = Writer(small(name), "graphs", recipe=RECIPE, room=16)
        for _ in range(2):
            assert writer(torch.arange(4, device=CUDA)[None], tokens=5).shape == (1, 5)
    asked = [call for call in calls if call.startswith(("side", "main", "capture", "replay"))]
    assert asked == [
        "side 0 waits for main",
        "main waits for side 0",
        "capture begins",
        "capture ends",
        *["replay"] * 8,  # the first token of each text comes from its prompt
    ]


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("compiled", "transformers")])
def test_every_way_writes_on_the_card(monkeypatch, way):
    with card(monkeypatch):
        written = generate(small(), torch.arange(4, device=CUDA)[None], tokens=3, recipe=RECIPE, way=way)
    assert written.device == CUDA


def test_four_bits_are_multiplied_by_the_kernel(monkeypatch):
    with card(monkeypatch):
        assert weight_report(small("int4")).kernel == "14 × torch's int4 kernel, _weight_int4pack_mm"


def test_each_warm_up_is_taken_back(monkeypatch):
    told = []

    def step():
        told.append("step")
        return torch.ones(1, device=CUDA)

    with card(monkeypatch):
        recorded(step, undo=lambda: told.append("undo"), device=CUDA)
    assert told == ["step", "undo"] * WARMUPS + ["step"]  # the last one is captured, and computes nothing


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: x.copy_(torch.ones(3)),
        lambda x: x[x > 0],
        lambda x: bool((x > 0).all()),
        lambda x: torch.arange(3).to(CUDA),
    ],
    ids=["item", "to the processor", "from the processor", "mask", "truth", "moved"],
)
def test_what_a_graph_cannot_hold_is_noticed(monkeypatch, step):
    with card(monkeypatch):
        x = torch.ones(3, device=CUDA)
        with pytest.raises(AssertionError, match="inside a graph"), Waits():
            step(x)
