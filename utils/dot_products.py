"""Matrix products with exact products, and sums that are rounded to a format by a rule.

All functions take a [M, K] and b [K, N], tensors of any floating dtype on one device, and give [M, N]. They read the
values as they are: what a tensor of float32 holds may be values of FP8. Gradients are not recorded.

A product of two 11-bit significands has 22 bits: float32 holds it, and float64 holds most sums with it. Where the exact
sum does not fit, a second rounding hides behind the first. It is harmless if the wide format has a few bits more than
the total and the product together (`GUARD`); where it has not, the slow and exact `utils.accumulation` adds.
"""

import math

import torch

from utils.accumulation import add, kahan_sum, pairwise_sum
from utils.fake_quantize import fake_quantize
from utils.formats import FLOAT32, FORMATS, FloatFormat
from utils.rounding import Rounding, check_format, ties_to_even

GUARD = 4  # bits: a tie of the total, one binade lower after a subtraction, and the place of the product beside it
PIECE = 2**17  # products held at once: they stay in the cache
SMALLEST_FACTOR = 2.0**-40  # of operands whose products float32 surely holds
SMALLEST_SUM = 2.0**-103  # no nonzero sum of such products is smaller: 2**-80, and 23 bits less after cancellation
LEAVES = 32  # products whose tree is added at once; a power of two


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    accumulator: FloatFormat = FLOAT32,
    chunk: int = 1,
    rounding: Rounding = ties_to_even,
) -> torch.Tensor:
    """Multiply exactly and round the running total to `accumulator` after every `chunk` products.

    Returns [M, N], float32 (float64 where the accumulator is wider than float32). With `chunk` = 1 every total is the
    exact sum rounded once. The products of a longer chunk are added in float64 first: exact while they span at most
    53 bits. Fast for ties to even and operands of at most 11 significant bits; otherwise exact, and slow.

    Raises ValueError for shapes that do not fit and for a chunk below 1, and what `utils.accumulation.add` raises.
    """
    a, b = operands(a, b)
    check_format(accumulator)
    check_count(chunk, "chunk")
    rounder = _rounder(a, b, accumulator, chunked=chunk > 1)
    if rounder is None or rounding is not ties_to_even:
        total = 0.0
        for start in range(0, a.shape[1], chunk):
            products = a[:, start : start + chunk].double() @ b[start : start + chunk].double()
            total = add(total, products, accumulator, rounding=rounding)
        return _result(torch.as_tensor(total).expand(a.shape[0], b.shape[1]).to(a.device), accumulator)
    carrier, rounded = rounder
    if chunk > 1:
        a, b = a.double(), b.double()
        total = a.new_zeros(a.shape[0], b.shape[1])
        for start in range(0, a.shape[1], chunk):
            total = rounded(torch.addmm(total, a[:, start : start + chunk], b[start : start + chunk]))
        return _result(total, accumulator)
    columns, rows = columns_and_rows(a, b, carrier)
    total = columns.new_zeros(a.shape[0], b.shape[1])
    for column, row in zip(columns, rows, strict=True):
        total = rounded(total.addcmul_(column, row))
    return _result(total, accumulator)


def kahan_matmul(a: torch.Tensor, b: torch.Tensor, *, accumulator: FloatFormat = FLOAT32) -> torch.Tensor:
    """Multiply exactly and add with Kahan's compensation, all four operations of a step rounded to `accumulator`.

    The steps are those of `utils.accumulation.kahan_sum`. Returns and raises as `matmul` does.
    """
    a, b = operands(a, b)
    check_format(accumulator)
    rounder = _rounder(a, b, accumulator)
    if rounder is None or a.shape[1] == 0:
        return _each(a, b, accumulator, lambda products: kahan_sum(products, accumulator).totals[..., -1])
    carrier, rounded = rounder
    columns, rows = columns_and_rows(a, b, carrier)
    total = columns.new_zeros(a.shape[0], b.shape[1])
    c = torch.zeros_like(total)
    for column, row in zip(columns, rows, strict=True):
        y = rounded(torch.mul(column, row).sub_(c))
        following = rounded(total + y)
        c = rounded(rounded(torch.sub(following, total, out=total)).sub_(y))
        total = following
    return _result(total, accumulator)


