"""The emulated all-reduce: it equals its messages sent one by one, and errs as its order lets expect."""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
import torch

from utils.accumulation import add
from utils.experiments.parallel.all_reduce import (
    ORDERS,
    all_reduce,
    count_bytes_sent,
    count_roundings,
    count_rounds,
    find_divisors,
)
from utils.formats import BFLOAT16, FLOAT8_E5M2, FLOAT16, FLOAT32, FLOAT64
from utils.rounding import quantize

WIRES = (FLOAT32, FLOAT16, BFLOAT16)
KINDS = ("ring", "tree", "gather")
each_order = pytest.mark.parametrize("order", ORDERS)


def gradients(ranks, elements, seed=0):
    return torch.randn(ranks, elements, generator=torch.Generator().manual_seed(seed))


class Message(NamedTuple):
    """One chunk on its way from a rank to another, which adds it to its own, or else puts it in its place."""

    sender: int
    receiver: int
    chunk: int
    adds: bool


def ring_messages(ranks: int) -> list[list[Message]]:
    """The messages of a ring all-reduce, round by round: N a round, each to the next rank.

    The array is cut into N chunks. In the first N - 1 rounds (reduce-scatter) every rank adds what it receives; then
    rank r holds the whole sum of chunk r + 1, and in N - 1 more (all-gather) the sums go round.
    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69, 2009.
    """
    return [
        [Message(r, (r + 1) % ranks, (r + first - step) % ranks, adds) for r in range(ranks)]
        for adds, first in ((True, 0), (False, 1))
        for step in range(ranks - 1)
    ]


def by_messages(values, wire):
    """Send every message of a ring, and return what each rank holds: float64 [N, n]."""
    ranks, elements = values.shape
    held = np.pad(quantize(values.double().numpy(), wire), ((0, 0), (0, -elements % ranks))).reshape(ranks, ranks, -1)
    for messages in ring_messages(ranks):
        carried = [(message, held[message.sender, message.chunk].copy()) for message in messages]
        for message, chunk in carried:
            own = held[message.receiver, message.chunk]
            held[message.receiver, message.chunk] = add(own, chunk, wire) if message.adds else chunk
    return held.reshape(ranks, -1)[:, :elements]


@pytest.mark.parametrize("wire", WIRES, ids=str)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_a_ring_equals_its_messages_sent_one_by_one(ranks, wire):
    values = gradients(ranks, 37)
    held = by_messages(values, wire)
    assert (held == held[0]).all()  # every rank ends with the same bits
    assert np.array_equal(all_reduce(values, wire=wire).double().numpy(), held[0])


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 16])
def test_the_messages_of_a_ring_carry_the_bytes_of_the_formula(ranks):
    messages = [message for each in ring_messages(ranks) for message in each]
    assert len(ring_messages(ranks)) == count_rounds(ranks, "ring") == 2 * (ranks - 1)
    sent = Counter(message.sender for message in messages)
    for rank in range(ranks):
        assert sent[rank] * 64 * 2 == count_bytes_sent(64 * ranks, ranks=ranks, itemsize=2)
    assert all(message.receiver == (message.sender + 1) % ranks for message in messages)


def test_an_all_gather_and_a_reduce_scatter_are_half_an_all_reduce_each():
    half = [count_bytes_sent(1000, ranks=4, itemsize=4, collective=name) for name in ("all_gather", "reduce_scatter")]
    assert half == [3000, 3000]
    assert count_bytes_sent(1000, ranks=4, itemsize=4) == 6000
    assert count_bytes_sent(1000, ranks=1, itemsize=4) == 0


@each_order
@pytest.mark.parametrize("wire", WIRES, ids=str)
def test_sums_that_need_no_rounding_are_exact_in_every_order(order, wire):
    values = gradients(6, 50).sign() * torch.arange(1, 7)[:, None]
    assert torch.equal(all_reduce(values, order=order, wire=wire), values.sum(0))


@pytest.mark.parametrize("wire", [FLOAT16, BFLOAT16, FLOAT8_E5M2], ids=str)
def test_a_float32_adder_in_front_of_a_narrow_wire_is_one_rounding_of_the_exact_sum(wire):
    a, b = gradients(2, 20_000, seed=1) * torch.exp2(torch.randint(-12, 13, (2, 20_000)))
    exact = add(quantize(a.numpy(), wire), quantize(b.numpy(), wire), wire)
    assert np.array_equal(all_reduce(torch.stack([a, b]), wire=wire).double().numpy(), exact)


def error(values, order, wire):
    exact = quantize(values.double().numpy(), wire).sum(0)
    got = all_reduce(values, order=order, wire=wire).double().numpy()
    return np.linalg.norm(got - exact) / np.linalg.norm(exact)


