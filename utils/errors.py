"""What rounding costs: the signal-to-noise ratio, and the share of values that become zero.

`x` is the exact value and `y` what became of it: real numbers of one shape, taken as float64 as in `quantize`.
"""

import math

import numpy as np

from utils.formats import FloatFormat
from utils.rounding import as_float64, quantize


def sqnr_db(y, x) -> float:
    """Give the signal-to-quantisation-noise ratio 10 log10(sum x**2 / sum (y - x)**2) in dB: more is better.

    Infinity when nothing was lost; -infinity where y is infinite or y - x beyond float64; NaN for a NaN or an infinite
    x. Raises ValueError for an empty or all-zero x, which has no signal.
    """
    y, x = as_float64(y), as_float64(x)
    signal = _power_db(x)
    if signal == -math.inf:
        raise ValueError("sqnr_db needs a signal: x is empty or zero everywhere")
    with np.errstate(over="ignore", invalid="ignore"):
        noise = y - x
    return signal - _power_db(noise)


def _power_db(values: np.ndarray) -> float:
    """Give 10 log10(sum values**2), with the largest value taken out so that no square leaves the range of float64."""
    peak = float(np.max(np.abs(values), initial=0.0))
    if peak == 0.0:
        return -math.inf
    if not math.isfinite(peak):
        return peak
    return 20.0 * math.log10(peak) + 10.0 * math.log10(float(np.sum((values / peak) ** 2)))


def underflow_share(x, fmt: FloatFormat) -> float:
    """Give the share of the non-zero x that the format rounds to zero (0.0 if there are none)."""
    x = as_float64(x)
    nonzero = x[(x != 0) & ~np.isnan(x)]
    return float(np.mean(quantize(nonzero, fmt) == 0)) if nonzero.size else 0.0
