"""A model with an attention of one's own gives the logits of its own, and the function sees what is promised."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DistilBertConfig, DistilBertForSequenceClassification

from utils.workloads.own_attention import logits_with


def model():
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=50, dim=16, n_heads=2, n_layers=2, hidden_dim=32, max_position_embeddings=8)
    return DistilBertForSequenceClassification(config).eval()


def plain(module, query, key, value, mask, **options):
    scores = query @ key.transpose(2, 3) / key.shape[-1] ** 0.5 + mask
    return (scores.softmax(-1) @ value).transpose(1, 2), None


def batch():
    ids = torch.arange(12).view(2, 6)
    keep = torch.ones(2, 6, dtype=torch.long)
    keep[1, 4:] = 0
    return {"input_ids": ids, "attention_mask": keep}


def test_the_same_attention_gives_the_same_logits():
    own = model()
    with torch.no_grad():
        theirs = own(**batch()).logits
    torch.testing.assert_close(logits_with(plain, own, batch()), theirs)


def test_the_function_gets_the_shapes_that_are_promised_and_the_last_one_is_used():
    seen = []

    def watched(module, query, key, value, mask, **options):
        seen.append((query.shape, mask.shape, bool((mask[1, 0, :, 4:] < -1).all())))
        return plain(module, query, key, value, mask)

    own = model()
    logits_with(plain, own, batch())
    logits_with(watched, own, batch())
    assert seen == [((2, 2, 6, 8), (2, 1, 6, 6), True)] * 2


class Dtypes(TorchDispatchMode):
    """The dtypes of what products return."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if "mm" in str(operation):
            self.seen.add(result.dtype)
        return result


def test_a_mode_inside_sees_products_in_16_bits():
    inside = Dtypes()
    logits_with(plain, model().half(), batch(), inside=inside)
    assert inside.seen == {torch.float16}
