"""AskGpu with WebGPU: Chromium's software adapter answers as recorded, and what it answers stays in the page."""

import numpy as np
import pytest

import browsers
from tests.browser.conftest import QUIET
from tests.browser.widget_page import DESK, PHONE, barriers
from tests.browser.widgets.test_ask_gpu import ask, choose, table
from utils.widgets.ask_gpu import AskGpu, load_devices
from utils.widgets.ask_gpu.functions import INPUTS, ulp
from utils.widgets.ask_gpu.readings import read_answer
from utils.widgets.ask_gpu.rows import ROWS

WEBGPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]  # headless Chromium has no adapter without
SWIFTSHADER = next(device for device in load_devices() if device["name"] == "SwiftShader")
LOG_INPUT = 0.4191893935203552
LOG = """async (x) => {
  const device = await (await navigator.gpu.requestAdapter()).requestDevice();
  const module = device.createShaderModule({ code: `
    @group(0) @binding(0) var<storage, read_write> x: f32;
    @compute @workgroup_size(1) fn main() { x = log(x); }` });
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "main" } });
  const [buffer, back] = [128 + 8 + 4, 8 + 1].map((usage) => device.createBuffer({ size: 4, usage }));
  device.queue.writeBuffer(buffer, 0, new Float32Array([x]));
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  const entries = [{ binding: 0, resource: { buffer } }];
  pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(1);
  pass.end();
  encoder.copyBufferToBuffer(buffer, 0, back, 0, 4);
  device.queue.submit([encoder.finish()]);
  await back.mapAsync(1);
  const [code] = new Uint32Array(back.getMappedRange());
  device.destroy();
  return code;
}"""
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
    assert devices == ["this run", "IEEE 754", "SwiftShader", "lavapipe"]
    steady = [row for row in ROWS if row.name != "atomics"]  # whose order is that of each run
    assert {row.what: rows[row.what][0] for row in steady} == {
        row.what: read_answer(row, SWIFTSHADER["answers"]) for row in steady
    }
    assert said.startswith("The kernels got the answer of IEEE 754 in ")
    assert said.endswith("No other answer seen here breaks WGSL’s rules.")
    words = page.locator(".mp-ag-words").inner_text()
    assert "the architecture “swiftshader”. That is a software renderer" in words
    assert "2⁻¹²⁶ × 0.5 gave 0, flushed." in words
    assert "does not offer float16 in shaders" in words


def test_the_log_that_the_page_quotes_breaks_the_rule_of_wgsl(show):
    """The row says so of an input that is not among the 256."""
    page = show(AskGpu())
    code = page.evaluate(LOG, LOG_INPUT)
    result, exact = float(np.uint32(code).view(np.float32)), np.log(LOG_INPUT)
    assert float(np.float32(LOG_INPUT)) == LOG_INPUT
    assert abs(result - exact) / ulp(exact) == pytest.approx(3.0223, abs=1e-4)
    assert LOG_INPUT not in INPUTS["around1"]


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
