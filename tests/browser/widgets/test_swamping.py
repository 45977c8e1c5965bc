"""Swamping in a real browser: its sums against utils.accumulation, its bits, its run, and what a reader does."""

import re
from fractions import Fraction

import numpy as np
import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    barriers,
    calls_of,
    calm_show,  # noqa: F401, the fixture `show`
)
from utils.accumulation import kahan_sum, running_sum, stall
from utils.formats import FORMATS
from utils.rounding import quantize
from utils.widgets.swamping import SUMMABLE, USUAL, Swamping


def press(page, name):
    page.get_by_role("button", name=name).first.click()


def type_into(page, label, text):
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Enter")


def said(page):
    return page.locator(".mp-swamp-said").inner_text()


def message(page):
    return page.locator(".mp-swamp-message").inner_text()


def spoken(page):
    return page.locator("[role=status]").inner_text()


def lanes(page):
    """{name: (sum, lost)} of the table."""
    rows = page.locator(".mp-swamp-lanes tbody tr:visible").all()
    return {cells[0]: tuple(cells[1:]) for cells in (row.locator("th, td").all_inner_texts() for row in rows)}


# Twins: the page's arithmetic against Python's

HARNESS = """
window.calls = {
  near: (name, texts) => texts.map((text) => String(words.doubleRounders(words.FORMATS[name]).near(Number(text)))),
  random: (name, texts, dice) => texts.map((text) => words.doubleRounders(words.FORMATS[name]).random(Number(text), () => dice)),
  totals: (name, increment, start, n) => {
    const sum = words.newSum({ fmt: words.FORMATS[name], increment, start });
    return Array.from({ length: n }, () => { words.addMore(sum, 1); return [sum.plain, sum.kahan, sum.c].map(String); });
  },
  after: (name, increment, start, n, options) => {
    const sum = words.newSum({ fmt: words.FORMATS[name], increment, start });
    for (const count of n) words.addMore(sum, count, options ?? {});
    const exact = words.exactSum(sum);
    return { n: sum.n, plain: String(sum.plain), kahan: String(sum.kahan), c: String(sum.c), lucky: sum.lucky,
      stalledAt: sum.stalledAt, before: sum.before, samples: sum.samples.length, exact: `${exact.num}/${exact.den}` };
  },
  aligned: (name, a, b) => {
    const { rows, top, low, end, more } = words.alignedAddition(words.exactNumber(a), words.exactNumber(b), words.FORMATS[name]);
    return { top, low, end, more, rows: rows.map(({ label, number, bits }) => [label, words.asDouble(number), bits.map((bit) => bit || " ").join("")]) };
  },
  explain: (name, a, b) => words.explainAddition(words.exactNumber(a), words.exactNumber(b), words.FORMATS[name]),
  read: (name, text, zero) => {
    try { return words.readTerm(text, words.FORMATS[name], { zero }).value; } catch (error) { return error.message; }
  },
  plainText: (text) => words.plainNumberText(text, words.parseNumber(text)),
};
"""  # noqa: E501


call = calls_of("swamping/widget", HARNESS)


def as_float(text):
    return float(text.replace("Infinity", "inf"))


def sums_of_values(fmt, count=4000):
    """Sums of two values of a format, ties and overflows among them."""
    rng = np.random.default_rng(seed=fmt.bits)
    a, b = quantize(
        rng.choice([-1, 1], (2, count)) * np.exp2(rng.uniform(fmt.emin - fmt.mantissa_bits, fmt.emax + 1, (2, count))),
        fmt,
        saturate=True,
    )
    near = quantize(a * np.exp2(rng.integers(-fmt.precision - 2, 3, count)), fmt, saturate=True)
    return np.concatenate([a + b, a + near, [0.0, fmt.max * 2, -fmt.max * 2, np.inf, -np.inf, np.nan]])


