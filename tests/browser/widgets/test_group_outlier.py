"""GroupOutlier in a browser: its codes against `utils.quantization.integers` bit for bit, words, what a reader does."""

import json

import numpy as np
import pytest
import torch

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
from utils.quantization.integers import quantize
from utils.widgets.group_outlier import GroupOutlier
from utils.widgets.group_outlier.facts import BITS, COUNT, GROUPS, LARGEST, MOST, generated, loss, quantized, row

CASES = [(bits, symmetric) for bits in BITS for symmetric in (True, False)]
OUTLIERS = (0.0, 0.08, -0.5, 2.0, -10.0)

HARNESS = """
const weights = words.groupWeights();
const height = words.heightOf(weights);
window.calls = {
  weights: () => Array.from(weights),
  groups: () => [words.GROUPS, words.GROUP_BITS],
  view: (state) => {
    const view = words.groupedRow(words.rowWith(weights, state.outlier, state.place), state);
    return { ...view, stored: Array.from(view.stored) };
  },
  scale: (values, state) => {
    const scale = words.groupScale(values.map(Math.fround), 0, values.length, state);
    return { ...scale, codes: values.map((x) => words.goCode(Math.fround(x), scale)) };
  },
  said: (state) => {
    const row = words.rowWith(weights, state.outlier, state.place);
    return words.groupVerdict(state, words.groupedRow(row, state), row, words.groupedRow(weights, { ...state, outlier: 0 }));
  },
  height: (values) => words.heightOf(values),
  sizes: () => words.outlierSizes(height),
  there: (x) => words.goHeight(x, height),
  back: (share) => words.goValueAt(share, height),
  nearest: (share) => words.nearestSize(share, height, words.outlierSizes(height)),
};
"""  # noqa: E501

call = calls_of("group_outlier/widget", HARNESS)


# Twins: the page's arithmetic against Python's


def test_the_page_has_the_weights_and_the_groups_of_python(call):
    np.testing.assert_array_equal(np.array(call("weights"), np.float32), generated())
    assert call("groups") == [list(GROUPS), list(BITS)]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("outlier", OUTLIERS)
