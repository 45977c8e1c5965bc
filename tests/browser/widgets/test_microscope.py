"""Microscope in a real browser: its sums against Python's, its judge, and what a reader does."""

from dataclasses import asdict
from itertools import product

import numpy as np
import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    barriers,
    calls_of,
    calm_show,  # noqa: F401, the fixture `show`
    cut_off,
    cut_off_choices,
    heights,
    small_targets,
)
from tests.widgets.test_microscope import random_terms
from utils.widgets.microscope import Microscope
from utils.widgets.microscope.adders import EXTRAS, FLUSHES, ORDERS, RULES, HiddenAdder, random_adder
from utils.widgets.microscope.levels import LEVELS, PRESETS, RANDOM

HARNESS = """
window.calls = {
  add: (adder, rows) => rows.map((terms) => words.addTerms(adder, terms)),
  addAll: (adders, rows) => adders.map((adder) => rows.map((terms) => words.addTerms(adder, terms))),
  random: (seed, choices) => words.randomAdder(seed, choices),
  differences: (hidden, claims, range) => claims.map((claim) => {
    const terms = words.findDifference(hidden, claim, range);
    return terms && { terms, one: words.addTerms(hidden, terms), other: words.addTerms(claim, terms), allowed: terms.every((x) => words.isTerm(x, range)) };
  }),
  judge: (hidden, claim, done, range) => words.judge(hidden, claim, { done, range }),
  read: (text, range) => { try { return words.readTerm(text, range); } catch (error) { return error.message; } },
  readAll: (text, range) => words.readTerms(text, range),
  texts: (xs) => xs.map(words.termText),
  termsText: (terms) => words.termsText(terms),
  power: (x) => words.powerText(x),
  answer: (x) => words.answerTexts(x),
};
"""  # noqa: E501
call = calls_of("microscope/widget", HARNESS)
RANGE = {"lowest": -22, "largest": 15}


def same_sums(call, adder, rows):
    ours = call("add", asdict(adder), [list(row) for row in rows])
    np.testing.assert_array_equal(ours, [adder.add(list(row)) for row in rows], err_msg=str(adder))


# Twins: the page's arithmetic against Python's


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", RULES)
def test_the_page_adds_like_python_bit_for_bit(call, rule, order):
    rows = [list(row) for row in random_terms(40, -22, seed=len(rule))]
    kinds = product((7, 11, 14, 24), EXTRAS, FLUSHES)
    adders = [HiddenAdder(bits, extra, rule, order, flush) for bits, extra, flush in kinds]
    for adder, ours in zip(adders, call("addAll", [asdict(adder) for adder in adders], rows), strict=True):
        np.testing.assert_array_equal(ours, [adder.add(list(row)) for row in rows], err_msg=str(adder))


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_every_level_adds_like_python(call, level):
    same_sums(call, level.adder, random_terms(300, level.lowest, seed=4))


def test_the_page_draws_the_random_adders_of_python(call):
    choices = Microscope().facts["choices"]
    for seed in (1, 2, 3, 77, 9999):
        assert call("random", seed, choices) == asdict(random_adder(seed))


# Terms as text


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ("1", 1),
        ("-1.5*2^-11", -1.5 * 2**-11),
        ("2^15", 2**15),
        ("−3 × 2⁻⁴", -3 / 16),
        ("", 0),
        ("0", 0),
        ("13/64", 13 / 64),
    ],
)
def test_a_term_is_read(call, text, x):
    assert call("read", text, RANGE) == x


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2^16", "2^16 is out of range: terms have sizes from 2⁻²² up to below 2¹⁶."),
        ("2^-23", "2^-23 is out of range"),
        ("17", "17 has too many bits"),
        ("0.1", "0.1 has too many bits"),
        ("1 + 2^-80", "1 + 2^-80 has too many bits"),
        ("inf", "inf is no finite number."),
        ("abc", "“abc” is not a number"),
    ],
)
def test_what_is_no_term_gets_a_sentence(call, text, says):
    assert call("read", text, RANGE).startswith(says)


