"""A planted outlier feature changes no logit, and products are exchanged where they should be."""

import pytest
import torch
from torch import nn

from utils.quantization.loud_channel import multiplying, readers, with_loud_channel
from utils.workloads import models

SHAPE = models.LlamaShape(vocabulary=64, width=32, layers=2, heads=4, groups=2, hidden=48, positions=16, tied=True)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return models.build_llama(SHAPE).eval()


@pytest.fixture
def ids():
    return torch.arange(12)[None]


@torch.no_grad()
def inputs_of(model, layer, ids):
    kept = []
    with layer.register_forward_pre_hook(lambda _, x: kept.append(x[0])):
        model(input_ids=ids)
    return kept[0]


@torch.no_grad()
def test_the_function_is_the_same_and_one_column_of_inputs_is_larger(model, ids):
    loud = with_loud_channel(model, 256.0, channel=7)
    assert torch.equal(loud(input_ids=ids).logits, model(input_ids=ids).logits)
    for layers in zip(readers(model.model.layers[1]), readers(loud.model.layers[1]), strict=True):
        before, after = (inputs_of(each, layer, ids) for each, layer in zip((model, loud), layers, strict=True))
        ratio = after / before
        assert torch.equal(ratio[..., 7], torch.full_like(ratio[..., 7], 256.0))
        assert torch.equal(after[..., :7], before[..., :7])


@torch.no_grad()
def test_a_factor_of_zero_deletes_the_channel(model):
    empty = with_loud_channel(model, 0.0)
    assert all((layer.weight[:, 5] == 0).all() for block in empty.model.layers for layer in readers(block))
    assert not any((layer.weight == 0).any() for block in model.model.layers for layer in readers(block))


@torch.no_grad()
def test_products_are_exchanged_in_all_layers_but_the_head(model, ids):
    seen = []

    def product(x, w):
        seen.append(tuple(w.shape))
        return x @ w.t()

    other = multiplying(model, product)
    torch.testing.assert_close(other(input_ids=ids).logits, model(input_ids=ids).logits)
    shapes = [tuple(m.weight.shape) for n, m in model.named_modules() if isinstance(m, nn.Linear) and n != "lm_head"]
    assert sorted(seen) == sorted(shapes)
    before = len(seen)
    model(input_ids=ids)
    assert len(seen) == before
