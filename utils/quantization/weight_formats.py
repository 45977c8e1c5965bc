"""Models with small weights, by the name of a format: what stores the weights, and what multiplies them.

    small = converted(model, "int4")  # a copy; groups of 32 weights in 4 bits share a scale
    print(weight_report(small))  # which layers, their bits a weight, and what multiplies them

Weights alone: the inputs of the layers stay wide, as do embeddings, norms, and the head by default. Only "int8-split"
rounds the inputs of the layers too. "float32", "bfloat16" and "float16" are the whole model in that dtype.
"""

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn

from utils.measure import tensor_bytes
from utils.quantization import gptq
from utils.quantization.int4_kernel import Int4PackLinear, why_not
from utils.quantization.integers import GRIDS, MATRIX, quantize, tiling
from utils.quantization.llm_int8 import OutlierSplitLinear
from utils.quantization.weight_only import Float8Weight, Stored, StoredLinear, WeightOnlyLinear
from utils.training.layer_names import layer_of

KERNELS = ("auto", "widened", "int4pack")
ROWS = 16  # texts of the calibration that run at a time


@dataclass(frozen=True)
class WeightFormat:
    """What stores the weights of linear layers.

    `bits` of a code. `group`: how many weights share a scale, as in `utils.quantization.integers`; it means nothing for
    a `dtype`, which the whole model is cast to. `calibrated`: rounded by `utils.quantization.gptq` from the inputs of
    the layers. `split`: the inputs are rounded too (`utils.quantization.llm_int8`). `source`: where the format is
    described.
    """

    name: str
    label: str
    bits: int
    group: int | str | None = None
    symmetric: bool = True
    dtype: torch.dtype | None = None
    float8: bool = False
    calibrated: bool = False
    split: bool = False
    source: str = ""

    def __str__(self) -> str:
        return self.name

    def bits_per_weight(self, shape: tuple[int, int] | None = None) -> float:
        """Return the stored bits of a weight with its share of scales and zero points.

        Without a `shape` [N, K], those of a large matrix, where a scale a row costs nothing.
        """
        if self.dtype is not None:
            return float(self.bits)
        if self.float8:
            return 8 + (0.0 if shape is None else 32 / shape[1])
        scaling = tiling(self.group)
        extra = scaling.bits_per_value(GRIDS[self.bits], shape) - self.bits  # 16 bits a scale
        return self.bits + extra * (1 if self.symmetric else 1.5)  # and 8 a zero point

    def stored(self, weight: torch.Tensor, hessian: torch.Tensor | None = None) -> Stored:
        """Return a matrix of weights [N, K] in this format; a calibrated one takes its inputs' `hessian` [K, K].

        Raises: ValueError for a format that is a dtype.
        """
        if self.dtype is not None:
            raise ValueError(f"{self.name} is a dtype: weight.to({self.dtype})")
        if self.float8:
            return Float8Weight.of(weight)
        if self.calibrated:
            return gptq.compensated(weight, hessian, self.bits, self.group, symmetric=self.symmetric)
        return quantize(weight, self.bits, self.group, symmetric=self.symmetric)


_GPTQ, _LLM_INT8 = "arXiv 2210.17323", "arXiv 2208.07339"
WEIGHT_FORMATS: dict[str, WeightFormat] = {
    row.name: row
    for row in (
        WeightFormat("float32", "float32", 32, dtype=torch.float32),
        WeightFormat("bfloat16", "bfloat16", 16, dtype=torch.bfloat16),
        WeightFormat("float16", "float16", 16, dtype=torch.float16),
        WeightFormat("float8", "E4M3, a scale a row", 8, float8=True),
        WeightFormat("int8", "int8, a scale a row", 8),
        WeightFormat("int8-split", "int8, weights and inputs, outliers apart", 8, split=True, source=_LLM_INT8),
        WeightFormat("int4", "int4, groups of 32", 4, 32),
        WeightFormat("int4-g128", "int4, groups of 128", 4, 128),
        WeightFormat("int4-row", "int4, a scale a row", 4),
        WeightFormat("int4-matrix", "int4, a scale a matrix", 4, MATRIX),
        WeightFormat("int4-asymmetric", "int4 with zero points, groups of 32", 4, 32, symmetric=False),
        WeightFormat("int4-gptq", "int4 by GPTQ, groups of 32", 4, 32, calibrated=True, source=_GPTQ),
        WeightFormat("int4-gptq-g128", "int4 by GPTQ, groups of 128", 4, 128, calibrated=True, source=_GPTQ),
        WeightFormat("int4-gptq-row", "int4 by GPTQ, a scale a row", 4, calibrated=True, source=_GPTQ),
    )
}


