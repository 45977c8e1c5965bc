"""Rounding float32 to a small format: the limit (a copy), the peers and us, side by side in one run.

    python bench/rounding.py [--n 10000000] [--threads 1] [--device cpu] [--quick]

Each round times every candidate once, each after a copy, so that a slow moment of the machine falls on all; a ratio
is that of two medians over the rounds. Peers that are not installed are named with the way to install them
(bench/requirements.txt); "wrong" counts the results that differ from `quantize` on the values of the format, the
midpoints between them and the float32 neighbours of those.
"""

import argparse
import ctypes
import importlib.metadata
import platform
import statistics
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import ml_dtypes
import numpy as np
import torch

from utils.fake_quantize import fake_quantize, fake_quantize_stochastic
from utils.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FORMATS, FloatFormat, decode
from utils.rounding import quantize
from utils.rounding_kernels import draw_bits

PEERS = "pip install --no-deps --target DIR -r bench/requirements.txt, then PYTHONPATH=DIR"
DOUBLING, DRAWING = "doubling alone, compiled", "random bits alone, compiled"
DRIFT = 0.2  # two medians of the same limit may differ by this share


@dataclass
class Candidate:
    """One way of doing the work. `function` takes x and gives the rounded values; `fmt` None: it does not round."""

    name: str
    function: Callable[[torch.Tensor], torch.Tensor]
    fmt: FloatFormat | None = None
    ratio: float = float("nan")
    seconds: float = float("nan")


def peers(device: str) -> tuple[list[Candidate], list[str]]:
    """Return the peers that can be imported, and a line for each that cannot."""
    candidates, absent = [], []
    makers = [qtorch, gfloat, microxcaling, pychop, torchao] + ([ml_dtypes_casts] if device == "cpu" else [])
    for maker in makers:
        try:
            candidates += maker()
        except Exception as error:  # a peer may fail to import in any way: a missing compiler, another torch
            absent.append(f"{maker.__name__}: absent ({type(error).__name__}: {str(error).splitlines()[0][:80]})")
    return candidates, absent


def qtorch() -> list[Candidate]:
    """qtorch 0.3: a C++ loop, built at import; no format without infinities, so its E4M3 ends at 240."""
    from qtorch.quant import float_quantize

    nearest = partial(float_quantize, exp=4, man=3, rounding="nearest")
    by_chance = partial(float_quantize, exp=4, man=3, rounding="stochastic")
    return [Candidate("qtorch", nearest, FLOAT8_E4M3FN), Candidate("qtorch, stochastic", by_chance)]


def gfloat() -> list[Candidate]:
    """gfloat: torch operations through the array API."""
    import gfloat
    from gfloat.formats import format_info_ocp_e4m3

    return [Candidate("gfloat", lambda x: gfloat.round_ndarray(format_info_ocp_e4m3, x, sat=True), FLOAT8_E4M3FN)]


def microxcaling() -> list[Candidate]:
    """microxcaling: no package; its folder must be on PYTHONPATH (github.com/microsoft/microxcaling)."""
    from mx.elemwise_ops import _quantize_elemwise_core

    core = partial(_quantize_elemwise_core, bits=5, exp_bits=4, max_norm=448.0, saturate_normals=True)
    return [
        Candidate("microxcaling, nearest", partial(core, round="nearest"), FLOAT8_E4M3FN),
        Candidate("microxcaling, even", partial(core, round="even"), FLOAT8_E4M3FN),
    ]


def pychop() -> list[Candidate]:
    """pychop: torch operations; IEEE specials only, so its E4M3 ends at 240."""
    from pychop.tch.lightchop import LightChop_

    return [Candidate("pychop", LightChop_(4, 3), FLOAT8_E4M3FN)]


def torchao() -> list[Candidate]:
    """torchao: its FP4 cast there and back, eager."""
    from torchao.prototype.mx_formats.kernels import f4_unpacked_to_f32, f32_to_f4_unpacked

    return [Candidate("torchao, E2M1", lambda x: f4_unpacked_to_f32(f32_to_f4_unpacked(x)), FLOAT4_E2M1FN)]


def ml_dtypes_casts() -> list[Candidate]:
    """ml_dtypes: NumPy casts there and back."""

    def there_and_back(x, dtype):
        return torch.from_numpy(x.numpy().astype(dtype).astype(np.float32))

    return [
        Candidate("ml_dtypes", partial(there_and_back, dtype=ml_dtypes.float8_e4m3fn), FLOAT8_E4M3FN),
        Candidate("ml_dtypes, E2M1", partial(there_and_back, dtype=ml_dtypes.float4_e2m1fn), FLOAT4_E2M1FN),
    ]


def torch_casts() -> list[Candidate]:
    """torch's own conversions there and back; what they do past the largest value differs by version."""
    formats = [FORMATS["float16"], FORMATS["bfloat16"], FLOAT8_E5M2, FLOAT8_E4M3FN]
    return [Candidate(f"cast, {fmt}", lambda x, fmt=fmt: x.to(fmt.torch_dtype).to(x.dtype), fmt) for fmt in formats]


