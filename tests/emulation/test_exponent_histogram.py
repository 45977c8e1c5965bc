"""Counts by binade: against direct casts, value by value, and against frexp."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from oracles import midpoints
from utils import rounding
from utils.emulation.exponent_histogram import Histogram, histogram
from utils.formats import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
)
from utils.rounding import quantize, round_to_grid

WITH_ZERO = [fmt for fmt in FORMATS.values() if fmt.has_zero]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2]
SCALES = [1.0, 2.0**-9, 2.0, 2.0**8, 2.0**16]


def spread(seed: int, binades: int, count: int = 4_000) -> torch.Tensor:
    """Values of both signs over many binades, a quarter of them powers of two, a tenth of them zero; float64."""
    rng = np.random.default_rng(seed)
    x = np.ldexp(1 + rng.random(count) * (rng.random(count) > 0.25), rng.integers(-binades, binades, count))
    return torch.from_numpy(x * rng.choice([-1.0, 1.0], count) * (rng.random(count) > 0.1))


def crafted(fmt) -> torch.Tensor:
    """Every border of a format with both its neighbours: values, midpoints and the border of overflow; float64."""
    if fmt.bits > 8:
        ends = [fmt.smallest_subnormal / 2, fmt.smallest_subnormal, fmt.smallest_normal, fmt.max]
        borders = np.array([1.5 * fmt.smallest_subnormal, *ends])
    else:
        borders = np.concatenate(midpoints(fmt))
    half_ulp = math.ldexp(0.5, fmt.emax - fmt.mantissa_bits)
    with np.errstate(over="ignore"):
        borders = np.concatenate([borders, [fmt.max + half_ulp]])
        x = np.concatenate([borders, np.nextafter(borders, 0), np.nextafter(borders, np.inf)])
    return torch.from_numpy(x[np.isfinite(x) & (x != 0)])


def times(x: torch.Tensor, scale: float) -> np.ndarray:
    """x * scale, which must be exact for the test to mean something."""
    y = x.double().numpy() * scale
    assert np.array_equal(y / scale, x.double().numpy(), equal_nan=True)
    return y


# Counting


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_counts_are_those_of_frexp_for_every_dtype(dtype):
    x = spread(seed=1, binades=8).to(dtype)
    _, e = np.frexp(x.double().numpy())
    found = histogram(x)
    for binade in range(found.low - 2, found.low + len(found.counts) + 2):
        expected = int(((e - 1 == binade) & (x.double().numpy() != 0)).sum())
        assert found.below(binade + 1) - found.below(binade) == expected, binade
    assert found.zeros == int((x.double() == 0).sum())
    assert found.amax == float(x.double().abs().max())
    assert found.total == x.numel()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_every_code_of_a_16_bit_format_is_counted_where_it_belongs(dtype):
    x = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype)
    wide, found = x.double(), histogram(x)
    assert found.zeros == 2
    assert found.infinite == int(wide.isinf().sum()) == 2
    assert found.nan == int(wide.isnan().sum())
    assert found.total == 2**16
    finite = wide[wide.isfinite() & (wide != 0)].numpy()
    significand, e = np.frexp(np.abs(finite))
    low, high = int(e.min()) - 1, int(e.max())
    assert (found.low, len(found.counts)) == (low, high - low)
    assert found.counts == tuple(np.bincount(e - 1 - low))
    assert found.powers == tuple(np.bincount(e - 1 - low, weights=significand == 0.5).astype(int))
    assert found.amax == torch.finfo(dtype).max


@pytest.mark.parametrize(("dtype", "bottom"), [(torch.float32, -149), (torch.float64, -1074)], ids=str)
def test_subnormals_of_the_wide_dtypes_are_counted_by_their_true_binade(dtype, bottom):
    smallest = math.ldexp(1.0, bottom)
    found = histogram(torch.tensor([smallest, -2 * smallest, 3 * smallest, 7 * smallest, 0.0], dtype=dtype))
    assert (found.low, found.counts, found.powers, found.zeros) == (bottom, (1, 2, 1), (1, 1, 0), 1)
    assert found.amax == 7 * smallest
    edge = torch.tensor([torch.finfo(dtype).tiny], dtype=dtype)
    found = histogram(torch.cat([edge, torch.nextafter(edge, 0 * edge)]))
    assert (found.counts, found.powers) == ((1, 1), (0, 1))


def test_flushing_the_processors_subnormals_changes_no_count():
    x = torch.tensor([1e-40, 3e-39, 1.0])
    torch.set_flush_denormal(True)
    try:
        found = histogram(x)
    finally:
        torch.set_flush_denormal(False)
    assert found == histogram(x)
    assert found.zeros == 0


def test_what_is_not_finite_is_counted_apart_and_amax_is_finite():
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, -3.0, 65504.0])
    found = histogram(x)
    assert (found.nan, found.infinite, found.zeros, found.nonzero, found.amax) == (1, 2, 2, 2, 65504.0)
    assert histogram(torch.tensor([math.inf])) == Histogram(infinite=1)
    assert histogram(torch.zeros(3)) == Histogram(zeros=3)
    assert histogram(torch.zeros(0)) == Histogram()


def test_strides_shapes_and_pieces_change_nothing(monkeypatch):
    x = spread(seed=2, binades=20).float()
    expected = histogram(x)
    assert histogram(x.view(40, 100).t()) == expected
    assert histogram(torch.stack([x, -x])[0]) == expected
    assert histogram(x[5]) == histogram(x[5:6])
    monkeypatch.setattr("utils.emulation.exponent_histogram._PIECE", 37)
    assert histogram(x) == expected
    assert histogram(x.view(40, 100)[:, 3:7]).total == 160


def test_counting_leaves_the_tensor_and_its_gradient_alone():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    histogram(x)
    assert x.tolist() == [1.0, -2.0]
    assert x.grad is None


@pytest.mark.parametrize("x", [torch.tensor([1, 2]), [1.0], None])
def test_only_floating_tensors_are_counted(x):
    with pytest.raises(TypeError, match="a tensor of a floating dtype"):
        histogram(x)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_gpu_counts_as_a_cpu_does(dtype):
    x = torch.cat([spread(seed=3, binades=8), torch.tensor([math.inf, math.nan, 1e-40])]).to(dtype)
    assert histogram(x.cuda()) == histogram(x)


# What a format would do


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("fmt", WITH_ZERO, ids=str)
def test_shares_are_those_of_casting_every_value(fmt, scale):
    if fmt is FLOAT64:
        x = spread(seed=4, binades=40)  # nothing in float64 is beyond it
    else:
        x = torch.cat([spread(seed=4, binades=40), crafted(fmt)])
        x = x[(x.abs() < 2.0**900) & (x.abs() > 2.0**-900) | (x == 0)]
    scaled, found = times(x, scale), histogram(x)
    assert found.flushed(fmt, scale) == rounding.underflow_share(scaled, fmt)
    size = np.abs(scaled[scaled != 0])
    tiny = (size < fmt.smallest_normal) & (quantize(size, fmt) != 0)
    assert found.subnormal(fmt, scale) == np.mean(tiny)
    over = np.mean(round_to_grid(size, fmt) > fmt.max)
    assert found.overflowing(fmt, scale) <= over <= found.overflowing_at_most(fmt, scale)
    assert (found.overflowing(fmt, scale) == 0) == (over == 0)


@pytest.mark.parametrize("fmt", WITH_ZERO, ids=str)
def test_a_value_on_each_border_and_beside_it_is_judged_as_the_format_does(fmt):
    for value in crafted(fmt).tolist():
        found = histogram(torch.tensor([value], dtype=torch.float64))
        rounded = float(quantize(value, fmt))
        assert found.flushed(fmt) == (rounded == 0), value
        assert found.overflowing(fmt) == (float(round_to_grid(value, fmt)) > fmt.max), value
        assert found.overflowing_at_most(fmt) == found.overflowing(fmt), value


def test_a_tie_at_half_the_smallest_subnormal_is_flushed_and_its_neighbour_is_not():
    x = torch.tensor([2.0**-25, -(2.0**-25), 2.0**-25 * (1 + 2.0**-20), 1.0])
    assert histogram(x).flushed(FLOAT16) == 0.5 == float((x.half() == 0).float().mean())
    assert histogram(x).flushed(FLOAT16, 2.0) == 0


def test_the_border_of_overflow_inside_a_binade_is_decided_by_amax_where_it_can_be():
    below, at = torch.tensor([65519.0, 40000.0]), torch.tensor([65520.0, 40000.0, 32768.0])
    assert below.half().isinf().sum() == 0
    assert histogram(below).overflowing(FLOAT16) == histogram(below).overflowing_at_most(FLOAT16) == 0
    assert at.half().isinf().sum() == 1
    assert histogram(at).overflowing(FLOAT16) == 1 / 3
    assert histogram(at).overflowing_at_most(FLOAT16) == 2 / 3  # 40000 might be another 65520; 32768 is known
    further = histogram(torch.cat([at, torch.tensor([7e4])]))
    assert (further.overflowing(FLOAT16), further.overflowing_at_most(FLOAT16)) == (1 / 4, 3 / 4)


def test_a_tie_at_the_border_of_overflow_follows_the_code_of_max():
    assert histogram(torch.tensor([464.0])).overflowing(FLOAT8_E4M3FN) == 0  # to 448, whose code is even
    assert histogram(torch.tensor([464.001])).overflowing(FLOAT8_E4M3FN) == 1
    assert histogram(torch.tensor([61440.0])).overflowing(FLOAT8_E5M2) == 1
    assert histogram(torch.tensor([61439.0])).overflowing(FLOAT8_E5M2) == 0
    assert histogram(torch.tensor([7.0])).overflowing(FLOAT4_E2M1FN) == 1


def test_values_that_were_zero_are_never_taken_for_flushed_ones():
    x = torch.tensor([0.0] * 67 + [2.0**-30] * 31 + [1.0] * 2)
    assert histogram(x).zeros == 67
    assert histogram(x).flushed(FLOAT16) == 31 / 33
    assert histogram(torch.zeros(5)).flushed(FLOAT16) == 0.0
    assert histogram(torch.tensor([math.inf])).overflowing(FLOAT16) == 0.0


def test_shares_of_a_format_and_of_the_rest_add_up():
    found = histogram(spread(seed=5, binades=40))
    normal = found.below(FLOAT16.emax + 1) - found.below(FLOAT16.emin)
    parts = found.flushed(FLOAT16), found.subnormal(FLOAT16), normal / found.nonzero, found.overflowing(FLOAT16)
    assert sum(parts) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scale", [3.0, 0.0, -2.0, math.inf, math.nan, 1000])
def test_a_scale_that_is_no_power_of_two_is_refused(scale):
    with pytest.raises(ValueError, match="is not a power of two"):
        histogram(torch.ones(1)).flushed(FLOAT16, scale)


def test_a_format_without_zero_is_refused_and_so_is_a_name():
    with pytest.raises(ValueError, match="has neither zero nor sign"):
        histogram(torch.ones(1)).flushed(FLOAT8_E8M0FNU)
    with pytest.raises(TypeError, match="fmt is a FloatFormat"):
        histogram(torch.ones(1)).overflowing("float16")


# Choosing a scale


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("fmt", [FLOAT16, BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2], ids=str)
def test_the_smallest_scale_keeps_the_share_and_half_of_it_does_not(fmt, share):
    x = spread(seed=6, binades=7)
    found, nonzero = histogram(x), x[x != 0].numpy()
    scale = found.scale_keeping(fmt, share)
    assert np.mean(quantize(nonzero * scale, fmt) != 0) >= share
    assert np.mean(quantize(nonzero * scale / 2, fmt) != 0) < share


@pytest.mark.parametrize("fmt", WITH_ZERO, ids=str)
@pytest.mark.parametrize("amax", [1.0, 1.5, 1.9999, 448.0, 65520.0, 1e-12])
def test_the_largest_scale_overflows_nothing_and_twice_of_it_does(fmt, amax):
    scale = histogram(torch.tensor([amax, 1e-15], dtype=torch.float64)).largest_scale(fmt)
    assert round_to_grid(amax * scale, fmt) <= fmt.max
    if fmt is FLOAT64:
        assert scale == 2.0**1023 or math.isinf(amax * scale * 2)
    else:
        assert round_to_grid(amax * scale * 2, fmt) > fmt.max


def test_a_share_that_no_scale_keeps_is_an_error_that_says_why():
    wide = histogram(torch.tensor([2.0**-60, 1.0]))
    assert wide.scale_keeping(FLOAT16, 0.5) == 2.0**-24
    with pytest.raises(ValueError, match=r"no scale keeps 100.00% .* 2\*\*15, .* keeps 50.00%"):
        wide.scale_keeping(FLOAT16, 1.0)
    with pytest.raises(ValueError, match="share 0 is not in"):
        wide.scale_keeping(FLOAT16, 0)
    with pytest.raises(ValueError, match="no value is finite and not zero"):
        histogram(torch.zeros(2)).largest_scale(FLOAT16)


# Adding, scaling, writing


def test_the_sum_of_two_histograms_is_that_of_both_tensors():
    parts = [spread(seed=7, binades=3), spread(seed=8, binades=30) * 2.0**40, torch.tensor([math.inf, math.nan])]
    assert histogram(parts[0]) + histogram(parts[1]) + histogram(parts[2]) == histogram(torch.cat(parts).double())
    assert Histogram() + histogram(parts[1]) == histogram(parts[1]) == histogram(parts[1]) + Histogram()


@pytest.mark.parametrize("scale", SCALES)
def test_a_scaled_histogram_is_that_of_the_scaled_values(scale):
    x = spread(seed=9, binades=30)
    assert histogram(x).scaled(scale) == histogram(torch.from_numpy(times(x, scale)))
    assert histogram(x).scaled(scale).flushed(FLOAT16) == histogram(x).flushed(FLOAT16, scale)


def test_a_scale_that_leaves_float64_is_refused():
    found = histogram(torch.tensor([1.5]))
    for scale in (2.0**1000, 2.0**-1000):
        with pytest.raises(ValueError, match="beyond float64"):
            found.scaled(scale).scaled(scale)


def test_json_keeps_everything_and_says_nothing_of_powers_where_there_are_none():
    for x in (spread(seed=10, binades=30), torch.tensor([1.5, 0.0, math.nan]), torch.zeros(0)):
        found = histogram(x)
        assert Histogram.from_json(json.loads(json.dumps(found.as_json()))) == found
    assert histogram(torch.tensor([1.5, 3.0, 0.0])).as_json() == {
        "low": 0,
        "counts": [1, 1],
        "zeros": 1,
        "infinite": 0,
        "nan": 0,
        "amax": 3.0,
    }
    assert histogram(torch.tensor([0.5, 1.5])).as_json()["powers"] == {"-1": 1}


def test_a_histogram_is_a_value():
    found = histogram(torch.tensor([1.0, 3.0]))
    assert found == histogram(torch.tensor([-3.0, 1.0]))
    assert hash(found) == hash(histogram(torch.tensor([-3.0, 1.0])))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.zeros = 3
    with pytest.raises(ValueError, match="one for each binade"):
        Histogram(0, (1, 2))
    assert histogram(torch.tensor([2.0**-149])).flushed(FLOAT32) == 0
