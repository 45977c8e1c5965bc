"""DotProduct in a real browser: its sums against Python's, its bits, its marks, and what a reader does."""

import math
import re
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from tests.browser.widget_page import (
    DESK,
    HEIGHT,
    PHONE,
    WIDTH,
    after_each,
    barriers,
    calls_of,
    calm_show,  # noqa: F401, the fixture `show`
    cut_off_choices,
    cut_off_of,
    heights,
    small_targets,
)
from utils.accumulation import pairwise_sum
from utils.formats import FORMATS
from utils.rounding import ulp
from utils.widgets.dot_product import DotProduct
from utils.widgets.dot_product.facts import ADDERS, DATA, OPERANDS, Lane, operands

LANES = [Lane(name, block) for name, adder in ADDERS.items() for block in adder.blocks]


HARNESS = """
const text = (numbers) => [...numbers].map(String);
let cached = {};
const runOf = (state, lane) => {
  cached = words.computed({ ...state, lanes: [lane] }, cached);
  return cached;
};
window.calls = {
  adders: () => words.ADDERS,
  blocks: (name) => words.blocksOf(words.ADDERS[name]),
  exponents: (state) => text(words.operandPairs(state).exponents),
  operands: (state) => { const { a, b } = words.operandPairs(state); return [text(a), text(b)]; },
  exact: (products) => text(words.exactSums(Float64Array.from(products))),
  values: (state, lane) => text(runOf(state, lane).runs[0].values),
  gone: (state, lane) => [...runOf(state, lane).runs[0].gone],
  marks: (state, lane) => {
    const { stalledAt, swampedAt, overflowAt, promotions } = runOf(state, lane).runs[0];
    return { stalledAt, swampedAt, overflowAt, promotions };
  },
  addition: (state, lane, k) => { const { runs, pairs } = runOf(state, lane); return words.additionAt(runs[0], pairs.products, k); },
  laneText: (lane) => words.laneText(lane),
  percent: (share) => words.percentText(share),
  lastPlace: (x) => words.lastPlace(x),
  bits: (x, top, low) => Array.from({ length: top - low + 1 }, (_, i) => words.bitAt(x, top - i)).join(""),
  oddSum: (pairs) => pairs.map(([a, b]) => String(words.oddSum(a, b))),
  tree: (products, name) => words.treeSum(Float64Array.from(products), 0, products.length, words.doubleRounders(words.FORMATS[name]).near),
  places: (state, lane) => runOf(state, lane).places,
  path: (ys, width) => words.thinnedPath(ys.length, (i) => (i * width) / ys.length, (i) => ys[i]),
};
"""  # noqa: E501


call = calls_of("dot_product/widget", HARNESS)


def state_of(data, products, operand_format, seed=1):
    return {"data": data, "products": products, "operands": operand_format, "seed": seed}


def numbers(texts):
    return np.array([float(text.replace("Infinity", "inf")) for text in texts])


def tensors(state):
    a, b = operands(state["data"], state["products"], state["operands"], state["seed"])
    return tuple(torch.from_numpy(x).to(FORMATS[state["operands"]].torch_dtype) for x in (a, b))


# Twins: the page's arithmetic against Python's


def test_the_adders_are_those_of_python(call):
    page = call("adders")
    assert page == {
        name: {key: value for key, value in asdict(adder).items() if value is not None}
        for name, adder in ADDERS.items()
    }
    for name, adder in ADDERS.items():
        assert tuple(call("blocks", name)) == adder.blocks


def test_lanes_have_the_names_of_python(call):
    for lane in (*LANES, Lane("float16", promote=128), Lane("fp8-14bit", promote=4096)):
        assert call("laneText", asdict(lane)) == lane.label


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.99962, "99.96 %"),
        (0.0196, "1.96 %"),
        (0.000432, "0.043 %"),
        (1e-5, "0.001 %"),
        (9.6e-8, "1·10⁻⁵ %"),
        (2.4e-9, "2·10⁻⁷ %"),
        (12.5, "1250 %"),
    ],
)
def test_a_share_is_a_percentage_of_few_digits(call, share, text):
    assert call("percent", share) == text