@pytest.mark.parametrize("name", SUMMABLE)
def test_the_page_rounds_a_sum_of_two_values_as_python_does(call, name):
    fmt = FORMATS[name]
    x = sums_of_values(fmt)
    ours = [
        as_float(text) for text in call("near", name, [repr(float(value)).replace("inf", "Infinity") for value in x])
    ]
    np.testing.assert_array_equal(ours, quantize(x, fmt))


@pytest.mark.parametrize("name", USUAL)
def test_stochastic_rounding_goes_up_where_the_dice_fall_below_the_fraction(call, name):
    fmt = FORMATS[name]
    x = 1 + fmt.eps * np.array([0.0, 0.25, 0.5, 0.75])
    for dice, ups in [(0.0, [0, 1, 1, 1]), (0.3, [0, 0, 1, 1]), (0.5, [0, 0, 0, 1]), (0.9, [0, 0, 0, 0])]:
        got = call("random", name, [repr(float(value)) for value in x], dice)
        assert got == [1 + fmt.eps * up for up in ups]
    assert call("random", name, [repr(-1 - fmt.eps / 4)], 0.7) == [-1.0]  # up is toward plus infinity
    assert call("random", name, [repr(-1 - fmt.eps / 4)], 0.8) == [-1 - fmt.eps]


@pytest.mark.parametrize("start", [0.0, 1.0, -3.0])
@pytest.mark.parametrize("increment", [1.0, 0.1, -1e-2, 1 / 3, 7.0])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "float4_e2m1fn"])
def test_every_sum_of_the_page_is_that_of_python(call, name, increment, start):
    fmt, n = FORMATS[name], 40
    increment, start = float(quantize(increment, fmt)), float(quantize(start, fmt))
    values = np.full(n, increment)
    kahan = kahan_sum(values, fmt, start=start)
    ours = np.array([[as_float(text) for text in row] for row in call("totals", name, increment, start, n)]).T
    np.testing.assert_array_equal(ours[0], running_sum(values, fmt, start=start))
    np.testing.assert_array_equal(ours[1], kahan.totals)
    np.testing.assert_array_equal(ours[2], kahan.compensations)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "tf32"])
def test_the_page_stalls_where_the_theory_says(call, name):
    fmt = FORMATS[name]
    for increment in (1.0, 0.1, 0.75, 1.5, -3.0, 1e-3, 40.0):
        increment = float(quantize(increment, fmt))
        for start in (0.0, 0.5, -2.0):
            if increment == 0:
                continue
            got = call("after", name, increment, start, [10**7], {"untilStall": True})
            if got["stalledAt"] == got["n"] and as_float(got["plain"]) == stall(increment, fmt, start=start):
                got = call("after", name, increment, start, [got["n"], 1], {"untilStall": True})  # reached by a leap
            np.testing.assert_equal(as_float(got["plain"]), stall(increment, fmt, start=start))
            if np.isfinite(as_float(got["plain"])):
                assert got["n"] == got["stalledAt"] + 1  # the last addition is the first that changes nothing
                assert got["before"]["plain"] == as_float(got["plain"])


def test_ones_in_float32_are_one_leap_to_two_to_the_24(call):
    got = call("after", "float32", 1.0, 0.0, [2**24 + 3])
    assert (got["plain"], got["kahan"], got["stalledAt"]) == ("16777216", "16777220", 2**24)
    assert got["c"] == str(int(kahan_sum([1.0] * 3, FORMATS["float32"], start=2.0**24).compensations[-1]))
    assert Fraction(got["exact"]) == 2**24 + 3
    assert got["samples"] <= 6


@pytest.mark.parametrize("pieces", [[1000], [1] * 1000, [255, 1, 2, 742], [999, 1]])
def test_it_does_not_matter_in_which_portions_one_adds(call, pieces):
    for name, increment, start in [("bfloat16", 1.0, 0.0), ("float16", 0.0999755859375, 1.0), ("float32", 3.0, 0.5)]:
        got, once = (call("after", name, increment, start, portions) for portions in (pieces, [1000]))
        assert {**got, "samples": 0} == {**once, "samples": 0}
        assert got["samples"] <= 512


