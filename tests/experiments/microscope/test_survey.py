"""The microscope finds the numbers that a model was built with, from its results alone, and claims nothing else."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from utils import records
from utils.emulation.accumulators import ACCUMULATORS
from utils.emulation.float32_matmul import switches, tf32, tf32_cut
from utils.emulation.rounded_matmul import kahan_matmul, matmul, pairwise_matmul
from utils.emulation.tensor_core import TENSOR_CORES, aligned_matmul, truncating_matmul
from utils.experiments.microscope import integer_products, survey
from utils.experiments.microscope.__main__ import main
from utils.experiments.microscope.findings import to_rows
from utils.experiments.microscope.survey import look_at_product
from utils.experiments.microscope.ways_to_multiply import list_ways
from utils.formats import BFLOAT16, FLOAT16, FLOAT32
from utils.rounding import toward_positive, toward_zero

E4M3, HALF, BF16, SINGLE = torch.float8_e4m3fn, torch.float16, torch.bfloat16, torch.float32
NEAREST = {"rounding": "ties_to_even", "exact_sums": True}
CUT = {"rounding": "toward_zero", "exact_sums": False, "extra_bits": 0, "by_factors": True}
CHAIN = {"block": 1, "parts": 1, "run": None, "pairwise": False, "outer_precision": None}


def using(function, **arguments):
    return lambda a, b: function(a, b, **arguments)


def column_sums(a, b):
    """NumPy's sum over the first axis adds row after row, and its products are rounded to float32."""
    with np.errstate(over="ignore", invalid="ignore"):  # the range is tried out
        products = a.numpy().T[:, :, None] * b.numpy()[:, None, :]
        return torch.from_numpy(np.add.reduce(products, axis=0))


def row_sums(a, b):
    """NumPy's sum over a contiguous axis of up to 128 runs in 8 totals."""
    products = np.ascontiguousarray(a.float().numpy()[:, None, :] * b.float().numpy().T[None])
    return torch.from_numpy(products.sum(axis=2))


def fewer_input_bits(a, b, rounded):
    return matmul(rounded(a), rounded(b))


