"""Eight-bit moments: the code tables on paper and bit for bit, the nearest code, the bytes, and AdamW with them."""

import copy
import importlib.util

import pytest
import torch
from torch import nn

from utils import measure
from utils.training import eight_bit_moments
from utils.training.eight_bit_moments import Blocks, Blockwise, code_table, dequantize, quantize
from utils.training.optimizers import AdamW, Master

either_sign = pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
library = pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# The tables


@either_sign
def test_a_table_has_256_different_values_in_order_with_0_and_1(signed):
    table = code_table(signed=signed)
    assert table.shape == (256,)
    assert (table.diff() > 0).all()
    assert (table == 0).sum() == 1
    assert table[-1] == 1
    assert table.min() == (-table[-2] if signed else 0)


def test_the_largest_decade_holds_half_of_the_codes_and_the_smallest_one_or_two():
    for signed, expected in ((True, [1, 2, 4, 8, 16, 32, 64]), (False, [2, 4, 8, 16, 32, 64, 128])):
        positive = code_table(signed=signed)[code_table(signed=signed) > 0][:-1]
        decades = [int(((positive > 10.0**d) & (positive < 10.0 ** (d + 1))).sum()) for d in range(-7, 0)]
        assert decades == expected


def test_the_smallest_codes_are_those_on_paper():
    assert code_table(signed=True)[128].item() == pytest.approx(0.55e-6, rel=1e-6)  # the middle of [1e-7, 1e-6]
    assert code_table(signed=False)[1:3].tolist() == pytest.approx([0.325e-6, 0.775e-6], rel=1e-6)  # of its halves
    assert code_table(signed=True)[-2].item() == pytest.approx(0.1 + 0.9 * 63.5 / 64, rel=1e-6)


@library
@either_sign
def test_a_table_has_the_bits_of_bitsandbytes(signed):
    from bitsandbytes.functional import create_dynamic_map

    assert torch.equal(code_table(signed=signed), create_dynamic_map(signed=signed))


# Quantize and dequantize


@either_sign
def test_every_code_is_quantized_to_itself(signed):
    table = code_table(signed=signed)
    blocks = quantize(8 * table, signed=signed)
    assert blocks.codes.tolist() == list(range(256))
    assert blocks.absmax.tolist() == [8.0]
    assert torch.equal(dequantize(blocks, signed=signed), 8 * table)


