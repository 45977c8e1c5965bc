"""One outlier and the error of all other values, by number format and by what shares a scale.

The scale of a tile has to carry its largest value. A floating-point format then loses nothing until the rest falls
below its smallest normal value, since its relative error is the same in every binade. A uniform grid loses at once.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from utils.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FloatFormat
from utils.rounding import as_float64
from utils.scaling import INT8, SCALINGS, Scaling, quantize_tiles

OUTLIERS = (None, 30.0, 300.0, 3e3, 3e4, 3e5)  # None: no outlier


@dataclass(frozen=True)
class Arm:
    """A format and the scaling that carries values into it."""

    name: str
    fmt: FloatFormat
    scaling: Scaling


class Damage(NamedTuple):
    """What became of the values beside the outlier.

    `error`: the norm of their errors over their norm. `zeros`: the share of those that are not zero and became zero.
    """

    error: float
    zeros: float


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("E4M3 tensor", FLOAT8_E4M3FN, SCALINGS["tensor"]),
        Arm("E4M3 1x128", FLOAT8_E4M3FN, SCALINGS["1x128"]),
        Arm("INT8 tensor", INT8, SCALINGS["tensor"]),
        Arm("INT8 1x128", INT8, SCALINGS["1x128"]),
        Arm("E2M1 tensor", FLOAT4_E2M1FN, SCALINGS["tensor"]),
        Arm("E2M1 1x16", FLOAT4_E2M1FN, Scaling("1x16", "blocks of 1×16", (1, 16))),
        Arm("MXFP8", FLOAT8_E4M3FN, SCALINGS["mx"]),
        Arm("MXFP4", FLOAT4_E2M1FN, SCALINGS["mx"]),
        Arm("NVFP4", FLOAT4_E2M1FN, SCALINGS["nvfp4"]),
    )
}


def with_outlier(x, outlier: float | None, *, index: int = 0) -> np.ndarray:
    """Return x as float32 with one value replaced; `index` counts along the flattened array. None replaces nothing."""
    x = np.array(as_float64(x), np.float32)
    if outlier is not None:
        x.reshape(-1)[index] = outlier
    return x


def damage(x, outlier: float | None, arm: Arm, *, index: int = 0) -> Damage:
    """Quantize x with an outlier and say what became of the rest; `x`: real numbers of any shape, not all zero."""
    before = with_outlier(x, outlier, index=index)
    after = quantize_tiles(before, arm.fmt, arm.scaling).dequantize()
    return damage_of_rest(before, after, None if outlier is None else index)


def damage_of_rest(before: np.ndarray, after: np.ndarray, index: int | None) -> Damage:
    """Say what became of all values but the outlier; `index`: its place in the flattened arrays, None without one."""
    rest = np.ones(before.size, bool)
    rest[[] if index is None else index] = False
    before, after = before.reshape(-1)[rest].astype(np.float64), after.reshape(-1)[rest].astype(np.float64)
    error = float(np.linalg.norm(after - before) / np.linalg.norm(before))  # ||q - x|| / ||x||
    return Damage(error, float(np.mean(after[before != 0] == 0)))


def sweep(x, *, outliers=OUTLIERS, arms: dict[str, Arm] = ARMS, index: int = 0) -> dict[str, list[Damage]]:
    """Return, for each arm by its name, the damage of each outlier."""
    return {name: [damage(x, outlier, arm, index=index) for outlier in outliers] for name, arm in arms.items()}
