"""The rate of matrix products of many shapes in every dtype, and the bandwidth of memory: a measured roofline.

    python -m utils.experiments.gemm_sweep --device cpu --size small --record DIR

The factors are random numbers, never zeros: a GPU at its power limit multiplies zeros faster, since bits that do not
flip take little power, and its clock rises. Each call takes the next of several copies of its factors, so that large
ones come from memory. Small ones stay in a cache and may lie above the roof of memory, on a CPU up to megabytes.
"""

import argparse
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch

from utils import machine, measure, records
from utils.cost.cards import of_device
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, Gemm, Roof
from utils.emulation.float32_matmul import allowing
from utils.experiments.gemm_calls import DTYPES, Call, prepared
from utils.experiments.gemm_sweep_shapes import GROUPS, families
from utils.runs import command_line, tables

NAME = "gemm_sweep"
REPEATS = 7
DRIFT = 0.2  # beyond this `Sweep.drift` the machine was busy with other things
SAMPLE_MS = 2.0  # a sample is as many calls as take so long: the clock's steps and a launch are small beside it
BUSY_MS = 20.0  # of work at a time while the clocks are asked for
COPY_BYTES = {"small": 2**28, "full": 2**30}  # of each side of the copy: far beyond every cache


@dataclass(frozen=True)
class Point:
    """A product [M, K] @ [K, N] in one dtype, `batch` of them in one call; the times of a call in milliseconds.

    `group`: why it is measured, one of `sweep_shapes.GROUPS`. Where it was not, `note` says why.
    """

    group: str
    m: int
    n: int
    k: int
    dtype: str
    batch: int = 1
    samples: tuple[float, ...] = ()
    note: str = ""

    @property
    def gemm(self) -> Gemm:
        """The shape of one of them."""
        return Gemm(self.m, self.n, self.k)

    @property
    def timing(self) -> measure.Timing:
        """The times of a call with their median and spread."""
        return measure.Timing(self.samples)

    @property
    def tflops(self) -> float | None:
        """The rate in TFLOP/s; None where it was not measured."""
        return self.batch * self.gemm.operations / self.timing.median / 1e9 if self.samples else None

    @property
    def intensity(self) -> float:
        """Operations for each byte that has to move."""
        return self.gemm.intensity(INPUT_BYTES[self.dtype], OUTPUT_BYTES[self.dtype])


@dataclass(frozen=True)
class Sweep:
    """All points, the times in milliseconds of a copy, and the bytes that it reads and writes together.

    `moment`: clocks and power while the device computed, from `machine.moment`. `drift`: by which share the fastest
    product of the first group took longer after the sweep than in it.
    """

    points: tuple[Point, ...]
    copied: int
    copies: tuple[float, ...]
    moment: dict
    drift: float

    @property
    def bandwidth(self) -> float:
        """GB/s of the copy, its median."""
        return self.copied / measure.Timing(self.copies).median / 1e6

    @property
    def reached(self) -> dict[str, float]:
        """The largest rate of each dtype in TFLOP/s, of whatever shape."""
        measured = self.of()
        return {
            dtype: max(point.tflops for point in measured if point.dtype == dtype)
            for dtype in DTYPES
            if any(point.dtype == dtype for point in measured)
        }

    def of(self, dtype: str | None = None, *, group: str | None = None) -> list[Point]:
        """Return the points that were measured, of one dtype or group if one is named."""
        chosen = (point for point in self.points if point.samples)
        return [point for point in chosen if dtype in (None, point.dtype) and group in (None, point.group)]


def points(
    *,
    device: torch.device,
    size: str,
    dtypes: tuple[str, ...] = DTYPES,
    groups: tuple[str, ...] = GROUPS,
    repeats: int = REPEATS,
) -> Iterator[Point]:
    """Measure the products of a size; yield their points. The dtypes take turns, and so do shapes that are near."""
    for group, family in families(size, groups=groups):
        planned, calls = [], {}
        with allowing("highest"):
            for (gemm, batch), dtype in itertools.product(family, dtypes):
                call, note = prepared(gemm, dtype, batch=batch, device=device)
                planned.append(Point(group, gemm.m, gemm.n, gemm.k, dtype, batch, note=note))
                if call:
                    calls[planned[-1]] = call
            found = timed(calls, device=device, repeats=repeats)
        yield from (replace(point, samples=found.get(point, ())) for point in planned)


def timed(calls: dict[Hashable, Call], *, device: torch.device, repeats: int) -> dict[Hashable, tuple[float, ...]]:
    """Return the milliseconds of one call of each, which take turns, from samples of as many as last `SAMPLE_MS`."""
    if not calls:
        return {}
    once = measure.time_in_turns(calls, device=device, warmup=1, repeats=1)
    many = {point: math.ceil(SAMPLE_MS / timing.median) for point, timing in once.items()}
    loops = {point: call.times(many[point]) for point, call in calls.items()}
    timings = measure.time_in_turns(loops, device=device, warmup=1, repeats=repeats)
    return {point: tuple(_short(each / many[point]) for each in timing.samples) for point, timing in timings.items()}


def _short(value: float) -> float:
    return float(f"{value:.4g}")  # a clock knows no more, and a record is to be small


