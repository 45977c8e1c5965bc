"""The product of two scaled matrices: on FP8 tensor cores where the device has them, emulated everywhere else.

    a, b = quantize(x, FLOAT8_E4M3FN, "row"), transposed(quantize(w, FLOAT8_E4M3FN, "row"))
    y = scaled_matmul(a, b)  # [M, K] @ [K, N]: x @ w.t(), nearly

A scale can leave a sum only if all its addends share it. So both operands are scaled along K, the axis that is summed
over: one scale for all of K (tensor, row), or one for each block of K, whose sums are then scaled one by one. An
operand that has other scales, another layout or another size is refused on every device, since a GPU would.

Kernels: `torch.nn.functional.scaled_mm`, whose scale arguments are what this book calls `inv_scale`. Its rules for
sizes, strides and scales stand in `aten/src/ATen/native/cuda/ScaledBlas.cpp`; those that are checked without a GPU, on
the device "meta", in `torch/_meta_registrations.py`. torch 2.11 has the function for CUDA alone, 2.13 for CPUs too.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
import torch.nn.functional as F

from utils.emulation.accumulators import Accumulator
from utils.emulation.scaled_tensor import Scaled, quantize
from utils.exception_text import in_a_line
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E8M0FNU, FLOAT32
from utils.scaling import SCALINGS, Scaling
from utils.shared_exponent import EXPONENT_RULES

MULTIPLE = 16  # of K and N: what an FP8 kernel takes
WITH_KERNELS = ("cuda",)  # types of devices that are tried
OUTPUTS = (torch.bfloat16, torch.float16, torch.float32)
# (tile, format of a scale) -> torch's name in F.ScalingType
_KERNELS = {
    ((None, None), FLOAT32): "TensorWise",
    ((1, None), FLOAT32): "RowWise",
    ((1, 128), FLOAT32): "BlockWise1x128",
    ((128, 128), FLOAT32): "BlockWise128x128",
    ((1, 32), FLOAT8_E8M0FNU): "BlockWise1x32",
}


def scaled_matmul(
    a: Scaled,
    b: Scaled,
    *,
    out_dtype: torch.dtype = torch.bfloat16,
    fast_accumulation: bool = False,
    accumulator: Accumulator | None = None,
) -> torch.Tensor:
    """Multiply a [M, K] by b [K, N], both scaled along K, and take their scales out: [M, N] in `out_dtype`.

    `a` is row-major. `b` is column-major: `transposed` of a quantised [N, K]. K and N are multiples of 16.

    Where `emulated` says so, the values are multiplied and added in float32 (products of FP8 values are exact there),
    and the sums are scaled in float32, once or block by block; scales in a narrow format enter before the sum, as they
    do in a block-scaled tensor core, and are exact there too. What differs from a kernel is the order of the additions,
    and that Hopper's adder has 14 bits: an `accumulator` adds in the place of float32 and shows what that costs. With
    one, the product is emulated on every device.
    `fast_accumulation` lets a Hopper kernel keep its total in that adder for all of K; emulated sums ignore it.

    Raises: TypeError or ValueError, with the remedy, for operands that no FP8 kernel would take.
    """
    _check(a, b, out_dtype)
    if 0 in (a.shape[0], a.shape[1], b.shape[1]):
        return torch.zeros(a.shape[0], b.shape[1], dtype=out_dtype, device=a.values.device)
    if accumulator is None and not emulated(a.values.device, a.scaling, transposed(b).scaling):
        return _kernel(a, b, out_dtype, fast_accumulation)
    with torch.autocast(a.values.device.type, enabled=False):  # it would round the sums of blocks
        return _emulated(a, b, accumulator).to(out_dtype)


def transposed(matrix: Scaled) -> Scaled:
    """Return a view of a scaled [N, K] as [K, N], column-major; its scales and their tiles are turned with it."""
    turned = {name: getattr(matrix, name).t() for name in ("values", "scale", "inv_scale", "stored")}
    return replace(matrix, **turned, scaling=replace(matrix.scaling, tile=matrix.scaling.tile[::-1]))


def emulated(device: torch.device | str, left: str | Scaling = "tensor", right: str | Scaling | None = None) -> bool:
    """Say whether the device has no kernel for FP8 operands so scaled; `right` is by default scaled like `left`.

    Each is a name of `SCALINGS`, or a `Scaling` with K last. True on a CPU: its FP8 products, torch's too, are computed
    in float32. On a GPU one product is tried, once.
    """
    return bool(why_emulated(device, left, right))


def why_emulated(device: torch.device | str, left: str | Scaling = "tensor", right: str | Scaling | None = None) -> str:
    """Return why `emulated` is true, in a clause; empty where a kernel runs."""
    device = torch.device(device)
    if device.type not in WITH_KERNELS:
        return "a CPU multiplies FP8 values in float32" if device.type == "cpu" else f"{device.type} is not tried"
    scalings = [
        SCALINGS[scaling] if isinstance(scaling, str) else scaling
        for scaling in (left, left if right is None else right)
    ]
    kernels = [_KERNELS.get((scaling.tile, scaling.scale_format)) for scaling in scalings]
    if None in kernels:
        return f"torch has no product of {scalings[0].label} and {scalings[1].label}"
    return _tried(str(device), *kernels)


def _constant_in_a_graph(function: Callable) -> Callable:
    """State `torch.compiler.assume_constant_result`, which in torch 2.13 first imports the compiler, for 3 s.

    torch.compile looks through a cache, and would multiply at every call.
    """
    function._dynamo_marked_constant = True
    return function


@_constant_in_a_graph
def _tried(device: str, left: str, right: str) -> str:
    """Return what torch says to a product of matrices of 128 x 128, empty if it computes it."""
    return _try_once(device, left, right)


@cache
def _try_once(device: str, left: str, right: str) -> str:
    names = {
        kernel: next(s for s in SCALINGS.values() if (s.tile, s.scale_format) == key and s.rule != "one")
        for key, kernel in _KERNELS.items()
    }
    ones = torch.ones(128, 128, device=device)
    a, b = (quantize(ones, FLOAT8_E4M3FN, names[kernel]) for kernel in (left, right))
    try:
        right_result = bool((_kernel(a, transposed(b), torch.bfloat16, False) == 128).all())
    except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError) as error:
        return in_a_line(error)
    return "" if right_result else f"its {left} x {right} product of ones is not 128"


def _kernel(a: Scaled, b: Scaled, out_dtype: torch.dtype, fast_accumulation: bool) -> torch.Tensor:
    b = transposed(b)  # [N, K]: both operands have K last, and so have their scales
    recipes = [
        getattr(F.ScalingType, _KERNELS[operand.scaling.tile, operand.scaling.scale_format]) for operand in (a, b)
    ]
    scales = [_kernel_scale(a), _kernel_scale(b)]
    if b.scaling.tile == (1, None):
        scales[1] = scales[1].t()  # [1, N]
    swizzle = F.SwizzleType.SWIZZLE_32_4_4 if a.scaling.scale_format is FLOAT8_E8M0FNU else None
    return F.scaled_mm(
        _whole_blocks(a),
        _whole_blocks(b).t(),
        scales[0],
        recipes[0],
        scales[1],
        recipes[1],
        swizzle_a=swizzle,
        swizzle_b=swizzle,
        output_dtype=out_dtype,
        use_fast_accum=fast_accumulation,
    )


def _whole_blocks(operand: Scaled) -> torch.Tensor:
    """Return the codes [rows, K]; in blocks of 128 with zeros up to a whole one, as torch's check asks for."""
    codes, fill = operand.codes(), -operand.shape[1] % 128 if operand.scaling.tile[1] == 128 else 0
    return F.pad(codes.view(torch.uint8), (0, fill)).view(codes.dtype) if fill else codes  # 0 is the code of 0


