"""What Condition shows: systems of a set condition, solved and refined; the page computes the same, bit for bit.

All numbers are those of `utils.emulation.refinement`, and again, in the page's language, of factors.js and
refined.js. Importing this needs no torch.
"""

import string
from functools import lru_cache

import numpy as np

from utils.emulation.refinement import Refinement, by_factors, by_gmres, matrix, product, refine, rotations
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT16, FLOAT32, FLOAT64, FloatFormat

SIZE, SEED = 32, 0  # of the system
CONDITIONS = tuple(float(f"{digit}e{power}") for power in range(11) for digit in (1, 2, 5))[:31]  # 1 ... 1e10
FACTORS: dict[str, FloatFormat] = {fmt.name: fmt for fmt in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16, FLOAT8_E4M3FN)}
RESIDUALS = {"float64": "float64", "float32": "float32", "factors": "as the factors"}  # what they are called
CORRECTIONS = {"factors": by_factors, "gmres": by_gmres}
LETTERS = string.digits + string.ascii_letters + "-_"  # for the numbers 0 to 63


@lru_cache(maxsize=64)
def system(condition: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix, float64 [SIZE, SIZE], and the right-hand side whose solution is all ones."""
    a = matrix(SIZE, condition, SEED)
    return a, product(a, np.ones(SIZE))


@lru_cache(maxsize=1024)
def refined(condition: float, factors: str, residual: str = "float64", correction: str = "factors") -> Refinement:
    """Solve the system with factors in a format, residuals in another and one of the `CORRECTIONS`."""
    a, b = system(condition)
    fmt = FACTORS[factors]
    return refine(
        a,
        b,
        factors=fmt,
        residual=fmt if residual == "factors" else FACTORS[residual],
        correct=CORRECTIONS[correction],
        exact=np.ones(SIZE),
    )


def make_facts() -> dict:
    """Return what the page cannot compute itself: the rotations that mix the matrix, three letters for each plane."""
    rounds = [np.stack(round, axis=1).ravel() for round in rotations(SIZE, SEED)]
    return {"size": SIZE, "rotations": ["".join(LETTERS[number] for number in round) for round in rounds]}
