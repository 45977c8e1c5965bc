"""The layers of `fp8_speed` on a GPU that is not there: every part is prepared, fits its memory, and compiles whole."""

import pytest
import torch

from fake_cuda import CUDA, MEMORY, card
from utils.cost.fp8_casts import BFLOAT16, PUBLISHED, square
from utils.cost.live_bytes import LiveBytes
from utils.emulation import scaled_matmul
from utils.emulation.scaled_matmul import why_emulated
from utils.experiments import fp8_speed
from utils.experiments.fp8_speed import BOTH, CASTS, PRODUCT, RECIPES, STEP

WITHOUT_BACKWARD = "Cannot access accelerator|hasPrimaryContext"  # no autograd on a device that is not there


def without_backward(monkeypatch):
    """Leave the backward pass out of a step: torch asks a real GPU for its streams there."""
    monkeypatch.setattr(torch.Tensor, "backward", lambda y, dy: None)


@pytest.mark.parametrize("recipe", [BFLOAT16, *RECIPES])
def test_every_part_is_prepared_or_has_a_reason(monkeypatch, recipe):
    without_backward(monkeypatch)
    with card(monkeypatch):
        parts = fp8_speed.prepare_calls(square(512), recipe, device=CUDA)
    missing = {part: note for part, (call, note) in parts.items() if call is None}
    assert missing == (dict.fromkeys((PRODUCT, BOTH, STEP), "no such kernel") if recipe == "fp8-mx" else {})


def test_the_largest_layer_fits(monkeypatch):
    """All recipes of a layer are held together, since they take turns; the largest is a square."""
    without_backward(monkeypatch)
    largest = max((layer for _, layer in fp8_speed.list_families("full")), key=lambda layer: sum(layer.values.values()))
    assert largest == square(16_384)
    held = []
    with card(monkeypatch), LiveBytes() as live:
        for name in (BFLOAT16, *RECIPES):
            held.append(fp8_speed.prepare_calls(largest, name, device=CUDA))
    gradients = len(held) * sum(size * largest.values[name] for name, size in (("w", 4), ("x", 2)))  # of the steps
    assert 0.3 * MEMORY < live.peak + gradients < 0.9 * MEMORY


def test_compiled_at_full_size_are_the_layers_that_are_worth_it():
    layers = [layer for _, layer in fp8_speed.list_families("full", compiled=True)]
    assert layers == [square(1_024 * 2**k) for k in range(5)] + [published.layer for published in PUBLISHED]
    assert len(layers) * (1 + len(RECIPES)) * len((CASTS, BOTH, STEP)) < 130  # compilations of some seconds each
    assert len(list(fp8_speed.list_families("small", compiled=True))) == len(list(fp8_speed.list_families("small")))


def test_a_compiled_product_does_not_try_its_kernel_again(monkeypatch):
    """torch.compile looks through functools.cache: it would record the trial, and wait for its result at each call."""
    trials = []

    def try_kernel(device, left, right):
        trials.append((left, right))
        return ""

    monkeypatch.setattr(scaled_matmul, "WITH_KERNELS", ("cpu",))
    monkeypatch.setattr(scaled_matmul, "_try_once", try_kernel)
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    def double(x):
        return 2 * x if why_emulated(x.device) else 3 * x

    torch.compiler.reset()
    compiled = torch.compile(double, backend=compiler, fullgraph=True)
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
    (graph,) = graphs
    assert trials == [("TensorWise", "TensorWise")]
    assert len([node for node in graph.graph.nodes if node.op == "call_function"]) == 1
