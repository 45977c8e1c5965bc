"""The checks of practice/quantization: the right answer, and for each foreseen wrong one the hint that names it."""

import pytest
import torch

from utils.checks.outcome import CORRECT, NOT_YET
from utils.checks.practice import quantization as checks
from utils.checks.practice import quantization_questions as questions
from utils.checks.questions import judge
from utils.formats import FLOAT32
from utils.quantization import integers, weight_formats
from utils.widgets.group_outlier import facts


def test_scale_and_zero_point_are_those_of_the_module():
    group = torch.tensor([[-0.3, 1.2, 0.5]])
    symmetric = integers.quantize(group, 4, scale_format=FLOAT32)
    leaning = integers.quantize(group, 4, symmetric=False, scale_format=FLOAT32)
    answers = (
        symmetric.scale.item(),
        symmetric.unpacked()[0, 2].item(),
        round(leaning.scale.item(), 5),
        leaning.zero_point.item(),
        leaning.unpacked()[0, 2].item(),
    )
    assert checks.check_scale_and_zero(dict(zip(questions.SCALE_AND_ZERO, answers, strict=True)))


@pytest.mark.parametrize(
    ("scale", "said"),
    [(5.83, "becomes the largest code"), (5.8, "rounded"), (0.171, "`inv_scale`"), (0.17, "`inv_scale`")],
)
def test_a_rounded_scale_is_told_what_it_is(scale, said):
    asked = questions.SCALE_AND_ZERO["symmetric: the scale"]
    assert said in judge(asked, scale).message


def test_bits_are_those_of_the_formats():
    def bits(*how, **more):
        return weight_formats.WeightFormat("", "", *how, **more).bits_per_weight()

    answers = (bits(4, 64), bits(4, 128, symmetric=False), bits(8, 32), 4 + 32 / 64)
    assert checks.check_bits_of_a_weight(dict(zip(questions.BITS_OF_A_WEIGHT, answers, strict=True)))


# --- Play


def fewer_zeros(symmetric):
    """The largest group for which fewer than 30 % of the weights beside an outlier of 0.5 become 0, and its bits."""
    losses = {group: facts.loss((), 0.5, 84, 4, group, symmetric) for group in facts.GROUPS}
    group = max(group for group, loss in losses.items() if loss.zeros < 0.3)
    return group, losses[group].bits


def test_the_answers_to_play_are_those_of_the_widget():
    (group, bits), (other, less) = fewer_zeros(True), fewer_zeros(False)
    assert judge(questions.PLAY_GROUP, group).status == CORRECT
    assert judge(questions.PLAY_ZERO, other).status == CORRECT
    assert judge(questions.PLAY_BITS, bits - less).status == CORRECT


@pytest.mark.parametrize(("asked", "symmetric"), [(questions.PLAY_GROUP, True), (questions.PLAY_ZERO, False)])
def test_the_shares_in_the_replies_are_those_of_the_widget(asked, symmetric):
    for group in facts.GROUPS:
        share = 100 * facts.loss((), 0.5, 84, 4, group, symmetric).zeros
        says = judge(asked, group).message
        assert f"{share:.0f} %" in says or ("half" in says and 50 < share < 60) or ("90 %" in says and share > 90)


# --- The puzzle


def off(share, cheapest):
    """How many times further off 1,000,000 numbers are when a share of them goes to the second nearest integer."""
    remainder = torch.linspace(-0.5, 0.5, 1_000_001, dtype=torch.float64).abs()
    size = remainder.sort(descending=cheapest).values
    moved = torch.arange(len(size)) < share * len(size)
    return (torch.where(moved, 1 - size, size).square().mean() / remainder.square().mean()).sqrt().item()


def test_the_replies_of_the_puzzle_are_bounds():
    assert 1.05 < off(0.01, cheapest=False) < 1.065  # "only about 6 % further off"
    assert off(0.5, cheapest=True) > 1.5  # "more than half again as far off"
    assert off(1, cheapest=True) > 2.5  # "more than two and a half times"


# --- Pack and unpack


def pack(codes, fault=""):
    if fault == "halves":
        first, second = codes.chunk(2, 1)
    else:
        first, second = codes[:, 0::2], codes[:, 1::2]
    if fault == "order":
        first, second = second, first
    if fault == "sign":
        return (first * 16 + second).to(torch.uint8)
    packed = (first & 0xF) << 4 | (second & 0xF)
    return packed if fault == "int8" else packed.view(torch.uint8)


def unpack(packed, fault=""):
    high, low = packed >> 4, packed & 0xF
    pair = (low, high) if fault == "order" else (high, low)
    codes = torch.stack(pair, -1).flatten(1).to(torch.int8)
    if fault == "shape":
        return codes.flatten()
    if fault == "uint8":
        return codes.to(torch.uint8)
    return codes if fault == "unsigned" else (codes ^ 8) - 8


def test_both_ways_of_packing_are_accepted():
    assert checks.check_pack((pack, unpack))
    assert checks.check_pack([integers.pack_int4, integers.unpack_int4])


@pytest.mark.parametrize(
    ("fault", "hint"),
    [("order", "swapped"), ("halves", "two halves"), ("sign", "four low ones"), ("int8", "torch.uint8")],
)
def test_pack_names_the_mistake(fault, hint):
    assert hint in checks.check_pack((lambda codes: pack(codes, fault), unpack)).message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [("order", "low nibble first"), ("unsigned", "(n ^ 8) - 8"), ("shape", "the codes again"), ("uint8", "torch.int8")],
)
def test_unpack_names_the_mistake(fault, hint):
    assert hint in checks.check_pack((pack, lambda packed: unpack(packed, fault))).message