MODELS = {
    "float16": (using(matmul, accumulator=FLOAT16), HALF, 32, {"precision": 11, "overflow": 16} | NEAREST | CHAIN),
    "bfloat16": (using(matmul, accumulator=BFLOAT16), BF16, 32, {"precision": 8, "overflow": 128} | NEAREST | CHAIN),
    "float32": (matmul, HALF, 32, {"precision": 24, "overflow": None} | NEAREST | CHAIN),
    "float32 of bfloat16": (matmul, BF16, 32, {"precision": 24, "overflow": 128, "smallest": -149} | NEAREST | CHAIN),
    "chunks of 8": (
        using(matmul, accumulator=FLOAT16, chunk=8),
        HALF,
        32,
        {"precision": 11, "block": 8, "parts": 1} | NEAREST,
    ),
    "float32, chunks of 2": (using(matmul, chunk=2), HALF, 16, {"precision": 24, "block": 2, "parts": 1} | NEAREST),
    "toward zero": (
        using(matmul, accumulator=BFLOAT16, rounding=toward_zero),
        BF16,
        16,
        {"precision": 8, "rounding": "toward_zero", "exact_sums": True},
    ),
    "upward": (
        using(matmul, accumulator=BFLOAT16, rounding=toward_positive),
        BF16,
        16,
        {"precision": 8, "rounding": "toward_positive", "exact_sums": True},
    ),
    "pairwise": (
        using(pairwise_matmul, accumulator=BFLOAT16),
        HALF,
        16,
        {"precision": 8, "pairwise": True, "outer_precision": 8, "outer_rounding": "ties_to_even"} | NEAREST,
    ),
    "Volta": (
        TENSOR_CORES["volta"].matmul,
        HALF,
        32,
        {"precision": 24, "block": 4, "parts": 1, "exact_products": True} | CUT,
    ),
    "Hopper's FP8": (TENSOR_CORES["hopper-fp8"].matmul, E4M3, 96, {"precision": 14, "block": 32, "parts": 1} | CUT),
    "Ampere": (TENSOR_CORES["ampere"].matmul, HALF, 32, {"precision": 24, "block": 8} | CUT | {"extra_bits": 1}),
    "Hopper": (TENSOR_CORES["hopper"].matmul, BF16, 48, {"precision": 24, "block": 16} | CUT | {"extra_bits": 2}),
    "aligned, promoted": (
        using(aligned_matmul, block=8, fraction_bits=10, promote=16),
        E4M3,
        48,
        {"precision": 11, "block": 8, "parts": 3, "run": 16, "outer_precision": 24, "outer_rounding": "ties_to_even"}
        | CUT,
    ),
    "truncating": (
        using(truncating_matmul, bits=12, block=16),
        E4M3,
        64,
        {"precision": 12, "block": 16, "rounding": "toward_zero", "exact_sums": True},
    ),
    "truncating, promoted": (
        using(truncating_matmul, bits=14, block=8, promote=16),
        HALF,
        48,
        {"precision": 14, "block": 8, "run": 16, "outer_precision": 24, "exact_sums": True},
    ),
    "NumPy, row after row": (
        column_sums,
        SINGLE,
        32,
        {"precision": 24, "exact_products": False, "product_bits": 24, "product_rounding": "ties_to_even"} | CHAIN,
    ),
    "NumPy, 8 totals": (row_sums, HALF, 64, {"precision": 24, "parts": 8, "block": 1, "run": None} | NEAREST),
    "TF32": (
        using(fewer_input_bits, rounded=tf32),
        SINGLE,
        16,
        {"factor_bits": 11, "factor_rounding": "ties_to_even", "exact_products": True, "precision": 24},
    ),
    "TF32, cut": (
        using(fewer_input_bits, rounded=tf32_cut),
        SINGLE,
        16,
        {"factor_bits": 11, "factor_rounding": "toward_zero", "precision": 24},
    ),
}


@pytest.mark.parametrize(("function", "dtype", "places", "built"), MODELS.values(), ids=MODELS)
def test_the_parameters_of_a_model_come_back(function, dtype, places, built):
    found = look_at_product(function, dtype=dtype, places=places, width=8)
    assert {name: getattr(found, name) for name in built} == built
    assert found.confirmed == (8, 8), found.unknown
    assert found.everywhere
    assert found.order is not None


@pytest.mark.parametrize("name", ["fp8-14bit-128", "fp8-aligned-128"])
def test_totals_that_are_handed_on_every_128_products_are_noticed(name):
    found = look_at_product(ACCUMULATORS[name].matmul, dtype=E4M3, places=384)
    assert (found.precision, found.rounding, found.block) == (14, "toward_zero", 32)
    assert (found.parts, found.run, found.outer_precision, found.outer_rounding) == (3, 128, 24, "ties_to_even")
    assert found.exact_sums == ("aligned" not in name)
    assert found.confirmed == (16, 16)


# What it must not claim


def shuffling():
    rng = torch.Generator().manual_seed(0)

    def product(a, b):
        order = torch.randperm(a.shape[1], generator=rng)
        return matmul(a[:, order], b[order], accumulator=BFLOAT16)

    return product


def two_faced(a, b):
    """From the front where the first product is large, and from behind elsewhere: the first row of masks looks fine."""
    front, behind = matmul(a, b), matmul(a.flip(1), b.flip(0))
    return torch.where((a[:, :1].float() * b[:1].float()).abs() > 1000, front, behind)


def noise(a, b):
    return torch.rand(a.shape[0], b.shape[1])


def nothing_lost(a, b):
    return (a.double() @ b.double()).float()


