"""Matrix products with exact products and rounded sums, against rational arithmetic and `utils.accumulation`."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from utils import accumulation
from utils.accumulation import add, kahan_sum, pairwise_sum, running_sum
from utils.emulation.carriers import totals
from utils.emulation.rounded_matmul import kahan_matmul, matmul, pairwise_matmul
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16, FLOAT32, FLOAT64, TF32
from utils.rounding import toward_zero

DTYPES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16, torch.float32]
ACCUMULATORS = [FLOAT16, BFLOAT16, TF32, FLOAT32]


def factors(dtype, rows=3, count=37, columns=5, seed=0, spread=4):
    """Numbers of mixed signs and sizes, some zero, some cancelling the one before."""
    rng = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(shape, generator=rng) for shape in ((rows, count), (count, columns)))
    a, b = (x * torch.exp2(spread * torch.randn(x.shape, generator=rng)) for x in (a, b))
    a[:, 5::7] = 0.0
    a[:, 4::9], b[4::9] = -a[:, 3:-1:9][:, : a[:, 4::9].shape[1]], b[3:-1:9][: len(b[4::9])]
    return a.clamp(-400, 400).to(dtype), b.clamp(-400, 400).to(dtype)


def products(a, b):
    """[M, N, K] of exact products, in float64, which holds 48 bits."""
    return (a.double()[:, None, :] * b.double().t()[None]).numpy()


def same(ours, theirs):
    np.testing.assert_array_equal(ours.double().numpy(), theirs)


@pytest.mark.parametrize("accumulator", ACCUMULATORS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_total_is_the_exact_sum_rounded_once(dtype, accumulator, seed):
    a, b = factors(dtype, seed=seed)
    same(matmul(a, b, accumulator=accumulator), running_sum(products(a, b), accumulator)[..., -1])
    same(kahan_matmul(a, b, accumulator=accumulator), kahan_sum(products(a, b), accumulator).totals[..., -1])
    same(pairwise_matmul(a, b, accumulator=accumulator), pairwise_sum(products(a, b), accumulator))


@pytest.mark.parametrize("accumulator", ACCUMULATORS, ids=str)
def test_a_long_sum_agrees_at_every_length(accumulator):
    a, b = factors(torch.float16, count=257, spread=1)
    for count in (1, 2, 31, 32, 33, 64, 257):
        head, tail = a[:, :count], b[:count]
        same(matmul(head, tail, accumulator=accumulator), running_sum(products(head, tail), accumulator)[..., -1])
        same(pairwise_matmul(head, tail, accumulator=accumulator), pairwise_sum(products(head, tail), accumulator))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("fmt", [FLOAT16, FLOAT32], ids=str)
@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_chunk_is_added_exactly_and_then_rounded(dtype, chunk, fmt):
    a, b = factors(dtype, spread=1)
    expected = np.zeros((3, 5))
    exact = [[[Fraction(p) for p in column] for column in row] for row in products(a, b)]
    for m in range(3):
        for n in range(5):
            for start in range(0, 37, chunk):
                part = sum(exact[m][n][start : start + chunk])
                assert Fraction(float(part)) == part  # float64 holds it, so `add` rounds the exact sum
                expected[m, n] = add(expected[m, n], float(part), fmt)
    same(matmul(a, b, accumulator=fmt, chunk=chunk), expected)


@pytest.mark.parametrize("accumulator", ACCUMULATORS, ids=str)
@pytest.mark.parametrize("rows_at_once", [1, 2, 100])
@pytest.mark.parametrize("count", [1, 2, 33, 95, 96])
def test_totals_in_float64_agree_at_every_length_and_tile(count, rows_at_once, accumulator, monkeypatch):
    rng = torch.Generator().manual_seed(count)
    a, b = (torch.randn(shape, generator=rng).half() for shape in ((3, count), (count, 5)))
    a[0], a[1] = a[0].abs(), a[1] * 2.0**-7
    for paired in (False, True):  # so that the fast way is the tested one
        assert totals(a.float(), b.float(), accumulator, paired=paired) is not None
    monkeypatch.setattr("utils.emulation.rounded_matmul.tile_height", lambda device, width: rows_at_once)
    same(matmul(a, b, accumulator=accumulator), running_sum(products(a, b), accumulator)[..., -1])
    same(kahan_matmul(a, b, accumulator=accumulator), kahan_sum(products(a, b), accumulator).totals[..., -1])
    same(pairwise_matmul(a, b, accumulator=accumulator), pairwise_sum(products(a, b), accumulator))


@pytest.mark.parametrize("function", [matmul, kahan_matmul, pairwise_matmul])
def test_overflow_and_infinities_among_long_significands(function):
    """2047/2048 has 11 bits: its products are added in float64, where an infinity met one that rounds, and was NaN."""
    x, inf, nan = 2047.0 / 2048.0, math.inf, math.nan
    a = torch.tensor([[x, x, inf], [inf, x, -inf], [x, nan, x], [255 * x, 240.0, 255.0], [1.0, 1.0, 1.0]]).half()
    b = torch.tensor([[x, 256.0], [x, 1.0], [x, 256.0]]).half()
    assert totals(a.float(), b.float(), FLOAT16).carrier == torch.float64
    got = function(a, b, accumulator=FLOAT16)
    same(got[:3], [[inf, inf], [nan, nan], [nan, nan]])
    assert got[3, 1] == inf  # 65249 + 240 + 65280
    assert torch.isfinite(got[3:, 0]).all()
    assert got[4, 1] == 513.0


def test_roundings_that_all_go_up_may_double_a_total_and_overflow():
    """Each product is a little more than 16, half of the last bit of 40000, and so counts for 32."""
    count = 900
    a, b = torch.full((1, count), 16 * (1 + 2.0**-10)).half(), torch.full((count, 1), 1 + 2.0**-10).half()
    a[0, 0], b[0, 0] = 200.0, 200.0
    a[0, -1], b[-1, 0] = -200.0, 20.0  # an infinite total stays one
    assert products(a, b)[..., :-1].sum() < 55000
    assert running_sum(products(a, b), FLOAT16)[0, 0, -1] == math.inf
    same(matmul(a, b, accumulator=FLOAT16), [[math.inf]])


def row_and_column(*pairs, dtype=torch.float16):
    a, b = (torch.tensor(values, dtype=torch.float64) for values in zip(*pairs, strict=True))
    same(a.to(dtype), a.numpy())
    same(b.to(dtype), b.numpy())
    return a.to(dtype)[None], b.to(dtype)[:, None]


@pytest.mark.parametrize(
    ("pairs", "total"),
    [
        ([(2048.0, 1.0), (1.0, 1.0)], 2048.0),  # a tie goes to even
        ([(2050.0, 1.0), (1.0, 1.0)], 2052.0),
        # above the tie by 2**-20, the last bit of a product of 22 bits, which float32 loses: 1 + 2**-10 (1 + 2**-10)
        ([(2048.0, 1.0), (1.0 + 2.0**-10, 1.0 - 2.0**-10)], 2048.0),  # 1 - 2**-20, below the tie
        ([(2048.0, 1.0), (1.0 + 2.0**-10, 1.0 + 2.0**-10)], 2050.0),
        ([(2.0**15, 1.0), (16 * (1 + 2.0**-10), 1.0 - 2.0**-11)], 2.0**15 + 32),  # 16 (1 + 2**-11 - 2**-21)
        ([(1.0, 1.0), (-1.0, 1.0 - 2.0**-11)], 2.0**-11),  # cancellation is exact
        ([(2.0**-12, 2.0**-12), (2.0**-13, 2.0**-12)], 2.0**-23),  # subnormals: 1.5 steps, a tie
        ([(2.0**-13, 2.0**-12)], 0.0),  # half of the smallest
        ([(255.0, 256.0), (240.0, 1.0)], np.inf),  # 65520, where overflow begins
        ([(255.0, 256.0), (239.5, 1.0)], 65504.0),
        ([(256.0, 256.0), (-256.0, 256.0)], np.inf),
        ([(np.inf, 1.0), (1.0, 1.0)], np.inf),
        ([(np.inf, 0.0), (1.0, 1.0)], np.nan),
        ([(np.inf, 1.0), (-np.inf, 1.0)], np.nan),
        ([(np.nan, 1.0), (1.0, 1.0)], np.nan),
    ],
)
def test_crafted_sums_in_float16(pairs, total):
    got = matmul(*row_and_column(*pairs), accumulator=FLOAT16)
    with np.errstate(all="ignore"):
        same(got, running_sum([a * b for a, b in pairs], FLOAT16)[-1:].reshape(1, 1))
    same(got, [[total]])


def test_float32_overflows_and_keeps_subnormals():
    big, small = 2.0**127, 2.0**-75
    a, b = torch.tensor([[big, big]]), torch.tensor([[1.0], [1.0]])
    same(matmul(a, b), [[np.inf]])
    same(matmul(torch.tensor([[small]]), torch.tensor([[small]])), [[0.0]])  # 2**-150, a tie
    same(matmul(torch.tensor([[small]]), torch.tensor([[1.5 * small]])), [[2.0**-149]])


def test_other_rules_and_wide_formats_take_the_exact_way():
    a, b = factors(torch.float16)
    expected = running_sum(products(a, b), FLOAT16, rounding=toward_zero)[..., -1]
    same(matmul(a, b, accumulator=FLOAT16, rounding=toward_zero), expected)
    wide = matmul(a, b, accumulator=FLOAT64)
    assert wide.dtype == torch.float64
    same(wide, running_sum(products(a, b), FLOAT64)[..., -1])


def test_ones_stall_where_the_list_of_facts_says():
    a, b = torch.ones(1, 4096), torch.ones(4096, 1)
    for fmt, total in ((FLOAT16, 2048.0), (BFLOAT16, 256.0), (FLOAT8_E4M3FN, 16.0), (FLOAT32, 4096.0)):
        same(matmul(a, b, accumulator=fmt), [[total]])
    same(pairwise_matmul(a, b, accumulator=BFLOAT16), [[4096.0]])
    same(kahan_matmul(a, b, accumulator=BFLOAT16), [[4096.0]])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("chunk", [1, 4, 37])
def test_it_is_the_twin_of_the_reference(dtype, chunk):
    a, b = factors(dtype, spread=1)
    # Two BLAS libraries may add the products of a chunk in two orders, which float64 as the accumulator would show.
    for accumulator in (*ACCUMULATORS, FLOAT64) if chunk == 1 else ACCUMULATORS:
        theirs = accumulation.matmul(a.double().numpy(), b.double().numpy(), accumulator, chunk)
        same(matmul(a, b, accumulator=accumulator, chunk=chunk), theirs)


def test_an_empty_sum_is_zero():
    a, b = torch.ones(2, 0), torch.ones(0, 3)
    for function in (matmul, kahan_matmul, pairwise_matmul):
        same(function(a, b), np.zeros((2, 3)))


@pytest.mark.parametrize("function", [matmul, kahan_matmul, pairwise_matmul])
def test_a_result_can_stand_in_a_training_step(function):
    weight = torch.ones(3, requires_grad=True)
    (function(torch.ones(2, 4), torch.ones(4, 3)) * weight).sum().backward()
    same(weight.grad, [8.0, 8.0, 8.0])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"a is \(2, 3\) and b is \(2, 3\); they have to be \[M, K\] and \[K, N\]"):
        matmul(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(ValueError, match="chunk is a whole number from 1 on, not 0"):
        matmul(torch.ones(2, 3), torch.ones(3, 2), chunk=0)
    with pytest.raises(TypeError, match="tensors of a floating dtype"):
        matmul(torch.ones(2, 3, dtype=torch.int32), torch.ones(3, 2))
    with pytest.raises(TypeError, match="fmt is a FloatFormat, not 'float16'"):
        matmul(torch.ones(2, 3), torch.ones(3, 2), accumulator="float16")
    with pytest.raises(ValueError, match="float64 holds no exact product of such values"):
        matmul(torch.full((1, 1), 0.1, dtype=torch.float64), torch.ones(1, 1))
    same(matmul(torch.full((1, 1), 0.5, dtype=torch.float64), torch.ones(1, 1)), [[0.5]])
