"""ScaleCockpit in a real browser: its scaler against torch's, its words against Python's, and what a reader does."""

import math
import re

import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of
from tests.watched import SHARES, crafted, one, record, run_of_a_scaler
from tests.widgets.test_scale_cockpit import SETTINGS, scaler_cases, torch_replay
from utils.widgets.scale_cockpit import ScaleCockpit, traced_scales
from utils.widgets.shared.words.sizes import size_text

TRACE, AMAXES = run_of_a_scaler()

NO_SCALE = (
    "The initial scale must be a power of two that float32 holds, such as 2^16: any other factor rounds every gradient "
    "once more."
)

HARNESS = """
window.calls = {
  replay: (amaxes, settings) => { const { scales, skipped } = words.replayScaler(amaxes, settings); return [scales, skipped]; },
  traced: (trace) => words.recordedScaler(trace).scales,
  size: (x, digits) => words.sizeText(x, digits),
  read: (name, text) => { try { return words.readSetting(name, text); } catch (error) { return error.message; } },
};
"""  # noqa: E501


call = calls_of("scale_cockpit/widget", HARNESS)


def cockpit(**more):
    return ScaleCockpit(record(), TRACE, amaxes=AMAXES, **more)


def text(page, name):
    return page.locator(f".mp-sc-{name}").first.inner_text()


def slider(page, name):
    return page.get_by_role("slider", name=re.compile(name))


def set_slider(page, name, value):
    slider(page, name).evaluate(
        "(node, value) => { node.value = value; for (const type of ['input', 'change']) node.dispatchEvent(new Event(type, { bubbles: true })); }",  # noqa: E501
        str(value),
    )


def type_into(page, label, value):
    field = page.get_by_label(label, exact=True)
    field.fill(value)
    field.press("Enter")


@pytest.mark.parametrize(("amaxes", "settings"), list(scaler_cases()))
def test_the_page_makes_the_decisions_of_torch(call, amaxes, settings):
    assert call("replay", amaxes, settings) == list(torch_replay(amaxes, **settings))


def test_the_page_reads_a_trace_and_writes_sizes_as_python_does(call):
    assert call("traced", TRACE) == traced_scales(TRACE)
    for x in (0.0, 1.0, 65520.0, 0.00123456, 9.999e-4, 2.5e6, 999999.0, 1.25e-30, 40960.0):
        for digits in (3, 5):
            assert call("size", x, digits) == size_text(x, digits)


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("init_scale", "2^16", 65536),
        ("init_scale", "65536", 65536),
        ("init_scale", "1/4", 1 / 4),
        ("init_scale", "0", NO_SCALE),
        ("init_scale", "1000", NO_SCALE),
        ("init_scale", "2^128", NO_SCALE),
        ("init_scale", "inf", NO_SCALE),
        ("growth_interval", "50", 50),
        ("growth_interval", "2.5", "The growth interval must be a whole number of steps, 1 or more."),
        ("growth_factor", "4", 4),
        ("growth_factor", "1", "The growth factor must be a power of two above 1, such as 2."),
        ("growth_factor", "1.5", "The growth factor must be a power of two above 1, such as 2."),
        ("backoff_factor", "1/2", 0.5),
        ("backoff_factor", "-0.5", "The backoff factor must be a power of two below 1, such as 0.5."),
    ],
)
def test_a_setting_is_read_or_refused_in_one_sentence(call, name, typed, value):
    assert call("read", name, typed) == value


def test_the_scale_moves_the_gradients_through_the_window(show):
    page = show(cockpit(log2_scale=0))
    assert text(page, "sentence") == cockpit(log2_scale=0).sentence
    assert text(page, "verdict") == cockpit(log2_scale=0).verdict
    slider(page, "Loss scale").focus()
    for power in range(1, 25):
        page.keyboard.press("ArrowRight")
        widget = cockpit(log2_scale=power)
        assert text(page, "sentence") == widget.sentence
        assert text(page, "verdict") == widget.verdict
    assert "would be skipped" in text(page, "verdict")
    assert "mp-sc-skipped" in page.locator(".mp-sc-verdict").get_attribute("class")
    assert page.get_by_text("Loss scale 2²⁴ = 16777216").is_visible()
    assert text(page, "verdict") in page.locator("[role=status]").inner_text()


