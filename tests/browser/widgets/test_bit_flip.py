"""BitFlip in a real browser: mouse, keyboard, numbers, junk, formats, goals, phone, no JavaScript, no barriers."""

import json
import re

import pytest

from tests.browser.widget_page import PHONE, barriers, source_of
from utils.formats import FORMATS
from utils.widgets.bit_flip import KINDS, BitFlip, Goal
from utils.widgets.shared.words.code_words import formula_text

GOALS = [
    Goal("test/one-and-a-half", "Make 1.5625.", value="1.5625", hints=("It is 1 + 1/2 + 1/16.",)),
    Goal("test/largest", "Make the largest E4M3.", kind="largest", format="float8_e4m3fn"),
    Goal("test/smallest", "Make the smallest number above 0.", kind="smallest_subnormal"),
    Goal("test/minus-zero", "Make the other zero.", kind="negative_zero"),
    Goal("test/nan", "Make a NaN.", kind="nan"),
]


def bit(page, number):
    return page.locator(f'.mp-bit[aria-label^="bit {number},"]')


def value(page):
    return page.locator(".mp-value").inner_text()


def message(page):
    return page.locator(".mp-message").inner_text()


def type_number(page, text):
    field = page.get_by_label("Number", exact=True)
    field.fill(text)
    field.press("Enter")


def hex_code(page):
    return page.get_by_label("Hex code", exact=True).input_value()


def test_a_click_flips_a_bit_and_says_what_happened(show):
    page = show(BitFlip())
    assert message(page) == "Click a bit, or type a number."
    bit(page, 9).click()
    assert bit(page, 9).get_attribute("aria-pressed") == "true"
    assert value(page) == "1.5"
    assert hex_code(page) == "0x3E00"
    assert message(page) == "Bit 9 (fraction) is now 1: it adds 2⁻¹ × 2⁰ = 0.5. 1 became 1.5."
    bit(page, 15).click()
    assert value(page) == "−1.5"
    bit(page, 8).click()
    assert message(page) == "Bit 8 (fraction) is now 1: it adds 2⁻² × 2⁰ = 0.25 to the size. −1.5 became −1.75."
    bit(page, 8).click()
    assert message(page) == (
        "Bit 8 (fraction) is now 0: it takes away 2⁻² × 2⁰ = 0.25 from the size. −1.75 became −1.5."
    )
    bit(page, 14).click()
    assert value(page) == "NaN"
    assert page.locator(".mp-kind").inner_text() == "not a number (NaN)"
    assert "the fraction is not 0: NaN" in page.locator(".mp-formula").inner_text()


def test_bits_are_named_by_field_and_worth(show):
    page = show(BitFlip())
    names = [bit.get_attribute("aria-label") for bit in page.locator(".mp-bit").all()]
    assert names[0] == "bit 15, sign"
    assert names[3] == "bit 12, exponent, worth 4"
    assert names[-1] == "bit 0, fraction, worth 2 to the -10"


def test_everything_works_with_the_keyboard_alone(show):
    page = show(BitFlip())
    page.get_by_label("Number", exact=True).focus()
    page.keyboard.press("Tab")  # the button
    page.keyboard.press("Tab")  # the bits are one stop
    focused = "() => document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused).startswith("bit 15,")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused).startswith("bit 13,")
    page.keyboard.press("Space")
    assert hex_code(page) == "0x1C00"
    page.keyboard.press("Enter")
    assert hex_code(page) == "0x3C00"
    page.keyboard.press("End")
    assert page.evaluate(focused).startswith("bit 0,")
    page.keyboard.press("ArrowRight")  # stays at the end
    assert page.evaluate(focused).startswith("bit 0,")
    page.keyboard.press("Home")
    for digit in "0100000000000001":  # typed bits are written from left to right
        page.keyboard.press(digit)
    assert hex_code(page) == "0x4001"
    page.keyboard.press("Tab")  # leaves the bits
    page.keyboard.press("Enter")  # the next smaller value
    assert hex_code(page) == "0x4000"