def test_the_stochastic_lane_repeats_and_its_mean_is_right(call):
    ends = [call("after", "bfloat16", 1.0, 0.0, [n])["lucky"] for n in (2000, 2000)]
    assert ends[0] == ends[1]
    assert abs(ends[0] - 2000) <= 5 * 8 * 2000**0.5 / 2  # a gap is at most 8 below 2048


@pytest.mark.parametrize("name", USUAL)
def test_the_bits_of_every_row_are_its_number(call, name):
    fmt = FORMATS[name]
    rng = np.random.default_rng(seed=3)
    for _ in range(60):
        a = float(quantize(rng.normal(), fmt))
        b = float(quantize(rng.normal() * 2.0 ** rng.integers(-8, 3), fmt))
        if b == 0:
            continue
        got = call("aligned", name, a, b)
        assert got["rows"][2][1] == a + b
        np.testing.assert_equal(got["rows"][3][1], float(quantize(a + b, fmt)))
        for label, number, bits in got["rows"]:
            assert len(bits) == got["top"] - got["low"] + 1
            value = sum(2.0 ** (got["top"] - i) for i, bit in enumerate(bits) if bit == "1")
            if got["more"] == 0:
                assert value == abs(number), (a, b, label)
            else:
                assert 0 <= abs(number) - value < 2.0 ** got["low"]


@pytest.mark.parametrize(
    ("name", "a", "b", "says"),
    [
        ("bfloat16", 256.0, 1.0, "half of the gap 2: a tie. It goes to the neighbour whose last bit is 0, 256."),
        ("bfloat16", 258.0, 1.0, "whose last bit is 0, 260."),
        ("bfloat16", 254.0, 1.0, "The exact sum is itself a number of the format: nothing is rounded."),
        (
            "bfloat16",
            512.0,
            1.0,
            "What falls off is 0.25 of the gap 4, less than half: it is dropped, and 512 is stored.",
        ),
        ("bfloat16", 512.0, 3.0, "0.75 of the gap 4, more than half: the last bit grows by one, and 516 is stored."),
        ("float8_e4m3fn", 448.0, 32.0, "480 is beyond 448, the largest value of E4M3: the sum overflows to NaN."),
        ("float16", -65504.0, -32.0, "the sum overflows to −∞."),
        ("float16", 1.0, 2.0**-20, "of the gap 2⁻¹⁰, less than half: it is dropped, and 1 is stored."),
    ],
)
def test_an_addition_is_explained(call, name, a, b, says):
    assert says in call("explain", name, a, b)


@pytest.mark.parametrize(
    ("name", "text", "zero", "value"),
    [
        ("bfloat16", "1/3", False, 0.333984375),
        ("float16", "-2^-7", False, -(2.0**-7)),
        ("float16", "0", True, 0.0),
        ("float16", "0", False, "Adding 0 changes no sum. Add a larger number."),
        ("float16", "inf", False, "inf is no number to count with. Try 1, 0.1, 1/3 or -2^-7."),
        ("float8_e4m3fn", "1000", False, "1000 is beyond 448, the largest value of E4M3."),
        (
            "float16",
            "1e-9",
            False,
            "1e-9 is 0 in float16, whose smallest value is ≈\u00a05.96 × 10⁻⁸. Add a larger number.",
        ),
    ],
)
def test_a_number_is_read_or_refused_with_a_sentence(call, name, text, zero, value):
    assert call("read", name, text, zero) == value


@pytest.mark.parametrize(
    ("text", "plain"), [("0.1", "0.1"), (" 1e-3 ", "1e-3"), ("1/3", "1/3"), ("2^-7", "1/128"), ("-0x1.8p1", "-3")]
)
def test_python_gets_a_text_that_it_can_read(call, text, plain):
    assert call("plainText", text) == plain
    Swamping(increment=plain)


# What a reader does


