"""What DotProduct adds and how: its operands, which the page makes bit for bit as well, and its lanes."""

from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import torch

from utils.emulation.rounded_matmul import kahan_matmul, matmul, pairwise_matmul
from utils.emulation.tensor_core import aligned_matmul, truncating_matmul
from utils.formats import FORMATS
from utils.rounding import quantize
from utils.widgets.shared.choices import one_of
from utils.widgets.shared.numbers.dice import dice, nearly_normal

MOST = 65_536  # products
DATA = {
    "ones": "ones",
    "quarters": "1/4 each",
    "uniform": "uniform in [0, 1)",
    "normal": "normal",
    "large": "one large, many small",
}
EQUAL_FACTORS = {"ones": 1.0, "quarters": 0.5}  # both factors of every product
OPERANDS = ("float16", "bfloat16", "float8_e4m3fn")
LARGE, SMALL = 32.0, 0.125  # both factors of the first product, and of all others: 1024, then 1/64 again and again
BLOCKS = (1, 4, 8, 16, 32)
PROMOTES = (0, *(2**power for power in range(5, 13)))  # 0: never


@dataclass(frozen=True)
class LaneAdder:
    """How a lane adds. `kind`: "running", "pairwise" or "kahan" in a format; "cut" or "aligned" with `bits` bits."""

    label: str
    kind: str
    format: str | None = None
    bits: int | None = None
    block: int = 1  # products that are added at once, where nothing else is said

    @property
    def blocks(self) -> tuple[int, ...]:
        """How many products it may add at once."""
        return (1,) if self.kind in ("pairwise", "kahan") else BLOCKS


ADDERS: dict[str, LaneAdder] = {
    "float32": LaneAdder("float32", "running", "float32"),
    "float16": LaneAdder("float16", "running", "float16"),
    "bfloat16": LaneAdder("bfloat16", "running", "bfloat16"),
    "float16-pairwise": LaneAdder("float16, in pairs", "pairwise", "float16"),
    "bfloat16-pairwise": LaneAdder("bfloat16, in pairs", "pairwise", "bfloat16"),
    "float16-kahan": LaneAdder("float16, Kahan", "kahan", "float16"),
    "bfloat16-kahan": LaneAdder("bfloat16, Kahan", "kahan", "bfloat16"),
    "fp8-14bit": LaneAdder("14 bits, total cut", "cut", bits=14, block=32),
    "fp8-aligned": LaneAdder("14 bits, addends cut", "aligned", bits=14, block=32),
    "volta": LaneAdder("24 bits, addends cut", "aligned", bits=24, block=4),
}  # the names are those of utils.emulation.accumulators, where it has the same


@dataclass(frozen=True)
class Lane:
    """One way to add the products.

    `adder`: a name in `ADDERS`. `block`: how many products it adds at once before it rounds; 0: the adder's own
    number. `promote`: after so many products the total is added to one of float32 and starts again from 0; 0: never.

    Raises: ValueError for an adder, a block or a promotion that is not one of those.
    """

    adder: str = "float16"
    block: int = 0
    promote: int = 0

    def __post_init__(self):
        blocks = ADDERS[one_of(self.adder, ADDERS, "adder")].blocks
        if self.block not in (0, *blocks):
            choices = ", ".join(map(str, blocks))
            raise ValueError(f"block {self.block!r} is not one of those that {self.adder} has: {choices}; 0 is its own")
        if self.promote not in PROMOTES:
            raise ValueError(f"promote {self.promote!r} is not one of {', '.join(map(str, PROMOTES))}; 0 is never")
        if self.block == 0:
            object.__setattr__(self, "block", ADDERS[self.adder].block)

    @property
    def label(self) -> str:
        """The lane in words."""
        at_once = f", {self.block} products at once" if self.block > 1 else ""
        return f"{ADDERS[self.adder].label}{at_once}{f', promoted every {self.promote:,}' if self.promote else ''}"

    def state(self) -> dict:
        """Return the lane as JSON for the page."""
        return asdict(self)

    def matmul(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply [M, K] by [K, N] as this lane does; float32 [M, N]. Raises what `rounded_matmul.matmul` does."""
        adder = ADDERS[self.adder]
        if adder.format is None:
            how = {"block": self.block, "promote": self.promote or None}
            if adder.kind == "cut":
                return truncating_matmul(a, b, bits=adder.bits, **how)
            return aligned_matmul(a, b, fraction_bits=adder.bits - 1, **how)
        fmt, count = FORMATS[adder.format], a.shape[1]
        if adder.kind == "running":
            add = partial(matmul, accumulator=fmt, chunk=self.block)
        else:
            add = partial(pairwise_matmul if adder.kind == "pairwise" else kahan_matmul, accumulator=fmt)
        total, size = None, self.promote or max(count, 1)
        for start in range(0, max(count, 1), size):
            part = add(a[:, start : start + size], b[start : start + size])
            total = part if total is None else total + part
        return total


def operands(data: str, products: int, operand_format: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the two vectors of the dot product, values of the format: float64 [products] each.

    `data`: a key of `DATA`. "uniform" and "normal" are drawn by `dice.nearly_normal` and rounded to the format with
    ties to even. The first products do not depend on how many there are.
    """
    if data in EQUAL_FACTORS:
        factors = np.full(products, EQUAL_FACTORS[data])
        return factors, factors.copy()
    if data == "large":
        x = np.where(np.arange(products) == 0, LARGE, SMALL)
        return x, x.copy()
    x = (dice if data == "uniform" else nearly_normal)(seed, 2 * products).reshape(products, 2)
    a, b = quantize(x.T, FORMATS[operand_format])
    return a, b