@either_sign
@pytest.mark.parametrize("shape", [(), (1,), (255,), (256,), (257,), (3, 700), (0,)], ids=str)
def test_the_code_is_a_nearest_one_and_the_last_block_may_be_short(signed, shape):
    x = normal(*shape) if signed else normal(*shape).square()
    blocks = quantize(x, signed=signed)
    assert (blocks.codes.dtype, blocks.codes.shape) == (torch.uint8, x.shape)
    assert len(blocks.absmax) == -(-x.numel() // 256)
    flat, table = x.double().flatten(), code_table(signed=signed).double()
    scale = torch.tensor([abs(flat[n // 256 * 256 : n // 256 * 256 + 256]).max() for n in range(len(flat))])
    error = (flat - dequantize(blocks, signed=signed).double().flatten()).abs()
    best = (flat[:, None] - scale[:, None] * table).abs().amin(1) if len(flat) else error
    assert (error <= best + 1e-6 * scale).all()


def test_an_outlier_costs_its_own_block_only():
    x = normal(1024)
    x[300] = 1e6
    error = (dequantize(quantize(x, signed=True), signed=True) - x).abs()
    assert error[256:512].max() > 0.5  # all but the outlier came near 0
    assert error[:256].max() < 0.04  # half of 0.9 / 64 of a maximum of about 3
    assert error[512:].max() < 0.04


def test_a_linear_code_loses_what_the_tree_keeps():
    x = torch.logspace(-5, 0, 256)
    tree = dequantize(quantize(x, signed=True), signed=True)
    linear = (x * 127).round() / 127
    assert (linear == 0).double().mean() > 0.4
    assert (tree > 0).all()
    assert ((tree - x) / x).abs().max() < 0.7


def test_zeros_stay_zeros_and_what_is_not_finite_spoils_its_block_alone():
    assert torch.equal(dequantize(quantize(torch.zeros(300), signed=True), signed=True), torch.zeros(300))
    for bad in (torch.nan, torch.inf):
        x = torch.ones(512)
        x[3] = bad
        back = dequantize(quantize(x, signed=True), signed=True)
        assert not back[:256].isfinite().any()
        assert torch.equal(back[256:], x[256:])


def test_narrow_values_and_other_blocks_are_taken():
    x = normal(100).to(torch.bfloat16)
    blocks = quantize(x, signed=True, block=10)
    assert len(blocks.absmax) == 10
    assert dequantize(blocks, signed=True, block=10).dtype == torch.float32
    assert blocks.nbytes == 100 + 40


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="block 0 holds no value"):
        quantize(torch.ones(3), signed=True, block=0)
    with pytest.raises(ValueError, match="block 0 holds no value"):
        Blockwise(block=0)
    with pytest.raises(ValueError, match=r"-2.0 has no code without a sign"):
        quantize(torch.tensor([1.0, -2.0]), signed=False)
    with pytest.raises(ValueError, match="1 maxima do not fit 300 codes"):
        dequantize(Blocks(torch.zeros(300, dtype=torch.uint8), torch.ones(1)), signed=True)


@library
def test_bitsandbytes_reads_our_blocks_as_we_do():
    from bitsandbytes.functional import dequantize_blockwise

    x = normal(3, 700)
    codes, absmax = quantize(x, signed=True)
    theirs = dequantize_blockwise(codes, absmax=absmax, code=code_table(signed=True), blocksize=256)
    torch.testing.assert_close(theirs, dequantize(Blocks(codes, absmax), signed=True), rtol=1e-6, atol=0)


# AdamW with 8-bit moments


def trained(state_dtype, *, store=None, dtype=torch.float32, steps=60):
    """A two-layer network that has learnt a smooth function, its optimizer and its last loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 600), nn.Tanh(), nn.Linear(600, 16)).to(dtype)
    more = {"store": store} if store else {}
    optimizer = AdamW(model.parameters(), lr=3e-3, state_dtype=state_dtype, **more)
    x = normal(256, 8)
    y = torch.sin(x @ normal(8, 16, seed=1))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x.to(dtype)).float() - y).square().mean()
        loss.backward()
        optimizer.step()
    return model, optimizer, loss.item()


def test_a_moment_has_the_bytes_that_were_predicted():
    model, optimizer, _ = trained(Blockwise(), steps=1)
    kinds = {}
    for weight in model.parameters():
        state = {name: value for name, value in optimizer.state[weight].items() if name != "step"}
        found = sum(value.nbytes for value in state.values())
        assert found == 2 * Blockwise().moment_bytes(weight.numel())
        kinds[weight.numel()] = state["exp_avg"].dtype
    assert kinds == {4800: torch.uint8, 600: torch.float32, 9600: torch.uint8, 16: torch.float32}
    assert Blockwise().moment_bytes(4_095) == 16_380
    assert Blockwise().moment_bytes(4_097) == 4_097 + 4 * 17
    assert 2 * Blockwise().moment_bytes(10**6) / 10**6 == pytest.approx(2 + 2 / 64, abs=1e-4)  # 2.03 bytes a parameter


def test_small_tensors_move_as_with_float32_moments():
    models = []
    for state_dtype in (Blockwise(), torch.float32):
        torch.manual_seed(0)
        weight = nn.Parameter(torch.randn(4_095))
        optimizer = AdamW([weight], state_dtype=state_dtype)
        for seed in range(3):
            weight.grad = normal(4_095, seed=seed)
            optimizer.step()
        models.append(weight)
    assert torch.equal(*models)


def test_eight_bit_moments_learn_nearly_as_well():
    exact, eight = trained(torch.float32)[2], trained(Blockwise())[2]
    assert eight == pytest.approx(exact, rel=0.1)
    assert eight != exact


def test_they_stand_beside_a_master_copy():
    model, optimizer, loss = trained(Blockwise(), store=Master(), dtype=torch.bfloat16)
    state = optimizer.state[model[0].weight]
    assert (state["master"].dtype, state["exp_avg"].dtype) == (torch.float32, torch.uint8)
    assert loss == pytest.approx(trained(torch.float32)[2], rel=0.2)


def test_a_saved_state_goes_on_bit_for_bit():
    model, optimizer, _ = trained(Blockwise(), steps=3)
    other = copy.deepcopy(model)
    resumed = AdamW(other.parameters(), lr=3e-3, state_dtype=Blockwise())
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for one, weights in ((optimizer, model.parameters()), (resumed, other.parameters())):
        for place, weight in enumerate(weights):
            weight.grad = normal(*weight.shape, seed=place)
        one.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    with pytest.raises(ValueError, match="saved by another store"):
        AdamW(other.parameters()).load_state_dict(optimizer.state_dict())


@library
def test_the_state_of_bitsandbytes_takes_the_same_room_and_the_loss_comes_as_low():
    from bitsandbytes.optim import AdamW8bit

    ours = trained(Blockwise())[2]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 600), nn.Tanh(), nn.Linear(600, 16))
    optimizer = AdamW8bit(model.parameters(), lr=3e-3, weight_decay=1e-2)
    x = normal(256, 8)
    y = torch.sin(x @ normal(8, 16, seed=1))
    for _ in range(60):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    state = optimizer.state[model[2].weight]
    assert state["state1"].dtype == torch.uint8
    kept = measure.tensor_bytes([state[name] for name in ("state1", "state2", "absmax1", "absmax2")])
    assert kept == 2 * Blockwise().moment_bytes(9_600)
    assert loss.item() == pytest.approx(ours, rel=0.1)


@pytest.mark.gpu
def test_on_a_gpu_the_codes_are_the_same():
    x = normal(1000)
    here, there = quantize(x, signed=True), quantize(x.cuda(), signed=True)
    assert torch.equal(here.codes, there.codes.cpu())
    assert torch.equal(dequantize(there, signed=True).cpu(), dequantize(here, signed=True))


def test_the_blocks_are_those_of_the_paper():
    assert (eight_bit_moments.BLOCK, Blockwise().least) == (256, 4_096)
