"""EveryFormat in a real browser: its fates are those of Python, and its controls work by mouse, keys and touch."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import pytest

from tests.browser.widget_page import PHONE, barriers, small_targets, source_of
from utils.checks.number_text import read_number
from utils.formats import FORMATS
from utils.rounding import RULES
from utils.widgets.every_format import PRESETS, EveryFormat, error_text
from utils.widgets.shared.book_widget import BookWidget
from utils.widgets.shared.numbers.format_fate import fate
from utils.widgets.shared.numbers.formats import format_label

LABELS = [format_label(fmt) for fmt in FORMATS.values()]


def row(page, label):
    return page.locator(".mp-ef-body .mp-ef-row", has=page.get_by_role("button", name=label, exact=True))


def shown(page, label):
    """What the row of a format says: stored, error, fate without its mark."""
    parts = [row(page, label).locator(f".mp-ef-{name}").inner_text() for name in ("stored", "error")]
    return *parts, row(page, label).locator(".mp-ef-fate span").last.inner_text()


def order(page):
    return page.locator(".mp-ef-body .mp-ef-name").all_inner_texts()


def summary(page):
    return page.locator(".mp-ef-summary").inner_text()


def field(page):
    return page.get_by_label("Value", exact=True)


def texts():
    """Numbers as text: landmarks, ties, both sides of every end, and random ones."""
    yield from [value for value, _ in PRESETS]
    yield from ("0", "-0", "inf", "-inf", "nan", "1/3", "-2/3", "2^-25", "2^-25+2^-90", "2^-150", "1e400")
    yield from (
        "2^-1075",
        "3*2^-1075",
        "256",
        "464",
        "464.01",
        "-465",
        "480",
        "61440",
        "61439.99",
        "65519.99",
        "240",
        "248",
        "249",
    )
    yield from (
        "8",
        "-32",
        "65536",
        "28",
        "30",
        "7.75",
        "6.99",
        "7",
        "0.25",
        "0.26",
        "2^-127",
        "2^-128",
        "1.5*2^127",
        "0x1.8p-10",
    )
    rng = random.Random(7)
    for _ in range(60):
        yield f"{rng.choice(['', '-'])}{rng.randrange(1, 2**12)}/{rng.randrange(1, 99)} * 2^{rng.randrange(-40, 30)}"


def test_every_fate_is_that_of_python(browser):
    """Value, error, bits and words, for a grid of numbers in all formats, all rules, both conversion modes."""
    harness = """
    export const fateOfText = (typed, name, options) => {
      const fate = fateOf(parseNumber(typed), FORMATS[name], options);
      const exact = (n) => n === null ? null : n.infinite ? "inf" : `${n.num}/${n.den}`;
      const text = ({ kind, sign, ...size }) => `${sign ? "-" : ""}${kind === "finite" ? exact(size) : kind}`;
      const stored = fate.stored && text(fate.stored);
      return [fate.kind, stored, exact(fate.error), fate.words, fate.bitsLeft, errorText(fate.error)];
    };
    """
    page = browser.new_page()
    page.evaluate(
        "async (source) => { window.fates = await import("
        "URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))); }",
        source_of("every_format/widget") + harness,
    )
    cases = [
        (text, name, rule, saturate)
        for text in texts()
        for name in FORMATS
        for rule in RULES
        for saturate in (False, True)
    ]
    got = page.evaluate(
        "(cases) => cases.map(([text, name, rounding, saturate]) => "
        "fates.fateOfText(text, name, { rounding, saturate }))",
        cases,
    )
    for (text, name, rule, saturate), (kind, stored, error, words, bits, error_words) in zip(cases, got, strict=True):
        wanted = fate(read_number(text), FORMATS[name], rule, saturate)
        case = (text, name, rule, saturate, wanted)
        assert (kind, words, bits) == (wanted.kind, wanted.words, wanted.bits_left), case
        assert same(stored, wanted.stored), (case, stored)
        assert same(error, wanted.error), (case, error)
        assert flat(error_words) == error_text(wanted.error), case
    page.close()


def flat(text):
    """2⁻²⁶ as 2^-26; a power of ten stays what it is in percent."""
    return f"2^{text[1:].translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789'))}" if text[-1] in "⁰¹²³⁴⁵⁶⁷⁸⁹" else text


def same(text, number):
    """Whether the page's text, such as "-3/8" or "infinity", is the number that Python has."""
    if text is None or number is None:
        return text is number
    if isinstance(number, float) and number != 0:
        return (
            text.removeprefix("-") == "nan" if math.isnan(number) else float(text.replace("infinity", "inf")) == number
        )
    return Fraction(text) == number and text.startswith("-") == (number < 0 or str(number) == "-0.0")


