"""Every parameter of the book's two models finds its layer."""

import pytest

from utils.training.layer_names import layer_of
from utils.workloads import models

BERT = models.DistilBertShape(vocabulary=20, width=16, layers=2, heads=2, hidden=32, positions=16)
LLAMA = models.LlamaShape(vocabulary=20, width=16, layers=2, heads=2, groups=2, hidden=32, positions=16)


@pytest.mark.parametrize(
    "model", [models.build_distilbert(BERT), models.build_llama(LLAMA)], ids=["DistilBERT", "LLaMA"]
)
def test_the_parameters_of_a_model_fall_into_embeddings_blocks_and_head_in_this_order(model):
    labels = dict.fromkeys(layer_of(name) for name, _ in model.named_parameters())
    assert list(labels) == ["embeddings", "layer 1", "layer 2", "head"]
    without_head = dict.fromkeys(layer_of(name) for name, _ in model.base_model.named_parameters())
    assert list(without_head)[:3] == ["embeddings", "layer 1", "layer 2"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("distilbert.embeddings.LayerNorm.weight", "embeddings"),
        ("distilbert.transformer.layer.0.output_layer_norm.bias", "layer 1"),
        ("distilbert.transformer.layer.11", "layer 12"),
        ("pre_classifier.weight", "head"),
        ("classifier.bias", "head"),
        ("model.embed_tokens.weight", "embeddings"),
        ("model.layers.0.input_layernorm.weight", "layer 1"),
        ("model.norm.weight", "head"),
        ("lm_head.weight", "head"),
        ("0.weight", "0"),
        ("encoder.query.weight", "encoder"),
        ("weight", "weight"),
    ],
)
def test_a_name_gives_its_layer(name, label):
    assert layer_of(name) == label