def ours(out: torch.Tensor, *, compiles: bool) -> list[Candidate]:
    """Every format eager, and the stochastic and the compiled forms, these where the machine can compile."""

    def into(x: torch.Tensor) -> torch.Tensor | None:
        return out if x.numel() == out.numel() else None

    def nearest(x, fmt, **how):
        return fake_quantize(x, fmt, out=into(x), **how)

    def by_chance(x, **how):
        return fake_quantize_stochastic(x, FLOAT8_E4M3FN, seed=1, out=into(x), **how)

    rows = [Candidate(f"us, {fmt}", partial(nearest, fmt=fmt), fmt) for fmt in list(FORMATS.values())[2:]]
    if compiles:
        for name in ("tf32", "bfloat16", "float8_e4m3fn", "float4_e2m1fn"):
            fused = partial(nearest, fmt=FORMATS[name], compiled=True)
            rows.append(Candidate(f"us, {name}, compiled", fused, FORMATS[name]))
    rows.append(Candidate("us, float8_e4m3fn, not saturating", partial(nearest, fmt=FLOAT8_E4M3FN, saturate=False)))
    rows.append(Candidate("torch.rand alone", lambda x: torch.rand_like(x)))
    rows.append(Candidate("us, float8_e4m3fn, stochastic", by_chance))
    if compiles:
        rows.append(Candidate("us, float8_e4m3fn, stochastic, compiled", partial(by_chance, compiled=True)))
        rows += compiled_limits(out)
    return rows


def compiled_limits(out: torch.Tensor) -> list[Candidate]:
    """The least that the two compiled forms do: one loop that doubles, and one that only draws the random bits."""
    keys = torch.tensor([1, 2], dtype=torch.int32, device=out.device)

    @torch.compile(dynamic=True)
    def double(x, target):
        target.copy_(x * 2)

    @torch.compile(dynamic=True)
    def draw(target):
        target.copy_(draw_bits(target.numel(), 0, keys, target.device))

    return [
        Candidate(DOUBLING, lambda x: double(x, out)),
        Candidate(DRAWING, lambda x: draw(out.view(torch.int32))),
    ]


def why_not_compiled(device: str) -> str:
    """Return "" where compiled=True has an effect on the device, else what the library says of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            fake_quantize(torch.ones(2, device=device), FLOAT8_E4M3FN, compiled=True)
        except RuntimeWarning as said:
            return str(said)
    return ""


def wrong(candidate: Candidate, device: str) -> str:
    """Count the results that differ from the reference, on the inputs that decide, inside the range of all peers."""
    fmt = candidate.fmt
    if fmt is None:
        return ""
    value = np.unique(decode(np.arange(min(2 ** (fmt.bits - 1), 2**14)), fmt))
    value = value[np.isfinite(value) & (value <= 224)]  # 240 is the largest E4M3 of the peers with infinities
    middle = ((value[1:] + value[:-1]) / 2).astype(np.float32)
    x = np.concatenate([value, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(300))])
    x = np.concatenate([x, -x] if fmt.signed else [x]).astype(np.float32)
    got = candidate.function(torch.from_numpy(x).to(device)).cpu().double().numpy()
    bad = ~((got == quantize(x, fmt)) & (np.signbit(got) == np.signbit(quantize(x, fmt))))
    return f"{bad.sum():6d} of {len(x)}" if bad.any() else "none"


def seconds(function: Callable, x: torch.Tensor) -> float:
    """Time one call, all work done."""
    begin = time.perf_counter()
    function(x)
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def compare(candidates: list[Candidate], copy: Callable, x: torch.Tensor, rounds: int) -> list[float]:
    """Fill in ratio and seconds of the candidates; give the times of the limit in the order they were taken in."""
    for candidate in candidates:
        candidate.function(x)  # compiles, allocates
    limits, times = [], defaultdict(list)
    for _ in range(rounds):
        for candidate in candidates:
            seconds(copy, x)  # all start with the caches that a copy leaves
            limits.append(seconds(copy, x))
            times[candidate.name].append(seconds(candidate.function, x))
    for candidate in candidates:
        candidate.seconds = statistics.median(times[candidate.name])
        candidate.ratio = candidate.seconds / statistics.median(limits)
    return limits


def drift(limits: list[float]) -> float:
    """Return the share by which the medians of the first and of the second half of the limit's times differ."""
    half = len(limits) // 2
    first, second = statistics.median(limits[:half]), statistics.median(limits[half:])
    return abs(first - second) / min(first, second)