@pytest.mark.parametrize("operand_format", OPERANDS)
@pytest.mark.parametrize("data", DATA)
def test_the_page_draws_the_operands_of_python(call, data, operand_format):
    for seed, count in [(0, 1), (1, 2000), (2**32 - 1, 300)]:
        state = state_of(data, count, operand_format, seed)
        for ours, theirs in zip(call("operands", state), operands(data, count, operand_format, seed), strict=True):
            np.testing.assert_array_equal(numbers(ours), theirs)


def test_products_are_aligned_by_their_factors_and_subnormal_ones_by_their_format(call):
    state = state_of("normal", 3000, "float8_e4m3fn", seed=1)
    a, b = operands("normal", 3000, "float8_e4m3fn", 1)
    wanted = sum(np.maximum(np.frexp(x)[1] - 1, -6) for x in (a, b)).astype(float)
    wanted[a * b == 0] = -math.inf
    assert np.isinf(wanted).any()
    assert (np.abs(a) < 2.0**-6).any()
    np.testing.assert_array_equal(numbers(call("exponents", state)), wanted)


@pytest.mark.parametrize("operand_format", OPERANDS)
@pytest.mark.parametrize("lane", LANES, ids=lambda lane: f"{lane.adder}-{lane.block}")
def test_every_lane_adds_bit_for_bit_as_python_does(call, lane, operand_format):
    count = 293
    states = [state_of(data, count, operand_format, seed=lane.block + 7) for data in DATA]
    a, b = (torch.stack(x) for x in zip(*map(tensors, states), strict=True))
    for promote in (0, 32, 128):
        promoted = Lane(lane.adder, lane.block, promote)
        ours = np.array([numbers(call("values", state, asdict(promoted))) for state in states])
        for k in (32, 96, 160, count):
            theirs = promoted.matmul(a[:, :k], b.T[:k]).diagonal()
            np.testing.assert_array_equal(ours[:, math.ceil(k / lane.block) - 1], theirs, err_msg=f"{promoted} at {k}")


@pytest.mark.parametrize(
    "lane",
    [
        Lane("float32", block=32),
        Lane("float16", block=16, promote=4096),
        Lane("float16-pairwise"),
        Lane("fp8-14bit", block=4),
        Lane("fp8-14bit", promote=128),
        Lane("fp8-aligned"),
        Lane("volta", block=32, promote=512),
    ],
    ids=lambda lane: f"{lane.adder}-{lane.block}-{lane.promote}",
)
def test_the_longest_sum_ends_where_python_ends(call, lane):
    for data, operand_format in [("uniform", "float8_e4m3fn"), ("normal", "float16"), ("ones", "bfloat16")]:
        state = state_of(data, 65_536, operand_format, seed=3)
        a, b = tensors(state)
        ours = numbers(call("values", state, asdict(lane))[-1:])[0]
        assert ours == lane.matmul(a[None], b[:, None]).item(), data


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 31, 33, 64, 100])
def test_the_tree_of_k_products_is_the_one_that_python_makes_of_them(call, count):
    state = state_of("normal", count, "float16", seed=count)
    a, b = tensors(state)
    products = a.double() * b.double()
    theirs = pairwise_sum(products.numpy(), FORMATS["bfloat16"])
    assert call("tree", products.tolist(), "bfloat16") == theirs
    assert numbers(call("values", state, asdict(Lane("bfloat16-pairwise"))))[-1] == theirs


def test_the_exact_sums_are_those_of_fractions(call):
    for data in ("uniform", "normal"):
        a, b = operands(data, 5000, "float16", 4)
        ours = numbers(call("exact", (a * b).tolist()))
        assert ours[0] == 0
        for k in (1, 17, 1000, 5000):
            assert ours[k] == math.fsum(a[:k] * b[:k])
    assert numbers(call("exact", [2.0**60, 1.0, -(2.0**60)]))[-1] == 1


