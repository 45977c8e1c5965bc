"""Microscope in Python: its adders against the book's models of the same units, its levels, what it refuses."""

import re

import numpy as np
import pytest
import torch

from tests.page_states import states_in
from utils.accumulation import matmul as chunked
from utils.accumulation import pairwise_sum, running_sum
from utils.emulation.tensor_core import TENSOR_CORES
from utils.formats import FLOAT8_E4M3FN, FLOAT16, FloatFormat
from utils.rounding import RULES, quantize
from utils.widgets.microscope import BY_NAME, Microscope
from utils.widgets.microscope.adders import EXTRAS, LEAST_BITS, MOST_BITS, ORDERS, PLACES, HiddenAdder, random_adder
from utils.widgets.microscope.adders import RULES as RULE_TEXTS
from utils.widgets.microscope.levels import ASKED, LARGEST, LEVELS, PRESETS, RANDOM


def random_terms(count, lowest, seed=1):
    """Terms such as the page takes, float64 [count, 8]: zeros among them, and sizes that are close and far apart."""
    rng = np.random.default_rng(seed)
    shape = (count, PLACES)
    exponents = rng.integers(lowest, LARGEST + 1, shape)
    near = rng.integers(0, 2, (count, 1)).astype(bool)
    exponents = np.where(near, np.maximum(exponents[:, :1] - rng.integers(0, 5, shape), lowest), exponents)
    signs = rng.choice([0.0, 1.0, 1.0, -1.0], shape)
    return signs * rng.choice([1.0, 1.25, 1.5, 1.75], shape) * np.exp2(exponents)


@pytest.mark.parametrize("unit", ["volta", "ampere", "hopper"])
def test_a_unit_adds_like_its_model_bit_for_bit(unit):
    terms = random_terms(2000, -22)
    assert np.array_equal(terms, quantize(terms, FLOAT16))
    a, ones = torch.from_numpy(terms).half(), torch.ones(PLACES, 1).half()
    model = TENSOR_CORES[unit].matmul(a, ones)[:, 0].double().numpy()
    np.testing.assert_array_equal([BY_NAME[unit].adder.add(list(row)) for row in terms], model)


def test_the_unit_of_the_puzzle_adds_products_of_e4m3_numbers_like_its_model():
    terms = random_terms(300, -12)
    fractions, exponents = np.frexp(terms)
    half = (exponents - 1) // 2
    a, b = 2 * fractions * np.exp2(half), np.exp2(exponents - 1 - half)
    for factor in (a, b):
        assert np.array_equal(factor, quantize(factor, FLOAT8_E4M3FN))
    unit, pairs = TENSOR_CORES["hopper-fp8"], zip(torch.from_numpy(a).float(), torch.from_numpy(b).float(), strict=True)
    model = [unit.matmul(x[None], y[:, None]).item() for x, y in pairs]
    np.testing.assert_array_equal([BY_NAME["hopper-fp8"].adder.add(list(row)) for row in terms], model)


@pytest.mark.parametrize("rule", RULE_TEXTS)
@pytest.mark.parametrize("bits", [7, 8, 11, 14, 24])
def test_an_adder_that_cuts_nothing_adds_like_the_accumulation_of_the_book(bits, rule):
    terms, total = random_terms(120, -22), FloatFormat(f"{bits} bits", 8, bits - 1, bias=127)
    rounding = RULES[rule]
    expected = {
        1: running_sum(terms, total, rounding)[:, -1],
        "pairs": pairwise_sum(terms, total, rounding),
        4: chunked(terms, np.ones((PLACES, 1)), total, chunk=4, rounding=rounding)[:, 0],
        8: chunked(terms, np.ones((PLACES, 1)), total, chunk=8, rounding=rounding)[:, 0],
    }
    for order in ORDERS:
        sums = [HiddenAdder(bits, None, rule, order).add(list(row)) for row in terms]
        np.testing.assert_array_equal(sums, expected[order], err_msg=f"{order}")


def test_subnormal_terms_are_read_as_0_where_the_unit_flushes():
    keeps, flushes = HiddenAdder(24), HiddenAdder(24, flush=True)
    for terms in ([2.0**-15], [1.0, 1.75 * 2.0**-15], [-(2.0**-20), 2.0**-14]):
        assert keeps.add(terms) == sum(terms)
        assert flushes.add(terms) == sum(x for x in terms if abs(x) >= 2.0**-14)


def test_a_sum_has_eight_places():
    with pytest.raises(ValueError, match="9 terms: there are 8 places"):
        HiddenAdder(11).add([1.0] * 9)


def test_random_adders_are_spread_over_all_that_can_be_named():
    drawn = [random_adder(seed) for seed in range(1, 400)]
    assert {adder.bits for adder in drawn} == set(range(LEAST_BITS, MOST_BITS + 1))
    assert {adder.extra for adder in drawn} == set(EXTRAS)
    assert {adder.rule for adder in drawn} == set(RULE_TEXTS) == set(RULES)
    assert {adder.order for adder in drawn} == set(ORDERS)
    assert {adder.flush for adder in drawn} == {False, True}


def test_the_levels_have_names_ids_and_texts_of_their_own():
    goals = [level.as_json() for level in LEVELS]
    for key in ("name", "id", "title", "text"):
        assert len({goal[key] for goal in goals}) == len(LEVELS) >= 6
    assert all(goal["id"].startswith("hardware/accumulation/hidden-") for goal in goals)
    assert all(set(level.asks) <= set(ASKED) and level.asks for level in (*LEVELS, RANDOM))
    assert max(map(len, (level.says for level in LEVELS))) < 260


def test_the_state_of_the_page_holds_the_levels_and_the_first_sum():
    data = Microscope()._repr_mimebundle_()[0]["text/html"]
    [state] = states_in(data)
    assert (state["level"], state["terms"], state["experiments"]) == ("nearest", "1 2^-9 -1", "")
    assert [goal["name"] for goal in state["goals"]] == [level.name for level in LEVELS]
    assert len(state["facts"]["presets"]) == len(PRESETS)
    assert Microscope("hopper-fp8").terms == "1 2^-10 -1"


def test_python_reads_what_the_page_sends():
    widget = Microscope("random", seed=5)
    assert widget.adder == random_adder(5)
    widget.set_state({"level": "volta", "experiments": "1 2^-10 -1;2", "terms": "2"})
    assert widget.adder == HiddenAdder(24, 0, "toward_zero", 4)
    assert repr(widget) == "Microscope('volta', seed=5, terms=\"2\")"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(dict(level="turing"), "level 'turing' is not one of nearest, cut"), (dict(seed=0), "seed 0 is not in 1 to 9999")],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Microscope(**arguments)


def test_a_page_without_javascript_works_an_example():
    rows = re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td><td>(.*?)</td>", Microscope().static_html())
    assert rows == [
        ("2⁻⁸", "2⁻⁸", "2⁻⁸"),
        ("2⁻⁹", "0", "2⁻⁹"),
        ("1.5 × 2⁻⁹", "2⁻⁸", "2⁻⁹"),
        ("1.75 × 2⁻⁹", "2⁻⁸", "2⁻⁹"),
        ("2⁻¹⁰", "0", "0"),
    ]
