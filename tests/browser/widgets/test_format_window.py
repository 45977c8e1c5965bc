"""FormatWindow in a real browser: its counts and sentences against Python's, and what a reader does with it."""

import math
import re

import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of
from tests.watched import SHARES, crafted, one, record
from utils.emulation.exponent_histogram import Histogram
from utils.formats import FORMATS
from utils.widgets.format_window import FormatWindow
from utils.widgets.shared.plot.binades import ALL, WINDOWS, fates, fates_text, histogram_of, merged

HARNESS = """
window.calls = {
  text: (histogram, name, shift) => words.fatesText(histogram, words.FORMATS[name], shift),
  counts: (histogram, name, shift) => {
    const { total, zero, subnormal, least, most } = words.countFates(histogram, words.FORMATS[name], shift);
    return [total, zero, subnormal, least, most];
  },
  largest: (amax, name) => words.largestShift(amax, words.FORMATS[name]),
  merged: (histograms) => words.mergedBinades(histograms),
  bars: (histogram, axis, name, shift, moved) =>
    words.barsOfBinades(histogram, { axis, fmt: words.FORMATS[name], shift, moved }),
};
"""


call = calls_of("format_window/widget", HARNESS)


def sentence(page):
    return page.locator(".mp-fw-sentence").inner_text()


def spoken(page):
    return page.locator("[role=status]").inner_text()


def largest(amax, name):
    """The exponent of the largest scale, as utils.emulation.exponent_histogram finds it."""
    e = math.frexp(amax)[1] - 1
    return math.frexp(Histogram(e, (1,), (0,), amax=amax).largest_scale(FORMATS[name]))[1] - 1


def window(page):
    return page.locator(".mp-fw-window")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def samples():
    """Histograms that try every clause: what is cut, what is empty, what is rounded in a share."""
    held = record()
    yield from (histogram_of(held, kind, ALL, 300) for kind in held["kinds"])
    yield from (
        SHARES,
        crafted([], 0, zeros=3),
        crafted([1, 100000], -2, infinite=1),
        crafted([100000, 1, 1], 12, nan=2),
    )
    yield crafted([4, 5, 6], 13, significand=1.99999) | {"powers": {"13": 1, "15": 4}}
    yield crafted([4, 5, 6], -26) | {"powers": {"-26": 1, "-25": 2}}
    yield from (crafted([1, 2], low, significand=s) for low in (1, 7, 14) for s in (1.0, 1.8125, 1.82, 1.9999))


def test_the_page_counts_and_says_what_python_does(call):
    for name in WINDOWS:
        for shift in (0, 10, -24, 64):
            for given in samples():
                assert call("counts", given, name, shift) == list(fates(given, FORMATS[name], shift)), (name, shift)
                assert call("text", given, name, shift) == fates_text(given, FORMATS[name], shift)


def test_the_page_finds_the_same_largest_scale(call):
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"):
        for amax in (1.0, 1.9999999999999998, 0.1, 2.0**-29, 7.9999999, 65519.0, 464.0, 1e-30):
            assert call("largest", amax, name) == largest(amax, name), (name, amax)


def test_the_page_adds_groups_as_python_does(call):
    parts = [
        SHARES,
        crafted([], 0, zeros=2),
        crafted([4, 0, 1], 7, nan=1),
        crafted([3], -40, infinite=2) | {"powers": {"-40": 2}},
    ]
    assert call("merged", parts) == merged(parts)


def test_bars_outside_the_axis_are_added_at_its_ends(call):
    given = crafted([1, 2, 3, 4], -3)
    bars = call("bars", given, {"from": -2, "to": 0}, "float16", 0, 0)
    assert [(bar["at"], round(bar["share"], 9)) for bar in bars] == [(-2, 0.3), (-1, 0.7)]
    assert [bar["at"] for bar in call("bars", given, {"from": -64, "to": 40}, "float16", 0, 10)] == [7, 8, 9, 10]
    fates_of = [bar["fate"] for bar in call("bars", crafted([1] * 60, -40), {"from": -64, "to": 40}, "float16", 5, 0)]
    assert fates_of == ["zero"] * 10 + ["subnormal"] * 11 + ["normal"] * 30 + ["overflow"] * 9


def test_a_reader_sees_where_each_kind_lives(show):
    page = show(FormatWindow(record()))
    assert sentence(page) == FormatWindow(record()).sentence
    names = page.locator(".mp-fw-name").all_inner_texts()
    fate = dict(zip(names, page.locator(".mp-fw-fate").all_inner_texts(), strict=True))
    assert fate["weights"] == "all normal"
    assert fate["activation gradients"].endswith("% → 0")
    press(page, "bfloat16")
    assert page.locator(".mp-fw-fate").all_inner_texts() == ["all normal"] * 5
    assert spoken(page) == sentence(page)
    assert sentence(page).startswith("bfloat16, scale 1: none of the values that are not zero becomes zero, none is")


