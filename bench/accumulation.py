"""Matrix products with rounded sums: the limits, the peers and the accumulators of the book, side by side in one run.

    python bench/accumulation.py [--m 256] [--n 256] [--k 8192] [--threads 2] [--quick]

Goal: 256 x 256 with K = 8192 in at most 0.3 s for every accumulator on two cores.

Two limits: `a @ b` in float32, which rounds as it likes, and a *pass*, one `total.addcmul_(column, row)` of float32 for
each of the K products, less than which no total that is rounded after every product can take. Each round times every
candidate once, each after a pass, so that a slow moment of the machine falls on all; a ratio is that of two medians
over the rounds. Peers that are not installed are named with the way to install them (bench/requirements.txt). No peer
is asked for more than 256 products: its time is stretched to K. "wrong" counts the totals that differ from those of
`utils.emulation.rounded_matmul.matmul`, whose every total is the exact sum rounded once.
"""

import argparse
import importlib.metadata
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from rounding import DRIFT, PEERS, drift, keep_pages, seconds

from utils.emulation.accumulators import ACCUMULATORS
from utils.emulation.rounded_matmul import matmul
from utils.fake_quantize import fake_quantize
from utils.formats import FLOAT16, FloatFormat

GOAL_SECONDS = 0.3
PEER_PRODUCTS = 256
Matmul = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass
class Candidate:
    """One way of adding the products of a [M, K] and b [K, N], values of `operands`; a peer has fewer products."""

    name: str
    function: Matmul
    operands: FloatFormat
    peer: bool = False
    seconds: float = float("nan")


