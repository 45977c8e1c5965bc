"""Which LLaMA writes: the book's own, a folder's, the hub's or a shape; a wrong name is told the right ones."""

import dataclasses

import pytest
import torch

from utils import llama
from utils.experiments.generation_models import SHAPES, load_subject
from utils.training.training_loop import Schedule
from utils.workloads import data, language_task, models, tokenizers

CPU = torch.device("cpu")
SHAPE = models.LlamaShape(
    vocabulary=40, width=16, layers=1, heads=2, groups=1, hidden=32, positions=64, tied=True, spread=0.3
)
TINY = language_task.LanguageSettings(
    characters=6_000,
    held_out=600,
    steps=2,
    batch=2,
    length=32,
    schedule=Schedule(learning_rate=1e-2),
    shape=dataclasses.replace(SHAPE, positions=32),
    entries=300,
)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE"):
        monkeypatch.delenv(f"MIXED_PRECISION_{name}", raising=False)
    monkeypatch.setenv("MIXED_PRECISION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(language_task, "settings_for", lambda size: TINY)


def test_the_books_own_comes_with_its_held_out_text():
    found = load_subject(device=CPU)
    assert found.weights.startswith("trained in the book")
    assert found.data.startswith("generated stories")
    assert found.window == 32
    assert found.prompt.tolist() == [found.held_out[:8].tolist()]
    assert found.prompt[0, 0] == tokenizers.BEGIN
    assert not found.model.training
    assert found.model.config._attn_implementation == "sdpa"
    assert llama.perplexity(found.model, found.held_out, window=found.window) > 1


def test_a_shape_has_random_weights_that_are_asked_nothing(monkeypatch):
    monkeypatch.setitem(SHAPES, "tiny", SHAPE)
    found = load_subject("tiny", device=CPU)
    assert (found.name, found.held_out, found.tokenizer) == ("llama-tiny", None, None)
    assert "random" in found.weights
    assert torch.equal(found.model.lm_head.weight, models.build_llama(SHAPE).lm_head.weight)


def test_the_shapes_are_of_the_size_that_they_say():
    counts = {}
    for name, shape in SHAPES.items():
        with torch.device("meta"):
            counts[name] = models.count_parameters(models.build_llama(shape, device="meta"))
    assert counts == {"small": 3_033_344, "100m": 134_105_856, "1b": 1_100_048_384, "7b": 6_738_415_616}


def test_weights_of_a_folder_count_before_the_name(tmp_path):
    tokenizer = tokenizers.train_prose_bpe(data.generated_prose(5_000).text, entries=300)
    home = tmp_path / "my-llama"
    with models.quiet():
        models.build_llama(dataclasses.replace(SHAPE, vocabulary=len(tokenizer))).save_pretrained(home)
    tokenizer.save_pretrained(home)
    found = load_subject("7b", device=CPU, weights=str(home))
    assert (found.name, found.weights) == ("my-llama", "trained weights, local folder")
    assert found.window == 64
    assert len(found.held_out) > 1_000
    assert found.data.startswith("generated stories (20,000")


def test_the_hub_is_asked_once_and_refuses_in_one_sentence(monkeypatch):
    monkeypatch.setattr(data, "hub_reachable", lambda: False)
    with pytest.raises(ValueError, match="owner/model: the hub cannot be reached; name a folder with its weights"):
        load_subject("owner/model", device=CPU)
    with pytest.raises(ValueError, match="unknown model '8b'; take trained, small, 100m, 1b, 7b, or owner/model"):
        load_subject("8b", device=CPU)


def test_a_model_of_the_hub_is_loaded_in_float32(monkeypatch):
    import transformers

    tokenizer = tokenizers.train_prose_bpe("The rain", entries=300)
    asked = []
    monkeypatch.setattr(data, "hub_reachable", lambda: True)
    made = models.build_llama(dataclasses.replace(SHAPE, vocabulary=len(tokenizer)))
    monkeypatch.setattr(
        transformers.LlamaForCausalLM, "from_pretrained", lambda name, **how: asked.append((name, how)) or made
    )
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name: tokenizer)
    found = load_subject("owner/model", device=CPU)
    assert asked == [("owner/model", {"dtype": torch.float32})]
    assert found.weights == "owner/model, from the hub"
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # a mistake of ours is not the hub's
        load_subject("owner/model", device=CPU)
