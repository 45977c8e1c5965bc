"""The torch twin against the NumPy reference, bit for bit, and what it adds: dtypes, codes, given scales, buffers."""

import math

import numpy as np
import pytest
import torch

from utils import scaling
from utils.emulation import scaled_tensor
from utils.emulation.scaled_tensor import quantize, update_delayed_
from utils.formats import (
    FLOAT4_E2M1FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT32,
    encode,
)
from utils.scaling import INT8, SCALINGS, DelayedScaling, Scaling, quantize_tiles

OTHERS = [
    Scaling("mx-ceil-log2", "", (1, 32), FLOAT8_E8M0FNU, "ceil-log2"),
    Scaling("powers of two in float32", "", (2, 8), FLOAT32, "rceil"),
    Scaling("E4M3 alone", "", (1, 16), FLOAT8_E4M3FN),
]
EVERY = [*SCALINGS.values(), *OTHERS]
SHAPES = [(5, 70), (130, 260), (2, 3, 33), (3,), (1, 1), (), (4, 0), (0, 4)]
PARTS = ("values", "scale", "inv_scale", "stored", "tensor_inv_scale")


def same_bits(reference: np.ndarray, twin: torch.Tensor) -> bool:
    ours, theirs = np.asarray(reference, np.float32), twin.numpy()
    bits = ours.view(np.uint32) == theirs.view(np.uint32)
    return ours.shape == theirs.shape and bool((bits | (np.isnan(ours) & np.isnan(theirs))).all())


def numbers(shape: tuple[int, ...], spread: str) -> np.ndarray:
    """Random float32: of all magnitudes, or all of one tiny or huge magnitude; infinities, NaN and -0 among them."""
    rng = np.random.default_rng(seed=[len(shape), *shape])
    exponent = {"all": rng.uniform(-150, 122, shape), "normal": 0.0, "tiny": -140.0, "huge": 120.0}[spread]
    x = (rng.standard_normal(shape) * np.exp2(exponent)).astype(np.float32)
    if x.size > 4:
        x.reshape(-1)[rng.choice(x.size, 4, replace=False)] = [np.nan, np.inf, -np.inf, -0.0]
    return x


@pytest.mark.parametrize("one_way", EVERY, ids=str)
@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT6_E3M2FN, FLOAT4_E2M1FN, INT8], ids=str)
def test_values_and_scales_have_the_bits_of_the_reference(fmt, one_way):
    for shape in SHAPES:
        for spread in ("all", "normal", "tiny", "huge"):
            x = numbers(shape, spread)
            reference, twin = quantize_tiles(x, fmt, one_way), quantize(torch.from_numpy(np.asarray(x)), fmt, one_way)
            for part in PARTS:
                assert same_bits(getattr(reference, part), getattr(twin, part)), (shape, spread, part)
            assert same_bits(reference.dequantize(), twin.dequantize()), (shape, spread)


def test_every_rule_of_the_reference_has_a_twin_and_no_other_is_taken_for_one():
    assert list(scaled_tensor.TENSOR_EXPONENT_RULES) == list(scaling.EXPONENT_RULES)
    for exponent in (
        scaled_tensor._shared_exponent,
        lambda amax, fmt, rule: scaling.shared_exponent(1.0, fmt, rule=rule),
    ):
        with pytest.raises(ValueError, match="rule 'nearest' is not one of floor, rceil, ceil-log2, round"):
            exponent(torch.ones(1), FLOAT8_E4M3FN, "nearest")


@pytest.mark.parametrize("rule", scaling.EXPONENT_RULES)
def test_the_exponent_is_the_references_at_every_significand_where_a_rule_decides(rule):
    significand = 1 + np.arange(0, 2**23, 2**16 - 1, dtype=np.float64) / 2**23
    near = [1.5, 1.75, 1.9375, 1 + 7 / 8]
    significand = np.concatenate([significand, near, np.nextafter(np.float32(near), np.float32(2)).astype(np.float64)])
    amax = (significand * np.exp2(np.arange(-149, 127.0))[:, None]).astype(np.float32)
    for fmt in (FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN):
        x = amax.reshape(-1, 1)  # a tile of one value
        one_way = Scaling("", "", (1, 1), FLOAT8_E8M0FNU, rule)
        assert same_bits(quantize_tiles(x, fmt, one_way).stored, quantize(torch.from_numpy(x), fmt, one_way).stored)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["tensor", "1x128", "mx", "nvfp4"])
