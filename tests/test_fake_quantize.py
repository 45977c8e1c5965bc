"""The torch twin against the reference, bit for bit, and its manners as a torch function."""

import math
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

from oracles import SMALL, grid, midpoints, oracle_dtype, same_bits
from utils import fake_quantize as module
from utils.fake_quantize import fake_quantize, fake_quantize_stochastic
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    TF32,
    FloatFormat,
)
from utils.rounding import quantize, stochastic, ulp

ALL = list(FORMATS.values())
MODES = [pytest.param(True, id="saturating"), pytest.param(False, id="plain")]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan]


def reference(x: torch.Tensor, fmt: FloatFormat, saturate: bool) -> np.ndarray:
    """What the twin owes: `quantize`, cast to the dtype of x."""
    exact = quantize(x.double().numpy(), fmt, saturate=saturate)
    return torch.from_numpy(np.atleast_1d(exact)).to(x.dtype).double().numpy().reshape(x.shape)


def assert_same(ours: torch.Tensor, theirs: np.ndarray, x: torch.Tensor) -> None:
    same = same_bits(ours.detach().double().numpy(), theirs)
    bad = [(float(a).hex(), float(b), float(c)) for a, b, c in zip(x[~same], ours[~same], theirs[~same], strict=True)]
    assert same.all(), (len(bad), bad[:5])


def all_regions_of_float32() -> torch.Tensor:
    """Every sign and exponent with fractions that are zero, full, single bits, their neighbours, and random."""
    rng = np.random.default_rng(seed=1)
    single = 1 << np.arange(23)
    fraction = np.concatenate(
        [[0, 2**23 - 1], single, single - 1, single + 1, single | 1 << 22, rng.integers(0, 2**23, 64)]
    )
    code = np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23) | np.unique(fraction).astype(np.uint32)
    return torch.from_numpy(code.reshape(-1).view(np.float32))


def around(fmt: FloatFormat, dtype: torch.dtype) -> torch.Tensor:
    """Values, midpoints and their neighbours in the dtype, both signs: as many as it takes, or 60 000 of them."""
    low, middle, high = (torch.from_numpy(values).to(dtype) for values in midpoints(fmt))
    end = torch.tensor([math.inf], dtype=dtype)
    x = torch.cat([low, high, middle, torch.nextafter(middle, 0 * end[:1].nan_to_num()), torch.nextafter(middle, end)])
    if len(x) > 60_000:
        x = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[:60_000]]
    return torch.cat([x, -x, torch.tensor(SPECIAL, dtype=dtype)])


# The same bits as the reference


@pytest.mark.parametrize("saturate", MODES)
@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_all_regions_of_float32_round_as_in_the_reference(fmt, saturate):
    x = all_regions_of_float32()
    assert_same(fake_quantize(x, fmt, saturate=saturate), reference(x, fmt, saturate), x)