def _kernel_scale(operand: Scaled) -> torch.Tensor:
    """Return the scales that take back, [rows, K] or [tiles of rows, tiles of K], in the layout of their kernel."""
    inv_scale = operand.inv_scale
    if operand.scaling.scale_format is FLOAT8_E8M0FNU:
        return swizzled(operand.stored.to(torch.float8_e8m0fnu))
    if operand.scaling.tile == (None, None):
        return inv_scale.reshape(())
    if operand.scaling.tile == (1, 128):
        return _column_major(inv_scale)  # [rows, K / 128], the rows next to each other
    if operand.scaling.tile == (128, 128):
        # [K / 128, rows / 128], those of K next to each other, and each column at a multiple of 16 bytes
        return _column_major(F.pad(inv_scale, (0, -inv_scale.shape[1] % 4)).t())
    return inv_scale.contiguous()


def _column_major(scale: torch.Tensor) -> torch.Tensor:
    """Return the numbers with the strides that the kernel checks: of a single row too, where contiguous() sees none."""
    strided = torch.empty_strided(scale.shape, (1, scale.shape[0]), dtype=scale.dtype, device=scale.device)
    return strided.copy_(scale)


def swizzled(scales: torch.Tensor) -> torch.Tensor:
    """Return one-byte scales [rows, blocks of K] in the order in which a block-scaled tensor core reads them, flat.

    Rows are filled up to a multiple of 128, blocks to one of 4. In a tile of 128 x 4 the scale of (row, block) stands
    at 16 * (row % 32) + 4 * (row // 32) + block, and the tiles of a row follow each other.
    Source: cuBLAS documentation, "1D Block Scaling Factors Layout"; torch's SWIZZLE_32_4_4.
    """
    rows, blocks = scales.shape
    filled = F.pad(scales.view(torch.uint8), (0, -blocks % 4, 0, -rows % 128))
    tiles = filled.view(
        filled.shape[0] // 128, 4, 32, filled.shape[1] // 4, 4
    )  # row = 128 i + 32 j + k; block = 4 l + m
    return tiles.permute(0, 3, 2, 1, 4).contiguous().view(scales.dtype).flatten()


