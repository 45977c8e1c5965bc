"""DotProduct in Python: its numbers, its lanes, what it refuses, and the table for pages without JavaScript."""

import math
import re

import numpy as np
import pytest
import torch

from tests.page_states import states_in
from utils.emulation.accumulators import ACCUMULATORS
from utils.emulation.rounded_matmul import matmul
from utils.emulation.tensor_core import TENSOR_CORES
from utils.formats import FLOAT16, FORMATS
from utils.rounding import quantize
from utils.widgets.dot_product import DotProduct
from utils.widgets.dot_product.facts import ADDERS, DATA, OPERANDS, Lane, operands
from utils.widgets.shared.numbers.dice import dice


def rows_of(widget):
    """{accumulator: (sum, error)} of the static table."""
    rows = re.findall(r"<th scope='row'>(.*?)</th><td>(.*?)</td><td>(.*?)</td>", widget.static_html())
    return {label: tuple(cells) for label, *cells in rows}


def test_it_starts_with_a_register_of_float16_and_one_that_is_promoted():
    assert DotProduct().book_state() == {
        "products": 4096,
        "data": "uniform",
        "operands": "float16",
        "seed": 1,
        "added": 4096,
        "log": False,
        "lanes": [{"adder": "float16", "block": 1, "promote": 0}, {"adder": "float16", "block": 1, "promote": 128}],
    }


def test_the_dice_are_mulberry32():
    # Tommy Ettinger's generator, computed here with Python's integers
    def mulberry(seed, count):
        state, numbers = seed, []
        for _ in range(count):
            state = (state + 0x6D2B79F5) % 2**32
            z = (state ^ (state >> 15)) * (state | 1) % 2**32
            z ^= (z + ((z ^ (z >> 7)) * (z | 61))) % 2**32
            numbers.append((z ^ (z >> 14)) / 2**32)
        return numbers

    for seed in (0, 1, 2**32 - 1):
        assert dice(seed, 500).tolist() == mulberry(seed, 500)


@pytest.mark.parametrize("operand_format", OPERANDS)
@pytest.mark.parametrize("data", DATA)
def test_operands_are_values_of_the_format_and_begin_the_same_for_every_k(data, operand_format):
    a, b = operands(data, 3000, operand_format, 5)
    for x in (a, b):
        assert np.array_equal(x, quantize(x, FORMATS[operand_format]))
    for long, short in zip((a, b), operands(data, 7, operand_format, 5), strict=True):
        assert np.array_equal(long[:7], short)


def test_the_random_numbers_are_spread_as_they_say():
    n = 20_000
    uniform, normal = (np.concatenate(operands(data, n, "float16", 1)) for data in ("uniform", "normal"))
    assert abs(uniform.mean() - 0.5) < 5 * math.sqrt(1 / 12 / (2 * n))
    assert uniform.min() >= 0
    assert uniform.max() <= 1
    assert abs(normal.mean()) < 5 / math.sqrt(2 * n)
    assert abs(normal.var() - 1) < 5 * math.sqrt(2 / (2 * n))
    a, b = operands("uniform", n, "float16", 1)
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(n)
    assert not np.array_equal(a, operands("uniform", n, "float16", 2)[0])


def test_one_large_product_comes_before_many_small_ones():
    a, b = operands("large", 4, "float8_e4m3fn", 1)
    assert (a * b).tolist() == [1024, 1 / 64, 1 / 64, 1 / 64]


def test_lanes_add_as_the_accumulators_of_the_book_with_their_names():
    a, b = operands("uniform", 256, "float16", 1)
    x, y = torch.from_numpy(a).half()[None], torch.from_numpy(b).half()[:, None]
    lanes = {name: Lane(name) for name in ADDERS} | {
        "float16-chunk16": Lane("float16", block=16),
        "fp8-14bit-128": Lane("fp8-14bit", promote=128),
        "fp8-aligned-128": Lane("fp8-aligned", promote=128),
    }
    assert set(ACCUMULATORS) <= set(lanes)
    for name, accumulator in ACCUMULATORS.items():
        assert torch.equal(lanes[name].matmul(x, y), accumulator.matmul(x, y)), name
        assert lanes[name].block == accumulator.block
    assert ADDERS["volta"].bits == TENSOR_CORES["volta"].precision
    assert ADDERS["fp8-aligned"].bits == TENSOR_CORES["hopper-fp8"].precision


