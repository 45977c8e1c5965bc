"""Craft sums that answer one question each: how an addition in a sum rounds, what reaches it, and what it can hold.

All of them use the tree of the sum (`summation_tree`): a big addend meets a small one in the addition under test, and
the big one is subtracted again later, so that the result is what became of the small one.
"""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from utils.experiments.microscope.adders import (
    MOST_EXTRA,
    STEPS,
    Adder,
    AdditionAnswer,
    Product,
    find_surviving,
    to_whole,
)
from utils.experiments.microscope.crafted_sums import Sums, Value, format_of
from utils.experiments.microscope.summation_tree import Node, list_nodes
from utils.rounding import RULES, quantize

BIG = 14  # exponent of the big addend: E4M3 and a float16 total hold it, and the smallest product lies 32 places below
MOST_BITS = 60  # of a total that are looked for
SAMPLES = 2  # additions of one kind that are tested
FRACTIONS = (0.25, 0.5, 0.75, 1.5, 2.5)  # of a total's last place, on both sides of ties


@dataclass(frozen=True)
class TestedAddition:
    """What one kind of addition does: `adders` are those that explain every answer; `why` says why there are none.

    `bits`: significant bits of a total. `hidden`: the result's dtype has no more bits, so it may have rounded.
    """

    bits: int | None
    adders: tuple[Adder, ...]
    hidden: bool = False
    why: str = ""


@dataclass(frozen=True)
class _Spot:
    """Places of the addends of one addition, sums before products, and a place whose product is added later.

    `beside`: another place of the first addend and of the second, where that is a sum.
    """

    entries: tuple[int, ...]
    beside: tuple[int | None, int | None]
    later: int | None


def _make_spot(node: Node, above: Node | None) -> _Spot:
    later = None
    if above is not None:
        other = next(child for child in reversed(above.children) if child is not node)
        later = other if isinstance(other, int) else other.places[0]
    sums = [child.places for child in node.children if isinstance(child, Node)][:2]
    products = [child for child in node.children if isinstance(child, int)]
    beside = [places[1] for places in sums] + [None, None]
    return _Spot((*(places[0] for places in sums), *products)[:3], (beside[0], beside[1]), later)


