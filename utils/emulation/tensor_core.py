"""The adders of tensor cores as models: products exact, addends cut off at a width, totals promoted to float32.

* `truncating_matmul`: the total loses all but `bits` significant bits after every block;
* `aligned_matmul`: all addends of a block are cut at one place, `fraction_bits` below the largest exponent of theirs;
* `TENSOR_CORES`: the units of NVIDIA's generations, which add in the second way, by name.

Both functions take a [M, K] and b [K, N], tensors of any floating dtype on one device, and give float32 [M, N].

Goal: 256 x 256 with K = 8192 in at most 0.3 s on two cores; `bench/accumulation.py` measures it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from utils.accumulation import check_count
from utils.emulation.block_exponents import LargestPowers, powers
from utils.emulation.carriers import SMALLEST_FACTOR, codes, exact_in_float32
from utils.emulation.rounded_matmul import columns_and_rows, operands, tile_height
from utils.formats import BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT16, FLOAT32, FORMATS, TF32, FloatFormat

MOST_FRACTION_BITS = 25
FLUSH = 2.0**-126  # the smallest normal number of float32
ZERO = -133  # exponent at which a 0 is aligned: no block is aligned below it


@dataclass(frozen=True)
class TensorCore:
    """One unit: what it multiplies, how many products meet in one addition, and where that cuts its addends."""

    label: str
    operands: tuple[FloatFormat, ...]
    block: int  # products that are added at once
    fraction_bits: int  # kept of an addend below the largest exponent
    zero_exponent: int = ZERO
    source: str = "Xie, Wang, Yang and Yang, arXiv 2511.10909, 2025"

    @property
    def precision(self) -> int:
        """Significant bits of the total: float32, or what `fraction_bits` leave of it (E8M13 in FP8)."""
        return total_bits(self.fraction_bits)

    def matmul(self, a: torch.Tensor, b: torch.Tensor, *, c: torch.Tensor | None = None, promote: int | None = None):
        """Multiply as `aligned_matmul` with the numbers of this unit; float32 holds values of its first operand format.

        A unit for TF32 reads 19 bits of a float32: it cuts the other 13 off.
        """
        if self.operands == (TF32,):
            a, b = (_first_19_bits(x) for x in operands(a, b))
        return aligned_matmul(
            a,
            b,
            c=c,
            block=self.block,
            fraction_bits=self.fraction_bits,
            operand_format=self.operands[0],
            zero_exponent=self.zero_exponent,
            promote=promote,
        )


_HALVES, _EIGHTS, _VOLTA = (FLOAT16, BFLOAT16), (FLOAT8_E4M3FN, FLOAT8_E5M2), -131
_AMPERE = -132  # and Turing, and Ada
# Found from outside by Xie et al. and held bit for bit against the hardware; the numbers are those of their code,
# github.com/microsoft/MMA-Sim (nv_ptx/sim.py, version 2.1.1), for float32 results. Hopper: wgmma; Blackwell: tcgen05.
TENSOR_CORES: dict[str, TensorCore] = {
    "volta": TensorCore(
        "V100, float16",
        (FLOAT16,),
        block=4,
        fraction_bits=23,
        zero_exponent=_VOLTA,
        source="Fasi, Higham, Mikaitis and Pranesh, PeerJ CS 7:e330, 2021; Xie et al., arXiv 2511.10909, 2025",
    ),
    "turing": TensorCore("Turing, float16", (FLOAT16,), block=8, fraction_bits=24, zero_exponent=_AMPERE),
    "ampere": TensorCore("Ampere, 16 bits", _HALVES, block=8, fraction_bits=24, zero_exponent=_AMPERE),
    "ampere-tf32": TensorCore("Ampere, TF32", (TF32,), block=4, fraction_bits=24, zero_exponent=_AMPERE),
    "ada": TensorCore("Ada, 16 bits", _HALVES, block=8, fraction_bits=24, zero_exponent=_AMPERE),
    "ada-tf32": TensorCore("Ada, TF32", (TF32,), block=4, fraction_bits=24, zero_exponent=_AMPERE),
    "ada-fp8": TensorCore("Ada, FP8", _EIGHTS, block=16, fraction_bits=13, zero_exponent=_AMPERE),
    "hopper": TensorCore("Hopper, 16 bits", _HALVES, block=16, fraction_bits=25),
    "hopper-tf32": TensorCore("Hopper, TF32", (TF32,), block=8, fraction_bits=25),
    "hopper-fp8": TensorCore("Hopper, FP8", _EIGHTS, block=32, fraction_bits=13),
    "blackwell": TensorCore("Blackwell, 16 bits", _HALVES, block=16, fraction_bits=25),
    "blackwell-tf32": TensorCore("Blackwell, TF32", (TF32,), block=8, fraction_bits=25),
    "blackwell-fp8": TensorCore("Blackwell, FP8", _EIGHTS, block=32, fraction_bits=25),
}


def total_bits(fraction_bits: int) -> int:
    """Return the significant bits of the total of an adder of aligned addends: one more, and at most float32's."""
    return min(fraction_bits + 1, FLOAT32.precision)