def test_a_sum_rounded_to_odd_tells_on_which_side_the_exact_one_lies(call):
    rng = np.random.default_rng(seed=1)
    pairs = (rng.normal(size=(400, 2)) * np.exp2(rng.integers(-70, 70, (400, 2)))).tolist()
    pairs += [[1.0, 2.0**-60], [-1.0, 2.0**-60], [1.0, -(2.0**-60)], [1.0, 2.0], [2.0**53, 1.0]]
    for (a, b), odd in zip(pairs, numbers(call("oddSum", pairs)), strict=True):
        exact = Fraction(a) + Fraction(b)
        if Fraction(a + b) == exact:
            assert odd == a + b
        else:
            below = float(odd) if Fraction(float(odd)) < exact else float(np.nextafter(odd, -np.inf))
            assert Fraction(below) < exact < Fraction(float(np.nextafter(below, np.inf)))
            assert np.float64(odd).view(np.int64) & 1 == 1


# The addition in bits


def last_place(x):
    numerator, denominator = float(abs(x)).as_integer_ratio()
    return (numerator & -numerator).bit_length() - denominator.bit_length()


def test_the_bits_of_a_number_are_its_own(call):
    rng = np.random.default_rng(seed=2)
    for x in [*(rng.normal(size=50) * np.exp2(rng.integers(-40, 40, 50))), 1.0, 2.0**-20, 3 * 2.0**31, 65535.0]:
        x = float(np.float32(x))
        assert call("lastPlace", x) == last_place(x)
        top = math.frexp(x)[1] - 1
        bits = call("bits", x, top + 2, last_place(x) - 1)
        assert sum(2.0 ** (top + 2 - i) for i, bit in enumerate(bits) if bit == "1") == abs(x)


@pytest.mark.parametrize("data", ["uniform", "normal", "large"])
@pytest.mark.parametrize("lane", LANES[::2], ids=lambda lane: f"{lane.adder}-{lane.block}")
def test_an_addition_is_what_the_lane_has_done(call, lane, data):
    state = state_of(data, 200, "float16", seed=9)
    a, b = operands(data, 200, "float16", 9)
    values = np.concatenate([[0.0], numbers(call("values", state, asdict(lane)))])
    gone = [0, *call("gone", state, asdict(lane))]
    for k in (1, 2, 40, 63, 199, 200):
        n = math.ceil(k / lane.block)
        got = call("addition", state, asdict(lane), k)
        assert (got["start"], got["stop"]) == ((n - 1) * lane.block, min(n * lane.block, 200))
        assert got["after"] == values[n]
        assert got["gone"] == gone[n] - gone[n - 1]
        block = a[got["start"] : got["stop"]] * b[got["start"] : got["stop"]]
        adder, [first, *more] = ADDERS[lane.adder], got["addends"]
        if adder.kind != "pairwise":
            assert got["before"] == values[n - 1]
        if adder.kind in ("running", "cut"):
            assert first["value"] == math.fsum(block)
            assert got["gone"] == (np.count_nonzero(block) if values[n] == values[n - 1] else 0)
        if adder.kind == "aligned":
            sizes = np.abs(block[block != 0])
            assert [abs(one["value"]) for one in (first, *more)] == [sizes.max(), sizes.min()][: 1 + len(more)]
            factors = zip(a[got["start"] : got["stop"]], b[got["start"] : got["stop"]], strict=True)
            tops = [sum(max(math.frexp(x)[1] - 1, -14) for x in pair) for pair in factors if all(pair)]
            tops += [math.frexp(got["before"])[1] - 1] if got["before"] else []
            assert got["end"] == max(tops) - adder.bits + 1
            assert got["gone"] == np.count_nonzero(sizes < 2.0 ** got["end"])
        elif adder.format:
            exact = got["before"] + first["value"]
            assert 2.0 ** got["end"] == ulp(exact, FORMATS[adder.format])
        fallen = [
            max(0, min(got["end"] - last_place(x), math.frexp(x)[1] - last_place(x)))
            for one in got["addends"]
            if (x := abs(one["value"]))
        ]
        assert got["off"] == sum(fallen)
        assert got["promotedTo"] is None