def pairwise_matmul(a: torch.Tensor, b: torch.Tensor, *, accumulator: FloatFormat = FLOAT32) -> torch.Tensor:
    """Multiply exactly and add neighbours, then neighbours of these sums, each sum rounded to `accumulator`.

    The tree is that of `utils.accumulation.pairwise_sum`. Returns and raises as `matmul` does.
    """
    a, b = operands(a, b)
    check_format(accumulator)
    rounder = _rounder(a, b, accumulator, paired=True)
    if rounder is None or a.shape[1] < 2:
        return _each(a, b, accumulator, lambda products: pairwise_sum(products, accumulator))
    carrier, rounded = rounder
    columns, rows = columns_and_rows(a, b, carrier)
    total = columns.new_empty(a.shape[0], b.shape[1])
    height = max(1, PIECE // (LEAVES * max(1, b.shape[1])))
    for top in range(0, a.shape[0], height):
        part = slice(top, top + height)
        branches = [
            _tree(columns[k : k + LEAVES, part] * rows[k : k + LEAVES], rounded) for k in range(0, len(rows), LEAVES)
        ]
        total[part] = _tree(torch.stack(branches), rounded)
    return _result(total, accumulator)


def _tree(sums: torch.Tensor, rounded) -> torch.Tensor:
    """Add neighbours along the first axis until one is left; the last of an odd number waits."""
    while len(sums) > 1:
        even = len(sums) // 2 * 2
        following = rounded(sums[0:even:2] + sums[1:even:2])
        sums = following if even == len(sums) else torch.cat([following, sums[even:]])
    return sums[0]


def _rounder(a: torch.Tensor, b: torch.Tensor, fmt: FloatFormat, chunked: bool = False, paired: bool = False):
    """Choose the dtype in which adding and rounding gives the exact sum rounded once, and the function that rounds.

    `chunked`: sums of products come in float64. `paired`: products are added to products, so both must fit beside
    each other. None where no dtype will do.
    """
    formats = _format_of(a), _format_of(b)
    if any(x is None for x in formats) or fmt.precision > 24 or fmt.exponent_bits > 8:
        return None
    bits = fmt.precision + sum(x.precision for x in formats) + GUARD
    bound = float(_finite(a).abs().sum(dim=1).amax() * _finite(b).abs().amax()) if a.numel() and b.numel() else 0.0
    largest = 2.0 * math.prod(float(_finite(x).abs().amax()) if x.numel() else 0.0 for x in (a, b))
    pair = math.frexp(largest)[1] - sum(math.frexp(x.smallest_subnormal)[1] - 1 for x in formats)
    if exact_in_float32(a, b) and not chunked:
        if fmt is FLOAT32:
            return torch.float32, lambda x: x
        if bits <= 24 and (not paired or pair <= 24):
            return torch.float32, lambda x: fake_quantize(x, fmt, saturate=False, out=x)
    if bits > 53 or (paired and pair > 53):
        return None
    if fmt is FLOAT32:
        return torch.float64, lambda x: x.float().double()
    if bound > fmt.max:
        return torch.float64, lambda x: fake_quantize(x, fmt, saturate=False, out=x)
    return torch.float64, lambda x: _round_below_overflow(x, fmt)


def _round_below_overflow(x: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
    """Round float64 in place, ties to even: beside 1.5 * 2**(52 - m) binades the grid is the format's."""
    large = binade(x).clamp_(min=2.0**fmt.emin).mul_(1.5 * 2.0 ** (52 - fmt.mantissa_bits))
    return x.add_(large).sub_(large)


def binade(x: torch.Tensor) -> torch.Tensor:
    """Give 2**floor(log2 |x|) of normal numbers, 0 for 0 and subnormals."""
    if x.dtype == torch.float64:
        return x.view(torch.int64).bitwise_and(0x7FF << 52).view(torch.float64)
    return x.view(torch.int32).bitwise_and(0xFF << 23).view(torch.float32)


def _format_of(x: torch.Tensor) -> FloatFormat | None:
    """The narrowest format of at most 16 bits, or float32, that holds every finite value; None: none does."""
    native = next((fmt for fmt in FORMATS.values() if fmt.torch_dtype == x.dtype), None)
    if native is not None and native.bits <= 16:
        return native
    values = _finite(x)
    for name in ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32"):
        if torch.equal(fake_quantize(values, FORMATS[name]), values):
            return FORMATS[name]
    return None


def exact_in_float32(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Say whether float32 holds every product, and every sum of their sizes."""
    formats = _format_of(a), _format_of(b)
    if any(x is None for x in formats) or sum(x.precision for x in formats) > 24:
        return False
    smallest = min((float(x[x != 0].abs().min()) if (x != 0).any() else 1.0) for x in (_finite(a), _finite(b)))
    return smallest >= SMALLEST_FACTOR and all(float(_finite(x).abs().sum()) < 2.0**62 for x in (a, b) if x.numel())


def _finite(x: torch.Tensor) -> torch.Tensor:
    """In float32, or float64 as it is: the values, with 0 in place of infinities and NaN."""
    return (x if x.dtype == torch.float64 else x.float()).nan_to_num(0.0, 0.0, 0.0)


def columns_and_rows(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return a.to(dtype).t().contiguous().unsqueeze(2), b.to(dtype).unsqueeze(1)  # [K, M, 1], [K, 1, N]


def _each(a: torch.Tensor, b: torch.Tensor, fmt: FloatFormat, function) -> torch.Tensor:
    """Add the products of each row of a by a function of `utils.accumulation`: slow, and exact for every format."""
    if a.shape[1] == 0:
        return _result(a.new_zeros(a.shape[0], b.shape[1]), fmt)
    columns = b.double().t()
    rows = [torch.as_tensor(function(row.double() * columns)) for row in a]
    return _result(torch.stack(rows).to(a.device), fmt)


def _result(total: torch.Tensor, fmt: FloatFormat) -> torch.Tensor:
    fits = fmt.precision <= 24 and fmt.exponent_bits <= 8
    return total.float() if fits else total.double()


def operands(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    for x in (a, b):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            raise TypeError("a and b are tensors of a floating dtype; convert them first, for example x.float()")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a is {tuple(a.shape)} and b is {tuple(b.shape)}; they have to be [M, K] and [K, N]")
    narrow = tuple(x.detach().float() for x in (a, b))
    for x, y in zip((a, b), narrow, strict=True):
        if x.dtype == torch.float64 and not ((y.double() == x) | x.isnan()).all():
            raise ValueError("float64 holds no exact product of such values; round them first, for example x.float()")
    return narrow


def check_count(count: int, name: str) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"{name} is a whole number from 1 on, not {count!r}")