def keep_pages() -> None:
    """Tell glibc to keep freed memory: else each call of a peer that allocates pays for fresh pages."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: large blocks come from the heap too
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: and stay there


def latency_us(n: int, device: str) -> float:
    """Return the median time of one small call in microseconds, over 30 batches of 100 calls."""
    x = torch.randn(n, device=device)

    def batch(x):
        for _ in range(100):
            fake_quantize(x, FLOAT8_E4M3FN)

    batch(x)
    return statistics.median(seconds(batch, x) for _ in range(30)) * 1e4


def six_passes() -> float:
    """Return the seconds for each element of the eager form's six operations alone, on one piece in the caches."""
    x = torch.randn(2**16)
    y, binade = torch.empty_like(x), x.abs() + 1
    mask, nothing = torch.tensor(0x7F800000, dtype=torch.int32), torch.tensor(-0.0)

    def passes(x):
        torch.bitwise_and(x.view(torch.int32), mask, out=y.view(torch.int32))
        binade.clamp_(2.0**-6, 2.0**8)
        torch.addcdiv(nothing, x, binade, value=8.0, out=y).round_()
        torch.addcmul(nothing, y, binade, value=0.125, out=y)
        torch.clamp(y, -448.0, 448.0, out=y)

    passes(x)
    return statistics.median(seconds(passes, x) for _ in range(200)) / x.numel()


def goals(rows: dict[str, Candidate], latency: float) -> list[tuple[str, float, float, bool]]:
    """Return (goal, bound, reached value, whether more is better), for what was measured."""
    eager, four = rows["us, float8_e4m3fn"], rows["us, float4_e2m1fn"]
    lines = [
        ("eager, times a copy", 2.5, eager.ratio, False),
        ("10 000 elements, microseconds", 12.0, latency, False),
    ]
    for name, bound in (("", 1.1), ("stochastic, ", 2.5)):
        if row := rows.get(f"us, float8_e4m3fn, {name}compiled"):
            lines.append((f"{name}compiled, times a copy", bound, row.ratio, False))
    peer_goals = {"qtorch": 3, "gfloat": 7, "ml_dtypes": 12, "microxcaling, even": 7, "pychop": 7, "torchao, E2M1": 7}
    for name, bound in peer_goals.items():
        if name in rows:
            us = four if "E2M1" in name else eager
            lines.append((f"eager, times as fast as {name}", float(bound), rows[name].ratio / us.ratio, True))
    return lines


def versions() -> str:
    """Name the versions of all that was measured."""
    names = ["torch", "numpy", "ml_dtypes", "qtorch", "gfloat", "pychop", "torchao"]
    parts = []
    for name in names:
        try:
            parts.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(parts)


def report(limits: list[float], rows: list[Candidate], n: int, device: str) -> None:
    """Print the table and which goals are reached."""
    latency = latency_us(10_000, device)
    print(f"{'':42}{'Melem/s':>9}{'time / copy':>13}   wrong")
    print(f"{'copy (the limit)':42}{n / statistics.median(limits) / 1e6:9.0f}{1:13.2f}")
    for row in rows:
        print(f"{row.name:42}{n / row.seconds / 1e6:9.0f}{row.ratio:13.2f}   {wrong(row, device)}")
    if device == "cpu":
        share = six_passes() / (statistics.median(limits) / n)
        print(f"\nWhat bounds the eager form: its six operations in the caches take {share:.1f} copies,")
        print(f"and a call for one element {latency_us(1, device):.1f} microseconds, most in torch's eleven calls.")
    ratios = {row.name: row.ratio for row in rows}
    if DOUBLING in ratios:
        print(f"What bounds the compiled forms: a compiled loop that only doubles takes {ratios[DOUBLING]:.1f} copies,")
        print(f"and one that only draws the bits of stochastic rounding {ratios[DRAWING]:.1f}.")
    print(f"\n{'goal':48}{'bound':>8}{'here':>8}")
    for name, bound, value, more in goals({row.name: row for row in rows}, latency):
        reached = value >= bound if more else value <= bound
        print(f"{name:48}{'>=' if more else '<='}{bound:6.1f}{value:8.1f}  {'reached' if reached else 'NOT reached'}")


def main() -> int:
    """Measure, up to three times where the machine is unsteady, and report or refuse."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000_000, help="elements (default 10000000)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds")
    arguments = parser.parse_args()
    keep_pages()
    torch.set_num_threads(arguments.threads)
    n, rounds = arguments.n, 3 if arguments.quick else 9
    x = torch.randn(n, generator=torch.Generator().manual_seed(0)).to(arguments.device)
    out = torch.empty_like(x)
    peer_rows, absent = peers(arguments.device)
    name = torch.cuda.get_device_name() if x.is_cuda else platform.processor() or platform.machine()
    print(f"{n} float32 elements on {name}, {arguments.threads} thread(s); {versions()}")
    print("".join(f"{line}\n" for line in absent) + (f"peers: {PEERS}\n" if absent else ""))
    if reason := why_not_compiled(arguments.device):
        print(f"Not timed: what is compiled. {reason}\n")
    rows = [*torch_casts(), *peer_rows, *ours(out, compiles=not reason)]
    for _ in range(3):
        limits = compare(rows, out.copy_, x, rounds)
        if drift(limits) <= DRIFT:
            report(limits, rows, n, arguments.device)
            return 0
        print(f"two medians of the limit differ by {drift(limits):.0%}; measuring again")
    print("no report: the machine is too unsteady for ratios; close what else runs on it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