def test_terms_survive_the_address(call):
    rows = [row for row in random_terms(200, -22, seed=8) if row.any()]
    for row in rows:
        assert call("readAll", call("termsText", list(row)), RANGE) == list(row)
    assert call("readAll", "1 junk 2^99 -1 1 1 1 1 1 1 1", RANGE) == [1, 0, 0, -1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0, "0"),
        (2**-11, "2⁻¹¹"),
        (-3 * 2**-12, "−3 × 2⁻¹²"),
        (1 + 2**-23, "1 + 2⁻²³"),
        (1 - 2**-11, "1 − 2⁻¹¹"),
        (-1 - 2**-11, "−(1 + 2⁻¹¹)"),
        (2048 + 6, "2¹¹ + 6"),
        (12, "12"),
    ],
)
def test_a_sum_is_written_in_powers_of_two(call, x, text):
    assert call("power", x) == text


def test_an_answer_is_a_float32_number(call):
    got = call("answer", 1 + 2**-23)
    assert (got["decimal"], got["hex"]) == ("1.00000011920928955078125", "0x3F800001")
    assert got["fields"] == ["0", "01111111", "0" * 22 + "1"]


# The judge


def claims_of(level):
    """Every other adder that a reader can name, as JSON; of the bits those nearby and some far away."""
    adder, options = asdict(level.adder), {"extra": EXTRAS, "rule": RULES, "order": ORDERS, "flush": FLUSHES}
    options = {name: list(values) if name in level.asks else [adder[name]] for name, values in options.items()}
    bits = (
        sorted({2, 7, adder["bits"] - 1, adder["bits"], adder["bits"] + 1, 30})
        if "bits" in level.asks
        else [adder["bits"]]
    )
    claims = [
        {"bits": p, **dict(zip(options, values, strict=True))} for p in bits for values in product(*options.values())
    ]
    return [claim for claim in claims if claim != adder]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_every_wrong_claim_is_answered_by_a_sum_that_speaks_against_it(call, level):
    claims = claims_of(level)
    found = call("differences", asdict(level.adder), claims, {"lowest": level.lowest, "largest": 15})
    assert [claim for claim, sums in zip(claims, found, strict=True) if sums is None] == []
    for claim, sums in zip(claims, found, strict=True):
        assert sums["allowed"]
        assert sums["one"] == level.adder.add(sums["terms"])
        assert sums["other"] == HiddenAdder(**claim).add(sums["terms"])
        assert sums["one"] != sums["other"]


def test_a_claim_that_an_experiment_refutes_is_answered_by_the_experiment(call):
    hidden, claim = asdict(HiddenAdder(11)), asdict(HiddenAdder(12))
    done = [[1, 2**-9, -1], [1, 2**-11, -1]]
    got = call("judge", hidden, claim, done, RANGE)
    assert (got["kind"], got["experiment"], got["hidden"], got["claimed"]) == ("known", 2, 0, 2**-11)
    assert call("judge", hidden, claim, done[:1], RANGE)["kind"] == "differs"
    assert call("judge", hidden, hidden, [], RANGE) == {"kind": "right"}


# What a reader does


def press(page, name):
    page.get_by_role("button", name=name, exact=True).first.click()


def verdict(page):
    return page.locator(".mp-scope-verdict").inner_text()


def spoken(page):
    return page.locator("[role=status]").inner_text()


def rows(page):
    """The notebook: (number, terms, returned, exactly), the newest first."""
    lines = page.locator(".mp-scope-table tbody tr").all()
    return [tuple(line.locator("th, td").all_inner_texts()) for line in lines]


def claim(page, **answers):
    names = {
        "rule": "The sum is rounded",
        "order": "Terms meet the total",
        "extra": "Each addend is",
        "flush": "Subnormal terms are",
    }
    for name, value in answers.items():
        if name == "bits":
            page.get_by_label("Bits of the total").fill(str(value))
        else:
            text = {"rule": RULES, "order": ORDERS, "extra": EXTRAS, "flush": FLUSHES}[name][value]
            page.get_by_label(names[name]).select_option(label=text)
    press(page, "This is the adder")