def test_the_arrow_keys_move_the_window_by_one_binade(show):
    page = show(FormatWindow(one(SHARES)))
    window(page).focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    assert page.locator(".mp-fw-tab").inner_text() == "float16 · scale 2¹⁰"
    assert sentence(page) == fates_text(SHARES, FORMATS["float16"], 10)
    assert window(page).get_attribute("aria-valuetext") == sentence(page)
    assert window(page).get_attribute("aria-valuenow") == "-10"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageDown")
    assert page.locator(".mp-fw-tab").inner_text() == "float16 · scale 2¹⁷"
    for _ in range(20):
        page.keyboard.press("PageUp")
    assert page.locator(".mp-fw-tab").inner_text() == "float16 · scale 2⁻⁶⁴ ›"
    assert window(page).bounding_box()["width"] == 24  # still there to be taken
    page.keyboard.press("Control+ArrowLeft")  # the browser's own
    assert page.locator(".mp-fw-tab").inner_text() == "float16 · scale 2⁻⁶⁴ ›"


def test_the_window_is_dragged_in_whole_binades(show):
    page = show(FormatWindow(record()))
    stage = page.locator(".mp-fw-stage").bounding_box()
    box = window(page).bounding_box()
    axis = page.evaluate("() => document.querySelector('.mp-bw-tall .mp-bw-bars').viewBox.baseVal.width")
    binade = stage["width"] / axis
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 4.4 * binade, y, steps=5)
    assert page.locator(".mp-fw-tab").inner_text() == "float16 · scale 2⁴"
    assert spoken(page) == ""  # while it moves
    moved = window(page).bounding_box()
    assert moved["x"] == pytest.approx(box["x"] - 4 * binade, abs=1)
    page.mouse.move(x - 4.6 * binade, y)
    page.mouse.up()
    assert sentence(page) == FormatWindow(record(), log2_scale=5).sentence
    assert spoken(page) == sentence(page)
    page.mouse.move(x, y)
    assert sentence(page) == FormatWindow(record(), log2_scale=5).sentence


def test_buttons_scale_and_find_the_largest_scale(show):
    page = show(FormatWindow(one(SHARES)))
    press(page, "Scale times 2: the window goes left")
    assert spoken(page).startswith("float16, scale 2¹:")
    press(page, "Largest scale without overflow")
    assert spoken(page) == fates_text(SHARES, FORMATS["float16"], largest(SHARES["amax"], "float16"))
    press(page, "Scale times 2: the window goes left")
    assert "0.5\u00a0% overflow" in spoken(page)
    press(page, "scale 1")
    assert spoken(page).startswith("float16, scale 1:")
    press(page, "bfloat16")
    press(page, "Largest scale without overflow")
    assert page.locator(".mp-fw-note").inner_text() == "That would be 2¹⁴⁰: the window goes no further than this."
    assert spoken(page).startswith("bfloat16, scale 2⁶⁴:")


def test_zeros_alone_have_no_largest_scale(show):
    page = show(FormatWindow(one(crafted([], 0, zeros=3))))
    press(page, "Largest scale without overflow")
    assert page.locator(".mp-fw-note").inner_text() == "All values are zero: none can overflow."
    assert page.locator(".mp-fw-fate").inner_text() == "all zero"


def test_format_layers_kind_and_step_are_chosen(show):
    page = show(FormatWindow(record(), group="embeddings"))
    assert page.locator(".mp-fw-title").inner_text() == "activation gradients, embeddings, step 300"
    assert "not in these layers" in page.get_by_role("button", name="activations", exact=False).first.inner_text()
    page.get_by_role("button", name=re.compile("^activations")).click()
    assert page.locator(".mp-fw-title").inner_text() == "activations, all layers, step 300"
    assert page.get_by_role("option", name="embeddings").is_disabled()
    page.get_by_label("Layers").select_option("layer 2")
    page.get_by_label("Other formats").select_option("float4_e2m1fn")
    slider = page.get_by_role("slider", name=re.compile("Training step"))
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "step 50"
    widget = FormatWindow(record(), "activations", "layer 2", "float4_e2m1fn", step=50)
    assert sentence(page) == spoken(page) == widget.sentence


def test_where_the_top_binade_is_cut_the_shares_are_bounds(show):
    page = show(FormatWindow(one(crafted([5, 3, 2], 13, significand=1.9999))))
    shares = dict(
        zip(
            page.locator(".mp-bw-shares dt").all_inner_texts(),
            page.locator(".mp-bw-shares dd").all_inner_texts(),
            strict=True,
        )
    )
    assert shares == {
        "become zero": "none",
        "subnormal": "none",
        "normal": "≥ 80\u00a0%",
        "overflow": "≤ 20\u00a0%",
    }
    assert sentence(page).endswith("none is subnormal, at most 20\u00a0% overflow.")
    assert page.locator(".mp-fw-fate").inner_text() == "≤ 20\u00a0% → ∞"