def truncating_matmul(
    a: torch.Tensor, b: torch.Tensor, *, bits: int = 14, block: int = 32, promote: int | None = None
) -> torch.Tensor:
    """Add the exact sum of each block to a total that keeps `bits` significant bits: what is below is cut off.

    `promote`: after every so many products (N_C in DeepSeek-V3, arXiv 2412.19437, 3.3.2; a multiple of `block`) the
    total is added to one of float32, to nearest, and starts again from 0. Returns float32 [M, N]. The sum of a block
    is that of float64, exact while its products span 53 bits. Raises: ValueError as `matmul` does, for bits outside
    1 ... 24 and for a `promote` that is no multiple of `block`.

    The total's exponent is not limited here: what lies past float32 becomes infinite when it is promoted or returned.
    """
    if not 1 <= bits <= 24:
        raise ValueError(f"bits {bits} is not in 1 ... 24, the significant bits of float32")
    a, b = (x.double() for x in operands(a, b))

    def add_block(total, start, stop):
        return _truncate(torch.addmm(total, a[:, start:stop], b[start:stop]), bits)

    return _promoted(a.new_zeros(a.shape[0], b.shape[1]), add_block, a.shape[1], block, promote)


def aligned_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    c: torch.Tensor | None = None,
    block: int = 32,
    fraction_bits: int = 13,
    operand_format: FloatFormat | None = None,
    zero_exponent: int = ZERO,
    promote: int | None = None,
) -> torch.Tensor:
    """Return c + a @ b, each block and the total aligned to the largest exponent and cut before they are added.

    The exponent of a product is the sum of its factors', so it may lie one place below the product's leading bit. Of
    each addend the bits down to 2**(largest exponent - fraction_bits) are kept, the rest is cut off, toward zero; these
    are added exactly, and the sum is cut to `total_bits(fraction_bits)` significant bits of a float32, toward zero.

    A subnormal factor has the lowest exponent of its format: that of its dtype, or for float32 and float64
    `operand_format` (None: float32). A zero has `zero_exponent`, at most -126: it counts for sums near float32's
    smallest normal number. `c`: float32 [M, N], the first total, or None for 0. `promote` is that of
    `truncating_matmul`. Where an operand is not finite, the result is that of IEEE 754; past float32 it is infinite.

    Raises: ValueError as `truncating_matmul` does; `fraction_bits` is in 1 ... 25. Source: Xie, Wang, Yang and Yang,
    "MMA-Sim", arXiv 2511.10909, 2025, for units from the V100 to Blackwell (their T-FDPA).
    """
    if not 1 <= fraction_bits <= MOST_FRACTION_BITS:
        raise ValueError(
            f"fraction_bits {fraction_bits} is not in 1 ... {MOST_FRACTION_BITS}, what an int32 has room for"
        )
    emins = [_lowest_exponent(x, operand_format) for x in (a, b)]
    a, b = operands(a, b)
    check_count(block, "block")
    first = torch.zeros((), device=a.device) if c is None else c.float()
    if (ideal := _not_finite(a, b, first)) is not None:
        a, b, first = (torch.where(torch.isfinite(x), x, 0.0) for x in (a, b, first))
    block = max(1, min(block, a.shape[1])) if promote is None else block
    in_float32 = exact_in_float32(a, b) and _exact_beside_products(first)
    columns, rows = columns_and_rows(a, b, torch.float32 if in_float32 else torch.float64)
    total = first.to(columns.dtype).expand(a.shape[0], b.shape[1]).contiguous()
    smallest = SMALLEST_FACTOR**2 if in_float32 else 2.0**zero_exponent
    height = tile_height(a.device, max(1, block * b.shape[1] // 4))
    tiles = []
    with torch.inference_mode():  # a sixth of the time of a call
        left, right = (powers(x, emin) for x, emin in zip((columns, rows), emins, strict=True))
        largest = LargestPowers(left, right, block, smallest=smallest, beside=_least_size(first))
        for part in (slice(top, top + height) for top in range(0, a.shape[0], height)):
            add_block = _aligned_adder(columns[:, part], rows, block, fraction_bits, largest.of_rows(part))
            tiles.append(_promoted(total[part], add_block, a.shape[1], block, promote))
    total = torch.cat(tiles) if tiles else total.float()
    return total if ideal is None else torch.where(torch.isfinite(ideal), total, ideal.float())


def _aligned_adder(
    columns: torch.Tensor,
    rows: torch.Tensor,
    block: int,
    fraction_bits: int,
    largest: Callable[[int, int], torch.Tensor],
) -> Callable[[torch.Tensor, int, int], torch.Tensor]:
    """Return the function that adds the products start, ..., stop - 1 to a total, of columns [K, M, 1], rows [K, 1, N].

    In whole steps every addend has at most fraction_bits + 2 bits: int32 holds it, and a conversion cuts off the rest
    (`trunc_` takes ten times as long on a CPU). All views are made once.
    """
    shape = columns.shape[1], rows.shape[2]
    addends = columns.new_empty(block + 1, *shape)
    whole = torch.empty_like(addends, dtype=torch.int32)
    first = addends[0]
    step, per_step = columns.new_empty(2, *shape)
    (total_code, mask), (step_code, _) = codes(first), codes(step)
    few = (block + 1).bit_length() + fraction_bits < 29
    sums = torch.empty_like(first, dtype=torch.int32 if few else torch.int64)
    wide = torch.empty_like(first, dtype=torch.float64)
    ulp = columns.new_tensor(2.0**-fraction_bits)
    near_zero = columns.dtype == torch.float64  # or past float32: it has to be looked at
    views = {}

    def add_block(total: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        count = stop - start
        if count not in views:  # the total stands before the products
            views[count] = addends[1 : count + 1], addends[: count + 1], whole[: count + 1]
        products, terms, integers = views[count]
        if total is not first:
            first.copy_(total)
        torch.mul(columns[start:stop], rows[start:stop], out=products)
        torch.bitwise_and(total_code, mask, out=step_code)  # 2**floor(log2 |total|)
        if near_zero:
            step.copy_(torch.where(first == 0, 0.0, step.clamp(min=FLUSH)))
        torch.maximum(step, largest(start, stop), out=step).mul_(ulp)
        integers.copy_(terms.mul_(torch.reciprocal(step, out=per_step)))
        torch.sum(integers, dim=0, dtype=sums.dtype, out=sums)
        return first.copy_(_truncate(wide.copy_(sums), total_bits(fraction_bits))).mul_(step)

    return _within_float32(add_block, total_bits(fraction_bits)) if near_zero else add_block


def _within_float32(add_block, bits: int) -> Callable[[torch.Tensor, int, int], torch.Tensor]:
    """Return the function that adds float64 totals as float32 ones: cut below its smallest places, infinite past it."""
    last = FLUSH * 2.0 ** (1 - bits)

    def add(total: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        ended = torch.isinf(total)
        block_sum = add_block(torch.where(ended, 0.0, total), start, stop)
        block_sum = torch.where(block_sum.abs() < FLUSH, torch.trunc(block_sum / last) * last, block_sum)
        block_sum = torch.where(block_sum.abs() < 2.0**128, block_sum, block_sum * math.inf)
        return torch.where(ended, total, block_sum)

    return add


def _lowest_exponent(x: torch.Tensor, operand_format: FloatFormat | None) -> int:
    """Return the exponent of subnormal numbers of a tensor; that of float32 where nothing narrower is known."""
    return (_narrow_formats().get(x.dtype) or operand_format or FLOAT32).emin


@cache
def _narrow_formats() -> dict[torch.dtype, FloatFormat]:
    return {fmt.torch_dtype: fmt for fmt in FORMATS.values() if fmt.torch_dtype and fmt.bits < FLOAT32.bits}


def _first_19_bits(x: torch.Tensor) -> torch.Tensor:
    return (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


def _least_size(x: torch.Tensor) -> float:
    size = x.abs()
    return float(torch.where(size > 0, size, math.inf).amin()) if x.numel() else math.inf


def _not_finite(a: torch.Tensor, b: torch.Tensor, first: torch.Tensor) -> torch.Tensor | None:
    """Return first + a @ b where an operand is not finite: then IEEE 754 decides, no width does."""
    if all(torch.isfinite(x).all() for x in (a, b, first)):
        return None
    return first.double() + a.double() @ b.double()


def _exact_beside_products(first: torch.Tensor) -> bool:
    """Say whether float32 holds the sums of these numbers and of products for which `exact_in_float32` holds."""
    size = first.float().abs()
    return bool(((size == 0) | ((size >= SMALLEST_FACTOR**2) & (size < SMALLEST_FACTOR**-2))).all())


def _promoted(first: torch.Tensor, add_block, count: int, block: int, promote: int | None) -> torch.Tensor:
    """Add block after block; with `promote`, hand the total over to one of float32 after every so many products."""
    check_count(block, "block")
    if promote is not None and (promote < 1 or promote % block):
        raise ValueError(f"promote {promote} is no multiple of the block of {block}: a total is promoted after a block")
    total, promoted = first, None
    for start in range(0, count, block):
        stop = min(start + block, count)
        total = add_block(total, start, stop)
        if promote is not None and (stop % promote == 0 or stop == count):
            promoted = total.to(torch.float32, copy=True) if promoted is None else promoted.add_(total.float())
            total = torch.zeros_like(total)
    return total.float() if promoted is None else promoted


def _truncate(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Cut off, in place, all but `bits` significant bits."""
    code, width = (torch.int64, 53) if x.dtype == torch.float64 else (torch.int32, 24)
    x.view(code).bitwise_and_(-1 << (width - bits))
    return x
