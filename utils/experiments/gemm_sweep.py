"""Measure a roofline: the rate of matrix products of many shapes in every dtype, and the bandwidth of memory.

    python -m utils.experiments.gemm_sweep --device cpu --size small --record DIR

The factors are random numbers, never zeros: a GPU at its power limit multiplies zeros faster, because bits that do not
flip take little power, so its clock rises. Each call takes the next of several copies of its factors, so that large
ones come from memory. Small ones (on a CPU up to megabytes) stay in a cache and may lie above the roof of memory.
"""

import argparse
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from utils import measure, records
from utils.cost.cards import find_roof
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, Gemm, Roof
from utils.emulation.float32_matmul import allowing
from utils.experiments.gemm_calls import DTYPES, prepare_call
from utils.experiments.gemm_sweep_shapes import GROUPS, list_families
from utils.runs import command_line, measurement, tables
from utils.runs.measurement import Timed

NAME = "gemm_sweep"
REPEATS = 7


@dataclass(frozen=True)
class GemmPoint(Timed):
    """A product [M, K] @ [K, N] in one dtype, `batch` of them in one call; the times of a call in milliseconds.

    `group`: why it is measured, one of `gemm_sweep_shapes.GROUPS`. If it was not, `note` says why.
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
        """The shape of one product."""
        return Gemm(self.m, self.n, self.k)

    @property
    def tflops(self) -> float | None:
        """The rate in TFLOP/s; None where it was not measured."""
        return (
            self.batch * self.gemm.operations / self.timing.median / 1e9 if self.samples else None
        )  # FLOPs / ms / 1e9

    @property
    def intensity(self) -> float:
        """FLOPs per byte that has to move."""
        # 2 M N K / ((M K + K N) input bytes + M N output bytes)
        return self.gemm.intensity(INPUT_BYTES[self.dtype], OUTPUT_BYTES[self.dtype])


@dataclass(frozen=True)
class Sweep:
    """All points, and a large copy: the bytes that it reads and writes together, and its times in milliseconds.

    `moment`: clocks and power while the device computed, from `machine.moment`. `drift`: by what share the fastest
    product of the first group took longer after the sweep than in it.
    """

    points: tuple[GemmPoint, ...]
    copied: int
    copies: tuple[float, ...]
    moment: dict
    drift: float

    @property
    def bandwidth(self) -> float:
        """GB/s of the copy, its median."""
        return self.copied / measure.Timing(self.copies).median / 1e6  # bytes / ms / 1e6

    @property
    def reached(self) -> dict[str, float]:
        """The largest rate of each dtype in TFLOP/s, of whatever shape."""
        measured = self.of()
        return {
            dtype: max(point.tflops for point in measured if point.dtype == dtype)
            for dtype in DTYPES
            if any(point.dtype == dtype for point in measured)
        }

    def of(self, dtype: str | None = None, *, group: str | None = None) -> list[GemmPoint]:
        """Return the points that were measured, of one dtype or group if one is named."""
        measured = (point for point in self.points if point.samples)
        return [point for point in measured if dtype in (None, point.dtype) and group in (None, point.group)]


def measure_points(
    *,
    device: torch.device,
    size: str,
    dtypes: tuple[str, ...] = DTYPES,
    groups: tuple[str, ...] = GROUPS,
    repeats: int = REPEATS,
) -> Iterator[GemmPoint]:
    """Measure the products of a size and yield their points; dtypes take turns, and so do neighbouring shapes."""
    for group, family in list_families(size, groups=groups):
        planned, calls = [], {}
        with allowing("highest"):
            for (gemm, batch), dtype in itertools.product(family, dtypes):
                call, note = prepare_call(gemm, dtype, batch=batch, device=device)
                planned.append(GemmPoint(group, gemm.m, gemm.n, gemm.k, dtype, batch, note=note))
                if call:
                    calls[planned[-1]] = call
            samples = measurement.time_calls(calls, device=device, repeats=repeats)
        yield from (replace(point, samples=samples.get(point, ())) for point in planned)


def run_sweep(
    *,
    device: torch.device,
    size: str,
    groups: tuple[str, ...] = GROUPS,
    repeats: int = REPEATS,
    report: Callable[[str], None] = str,
) -> Sweep:
    """Measure all groups and the rate of a copy; `report` is called with the name of each group when it is done."""
    copied, copies = measurement.time_copy(device=device, size=size, repeats=repeats)
    measured: list[GemmPoint] = []
    for group in groups:
        measured += measure_points(device=device, size=size, groups=(group,), repeats=repeats)
        report(group)
    first = max((point for point in measured if point.group == groups[0] and point.samples), key=lambda p: p.tflops)
    with allowing("highest"):
        call, _ = prepare_call(first.gemm, first.dtype, batch=first.batch, device=device)
        again = measure.Timing(measurement.time_calls({first: call}, device=device, repeats=repeats)[first])
        count = math.ceil(measurement.BUSY_MS / first.timing.median)
        moment = measurement.read_clocks_under_load(call.times(count), device)
    return Sweep(tuple(measured), copied, copies, moment, measurement.relative_drift(first.timing, again))


def make_record(sweep: Sweep, *, device: torch.device, size: str, shown: str = "") -> records.Record:
    """Return the sweep as a record; `of_record` gives it back."""
    results = {
        **records.columns_and_points(sweep.points),
        "copied": sweep.copied,
        "moment": sweep.moment,
        "drift": sweep.drift,
        "reached_tflops": {dtype: measurement.round_to(rate) for dtype, rate in sweep.reached.items()},
        "bandwidth_gb_s": measurement.round_to(sweep.bandwidth),
    }
    return measurement.make_record(
        NAME,
        recipe="products",
        size=size,
        device=device,
        settings={
            "repeats": len(sweep.copies),
            "sample_ms": measurement.SAMPLE_MS,
            "threads": torch.get_num_threads(),
        },
        results=results,
        samples={"copies": list(sweep.copies), **records.point_samples(sweep.points)},
        shown=shown,
    )


def of_record(record: records.Record) -> Sweep:
    """Return the sweep of a record."""
    results, copies = record.results, tuple(record.samples["copies"])
    points = records.points_of(record, GemmPoint)
    return Sweep(points, results["copied"], copies, results["moment"], results["drift"])


def make_roof(record: records.Record) -> Roof:
    """Return the roof of a record: the largest rate that each dtype reached, and the bandwidth of the copy."""
    sweep = of_record(record)
    commit = record.commit[:7] if record.commit else "unknown"
    source = f"measured {record.date[:10]} at commit {commit}, where the command was {record.command}"
    return Roof(record.device["name"], sweep.reached, sweep.bandwidth, source, measured=True)


def format_table(sweep: Sweep, sheet: Roof | None = None) -> str:
    """Return the points as text: times, rates, and their shares of the dtype's best and of the data sheet's peak.

    Below them: what was not measured and why, the copy, the clocks, and a warning when the machine was not quiet.
    """
    rows = [("product", "dtype", "milliseconds", "TFLOP/s", "of the best", "of the sheet")]
    for point in sweep.of():
        peak = sheet.peaks.get(point.dtype) if sheet else None
        rows.append(
            (
                f"{point.group}: {point.gemm}" + (f", {point.batch} of them" if point.batch > 1 else ""),
                point.dtype,
                f"{point.timing.median:.3g} ± {point.timing.spread:.2g}",
                f"{point.tflops:.3g}",
                f"{100 * point.tflops / sweep.reached[point.dtype]:.0f} %",
                f"{100 * point.tflops / peak:.0f} %" if peak else "-",
            )
        )
    lines = [tables.align(rows)]
    missing = Counter((point.dtype, point.note) for point in sweep.points if not point.samples)
    lines += [f"{dtype}, {count} products missing: {note}" for (dtype, note), count in missing.items()]
    lines.append(f"copy: {sweep.bandwidth:.3g} GB/s, read and written")
    lines += [f"{name}: {value}" for name, value in sweep.moment.items()]
    return "\n".join([*lines, *measurement.warn_of_drift("product", sweep.drift)])


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
    print(command_line.describe_run(options.device, size=options.size), flush=True)
    subject = {"device": options.device, "size": options.size}
    measured = run_sweep(
        **subject, repeats=options.repeats, report=lambda group: print(f"{group}: done", file=sys.stderr)
    )
    made = make_record(measured, **subject, shown=options.command)
    print(format_table(measured, find_roof(made.device["name"])))
    if options.record:
        records.save(made, options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
