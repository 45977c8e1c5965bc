"""Tools of the commands that time or measure: repeated calls, a large copy, clocks under load, rounding, the record.

A command measures its points, prints them as a table, and saves them as a record with the device and the provenance.
"""

import math
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import torch

from utils import machine, measure, records

SAMPLE_MS = 2.0  # a sample is as many calls as take so long: the clock's steps and a launch are small beside it
BUSY_MS = 20.0  # of work at a time while the clocks are asked for
COPY_BYTES = {"small": 2**28, "full": 2**30}  # of each side of the copy: far beyond every cache
DRIFT = 0.2  # beyond this relative change of a time the machine was busy with other things
RANDOM = "random numbers from a normal distribution"


class Repeatable(Protocol):
    """A call that can be made many times in a row, such as `utils.experiments.gemm_calls.Call`."""

    def times(self, count: int) -> Callable[[], object]:
        """Return a function that makes the call `count` times."""


class Timed:
    """A measured point: `samples` are the times of a call in milliseconds, empty where it was not timed."""

    samples: tuple[float, ...]

    @property
    def timing(self) -> measure.Timing:
        """The times of a call with their median and spread."""
        return measure.Timing(self.samples)


def round_to(value: float, digits: int = 4) -> float:
    """Round to significant decimal digits: a clock knows no more than four, and a record is to be small."""
    return float(f"{value:.{digits}g}")


def time_calls(
    calls: dict[Hashable, Repeatable], *, device: torch.device, repeats: int
) -> dict[Hashable, tuple[float, ...]]:
    """Return the milliseconds of one call of each, which take turns, from samples of as many as last `SAMPLE_MS`."""
    if not calls:
        return {}
    once = measure.time_in_turns(calls, device=device, warmup=1, repeats=1)
    counts = {point: math.ceil(SAMPLE_MS / timing.median) for point, timing in once.items()}
    loops = {point: call.times(counts[point]) for point, call in calls.items()}
    timings = measure.time_in_turns(loops, device=device, warmup=1, repeats=repeats)
    return {
        point: tuple(round_to(sample / counts[point]) for sample in timing.samples) for point, timing in timings.items()
    }


def time_copy(*, device: torch.device, size: str, repeats: int, **clock) -> tuple[int, tuple[float, ...]]:
    """Return the bytes that a large copy reads and writes together, and its times in milliseconds.

    `clock`: what else `measure.time_call` takes.
    """
    count = COPY_BYTES[size] // 4  # float32 values
    source = torch.rand(count, device=device, generator=torch.Generator(device).manual_seed(0))
    target = torch.empty_like(source)
    timing = measure.time_call(lambda: target.copy_(source), device=device, warmup=1, repeats=repeats, **clock)
    return 2 * 4 * count, tuple(map(round_to, timing.samples))  # 4 bytes a value, read once and written once


def read_clocks_under_load(call: Callable[[], object], device: torch.device) -> dict[str, float | None]:
    """Return `machine.moment` of a GPU that computes: the call is made again until the answer is there. {} on a CPU."""
    if device.type != "cuda":
        return {}
    with ThreadPoolExecutor(1) as executor:
        moment = executor.submit(machine.moment, device)
        while not moment.done():
            call()
            torch.cuda.synchronize(device)
    return moment.result()


def relative_drift(first: measure.Timing, again: measure.Timing) -> float:
    """Return by what share the same call took longer at the end than in the beginning."""
    return round_to(again.median / first.median - 1)


def warn_of_drift(call: str, drift: float) -> list[str]:
    """Return the line that a table ends with where the machine was not quiet; `call` says what was timed twice."""
    if abs(drift) <= DRIFT:
        return []
    return [f"NOT QUIET: one {call} took {1 + drift:.2f} times as long at the end; measure again"]


def make_record(
    experiment: str,
    *,
    recipe: str,
    size: str,
    device: torch.device,
    settings: dict,
    results: dict,
    samples: dict,
    shown: str = "",
    provenance: dict | None = None,
    seed: int = 0,
    data: str = RANDOM,
    data_name: str = "random",
    weights: str = "none",
) -> records.Record:
    """Return the record of a measurement; `shown` is its command, `provenance` was made once for many records."""
    return records.Record(
        experiment=experiment,
        recipe=recipe,
        size=size,
        seed=seed,
        settings=settings,
        results=results,
        samples=samples,
        data=data,
        data_name=data_name,
        weights=weights,
        device=machine.facts(device),
        **(provenance or records.provenance(shown)),
    )
