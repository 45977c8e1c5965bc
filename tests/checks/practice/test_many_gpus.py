"""The checks of practice/many_gpus: the right answer, and for each foreseen wrong one the hint that names it."""

import math

import pytest
import torch

from utils.checks.outcome import NOT_YET
from utils.checks.practice import many_gpus, many_gpus_questions
from utils.checks.questions import judge
from utils.experiments.parallel.all_reduce import all_reduce
from utils.experiments.parallel.ways import WAYS
from utils.formats import BFLOAT16, FLOAT16
from utils.widgets.dot_product import DotProduct, Lane


def test_the_bytes_are_those_of_the_ways():
    ways = ("ddp", "ddp-bf16", "fsdp2-bf16", "fsdp2-bf16-reduce")
    sent = [sum(WAYS[name].sent(7_000_000_000, ranks=8).values()) / 1e9 for name in ways]
    assert many_gpus.check_bytes_on_the_wire(dict(zip(many_gpus_questions.BYTES_ON_THE_WIRE, sent, strict=True)))


def test_the_ring_by_hand_is_that_of_utils():
    gradients = torch.tensor([[1.0] * 3, [256.0] * 3, [2.0] * 3])
    found = all_reduce(gradients, wire=BFLOAT16).tolist()
    assert many_gpus.check_ring_by_hand(dict(zip(many_gpus_questions.RING_BY_HAND, found, strict=True)))


def test_the_means_of_equals_are_those_of_utils():
    ways = ((3.0, "ring", BFLOAT16, 2048), (1.0, "ring", FLOAT16, 4096), (1.0, "tree", BFLOAT16, 2048))
    means = [
        all_reduce(torch.full((n, 1), value), order=order, wire=wire, mean="after").item()
        for value, order, wire, n in ways
    ]
    assert many_gpus.check_mean_of_equals(dict(zip(many_gpus_questions.MEAN_OF_EQUALS, means, strict=True)))


def test_the_tasks_under_the_widget_have_the_numbers_that_it_shows():
    ring, tree = Lane("bfloat16"), Lane("bfloat16-pairwise")
    ones = DotProduct(259, (ring, tree), data="ones", operands="bfloat16")
    quarters = DotProduct(512, (ring, tree), data="quarters", operands="bfloat16")
    assert many_gpus_questions.PLAY_TREE.is_right(ones.total(tree))
    assert many_gpus_questions.PLAY_QUARTERS.is_right(quarters.total(ring))
    for wrong, hint in ((ones.total(ring), "the ring"), (259, "the exact sum"), (258, "even significand")):
        assert hint in judge(many_gpus_questions.PLAY_TREE, wrong).message
    for wrong, hint in ((quarters.total(tree), "the exact sum"), (256, "where ones stop"), (32, "still counts")):
        assert hint in judge(many_gpus_questions.PLAY_QUARTERS, wrong).message


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


def divided_first(gradients):
    return sum(each.float() / len(gradients) for each in gradients).bfloat16()


def running_mean(gradients):
    mean = torch.zeros(gradients[0].shape)
    for count, gradient in enumerate(gradients, 1):
        mean += (gradient - mean) / count
    return mean.bfloat16()


def first_twice(gradients):
    total = gradients[0].float()
    for gradient in gradients:
        total += gradient
    return (total / len(gradients)).bfloat16()


def in_place(gradients):
    for gradient in gradients[1:]:
        gradients[0] += gradient
    return gradients[0] / len(gradients)


def in_float16(gradients):
    total = torch.zeros(gradients[0].shape).half()
    for gradient in gradients:
        total += gradient.half()
    return (total.float() / len(gradients)).bfloat16()


def cut_off(gradients):
    mean = torch.stack(gradients).float().mean(0)
    return (mean.view(torch.int32) & -(2**16)).view(torch.float32).bfloat16()


@pytest.mark.parametrize("right", [stacked, one_by_one, in_float64, divided_first, running_mean])
def test_the_reduce_may_be_written_in_any_way(right):
    outcome = many_gpus.check_float32_reduce(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda g: sum(g) / len(g), "as on a ring"),
        (in_place, "as on a ring"),
        (in_float16, "float16 after each addition"),
        (first_twice, "added twice"),
        (cut_off, "cut off"),
        (lambda g: torch.stack(g).float().nanmean(0).bfloat16(), "your mean hides it"),
        (lambda g: (sum(each.float() for each in g[1:]) / len(g) + 0 * g[0].float()).bfloat16(), "rank 0 is missing"),
        (lambda g: sum(each / len(g) for each in g), "divided in bfloat16 first, and then added"),
        (
            lambda g: sum((each / len(g)).float() for each in g).bfloat16(),
            "divided in bfloat16 first, and rounded there",
        ),
        (lambda g: sum(each.float() for each in g).bfloat16(), "That is the sum"),
        (lambda g: sum(each.float() for each in g).bfloat16() / len(g), "Divide before you round"),
        (lambda g: (sum(each.float() for each in g) / max(len(g) - 1, 1)).bfloat16(), "a rank too"),
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


def unit_vectors(shards):
    """Right for the first shards, but 0 / 0 where there is nothing to scale by."""
    largest = max((each.abs().max().float() for each in shards if each.numel()), default=1.0)
    return largest * math.sqrt(sum((each.float() / largest).square().sum().item() for each in shards))


def test_a_norm_of_zeros_must_not_be_nan():
    outcome = many_gpus.check_sharded_norm(unit_vectors)
    assert outcome.status == NOT_YET
    assert "gradients of 0" in outcome.message


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
        (lambda s: max(each.abs().max() for each in s if each.numel()), "largest entry"),
        (lambda s: torch.cat([each.flatten() for each in s]).float().square().mean().sqrt(), "over the elements"),
        (lambda s: sum(each.float().square().mean() for each in s).sqrt(), "inside each shard"),
        (lambda s: torch.stack([each.norm() for each in s]).norm(), "rounded to bfloat16"),
        (lambda s: math.sqrt(float(sum(each.square().sum() for each in s))), "rounded to bfloat16"),
        (lambda s: 7.0, "it should be"),
    ],
)
def test_the_norm_names_the_mistake(wrong, hint):
    outcome = many_gpus.check_sharded_norm(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message