def test_what_is_stored_is_what_python_stores(call, case, outlier):
    bits, symmetric = case
    for group in GROUPS:
        theirs = quantized((), outlier, 84, bits, group, symmetric)
        state = {"outlier": outlier, "place": 84, "bits": bits, "symmetric": symmetric, "group": group}
        ours = call("view", state)
        np.testing.assert_array_equal(np.array(ours["stored"], np.float32), theirs.dequantize()[0].numpy())
        assert [one["inverse"] for one in ours["scales"]] == theirs.inv_scale[0].float().tolist()
        assert [one["scale"] for one in ours["scales"]] == theirs.scale[0].tolist()
        zeros = [0] * (COUNT // group) if symmetric else theirs.zero_point[0].tolist()
        assert [one["zero"] for one in ours["scales"]] == zeros
        lost = loss((), outlier, 84, bits, group, symmetric)
        assert ours["bits"] == lost.bits
        assert ours["zeros"] / ours["count"] == lost.zeros
        assert ours["error"] == pytest.approx(lost.error, rel=1e-9)  # sums in another order


@pytest.mark.parametrize("case", CASES, ids=str)
def test_any_group_gets_the_codes_of_python(call, case):
    bits, symmetric = case
    rng = np.random.default_rng(seed=3)
    groups = [rng.normal(size=8) * 2.0 ** rng.integers(-40, 40) for _ in range(60)]
    ties = [-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]
    groups += [np.array([*ties, *ends]) for ends in ([7], [-7, 8], [127], [-100, 155])]  # where the scale is 1
    groups += [np.arange(-7, 8) / 2, np.full(4, 0.1), np.full(4, -0.1), np.zeros(4), np.array([1e-45, 0, 0, -1e-45])]
    groups += [np.array([3e38, -3e38, 1.0]) / (1 if symmetric else 2), np.array([0.0, 1e-39, 2e-39]), rng.random(8) + 1]
    for values in groups:
        matrix = torch.tensor(values, dtype=torch.float32)[None]
        theirs = quantize(matrix, bits, None, symmetric=symmetric)
        ours = call("scale", matrix[0].tolist(), {"bits": bits, "symmetric": symmetric})
        assert ours["inverse"] == float(theirs.inv_scale[0, 0]), values
        assert ours["scale"] == float(theirs.scale[0, 0]), values
        assert ours["codes"] == theirs.integers()[0].tolist(), values


def test_the_outliers_reach_from_the_height_of_the_rest_on(call):
    sizes = call("sizes")
    assert sizes == sorted(sizes)
    assert sizes == [-size or 0 for size in reversed(sizes)]
    assert [size for size in sizes if size >= 0][:4] == [0, 0.08, 0.1, 0.125]
    assert sizes[-1] == 10
    for values, height in [([0.01, -0.031], 0.04), ([0.9], 1), ([1.0], 1.25), ([-9.0], 10), ([0.0], 1.25)]:
        assert call("height", values) == height
    assert 125 * call("height", [LARGEST]) <= MOST  # what can be slid is what Python takes


def test_a_place_in_the_picture_means_its_value(call):
    for x in (-10, -0.3, -0.08, -0.01, 0, 0.05, 0.08, 1, 10):
        assert call("back", call("there", x)) == pytest.approx(x, rel=1e-12, abs=1e-15)
    assert [call("nearest", call("there", x)) for x in (0.02, -0.06, 0.07, 0.08, -0.52, 8.8, 100)] == [
        0,
        0,
        0.08,
        0.08,
        -0.5,
        8,
        10,
    ]


# What a reader sees and does

CALM = {"viewport": DESK}


def verdict(page):
    return page.locator(".mp-go-verdict").inner_text()


def cell_name(group, kind):
    return f"{'the row' if group == COUNT else f'groups of {group}'}, {kind}: error"


def cell(page, group, kind):
    return page.get_by_role("button", name=cell_name(group, kind))


def slider(page, name):
    return page.get_by_role("slider", name=name)


def test_the_table_has_every_group_as_python_has_it(show):
    page = show(GroupOutlier(outlier=0.5, bits=8), **CALM)
    for group in GROUPS:
        for symmetric, kind in ((True, "symmetric"), (False, "asymmetric")):
            theirs = loss((), 0.5, 84, 8, group, symmetric)
            error, more = cell(page, group, kind).inner_text().split("\n")
            price, zeros = more.removesuffix("\u00a0%").split(" bits, ")
            assert float(error.removesuffix("\u00a0%")) == pytest.approx(100 * theirs.error, rel=6e-3)
            assert float(price) == pytest.approx(theirs.bits, rel=6e-3)
            assert float(zeros) == pytest.approx(100 * theirs.zeros, rel=6e-2)


def test_a_case_is_chosen_in_the_table_and_told(show):
    page = show(GroupOutlier(), **CALM)
    assert cell(page, 64, "symmetric").get_attribute("aria-pressed") == "true"
    cell(page, 32, "asymmetric").click()
    assert cell(page, 64, "symmetric").get_attribute("aria-pressed") == "false"
    assert page.get_by_role("button", name="asymmetric", exact=True).get_attribute("aria-pressed") == "true"
    assert verdict(page) == page.locator("[role=status]").inner_text()
    assert verdict(page).startswith(
        "int4, asymmetric, a scale for every 32 weights: 4.75 bits per weight (4 of the code"
    )
    page.get_by_role("button", name="int8").click()
    assert verdict(page).startswith("int8, asymmetric, a scale for every 32 weights: 8.75 bits per weight")


def test_what_the_scale_does_is_told(call):
    state = {"outlier": 0.5, "place": 84, "bits": 4, "symmetric": True, "group": 64}
    said, lost = call("said", state), loss((), 0.5, 84, 4, 64, True)
    assert "4.25 bits per weight (4 of the code + 16 / 64 of the scale)" in said
    step = float(quantized((), 0.5, 84, 4, 64, True).inv_scale[0, 1])
    assert "The largest magnitude of the outlier’s group is 0.5. That becomes code 7, so one step here" in said
    assert f"is {step:.3g} in bfloat16: what lies within half a step of 0 becomes 0." in said
    assert f"Of the other weights, {100 * lost.zeros:.3g}\u00a0% become 0." in said
    assert f"The error of all the others is {100 * lost.error:.3g}" in said
    assert said.endswith(f"without the outlier it would be {100 * loss((), 0, 84, 4, 64, True).error:.3g}\u00a0%.")
    said = call("said", state | {"symmetric": False, "outlier": -2})
    high, code = float(row((), 0, 84)[64:128].max()), int(quantized((), -2, 84, 4, 64, False).zero_point[0, 1])
    assert f"reaches from −2 to {high:.3g}. That is cut into 15 steps, 0 is code {code};" in said
    said = call("said", state | {"outlier": 0})
    assert "The largest magnitude of the group of weight 84 is" in said
    assert "Of all weights" in said
    assert said.endswith("%.")
    assert "without the outlier" not in said


def test_group_size_outlier_and_place_are_slid_with_the_keyboard(show):
    page = show(GroupOutlier(), **CALM)
    group = slider(page, "One scale for")
    group.press("ArrowLeft")
    assert group.get_attribute("aria-valuetext") == "32 weights"
    group.press("End")
    assert group.get_attribute("aria-valuetext") == "all 256 weights"
    assert "one scale for all 256 weights" in verdict(page)
    outlier = slider(page, "Outlier")
    outlier.press("ArrowRight")
    assert outlier.get_attribute("aria-valuetext") == "0.6"
    outlier.press("Home")
    assert outlier.get_attribute("aria-valuetext") == "−10"
    place = slider(page, "at weight")
    place.press("Home")
    assert page.locator(".mp-go-name").inner_text() == "−10"
    assert place.get_attribute("aria-valuetext") == "1"


def test_the_outlier_is_dragged_up_down_and_along_the_row(show):
    page = show(GroupOutlier(), **CALM)
    box = page.locator(".mp-go-row").bounding_box()
    handle = page.locator(".mp-handle").bounding_box()
    page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 200.5 / 256, box["y"] + 1)
    status = page.locator("[role=status]")
    assert status.inner_text() == ""  # while it moves
    page.mouse.up()
    assert status.inner_text() == verdict(page)
    assert slider(page, "Outlier").get_attribute("aria-valuetext") == "10"
    assert slider(page, "at weight").get_attribute("aria-valuetext") == "201"
    page.locator(".mp-go-row").click(position={"x": box["width"] / 4, "y": box["height"] / 2})
    assert page.locator(".mp-go-name").inner_text() == "drag an outlier out"
    assert "without the outlier" not in verdict(page)