def test_the_first_minute_finds_the_first_adder(show):
    page = show(Microscope())
    assert page.locator(".mp-scope-asked").inner_text() == "The unit has not been asked yet. Press Add."
    press(page, "Add")
    assert page.locator(".mp-scope-back").inner_text() == "2⁻⁹"
    assert page.locator(".mp-scope-decimal").inner_text() == "in decimal 0.001953125"
    assert page.locator(".mp-scope-hex").inner_text() == "float32 0x3B000000"
    for _ in range(2):
        press(page, "halve the smallest and add")
    assert rows(page) == [
        ("3", "1, 2⁻¹¹, −1", "0", "2⁻¹¹"),
        ("2", "1, 2⁻¹⁰, −1", "2⁻¹⁰", "2⁻¹⁰"),
        ("1", "1, 2⁻⁹, −1", "2⁻⁹", "2⁻⁹"),
    ]
    assert spoken(page) == "Experiment 3: 1, 2⁻¹¹, −1 returns 0."
    claim(page, bits=11)
    assert verdict(page) == "✓ Right. These are float16’s 11 bits: after 1, the next number is 1 + 2⁻¹⁰."
    kept = page.evaluate("localStorage.getItem('mp-progress:hardware/accumulation/hidden-nearest')")
    assert '"solved":true' in kept
    press(page, "Next adder")
    assert page.locator(".mp-scope h3").first.inner_text() == "Adder 2: Something is missing"
    assert page.get_by_role("button", name="Adder 1: A first look, named").inner_text() == "✓"
    assert rows(page) == []


def test_a_wrong_claim_gets_a_sum_that_can_be_tried(show):
    page = show(Microscope("volta"))
    press(page, "This is the adder")
    assert verdict(page) == "Ask first: a claim without an experiment is a guess."
    press(page, "Add")
    press(page, "This is the adder")
    assert verdict(page) == "Choose an answer for each property."
    claim(page, bits=24, rule="toward_zero", order=8, extra=0, flush=False)
    assert verdict(page).startswith("Not yet. Your experiments allow it, but for")
    press(page, "put this sum into the places")
    press(page, "Add")
    number, _, returned, _ = rows(page)[0]
    assert number == "2"
    press(page, "This is the adder")
    assert verdict(page).startswith("Not yet: your experiment 2 contradicts it. For ")
    assert verdict(page).endswith(f"the hidden one returned {returned}.")
    claim(page, order=4)
    assert verdict(page).startswith("✓ Right. The tensor core of a V100")


def test_bits_that_are_none_are_refused(show):
    page = show(Microscope())
    press(page, "Add")
    for text in ("eleven", "1", "31", "10.5"):
        claim(page, bits=text)
        assert verdict(page) == "The bits of a total are a whole number from 2 to 30."


def test_terms_are_typed_stepped_and_turned(show):
    page = show(Microscope())
    field = page.get_by_label("Term 2", exact=True)
    field.fill("1.5*2^-11")
    field.press("ArrowUp")
    assert field.input_value() == "1.5*2^-10"
    field.press("ArrowDown")
    field.press("Enter")
    assert rows(page)[0][1] == "1, 3 × 2⁻¹², −1"
    press(page, "× 2: double the term")
    assert field.input_value() == "1.5*2^-10"
    press(page, "+ ¼: the next of 1, 1.25, 1.5, 1.75 times the power of two")
    press(page, "+ ¼: the next of 1, 1.25, 1.5, 1.75 times the power of two")
    assert field.input_value() == "2^-10"
    press(page, "±: turn the term’s sign")
    assert field.input_value() == "-2^-10"
    press(page, "all signs ±")
    places = [page.get_by_label(f"Term {n}", exact=True).input_value() for n in (1, 2, 3, 4)]
    assert places == ["-1", "2^-10", "1", "0"]
    press(page, "0: empty the term")
    assert field.input_value() == "0"