def test_a_promotion_is_told_and_empties_the_register(call):
    state, lane = state_of("uniform", 300, "float16"), asdict(Lane("bfloat16", promote=64))
    assert call("marks", state, lane)["promotions"] == [64, 128, 192, 256]
    values = numbers(call("values", state, lane))
    assert call("addition", state, lane, 128)["promotedTo"] == values[127]
    assert call("addition", state, lane, 129)["before"] == 0
    assert call("addition", state, lane, 129)["promotedTo"] is None


def test_the_picture_holds_every_register_and_has_room_on_a_phone(call):
    for lane in LANES[::3]:
        for data in DATA:
            state = state_of(data, 1500, "float16")
            places = call("places", state, asdict(lane))
            values = numbers(call("values", state, asdict(lane)))
            assert 20 <= places["top"] - places["low"] + 1 <= 40
            assert 2.0 ** places["top"] <= max(np.abs(values).max(), 16) < math.inf
            assert np.abs(values).max() < 2.0 ** (places["top"] + 1)


# Where a sum stops


@pytest.mark.parametrize(
    ("lane", "data", "stalled"),
    [
        (Lane("bfloat16"), "ones", 256),
        (Lane("float16"), "ones", 2048),
        (Lane("float32"), "ones", None),
        (Lane("float16"), "quarters", 2048),
        (Lane("bfloat16"), "quarters", 256),
        (Lane("fp8-14bit", block=4), "ones", None),  # 2**14 is reached by four at a time, and every sum is exact
        (Lane("fp8-aligned"), "large", 32),
        (Lane("bfloat16", promote=512), "ones", None),
    ],
    ids=lambda value: str(value),
)
def test_a_stall_is_where_no_product_changes_the_register_any_more(call, lane, data, stalled):
    marks = call("marks", state_of(data, 4096, "float16"), asdict(lane))
    assert marks["stalledAt"] == stalled
    assert marks["overflowAt"] is None


def test_quarters_one_at_a_time_stall_where_the_exercise_asks(call):
    cut = call("marks", state_of("quarters", 20_000, "float16"), asdict(Lane("fp8-14bit", block=1)))
    blocks = call("marks", state_of("quarters", 20_000, "float16"), asdict(Lane("fp8-14bit", block=32)))
    assert (cut["stalledAt"], blocks["stalledAt"]) == (16_384, None)


def test_one_product_past_the_stall_is_enough_where_all_are_equal(call):
    for count, stalled in [(2048, None), (2049, 2048)]:
        assert call("marks", state_of("ones", count, "float16"), asdict(Lane("float16")))["stalledAt"] == stalled


def test_a_sum_swamps_from_where_most_products_leave_no_trace(call):
    state, lane = state_of("uniform", 4096, "float16"), asdict(Lane("float16"))
    marks, gone = call("marks", state, lane), np.array([0, *call("gone", state, lane)])
    k = marks["swampedAt"]
    assert marks["stalledAt"] is None
    assert numbers(call("values", state, lane))[k] * 1.1 > 512  # half of the products are below half of its gap, 0.25
    assert gone[-1] - gone[k] > (4096 - k) / 2
    assert gone[k + 256] - gone[k] > 128
    assert gone[k - 1 + 256] - gone[k - 1] <= 128 or gone[-1] - gone[k - 1] <= (4097 - k) / 2
    assert call("marks", state, asdict(Lane("float16", promote=128)))["swampedAt"] is None


def test_a_sum_of_ones_in_float16_overflows_if_blocks_are_exact(call):
    marks = call("marks", state_of("ones", 65_536, "float16"), asdict(Lane("float16", block=32)))
    assert marks["overflowAt"] == 65_536  # 65 520 and more round to infinity; 65 504 does not


def test_a_line_keeps_its_ends_its_lowest_and_its_highest_of_each_pixel(call):
    ys = np.random.default_rng(seed=4).normal(size=2000)
    path = call("path", ys.tolist(), 200)  # ten points a pixel, each at a tenth of it
    points = [tuple(map(float, point.split())) for point in re.split("[ML]", path)[1:]]
    for pixel in range(200):
        drawn = [y for x, y in points if math.floor(x) == pixel]
        part = ys[10 * pixel : 10 * pixel + 10]
        assert len(drawn) <= 4
        for ours, theirs in [
            (drawn[0], part[0]),
            (drawn[-1], part[-1]),
            (min(drawn), min(part)),
            (max(drawn), max(part)),
        ]:
            assert ours == pytest.approx(theirs, abs=0.0501)