@pytest.mark.parametrize("saturate", MODES)
@pytest.mark.parametrize("fmt", [*SMALL, TF32], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_values_midpoints_and_their_neighbours_round_as_in_the_reference(fmt, dtype, saturate):
    x = around(fmt, dtype)
    assert_same(fake_quantize(x, fmt, saturate=saturate), reference(x, fmt, saturate), x)


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_float64_of_all_magnitudes_rounds_as_in_the_reference(fmt):
    rng = np.random.default_rng(seed=2)
    code = rng.integers(0, 2**64, size=50_000, dtype=np.uint64)
    exponent = rng.uniform(fmt.emin - fmt.mantissa_bits - 3, min(fmt.emax + 2, 1020), size=50_000)
    scaled = rng.standard_normal(50_000) * np.exp2(exponent)
    with np.errstate(invalid="ignore"):
        x = torch.from_numpy(np.concatenate([code.view(np.float64), scaled, SPECIAL]))
        for saturate in (True, False):
            assert_same(fake_quantize(x, fmt, saturate=saturate), reference(x, fmt, saturate), x)


@pytest.mark.parametrize("saturate", MODES)
@pytest.mark.parametrize("fmt", ALL, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_every_float16_and_bfloat16_rounds_as_in_the_reference(fmt, dtype, saturate):
    x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy casting a signalling NaN
        assert_same(fake_quantize(x, fmt, saturate=saturate), reference(x, fmt, saturate), x)


def test_a_tensor_narrower_than_the_format_rounds_its_result_once_more():
    assert fake_quantize(torch.tensor([1e5], dtype=torch.bfloat16), FLOAT16).item() == 65536.0  # 65504 needs 11 bits
    assert fake_quantize(torch.tensor([65504.0], dtype=torch.float16), BFLOAT16).item() == math.inf


@pytest.mark.parametrize("fmt", [fmt for fmt in SMALL if fmt is not FLOAT8_E8M0FNU], ids=str)
def test_ml_dtypes_gives_the_same_values_on_random_float32(fmt):
    code = np.random.default_rng(seed=3).integers(0, 2**32, size=2**18, dtype=np.uint64).astype(np.uint32)
    x = code.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = x.astype(oracle_dtype(fmt)).astype(np.float64)
    if not fmt.has_nan:
        theirs[np.isnan(x)] = np.nan  # ml_dtypes turns NaN into 0 here
    assert_same(fake_quantize(torch.from_numpy(x), fmt, saturate=False), theirs, torch.from_numpy(x))


def test_ml_dtypes_turns_nan_into_minus_zero_in_e2m1():
    assert np.float32(np.nan).astype(ml_dtypes.float4_e2m1fn) == 0
    assert fake_quantize(torch.tensor(math.nan), FLOAT4_E2M1FN).isnan()


@pytest.mark.parametrize("exponent_bits", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("mantissa_bits", [1, 4, 9, 23, 30])
def test_formats_of_ones_own_work_too(exponent_bits, mantissa_bits):
    fmt = FloatFormat("mine", exponent_bits, mantissa_bits, bias=2 ** (exponent_bits - 1) - 1)
    x = all_regions_of_float32()[::7]
    for saturate in (True, False):
        assert_same(fake_quantize(x, fmt, saturate=saturate), reference(x, fmt, saturate), x)


def test_a_format_with_the_exponents_of_float64_names_the_function_that_can():
    with pytest.raises(ValueError, match=r"mine: its steps leave the range of float64; use utils.rounding.quantize"):
        fake_quantize(torch.ones(3), FloatFormat("mine", 11, 5, bias=1023))


def test_flushing_subnormals_changes_only_formats_with_the_range_of_float32():
    x = all_regions_of_float32()
    x = x[~x.isnan()]
    before = {fmt: fake_quantize(x, fmt) for fmt in ALL}
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormals")
    try:
        after = {fmt: fake_quantize(x, fmt) for fmt in ALL}
    finally:
        torch.set_flush_denormal(False)
    changed = {str(fmt) for fmt in ALL if not same_bits(before[fmt].double(), after[fmt].double()).all()}
    assert changed <= {"float64", "float32", "tf32", "bfloat16", "float8_e8m0fnu"}


# A torch function


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5, 7), (2, 3, 4, 5)], ids=str)
def test_shape_and_dtype_are_kept(shape, dtype):
    x = torch.full(shape, 1.1, dtype=dtype)
    for y in (fake_quantize(x, FLOAT8_E4M3FN), fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=0)):
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
        assert y.data_ptr() != x.data_ptr() or x.numel() == 0
    assert (fake_quantize(x, FLOAT8_E4M3FN) == 1.125).all()


@pytest.mark.parametrize("fmt", [FLOAT64, FLOAT32, FLOAT16, FLOAT8_E4M3FN, TF32], ids=str)
def test_strides_do_not_matter(fmt):
    base = torch.randn(64, 96, 3, generator=torch.Generator().manual_seed(1))
    for x in (base.permute(2, 0, 1), base[::2, 1::3], base[:, :1].expand(64, 96, 3), base.flip(0)[3:]):
        expected = reference(x.contiguous(), fmt, True)
        assert_same(fake_quantize(x, fmt), expected, x)
        out = torch.empty_strided((*x.shape[::-1],), (1, x.shape[-1], x.shape[-1] * x.shape[1])).permute(2, 1, 0)
        assert fake_quantize(x, fmt, out=out) is out
        assert_same(out, expected, x)
        drawn = fake_quantize_stochastic(x, fmt, seed=3)
        assert torch.equal(drawn, fake_quantize_stochastic(x.contiguous(), fmt, seed=3))


@pytest.mark.parametrize("fmt", [FLOAT64, TF32, FLOAT16, FLOAT8_E5M2, FLOAT8_E8M0FNU, FLOAT4_E2M1FN], ids=str)
@pytest.mark.parametrize("saturate", MODES)
def test_out_receives_the_result_and_may_be_x_itself(fmt, saturate):
    x = torch.cat([torch.randn(200_000, generator=torch.Generator().manual_seed(1)), torch.tensor(SPECIAL)])
    expected = fake_quantize(x, fmt, saturate=saturate)
    out = torch.empty_like(x)
    assert fake_quantize(x, fmt, saturate=saturate, out=out) is out
    assert_same(out, expected.double().numpy(), x)
    assert fake_quantize(x, fmt, saturate=saturate, out=x) is x
    assert_same(x, expected.double().numpy(), x)