def one_pass(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Add in float32, product by product: the least that a running total takes."""
    columns, rows = a.t().contiguous().unsqueeze(2), b.unsqueeze(1)
    total = torch.zeros(a.shape[0], b.shape[1])
    for column, row in zip(columns, rows, strict=True):
        total.addcmul_(column, row)
    return total


def rounding_each(rounded: Callable[[torch.Tensor], torch.Tensor], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Add product by product in float32 and round each total: what a function that rounds a tensor is good for."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for column, row in zip(a.t().unsqueeze(2), b.unsqueeze(1), strict=True):
        total = rounded(total + column * row)
    return total


def peers() -> tuple[list[Candidate], list[str]]:
    """Return the peers that can be imported, and a line for each that cannot."""
    candidates, absent = [], []
    for maker in (torch_half, mptorch, qtorch, gfloat, pychop):
        try:
            name, function = maker()
            candidates.append(Candidate(name, function, FLOAT16, peer=True))
        except Exception as error:  # a peer may fail to import in any way: a missing compiler, another torch
            absent.append(f"{maker.__name__}: absent ({type(error).__name__}: {str(error).splitlines()[0][:80]})")
    return candidates, absent


def torch_half() -> tuple[str, Matmul]:
    """torch: a cast to float16 and back after each addition."""
    return "torch, cast each total", partial(rounding_each, lambda total: total.half().float())


def mptorch() -> tuple[str, Matmul]:
    """mptorch: a C++ loop, built at import; not on the package index: github.com/mptorch/mptorch on PYTHONPATH."""
    from mptorch.quant.quant_function import float_mm

    how = {"man_add": 10, "exp_add": 5, "rounding": "nearest", "fma": True, "subnormals": True, "saturate": False}
    return "mptorch, float_mm", partial(float_mm, **how)


def qtorch() -> tuple[str, Matmul]:
    """qtorch 0.3: a C++ loop that rounds, built at import."""
    from qtorch.quant import float_quantize

    return "qtorch, each total", partial(rounding_each, partial(float_quantize, exp=5, man=10, rounding="nearest"))


def gfloat() -> tuple[str, Matmul]:
    """gfloat: torch operations through the array API."""
    import gfloat
    from gfloat.formats import format_info_binary16

    return "gfloat, each total", partial(rounding_each, lambda total: gfloat.round_ndarray(format_info_binary16, total))


def pychop() -> tuple[str, Matmul]:
    """pychop: torch operations."""
    from pychop.tch.lightchop import LightChop_

    return "pychop, each total", partial(rounding_each, LightChop_(5, 10))


def operands(fmt: FloatFormat, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round random numbers to the values of a format."""
    return fake_quantize(a, fmt), fake_quantize(b, fmt)


def compare(candidates: list[Candidate], pairs: dict, limits: dict[str, Matmul], rounds: int) -> dict[str, list[float]]:
    """Fill in the seconds of the candidates; give the times of the limits in the order they were taken in."""
    full = pairs[None]
    taken = {name: [] for name in limits}
    times = {candidate.name: [] for candidate in candidates}
    for round_number in range(rounds + 1):  # the first one allocates, and starts threads
        for candidate in candidates:
            a, b = pairs[candidate.operands]
            count = PEER_PRODUCTS if candidate.peer else a.shape[1]
            a, b = a[:, :count].contiguous(), b[:count]
            stretch = full[0].shape[1] / a.shape[1]
            limit_times = {name: seconds(lambda _, limit=limit: limit(*full), a) for name, limit in limits.items()}
            took = seconds(lambda _, run=candidate.function, a=a, b=b: run(a, b), a)
            if round_number:
                times[candidate.name].append(took * stretch)
                for name, time_s in limit_times.items():
                    taken[name].append(time_s)
    for candidate in candidates:
        candidate.seconds = statistics.median(times[candidate.name])
    return taken


def wrong(candidate: Candidate, pairs: dict) -> str:
    """Count the totals of a peer that differ from float16 totals that are rounded once."""
    if not candidate.peer:
        return ""
    a, b = (x.contiguous() for x in (pairs[FLOAT16][0][:, :PEER_PRODUCTS], pairs[FLOAT16][1][:PEER_PRODUCTS]))
    bad = candidate.function(a, b) != matmul(a, b, accumulator=FLOAT16)
    return f"{int(bad.sum()):6d} of {bad.numel()}" if bad.any() else "none"


def report(taken: dict[str, list[float]], candidates: list[Candidate], pairs: dict) -> None:
    """Print the table and which goals are reached."""
    product, single = (statistics.median(times) for times in taken.values())
    m, k, n = *pairs[None][0].shape, pairs[None][1].shape[1]
    print(f"{'':34}{'operands':>14}{'seconds':>9}{'/ (a @ b)':>11}{'passes':>8}{'/ goal':>8}   wrong")
    print(f"{'a @ b, float32 (the limit)':34}{'float32':>14}{product:9.3f}{1:11.1f}{product / single:8.2f}")
    print(f"{'one pass for each product':34}{'float32':>14}{single:9.3f}{single / product:11.1f}{1:8.2f}")
    goal = GOAL_SECONDS * m * k * n / (256 * 256 * 8192)
    for row in candidates:
        figures = f"{row.seconds:9.3f}{row.seconds / product:11.1f}{row.seconds / single:8.2f}{row.seconds / goal:8.2f}"
        print(f"{row.name:34}{row.operands!s:>14}{figures}   {wrong(row, pairs)}")
    missed = [row.name for row in candidates if not row.peer and row.seconds > goal]
    print(
        f"\ngoal: at most {goal:.2f} s each; " + (f"NOT reached by {', '.join(missed)}" if missed else "reached by all")
    )


def versions() -> str:
    """Name the versions of all that was measured."""
    parts = []
    for name in ("torch", "qtorch", "gfloat", "pychop", "mptorch"):
        try:
            parts.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(parts)


def main() -> int:
    """Measure, up to three times where the machine is unsteady, and report or refuse."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, size in (("--m", 256), ("--n", 256), ("--k", 8192)):
        parser.add_argument(name, type=int, default=size, help=f"default {size}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a third of the rounds")
    arguments = parser.parse_args()
    keep_pages()
    torch.set_num_threads(arguments.threads)
    rng = torch.Generator().manual_seed(0)
    a, b = (torch.randn(size, generator=rng) for size in ((arguments.m, arguments.k), (arguments.k, arguments.n)))
    peer_rows, absent = peers()
    ours = [
        Candidate(accumulator.name, accumulator.matmul, accumulator.operands) for accumulator in ACCUMULATORS.values()
    ]
    rows = ours + peer_rows
    pairs = {None: (a, b)} | {fmt: operands(fmt, a, b) for fmt in {row.operands for row in rows}}
    shape = f"[{arguments.m}, {arguments.k}] @ [{arguments.k}, {arguments.n}]"
    print(f"{shape} on {platform.processor() or platform.machine()}, {arguments.threads} thread(s); {versions()}")
    print("".join(f"{line}\n" for line in absent) + (f"peers: {PEERS}\n" if absent else ""))
    for _ in range(3):
        taken = compare(rows, pairs, {"a @ b": torch.matmul, "pass": one_pass}, 2 if arguments.quick else 6)
        unsteady = max(map(drift, taken.values()))
        if unsteady <= DRIFT:
            report(taken, rows, pairs)
            return 0
        print(f"two medians of a limit differ by {unsteady:.0%}; measuring again")
    print("no report: the machine is too unsteady for ratios; close what else runs on it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