def test_the_error_of_a_bfloat16_ring_grows_with_the_ranks_and_that_of_one_adder_does_not():
    few, many = (gradients(ranks, 4096) for ranks in (4, 256))
    ring, tree, gather = ((error(few, order, BFLOAT16), error(many, order, BFLOAT16)) for order in KINDS)
    assert ring[1] > 3 * ring[0]
    assert gather[1] < 1.1 * gather[0]
    assert gather[1] < tree[1] < ring[1]
    u = 2.0**-BFLOAT16.precision
    for order, measured in zip(KINDS, (ring, tree, gather), strict=True):
        # 5: partial sums of random signs are no larger than sqrt(N), and the roundings add like a random walk
        assert measured[1] < 5 * u * math.sqrt(count_roundings(256, order)), order


def test_the_ring_of_gloo_is_a_ring_of_the_ranks_and_chunks_in_the_opposite_order():
    values = gradients(5, 100)
    chunks = values.view(5, 5, 20)
    back = [-c % 5 for c in range(5)]
    expected = all_reduce(chunks.flip(0)[:, back].reshape(5, 100), wire=BFLOAT16).view(5, 20)[back].flatten()
    assert torch.equal(all_reduce(values, order="gloo", wire=BFLOAT16), expected)
    assert not torch.equal(all_reduce(values, wire=BFLOAT16), expected)
    assert (count_roundings(5, "gloo"), count_rounds(5, "gloo")) == (4, 8)


def test_the_place_of_a_gradient_in_its_array_decides_its_bits_in_a_ring():
    values = gradients(4, 4096)
    turned = values.roll(1024, dims=1)  # by one chunk
    assert not torch.equal(all_reduce(turned, wire=BFLOAT16), all_reduce(values, wire=BFLOAT16).roll(1024))
    for order in ("tree", "gather"):
        expected = all_reduce(values, order=order, wire=BFLOAT16).roll(1024)
        assert torch.equal(all_reduce(turned, order=order, wire=BFLOAT16), expected)


@each_order
def test_a_reduction_repeats_bit_for_bit_and_leaves_its_input_alone(order):
    values = gradients(5, 333)
    kept = values.clone()
    first, second = (all_reduce(values, order=order, wire=BFLOAT16) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(values, kept)
    assert first.dtype == torch.float32


@pytest.mark.parametrize(
    ("ranks", "split"), [(1, (1, 1)), (2, (2, 1)), (4, (2, 2)), (8, (4, 2)), (6, (4, 1.5)), (16, (4, 4)), (3, (2, 1.5))]
)
def test_split_divisors_are_those_of_fsdp2(ranks, split):
    collectives = pytest.importorskip("torch.distributed.fsdp._fully_shard._fsdp_collectives")
    assert find_divisors(ranks, "split") == split
    assert math.prod(split) == ranks
    assert find_divisors(ranks, "before") == (ranks, 1)
    assert find_divisors(ranks, "after") == (1, ranks)
    if ranks > 1:
        group = type("Group", (), {"size": lambda self: ranks})()
        theirs = collectives._get_gradient_divide_factors(group, None, torch.float16)
        assert tuple(theirs[:2]) == split


def test_division_after_the_sum_overflows_in_float16_and_division_before_it_underflows():
    large, small = torch.full((8, 4), 2.0**14), torch.full((8, 4), 2.0**-24)
    assert torch.isinf(all_reduce(large, wire=FLOAT16, mean="after")).all()
    assert (all_reduce(large, wire=FLOAT16, mean="before") == 2.0**14).all()
    assert (all_reduce(small, wire=FLOAT16, mean="before") == 0).all()
    assert (all_reduce(small, wire=FLOAT16, mean="after") == 2.0**-24).all()
    assert torch.isfinite(all_reduce(large, wire=FLOAT16, mean="split")).all()  # 8 * 2**14 / 4 = 2**15
    assert (all_reduce(small, wire=BFLOAT16, mean="before") == 2.0**-24).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_gradients_of_other_dtypes_are_taken_as_float32(dtype):
    values = gradients(3, 10).to(dtype)
    assert torch.equal(all_reduce(values), all_reduce(values.float()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": "star"}, "ring, tree, gather, gloo"),
        ({"mean": "never"}, "before, after, split"),
        ({"wire": FLOAT64}, "float64 on the wire"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_is_known(change, message):
    with pytest.raises(ValueError, match=message):
        all_reduce(gradients(2, 3), **change)


def test_an_array_without_ranks_is_refused():
    with pytest.raises(ValueError, match="one row a rank"):
        all_reduce(torch.ones(3))
    with pytest.raises(ValueError, match="one at least"):
        count_bytes_sent(16, ranks=0, itemsize=4)