# What a reader does


def press(page, name):
    page.get_by_role("button", name=name, exact=True).first.click()


def table(page):
    """{row: (sum, error, swallowed)}."""
    rows = page.locator(".mp-dot-table tbody tr:visible").all()
    cells = (row.locator("th, td").all_inner_texts() for row in rows)
    return {re.sub(r"\s+", " ", name).strip(): tuple(more) for name, *more in cells}


def said(page, lane=0):
    return page.locator(".mp-dot-said").nth(lane).inner_text()


def k_of(page):
    return int(re.sub(r"\D", "", page.locator(".mp-dot-k").inner_text()))


def ones(*lanes, products=512, **more):
    return DotProduct(products, lanes or ["bfloat16"], data="ones", **more)


def test_the_stall_of_ones_is_seen_in_bits(show):
    page = show(ones())
    press(page, "to the stall")
    assert k_of(page) == 257
    assert page.locator(".mp-dot-title").inner_text() == "Product 257 of 512: 1 × 1 = 1"
    bits = [row.get_attribute("aria-label") for row in page.locator(".mp-dot-bits[role=img]:visible").all()]
    assert bits == ["bits 10000000", "bits none, falling off 1", "bits 10000000"]
    assert page.locator(".mp-dot-value:visible").all_inner_texts() == ["256", "1", "256"]
    assert said(page) == "The only bit of the product falls off: swallowed whole."
    assert page.locator(".mp-dot-stall").first.inner_text() == "○ stalls at k = 256"
    assert table(page) == {"exactly": ("257", "", ""), "A bfloat16": ("256", "−0.389 %", "0.389 %")}


def test_the_box_ends_where_bits_fall_off_and_moves_as_the_total_grows(show):
    page = show(ones(added=1))

    def places():
        row = page.locator(".mp-dot-register .mp-dot-row").nth(1)  # the product
        boxes = [row.locator(part).bounding_box() for part in (".mp-dot-box", ".mp-dot-bit")]
        return [round(value) for box in boxes for value in (box["x"], box["x"] + box["width"])]

    left, right, bit_left, bit_right = places()
    assert left <= bit_left < bit_right <= right
    before = left
    press(page, "to the stall")
    left, right, bit_left, _ = places()
    assert left < before  # toward larger powers
    assert abs(bit_left - right) <= 2  # the bit lies right of the register


def test_the_box_of_the_sum_stands_where_the_sum_is(show):
    """Addends of an aligned block are cut in one place; their sum is up to five places further left."""
    page = show(DotProduct(4096, ["fp8-aligned"], operands="float8_e4m3fn", added=32))
    for _ in range(3):
        rows = page.locator(".mp-dot-register:visible .mp-dot-row")
        cut, after = (rows.nth(n).locator(".mp-dot-box").bounding_box() for n in (1, 3))
        bits = rows.nth(3).locator(".mp-dot-bit").all()
        first, last = (bit.bounding_box() for bit in (bits[0], bits[-1]))
        assert abs(after["x"] - first["x"]) <= 2
        assert abs(after["x"] + after["width"] - last["x"] - last["width"]) <= 2
        assert abs(cut["width"] - after["width"]) <= 2
        press(page, "add 32")
    assert "“after” has the box in its new place." in page.locator(".mp-dot-legend").inner_text()


def test_single_steps_the_slider_and_the_ends(show):
    page = show(ones(added=0))
    assert page.locator(".mp-dot-title").inner_text() == "Next: Product 1 of 512: 1 × 1 = 1"
    assert page.get_by_role("button", name="1 back").get_attribute("aria-disabled") == "true"
    press(page, "add 1")
    press(page, "add 1")
    assert table(page)["A bfloat16"] == ("2", "0 %", "0 %")
    press(page, "1 back")
    assert k_of(page) == 1
    slider = page.get_by_label("k, products added")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert k_of(page) == 2
    assert slider.get_attribute("aria-valuetext") == "2 of 512 products"
    page.keyboard.press("End")
    assert k_of(page) == 512
    page.get_by_role("button", name="add 1").click(force=True)
    assert k_of(page) == 512
    press(page, "1 back")
    assert k_of(page) == 511


