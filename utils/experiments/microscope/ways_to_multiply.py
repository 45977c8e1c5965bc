"""Every way in which a device multiplies matrices, by name: dtypes and the switches that change how products are added.

    ways = own(torch.device("cuda"))
    ways["float16, float16 accumulation"](a, b)  # sets the switch, multiplies, and puts it back

torch's notes "Numerical accuracy" and "CUDA semantics" describe the switches.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from utils.emulation.float32_matmul import OLD, allowing, restored, write
from utils.exception_text import in_a_line
from utils.experiments.microscope.crafted_sums import Matmul

Switch = Callable[[], contextlib.AbstractContextManager]
SMALLEST = 32  # rows, columns and places of the trial product: what FP8 and int8 products ask for


@dataclass(frozen=True)
class Way:
    """One way to multiply a [M, K] by b [K, N] of one dtype. `reason`: why the device does not, in its own words."""

    name: str
    dtype: torch.dtype
    product: Matmul
    switch: Switch
    reason: str = ""

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply with the switches of this way, and put them back. Raises what torch raises."""
        with self.switch():
            return self.product(a, b)


def own(device: torch.device | str) -> dict[str, Way]:
    """Return all ways by name, those too that this device does not know: each is tried once.

    A switch that belongs to another kind of device is left out: it would change nothing here.
    """
    device = torch.device(device)
    found = {}
    for name, dtype, product, switch in _ways(device):
        way = Way(name, dtype, product, switch)
        found[name] = Way(name, dtype, product, switch, _refusal(way, device))
    return found


def _refusal(way: Way, device: torch.device) -> str:
    try:
        zeros = torch.zeros(SMALLEST, SMALLEST, device=device).to(way.dtype)
        way(zeros, zeros)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError, AssertionError) as error:
        return in_a_line(error)
    return ""


def _ways(device: torch.device) -> Iterator[tuple[str, torch.dtype, Matmul, Switch]]:
    cuda = device.type == "cuda"
    yield "float64", torch.float64, torch.matmul, contextlib.nullcontext
    for level in ("highest", "high", "medium"):
        yield f"float32, {level}", torch.float32, torch.matmul, _of(allowing, level)
    if cuda:
        yield "float32, allow_tf32", torch.float32, torch.matmul, _of(_switched, OLD[1], True)
    for word in ("tf32",) if cuda else ("tf32", "bf16"):
        switch = f"torch.backends.{'cuda' if cuda else 'mkldnn'}.matmul.fp32_precision"
        yield f'float32, fp32_precision "{word}"', torch.float32, torch.matmul, _of(_switched, switch, word)
    for dtype, short in ((torch.float16, "fp16"), (torch.bfloat16, "bf16")):
        name = str(dtype).removeprefix("torch.")
        if not cuda:
            yield name, dtype, torch.matmul, contextlib.nullcontext
        for allowed in (True, False) if cuda else ():
            flag = f"allow_{short}_reduced_precision_reduction"
            label = f"{name}, reduced reduction {'on' if allowed else 'off'}"
            yield label, dtype, torch.matmul, _of(_flag, flag, allowed)
        yield f"{name}, b transposed", dtype, transposed, contextlib.nullcontext
    if cuda:
        flag = "allow_fp16_accumulation"
        yield "float16, float16 accumulation", torch.float16, torch.matmul, _of(_flag, flag, True)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        for fast in (False, True):
            label = f"{str(dtype).removeprefix('torch.')}, fast accumulation {'on' if fast else 'off'}"
            yield label, dtype, _scaled(fast), contextlib.nullcontext
    yield "int8", torch.int8, torch._int_mm, contextlib.nullcontext


def transposed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b with the columns of b, not its rows, side by side in memory, as a linear layer has its weights."""
    return a @ b.t().contiguous().t()


def _of(switch: Callable, *arguments) -> Switch:
    return lambda: switch(*arguments)


@contextlib.contextmanager
def _switched(switch: str, value: str | bool) -> Iterator[None]:
    """Set one switch of `utils.emulation.float32_matmul`, the newer or the older, and restore all of them."""
    with restored():
        write(switch, value)
        yield


@contextlib.contextmanager
def _flag(name: str, value: bool) -> Iterator[None]:
    """Set a switch of `torch.backends.cuda.matmul`."""
    before = getattr(torch.backends.cuda.matmul, name)
    setattr(torch.backends.cuda.matmul, name, value)
    try:
        yield
    finally:
        setattr(torch.backends.cuda.matmul, name, before)


def _scaled(fast: bool) -> Matmul:
    """Return the scaled product of FP8 with both scales 1 and a float32 result, which hides least."""

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        one = torch.ones((), device=a.device)
        b = b.t().contiguous().t()  # CUDA wants the second operand column-major
        if hasattr(F, "scaled_mm"):
            whole = F.ScalingType.TensorWise
            return F.scaled_mm(a, b, one, whole, one, whole, output_dtype=torch.float32, use_fast_accum=fast)
        return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.float32, use_fast_accum=fast)

    return product
