"""Random numbers that Python and the pages draw alike; their twins, `seededDice` and so on, are in dice.js."""

import numpy as np

STEP = 0x6D2B79F5
NORMAL_DRAWS = 6  # each gives two numbers of 16 bits: the sum of twelve has variance 1


def dice(seed: int, count: int) -> np.ndarray:
    """Return the first numbers of mulberry32: float64 [count], multiples of 2**-32 in [0, 1)."""
    state = np.arange(1, count + 1, dtype=np.uint32) * np.uint32(STEP) + np.uint32(seed)  # a counter
    z = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
    z ^= z + (z ^ (z >> np.uint32(7))) * (z | np.uint32(61))
    return (z ^ (z >> np.uint32(14))) / 2.0**32


def nearly_normal(seed: int, count: int) -> np.ndarray:
    """Return sums of twelve numbers of 16 bits, less 6, from one draw after another: float64 [count], in [-6, 6).

    They are multiples of 2**-16 with at most 19 bits, which float32 holds.
    """
    bits = (dice(seed, count * NORMAL_DRAWS) * 2**32).astype(np.uint32).reshape(count, NORMAL_DRAWS)
    return ((bits >> 16) + (bits & 0xFFFF)).sum(axis=-1) / 2**16 - NORMAL_DRAWS