def test_pieces_do_not_show(monkeypatch):
    x = torch.randn(100_003, generator=torch.Generator().manual_seed(1))
    whole = [fake_quantize(x, FLOAT8_E5M2), fake_quantize_stochastic(x, FLOAT8_E5M2, seed=1)]
    monkeypatch.setattr(module, "_CPU_PIECE", 64)
    pieces = [fake_quantize(x, FLOAT8_E5M2), fake_quantize_stochastic(x, FLOAT8_E5M2, seed=1)]
    assert all(torch.equal(a, b) for a, b in zip(whole, pieces, strict=True))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_show(threads):
    x = torch.randn(300_000, generator=torch.Generator().manual_seed(1))
    whole = [fake_quantize(x, FLOAT8_E4M3FNUZ), fake_quantize_stochastic(x, FLOAT8_E4M3FNUZ, seed=1)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        again = [fake_quantize(x, FLOAT8_E4M3FNUZ), fake_quantize_stochastic(x, FLOAT8_E4M3FNUZ, seed=1)]
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(whole, again, strict=True))


@pytest.mark.parametrize("function", [fake_quantize, lambda x, fmt: fake_quantize_stochastic(x, fmt, seed=1)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_gradient_passes_straight_through(function, dtype):
    x = torch.tensor([0.3, -1e6, 1e-9, math.inf, 0.0], dtype=dtype, requires_grad=True)
    weight = torch.tensor([1.0, -2.0, 3.0, 4.0, 5.0], dtype=dtype)
    y = function(x, FLOAT8_E4M3FN)
    assert y.requires_grad
    (gradient,) = torch.autograd.grad((y * weight).sum(), x)
    assert torch.equal(gradient, weight)  # also where the value was saturated or became zero


def test_no_gradient_is_recorded_where_none_is_wanted():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert not fake_quantize(x, FLOAT16).requires_grad
        fake_quantize(x, FLOAT4_E2M1FN, out=x)
    assert not fake_quantize(x.detach(), FLOAT16).requires_grad
    assert type(fake_quantize(torch.nn.Parameter(x), FLOAT16)) is torch.Tensor


def test_a_layer_trains_through_it():
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(4, 1), torch.randn(64, 4)
    target = x @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]])
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(60):
        y = torch.nn.functional.linear(x, fake_quantize(layer.weight, FLOAT8_E4M3FN), layer.bias)
        loss = (y - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.01


# Bad input


def test_bad_input_is_named_with_the_remedy():
    x = torch.ones(3)
    with pytest.raises(TypeError, match=r"x has dtype torch.int64; convert it first, for example x.float\(\)"):
        fake_quantize(torch.arange(3), FLOAT16)
    with pytest.raises(TypeError, match=r"dtype torch.float8_e4m3fn; convert it first"):
        fake_quantize(x.to(torch.float8_e4m3fn), FLOAT16)
    with pytest.raises(TypeError, match=r"x is a torch.Tensor, not list; utils.rounding.quantize takes arrays"):
        fake_quantize([1.0], FLOAT16)
    with pytest.raises(TypeError, match=r"fmt is a FloatFormat, not 'float16'; by name: FORMATS\["):
        fake_quantize(x, "float16")
    with pytest.raises(ValueError, match=r"out is \(4,\) torch.float32 on cpu, x is \(3,\)"):
        fake_quantize(x, FLOAT16, out=torch.empty(4))
    with pytest.raises(ValueError, match=r"out is \(3,\) torch.float64 .* use torch.empty_like"):
        fake_quantize(x, FLOAT16, out=torch.empty(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="out= records no gradient: drop it, or work under"):
        fake_quantize(x.requires_grad_(), FLOAT16, out=torch.empty(3))


def test_an_out_that_overlaps_x_is_refused_and_its_neighbour_is_not():
    memory = torch.arange(10.0)
    low, high = memory[:5], memory[5:]
    for x, out in ((memory[:6], memory[4:]), (memory[4:], memory[:6]), (low, memory[4:9]), (high, memory[1:6])):
        with pytest.raises(ValueError, match="out overlaps x without being the same view"):
            fake_quantize(x, FLOAT4_E2M1FN, out=out)
    fake_quantize(low, FLOAT4_E2M1FN, out=high)
    assert memory.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    low.copy_(torch.arange(9.0, 4.0, -1.0))
    fake_quantize(high, FLOAT4_E2M1FN, out=low)
    assert memory.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    fake_quantize(memory[5:], FLOAT8_E8M0FNU, out=memory[5:])
    assert memory[6:].tolist() == [1, 2, 4, 4]


@pytest.mark.parametrize("seed", [1.0, True, None])
def test_a_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises(TypeError, match="seed is an int, not"):
        fake_quantize_stochastic(torch.ones(3), FLOAT16, seed=seed)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match=rf"seed {seed} is not in 0 \.\.\. 2\*\*64 - 1"):
        fake_quantize_stochastic(torch.ones(3), FLOAT16, seed=seed)


# Stochastic rounding


def random_bits_in_numpy(count: int, seed: int, start: int = 0) -> np.ndarray:
    """The bits that the elements start, ..., start + count - 1 draw, in unsigned arithmetic."""
    z = (seed + (start // 2**30 + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    keys = np.uint32((z & 0xFFFFFFFF) ^ 0x80000000), np.uint32((z >> 32) ^ 0x80000000)
    h = np.arange(start % 2**30, start % 2**30 + count).astype(np.uint32) ^ keys[0]
    h = (h ^ h >> np.uint32(16)) * np.uint32(0x7FEB352D)
    return (h ^ h >> np.uint32(15) ^ keys[1]) * np.uint32(0x846CA68B)


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("start", [0, 2**16, 2**30 - 7, 2**30, 5 * 2**30])
def test_the_hash_is_the_same_in_unsigned_numpy(seed, start):
    count = min(1000, 2**30 - start % 2**30)
    ours = module._draw(seed, start, count, torch.device("cpu"))()
    np.testing.assert_array_equal(ours.numpy().view(np.uint32), random_bits_in_numpy(count, seed, start))


@pytest.mark.parametrize("saturate", MODES)
@pytest.mark.parametrize("fmt", [fmt for fmt in ALL if fmt not in (FLOAT64, FLOAT32)], ids=str)
def test_given_its_draws_the_twin_rounds_as_the_reference_would(fmt, saturate):
    x = all_regions_of_float32()
    random = random_bits_in_numpy(x.numel(), seed=7)
    # The formats with float32's exponents add the top bits of the draw to the dropped ones, and carry.
    by_carry = fmt in (BFLOAT16, TF32)
    dropped = 23 - fmt.mantissa_bits
    if by_carry:
        threshold = 1 - (random >> np.uint32(32 - dropped)) / 2.0**dropped
    else:
        threshold = ((random.view(np.int32) >> 9) + 2**22 + 0.5) / 2.0**23

    def draw(q):  # up in magnitude where the fraction exceeds the threshold (a carry: reaches it)
        size = np.abs(q)
        fraction = size - np.floor(size)
        up = fraction >= threshold if by_carry else fraction > threshold
        return np.copysign(np.floor(size) + up, q)

    expected = quantize(x.double().numpy(), fmt, rounding=draw, saturate=saturate)
    assert_same(fake_quantize_stochastic(x, fmt, seed=7, saturate=saturate), expected, x)


@pytest.mark.parametrize("share", [2.0**-8, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT16, BFLOAT16, FLOAT4_E2M1FN, FLOAT8_E8M0FNU], ids=str)
def test_stochastic_rounding_goes_up_with_the_probability_of_the_fraction(fmt, dtype, share):
    n = 40_000
    lows = [1.0, 4.0] if fmt is FLOAT8_E8M0FNU else [1.0, fmt.smallest_normal, 0.0, -1.0]
    for low in lows:
        x = torch.full((n,), low + math.copysign(share * float(ulp(low, fmt)), low), dtype=dtype)
        away = (fake_quantize_stochastic(x, fmt, seed=8).abs() > abs(low)).double().mean().item()
        assert abs(away - share) <= 5 * math.sqrt(share * (1 - share) / n), (low, away)


def test_the_mean_over_seeds_is_x_itself():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(9)) * 20
    seeds = 400
    mean = torch.stack([fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=s).double() for s in range(seeds)]).mean(0)
    # A step of one ulp taken with probability p has a standard deviation of at most ulp / 2.
    error = np.abs(mean.numpy() - x.double().numpy()) / ulp(x.numpy(), FLOAT8_E4M3FN)
    assert error.max() <= 5 * 0.5 / math.sqrt(seeds)
    bias = np.mean((mean.numpy() - x.double().numpy()) / ulp(x.numpy(), FLOAT8_E4M3FN))
    assert abs(bias) <= 5 * 0.5 / math.sqrt(seeds * x.numel())


def test_a_probability_is_exact_to_two_to_the_minus_24_and_for_normal_float32_values_exact():
    """Of the 2**23 thresholds, k lie below a fraction of k / 2**23; below any other fraction, the nearest number."""
    threshold = (np.arange(2**23) + 0.5) / 2**23
    k = np.array([0, 1, 12345, 2**23 - 1])
    np.testing.assert_array_equal(np.searchsorted(threshold, k / 2**23), k)
    fraction = np.random.default_rng(seed=1).random(100_000)
    assert np.abs(np.searchsorted(threshold, fraction) / 2**23 - fraction).max() <= 2.0**-24


def test_a_seed_repeats_and_seeds_differ_and_so_do_neighbours():
    x = torch.full((30, 1000), 1.0625)  # the middle between 1 and 1.125 in E4M3
    draws = [fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=seed).gt(1.1) for seed in (1, 1, 2, 2**63)]
    assert torch.equal(draws[0], draws[1])
    n = x.numel()
    bound = 5 * math.sqrt(0.25 / n)
    flat = draws[0].flatten().double()
    for other in (draws[2], draws[3]):
        assert abs((draws[0] == other).double().mean().item() - 0.5) <= bound
    for lag in (1, 2, 3, 64, 1000, 4096):
        assert abs((flat[lag:] == flat[:-lag]).double().mean().item() - 0.5) <= bound * math.sqrt(n / (n - lag))


