"""Rounding a torch tensor to the values of a format: the fast twin of `utils.rounding.quantize`.

A fake-quantised tensor keeps its dtype and holds only values of the format, so a model computes with it as before.
Both functions here work on any device and are differentiable *straight through*: the gradient of the output is
handed to the input unchanged, also where the value was saturated or rounded to zero (the derivative of a staircase
would be 0 nearly everywhere).

One global switch changes results: under `torch.set_flush_denormal(True)` the processor takes float32's subnormals
for zero. Formats of at most 5 exponent bits do not notice; those with float32's range lose their smallest values.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from types import FunctionType

import torch

from utils.exception_text import of_compiler
from utils.formats import FORMATS, FloatFormat
from utils.rounding_kernels import (
    COPY,
    GraphConstants,
    GraphForm,
    RoundingPlan,
    draw_bits,
    find_form,
    make_constants,
    make_plan,
    round_eager,
    round_fused,
    without_cast,
)

_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_CPU_PIECE = 2**18  # elements a thread: its scratch arrays stay in the caches, its calls cost little
_DEVICE_PIECE = 2**24  # elements: bounds the scratch memory, 2 * 64 MiB of float32
_COUNTERS = 2**30  # elements between two keys: a counter stays an int32


def fake_quantize(
    x: torch.Tensor,
    fmt: FloatFormat,
    *,
    saturate: bool = True,
    out: torch.Tensor | None = None,
    compiled: bool = False,
) -> torch.Tensor:
    """Round x to the values of a format, to nearest and ties to even; bit for bit what `quantize` gives.

    `x`: float32, float64, float16 or bfloat16, any shape, strides and device. Returns a new tensor of the same shape,
    dtype and device (never x itself), or `out`. NaN stays NaN, and zero keeps its sign where the format
    has one. The result is cast to the dtype of x, which is exact unless x is narrower than the format: 65504 of
    float16 is 65536 in a bfloat16 tensor, and bfloat16's 65536 is infinite in a float16 tensor.

    `saturate`: what lies beyond `fmt.max`, infinities included, becomes `fmt.max` with its sign; otherwise it becomes
    infinity or NaN. It is the default here, because one infinity would spoil a training step; `quantize` has the
    opposite default, that of IEEE 754, because there an overflow is what one wants to see.
    `out`: a tensor like x, or x itself; only where no gradient is recorded.
    `compiled`: fuse all steps into one loop with torch.compile. The first call for a format takes seconds. Where
    compilation is not possible (on a CPU it needs a C++ compiler), warns and computes the same values without it.

    Raises: TypeError for a tensor that is not of a floating dtype, ValueError for an `out` that does not fit.
    """
    _check(x, fmt, out)
    return _round(x, fmt, saturate, None, out, compiled)


def fake_quantize_stochastic(
    x: torch.Tensor,
    fmt: FloatFormat,
    *,
    seed: int,
    saturate: bool = True,
    out: torch.Tensor | None = None,
    compiled: bool = False,
) -> torch.Tensor:
    """Round x down or up with the probability that makes the expected result x itself.

    The element at flat index i draws the bits of a hash of (seed, i). So the result depends on x, the format and the
    seed alone: not on threads, pieces, device, strides or `compiled`. Take another seed for each step and tensor.
    A probability is exact to 2**-24; it is exact for the float32 values in the normal range of the format.

    `seed`: 0 ... 2**64 - 1. The other arguments, dtypes and the gradient are those of `fake_quantize`.
    Raises: TypeError or ValueError as `fake_quantize` does, and for such a seed.
    """
    _check(x, fmt, out)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed is an int, not {type(seed).__name__}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed {seed} is not in 0 ... 2**64 - 1")
    return _round(x, fmt, saturate, seed, out, compiled)


class _StraightThrough(torch.autograd.Function):
    """Round, and pretend in the backward pass that it was the identity (Bengio et al., 1308.3432)."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, *arguments) -> torch.Tensor:
        return _round(x, *arguments)  # autograd records nothing in here

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return gradient, None, None, None, None, None  # dL/dx = dL/dy; the five arguments have none


def _check(x: torch.Tensor, fmt: FloatFormat, out: torch.Tensor | None) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x is a torch.Tensor, not {type(x).__name__}; utils.rounding.quantize takes arrays")
    if not isinstance(fmt, FloatFormat):
        raise TypeError(f"fmt is a FloatFormat, not {fmt!r}; by name: FORMATS[{next(iter(FORMATS))!r}]")
    if x.dtype not in _DTYPES:
        raise TypeError(f"x has dtype {x.dtype}; convert it first, for example x.float()")
    if out is None or out is x:
        return
    if (out.shape, out.dtype, out.device) != (x.shape, x.dtype, x.device):
        raise ValueError(
            f"out is {tuple(out.shape)} {out.dtype} on {out.device}, x is {tuple(x.shape)} {x.dtype} on {x.device};"
            " use torch.empty_like(x)"
        )
    same_view = (out.data_ptr(), out.stride()) == (x.data_ptr(), x.stride())
    if not same_view and _first_byte(out) < _end_byte(x) and _first_byte(x) < _end_byte(out):
        raise ValueError("out overlaps x without being the same view; use x itself or a tensor of its own")


def _first_byte(x: torch.Tensor) -> int:
    return x.data_ptr()


def _end_byte(x: torch.Tensor) -> int:
    last = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr() + (last + 1) * x.element_size()


