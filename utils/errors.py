"""What rounding costs: errors in ulps, relative errors, signal-to-noise ratio, shares of underflow and overflow.

`x` is always the exact value and `y` what became of it; arrays of one shape, taken as float64.
"""

import numpy as np

from utils.formats import FloatFormat
from utils.rounding import quantize, ulp


def ulp_error(y, x, fmt: FloatFormat) -> np.ndarray:
    """Give |y - x| in units of the format's spacing at x; at most 1/2 for a rounding to nearest that stays in range."""
    y, x = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
    return np.abs(y - x) / ulp(x, fmt)


def relative_error(y, x) -> np.ndarray:
    """Give |y - x| / |x|; 0 where both are 0, infinity where only x is."""
    y, x = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y == x, 0.0, np.abs(y - x) / np.abs(x))


def sqnr_db(y, x) -> float:
    """Give the signal-to-quantisation-noise ratio 10 log10(sum x**2 / sum (y - x)**2) in dB: more is better.

    Infinity when nothing was lost. Raises ValueError for an empty or all-zero x, which has no signal.
    """
    y, x = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
    signal = float(np.sum(x * x))
    if signal == 0.0:
        raise ValueError("sqnr_db needs a signal: x is empty or zero everywhere")
    noise = float(np.sum((y - x) ** 2))
    return float("inf") if noise == 0.0 else 10.0 * float(np.log10(signal / noise))


def underflow_share(x, fmt: FloatFormat) -> float:
    """Give the share of the non-zero x that the format rounds to zero (0.0 if there are none)."""
    x = np.asarray(x, dtype=np.float64)
    nonzero = x[(x != 0) & ~np.isnan(x)]
    return float(np.mean(quantize(nonzero, fmt) == 0)) if nonzero.size else 0.0


def overflow_share(x, fmt: FloatFormat) -> float:
    """Give the share of the finite x that round past the format's largest value (0.0 if there are none)."""
    x = np.asarray(x, dtype=np.float64)
    finite = x[np.isfinite(x)]
    # Saturating moves just these; the unsaturated result would not tell in formats that always saturate.
    limit = fmt.max + 0.5 * float(ulp(fmt.max, fmt))
    tie_goes_up = fmt.max_code % 2 == 1  # the next code is even, so a tie leaves the range
    return float(np.mean(np.abs(finite) >= limit if tie_goes_up else np.abs(finite) > limit)) if finite.size else 0.0
