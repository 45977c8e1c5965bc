"""AmaxHistory in a real browser: its scales against Python's, bit for bit, its words, and what a reader does."""

import numpy as np
import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    barriers,
    calls_of,
    small_targets,
    smallest_text,
)
from utils.formats import FORMATS
from utils.scaling import DelayedScaling, scale_from_amax
from utils.widgets.amax_history import AMAX_FORMATS, AmaxHistory

MADE_UP = "Made up for a test."
STEPS = 60


def made_up():
    rng = np.random.default_rng(seed=3)
    inputs = 2 * np.exp(0.02 * np.arange(STEPS) + rng.normal(size=STEPS) / 6)
    inputs[[20, 21, 45]] *= 30
    gradients = 1e-5 * np.exp(rng.normal(size=STEPS) - np.arange(STEPS) / 10)
    gradients[30:33] = 0
    return {"inputs, layer 0": inputs.tolist(), "gradients, layer 0": gradients.tolist()}


def widget(**kwargs):
    return AmaxHistory(made_up(), MADE_UP, **kwargs)


HARNESS = """
window.calls = {
  scales: (amaxes, settings) => words.delayedScales(amaxes.map((x) => (x === null ? NaN : x === "inf" ? Infinity : x)), settings),
  scale: (amax, top) => words.scaleFromAmax(amax === "inf" ? Infinity : amax === null ? NaN : amax, top),
  scaleAll: (amaxes, top) => amaxes.map((amax) => words.scaleFromAmax(amax, top)),
  run: (state) => { const { amaxes, scales, over } = words.replayed(state); return { amaxes, scales, over }; },
  summary: (state) => words.historySummary(words.replayed(state)),
  verdicts: (state) => { const view = words.replayed(state); return view.amaxes.map((_, i) => words.stepVerdict(view, i + 1)); },
  path: (points) => words.sharePath(points.map(([x, y]) => [x, y === null ? NaN : y])),
  ticks: (low, high, most) => words.powerTicks(low, high, most),
  commas: (text) => words.withCommas(text),
};
"""  # noqa: E501


call = calls_of("amax_history/widget", HARNESS)


# Twins: the page's arithmetic and words against Python's


def test_a_scale_is_that_of_python_for_every_amax(call):
    rng = np.random.default_rng(seed=4)
    amaxes = [*np.exp2(rng.uniform(-149, 127, 300)).astype(np.float32).tolist(), 0.0, 1e-45, 2.0**-126, 3.4e38]
    for name in AMAX_FORMATS:
        for margin in (0, 3):
            top = FORMATS[name].max * 2.0**-margin
            ours = list(map(float, call("scaleAll", amaxes, top)))
            assert ours == scale_from_amax(np.float32(amaxes), FORMATS[name], margin=margin).tolist()
    assert [call("scale", amax, 448) for amax in ("inf", None)] == [1, 1]


@pytest.mark.parametrize("choose", ["max", "most_recent"])
def test_delayed_scaling_is_that_of_python_also_for_infinities_and_nan(call, choose):
    rng = np.random.default_rng(seed=5)
    known = np.float32([0, 1, 3, 700, 1e-9, np.inf, np.nan, 1e30])
    amaxes = rng.choice(known, 200, p=[0.1, 0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.1])
    sent = [None if np.isnan(x) else "inf" if np.isinf(x) else float(x) for x in amaxes]
    for history in (1, 2, 16):
        delayed, theirs = DelayedScaling(FORMATS["float8_e5m2"], history=history, margin=1, choose=choose), []
        for amax in amaxes:
            theirs.append(float(delayed.scale))
            delayed.update(amax)
        settings = {"max": 57344, "history": history, "margin": 1, "choose": choose}
        assert list(map(float, call("scales", sent, settings))) == theirs