def test_adding_one_shows_the_bits_and_the_sums(show):
    page = show(Swamping())
    assert page.locator(".mp-swamp-title").first.inner_text() == "The first addition"
    press(page, "add one")
    press(page, "add 10")
    assert page.locator(".mp-swamp-title").first.inner_text() == "Addition 11"
    assert lanes(page) == {"exactly": ("11", ""), "in bfloat16": ("11", "0 %"), "with Kahan": ("11", "0 %")}
    assert said(page) == "The exact sum is itself a number of the format: nothing is rounded."
    assert spoken(page) == "11 additions: bfloat16 11, exact 11."


def test_the_stall_is_the_picture_of_a_tie(show):
    page = show(Swamping())
    press(page, "to the stall")
    rows = page.locator(".mp-swamp-row").all()[1:]
    bits = [row.locator(".mp-swamp-bits").get_attribute("aria-label") for row in rows]
    assert bits == ["bits 10000000", "bits none, falling off 10000000", "bits 10000000, falling off 1", "bits 10000000"]
    values = [row.locator(".mp-swamp-value").inner_text() for row in rows]
    assert values == ["256", "1", "257", "256"]
    assert page.locator(".mp-swamp-ulp").inner_text() == "ulp here 2, increment 1 = 0.5 ulp"
    assert said(page) == (
        "The sum has stalled at 256: the increment is half of the gap 2, and a tie goes to the neighbour "
        "whose last bit is 0, which is the sum itself."
    )
    assert "stalls at 256" in page.locator("svg").text_content()
    press(page, "add 10")
    assert lanes(page) == {
        "exactly": ("267", ""),
        "in bfloat16": ("256", "4.12 %"),
        "with Kahan": ("268", "gained 0.375 %"),
    }


def test_kahans_step_shows_what_it_keeps(show):
    page = show(Swamping())
    press(page, "to the stall")
    step = page.locator(".mp-swamp-kahan-step")
    assert [re.sub(r"\s+", " ", text) for text in step.locator(".mp-swamp-sum").all_inner_texts()] == [
        "1 − 0 = 1",
        "256 + 1 = 257 → 256",
        "(256 − 256) − 1 = −1",
    ]
    assert step.locator("dt").all_inner_texts() == ["wanted =", "grown =", "excess ="]
    assert step.locator(".mp-swamp-meaning").all_inner_texts() == [
        "the increment minus the excess, rounded: a negative excess is what the sum lacks",
        "the new sum, rounded",
        "what was added, less what was wanted",
    ]
    assert "The sum took 1 too little. excess keeps it, and the next wanted is larger by that much" in step.inner_text()
    press(page, "add one")
    assert step.locator(".mp-swamp-sum").first.inner_text() == "1 − (−1) = 2"
    assert "excess = 0: the sum took all that was wanted" in step.inner_text()


def test_a_kahan_sum_that_stops_too_says_why(show):
    page = show(Swamping("float8_e4m3fn"))
    step = page.locator(".mp-swamp-kahan-step")
    press(page, "to the stall")
    assert "stopped too" not in step.inner_text()  # the plain sum alone
    press(page, "run to 4")
    assert lanes(page)["with Kahan"][0] == "256"
    sentence = (
        "Kahan’s sum has stopped too, at 256: 1 more changes neither the sum nor the excess, −16, since both are"
        " rounded."
    )
    assert sentence in step.inner_text()
    press(page, "add 10")
    assert lanes(page)["with Kahan"][0] == "256"
    press(page, "reset")
    assert "stopped too" not in step.inner_text()


def test_a_sum_that_grew_too_much_has_gained(show):
    page = show(Swamping(increment="0.3"))
    for _ in range(4):
        press(page, "add 10")
    assert lanes(page)["in bfloat16"] == ("12.3125", "gained 2.34 %")
    assert page.locator(".mp-swamp-gained").inner_text() == "Gained: more was rounded up than down."
    press(page, "reset")
    assert page.locator(".mp-swamp-gained").inner_text() == ""