@pytest.mark.parametrize(
    ("function", "dtype", "why"),
    [
        (shuffling(), BF16, "fit no order"),
        (two_faced, HALF, "lose other ones than their order says"),
        (noise, HALF, "ones of 2^-10 are not counted"),
        (nothing_lost, E4M3, "beside an addend 2^34 times as large a 1 is not lost"),
    ],
    ids=["another order each time", "two orders", "noise", "too wide to lose anything"],
)
def test_without_an_order_nothing_is_claimed(function, dtype, why):
    found = look_at_product(function, dtype=dtype, places=16, width=8)
    claims = ("order", "block", "parts", "precision", "rounding", "factor_bits", "exact_products", "confirmed")
    assert {name: getattr(found, name) for name in claims} == dict.fromkeys(claims)
    assert why in dict(found.unknown)["order"]
    assert why in str(found)
    assert found.everywhere == (function in (two_faced, nothing_lost))


def test_a_kahan_sum_is_called_compensated_and_nothing_else():
    found = look_at_product(using(kahan_matmul, accumulator=FLOAT32), dtype=HALF, places=32, width=8)
    assert (found.compensated, found.precision, found.rounding, found.confirmed) == (True, None, None, None)
    assert dict(found.unknown)["precision"] == "no adder of ours gives all answers"


def test_what_differs_on_random_sums_alone_is_not_confirmed():
    def treacherous(a, b):
        many = ((a != 0).sum(1, keepdim=True) == a.shape[1]) & (a.float().abs().std(1, keepdim=True) > 0.1)
        return matmul(a, b) * torch.where(many, 1 + 2.0**-20, 1.0)

    found = look_at_product(treacherous, dtype=HALF, places=16, width=8)
    assert found.precision == 24
    assert found.confirmed[0] < found.confirmed[1]


def test_places_that_add_otherwise_are_noticed():
    def halves(a, b):
        return torch.cat([matmul(a, b[:, :4]), matmul(a.flip(1), b[:, 4:].flip(0))], dim=1)

    assert not look_at_product(halves, dtype=HALF, places=16, width=8).everywhere


def test_a_fixed_order_is_found():
    order = torch.randperm(24, generator=torch.Generator().manual_seed(1))
    found = look_at_product(lambda a, b: matmul(a[:, order], b[order]), dtype=HALF, places=24, width=8)
    assert sorted(found.order[:2]) == sorted(order[:2].tolist())
    assert found.order[2:] == tuple(order[2:].tolist())
    assert (found.block, found.parts, found.confirmed) == (1, 1, (8, 8))


# Adders that no model of the book has: exact fractions, one by one


def fused(a, b, *, block, bits, extra, by_factors, carries=False):
    """Blocks and the total aligned, cut `extra` bits below the last place and truncated, in exact arithmetic."""
    result = torch.empty(a.shape[0], b.shape[1])
    for m, n in np.ndindex(*result.shape):
        total = Fraction(0)
        for start in range(0, a.shape[1], block):
            pairs = [(Fraction(x), Fraction(y)) for x, y in zip(a[m].tolist(), b[:, n].tolist(), strict=True)]
            pairs = [pair for pair in pairs[start : start + block] if pair[0] and pair[1]]
            tops = [power(x) * power(y) if by_factors else power(x * y) for x, y in pairs]
            tops += [power(total)] if total else []
            if tops:
                step = max(tops) / 2 ** (bits - 1 + extra)
                total = sum(math.trunc(x / step) for x in (total, *(x * y for x, y in pairs))) * step
            if total and not carries:
                step = power(total) / 2 ** (bits - 1)
                total = math.trunc(total / step) * step
        result[m, n] = float(total)
    return result


def power(x):
    """The largest power of two that |x| reaches."""
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return Fraction(2) ** (e if Fraction(2) ** e <= abs(x) else e - 1)


