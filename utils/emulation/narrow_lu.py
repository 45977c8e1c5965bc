"""LU factors whose numbers are stored in a narrow format, by Gaussian elimination with partial pivoting.

What is emulated: float32 and float64 are NumPy's own arithmetic. Every narrower format is emulated: a number is rounded
to it where it is stored. By default that is all, and products, differences and quotients are float32, as in a matrix
unit that takes 16-bit factors and adds in 32; `sums` says otherwise. No sum is left to a library: each runs in the
order that is written here, so that every machine finds the same digits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from utils.formats import FLOAT32, FLOAT64, FloatFormat
from utils.rounding import as_float64, check_format, quantize
from utils.scaling import scale_from_amax

MARGIN = 4  # powers of two that `squeeze` leaves below the format's largest value: factors grow
HIGHEST = 2.0**12  # float16's place for them; in a wider range there is nothing to win, and float32 sums could overflow


class FactorsFailed(ArithmeticError):
    """There are no factors: a number overflowed in their format, or a pivot became 0."""


def rounder(fmt: FloatFormat) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that stores an array in a format: float64 for FLOAT64, else values of it in float32."""
    check_format(fmt)
    if fmt is FLOAT64:
        return lambda x: np.asarray(x, np.float64)
    if fmt is FLOAT32:
        return lambda x: np.asarray(x, np.float32)
    if 2 * fmt.precision + 2 > FLOAT32.precision or not fmt.has_zero:  # then float32 first and fmt second is exact
        raise ValueError(f"{fmt} cannot be emulated in float32; take FLOAT64, FLOAT32 or one of at most 11 bits")
    return lambda x: np.asarray(quantize(x, fmt), np.float32)


@dataclass(frozen=True)
class Factors:
    """L and U of a row-permuted, scaled matrix: (rows * a * columns)[order] = L U, up to their rounding.

    `lu`: [n, n], L below the diagonal (its own diagonal is 1), U on and above it; float64 for FLOAT64, else float32.
    `rows`, `columns`: float64 [n], powers of two that multiplied the matrix before it was rounded.
    """

    lu: np.ndarray
    order: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    fmt: FloatFormat

    @cached_property
    def _wide(self) -> np.ndarray:
        return np.asfortranarray(self.lu, np.float64)

    def solve(self, r: np.ndarray, *, wide: bool = False) -> np.ndarray:
        """Return the x that the factors give for the right-hand side r: float64 [n] from [n], or [n, m] from [n, m].

        The substitutions run in the arithmetic of `lu`; `wide`: in float64. Each column of r is first scaled to 1.
        """
        power = power_of(r)
        lu = self._wide if wide else self.lu
        with np.errstate(all="ignore"):  # what is not finite is looked for by the caller
            y = (self.rows * (r * power).T).T[self.order].astype(lu.dtype)
            for k in range(len(y)):
                y[k + 1 :] -= np.multiply.outer(lu[k + 1 :, k], y[k])
            for k in range(len(y) - 1, -1, -1):
                y[k] /= lu[k, k]
                y[:k] -= np.multiply.outer(lu[:k, k], y[k])
            return (self.columns * y.astype(np.float64).T).T / power


def power_of(r: np.ndarray) -> np.ndarray:
    """Return the power of two that brings the largest magnitude of each column of r into 1/2 ... 1; else 1."""
    largest = np.abs(r).max(axis=0, initial=0)
    usable = (largest > 0) & np.isfinite(largest)
    return np.where(usable, np.ldexp(1.0, -np.frexp(np.where(usable, largest, 1.0))[1]), 1.0)[()]


def factorize(a, factors: FloatFormat = FLOAT32, *, sums: FloatFormat | None = None, squeezed: bool = False) -> Factors:
    """Factorize a matrix by Gaussian elimination with partial pivoting, its factors rounded to a format.

    `a`: real [n, n]. It is rounded to `factors` first, and so is each row of U and column of L as soon as it is known:
    what follows is computed with the rounded ones. `sums`: what each product and difference of the elimination is
    rounded to; by default float32, float64 for float64 factors. `squeezed`: scale rows and columns first, `squeeze`.
    Raises: FactorsFailed where a number overflows or a pivot is 0, ValueError for a matrix that is not square.
    """
    a = square(a)
    stored, added = rounder(factors), rounder(sums or (FLOAT64 if factors is FLOAT64 else FLOAT32))
    rows, columns = squeeze(a, factors) if squeezed else (np.ones(len(a)), np.ones(len(a)))
    with np.errstate(all="ignore"):
        left = added(stored(rows[:, None] * a * columns))
        _check_range(left, a, factors, squeezed)
        lu, order = _eliminate(np.array(left), stored, added)
    if not np.isfinite(lu).all():
        raise FactorsFailed(f"overflow: the factors grow beyond {factors.max:g}, the largest {factors}")
    if not np.diag(lu).all():
        raise FactorsFailed(f"a pivot is 0: in {factors} the matrix is singular")
    return Factors(np.asfortranarray(lu), order, rows, columns, factors)


def _eliminate(left: np.ndarray, stored: Callable, added: Callable) -> tuple[np.ndarray, np.ndarray]:
    order = np.arange(len(left))
    for k in range(len(left)):
        pivot = k + int(np.argmax(np.abs(left[k:, k])))
        left[[k, pivot]], order[[k, pivot]] = left[[pivot, k]], order[[pivot, k]]
        left[k, k:] = stored(left[k, k:])  # a row of U
        if not left[k, k] or not np.isfinite(left[k, k]):
            break
        left[k + 1 :, k] = stored(left[k + 1 :, k] / left[k, k])  # a column of L
        left[k + 1 :, k + 1 :] = added(left[k + 1 :, k + 1 :] - added(left[k + 1 :, k, None] * left[k, k + 1 :]))
    return left, order


def _check_range(left: np.ndarray, a: np.ndarray, fmt: FloatFormat, squeezed: bool) -> None:
    if not np.isfinite(left).all():
        advice = "" if squeezed else "; squeezed=True scales it into the range"
        raise FactorsFailed(f"overflow: the matrix reaches {np.abs(a).max():.3g}, {fmt} ends at {fmt.max:g}{advice}")


def squeeze(a, fmt: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Return powers of two by which rows and columns are multiplied so that the matrix fits a narrow range.

    Each row, then each column, is brought to a largest magnitude of 1/2 ... 1, and all of it below
    `fmt.max / 2**MARGIN`, and `HIGHEST`. A row or column of zeros stays. Returns float64 [n] and [n].
    In the manner of Higham, Pranesh and Zounon 2019, "Squeezing a matrix into half precision".
    """
    size = np.abs(square(a))
    rows = power_of(size.T)
    columns = power_of(rows[:, None] * size)
    amax = (rows[:, None] * size * columns).max()
    scale = float(scale_from_amax(amax, fmt, margin=MARGIN, power_of_two=True))
    return rows * min(scale, HIGHEST), columns


def square(a) -> np.ndarray:
    a = as_float64(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size or not np.isfinite(a).all():
        raise ValueError(f"a matrix of shape {a.shape} is not a square one of finite numbers")
    return a