def test_a_sum_of_0_is_given_no_ulp(show):
    page = show(Swamping())
    ulp = page.locator(".mp-swamp-ulp")
    assert ulp.inner_text() == ""
    press(page, "add one")
    assert ulp.inner_text() == ""
    press(page, "add one")
    assert ulp.inner_text().startswith("ulp here ")


def test_float32_stalls_at_once(show):
    page = show(Swamping("float32"))
    press(page, "to the stall")
    assert page.locator(".mp-swamp-title").first.inner_text() == "Addition 16,777,217"
    assert "stalled at 16777216: the increment is half of the gap 2" in said(page)
    assert message(page) == ("Up to the size 16777216 every sum is exact: the page made 16,777,216 of them at once.")
    press(page, "add one")
    assert lanes(page)["with Kahan"] == ("16777218", "0 %")


def test_a_sum_that_overflows_says_so(show):
    page = show(Swamping("float8_e4m3fn", "32"))
    press(page, "to the stall")
    assert said(page).startswith("The sum has left the range of E4M3 and is NaN from now on")
    assert lanes(page)["in E4M3"] == ("NaN", "–")
    press(page, "add one")
    assert said(page) == "NaN + 32 = NaN: from here no addition leads back."


def test_those_who_want_no_motion_get_the_end_of_a_run(show):
    page = show(Swamping(steps=4096, stochastic=True))
    press(page, "run to 4")
    page.get_by_role("button", name="more").wait_for()
    got = lanes(page)
    assert got["in bfloat16"] == ("256", "93.8 %")
    assert got["with Kahan"] == ("4096", "0 %")
    assert 3000 < float(got["stochastically"][0]) < 5200
    press(page, "run 4")
    page.wait_for_function("() => document.querySelector('caption').textContent.includes('8,192')")


def test_a_run_moves_can_be_paused_and_goes_on(show):
    page = show(Swamping(steps=1000), reduced_motion="no-preference")
    press(page, "run to 1")
    count = "() => Number(document.querySelector('caption').textContent.replace(/\\D/g, ''))"
    page.wait_for_function(f"() => ({count})() > 20")
    press(page, "pause")
    paused = page.evaluate(count)
    assert 20 < paused < 1000
    page.wait_for_timeout(100)
    assert page.evaluate(count) == paused
    assert spoken(page).startswith(f"{paused} additions")
    press(page, "run to 1")
    page.wait_for_function(f"() => ({count})() > {paused}")
    press(page, "reset")
    assert page.evaluate(count) == 0
    page.wait_for_timeout(100)
    assert page.evaluate(count) == 0


def test_numbers_are_typed_and_what_becomes_of_them_is_said(show):
    page = show(Swamping())
    type_into(page, "Increment", "0.1")
    assert message(page) == "In bfloat16 0.1 is stored as 0.10009765625; the exact sum adds that."
    press(page, "to the stall")
    assert "stalled at 32:" in said(page)
    type_into(page, "Start at", "1")
    type_into(page, "Increment", "-1e-3")
    press(page, "add 10")
    assert lanes(page)["in bfloat16"] == ("1", "100 %")
    assert page.locator(".mp-swamp-label").nth(1).inner_text() == "− increment"
    page.get_by_label("Format").select_option("float16")
    press(page, "add one")
    assert float(lanes(page)["in float16"][0]) < 1


