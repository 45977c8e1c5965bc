"""The machine at hand: which device, which size of experiment, and what it computes natively.

Nothing is read at import. `MIXED_PRECISION_DEVICE` and `MIXED_PRECISION_SIZE` are read when a function is called.
"""

import os
import platform
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from utils.exception_text import in_a_line
from utils.measure import time_call

SIZES = ("small", "full")
PROBE = 1_024  # rows and columns: a GPU's library may multiply small matrices without its TF32 units
DTYPES = (
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)


def device(name: str | None = None) -> torch.device:
    """Return the device called `name`, else `MIXED_PRECISION_DEVICE`, else CUDA where there is one, else the CPU.

    Raises: ValueError when it is unknown or not there.
    """
    name = name or os.environ.get("MIXED_PRECISION_DEVICE")
    if not name:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        wanted = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"unknown device {name!r}; use cpu, cuda or cuda:N") from error
    if wanted.type == "cpu":
        return wanted
    if wanted.type != "cuda":
        raise ValueError(f"device {name!r} is not one that this book runs on; use cpu, cuda or cuda:N")
    if (wanted.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} CUDA GPUs; use cpu")
    return wanted


def size(name: str | None = None, *, on: torch.device | None = None) -> str:
    """Return the size called `name`, else `MIXED_PRECISION_SIZE`, else "full" on a GPU and "small" without one.

    Raises: ValueError when it is unknown.
    """
    name = name or os.environ.get("MIXED_PRECISION_SIZE")
    if not name:
        return "full" if (on or device()).type == "cuda" else "small"
    if name not in SIZES:
        raise ValueError(f"unknown size {name!r}; use {' or '.join(SIZES)}")
    return name


def describe(on: torch.device | None = None) -> str:
    """Return one line: the device's name, what limits it, and torch's version."""
    device = facts(on)
    if device["kind"] == "cpu":
        parts = [f"CPU {device['name']}", f"{device['cores']} cores, {device['threads']} torch threads"]
    else:
        parts = [device["name"], f"compute capability {device['capability']}", f"{device['memory'] / 1e9:.0f} GB"]
        if device["power_limit_w"]:
            parts.append(f"{device['power_limit_w']:.0f} W")
    return ", ".join([*parts, f"torch {torch.__version__}"])


