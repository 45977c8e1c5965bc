"""Time a linear solve with narrow factors and refinement against one in float64, by size, on this device.

    python -m utils.experiments.refinement_speed --device cpu --size small --record DIR

The matrices are random, with a condition number of about 20. A solve begins with the float64 matrix and ends with a
backward error of 2**-52 sqrt(n): its time includes the conversion, the factors and every step. On CUDA the 16-bit
factors come from a blocked elimination, whose large products take 16-bit factors and add in float32; its panels are
float32. A CPU has no such product in torch: there these ways are left out and `note` says why.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch

from utils import measure, records
from utils.emulation.float32_matmul import allowing
from utils.exception_text import in_a_line
from utils.runs import command_line, measurement, tables
from utils.runs.measurement import Timed

NAME = "refinement_speed"
REPEATS = 5
SIZES = {"small": (500, 1_000, 2_000, 4_000), "full": (1_024, 2_048, 4_096, 8_192, 16_384, 32_768)}
WIDE = "float64"
DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
WAYS = tuple(DTYPES)
FACTORS, SOLVE = "factors", "solve"
PARTS = (FACTORS, SOLVE)
BLOCK = 512  # columns of a panel: wide enough for the product behind it, narrow beside the matrix
MOST = 50  # steps
DIAGONAL = 1.25
# What others have published, with the keys of book/references.bib; all of it stands in the abstracts. How many times as
# fast as float64 a solve with float16 factors is, at least and at most, by GPU:
PUBLISHED_FASTER = {"V100": (4, 4, "haidar2018"), "Quadro GV100": (4, 5, "haidar2020")}
# EFLOP/s of one machine in float64 (HPL) and with 16-bit factors and GMRES (HPL-MxP):
PUBLISHED_EFLOPS = {"Aurora": (1.01, 11.64, "goto2026aurora")}

Solver = Callable[[torch.Tensor], torch.Tensor]  # from a right-hand side [n] to what the factors say, [n]


@dataclass(frozen=True)
class Solution:
    """x, float64 [n], the number of corrections after the first solve, and the backward error that is left."""

    x: torch.Tensor
    steps: int
    backward_error: float
    converged: bool


def solve(a: torch.Tensor, b: torch.Tensor, way: str, *, block: int = BLOCK) -> Solution:
    """Solve a x = b, float64 [n, n] and [n], with factors of a way of `WAYS`; refined unless they are float64.

    The twin for torch tensors of `utils.emulation.refinement.refine`, with the products and sums of torch.
    Raises: ValueError for an unknown way, RuntimeError where a pivot is 0.
    """
    norm_a, norm_b = a.abs().sum(1).max(), b.abs().max()
    goal = torch.finfo(torch.float64).eps * len(b) ** 0.5
    factors, x, r = factorize(a, way, block=block), torch.zeros_like(b), b
    solves = 0
    for _ in range(1 if way == WIDE else MOST + 1):
        solves += 1
        scale = torch.exp2(-torch.floor(torch.log2(r.abs().max().clamp(min=1e-300))))  # a small r would underflow
        x = x + factors(r * scale) / scale
        r = torch.addmv(b, a, x, alpha=-1)  # b - A x, in float64
        error = (r.abs().max() / (norm_a * x.abs().max() + norm_b)).item()  # |r| / (|A| |x| + |b|)
        if not goal < error < float("inf"):  # done, or NaN
            break
    return Solution(x, solves - 1, error, error <= goal)


def factorize(a: torch.Tensor, way: str, *, block: int = BLOCK) -> Solver:
    """Return the function that solves with the factors of a, float64 [n, n], in a way of `WAYS`."""
    if way not in DTYPES:
        raise ValueError(f"unknown way {way!r}; the known ones are {', '.join(WAYS)}")
    dtype = DTYPES[way]
    if dtype in (torch.float64, torch.float32):
        lu, pivots = torch.linalg.lu_factor(a.to(dtype))
        return lambda r: torch.linalg.lu_solve(lu, pivots, r.to(dtype)[:, None])[:, 0].double()
    lu, order = blocked_lu(a.float(), dtype, block=block)

    def solve_with_factors(r: torch.Tensor) -> torch.Tensor:
        y = torch.linalg.solve_triangular(lu, r.float()[order][:, None], upper=False, unitriangular=True)  # L y = P r
        return torch.linalg.solve_triangular(lu, y, upper=True)[:, 0].double()  # U x = y

    return solve_with_factors


def blocked_lu(a: torch.Tensor, dtype: torch.dtype, *, block: int = BLOCK) -> tuple[torch.Tensor, torch.Tensor]:
    """Return L below and U on and above the diagonal, float32 [n, n], and the order of the rows [n]: a[order] = L U.

    `a`: float32 [n, n]. The square blocks on the diagonal are float32; all other numbers of L and U are rounded to
    `dtype`. Each panel of `block` columns is made in float32 with partial pivoting, and multiplied, rounded, with the
    rows beside it: that is nearly all of the work.
    """
    left, n = a.clone(), len(a)
    order = torch.arange(n, device=a.device)
    for k in range(0, n, block):
        end = min(k + block, n)
        panel, pivots = torch.linalg.lu_factor(left[k:, k:end])
        rows = k + _read_order(pivots, n - k).to(a.device)
        left[k:], order[k:] = left[rows], order[rows]
        left[k:, k:end] = panel
        if end < n:
            corner = left[k:end, k:end]
            beside = torch.linalg.solve_triangular(corner, left[k:end, end:], upper=False, unitriangular=True)
            below, beside = left[end:, k:end].to(dtype), beside.to(dtype)  # [n - end, block], [block, n - end]
            left[end:, k:end], left[k:end, end:] = below, beside  # what is stored is what is multiplied
            left[end:, end:] -= multiply(below, beside)
    return left, order


def _read_order(pivots: torch.Tensor, count: int) -> torch.Tensor:
    """Return the order that LAPACK's exchanges make of `count` rows: pivots[i] - 1 is exchanged with i."""
    order = list(range(count))
    for i, pivot in enumerate(pivots.tolist()):
        order[i], order[pivot - 1] = order[pivot - 1], order[i]
    return torch.tensor(order)


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b in float32 from 16-bit factors.

    On CUDA the matrix unit multiplies (torch 2.8 and later); elsewhere float32 does, which gives the same kind of
    numbers, but not the speed.
    """
    return torch.mm(a, b, out_dtype=torch.float32) if a.is_cuda else a.float() @ b.float()


@dataclass(frozen=True)
class SolvePoint(Timed):
    """One part of a solve of size n in one way: times in milliseconds, and how the solve ended.

    If it was not timed, `note` says why.
    """

    n: int
    way: str
    part: str
    samples: tuple[float, ...] = ()
    steps: int = 0
    backward_error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class SolveSpeeds:
    """All points; `moment` and `drift` as in `gemm_sweep.Sweep`."""

    points: tuple[SolvePoint, ...]
    moment: dict
    drift: float

    def at(self, n: int, way: str, part: str = SOLVE) -> SolvePoint | None:
        """Return the point, None where it is not among them or was not timed."""
        return next((p for p in self.points if (p.n, p.way, p.part) == (n, way, part) and p.samples), None)

    def faster(self, n: int, way: str, part: str = SOLVE) -> float | None:
        """Return how many times as fast as float64 a way is; None where one of the two was not timed."""
        point, base = self.at(n, way, part), self.at(n, WIDE, part)
        return base.timing.median / point.timing.median if point and base else None

    @property
    def sizes(self) -> list[int]:
        """The sizes n, in their order."""
        return list(dict.fromkeys(point.n for point in self.points))


def refuse(way: str, device: torch.device) -> str:
    """Say why a way is not timed on a device; empty where it is."""
    if DTYPES[way] in (torch.float64, torch.float32) or device.type == "cuda":
        return ""
    return "torch multiplies 16-bit factors into a float32 result on CUDA alone"


def draw_system(n: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a random matrix, float64 [n, n], and the right-hand side whose solution is all ones.

    Normal numbers, and `DIAGONAL` sqrt(n) more on the diagonal: the condition number is about 20 for every n. Without
    that it grows like n, and steps with 16-bit factors would fail from n = 1,000 or so on.
    """
    a = torch.randn(n, n, dtype=torch.float64, device=device, generator=torch.Generator(device).manual_seed(n))
    a.diagonal().add_(DIAGONAL * n**0.5)
    return a, a.sum(1)