def test_a_step_has_the_scale_of_the_scaler_and_the_nearest_histogram(show):
    page = show(cockpit())
    for step in (1, 10, 26, 68, 170, 300):
        set_slider(page, "Training step", step)
        widget = cockpit(step=step)
        assert (text(page, "sentence"), text(page, "verdict")) == (widget.sentence, widget.verdict)
        skipped = step in TRACE["skipped"]
        assert ("would be skipped" in text(page, "verdict")) == skipped, step
    set_slider(page, "Training step", 70)
    assert text(page, "title") == "activation gradients, all layers, step 50 (the nearest watched)"
    set_slider(page, "Loss scale", 20)
    own = page.get_by_role("button", name="the scaler’s: 2¹⁴")
    assert own.get_attribute("aria-pressed") == "false"
    own.click()
    assert own.get_attribute("aria-pressed") == "true"
    assert text(page, "sentence") == cockpit(step=70).sentence


def test_the_replay_follows_its_settings(show):
    page = show(cockpit())
    assert text(page, "summary") == (
        f"Replayed: {len(TRACE['skipped'])} of 300 steps skipped; the scale goes from 2¹⁶ to 2¹⁵, at most 2¹⁶. "
        f"Recorded: {len(TRACE['skipped'])} of 300 steps skipped; the scale goes from 2¹⁶ to 2¹⁵, at most 2¹⁶."
    )
    type_into(page, "Growth interval, steps", "20")
    skipped = torch_replay(AMAXES, **{**SETTINGS, "growth_interval": 20})[1]
    assert text(page, "summary").startswith(f"Replayed: {len(skipped)} of 300 steps skipped;")
    dots = page.locator(".mp-sc-simulated-skips").get_attribute("d")
    assert [float(x) + 0.5 for x in re.findall(r"M([.\d]+) ", dots)] == skipped
    type_into(page, "Initial scale", "1")
    type_into(page, "Growth factor", "4")
    skipped = torch_replay(AMAXES, **{**SETTINGS, "init_scale": 1.0, "growth_interval": 20, "growth_factor": 4.0})[1]
    assert text(page, "summary").startswith(f"Replayed: {len(skipped) or 'none'} of 300 steps skipped; the scale goes")
    page.get_by_role("button", name="as recorded").click()
    assert page.get_by_label("Initial scale").input_value() == "2^16"
    assert page.get_by_label("Growth interval, steps").input_value() == "50"
    assert page.locator("[role=status]").inner_text() == text(page, "summary")


def test_a_bad_setting_gets_one_sentence_and_nothing_is_lost(show):
    page = show(cockpit())
    before = text(page, "summary")
    type_into(page, "Backoff factor", "2")
    said = "The backoff factor must be a power of two below 1, such as 0.5. The replay is still that of 0.5."
    assert text(page, "message") == page.locator("[role=status]").inner_text() == said
    field = page.get_by_label("Backoff factor")
    assert (field.input_value(), field.get_attribute("aria-invalid")) == ("2", "true")
    assert text(page, "summary") == before
    set_slider(page, "Training step", 5)
    assert field.input_value() == "2"
    type_into(page, "Backoff factor", "0.25")
    assert text(page, "message") == ""
    assert text(page, "summary") != before
    type_into(page, "Initial scale", "junk")
    assert "“junk” is not a number" in text(page, "message")


def test_a_staircase_is_drawn_from_the_scale_of_each_step(show):
    trace = {"init": 8, "growth_interval": 2, "steps": 4, "changes": [[1, 4], [3, 8]], "skipped": [1]}
    page = show(ScaleCockpit(one(SHARES), trace))
    # log2 of 8, 4, 4, 8: the top of the picture is 2**5
    path = page.locator("path.mp-sc-recorded").get_attribute("d")
    assert path == "M0 2.000H1V3.000H2V3.000H3V2.000H4V2.000"
    assert page.locator("path.mp-sc-recorded-skips").get_attribute("d") == "M0.5 2.000h0"
    assert page.locator("path.mp-sc-simulated").get_attribute("d") == ""
    assert page.get_by_label("Initial scale").count() == 0  # there is nothing to replay over
    assert text(page, "summary") == "Recorded: 1 of 4 steps skipped; the scale goes from 2³ to 2³, at most 2³."