def test_a_promoted_register_hands_its_total_to_float32():
    widget = DotProduct(200, data="uniform")
    a, b = (torch.from_numpy(x).float() for x in widget.vectors)
    parts = [matmul(a[None, i : i + 64], b[i : i + 64, None], accumulator=FLOAT16) for i in range(0, 200, 64)]
    expected = np.float32(0)
    for part in parts:
        expected = np.float32(expected + np.float32(part.item()))
    assert widget.total(Lane("float16", promote=64)) == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(products=0), "products 0 is not in 1 to 65536"),
        (dict(products=65537), "products 65537 is not in 1 to 65536"),
        (dict(seed=-1), "seed -1 is not in 0 to 4294967295"),
        (dict(added=-1), "added -1 is not in 0 to 65536"),
        (dict(products=10, added=11), "added 11 is more than the 10 products that there are"),
        (dict(data="zeros"), "data 'zeros' is not one of ones, quarters, uniform, normal, large"),
        (dict(operands="float32"), "operands 'float32' is not one of float16, bfloat16, float8_e4m3fn"),
        (dict(lanes=[]), "0 lanes: one or two can be shown"),
        (dict(lanes=["float16"] * 3), "3 lanes: one or two can be shown"),
        (dict(lanes=["float17"]), "adder 'float17' is not one of float32, float16"),
    ],
)
def test_what_the_page_could_not_show_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        DotProduct(**arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(adder="volta", block=2), "block 2 is not one of those that volta has: 1, 4, 8, 16, 32; 0 is its own"),
        (dict(adder="float16-kahan", block=4), "block 4 is not one of those that float16-kahan has: 1"),
        (dict(promote=100), "promote 100 is not one of 0, 32, 64"),
    ],
)
def test_a_lane_that_no_adder_has_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Lane(**arguments)
    state = {"adder": "float16", "block": 0, "promote": 0} | arguments
    with pytest.raises(ValueError, match=re.escape(says)):
        DotProduct().lanes = [state]
    with pytest.raises(ValueError, match="a lane has adder, block and promote"):
        DotProduct().lanes = [{"width": 14}]


def test_a_page_without_javascript_compares_the_accumulators():
    rows = rows_of(DotProduct(512, ["bfloat16", Lane("bfloat16", promote=128)], data="ones"))
    assert rows["bfloat16"] == ("256", "−50 %")
    assert rows["bfloat16, promoted every 128"] == ("512", "0 %")
    assert {each.label for each in ACCUMULATORS.values()} <= set(rows)
    text = DotProduct(512, data="ones").static_html()
    assert "512 products of float16 numbers, ones: each product is exact, and together they are 512." in text


def test_the_table_of_many_products_is_of_the_first_ones_and_says_so():
    widget = DotProduct(65_536, ["fp8-14bit"], data="large")
    assert "65,536 products (here the first 4,096)" in widget.static_html()
    assert rows_of(widget)["float16, one by one"] == ("1024", "−5.9 %")


def test_fourteen_bits_cut_after_four_products_lose_two_per_cent_at_4096():
    # DeepSeek-V3 (arXiv 2412.19437, 3.3.2) reports a maximum relative error of nearly 2 % at K = 4096
    lanes = [Lane("fp8-14bit", block=4), Lane("fp8-14bit", block=4, promote=128)]
    widget = DotProduct(4096, lanes, operands="float8_e4m3fn")
    a, b = widget.vectors
    cut, promoted = (widget.total(lane) / math.fsum(a * b) - 1 for lane in lanes)
    assert cut == pytest.approx(-0.0206, abs=5e-5)
    assert promoted == pytest.approx(-0.00043, abs=5e-6)


def test_the_place_in_the_page_holds_the_state():
    data = DotProduct(64, ["volta"], data="ones", added=16)._repr_mimebundle_()[0]["text/html"]
    assert data.startswith('<div class="mp-widget" data-mp-widget="dot_product"')
    [state] = states_in(data)
    assert (state["products"], state["added"]) == (64, 16)
    assert state["lanes"] == [{"adder": "volta", "block": 4, "promote": 0}]
