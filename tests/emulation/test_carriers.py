"""The roundings of totals against the exact reference, and what of an operand decides which one is taken."""

import math

import numpy as np
import pytest
import torch

from utils.accumulation import add
from utils.emulation.carriers import Totals, add_to_odd, exact_in_float32, extent, totals
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E8M0FNU, FLOAT16, FLOAT32, FLOAT64, TF32
from utils.rounding import quantize


def decisive(fmt, largest):
    """Values of a format, what lies half-way between them, and the float64 neighbours of both; zero and both signs."""
    rng = np.random.default_rng(0)
    exponents = np.arange(fmt.emin - fmt.mantissa_bits - 2, min(fmt.emax, 60) + 3)
    halves = np.ldexp(rng.integers(2**fmt.precision, 2 ** (fmt.precision + 1), (40, len(exponents))), exponents)
    edges = np.ldexp(np.array([[1.0], [2.0 - 2.0**-fmt.precision], [1.5]]), exponents)
    x = np.concatenate([np.ldexp(halves, -fmt.precision).ravel(), edges.ravel(), [fmt.max, fmt.smallest_subnormal]])
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.inf), [0.0]])
    return np.concatenate([x, -x])[np.abs(np.concatenate([x, -x])) <= largest]


@pytest.mark.parametrize("overflows", [False, True])
@pytest.mark.parametrize("fmt", [FLOAT16, BFLOAT16, TF32, FLOAT32, FLOAT8_E4M3FN, FLOAT8_E5M2], ids=str)
def test_float64_is_rounded_once(fmt, overflows):
    bound = math.inf if overflows else 0.0
    x = decisive(fmt, largest=math.inf if overflows else fmt.max)
    if overflows:
        x = np.concatenate([x, [np.inf, -np.inf, np.nan, 2.0**200]])
    expected = quantize(x, fmt)
    how = Totals(fmt, torch.float64, bound=bound, last_bit=0.0, all_finite=not overflows)
    total, out = torch.tensor(x), torch.empty(len(x), dtype=how.home)
    how.rounding(total)()
    np.testing.assert_array_equal(total.numpy(), expected)
    how.rounding(total := torch.tensor(x), out=out if out.dtype != total.dtype else total)()
    np.testing.assert_array_equal((out if out.dtype != total.dtype else total).double().numpy(), expected)


@pytest.mark.parametrize("fmt", [FLOAT16, BFLOAT16, TF32, FLOAT8_E4M3FN], ids=str)
def test_float32_is_rounded_once(fmt):
    x = decisive(fmt, largest=2.0**100).astype(np.float32)
    total = torch.tensor(x)
    Totals(fmt, torch.float32, bound=math.inf, last_bit=0.0, all_finite=False).rounding(total)()
    np.testing.assert_array_equal(total.double().numpy(), quantize(x, fmt))


def test_where_all_sums_are_multiples_of_the_smallest_subnormal_no_binade_is_too_low():
    how = Totals(FLOAT16, torch.float64, bound=100.0, last_bit=2.0**-24, all_finite=True)
    assert how.least_binade == 0.0
    x = np.arange(-5000, 5000) * 2.0**-24
    total = torch.tensor(x)
    how.rounding(total)()
    np.testing.assert_array_equal(total.numpy(), quantize(x, FLOAT16))
    assert Totals(FLOAT16, torch.float64, bound=100.0, last_bit=2.0**-25, all_finite=True).least_binade == 2.0**-14


@pytest.mark.parametrize(
    ("values", "precision", "last_bit"),
    [
        ([0.0, -0.0], 1, math.inf),
        ([1.0, -4.0], 1, 1.0),
        ([1.25, 0.5], 3, 0.25),
        ([-3.0, 2.0], 2, 1.0),
        ([1.5, 2.0**-30], 2, 2.0**-30),
        ([1 + 2.0**-10], 11, 2.0**-10),
        ([math.pi], 24, 2.0**-22),
        ([math.inf, 1.5, math.nan], 2, 0.5),
    ],
)
def test_an_extent_counts_significant_bits(values, precision, last_bit):
    found = extent(torch.tensor(values))
    assert (found.precision, found.last_bit) == (precision, last_bit)
    assert found.finite == all(map(math.isfinite, values))


def test_subnormal_numbers_count_on_the_safe_side():
    found = extent(torch.tensor([3 * 2.0**-149, 2.0**-127]))
    assert found.precision >= 2
    assert found.last_bit == 2.0**-149
    assert not exact_in_float32(torch.tensor([[2.0**-127]]), torch.ones(1, 1))


def carrier(a, b, fmt, **how):
    found = totals(a, b, fmt, **how)
    return found and found.carrier


def test_the_bits_of_the_operands_choose_the_carrier():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(8, 64, generator=rng)
    e4m3, half = x.to(torch.float8_e4m3fn).float(), x.half().float()
    cut = (x.view(torch.int32) & -(1 << 13)).view(torch.float32) * 2.0**-20  # 11 bits, too small for float16: TF32
    assert carrier(e4m3, e4m3.t(), FLOAT16) == torch.float32
    for fmt in (FLOAT16, BFLOAT16, TF32):
        assert carrier(half, half.t(), fmt) == carrier(cut, half.t(), fmt) == torch.float64
    assert carrier(half, half.t(), FLOAT32) == torch.float32
    assert carrier(half, half.t(), FLOAT32, chunked=True) == torch.float64
    assert carrier(x, half.t(), FLOAT16) == torch.float64  # 11 + 24 + 11 bits
    assert carrier(x, x.t(), FLOAT16) is None
    assert carrier(half, half.t(), FLOAT64) is carrier(half, half.t(), FLOAT8_E8M0FNU) is None


def test_pairs_fit_unless_two_neighbours_need_more_than_53_bits():
    def fit(a, b):
        return totals(a, b, FLOAT16, paired=True).pairs_fit

    a, b = torch.ones(1, 4), torch.ones(4, 1)
    a[0, 0] = b[0, 0] = 2.0**10
    a[0, 1] = 2.0**-32
    assert fit(a, b)  # 2**20 + 2**-32
    a[0, 1] = 2.0**-33
    assert not fit(a, b)
    a[0, 1], a[0, 2] = 1.0, 2.0**-33  # no neighbour of the large one
    assert fit(a, b)
    rng = torch.Generator().manual_seed(0)
    assert fit(*(torch.randn(shape, generator=rng).half().float() for shape in ((256, 1024), (1024, 256))))


def test_sums_rounded_to_odd_keep_the_side_of_a_tie():
    rng = np.random.default_rng(0)
    x = np.ldexp(rng.integers(-(2**22), 2**22, 5000), rng.integers(-40, 40, 5000))
    x[:2500] = np.ldexp(rng.integers(-(2**12), 2**12, 2500), rng.integers(-20, 20, 2500))  # many are ties
    y = np.ldexp(rng.integers(-(2**22), 2**22, 5000), rng.integers(-99, 40, 5000))
    x[:3], y[:3] = [np.inf, np.inf, 0.0], [-np.inf, 1.0, 0.0]
    total = torch.tensor(x)
    add_to_odd(total, torch.tensor(y))
    with np.errstate(invalid="ignore"):
        twice, once = quantize(x + y, FLOAT16), add(x, y, FLOAT16)
    np.testing.assert_array_equal(quantize(total.numpy(), FLOAT16), once)
    assert (once != twice)[3:].sum() > 30  # the plain sum is on a tie where the exact one is not