def test_the_table_says_what_becomes_of_a_value(show):
    page = show(EveryFormat("65520"))
    assert shown(page, "float16") == ("∞", "∞", "overflow: to ∞")
    assert shown(page, "TF32") == ("65536", "0.0244 %", "rounded")
    assert shown(page, "E2M1") == ("6", "> 99.9 %", "saturated: to 6 (no ∞, no NaN)")
    assert summary(page) == "65520 in 13 formats: exact in 2, rounded in 3, overflow in 5, saturated in 3."
    assert row(page, "E4M3").locator(".mp-ef-head .mp-ef-bits span").all_inner_texts() == ["0", "1111", "111"]


def test_typing_updates_as_soon_as_the_text_is_a_number(show):
    page = show(EveryFormat("1"))
    field(page).fill("")
    for key, stored in (("1", "1"), ("e", "1"), ("-", "1"), ("8", "0")):
        field(page).press(key)
        assert shown(page, "float16")[0] == stored
        assert page.locator(".mp-ef-wrong").count() == 0
        assert field(page).get_attribute("aria-invalid") == "false"
    assert summary(page).startswith("1e-8 in 13 formats")


@pytest.mark.parametrize("leave", ["Enter", "Tab"])
def test_junk_is_refused_in_a_sentence_when_it_is_entered_and_nothing_is_lost(show, leave):
    page = show(EveryFormat("-0.1"))
    field(page).fill("1e-")
    field(page).press(leave)
    message = page.locator(".mp-ef-hint").inner_text()
    assert page.get_by_role("status").inner_text() == message
    assert message.startswith("“1e-” is not a number that can be read here.")
    assert message.endswith("Below: −0.1.")
    assert field(page).input_value() == "1e-"
    assert field(page).get_attribute("aria-invalid") == "true"
    assert shown(page, "E2M1")[2] == "underflow: to −0"
    field(page).fill("1e-8")
    assert page.locator(".mp-ef-hint").inner_text().startswith("Any number, read exactly")
    assert shown(page, "float16")[2] == "underflow: to 0"


def test_presets_put_their_value_in_and_are_announced(show):
    page = show(EveryFormat())
    page.get_by_role("button", name="−1e9 a mask").click()
    assert field(page).input_value() == "-1e9"
    assert shown(page, "float16")[2] == "overflow: to −∞"
    assert shown(page, "E8M0")[2] == "cannot hold a sign: NaN"
    assert page.get_by_role("status").inner_text() == summary(page)
    assert page.locator(".mp-ef-preset[aria-pressed=true]").all_inner_texts() == ["−1e9\na mask"]


def test_the_slider_multiplies_by_powers_of_two(show):
    page = show(EveryFormat("0.1"))
    slider = page.get_by_label("Magnitude")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert field(page).input_value() == "0.05"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert field(page).input_value() == "0.2"
    assert slider.get_attribute("aria-valuetext") == "about 2 to the -2"
    page.keyboard.press("End")
    assert shown(page, "float64")[2] == "overflow: to ∞"
    page.keyboard.press("Home")
    assert shown(page, "float64")[2] == "underflow: to 0"


