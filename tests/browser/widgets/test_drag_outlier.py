"""DragOutlier in a real browser: its losses against Python's, bit for bit, its words, and what a reader does."""

import json

import numpy as np
import pytest

from tests.browser.widget_page import (
    DESK,
    HEIGHT,
    PHONE,
    WIDTH,
    after_each,
    barriers,
    calls_of,
    cut_off_of,
    small_targets,
    smallest_text,
)
from utils.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2
from utils.quantization.outliers import with_outlier
from utils.scaling import INT8, SCALINGS, quantize_tiles
from utils.widgets.drag_outlier import LABELS, DragOutlier
from utils.widgets.drag_outlier.facts import CASES, INDEX, OUTLIER_FORMATS, loss, tensor

PAIRS = [(format, scaling) for format, scalings in CASES.items() for scaling in scalings]
SOME = (0, 5, 30, 1250, 3e4, 1e6)

HARNESS = """
const x = words.outlierTensor();
const lossOf = words.outlierLosses(x);
window.calls = {
  tensor: () => Array.from(x),
  cases: () => words.OUTLIER_CASES,
  scalings: () => words.SCALINGS,
  outliers: () => words.OUTLIERS,
  loss: (format, scaling, outlier) => lossOf(format, scaling, outlier),
  round: (name, values) => values.map(words.narrowFormat(name).near),
  tile: (format, scaling, amax, whole) => words.tileScale(amax, whole, words.SCALINGS[scaling], words.narrowFormat(format), words.narrowFormat("float8_e4m3fn")),
  nearest: (size) => words.nearestOutlier(size),
  text: (size) => words.outlierText(size),
  said: (state) => words.caseText(state, lossOf(state.format, state.scaling, state.outlier), lossOf(state.format, state.scaling, 0)),
};
"""  # noqa: E501


call = calls_of("drag_outlier/widget", HARNESS)


# Twins: the page's arithmetic against Python's


def test_the_page_has_the_tensor_and_the_cases_of_python(call):
    np.testing.assert_array_equal(np.array(call("tensor"), np.float32), tensor().ravel())
    assert call("cases") == {format: list(scalings) for format, scalings in CASES.items()}
    for name, row in call("scalings").items():
        ours = SCALINGS[name]
        fields = {"scale_format": ours.scale_format.name, "rule": ours.rule, "tensor_scale": ours.tensor_scale}
        assert row == fields | {"tile": list(ours.tile)}
    assert set(call("scalings")) == {scaling for _, scaling in PAIRS}


@pytest.mark.parametrize("fmt", [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN, INT8], ids=str)
def test_values_round_and_saturate_as_in_python(call, fmt):
    from utils.rounding import quantize

    rng = np.random.default_rng(seed=1)
    values = np.concatenate(
        [
            rng.normal(size=600) * np.exp2(rng.integers(-24, 20, 600)),
            np.arange(-260, 260) / 2,
            [448, 464, 465, 480, 1e30, 57344, 61439, 61440, 0.0, -0.0, 2.0**-10, 2.0**-17, 6, 7],
        ]
    )
    ours, theirs = np.array(call("round", fmt.name, values.tolist())), quantize(values, fmt, saturate=True)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("case", PAIRS, ids=" ".join)
def test_the_scale_of_a_tile_is_that_of_python(call, case):
    format, scaling = case
    fmt = OUTLIER_FORMATS[format]
    rng = np.random.default_rng(seed=2)
    for amax in [*(np.exp2(rng.uniform(-30, 20, 40))), 448.0, 6.0, 8.0, 1e-45, 0.0, 1e38]:
        block = np.zeros((1, 32), np.float32)
        block[0, 0], block[0, 20] = amax, 2 * amax if scaling == "nvfp4" else 0
        theirs = quantize_tiles(block, fmt, SCALINGS[scaling])
        ours = call("tile", format, scaling, float(block[0, 0]), float(np.abs(block).max()))
        assert (ours["scale"], ours["inverse"]) == (theirs.scale[0, 0], theirs.inv_scale[0, 0]), amax


@pytest.mark.parametrize("case", PAIRS, ids=" ".join)
def test_the_rest_loses_what_it_loses_in_python(call, case):
    for outlier in SOME:
        ours, theirs = call("loss", *case, outlier), loss(*case, outlier)
        assert ours["zeros"] == theirs.zeros, outlier  # counts: not one value is rounded otherwise
        assert ours["error"] == pytest.approx(theirs.error, rel=1e-9), outlier  # sums in another order
        scaled = quantize_tiles(
            with_outlier(tensor(), outlier or None, index=INDEX), OUTLIER_FORMATS[case[0]], SCALINGS[case[1]]
        )
        column = INDEX // (SCALINGS[case[1]].tile[1] or 1024)
        assert (ours["scale"], ours["inverse"]) == (scaled.scale[0, column], scaled.inv_scale[0, column])


