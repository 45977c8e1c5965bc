"""The adders of tensor cores as models: products exact, addends cut off at a width, totals promoted to float32.

* `truncating_matmul`: the total loses all but `bits` significant bits after every block;
* `aligned_matmul`: all addends of a block are cut at one place, `fraction_bits` below the leading bit of the largest.

Both take a [M, K] and b [K, N], tensors of any floating dtype on one device, and give float32 [M, N]. They are models:
what is published says how wide the real adders are, not everything about how they round.

Goal: 256 x 256 with K = 8192 in at most 0.3 s on two cores; `bench/accumulation.py` measures it.
"""

from dataclasses import dataclass

import torch

from utils.carriers import SMALLEST_FACTOR, SMALLEST_SUM, codes, exact_in_float32
from utils.dot_products import check_count, columns_and_rows, operands, tile_height

FLUSH = 2.0**-126  # no block is aligned below the smallest normal of float32


@dataclass(frozen=True)
class TensorCore:
    """What is known of one unit: addends of a block, bits kept below the largest addend's leading bit."""

    block: int  # products that are added at once
    fraction_bits: int

    def matmul(self, a: torch.Tensor, b: torch.Tensor, *, c: torch.Tensor | None = None, promote: int | None = None):
        """Multiply as `aligned_matmul` with the numbers of this unit."""
        return aligned_matmul(a, b, c=c, block=self.block, fraction_bits=self.fraction_bits, promote=promote)


# Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021: the V100 adds
# four products and c without extra bits, and truncates.
VOLTA = TensorCore(block=4, fraction_bits=23)
# DeepSeek-V3 (arXiv 2412.19437, 3.3.2) saw about 14 bits; Xie, Wang, Yang and Yang, "MMA-Sim" (arXiv 2511.10909, 2025)
# found block, width and truncation on Hopper, bit for bit. They align by the factors' exponents: one place off at most.
HOPPER_FP8 = TensorCore(block=32, fraction_bits=13)


def truncating_matmul(
    a: torch.Tensor, b: torch.Tensor, *, bits: int = 14, block: int = 32, promote: int | None = None
) -> torch.Tensor:
    """Add the exact sum of each block to a total that keeps `bits` significant bits: what is below is cut off.

    `promote`: after every so many products (N_C in DeepSeek-V3, arXiv 2412.19437, 3.3.2; a multiple of `block`) the
    total is added to one of float32, to nearest, and starts again from 0. Returns float32 [M, N]. The sum of a block
    is that of float64, exact while its products span 53 bits. Raises ValueError as `matmul` does, for bits outside
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
    promote: int | None = None,
) -> torch.Tensor:
    """Give c + a @ b, where each block and the total are aligned to their largest addend and cut before they are added.

    Of each addend the bits down to 2**-fraction_bits of the largest addend's power of two are kept, the rest is cut
    off; these are added exactly, and the sum is cut to fraction_bits + 1 significant bits. `c`: float32 [M, N], the
    first total, or None for 0. `promote`, the result and the errors are those of `truncating_matmul`; fraction_bits
    is in 1 ... 23.

    The adders of Volta and its successors were found to work in this way (Fasi et al., PeerJ CS 7:e330, 2021). The
    model aligns to the product itself, not to the sum of its factors' exponents, which may be one less.
    """
    if not 1 <= fraction_bits <= 23:
        raise ValueError(f"fraction_bits {fraction_bits} is not in 1 ... 23, the fraction of float32")
    a, b = operands(a, b)
    check_count(block, "block")
    first = torch.zeros((), device=a.device) if c is None else c
    if (ideal := _not_finite(a, b, first)) is not None:
        a, b, first = (torch.where(torch.isfinite(x), x, 0.0) for x in (a, b, first))
    in_float32 = exact_in_float32(a, b) and _exact_beside_products(first)
    columns, rows = columns_and_rows(a, b, torch.float32 if in_float32 else torch.float64)
    total = first.to(columns.dtype).expand(a.shape[0], b.shape[1]).contiguous()
    block = max(1, min(block, a.shape[1])) if promote is None else block
    height = tile_height(a.device, max(1, block * b.shape[1] // 4))
    tiles = []
    with torch.inference_mode():  # a sixth of the time of a call
        for part in (slice(top, top + height) for top in range(0, a.shape[0], height)):
            add_block = _aligned_adder(columns[:, part], rows, block, fraction_bits)
            tiles.append(_promoted(total[part], add_block, a.shape[1], block, promote))
    total = torch.cat(tiles) if tiles else total.float()
    return total if ideal is None else torch.where(torch.isfinite(ideal), total, ideal.float())


def _aligned_adder(columns: torch.Tensor, rows: torch.Tensor, block: int, fraction_bits: int):
    """Give the function that adds the products start, ..., stop - 1 to a total, of columns [K, M, 1], rows [K, 1, N].

    In whole steps every addend has at most fraction_bits + 1 bits: int32 holds it, and a conversion cuts off the rest
    (`trunc_` takes ten times as long on a CPU). All views are made once.
    """
    shape = columns.shape[1], rows.shape[2]
    addends = columns.new_empty(block + 1, *shape)
    whole = torch.empty_like(addends, dtype=torch.int32)
    first = addends[0]
    largest, smallest = columns.new_empty(2, *shape)
    binade, mask = codes(largest)
    few = (block + 1).bit_length() + fraction_bits < 30
    sums = torch.empty_like(first, dtype=torch.int32 if few else torch.int64)
    wide = torch.empty_like(first, dtype=torch.float64)
    lowest = SMALLEST_SUM if columns.dtype == torch.float32 else FLUSH
    ulp = columns.new_tensor(2.0**-fraction_bits)
    views = {}

    def add_block(total: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        count = stop - start
        if count not in views:  # the total stands before the products
            views[count] = addends[1 : count + 1], addends[: count + 1], whole[: count + 1]
        products, terms, integers = views[count]
        if total is not first:
            first.copy_(total)
        torch.mul(columns[start:stop], rows[start:stop], out=products)
        torch.amax(terms, dim=0, out=largest)
        torch.amin(terms, dim=0, out=smallest)
        torch.maximum(largest, smallest.neg_(), out=largest)  # no copy, as |terms| would be
        binade.bitwise_and_(mask)  # now `largest` is 2**floor(log2 |x|)
        step = largest.clamp_(min=lowest).mul_(ulp)
        integers.copy_(terms.mul_(torch.reciprocal(step, out=smallest)))
        torch.sum(integers, dim=0, dtype=sums.dtype, out=sums)
        return first.copy_(_truncate(wide.copy_(sums), fraction_bits + 1)).mul_(step)

    return add_block


def _not_finite(a: torch.Tensor, b: torch.Tensor, first: torch.Tensor) -> torch.Tensor | None:
    """Give first + a @ b where an operand is not finite: then IEEE 754 decides, no width does."""
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
