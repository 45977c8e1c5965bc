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
    group = torch.tensor([[-0.6, 2.4, 1.0]])
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
    [(2.92, "becomes the largest code"), (2.9, "three digits"), (0.343, "`inv_scale`"), (0.34, "`inv_scale`")],
)
def test_a_rounded_scale_is_told_what_it_is(scale, said):
    asked = questions.SCALE_AND_ZERO["symmetric: the scale"]
    assert said in judge(asked, scale).message


def test_bits_are_those_of_the_formats():
    def bits(*how, **more):
        return weight_formats.WeightFormat("", "", *how, **more).bits_per_weight()

    answers = (bits(4, 40), bits(4, 80, symmetric=False), 8 + 8 / 40, 4 + 32 / 128)
    assert checks.check_bits_of_a_weight(dict(zip(questions.BITS_OF_A_WEIGHT, answers, strict=True)))


# --- Play


PLACES = range(1, facts.COUNT + 1)  # of the outlier, which a drag moves too


def zeros(place, group, symmetric):
    """The share of the weights beside an outlier of 0.4 that become 0, in percent."""
    return 100 * facts.loss((), 0.4, place, 4, group, symmetric).zeros


def fewer_zeros(place, symmetric):
    """The largest group for which fewer than 30 % of the other weights become 0, and its bits."""
    group = max(group for group in facts.GROUPS if zeros(place, group, symmetric) < 30)
    return group, facts.loss((), 0.4, place, 4, group, symmetric).bits


def test_the_answers_to_play_are_those_of_the_widget_at_any_place():
    found = {fewer_zeros(place, True) + fewer_zeros(place, False) for place in PLACES}
    ((group, bits, other, less),) = found
    assert judge(questions.PLAY_GROUP, group).status == CORRECT
    assert judge(questions.PLAY_ZERO, other).status == CORRECT
    assert judge(questions.PLAY_BITS, bits - less).status == CORRECT
    in_table = float(f"{less:.3g}")
    assert judge(questions.PLAY_BITS, round(bits - in_table, 3)).status == CORRECT


@pytest.mark.parametrize(("asked", "symmetric"), [(questions.PLAY_GROUP, True), (questions.PLAY_ZERO, False)])
def test_the_shares_in_the_replies_are_those_of_the_widget_at_any_place(asked, symmetric):
    for group in facts.GROUPS:
        shares = sorted(round(zeros(place, group, symmetric)) for place in PLACES)
        told = " to ".join(str(share) for share in dict.fromkeys((shares[0], shares[-1])))
        assert f"{told} %" in judge(asked, group).message


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


def test_a_step_that_carries_a_large_column_is_twice_the_others_and_loses_about_half_of_them():
    x = torch.randn(2**12, 64, generator=torch.Generator().manual_seed(0))
    for large in (256 * x[:, 0], torch.full((len(x),), 256.0)):
        step = large.abs()[:, None] / 127
        lost = ((x[:, 1:] / step).round() == 0).float().mean()
        assert 0.48 < lost < 0.75  # "about half of them or more"
    assert step[0] == pytest.approx(2, rel=0.02)  # "about twice as large as the other values"


# --- Replies


def test_replies_give_away_no_answer_that_is_still_to_come():
    replies = {name: asked.wrong for name, asked in questions.SCALE_AND_ZERO.items()}
    assert "asymmetric" not in " ".join(replies["symmetric: the scale"].values())
    assert "asymmetric" not in " ".join(replies["symmetric: the code of 1.0"].values())
    assert "three" not in " ".join(replies["asymmetric: the zero point"].values())


# --- Smaller groups


def test_the_shares_in_the_replies_on_groups_are_those_of_normal_numbers():
    normal = torch.randn(2**14, 128, generator=torch.Generator().manual_seed(0))

    def error(bits, group):
        w, most = normal.view(-1, group), 2 ** (bits - 1) - 1
        inv_scale = w.abs().amax(1, keepdim=True) / most
        return ((w / inv_scale).round() * inv_scale - w).norm().item()

    left = {group: error(4, group) / error(4, 128) for group in (64, 32, 16, 8, 4)}
    more = error(5, 128) / error(4, 128)
    assert more < left[4] < 0.5 < left[8]  # "more than halve", "About 4"
    replies = " ".join(option.says for option in questions.GROUPS.options)
    for group in (64, 32, 16, 4):
        assert f"{100 * left[group]:.0f} % of the error" in replies
    assert f"a fifth bit, which leaves only {100 * more:.0f} %" in replies
    largest = {group: normal.view(-1, group).abs().amax(1).mean().item() for group in (128, 32)}
    assert all(abs(largest[group] - float(size)) < 0.01 for group, size in ((128, "2.83"), (32, "2.35")))
    assert all(f" {size}" in replies for size in ("2.83", "2.35"))


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