def test_up_and_down_move_between_the_rows_of_a_wide_format(show):
    page = show(BitFlip("float64"), viewport=PHONE)
    bit(page, 51).focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith("bit 43,")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith("bit 59,")


def test_a_typed_number_is_rounded_and_the_rounding_is_shown(show):
    page = show(BitFlip())
    type_number(page, "0.1")
    assert value(page) == "0.0999755859375"
    said = "0.1 is not a float16 number: 0.0999755859375 is stored, about 0.0000244 too low, "
    said += "which is 0.4 of the gap here (0.4 ulp)."
    assert message(page) == said
    assert page.get_by_label("Number", exact=True).input_value() == "0.1"
    type_number(page, "1.5")
    assert message(page) == "1.5 is a float16 number: it is stored exactly."
    type_number(page, "2049")
    assert message(page).endswith("gap here (0.5 ulp). A tie: of two equally near, the one whose last bit is 0.")
    type_number(page, "70000")
    assert message(page) == "70000 is beyond 65504, the largest value of float16: it overflows to ∞."
    type_number(page, "1e-9")
    assert message(page) == "1e-9 underflows to 0: the smallest float16 above 0 is ≈\u00a05.96 × 10⁻⁸."
    type_number(page, "-inf")
    assert value(page) == "−∞"
    type_number(page, "1 + 2^-10")
    assert value(page) == "1.0009765625"


def test_junk_gets_a_clear_message_and_changes_nothing(show):
    page = show(BitFlip("float4_e2m1fn", 3))
    for junk, says in [("abc", "“abc” is not a number"), ("nan", "E2M1 has no NaN"), ("1,5", "decimal point")]:
        type_number(page, junk)
        assert says in message(page)
        assert value(page) == "1.5"
        assert page.get_by_label("Number", exact=True).get_attribute("aria-invalid") == "true"
        assert page.get_by_label("Number", exact=True).input_value() == junk
    type_number(page, "2")
    assert page.get_by_label("Number", exact=True).get_attribute("aria-invalid") == "false"
    assert value(page) == "2"


def test_a_typed_code_is_read_and_a_wrong_one_refused(show):
    page = show(BitFlip())
    field = page.get_by_label("Hex code", exact=True)
    for text, expected in [("7bff", "65504"), ("0x1", "5.9604644775390625 × 10⁻⁸"), ("0b1 00000 0000000000", "−0")]:
        field.fill(text)
        field.press("Enter")
        assert value(page) == expected
    field.fill("12345")
    field.press("Enter")
    assert "its last code is 0xFFFF" in message(page)
    assert value(page) == "−0"


def test_a_change_of_format_keeps_the_number_that_was_meant(show):
    page = show(BitFlip())
    type_number(page, "0.1")
    choose = page.get_by_label("Format")
    choose.select_option("float8_e4m3fn")
    assert value(page) == "0.1015625"
    assert message(page).startswith("0.1 is not an E4M3 number: 0.1015625 is stored")
    choose.select_option("float64")  # 0.1 again, not 0.1015625: it is rounded once, from what was typed
    assert hex_code(page) == "0x3FB999999999999A"
    type_number(page, "1000")
    choose.select_option("float8_e4m3fn")
    assert "beyond 448" in message(page)
    assert value(page) == "NaN"
    choose.select_option("float4_e2m1fn")
    assert "saturates" in message(page)
    assert value(page) == "6"
    page.get_by_role("button", name="0", exact=True).click()
    type_number(page, "-0")
    choose.select_option("float8_e4m3fnuz")
    assert value(page) == "0"


def test_the_neighbours_and_the_gaps_are_shown_and_can_be_stepped_to(show):
    page = show(BitFlip())
    down, up = page.locator(".mp-step-down"), page.locator(".mp-step-up")
    assert "0.99951171875" in down.inner_text()
    assert "gap 2⁻¹¹ ≈" in down.inner_text()
    assert "gap 2⁻¹⁰ = 0.0009765625" in up.inner_text()
    up.click()
    assert value(page) == "1.0009765625"
    page.get_by_role("button", name="largest", exact=True).click()
    up.click()
    assert value(page) == "∞"
    assert up.get_attribute("aria-disabled") == "true"
    up.dispatch_event("click")
    assert "this is the end of float16" in message(page)
    page.get_by_role("button", name="0", exact=True).click()
    down.click()
    assert hex_code(page) == "0x8001"