@pytest.mark.parametrize("start", ["-1e9", "2^-200", "2^900", "1.5", "2^-31", "2^20"])
def test_a_key_on_the_slider_is_one_power_of_two_wherever_it_stands(show, start):
    page = show(EveryFormat(start))
    slider = page.get_by_label("Magnitude")
    slider.focus()
    value = read_number(start)
    for key, factor in [
        ("ArrowLeft", Fraction(1, 2)),
        ("ArrowLeft", Fraction(1, 2)),
        ("ArrowRight", 2),
        ("PageUp", 1024),
    ]:
        before = float(slider.input_value())
        page.keyboard.press(key)
        value *= factor
        assert read_number(field(page).input_value()) == value
        assert (float(slider.input_value()) > before) == (factor > 1)  # the thumb goes along
    assert page.get_by_role("status").inner_text() == summary(page)


def test_the_thumb_goes_to_the_ends_and_comes_back_from_them(show):
    page = show(EveryFormat("0.1"))
    slider = page.get_by_label("Magnitude")
    for text, end, said in [
        ("inf", slider.get_attribute("max"), "infinity"),
        ("0", "0", "0"),
        ("-inf", None, "infinity"),
    ]:
        field(page).fill(text)
        assert slider.input_value() == (end or slider.get_attribute("max"))
        assert slider.get_attribute("aria-valuetext") == said
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert field(page).input_value() == "-inf"
    page.keyboard.press("ArrowLeft")
    assert field(page).input_value() == "2^1030"
    page.keyboard.press("ArrowRight")
    assert field(page).input_value() == "2^1030"  # the axis ends here
    field(page).fill("nan")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert field(page).input_value() == "nan"


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE}], ids=["wide", "phone"])
def test_the_labels_of_the_axis_stand_apart_and_over_what_they_name(show, options):
    page = show(EveryFormat("1"), **options)
    boxes = [tick.bounding_box() for tick in page.locator(".mp-ef-tick").all()]
    assert all(a["x"] + a["width"] + 3 < b["x"] for a, b in pairwise(boxes))
    one = boxes[page.locator(".mp-ef-tick").all_inner_texts().index("1")]
    assert abs(one["x"] + one["width"] / 2 - middle(page, "float16", "line")) < 1


def test_an_empty_box_is_not_filled_in_the_dark(show):
    page = show(EveryFormat(), theme="dark", color_scheme="dark")
    box = page.get_by_label("Saturate")
    fill = "(node) => getComputedStyle(node).backgroundColor"
    assert box.evaluate(fill) == "rgba(0, 0, 0, 0)"
    box.check()
    assert box.evaluate(fill) == "rgb(124, 196, 245)"


@pytest.mark.parametrize(
    ("start", "halved"),
    [
        ("2^-24", "2^-25"),
        ("1 + 2^-11", "0.500244140625"),
        ("-1e9", "-500000000"),
        ("inf", "2^-1"),
        ("0", "2^-1"),
        ("1e-8", "5e-9"),
        ("1/3", "(1/3)*2^-1"),
        ("-1/3", "(-1/3)*2^-1"),
        ("1 + 2^-52", "(1 + 2^-52)*2^-1"),
    ],
)
def test_the_buttons_halve_and_double(show, start, halved):
    page = show(EveryFormat(start))
    page.get_by_role("button", name="Divide by 2").click()
    assert field(page).input_value() == halved
    page.get_by_role("button", name="Multiply by 2").click()
    back = "2^0" if start in ("inf", "0") else start
    assert read_number(field(page).input_value()) == read_number(back)


def test_rows_stay_in_place_while_the_slider_is_dragged(show):
    page = show(EveryFormat("1.9"))
    before = order(page)
    slider = page.get_by_label("Magnitude")
    slider.evaluate("(node) => { node.value = 12; node.dispatchEvent(new Event('input', { bubbles: true })); }")
    assert order(page) == before
    slider.evaluate("(node) => node.dispatchEvent(new Event('change', { bubbles: true }))")
    assert order(page) != before
    assert order(page)[0] == "float64"


