"""Make a matrix product that can be timed: random factors in a dtype, in more copies than a cache holds.

call, note = prepared(Gemm(1024, 1024, 1024), "bfloat16", device=device)
measure.time_call(call.times(10), device=device)
"""

import itertools
from collections.abc import Callable

import torch

from utils import machine
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, Gemm
from utils.emulation.float32_matmul import allowing
from utils.exception_text import in_a_line

TORCH = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8": torch.float8_e4m3fn,
}
DTYPES = tuple(TORCH)
COLD_BYTES = 2**28  # of all copies, unless `COPIES` of them take less: more than any last-level cache
COPIES = 16
SLOW_WIDTH = 256  # no product wider than that in a dtype that a CPU has to imitate: it would take seconds


class Call:
    """A product; each call takes the next of several copies of its factors and of its result.

    `allowed`: torch's float32 matmul precision during the product; outside of it, that is "highest".
    """

    def __init__(self, product: Callable[..., object], copies: list[tuple[torch.Tensor, ...]], allowed: str):
        self.product, self.copies, self.allowed = product, itertools.cycle(copies), allowed

    def __call__(self) -> None:
        self.times(1)()

    def times(self, count: int) -> Callable[[], None]:
        """Return a call of `count` products, one after the other."""

        def loop() -> None:
            torch.set_float32_matmul_precision(self.allowed)
            with torch.no_grad():
                for _ in range(count):
                    self.product(*next(self.copies))
            torch.set_float32_matmul_precision("highest")

        return loop


def prepare_call(gemm: Gemm, dtype: str, *, batch: int = 1, device: torch.device) -> tuple[Call | None, str]:
    """Return the product, made once already, or None and why this device does not do it.

    Call this function and the product inside `allowing("highest")`. The factors are row-major, [M, K] and [K, N], with
    `batch` in front where it is above 1; in float8 the second one is column-major, as CUDA wants it, and both scales
    are 1. Raises: ValueError for a dtype that is not one of `DTYPES`.
    """
    if dtype not in TORCH:
        raise ValueError(f"unknown dtype {dtype!r}; the known ones are {', '.join(DTYPES)}")
    if note := _refuse(gemm, dtype, batch=batch, device=device):
        return None, note
    call = None
    try:
        call = Call(*_make_product(gemm, dtype, batch=batch, device=device), "high" if dtype == "tf32" else "highest")
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        torch.set_float32_matmul_precision("highest")
        return None, in_a_line(error)
    return call, ""


def _refuse(gemm: Gemm, dtype: str, *, batch: int, device: torch.device) -> str:
    """Say why a product is not even tried; empty where it is."""
    if dtype == "float8" and batch > 1:
        return "torch has no scaled product of a batch"
    if dtype == "tf32":
        with allowing("high"):
            bits = machine.product_bits(device)
        return "" if bits == 11 else f'under "high" a float32 product keeps {bits} bits here; TF32 keeps 11'
    if device.type == "cpu" and max(gemm.m, gemm.n, gemm.k) > SLOW_WIDTH:
        native, reason = machine.narrow_matmul(TORCH[dtype], device)
        return "" if native else f"{reason}: not tried above {SLOW_WIDTH}"
    return ""


def _make_product(gemm: Gemm, dtype: str, *, batch: int, device: torch.device) -> tuple[Callable, list[tuple]]:
    """Return the function and the copies of its arguments."""
    generator = torch.Generator(device).manual_seed(0)
    lead = (batch,) if batch > 1 else ()

    def draw(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(*lead, rows, columns, device=device, generator=generator).to(TORCH[dtype])

    a = draw(gemm.m, gemm.k)  # [M, K]
    moved = batch * gemm.moved(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype])
    count = min(COPIES, max(1, -(-COLD_BYTES // moved)))  # COLD_BYTES / moved, rounded up
    if dtype == "float8":
        b, inv_scale = draw(gemm.n, gemm.k), torch.ones((), device=device)
        copies = [(a.clone(), b.clone().t()) for _ in range(count)]  # [K, N], column-major
        scaled = {"scale_a": inv_scale, "scale_b": inv_scale, "out_dtype": torch.bfloat16}
        return lambda a, b: torch._scaled_mm(a, b, **scaled), copies
    b = draw(gemm.k, gemm.n)  # [K, N]
    copies = [(a.clone(), b.clone(), a.new_empty(*lead, gemm.m, gemm.n)) for _ in range(count)]
    multiply = torch.bmm if batch > 1 else torch.mm
    return lambda a, b, out: multiply(a, b, out=out), copies
