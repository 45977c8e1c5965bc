"""Compensated rounding: two weights by hand, the output error it makes smaller, blocks, and what is refused."""

import pytest
import torch

from utils.formats import FLOAT32
from utils.quantization import gptq
from utils.quantization.gptq import compensated, hessian
from utils.quantization.integers import quantize


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def related(tokens: int, size: int, seed: int = 0) -> torch.Tensor:
    """Inputs that go together: a few directions, and a little of all others."""
    few = normal(tokens, max(1, size // 8), seed=seed) @ normal(max(1, size // 8), size, seed=seed + 1)
    return few + 0.1 * normal(tokens, size, seed=seed + 2)


def output_error(small, weight: torch.Tensor, x: torch.Tensor) -> float:
    return (x.double() @ (small.dequantize() - weight).double().t()).square().sum().item()


def test_two_weights_by_hand():
    # Both inputs are always equal, so only the sum of the weights counts: 2.4 + 1.4 = 3.8, and nearest gives 2 + 1 = 3.
    x = torch.ones(4, 3)
    x[:, 2] = 0  # the third column is never used; it carries the largest weight, so that the scale is 1
    weight = torch.tensor([[2.4, 1.4, 7.0]])
    assert quantize(weight, 4, scale_format=FLOAT32).integers().tolist() == [[2, 1, 7]]
    small = compensated(weight, hessian(x), 4, None, scale_format=FLOAT32)
    assert small.integers().tolist() == [[2, 2, 7]]  # the second weight takes over 0.4: 1.8 becomes 2


@pytest.mark.parametrize("group", [None, "matrix", 16, 32, 48, 128])
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
def test_the_output_error_is_smaller_than_that_of_nearest(group, symmetric):
    x, weight = related(500, 96), normal(24, 96, seed=9)
    nearest = quantize(weight, 4, group, symmetric=symmetric)
    paid = compensated(weight, hessian(x), 4, group, symmetric=symmetric)
    assert output_error(paid, weight, x) < 0.5 * output_error(nearest, weight, x)
    assert (paid.dequantize() - weight).norm() > (nearest.dequantize() - weight).norm()  # each weight is worse
    assert (paid.shape, paid.group, paid.nbytes) == (nearest.shape, nearest.group, nearest.nbytes)
    assert paid.codes.dtype == nearest.codes.dtype


def test_inputs_that_have_nothing_in_common_leave_nothing_to_pay_with():
    weight = normal(8, 64)
    for group in (None, 16):
        small, nearest = compensated(weight, torch.eye(64), 4, group), quantize(weight, 4, group)
        assert torch.equal(small.codes, nearest.codes)
        assert torch.equal(small.inv_scale, nearest.inv_scale)


def test_each_column_leaves_the_best_that_the_later_ones_can_do():
    # The first weight moves by d, and the others are free: they move by the least squares solution for -x0 * d.
    # Damping is one more row for each weight, which pulls its move toward 0: 1 % of the mean of the squares.
    x, d = related(200, 6).double(), 0.3
    pull = torch.eye(6, dtype=torch.float64) * (0.01 * x.square().sum(0).mean()).sqrt()
    rows = torch.cat([x, pull])
    factor = gptq.inverse_factor(hessian(x), 6).double()
    best = torch.linalg.lstsq(rows[:, 1:], -d * rows[:, :1]).solution[:, 0]
    assert torch.allclose(d * factor[0, 1:] / factor[0, 0], best, rtol=1e-4, atol=1e-6)


def test_blocks_of_columns_give_what_one_column_after_the_other_gives(monkeypatch):
    x, weight = related(400, 160), normal(12, 160, seed=5)
    seen = hessian(x)
    for group in (None, 16, 64):
        blocks = compensated(weight, seen, 4, group)
        monkeypatch.setattr(gptq, "COLUMNS", 1024)
        whole = compensated(weight, seen, 4, group)
        monkeypatch.undo()
        assert (blocks.integers() != whole.integers()).float().mean() < 0.01  # float32 sums in another order
        assert output_error(blocks, weight, x) == pytest.approx(output_error(whole, weight, x), rel=0.05)


def test_an_input_that_is_always_zero_is_rounded_to_nearest():
    x, weight = related(300, 32), normal(6, 32, seed=6)
    x[:, [3, 17]] = 0
    small, nearest = compensated(weight, hessian(x), 4, None), quantize(weight, 4, None)
    assert torch.equal(small.integers()[:, [3, 17]], nearest.integers()[:, [3, 17]])
    assert torch.equal(compensated(weight, torch.zeros(32, 32), 4).codes, quantize(weight, 4, 32).codes)


def test_inputs_are_summed_over_calls_and_the_hooks_are_gone_afterwards():
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
    parts = [normal(2, 7, 4), normal(1, 3, 4, seed=1)]
    found = gptq.inputs(model, lambda: [model(part) for part in parts], ["0", "1"])
    rows = torch.cat([part.reshape(-1, 4) for part in parts])
    assert torch.allclose(found["0"], rows.t() @ rows, atol=1e-5)
    assert found["1"].shape == (5, 5)
    assert not any(layer._forward_pre_hooks for layer in model)


def test_hooks_are_gone_after_an_error_too():
    model = torch.nn.Linear(4, 5)
    with pytest.raises(RuntimeError):
        gptq.inputs(torch.nn.Sequential(model), lambda: model(normal(2, 3)), ["0"])
    assert not model._forward_pre_hooks


def test_a_bad_hessian_is_refused():
    weight = normal(2, 4)
    with pytest.raises(ValueError, match=r"a hessian \[3, 3\] does not fit 4 inputs"):
        compensated(weight, torch.eye(3))
    with pytest.raises(ValueError, match="the hessian is not finite"):
        compensated(weight, torch.full((4, 4), torch.nan))
    with pytest.raises(ValueError, match=r"the hessian is not positive: give the sum of x\.t\(\) @ x"):
        compensated(weight, torch.diag(torch.tensor([1.0, 1.0, 1.0, -1.0])))