def test_blocks_are_added_at_once_and_the_last_one_may_be_shorter(show):
    page = show(ones(Lane("float16", block=32), Lane("float16"), products=100, added=0))
    press(page, "add 32")
    assert page.locator(".mp-dot-title").inner_text() == "Products 1 to 32 of 100"
    assert table(page)["B float16"] == ("32", "0 %", "0 %")
    for _ in range(3):
        press(page, "add 32")
    assert k_of(page) == 100
    assert page.locator(".mp-dot-title").inner_text() == "Products 97 to 100 of 100"
    press(page, "32 back")
    assert k_of(page) == 96


def test_a_second_lane_shows_what_promotion_saves(show):
    page = show(ones())
    page.get_by_label("compare two").check()
    assert table(page)["B bfloat16, promoted every 128"] == ("512", "0 %", "0 %")
    assert "Promoted to float32, total 512: the register is 0 again." in said(page, 1)
    second = page.get_by_role("group", name="Lane B")
    second.get_by_label("promoted to float32").select_option("512")
    assert table(page)["B bfloat16, promoted every 512"] == ("256", "−50 %", "50 %")
    second.get_by_label("adds in").select_option("fp8-14bit")
    assert second.get_by_label("at once").input_value() == "32"
    assert second.get_by_label("at once").locator("option:disabled").count() == 0
    page.get_by_label("compare two").uncheck()
    assert list(table(page)) == ["exactly", "A bfloat16"]


def test_k_is_typed_or_chosen_as_a_power_of_two(show):
    page = show(ones())
    field, slider = page.get_by_label("K products"), page.get_by_label("K as a power of two")
    field.fill("1 000")
    field.press("Enter")
    assert k_of(page) == 1000  # at the end as before
    assert slider.input_value() == "10"
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert field.input_value() == "2048"
    page.keyboard.press("End")
    assert field.input_value() == "65536"
    assert table(page)["A bfloat16"] == ("256", "−99.6 %", "99.6 %")


def test_a_k_that_is_none_gets_one_sentence_and_changes_nothing(show):
    page = show(ones())
    before, field = table(page), page.get_by_label("K products")
    for text in ("abc", "0", "65537", "2.5", ""):
        field.fill(text)
        field.press("Enter")
        message = page.locator(".mp-dot-message").inner_text()
        assert message.startswith("K is a whole number from 1 to 65,536, not")
        assert message.endswith("Below: still K = 512.")
        assert field.get_attribute("aria-invalid") == "true"
        assert table(page) == before
    page.get_by_role("combobox", name="Numbers").select_option("large")
    assert field.input_value() == ""
    field.fill("64")
    field.press("Enter")
    assert page.locator(".mp-dot-message").is_hidden()
    assert field.get_attribute("aria-invalid") == "false"


def test_other_numbers_are_drawn_where_there_are_any(show):
    page = show(DotProduct(256))
    before = table(page)["exactly"]
    press(page, "other numbers")
    assert table(page)["exactly"] != before
    page.get_by_role("combobox", name="Numbers").select_option("ones")
    button = page.get_by_role("button", name="other numbers")
    assert button.get_attribute("aria-disabled") == "true"
    button.click(force=True)
    assert table(page)["exactly"] == ("256", "", "")


def test_the_table_is_that_of_python(show):
    lanes = [Lane("fp8-aligned", promote=64), Lane("float16-kahan")]
    widget = DotProduct(700, lanes, operands="float8_e4m3fn", data="normal", seed=11)
    rows = table(show(widget))
    a, b = widget.vectors
    exact = math.fsum(a * b)
    for name, lane in zip(["A 14 bits, addends cut, promoted every 64", "B float16, Kahan"], lanes, strict=True):
        total = widget.total(lane)
        shown = float(rows[name][0].replace("≈\u00a0", "").replace("−", "-"))
        assert shown == pytest.approx(total, rel=1e-5)
        error = float(rows[name][1].replace("−", "-").removesuffix(" %"))
        assert error == pytest.approx(100 * (total - exact) / abs(exact), rel=6e-2)


