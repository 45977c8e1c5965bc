"""Products of 8-bit integers, and the few columns of activations that are kept out of them: LLM.int8().

    y = int8_linear(x, quantize(weight, 8))  # x [..., K] is rounded to int8 row by row, w [N, K] was
    y = int8_linear(x, quantize(weight, 8), threshold=6.0)  # but for columns of x with a value of 6 or more

Integers are multiplied and added exactly, in int32. A scale can leave a sum over K if all its addends share it, so x
has one for each row and w one for each row too; a scale for each *column* of x would solve the problem of an outlier
column, and cannot leave the sum. Hence the split: y = x[:, normal] @ w[:, normal].t() in int8, plus
x[:, outlier] @ w[:, outlier].t() in the dtype of x. The weights of both are the stored ones of 8 bits, widened in the
second product, as bitsandbytes does for inference; the paper keeps those columns in 16 bits.

Source: Dettmers et al. 2022, arXiv 2208.07339, sections 3.1 and 3.2.
"""

import functools

import torch
import torch.nn.functional as F

from utils.emulation.scaled_tensor import quantize as quantize_scaled
from utils.quantization.integers import Quantized
from utils.quantization.weight_only import StoredLinear
from utils.scaling import INT8

THRESHOLD = 6.0
LEAST_ROWS, MULTIPLE = 32, 8  # of an int8 product on CUDA: more than 16 rows, K and N multiples of 8


def outlier_columns(x: torch.Tensor, threshold: float = THRESHOLD) -> torch.Tensor:
    """Return, bool [K], which columns of x [..., K] hold a magnitude of at least `threshold`, or a NaN."""
    return ~(x.detach().reshape(-1, x.shape[-1]).abs() < threshold).all(0)


def multiply_int8(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b.t(), exact, int32 [M, N], of int8 [M, K] and [N, K]; K is below 2**17, or int32 could overflow.

    torch multiplies the integers; on a CPU where its sums are wrong, the product is made in float64, which is slower.
    """
    rows, columns = a.shape[0], b.shape[0]
    if a.device.type == "cuda":
        fill = -a.shape[1] % MULTIPLE
        a = F.pad(a, (0, fill, 0, max(0, LEAST_ROWS - rows)))
        b = F.pad(b, (0, fill, 0, -columns % MULTIPLE))
    elif a.device.type == "cpu" and not _cpu_adds_exactly():
        return (a.double() @ b.double().t()).int()  # whole numbers below 2**53
    return torch._int_mm(a.contiguous(), b.contiguous().t())[:rows, :columns]  # int8 @ int8, summed in int32


@functools.cache
def _cpu_adds_exactly() -> bool:
    """Return whether torch's int8 product is exact on this CPU.

    Without VNNI, oneDNN shifts one factor to 0 ... 255 and adds two products in 16 bits, which saturate: 2 * 255 * 127
    is 64,770. Source: oneDNN's developer guide, "Nuances of int8 computations".
    """
    largest = torch.full((32, 64), 127, dtype=torch.int8)
    return bool((torch._int_mm(largest, largest.t()) == 64 * 127 * 127).all())


@torch.no_grad()
def int8_linear(x: torch.Tensor, weight: Quantized, *, threshold: float | None = None) -> torch.Tensor:
    """Return x @ w.t() in the dtype of x, multiplied in int8 but for the outlier columns of x.

    `x`: a floating dtype, [..., K]. `weight`: symmetric, 8 bits, a scale for each of its N rows. `threshold`: as in
    `outlier_columns`; None splits nothing off. An infinity or a NaN is an outlier where there is a threshold; without
    one it is refused.
    Raises: ValueError for a weight in another format, and for an x that is not finite without a threshold.
    """
    if weight.format.bits != 8 or not weight.format.symmetric or weight.group is not None:
        raise ValueError(f"an int8 product takes symmetric weights of 8 bits with a scale a row, not {weight.format}")
    rows = x.reshape(-1, x.shape[-1])
    if threshold is None:
        if not rows.isfinite().all():
            raise ValueError("x is not finite, and no integer is: find the NaN or the infinity first")
        return _all_int8(rows, weight).to(x.dtype).view(*x.shape[:-1], -1)
    outlier = outlier_columns(rows, threshold)
    y = _all_int8(rows.masked_fill(outlier, 0.0), weight)  # the normal columns: [M, N], float32
    kept = outlier.nonzero()[:, 0]
    # the outlier columns: x[:, kept] @ w[:, kept].t() in the dtype of x
    wide = (weight.codes[:, kept].float() * weight.inv_scale.float()).to(x.dtype)
    return (y + F.linear(rows[:, kept], wide)).to(x.dtype).view(*x.shape[:-1], -1)


def _all_int8(rows: torch.Tensor, weight: Quantized) -> torch.Tensor:
    small = quantize_scaled(rows.float(), INT8, "row")  # a scale for each token
    sums = multiply_int8(small.values.to(torch.int8), weight.codes)
    return sums.float() * small.inv_scale * weight.inv_scale.float().t()  # [M, N] * [M, 1] * [1, N]


class OutlierSplitLinear(StoredLinear):
    """A linear layer that multiplies in int8, but for the columns of its inputs that hold an outlier.

    `threshold`: as in `int8_linear`; None multiplies everything in int8.
    """

    multiplied = "int8 products, outlier columns of x apart"

    def __init__(self, stored: Quantized, bias: torch.Tensor | None = None, *, threshold: float | None = THRESHOLD):
        super().__init__(stored, bias)
        self.threshold = threshold

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x @ weight.t() + bias for x [..., in_features], in the dtype of x."""
        y = int8_linear(x, self.stored, threshold=self.threshold)
        return y if self.bias is None else y + self.bias.to(y.dtype)
