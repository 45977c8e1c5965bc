"""The accumulators that the book compares, by name: how each one adds the exact products of a matrix product.

    for each in ACCUMULATORS.values():
        total = each.matmul(a, b)          # [M, K] @ [K, N] -> float32 [M, N]

What an entry says about itself is enough for a table, a curve or a widget: the significant bits of the total, how many
products are added before the total is rounded, by which rule, and after how many the total moves on to float32.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from utils.emulation.rounded_matmul import kahan_matmul, matmul, pairwise_matmul
from utils.emulation.tensor_core import TENSOR_CORES, truncating_matmul
from utils.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FloatFormat
from utils.rounding import Rounding, stochastic, ties_to_even, toward_zero

N_C = 128  # products between two promotions: DeepSeek-V3, arXiv 2412.19437, 3.3.2


@dataclass(frozen=True)
class Accumulator:
    """One way to add the products of a matrix product.

    `matmul` takes a [M, K] and b [K, N], tensors of any floating dtype on one device, and returns float32 [M, N]. It
    rounds no operand: `operands` is the format whose values it is meant for, and rounding to it is the caller's.
    """

    name: str
    label: str  # for prose and figures
    matmul: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    operands: FloatFormat
    precision: int  # significant bits of the total
    block: int  # products added at once, before the total is rounded
    rounding: Rounding  # of the total: ties to even, toward zero, which cuts it off, or a stochastic one
    aligned: bool  # each addend of a block is cut where the largest one's bits end, before it is added
    promote: int | None  # products after which the total is added to one of float32; None: never
    order: str  # "running": one total from the first product to the last; "pairwise": a tree; "kahan": compensated
    source: str  # where it is known from: a standard, a citation, or "model: ..."

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of one rounding of the total: 2**-p to nearest, else twice that."""
        return 2.0**-self.precision if self.rounding is ties_to_even else 2.0 ** (1 - self.precision)


def _rounded(name: str, label: str, fmt: FloatFormat, *, how: Callable = matmul, **changed) -> Accumulator:
    """Return an accumulator whose total is a value of `fmt`, rounded to it with ties to even."""
    usual = {
        "operands": FLOAT16,
        "precision": fmt.precision,
        "block": 1,
        "rounding": ties_to_even,
        "order": "running",
        "source": "IEEE 754 additions of exact products",
    }
    return Accumulator(name, label, partial(how, accumulator=fmt), aligned=False, promote=None, **(usual | changed))


def _cut(name: str, label: str, unit: str, *, promote: int | None = None, how: Callable | None = None, **changed):
    """Return an accumulator with the numbers of a tensor core by name, whose total is cut off; `how` may be another."""
    core = TENSOR_CORES[unit]
    usual = {
        "operands": core.operands[0],
        "precision": core.precision,
        "block": core.block,
        "rounding": toward_zero,
        "order": "running",
        "aligned": how is None,
        "source": core.source,
    }
    matmul = partial(how or core.matmul, promote=promote)
    return Accumulator(name, label, matmul, promote=promote, **(usual | changed))


_TOTAL_CUT = "model: the 14 bits of DeepSeek-V3 (arXiv 2412.19437, 3.3.2) with exact blocks, for comparison"
_PROMOTED = f"; promotion every {N_C}: DeepSeek-V3, arXiv 2412.19437, 3.3.2"

ACCUMULATORS: dict[str, Accumulator] = {
    accumulator.name: accumulator
    for accumulator in (
        _rounded("float32", "float32, one by one", FLOAT32),
        _rounded("float16", "float16, one by one", FLOAT16),
        _rounded(
            "bfloat16",
            "bfloat16, one by one",
            BFLOAT16,
            operands=BFLOAT16,
            source="model: additions of exact products, rounded to bfloat16 as IEEE 754 rounds",
        ),
        _rounded(
            "float16-chunk16",
            "float16, 16 at a time",
            FLOAT16,
            how=partial(matmul, chunk=16),
            block=16,
            source="model: 16 exact products at a time, then one rounding as in IEEE 754",
        ),
        _rounded(
            "float16-pairwise",
            "float16, in pairs",
            FLOAT16,
            how=pairwise_matmul,
            order="pairwise",
            source="IEEE 754 additions; the tree: Higham, Accuracy and Stability of Numerical Algorithms, 4.1",
        ),
        _rounded(
            "float16-kahan",
            "float16, Kahan",
            FLOAT16,
            how=kahan_matmul,
            order="kahan",
            source="IEEE 754 additions; the compensation: Kahan, CACM 8, 1965",
        ),
        _cut("volta", "V100: four at a time, float32 cut off", "volta"),
        _cut("fp8-14bit", "14 bits, total cut", "hopper-fp8", how=truncating_matmul, source=_TOTAL_CUT),
        _cut(
            "fp8-14bit-128",
            "14 bits, total cut, promoted every 128",
            "hopper-fp8",
            how=truncating_matmul,
            promote=N_C,
            source=_TOTAL_CUT + _PROMOTED,
        ),
        _cut("fp8-aligned", "14 bits, addends cut", "hopper-fp8"),
        _cut(
            "fp8-aligned-128",
            "14 bits, addends cut, promoted every 128",
            "hopper-fp8",
            promote=N_C,
            source=TENSOR_CORES["hopper-fp8"].source + _PROMOTED,
        ),
    )
}


def exact(operands: FloatFormat) -> Accumulator:
    """Return the way to add that all others are held against: sums in float64, the result rounded to float32.

    What is left of an error beside it is the accumulator's; what it has itself comes from rounding the operands.
    """
    return Accumulator(
        f"exact-{operands}",
        f"exact sums of {operands}",
        _in_float64,
        operands=operands,
        precision=FLOAT64.precision,
        block=1,
        rounding=ties_to_even,
        aligned=False,
        promote=None,
        order="running",
        source="IEEE 754 additions in float64",
    )


def _in_float64(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() @ b.double()).float()


def stochastic_float16(seed: int) -> Accumulator:
    """Return float16 totals that are rounded up or down at random, so that no sum stalls; each call draws anew.

    The probability is that which makes the expected total exact (Connolly, Higham and Mary, SISC 43, A566, 2021). No
    tensor core does this; the sums run through `utils.accumulation`, so they are slow.
    """
    rule = stochastic(np.random.default_rng(seed))
    return _rounded(
        "float16-stochastic",
        "float16, stochastic rounding",
        FLOAT16,
        how=partial(matmul, rounding=rule),
        rounding=rule,
        source="model: no tensor core rounds its totals at random",
    )