@pytest.mark.parametrize("adder", ADDERS)
def test_every_adder_explains_every_addition(show, adder):
    page = show(DotProduct(96, [adder, Lane(adder, promote=32)], data="normal", added=0))
    page.get_by_role("combobox", name="Numbers").select_option("large")
    seen = set()
    for _ in range(3):
        press(page, f"add {ADDERS[adder].block}")
        for lane in (0, 1):
            assert not re.search("undefined|NaN|null", page.locator(".mp-dot-register").nth(lane).inner_text())
            seen.add(said(page, lane))
    assert all(text.endswith(".") for text in seen)


def test_pointing_into_a_plot_goes_there(show):
    page = show(ones())
    plot = page.locator(".mp-dot-plot").first
    middle = (88 + 440 - 12) / 2 / 440
    size = plot.bounding_box()
    plot.click(position={"x": middle * size["width"], "y": size["height"] / 2})
    assert abs(k_of(page) - 256) <= 2
    page.get_by_label("log axes").check()
    plot.click(position={"x": middle * size["width"], "y": size["height"] / 2})
    assert 20 <= k_of(page) <= 25  # the square root of 512


def test_a_run_moves_can_be_paused_and_goes_on(show):
    page = show(ones(), reduced_motion="no-preference")
    press(page, "run again")
    page.wait_for_function("() => /^k = ([5-9]|..)$/.test(document.querySelector('.mp-dot-k').textContent)")
    press(page, "pause")
    paused = k_of(page)
    assert 1 < paused < 512
    page.wait_for_timeout(250)
    assert k_of(page) == paused
    press(page, "run on")
    page.wait_for_function("(k) => Number(document.querySelector('.mp-dot-k').textContent.slice(3)) > k", arg=paused)
    press(page, "1 back")
    held = k_of(page)
    page.wait_for_timeout(250)
    assert k_of(page) == held


def test_those_who_want_no_motion_get_the_end_of_a_run(show):
    page = show(ones(added=3))
    press(page, "run on")
    assert k_of(page) == 512


def test_what_is_shown_is_spoken_once_it_rests(show):
    page = show(ones(added=0))
    assert page.locator("[role=status]").inner_text() == ""
    for _ in range(3):
        press(page, "add 1")
    # A press that comes late finds the count before it spoken already: what counts is the last word.
    expect(page.locator("[role=status]")).to_have_text(
        "After 3 products: exactly 3. A, bfloat16: 3, error 0 %, 0 % of the products swallowed."
    )


def test_everything_works_with_the_keyboard_alone(show):
    page = show(ones(added=0))
    page.get_by_role("group", name="Lane A").get_by_label("promoted to float32").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # run, without motion
    assert k_of(page) == 512
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert k_of(page) == 511


@pytest.mark.parametrize(
    ("adder", "reason"),
    [
        ("float16", None),
        (
            "float16-pairwise",
            "In pairs: products come one at a time; sums of equally many products are added, and what is left over at "
            "the end, from the smallest up.",
        ),
        ("bfloat16-kahan", "Kahan’s sum takes one product at a time."),
        ("fp8-14bit", None),
        ("volta", None),
    ],
)
def test_where_a_number_at_once_is_not_on_offer_the_lane_says_why(show, adder, reason):
    page = show(ones())
    lane = page.get_by_role("group", name="Lane A")
    lane.get_by_label("adds in").select_option(adder)
    at_once, why = lane.get_by_label("at once"), lane.locator(".mp-dot-why")
    greyed = at_once.locator("option:disabled").count() > 0
    assert greyed == (reason is not None)
    assert why.is_visible() == greyed
    if greyed:
        assert why.inner_text() == reason
        described = "(node) => node.ariaDescribedByElements.map(({ textContent }) => textContent)"
        assert at_once.evaluate(described) == [reason]