def test_quick_buttons_are_there_where_the_format_has_the_value(show):
    page = show(BitFlip())
    quick = page.get_by_role("group", name="Go to")
    for name, fmt in FORMATS.items():
        page.get_by_label("Format").select_option(name)
        expected = ["±"] * fmt.signed + ["0"] * fmt.has_zero + ["1", "largest", "smallest normal"]
        expected += ["smallest subnormal"] * fmt.has_zero + ["∞"] * fmt.has_inf + ["NaN"] * fmt.has_nan + ["reset"]
        assert quick.locator("button:visible").all_inner_texts() == expected, name
        quick.get_by_role("button", name="largest", exact=True).click()
        assert int(hex_code(page), 16) == fmt.max_code
    quick.get_by_role("button", name="reset", exact=True).click()
    assert (value(page), page.get_by_label("Format").input_value()) == ("1", "float16")


def test_long_values_are_folded_and_can_be_unfolded(show):
    page = show(BitFlip("float64", 2**52 - 1))
    folded = value(page)
    assert len(folded) < 40
    assert "…" in folded
    page.get_by_role("button", name="show all 767 digits").click()
    assert len(value(page).removeprefix("0.").lstrip("0")) == 767
    page.get_by_role("button", name="show fewer digits").click()
    assert value(page) == folded


@pytest.fixture(scope="module")
def words(browser):
    """Call an exported function of the widget: words("formulaText", "float16", 15360); codes travel as text, if any.

    A range of codes gives a list: one call of the browser for all of them.
    """
    page = browser.new_page()
    page.evaluate(
        """async (source) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          window.words = await import(url);
        }""",
        source_of("bit_flip/widget"),
    )
    call = """([name, format, codes, ...more]) => codes.map((code) =>
      words[name](...more, ...(code === null ? [] : [BigInt(code)]), words.FORMATS[format]))"""

    def answer(name, fmt, code, *more):
        several = isinstance(code, range)
        codes = map(str, code) if several else [code if code is None else str(code)]
        answers = page.evaluate(call, [name, fmt, list(codes), *more])
        return answers if several else answers[0]

    yield answer
    page.close()


@pytest.mark.parametrize("name", [fmt.name for fmt in FORMATS.values() if fmt.bits <= 8])
def test_the_formula_of_the_page_is_that_of_python(words, name):
    fmt = FORMATS[name]
    codes = range(0, 2**fmt.bits, 3)
    assert words("formulaText", name, codes) == [formula_text(code, fmt) for code in codes]


SOLVED = "✓ Solved. 1.5625 is 0x3E40: sign 0, exponent field 15 for 2⁰, fraction field 576 of 1024."


def said(page):
    return page.locator(".mp-goal-said").inner_text()


def test_a_goal_is_solved_by_flips_with_a_kind_word_on_the_way(show):
    page = show(BitFlip(goals=GOALS))
    bit(page, 9).click()
    assert said(page) == "One bit is still wrong, in the fraction."
    bit(page, 6).click()
    assert said(page) == SOLVED
    assert page.locator(".mp-goal-step").first.get_attribute("aria-label") == "Goal 1, solved"
    page.get_by_role("button", name="Next goal").click()
    assert page.get_by_label("Format").input_value() == "float8_e4m3fn"
    assert value(page) == "1"
    assert page.evaluate("() => document.activeElement.className").startswith("mp-bit")