def test_a_faulty_term_is_told_and_nothing_is_added(show):
    page = show(Microscope())
    field = page.get_by_label("Term 2", exact=True)
    field.fill("0.1")
    field.press("Enter")
    assert page.locator(".mp-scope-message").inner_text().startswith("0.1 has too many bits")
    assert field.get_attribute("aria-invalid") == "true"
    press(page, "Add")
    assert rows(page) == []
    assert spoken(page).startswith("0.1 has too many bits")
    field.fill("2^-9")
    field.press("Tab")
    assert field.get_attribute("aria-invalid") == "false"
    press(page, "Add")
    assert len(rows(page)) == 1


@pytest.mark.parametrize("text", [text for text, *_ in PRESETS])
def test_every_sum_to_begin_with_is_one_that_every_unit_takes(show, text):
    page = show(Microscope("hopper-fp8"))
    press(page, text)
    places = page.locator(".mp-scope-term").evaluate_all("(nodes) => nodes.map(({ value }) => value)")
    begin, tells = next(more for name, *more in PRESETS if name == text)
    assert " ".join(places).removesuffix(" 0" * (8 - len(begin.split()))) == begin
    assert page.locator(".mp-scope-tells").inner_text() == tells
    press(page, "Add")
    assert len(rows(page)) == 1


def test_a_short_counterexample_fills_the_other_places_with_0(show):
    page = show(Microscope("cut", terms="1 2^-7 -1"))
    press(page, "Add")
    claim(page, bits=9, rule="ties_to_even")
    press(page, "put this sum into the places")
    places = page.locator(".mp-scope-term").evaluate_all("(nodes) => nodes.map(({ value }) => value)")
    assert places[2:] == ["0"] * 6
    assert "NaN" not in page.locator(".mp-scope").inner_text()
    press(page, "Add")
    assert len(rows(page)) == 2


def test_a_counterexample_has_no_term_that_can_be_left_out(call):
    hidden, claim = asdict(LEVELS[5].adder), {**asdict(LEVELS[5].adder), "rule": "ties_to_even"}
    (found,) = call("differences", hidden, [claim], RANGE)
    for i, x in enumerate(found["terms"]):
        fewer = [0 if k == i else term for k, term in enumerate(found["terms"])]
        assert x == 0 or LEVELS[5].adder.add(fewer) == HiddenAdder(**claim).add(fewer)


@pytest.mark.parametrize(("name", "x"), [("ampere", 2.0**-16), ("hopper", 2.0**-17)])
def test_what_is_kept_of_addends_that_meet_at_once_is_not_the_width_of_the_total(name, x):
    """As the introduction says: 1 + x - 1 in one addition returns more than the total holds."""
    adder = next(level.adder for level in LEVELS if level.name == name)
    assert adder.add([2.0**8, x, -(2.0**8)]) == x
    assert adder.add([2.0**8, x]) == 2.0**8
    assert adder.add([2.0**8, 2.0**-15]) == 2.0**8 + 2.0**-15  # 24 bits


def test_an_answer_that_no_longer_belongs_to_the_places_says_so(show):
    page = show(Microscope())
    press(page, "Add")
    assert page.locator(".mp-scope-asked").inner_text() == "The unit adds 1, 2⁻⁹, −1 and returns"
    page.get_by_label("Term 2", exact=True).fill("abc")
    page.get_by_label("Term 2", exact=True).press("Tab")
    assert (
        page.locator(".mp-scope-asked").inner_text() == "Not added yet. Before, the unit added 1, 2⁻⁹, −1 and returned"
    )
    press(page, "halve the smallest and add")
    assert page.get_by_label("Term 2", exact=True).input_value() == "abc"
    assert len(rows(page)) == 1
    assert "Try 1.5, -3/8 or 1.5*2^-11." in page.locator(".mp-scope-message").inner_text()


def test_the_notebook_of_an_adder_comes_back_with_it(show):
    page = show(Microscope())
    press(page, "Add")
    page.get_by_role("button", name="Adder 3: The tie").click()
    assert rows(page) == []
    page.get_by_role("button", name="Adder 1: A first look").click()
    assert [row[1] for row in rows(page)] == ["1, 2⁻⁹, −1"]


