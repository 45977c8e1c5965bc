"""The bytes that are alive, against sums on paper, and against torch's own profiler."""

import itertools
import json

import pytest
import torch
from torch import nn

from utils import measure
from utils.cost.live_bytes import LiveBytes

KIB = 1024


def kib(n: float = 1) -> torch.Tensor:
    return torch.ones(int(256 * n))


def test_a_storage_counts_once_from_the_operation_that_makes_it_until_nothing_holds_it():
    with LiveBytes() as live:
        a = torch.ones(256)
        b = a + a
        view = b.view(16, 16)
        view.mul_(2)
        del b
        assert live.now == 2 * KIB
        del view, a
        c = torch.ones(128)
    assert live.now == KIB / 2
    assert live.peak == 2 * KIB
    assert [size // 512 for size in live.curve] == [2, 4, 4, 4, 1]
    del c
    assert live.now == 0  # after the context too


def test_what_is_there_at_the_start_counts_if_it_is_named():
    weights, other = kib(3), kib(5)
    for before, size in (([weights], 3 * KIB), ([weights, weights[1:]], 3 * KIB), ([], 0)):
        with LiveBytes(before) as live:
            weights.add_(1)
            other.mul_(2)
            assert live.now == size
        assert live.peak == size
    assert LiveBytes([other]).peak == 5 * KIB  # no operation yet


def test_what_is_freed_inside_is_gone_and_its_address_may_be_used_again():
    outside = kib()
    with LiveBytes() as live:
        outside.add_(1)
        del outside
        again = [torch.ones(256) for _ in range(3)]  # may lie where `outside` lay
        assert live.now == 3 * KIB
    assert len(again) == 3
    named = kib()
    with LiveBytes([named]) as live:
        del named
        assert live.now == 0


def test_a_step_of_two_layers_is_what_paper_says():
    """x [4, 256] -> y = x W -> r = relu(y) -> r V, summed; W and V [256, 256]; the gradients stay."""
    x, w, v = torch.ones(4, 256), torch.ones(256, 256, requires_grad=True), torch.ones(256, 256, requires_grad=True)
    with LiveBytes() as live:
        r = torch.relu(x @ w)
        assert live.now == 4 * KIB  # y is freed: relu keeps its result alone
        loss = (r @ v).sum()
        assert live.now == 4 * KIB + 4  # and the sum keeps nothing but a shape
        loss.backward()
        del r
    assert live.now == 4 + 2 * 256 * KIB
    assert live.peak >= 4 + 2 * 256 * KIB + 4 * KIB


def test_the_curve_peaks_and_ends_where_the_profiler_sees_it(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64), nn.LayerNorm(64))
    x = torch.randn(256, 64)

    def both():
        model(x).square().mean().backward()

    both()
    model.zero_grad()
    with LiveBytes() as live:
        both()
    gradients = measure.tensor_bytes(weight.grad for weight in model.parameters())
    assert live.now == gradients
    model.zero_grad()
    kinds = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds, profile_memory=True) as profiler:
        both()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text("utf8"))["traceEvents"]
    sizes = [(event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"]
    allocated = list(itertools.accumulate(size for _, size in sorted(sizes, key=lambda one: one[0])))
    assert allocated[-1] == gradients
    assert max(allocated) == pytest.approx(live.peak, rel=0.02)  # temporaries inside a kernel
