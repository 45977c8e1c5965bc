"""Each entry of the table adds as it says: it equals the direct call, and its fields describe that call."""

import dataclasses

import pytest
import torch

from utils.emulation.accumulators import ACCUMULATORS, N_C, exact, stochastic_float16
from utils.emulation.rounded_matmul import kahan_matmul, matmul, pairwise_matmul
from utils.emulation.tensor_core import aligned_matmul, truncating_matmul
from utils.fake_quantize import fake_quantize
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16, FLOAT32
from utils.rounding import ties_to_even

DIRECT = {
    "float32": lambda a, b: matmul(a, b, accumulator=FLOAT32),
    "float16": lambda a, b: matmul(a, b, accumulator=FLOAT16),
    "bfloat16": lambda a, b: matmul(a, b, accumulator=BFLOAT16),
    "float16-chunk16": lambda a, b: matmul(a, b, accumulator=FLOAT16, chunk=16),
    "float16-pairwise": lambda a, b: pairwise_matmul(a, b, accumulator=FLOAT16),
    "float16-kahan": lambda a, b: kahan_matmul(a, b, accumulator=FLOAT16),
    "volta": lambda a, b: aligned_matmul(a, b, block=4, fraction_bits=23, operand_format=FLOAT16),
    "fp8-14bit": lambda a, b: truncating_matmul(a, b, bits=14, block=32),
    "fp8-14bit-128": lambda a, b: truncating_matmul(a, b, bits=14, block=32, promote=128),
    "fp8-aligned": lambda a, b: aligned_matmul(a, b, block=32, fraction_bits=13, operand_format=FLOAT8_E4M3FN),
    "fp8-aligned-128": lambda a, b: aligned_matmul(
        a, b, block=32, fraction_bits=13, operand_format=FLOAT8_E4M3FN, promote=128
    ),
}
each_one = pytest.mark.parametrize("one", ACCUMULATORS.values(), ids=ACCUMULATORS)


def factors(fmt, count, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return (fake_quantize(torch.rand(shape, generator=rng), fmt) for shape in ((5, count), (count, 3)))


@each_one
def test_an_entry_equals_the_direct_call(one):
    a, b = factors(one.operands, 1111)
    got = one.matmul(a, b)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, DIRECT[one.name](a, b), rtol=0, atol=0)


def test_no_two_entries_add_alike_and_each_stands_under_its_name():
    assert list(ACCUMULATORS) == list(DIRECT) == [one.name for one in ACCUMULATORS.values()]
    a, b = factors(FLOAT16, 4096)
    results = {name: tuple(one.matmul(a, b).flatten().tolist()) for name, one in ACCUMULATORS.items()}
    assert len(set(results.values())) == len(results)
    assert len({one.label for one in ACCUMULATORS.values()}) == len(ACCUMULATORS)


@each_one
def test_the_total_has_the_bits_that_the_entry_says(one):
    """1 + 2**(1 - p) fits into p bits, 1 + 2**-p does not; the small addend comes in the next block."""
    ones = torch.ones(one.block + 1, 1)

    def total(small):
        row = torch.zeros(1, one.block + 1)
        row[0, 0], row[0, -1] = 1.0, small
        return float(one.matmul(row, ones))

    assert total(2.0 ** (1 - one.precision)) == 1 + 2.0 ** (1 - one.precision)
    if one.order == "running":
        assert total(2.0**-one.precision) == 1.0  # a tie that goes to even, or bits that are cut
        above = total(1.5 * 2.0**-one.precision)
        assert (above > 1.0) == (one.rounding is ties_to_even)


@each_one
def test_the_unit_roundoff_bounds_one_rounding(one):
    rng = torch.Generator().manual_seed(1)
    a = torch.zeros(200, one.block + 1)
    a[:, 0] = 1.0
    a[:, -1] = fake_quantize(torch.rand(200, generator=rng), one.operands)
    errors = (one.matmul(a, torch.ones(one.block + 1, 1)).double() / a.double().sum(dim=1, keepdim=True) - 1).abs()
    assert float(errors.max()) <= one.unit_roundoff
    if one.precision < 12:  # else every such sum of two fits
        assert float(errors.max()) > one.unit_roundoff / 2


@pytest.mark.parametrize("one", [each for each in ACCUMULATORS.values() if each.promote], ids=lambda each: each.name)
def test_a_promoted_total_is_the_sum_of_its_parts(one):
    assert one.promote == N_C
    a, b = factors(one.operands, 4 * N_C)
    unpromoted = ACCUMULATORS[one.name.removesuffix(f"-{N_C}")]
    parts = [unpromoted.matmul(a[:, k : k + N_C], b[k : k + N_C]) for k in range(0, 4 * N_C, N_C)]
    torch.testing.assert_close(one.matmul(a, b), ((parts[0] + parts[1]) + parts[2]) + parts[3], rtol=0, atol=0)
    assert dataclasses.replace(one, name="", label="", matmul=None, promote=None, source="") == dataclasses.replace(
        unpromoted, name="", label="", matmul=None, source=""
    )


@pytest.mark.parametrize("one", [each for each in ACCUMULATORS.values() if each.block > 1], ids=lambda each: each.name)
def test_aligned_addends_are_cut_one_by_one_and_others_together(one):
    row = torch.zeros(1, one.block)
    row[0, 0], row[0, 1:3] = 1.0, 0.75 * 2.0 ** (1 - one.precision)
    total = float(one.matmul(row, torch.ones(one.block, 1)))
    assert total == 1 + (0 if one.aligned else 2 if one.rounding is ties_to_even else 1) * 2.0 ** (1 - one.precision)


def test_exact_sums_are_rounded_once_and_to_float32():
    one = exact(FLOAT16)
    a, b = factors(FLOAT16, 1111)
    assert torch.equal(one.matmul(a, b), (a.double() @ b.double()).float())
    assert one.name == "exact-float16"
    assert one.operands is FLOAT16


def test_stochastic_totals_are_float16_and_right_on_average():
    a, b = torch.ones(1, 3000), torch.full((3000, 50), 0.5)
    totals = stochastic_float16(3).matmul(a, b)
    assert torch.equal(totals, totals.half().float())
    assert torch.equal(totals, stochastic_float16(3).matmul(a, b))
    assert not torch.equal(totals, stochastic_float16(4).matmul(a, b))
    # 476 steps in [1024, 1500] with a gap of 1: each has a variance of 1/4; before, halves are exact up to 1024
    assert abs(float(totals.mean()) - 1500) < 5 * (952 / 4 / 50) ** 0.5
    assert float(ACCUMULATORS["float16"].matmul(a, b)[0, 0]) == 1024  # where halves begin to be ties


@each_one
def test_an_entry_says_where_it_is_known_from(one):
    assert one.source.startswith(("IEEE 754", "model: ", "Fasi, ", "Xie, "))
    assert one.label
    assert one.order in ("running", "pairwise", "kahan")