@pytest.mark.parametrize(
    ("goal", "name", "code", "says"),
    [
        (Goal("g", "t", value="1.5625"), "float16", 0xBE40, "The right size with the wrong sign."),
        (Goal("g", "t", value="4"), "float16", 0x0800, "the exponent plus the bias: 2 + 15"),
        (Goal("g", "t", value="1.5"), "float16", 0x3F00, "stored the leading 1 as well"),
        (Goal("g", "t", value="3"), "float16", 0x3E00, "The fraction is right. The exponent field is 1 too small."),
        (Goal("g", "t", value="1.75"), "float16", 0x3C01, "right. Now the fraction: 1 of 1024 is too small."),
        (Goal("g", "t", value="1.75"), "float16", 0x3E00, "One bit is still wrong, in the fraction."),
        (Goal("g", "t", value="1"), "float16", 0x7C00, "That is infinity"),
        (Goal("g", "t", kind="largest"), "float16", 0x7C00, "One step too far: this is infinity."),
        (Goal("g", "t", kind="largest"), "float16", 0x7FFF, "Too far: this is NaN."),
        (
            Goal("g", "t", kind="largest"),
            "float8_e5m2",
            0xFC,
            "Too far: this is infinity. The sign is still wrong too.",
        ),
        (Goal("g", "t", kind="largest"), "float8_e4m3fn", 0x77, "if the top exponent were reserved as in IEEE 754"),
        (Goal("g", "t", kind="largest"), "float8_e4m3fn", 0x7F, "One step too far: this is NaN."),
        (Goal("g", "t", kind="smallest_subnormal"), "float16", 0x0400, "That is the smallest normal number."),
        (Goal("g", "t", kind="smallest_subnormal"), "float16", 0x3C00, "A subnormal one has exponent field 0."),
        (Goal("g", "t", kind="smallest_normal"), "float16", 0x0001, "That is a subnormal number"),
        (Goal("g", "t", kind="negative_zero"), "float16", 0x0000, "That is zero, the positive one."),
        (Goal("g", "t", kind="nan"), "float16", 0x7C00, "a fraction that is not 0"),
        (Goal("g", "t", kind="infinity"), "float16", 0x7C01, "for infinity the fraction must be 0"),
        (Goal("g", "t", value="7"), "float16", 0x3D00, "2⁰ × 1.25. The target lies 2 powers of two higher, at 2²."),
        (Goal("g", "t", value="1.5"), "float16", 0x3800, "2⁻¹ × 1. The target lies 1 power of two higher, at 2⁰."),
        (Goal("g", "t", kind="largest"), "float16", 0x3C00, "2⁰ × 1. The largest number lies at a higher power"),
        (Goal("g", "t", kind="smallest_subnormal"), "float16", 0x0006, "the fraction: 6 of 1024 is too large."),
        (Goal("g", "t", kind="zero"), "float16", 0x0C00, "2 bits of these still to clear."),
        (Goal("g", "t", kind="infinity"), "float16", 0x3C00, "with 4 of 5 exponent bits set"),
        (Goal("g", "t", value="1.5"), "float16", 0xBC00, "0 of 1024 is too small. The sign is still wrong too."),
        (Goal("g", "t", value="1.5"), "float16", 0xC200, "field is 1 too large. The sign is still wrong too."),
        (Goal("g", "t", value="-6.5"), "float16", 0x3C00, "at 2². The sign is still wrong too."),
    ],
)
def test_a_wrong_code_gets_the_hint_that_fits(words, goal, name, code, says):
    assert says in words("diagnose", name, code, goal.as_json(name))


def test_each_cleared_exponent_bit_gets_words_of_its_own(words):
    goal = Goal("g", "t", value="1.5").as_json("float16")
    said = [words("diagnose", "float16", code, goal) for code in (0x3C00, 0x3800, 0x3000, 0x2000, 0x0000)]
    assert len(set(said)) == len(said)


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e8m0fnu", "float4_e2m1fn"])
def test_every_code_gets_an_answer_that_tells_of_a_wrong_sign(words, name):
    fmt = FORMATS[name]
    for kind in KINDS:
        if words("namedCode", name, None, kind) is None:
            continue
        goal = Goal("g", "t", kind=kind).as_json(name)
        codes = range(0, 2**fmt.bits, 3)
        answers = (words(question, name, codes, goal) for question in ("isGoalMet", "diagnose"))
        for code, met, text, what in zip(codes, *answers, words("classify", name, codes), strict=True):
            if met:
                continue
            assert text.endswith("."), (kind, code, text)
            negative = fmt.signed and code >= fmt.sign_code and what != "nan"
            if negative and kind not in ("nan", "negative_zero", "negative_infinity"):
                assert "sign" in text or "−0" in text, (kind, code, text)