def facts(on: torch.device | None = None) -> dict:
    """Return what a record says about the device: plain JSON values, memory in bytes, no host name."""
    on = on or device()
    shared = {"kind": on.type, "torch": torch.__version__, "cuda": torch.version.cuda}
    if on.type == "cpu":
        flags = sorted(cpu_flags(("bf16", "fp16", "amx", "avx512_vnni", "f16c")))
        return shared | {
            "name": cpu_name(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "kernels": torch.backends.cpu.get_cpu_capability(),
            "flags": flags,
            "driver": None,
            "power_limit_w": None,
        }
    properties = torch.cuda.get_device_properties(on)
    driver, power = nvidia_smi(on)
    return shared | {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
        "driver": driver,
        "power_limit_w": power,
    }


def nvidia_smi(on: torch.device) -> tuple[str | None, float | None]:
    """Return the driver's version and the power limit in watts; None for what nvidia-smi does not tell in 5 s."""
    driver, power = _asked_of_nvidia_smi(on, "driver_version", "power.limit")
    return driver, _number(power)


# What a GPU does at this moment, by nvidia-smi's names.
MOMENT = {
    "sm_clock_mhz": "clocks.sm",
    "largest_sm_clock_mhz": "clocks.max.sm",
    "memory_clock_mhz": "clocks.mem",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
    "temperature_c": "temperature.gpu",
}


def moment(on: torch.device) -> dict[str, float | None]:
    """Return clocks, power and temperature of a GPU at this moment; None for what it does not tell, {} on a CPU.

    Ask while it computes: an idle GPU lowers its clocks.
    """
    if on.type != "cuda":
        return {}
    return {name: _number(text) for name, text in zip(MOMENT, _asked_of_nvidia_smi(on, *MOMENT.values()), strict=True)}


# What others use of a GPU, by nvidia-smi's names.
LOAD = {"memory_used_mb": "memory.used", "busy_percent": "utilization.gpu"}


def load(on: torch.device) -> dict[str, float | None]:
    """Return how much of a GPU's memory is used, in MiB, and how busy it is; None for what it does not tell.

    By nvidia-smi: no context is made on the card. {} on a CPU.
    """
    if on.type != "cuda":
        return {}
    return {name: _number(text) for name, text in zip(LOAD, _asked_of_nvidia_smi(on, *LOAD.values()), strict=True)}


def _asked_of_nvidia_smi(on: torch.device, *fields: str) -> list[str | None]:
    # By UUID: nvidia-smi counts all GPUs, torch only those that CUDA_VISIBLE_DEVICES lets it see.
    uuid = getattr(torch.cuda.get_device_properties(on), "uuid", None)
    which = f"GPU-{uuid}" if uuid else str(on.index or 0)
    query = ["nvidia-smi", "-i", which, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)
        told = [part.strip() for part in done.stdout.strip().splitlines()[0].split(",")]
    except (OSError, subprocess.SubprocessError, IndexError):
        told = []
    return told if len(told) == len(fields) else [None] * len(fields)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:  # "[N/A]" where the card has none to tell
        return None


def cpu_name() -> str:
    """Return the processor's name as it tells it itself."""
    name = _cpu_report().get("cpu_name")
    return str(name) if name else platform.processor() or platform.machine()


def cpu_flags(words: tuple[str, ...]) -> set[str]:
    """Return the processor's instruction sets whose name holds one of `words`: {"avx512_bf16", "f16c"}."""
    present = {key for key, value in _cpu_report().items() if value is True}
    return {flag for flag in present if any(word in flag for word in words)}


def _cpu_report() -> dict:
    if hasattr(torch.cpu, "get_capabilities"):
        return torch.cpu.get_capabilities()
    report = {}  # an older torch: the same from the kernel's list
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip().lower() in ("flags", "features"):
                    report |= dict.fromkeys(value.split(), True)
                elif key.strip() == "model name":
                    report["cpu_name"] = value.strip()
    except OSError:
        pass
    return report


def narrow_matmul(dtype: torch.dtype, on: torch.device) -> tuple[bool | None, str]:
    """Say whether the device multiplies matrices of `dtype` in hardware, and how that is known.

    None where nothing tells. CPU: the instruction sets it reports. CUDA: the compute capability, and for bfloat16
    `is_bf16_supported(including_emulation=False)`; without that argument a T4 answers True.
    """
    if dtype in (torch.float32, torch.float64):
        return True, "IEEE 754 hardware"
    word = {torch.bfloat16: "bf16", torch.float16: "fp16"}.get(dtype, "fp8")
    if on.type == "cpu":
        flags = sorted(cpu_flags((word,)))
        return bool(flags), f"processor reports {', '.join(flags)}" if flags else f"processor reports no {word} product"
    if torch.version.hip:
        return None, "ROCm: no query tells"
    capability = torch.cuda.get_device_capability(on)
    text = f"compute capability {capability[0]}.{capability[1]}"
    if dtype is torch.bfloat16:
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        return native, f"{text}, is_bf16_supported(including_emulation=False) is {native}"
    needed = (5, 3) if dtype is torch.float16 else (8, 9)
    return capability >= needed, f"{text}, {word} needs {needed[0]}.{needed[1]}"


def product_bits(
    on: torch.device, *, product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.matmul
) -> int:
    """Return how many significant bits of its inputs a float32 product keeps, as torch is set now: measured.

    24 is float32, 11 TF32, 8 bfloat16. `torch.set_float32_matmul_precision` allows fewer; the device decides.
    `product`: what gives the float32 product of two square matrices.
    """
    side = 64 if on.type == "cpu" else PROBE
    values = torch.tensor([1 + 2.0 ** -(1 + row % 23) for row in range(side)], device=on)  # 1 + 2**-k has k + 1 bits
    came = product(values[:, None].expand(-1, side).contiguous(), torch.eye(side, device=on))
    return 1 + int((came[:23, 0] == values[:23]).sum())  # not "is not 1": a tie may be rounded up


@dataclass(frozen=True)
class Capability:
    """One cell of the support grid.

    `status`: "native" (hardware computes in this dtype), "emulated" (a wider dtype computes, the result is rounded),
    "runs" (it works, nothing tells how) or "error". `ratio`: time relative to float32 on the same device, None where
    it failed; tensors are small, so only large ratios mean something.
    """

    dtype: str
    operation: str
    status: str
    ratio: float | None
    how: str


def _probes(on: torch.device) -> dict[str, Callable[[torch.dtype], Callable[[], torch.Tensor]]]:
    """Return, for each operation, a function from a dtype to the call to try; building it may fail as well."""
    n = 2048 if on.type == "cuda" else 256  # float16 products above 256 take seconds on most CPUs
    generator = torch.Generator(device=on).manual_seed(0)
    a = torch.randn(n, n, device=on, generator=generator)
    image = torch.randn(4, 16, 32, 32, device=on, generator=generator)
    kernel = torch.randn(16, 16, 3, 3, device=on, generator=generator)

    def unary(function):
        def build(dtype):
            x = a.to(dtype)
            return lambda: function(x)

        return build

    def autocast_linear(dtype):
        def call():
            with torch.autocast(on.type, dtype=dtype):
                return F.linear(a, a)

        return call

    def convolution(dtype):
        x, weight = image.to(dtype), kernel.to(dtype)
        return lambda: F.conv2d(x, weight)

    def scaled(dtype):
        x, unit = a.to(dtype), torch.ones((), device=on)
        if hasattr(F, "scaled_mm"):
            whole = F.ScalingType.TensorWise
            return lambda: F.scaled_mm(x, x.t(), unit, whole, unit, whole, output_dtype=torch.bfloat16)
        return lambda: torch._scaled_mm(x, x.t(), scale_a=unit, scale_b=unit, out_dtype=torch.bfloat16)

    return {
        "cast": lambda dtype: lambda: a.to(dtype, copy=True),
        "add": unary(lambda x: x + x),
        "exp": unary(torch.exp),
        "softmax": unary(lambda x: x.softmax(-1)),
        "layer_norm": unary(lambda x: F.layer_norm(x, x.shape[-1:])),
        "matmul": unary(lambda x: x @ x),
        "conv2d": convolution,
        "autocast linear": autocast_linear,
        "scaled_mm": scaled,
    }


def capabilities(on: torch.device | None = None) -> list[Capability]:
    """Try every operation in every dtype on the device and say what happened; takes a second or two."""
    on = on or device()
    probes = _probes(on)
    rows = []
    for operation, build in probes.items():
        plain = probes["matmul"] if operation == "scaled_mm" else build  # scaled_mm takes no float32
        reference, _ = _try(plain, torch.float32, on)
        for dtype in DTYPES:
            milliseconds, problem = _try(build, dtype, on)
            if operation == "autocast linear" and not problem:
                problem = _autocast_refusal(build, dtype)
            name = str(dtype).removeprefix("torch.")
            if problem:
                rows.append(Capability(name, operation, "error", None, problem))
                continue
            status, how = _classify(operation, dtype, on)
            ratio = milliseconds / reference if reference else None
            rows.append(Capability(name, operation, status, ratio, how))
    return rows


def _try(build, dtype: torch.dtype, on: torch.device) -> tuple[float | None, str | None]:
    """Return the median time in milliseconds, or the first line of what was raised instead."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # _autocast_refusal reads them
            return time_call(build(dtype), device=on, warmup=1, repeats=3).median, None
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        return None, in_a_line(error)


def _autocast_refusal(build, dtype: torch.dtype) -> str | None:
    """Autocast answers an unsupported dtype with a warning and computes in float32: call that an error."""
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        result = build(dtype)()
    if result.dtype is dtype and dtype is not torch.float32:
        return None
    if dtype is torch.float32:  # float32 is what autocast leaves alone
        return None
    message = " ".join(str(caught[0].message).split()) if caught else f"the result is {result.dtype}"
    return f"autocast stays in float32: {message}"


def _classify(operation: str, dtype: torch.dtype, on: torch.device) -> tuple[str, str]:
    """Return the status of an operation that worked and how it is known."""
    if dtype in (torch.float32, torch.float64):
        return "native", "IEEE 754 hardware"
    if operation == "cast":
        return "runs", "the result is the same by instruction or by bit operations; nothing tells which"
    if operation in ("add", "exp", "softmax", "layer_norm"):
        return "emulated", "torch computes in float32 and rounds the result"
    if operation == "matmul" and dtype.itemsize == 1:
        return "emulated", "torch multiplies in a wider dtype and rounds the result"
    native, how = narrow_matmul(dtype, on)
    return {True: "native", False: "emulated", None: "runs"}[native], how
