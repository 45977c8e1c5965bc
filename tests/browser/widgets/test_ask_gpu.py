"""AskGpu in a browser without WebGPU: a sentence says why there is no answer, and the table teaches without one."""

import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, cut_off, small_targets, smallest_text
from utils.widgets.ask_gpu import AskGpu
from utils.widgets.ask_gpu.rows import ROWS, SECTIONS, TOPICS

NO_API = "delete Navigator.prototype.gpu;"
INSECURE = f"{NO_API} Object.defineProperty(window, 'isSecureContext', {{ value: false }});"
REFUSES = """Object.defineProperty(navigator, "gpu", { value: { requestAdapter: async () => ({
  features: new Set(), info: {}, requestDevice: () => Promise.reject(new Error("adapter is consumed")) }) } });"""
BREAKS = """Object.defineProperty(navigator, "gpu", { value: { requestAdapter: async () => ({ features: 1 }) } });"""


def ask(page):
    """Press the button and wait for what it says."""
    page.get_by_role("button", name="Ask").click()
    page.wait_for_function("() => document.querySelector('.mp-ag-ask button').getAttribute('aria-disabled') === null")
    return page.get_by_role("status").inner_text()


def table(page):
    """The texts of the table's cells by the question of their row, and the names of the devices."""
    heads = page.locator(".mp-ag-table thead th").evaluate_all("(nodes) => nodes.map((n) => n.firstChild.textContent)")
    rows = page.locator(".mp-ag-table tr:has(td)").evaluate_all(
        """(rows) => {
           const answerOf = (cell) => [...cell.childNodes].findLast((node) => node.nodeType === 3).textContent;
           return rows.map((row) => [row.querySelector("th").firstChild.textContent,
             [...row.querySelectorAll("td > :last-child")].map(answerOf)]);
         }"""
    )
    return heads[1:], dict(rows)


def choose(page, name):
    page.get_by_role("group", name="Rows").get_by_role("button", name=name, exact=True).click()


# A sentence each, and never an error in the console (the fixture looks)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "this browser offers WebGPU, but has no GPU for it on this machine or does not use it"),
        (NO_API, "this browser does not offer WebGPU."),
        (INSECURE, "only to pages that come over https, from this computer or from a file."),
        (REFUSES, "the browser refused the GPU (adapter is consumed)."),
        (BREAKS, "The browser could not run the kernels ("),
    ],
    ids=["no adapter", "no API", "not secure", "refused", "broken"],
)
def test_without_a_gpu_a_sentence_says_why(show, script, words):
    page = show(AskGpu(), scripts=[script])
    before = table(page)
    for _ in range(2):
        said = ask(page)
        assert words in said
        assert said.endswith("The table has the recorded answers of other devices.")
    assert table(page) == before
    assert page.get_by_role("button", name="Ask this GPU").count() == 1


# The table


def test_each_choice_shows_its_rows(show):
    page = show(AskGpu())
    for topic, title in TOPICS.items():
        choose(page, title)
        assert list(table(page)[1]) == [row.what for row in ROWS if row.topic == topic]
        assert page.locator("[data-only][aria-pressed=true]").inner_text() == title
    choose(page, "all")
    assert len(table(page)[1]) == len(ROWS)
    choose(page, "where any two differ")
    assert all(
        len(set(texts) - {"not offered", "leaves it open", "recommends the nearest float32"}) > 1
        for texts in table(page)[1].values()
    )
    assert len(table(page)[1]) == 16


def test_a_different_answer_is_marked_for_the_eye_and_the_ear(show):
    page = show(AskGpu("range"))
    row = page.get_by_role("row").filter(has_text="a subnormal result")
    cell = row.get_by_role("cell").nth(1)
    assert cell.get_attribute("data-differs") == ""
    assert cell.locator("> :last-child").text_content() == "differs: 0, flushed †"
    assert row.get_by_role("cell").nth(2).get_attribute("data-differs") is None


def test_the_key_names_the_sections_that_are_cited(show):
    page = show(AskGpu("functions"))
    key = page.locator(".mp-ag-key").inner_text()
    assert "15.7.4.1 Accuracy of Concrete Floating Point Expressions." in key
    assert SECTIONS["15.7.5"] not in key


def test_an_address_chooses_the_rows(show):
    page = show(AskGpu())
    page.evaluate("() => { location.hash = 'ask_gpu?only=sums'; }")
    page.wait_for_selector("[data-only=sums][aria-pressed=true]")
    assert "fma(a, a, c)" in table(page)[1]


def test_it_can_be_used_with_the_keyboard_alone(show):
    page = show(AskGpu())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[role=status]').innerText.startsWith('Nothing was asked')")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "fma(a, a, c)" in table(page)[1]


@pytest.mark.parametrize("width", [320, 390, 700, 1280])
def test_nothing_scrolls_sideways_or_is_cut_off(show, width):
    page = show(AskGpu(""), viewport={"width": width, "height": 900})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert cut_off(page, ".mp-ag :is(tbody th, td, button, p, table)") == []


def test_targets_are_large_enough_and_text_is_not_small(show):
    page = show(AskGpu(), viewport=PHONE)
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.8


def test_a_phone_keeps_the_roles_of_the_table(show):
    page = show(AskGpu(), viewport=PHONE)
    assert page.get_by_role("columnheader", include_hidden=True).count() == 4
    assert page.get_by_role("row").count() == 1 + 1 + 7
    assert page.get_by_role("rowheader").count() == 1 + 7


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["wide", "phone"])
def test_axe_finds_no_barrier(show, theme, size):
    page = show(AskGpu(""), theme=theme, color_scheme=theme, viewport=size)
    assert barriers(page) == []


def test_a_kernel_gets_the_choice_of_rows_and_the_page_follows_the_kernel(hosted):
    page = hosted(AskGpu())
    page.get_by_role("button", name="float16", exact=True).click()
    assert page.evaluate("() => model.sent.at(-1).only") == "float16"
    page.evaluate("() => { model.state.only = 'sums'; model.fire('change:only'); }")
    assert page.locator("[data-only=sums]").get_attribute("aria-pressed") == "true"