def whole_bytes(codes):  # two complements, but the carry of a negative low nibble goes into the high one
    return (codes[:, 0::2].short() * 16 + codes[:, 1::2].short()).to(torch.uint8)


def one_row_flat(packed):
    return integers.unpack_int4(packed).squeeze(0)


def without_top(packed):  # forgets that 8 is negative
    codes = integers.unpack_int4(packed, signed=False)
    return torch.where(codes > 8, codes - 16, codes)


@pytest.mark.parametrize("wrong", [(whole_bytes, unpack), (pack, one_row_flat), (pack, without_top)])
def test_solutions_that_look_right_are_not_accepted(wrong):
    assert checks.check_pack(wrong).status == NOT_YET


def test_other_bytes_and_no_pair_are_answered():
    assert "0x3B" in checks.check_pack((lambda codes: torch.zeros(32, 8, dtype=torch.uint8), unpack)).message
    assert "does not give back" in checks.check_pack((pack, lambda p: torch.zeros(32, 16, dtype=torch.int8))).message
    assert "needs both functions" in checks.check_pack(pack).message


# --- The split product


def split(x, w, fault="", threshold=6.0):
    size = x if fault == "sign" else x.abs()
    loud = (size >= threshold).any(1 if fault == "axis" else 0)
    usual = x.masked_fill(loud[:, None] if fault == "axis" else loud, 0)
    x_inv = (usual.abs().amax() if fault == "tensor" else usual.abs().amax(1, keepdim=True)) / 127
    x_inv = x_inv.clamp(min=1e-12)
    w_inv = w.abs().amax(1, keepdim=True) / 127
    y = ((usual / x_inv).round() @ (w / w_inv).round().t()) * x_inv * w_inv.t()
    if fault == "exact":
        return x @ w.t()
    if fault in ("dropped", "axis"):
        return y
    return y + x[:, loud] @ w[:, loud].t()


def test_the_mended_product_is_accepted():
    outcome = checks.check_split(split)
    assert outcome, outcome.message


def usual_only(x, w):
    """The same with the usual columns alone, which may be none."""
    loud = (x.abs() >= 6).any(0)
    a, b = x[:, ~loud], w[:, ~loud]
    wide = x[:, loud] @ w[:, loud].t()
    if a.shape[1] == 0:
        return wide
    scale = 127 / a.abs().amax(1, keepdim=True).clamp(min=1e-9)
    w_inv = b.abs().amax(1, keepdim=True) / 127
    return (a * scale).round() @ (b / w_inv).round().t() / scale * w_inv.t() + wide


def test_a_product_of_the_columns_alone_is_accepted():
    outcome = checks.check_split(usual_only)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "seen", "hint"),
    [
        ("axis", "With an outlier column", "axis 0"),
        ("dropped", "With an outlier column", "multiplied as well"),
        ("sign", "With negative outliers", "magnitude"),
        ("tensor", "With tokens a hundred times smaller", "scale of its own"),
    ],
)
def test_split_names_the_mistake(fault, seen, hint):
    outcome = checks.check_split(lambda x, w: split(x, w, fault))
    assert outcome.status == NOT_YET
    assert seen in outcome.message
    assert hint in outcome.hint


def in_bfloat16(x, w):
    return (x.bfloat16() @ w.bfloat16().t()).float()


def value_by_value(x, w):
    """Takes values out instead of columns."""
    loud = x.abs() >= 6
    usual = x.masked_fill(loud, 0)
    x_inv = (usual.abs().amax(1, keepdim=True) / 127).clamp(min=1e-12)
    w_inv = w.abs().amax(1, keepdim=True) / 127
    return ((usual / x_inv).round() @ (w / w_inv).round().t()) * x_inv * w_inv.t() + (x * loud) @ w.t()


def stored(x, w):
    """As bitsandbytes does it: the outlier columns' weights are rounded too."""
    w_inv = w.abs().amax(1, keepdim=True) / 127
    return split(x, (w / w_inv).round() * w_inv)


def without_guard(x, w):
    loud = (x.abs() >= 6).any(0)
    usual = x.masked_fill(loud, 0)
    x_inv, w_inv = (y.abs().amax(1, keepdim=True) / 127 for y in (usual, w))
    return ((usual / x_inv).round() @ (w / w_inv).round().t()) * x_inv * w_inv.t() + x[:, loud] @ w[:, loud].t()


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        (in_bfloat16, "Without an outlier: the result is close"),
        (value_by_value, "With one outlier in one token: the result is close"),
        (stored, "With an outlier column: a row is off"),
        (without_guard, "With a token of zeros: the result is not"),
    ],
)
def test_products_that_look_right_are_not_accepted(wrong, seen):
    outcome = checks.check_split(wrong)
    assert outcome.status == NOT_YET
    assert seen in outcome.message


def test_a_scale_for_all_of_w_is_not_accepted():
    def one_scale(x, w):
        size = w.abs().max() / 127
        return split(x, (w / size).round() * size)

    assert checks.check_split(one_scale).status == NOT_YET


def test_a_product_that_is_not_finite_is_named_with_its_cause():
    def broken(x, w):
        usual = x.masked_fill((x > 6).any(1)[:, None], 0)
        x_inv = usual.abs().amax() / 127
        return ((usual / x_inv).round() @ w.t()) * x_inv

    outcome = checks.check_split(broken)
    assert "With an outlier column: the result is not" in outcome.message
    assert "axis 0" in outcome.hint


def test_an_exact_or_a_turned_product_is_none():
    assert "not that of integers" in checks.check_split(lambda x, w: split(x, w, "exact")).message
    assert "the product is not [48, 24]" in checks.check_split(lambda x, w: split(x, w).t()).message
    assert "changes what it is given" in checks.check_split(lambda x, w: x.mul_(2)).message
