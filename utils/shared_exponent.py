"""From the largest magnitude of a block to the power of two that the block stores: the rules in use.

The twin for torch tensors is in `utils.emulation.scaled_tensor`, the one of the pages in `widgets/scaling.js`.
"""

from collections.abc import Callable

import numpy as np

from utils.formats import FLOAT32, FloatFormat
from utils.rounding import as_float32, check_format

E8M0_LIMIT = 127  # exponents of E8M0: -127 ... 127


def _floor(amax: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    return _floor_log2(amax) - fmt.emax


def _rceil(amax: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    # The quotient may fall below float32; as its smallest value it still has an exponent.
    return _ceil_log2(np.maximum(amax / np.float32(fmt.max), np.float32(FLOAT32.smallest_subnormal)))


def _ceil_log2_of_amax(amax: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    return _ceil_log2(amax) - fmt.emax


def _round(amax: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    fraction, exponent = np.frexp(amax)
    carries = 2 * fraction >= 2 - 2.0 ** -(fmt.mantissa_bits + 1)  # the significand rounds up to 2
    return exponent - 1 + carries - fmt.emax


# From amax to the exponent of the block's stored scale, and what torchao's ScaleCalculationMode calls it.
EXPONENT_RULES: dict[str, Callable[[np.ndarray, FloatFormat], np.ndarray]] = {
    "floor": _floor,  # FLOOR: floor(log2 amax) - emax, OCP MX 1.0, 6.3; the top of a block may saturate
    "rceil": _rceil,  # RCEIL: ceil(log2(amax / max)), arXiv 2506.08027; the least power of two that saturates nothing
    "ceil-log2": _ceil_log2_of_amax,  # CEIL: ceil(log2 amax) - emax; saturates nothing, often a whole binade too large
    "round": _round,  # EVEN: floor(log2 of amax rounded to the format's significand) - emax; saturates less often
}


def shared_exponent(amax, fmt: FloatFormat, *, rule: str = "floor") -> np.ndarray:
    """Return the exponent e of the power of two that a block stores: its values are divided by 2**e.

    `amax`: magnitudes of any shape, taken as float32. Returns integers of -127 ... 127, E8M0's exponents; -127 for an
    amax of 0, and 0 for one that is not finite. Raises: ValueError for an unknown rule or a negative amax.
    """
    check_format(fmt)
    if rule not in EXPONENT_RULES:
        raise ValueError(f"rule {rule!r} is not one of {', '.join(EXPONENT_RULES)}")
    amax = magnitudes(amax)
    finite = np.isfinite(amax)
    usable = finite & (amax > 0)
    with np.errstate(under="ignore"):
        exponent = EXPONENT_RULES[rule](np.where(usable, amax, np.float32(1)), fmt)
    exponent = np.clip(exponent, -E8M0_LIMIT, E8M0_LIMIT)
    return np.where(usable, exponent, np.where(finite, -E8M0_LIMIT, 0))[()]


def magnitudes(amax) -> np.ndarray:
    """Take magnitudes as float32. Raises: ValueError for a negative one."""
    amax = as_float32(amax)
    if (amax < 0).any():
        raise ValueError(f"amax {float(np.nanmin(amax))} is negative; take the magnitudes first, np.abs(x).max()")
    return amax


def _floor_log2(x: np.ndarray) -> np.ndarray:
    return np.frexp(x)[1] - 1  # x = f * 2**e with 1/2 <= f < 1


def _ceil_log2(x: np.ndarray) -> np.ndarray:
    fraction, exponent = np.frexp(x)
    return exponent - (fraction == 0.5)