def test_bad_input_gets_one_sentence_and_loses_nothing(show):
    page = show(Swamping("float16", "1e3"))
    press(page, "add 10")
    before = lanes(page)
    for text, says in [("abc", "“abc” is not a number"), ("1e-9", "1e-9 is 0 in float16"), ("1,5", "decimal point")]:
        type_into(page, "Increment", text)
        assert says in message(page)
        assert spoken(page) == message(page)
        assert page.get_by_label("Increment").get_attribute("aria-invalid") == "true"
        assert page.get_by_label("Start at").get_attribute("aria-invalid") == "false"
        assert page.get_by_label("Increment").input_value() == text
        assert lanes(page) == before
        assert message(page).endswith("Below: still the sum of 1e3.")
    type_into(page, "Increment", "1000")
    assert page.get_by_label("Increment").get_attribute("aria-invalid") == "false"
    page.get_by_label("Format").select_option("float8_e4m3fn")  # 1000 is too large for it
    assert "1000 is beyond 448" in message(page)
    assert page.get_by_label("Format").input_value() == "float16"
    assert page.get_by_label("Increment").input_value() == "1000"
    assert message(page).endswith("The format stays float16.")
    press(page, "add one")  # what the fields say is still a sum that can go on
    assert lanes(page)["exactly"][0] == "1000"


@pytest.mark.parametrize("button", ["add one", "add 10", "run", "to the stall", "reset"])
def test_no_addition_is_made_while_a_field_is_faulty(show, button):
    page = show(Swamping(increment="0.3"))
    press(page, "add 10")
    type_into(page, "Increment", "abc")
    before, said_first = page.locator(".mp-swamping").inner_text(), message(page)
    assert page.get_by_role("button", name=button).first.get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name=button).first.click(force=True)
    assert page.locator(".mp-swamping").inner_text().replace("\u00a0", "") == before.replace("\u00a0", "")
    assert message(page) == said_first
    assert spoken(page).strip("\u00a0") == said_first
    type_into(page, "Increment", "0.5")
    assert page.get_by_role("button", name=button).first.get_attribute("aria-disabled") == "false"
    press(page, "add one")
    assert lanes(page)["exactly"][0] == "0.5"


def test_a_faulty_text_outlives_a_change_of_format(show):
    page = show(Swamping(increment="0.3"))
    type_into(page, "Increment", "abc")
    page.get_by_label("Format").select_option("float16")
    assert page.get_by_label("Format").input_value() == "float16"
    assert page.get_by_label("Increment").input_value() == "abc"
    assert page.get_by_label("Increment").get_attribute("aria-invalid") == "true"
    assert message(page).startswith("“abc” is not a number")
    assert message(page).endswith("Below: still the sum of 0.3.")
    assert "in float16" in lanes(page)
    type_into(page, "Increment", "1e-9")  # 0 in float16, but not in bfloat16
    page.get_by_label("Format").select_option("bfloat16")
    assert page.get_by_label("Increment").get_attribute("aria-invalid") == "false"
    assert message(page).startswith("In bfloat16 1e-9 is stored as")


def test_the_sum_of_earlier_numbers_is_said_to_be_that(show):
    page = show(Swamping(start="1"))
    for label, text in [("Increment", "0"), ("Start at", "1e39"), ("Start at", "nan")]:
        type_into(page, label, text)
        assert message(page).endswith("Below: still the sum of 1, from 1 on.")
        assert page.locator(".mp-swamp-earlier .mp-swamp-lanes").count() == 1
        type_into(page, label, "1")
        assert page.locator(".mp-swamp-earlier").count() == 0


def test_the_stochastic_lane_comes_and_goes(show):
    page = show(Swamping())
    assert "stochastically" not in lanes(page)
    page.get_by_label("stochastic rounding too").check()
    press(page, "add 10")
    assert lanes(page)["stochastically"] == ("10", "0 %")
    page.get_by_label("stochastic rounding too").uncheck()
    assert "stochastically" not in lanes(page)


def test_a_page_may_open_at_any_point(show):
    page = show(Swamping(count=257))
    assert "stalled at 256" in said(page)
    assert spoken(page) == ""
    press(page, "reset")
    assert page.locator(".mp-swamp-title").first.inner_text() == "The first addition"


def test_everything_works_with_the_keyboard_alone(show):
    page = show(Swamping())
    page.get_by_label("Format").focus()
    for _ in range(7):  # start, increment and three of its values, the check box, then the buttons
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert lanes(page)["exactly"][0] == "1"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert lanes(page)["exactly"][0] == "11"


