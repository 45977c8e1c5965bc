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


def test_the_pretrained_branch_fine_tunes_float32_weights_with_bfloat16_products(script, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
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
    assert len(space["held"]) == 2
    assert capsys.readouterr().out.endswith("of 24 test reviews right\n")
    saved = transformers.DistilBertForSequenceClassification.from_pretrained(tmp_path / "fine-tuned")
    for name, weight in saved.state_dict().items():
        assert torch.equal(weight, space["kept"][name])  # the best epoch, not the last


def test_the_best_epoch_is_kept_though_the_last_is_worse(script, monkeypatch, capsys):
    """The second epoch of three answers most of the held-out reviews; its weights are those that are tested."""
    shown, seen = iter((3, 9, 5)), []

    def count(examples):
        if len(examples) == 30:
            seen.append(next(shown))
            return seen[-1]
        return 0

    before, after = script.split("model.to(device)\n")
    space = {}
    exec(before, space)
    space["count_right"] = count
    states = []
    space["copy"] = SimpleNamespace(deepcopy=lambda state: states.append(len(seen)) or dict(state))
    exec("model.to(device)\n" + after, space)
    assert (seen, states) == ([3, 9, 5], [1, 2])
    assert "epoch 2: 9 of 30 held-out reviews right" in capsys.readouterr().out


def test_a_card_without_bfloat16_products_is_refused(script, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    with pytest.raises(AssertionError, match="float16 and a loss scaler"):
        exec(script, {})


def test_the_script_needs_nothing_that_only_one_version_of_transformers_has(script):
    """`BertTokenizer` takes a dict of words from version 5 on, and the name of a file before."""
    assert "BertTokenizer" not in script
    assert "transformers>=4.57" in script
