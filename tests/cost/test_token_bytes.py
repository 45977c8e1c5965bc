"""Bytes of a token: sums by hand, real caches, and models whose tensors are counted one by one."""

import dataclasses

import pytest
import torch

from utils.cost import architectures, token_bytes
from utils.cost.token_bytes import TokenBytes, bytes_per_token, kv_bytes, predict
from utils.workloads import models

SHAPE = models.LlamaShape(vocabulary=40, width=16, layers=3, heads=4, groups=2, hidden=32, positions=24, tied=False)


@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_cache_of_a_real_model_has_the_bytes_of_the_formula(groups, dtype):
    from transformers import DynamicCache

    model = models.build_llama(dataclasses.replace(SHAPE, groups=groups)).to(dtype)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=torch.arange(10).view(2, 5), past_key_values=cache, use_cache=True)
    held = sum(part.nbytes for layer in cache.layers for part in (layer.keys, layer.values))
    assert kv_bytes(model, tokens=5, batch=2) == held
    assert kv_bytes(architectures.read_config(model.config), tokens=5, batch=2, bits=8 * dtype.itemsize) == held


@pytest.mark.parametrize(
    ("name", "tokens", "expected"),
    [
        pytest.param("LLaMA 7B", 2_048, 2 * 32 * 4_096 * 2_048 * 2, id="LLaMA 7B: 2 layers' worth of D for a token"),
        pytest.param("Llama 3 8B", 8_192, 2 * 32 * 1_024 * 8_192 * 2, id="Llama 3 8B: 8 groups of 32 heads"),
        pytest.param("LLaMA 7B", 0, 0, id="nothing yet"),
    ],
)
def test_named_models_keep_what_a_sum_by_hand_gives(name, tokens, expected):
    assert kv_bytes(name, tokens=tokens) == expected
    assert kv_bytes(name, tokens=tokens, bits=4.5) == expected * 4.5 / 16


def test_a_cache_that_cannot_be_is_refused():
    for wrong in ({"tokens": -1}, {"tokens": 5, "batch": 0}):
        with pytest.raises(ValueError, match="cannot be kept"):
            kv_bytes("LLaMA 7B", **wrong)
    with pytest.raises(ValueError, match="unknown model"):
        kv_bytes("LLaMA 8B", tokens=1)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("batch", [1, 3])
def test_prediction_and_count_agree_but_for_the_frequencies_of_the_positions(tied, batch):
    model = models.build_llama(dataclasses.replace(SHAPE, tied=tied)).to(torch.bfloat16)
    counted = bytes_per_token(model, context=7, batch=batch)
    asked = predict(architectures.read_config(model.config), context=7, batch=batch)
    frequencies = sum(buffer.nbytes for buffer in model.buffers())
    assert dataclasses.replace(counted, weights=counted.weights - frequencies) == asked
    everything = 2 * models.count_parameters(model)
    assert asked.weights == (everything if tied else everything - 2 * 16 * (40 - batch))


def test_narrow_weights_count_with_their_bits_and_the_head_with_its_own():
    wide, narrow = (predict("LLaMA 7B", weight_bits=bits) for bits in (16, 4.5))
    linear = 32 * (4 * 4_096**2 + 3 * 4_096 * 11_008)
    assert wide.weights - narrow.weights == linear * 11.5 / 8
    assert wide.weights - predict("LLaMA 7B", head_bits=8).weights == 32_000 * 4_096
    assert wide.weights == pytest.approx(13.2e9, rel=0.01)


def test_a_rate_is_bandwidth_over_bytes_and_back():
    step = TokenBytes(weights=900, cache_read=90, cache_written=10, batch=4)
    assert step.total == 1_000
    assert step.tokens_per_second(2) == 4 * 2e9 / 1_000
    assert step.moved_per_second(step.tokens_per_second(2)) == pytest.approx(2)


def test_the_line_of_the_docstring_is_what_it_says():
    assert predict("LLaMA 7B", weight_bits=16, context=500).tokens_per_second(1555) == pytest.approx(115.4, abs=0.05)
    assert "115.4" in token_bytes.__doc__


def test_other_families_are_refused():
    with pytest.raises(ValueError, match="take a LLaMA"):
        predict("GPT-2")
