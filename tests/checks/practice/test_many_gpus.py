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
    for wrong, hint in ((ones.total(ring), "the ring"), (259, "the exact sum"), (258, "a tie decided")):
        assert hint in judge(many_gpus_questions.PLAY_TREE, wrong).message
    for wrong, hint in ((quarters.total(tree), "the exact sum"), (256, "where ones stop"), (32, "still counts")):
        assert hint in judge(many_gpus_questions.PLAY_QUARTERS, wrong).message


def count_added(term):
    """How many equal terms a bfloat16 sum takes before one more leaves it as it is."""
    term = torch.tensor(term).bfloat16()
    total, count = term, 1
    while total + term != total:
        total, count = total + term, count + 1
    return count


def test_only_a_power_of_two_leaves_the_stall_where_it_was():
    assert [count_added(term) for term in (1.0, 1 / 4, 1 / 512, 5.0)] == [256, 256, 256, 371]
    assert "of 5s, a ring adds 371" in many_gpus_questions.PLAY_QUARTERS.says


@pytest.mark.parametrize("question", many_gpus_questions.BYTES_ON_THE_WIRE.values(), ids=lambda question: question.id)
def test_an_answer_in_bytes_is_told_its_unit(question):
    assert "That is in bytes" in judge(question, float(question.answer) * 1e9).message


@pytest.mark.parametrize(
    "question",
    [many_gpus_questions.PLAY_TREE, *(many_gpus_questions.RING_BY_HAND[f"weight {place}"] for place in (1, 2))],
    ids=lambda question: question.id,
)
def test_the_reply_to_the_other_neighbour_of_a_tie_does_not_give_the_answer(question):
    message = judge(question, 258).message
    assert "a tie decided" in message
    assert not any(given in message for given in ("260", "130", "129"))


# --- The float32 reduce


def stacked(gradients, examples):
    share = torch.tensor(examples)[:, None] / sum(examples)
    return (torch.stack(gradients).float() * share).sum(0).bfloat16()


def one_by_one(gradients, examples):
    total = torch.zeros(gradients[0].shape)
    for gradient, count in zip(gradients, examples, strict=True):
        total += count * gradient.float()
    return (total / sum(examples)).to(torch.bfloat16)


def in_float64(gradients, examples):
    weighted = (each.double() * count for each, count in zip(gradients, examples, strict=True))
    return (sum(weighted) / sum(examples)).float().bfloat16()


def divided_first(gradients, examples):
    pairs = zip(gradients, examples, strict=True)
    return sum(each.float() * (count / sum(examples)) for each, count in pairs).bfloat16()


def matrix_product(gradients, examples):
    return (torch.tensor(examples).float() @ torch.stack(gradients).float() / sum(examples)).bfloat16()


def from_the_page(gradients, examples):
    got = torch.stack(gradients)
    return (got.float().sum(0) / len(gradients)).bfloat16()


def rounded_products(gradients, examples):
    total = torch.zeros(gradients[0].shape)
    for gradient, count in zip(gradients, examples, strict=True):
        total += count * gradient  # a bfloat16 product
    return (total / sum(examples)).bfloat16()


def rounded_shares(gradients, examples):
    shares = (torch.tensor(examples) / sum(examples)).bfloat16()
    return sum(each.float() * share for each, share in zip(gradients, shares, strict=True)).bfloat16()


def first_twice(gradients, examples):
    total = gradients[0].float() * examples[0]
    for gradient, count in zip(gradients, examples, strict=True):
        total += gradient.float() * count
    return (total / sum(examples)).bfloat16()


def without_first(gradients, examples):
    total = 0 * gradients[0].float()
    for gradient, count in zip(gradients[1:], examples[1:], strict=True):
        total += gradient.float() * count
    return (total / sum(examples)).bfloat16()


def in_place(gradients, examples):
    for gradient, count in zip(gradients, examples, strict=True):
        gradient *= count
    for gradient in gradients[1:]:
        gradients[0] += gradient
    return gradients[0] / sum(examples)


def in_float16(gradients, examples):
    total = torch.zeros(gradients[0].shape).half()
    for gradient, count in zip(gradients, examples, strict=True):
        total += gradient.half() * count
    return (total.float() / sum(examples)).bfloat16()


def cut_off(gradients, examples):
    mean = sum(each.float() * count for each, count in zip(gradients, examples, strict=True)) / sum(examples)
    return (mean.view(torch.int32) & -(2**16)).view(torch.float32).bfloat16()


def without_nan(gradients, examples):
    return one_by_one([gradient.nan_to_num() for gradient in gradients], examples)


def narrow_shares(gradients, examples):
    return [each * (count / sum(examples)) for each, count in zip(gradients, examples, strict=True)]


def weighted_sum(gradients, examples):
    return sum(each.float() * count for each, count in zip(gradients, examples, strict=True))


@pytest.mark.parametrize("right", [stacked, one_by_one, in_float64, divided_first, matrix_product])
def test_the_reduce_may_be_written_in_any_way(right):
    outcome = many_gpus.check_float32_reduce(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (from_the_page, "as in the hook"),
        (lambda g, n: torch.stack(g).mean(0), "as in the hook"),
        (rounded_products, "and rounded there"),
        (rounded_shares, "it should be"),
        (in_place, "as on a ring. Convert"),
        (lambda g, n: sum((a.float() * b).bfloat16() for a, b in zip(g, n, strict=True)) / sum(n), "as on a ring"),
        (in_float16, "float16 after each addition"),
        (first_twice, "added twice"),
        (without_first, "rank 0 is missing"),
        (cut_off, "cut off"),
        (without_nan, "your mean hides it"),
        (lambda g, n: sum(narrow_shares(g, n)), "and then added in bfloat16 as well"),
        (lambda g, n: sum(each.float() for each in narrow_shares(g, n)).bfloat16(), "and rounded there"),
        (lambda g, n: weighted_sum(g, n).bfloat16(), "the sum over the examples"),
        (lambda g, n: weighted_sum(g, n).bfloat16() / sum(n), "Divide before you round"),
        (lambda g, n: (weighted_sum(g, n) / len(n)).bfloat16(), "Divided by the number of ranks"),
        (lambda g, n: torch.stack(g).float().sum(0).bfloat16(), "the plain sum over the ranks"),
        (lambda g, n: g[0], "rank 0 alone"),
        (lambda g, n: torch.stack(g).float().mean(0), "yours is torch.float32"),
        (lambda g, n: torch.stack(g), "shape of one gradient"),
        (lambda g, n: torch.full_like(g[0], 7), "it should be"),
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
        (lambda s: squares([each.nan_to_num() for each in s]), "has to stay visible"),
        (lambda s: 7.0, "it should be"),
    ],
)
def test_the_norm_names_the_mistake(wrong, hint):
    outcome = many_gpus.check_sharded_norm(wrong)
    assert outcome.status == NOT_YET
    assert hint in outcome.message
