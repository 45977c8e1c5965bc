"""What adds behind a matrix product: found from crafted inputs alone, without knowing what computes.

    finding = look(torch.matmul, dtype=torch.bfloat16)
    print(finding)           # how many bits, which rounding, in which order, how many at once
    finding.evidence         # every sum that was asked for, and its result

What the sums do not decide is None. At last the found parameters are put to the test: they have to give random sums to
the last bit.
"""

import random

import numpy as np
import torch

from utils import addition_probes, summation_tree
from utils.adders import STEPS, Adder, Product, common, total, whole
from utils.addition_probes import Tested
from utils.crafted_sums import WIDTH, Matmul, Sums, lost_ones
from utils.fake_quantize import fake_quantize
from utils.findings import Finding
from utils.summation_tree import Node, NoTree

PLACES = 128
SPANS = (40, 34, 30, 24, 20)  # log2 of the mask over a 1: past the bits of a total and those of the count
WIDE = (66, 100)  # for a total that loses nothing there; a model that adds a block in float64 shows that at 66
CHECKS = 32  # pairs of places, and random sums, that are tried at last
NO_TREE = ("order", "precision", "rounding", "block", "factor_bits", "product_bits", "confirmed")


def look(
    matmul: Matmul,
    *,
    dtype: torch.dtype,
    places: int = PLACES,
    width: int = WIDTH,
    device: torch.device | str = "cpu",
) -> Finding:
    """Find out how a product (a, b) -> a @ b of one dtype adds: a [width, places] and b [places, width] on the device.

    What is found holds for this shape: a library may choose another kernel for another one. Totals that are handed on
    every N products show from 3 N places on. Raises ValueError for a dtype that is no floating one of the table and for
    fewer than 8 places, and what `matmul` raises.
    """
    if places < 8:
        raise ValueError(f"places {places} is below 8: so few products show no order")
    sums = Sums(matmul, dtype, places, device, width)
    known: dict = {
        "everywhere": _everywhere(sums),
        "smallest": addition_probes.smallest_sum(sums),
        "subnormal_factors": addition_probes.subnormal_factors(sums),
    }
    tree, why = _tree(sums)
    unknown = dict.fromkeys(NO_TREE, why) if tree is None else {}
    if tree is not None:
        known |= _layout(tree) | _additions(sums, tree, unknown)
    return Finding(
        dtype=sums.format.name,
        output=str(sums.output).removeprefix("torch."),
        shape=(width, width, places),
        unknown=tuple(unknown.items()),
        evidence=tuple(sums.log),
        **known,
    )


def _everywhere(sums: Sums) -> bool:
    """Say whether a sum has the same result in every place, and again in a second product; of a few random ones."""
    for x, y in zip(*_random(sums, 4), strict=True):
        a, b = (np.tile(factors, (sums.width, 1)) for factors in (x, y))
        results = torch.stack([sums.product(a, b) for _ in range(2)])
        if not (results == results[0, 0, 0]).all():
            return False
    return True


