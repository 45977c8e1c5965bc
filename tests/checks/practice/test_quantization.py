"""The checks of practice/quantization: the right answer, and for each foreseen wrong one the hint that names it."""

import pytest
import torch

from utils.checks.outcome import NOT_YET
from utils.checks.practice import quantization as checks
from utils.checks.practice import quantization_questions as questions
from utils.checks.questions import judge
from utils.emulation import scaled_tensor
from utils.formats import FLOAT8_E4M3FN, FLOAT32
from utils.quantization import integers, weight_formats
from utils.scaling import INT8


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


def tensors():
    draw = torch.Generator().manual_seed(0)
    normal = torch.randn(64, 1024, generator=draw)
    loud = normal.clone()
    loud[:, 5] *= 300
    even = 2 * torch.rand(64, 1024, generator=draw) - 1
    binades = torch.exp2(-30 * torch.rand(64, 1024, generator=draw))
    return {questions.WEIGHTS: normal, questions.LOUD: loud, questions.EVEN: even, questions.BINADES: binades}


def test_which_eight_is_measured():
    answer = {}
    for name, x in tensors().items():
        int8, fp8 = ((scaled_tensor.quantize(x, fmt, "row").dequantize() - x).abs() for fmt in (INT8, FLOAT8_E4M3FN))
        answer[name] = "FP8" if (fp8 < int8).float().mean() > 0.5 else "INT8"
    assert checks.check_which_eight(answer)
    for name, said in answer.items():
        other = {"FP8": "INT8", "INT8": "FP8"}[said]
        assert checks.check_which_eight(answer | {name: other}).status == NOT_YET


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
    [("order", "other way"), ("halves", "two halves"), ("sign", "four low ones"), ("int8", "torch.uint8")],
)
def test_pack_names_the_mistake(fault, hint):
    assert hint in checks.check_pack((lambda codes: pack(codes, fault), unpack)).message


@pytest.mark.parametrize(
    ("fault", "hint"),
    [("order", "low nibble first"), ("unsigned", "(n ^ 8) - 8"), ("shape", "the codes again"), ("uint8", "torch.int8")],
)
def test_unpack_names_the_mistake(fault, hint):
    assert hint in checks.check_pack((pack, lambda packed: unpack(packed, fault))).message


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


@pytest.mark.parametrize(
    ("fault", "seen", "hint"),
    [
        ("axis", "With an outlier column", "axis 0"),
        ("dropped", "With an outlier column", "multiplied too"),
        ("sign", "With negative outliers", "magnitude"),
        ("tensor", "With tokens a hundred times smaller", "scale of its own"),
    ],
)
def test_split_names_the_mistake(fault, seen, hint):
    outcome = checks.check_split(lambda x, w: split(x, w, fault))
    assert outcome.status == NOT_YET
    assert seen in outcome.message
    assert hint in outcome.hint


def test_a_product_that_is_not_finite_is_named_with_its_cause():
    def broken(x, w):
        usual = x.masked_fill((x > 6).any(1)[:, None], 0)
        x_inv = usual.abs().amax() / 127
        return ((usual / x_inv).round() @ w.t()) * x_inv

    outcome = checks.check_split(broken)
    assert "With an outlier column: the result is not" in outcome.message
    assert "axis 0" in outcome.hint


def test_an_exact_or_a_turned_product_is_none():
    assert "nothing went through int8" in checks.check_split(lambda x, w: split(x, w, "exact")).message
    assert "the product is not [48, 24]" in checks.check_split(lambda x, w: split(x, w).t()).message
    assert "changes what it is given" in checks.check_split(lambda x, w: x.mul_(2)).message
