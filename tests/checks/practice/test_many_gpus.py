"""The checks of practice/many_gpus: the right answer, and for each foreseen wrong one the hint that names it."""

import math

import pytest
import torch

from utils.checks.outcome import NOT_YET
from utils.checks.practice import many_gpus, many_gpus_questions
from utils.experiments.parallel.all_reduce import all_reduce
from utils.experiments.parallel.ways import WAYS
from utils.formats import BFLOAT16, FLOAT16


def test_the_bytes_are_those_of_the_ways():
    ways = ("ddp", "ddp-bf16", "fsdp2-bf16", "fsdp2-bf16-reduce")
    sent = [sum(WAYS[name].sent(7_000_000_000, ranks=8).values()) / 1e9 for name in ways]
    assert many_gpus.check_bytes_on_the_wire(dict(zip(many_gpus_questions.BYTES_ON_THE_WIRE, sent, strict=True)))


def test_the_ring_by_hand_is_that_of_utils():
    gradients = torch.tensor([[1.0] * 3, [256.0] * 3, [1.0] * 3])
    found = all_reduce(gradients, wire=BFLOAT16).tolist()
    assert many_gpus.check_ring_by_hand(dict(zip(many_gpus_questions.RING_BY_HAND, found, strict=True)))


def test_the_means_of_ones_are_those_of_utils():
    ways = (("ring", BFLOAT16, 2048), ("ring", FLOAT16, 4096), ("tree", BFLOAT16, 2048))
    found = [all_reduce(torch.ones(n, 1), order=order, wire=wire, mean="after").item() for order, wire, n in ways]
    assert many_gpus.check_mean_of_ones(dict(zip(many_gpus_questions.MEAN_OF_ONES, found, strict=True)))


# --- The float32 reduce


def stacked(gradients):
    return torch.stack(gradients).float().mean(0).bfloat16()


def one_by_one(gradients):
    total = torch.zeros(gradients[0].shape)
    for gradient in gradients:
        total += gradient
    return (total / len(gradients)).to(torch.bfloat16)


def in_float64(gradients):
    return (sum(each.double() for each in gradients) / len(gradients)).float().bfloat16()


@pytest.mark.parametrize("right", [stacked, one_by_one, in_float64])
def test_the_reduce_may_be_written_in_any_way(right):
    outcome = many_gpus.check_float32_reduce(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda g: sum(g) / len(g), "that is the ring"),
        (lambda g: sum(each / len(g) for each in g), "Divided in bfloat16 first"),
        (lambda g: sum((each / len(g)).float() for each in g).bfloat16(), "was divided in bfloat16 before"),
        (lambda g: sum(each.float() for each in g).bfloat16(), "That is the sum"),
        (lambda g: sum(each.float() for each in g).bfloat16() / len(g), "Divide first"),
        (lambda g: (sum(each.float() for each in g) / max(len(g) - 1, 1)).bfloat16(), "a rank as well"),
        (lambda g: g[0], "rank 0 alone"),
        (lambda g: torch.stack(g).float().mean(0), "yours is torch.float32"),
        (lambda g: torch.stack(g), "shape of one gradient"),
        (lambda g: torch.full_like(g[0], 7), "it should be"),
    ],
)
def test_the_reduce_names_the_mistake(wrong, hint):
    outcome = many_gpus.check_float32_reduce(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message


# --- The norm of shards


def squares(shards):
    return math.sqrt(sum(each.float().square().sum().item() for each in shards))


def joined(shards):
    return torch.cat([each.flatten().float() for each in shards]).norm()


def norm_of_norms(shards):
    return torch.stack([each.float().norm() for each in shards]).norm().item()


@pytest.mark.parametrize("right", [squares, joined, norm_of_norms])
def test_the_norm_may_be_written_in_any_way(right):
    outcome = many_gpus.check_sharded_norm(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda s: s[0].float().norm(), "norm of rank 0"),
        (lambda s: sum(each.float().norm() for each in s), "Add their squares"),
        (lambda s: max(each.float().norm() for each in s), "largest norm of a shard"),
        (lambda s: sum(each.float().norm() for each in s) / len(s), "mean of the norms"),
        (lambda s: squares(s) ** 2, "root is missing"),
        (lambda s: math.sqrt(squares(s) ** 2 / len(s)), "averaged over the ranks"),
        (lambda s: max(each.abs().max() for each in s), "largest entry"),
        (lambda s: math.sqrt(float(sum(each.square().sum() for each in s))), "rounded to bfloat16"),
        (lambda s: 7.0, "it should be"),
    ],
)
def test_the_norm_names_the_mistake(wrong, hint):
    outcome = many_gpus.check_sharded_norm(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message
