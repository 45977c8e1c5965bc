"""What DragOutlier shows: its tensor, and what an outlier in it costs all other values; the page computes the same."""

from functools import lru_cache

import numpy as np

from utils.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FloatFormat
from utils.quantization.outliers import Arm, Damage, damage
from utils.scaling import INT8, SCALINGS
from utils.widgets.shared.numbers.dice import nearly_normal

ROWS, COLUMNS = 128, 1024
INDEX = 512  # of the outlier: in the first row
MOST = 1e6  # the largest outlier
SEED = 1
OUTLIER_FORMATS: dict[str, FloatFormat] = {fmt.name: fmt for fmt in (FLOAT8_E4M3FN, INT8, FLOAT4_E2M1FN)}
CASES: dict[str, tuple[str, ...]] = {
    "float8_e4m3fn": ("tensor", "row", "1x128", "mx"),
    "int8": ("tensor", "row", "1x128"),
    "float4_e2m1fn": ("tensor", "row", "1x128", "mx", "nvfp4"),
}  # the scalings, names of utils.scaling.SCALINGS, that each format is used with


@lru_cache(maxsize=1)
def tensor() -> np.ndarray:
    """Return nearly normal values: float32 [ROWS, COLUMNS]."""
    return nearly_normal(SEED, ROWS * COLUMNS).reshape(ROWS, COLUMNS).astype(np.float32)


@lru_cache(maxsize=512)
def loss(format: str, scaling: str, outlier: float) -> Damage:
    """Put the outlier into the tensor, quantize it, and give what the other values lose; `outlier` 0 is none."""
    arm = Arm(f"{format} {scaling}", OUTLIER_FORMATS[format], SCALINGS[scaling])
    return damage(tensor(), outlier or None, arm, index=INDEX)
