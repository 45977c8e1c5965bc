"""ScaleExplorer in a real browser: its arithmetic and words against Python's, and what a reader does with it."""

import math
import re

import numpy as np
import pytest

from tests.browser.widget_page import DESK, PHONE, barriers, calls_of, cut_off, small_targets
from utils.formats import FORMATS
from utils.scaling import scale_from_amax
from utils.widgets.scale_explorer import ScaleExplorer
from utils.widgets.scale_explorer.facts import SCALED_FORMATS, carry, number_in_short, sentence

HARNESS = """
const plain = (x) => (Number.isFinite(x) ? x : String(x));
window.calls = {
  scale: (amaxes, name, options) => amaxes.map((amax) => words.formatScale(Number(amax), words.FORMATS[name], options)),
  carried: (x, name, scale, saturate) => {
    const found = words.carryValues(x.map(Math.fround), words.FORMATS[name], scale, saturate);
    const { scaled, stored, back } = found;
    return { scaled: scaled.map(plain), stored: stored.map(plain), back: back.map(plain), counts: found.counts,
      inv: found.scaleInv, db: plain(found.db), text: words.scaleSentence(found, saturate) };
  },
  curve: (x, name, saturate) => words.sqnrCurve(x.map(Math.fround), words.FORMATS[name], saturate),
  number: (x) => words.numberInShort(x),
};
"""
TENSORS = ("weights", "activations", "gradients", "one outlier")


call = calls_of("scale_explorer/widget", HARNESS)


def text(page):
    return page.locator(".mp-se-sentence").inner_text()


def slider(page):
    return page.get_by_role("slider", name="Scale, by powers of two")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def amaxes():
    """Edges of float32, and 2,000 sizes over its whole range."""
    rng = np.random.default_rng(5)
    bits = rng.integers(1, 0x7F800000, 2000, dtype=np.uint32).view(np.float32)
    edges = [0.0, 2.0**-149, 2.0**-126, 1.0, 448.0, 3.4028234663852886e38, math.inf, math.nan]
    return np.concatenate([bits, np.float32(edges)])


@pytest.mark.parametrize("power_of_two", [False, True])
@pytest.mark.parametrize("margin", [0, 3])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float16"])
def test_the_scale_is_that_of_utils_scaling_bit_for_bit(call, name, margin, power_of_two):
    given = amaxes()
    texts = [str(float(amax)).replace("inf", "Infinity").replace("nan", "NaN") for amax in given]
    got = call("scale", texts, name, {"margin": margin, "powerOfTwo": power_of_two})
    expected = scale_from_amax(given, FORMATS[name], margin=margin, power_of_two=power_of_two)
    assert list(map(float, got)) == expected.tolist()  # a browser sends 2.0**63 as a whole number


def numbers(values):
    """What the page gave as numbers: what is not finite came as text."""
    return np.array([float(str(value).replace("Infinity", "inf")) for value in values])


@pytest.mark.parametrize("saturate", [True, False], ids=["saturating", "overflowing"])
@pytest.mark.parametrize("name", SCALED_FORMATS)
def test_values_are_scaled_rounded_and_taken_back_bit_for_bit(call, name, saturate):
    rng = np.random.default_rng(7)
    x = np.float32([*(rng.normal(size=300) * np.exp(3 * rng.normal(size=300))), 0, 1e-38, 3e38, 448, -464, 465])
    for scale in (np.float32(1), np.float32(2.0**-90), np.float32(37.123), np.float32(2.0**120)):
        carried = carry(x, FORMATS[name], scale, saturate=saturate)
        got = call("carried", x.astype(float).tolist(), name, float(scale), saturate)
        for part in ("scaled", "stored", "back"):
            assert np.array_equal(numbers(got[part]), getattr(carried, part), equal_nan=True), (part, scale)
        assert got["counts"] == carried.counts
        assert got["inv"] == carried.inv_scale
        assert numbers([got["db"]])[0] == pytest.approx(carried.db, abs=1e-9, nan_ok=True)
        assert got["text"] == sentence(carried, saturate=saturate)


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_the_page_draws_the_curve_of_python(call, name, tensor):
    widget = ScaleExplorer(tensor=tensor, format=name)
    got = call("curve", widget.tensors[tensor], name, True)
    assert [k for k, _ in got] == list(widget.curve)
    assert [db for _, db in got] == pytest.approx(list(widget.curve.values()), abs=1e-9)


