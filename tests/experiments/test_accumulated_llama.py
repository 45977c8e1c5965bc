"""Rows say what the model says inside the mode, each batch is computed once, and long sums are what they claim."""

import math

import pytest
import torch

from utils import llama
from utils.emulation.accumulators import ACCUMULATORS, exact
from utils.emulation.model_accumulator import Accumulated
from utils.experiments import accumulated_llama
from utils.formats import FLOAT8_E4M3FN, FLOAT16
from utils.workloads import models

ONES = [ACCUMULATORS[name] for name in ("float16", "bfloat16", "fp8-14bit", "float16-kahan")]


@pytest.fixture(scope="module")
def model():
    shape = models.LlamaShape(vocabulary=40, width=32, layers=2, heads=4, groups=2, hidden=96, positions=24, spread=0.3)
    return models.build_llama(shape)


@pytest.fixture(scope="module")
def ids(model):
    drawn = torch.randint(3, 40, (70,), generator=torch.Generator().manual_seed(0))
    drawn[[0, 20, 50]] = model.config.bos_token_id  # pieces of unlike lengths: there is padding
    return drawn


@pytest.fixture(scope="module")
def found(model, ids):
    return accumulated_llama.measure_rows(model, ids, ONES)


def test_the_model_comes_first_then_exact_sums_then_the_accumulators(found):
    exact_ones = ["exact-float16", "exact-bfloat16", "exact-float8_e4m3fn"]
    assert [row.accumulator for row in found] == ["as it is", "in float64", *exact_ones, *(one.name for one in ONES)]
    assert [row.operands for row in found[-4:]] == ["float16", "bfloat16", "float8_e4m3fn", "float16"]
    first, wide = found[:2]
    assert (first.largest, first.mean, first.top1) == (0.0, 0.0, 1.0)
    assert 0 < wide.mean < wide.largest < 1e-4


def test_a_row_holds_what_the_measures_of_the_model_give_inside_the_mode(model, ids, found):
    for one in (exact(FLOAT16), *ONES):
        (row,) = [row for row in found if row.accumulator == one.name]
        with torch.no_grad(), Accumulated(one):
            perplexity = llama.perplexity(model, ids)
            pieces = [(ids[a:b][None], model(ids[a:b][None]).logits) for a, b in ((0, 20), (20, 44), (50, 69))]
        assert row.perplexity == pytest.approx(perplexity, rel=1e-12)
        with torch.no_grad():
            off = torch.cat([(logits - model(piece).logits).abs().flatten() for piece, logits in pieces])
        assert row.largest >= float(off.max()) * 0.5  # alone, a piece has another scale for its tensor than in a batch
        assert row.mean == pytest.approx(float(off.mean()), rel=0.35)


def test_errors_grow_with_what_is_rounded_away(found):
    mean = {row.accumulator: row.mean for row in found}
    assert mean["in float64"] < mean["exact-float16"] < mean["exact-bfloat16"] < mean["exact-float8_e4m3fn"]
    assert mean["exact-float16"] < mean["float16-kahan"] < mean["float16"] < mean["bfloat16"]
    kl = {row.accumulator: row.kl for row in found}
    assert abs(kl["as it is"]) < 1e-6 < kl["exact-float8_e4m3fn"]


def test_each_batch_is_computed_once(model, ids, monkeypatch):
    calls = []
    forward = type(model).forward

    def counted(self, *args, **kwargs):
        calls.append(kwargs["input_ids"].shape)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(type(model), "forward", counted)
    accumulated_llama.measure_rows(model, ids, ONES[:1])
    assert len(calls) == 4  # float32, float64, exact, float16: one batch each
    assert len(set(calls)) == 1
    assert not model.training


def test_cancellation_is_1_without_opposite_signs_and_grows_without_bound():
    a = torch.tensor([[1.0, 2.0, 3.0]])
    assert accumulated_llama.measure_cancellation(a, torch.ones(3, 1)) == 1.0
    assert accumulated_llama.measure_cancellation(a, torch.tensor([[1.0], [1.0], [-0.9]])) == pytest.approx(
        5.7 / 0.3, rel=1e-6
    )


def test_the_long_products_are_as_long_as_those_of_a_llama_of_7_billion():
    shape = models.LLAMAS["full"]
    products = accumulated_llama.draw_long_products()
    lengths = {name: a.shape[1] for name, (a, b) in products.items()}
    assert list(lengths.values()) == [shape.hidden, 8192, 8192, shape.width]
    assert all(a.shape[0] == 16 and a.shape[1] == b.shape[0] for a, b in products.values())
    again = accumulated_llama.draw_long_products()
    assert all(torch.equal(x, y) for name in products for x, y in zip(products[name], again[name], strict=True))
    (probabilities, _), (_, values) = list(products.values())[1:3]
    torch.testing.assert_close(probabilities.sum(1), torch.ones(16))
    assert float(values.mean()) == pytest.approx(1.0, abs=5 / math.sqrt(values.numel()))


def test_gate_and_up_have_the_deviation_that_a_real_layer_gives_them():
    """A product of a normal input and drawn weights, at a width that a test can pay for."""
    rng = torch.Generator().manual_seed(0)
    width, spread = 1024, models.LLAMAS["full"].spread
    x, weights = torch.randn(64, width, generator=rng), spread * torch.randn(width, 512, generator=rng)
    assert float((x @ weights).std()) == pytest.approx(spread * math.sqrt(width), rel=0.02)


def test_long_sums_tell_operands_from_accumulators():
    found = accumulated_llama.measure_long_sums([ACCUMULATORS["fp8-14bit"], ACCUMULATORS["fp8-14bit-128"]])
    assert len(found) == 8
    by_name = {(row.product, row.accumulator): row for row in found}
    for product, (a, b) in accumulated_llama.draw_long_products().items():
        plain, promoted = (by_name[product, name] for name in ("fp8-14bit", "fp8-14bit-128"))
        assert plain.count == promoted.count == a.shape[1]
        assert plain.cancellation == promoted.cancellation >= 1.0
        assert plain.from_operands == promoted.from_operands > 0
        assert plain.error > 10 * promoted.error
        scales = [2.0 ** math.floor(math.log2(448 / float(x.abs().max()))) for x in (a, b)]
        left, right = ((x * s).to(torch.float8_e4m3fn) for x, s in zip((a, b), scales, strict=True))
        ideal = left.double() @ right.double()
        got = ACCUMULATORS["fp8-14bit"].matmul(left, right).double()
        assert plain.error == pytest.approx(float((got - ideal).norm() / ideal.norm()), rel=1e-12)
        full = a.double() @ b.double()
        lost = float((ideal / (scales[0] * scales[1]) - full).norm() / full.norm())
        assert plain.from_operands == pytest.approx(lost, rel=1e-12)
    cancelling, plain = (by_name[name, "fp8-14bit"] for name in ("down projection", "squares of a norm"))
    assert plain.cancellation == pytest.approx(1.0)
    assert cancelling.cancellation > 30
    # where sums cancel, the operands' rounding is the larger error; where they do not, it averages out
    assert cancelling.from_operands > 3 * cancelling.error
    assert plain.from_operands < plain.error / 3
    assert ACCUMULATORS["fp8-14bit"].operands is FLOAT8_E4M3FN
