"""A link to the state of a widget: the button that copies it, and the address that brings it back."""

from urllib.parse import parse_qs

import pytest

from tests.browser.widget_page import barriers
from tests.browser.widgets.test_every_widget import CASES
from utils.checks.questions import Number
from utils.widgets.bit_flip import BitFlip
from utils.widgets.dot_product import DotProduct
from utils.widgets.number_line import NumberLine
from utils.widgets.quiz import Quiz
from utils.widgets.swamping import Swamping

TAKE_COPY = "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"
NO_CLIPBOARD = """navigator.clipboard.writeText = () => Promise.reject(new Error("no clipboard"));
document.execCommand = () => false;"""


def copied(page, number=0):
    page.locator(".mp-state-link").nth(number).click()
    page.wait_for_function("() => 'copied' in window")
    return page.evaluate("window.copied")


def value(page, number=0):
    return page.locator(".mp-value").nth(number).inner_text()


def follow(page, fragment):
    """Set the fragment and wait until the widget is anew."""
    page.evaluate("(hash) => { document.querySelector('.mp-panel').dataset.old = ''; location.hash = hash; }", fragment)
    page.wait_for_selector(".mp-panel[data-old]", state="detached")


def test_a_link_holds_what_the_reader_changed_and_brings_it_back(show):
    page = show(BitFlip(), scripts=[TAKE_COPY])
    page.locator('.mp-bit[aria-label^="bit 9,"]').click()
    base, _, fragment = copied(page).partition("#")
    assert base.endswith("page.html")
    name, _, query = fragment.partition("?")
    assert (name, parse_qs(query)) == ("bit_flip", {"code": ["0x3e00"]})
    assert page.locator(".mp-state-link").inner_text() == "copied"
    page.goto(f"{base}#{fragment}")
    page.reload()
    page.wait_for_selector(".mp-value")
    assert value(page) == "1.5"


def test_an_untouched_widget_has_a_link_to_itself(show):
    page = show(BitFlip(), scripts=[TAKE_COPY])
    assert copied(page).endswith("#bit_flip?")


def test_the_second_widget_of_a_name_has_its_own_link(show):
    page = show(BitFlip(), BitFlip(), scripts=[TAKE_COPY])
    page.locator('.mp-bit[aria-label^="bit 15,"]').nth(1).click()
    fragment = copied(page, 1).partition("#")[2]
    assert fragment.startswith("bit_flip:2?code=")
    page.reload()
    page.wait_for_selector(".mp-value")
    page.evaluate("(hash) => { location.hash = hash; }", fragment)
    page.wait_for_function("() => document.querySelectorAll('.mp-value')[1].innerText === '−1'")
    assert value(page, 0) == "1"


def test_a_link_on_the_page_changes_the_widget(show):
    page = show(BitFlip(), Swamping("bfloat16"))
    follow(page, "bit_flip?format=bfloat16&code=0x4049")
    assert value(page) == "3.140625"
    assert page.get_by_label("Format").first.input_value() == "bfloat16"


@pytest.mark.parametrize(
    ("widget", "fragment", "shown"),
    [
        (Swamping("bfloat16"), "swamping?format=float16&increment=3&count=10", "30"),
        (NumberLine("float8_e4m3fn", x="0.3", low="0", high="1"), "number_line?x=0.7&format=float8_e5m2", "0.75"),
        (DotProduct(512, ["bfloat16"], data="ones"), "dot_product?products=1024", "1,024"),
    ],
    ids=["swamping", "number_line", "dot_product"],
)
def test_other_widgets_take_a_state_too(show, widget, fragment, shown):
    page = show(widget)
    follow(page, fragment)
    assert shown in page.locator(".mp-panel").inner_text() or shown.replace(",", "") in page.locator(
        ".mp-panel"
    ).evaluate("(panel) => [...panel.querySelectorAll('input')].map(({ value }) => value).join(' ')")


@pytest.mark.parametrize("name", [name for name in CASES if name != "playground"])
def test_junk_in_the_address_leaves_a_widget_that_works(show, name):
    widget = CASES[name].make()
    page = show(widget)
    for trait, start in widget.book_state().items():
        junk = "junk" if isinstance(start, str) else "{broken" if isinstance(start, dict | list) else '"text"'
        follow(page, f"{name}?{trait}={junk}&no_trait=1")
        assert page.locator("[data-mp-widget]").get_attribute("data-mp-ready") == "true"
        assert page.locator(".mp-panel").inner_text().strip()


def test_without_a_clipboard_the_link_is_in_the_address(show):
    page = show(BitFlip(), scripts=[NO_CLIPBOARD])
    page.locator('.mp-bit[aria-label^="bit 9,"]').click()
    page.locator(".mp-state-link").click()
    page.wait_for_function("() => location.hash.endsWith('code=0x3e00')")
    assert page.locator(".mp-state-link").inner_text() == "in the address"


def test_a_question_has_no_link(show):
    question = Number("test/one", "What is 1?", answer="1", says="Yes.", wrong={"2": "That is 2."}, otherwise="No.")
    page = show(Quiz(question))
    assert page.locator(".mp-state-link").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_link_is_no_barrier_and_is_large_enough(show, theme):
    page = show(BitFlip(), theme=theme)
    box = page.locator(".mp-state-link").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    assert barriers(page) == []
