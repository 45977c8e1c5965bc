"""Adders in whole numbers round as the rules do, and only those survive that explain every answer."""

import itertools

import numpy as np
import pytest

from utils.experiments.microscope.adders import (
    STEPS,
    Adder,
    AdditionAnswer,
    Product,
    add_tree,
    find_common,
    find_surviving,
    round_whole,
    to_whole,
)
from utils.experiments.microscope.summation_tree import Node
from utils.rounding import RULES


@pytest.mark.parametrize("name", RULES)
def test_whole_numbers_are_rounded_by_the_rule(name):
    values, drop = np.arange(-200, 201), 3
    expected = RULES[name](values / 2**drop)
    assert [round_whole(int(value), drop, name) for value in values] == expected.tolist()


def number(value):
    return Product(to_whole(value))


def test_a_total_keeps_its_bits():
    adder = Adder(11, "ties_to_even")
    assert adder.add([number(2048.0), number(1.0)]) == to_whole(2048.0)
    assert adder.add([number(2050.0), number(1.0)]) == to_whole(2052.0)
    assert adder.add([number(2048.0), number(1.0), number(1.0)]) == to_whole(2050.0)


def test_extra_bits_decide_what_reaches_the_sum():
    """Four addends of half a last place: cut one by one they are nothing, with an extra bit they are two."""
    addends = [number(1.0), *[number(2.0**-11)] * 4]
    kept = {extra: Adder(11, "toward_zero", extra).add(addends) for extra in (0, 1, None)}
    assert kept == {0: to_whole(1.0), 1: to_whole(1 + 2.0**-9), None: to_whole(1 + 2.0**-9)}
    assert Adder(11, "toward_zero", 0).add([number(1.5), number(-(2.0**-11))]) == to_whole(1.5)
    assert Adder(11, "toward_zero", 1).add([number(1.5), number(-(2.0**-11))]) == to_whole(1.5 - 2.0**-10)


def test_a_product_is_aligned_by_itself_or_by_its_factors():
    addends = [Product.of(1.5, 1.5), Product.of(2.0**-10, 1.0), Product.of(2.0**-10, 1.0)]
    assert Adder(11, "toward_zero", 0, by_factors=True).add(addends) == to_whole(2.25 + 2.0**-9)
    assert Adder(11, "toward_zero", 0, by_factors=False).add(addends) == to_whole(2.25)


def test_a_subnormal_factor_has_the_lowest_exponent_of_its_format():
    """2**-9 of E4M3 counts as 2**-6, and so the other addends are cut at a higher place."""
    addends = [Product.of(2.0**-9, 1.0, -6), Product.of(2.0**-8, 2.0**-9, -6)]
    assert Adder(11, "toward_zero", 0, by_factors=True).add(addends) == to_whole(2.0**-9)
    assert Adder(11, "toward_zero", 0, by_factors=False).add(addends) == to_whole(2.0**-9 + 2.0**-17)


def test_products_are_exact():
    assert Product.of(1 + 2.0**-23, 1 + 2.0**-23).value == (2**46 + 2**24 + 1) << STEPS - 46
    assert Product.of(0.0, 3.0) == Product(0)
    with pytest.raises(ValueError, match=r"no multiple of 2\*\*-512"):
        to_whole(2.0**-600)


@pytest.mark.parametrize(
    "truth", [Adder(8, "ties_to_even"), Adder(8, "toward_zero", 2), Adder(8, "ties_away", 6, True)]
)
def test_only_adders_survive_that_give_every_answer(truth):
    values = [1.5, -1.5, 2.0**-7, -(2.0**-8), 2.0**-9, -(2.0**-10), 2.0**-8 + 2.0**-13, -(2.0**-8) - 2.0**-14]
    products = [number(value) for value in values] + [Product.of(1.5, -1.5)]
    asked = list(itertools.combinations(products, 3))
    left = find_surviving((AdditionAnswer(addends, None, truth.add(addends)) for addends in asked), 8)
    assert truth in left
    assert find_common(left, "rounding") == (True, truth.rounding)
    assert find_surviving([AdditionAnswer(asked[0], None, truth.add(asked[0]) + 1)], 8) == []


def test_the_next_addition_hides_whether_a_carry_was_kept():
    one, last = number(1.0), number(2.0**-7)
    cut, kept = (Adder(8, "toward_zero", 0, carries=carries) for carries in (False, True))
    assert (cut.add([one, one, last]), kept.add([one, one, last])) == (to_whole(2.0), to_whole(2 + 2.0**-7))
    taken = AdditionAnswer([one, one, last], number(-2.0), 0)
    assert {cut, kept} <= set(find_surviving([taken], 8))
    assert cut not in find_surviving([AdditionAnswer([one, one, last], None, to_whole(2 + 2.0**-7))], 8)


def test_a_sum_runs_along_its_tree():
    tree = Node((Node((0, 1)), Node((2, 3))))
    products = [number(x) for x in (2048.0, 1.0, 1.0, 1.0)]
    assert add_tree(tree, products, lambda node: Adder(11, "ties_to_even")) == to_whole(2050.0)
    line = Node((Node((Node((0, 1)), 2)), 3))
    assert add_tree(line, products, lambda node: Adder(11, "ties_to_even")) == to_whole(2048.0)
