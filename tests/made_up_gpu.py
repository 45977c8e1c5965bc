"""Records of a GPU that does not exist, to see that pages take records as soon as there are some.

Each is the record of a CPU with the device exchanged, and speeds that a formula gives. The name of the device says that
it is made up, and `record_all` takes no record of such a device into a book.
"""

import dataclasses
from pathlib import Path

from utils import records
from utils.experiments import fp8_speed
from utils.experiments.record_all.archive import MADE_UP
from utils.records import Record

NAME = f"NVIDIA H100 80GB HBM3, {MADE_UP}"
DEVICE = {
    "kind": "cuda",
    "torch": "2.11.0+cu130",
    "cuda": "13.0",
    "name": NAME,
    "capability": "9.0",
    "memory": 85_000_000_000,
    "multiprocessors": 132,
    "driver": "580.00",
    "power_limit_w": 700.0,
}
MOMENT = {"sm_clock_mhz": 1_755.0, "largest_sm_clock_mhz": 1_980.0, "memory_clock_mhz": 2_619.0, "power_w": 650.0}
MEMORY = {"peak_allocated": 20_000_000_000, "peak_reserved": 24_000_000_000}
SLOW, FAST = 3e14, 5e14  # FLOP/s of bfloat16 and of FP8 in the made-up times


def made_up(record: Record) -> Record:
    """Return the record as if it were of the GPU, at full size."""
    results = dict(record.results)
    if "moment" in results:
        results["moment"] = MOMENT
    if "memory" in results:
        results["memory"] = results["memory"] | MEMORY
    if "peak_allocated" in results:
        results |= MEMORY
    return dataclasses.replace(record, device=DEVICE, size="full", results=results)


def fp8_speeds(*, compiled: bool) -> Record:
    """Return a record of `fp8_speed`, whose record of a CPU would have no FP8 product."""
    points = [
        fp8_speed.SpeedPoint(
            family,
            layer.tokens,
            layer.inputs,
            layer.outputs,
            recipe,
            part,
            samples=(_milliseconds(layer.operations, recipe, part),) * 3,
        )
        for family, layer in fp8_speed.list_families("full", compiled=compiled)
        for recipe in (fp8_speed.BFLOAT16, *fp8_speed.RECIPES)
        for part in fp8_speed.PARTS
    ]
    speeds = fp8_speed.Speeds(tuple(points), compiled, MOMENT, drift=0.01)
    plain = next(record for record in records.load_all() if record.experiment == "gemm_sweep")
    recipe = "compiled" if compiled else "eager"
    results = {
        **records.columns_and_points(speeds.points),
        "compiled": compiled,
        "moment": MOMENT,
        "drift": speeds.drift,
        "emulated": False,
    }
    return dataclasses.replace(
        plain,
        experiment=fp8_speed.NAME,
        recipe=recipe,
        size="full",
        device=DEVICE,
        results=results,
        samples=records.point_samples(speeds.points),
    )


def _milliseconds(operations: int, recipe: str, part: str) -> float:
    wide = recipe == fp8_speed.BFLOAT16
    casts = 0.01 if wide else 0.05  # ms, whatever the size: small layers lose
    if part == fp8_speed.CASTS:
        return casts
    return 1e3 * operations / (SLOW if wide else FAST) + casts * (part != fp8_speed.PRODUCT)


def write_records(folder: Path) -> list[Record]:
    """Write the book's records and those of the made-up GPU into a folder; return the latter."""
    real = records.load_all()
    made = [made_up(record) for record in real if record.experiment != "api_drift"]
    made += [fp8_speeds(compiled=compiled) for compiled in (False, True)]
    for record in (*real, *made):
        records.save(record, folder)
    return made