def test_without_a_scaler_there_is_the_scale_alone(show):
    page = show(ScaleCockpit(record()))
    assert page.locator(".mp-sc-stairs").count() == 0
    assert page.get_by_text("Loss scale 1").is_visible()
    assert page.get_by_role("button", name="the scaler’s").count() == 0
    set_slider(page, "Training step", 1)
    assert text(page, "sentence") == ScaleCockpit(record(), step=1).sentence
    assert text(page, "verdict") == ScaleCockpit(record(), step=1).verdict


def test_what_was_infinite_when_it_was_recorded_skips_the_step_at_any_scale(show):
    page = show(ScaleCockpit(one(crafted([5], -3)), amaxes=[0.1, math.nan, 0.1], step=2))
    assert text(page, "verdict") == "Step 2 would be skipped: a gradient was infinite or NaN when it was recorded."
    assert text(page, "summary").startswith("Replayed: 1 of 3 steps skipped;")


def test_kinds_and_layers_are_chosen(show):
    page = show(cockpit())
    page.get_by_role("button", name="weights").click()
    page.get_by_label("Layers").select_option("head")
    widget = cockpit(kind="weight gradients", group="head")
    assert text(page, "title") == "weight gradients, head, step 300"
    assert text(page, "sentence") == widget.sentence
    assert text(page, "verdict") == cockpit().verdict  # it is about all gradients


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_moves_while_the_scale_or_the_step_moves(show, viewport):
    page = show(cockpit(log2_scale=0), viewport=viewport)
    height = "() => document.querySelector('.mp-panel').offsetHeight"
    before = page.evaluate(height)
    for power in range(0, 33, 2):
        set_slider(page, "Loss scale", power)
        assert page.evaluate(height) == before, text(page, "verdict")
    for step in (1, 10, 44, 50, 120, 248, 300):
        set_slider(page, "Training step", step)
        assert page.evaluate(height) == before, text(page, "verdict")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_every_target_is_large_enough_and_nothing_overflows(show, theme):
    page = show(cockpit(step=10), viewport=PHONE, theme=theme)
    assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, select, label, input")]
             .map((node) => [node.textContent, node.getBoundingClientRect()])
             .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth).map(([name]) => name)"""
    )
    assert small == []
    sizes = page.evaluate(
        "() => [...document.querySelectorAll('.mp-panel *')].map((node) => parseFloat(getComputedStyle(node).fontSize))"
    )
    assert min(sizes) >= 12.8  # 0.8rem


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(cockpit(step=10), theme=theme, color_scheme=theme, viewport=viewport)
    for junk in (False, True):
        if junk:
            type_into(page, "Growth factor", "junk")
        # preload: axe would fetch the style sheets again, which a browser refuses for file://
        assert barriers(page) == []


def test_two_widgets_on_one_page_are_independent(show):
    page = show(cockpit(), cockpit(log2_scale=3))
    first, second = page.locator(".mp-scale-cockpit").all()
    first.get_by_label("Loss scale").fill("9")
    assert second.get_by_label("Loss scale").input_value() == "3"


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    widget = cockpit()
    page = hosted(widget)
    set_slider(page, "Training step", 12)
    set_slider(page, "Loss scale", 7)
    type_into(page, "Growth interval, steps", "9")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["step"], sent["log2_scale"], sent["growth_interval"]) == (12, 7, 9)
    widget.set_state({key: sent[key] for key in ("step", "log2_scale", "growth_interval", "kind", "group")})
    assert (text(page, "sentence"), text(page, "verdict")) == (widget.sentence, widget.verdict)
    page.evaluate("() => { model.state.growth_interval = 4; model.fire('change:growth_interval'); }")
    assert page.get_by_label("Growth interval, steps").input_value() == "4"
    page.evaluate("() => { model.state.step = 44; model.fire('change:step'); }")
    assert "step 50" in text(page, "title")


def test_the_module_stands_alone():
    source = ScaleCockpit.esm_source()
    assert not re.search(
        r"^\s*import\b|\bimport\(|https?://(?!www\.w3\.org/2000/svg)|fetch\(", source, flags=re.MULTILINE
    )