def test_a_seed_that_is_none_is_refused_in_words(show):
    page = show(Microscope("random", seed=9999))
    for text in ("abc", "0", "3.5", ""):
        page.get_by_label("Seed").fill(text)
        page.get_by_label("Seed").press("Enter")
        assert page.get_by_label("Seed").input_value() == "9999"
        assert verdict(page) == "A seed is a whole number from 1 to 9999. It is still 9999."
    press(page, "next seed")
    assert page.get_by_label("Seed").input_value() == "1"


def test_enter_in_the_bits_claims(show):
    page = show(Microscope())
    press(page, "Add")
    page.get_by_label("Bits of the total").fill("11")
    page.get_by_label("Bits of the total").press("Enter")
    assert verdict(page).startswith("✓ Right.")


def test_an_experiment_is_put_back_and_the_notebook_begins_anew(show):
    page = show(Microscope(experiments="1 2^-11 -1;8 1"))
    assert [row[1] for row in rows(page)] == ["8, 1", "1, 2⁻¹¹, −1"]
    press(page, "Put experiment 1 into the places")
    assert page.get_by_label("Term 2", exact=True).input_value() == "2^-11"
    press(page, "begin the notebook anew")
    assert rows(page) == []


def test_the_seed_hides_other_adders(show):
    page = show(Microscope("random", seed=3))
    press(page, "Add")
    press(page, "next seed")
    assert page.get_by_label("Seed").input_value() == "4"
    assert rows(page) == []
    press(page, "Add")
    adder = random_adder(4)
    claim(page, bits=adder.bits, rule=adder.rule, order=adder.order, extra=adder.extra, flush=adder.flush)
    assert verdict(page) == f"✓ Right. {RANDOM.says}"
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('random'))") == []


def test_the_address_holds_the_last_experiments_and_no_more_than_it_has_room_for(hosted):
    page = hosted(Microscope())
    for _ in range(30):
        press(page, "Add")
    sent = page.evaluate("() => model.sent.at(-1).experiments")
    assert 200 < len(sent) <= 280
    assert set(sent.split(";")) == {"1 2^-9 -1"}
    assert page.locator(".mp-scope-table tbody tr").count() == 30
    page.evaluate("() => void Object.assign(model.state, { level: 'cut', experiments: '', terms: '1' })")
    page.evaluate("() => model.fire('change:level')")
    assert page.locator(".mp-scope h3").first.inner_text() == "Adder 2: Something is missing"


def test_everything_works_with_the_keyboard_alone(show):
    page = show(Microscope())
    page.get_by_label("Term 2", exact=True).focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert rows(page)[0][1:3] == ("1, 2⁻¹¹, −1", "0")
    page.get_by_label("Bits of the total").focus()
    page.keyboard.type("11")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert verdict(page).startswith("✓ Right.")
    assert page.evaluate("document.activeElement.textContent") == "This is the adder"


WHOLE = (".mp-scope-told", ".mp-scope-answer p", ".mp-scope-verdict", ".mp-scope-table :is(th, td)")


@pytest.mark.parametrize("level", ["nearest", "volta", "random"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_overflows_or_is_too_small(show, viewport, level):
    page = show(Microscope(level, terms="-1.75*2^-11 -1.75*2^-11 -1.75*2^-11 1 1 1 1 2^15"), viewport=viewport)
    press(page, "Add")
    press(page, "This is the adder")
    assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
    assert cut_off(page, ", ".join(WHOLE)) == []
    assert cut_off_choices(page) == []
    assert small_targets(page) == []
    fits = "(nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth).map(({ value }) => value)"
    assert page.locator(".mp-scope-term").evaluate_all(fits) == []


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_keeps_about_the_height_free_that_the_widget_takes(show, viewport):
    kept, taken = heights(show(Microscope(), viewport=viewport))
    assert abs(kept - taken) <= 4, (kept, taken)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(Microscope("volta"), theme=theme, color_scheme=theme)
    assert barriers(page) == []
    press(page, "Add")
    claim(page, bits=24, rule="toward_zero", order=8, extra=0, flush=False)
    assert barriers(page) == []
