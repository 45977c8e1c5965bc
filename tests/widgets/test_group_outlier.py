"""GroupOutlier in Python: its weights, its numbers, what it refuses, and the table for pages without JavaScript."""

import re

import numpy as np
import pytest

from tests.page_states import state_of
from utils.widgets.group_outlier import GroupOutlier
from utils.widgets.group_outlier.facts import BITS, COUNT, GROUPS, SPREAD, generated, loss, row

CASES = [(bits, symmetric) for bits in BITS for symmetric in (True, False)]


def error(outlier, bits, group, symmetric, weights=()):
    return loss(weights, outlier, 84, bits, group, symmetric).error


def test_the_generated_weights_are_nearly_normal():
    weights = generated().astype(float)
    assert weights.shape == (COUNT,)
    assert abs(weights.mean()) < 5 * SPREAD / np.sqrt(COUNT)
    assert abs(weights.std() / SPREAD - 1) < 5 / np.sqrt(2 * COUNT)
    assert generated().dtype == np.float32


@pytest.mark.parametrize(
    ("bits", "symmetric", "group", "price"),
    [(4, True, 32, 4.5), (4, False, 32, 4.75), (4, True, 128, 4.125), (8, True, 64, 8.25), (4, True, 256, 4.0625)],
)
def test_a_scale_costs_16_bits_and_a_zero_point_8(bits, symmetric, group, price):
    assert loss((), 0.5, 84, bits, group, symmetric).bits == price


def test_without_an_outlier_four_bits_lose_sixteen_times_what_eight_do():
    for group in GROUPS:
        four, eight = (error(0, bits, group, True) for bits in BITS)
        assert 12 < four / eight < 24  # steps are 127 / 7 = 18 times as wide


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_smaller_group_keeps_the_damage_small(case):
    bits, symmetric = case
    found = [error(0.5, bits, group, symmetric) for group in GROUPS]
    assert found == sorted(found, reverse=True)


def test_an_outlier_of_one_sign_costs_asymmetric_codes_half():
    for group in GROUPS:
        both, one = (error(2.0, 8, group, symmetric) for symmetric in (True, False))
        assert 1.6 < both / one < 4, group


def test_one_outlier_takes_all_others_of_the_row_to_zero_in_four_bits():
    assert loss((), 2.0, 84, 4, 256, True).zeros == 1.0
    assert loss((), 2.0, 84, 4, 8, True).zeros < 0.2


def test_a_row_of_ones_own_is_taken_as_float32():
    weights = tuple(np.linspace(-0.3, 0.7, COUNT).tolist())
    np.testing.assert_array_equal(row(weights, 0, 1), np.float32(weights))
    assert row(weights, 9.0, 3)[2] == 9
    assert GroupOutlier(weights, outlier=0).loss == loss(weights, 0, 84, 4, 64, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(outlier=2e6), "outlier 2000000.0 is not in -1,000,000 to 1,000,000"),
        (dict(outlier=float("nan")), "outlier nan is not in -1,000,000 to 1,000,000"),
        (dict(place=0), "place 0 is not in 1 to 256"),
        (dict(bits=3), "bits 3 is not one of 4, 8"),
        (dict(group=24), "group 24 is not one of 256, 128, 64, 32, 16, 8"),
        (dict(weights=[1.0, 2.0]), "a row has 256 weights, or none for generated ones; not 2"),
        (dict(weights=[float("inf")] * COUNT), "weights are finite numbers of at most 1,000"),
        (dict(weights=[0.0] * COUNT), "all weights are 0: nothing can be lost"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        GroupOutlier(**arguments)
    shown = GroupOutlier()
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=re.escape(says)):
        setattr(shown, name, value)


def test_a_page_without_javascript_gets_a_table():
    text = GroupOutlier().static_html()
    assert "A row of 256 weights with an outlier of 0.5" in text
    rows = re.findall(r"<tr><th scope='row'>(.*?)</th>(.*?)</tr>", text)
    assert [name for name, _ in rows] == ["the row", *map(str, GROUPS[1:])]
    one = loss((), 0.5, 84, 4, 32, True)
    assert (
        re.findall(r"<td>(.*?)</td>", rows[3][1])[0] == f"4.5 bits: {100 * one.error:.3g} % ({100 * one.zeros:.2g} %)"
    )


def test_the_place_in_the_page_holds_the_state_and_no_generated_weights():
    shown = GroupOutlier(outlier=-1.0, bits=8, group=16, symmetric=False)
    state = {"weights": [], "outlier": -1.0, "place": 84, "bits": 8, "group": 16, "symmetric": False}
    assert state_of(shown) == state
    assert repr(shown) == "GroupOutlier(int8, asymmetric, group=16, outlier=-1 at 84)"
