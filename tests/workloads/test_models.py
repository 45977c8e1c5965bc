"""Models have the sizes they claim, the same weights from the same seed, and float32 whatever was saved."""

import dataclasses

import pytest
import torch

from utils.workloads import models

SHAPE = models.DistilBertShape(vocabulary=20, width=16, layers=1, heads=2, hidden=32, positions=16)


def test_the_default_shape_is_that_of_distilbert_base_uncased():
    from transformers import DistilBertConfig

    shape, config = models.DistilBertShape(), DistilBertConfig()
    assert (shape.vocabulary, shape.width, shape.layers, shape.heads, shape.hidden, shape.positions) == (
        config.vocab_size,
        config.dim,
        config.n_layers,
        config.n_heads,
        config.hidden_dim,
        config.max_position_embeddings,
    )
    assert (shape.dropout, shape.head_dropout) == (config.dropout, config.seq_classif_dropout)
    with torch.device("meta"):
        model = models.build_distilbert(shape)
    assert models.count_parameters(model) == 66_955_010


def test_a_seed_gives_the_same_weights_whatever_ran_before():
    first = models.build_distilbert(SHAPE, seed=1).state_dict()
    torch.rand(7)
    second = models.build_distilbert(SHAPE, seed=1).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = models.build_distilbert(SHAPE, seed=2).state_dict()
    assert not torch.equal(first["classifier.weight"], other["classifier.weight"])


def test_building_a_model_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    models.build_distilbert(SHAPE, seed=5)
    assert torch.equal(torch.rand(3), expected)


def test_a_bfloat16_checkpoint_is_loaded_in_float32(tmp_path):
    with models.quiet():
        models.build_distilbert(SHAPE).to(torch.bfloat16).save_pretrained(tmp_path)
    tokenizer_of(tmp_path)
    loaded = models.pretrained_distilbert(tmp_path)
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}
    assert loaded.source == "trained weights, local folder"


def tokenizer_of(folder):
    from utils.workloads import tokenizers

    tokenizers.train_word_tokenizer(["good bad"], max_length=16).save_pretrained(folder)


def test_weights_may_lie_in_a_folder_of_their_kind(tmp_path, monkeypatch):
    with models.quiet():
        models.build_distilbert(SHAPE).save_pretrained(tmp_path / "distilbert")
    monkeypatch.setenv("MIXED_PRECISION_WEIGHTS", str(tmp_path))
    assert models.weights_folder("distilbert") == tmp_path / "distilbert"
    with pytest.raises(ValueError, match="has no llama"):
        models.weights_folder("llama")


def test_a_folder_without_usable_weights_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"weights folder .* is not there"):
        models.pretrained_distilbert(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no distilbert"):
        models.pretrained_distilbert(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config.json cannot be read"):
        models.pretrained_distilbert(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ValueError, match="has no distilbert"):
        models.pretrained_distilbert(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "distilbert"}')
    with pytest.raises(ValueError, match="cannot be loaded"):
        models.pretrained_distilbert(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not weights at all")
    with pytest.raises(ValueError, match="cannot be loaded"):
        models.pretrained_distilbert(tmp_path)


def test_a_tokeniser_with_more_entries_than_the_model_is_refused(tmp_path):
    with models.quiet():
        models.build_distilbert(dataclasses.replace(SHAPE, vocabulary=6)).save_pretrained(tmp_path)
    tokenizer_of(tmp_path)
    with pytest.raises(ValueError, match="has 7 entries, the model only 6"):
        models.pretrained_distilbert(tmp_path)


def test_without_folder_and_hub_there_are_no_trained_weights(monkeypatch):
    monkeypatch.delenv("MIXED_PRECISION_WEIGHTS", raising=False)
    assert models.pretrained_distilbert(hub=False) is None


def test_the_small_llama_ties_its_embeddings_and_the_full_one_has_the_shape_of_llama_7b():
    small = models.build_llama("small")
    assert models.count_parameters(small) == 3_033_344
    assert small.lm_head.weight.data_ptr() == small.model.embed_tokens.weight.data_ptr()
    full = models.build_llama("full", device="meta")
    assert models.count_parameters(full) == 6_738_415_616