# --- The smoothed product


def smooth(x, w, alpha=0.5, *, fault=""):
    """The solution of the page; with a fault, one mistake is left in it."""
    of_x = (x if fault == "sign" else x.abs()).amax(0).clamp(min=1e-5)
    of_w = w.abs().max() if fault == "all of w" else w.abs().amax(0).clamp(min=1e-5)
    if fault == "alpha":
        alpha = 0.5
    factor = of_x**alpha / of_w ** (1 - alpha)
    if fault == "turned":
        factor = 1 / factor
    before = w.abs().amax(1, keepdim=True) / 127
    x, w = x / factor, w * factor
    x_inv = (x.abs().amax() if fault == "one token" else x.abs().amax(1, keepdim=True)).clamp(min=1e-30) / 127
    w_inv = before if fault == "before" else w.abs().amax(1, keepdim=True) / 127
    return ((x / x_inv).round() @ (w / w_inv).round().t()) * x_inv * w_inv.t()


def with_other_bounds(x, w, alpha=0.5):
    """Leaves a column alone if it has no factor."""
    factor = x.abs().amax(0) ** alpha * w.abs().amax(0) ** (alpha - 1)
    factor[(factor == 0) | ~factor.isfinite()] = 1
    a, b = x / factor, w * factor
    scale = 127 / a.abs().amax(1, keepdim=True).clamp(min=1e-9)
    b_inv = b.abs().amax(1, keepdim=True) / 127
    return (a * scale).round() @ (b / b_inv).round().t() / scale * b_inv.t()


@pytest.mark.parametrize("right", [smooth, with_other_bounds])
def test_a_smoothed_product_is_accepted(right):
    outcome = checks.check_smooth(right)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("fault", "seen", "hint"),
    [
        ("sign", "With large negative columns", "magnitudes"),
        ("turned", "With a large column of x", "divided by its factor"),
        ("all of w", "columns", ""),
        ("before", "close, but not", "after smoothing"),
        ("one token", "With tokens of different sizes", "Each token has a scale"),
        ("alpha", "With alpha = 0.75", "1 - alpha"),
    ],
)
def test_smooth_names_the_mistake(fault, seen, hint):
    outcome = checks.check_smooth(lambda x, w, alpha=0.5: smooth(x, w, alpha, fault=fault))
    assert outcome.status == NOT_YET
    assert seen in outcome.message
    assert hint in outcome.hint


def int8_product(x, w, alpha=0.5):  # as on the page
    x_inv, w_inv = (y.abs().amax(1, keepdim=True).clamp(min=1e-30) / 127 for y in (x, w))
    return (x / x_inv).round() @ (w / w_inv).round().t() * x_inv * w_inv.t()


def split_product(x, w, alpha=0.5):  # as on the page
    loud = (x.abs() >= 6).any(0)
    return int8_product(x.masked_fill(loud, 0), w) + x[:, loud] @ w[:, loud].t()


def smoothed_only(x, w, alpha=0.5):  # rounds nothing
    return x @ w.t()


def without_guard(x, w, alpha=0.5):
    factor = x.abs().amax(0) ** alpha / w.abs().amax(0) ** (1 - alpha)
    return int8_product(x / factor, w * factor)


def with_another_largest_code(x, w, alpha=0.5):
    factor = x.abs().amax(0).clamp(min=1e-5) ** alpha / w.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)
    x, w = x / factor, w * factor
    x_inv, w_inv = (y.abs().amax(1, keepdim=True).clamp(min=1e-30) / 128 for y in (x, w))
    return (x / x_inv).round() @ (w / w_inv).round().t() * x_inv * w_inv.t()


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        (int8_product, "With a large column of x: a row is off"),
        (split_product, "With a large column of x: the result is close"),
        (smoothed_only, "the result is close"),
        (without_guard, "With a column of zeros in x: the result contains NaN"),
        (with_another_largest_code, "the result is close"),
    ],
)
def test_products_that_look_right_are_not_accepted(wrong, seen):
    outcome = checks.check_smooth(wrong)
    assert outcome.status == NOT_YET
    assert seen in outcome.message


def test_a_product_without_smoothing_is_told_to_smooth():
    assert "divided by its factor" in checks.check_smooth(int8_product).hint


def test_a_turned_product_and_one_that_changes_x_are_answered():
    assert "the product is not [48, 24]" in checks.check_smooth(lambda x, w: smooth(x, w).t()).message
    assert "changes what it is given" in checks.check_smooth(lambda x, w: x.mul_(2)).message