def try_kinds(sums: Sums, tree: Node) -> dict[tuple, TestedAddition]:
    """Try a few additions of each kind of a tree; the last addition of all is always among those of its kind."""
    spots: dict[tuple, list[_Spot]] = {}
    for node, above in reversed(list_nodes(tree)):
        spots.setdefault(node.kind, []).append(_make_spot(node, above))
    tested = {}
    for kind, spots_of_kind in spots.items():
        inner = [spot for spot in spots_of_kind if spot.later is not None]
        top = [spot for spot in spots_of_kind if spot.later is None]
        samples = inner[:: max(1, (len(inner) - 1) // (SAMPLES - 1))][:SAMPLES]  # the first and the last
        tested[kind] = _try(sums, samples, top[0] if top else None)
    return tested


def _try(sums: Sums, spots: Sequence[_Spot], top: _Spot | None) -> TestedAddition:
    """Try one kind of addition: `spots` inside the tree, and `top`, whose sum is the result."""
    widths = {bits for spot in spots or [top] for bits in _count_bits(sums, spot)}
    if max(widths) > _reach(sums):
        return TestedAddition(None, (), why="no addend was lost, as small as the products get")
    if len(widths) > 1:
        return TestedAddition(None, (), why=f"additions of one kind keep different numbers of bits: {sorted(widths)}")
    (bits,) = widths
    shown = format_of(sums.output).precision > bits  # a carry that is kept shows in the result alone
    tried = [*spots, top] if top is not None and (shown or not spots) else spots
    answers = [_ask_near_ties(sums, spot, bits) for spot in tried]
    if not all(answers):
        return TestedAddition(bits, (), why="sums near ties overflow, or the dtype has none")
    adders = find_surviving(itertools.chain(*answers), bits)
    return TestedAddition(
        bits, tuple(adders), not spots and not shown, "" if adders else "no adder of ours gives all answers"
    )


def _ask(sums: Sums, about: str, spot: _Spot, crafted: Sequence[dict[int, Value]], big: Sequence[Value]) -> list[float]:
    """Return the results; where there is a later addition, it subtracts `big`."""
    if spot.later is None:
        return sums.ask(about, crafted)
    return sums.ask(about, [terms | {spot.later: _negate(x)} for terms, x in zip(crafted, big, strict=True)])


def _negate(x: Value) -> Value:
    return (-x[0], x[1]) if isinstance(x, tuple) else -x


def _reach(sums: Sums) -> int:
    """Return how many binades below the big addend a small one can lie."""
    return min(MOST_BITS, BIG - sums.lowest)


def _count_bits(sums: Sums, spot: _Spot) -> set[int]:
    """Return how many significant bits a total keeps: 1 + the last j for which 1 + 2**-j is 1 + 2**-j.

    A set of one number if it does not matter which of two addends is big; more than `_reach` if nothing is lost.
    """
    reach, widths = _reach(sums), set()
    for first, second in (spot.entries[:2], spot.entries[1::-1]):
        small = [2.0 ** (BIG - j) for j in range(1, reach + 1)]
        crafted = [{first: 2.0**BIG, second: x} for x in small]
        left = _ask(sums, "bits of a total", spot, crafted, [2.0**BIG] * reach)
        full = small if spot.later is not None else [2.0**BIG + x for x in small]  # what exact sums would give
        widths.add(next((j for j in range(reach) if left[j] != full[j]), reach) + 1)
    return widths


def _ask_near_ties(sums: Sums, spot: _Spot, bits: int) -> list[AdditionAnswer]:
    """Ask for sums near ties, with cut addends and with carries, and return what the addition made of them.

    The list is empty where one of them overflows.
    """
    questions = list(_craft_near_ties(spot, 2.0 ** (BIG - bits + 1)))  # ulp of 2**BIG with so many bits
    representable = _find_representable(sums, [question.terms for question in questions])
    questions = list(itertools.compress(questions, representable))
    bigs = [question.big for question in questions]
    left = _ask(sums, "rounding", spot, [question.terms for question in questions], bigs)
    if not all(map(math.isfinite, left)):
        return []
    taken = [None if spot.later is None else Product.of(*sums.factors(_negate(big)), sums.format.emin) for big in bigs]
    return [
        AdditionAnswer([Product.of(*sums.factors(x), sums.format.emin) for x in question.addends], away, to_whole(rest))
        for question, away, rest in zip(questions, taken, left, strict=True)
    ]


class _Question(NamedTuple):
    """A sum: what is subtracted later, the products by place, and the addends that reach the addition under test."""

    big: Value
    terms: dict[int, Value]
    addends: tuple[Value, ...]


def _make_question(big: Value, terms: dict[int, Value]) -> _Question:
    return _Question(big, terms, tuple(terms.values()))


def _craft_near_ties(spot: _Spot, last: float) -> Iterator[_Question]:
    """Yield the sums; `last` is the last place of a total with exponent `BIG`.

    Extra bits show where a small addend changes the direction of a rounding, carries where two big addends meet.
    """
    tails = [2.0**-j for j in range(1, MOST_EXTRA + 2)]  # of the last place: half of it to one past the extra bits
    power, first, second = 2.0**BIG, *spot.entries[:2]
    third = spot.entries[2] if len(spot.entries) > 2 else None
    for sign in (1.0, -1.0):
        big, factors = sign * 1.5 * power, (sign * 1.5 * 2.0 ** (BIG // 2), 1.5 * 2.0 ** (BIG - BIG // 2))
        for u, v, beside in ((first, second, spot.beside[1]), (second, first, spot.beside[0])):
            for x in (*FRACTIONS, *tails, *(0.5 + tail for tail in tails)):
                for small in (x * last, -x * last):
                    yield _make_question(big, {u: big, v: small})
            if beside is not None:  # a sum of two products has more bits than one of them may have
                for x in (y for tail in tails for y in (tail * last, -tail * last)):
                    half = math.copysign(0.5 * last, x)
                    yield _Question(big, {u: big, v: half, beside: x}, (big, half + x))
        for tail in tails:  # 1.5 * 1.5 is 2.25, an exponent above the sum of its factors'
            yield _make_question(factors, {second: factors, first: -2 * sign * tail * last})
            if third is not None:
                yield _make_question(factors, {second: factors, first: sign * tail * last, third: sign * tail * last})
                for half in (0.5 * last, -0.5 * last):
                    yield _make_question(big, {first: big, second: half, third: math.copysign(tail * last, half)})
        if third is not None:
            for x in (0.5, 1.0, 1.5, 3.0):  # below 0, the later subtraction would be cut itself
                terms = {first: sign * power, second: sign * power, third: sign * x * last}
                yield _make_question(sign * 2 * power, terms)


def _find_representable(sums: Sums, crafted: Sequence[dict[int, Value]]) -> list[bool]:
    """Say of each sum whether the dtype holds the factors of all its terms."""
    factors = np.zeros((len(crafted), 2 * max(map(len, crafted))))
    for row, terms in zip(factors, crafted, strict=True):
        values = [factor for value in terms.values() for factor in sums.factors(value)]
        row[: len(values)] = values
    return (quantize(factors, sums.format) == factors).all(axis=1).tolist()


# What reaches an addition, and what it can hold


def count_factor_bits(sums: Sums, tree: Node) -> int | None:
    """Return how many significant bits of a factor are used, of either operand; None where even two are not seen.

    1 + 2**-j in one place, as one factor, and -1 in another: the 2**-j is left if that bit of the factor was used.
    """
    used = []
    for left in (True, False):
        places = range(1, sums.format.mantissa_bits + 1)
        factors = [(1 + 2.0**-j, 1.0) if left else (1.0, 1 + 2.0**-j) for j in places]
        is_exact = _find_exact(sums, "bits of a factor", tree, factors, [-1.0] * len(factors))
        used.append(next((j for j, good in zip(places, is_exact, strict=True) if not good), len(places) + 1))
    return min(used) if min(used) > 1 else None


def find_factor_rounding(sums: Sums, tree: Node, bits: int) -> str | None:
    """Return the rule by which a factor becomes one of `bits` significant bits; None where none of five fits."""
    spot = _make_spot(*list_nodes(tree)[-1])
    first, second = spot.entries[:2]
    last = 2.0 ** (1 - bits)  # ulp of 1.5
    values = [sign * (1.5 + x * last) for sign in (1, -1) for x in (*FRACTIONS, *(-x for x in FRACTIONS))]
    results = sums.ask("rounding of a factor", [{first: (x, 1.0), second: -math.copysign(1.5, x)} for x in values])
    became = [result + math.copysign(1.5, x) for result, x in zip(results, values, strict=True)]
    fits = [name for name in RULES if became == [Adder(bits, name).rounded(to_whole(x)) / 2**STEPS for x in values]]
    return fits[0] if len(fits) == 1 else None


def count_product_bits(sums: Sums, tree: Node, factor: int) -> int:
    """Return the significant bits of the longest product that came out exact, of factors of `factor` bits.

    (1 + 2**-i)(1 + 2**-j) has i + j + 1 bits. 1 + 2**-i + 2**-j is taken away before or after; 2**-(i + j) is left.
    """
    pairs = [(i, j) for i in range(2, factor) for j in (i - 1, i)]  # i + j + 1 takes each length once
    crafted = [(1 + 2.0**-i, 1 + 2.0**-j) for i, j in pairs]
    fits = [1 + 2.0**-i + 2.0**-j for i, j in pairs]
    is_exact = _find_exact(sums, "bits of a product", tree, crafted, [-x for x in fits])
    return max((i + j + 1 for (i, j), good in zip(pairs, is_exact, strict=True) if good), default=0)


def find_product_rounding(sums: Sums, tree: Node, bits: int) -> str | None:
    """Return the rule by which a product becomes one of `bits` bits; None where none of five fits, or none is tried.

    A product of odd numbers is odd: with one bit too many it is a tie. What it is without that bit is taken away.
    """
    if bits > sums.format.precision:
        return None
    rng, left = random.Random(0), bits // 2 + 1
    odd = [
        (rng.randrange(1 << left - 1, 1 << left) | 1, rng.randrange(1 << bits - left, 1 << bits - left + 1) | 1)
        for _ in range(4 * sums.width)
    ]
    factors = [(float(x) * sign, float(y)) for x, y in odd for sign in (1, -1)]
    drops = [(int(x) * int(y)).bit_length() - bits for x, y in factors]
    kept = [math.copysign(abs(int(x) * int(y)) >> drop << drop, x) for (x, y), drop in zip(factors, drops, strict=True)]
    scale = 2.0**-left  # brings the whole numbers near 1
    first, second = _make_spot(*list_nodes(tree)[-1]).entries[:2]
    crafted = [
        {first: (x * scale, y * scale), second: (-z * scale * scale, 1.0)}
        for (x, y), z in zip(factors, kept, strict=True)
    ]
    results = sums.ask("rounding of a product", crafted)
    became = [result / scale / scale + z for result, z in zip(results, kept, strict=True)]
    fits = [name for name in RULES if became == [Adder(bits, name).rounded(int(x) * int(y)) for x, y in factors]]
    return fits[0] if len(fits) == 1 else None


def _find_exact(sums: Sums, about: str, tree: Node, products: Sequence[Value], taken: Sequence[float]) -> list[bool]:
    """Say of each product whether product + taken came out exact, in some order of two places that meet early."""
    spots = [_make_spot(node, above) for node, above in list_nodes(tree)]
    pairs = [spot.entries[:2] for spot in (spots[-1], spots[len(spots) // 2])]
    came_out = [False] * len(products)
    for u, v in dict.fromkeys([*pairs, *(pair[::-1] for pair in pairs)]):
        left = sums.ask(about, [{u: x, v: y} for x, y in zip(products, taken, strict=True)])
        exact = [_add_exactly(x, y) for x, y in zip(products, taken, strict=True)]
        came_out = [good or x == y for good, x, y in zip(came_out, left, exact, strict=True)]
    return came_out


def _add_exactly(product: Value, taken: float) -> float:
    return (Product.of(*product).value + to_whole(taken)) / 2**STEPS


def find_overflow(sums: Sums, tree: Node) -> int | None:
    """Return the exponent of the smallest power of two that a total cannot hold; None where no sum of two gets there.

    Twice 2**e, which meet first, and both are taken away later: what is left is 0, or no number.
    """
    first = list_nodes(tree)[-1][0]
    outside = [place for place in tree.places if place not in set(first.places)]
    if len(outside) < 2:
        return None
    tried = [e for e in (7, 8, 14, 15, 16, 126, 127, 128, 1022, 1023) if e <= sums.highest]
    places = (*first.places[:2], *outside[-2:])
    crafted = [dict(zip(places, (2.0**e, 2.0**e, -(2.0**e), -(2.0**e)), strict=True)) for e in tried]
    results = sums.ask("overflow", crafted)
    return next((e + 1 for e, result in zip(tried, results, strict=True) if result != 0), None)


def find_smallest_sum(sums: Sums) -> int | None:
    """Return the exponent of the smallest product of normal factors that is not lost; None where none is lost."""
    tried = [e for top, end in ((-12, -27), (-124, -154), (-1020, -1076)) for e in range(top, end, -1)]
    tried = [e for e in tried if e >= max(2 * sums.format.emin, -1074)]
    results = sums.ask("smallest result", [{0: 2.0**e} for e in tried])
    kept = [result == 2.0**e for e, result in zip(tried, results, strict=True)]
    lost = next((n for n, good in enumerate(kept) if not good), None)
    return None if lost is None else tried[lost] + 1


def keeps_subnormal_factors(sums: Sums) -> bool:
    """Say whether a subnormal factor is taken as it is, on both sides."""
    emin, emax = sums.format.emin, sums.format.emax
    small, large = 2.0 ** (emin - 1), 2.0 ** min(emax, 1 - emin)
    results = sums.ask("subnormal factor", [{0: (small, large)}, {0: (large, small)}])
    return all(result == small * large for result in results)