@pytest.mark.parametrize("seed", [0, 1, 2, 12345])
def test_the_upper_bits_of_the_hash_are_balanced_and_change_with_each_bit_of_the_counter(seed):
    n, used = 2**16, 23
    h = random_bits_in_numpy(n, seed=seed) >> np.uint32(32 - used)
    bit = (h[:, None] >> np.arange(used, dtype=np.uint32)) & np.uint32(1)
    assert np.abs(bit.mean(0) - 0.5).max() <= 5 * math.sqrt(0.25 / n)
    # Flipping one bit of the counter flips about half of the used bits, and each of them about half of the time.
    for k in range(16):
        flipped = bit != bit[np.arange(n) ^ (1 << k)]
        assert abs(flipped.mean() - 0.5) < 0.02, k
        assert np.abs(flipped.mean(0) - 0.5).max() < 0.06, (k, flipped.mean(0))


def test_values_of_the_format_do_not_move_under_stochastic_rounding():
    for fmt in SMALL:
        value = torch.tensor([float(v) for v in grid(fmt)[:-1]], dtype=torch.float32)
        value = torch.cat([value, -value]) if fmt.signed else value
        if not fmt.has_negative_zero:
            value = value + 0.0
        assert same_bits(fake_quantize_stochastic(value, fmt, seed=4).double(), value.double()).all()


