"""Matrix products with exact products, and sums that are rounded to a format by a rule.

All functions take a [M, K] and b [K, N], tensors of any floating dtype on one device, and give [M, N]. They read the
values as they are: what a tensor of float32 holds may be values of FP8. Gradients are not recorded.

A product of two 11-bit significands has 22 bits: float32 holds it, and float64 holds most sums with it. Where the exact
sum does not fit, a second rounding hides behind the first. It is harmless if the wide format has `carriers.GUARD` bits
more than the total and the product together; where it does not, the slow and exact `utils.accumulation` adds.
`utils.emulation.carriers` chooses.

Goal: 256 x 256 with K = 8192 in at most 0.3 s on two cores; `bench/accumulation.py` measures it.
"""

from functools import partial

import torch

from utils.accumulation import add, kahan_sum, pairwise_sum
from utils.emulation.carriers import Totals, add_to_odd, totals, widening
from utils.formats import FLOAT32, FloatFormat
from utils.rounding import Rounding, check_format, ties_to_even

PIECE = 2**16  # numbers a thread: fewer, and calls cost more than the caches save
DEVICE_PIECE = 2**24  # numbers on another device: bounds the memory
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

    Raises: ValueError for shapes that do not fit and for a chunk below 1, and what `utils.accumulation.add` raises.
    """
    a, b = operands(a, b)
    check_format(accumulator)
    check_count(chunk, "chunk")
    fast = totals(a, b, accumulator, chunked=chunk > 1) if rounding is ties_to_even else None
    if fast is None:
        total = 0.0
        for start in range(0, a.shape[1], chunk):
            products = a[:, start : start + chunk].double() @ b[start : start + chunk].double()
            total = add(total, products, accumulator, rounding=rounding)
        return _result(torch.as_tensor(total).expand(a.shape[0], b.shape[1]).to(a.device), accumulator)
    if chunk > 1:
        a, b = a.double(), b.double()
        total = a.new_zeros(a.shape[0], b.shape[1])
        round_total = fast.rounding(total)
        for start in range(0, a.shape[1], chunk):
            total.addmm_(a[:, start : start + chunk], b[start : start + chunk])
            round_total()
        return _result(total, accumulator)

    def tile(columns, rows):
        total = columns.new_zeros(columns.shape[1], rows.shape[2])
        round_total = fast.rounding(total)
        for column, row in zip(columns, rows, strict=True):
            total.addcmul_(column, row)
            round_total()
        return total

    return _result(_by_tiles(tile, a, b, fast), accumulator)


def kahan_matmul(a: torch.Tensor, b: torch.Tensor, *, accumulator: FloatFormat = FLOAT32) -> torch.Tensor:
    """Multiply exactly and add with Kahan's compensation, all four operations of a step rounded to `accumulator`.

    The steps are those of `utils.accumulation.kahan_sum`. Returns and raises as `matmul` does.
    """
    a, b = operands(a, b)
    check_format(accumulator)
    fast = totals(a, b, accumulator)
    if fast is None:
        return _each(a, b, accumulator, lambda products: kahan_sum(products, accumulator).totals[..., -1])

    def tile(columns, rows):
        wide = columns.new_empty(columns.shape[1], rows.shape[2])
        total, following, c = torch.zeros(3, *wide.shape, dtype=fast.home, device=wide.device)
        round_total, round_following = fast.rounding_of_sum(total), fast.rounding_of_sum(following)
        apart = fast.home != fast.carrier
        y, wide_c = (torch.empty_like(c), torch.zeros_like(wide)) if apart else (wide, c)
        widen_c = widening(c, wide_c)
        round_y, round_c = fast.rounding(wide, out=y), fast.rounding_of_sum(c)
        for column, row in zip(columns, rows, strict=True):
            torch.mul(column, row, out=wide).sub_(wide_c)
            round_y()
            torch.add(total, y, out=following)
            round_following()
            torch.sub(following, total, out=c)
            round_c()
            c.sub_(y)
            round_c()
            if apart:
                widen_c()
            total, round_total, following, round_following = following, round_following, total, round_total
        return total

    return _result(_by_tiles(tile, a, b, fast), accumulator)


def pairwise_matmul(a: torch.Tensor, b: torch.Tensor, *, accumulator: FloatFormat = FLOAT32) -> torch.Tensor:
    """Multiply exactly and add neighbours, then neighbours of these sums, each sum rounded to `accumulator`.

    The tree is that of `utils.accumulation.pairwise_sum`. Returns and raises as `matmul` does.
    """
    a, b = operands(a, b)
    check_format(accumulator)
    fast = totals(a, b, accumulator, paired=True)
    if fast is None:
        return _each(a, b, accumulator, lambda products: pairwise_sum(products, accumulator))

    def tile(columns, rows):
        shape = columns.shape[1], rows.shape[2]
        branches = columns.new_empty(-(-len(rows) // LEAVES), *shape, dtype=fast.home)
        leaf = None
        for branch, k in zip(branches, range(0, len(rows), LEAVES), strict=True):
            count = min(LEAVES, len(rows) - k)
            if leaf is None or count < LEAVES:
                leaf = _leaf(count, shape, fast, rows.device)
            branch.copy_(leaf(columns[k : k + count], rows[k : k + count]))
        return _tree(branches, fast)()

    return _result(_by_tiles(tile, a, b, fast, depth=LEAVES // 8), accumulator)


def _leaf(count: int, shape: tuple[int, int], fast: Totals, device: torch.device):
    """Return the function that adds `count` products as a tree, of columns [count, M, 1] and rows [count, 1, N]."""
    pairs = torch.empty(-(-count // 2), *shape, dtype=fast.carrier, device=device)
    whole = pairs[: count // 2]  # the last product of an odd number has no neighbour
    sums = torch.empty_like(pairs, dtype=fast.home)
    round_pairs, root = fast.rounding(pairs, out=sums), _tree(sums, fast)

    def add_products(columns: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        torch.mul(columns[0::2], rows[0::2], out=pairs)
        if fast.pairs_fit:
            whole.addcmul_(columns[1::2], rows[1::2])
        else:
            add_to_odd(whole, columns[1::2] * rows[1::2])
        round_pairs()
        return root()

    return add_products


def _tree(sums: torch.Tensor, fast: Totals):
    """Return the function that adds neighbours along the first axis until one is left; an odd one at the end waits."""
    steps = []
    while len(sums) > 1:
        pairs, waits = divmod(len(sums), 2)
        following = torch.empty_like(sums[: pairs + waits])
        steps.append(partial(torch.add, sums[0 : 2 * pairs : 2], sums[1 : 2 * pairs : 2], out=following[:pairs]))
        steps.append(fast.rounding_of_sum(following[:pairs]))
        if waits:
            steps.append(partial(following[-1].copy_, sums[-1]))
        sums = following

    def root() -> torch.Tensor:
        for step in steps:
            step()
        return sums[0]

    return root


def _by_tiles(function, a: torch.Tensor, b: torch.Tensor, fast: Totals, depth: int = 1) -> torch.Tensor:
    """Return function(columns, rows) of some rows of a at a time: `depth` numbers per total stay cached."""
    columns, rows = columns_and_rows(a, b, fast.carrier)
    height = tile_height(a.device, depth * b.shape[1])
    result = columns.new_empty(a.shape[0], b.shape[1], dtype=fast.home)
    with torch.inference_mode():  # a sixth of the time of a call
        for top in range(0, a.shape[0], height):
            result[top : top + height] = function(columns[:, top : top + height], rows)
    return result


def tile_height(device: torch.device, width: int) -> int:
    """Return the rows of `width` numbers that fit into the caches of the processors; all of them for other devices."""
    piece = PIECE * torch.get_num_threads() if device.type == "cpu" else DEVICE_PIECE
    return max(1, piece // width)


def columns_and_rows(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return a.to(dtype).t().contiguous().unsqueeze(2), b.to(dtype).unsqueeze(1)  # [K, M, 1], [K, 1, N]


def _each(a: torch.Tensor, b: torch.Tensor, fmt: FloatFormat, function) -> torch.Tensor:
    """Add the products of each row of a by a function of `utils.accumulation`: slow, and exact for every format."""
    if a.numel() == 0 or b.numel() == 0:
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