def _round(
    x: torch.Tensor,
    fmt: FloatFormat,
    saturate: bool,
    seed: int | None,
    out: torch.Tensor | None,
    compiled: bool,
) -> torch.Tensor:
    """Round x, to nearest where there is no seed, by the shortest way that its size, device and gradient allow."""
    if torch.is_grad_enabled() and (x.requires_grad or (out is not None and out.requires_grad)):
        if out is not None:
            raise ValueError("out= records no gradient: drop it, or work under torch.no_grad()")
        return _StraightThrough.apply(x, fmt, saturate, seed, None, compiled)
    if torch.compiler.is_compiling():
        return _round_in_graph(x, fmt, saturate, seed, out)
    plan = make_plan(fmt, x.dtype, saturate)
    plain = seed is None and out is None and not compiled
    if plain and x.numel() <= _CPU_PIECE and x.dtype == plan.carrier.dtype:
        return round_eager(x, plan)  # the flat views and the loop below cost it more than its rounding
    if compiled or seed is not None:
        plan = without_cast(plan)
    source = x.detach().contiguous().view(-1)  # (n,)
    fits = out is not None and out.is_contiguous()
    target = out.view(-1) if fits else torch.empty_like(source)  # (n,)
    if not (compiled and plan.method != COPY and _run_compiled(source, target, plan, seed)):
        _run_eager(source, target, plan, seed)
    if out is None:
        return target.view(x.shape)
    return out if fits else out.copy_(target.view(x.shape))


def _round_in_graph(x: torch.Tensor, fmt: FloatFormat, saturate: bool, seed: int | None, out) -> torch.Tensor:
    """State the rounding inside a graph that torch.compile is recording; no cache may keep its unreal tensors."""
    if seed is not None and x.numel() > _COUNTERS:
        raise ValueError(f"{x.numel()} elements in a compiled graph; draw for at most 2**30 at a time")
    plan = without_cast(make_plan.__wrapped__(fmt, x.dtype, saturate))
    constants = make_constants.__wrapped__(plan, x.device)
    y = _widen_and_round(x.reshape(-1), find_form(plan), constants, _draw(seed, 0, x.numel(), x.device))
    return y.reshape(x.shape) if out is None else out.copy_(y.reshape(x.shape))


def _run_eager(source: torch.Tensor, target: torch.Tensor, plan: RoundingPlan, seed: int | None) -> None:
    """Round `source` into `target`, both (n,), piece by piece."""
    # Powers of two, so that no piece has counters of two keys.
    threads = 1 << torch.get_num_threads().bit_length() - 1
    piece = _CPU_PIECE * threads if source.device.type == "cpu" else _DEVICE_PIECE
    same_dtype = source.dtype == plan.carrier.dtype
    for start in range(0, source.numel(), piece):
        x, out = source[start : start + piece], target[start : start + piece]
        draw = _draw(seed, start, x.numel(), x.device)
        if same_dtype:
            round_eager(x, plan, out=out, draw=draw)
        else:
            out.copy_(round_eager(x.to(plan.carrier.dtype), plan, draw=draw))


def _draw(seed: int | None, start: int, count: int, device: torch.device) -> Callable[[], torch.Tensor] | None:
    """Make the function that gives the random bits of the elements start, ..., start + count - 1."""
    if seed is None:
        return None
    return partial(draw_bits, count, start % _COUNTERS, _keys(seed, start // _COUNTERS), device)


def _keys(seed: int, block: int) -> tuple[int, int]:
    """Mix a seed and the number of a block of counters into two int32 (SplitMix64: Steele, Lea, Flood, 2014)."""
    z = (seed + (block + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    return (z & 0xFFFFFFFF) - 2**31, (z >> 32) - 2**31


def _key_tensor(seed: int | None, block: int, device: torch.device) -> torch.Tensor | None:
    """Return the keys as a tensor, because each new int would compile a new kernel."""
    return None if seed is None else torch.tensor(_keys(seed, block), dtype=torch.int32).to(device)


def _widen_and_round(
    x: torch.Tensor, form: GraphForm, constants: GraphConstants, draw: Callable | None
) -> torch.Tensor:
    """Round in the carrier's dtype and return to that of x."""
    return round_fused(x.to(form.carrier.dtype), form, constants, draw=draw).to(x.dtype)


_failures: dict[str, str] = {}  # device type -> why torch.compile failed there: it would fail again, after seconds


def _run_compiled(source: torch.Tensor, target: torch.Tensor, plan: RoundingPlan, seed: int | None) -> bool:
    """Round `source` into `target` with compiled code; False, and a warning, where there is none."""
    device = source.device
    if device.type not in _failures:
        constants = make_constants(plan, device)
        kernel = _compile_kernel(find_form(plan), source.dtype, seed is not None)
        try:
            for start in range(0, source.numel(), _COUNTERS):
                piece = slice(start, start + _COUNTERS)
                kernel(source[piece], target[piece], constants, _key_tensor(seed, start // _COUNTERS, device))
            return True
        except RuntimeError as error:
            if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                raise  # out of memory, say
            _failures[device.type] = of_compiler(error)
    warnings.warn(
        f"compiled=True had no effect on {device.type}: torch.compile failed ({_failures[device.type]})."
        " The values are the same, only slower. On a CPU it needs a C++ compiler such as g++.",
        RuntimeWarning,
        stacklevel=4,
    )
    return False


@lru_cache(maxsize=256)
def _compile_kernel(form: GraphForm, dtype: torch.dtype, stochastic: bool) -> Callable:
    def kernel(source, target, constants, keys):
        draw = partial(draw_bits, source.numel(), 0, keys, source.device) if stochastic else None
        target.copy_(_widen_and_round(source, form, constants, draw))

    # A code object of its own for each graph: dynamo counts compilations by code object and gives up after eight.
    code = kernel.__code__.replace(co_name=f"round_{form.method}_{str(dtype).removeprefix('torch.')}")
    own = FunctionType(code, kernel.__globals__, None, None, kernel.__closure__)
    return torch.compile(own, dynamic=True, fullgraph=True)