@pytest.mark.parametrize(
    ("extra", "by_factors", "carries"), [(0, True, False), (1, False, False), (2, True, False), (0, False, True)]
)
def test_how_addends_are_cut_comes_back(extra, by_factors, carries):
    function = using(fused, block=4, bits=11, extra=extra, by_factors=by_factors, carries=carries)
    found = look_at_product(function, dtype=HALF, places=8, width=4)
    assert (found.precision, found.rounding, found.block) == (11, "toward_zero", 4)
    assert (found.exact_sums, found.extra_bits, found.by_factors) == (False, extra, by_factors)
    assert found.carries == carries
    assert found.confirmed == (4, 4)


def test_what_the_result_hides_is_not_claimed():
    """Two totals of float32 that meet at last: a bfloat16 result shows 8 bits of their sum, a float32 result all."""

    def two_totals(a, b):
        return matmul(a[:, :8], b[:8]) + matmul(a[:, 8:], b[8:])

    shown = look_at_product(two_totals, dtype=BF16, places=16, width=8)
    assert (shown.precision, shown.parts, shown.run, shown.outer_precision) == (24, 2, 8, None)
    hidden = look_at_product(lambda a, b: two_totals(a, b).bfloat16(), dtype=BF16, places=16, width=8)
    assert (hidden.precision, hidden.parts, hidden.outer_precision, hidden.outer_rounding) == (24, 2, None, None)
    assert dict(hidden.unknown)["outer_precision"] == "the result, torch.bfloat16, shows no more bits"


def test_one_rounded_operand_is_enough():
    found = look_at_product(lambda a, b: matmul(a, tf32(b)), dtype=SINGLE, places=16, width=8)
    assert found.factor_bits == 11
    assert found.confirmed is None or found.confirmed[0] < found.confirmed[1]


# This device


def test_a_cpu_adds_16_bit_products_in_float32_and_says_so():
    ways = list_ways("cpu")
    for name in ("float16", "bfloat16"):
        found = look_at_product(ways[name], dtype=ways[name].dtype, places=32)
        assert (found.precision, found.rounding) == (24, "ties_to_even")
        assert found.output == name
        assert "total: 24 bits, ties to even" in str(found)


def test_ways_put_every_switch_back(monkeypatch):
    def refuse(a, b):
        raise RuntimeError("this device has no whole numbers\nat all")

    monkeypatch.setattr(torch, "_int_mm", refuse)
    before = switches()
    ways = list_ways("cpu")
    for way in ways.values():
        if not way.reason:
            x = torch.ones(32, 32).to(way.dtype)
            assert torch.equal(way(x, x).float(), torch.full((32, 32), 32.0))
    assert switches() == before
    assert ways["int8"].reason == "RuntimeError: this device has no whole numbers"
    assert {"float64", "float32, high", "float16", "float8_e4m3fn, fast accumulation on"} <= ways.keys()


def test_ways_of_cuda_are_named_and_put_their_switches_back():
    flags = (
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    )

    def state():
        return switches() | {flag: getattr(torch.backends.cuda.matmul, flag) for flag in flags}

    before, ways = state(), list_ways("cuda")
    for way in ways.values():
        with way.switch():
            pass
        assert state() == before
        assert way.reason or torch.cuda.is_available()
    with ways["float16, float16 accumulation"].switch():
        assert torch.backends.cuda.matmul.allow_fp16_accumulation
    with ways["bfloat16, reduced reduction off"].switch():
        assert not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    with ways["float32, allow_tf32"].switch():
        assert torch.backends.cuda.matmul.allow_tf32


@pytest.mark.gpu
def test_a_gpu_adds_16_bit_products_in_more_bits_than_they_have():
    """Of two ways alone: the command takes a minute for all of them."""
    ways = list_ways("cuda")
    names = ("float32, highest", "float16, reduced reduction off")
    single, half = (survey.look_at_way(ways[name], device="cuda") for name in names)
    assert single.precision == 24
    assert half.precision is None or half.precision > 11  # None where the adder is of no kind that is looked for
    assert all(way.reason or way.product for way in ways.values())