def test_a_button_without_a_stall_to_go_to_says_that_there_is_none(show):
    page = show(ones(products=256))
    button = page.locator(".mp-dot-to-stall")
    assert (button.inner_text(), button.get_attribute("aria-disabled")) == ("does not stall", "true")
    width = button.bounding_box()["width"]
    page.get_by_label("K products").fill("512")
    page.keyboard.press("Enter")
    assert (button.inner_text(), button.get_attribute("aria-disabled")) == ("to the stall", "false")
    assert button.bounding_box()["width"] == pytest.approx(width, abs=1)


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_words_of_every_choice_have_room(show, viewport):
    page = show(DotProduct(), viewport=viewport)
    assert cut_off_choices(page) == []


def test_two_widgets_on_one_page_are_independent(show):
    page = show(ones(), ones("float16"))
    first, second = page.locator(".mp-dot-product").all()
    first.get_by_role("button", name="1 back").click()
    assert first.locator(".mp-dot-k").inner_text() == "k = 511"
    assert second.locator(".mp-dot-k").inner_text() == "k = 512"


COLUMN = {"width": 720, "height": 900}  # leaves the widget as much as a page of the book does
WHOLE = (".mp-dot-table :is(th, td)", ".mp-dot-picture", ".mp-dot-cells", ".mp-dot-label", ".mp-dot-value")
CASES = {
    "float16": lambda: DotProduct(65_536, log=True),
    "aligned": lambda: DotProduct(4096, [Lane("fp8-aligned", promote=128), "fp8-14bit"], operands="float8_e4m3fn"),
    "kahan": lambda: DotProduct(4096, ["bfloat16-kahan", Lane("bfloat16-kahan", promote=4096)], data="normal"),
    "pairwise": lambda: DotProduct(60_000, ["bfloat16-pairwise", Lane("volta", block=32, promote=32)]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("viewport", [PHONE, COLUMN, DESK], ids=["phone", "column", "desk"])
def test_nothing_overflows_is_too_small_or_moves(show, viewport, case):
    page = show(CASES[case](), viewport=viewport)
    calm = [page.evaluate(HEIGHT), viewport["width"], []]
    most = int(page.get_by_label("k, products added").get_attribute("max"))
    parts = (0, 0.001, 0.01, 0.11, 0.35, 0.7, 0.999, 1)
    actions = [("[type=range]", "k, products added", round(part * most)) for part in parts]
    for action, seen in after_each(page, actions, HEIGHT, WIDTH, cut_off_of(", ".join(WHOLE))):
        assert seen == calm, action
    assert small_targets(page) == []
    fonts = page.evaluate(
        """() => [...document.querySelectorAll(".mp-panel *")].filter((node) => node.childElementCount === 0
             && node.textContent.trim() && !node.closest(".mp-unseen") && !node.closest("[hidden]"))
             .map((node) => [node.textContent, parseFloat(getComputedStyle(node).fontSize)
                * (node.ownerSVGElement ? node.ownerSVGElement.getBoundingClientRect().width / 440 : 1)])
             .filter(([, size]) => size < 12.4)"""
    )
    assert fonts == []


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_keeps_about_the_height_free_that_the_widget_takes(show, viewport):
    kept, taken = heights(show(DotProduct(), viewport=viewport))
    assert abs(kept - taken) <= 4, (kept, taken)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(DotProduct(), theme=theme, color_scheme=theme)
    field = page.get_by_label("K products")
    for action in (lambda: None, lambda: press(page, "to the stall"), lambda: (field.fill("x"), field.press("Enter"))):
        action()
        assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(ones())
    press(page, "1 back")
    assert page.evaluate("() => model.sent.at(-1).added") == 511
    page.get_by_role("combobox", name="Numbers").select_option("large")
    assert page.evaluate("() => [model.sent.at(-1).data, model.sent.at(-1).added]") == ["large", 511]
    sent = page.evaluate("() => model.sent.at(-1)")
    fresh = ones()
    fresh.set_state({name: sent[name] for name in ones().book_state()})
    page.evaluate("() => void Object.assign(model.state, { data: 'ones', products: 300, added: 257 })")
    page.evaluate("() => model.fire('change:added')")
    assert k_of(page) == 257
    assert "swallowed whole" in said(page)