def test_each_goal_starts_at_one_whatever_came_before(show):
    goals = [Goal("test/two", "Make 2.", value="2"), Goal("test/one", "Make 1.", kind="one")]
    page = show(BitFlip("float16", 0, goals=goals))
    assert value(page) == "1"
    page.reload()
    page.wait_for_selector("[data-mp-ready=true]")
    assert value(page) == "1"
    bit(page, 9).click()
    for button in ("Start again", "reset"):
        bit(page, 15).click()
        page.get_by_role("button", name=button, exact=True).click()
        assert value(page) == "1"
    page.get_by_role("button", name="Goal 2").click()
    assert value(page) == "0"
    page.get_by_role("button", name="reset", exact=True).click()
    assert value(page) == "0"


def test_no_button_gives_a_goal_away(show):
    page = show(BitFlip(goals=[GOALS[2], Goal("test/one", "Make 1.", kind="one")]))
    quick = page.get_by_role("group", name="Go to")
    assert quick.locator("button:visible").all_inner_texts() == ["±", "0", "1", "reset"]
    quick.get_by_role("button", name="0", exact=True).click()
    page.locator(".mp-step-up").click()
    assert said(page) == "One step, and there it is. Now start again and make it by flipping bits."
    quick.get_by_role("button", name="0", exact=True).click()  # as good as a start
    bit(page, 0).click()
    assert said(page).startswith("✓ Solved. 2⁻²⁴ ≈\u00a05.96 × 10⁻⁸ is 0x0001: ")
    page.get_by_role("button", name="Goal 2").click()
    quick.get_by_role("button", name="1", exact=True).click()
    assert said(page).startswith("These are the bits.")
    bit(page, 0).click()
    bit(page, 0).click()
    assert said(page).startswith("These are the bits, but your flips did not make all of them.")


def test_a_typed_number_and_one_flip_do_not_solve_a_goal(show):
    page = show(BitFlip(goals=GOALS))
    type_number(page, "1.5")
    assert said(page) == "Look around as you like. For the goal, start again and flip the bits yourself."
    bit(page, 6).click()
    assert said(page).startswith("These are the bits, but your flips did not make all of them.")
    page.get_by_role("button", name="Start again").click()
    page.get_by_label("Format").select_option("float32")
    page.get_by_label("Format").select_option("float16")
    bit(page, 9).click()
    bit(page, 6).click()
    assert said(page).startswith("These are the bits, but")
    page.get_by_role("button", name="Start again").click()
    bit(page, 9).click()
    bit(page, 5).click()
    page.locator(".mp-step-up").click()
    assert page.get_by_role("button", name="Next goal").is_hidden()


@pytest.mark.parametrize(
    ("goal", "name", "code", "says"),
    [
        (
            Goal("g", "t", value="0.3"),
            "float8_e4m3fn",
            0x2A,
            "0.3 becomes 0.3125, about 4.17 % off. Its code is 0x2A: sign 0, exponent field 5 for 2⁻², "
            "fraction field 2 of 8.",
        ),
        (
            Goal("g", "t", value="-6.5"),
            "float16",
            0xC680,
            "−6.5 is 0xC680: sign 1, exponent field 17 for 2², fraction field 640 of 1024.",
        ),
        (
            Goal("g", "t", kind="infinity"),
            "float16",
            0x7C00,
            "∞ is 0x7C00: sign 0, exponent field 31, fraction field 0 of 1024.",
        ),
        (Goal("g", "t", kind="one"), "float8_e8m0fnu", 0x7F, "1 is 0x7F: exponent field 127 for 2⁰."),
        (
            Goal("g", "t", kind="largest_subnormal"),
            "float16",
            0x03FF,
            "1023 × 2⁻²⁴ ≈\u00a00.000061 is 0x03FF: sign 0, exponent field 0, fraction field 1023 of 1024.",
        ),
        (
            Goal("g", "t", value="-0x1.8p-23"),
            "float16",
            0x8003,
            "−3 × 2⁻²⁴ ≈\u00a0−1.79 × 10⁻⁷ is 0x8003: sign 1, exponent field 0, fraction field 3 of 1024.",
        ),
        (Goal("g", "t", value="2", solved="Own words."), "float16", 0x4000, "Own words."),
    ],
)
def test_a_solved_goal_says_what_was_learned(words, goal, name, code, says):
    assert words("solvedText", name, code, goal.as_json(name)) == says