def test_stochastic_overflow_follows_saturate():
    x = torch.full((20_000,), 448.0 + 8.0)  # a quarter of the way to 480
    plain = fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=5, saturate=False)
    assert abs(plain.isnan().double().mean().item() - 0.25) <= 5 * math.sqrt(0.25 * 0.75 / x.numel())
    assert (plain[~plain.isnan()] == 448).all()
    assert (fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=5) == 448).all()
    huge = torch.tensor([1e30, -1e30, math.inf, -math.inf, math.nan])
    assert fake_quantize_stochastic(huge, FLOAT8_E5M2, seed=5, saturate=False)[:4].tolist() == 2 * [math.inf, -math.inf]
    assert fake_quantize_stochastic(huge, FLOAT8_E5M2, seed=5)[:4].tolist() == 2 * [57344, -57344]
    assert fake_quantize_stochastic(huge, FLOAT8_E5M2, seed=5)[4].isnan()


def test_the_reference_and_the_twin_agree_on_how_often():
    n, x = 40_000, 3.3
    ours = fake_quantize_stochastic(torch.full((n,), x, dtype=torch.float64), FLOAT8_E4M3FN, seed=6)
    theirs = quantize(np.full(n, x), FLOAT8_E4M3FN, rounding=stochastic(np.random.default_rng(6)))
    difference = abs((ours > x).double().mean().item() - np.mean(theirs > x))
    assert difference <= 5 * math.sqrt(2 * 0.25 / n)


# On a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_a_gpu_gives_the_bits_of_the_cpu(fmt):
    x = all_regions_of_float32()
    for saturate in (True, False):
        assert_same(fake_quantize(x.cuda(), fmt, saturate=saturate).cpu(), reference(x, fmt, saturate), x)
        for compiled in (False, True):
            ours = fake_quantize_stochastic(x.cuda(), fmt, seed=7, saturate=saturate, compiled=compiled).cpu()
            assert_same(ours, fake_quantize_stochastic(x, fmt, seed=7, saturate=saturate).double().numpy(), x)
    assert_same(fake_quantize(x.cuda(), fmt, compiled=True).cpu(), reference(x, fmt, True), x)