def copy_times(*, device: torch.device, size: str, repeats: int = REPEATS, **how) -> tuple[int, tuple[float, ...]]:
    """Return the bytes that a large copy reads and writes together, and its times in milliseconds.

    `how`: what else `measure.time_call` takes.
    """
    count = COPY_BYTES[size] // 4
    source = torch.rand(count, device=device, generator=torch.Generator(device).manual_seed(0))
    target = torch.empty_like(source)
    timing = measure.time_call(lambda: target.copy_(source), device=device, warmup=1, repeats=repeats, **how)
    return 2 * 4 * count, tuple(_short(each) for each in timing.samples)


def sweep(
    *,
    device: torch.device,
    size: str,
    groups: tuple[str, ...] = GROUPS,
    repeats: int = REPEATS,
    told: Callable[[str], None] = str,
) -> Sweep:
    """Measure all groups and the rate of a copy; `told` is called with the name of each group when it is done."""
    copied, copies = copy_times(device=device, size=size, repeats=repeats)
    found: list[Point] = []
    for group in groups:
        found += points(device=device, size=size, groups=(group,), repeats=repeats)
        told(group)
    first = max((point for point in found if point.group == groups[0] and point.samples), key=lambda p: p.tflops)
    with allowing("highest"):
        call, _ = prepared(first.gemm, first.dtype, batch=first.batch, device=device)
        again = measure.Timing(timed({first: call}, device=device, repeats=repeats)[first])
        moment = busy_moment(call.times(math.ceil(BUSY_MS / first.timing.median)), device)
    return Sweep(tuple(found), copied, copies, moment, _short(again.median / first.timing.median - 1))


def busy_moment(call: Callable[[], object], device: torch.device) -> dict[str, float | None]:
    """Return `machine.moment` of a GPU that computes: the call is made again until the answer is there. {} on a CPU."""
    if device.type != "cuda":
        return {}
    with ThreadPoolExecutor(1) as asking:
        told = asking.submit(machine.moment, device)
        while not told.done():
            call()
            torch.cuda.synchronize(device)
    return told.result()


def record(found: Sweep, *, device: torch.device, size: str, shown: str = "") -> records.Record:
    """Return the sweep as a record; `of_record` gives it back."""
    settings = {"repeats": len(found.copies), "sample_ms": SAMPLE_MS, "threads": torch.get_num_threads()}
    results = {
        **records.rows(found.points),
        "copied": found.copied,
        "moment": found.moment,
        "drift": found.drift,
        "reached_tflops": {dtype: _short(rate) for dtype, rate in found.reached.items()},
        "bandwidth_gb_s": _short(found.bandwidth),
    }
    return records.Record(
        experiment=NAME,
        recipe="products",
        size=size,
        seeds=(0,),
        settings=settings,
        results=results,
        samples={"copies": list(found.copies), **records.samples(found.points)},
        data="random numbers from a normal distribution",
        data_name="random",
        weights="none",
        device=machine.facts(device),
        **records.provenance(shown),
    )


def of_record(record: records.Record) -> Sweep:
    """Return the sweep of a record."""
    results, copies = record.results, tuple(record.samples["copies"])
    points = records.points_of(record, Point)
    return Sweep(points, results["copied"], copies, results["moment"], results["drift"])


def measured_roof(record: records.Record) -> Roof:
    """Return the roof of a record: the largest rate that each dtype reached, and the bandwidth of the copy."""
    found = of_record(record)
    commit = record.commit[:7] if record.commit else "unknown"
    source = f"measured {record.date[:10]} at commit {commit}: {record.command}"
    return Roof(record.device["name"], found.reached, found.bandwidth, source, measured=True)


def table(found: Sweep, sheet: Roof | None = None) -> str:
    """Return the points as text: times, rates, and their shares of the dtype's best and of the data sheet's peak.

    Below them: what was not measured and why, the copy, the clocks, and a warning when the machine was not quiet.
    """
    rows = [("product", "dtype", "milliseconds", "TFLOP/s", "of the best", "of the sheet")]
    for point in found.of():
        peak = sheet.peaks.get(point.dtype) if sheet else None
        rows.append(
            (
                f"{point.group}: {point.gemm}" + (f", {point.batch} of them" if point.batch > 1 else ""),
                point.dtype,
                f"{point.timing.median:.3g} ± {point.timing.spread:.2g}",
                f"{point.tflops:.3g}",
                f"{100 * point.tflops / found.reached[point.dtype]:.0f} %",
                f"{100 * point.tflops / peak:.0f} %" if peak else "-",
            )
        )
    lines = [tables.align(rows)]
    missing = Counter((point.dtype, point.note) for point in found.points if not point.samples)
    lines += [f"{dtype}, {count} products missing: {note}" for (dtype, note), count in missing.items()]
    lines.append(f"copy: {found.bandwidth:.3g} GB/s, read and written")
    lines += [f"{name}: {value}" for name, value in found.moment.items()]
    if abs(found.drift) > DRIFT:
        lines.append(f"NOT QUIET: one product took {1 + found.drift:.2f} times as long at the end; measure again")
    return "\n".join(lines)


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
    print(command_line.first_lines(options.device, size=options.size), flush=True)
    where = {"device": options.device, "size": options.size}
    found = sweep(**where, repeats=options.repeats, told=lambda group: print(f"{group}: done", file=sys.stderr))
    made = record(found, **where, shown=options.command)
    print(table(found, of_device(made.device["name"])))
    if options.record:
        records.save(made, options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
