"""Sums in a narrow format: every addition exact, then rounded once to the format.

The terms are taken as they are, in float64; a running total can only be a value of the format. Where the terms have the
format too, as in a tensor of bfloat16, round them first: `running_sum(quantize(x, BFLOAT16), BFLOAT16)`.

How an addition stays exact: float64 holds a + b only in part if the two lie far apart, and rounding that part to the
format would be a second rounding. So the float64 sum is rounded *to odd*: if something was cut off, its last bit is
made 1, which tells every later rounding to at most 51 bits on which side of a tie, or of a value, a + b lies (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from utils.formats import FLOAT32, FORMATS, FloatFormat
from utils.rounding import Rounding, as_float64, check_format, quantize, ties_to_even, ulp

MOST_PRECISION = 51  # rounding to odd needs two bits more than the format: 53 in float64


class KahanSum(NamedTuple):
    """Kahan's sum after each term: the totals, and the compensations c. total - c is the better estimate of the sum."""

    totals: np.ndarray
    compensations: np.ndarray


def add(a, b, fmt: FloatFormat, rounding: Rounding = ties_to_even) -> np.ndarray:
    """Add exactly and round once: `quantize(a + b, fmt)` as if a + b had all its digits.

    `a`, `b`: real numbers of shapes that fit together, taken as float64. Returns float64 of their common shape. Exact
    for all five deterministic rules; for `stochastic` the probability is exact to 2**(fmt.precision - 53).

    Raises: ValueError for a format with more than 51 significant bits, except float64 itself with ties to even, and for
    E8M0, which has no zero.
    """
    _check(fmt, rounding)
    return _add(as_float64(a), as_float64(b), fmt, rounding)


def running_sum(values, fmt: FloatFormat, rounding: Rounding = ties_to_even, start=0.0) -> np.ndarray:
    """Add the values one by one to a total that is rounded to the format each time, and give every total.

    `values`: [..., n]. `start`: the total before the first, rounded to the format with ties to even; a number, or an
    array whose shape fits [...], for example one entry for each of many stochastic runs. Returns float64 [..., n].
    Raises: ValueError as `add` does, and for values without an axis.
    """
    _check(fmt, rounding)
    total, totals = quantize(start, fmt), []
    for value in np.moveaxis(_with_axis(values), -1, 0):
        total = _add(total, value, fmt, rounding)
        totals.append(total)
    return _last_axis(totals, values, start)


def kahan_sum(values, fmt: FloatFormat, rounding: Rounding = ties_to_even, start=0.0) -> KahanSum:
    """Add the values one by one with Kahan's compensation, every operation rounded to the format.

    Each step hands the next one what its own addition lost (Kahan, "Further remarks on reducing truncation errors",
    CACM 8, 1965):

        y = value - c;  t = total + y;  c = (t - total) - y;  total = t

    Arguments and errors as in `running_sum`. Returns two arrays [..., n]: the totals, and the c after each step. After
    an overflow c is infinite or NaN, and later totals are NaN.
    """
    _check(fmt, rounding)
    total, c = quantize(start, fmt), np.zeros(())
    totals, compensations = [], []
    for value in np.moveaxis(_with_axis(values), -1, 0):
        y = _add(value, -c, fmt, rounding)
        t = _add(total, y, fmt, rounding)
        c = _add(_add(t, -total, fmt, rounding), -y, fmt, rounding)
        total = t
        totals.append(total)
        compensations.append(c)
    return KahanSum(_last_axis(totals, values, start), _last_axis(compensations, values, start))


def pairwise_sum(values, fmt: FloatFormat, rounding: Rounding = ties_to_even) -> np.ndarray:
    """Add neighbours, then neighbours of these sums, until one is left: log2(n) roundings deep instead of n.

    `values`: [..., n]; where a level has an odd number, its last one waits. Returns float64 [...], values of the format
    (0 for n = 0). Raises: ValueError as `running_sum` does.
    """
    _check(fmt, rounding)
    sums = _with_axis(values)
    if sums.shape[-1] == 0:
        return np.zeros(sums.shape[:-1])[()]
    while True:
        if sums.shape[-1] % 2:  # x + -0 is x, for -0 too
            sums = np.concatenate([sums, np.full((*sums.shape[:-1], 1), -0.0)], axis=-1)
        sums = _add(sums[..., 0::2], sums[..., 1::2], fmt, rounding)
        if sums.shape[-1] == 1:
            return sums[..., 0]