def _emulated(a: Scaled, b: Scaled, accumulator: Accumulator | None) -> torch.Tensor:
    """Return a @ b in float32, scaled as a kernel scales."""
    multiply = torch.mm if accumulator is None else accumulator.matmul
    step = a.scaling.tile[1]
    left, right = a.values.float(), b.values.float()
    if step is None:
        return multiply(left, right) * a.inv_scale * b.inv_scale  # [M or 1, 1] and [1, N or 1]
    if accumulator is None and FLOAT32 not in (a.scaling.scale_format, b.scaling.scale_format):
        # What a block stores has few bits: with it the factors and their products are exact, so one sum does.
        left, right = (replace(operand, inv_scale=operand.stored).dequantize(torch.float32) for operand in (a, b))
        return multiply(left, right) * a.tensor_inv_scale * b.tensor_inv_scale
    left_scale = _for_each(a.inv_scale, a.scaling.tile[0], a.shape[0], axis=0)
    right_scale = _for_each(b.inv_scale, b.scaling.tile[1], b.shape[1], axis=1)
    total = left.new_zeros(a.shape[0], b.shape[1])
    for block, start in enumerate(range(0, a.shape[1], step)):
        part = multiply(left[:, start : start + step], right[start : start + step])
        total += part.mul_(left_scale[:, block, None]).mul_(right_scale[block])
    return total


def _for_each(scale: torch.Tensor, tile: int | None, size: int, *, axis: int) -> torch.Tensor:
    """Repeat the scale of a tile for each of its rows or columns."""
    return scale if tile == 1 else scale.repeat_interleave(tile or size, axis).narrow(axis, 0, size)


def _check(a: Scaled, b: Scaled, out_dtype: torch.dtype) -> None:
    """Refuse what no kernel takes. Raises: TypeError or ValueError, one sentence that says how to mend it."""
    for place, operand in ((1, a), (2, b)):
        if not isinstance(operand, Scaled):
            name = operand.dtype if isinstance(operand, torch.Tensor) else type(operand).__name__
            raise TypeError(f'operand {place} is {name}, without a scale: quantize(x, FLOAT8_E4M3FN, "tensor") first')
        if operand.fmt.bits > 8:
            raise TypeError(f"operand {place} is {operand.fmt}: quantize it to 8 bits or fewer, say to {FLOAT8_E4M3FN}")
        if len(operand.shape) != 2:
            raise ValueError(
                f"operand {place} has {len(operand.shape)} axes: reshape(-1, x.shape[-1]) before quantize()"
            )
    if a.fmt is FLOAT8_E5M2 and b.fmt is FLOAT8_E5M2:
        raise TypeError("no kernel multiplies E5M2 by E5M2: quantize one operand, the activations say, to E4M3")
    if out_dtype not in OUTPUTS:
        raise TypeError(f"out_dtype {out_dtype} has no scale: ask for torch.bfloat16 and quantize() the result")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"[{a.shape[0]}, {a.shape[1]}] @ [{b.shape[0]}, {b.shape[1]}] does not fit: for x @ w.t() quantize w, not"
            " w.t(), and pass transposed(w)"
        )
    for name, size in (("K", a.shape[1]), ("N", b.shape[1])):
        if size % MULTIPLE:
            raise ValueError(
                f"{name} is {size}, no multiple of {MULTIPLE}: fill up with zeros to {size + -size % MULTIPLE},"
                " F.pad() before quantize()"
            )
    _check_layout(a, b)
    _check_scales(a, b)


def _check_layout(a: Scaled, b: Scaled) -> None:
    if not a.values.numel() or not b.values.numel():
        return
    if a.values.stride(1) != 1:
        raise ValueError(
            f"operand 1 is column-major, strides {tuple(a.values.stride())}: quantize x.contiguous(), so that K runs"
            " through neighbours in memory"
        )
    if b.values.stride(0) != 1:
        raise ValueError(
            f"operand 2 is row-major, strides {tuple(b.values.stride())}: quantize the [N, K] matrix, contiguous, and"
            " pass transposed() of it, so that K runs through neighbours in memory"
        )


def _check_scales(a: Scaled, b: Scaled) -> None:
    left, right = a.scaling.tile, b.scaling.tile[::-1]  # (rows or columns, K) of a tile
    for place, tile in ((1, left), (2, right)):
        if tile[1] == 1:
            raise ValueError(
                f"the scales of operand {place} change from term to term of a sum, so none can leave it: quantize a"
                " second, transposed copy along the axis that is summed over"
            )
    if left[1] != right[1] or (left[1] is None and left != right):
        raise ValueError(
            f"operand 1 is scaled by {a.scaling.label}, operand 2 by {b.scaling.label}: scale both by tensor, both by"
            " row, or both in blocks of the same length along K"
        )
    narrow = [operand.scaling.rule in EXPONENT_RULES or operand.scaling.tensor_scale for operand in (a, b)]
    if narrow[0] != narrow[1]:
        raise ValueError("one operand has a block format's scales, the other float32's: take one kind for both")