def time_size(n: int, *, device: torch.device, repeats: int = REPEATS) -> Iterator[SolvePoint]:
    """Time every way at one size, both parts, in turns, by `measure.quiet_clock`."""
    a, b = draw_system(n, device)
    planned, calls = [], {}
    for way in WAYS:
        note, solution = refuse(way, device), None
        if not note:
            try:
                solution = solve(a, b, way)
            except RuntimeError as error:  # a pivot of 0, or no memory
                note = in_a_line(error)
        if solution and way != WIDE and not solution.converged:
            note = f"did not converge: {solution.backward_error:.1e} after {solution.steps} steps"
        for part in PARTS:
            point = SolvePoint(n, way, part, note=note)
            if solution:
                error = measurement.round_to(solution.backward_error, 3)
                point = replace(point, steps=solution.steps, backward_error=error)
            if not note:
                calls[point] = partial(solve, a, b, way) if part == SOLVE else partial(factorize, a, way)
            planned.append(point)
    clock, _ = measure.quiet_clock()
    timings = measure.time_in_turns(calls, device=device, warmup=1, repeats=repeats, seconds=clock)
    for point in planned:
        samples = timings[point].samples if point in timings else ()
        yield replace(point, samples=tuple(map(measurement.round_to, samples)))


def measure_speeds(
    *, device: torch.device, size: str, repeats: int = REPEATS, report: Callable[[str], None] = str
) -> SolveSpeeds:
    """Measure every size; `report` is called after each."""
    measured_points: list[SolvePoint] = []
    with allowing("highest"):
        for n in SIZES[size]:
            measured_points += time_size(n, device=device, repeats=repeats)
            report(f"n = {n}")
        first = measured_points[0].n
        again = next(point for point in time_size(first, device=device, repeats=repeats) if point.part == SOLVE)
        a, b = draw_system(first, device)
        moment = measurement.read_clocks_under_load(lambda: solve(a, b, WIDE), device)
    speeds = SolveSpeeds(tuple(measured_points), moment, drift=0.0)
    return replace(speeds, drift=measurement.relative_drift(speeds.at(first, WIDE).timing, again.timing))


