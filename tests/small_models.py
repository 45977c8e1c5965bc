"""Small DistilBERTs, GPT-2s and LLaMAs for tests that count bytes: sizes, models with them, a trainer and a batch."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM, DistilBertForSequenceClassification

from utils.cost.architectures import PROJECTIONS, Architecture
from utils.training.batches import Batch
from utils.training.recipes import Recipe, find_recipe
from utils.training.training_loop import Schedule, Trainer
from utils.workloads import models

CPU = torch.device("cpu")
DROPOUTS = {"dropout": 0.1, "attention_dropout": 0.1, "head_dropout": 0.1}
SMALL = {  # no two sizes are equal, so that a wrong one shows
    "distilbert": Architecture("distilbert", 101, 30, 2, 3, 3, 44, 16),
    "gpt2": Architecture("gpt2", 101, 30, 2, 3, 3, 52, 16, tied=True),
    "llama": Architecture("llama", 101, 60, 2, 6, 2, 44, 16),
}
LENGTH = 7


def config(a: Architecture):
    """Return the configuration of transformers with these sizes."""
    if a.family == "distilbert":
        sizes = {"dim": a.width, "n_layers": a.layers, "n_heads": a.heads, "hidden_dim": a.hidden}
        sizes |= {"dropout": a.dropout, "attention_dropout": a.attention_dropout}
        sizes |= {"seq_classif_dropout": a.head_dropout, "num_labels": a.classes}
    elif a.family == "gpt2":
        sizes = {"n_embd": a.width, "n_layer": a.layers, "n_head": a.heads, "n_inner": a.hidden}
        sizes |= {"embd_pdrop": a.dropout, "resid_pdrop": a.dropout, "attn_pdrop": a.attention_dropout}
    else:
        sizes = {"hidden_size": a.width, "num_hidden_layers": a.layers, "num_attention_heads": a.heads}
        sizes |= {"num_key_value_heads": a.groups, "intermediate_size": a.hidden}
        sizes |= {"attention_dropout": a.attention_dropout}
    if a.family != "distilbert":
        sizes |= {"tie_word_embeddings": a.tied}
    return AutoConfig.for_model(a.family, vocab_size=a.vocabulary, max_position_embeddings=a.positions, **sizes)


def trainer(a: Architecture, recipe_name: str, *, checkpointing: bool = False, device: torch.device = CPU) -> Trainer:
    kind = DistilBertForSequenceClassification if a.family == "distilbert" else AutoModelForCausalLM
    model = kind(config(a)) if a.family == "distilbert" else kind.from_config(config(a))
    if checkpointing:
        models.checkpoint_blocks(model)
    return Trainer(model, recipe=find_recipe(recipe_name), device=device, schedule=Schedule(1e-3), steps=9)


class Adapted(nn.Module):
    """LoRA as peft computes it: `layer` as it is, and A and B in the dtype of the recipe's weights beside it.

    A reads its input in its own dtype, or, with `shared`, as it comes (as in QLoRA).
    """

    def __init__(self, layer: nn.Module, sizes: tuple[int, int], *, rank: int, dtype: torch.dtype, shared: bool):
        super().__init__()
        (outputs, inputs), self.layer, self.shared = sizes, layer, shared
        self.a, self.b = (
            nn.Linear(inputs, rank, bias=False, dtype=dtype),
            nn.Linear(rank, outputs, bias=False, dtype=dtype),
        )
        nn.init.zeros_(self.b.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        return (y + 2.0 * self.b(self.a(x if self.shared else x.to(self.a.weight.dtype)))).to(y.dtype)


def adapted(
    a: Architecture, recipe: Recipe, *, rank: int, names: tuple[str, ...] = (), shared: bool = False
) -> nn.Module:
    """Return a language model whose frozen weights have the dtype of the recipe's products, with LoRA beside them."""
    model = AutoModelForCausalLM.from_config(config(a)).to(recipe.arithmetic).requires_grad_(False).train()
    for name, sizes in PROJECTIONS[a.family].items():
        for path, layer in [*model.named_modules()] if not names or name in names else []:
            if path.endswith(f".{name}"):
                parent, _, last = path.rpartition(".")
                shape = tuple(a.dimensions[letter] for letter in sizes)
                own = Adapted(layer, shape, rank=rank, dtype=recipe.weights, shared=shared)
                setattr(model.get_submodule(parent), last, own)
    return model


def loss_of(model: nn.Module, recipe: Recipe, given: Batch) -> torch.Tensor:
    """Return the loss of `Trainer` for a language model that has none."""
    with recipe.autocast(CPU):
        logits = model(input_ids=given.ids, attention_mask=given.mask).logits
    wide = torch.promote_types(logits.dtype, torch.float32)
    return F.cross_entropy(logits.to(wide).flatten(0, -2), given.labels.flatten())


def batch(a: Architecture, rows: int = 2, *, length: int = LENGTH, padded: bool = True) -> Batch:
    ids = torch.arange(3, 3 + rows * length).view(rows, length) % a.vocabulary
    mask = torch.ones_like(ids)
    if padded:
        mask[-1, -2:] = 0
    return Batch(ids, mask, ids[:, 0] % 2 if a.family == "distilbert" else ids.roll(-1, 1))
