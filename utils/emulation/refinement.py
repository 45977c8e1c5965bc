"""Mixed-precision iterative refinement: factorize in a narrow format, and compute what is still missing in a wide one.

    factors = L U = A, rounded               once, n**3: the expensive part, and it may be wrong in the third digit
    r = b - A x                              each step, n**2, in float64
    x = x + (what the factors say for r)     each step, n**2

A step multiplies the error by about condition * unit roundoff of the factors; where that is below 1, the backward error
falls to float64's rounding. Where it is not, GMRES with the factors as its preconditioner goes further.
`utils.emulation.narrow_lu` says what is emulated. No sum is left to a library: every machine finds the same digits.

Sources: Wilkinson, "Rounding Errors in Algebraic Processes", 1963; Moler, "Iterative refinement in floating point",
1967; Langou et al. 2006; Carson and Higham 2017, 2018.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from utils.emulation.narrow_lu import Factors, FactorsFailed, factorize, power_of, rounder, square
from utils.formats import FLOAT32, FLOAT64, FloatFormat
from utils.rounding import as_float64

STUCK = 10  # steps in which the best backward error has to halve at least once
TESTED = 1e-8  # what GMRES reduces a residual to: fewer solves in all than 1e-4 or 1e-2, which need more steps


def matrix(n: int, condition: float, seed: int = 0) -> np.ndarray:
    """Return a random matrix of a given condition: float64 [n, n] with singular values from 1 down to 1 / condition.

    The singular values fall by one factor (rounded to float32, so the condition is off by up to 3e-8 n of itself).
    Rounds of rotations in random planes, `rotations(n, seed)`, mix rows and columns: only sums, products and quotients,
    which are the same on every machine. Raises: ValueError for n below 2 and a condition below 1.
    """
    if n < 2 or not 1 <= condition < np.inf:
        raise ValueError(f"n {n} and condition {condition}: take n from 2, a finite condition from 1")
    step = np.float64(np.float32(float(condition) ** (-1 / (n - 1))))
    a = np.diag(np.multiply.accumulate(np.r_[1.0, np.full(n - 1, step)]))
    for number, (first, second, tangents) in enumerate(rotations(n, seed)):
        side = a.T if number % 2 else a  # a view: rows and columns in turn
        t = tangents[:, None] / 64
        c, s = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)  # cosine and sine of twice the angle whose tangent is t
        x, y = side[first], side[second]
        side[first], side[second] = c * x - s * y, s * x + c * y
    return a


def rotations(n: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the planes and tangents of `matrix`: 8 ceil(log2(n)) rounds of (first, second, tangents), ints [n // 2].

    A round turns the plane of `first[i]` and `second[i]`, twice by the angle whose tangent is `tangents[i]` / 64.
    """
    rng = np.random.default_rng(seed)
    rounds = []
    for _ in range(8 * (n - 1).bit_length()):
        order = rng.permutation(n)
        rounds.append((order[: n // 2], order[n // 2 : n // 2 * 2], rng.integers(1, 64, size=n // 2)))
    return rounds


def residual_of(a: np.ndarray, x: np.ndarray, b: np.ndarray, *, fmt: FloatFormat = FLOAT64) -> np.ndarray:
    """Return b - a x: column after column, each product and each difference rounded to the format.

    `a`: [m, n], `x`: [n] or [n, k], `b`: [m] or [m, k], all rounded to the format first. Returns float64 like b.
    """
    stored = rounder(fmt)
    a, x, left = np.asfortranarray(stored(a)), stored(x), stored(b)
    with np.errstate(all="ignore"):  # a narrow format overflows
        for column, value in zip(a.T, x, strict=True):
            left = stored(left - stored(np.multiply.outer(column, value)))
    return left.astype(np.float64)


def product(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return a x in float64, added column after column, the same on every machine: [m] or [m, k], as x is [n, k]."""
    return -residual_of(a, x, np.zeros((len(a), *np.shape(x)[1:])))


def by_factors(a: np.ndarray, factors: Factors, r: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the correction that the factors give for the residual r, and the number of solves: 1."""
    return factors.solve(r), 1


def by_factors_wide(a: np.ndarray, factors: Factors, r: np.ndarray) -> tuple[np.ndarray, int]:
    """Return what `by_factors` does, with the substitutions in float64, as in `by_gmres`."""
    return factors.solve(r, wide=True), 1


def by_gmres(a: np.ndarray, factors: Factors, r: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the correction that GMRES finds for the residual r, and the number of solves with the factors.

    GMRES solves (U^-1 L^-1 a) d = U^-1 L^-1 r in float64, until what is left is `TESTED` of the right-hand side, in at
    most n steps: the factors only have to make the system easier, not to be right. Each step takes a product with a.
    Columns of r [n, m] are systems of their own that go on together.
    Source: Carson and Higham 2017, "A new analysis of iterative refinement", section 3.
    """
    power = power_of(r)  # a residual of 1e-300 would lose its squares
    start = factors.solve(r * power, wide=True)
    size = _norm(start)
    if not np.isfinite(size).all():
        return start, 1
    basis, columns, turns, target = [_over(start, size)], [], [], [size]
    while len(columns) < len(r) and (np.abs(target[-1]) > TESTED * size).any():
        v = factors.solve(product(a, basis[-1]), wide=True)
        h = []
        for q in basis:  # modified Gram-Schmidt
            h.append((q * v).sum(0))
            v = v - h[-1] * q
        h.append(_norm(v))
        basis.append(_over(v, h[-1]))
        for i, (c, s) in enumerate(turns):
            h[i], h[i + 1] = c * h[i] + s * h[i + 1], c * h[i + 1] - s * h[i]
        length = np.sqrt(h[-2] * h[-2] + h[-1] * h[-1])
        if not np.isfinite(length).all():
            break
        c, s = _over(h[-2], length), _over(h[-1], length)
        turns.append((c, s))
        columns.append([*h[:-2], np.where(length > 0, length, 1.0)])  # 0 where the system was solved before
        target[-1:] = [c * target[-1], -s * target[-1]]
    return _combined(basis, columns, target) / power, 1 + len(columns)


def _combined(basis: list[np.ndarray], columns: list[list], target: list) -> np.ndarray:
    """Solve the triangular system that GMRES has made, and return the sum of the basis with that solution."""
    left, total = list(target[:-1]), np.zeros_like(basis[0])
    for k in range(len(columns) - 1, -1, -1):
        left[k] = left[k] / columns[k][k]
        for i in range(k):
            left[i] = left[i] - left[k] * columns[k][i]
        total = total + left[k] * basis[k]
    return total


def _norm(v: np.ndarray) -> np.ndarray:
    return np.sqrt((v * v).sum(0))


def _over(v: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return v / size, zeros where the size is 0."""
    return v / np.where(size > 0, size, 1.0)


@dataclass(frozen=True)
class Refinement:
    """A solution x, [n] or [n, m], how it came about, and why it ended.

    `backward_errors`: of the first solve and after each step: the largest residual over |A| |x| + |b|, in the infinity
    norm. `forward_errors`: the largest error of x over the largest of `exact`, where that was given. Both are those of
    the worst column. `solves`: with the factors, for each entry of `backward_errors`. `x` is the best of all steps,
    and always finite; None without factors.
    """

    x: np.ndarray | None
    backward_errors: tuple[float, ...]
    forward_errors: tuple[float, ...]
    solves: tuple[int, ...]
    converged: bool
    why: str

    @property
    def steps(self) -> int:
        """Corrections after the first solve."""
        return max(0, len(self.backward_errors) - 1)


def refine(
    a,
    b,
    *,
    factors: FloatFormat = FLOAT32,
    residual: FloatFormat = FLOAT64,
    solution: FloatFormat = FLOAT64,
    sums: FloatFormat | None = None,
    squeezed: bool = False,
    correct: Callable = by_factors,
    most: int = 50,
    exact=None,
) -> Refinement:
    """Solve a x = b with factors in one format, residuals in another, and x kept in a third.

    `a`: real [n, n]; `b`: real [n], or [n, m] for m systems with one matrix. `sums`, `squeezed`: as in `factorize`.
    `correct`: `by_factors`, `by_factors_wide` or `by_gmres`. `exact`: the solution, where it is known.

    It ends where the backward error, always measured in float64, is at most 2**-52 sqrt(n), twice LAPACK's dsgesv;
    without it after `most` steps, or where `STUCK` steps did not halve the best.
    Raises: ValueError for shapes that do not fit.
    """
    a, b = np.asfortranarray(square(a)), as_float64(b)
    if b.ndim not in (1, 2) or len(b) != len(a) or not b.size or not np.isfinite(b).all():
        raise ValueError(f"b of shape {b.shape} is not one or more finite numbers for each of {len(a)} rows")
    try:
        factorized = factorize(a, factors, sums=sums, squeezed=squeezed)
    except FactorsFailed as error:
        return Refinement(None, (), (), (), False, str(error))
    kept, norms = rounder(solution), (np.abs(a).sum(1).max(), np.abs(b).max(0))
    x = best = np.zeros(b.shape)
    r, goal = b, FLOAT64.eps * len(b) ** 0.5
    backward, forward, solves, why = [], [], [], ""
    while not why:
        correction, count = correct(a, factorized, r)
        with np.errstate(all="ignore"):
            x = kept(x + correction).astype(np.float64)
        if not np.isfinite(x).all():
            why = f"step {len(backward)} overflowed"
            break
        left = residual_of(a, x, b)
        backward.append(_backward(left, x, *norms))
        solves.append(count)
        if exact is not None:
            forward.append(float((np.abs(x - exact).max(0) / np.abs(exact).max(0)).max()))
        if backward[-1] == min(backward):
            best = x
        why = _verdict(backward, goal, most)
        r = left if residual is FLOAT64 else residual_of(a, x, b, fmt=residual)
    done = bool(backward) and backward[-1] <= goal
    return Refinement(best, tuple(backward), tuple(forward), tuple(solves), done, why)


def _backward(left: np.ndarray, x: np.ndarray, norm_a: float, norm_b: np.ndarray) -> float:
    return float(_over(np.abs(left).max(0), norm_a * np.abs(x).max(0) + norm_b).max())


def _verdict(backward: list[float], goal: float, most: int) -> str:
    """Return why the refinement ends here; empty where it goes on."""
    steps, best = len(backward) - 1, min(backward)
    if backward[-1] <= goal:
        return f"converged after {steps} steps"
    if not np.isfinite(backward[-1]):
        return f"step {steps} overflowed"
    if steps >= STUCK and best > min(backward[:-STUCK]) / 2:
        return f"stuck at {best:.1e}: {STUCK} steps did not halve it"
    return f"not there after {steps} steps: {best:.1e}" if steps >= most else ""
