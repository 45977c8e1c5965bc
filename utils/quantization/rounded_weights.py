"""Models whose weights are rounded to any format, to ask what the weights alone lose."""

import copy
from collections.abc import Callable

import torch
from torch import nn

from utils.fake_quantize import fake_quantize
from utils.formats import FLOAT8_E8M0FNU, FloatFormat


def rounded(model: nn.Module, fmt: FloatFormat, *, keep: tuple[str, ...] = ()) -> nn.Module:
    """Return a copy of the model with every weight rounded to a format, to nearest, ties to even, saturating.

    All weights: embeddings and norms too, unless a part of their name is in `keep` ("norm", "embed_tokens"). Buffers,
    such as the frequencies of the positions, stay. The copy computes in the dtype of the model, so only the weights
    have lost anything.
    Raises: ValueError for a format without sign and zero, which no weights fit into.
    """
    if not fmt.signed:
        raise ValueError(f"{fmt.name} has neither sign nor zero: it holds scales, not weights; see rounded_to_bits")
    return _changed(model, lambda weight: fake_quantize(weight, fmt), keep=keep)


def rounded_to_bits(model: nn.Module, precision: int, *, keep: tuple[str, ...] = ()) -> nn.Module:
    """Return a copy of the model with weights of `precision` significant bits (1 to 24) and float32's 8 exponent bits.

    So nothing underflows: 24 is float32, 11 TF32, 8 bfloat16, and 1 leaves a sign and a power of two (and zeros).
    Otherwise as `rounded`.
    Raises: ValueError for a precision outside 1 to 24.
    """
    if not 1 <= precision <= 24:
        raise ValueError(f"precision {precision} is not in 1 ... 24, the significant bits of float32")
    if precision == 1:
        return _changed(model, _to_power_of_two, keep=keep)
    return rounded(model, FloatFormat(f"e8m{precision - 1}", 8, precision - 1, bias=127), keep=keep)


def _to_power_of_two(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x == 0, x, fake_quantize(x.abs(), FLOAT8_E8M0FNU).copysign(x))


@torch.no_grad()
def _changed(model: nn.Module, change: Callable[[torch.Tensor], torch.Tensor], *, keep: tuple[str, ...]) -> nn.Module:
    model = copy.deepcopy(model)
    for name, weight in model.named_parameters():  # tied weights once
        if not any(part in name for part in keep):
            weight.copy_(change(weight))
    return model
