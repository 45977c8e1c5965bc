"""What GroupOutlier shows: its row of weights, and what an outlier in it costs all others; the page computes the same.

The rounding is that of `utils.quantization.integers.quantize`, and again, in the page's language, of
codes.js.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from utils.quantization.outliers import damage_of_rest
from utils.widgets.shared.numbers.dice import nearly_normal

COUNT = 256  # weights of the row
GROUPS = (256, 128, 64, 32, 16, 8)
BITS = (4, 8)
LARGEST = 1e3  # weight
MOST = 1e6  # the largest outlier: the page goes to 125 times the weights
SEED, SPREAD = 12, 0.02  # of the generated weights


class Loss(NamedTuple):
    """What became of the weights beside the outlier.

    `error`: the norm of their errors over their norm. `zeros`: the share of those that are not zero and became zero.
    `bits`: bits per weight, the scales and zero points of the groups shared out.
    """

    error: float
    zeros: float
    bits: float


def generated() -> np.ndarray:
    """Return the generated weights: float32 [COUNT]."""
    return (SPREAD * nearly_normal(SEED, COUNT)).astype(np.float32)


def check_weights(weights: Sequence[float]) -> None:
    """Raise ValueError unless there are none or `COUNT` numbers of float32 that are not all zero."""
    if len(weights) not in (0, COUNT):
        raise ValueError(f"a row has {COUNT} weights, or none for generated ones; not {len(weights)}")
    if any(not math.isfinite(x) or abs(x) > LARGEST for x in weights):
        raise ValueError(f"weights are finite numbers of at most {LARGEST:,.0f}")
    if weights and not any(map(np.float32, weights)):
        raise ValueError("all weights are 0: nothing can be lost")


def row(weights: Sequence[float], outlier: float, place: int) -> np.ndarray:
    """Return the row with its outlier: float32 [COUNT]."""
    values = np.array(weights, np.float32) if len(weights) else generated()
    if outlier:
        values[place - 1] = outlier
    return values


def quantized(weights: Sequence[float], outlier: float, place: int, bits: int, group: int, symmetric: bool):
    """Return the `utils.quantization.integers.Quantized` of the row as a matrix of one row."""
    import torch

    from utils.quantization.integers import quantize

    return quantize(torch.from_numpy(row(weights, outlier, place))[None], bits, group, symmetric=symmetric)


@lru_cache(maxsize=512)
def loss(weights: tuple[float, ...], outlier: float, place: int, bits: int, group: int, symmetric: bool) -> Loss:
    """Quantize the row, and give what all weights but the outlier lose; `outlier` 0 is none."""
    rounded = quantized(weights, outlier, place, bits, group, symmetric)
    after = rounded.dequantize().numpy()[0]
    damage = damage_of_rest(row(weights, outlier, place), after, place - 1 if outlier else None)
    return Loss(*damage, float(rounded.bits_per_weight))