def weight_format(name: str | WeightFormat) -> WeightFormat:
    """Return the format of that name.

    Raises: ValueError for an unknown one.
    """
    if isinstance(name, WeightFormat):
        return name
    if name not in WEIGHT_FORMATS:
        raise ValueError(f"weight format {name!r} is not one of {', '.join(WEIGHT_FORMATS)}")
    return WEIGHT_FORMATS[name]


@torch.no_grad()
def converted(
    model: nn.Module,
    name: str | WeightFormat,
    *,
    calibration: torch.Tensor | None = None,
    keep: Iterable[str] = ("lm_head",),
    compute: torch.dtype | None = None,
    kernel: str = "auto",
) -> nn.Module:
    """Return a copy of the model whose linear layers hold their weights in a format; the model stays as it is.

    `calibration`: tokens, int64 [B, S], that the model is run on, for a format that needs their statistics; block by
    block, so that each sees the rounded blocks before it. `keep`: names, or parts of dotted names, of layers that stay
    as they are. `compute`: the dtype of all that stays, and so of the products; None for that of the model. `kernel`:
    "widened" (torch's usual product of widened weights), "int4pack" (torch's kernel for 4 bits), or "auto", which is
    the latter on a GPU where it fits. `weight_report` says which it was.
    The copy is made for use, not for training: its stored weights have no gradient.
    Raises: ValueError for an unknown name or kernel, without a calibration where one is needed, where no layer is
    left to convert, where the kernel that is asked for does not fit, and for a dtype with another `compute`.
    """
    target, keep = weight_format(name), (keep,) if isinstance(keep, str) else tuple(keep)
    if kernel not in KERNELS:
        raise ValueError(f"kernel {kernel!r} is not one of {', '.join(KERNELS)}")
    if target.dtype is not None:
        if compute not in (None, target.dtype):
            raise ValueError(f"{target.name} is the dtype of the whole model, and compute is {compute}: leave that out")
        return _named(_cast(copy.deepcopy(model), target.dtype), target, {})
    if target.calibrated and calibration is None:
        raise ValueError(f"{target.name} is rounded for the inputs that the layers get: pass calibration, int64 [B, S]")
    linears = {path: layer for path, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    left = {path: "kept" for path in linears if _kept(path, keep)}
    converted_layers = {path: layer for path, layer in linears.items() if path not in left}
    if not converted_layers:
        raise ValueError(f"no linear layer to convert; kept: {', '.join(left) or 'none'}")
    # The layers to be replaced are shared with the model until they are: no second copy of all weights at any time.
    small = copy.deepcopy(model, {id(layer): layer for layer in converted_layers.values()})
    for paths in _blocks(converted_layers):
        seen = gptq.inputs(small, partial(_run, small, calibration), paths) if target.calibrated else {}
        for path in paths:
            stored = target.stored(converted_layers[path].weight, seen.pop(path, None))
            _replace(small, converted_layers[path], _layer(target, stored, converted_layers[path], compute, kernel))
    return _named(small if compute is None else _cast(small, compute), target, left)


def _cast(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Cast the parameters alone: with frequencies of 16 bits, `model.to(dtype)` would turn late positions wrongly."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model


def _kept(path: str, keep: tuple[str, ...]) -> bool:
    return any(kept == path or path.startswith(f"{kept}.") or kept in path.split(".") for kept in keep)


def _blocks(paths: Iterable[str]) -> list[list[str]]:
    """Return the paths, those of one block of the model together, in their order."""
    blocks: dict[str, list[str]] = {}
    for path in paths:
        blocks.setdefault(layer_of(path), []).append(path)
    return list(blocks.values())


def _run(model: nn.Module, ids: torch.Tensor) -> None:
    training = model.training
    model.eval()
    for part in ids.to(next(model.parameters()).device).split(ROWS):
        model(input_ids=part)
    model.train(training)


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    for owner in list(model.modules()):
        for name, child in list(owner._modules.items()):  # a layer with two names has both
            if child is old:
                setattr(owner, name, new)


def _layer(
    target: WeightFormat, stored: Stored, linear: nn.Linear, compute: torch.dtype | None, kernel: str
) -> nn.Module:
    if target.split:
        return OutlierSplitLinear(stored, linear.bias).train(linear.training)
    device, why = linear.weight.device, ""
    if kernel != "widened":
        why = why_not(stored, device, compute or linear.weight.dtype)
        if kernel == "int4pack" and why:
            raise ValueError(f"kernel int4pack does not fit {target.name}: {why}")
        if not why and (kernel == "int4pack" or device.type == "cuda"):
            return Int4PackLinear(stored, linear.bias).train(linear.training)
    layer = WeightOnlyLinear(stored, linear.bias).train(linear.training)
    if device.type == "cuda" and stored.bits_per_weight < 8 and why:
        layer.multiplied = f"{layer.multiplied} ({why})"
    return layer


def _named(model: nn.Module, target: WeightFormat, left: dict[str, str]) -> nn.Module:
    model.weight_format, model.weights_left = target, left
    return model


@dataclass(frozen=True)
class WeightReport:
    """What a converted model holds.

    `converted`: names of its layers with small weights; `left`: of the linear layers that are not, and why.
    `nbytes`: of all parameters and buffers, shared ones once; `linear_nbytes` and `bits_per_weight`: of the converted
    layers, scales and zero points included. `kernels`: what multiplies, in words, with the number of layers.
    """

    name: str
    converted: tuple[str, ...]
    left: dict[str, str]
    nbytes: int
    linear_nbytes: int
    bits_per_weight: float
    kernels: dict[str, int] = field(default_factory=dict)

    @property
    def kernel(self) -> str:
        """What multiplies, in words."""
        return "; ".join(f"{count} × {words}" for words, count in self.kernels.items())

    def __str__(self) -> str:
        total = len(self.converted) + len(self.left)
        what = (
            f"{len(self.converted)} of {total} linear layers in {self.name}, {self.bits_per_weight:.3f} bits a weight"
        )
        left = f"; left: {', '.join(self.left)}" if self.left else ""
        return f"{what}{left}; model {self.nbytes / 1e6:,.2f} MB; {self.kernel}"


def weight_report(model: nn.Module) -> WeightReport:
    """Return what a model made by `converted` holds, and what multiplies it.

    Raises: ValueError for a model that `converted` did not make.
    """
    target = getattr(model, "weight_format", None)
    if target is None:
        raise ValueError("this model was not made by weight_formats.converted")
    nbytes = tensor_bytes([*model.parameters(), *model.buffers()])
    small = {path: layer for path, layer in model.named_modules() if isinstance(layer, StoredLinear)}
    kernels = Counter(layer.multiplied for layer in small.values())
    if target.dtype is not None:
        small = {path: layer for path, layer in model.named_modules() if isinstance(layer, nn.Linear)}
        kernels = Counter([f"products in {next(model.parameters()).dtype}".replace("torch.", "")] * len(small))
    layer_bytes = [
        tensor_bytes(part for part in (*layer.buffers(), getattr(layer, "weight", None))) for layer in small.values()
    ]
    count = sum(layer.in_features * layer.out_features for layer in small.values())
    bits = 8 * sum(layer_bytes) / max(1, count)
    return WeightReport(
        target.name, tuple(small), dict(model.weights_left), nbytes, sum(layer_bytes), bits, dict(kernels)
    )
