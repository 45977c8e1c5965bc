"""A transformers model that computes its attention by a function of the reader's own."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from utils.emulation.fast_half import FastHalf

NAME = "own"  # under which transformers keeps the function; the last one registered is used


@torch.no_grad()
def logits_with(
    attention: Callable,
    model: torch.nn.Module,
    batch: Mapping[str, torch.Tensor],
    *,
    inside: AbstractContextManager | None = None,
) -> torch.Tensor:
    """Return the logits [B, C] of a model whose attention is `attention`.

    `attention`: called as transformers does, `attention(module, query, key, value, mask, **options)` with query, key
    and value [B, heads, T, d] and a mask [B, 1, T, T] to be added; it returns the output [B, T, heads, d] and None.
    `batch`: "input_ids" and "attention_mask", both [B, T]. On a CPU without 16-bit arithmetic, products of 16-bit
    numbers are taken in float32 and rounded, as a tensor core does (`FastHalf`). `inside`: a context around the model,
    such as a `TorchDispatchMode`, that sees its operations as a GPU would run them, in 16 bits.
    """
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, eager_mask)
    model.set_attn_implementation(NAME)
    with FastHalf(), inside or nullcontext():
        return model(batch["input_ids"], batch["attention_mask"]).logits