def matmul(a, b, accumulator: FloatFormat = FLOAT32, chunk: int = 1, rounding: Rounding = ties_to_even) -> np.ndarray:
    """Multiply [M, K] by [K, N] exactly and round the running total to `accumulator` after every `chunk` products.

    `a`, `b`: real numbers, taken as they are: round them to the format of the operands first. Returns float64 [M, N],
    values of the accumulator. `utils.emulation.rounded_matmul.matmul` is the fast twin for tensors.

    A product is exact if the significands of its two factors have 53 bits together, as any two float32 values do; with
    wider factors it is rounded to float64 first. With `chunk` = 1 every total is then the exact sum rounded once. The
    products of a longer chunk are added in float64 before that: exact if they span at most 53 bits, otherwise with
    float64's rounding error, whose last bits depend on the order in which NumPy adds.

    Raises: ValueError for shapes that do not fit, for a chunk that is not a whole number from 1 on, and for a text in
    place of the accumulator's format; and what `add` raises.
    """
    if isinstance(accumulator, str):
        raise ValueError(
            f"accumulator is a FloatFormat, not {accumulator!r}; take FORMATS[name] from utils.formats,"
            f" where name is one of {', '.join(FORMATS)}"
        )
    _check(accumulator, rounding)
    check_count(chunk, "chunk")
    a, b = as_float64(a), as_float64(b)
    check_shapes(a.shape, b.shape)
    total = np.zeros((a.shape[0], b.shape[1]))
    for start in range(0, a.shape[1], chunk):
        with np.errstate(over="ignore", invalid="ignore"):  # inf * 0
            products = a[:, start : start + chunk] @ b[start : start + chunk]
        total = _add(total, products, accumulator, rounding)
    return total


def stall(increment: float, fmt: FloatFormat, start: float = 0.0) -> float:
    """Return the total at which adding `increment` again and again no longer changes anything, under ties to even.

    The increment is taken as it is, not rounded to the format; `start` is rounded to it. Rounding never swaps two
    numbers, so the total cannot jump over a value that would stay where it is: it ends in the first such value at or
    past the start. A value stays if the increment is less than half the gap above it, or half of it and the value's
    last bit is 0. The gaps change at powers of two only, so the start, the powers of two past it and the one value
    after each of these are all to look at; on the way to zero, where gaps shrink, the start and the value after it.

    If no value stays, the total overflows, and that is the answer: an infinity, or NaN where the format has none.
    Raises: ValueError as `add` does, and for an increment or a start that is not finite.
    """
    _check(fmt, ties_to_even)
    increment, start = as_float64(increment), as_float64(start)
    if increment.shape or start.shape:
        raise ValueError("stall() takes one increment and one start; call it once for each")
    if not (np.isfinite(increment) and np.isfinite(start)):
        raise ValueError(f"a sum of {increment} from {start} has no stall: give finite numbers")
    if increment < 0:
        return -stall(-increment, fmt, start=-start)
    start = float(quantize(start, fmt))
    first = np.concatenate([[start], np.ldexp(1.0, np.arange(fmt.emin, fmt.emax + 1))])
    candidates = np.concatenate([first, first + ulp(first, fmt)])
    candidates = candidates[(candidates >= start) & (candidates <= fmt.max)]
    stays = candidates[_add(candidates, increment, fmt, ties_to_even) == candidates]
    return float(stays.min() if stays.size else quantize(np.inf, fmt))


def check_count(count: int, name: str) -> None:
    """Raise ValueError unless `count` is a whole number from 1 on; `name` is what the message calls it."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise ValueError(f"{name} is a whole number from 1 on, not {count!r}")


def check_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Raise ValueError unless the shapes are [M, K] and [K, N]."""
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise ValueError(f"a is {tuple(a)} and b is {tuple(b)}; they have to be [M, K] and [K, N]")


def _add(a: np.ndarray, b: np.ndarray, fmt: FloatFormat, rounding: Rounding) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # inf - inf
        total = a + b
        if fmt.precision <= MOST_PRECISION:
            swap = np.abs(a) < np.abs(b)
            large, small = np.where(swap, b, a), np.where(swap, a, b)
            lost = small - (total - large)  # exact (Dekker's Fast2Sum): total + lost = a + b
            is_even = np.asarray(total).view(np.int64) & 1 == 0
            total = np.where((lost != 0) & is_even & np.isfinite(lost), np.nextafter(total, lost * np.inf), total)
            beyond = np.isinf(total) & np.isfinite(a) & np.isfinite(b)  # past float64, not infinite
            total = np.where(beyond, np.copysign(np.finfo(np.float64).max, total), total)
    return quantize(total, fmt, rounding=rounding)


def _last_axis(steps, values, start) -> np.ndarray:
    values = _with_axis(values)
    shape = np.broadcast_shapes(values.shape[:-1], np.shape(start))
    return np.moveaxis(np.array(steps).reshape(values.shape[-1], *shape), 0, -1)


def _with_axis(values) -> np.ndarray:
    values = as_float64(values)
    if values.ndim == 0:
        raise ValueError(f"a sum needs an axis to run along, not the number {values}; pass an array [..., n]")
    return values


def _check(fmt: FloatFormat, rounding: Rounding) -> None:
    check_format(fmt)
    if not fmt.has_zero:
        raise ValueError(f"{fmt.name} has no zero and no sign: it holds scales, not sums; add in another format")
    as_numpy = fmt.mantissa_bits == 52 and fmt.emin == -1022 and rounding is ties_to_even
    if fmt.precision > MOST_PRECISION and not as_numpy:
        raise ValueError(
            f"{fmt.name} has {fmt.precision} significant bits: float64 sums are exact for at most {MOST_PRECISION},"
            " and for float64 itself with ties_to_even"
        )
