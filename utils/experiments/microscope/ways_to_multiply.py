"""Every way in which a device multiplies matrices, by name: dtypes, and the switches that change how it adds.

    ways = own(torch.device("cuda"))
    ways["float16, float16 accumulation"](a, b)  # sets the switch, multiplies, and puts it back

torch's notes "Numerical accuracy" and "CUDA semantics" describe the switches.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F

from utils.emulation.float32_matmul import OLD, allowing, restored, write
from utils.exception_text import in_a_line
from utils.experiments.microscope.crafted_sums import Matmul

Switch = Callable[[], contextlib.AbstractContextManager]
SMALLEST = 32  # rows, columns and places of the trial product: what FP8 and int8 products ask for


@dataclass(frozen=True)
class MatmulWay:
    """One way to multiply a [M, K] by b [K, N] of one dtype; `reason` is torch's message where the device refuses."""

    name: str
    dtype: torch.dtype
    product: Matmul
    switch: Switch
    reason: str = ""

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply with the switches of this way, and put them back. Raises: what torch raises."""
        with self.switch():
            return self.product(a, b)


def list_ways(device: torch.device | str) -> dict[str, MatmulWay]:
    """Return all ways by name, also those that this device refuses: each is tried once.

    A switch that belongs to another kind of device is left out: it would change nothing here.
    """
    device = torch.device(device)
    ways = {}
    for name, dtype, product, switch in _list_ways(device):
        way = MatmulWay(name, dtype, product, switch)
        ways[name] = replace(way, reason=_try(way, device))
    return ways


def _try(way: MatmulWay, device: torch.device) -> str:
    """Multiply once and return what torch raises, in a line; empty where it does not."""
    try:
        zeros = torch.zeros(SMALLEST, SMALLEST, device=device).to(way.dtype)
        way(zeros, zeros)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError, AssertionError) as error:
        return in_a_line(error)
    return ""


def _list_ways(device: torch.device) -> Iterator[tuple[str, torch.dtype, Matmul, Switch]]:
    cuda = device.type == "cuda"
    yield "float64", torch.float64, torch.matmul, contextlib.nullcontext
    for level in ("highest", "high", "medium"):
        yield f"float32, {level}", torch.float32, torch.matmul, partial(allowing, level)
    if cuda:
        yield "float32, allow_tf32", torch.float32, torch.matmul, partial(_set_switch, OLD[1], True)
    for word in ("tf32",) if cuda else ("tf32", "bf16"):
        switch = f"torch.backends.{'cuda' if cuda else 'mkldnn'}.matmul.fp32_precision"
        yield f'float32, fp32_precision "{word}"', torch.float32, torch.matmul, partial(_set_switch, switch, word)
    for dtype, short in ((torch.float16, "fp16"), (torch.bfloat16, "bf16")):
        name = str(dtype).removeprefix("torch.")
        if not cuda:
            yield name, dtype, torch.matmul, contextlib.nullcontext
        for allowed in (True, False) if cuda else ():
            flag = f"allow_{short}_reduced_precision_reduction"
            label = f"{name}, reduced reduction {'on' if allowed else 'off'}"
            yield label, dtype, torch.matmul, partial(_set_flag, flag, allowed)
        yield f"{name}, b transposed", dtype, multiply_transposed, contextlib.nullcontext
    if cuda:
        flag = "allow_fp16_accumulation"
        yield "float16, float16 accumulation", torch.float16, torch.matmul, partial(_set_flag, flag, True)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        for fast in (False, True):
            label = f"{str(dtype).removeprefix('torch.')}, fast accumulation {'on' if fast else 'off'}"
            yield label, dtype, _make_scaled(fast), contextlib.nullcontext
    yield "int8", torch.int8, torch._int_mm, contextlib.nullcontext


def multiply_transposed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b with b column-major in memory, as a linear layer has its weights."""
    return a @ b.t().contiguous().t()


@contextlib.contextmanager
def _set_switch(switch: str, value: str | bool) -> Iterator[None]:
    """Set one switch of `utils.emulation.float32_matmul`, the newer or the older, and restore all of them."""
    with restored():
        write(switch, value)
        yield


@contextlib.contextmanager
def _set_flag(name: str, value: bool) -> Iterator[None]:
    """Set a switch of `torch.backends.cuda.matmul`."""
    before = getattr(torch.backends.cuda.matmul, name)
    setattr(torch.backends.cuda.matmul, name, value)
    try:
        yield
    finally:
        setattr(torch.backends.cuda.matmul, name, before)


def _make_scaled(fast: bool) -> Matmul:
    """Return the scaled product of FP8 with both scales 1 and a float32 result, which hides the fewest bits."""

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        inv_scale = torch.ones((), device=a.device)
        b = b.t().contiguous().t()  # CUDA wants the second operand column-major
        if hasattr(F, "scaled_mm"):
            whole = F.ScalingType.TensorWise
            scales = inv_scale, whole, inv_scale, whole
            return F.scaled_mm(a, b, *scales, output_dtype=torch.float32, use_fast_accum=fast)
        scales = {"scale_a": inv_scale, "scale_b": inv_scale}
        return torch._scaled_mm(a, b, **scales, out_dtype=torch.float32, use_fast_accum=fast)

    return product