def test_rows_are_sorted_by_error_width_or_range_and_stay_so(show):
    page = show(EveryFormat("448"))
    assert order(page)[:6] == ["float64", "float32", "TF32", "float16", "bfloat16", "E4M3"]
    assert order(page)[-1] == "E4M3FNUZ"  # NaN: it has no error at all
    sort = page.get_by_role("group", name="Sort by")
    sort.get_by_role("button", name="width").click()
    assert order(page) == LABELS
    field(page).fill("1/3")
    assert order(page) == LABELS
    sort.get_by_role("button", name="range").click()
    assert order(page)[:3] == ["float64", "float32", "TF32"]
    assert order(page)[-1] == "E2M1"
    assert order(page).index("E8M0") < order(page).index("float16")
    assert sort.locator("[aria-pressed=true]").all_inner_texts() == ["range"]


def test_the_two_modes_and_the_rules_are_switches(show):
    page = show(EveryFormat("500"))
    assert shown(page, "E4M3")[2] == "overflow: to NaN (no infinity)"
    page.get_by_label("Saturate").check()
    assert shown(page, "E4M3") == ("448", "10.4 %", "saturated: to 448")
    page.get_by_label("Saturate").uncheck()
    page.get_by_label("Rounding").select_option("toward_zero")
    assert shown(page, "E4M3")[2] == "too large: stops at 448"
    assert "the library and its version decide" in page.locator(".mp-ef-note").inner_text()


def test_a_row_opens_to_every_digit_and_every_bit(show):
    page = show(EveryFormat("0.1"))
    name = row(page, "float32").get_by_role("button")
    name.focus()
    page.keyboard.press("Enter")
    assert name.get_attribute("aria-expanded") == "true"
    detail = row(page, "float32").locator(".mp-ef-detail").inner_text()
    assert "float32 stores 0.100000001490116119384765625." in detail
    assert "Code 0x3DCCCCCD: " in detail
    assert "".join(detail.split()).find("00111101110011001100110011001101") > 0
    assert "It is high by about 1.49 × 10⁻⁹, or 0.2 ulp: the gap here is 2⁻²⁷." in detail
    field(page).fill("inf")
    assert "float32 stores ∞." in row(page, "float32").locator(".mp-ef-detail").inner_text()
    assert "float32 reaches from ≈\u00a01.4 × 10⁻⁴⁵" in row(page, "float32").locator(".mp-ef-detail").inner_text()
    name.click()
    assert row(page, "float32").locator(".mp-ef-detail").is_hidden()


def middle(page, label, part):
    box = row(page, label).locator(f".mp-ef-{part}").bounding_box()
    return box["x"] + box["width"] / 2


def edges(page, label, part):
    box = row(page, label).locator(f".mp-ef-{part}").bounding_box()
    return box["x"], box["x"] + box["width"]


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE}], ids=["wide", "phone"])
def test_the_bars_show_at_once_what_overflows_and_what_underflows(show, options):
    page = show(EveryFormat("1e-8"), **options)
    lines = {round(middle(page, label, "line"), 1) for label in LABELS}
    assert len(lines) == 1  # one vertical line through all rows
    [line] = lines
    assert line < edges(page, "float16", "subnormals")[0] - 4  # underflow: visibly left of the bar
    assert edges(page, "bfloat16", "normals")[0] < line < edges(page, "bfloat16", "normals")[1]
    assert middle(page, "float16", "dot") < line < middle(page, "bfloat16", "dot") + 1
    thumb = page.get_by_label("Magnitude").bounding_box()
    value = float(page.get_by_label("Magnitude").input_value())
    last = int(page.get_by_label("Magnitude").get_attribute("max"))
    assert abs(thumb["x"] + 12 + value / last * (thumb["width"] - 24) - line) < 3  # the thumb stands over the line
    field(page).fill("1e9")
    line = middle(page, "float16", "line")
    assert line > edges(page, "float16", "normals")[1] + 4
    assert middle(page, "float16", "dot") > line  # at infinity
    page.get_by_label("Saturate").check()
    assert abs(middle(page, "float16", "dot") - edges(page, "float16", "normals")[1]) < 2
    assert edges(page, "float64", "normals")[1] > line


