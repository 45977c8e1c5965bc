"""CodeLine in a real browser: each code against Python's words, and what a reader does with the lines."""

import re
from itertools import pairwise

import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of, cut_off, small_targets
from utils.formats import FORMATS
from utils.widgets.code_line import CodeLine
from utils.widgets.code_line.facts import LINE_FORMATS, census_text, codes_in_order, reading, value_in_short

HARNESS = """
window.calls = {
  order: (name) => words.codesInOrder(words.FORMATS[name]),
  census: (name) => words.censusText(words.FORMATS[name]),
  readings: (name) => {
    const fmt = words.FORMATS[name];
    return words.codesInOrder(fmt).map((code) => words.codeReading(code, fmt));
  },
  fates: (from, to) => words.codesInOrder(words.FORMATS[from]).map((code) => {
    const fate = words.fateOf(words.valueOf(BigInt(code), words.FORMATS[from]), words.FORMATS[to], {});
    return [fate.kind, fate.stored && words.valueInShort(words.asDouble(fate.stored))];
  }),
  places: (names, options) => {
    const formats = names.map((name) => words.FORMATS[name]);
    const axis = words.codeAxis(formats, options);
    const places = words.codesInOrder(formats[0]).map((code) => axis.place(words.valueOfCode(code, formats[0])));
    return places.filter((place) => !Number.isNaN(place));
  },
};
"""


call = calls_of("code_line/widget", HARNESS)


def line(page, label):
    return page.get_by_role("slider", name=re.compile(f"Codes of {label},"))


def sentence(page):
    return page.locator(".mp-cl-sentence").inner_text()


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_the_page_reads_every_code_as_python_does(call, name):
    fmt = FORMATS[name]
    codes = codes_in_order(fmt)
    assert call("order", name) == codes
    assert call("census", name) == census_text(fmt)
    assert call("readings", name) == [reading(code, fmt) for code in codes]


@pytest.mark.parametrize(("name", "other"), [("float8_e4m3fn", "float8_e5m2"), ("float8_e5m2", "float4_e2m1fn")])
def test_the_page_stores_every_value_in_the_other_line_as_python_does(call, name, other):
    got = call("fates", name, other)
    for code, (kind, stored) in zip(codes_in_order(FORMATS[name]), got, strict=True):
        fate = CodeLine([name, other], code).fates[other]
        assert (kind, stored) == (fate.kind, fate.stored if fate.stored is None else value_in_short(float(fate.stored)))


@pytest.mark.parametrize("axis", ["logarithmic", "linear"])
@pytest.mark.parametrize("name", LINE_FORMATS)
def test_places_grow_with_the_values_and_fit_the_axis(call, name, axis):
    places = call("places", [name], {"axis": axis, "view": "all", "value": 1, "gap": 0.5})
    assert places == sorted(places)
    assert places[0] >= 0
    assert places[-1] <= 1


def test_keys_go_from_code_to_code_and_by_binades(show):
    page = show(CodeLine())
    line(page, "E4M3").focus()
    page.keyboard.press("ArrowRight")
    assert sentence(page) == reading(0x39, FORMATS["float8_e4m3fn"])
    page.keyboard.press("PageDown")
    assert sentence(page) == reading(0x31, FORMATS["float8_e4m3fn"])
    page.keyboard.press("End")
    assert sentence(page) == reading(0x7F, FORMATS["float8_e4m3fn"])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert sentence(page) == reading(0x7E, FORMATS["float8_e4m3fn"])
    assert line(page, "E4M3").get_attribute("aria-valuetext") == sentence(page)
    assert line(page, "E4M3").get_attribute("aria-valuenow") == "254"
    page.keyboard.press("Home")
    assert sentence(page) == reading(0xFF, FORMATS["float8_e4m3fn"])
    page.keyboard.press("Control+ArrowRight")
    assert sentence(page) == reading(0xFF, FORMATS["float8_e4m3fn"])


def test_a_key_on_another_line_starts_from_what_it_stores(show):
    page = show(CodeLine(code=0x7E))  # 448 is a value of both
    assert page.locator(".mp-cl-stored").all_inner_texts() == ["", "448: exact"]
    line(page, "E5M2").focus()
    page.keyboard.press("ArrowRight")
    assert sentence(page) == reading(0x60, FORMATS["float8_e5m2"])  # 512
    assert page.locator(".mp-cl-stored").all_inner_texts() == ["512: overflow: to NaN (no infinity)", ""]
    line(page, "E4M3").focus()
    page.keyboard.press("ArrowLeft")  # from NaN
    assert sentence(page) == reading(0x7E, FORMATS["float8_e4m3fn"])


def test_a_value_between_two_codes_is_rounded_on_the_other_line(show):
    page = show(CodeLine(code=0x39))
    assert page.locator(".mp-cl-stored").last.inner_text() == "1.125: rounded to 1, error 11.1 %"
    assert "mp-cl-off" in page.locator(".mp-cl-way").last.get_attribute("class")
    dots = page.locator(".mp-cl-dot")
    assert dots.first.bounding_box()["x"] > dots.last.bounding_box()["x"]


def test_pointing_shows_a_code_and_leaving_forgets_it(show):
    page = show(CodeLine())
    box = page.locator(".mp-cl-plot").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    assert sentence(page).startswith("E4M3 0x80 is −0") or sentence(page).startswith("E4M3 0x00 is 0")
    page.mouse.move(box["x"] + box["width"] + 15, middle)
    assert sentence(page) == reading(0x7F, FORMATS["float8_e4m3fn"])
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 400)
    assert sentence(page) == reading(0x38, FORMATS["float8_e4m3fn"])
    page.mouse.click(box["x"] + box["width"] + 15, middle)
    page.mouse.move(0, 0)
    assert sentence(page) == reading(0x7F, FORMATS["float8_e4m3fn"])