def test_a_quarter_one_at_a_time_stops_where_it_is_half_a_gap(show):
    page = show(Swamping(count=255))
    press(page, "add 1/4 each time")
    assert page.get_by_label("Increment", exact=True).input_value() == "1/4"
    assert page.get_by_role("button", name="add 1/4 each time").get_attribute("aria-pressed") == "true"
    press(page, "to the stall")
    assert "stalled at 64: the increment is half of the gap 0.5, and a tie" in said(page)
    assert page.locator(".mp-swamp-title").first.inner_text() == "Addition 257"
    press(page, "one back")
    press(page, "one back")
    assert page.locator(".mp-swamp-title").first.inner_text() == "Addition 255"
    assert said(page) == "The exact sum is itself a number of the format: nothing is rounded."


def test_steps_back_lead_through_the_same_sums(show):
    page = show(Swamping(increment="0.3", stochastic=True))
    back = page.get_by_role("button", name="one back")
    assert back.get_attribute("aria-disabled") == "true"
    back.click(force=True)
    press(page, "add one")
    seen = []
    for _ in range(40):
        page.keyboard.press("ArrowRight")
        seen.append(lanes(page))
    for earlier in reversed(seen[:-1]):
        page.keyboard.press("ArrowLeft")
        assert lanes(page) == earlier
    assert spoken(page).startswith("2 additions")
    type_into(page, "Increment", "abc")
    back.click(force=True)
    assert lanes(page) == seen[0]  # no step while a field is faulty


def test_two_widgets_on_one_page_are_independent(show):
    page = show(Swamping(), Swamping("float16"))
    first, second = page.locator(".mp-swamping").all()
    first.get_by_role("button", name="add 10").click()
    assert first.locator("caption").inner_text() == "After 10 additions"
    assert second.locator("caption").inner_text() == "After 0 additions"


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_targets_are_large_enough_and_nothing_overflows_or_is_too_small(show, viewport):
    page = show(Swamping(stochastic=True), viewport=viewport)
    for name in USUAL:
        page.get_by_label("Format").select_option(name)
        type_into(page, "Increment", "1/3")
        press(page, "add 10")
        assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
        small = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select")].filter((node) => node.offsetParent)
                 .map((node) => [node.textContent, node.getBoundingClientRect()])
                 .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth)
                 .map(([text]) => text)"""
        )
        assert small == [], name
        fonts = page.evaluate(
            """() => [...document.querySelectorAll(".mp-panel *")].filter((node) => node.childElementCount === 0
                 && node.textContent.trim() && !node.closest(".mp-unseen"))
                 .map((node) => [node.textContent, parseFloat(getComputedStyle(node).fontSize)
                    * (node.ownerSVGElement ? node.ownerSVGElement.getBoundingClientRect().width / 440 : 1)])
                 .filter(([, size]) => size < 12.7)"""
        )
        assert fonts == [], name


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_moves_while_ones_are_added(show, viewport):
    page = show(Swamping(), viewport=viewport)
    height = "() => document.querySelector('.mp-panel').offsetHeight"
    before = page.evaluate(height)
    for name in ["add one", "add 10", "to the stall", "add one", "add one", "run"]:
        press(page, name)
        assert page.evaluate(height) == before, name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(Swamping(stochastic=True), theme=theme, color_scheme=theme)
    for action in (lambda: None, lambda: press(page, "to the stall"), lambda: type_into(page, "Increment", "junk")):
        action()
        assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(Swamping())
    press(page, "add 10")
    assert page.evaluate("() => model.sent.at(-1).count") == 10
    type_into(page, "Increment", "2^-3")
    assert page.evaluate("() => [model.sent.at(-1).increment, model.sent.at(-1).count]") == ["1/8", 0]
    page.evaluate("() => void Object.assign(model.state, { format: 'float16', increment: '1', count: 2049 })")
    page.evaluate("() => model.fire('change:count')")
    assert "stalled at 2048" in said(page)