def test_numbers_have_the_digits_of_python(call):
    rng = np.random.default_rng(3)
    given = [
        *np.exp(15 * rng.normal(size=500)).tolist(),
        *(2.0**k for k in range(-40, 40)),
        448.0,
        0.0,
        999950.0,
        0.00099999,
    ]
    for x in given:
        assert call("number", x) == number_in_short(x), x


def test_a_reader_goes_from_rule_to_rule(show):
    page = show(ScaleExplorer())
    assert text(page) == ScaleExplorer().sentence
    press(page, "power of two below")
    assert text(page) == ScaleExplorer(rule="power_of_two").sentence
    press(page, "Larger margin")
    press(page, "Larger margin")
    assert text(page) == ScaleExplorer(rule="power_of_two", margin=2).sentence
    assert page.locator("[role=status]").inner_text() == text(page)
    press(page, "by hand")  # goes on from there
    assert text(page) == ScaleExplorer(rule="power_of_two", margin=2).sentence
    press(page, "Scale times 2")
    assert text(page) == ScaleExplorer(rule="power_of_two", margin=1).sentence
    press(page, "scale 1")
    assert text(page) == ScaleExplorer(rule="hand").sentence
    page.get_by_label("Values").select_option("gradients")
    press(page, "E5M2")
    assert text(page) == ScaleExplorer(tensor="gradients", format="float8_e5m2", rule="hand").sentence
    page.get_by_label("Other formats").select_option("float8_e4m3fnuz")
    assert text(page).startswith("E4M3FNUZ, scale 1:")


def test_by_hand_begins_at_the_power_of_two_below(show):
    page = show(ScaleExplorer())
    press(page, "by hand")
    power = math.floor(math.log2(ScaleExplorer().scale))
    assert text(page) == ScaleExplorer(rule="hand", log2_scale=power).sentence
    press(page, "max / amax")
    press(page, "Scale divided by 2")
    assert text(page) == ScaleExplorer(rule="hand", log2_scale=power).sentence


def test_keys_and_the_slider_move_the_scale_by_powers_of_two(show):
    page = show(ScaleExplorer(tensor="activations"))
    exact = float(ScaleExplorer(tensor="activations").scale)
    slider(page).focus()
    page.keyboard.press("ArrowRight")
    up = math.floor(math.log2(exact)) + 1
    assert text(page) == ScaleExplorer(tensor="activations", rule="hand", log2_scale=up).sentence
    page.keyboard.press("PageDown")
    assert text(page) == ScaleExplorer(tensor="activations", rule="hand", log2_scale=up - 4).sentence
    page.keyboard.press("End")
    most = max(ScaleExplorer(tensor="activations").curve)
    assert text(page) == ScaleExplorer(tensor="activations", rule="hand", log2_scale=most).sentence
    page.keyboard.press("ArrowRight")
    assert text(page) == ScaleExplorer(tensor="activations", rule="hand", log2_scale=most).sentence
    assert slider(page).get_attribute("aria-valuetext").startswith("scale ")


def test_the_values_are_dragged_in_whole_binades(show):
    page = show(ScaleExplorer(rule="hand", log2_scale=2))
    box = page.locator(".mp-se-stage").bounding_box()
    fmt = FORMATS["float8_e4m3fn"]
    binade = box["width"] / (fmt.emax + 9 - (fmt.emin - fmt.mantissa_bits - 12))
    x, y = box["x"] + 200, box["y"] + 80
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 3.3 * binade, y, steps=4)
    assert text(page) == ScaleExplorer(rule="hand", log2_scale=5).sentence
    assert page.locator("[role=status]").inner_text() == ""  # while it moves
    page.mouse.up()
    assert page.locator("[role=status]").inner_text() == text(page)
    page.mouse.move(x, y)
    assert text(page) == ScaleExplorer(rule="hand", log2_scale=5).sentence


def test_pressing_on_the_curve_takes_that_scale(show):
    page = show(ScaleExplorer())
    box = page.locator(".mp-se-curve").bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + 20)
    assert text(page) == ScaleExplorer(rule="hand", log2_scale=min(ScaleExplorer().curve)).sentence


