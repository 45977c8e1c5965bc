"""Linear layers whose weights are stored small and widened on the way to the product.

    layer = WeightOnlyLinear(integers.quantize(linear.weight, 4, 32), linear.bias)
    layer(x)  # x @ widened weight.t() in the dtype of x

The product itself is that of wide numbers: what is saved is memory, and the time to read it. In eager mode a GPU writes
the widened matrix and reads it again, which takes longer than 16-bit weights would; compiled, both can be one kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from utils.emulation.scaled_tensor import quantize
from utils.formats import FLOAT8_E4M3FN
from utils.quantization.integers import Quantized


@dataclass
class Float8Weight:
    """A matrix of weights in E4M3: `codes`, float8_e4m3fn [N, K], and `inv_scale` of each row, float32 [N, 1]."""

    codes: torch.Tensor
    inv_scale: torch.Tensor
    zero_point: None = None

    @classmethod
    def of(cls, weight: torch.Tensor) -> "Float8Weight":
        """Return a float matrix [N, K] in E4M3, one scale per row."""
        small = quantize(weight.detach().float(), FLOAT8_E4M3FN, "row")  # inv_scale = amax of the row / 448
        return cls(small.codes(), small.inv_scale)

    @property
    def shape(self) -> tuple[int, int]:
        """[N, K]."""
        return tuple(self.codes.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales together."""
        return self.codes.nbytes + self.inv_scale.nbytes

    @property
    def bits_per_weight(self) -> float:
        """Stored bits, scales included, for each weight."""
        return 8 * self.nbytes / max(1, self.codes.numel())

    def dequantize(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return codes * inv_scale, [N, K], multiplied in float32 and rounded to `dtype`."""
        return (self.codes.float() * self.inv_scale).to(dtype)  # [N, K] * [N, 1]


Stored = Quantized | Float8Weight


class StoredLinear(nn.Module):
    """What the layers with stored weights have in common: buffers that move with the model, but are never cast."""

    multiplied = ""  # what the product is, in words

    def __init__(self, stored: Stored, bias: torch.Tensor | None = None):
        super().__init__()
        self.out_features, self.in_features = stored.shape
        for name in ("codes", "inv_scale", "zero_point"):
            self.register_buffer(name, getattr(stored, name))
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), requires_grad=False)
        self._made = _maker(stored)

    @property
    def stored(self) -> Stored:
        """The weights as they are stored, [out_features, in_features]."""
        return self._made(self.codes, self.inv_scale, self.zero_point)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored weights with their scales."""
        return sum(buffer.nbytes for buffer in self.buffers(recurse=False))

    def widened(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return the weights [out_features, in_features] in a wide dtype."""
        return self.stored.dequantize(dtype)

    def extra_repr(self) -> str:
        """Return what `print(model)` shows of the layer."""
        bits = 8 * self.nbytes / max(1, self.in_features * self.out_features)
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}, {bits:.3g} bits a weight"

    def _apply(self, function, *arguments):
        buffers = dict(self.named_buffers(recurse=False))
        super()._apply(function, *arguments)
        for name, before in buffers.items():  # a scale in another dtype would be another scale
            setattr(self, name, before.to(getattr(self, name).device))
        return self


def _maker(stored: Stored) -> Callable[..., Stored]:
    """Return what makes the same kind of weights of its three tensors."""
    if isinstance(stored, Float8Weight):
        return Float8Weight
    return partial(Quantized, format=stored.format, group=stored.group, shape=stored.shape)


class WeightOnlyLinear(StoredLinear):
    """A linear layer that widens its weights to the dtype of its inputs before each product."""

    multiplied = "widened to the dtype of x, then multiplied"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x @ weight.t() + bias for x [..., in_features], in the dtype of x."""
        return F.linear(x, self.widened(x.dtype), self.bias)
