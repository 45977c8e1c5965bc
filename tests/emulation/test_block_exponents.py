"""The largest exponents of blocks of products, found by a product of matrices or one by one, against whole numbers."""

import pytest
import torch

from utils.emulation.block_exponents import LargestPowers, powers


def largest(left, right, block, **how):
    """[blocks, M, N] exponents, of the exponents of factors [K, M] and [K, N]; where one is None, the factor is 0."""
    x, y = (torch.tensor([[0.0 if e is None else 2.0**e for e in row] for row in rows]) for rows in (left, right))
    found = LargestPowers(x[:, :, None], y[:, None], block, smallest=2.0**-80, **how)
    each = found.of_rows(slice(0, x.shape[1]))
    stops = [min(start + block, len(x)) for start in range(0, len(x), block)]
    return torch.stack([each(start, stop).clone() for start, stop in zip(range(0, len(x), block), stops, strict=True)])


def by_hand(left, right, block):
    rows = []
    for start in range(0, len(left), block):
        pairs = list(zip(left[start : start + block], right[start : start + block], strict=True))
        rows.append(
            [
                [
                    max((x[m] + y[n] for x, y in pairs if x[m] is not None and y[n] is not None), default=None)
                    for n in range(len(right[0]))
                ]
                for m in range(len(left[0]))
            ]
        )
    return rows


@pytest.mark.parametrize("block", [1, 4, 8, 10, 32, 200])
@pytest.mark.parametrize("span", [0, 28, 29, 30, 31, 60, 61, 62, 63, 80])
def test_they_are_those_of_whole_numbers_at_every_span(span, block):
    rng = torch.Generator().manual_seed(span)
    low, count = -span // 3, 330
    left = (torch.randint(0, span // 2 + 1, (count, 3), generator=rng) + low).tolist()
    right = torch.randint(0, span - span // 2 + 1, (count, 2), generator=rng).tolist()
    left[0], right[0] = [low] * 3, [0] * 2
    left[-block:], right[-block:] = [[low + span // 2] * 3] * block, [[span - span // 2] * 2] * block  # all the largest
    for k in (1, 5, 70):
        left[k][1] = right[k + 1][0] = None
    found, wanted = largest(left, right, block).tolist(), by_hand(left, right, block)
    for block_found, block_wanted in zip(found, wanted, strict=True):
        for row_found, row_wanted in zip(block_found, block_wanted, strict=True):
            for value, exponent in zip(row_found, row_wanted, strict=True):
                if exponent is None:
                    assert 0 < value < 2.0**low
                else:
                    assert value == 2.0**exponent


def test_a_block_of_zeros_gives_less_than_what_stands_beside_it():
    left, right = [[0, None], [3, None]], [[1], [1]]
    assert float(largest(left, right, 2)[0, 1]) < 2.0
    assert float(largest(left, right, 2, beside=1.5 * 2.0**-20)[0, 1]) <= 2.0**-20
    assert float(largest(left, right, 2, beside=1.5 * 2.0**-20)[0, 0]) == 2.0**4


def test_powers_are_no_smaller_than_those_of_subnormal_numbers_and_zero_stays():
    x = torch.tensor([0.0, -0.0, 2.0**-9, -3 * 2.0**-9, 0.75, -448.0, 2.0**-149])
    assert powers(x, -6).tolist() == [0, 0, 2.0**-6, 2.0**-6, 0.5, 256, 2.0**-6]
    assert powers(x.double(), -126).tolist() == [0, 0, 2.0**-9, 2.0**-8, 0.5, 256, 2.0**-126]
