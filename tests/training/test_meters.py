"""The meters against a count by hand, on any optimizer and under a loss scaler."""

import math
import statistics

import pytest
import torch
from torch import nn

from tests.training.test_optimizers import each_store, tensors
from tests.training.test_watch import Scaler, Toy
from utils.training.layer_names import layer_of
from utils.training.meters import LargestGradients, LostUpdates
from utils.training.optimizers import AdamW, Kahan, Master, Nearest, Stochastic
from utils.workloads import models


class Two(nn.Module):
    def __init__(self, first: list[float], second: list[float], *, dtype: torch.dtype = torch.bfloat16):
        super().__init__()
        self.embeddings = nn.ParameterList([nn.Parameter(torch.tensor(first, dtype=dtype))])
        self.classifier = nn.ParameterList([nn.Parameter(torch.tensor(second, dtype=dtype))])

    def fill(self, first: list[float], second: list[float]) -> None:
        self.embeddings[0].grad, self.classifier[0].grad = (
            torch.tensor(values, dtype=self.embeddings[0].dtype) for values in (first, second)
        )


def test_the_meter_agrees_with_a_count_by_hand():
    # Steps of 0.01: half a gap of bfloat16 is 2**-8 at 1, 2**-7 at 2, 2**-6 at 4. Below a power of two it is half.
    model = Two([1.0, 2.0, 4.0, 5.0, 6.0], [1.5, 3.0, 6.0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
    with LostUpdates(model, optimizer) as meter:
        model.fill([1, 1, -1, -1, 0], [1, -1, 1])
        optimizer.step()  # 1 and 2 move, 4 and 5 do not (up), 6 is not meant to; 1.5 and 3 move, 6 does not
        model.fill([0, 0, 0, 0, 0], [0, 0, 1])
        optimizer.step()  # the first moments go on, by 0.0067: 0.988, 1.992 and 1.492 move; 4, 5, 3.016 and 6 do not
    optimizer.step()  # not counted
    assert meter.by_step == [
        {"embeddings": 2 / 4, "head": 1 / 3, "all": 3 / 7},
        {"embeddings": 2 / 4, "head": 2 / 3, "all": 4 / 7},
    ]
    assert meter.shares() == {"embeddings": 4 / 8, "head": 3 / 6, "all": 7 / 14}


@pytest.mark.parametrize(
    ("store", "lost"), [(Nearest(), 1.0), (Master(), 0.0), (Kahan(), 0.0), (Stochastic(1), 1 - 0.001 / 2**-7)]
)
def test_the_meter_looks_at_what_the_store_keeps(store, lost):
    model = nn.Linear(100, 100).bfloat16()
    with torch.no_grad():
        model.weight.fill_(1.25)
        model.bias.fill_(1.25)
    optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.0, store=store)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    with LostUpdates(model, optimizer) as meter:
        optimizer.step()
    n = 100 * 101
    assert meter.shares()["all"] == pytest.approx(lost, abs=5 * math.sqrt(lost * (1 - lost) / n))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("lr", [1e-5, 1e-4, 1e-3])
def test_the_first_step_loses_the_share_that_the_normal_distribution_predicts(dtype, lr):
    """Adam's first step is the learning rate up or down; each value of the format stands for an interval of weights."""
    codes = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    values = codes[codes.isfinite()].unique().sort().values
    wide = values.double()
    middle = (wide[1:] + wide[:-1]) / 2
    edges = [-math.inf, *(middle / 0.05).tolist(), math.inf]
    below = torch.tensor([statistics.NormalDist().cdf(edge) for edge in edges], dtype=torch.float64)
    stays = sum(((values.float() + sign * lr).to(dtype) == values).double() / 2 for sign in (-1, 1))
    expected = ((below[1:] - below[:-1]) * stays).sum().item()

    generator = torch.Generator().manual_seed(0)
    model = nn.Linear(1000, 400, bias=False)
    with torch.no_grad():
        model.weight.copy_(0.05 * torch.randn(400, 1000, generator=generator))
    model = model.to(dtype)
    model.weight.grad = torch.randn(400, 1000, generator=generator).sign().to(dtype)
    optimizer = AdamW(model.parameters(), lr=lr, weight_decay=0.0, eps=0.0)
    with LostUpdates(model, optimizer) as meter:
        optimizer.step()
    n = model.weight.numel()
    assert meter.shares()["all"] == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / n))


