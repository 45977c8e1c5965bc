"""Checks of `hardware/accumulation`."""

import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from utils.checks.hardware.accumulation_questions import LIMITED_SUM, PROMOTE_EVERY, PROMOTED_SUM, STALLS, TWO_UNITS
from utils.checks.outcome import (
    NOT_ATTEMPTED,
    Outcome,
    as_number,
    correct,
    exercise,
    not_yet,
    paper_table,
)

NARROW = 8  # bits of the adder that is handed to `promoted_sum`

check_stalls = paper_table(
    STALLS,
    says="Where it stalls depends on three things: the bits, the rule, and how many products come at once.",
)
check_promote_every = paper_table(
    PROMOTE_EVERY,
    says="Each bit of the register is worth a factor of two in the distance between two promotions.",
)
check_two_units = paper_table(
    TWO_UNITS,
    says="Seven sums, and you know more of the two units than their data sheets say.",
)


def cut(x: float, bits: int, whole: Callable[[float], float] = math.trunc) -> float:
    """Keep `bits` significant bits of x; `whole` decides what becomes of the rest."""
    _, exponent = math.frexp(x)
    return math.ldexp(whole(math.ldexp(x, bits - exponent)), exponent - bits)


def running(products: Sequence[float], bits: int, whole: Callable[[float], float] = math.trunc) -> float:
    """Add one by one, each total cut."""
    total = 0.0
    for product in products:
        total = cut(total + product, bits, whole)
    return total


# --- A limited accumulator --------------------------------------------------------------------------------------------


@exercise(asks=LIMITED_SUM, takes="limited_sum")
def check_limited_sum(answer) -> Outcome:
    """A function (products, bits) -> total, each total cut toward zero to so many significant bits."""
    for products, bits in _limited_cases():
        try:
            returned = answer(list(products), bits)
        except (ValueError, OverflowError) as error:
            return not_yet(_no_exponent(products, error))
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the total.")
        total, right = as_number(returned), running(products, bits)
        if total != right:
            return not_yet(_limited_fault(answer, total, products, bits, right))
    return correct("Every total is cut where its own register ends, negative ones toward zero too.")


def _limited_cases() -> list[tuple[list[float], int]]:
    """Return sums: the first tells all foreseen mistakes apart, the short ones can be followed by hand."""
    rng = np.random.default_rng(0)
    positive, mixed = rng.random(200), rng.standard_normal(200)
    small = np.ldexp(rng.random(50), -30)
    return [
        (mixed.tolist(), 8),
        ([1 / 3], 8),  # the first total is cut as well
        ([1.0, 2.0**-4 + 2.0**-6], 5),
        ([1.0, 1.75 * 2.0**-4], 5),
        ([-1.0, -1.25 * 2.0**-4], 5),
        ([1.0, -1.0, 0.75], 8),  # the total is 0 on the way
        ([1.0, 2.0**-4 - 2.0**-40], 5),  # no rounding to float32 first
        ([], 8),
        (positive.tolist(), 14),
        (small.tolist(), 8),
    ]


def _no_exponent(products: Sequence[float], error: Exception) -> str:
    """Say why a function stopped that may have taken the logarithm of 0 or of a negative total."""
    stopped = f"Your function stopped with {type(error).__name__}: {error}."
    if products and min(np.cumsum(products)) > 0:
        return stopped
    least = "negative" if products and 0.0 not in np.cumsum(products) else "0"
    return (
        f"{stopped} The total is {least} at times: if you take its logarithm, take that of its absolute value, and "
        "leave a total of 0 as it is. `math.frexp` accepts both."
    )


def _ended(products: Sequence[float], bits: int) -> float:
    return cut(math.fsum(products), bits)


def _uncut(products: Sequence[float], bits: int) -> float:
    return math.fsum(products)


def _always(answer: Callable, way: Callable) -> bool:
    """Whether an answer returns what `way` does, in every case: a total that is cut at times may agree in one."""
    for products, bits in _limited_cases():
        try:
            total = as_number(answer(list(products), bits))
        except Exception:  # whatever it is, that is not what `way` does
            return False
        if not math.isclose(total, way(products, bits), rel_tol=1e-12):
            return False
    return True


def _limited_fault(answer: Callable, total: float, products: Sequence[float], bits: int, right: float) -> str:
    """Say what is wrong with a total."""
    foreseen = [
        (_in_float32(products, bits), "The total is rounded to float32 before it is cut. Keep Python's floats."),
        (running(products, bits, round), "That total is rounded to nearest. Cut off what does not fit: toward zero."),
        (running(products, bits, math.floor), "A negative total is cut downward, away from zero. Cut toward zero."),
        (running(products, bits + 1), "Each total keeps one bit too many: the leading bit counts as one."),
        (running(products, bits - 1), "Each total keeps one bit too few."),
        (sum(cut(x, bits) for x in products), "The products are cut, and the total is not. It is the register."),
        (_absolute(products, bits), "All totals are cut at one place. A register keeps bits from the leading one on."),
        (_before(products, bits), "The product is cut where the total ends. Add first, then cut the new total."),
    ]
    for value, hint in foreseen:
        if math.isclose(total, value, rel_tol=1e-12):  # an exact sum may be off by its own rounding
            return hint
    if _always(answer, _first_uncut):
        return "The first total is not cut: it is the first product, added to 0."
    if _always(answer, _uncut):
        return "Nothing is cut at all."
    if _always(answer, _ended):
        return "This is the exact sum, cut once. What an addition cuts off must be lost for the next one."
    if not products:
        return f"A sum of no products is {right!r}, yours is {total!r}."
    few = ", ".join(f"{x:.6g}" for x in products[:3])
    many = f" and {len(products) - 3} more" if len(products) > 3 else ""
    return f"The products {few}{many}, with {bits} bits: your total is {total!r}, it should be {right!r}."