def format_table(speeds: SolveSpeeds) -> str:
    """Return the sizes as text: times of both parts, how many times as fast as float64, steps and backward errors.

    Below: what was not timed and why, and a warning when the machine was not quiet.
    """
    rows = [("n", "factors", "factors ms", "solve ms", "times as fast", "steps", "backward error")]
    for n in speeds.sizes:
        for way in WAYS:
            if point := speeds.at(n, way):
                factors = speeds.at(n, way, FACTORS).timing.median
                ratios = f"{speeds.faster(n, way, FACTORS):.2f} / {speeds.faster(n, way):.2f}"
                ending = (str(point.steps), f"{point.backward_error:.1e}")
                rows.append((str(n), way, f"{factors:.3g}", f"{point.timing.median:.3g}", ratios, *ending))
    lines = [tables.align(rows), "times as fast as float64: factors / whole solve"]
    missing = {(p.way, p.note): None for p in speeds.points if p.note}
    lines += [f"{way} not timed: {note}" for way, note in missing]
    return "\n".join([*lines, *measurement.warn_of_drift("solve", speeds.drift)])


def make_record(speeds: SolveSpeeds, *, device: torch.device, size: str, shown: str = "") -> records.Record:
    """Return the speeds as a record; `of_record` gives them back."""
    clock = "events" if device.type == "cuda" else measure.quiet_clock()[1]
    return measurement.make_record(
        NAME,
        recipe="lu",
        size=size,
        device=device,
        settings={"block": BLOCK, "threads": torch.get_num_threads(), "clock": clock},
        results={**records.columns_and_points(speeds.points), "moment": speeds.moment, "drift": speeds.drift},
        samples=records.point_samples(speeds.points),
        shown=shown,
        data=f"normal random numbers, {DIAGONAL} sqrt(n) more on the diagonal",
    )


def of_record(record: records.Record) -> SolveSpeeds:
    """Return the speeds of a record."""
    results = record.results
    return SolveSpeeds(records.points_of(record, SolvePoint), results["moment"], results["drift"])


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(f"experiments.{NAME}", about=__doc__, sizes="small or full")
    parser.add_count("--repeats", default=REPEATS, help="times of each; default: %(default)s")
    return parser.checked(arguments)


@command_line.in_one_line(NAME)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
    except (ValueError, OSError) as error:
        return command_line.complain(NAME, str(error), 2)
    subject = {"device": options.device, "size": options.size}
    print(command_line.describe_run(options.device, size=options.size), flush=True)
    speeds = measure_speeds(
        **subject, repeats=options.repeats, report=lambda part: print(f"{part}: done", file=sys.stderr)
    )
    print(format_table(speeds))
    if options.record:
        records.save(make_record(speeds, **subject, shown=options.command), options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