def test_the_number_field_shows_the_bits_of_a_goal_but_does_not_solve_it(show):
    page = show(BitFlip(goals=GOALS))
    type_number(page, "1.5625")
    assert said(page) == "These are the bits. Look at them, then start again and make them yourself."
    assert page.get_by_role("button", name="Next goal").is_hidden()
    page.get_by_role("button", name="Start again").click()
    assert value(page) == "1"


def test_a_goal_stays_with_its_format(show):
    page = show(BitFlip(goals=GOALS))
    page.get_by_label("Format").select_option("bfloat16")
    bit(page, 6).click()
    assert said(page) == "This goal is about float16."
    page.get_by_role("button", name="Start again").click()
    assert page.get_by_label("Format").input_value() == "float16"


def test_hints_come_one_at_a_time_own_ones_first_and_end_with_the_bits(show):
    page = show(BitFlip(goals=GOALS))
    hints = [
        "It is 1 + 1/2 + 1/16.",
        "1.5625 lies between 1 and 2. The power of two at or below it is 1 = 2⁰.",
        "The exponent field holds the power plus the bias: 0 + 15 = 15.",
        "The bits: sign 0, exponent 01111 (15), fraction 1001000000 (576).",
    ]
    for i, hint in enumerate(hints):
        page.get_by_role("button", name=f"Hint ({4 - i} left)").click()
        assert said(page) == f"Hint {i + 1} of 4: {hint}"


@pytest.mark.parametrize(
    ("goal", "name", "first", "second"),
    [
        (
            Goal("g", "t", value="-6.5"),
            "float16",
            "The sign has a bit of its own; the size is 6.5. 6.5 lies between 4 and 8. "
            "The power of two at or below it is 4 = 2².",
            "The exponent field holds the power plus the bias: 2 + 15 = 17.",
        ),
        (
            Goal("g", "t", value="0.3"),
            "float8_e4m3fn",
            "0.3 lies between 1/4 and 1/2. The power of two at or below it is 1/4 = 2⁻².",
            "The exponent field holds the power plus the bias: −2 + 7 = 5.",
        ),
        (
            Goal("g", "t", value="1e-4"),
            "float16",
            "1e-4 lies between 2⁻¹⁴ and 2⁻¹³. The power of two at or below it is 2⁻¹⁴.",
            "The exponent field holds the power plus the bias: −14 + 15 = 1.",
        ),
        (
            Goal("g", "t", value="1.9999"),
            "float16",
            "1.9999 rounds to a power of two: 2 = 2¹.",
            "The exponent field holds the power plus the bias: 1 + 15 = 16.",
        ),
        (
            Goal("g", "t", value="1e-6"),
            "float16",
            "1e-6 lies below 2⁻¹⁴, the smallest normal number of float16: it is subnormal.",
            "The exponent field holds 0. It stands for the power −14, as field 1 does, and the leading 1 is gone.",
        ),
        (
            Goal("g", "t", kind="one"),
            "bfloat16",
            "1 is a power of two itself: 2⁰.",
            "The exponent field holds the power plus the bias: 0 + 127 = 127.",
        ),
        (
            Goal("g", "t", kind="largest"),
            "float8_e4m3fn",
            "The largest number has as many ones as a number may have. "
            "Only the code of all ones after the sign is taken, for NaN.",
            "The exponent field holds the power plus the bias: 8 + 7 = 15.",
        ),
        (
            Goal("g", "t", kind="nan"),
            "float16",
            "NaN shares the highest exponent field with infinity; its fraction is not 0.",
            "The exponent field holds 31: all its bits are 1.",
        ),
    ],
)
def test_hints_go_from_the_power_of_two_to_the_exponent_field(words, goal, name, first, second):
    hints = words("hintsOf", name, None, goal.as_json(name))
    assert hints[:2] == [first, second]
    assert len(hints) == 3
    assert hints[2].startswith("The bits")