def _absolute(products: Sequence[float], bits: int) -> float:
    total = 0.0
    for product in products:
        total = math.trunc((total + product) * 2.0 ** (bits - 1)) / 2.0 ** (bits - 1)
    return total


def _first_uncut(products: Sequence[float], bits: int) -> float:
    total = products[0] if products else 0.0
    for product in products[1:]:
        total = cut(total + product, bits)
    return total


def _in_float32(products: Sequence[float], bits: int) -> float:
    total = 0.0
    for product in products:
        total = cut(float(np.float32(total + product)), bits)
    return total


def _before(products: Sequence[float], bits: int) -> float:
    """Cut each product at the last place of the total that it meets."""
    total = 0.0
    for product in products:
        last = math.ldexp(1.0, math.frexp(total)[1] - bits) if total else 0.0
        total += math.trunc(product / last) * last if last else cut(product, bits)
    return total


# --- A promoted sum ---------------------------------------------------------------------------------------------------


@exercise(asks=PROMOTED_SUM, takes="promoted_sum")
def check_promoted_sum(answer) -> Outcome:
    """A function (products, add, n) -> total; `add` is the narrow adder, the wide one is an ordinary +."""
    rng = np.random.default_rng(0)
    for count, n, smallest in ((300, 7, 0), (64, 32, 0), (20, 64, 0), (5, 1, 0), (0, 4, 0), (12, 4, -30)):
        sizes = np.linspace(0, smallest, count).round()  # of the last case: its parts need more than 24 bits
        products = [float(np.float16(x)) * 2.0**size for x, size in zip(rng.random(count), sizes, strict=True)]
        returned = answer(list(products), _add, n)
        if returned is None or returned is ...:
            return Outcome(NOT_ATTEMPTED, "The function returns nothing yet; return the total.")
        total, right = as_number(returned), _promoted(products, n)
        if total != right:
            return not_yet(_promoted_fault(total, products, n, right))
    return correct("The wide total gets every part, the last short one too, and the narrow one never grows large.")


def _add(total: float, product: float) -> float:
    """Round the product to fewer bits than the total has: the two cannot change places."""
    return cut(total + cut(product, NARROW - 3), NARROW)


def _swapped(total: float, product: float) -> float:
    return _add(product, total)


def _in_float32_too(a: float, b: float) -> float:
    return float(np.float32(a + b))


def _narrow_alone(products: Sequence[float]) -> float:
    total = 0.0
    for product in products:
        total = _add(total, product)
    return total


def _promoted(
    products: Sequence[float], n: int, *, rest: bool = True, reset: bool = True, wide=operator.add, add=_add
) -> float:
    """Add in parts of n; with a fault of choice."""
    total = narrow = 0.0
    for place, product in enumerate(products, 1):
        narrow = add(narrow, product)
        if place % n == 0:
            total = wide(total, narrow)
            narrow = 0.0 if reset else narrow
    return wide(total, narrow) if rest and len(products) % n else total


def _unrounded_first(products: Sequence[float], n: int) -> float:
    """Each part begins with its first product, which never went through the adder."""
    total = 0.0
    for start in range(0, len(products), n):
        narrow, *others = products[start : start + n]
        for product in others:
            narrow = _add(narrow, product)
        total += narrow
    return total


def _from_zero(products: Sequence[float], n: int) -> float:
    """Count from 0: the first part has one product."""
    return _promoted(products[:1], 1) + _promoted(products[1:], n) if products else 0.0


def _promoted_fault(total: float, products: Sequence[float], n: int, right: float) -> str:
    """Say what is wrong with a promoted sum."""
    foreseen = [
        (_narrow_alone(products), "Nothing was promoted: this is the sum of the narrow adder alone."),
        (math.fsum(products), "This is the exact sum: the products have to go through `add`."),
        (_promoted(products, n, rest=False), f"{len(products)} products are no multiple of {n}: the rest is missing."),
        (_promoted(products, n, reset=False), "The narrow total goes on after it was moved: start it again from 0."),
        (_promoted(products, n, wide=_add), "The parts are joined with `add`, so the wide total is narrow too: use +."),
        (_promoted(products, n, wide=_in_float32_too), "The wide total is a float32. Keep a Python float."),
        (_promoted(products, n, add=_swapped), "`add` takes the total first, then the product."),
        (_unrounded_first(products, n), "The first product of a part has to go through `add` as well: add(0.0, x)."),
        (_from_zero(products, n), "The first part has one product only: count from 1 (enumerate begins at 0)."),
        (_promoted(products, n + 1), "A part has one product too many: promote after n of them."),
    ]
    if n > 1:
        foreseen.append((_promoted(products, n - 1), "A part has one product too few: promote after n of them."))
    for value, hint in foreseen:
        if total == value:
            return hint
    return f"{len(products)} products, n = {n}: your total is {total!r}, it should be {right!r}."