def test_a_point_of_the_second_picture_is_chosen_by_a_press_near_it(show):
    page = show(GroupOutlier(), **CALM)
    spots = page.locator(".mp-go-prices .mp-go-spot")
    assert spots.count() == 2 * 2 * len(GROUPS)
    picture = page.locator(".mp-go-prices")
    picture.scroll_into_view_if_needed()
    box, spot = picture.bounding_box(), spots.last
    assert "mp-go-chosen" in spot.get_attribute("class")
    far = page.locator(".mp-go-int8.mp-go-asymmetric.mp-go-spot").last.bounding_box()
    picture.click(position={"x": far["x"] + 8 - box["x"], "y": far["y"] + 2 - box["y"]})
    assert verdict(page).startswith("int8, asymmetric, a scale for every 8 weights: 11 bits per weight")


def test_the_levels_are_drawn_where_they_can_be_told_apart(show):
    page = show(GroupOutlier(outlier=0, group=64), **CALM)
    lines = "(kind) => (document.querySelector(`.mp-go-row path.${kind}`).getAttribute('d').match(/M/g) ?? []).length"
    assert page.evaluate(lines, "mp-go-rungs") == 4 * 15  # int4: -7 ... 7 in each group
    assert page.evaluate(lines, "mp-go-covered") == 0
    page.get_by_role("button", name="int8").click()
    assert page.evaluate(lines, "mp-go-rungs") == 0
    assert page.evaluate(lines, "mp-go-covered") == 4
    bars = sum(page.evaluate(lines, f"mp-go-{kind}") for kind in ("weights", "lost", "outlier"))
    assert bars == page.evaluate(lines, "mp-go-stored") == COUNT


OWN = [round(float(x), 6) for x in np.random.default_rng(1).normal(0, 0.3, COUNT)]
CASES_TO_LOOK_AT = {
    "start": lambda: GroupOutlier(),
    "far": lambda: GroupOutlier(outlier=-10.0, place=256, bits=8, group=8, symmetric=False),
    "own": lambda: GroupOutlier(OWN, outlier=0, place=1),
}


@pytest.mark.parametrize("case", CASES_TO_LOOK_AT)
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_overflows_is_too_small_or_moves(show, viewport, case):
    page = show(CASES_TO_LOOK_AT[case](), viewport=viewport)
    calm = [page.evaluate(HEIGHT), viewport["width"], []]
    most, actions = int(slider(page, "Outlier").get_attribute("max")), []
    for bits in ("int4", "int8"):
        actions += [(".mp-go-buttons button", bits)]
        for value in (0, most // 2, 3 * most // 4):
            actions += [("[type=range]", "Outlier", value)]
            actions += [(".mp-go-table button", cell_name(group, "asymmetric")) for group in (COUNT, 8)]
    whole = cut_off_of(".mp-go-table :is(th, td, button), .mp-go-verdict, .mp-go-buttons button")
    for action, seen in after_each(page, actions, HEIGHT, WIDTH, whole):
        assert seen == calm, action
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(GroupOutlier(), theme=theme, color_scheme=theme, **CALM)
    assert barriers(page) == []
    cell(page, COUNT, "asymmetric").click()
    assert barriers(page) == []


def test_the_formats_can_be_told_apart_in_forced_colors(show):
    page = show(GroupOutlier(), forced_colors="active", **CALM)
    color = "(nodes) => [...new Set(nodes.map((node) => getComputedStyle(node).borderTopColor))].length"
    assert page.locator(".mp-go-spot").evaluate_all(color) == 2
    assert page.locator(".mp-plot-key").first.locator(".mp-go-sample").evaluate_all(color) == 4


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(GroupOutlier())
    cell(page, 16, "asymmetric").click()
    sent = json.loads(page.evaluate("() => JSON.stringify(model.sent.at(-1))"))
    fresh = GroupOutlier()
    fresh.set_state({name: sent[name] for name in fresh.book_state()})
    assert (fresh.group, fresh.symmetric) == (16, False)
    page.evaluate("(own) => void Object.assign(model.state, { weights: own, outlier: 1234.5, symmetric: true })", OWN)
    page.evaluate("() => model.fire('change:weights')")
    lost = loss(tuple(OWN), 1234.5, 84, 4, 16, True)
    assert "The largest magnitude of the outlier’s group is 1230." in verdict(page)
    assert f"The error of all the others is {100 * lost.error:.3g}\u00a0%" in verdict(page)