def test_a_loss_does_not_depend_on_what_was_asked_before(call):
    first = call("loss", "float4_e2m1fn", "nvfp4", 3e5)
    call("loss", "float4_e2m1fn", "nvfp4", 5)
    assert call("loss", "float4_e2m1fn", "nvfp4", 3e5) == first
    assert first["error"] == pytest.approx(loss("float4_e2m1fn", "nvfp4", 3e5).error, rel=1e-9)


def test_the_outliers_are_none_and_ten_of_each_power_of_ten(call):
    outliers = call("outliers")
    assert outliers[:4] == [0, 5, 6, 8]
    assert outliers[-2:] == [800_000, 1_000_000]
    assert outliers == sorted(outliers)
    assert {30, 300, 3e3, 3e4, 3e5} <= set(outliers)
    for size, nearest in [(0, 0), (2, 0), (2.3, 5), (29, 30), (1e9, 1e6), (10.9, 10)]:
        assert call("nearest", size) == nearest


# What a reader sees and does

CALM = {"viewport": DESK}


def curves_of(page):
    """Wait until all curves are drawn, and give {class: the number of their points}."""
    page.wait_for_selector("[data-mp-curves=drawn]")
    paths = page.locator(".mp-do-curves path").evaluate_all(
        "(paths) => paths.map((path) => [path.getAttribute('class'), path.getAttribute('d').split(/[ML]/).length - 1])"
    )
    return dict(paths)


def cell_name(format, scaling):
    return f"{LABELS[format]}, {SCALINGS[scaling].label}:"


def cell(page, format, scaling):
    return page.get_by_role("button", name=cell_name(format, scaling))


def verdict(page):
    return page.locator(".mp-do-verdict").inner_text()


def test_the_table_has_every_case_as_python_has_it(show):
    page = show(DragOutlier(3e4), **CALM)
    for format, scaling in PAIRS:
        theirs = loss(format, scaling, 3e4)
        error, zeros = cell(page, format, scaling).inner_text().split("\n")
        assert float(error.removesuffix("\u00a0%")) == pytest.approx(100 * theirs.error, rel=6e-3)
        assert float(zeros.removesuffix("\u00a0% zero")) == pytest.approx(100 * theirs.zeros, rel=6e-2)


def test_a_case_is_chosen_in_the_table_and_told(show):
    page = show(DragOutlier(), **CALM)
    assert cell(page, "int8", "tensor").get_attribute("aria-pressed") == "true"
    assert verdict(page).startswith(
        "INT8, one scale per tensor. The outlier of 30 sets the scale of all values: 4.23. "
    )
    cell(page, "float8_e4m3fn", "1x128").click()
    assert cell(page, "int8", "tensor").get_attribute("aria-pressed") == "false"
    assert verdict(page) == page.locator("[role=status]").inner_text()
    assert "the 128 values of its block" in verdict(page)
    assert "The error of the rest is 2.58\u00a0%; without the outlier it would be 2.58\u00a0%." in verdict(page)


def test_what_the_scale_does_is_told(call):
    said = call("said", {"format": "int8", "scaling": "tensor", "outlier": 30})
    step = 30 / 127
    assert (
        f"INT8’s steps are then {step:.3g} wide: what is below {step / 2:.3g} becomes 0. 9.2\u00a0% of the rest" in said
    )
    said = call("said", {"format": "float8_e4m3fn", "scaling": "tensor", "outlier": 30_000})
    full, least = 2.0**-6 * 30_000 / 448, 2.0**-10 * 30_000 / 448
    assert f"From {full:.3g} on values keep all 4 bits; below {least:.3g} they become 0." in said
    assert call("said", {"format": "float4_e2m1fn", "scaling": "mx", "outlier": 0}).startswith(
        "E2M1, MX, exponent down. The largest value sets the scale of the 32 values of its block: 2¹. From 0.5 on"
    )


def test_the_slider_moves_the_outlier_with_the_keyboard(show):
    page = show(DragOutlier(), **CALM)
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "40"
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == "1,000,000"
    assert "100\u00a0% of the rest become 0" in verdict(page)
    page.keyboard.press("Home")
    assert slider.get_attribute("aria-valuetext") == "none"
    assert verdict(page).startswith("INT8, one scale per tensor. The largest value sets the scale of all values")


