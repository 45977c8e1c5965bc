"""An outlier feature planted into a LLaMA, and products of linear layers exchanged for others.

`with_loud_channel(model, 256.0)` is the same function, bit for bit, with one column of inputs 256 times as large.
`multiplying(model, product)` gives every linear layer but the head another product of its inputs and weights.
"""

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import nn


def readers(block: nn.Module) -> tuple[nn.Linear, ...]:
    """Return the layers of a block of transformers' LLaMA that read the outputs of its two norms."""
    attention, mlp = block.self_attn, block.mlp
    return attention.q_proj, attention.k_proj, attention.v_proj, mlp.gate_proj, mlp.up_proj


@torch.no_grad()
def with_loud_channel(model: nn.Module, factor: float, channel: int = 5) -> nn.Module:
    """Return a copy of a LLaMA that is the same function, with one column of its inputs `factor` times as large.

    The gain of each norm in this channel is multiplied by `factor`, and the weights that read it are divided by it; a
    power of two changes no bit of any logit. A factor of 0 deletes the weights that read the channel.
    """
    model = copy.deepcopy(model)
    for block in model.model.layers:
        for norm in (block.input_layernorm, block.post_attention_layernorm):
            norm.weight[channel] *= factor
        for layer in readers(block):
            layer.weight[:, channel] *= 1 / factor if factor else 0.0
    return model


def multiplying(
    model: nn.Module,
    product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    keep: tuple[str, ...] = ("lm_head",),
) -> nn.Module:
    """Return a copy whose linear layers give `product(x, w)` for rows x [M, K] and weights w [N, K], without a bias."""
    model = copy.deepcopy(model)
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear) and name not in keep:
            layer.forward = partial(_by_rows, product, layer.weight.detach())
    return model


def _by_rows(product: Callable, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return product(x.flatten(0, -2), weight).unflatten(0, x.shape[:-1])
