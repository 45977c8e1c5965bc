"""Each widget as one file: whole, light, alive without a network, with a state from its address; and their list."""

import re

import pytest

from tests.browser.conftest import SITE
from tests.browser.widget_page import DESK, PHONE
from tests.browser.widgets.test_every_widget import CASES

HEAVIEST = 120_000  # bytes; gzipped about a third of it
FILES = sorted((SITE / "widgets").glob("*.html"))
LIST = "book/reference/all_widgets.html"
REFERENCE = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="([^"]+)"')


def test_every_widget_of_the_book_but_those_of_a_page_has_a_file():
    assert {path.stem for path in FILES} == {*CASES, "recipe_picker"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_light_and_asks_for_no_other(path):
    text = path.read_text("utf8")
    assert REFERENCE.findall(text) == []
    assert len(text.encode()) <= HEAVIEST
    assert "Mixed Precision, Bit by Bit" in text
    assert "CC BY 4.0" in text
    assert "BSD-3-Clause" in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_works_anywhere_on_a_phone_too(path, page_watch, tmp_path):
    copy = tmp_path / "alone.html"
    copy.write_bytes(path.read_bytes())
    watched = page_watch(viewport=PHONE, reduced_motion="reduce")
    page = watched.open(copy.as_uri())
    assert page.locator("[data-mp-widget]").get_attribute("data-mp-ready") == "true"
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert watched.problems == []


def test_a_file_takes_a_state_from_its_address(page_watch, site):
    page = page_watch().open(f"{(site / 'widgets/bit_flip.html').as_uri()}#bit_flip?format=bfloat16&compact=true")
    assert page.get_by_label("Format").first.input_value() == "bfloat16"


def test_the_list_has_every_file_with_its_picture(page_watch, site):
    watched = page_watch(viewport=DESK)
    page = watched.open((site / LIST).as_uri())
    entries = page.locator(".mp-widget-entry")
    assert entries.count() == len(FILES)
    page.evaluate(
        "() => document.querySelectorAll('.mp-widget-picture').forEach((image) => { image.loading = 'eager'; })"
    )
    page.wait_for_function(
        "() => [...document.querySelectorAll('.mp-widget-picture')].every((image) => image.complete)"
    )
    assert page.evaluate(
        "[...document.querySelectorAll('.mp-widget-picture')].every((image) => image.naturalWidth > 300)"
    )
    assert watched.problems == []