def test_every_dtype_is_computed_in_float32_and_handed_back(dtype, name):
    x = torch.from_numpy(numbers((7, 200), "normal")).to(dtype)
    ours, wide = quantize(x, FLOAT8_E4M3FN, name), quantize(x.float(), FLOAT8_E4M3FN, name)
    assert ours.values.dtype == ours.dequantize().dtype == dtype
    assert ours.scale.dtype == ours.inv_scale.dtype == torch.float32
    assert torch.equal(ours.values.nan_to_num(), wide.values.to(dtype).nan_to_num())
    assert torch.equal(ours.scale, wide.scale)
    assert ours.dequantize(torch.float32).dtype == torch.float32


def test_strides_do_not_matter_and_the_tensor_stays_as_it_is():
    x = torch.randn(48, 160, generator=torch.Generator().manual_seed(1))
    before = x.clone()
    for name in SCALINGS:
        turned = quantize(x.t(), FLOAT8_E4M3FN, name)
        assert torch.equal(turned.dequantize(), quantize(x.t().contiguous(), FLOAT8_E4M3FN, name).dequantize())
        assert turned.shape == (160, 48)
    assert torch.equal(x, before)


def test_no_gradient_is_recorded():
    x = torch.ones(4, 4, requires_grad=True)
    assert not quantize(x, FLOAT8_E4M3FN, "tensor").values.requires_grad


@pytest.mark.parametrize("name", SCALINGS)
def test_a_device_that_is_not_the_cpu_gets_the_same_shapes(name):
    here, there = (quantize(torch.ones(5, 70, device=device), FLOAT8_E4M3FN, name) for device in ("cpu", "meta"))
    for part in PARTS:
        assert getattr(here, part).shape == getattr(there, part).shape


@pytest.mark.gpu
@pytest.mark.parametrize("one_way", EVERY, ids=str)
def test_a_gpu_gives_the_same_bits(one_way):
    for spread in ("all", "normal", "huge"):
        x = numbers((130, 260), spread)
        reference, twin = (
            quantize_tiles(x, FLOAT8_E4M3FN, one_way),
            quantize(torch.from_numpy(x).cuda(), FLOAT8_E4M3FN, one_way),
        )
        for part in PARTS:
            assert same_bits(getattr(reference, part), getattr(twin, part).cpu()), (spread, part)


# Codes


@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT8_E5M2], ids=str)
def test_codes_have_torchs_dtype_and_the_bits_of_encode(fmt):
    q = quantize(torch.randn(16, 32, generator=torch.Generator().manual_seed(2)), fmt, "row")
    codes = q.codes()
    assert codes.dtype == fmt.torch_dtype
    np.testing.assert_array_equal(codes.view(torch.uint8).numpy(), encode(q.values.numpy(), fmt))


@pytest.mark.parametrize("fmt", [FLOAT6_E3M2FN, FLOAT4_E2M1FN, INT8], ids=str)
def test_where_torch_has_no_dtype_a_code_is_a_byte(fmt):
    q = quantize(torch.tensor([-1.0, 0.0, 0.5, 1.0]), fmt, "tensor")
    codes = q.codes()
    assert codes.dtype == torch.uint8
    np.testing.assert_array_equal(codes.numpy(), encode(q.values.numpy(), fmt))


def test_nan_has_no_code_in_a_format_without_one():
    q = quantize(torch.tensor([1.0, math.nan]), FLOAT4_E2M1FN, "mx")
    with pytest.raises(ValueError, match="has no NaN"):
        q.codes()
    assert quantize(torch.tensor([1.0, math.nan]), FLOAT8_E4M3FN, "mx").codes().float().isnan().tolist() == [
        False,
        True,
    ]


# A scale that is given, and delayed scaling in buffers