def test_zero_infinity_and_nan_have_their_places(show):
    page = show(EveryFormat("0"))
    assert middle(page, "float16", "line") < edges(page, "float64", "subnormals")[0]
    field(page).fill("-inf")
    assert middle(page, "float16", "line") > edges(page, "float64", "normals")[1]
    field(page).fill("nan")
    assert row(page, "float16").locator(".mp-ef-line").is_hidden()
    assert row(page, "float16").locator(".mp-ef-dot").is_hidden()
    assert shown(page, "E2M1") == ("—", "—", "NaN lost: no code for it")
    assert summary(page) == "nan in 13 formats: kept in 10, impossible in 3."


CUT_OFF = """
() => [...document.querySelectorAll(".mp-ef-row > *, .mp-ef-head > *")]
  .filter((node) => node.scrollWidth > node.clientWidth + 1 && !node.classList.contains("mp-unseen"))
  .map((node) => `${node.className}: ${node.textContent}`)
"""
OVERLAPPING = """
() => [...document.querySelectorAll(".mp-ef-body .mp-ef-row")].flatMap((row) => {
  const cells = [...row.children].filter((cell) => cell.offsetHeight);
  const boxes = cells.map((cell) => [cell, cell.getBoundingClientRect()]);
  return boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([, two]) =>
    one.left < two.right - 1 && two.left < one.right - 1 && one.top < two.bottom - 1 && two.top < one.bottom - 1)
    .map(([b]) => `${a.className} over ${b.className}`));
})
"""


@pytest.mark.parametrize("width", [320, 390, 700, 1280])
def test_nothing_scrolls_sideways_or_lies_on_top_of_another(show, width):
    page = show(EveryFormat(), viewport={"width": width, "height": 900})
    for button in page.locator(".mp-ef-name").all()[:3]:
        button.click()
    for value in ("0.1", "-1e9", "2^-1070", "1 + 2^-300", "-1e-300", "nan"):
        field(page).fill(value)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, value
        assert page.evaluate(CUT_OFF) == [], value
        assert page.evaluate(OVERLAPPING) == [], value


def test_targets_are_large_enough_and_text_is_not_small(show):
    page = show(EveryFormat(), viewport=PHONE)
    assert small_targets(page) == []
    sizes = page.evaluate("""() => [...document.querySelectorAll('.mp-panel *')]
      .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()))
      .map((node) => parseFloat(getComputedStyle(node).fontSize))""")
    assert min(sizes) >= 12.8


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1280, "height": 900}, PHONE], ids=["wide", "phone"])
def test_axe_finds_no_barrier(show, theme, size):
    page = show(EveryFormat("65520"), theme=theme, color_scheme=theme, viewport=size)
    page.locator(".mp-ef-name").first.click()
    field(page).fill("junk")
    field(page).press("Enter")
    assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(EveryFormat(formats=["float16", "float32"]))
    assert order(page) == ["float32", "float16"]
    field(page).fill("65520")
    assert page.evaluate("() => model.sent.at(-1).value") == "65520"
    field(page).fill("655x")
    assert page.evaluate("() => model.sent.at(-1).value") == "65520"  # only numbers travel
    page.get_by_label("Saturate").check()
    assert page.evaluate("() => model.sent.at(-1).saturate") is True
    page.evaluate(
        "() => { Object.assign(model.state, { value: '2^-24', order: 'width' }); model.fire('change:value'); }"
    )
    assert field(page).input_value() == "2^-24"
    assert shown(page, "float16")[2] == "subnormal: 1 of 11 bits left"


def test_python_reads_every_value_that_the_page_sends(hosted):
    page = hosted(EveryFormat("1 + 2^-11"))
    for name in ("Divide by 2", "Divide by 2", "Multiply by 2"):
        page.get_by_role("button", name=name).click()
    for text in ("2⁻²⁴", "−1.5 × 10⁻³", " 0x1.8p3 ", "∞", "-inf", "1e-8"):
        field(page).fill(text)
    sent = page.evaluate("() => model.sent.map(({ value }) => value)")
    widget = EveryFormat()
    for text in sent:
        widget.value = text
    assert [read_number(text) for text in sent[:3]] == [read_number(f"(1 + 2^-11) * 2^{k}") for k in (-1, -2, -1)]
    assert len(sent) == 9


def test_it_is_found_by_its_name():
    assert BookWidget.registry()["every_format"] is EveryFormat
