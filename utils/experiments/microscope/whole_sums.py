"""Test whole sums, of random and of many small products: whether all places add alike, and as predicted."""

from collections.abc import Mapping

import numpy as np
import torch

from utils.experiments.microscope.adders import STEPS, Adder, Product, add_tree, to_whole
from utils.experiments.microscope.addition_probes import BIG, TestedAddition
from utils.experiments.microscope.crafted_sums import Sums
from utils.experiments.microscope.summation_tree import Node, describe_layout
from utils.fake_quantize import fake_quantize


def adds_alike_everywhere(sums: Sums) -> bool:
    """Say whether a few random sums have the same result in every place of the matrix, and in a second product."""
    for x, y in zip(*draw_random_factors(sums, 4), strict=True):
        a, b = (np.tile(factors, (sums.width, 1)) for factors in (x, y))
        results = torch.stack([sums.product(a, b) for _ in range(2)])
        if not (results == results[0, 0, 0]).all():
            return False
    return True


def is_compensated(sums: Sums, tree: Node, tested: TestedAddition) -> tuple[bool | None, str]:
    """Say whether addends that a total loses one by one reach it together, as in Kahan's sum; None and why if unclear.

    It shows where each addend meets a total that is large already: in a sum of one product after the other.
    """
    plain = describe_layout(tree)
    if plain is None or plain.pairwise or plain.parts != 1 or plain.block != 1:
        return None, "small addends meet each other before they meet a large total"
    if tested.bits is None:
        return None, tested.why
    first, *middle, last = plain.order
    small = 2.0 ** (
        BIG - tested.bits - 1
    )  # a quarter of the last place of 2**BIG: any rule that rounds to nearest drops it
    if small < 2.0**sums.lowest:
        return None, "no product is small enough"
    (left,) = sums.ask("many small addends", [{first: 2.0**BIG, last: -(2.0**BIG)}], small)
    if tested.adders:
        products = [Product.of(small, 1.0)] * sums.places
        products[first], products[last] = Product.of(2.0**BIG, 1.0), Product.of(-(2.0**BIG), 1.0)
        if left == add_tree(tree, products, lambda _: tested.adders[0]) / (1 << STEPS):
            return False, ""
    if abs(left - small * len(middle)) <= 8 * small:  # the last compensation is lost with the total
        return True, ""
    return None, "many small addends are neither lost nor kept"


def draw_random_factors(sums: Sums, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors of random sums, values of the dtype: [count, places] each.

    Every other sum has factors of half as many bits, so that ties are common.
    """
    rng, shape = np.random.default_rng(0), (2, count, sums.places)
    draws = rng.standard_normal(shape) * np.exp2(min(3.0, sums.format.emax / 16) * rng.standard_normal(shape))
    fractions, exponents = np.frexp(draws[:, ::2])
    steps = 2.0 ** (sums.format.precision // 2 + 1)  # fractions are multiples of 1 / steps
    draws[:, ::2] = np.ldexp(np.rint(fractions * steps) / steps, exponents)
    if sums.format.precision < 53:
        draws = fake_quantize(torch.from_numpy(draws), sums.format).numpy()
    return draws[0], draws[1]


def count_confirmed(
    sums: Sums, tree: Node, tested: Mapping[tuple, TestedAddition], parameters: Mapping
) -> tuple[int, int]:
    """Return how many random sums come out as the parameters of `Finding` say, and of how many."""
    factors = draw_random_factors(sums, sums.width)
    measured = sums.products(*factors)
    output = getattr(torch, str(sums.output).removeprefix("torch."))
    factor_rounder = Adder(parameters["factor_bits"], parameters["factor_rounding"] or "ties_to_even")
    if parameters["factor_bits"] < sums.format.precision:
        factors = [
            [[factor_rounder.rounded(to_whole(x)) / (1 << STEPS) for x in row] for row in side.tolist()]
            for side in factors
        ]
    right = 0
    for x, y, result in zip(*factors, measured, strict=True):
        products = [Product.of(*pair, sums.format.emin) for pair in zip(x, y, strict=True)]
        if rule := parameters["product_rounding"]:
            rounded = Adder(parameters["product_bits"], rule).rounded
            products = [Product(rounded(product.value), product.exponent) for product in products]
        expected = add_tree(tree, products, lambda node: tested[node.kind].adders[0]) / (1 << STEPS)
        right += float(torch.tensor(expected, dtype=torch.float64).to(output)) == result
    return right, sums.width
