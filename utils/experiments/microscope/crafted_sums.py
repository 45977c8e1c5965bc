"""Put crafted sums through any matrix product, many at a time, and keep a log of their results.

Sum i is row i of a times column i of b: each has its own factors in every place. All products have one shape, so that
a library cannot switch to another kernel.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from utils.formats import FORMATS, FloatFormat

Matmul = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Value = float | tuple[float, float]  # a product, which `Sums.factors` splits, or its two factors

WIDTH = 16  # rows of a and columns of b; FP8 products want multiples of 16 on CUDA


@dataclass(frozen=True)
class Probe:
    """One crafted sum and its result.

    `terms`: values, or pairs of factors, by place; `rest`: in the other places of `within`, from first to before end.
    """

    about: str
    terms: tuple[tuple[int, Value], ...]
    rest: float
    within: tuple[int, int]
    result: float

    def __str__(self) -> str:
        places = ", ".join(f"{_write(value)} in place {place}" for place, value in self.terms)
        first, end = self.within
        elsewhere = f", {_write(self.rest)} in the others of {first} to {end - 1}" if self.rest else ""
        return f"{places}{elsewhere}: {_write(self.result)}"


def _write(value: Value) -> str:
    """Write a number as a whole number times a power of two, where that is shorter than its digits."""
    if isinstance(value, tuple):
        return " x ".join(map(_write, value))
    if not value or not math.isfinite(value):
        return f"{value:g}"
    numerator, denominator = float(value).as_integer_ratio()
    twos = (numerator & -numerator).bit_length() - 1  # how often 2 divides it
    power = twos - (denominator.bit_length() - 1)  # the denominator is a power of two
    odd = numerator >> twos
    if -6 < power < 6 and abs(value) < 1000:
        return f"{value:g}"
    sign = "-" if odd < 0 else ""
    return f"{sign}2**{power}" if abs(odd) == 1 else f"{odd} * 2**{power}"


def format_of(dtype: torch.dtype) -> FloatFormat:
    """Return the format of a floating dtype. Raises: ValueError where the table has none."""
    for fmt in FORMATS.values():
        if fmt.torch_dtype == dtype:
            return fmt
    raise ValueError(f"{dtype} is no floating dtype of the table; use one of torch.float64 ... torch.float8_e5m2")


@dataclass
class Sums:
    """A matrix product that is asked for crafted sums of `places` products each; `log` keeps every answer."""

    matmul: Matmul
    dtype: torch.dtype
    places: int
    device: torch.device | str = "cpu"
    width: int = WIDTH
    log: list[Probe] = field(default_factory=list)

    def __post_init__(self):
        self.format = format_of(self.dtype)
        self.output: torch.dtype | None = None  # of the results, after the first product

    @property
    def lowest(self) -> int:
        """The exponent of the smallest product of two values, subnormals included."""
        return 2 * (self.format.emin - self.format.mantissa_bits)  # 2**(emin - M) is the smallest subnormal

    @property
    def highest(self) -> int:
        """The largest exponent of a product."""
        return 2 * self.format.emax

    def ask(
        self,
        about: str,
        sums: Sequence[Mapping[int, Value]],
        rest: float = 0.0,
        within: tuple[int, int] | None = None,
    ) -> list[float]:
        """Return the results of the sums, each of which maps places to values.

        The other places hold `rest`, or only those of `within` (first, end); all that remain hold 0.
        """
        first, end = within or (0, self.places)
        results: list[float] = []
        for start in range(0, len(sums), self.width):
            part = sums[start : start + self.width]
            a, b = np.zeros((2, self.width, self.places))
            a[:, first:end], b[:, first:end] = self.factors(rest)
            for row, terms in enumerate(part):
                for place, value in terms.items():
                    a[row, place], b[row, place] = self.factors(value)
            results += self.products(a, b)[: len(part)]
        self.log += [
            Probe(about, tuple(terms.items()), rest, (first, end), result)
            for terms, result in zip(sums, results, strict=True)
        ]
        return results

    def products(self, a: np.ndarray, b: np.ndarray) -> list[float]:
        """Return the sum of a[i] * b[i] over the places for each row i; a and b: [width, places], float64.

        Raises: ValueError where the dtype cannot hold a factor, TypeError where the product gives no matrix.
        """
        return [float(x) for x in self.product(a, b).diagonal()]  # row i of a times column i of b.T

    def product(self, a: np.ndarray, b: np.ndarray) -> torch.Tensor:
        """Return a @ b.T as float64 [width, width] on the CPU; the arguments and errors of `products`."""
        left, right = (torch.from_numpy(x).to(self.dtype) for x in (a, b))
        if not all(np.array_equal(x.double().numpy(), y) for x, y in ((left, a), (right, b))):
            raise ValueError(f"a factor of a crafted sum is no value of {self.format.name}")
        with torch.no_grad():
            result = self.matmul(left.to(self.device), right.to(self.device).t().contiguous())  # [M, K] @ [K, M]
        if not isinstance(result, torch.Tensor) or result.shape != (self.width, self.width):
            raise TypeError(f"the matrix product gave no tensor [{self.width}, {self.width}]")
        self.output = result.dtype
        return result.detach().to("cpu", torch.float64)

    def factors(self, value: Value) -> tuple[float, float]:
        """Split a value into factors of about the same exponent: products reach twice as far as their factors."""
        if isinstance(value, tuple):
            return value
        if not value:
            return 0.0, 0.0
        fraction, exponent = math.frexp(value)
        half = (exponent - 1) // 2  # value = 2 fraction * 2**(exponent - 1), 1 <= 2 |fraction| < 2
        return math.ldexp(2 * fraction, half), math.ldexp(1.0, exponent - 1 - half)