def test_progress_survives_a_reload_and_can_be_forgotten(show):
    page = show(BitFlip(goals=GOALS))
    bit(page, 9).click()
    bit(page, 6).click()
    stored = page.evaluate("() => localStorage.getItem('mp-progress:test/one-and-a-half')")
    assert json.loads(stored) == {"solved": True, "hints": 0}
    page.reload()
    page.wait_for_selector("[data-mp-ready=true]")
    assert page.locator(".mp-goal-count").inner_text() == "Goal 2 of 5"
    assert page.locator(".mp-goal-step").first.inner_text() == "✓"
    page.get_by_role("button", name="forget my progress").click()
    assert page.locator(".mp-goal-count").inner_text() == "Goal 2 of 5"
    assert page.locator(".mp-message").inner_text() == "Press again to forget what you have solved."
    page.get_by_role("button", name="really forget?").click()
    assert page.locator(".mp-goal-count").inner_text() == "Goal 1 of 5"
    assert page.evaluate("() => localStorage.length") == 0


def test_a_browser_that_stores_nothing_still_plays(show):
    page = show(BitFlip(goals=GOALS))
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    bit(page, 9).click()
    bit(page, 6).click()
    assert said(page) == SOLVED


def test_two_widgets_on_one_page_are_independent(show):
    page = show(BitFlip(), BitFlip("float8_e5m2"))
    first, second = page.locator(".mp-bit-flip").all()
    first.locator(".mp-bit").first.click()
    assert first.locator(".mp-value").inner_text() == "−1"
    assert second.locator(".mp-value").inner_text() == "1"