SETTINGS = [
    dict(),
    dict(history=1),
    dict(history=64, margin=2),
    dict(choose="most_recent"),
    dict(format="float8_e5m2", margin=1),
    dict(spike_step=40, spike=6),
    dict(spike_step=3, spike=-5),
    dict(spike_step=1, spike=16),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_run_is_told_as_python_tells_it(call, settings):
    for tensor in made_up():
        shown = widget(tensor=tensor, **settings)
        state = shown.book_state()
        run = call("run", state)
        assert run["amaxes"] == shown.amaxes.tolist()
        assert list(map(float, run["scales"])) == shown.scales.tolist()
        assert run["over"] == shown.saturated.tolist()
        assert call("summary", state) == shown.summary
        for step, said in enumerate(call("verdicts", state), 1):
            shown.step = step
            assert said == shown.verdict


def test_a_path_lifts_its_pen_where_nothing_is(call):
    assert call("path", [[0, 0], [0.5, 1], [0.6, None], [1, 0.25]]) == "M0.0 1000.0L500.0 0.0M1000.0 750.0"


def test_ticks_are_whole_powers_of_two(call):
    assert call("ticks", -3, 3, 3) == [[pytest.approx(1 / 6), "2⁻²"], [0.5, "1"], [pytest.approx(5 / 6), "2²"]]


def test_commas_stand_in_whole_numbers(call):
    texts = ["1", "999", "1234", "57344", "123456.5", "6.1 × 10⁷"]
    assert [call("commas", text) for text in texts] == ["1", "999", "1,234", "57,344", "123,456.5", "6.1 × 10⁷"]


# What a reader does


def said(page):
    return page.locator(".mp-ah-verdict").inner_text()


def summary(page):
    return page.locator(".mp-ah-summary").inner_text()


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def test_the_page_shows_what_python_says(show):
    shown = widget(step=21)
    page = show(shown, viewport=DESK)
    assert said(page) == shown.verdict
    assert summary(page) == shown.summary
    assert "mp-ah-over" in page.locator(".mp-ah-verdict").get_attribute("class")
    assert MADE_UP in page.locator(".mp-panel").inner_text()


def test_a_margin_a_history_and_a_format_are_chosen(show):
    page = show(widget(), viewport=DESK)
    page.get_by_label("Margin, binades").select_option("2")
    assert summary(page) == widget(margin=2).summary
    page.get_by_label("History, steps").select_option("4")
    assert summary(page) == widget(margin=2, history=4).summary
    press(page, "E5M2")
    assert summary(page) == widget(margin=2, history=4, format="float8_e5m2").summary
    press(page, "the most recent")
    assert page.get_by_label("History, steps").is_disabled()
    assert summary(page) == widget(margin=2, choose="most_recent", format="float8_e5m2").summary
    assert summary(page) in page.locator("[role=status]").inner_text()
    page.get_by_label("Recorded tensor").select_option("gradients, layer 0")
    assert page.locator(".mp-ah-title").first.inner_text().startswith("gradients, layer 0: the amax of each step")


def test_a_tensor_brings_its_format(show):
    formats = dict(zip(made_up(), AMAX_FORMATS, strict=True))
    page = show(widget(formats=formats), viewport=DESK)
    page.get_by_label("Recorded tensor").select_option("gradients, layer 0")
    assert summary(page) == widget(tensor="gradients, layer 0", format="float8_e5m2").summary
    assert page.get_by_role("button", name="E5M2", exact=True).get_attribute("aria-pressed") == "true"
    press(page, "E4M3")  # the reader's own choice stays, until another tensor is chosen
    assert summary(page) == widget(tensor="gradients, layer 0").summary


def test_the_step_moves_with_the_keyboard_and_by_pointing(show):
    page = show(widget(), viewport=DESK)
    slider = page.locator(".mp-ah-aligned input")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert said(page) == widget(step=2).verdict
    page.keyboard.press("End")
    assert said(page) == widget(step=STEPS).verdict
    assert slider.get_attribute("aria-valuetext").startswith(f"step {STEPS}: ")
    for name in (".mp-ah-amaxes", ".mp-ah-scales"):
        plot = page.locator(name)
        size = plot.bounding_box()
        step = 10 if name == ".mp-ah-amaxes" else 50
        plot.click(position={"x": (step - 0.5) / STEPS * size["width"], "y": 30})
        assert said(page) == widget(step=step).verdict


def test_a_spike_is_added_moved_with_the_keyboard_and_removed(show):
    page = show(widget(), viewport=DESK)
    press(page, "add a spike")
    assert said(page) == widget(spike_step=30, step=30).verdict
    page.get_by_label("Spike in step").focus()
    page.keyboard.press("ArrowLeft")
    assert said(page) == widget(spike_step=29, step=29).verdict
    page.get_by_label("amax times").focus()
    page.keyboard.press("ArrowRight")
    assert said(page) == widget(spike_step=29, step=29, spike=7).verdict
    assert page.get_by_label("amax times").get_attribute("aria-valuetext") == "128 times"
    press(page, "remove the spike")
    assert page.get_by_label("Spike in step").is_hidden()
    assert summary(page) == widget().summary


def test_the_spike_is_dragged_in_the_plot(show):
    page = show(widget(spike_step=30, step=30), viewport=DESK)
    plot, ring = (page.locator(name).bounding_box() for name in (".mp-ah-amaxes", ".mp-ah-handle"))
    x, y = ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(plot["x"] + 9.5 / STEPS * plot["width"], y + 30)
    status = page.locator("[role=status]")
    assert status.inner_text() == ""  # while it moves
    page.mouse.up()
    assert status.inner_text() == f"{said(page)} {summary(page)}"
    text = said(page)
    assert text.startswith("Step 10: ")
    powers = [power for power in range(-16, 17) if widget(spike_step=10, step=10, spike=power).verdict == text]
    assert len(powers) == 1
    assert 0 < powers[0] < 8
    plot = page.locator(".mp-ah-amaxes")
    plot.click(position={"x": 5, "y": plot.bounding_box()["height"] - 5})  # beside the ring the step moves alone
    assert said(page) == widget(spike_step=10, spike=powers[0], step=1).verdict


CASES = {
    "start": lambda: widget(),
    "spike": lambda: widget(spike_step=30, step=30, history=4),
    "gradients": lambda: widget(tensor="gradients, layer 0", format="float8_e5m2", margin=8),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_overflows_is_too_small_or_moves(show, viewport, case):
    page = show(CASES[case](), viewport=viewport)
    height = "() => document.querySelector('.mp-panel').offsetHeight"
    before = page.evaluate(height)
    slider = page.locator(".mp-ah-aligned input")
    for step in (1, 2, 20, 31, 45, STEPS):
        slider.evaluate("(node, step) => { node.value = step; node.dispatchEvent(new Event('input')); }", step)
        assert page.evaluate(height) == before, step
    for margin in ("8", "1", "0"):
        page.get_by_label("Margin, binades").select_option(margin)
        assert page.evaluate(height) == before, margin
    assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(widget(step=21), theme=theme, color_scheme=theme, viewport=DESK)
    assert barriers(page) == []
    press(page, "add a spike")
    press(page, "the most recent")
    assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(widget())
    press(page, "add a spike")
    sent = page.evaluate("() => model.sent.at(-1)")
    fresh = widget()
    fresh.set_state({name: sent[name] for name in fresh.book_state()})
    assert (fresh.spike_step, fresh.step) == (30, 30)
    page.evaluate(
        "() => void Object.assign(model.state, { tensor: 'gradients, layer 0', history: 3, step: 5, spike_step: 0 })"
    )
    page.evaluate("() => model.fire('change:tensor')")
    shown = widget(tensor="gradients, layer 0", history=3, step=5)
    assert said(page) == shown.verdict
    assert summary(page) == shown.summary
    assert page.get_by_label("History, steps").input_value() == "3"