def test_flipping_a_bit_moves_the_dot(show):
    page = show(CodeLine())
    before = page.locator(".mp-cl-dot").first.bounding_box()["x"]
    page.get_by_role("button", name=re.compile("bit 6, exponent")).click()
    assert sentence(page) == reading(0x78, FORMATS["float8_e4m3fn"])
    assert page.locator("[role=status]").inner_text() == sentence(page)
    assert page.locator(".mp-cl-dot").first.bounding_box()["x"] > before


def test_lines_come_and_go_between_one_and_four(show):
    page = show(CodeLine())
    for name in ("E3M2", "E2M1"):
        press(page, name)
    assert page.locator(".mp-cl-head strong").all_inner_texts() == ["E4M3", "E5M2", "E3M2", "E2M1"]
    page.get_by_role("button", name="E8M0").dispatch_event("click")  # it says that it is disabled
    assert "room for 4 lines" in page.locator("[role=status]").inner_text()
    for name in ("E5M2", "E4M3", "E3M2"):
        press(page, name)
    assert page.locator(".mp-cl-head strong").all_inner_texts() == ["E2M1"]
    assert sentence(page) == reading(0x2, FORMATS["float4_e2m1fn"])  # 1 is a value of all of them
    page.get_by_role("button", name="E2M1").dispatch_event("click")
    assert "One line stays" in page.locator("[role=status]").inner_text()


def test_near_the_code_the_marks_have_values(show):
    page = show(CodeLine(code=0x4B, view="near"))
    texts = page.locator(".mp-cl-row").last.locator(".mp-cl-value").all_inner_texts()
    assert {"4", "8"} <= set(texts)
    press(page, "linear")
    assert page.locator(".mp-cl-row").first.locator(".mp-cl-value").count() > 3
    line(page, "E4M3").focus()
    for key in ["End", *["ArrowLeft"] * 4, "Home", "ArrowRight"]:  # NaN, and both ends
        page.keyboard.press(key)


def test_a_long_word_leaves_all_lines_of_one_width(show):
    page = show(CodeLine(["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"], code=0x7E))
    assert page.locator(".mp-cl-stored").last.inner_text() == "448: saturated: to 6 (no ∞, no NaN), error 98.7 %"
    widths = page.locator(".mp-cl-strip, .mp-cl-lines").evaluate_all("(nodes) => nodes.map((node) => node.offsetWidth)")
    assert len(set(widths)) == 1, widths


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("view", ["positive", "near"])
def test_values_above_the_marks_do_not_overlap(show, viewport, view):
    page = show(CodeLine(["float8_e4m3fn", "float8_e5m2"], code=0x7E, axis="linear", view=view), viewport=viewport)
    texts = page.locator(".mp-cl-row").last.locator(".mp-cl-value:visible")
    boxes = sorted((box["x"], box["x"] + box["width"]) for box in (one.bounding_box() for one in texts.all()))
    assert len(boxes) > 1
    assert all(right < left for (_, right), (left, _) in pairwise(boxes)), boxes


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_moves_from_code_to_code(show, viewport):
    page = show(CodeLine(["float8_e5m2", "float8_e4m3fn"]), viewport=viewport)
    before = page.evaluate("() => document.querySelector('.mp-panel').offsetHeight")
    line(page, "E5M2").focus()
    for key in ["Home"] + ["ArrowRight"] * 20 + ["PageUp"] * 30 + ["ArrowRight"] * 8 + ["PageUp"] * 30:
        page.keyboard.press(key)
        assert page.evaluate("() => document.querySelector('.mp-panel').offsetHeight") == before, sentence(page)


@pytest.mark.parametrize("formats", [["float8_e4m3fn", "float8_e5m2"], ["float8_e8m0fnu"], ["float8_e5m2fnuz"]])
def test_on_a_phone_targets_are_large_enough_and_nothing_overflows(show, formats):
    page = show(CodeLine(formats, axis="linear"), viewport=PHONE)
    assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    assert small_targets(page) == []
    assert cut_off(page, ".mp-cl-end, .mp-button") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(CodeLine(view="near"), theme=theme, color_scheme=theme, viewport=viewport)
    assert barriers(page) == []


def test_two_widgets_on_one_page_are_independent(show):
    page = show(CodeLine(), CodeLine(code=0x7E))
    page.get_by_role("button", name="linear").first.click()
    pressed = [button.get_attribute("aria-pressed") for button in page.get_by_role("button", name="linear").all()]
    assert pressed == ["true", "false"]


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    widget = CodeLine()
    page = hosted(widget)
    line(page, "E4M3").focus()
    page.keyboard.press("End")
    press(page, "E2M1")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["code"], sent["formats"][-1]) == (0x7F, "float4_e2m1fn")
    widget.set_state({key: sent[key] for key in ("formats", "format", "code", "axis", "view")})
    assert widget.sentence == sentence(page)
    page.evaluate(
        "() => { Object.assign(model.state, { format: 'float8_e5m2', code: 3 }); model.fire('change:code'); }"
    )
    assert sentence(page) == reading(3, FORMATS["float8_e5m2"])


def test_the_module_stands_alone():
    source = CodeLine.esm_source()
    pattern = r"^\s*import\b|\bimport\(|https?://(?!www\.w3\.org/2000/svg)|fetch\("
    assert not re.search(pattern, source, flags=re.MULTILINE)