def test_a_drag_on_the_curve_sends_one_state_at_its_end(hosted):
    widget = ScaleExplorer()
    page = hosted(widget)
    page.add_style_tag(content=ScaleExplorer.css_source())
    page.locator(".mp-se-curve").scroll_into_view_if_needed()
    box = page.locator(".mp-se-curve").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 2, box["y"] + 20, steps=9)
    assert text(page) == ScaleExplorer(rule="hand", log2_scale=min(widget.curve)).sentence
    assert page.evaluate("() => model.sent") == []
    assert page.locator("[role=status]").inner_text() == ""
    page.mouse.up()
    sent = page.evaluate("() => model.sent")
    assert [(state["rule"], state["log2_scale"]) for state in sent] == [("hand", min(widget.curve))]
    assert page.locator("[role=status]").inner_text() == text(page)


def test_without_saturation_the_ratio_ends(show):
    page = show(ScaleExplorer(tensor="activations", rule="hand", log2_scale=9))
    page.get_by_label("Saturate").uncheck()
    assert "become NaN. SQNR: none, " in text(page)
    assert page.locator(".mp-se-dot").count() == 0
    assert "become NaN" in page.locator(".mp-bw-shares").inner_text()
    press(page, "E2M1")
    assert page.get_by_label("Saturate").is_disabled()
    assert page.get_by_label("Saturate").is_checked()
    assert "saturate" in text(page)


def test_the_table_goes_in_by_the_scale_and_out_by_its_inverse(show):
    page = show(ScaleExplorer({"x": [3, 0.5, -448, 0]}, rule="hand", log2_scale=-1))
    rows = [row.split("\t") for row in page.locator(".mp-se-ways tbody").inner_text().split("\n")]
    assert rows == [
        ["largest", "−448", "−224", "−224", "−448", "0\u00a0%"],
        ["middle", "3", "1.5", "1.5", "3", "0\u00a0%"],
        ["smallest", "0.5", "0.25", "0.25", "0.5", "0\u00a0%"],
    ]


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_above_the_table_moves_with_the_scale(show, viewport):
    page = show(ScaleExplorer(tensor="gradients", format="float8_e5m2", saturate=False), viewport=viewport)
    place = "() => document.querySelector('.mp-se-ways').offsetTop"
    before = page.evaluate(place)
    slider(page).focus()
    for key in ["Home"] + ["ArrowRight"] * 45:
        page.keyboard.press(key)
        assert page.evaluate(place) == before, text(page)


@pytest.mark.parametrize("tensor", TENSORS)
def test_on_a_phone_targets_are_large_enough_and_nothing_overflows(show, tensor):
    page = show(ScaleExplorer(tensor=tensor), viewport=PHONE)
    assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    assert small_targets(page) == []
    assert cut_off(page, ".mp-button, .mp-se-numbers dd") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(ScaleExplorer(), theme=theme, color_scheme=theme, viewport=viewport)
    assert barriers(page) == []


def test_two_widgets_on_one_page_are_independent(show):
    page = show(ScaleExplorer(), ScaleExplorer(rule="hand"))
    page.get_by_role("button", name="E5M2").first.click()
    starts = [said.split(",")[0] for said in page.locator(".mp-se-sentence").all_inner_texts()]
    assert starts == ["E5M2", "E4M3"]


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    widget = ScaleExplorer()
    page = hosted(widget)
    slider(page).focus()
    page.keyboard.press("ArrowLeft")
    press(page, "E5M2")
    sent = page.evaluate("() => model.sent.at(-1)")
    keys = ("tensors", "tensor", "format", "rule", "log2_scale", "margin", "saturate")
    widget.set_state({key: sent[key] for key in keys})
    assert widget.sentence == text(page)
    page.evaluate("() => { model.state.log2_scale = -3; model.fire('change:log2_scale'); }")
    assert text(page).startswith("E5M2, scale 0.125: ")
    page.evaluate("() => { Object.assign(model.state, { tensors: { own: [1, 2] }, tensor: 'own' }); }")
    page.evaluate("() => { model.fire('change:tensors'); model.fire('change:tensor'); }")
    assert "Of 2 values" in text(page)


def test_the_module_stands_alone():
    source = ScaleExplorer.esm_source()
    pattern = r"^\s*import\b|\bimport\(|https?://(?!www\.w3\.org/2000/svg)|fetch\("
    assert not re.search(pattern, source, flags=re.MULTILINE)
