"""Rounded weights: each of them by the exact reference, and the model that they come from is left alone."""

import numpy as np
import pytest
import torch

from utils.formats import FORMATS, FloatFormat
from utils.quantization import rounded_weights
from utils.rounding import quantize
from utils.workloads import models

SHAPE = models.LlamaShape(
    vocabulary=40, width=16, layers=1, heads=2, groups=1, hidden=32, positions=24, tied=True, spread=0.3
)


def a_model() -> torch.nn.Module:
    return models.build_llama(SHAPE, seed=1)


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS.values() if fmt.signed], ids=str)
def test_a_rounded_model_holds_what_quantize_gives_for_each_weight(fmt):
    model = a_model()
    found = rounded_weights.rounded(model, fmt)
    for (name, weight), rounded in zip(model.named_parameters(), found.parameters(), strict=True):
        assert rounded.dtype is torch.float32
        expected = quantize(weight.detach().numpy(), fmt, saturate=True).astype(np.float32)
        assert np.array_equal(rounded.detach().numpy(), expected), name


def test_rounding_leaves_the_model_itself_alone_and_tied_weights_tied():
    model, same = a_model(), a_model()
    found = rounded_weights.rounded(model, FORMATS["float4_e2m1fn"])
    assert all(map(torch.equal, model.parameters(), same.parameters()))
    assert found.lm_head.weight.data_ptr() == found.model.embed_tokens.weight.data_ptr()
    assert found.lm_head.weight.data_ptr() != model.lm_head.weight.data_ptr()


def test_weights_that_are_to_be_kept_are():
    model = a_model()
    found = rounded_weights.rounded(model, FORMATS["float4_e2m1fn"], keep=("embed_tokens", "norm"))
    before = dict(model.named_parameters())
    same = {name for name, weight in found.named_parameters() if torch.equal(weight, before[name])}
    assert "model.embed_tokens.weight" in same
    assert "model.layers.0.mlp.up_proj.weight" not in same


@pytest.mark.parametrize("precision", range(1, 25))
def test_rounded_to_bits_leaves_that_many_significant_bits(precision):
    found = rounded_weights.rounded_to_bits(a_model(), precision)
    for weight, kept in zip(a_model().parameters(), found.parameters(), strict=True):
        x, y = weight.detach().double(), kept.detach().double()
        significand, exponent = torch.frexp(y)
        assert torch.equal(significand * 2**precision, (significand * 2**precision).round())
        _, exponent = torch.frexp(x)
        half = torch.ldexp(torch.full_like(x, 0.5), exponent - precision)  # of an ulp of x
        assert ((y - x).abs() <= half).all()


def test_one_bit_is_a_power_of_two_and_keeps_zero_and_the_sign():
    model = a_model()
    with torch.no_grad():
        model.model.norm.weight[:8] = torch.tensor([0.0, -0.0, 1.0, 1.49, 1.5, -1.51, -3.0, -2.9])
    found = rounded_weights.rounded_to_bits(model, 1).model.norm.weight[:8]
    assert found.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, -2.0, -4.0, -2.0]
    assert found.signbit().tolist() == [False, True, False, False, False, True, True, True]


def test_some_precisions_have_names():
    for precision, name in ((24, "float32"), (11, "tf32"), (8, "bfloat16")):
        by_bits, by_name = (
            rounded_weights.rounded_to_bits(a_model(), precision),
            rounded_weights.rounded(a_model(), FORMATS[name]),
        )
        assert all(map(torch.equal, by_bits.parameters(), by_name.parameters()))


def test_what_cannot_hold_weights_is_refused():
    with pytest.raises(ValueError, match="float8_e8m0fnu has neither sign nor zero"):
        rounded_weights.rounded(a_model(), FORMATS["float8_e8m0fnu"])
    for precision in (0, 25):
        with pytest.raises(ValueError, match=f"precision {precision} is not in 1 ... 24"):
            rounded_weights.rounded_to_bits(a_model(), precision)


def test_a_format_of_ones_own_rounds_a_model_too():
    fmt = FloatFormat("e3m1", 3, 1, bias=3)
    found = rounded_weights.rounded(a_model(), fmt)
    assert set(found.lm_head.weight.abs().unique().tolist()) <= {0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5}
