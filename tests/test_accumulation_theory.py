"""Bounds hold, slopes are what they are said to be, and the prediction meets what the accumulators do."""

import math

import numpy as np
import pytest
import torch

from utils import accumulation, accumulation_theory
from utils.emulation.accumulators import ACCUMULATORS, exact, stochastic_float16
from utils.fake_quantize import fake_quantize
from utils.formats import FLOAT16

COUNTS = (256, 2048)
RUNNING = [one for one in ACCUMULATORS.values() if one.order == "running"]
each_one = pytest.mark.parametrize("one", ACCUMULATORS.values(), ids=ACCUMULATORS)
each_running = pytest.mark.parametrize("one", RUNNING, ids=lambda one: one.name)


def factors(one, count, size=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return (fake_quantize(torch.rand(shape, generator=rng), one.operands) for shape in ((size, count), (count, size)))


def errors(one, count, seed=0):
    """[M, N] relative errors."""
    a, b = factors(one, count, seed=seed)
    ideal = a.double() @ b.double()
    return (one.matmul(a, b).double() - ideal) / ideal


def samples(one, count=2**15):
    a, b = factors(one, count, size=1, seed=7)
    return a.double().numpy().ravel() * b.double().numpy().ravel()


def rms(x):
    return float(x.square().mean().sqrt())


@each_one
@pytest.mark.parametrize("count", COUNTS)
def test_no_error_is_beyond_the_bound(one, count):
    bound = accumulation_theory.worst_case(one, count)
    largest = float(errors(one, count).abs().max())
    assert largest <= bound * (1 + bound)  # the bound is of first order
    assert largest > bound / 500  # one that is far from every error explains nothing


@each_running
@pytest.mark.parametrize("count", COUNTS)
def test_the_prediction_meets_the_error_of_the_model(one, count):
    """64 sums: their root mean square has a relative standard deviation of 1/sqrt(128); 35 % is four of them."""
    found = accumulation_theory.predicted(one, samples(one), count)
    assert rms(errors(one, count)) == pytest.approx(found.error, rel=0.35)


def test_a_long_sum_in_float16_drifts_as_predicted():
    one = ACCUMULATORS["float16"]
    for count in (4096, 16384):
        found = accumulation_theory.predicted(one, samples(one), count)
        assert float(errors(one, count).mean()) == pytest.approx(found.drift, rel=0.02)
        assert abs(found.drift) > 10 * found.walk


def test_stochastic_rounding_has_no_drift_and_the_spread_that_is_predicted():
    one = stochastic_float16(0)
    found = accumulation_theory.predicted(one, samples(one), 512)
    drawn = errors(one, 512)
    assert rms(drawn) == pytest.approx(found.walk, rel=0.35)
    assert abs(found.drift) < found.walk / 5
    assert abs(float(drawn.mean())) < 5 * found.walk / 8  # 64 sums: five standard deviations of their mean
    assert found.error < accumulation_theory.random_walk(one, 512)


def test_a_half_of_the_gap_is_lost_where_bits_are_cut():
    """Addends with many digits, in one binade: each step loses half a gap. At the end of binade [1024, 2048): 1/2."""
    addends = np.random.default_rng(0).uniform(7.0, 9.0, 2**14)
    one = ACCUMULATORS["fp8-14bit"]
    blocks = np.zeros((addends.size, one.block))
    blocks[:, 0] = addends
    shorter, longer = (accumulation_theory.predicted(one, blocks, one.block * k) for k in (150, 250))  # 1200, 2000
    gap = 1024 * 2.0 ** (1 - 14)
    lost = 8 * (150 * shorter.drift - 250 * longer.drift)
    assert lost == pytest.approx(100 * gap / 2, rel=0.02)


@pytest.mark.parametrize(
    ("name", "count", "steps"),
    [
        ("float16", 4096, 4096),
        ("float16-chunk16", 4096, 256),
        ("float16-chunk16", 4097, 257),
        ("float16-pairwise", 4096, 12),
        ("float16-pairwise", 4097, 13),
        ("float16-pairwise", 1, 0),
        ("float16-kahan", 4096, 2),
        ("volta", 4096, 1024 + 4096),
        ("fp8-14bit", 4096, 128),
        ("fp8-14bit-128", 4096, 4),
        ("fp8-14bit-128", 64, 2),
        ("fp8-aligned-128", 4096, 4 + 128),
    ],
)
def test_the_depth_counts_the_roundings_of_one_product(name, count, steps):
    assert accumulation_theory.depth(ACCUMULATORS[name], count) == steps


def test_the_slopes_of_the_bounds():
    def slope(function, name):
        one = ACCUMULATORS[name]
        return math.log2(function(one, 2**14) / function(one, 2**12)) / 2

    assert slope(accumulation_theory.worst_case, "float16") == 1.0
    assert slope(accumulation_theory.random_walk, "float16") == 0.5
    assert slope(accumulation_theory.worst_case, "float16-kahan") == 0.0
    assert 0 < slope(accumulation_theory.worst_case, "float16-pairwise") < 0.12  # log2 K: 12 to 14
    assert slope(accumulation_theory.worst_case, "fp8-14bit") == 1.0
    assert slope(accumulation_theory.worst_case, "fp8-14bit-128") < 0.02  # the part of float32


@pytest.mark.parametrize(
    ("name", "total"),
    [("float16", 2**11), ("bfloat16", 2**8), ("float32", 2**24), ("float16-chunk16", 2**15), ("fp8-aligned", 2**13),
     ("fp8-14bit", 2**18), ("float16-pairwise", math.inf), ("float16-kahan", math.inf), ("fp8-14bit-128", math.inf)],
)  # fmt: skip
def test_the_stall_of_addends_below_1(name, total):
    assert accumulation_theory.stall(ACCUMULATORS[name], 1.0) == total


def test_a_stall_is_what_the_sum_of_ones_finds():
    """To nearest, a sum of ones ends there. Where bits are cut, addends just below 1 no longer count."""
    for name, fmt in (("float16", FLOAT16), ("bfloat16", ACCUMULATORS["bfloat16"].operands)):
        assert accumulation.stall(1.0, fmt) == accumulation_theory.stall(ACCUMULATORS[name], 1.0)
    one = ACCUMULATORS["fp8-aligned"]
    row = torch.full((1, 96), 1 - 2.0**-4)  # below 1, a value of E4M3
    for total, stays in ((2.0**13, True), (2.0**12, False)):
        row[0, 0] = total
        got = float(one.matmul(row, torch.ones(96, 1)))
        assert (got == total) is stays


def test_what_has_no_running_total_has_no_prediction():
    with pytest.raises(ValueError, match="float16-kahan has no running total"):
        accumulation_theory.predicted(ACCUMULATORS["float16-kahan"], np.ones(4), 4)
    assert math.isinf(accumulation_theory.stall(stochastic_float16(0), 1.0))
    assert accumulation_theory.depth(exact(FLOAT16), 100) == 100
