"""The script at the top of training/distilbert, with its download replaced by a small model and a few reviews."""

import sys
from types import SimpleNamespace

import pytest
import torch
import transformers

import book_rules as rules


@pytest.fixture
def script():
    return next(
        cell.source for cell in rules.read_page(rules.BOOK / "training" / "distilbert.ipynb") if cell.kind == "code"
    )


def test_the_pretrained_branch_fine_tunes_float32_weights_with_bfloat16_products(script, monkeypatch, capsys):
    asked, seen = {}, set()
    config = transformers.DistilBertConfig(vocab_size=40, dim=32, n_layers=1, n_heads=2, hidden_dim=64)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]

    def from_pretrained(name, **settings):
        asked[name] = settings
        model = transformers.AutoModelForSequenceClassification.from_config(config)
        layer = model.distilbert.transformer.layer[0].ffn.lin1
        layer.register_forward_hook(lambda module, args, out: seen.add(out.dtype))
        return model

    model, tokenizer = transformers.AutoModelForSequenceClassification, transformers.AutoTokenizer
    monkeypatch.setattr(model, "from_pretrained", from_pretrained)
    made = transformers.BertTokenizer(vocab={word: i for i, word in enumerate(words)})
    monkeypatch.setattr(tokenizer, "from_pretrained", lambda name: made)
    reviews = {part: {"text": ["good film", "bad film"] * 12, "label": [1, 0] * 12} for part in ("train", "test")}
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=lambda name: reviews))
    assert script.count("PRETRAINED = False") == 1
    space = {}
    exec(script.replace("PRETRAINED = False", "PRETRAINED = True"), space)
    assert asked == {"distilbert/distilbert-base-uncased": {"num_labels": 2, "dtype": torch.float32}}
    assert seen == {torch.bfloat16}
    assert {weight.dtype for weight in space["model"].parameters()} == {torch.float32}
    assert space["schedule"].get_last_lr() == [0.0]  # it ends when the steps do
    assert capsys.readouterr().out.endswith("of 24 right\n")
