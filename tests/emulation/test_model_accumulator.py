"""A model inside the mode computes what its layers do by hand with the accumulator's product."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from utils.emulation.accumulators import ACCUMULATORS, exact
from utils.emulation.model_accumulator import Accumulated, narrowed
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16
from utils.workloads import models

each_one = pytest.mark.parametrize("one", ACCUMULATORS.values(), ids=ACCUMULATORS)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def counted(one):
    """The accumulator, and a list of the lengths of the sums that it is asked for."""
    lengths = []

    def matmul(a, b):
        lengths.append(a.shape[1])
        return one.matmul(a, b)

    return dataclasses.replace(one, matmul=matmul), lengths


@each_one
@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_a_linear_layer_is_the_product_by_hand(one, guard):
    layer, x = nn.Linear(150, 20), normal(2, 3, 150)
    left, right = (t.detach() for t in (x.reshape(6, 150), layer.weight.t()))
    if one.operands is FLOAT8_E4M3FN:
        scales = [2.0 ** math.floor(math.log2(448 / float(t.abs().max()))) for t in (left, right)]
        left, right = ((t * s).to(torch.float8_e4m3fn).float() for t, s in zip((left, right), scales, strict=True))
        by_hand = one.matmul(left, right) / (scales[0] * scales[1])
    else:
        by_hand = one.matmul(*(t.to(one.operands.torch_dtype).float() for t in (left, right)))
    with guard(), Accumulated(one):
        got = layer(x)
    assert torch.equal(got, (by_hand + layer.bias.detach()).reshape(2, 3, 20))


def test_every_kind_of_product_goes_through():
    one, lengths = counted(ACCUMULATORS["float16"])
    m, n, batch, other, v = normal(4, 7), normal(7, 5), normal(3, 4, 7), normal(3, 7, 2), normal(7)
    with torch.no_grad(), Accumulated(one):
        pairs = [
            (m @ n, (m, n)),
            (batch @ other, (batch, other)),
            (m @ v, (m, v)),
            (v @ v, (v, v)),
            (torch.addmm(normal(4, 5, seed=1), m, n, beta=2, alpha=3), None),
            (torch.baddbmm(normal(3, 4, 2, seed=1), batch, other), None),
            (torch.addmv(normal(4, seed=1), m, v), None),
            (torch.einsum("bij,bjk->bik", batch, other), (batch, other)),
        ]
    assert lengths == [7] * (1 + 3 + 1 + 1 + 1 + 3 + 1 + 3)
    for got, factors in pairs[:4] + pairs[7:]:
        ideal = factors[0].half().double() @ factors[1].half().double()
        assert got.shape == ideal.shape
        torch.testing.assert_close(got.double(), ideal, rtol=0, atol=0.02)
        assert torch.equal(got, got.half().float())  # totals of float16
    torch.testing.assert_close(pairs[4][0], 2 * normal(4, 5, seed=1) + 3 * pairs[0][0], rtol=0, atol=0)
    torch.testing.assert_close(pairs[5][0], normal(3, 4, 2, seed=1) + pairs[1][0], rtol=0, atol=0)
    torch.testing.assert_close(pairs[6][0], normal(4, seed=1) + pairs[2][0], rtol=0, atol=0)


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_attention_takes_the_way_of_separate_products(guard):
    one, lengths = counted(exact(FLOAT16))
    q, k, v = (normal(2, 3, 9, 8, seed=seed) for seed in range(3))
    with guard(), Accumulated(one):
        got = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert lengths == [8] * 6 + [9] * 6  # of each text and head: scores, then values
    torch.testing.assert_close(got, F.scaled_dot_product_attention(q, k, v, is_causal=True), rtol=0, atol=5e-3)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_every_product_of_a_llama_goes_through_and_its_positions_stay(attention):
    model = models.build_llama(models.LlamaShape(64, 32, 2, 4, 2, 48, 16))
    model.set_attn_implementation(attention)
    ids = torch.arange(20).reshape(2, 10)
    one, lengths = counted(exact(FLOAT16))
    with torch.no_grad():
        usual = model(ids).logits
        with Accumulated(one):
            got = model(ids).logits
    heads = 2 * 4
    layer = 3 * [32] + heads * [8] + heads * [10] + 3 * [32] + [48]
    assert sorted(lengths) == sorted(2 * layer + [32])
    torch.testing.assert_close(got, usual, rtol=0, atol=0.01)
    assert not torch.equal(got, usual)
    with torch.no_grad():
        assert torch.equal(model(ids).logits, usual)  # outside all is as before


def test_sums_of_one_term_are_left_alone():
    a, b = normal(3, 1), normal(1, 4)
    with torch.no_grad(), Accumulated(ACCUMULATORS["fp8-14bit"]):
        assert torch.equal(a @ b, a * b)
        assert torch.equal(
            torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64), torch.full((2, 2), 2)
        )


@pytest.mark.parametrize("largest", [1e-6, 0.7, 448.0, 449.0, 3e4])
def test_a_scale_is_a_power_of_two_and_uses_the_upper_half_of_the_range(largest):
    x = normal(50).clamp(-0.9, 0.9) * largest
    x[0] = largest
    narrow, scale = narrowed(x, FLOAT8_E4M3FN)
    assert narrow.dtype == torch.float8_e4m3fn
    assert math.frexp(scale)[0] == 0.5
    assert 224 < largest * scale <= 448
    assert torch.equal(narrow.float(), (x * scale).to(torch.float8_e4m3fn).float())


def test_16_bits_are_a_cast_and_zeros_have_a_scale():
    x = torch.tensor([1e6, 70_000.0, -1.0, 2.0**-30])
    for fmt in (FLOAT16, BFLOAT16):
        narrow, scale = narrowed(x, fmt)
        assert scale == 1.0
        assert torch.equal(narrow, x.to(fmt.torch_dtype))
    assert math.isinf(float(narrowed(x, FLOAT16)[0][0]))
    assert narrowed(torch.zeros(3), FLOAT8_E4M3FN)[1] == 1.0
    assert narrowed(torch.zeros(0), FLOAT8_E4M3FN)[1] == 1.0


def test_the_result_has_the_dtype_of_the_model():
    a, b = normal(4, 300).bfloat16(), normal(300, 3).bfloat16()
    with torch.no_grad(), Accumulated(ACCUMULATORS["float16"]):
        got = a @ b
        empty = torch.zeros(0, 4, 8) @ torch.zeros(0, 8, 2)
    assert torch.equal(got, ACCUMULATORS["float16"].matmul(a.half(), b.half()).bfloat16())
    assert empty.shape == (0, 4, 2)


def test_what_cannot_be_done_is_refused():
    mode = Accumulated(ACCUMULATORS["float16"])
    with pytest.raises(RuntimeError, match=r"enter torch\.no_grad"), mode:
        pass
    with (
        torch.no_grad(),
        pytest.raises(NotImplementedError, match=r"convolution.* float16 cannot add in its place"),
        mode,
    ):
        F.conv1d(normal(1, 2, 8), normal(3, 2, 3))
    with torch.no_grad(), pytest.raises(NotImplementedError, match=r"mm\.out .* float16 cannot"), mode:
        torch.mm(normal(2, 3), normal(3, 2), out=torch.empty(2, 2))
    with torch.no_grad(), mode:  # and the mode is in order afterwards
        assert (normal(2, 3) @ normal(3, 2)).shape == (2, 2)
    assert torch.backends.cuda.flash_sdp_enabled()