def test_the_outlier_is_dragged_in_the_picture_and_in_the_curves(show):
    page = show(DragOutlier(), **CALM)
    box = page.locator(".mp-do-values").bounding_box()
    handle = page.locator(".mp-handle").bounding_box()
    page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (13 + 14) / 35, handle["y"])  # 2**13
    status = page.locator("[role=status]")
    assert status.inner_text() == ""  # while it moves
    page.mouse.up()
    assert status.inner_text() == verdict(page)
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "8,000"
    assert page.locator(".mp-do-name").inner_text() == "8,000"
    page.mouse.move(box["x"] + 5, box["y"] + 40)  # without a button nothing moves
    assert page.locator(".mp-do-name").inner_text() == "8,000"
    curves = page.locator(".mp-do-curves")
    curves.scroll_into_view_if_needed()
    size = curves.bounding_box()
    curves.click(position={"x": size["width"] / 2, "y": 20})
    assert page.locator(".mp-do-name").inner_text() == "1,000"


def test_every_curve_is_drawn_and_the_chosen_one_is_marked(show):
    page = show(DragOutlier(), **CALM)
    points = curves_of(page)
    assert len(points) == len(PAIRS)
    assert set(points.values()) == {55}
    assert [name for name in points if "chosen" in name] == ["mp-do-int8 mp-do-tensor mp-do-chosen"]
    assert page.locator(".mp-do-spot").count() == len(PAIRS)
    assert page.locator(".mp-do-spot.mp-do-chosen").count() == 1


def test_the_point_of_a_case_stands_on_its_curve(show):
    page = show(DragOutlier(300.0, "int8", "row"), **CALM)
    curves_of(page)
    plot, spot = (page.locator(name).bounding_box() for name in (".mp-do-curves", ".mp-do-spot.mp-do-chosen"))
    d = page.locator(".mp-do-curves path.mp-do-chosen").get_attribute("d")
    points = np.array([list(map(float, point.split())) for point in d[1:].split("L")]) / 1000
    at = np.array(
        [
            (spot["x"] + spot["width"] / 2 - plot["x"]) / plot["width"],
            (spot["y"] + spot["height"] / 2 - plot["y"]) / plot["height"],
        ]
    )
    assert np.abs(points - at).sum(axis=1).min() < 0.012


CASES_TO_LOOK_AT = {
    "start": lambda: DragOutlier(),
    "far": lambda: DragOutlier(1e6, "float8_e4m3fn", "1x128"),
    "none": lambda: DragOutlier(0, "float4_e2m1fn", "nvfp4"),
}


@pytest.mark.parametrize("case", CASES_TO_LOOK_AT)
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_overflows_is_too_small_or_moves(show, viewport, case):
    page = show(CASES_TO_LOOK_AT[case](), viewport=viewport)
    calm = [page.evaluate(HEIGHT), viewport["width"], []]
    actions = [("[type=range]", "", value) for value in (0, 1, 9, 20, 33, 54)]
    actions += [("button", cell_name(*pair)) for pair in PAIRS]
    whole = cut_off_of(".mp-do-table :is(th, td, button), .mp-do-verdict, .mp-do-what")
    for action, seen in after_each(page, actions, HEIGHT, WIDTH, whole):
        assert seen == calm, action
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(DragOutlier(), theme=theme, color_scheme=theme, **CALM)
    curves_of(page)
    assert barriers(page) == []
    cell(page, "float4_e2m1fn", "nvfp4").click()
    assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(DragOutlier())
    cell(page, "float8_e4m3fn", "mx").click()
    sent = json.loads(page.evaluate("() => JSON.stringify(model.sent.at(-1))"))
    fresh = DragOutlier()
    fresh.set_state({name: sent[name] for name in fresh.book_state()})
    assert (fresh.format, fresh.scaling) == ("float8_e4m3fn", "mx")
    page.evaluate("() => void Object.assign(model.state, { outlier: 1234.5, format: 'int8', scaling: 'row' })")
    page.evaluate("() => model.fire('change:outlier')")
    assert verdict(page).startswith("INT8, one scale per row. The outlier of 1,234.5 sets the scale")
    error = 100 * loss("int8", "row", 1234.5).error
    assert f"The error of the rest is {error:.3g}\u00a0%" in verdict(page)