def test_a_given_scale_is_taken_and_what_is_past_the_format_saturates():
    x = torch.tensor([[1.0, 2.0], [-30.0, 0.25]])
    for scale in (100.0, torch.tensor(100.0), torch.full((1, 1), 100.0)):
        q = quantize(x, FLOAT8_E4M3FN, "tensor", scale=scale)
        assert q.values.tolist() == [[96.0, 192.0], [-448.0, 24.0]]  # 25 is a tie
        assert (float(q.scale), float(q.inv_scale)) == (100.0, float(np.float32(1) / np.float32(100)))
    rows = quantize(x, FLOAT8_E4M3FN, "row", scale=torch.tensor([[1.0], [2.0]]))
    assert rows.values.tolist() == [[1.0, 2.0], [-60.0, 0.5]]


def test_a_scale_cannot_be_given_where_it_is_stored_in_a_narrow_format():
    with pytest.raises(ValueError, match="mx stores its scales in float8_e8m0fnu"):
        quantize(torch.ones(3), FLOAT8_E4M3FN, "mx", scale=2.0)


@pytest.mark.parametrize("how", [{}, {"margin": 1, "choose": "max"}, {"margin": 1, "choose": "most_recent"}], ids=str)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_buffers_follow_delayed_scaling_step_by_step(steps, how):
    rng = np.random.default_rng(seed=steps)
    amaxes = np.exp2(rng.uniform(-5, 5, 40)).astype(np.float32)
    amaxes[[3, 11, 12, 20, 30]] = [0.0, np.inf, np.nan, 1e-44, 0.0]
    delayed = DelayedScaling(FLOAT8_E5M2, history=steps, **how)
    history, scale = torch.zeros(steps), torch.ones(())
    for amax in amaxes:
        expected = delayed.update(amax)
        result = update_delayed_(history, scale, torch.tensor(amax), FLOAT8_E5M2, **how)
        assert result is scale
        assert float(scale) == float(expected)
        np.testing.assert_array_equal(history.numpy()[steps - len(delayed.history) :], delayed.history)


def test_amax_is_that_of_the_finite_values():
    assert float(scaled_tensor.amax(torch.tensor([1.0, -3.0, math.inf, math.nan], dtype=torch.bfloat16))) == 3.0
    assert float(scaled_tensor.amax(torch.tensor([math.inf, math.nan]))) == 0.0
    assert float(scaled_tensor.amax(torch.empty(0))) == 0.0


@pytest.mark.parametrize("power_of_two", [False, True])
@pytest.mark.parametrize("margin", [0, 3])
def test_the_scale_of_an_amax_is_the_references(margin, power_of_two):
    amax = np.concatenate([np.abs(numbers((500,), "all")), np.float32([0, 1e-45, 3.4e38])])
    amax[np.isnan(amax)] = 1
    ours = scaled_tensor.scale_from_amax(
        torch.from_numpy(amax), FLOAT8_E4M3FN, margin=margin, power_of_two=power_of_two
    )
    theirs = scaling.scale_from_amax(amax, FLOAT8_E4M3FN, margin=margin, power_of_two=power_of_two)
    assert same_bits(theirs, ours)


# Stochastic rounding, and mistakes


def test_stochastic_rounding_takes_a_neighbour_and_is_right_on_average():
    x = torch.full((200, 256), 0.7)
    x[:, 0] = 1.0  # the amax: the scale is 6, and 4.2 lies between 4 and 6 with probability 0.1 for 6
    q = quantize(x, FLOAT4_E2M1FN, Scaling("", "", (1, 256)), seed=3)
    body = q.values[:, 1:]
    assert set(body.unique().tolist()) == {4.0, 6.0}
    share, n = float((body == 6).double().mean()), body.numel()
    assert abs(share - 0.1) < 5 * math.sqrt(0.1 * 0.9 / n)
    assert torch.equal(q.values, quantize(x, FLOAT4_E2M1FN, Scaling("", "", (1, 256)), seed=3).values)
    assert not torch.equal(q.values, quantize(x, FLOAT4_E2M1FN, Scaling("", "", (1, 256)), seed=4).values)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="scaling 'rows' is not one of none, tensor, row, 1x128"):
        quantize(torch.ones(3), FLOAT8_E4M3FN, "rows")
    with pytest.raises(TypeError, match=r"floating dtype, not torch\.int64"):
        quantize(torch.ones(3, dtype=torch.int64), FLOAT8_E4M3FN)
    with pytest.raises(ValueError, match="choose 'mean'"):
        update_delayed_(torch.zeros(3), torch.ones(()), torch.ones(()), FLOAT8_E4M3FN, choose="mean")
