"""Integers of 8 and 4 bits: by hand, against `utils.scaling`, the nearest code, packing of every byte, counted bits."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from utils import scaling
from utils.formats import BFLOAT16, FLOAT16, FLOAT32
from utils.quantization import integers
from utils.quantization.integers import IntegerFormat, Quantized, pack_int4, quantize, unpack_int4

SHAPES = [(5, 70), (3, 344), (1, 1), (4, 33)]
GROUPS = [None, "matrix", 1, 16, 32, 128]
both = pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])


def weight(*shape: int, seed: int = 0, spread: float = 0.05) -> torch.Tensor:
    return spread * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# By hand


def test_eight_weights_in_four_bits_by_hand():
    row = torch.tensor([[0.7, -0.3, 0.15, 0.0, -0.55, 0.05, 0.45, 0.25]])
    small = quantize(row, 4, scale_format=FLOAT32)
    # 7 / 0.7 = 10; 1.5 and 4.5 and 2.5 and 0.5 are ties on paper, and what float32 makes of them in the machine
    assert small.integers().tolist() == [[7, -3, 2, 0, -6, 0, 4, 2]]
    assert small.inv_scale.item() == pytest.approx(0.1)
    assert small.dequantize()[0, :2].tolist() == pytest.approx([0.7, -0.3])


def test_an_asymmetric_grid_covers_both_ends_and_zero():
    row = torch.tensor([[0.0, 1.0, 2.0, 3.0, -0.75, 0.1]])
    small = quantize(row, 4, symmetric=False, scale_format=FLOAT32)
    assert small.inv_scale.item() == 0.25  # (3 + 0.75) / 15
    assert small.zero_point.item() == 3
    assert small.unpacked().tolist() == [[3, 7, 11, 15, 0, 3]]
    assert small.dequantize().tolist() == [[0.0, 1.0, 2.0, 3.0, -0.75, 0.0]]


def test_formats_name_their_codes():
    assert [(f.name, f.lowest, f.highest) for f in map(IntegerFormat, (4, 8))] == [("int4", -7, 7), ("int8", -127, 127)]
    unsigned = IntegerFormat(4, symmetric=False)
    assert (str(unsigned), unsigned.lowest, unsigned.highest) == ("uint4", 0, 15)
    with pytest.raises(ValueError, match="3 bits are not supported; take 4 or 8"):
        IntegerFormat(3)


# Against the reference of the book


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("scale_format", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("group", GROUPS)
def test_symmetric_integers_are_those_of_the_scaling_module(bits, scale_format, group):
    for shape in SHAPES:
        x = weight(*shape)
        small = quantize(x, bits, group, scale_format=scale_format)
        grid = {8: scaling.INT8, 4: integers.INT4}[bits]
        reference = scaling.quantize_tiles(x.numpy(), grid, integers.tiling(group, scale_format))
        assert np.array_equal(small.integers().numpy(), reference.values)
        assert small.inv_scale.dtype == scale_format.torch_dtype
        assert np.array_equal(small.inv_scale.float().numpy(), reference.stored)
        assert np.array_equal(small.dequantize().numpy(), reference.dequantize())


def test_the_grid_of_int4_is_the_whole_numbers_to_seven():
    x = np.arange(-9, 9.25, 0.25)
    expected = np.clip(np.rint(x), -7, 7)
    assert np.array_equal(scaling.quantize(x, integers.INT4, saturate=True), expected)


# What holds for every matrix


@both
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("group", GROUPS)
def test_each_weight_gets_the_nearest_code_of_its_group(bits, symmetric, group):
    for shape in SHAPES:
        x = weight(*shape)
        small = quantize(x, bits, group, symmetric=symmetric)
        step = integers.spread(small.inv_scale.float(), shape, group)
        error = (small.dequantize() - x).abs()
        fmt = small.format
        inside = (small.unpacked().int() > fmt.lowest) & (small.unpacked().int() < fmt.highest)
        assert (error <= 0.5001 * step)[inside].all()
        assert (error <= 0.51 * step + 2.0**-7 * x.abs()).all()  # the ends: a rounded scale may cut a little off


@both
@pytest.mark.parametrize("bits", [8, 4])
def test_zero_stays_zero_and_a_matrix_of_zeros_too(bits, symmetric):
    x = weight(4, 64).abs() + 1  # far from 0: the asymmetric grid has to reach down to it
    x[0, 5] = x[1] = 0
    back = quantize(x, bits, 16, symmetric=symmetric).dequantize()
    assert (back[0, 5], back[1].count_nonzero()) == (0, 0)
    assert quantize(torch.zeros(2, 8), bits, symmetric=symmetric).dequantize().count_nonzero() == 0


@pytest.mark.parametrize("bits", [8, 4])
def test_what_came_back_has_the_same_codes(bits):
    once = quantize(weight(8, 128), bits, 32, scale_format=FLOAT32)
    again = quantize(once.dequantize(), bits, 32, scale_format=FLOAT32)
    assert torch.equal(once.codes, again.codes)


def test_smaller_groups_and_zero_points_make_smaller_errors():
    x = weight(64, 1024) + 0.02
    error = lambda *how, **more: (quantize(x, 4, *how, **more).dequantize() - x).norm().item()  # noqa: E731
    sizes = [error(group) for group in ("matrix", None, 128, 32, 16)]
    assert sizes == sorted(sizes, reverse=True)
    assert error(32, symmetric=False) < error(32)


def test_a_wide_dtype_is_rounded_once_and_any_float_dtype_is_taken():
    x = weight(16, 64)
    small = quantize(x, 4, 32)
    assert torch.equal(small.dequantize(torch.bfloat16), small.dequantize().bfloat16())
    assert torch.equal(quantize(x.bfloat16(), 4, 32).codes, quantize(x.bfloat16().float(), 4, 32).codes)


def test_the_scale_is_what_the_weights_were_multiplied_by():
    x = weight(6, 96)
    small = quantize(x, 8, 32)
    assert small.scale.dtype == torch.float32
    assert torch.equal(small.scale, 1 / small.inv_scale.float())
    scaled = x * integers.spread(small.scale, x.shape, 32)
    assert torch.equal(scaled.round().clamp(-127, 127), small.integers().float())


# Bits


@pytest.mark.parametrize(
    ("bits", "group", "symmetric", "expected"),
    [(4, 32, True, 4.5), (4, 64, True, 4.25), (4, 128, True, 4.125), (4, 32, False, 4.75), (8, 32, True, 8.5)],
)
def test_bits_of_a_weight_count_scales_and_zero_points(bits, group, symmetric, expected):
    small = quantize(weight(8, 1024), bits, group, symmetric=symmetric)
    assert small.bits_per_weight == expected
    parts = [small.codes, small.inv_scale] + ([] if symmetric else [small.zero_point])
    assert small.nbytes == sum(part.untyped_storage().nbytes() for part in parts)


def test_four_bits_really_lie_two_in_a_byte():
    assert quantize(weight(8, 1024), 4).codes.shape == (8, 512)
    assert quantize(weight(3, 33), 4).codes.shape == (3, 17)
    assert quantize(weight(3, 33), 4).dequantize().shape == (3, 33)


# Packing


@pytest.mark.parametrize("signed", [True, False])
def test_every_byte_round_trips(signed):
    every = torch.arange(256, dtype=torch.uint8)
    codes = unpack_int4(every, signed=signed)
    assert codes.shape == (512,)
    assert (codes.min().item(), codes.max().item()) == ((-8, 7) if signed else (0, 15))
    assert torch.equal(pack_int4(codes), every)


def test_a_byte_in_hexadecimal_shows_its_codes_in_order():
    assert [f"{byte:02X}" for byte in pack_int4(torch.tensor([3, -5, 7, -8])).tolist()] == ["3B", "78"]
    assert unpack_int4(torch.tensor([0x3B], dtype=torch.uint8)).tolist() == [3, -5]


@given(st.lists(st.integers(-8, 7), min_size=1, max_size=9))
def test_any_row_round_trips(row):
    assert unpack_int4(pack_int4(torch.tensor([row])))[0, : len(row)].tolist() == row


def test_codes_beyond_four_bits_are_refused():
    for bad in (torch.tensor([16]), torch.tensor([-9]), torch.tensor([200], dtype=torch.uint8)):
        with pytest.raises(ValueError, match="do not fit 4 bits"):
            pack_int4(bad)


# What is refused


def test_bad_weights_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="a weight is not finite"):
        quantize(torch.tensor([[1.0, torch.nan]]))
    with pytest.raises(TypeError, match=r"floating tensor \[N, K\]"):
        quantize(torch.ones(3))
    with pytest.raises(TypeError, match=r"floating tensor \[N, K\]"):
        quantize(torch.ones(3, 3, dtype=torch.int8))
    for group in (0, -1, "column", 2.0):
        with pytest.raises(ValueError, match="no number of weights"):
            quantize(torch.ones(3, 3), 4, group)
    with pytest.raises(ValueError, match="take 4 or 8"):
        quantize(torch.ones(3, 3), 2)


def test_the_fields_are_those_that_others_rely_on():
    small = quantize(weight(4, 64), 4, 32, symmetric=False)
    assert isinstance(small, Quantized)
    assert (small.shape, small.group, str(small.format)) == ((4, 64), 32, "uint4")
    assert small.zero_point.dtype == torch.uint8
    assert small.zero_point.shape == small.inv_scale.shape == (4, 2)