def _tree(sums: Sums) -> tuple[Node | None, str]:
    """Return the tree of the sum, or None and why there is none."""
    rng = random.Random(0)
    pairs = [tuple(rng.sample(range(sums.places), 2)) for _ in range(CHECKS)]
    why, spans = "no two products of this dtype lie far enough apart", list(SPANS)
    for span in spans:
        mask = min(sums.highest, span // 2)
        one = mask - span
        if one < sums.lowest:
            continue
        try:
            return _tree_at(sums, mask, one, pairs), ""
        except NothingLost as error:
            why = str(error)
            spans[:] = [*spans[: spans.index(span) + 1], *(wide for wide in WIDE if wide > span)]
        except NoTree as error:
            why = str(error)
    return None, why


class NothingLost(NoTree):
    """A total holds the mask and the ones."""


def _tree_at(sums: Sums, mask: int, one: int, pairs: list[tuple[int, int]]) -> Node:
    """Return the tree by masks of this exponent; raise NoTree where there is none."""
    lost = lost_ones(sums, mask, one)
    if sums.ask("ones alone", [{}], rest=2.0**one) != [sums.places * 2.0**one]:
        raise NoTree(f"{sums.places} ones do not count to {sums.places}")
    if not any(lost([(0, place) for place in range(1, sums.places)])):
        raise NothingLost(f"beside an addend 2^{mask - one} times as large a 1 is not lost")
    tree = summation_tree.find(lost, sums.places)
    if lost(pairs) != summation_tree.predicted(tree, pairs):
        raise NoTree("pairs of places lose other ones than their order says")
    return tree


def _layout(tree: Node) -> dict:
    layout = summation_tree.layout(tree)
    if layout is None:
        return {"order": tuple(tree.places)}
    return {
        "order": layout.order,
        "block": layout.block,
        "pairwise": layout.pairwise,
        "parts": None if layout.pairwise else layout.parts,
        "run": layout.run,
    }


def _additions(sums: Sums, tree: Node, unknown: dict[str, str]) -> dict:
    """Test the additions of a tree, what reaches them and what they hold, and then all of it on random sums."""
    tested = addition_probes.test_kinds(sums, tree)
    kinds = [node.kind for node, _ in summation_tree.nodes(tree)]
    with_products = max(tested, key=lambda kind: kinds.count(kind) * kind[0])
    without = [kind for kind in tested if not kind[0]]
    main = tested[with_products]
    known = {"precision": main.bits, "overflow": addition_probes.overflow(sums, tree)}
    known |= _agreed(main, unknown)
    if without:
        outer = tested[without[0]]
        if outer.hidden:
            unknown["outer_precision"] = f"the {sums.output} result shows no more bits"
        else:
            known |= {"outer_precision": outer.bits, "outer_rounding": _agreed(outer, {}).get("rounding")}
    known |= _factors(sums, tree)
    known["compensated"] = _compensated(sums, tree, main)
    reasons = [one.why for one in tested.values() if one.why]
    if reasons or not known["factor_bits"]:
        unknown["confirmed"] = (reasons or ["the bits of a factor are not known"])[0]
    else:
        known["confirmed"] = _confirmed(sums, tree, tested, known)
    return known


def _agreed(tested: Tested, unknown: dict[str, str]) -> dict:
    """Return what all adders agree in that explain the answers."""
    if not tested.adders:
        unknown |= {"precision": tested.why, "rounding": tested.why}
        return {"precision": None}
    exact = {adder.extra_bits is None for adder in tested.adders}
    known = {"exact_sums": exact.pop() if len(exact) == 1 else None}
    for name in ("rounding", "extra_bits"):
        agree, value = common(tested.adders, name)
        if agree:
            known[name] = value
        else:
            unknown[name] = f"{len(tested.adders)} adders explain all answers"
    return known


def _factors(sums: Sums, tree: Node) -> dict:
    """Return how many bits of the operands and of their product are used."""
    bits = addition_probes.factor_bits(sums, tree)
    if bits is None:
        return {"factor_bits": None}
    found = {"factor_bits": bits, "product_bits": (product := addition_probes.product_bits(sums, tree, bits))}
    exact = product == 2 * bits - 1 if bits > 2 else None  # the longest that is tried
    return found | {
        "factor_rounding": addition_probes.factor_rounding(sums, tree, bits) if bits < sums.format.precision else None,
        "exact_products": exact,
        "product_rounding": addition_probes.product_rounding(sums, tree, product) if exact is False else None,
    }


def _compensated(sums: Sums, tree: Node, tested: Tested) -> bool | None:
    """Say whether addends that a total loses one by one reach it together; None where they meet each other first."""
    layout = summation_tree.layout(tree)
    if layout is None or layout.pairwise or layout.parts > 1 or tested.bits is None:
        return None
    first, *_, last = layout.order
    small = 2.0 ** (addition_probes.BIG - tested.bits - 1)
    if small < 2.0**sums.lowest or layout.block != 1:
        return None
    big = 2.0**addition_probes.BIG
    return sums.ask("many small addends", [{first: big, last: -big}], small) != [0.0]


def _random(sums: Sums, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors of random sums, values of the dtype: [count, places] each.

    Every other sum has factors of half as many bits, so that ties are common.
    """
    rng, shape = np.random.default_rng(0), (2, count, sums.places)
    draws = rng.standard_normal(shape) * np.exp2(min(3.0, sums.format.emax / 8) * rng.standard_normal(shape))
    fractions, exponents = np.frexp(draws[:, ::2])
    steps = 2.0 ** (sums.format.precision // 2 + 1)
    draws[:, ::2] = np.ldexp(np.rint(fractions * steps) / steps, exponents)
    if sums.format.precision < 53:
        draws = fake_quantize(torch.from_numpy(draws), sums.format).numpy()
    return draws[0], draws[1]


def _confirmed(sums: Sums, tree: Node, tested: dict[tuple, Tested], known: dict) -> tuple[int, int]:
    """Return how many of how many random sums come out as the found parameters say."""
    factors = _random(sums, sums.width)
    measured = sums.products(*factors)
    output = getattr(torch, str(sums.output).removeprefix("torch."))
    into = Adder(known["factor_bits"], known["factor_rounding"] or "ties_to_even")
    if known["factor_bits"] < sums.format.precision:
        factors = [[[into.rounded(whole(x)) / (1 << STEPS) for x in row] for row in side.tolist()] for side in factors]
    right = 0
    for x, y, result in zip(*factors, measured, strict=True):
        products = [Product.of(*pair) for pair in zip(x, y, strict=True)]
        if rule := known["product_rounding"]:
            rounded = Adder(known["product_bits"], rule).rounded
            products = [Product(rounded(product.value), product.exponent) for product in products]
        expected = total(tree, products, lambda node: tested[node.kind].adders[0]) / (1 << STEPS)
        right += float(torch.tensor(expected, dtype=torch.float64).to(output)) == result
    return right, sums.width