def test_rare_values_are_seen_on_a_logarithmic_scale(show):
    page = show(FormatWindow(one(crafted([1, 0, 0, 99999], -10))))
    height = "() => document.querySelector('.mp-bw-tall .mp-bw-normal').getAttribute('d').match(/v-([.\\d]+)/)[1]"
    assert float(page.evaluate(height)) < 0.01
    page.get_by_label("logarithmic").check()
    assert float(page.evaluate(height)) == pytest.approx(1 - 5 / 6, abs=1e-3)
    assert page.locator(".mp-bw-line").all_inner_texts() == ["100 %", "1 %", "0.01 %"]


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn", "float4_e2m1fn"])
def test_nothing_moves_while_the_window_is_dragged(show, viewport, name):
    page = show(FormatWindow(record(), format=name), viewport=viewport)
    height = "() => document.querySelector('.mp-panel').offsetHeight"
    before = page.evaluate(height)
    window(page).focus()
    for key in ["ArrowLeft"] * 30 + ["ArrowRight"] * 50:
        page.keyboard.press(key)
        assert page.evaluate(height) == before, sentence(page)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fn"])
def test_on_a_phone_every_target_is_large_enough_and_nothing_overflows(show, name):
    page = show(FormatWindow(record(), format=name, log2_scale=9), viewport=PHONE)
    assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, select, label, input[type=range], [role=slider]")]
             .map((node) => [node.getAttribute("aria-label") ?? node.textContent, node.getBoundingClientRect()])
             .filter(([, box]) => box.width < 24 || box.height < 24 || box.right > innerWidth).map(([name]) => name)"""
    )
    assert small == []
    sizes = page.evaluate(
        "() => [...document.querySelectorAll('.mp-panel *')].map((node) => parseFloat(getComputedStyle(node).fontSize))"
    )
    assert min(sizes) >= 12.8  # 0.8rem
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".mp-fw-label, .mp-fw-tab, .mp-bw-word > span, .mp-bw-tick")]
             .filter((node) => node.checkVisibility() && (node.scrollWidth > node.clientWidth + 1 && node.clientWidth
               || node.getBoundingClientRect().right > innerWidth - 16 || node.getBoundingClientRect().left < 16))
             .map((node) => node.textContent)"""
    )
    assert cut == []


def test_a_finger_that_moves_up_scrolls_the_page(show):
    page = show(FormatWindow(record()), viewport=PHONE, has_touch=True)
    assert page.locator(".mp-fw-stage").evaluate("(node) => getComputedStyle(node).touchAction") == "pan-y"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(FormatWindow(record(), log2_scale=8), theme=theme, color_scheme=theme, viewport=viewport)
    # preload: axe would fetch the style sheets again, which a browser refuses for file://
    assert barriers(page) == []


def test_two_widgets_on_one_page_are_independent(show):
    page = show(FormatWindow(record()), FormatWindow(record(), format="bfloat16"))
    page.get_by_role("button", name="E5M2").first.click()
    tabs = page.locator(".mp-fw-tab").all_inner_texts()
    assert tabs == ["E5M2 · scale 1", "bfloat16 · scale 1"]


def test_a_state_that_cannot_be_read_leaves_the_static_form(show):
    html = FormatWindow(one(SHARES))._repr_mimebundle_()[0]["text/html"].replace("&quot;steps&quot;", "&quot;no&quot;")
    page = show(html)
    assert page.locator("[data-mp-widget]").get_attribute("data-mp-ready") == "error"
    assert "43.5\u00a0% of the values" in page.locator("[data-mp-widget]").inner_text()
    assert len(show.watched.problems) == 1
    show.watched.console.clear()


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    widget = FormatWindow(record())
    page = hosted(widget)
    window(page).focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name=re.compile("^weights")).click()
    press(page, "E5M2")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["kind"], sent["format"], sent["log2_scale"]) == ("weights", "float8_e5m2", 1)
    widget.set_state({key: sent[key] for key in ("kind", "group", "step", "format", "log2_scale", "logarithmic")})
    assert widget.sentence == sentence(page)
    page.evaluate("() => { model.state.log2_scale = -3; model.fire('change:log2_scale'); }")
    assert page.locator(".mp-fw-tab").inner_text() == "E5M2 · scale 2⁻³"
    page.evaluate(
        "(held) => void Object.assign(model.state, { recorded: held, step: 1, kind: 'updates' })",
        one(SHARES, kind="updates"),
    )
    page.evaluate("() => model.fire('change:recorded')")
    assert page.locator(".mp-fw-kind").count() == 1
    assert sentence(page) == fates_text(SHARES, FORMATS["float8_e5m2"], -3)


def test_the_module_stands_alone():
    source = FormatWindow.esm_source()
    assert not re.search(
        r"^\s*import\b|\bimport\(|https?://(?!www\.w3\.org/2000/svg)|fetch\(", source, flags=re.MULTILINE
    )
