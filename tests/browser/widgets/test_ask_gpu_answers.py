"""AskGpu with WebGPU: Chromium's software adapter answers as recorded, and what it answers stays in the page."""

import pytest

import browsers
from tests.browser.conftest import QUIET
from tests.browser.widget_page import DESK, PHONE, barriers
from tests.browser.widgets.test_ask_gpu import ask, choose, table
from utils.widgets.ask_gpu import AskGpu, load_devices
from utils.widgets.ask_gpu.readings import read_answer
from utils.widgets.ask_gpu.rows import ROWS

WEBGPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]  # headless Chromium has no adapter without
SWIFTSHADER = next(device for device in load_devices() if device["name"] == "SwiftShader")
COUNT_ADAPTERS = """window.adapters = 0;
const request = GPU.prototype.requestAdapter;
GPU.prototype.requestAdapter = function (...options) { adapters += 1; return request.apply(this, options); };"""


@pytest.fixture(scope="module")
def browser(browser):
    """A browser of this file's own, with WebGPU; `show` takes it."""
    chromium = browser.browser_type.launch(executable_path=browsers.find(), args=[*QUIET, *WEBGPU])
    yield chromium
    chromium.close()


def test_swiftshader_answers_as_recorded(show):
    page = show(AskGpu(""))
    assert page.get_by_role("status").inner_text().startswith("Not asked yet.")
    said = ask(page)
    devices, rows = table(page)
    assert devices == ["this kernel", "IEEE 754", "SwiftShader", "lavapipe"]
    steady = [row for row in ROWS if row.name != "atomics"]  # whose order is that of each run
    assert {row.what: rows[row.what][0] for row in steady} == {
        row.what: read_answer(row, SWIFTSHADER["answers"]) for row in steady
    }
    assert said.startswith("This kernel got the answer of IEEE 754 in ")
    assert said.endswith("WGSL allows every other answer.")
    words = page.locator(".mp-ag-words").inner_text()
    assert "the architecture “swiftshader”. That is a software renderer" in words
    assert "2⁻¹²⁶ × 0.5 gave 0, flushed." in words
    assert "does not offer float16 in shaders" in words


def test_a_second_press_takes_a_second_adapter(show):
    page = show(AskGpu(), scripts=[COUNT_ADAPTERS])
    first = ask(page)
    assert page.get_by_role("button", name="Ask again").count() == 1
    assert ask(page) == first
    assert page.evaluate("adapters") == 2


def test_two_presses_at_once_ask_once(show):
    page = show(AskGpu(), scripts=[COUNT_ADAPTERS])
    page.evaluate("() => { const b = document.querySelector('.mp-ag-ask button'); b.click(); b.click(); }")
    page.wait_for_selector("text=Ask again")
    assert page.evaluate("adapters") == 1


def test_nothing_is_asked_before_a_press(show):
    page = show(AskGpu(), scripts=[COUNT_ADAPTERS])
    choose(page, "all")
    assert page.evaluate("adapters") == 0


def test_answers_of_the_reader_stay_in_the_page(show):
    page = show(AskGpu(), scripts=["navigator.clipboard.writeText = async (text) => { window.copied = text; };"])
    ask(page)
    page.locator(".mp-state-link").click()
    page.wait_for_function("() => 'copied' in window")
    assert page.evaluate("copied").endswith("#ask_gpu?")
    assert page.evaluate("() => localStorage.length + sessionStorage.length") == 0
    page.reload()
    page.wait_for_selector(".mp-ag-table")
    assert table(page)[0] == ["IEEE 754", "SwiftShader", "lavapipe"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["wide", "phone"])
def test_axe_finds_no_barrier_in_answers(show, theme, size):
    page = show(AskGpu("differ"), theme=theme, color_scheme=theme, viewport=size)
    ask(page)
    assert barriers(page) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