@pytest.mark.parametrize(
    ("cut", "built"),
    [
        (lambda x: x.int(), {"precision": 31, "exact_sums": True, "overflow": 31, "past_overflow": "wraps to -2^31"}),
        (lambda x: x.float(), {"precision": 24, "exact_sums": False}),
    ],
    ids=["int32", "float32"],
)
def test_totals_of_whole_numbers(cut, built):
    found = integer_products.look_at_integers(lambda a, b: cut(a.double() @ b.double() - 0.0), dtype=torch.int8)
    assert {name: getattr(found, name) for name in built} == built


def test_the_command_prints_a_table_and_leaves_a_record(tmp_path, capsys, monkeypatch):
    ways = list_ways("cpu")
    chosen = {name: ways[name] for name in ("float32, highest", "int8")}
    chosen["float8_e5m2"] = dataclasses.replace(ways["float32, high"], name="float8_e5m2", reason="RuntimeError: no")
    monkeypatch.setattr(survey, "list_ways", lambda device: chosen)
    assert main(["--device", "cpu", "--places", "16", "--record", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "float8_e5m2: missing, RuntimeError: no" in said
    (path,) = tmp_path.glob("microscope-*.json")
    assert path.stat().st_size < 50_000
    findings, refused = survey.of_record(records.load(path))
    looked = {
        name: dataclasses.replace(found, evidence=())
        for name, found in survey.look_at_device("cpu", places=16)[0].items()
    }
    assert findings == looked
    assert refused == {"float8_e5m2": "RuntimeError: no"}
    assert survey.format_table(findings, refused) in said


def test_a_table_says_what_is_not_known():
    found = look_at_product(shuffling(), dtype=BF16, places=16, width=8)
    *_, undecided, places, missing = survey.format_table(
        {"shuffled": found}, {"float8": "RuntimeError: no"}
    ).splitlines()
    assert undecided.startswith("shuffled: not decided: order, precision, rounding, block, factor_bits")
    assert places == "shuffled: not all places of the result add alike"
    assert missing == "float8: missing, RuntimeError: no"


def test_a_model_stands_beside_a_measurement():
    model, measured = (
        look_at_product(TENSOR_CORES["volta"].matmul, dtype=HALF, places=16),
        look_at_product(torch.matmul, dtype=HALF, places=16),
    )
    table = to_rows({"Volta, a model": model, "here": measured})
    assert table[0] == ("", "Volta, a model", "here")
    assert ("at once", "4, each cut at the last place, aligned by its factors' exponents", "1") in table
    assert all(len(row) == 3 for row in table)


def test_the_evidence_leads_to_the_claim():
    """The last place of a float16 total: 2**-10 is kept beside 1, 2**-11 is not."""
    found = look_at_product(using(matmul, accumulator=FLOAT16), dtype=HALF, places=16, width=8)
    bits = [probe for probe in found.evidence if probe.about == "bits of a total"]
    kept = {probe.terms[1][1]: probe.result for probe in bits if probe.terms[0][1] == 2.0**14}
    assert kept[2.0**4] == 2.0**4
    assert kept[2.0**3] == 0
    assert "2**14 in place 0, 8 in place 1, -2**14 in place 2: 0" in [str(probe) for probe in bits]


def test_what_cannot_be_looked_at_is_refused():
    with pytest.raises(ValueError, match="places 7 is below 8"):
        look_at_product(torch.matmul, dtype=HALF, places=7)
    with pytest.raises(ValueError, match="width 0 is below 1"):
        look_at_product(torch.matmul, dtype=HALF, width=0)
    assert main(["--device", "cpu", "--places", "0"]) == 2
    with pytest.raises(ValueError, match=r"torch\.int8 is no floating dtype"):
        look_at_product(torch.matmul, dtype=torch.int8)
    with pytest.raises(TypeError, match=r"no tensor \[16, 16\]"):
        look_at_product(lambda a, b: a, dtype=HALF)
