"""LLM.int8(): the exact integer product, the split of columns, and what an outlier does without it."""

import copy

import pytest
import torch
from torch import nn

from utils.quantization import llm_int8
from utils.quantization.integers import quantize
from utils.quantization.llm_int8 import OutlierSplitLinear, int8_linear, multiply_int8, outlier_columns

K, N = 64, 48


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def error(y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> float:
    exact = x.double() @ weight.double().t()
    return ((y.double() - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize(("rows", "columns", "depth"), [(1, 3, 7), (17, 16, 4096), (4, 1, 64)])
def test_the_product_of_integers_is_exact(rows, columns, depth):
    draw = torch.Generator().manual_seed(1)
    a, b = (torch.randint(-127, 128, (n, depth), generator=draw, dtype=torch.int8) for n in (rows, columns))
    assert torch.equal(multiply_int8(a, b).long(), a.long() @ b.long().t())


def test_a_cpu_whose_sums_saturate_is_found_out_and_not_used(monkeypatch):
    def add_pairs_in_16_bits(a, b):  # as oneDNN does without VNNI
        shifted = (a.long() + 128).unsqueeze(2) * b.long()  # [M, K, N]
        pairs = (shifted[:, 0::2] + shifted[:, 1::2]).clamp(-(2**15), 2**15 - 1).sum(1)
        return (pairs - 128 * b.long().sum(0)).int()

    draw = torch.Generator().manual_seed(1)
    a, b = (torch.randint(-127, 128, (n, 64), generator=draw, dtype=torch.int8) for n in (4, 3))
    exact = a.long() @ b.long().t()
    monkeypatch.setattr(torch, "_int_mm", add_pairs_in_16_bits)
    llm_int8._cpu_adds_exactly.cache_clear()
    try:
        assert not torch.equal(torch._int_mm(a, b.t()).long(), exact)
        assert torch.equal(multiply_int8(a, b).long(), exact)
    finally:
        llm_int8._cpu_adds_exactly.cache_clear()


def test_columns_are_found_by_one_value_that_reaches_the_threshold():
    x = torch.tensor([[[1.0, 5.9, 6.0, torch.nan]], [[0.0, -5.9, 0.0, 0.0]]])
    assert outlier_columns(x, 6.0).tolist() == [False, False, True, True]
    assert outlier_columns(-x, 5.0).tolist() == [False, True, True, True]


def test_without_outliers_the_result_is_near_and_the_split_changes_nothing():
    x, w = normal(5, 3, K), normal(N, K, seed=1)
    stored = quantize(w, 8)
    plain = int8_linear(x, stored)
    assert plain.shape == (5, 3, N)
    assert error(plain, x, w) < 0.015
    assert torch.equal(int8_linear(x, stored, threshold=100.0), plain)


def test_by_hand():
    x, w = torch.tensor([[1.0, 0.5]]), torch.tensor([[127.0, -127.0]])
    stored = quantize(w, 8)  # scale 1
    # x * 127 = 127, 63.5 -> 64: (127 * 127 - 64 * 127) / 127 = 63
    assert int8_linear(x, stored).item() == pytest.approx(63.0)


def test_an_outlier_column_ruins_its_rows_and_the_split_repairs_them():
    x, w = normal(32, K), normal(N, K, seed=1)
    x[:, 7] *= 300
    stored = quantize(w, 8)
    exact_rest = x.double().index_fill(1, torch.tensor([7]), 0) @ w.double().t()

    def rest(y):  # error against the part of the result that the other columns make
        return ((y.double() - x.double() @ stored.dequantize().double().t()).norm() / exact_rest.norm()).item()

    assert rest(int8_linear(x, stored)) > 0.5
    assert rest(int8_linear(x, stored, threshold=6.0)) < 0.02


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_the_result_has_the_dtype_of_x(dtype):
    x, w = normal(4, K).to(dtype), normal(N, K, seed=1)
    x[0, 3] = 50
    y = int8_linear(x, quantize(w, 8), threshold=6.0)
    assert y.dtype == dtype
    assert error(y, x, w) < 0.02


def test_what_is_not_finite_is_an_outlier_or_refused():
    x, stored = normal(4, K), quantize(normal(N, K, seed=1), 8)
    x[2, 3] = torch.inf
    with pytest.raises(ValueError, match="x is not finite"):
        int8_linear(x, stored)
    y = int8_linear(x, stored, threshold=6.0)
    assert not y[2].isfinite().any()
    assert y[[0, 1, 3]].isfinite().all()


def test_other_weights_are_refused():
    for bad in (quantize(normal(N, K), 4), quantize(normal(N, K), 8, 32), quantize(normal(N, K), 8, symmetric=False)):
        with pytest.raises(ValueError, match="symmetric weights of 8 bits with a scale a row"):
            int8_linear(normal(2, K), bad)


def test_the_layer_is_the_function_and_is_not_cast():
    linear = nn.Linear(K, N)
    layer = OutlierSplitLinear(quantize(linear.weight, 8), linear.bias)
    x = normal(2, 5, K)
    assert torch.equal(layer(x), int8_linear(x, layer.stored, threshold=6.0) + linear.bias)
    narrow = copy.deepcopy(layer).to(torch.bfloat16)
    assert (narrow.codes.dtype, narrow.inv_scale.dtype) == (torch.int8, torch.bfloat16)
    assert narrow(x.bfloat16()).dtype == torch.bfloat16