def test_on_a_phone_every_target_is_large_enough_and_nothing_overflows(show):
    page = show(BitFlip(goals=GOALS), viewport=PHONE)
    for name, fmt in FORMATS.items():
        page.get_by_label("Format").select_option(name)
        assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
        small = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select")].filter((node) => node.offsetParent)
                 .map((node) => [node.getAttribute("aria-label") ?? node.textContent, node.getBoundingClientRect()])
                 .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth)
                 .map(([name]) => name)"""
        )
        assert small == [], name
        tops = page.evaluate("() => [...document.querySelectorAll('.mp-bit')].map((bit) => bit.offsetTop)")
        rows = [tops.count(top) for top in sorted(set(tops))]
        assert rows[1:] == [8] * (len(rows) - 1), name  # the last bit of each row has the same place
        assert sum(rows) == fmt.bits


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 900}], ids=["phone", "desk"])
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn"])
def test_nothing_moves_when_a_bit_is_flipped(show, name, viewport):
    page = show(BitFlip(name), viewport=viewport)
    height = "() => document.querySelector('.mp-panel').offsetHeight"
    before = page.evaluate(height)
    for number in range(FORMATS[name].bits):
        bit(page, number).click()
        assert page.evaluate(height) == before, f"after bit {number}: {message(page)}"


def test_the_live_region_speaks_once_a_change_and_briefly(show):
    page = show(BitFlip())
    status = page.locator("[role=status]")
    assert status.inner_text() == ""  # nothing is read out when the page opens
    bit(page, 15).click()
    assert status.text_content() == "The sign bit is now 1: minus. 1 became −1. −1, normal number."


def test_a_number_looks_the_same_everywhere(show):
    page = show(BitFlip("float16", 1))
    assert page.get_by_label("Number", exact=True).input_value() == "5.96e-8"
    bit(page, 0).click()
    assert "≈\u00a05.96 × 10⁻⁸ became 0" in message(page)
    assert page.locator(".mp-step-up .mp-step-value").inner_text() == "≈\u00a05.96 × 10⁻⁸"
    assert "≈\u00a05.96 × 10⁻⁸" in page.locator(".mp-step-up .mp-step-gap").inner_text()


def test_the_keys_0_and_1_write_bits_from_a_clicked_bit_on(show):
    page = show(BitFlip())
    bit(page, 9).click()
    for digit in "011":  # 1.5 loses bit 9 and gets the next two
        page.keyboard.press(digit)
    assert hex_code(page) == "0x3D80"
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith("bit 6,")
    assert page.get_by_role("toolbar").get_attribute("aria-label").endswith("0 and 1 set the bit and move right.")
    assert "0 and 1 set it and move right" in page.locator(".mp-keys").inner_text()


def test_the_compact_form_folds_what_a_beginner_needs_later(show):
    page = show(BitFlip(compact=True))
    assert page.get_by_label("Hex code", exact=True).is_hidden()
    assert page.get_by_role("group", name="Go to").is_hidden()
    assert page.get_by_label("Format").is_visible()
    assert page.locator(".mp-step-up").is_visible()
    page.get_by_text("More").click()
    assert page.get_by_label("Hex code", exact=True).is_visible()
    page.get_by_role("button", name="largest", exact=True).click()
    assert value(page) == "65504"


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 900}], ids=["phone", "desk"])
def test_nothing_moves_while_a_goal_is_played(show, viewport):
    page = show(BitFlip(goals=GOALS), viewport=viewport)
    height = "() => document.querySelector('.mp-panel').offsetHeight"
    before = page.evaluate(height)
    for code in [0x0000, 0x8000, 0x0800, 0x3C01, 0x7C00, 0x7C01, 0xBC00, 0xFBFF, 0x3F20]:
        for place in range(16):
            if (bit(page, place).get_attribute("aria-pressed") == "true") != bool(code >> place & 1):
                bit(page, place).click()
                assert page.evaluate(height) == before, said(page)
    for _ in range(5):
        page.get_by_role("button", name="Hint").click()
        assert page.evaluate(height) == before, said(page)
    page.get_by_role("button", name="Start again").click()
    bit(page, 9).click()
    bit(page, 6).click()
    assert said(page) == SOLVED
    assert page.evaluate(height) == before


def test_the_longest_message_scrolls_in_its_place(show):
    page = show(BitFlip("float64"), viewport=PHONE)
    box = page.locator(".mp-message")
    before = box.bounding_box()
    type_number(page, "0.1" + "0" * 20 + "1")
    page.get_by_label("Format").select_option("float32")
    type_number(page, "nonsense" * 8)
    assert box.bounding_box() == before
    page.evaluate("() => document.querySelector('.mp-panel').style.setProperty('width', '130px')")
    type_number(page, "nonsense" * 9)
    assert box.get_attribute("tabindex") == "0"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(BitFlip(goals=GOALS), theme=theme, color_scheme=theme)
    page.get_by_role("button", name="Hint").click()
    for name in ("float16", "float64", "float8_e4m3fn", "float4_e2m1fn"):
        page.get_by_label("Format").select_option(name)
        type_number(page, "junk")
        # preload: axe would fetch the style sheets again, which a browser refuses for file://
        assert barriers(page) == [], name


def test_without_javascript_the_bits_the_value_and_the_formula_are_there(show):
    page = show(BitFlip("float16", 0x3E40), java_script_enabled=False)
    text = page.locator("[data-mp-widget]").inner_text()
    assert re.sub(r"\s", "", text).startswith("0011111001000000")
    assert "float16 code 0x3e40 is 1.5625: (−1)^0 × 2^(15 − 15) × (1 + 576/1024)." in text
    shades = {span.evaluate("(span) => getComputedStyle(span).color") for span in page.locator(".mp-bit").all()}
    assert len(shades) >= 3


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(BitFlip(goals=GOALS))
    bit(page, 9).click()
    assert page.evaluate("() => model.sent.at(-1).code") == "0x3e00"
    bit(page, 6).click()
    assert page.evaluate("() => model.sent.at(-1).solved") == ["test/one-and-a-half"]
    page.evaluate("() => void Object.assign(model.state, { code: '0x2a', format: 'float8_e4m3fn' })")
    page.evaluate("() => model.fire('change:code')")
    assert value(page) == "0.3125"
    assert page.get_by_label("Format").input_value() == "float8_e4m3fn"