@pytest.mark.parametrize("fused", [False, True])
def test_the_meter_leaves_out_what_never_had_a_gradient_and_steps_that_were_skipped(fused):
    model = Two([1.0, 1.0], [1.0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    with LostUpdates(model, optimizer) as meter:
        model.embeddings[0].grad = torch.tensor([1.0, 0.0], dtype=torch.bfloat16)
        optimizer.step()
        assert meter.by_step == [{"embeddings": 1.0, "all": 1.0}]
        scaler.scale(torch.ones(()))
        model.fill([math.inf, 1.0], [1.0])
        scaler.step(optimizer)  # torch's fused optimizer is called all the same, and told to do nothing
    assert len(meter.by_step) == 1


@pytest.mark.parametrize("fused", [False, True])
def test_the_meter_reads_any_optimizer_and_groups_by_layer(fused):
    shape = models.DistilBertShape(vocabulary=20, width=16, layers=2, heads=2, hidden=32, positions=16)
    model = models.build_distilbert(shape).bfloat16()
    for optimizer in (torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused), torch.optim.SGD(model.parameters())):
        for weight in model.parameters():
            weight.grad = torch.full_like(weight, 1e-3)
        with LostUpdates(model, optimizer) as meter:
            optimizer.step()
        names = list(dict.fromkeys(layer_of(name) for name, _ in model.named_parameters()))
        assert list(meter.shares()) == [*names, "all"]
        assert 0 < meter.shares()["all"] < 1


def test_a_meter_that_saw_no_step_has_no_shares():
    meter = LostUpdates(nn.Linear(2, 2), torch.optim.SGD(nn.Linear(2, 2).parameters()))
    assert meter.shares() == {}
    assert meter.by_step == []


@pytest.mark.gpu
@each_store
def test_on_a_gpu_the_weights_move_and_the_meter_counts_as_on_the_processor(store):
    shares = {}
    for device in ("cpu", "cuda"):
        model = Two([1.0, 2.0, 4.0, 5.0, 6.0], [1.5, 3.0, 6.0]).to(device)
        optimizer = AdamW(model.parameters(), lr=0.01, weight_decay=0.0, store=store)
        for weight in model.parameters():
            weight.grad = torch.ones_like(weight)
        with LostUpdates(model, optimizer) as meter:
            optimizer.step()
        shares[device] = meter.by_step
        again = AdamW(model.parameters(), store=store)
        again.load_state_dict(optimizer.state_dict())
        assert all(value.device.type == device for value in tensors(again, list(model.parameters())))
    assert shares["cpu"] == shares["cuda"]


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_the_largest_gradient_of_each_step_is_that_of_the_linear_layers_without_the_scale(scale):
    model = Toy()
    seen = []
    with LargestGradients(model, scaler=Scaler(scale)) as largest:
        for ids in ([0, 1], [2, 3]):
            model.zero_grad()
            outputs = {}
            hooks = [
                module.register_forward_hook(
                    lambda m, i, out, kept=outputs: (out.retain_grad(), kept.update({m: out}))[1]
                )
                for module in model.modules()
                if isinstance(module, nn.Linear)
            ]
            (model(torch.tensor([ids])).square().sum() * scale).backward()
            for hook in hooks:
                hook.remove()
            gradients = [out.grad for out in outputs.values()]
            gradients += [p.grad for module in outputs for p in module.parameters()]
            seen.append(max(g.abs().max().item() for g in gradients) / scale)
        with torch.no_grad():
            model(torch.tensor([[1, 1]]))  # an evaluation is no step
    assert largest.values() == pytest.approx(seen, rel=1e-3)
    model(torch.tensor([[1, 1]])).sum().backward()
    assert len(largest.values()) == 2  # its hooks are gone


def test_a_gradient_that_overflows_is_the_largest():
    model = Toy()
    with LargestGradients(model) as largest:
        (model(torch.tensor([[0, 1]])).sum() * float("inf")).backward()
    assert not largest.values()[0] < float("inf")
