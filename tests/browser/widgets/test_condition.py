"""Condition in a browser: its solutions against `utils.emulation.refinement` bit for bit, words, what a reader does."""

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
from utils.emulation.narrow_lu import factorize
from utils.widgets.condition import Condition, end_text
from utils.widgets.condition.facts import CONDITIONS, FACTORS, SIZE, make_facts, refined, system

WAYS = [("float64", "factors"), ("float32", "factors"), ("factors", "factors"), ("float64", "gmres")]

HARNESS = f"""
const facts = {json.dumps(make_facts())};
const found = (state) => words.conditionRefined(...words.conditionSystem(facts, state.condition), state);
const shown = (x) => JSON.stringify(x, (_, value) => (typeof value === "number" ? value.toExponential() : value));
window.calls = {{
  conditions: () => words.CONDITIONS,
  system: (condition) => shown(words.conditionSystem(facts, condition).map((one) => [...one].map((row) => (row.length ? [...row] : row)))),
  found: (state) => shown(found(state)),
  factors: (rows, name) => words.conditionFactors(rows, name),
  said: (state) => words.conditionVerdict(state, found(state), found({{ ...state, factors: "float64" }})),
  size: (x, digits) => words.cnSize(x, digits),
  text: (one) => words.endText(one),
}};
"""  # noqa: E501

call = calls_of("condition/widget", HARNESS)


# Twins: the page's arithmetic against Python's


def numbers(found):
    """What the page found, with its numbers as floats: whole ones would arrive as int."""
    return json.loads(found, parse_int=float) | {
        name: [float(x) for x in json.loads(found)[name]] for name in ("backward", "forward", "solves")
    }


@pytest.mark.parametrize("condition", CONDITIONS, ids="{:g}".format)
def test_a_system_is_that_of_python(call, condition):
    a, b = system(condition)
    ours = json.loads(call("system", condition))
    np.testing.assert_array_equal(np.array(ours[0], float), a)
    np.testing.assert_array_equal(np.array(ours[1], float), b)


def test_the_page_offers_the_conditions_of_python(call):
    assert call("conditions") == list(CONDITIONS)


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize("factors", FACTORS)
def test_every_error_of_every_step_is_that_of_python(call, factors, way):
    residual, correction = way
    for condition in CONDITIONS[:: 1 if way == WAYS[0] else 3]:
        state = {"condition": condition, "factors": factors, "residual": residual, "correction": correction}
        ours, theirs = numbers(call("found", state)), refined(*state.values())
        assert tuple(ours["backward"]) == theirs.backward_errors, condition
        assert tuple(ours["forward"]) == theirs.forward_errors, condition
        assert tuple(ours["solves"]) == theirs.solves, condition
        assert ours["converged"] == theirs.converged, condition


@pytest.mark.parametrize("factors", FACTORS)
def test_factors_are_those_of_python_or_the_reason_why_there_are_none(call, factors):
    a, _ = system(50.0)
    ours, theirs = call("factors", a.tolist(), factors), factorize(a, FACTORS[factors])
    np.testing.assert_array_equal(np.array(ours["lu"], float), theirs.lu)
    assert ours["order"] == theirs.order.tolist()
    assert call("factors", [[1, 1], [1, 1]], factors) == {"why": "a pivot is 0"}
    assert call("factors", [[0, 0], [0, 1]], factors) == {"why": "a pivot is 0"}
    if factors not in ("float64", "float32"):
        assert call("factors", [[1e39, 0], [0, 1]], factors) == {"why": "overflow"}


# Words


def test_sizes_are_powers_of_ten_far_from_one(call):
    said = [
        call("size", x, digits) for x, digits in [(1e4, 1), (2e-7, 2), (0.046, 2), (9.99e-17, 2), (999.9, 2), (0, 2)]
    ]
    assert said == ["10⁴", "2\u00a0×\u00a010⁻⁷", "0.046", "10⁻¹⁶", "1000", "0"]


def test_an_end_is_said_as_in_python(call):
    for factors in FACTORS:
        for condition in CONDITIONS[::3]:
            state = {"condition": condition, "factors": factors, "residual": "float64", "correction": "factors"}
            assert call("text", numbers(call("found", state))) == end_text(refined(condition, factors))
    assert call("text", {"converged": False, "end": "overflow", "backward": [1]}) == "overflow"


def test_what_became_of_a_system_is_told(call):
    state = {"condition": 1e3, "factors": "float16", "residual": "float64", "correction": "factors", "size": SIZE}
    found = refined(1e3, "float16")
    each = (found.backward_errors[0] / found.backward_errors[-1]) ** (1 / found.steps)
    said = call("said", state)
    assert said.startswith("float16 factors, κ = 10³: κu = 0.49, with u = 2⁻¹¹. The first x is wrong by ")
    assert f"After {found.steps} steps the backward error is " in said
    assert "the goal is 1.3\u00a0×\u00a010⁻¹⁵." in said
    assert f"Each step divides the backward error by {each:.2g} on average." in said
    assert "float64 factors give " in said
    assert "It is stuck: ten steps do not halve the backward error" in call("said", state | {"condition": 1e6})
    solves = sum(refined(1e6, "float16", "float64", "gmres").solves)
    said = call("said", state | {"condition": 1e6, "correction": "gmres"})
    assert f"of GMRES, {solves} solves with the factors in all, the backward error is " in said
    assert "without any help" not in said
    first = refined(1e6, "float16", "float64", "gmres").forward_errors[0]
    assert first < 1e-3  # after all the solves of its first step: not what one solve with the factors gives
    assert "GMRES' first x is wrong by " in said
    said = call("said", state | {"condition": 1e10, "correction": "gmres"})
    assert max(refined(1e10, "float16", "float64", "gmres").solves) == SIZE + 1
    assert "A step took 33 solves, which is enough without any help from the factors." in said
    assert "spoils" not in said
    said = call("said", state | {"residual": "factors", "correction": "gmres"})
    first, second = refined(1e3, "float16", "factors", "gmres").forward_errors[:2]
    assert first < 1e-6 < 1e-2 < second
    assert f"Each correction of a float16 residual spoils it: the second x is wrong by {second:.2g}." in said
    assert "It overflows after 3 steps: " in call("said", state | {"condition": 1e10, "residual": "factors"})
    assert "There are no factors: a pivot is 0." in call("said", state | {"condition": 1e8, "factors": "float8_e4m3fn"})
    assert "That needs no further step" in call("said", state | {"factors": "float64"})


# What a reader sees and does

CALM = {"viewport": DESK}


def drawn(page):
    page.wait_for_selector("[data-mp-map=drawn]")
    return page


def verdict(page):
    return page.locator(".mp-cn-verdict").inner_text()


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def test_the_table_says_what_python_says(show):
    page = show(Condition(condition=2e3), **CALM)
    ends = page.locator(".mp-cn-table tbody td:nth-child(4)").all_inner_texts()
    assert ends == [end_text(refined(2e3, name)) for name in FACTORS]


def test_a_format_is_chosen_and_told(show):
    page = show(Condition(), **CALM)
    assert button(page, "float16").get_attribute("aria-pressed") == "true"
    button(page, "bfloat16").click()
    assert button(page, "float16").get_attribute("aria-pressed") == "false"
    assert verdict(page).startswith("bfloat16 factors, κ = 10³: κu = 3.9")
    assert verdict(page) == page.locator("[role=status]").inner_text()


def test_residual_and_correction_are_chosen(show):
    page = show(Condition(condition=1e6), **CALM)
    assert "It is stuck" in verdict(page)
    assert not page.get_by_text("33 solves in a step are enough").is_visible()
    button(page, "GMRES").click()
    assert page.get_by_text("33 solves in a step are enough").is_visible()
    assert "of GMRES" in verdict(page)
    button(page, "the factors").click()
    page.get_by_role("slider").press("Home")
    assert "; the goal is " in verdict(page)
    page.get_by_role("group", name="Residual").get_by_role("button", name="float32").click()
    assert "It is stuck" in verdict(page)


def test_the_condition_is_slid_with_the_keyboard_and_set_in_the_map(show):
    page = drawn(show(Condition(), **CALM))
    slider = page.get_by_role("slider")
    slider.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "2\u00a0×\u00a010³"
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "10¹⁰"
    picture = page.locator(".mp-cn-map")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    picture.click(position={"x": box["width"] * 0.4, "y": box["height"] / 2})
    assert slider.get_attribute("aria-valuetext") == "10⁴"
    assert "κ = 10⁴" in page.locator("[role=status]").inner_text()


def test_the_map_has_a_line_up_to_the_wall_of_each_format(show):
    page = drawn(show(Condition(), **CALM))
    for name in FACTORS:
        path = page.locator(f".mp-cn-map path.mp-cn-needs.mp-cn-{name}").get_attribute("d")
        converged = [refined(condition, name).converged for condition in CONDITIONS]
        assert path.count("M") + path.count("L") == sum(converged), name
        wall = page.locator(f".mp-cn-map path.mp-cn-wall.mp-cn-{name}").get_attribute("d")
        assert bool(wall) == (not all(converged))
        if wall:
            assert float(wall[1:].split()[0]) / 100 == pytest.approx(
                np.log10(CONDITIONS[converged.index(False)]), abs=0.01
            )
    button(page, "GMRES").click()
    drawn(page)
    path = page.locator(".mp-cn-map path.mp-cn-needs.mp-cn-float16").get_attribute("d")
    assert path.count("M") + path.count("L") == len(CONDITIONS)


def test_the_curves_have_a_point_for_each_solve(show):
    page = show(Condition(condition=1e4), **CALM)
    count = len(refined(1e4, "float16").backward_errors)
    for kind in ("backward", "forward"):
        path = page.locator(f".mp-cn-errors path.mp-cn-{kind}").get_attribute("d")
        assert path.count("M") + path.count("L") == count
    assert page.locator(".mp-cn-errors .mp-cn-dot").count() == 2 * count
    assert page.locator(".mp-cn-errors path.mp-cn-other").count() == len(FACTORS) - 1


BEYOND = """() => [...document.querySelectorAll(".mp-cn > *, .mp-cn-table, .mp-cn-table td")].filter((node) =>
  node.getBoundingClientRect().right > document.querySelector(".mp-cn").getBoundingClientRect().right + 0.5)
  .map((node) => node.textContent)"""
CASES_TO_LOOK_AT = {
    "start": lambda: Condition(),
    "far": lambda: Condition(condition=1e10, factors="float8_e4m3fn"),
    "gmres": lambda: Condition(condition=1e6, factors="bfloat16", correction="gmres"),
    "spoilt": lambda: Condition(condition=1e6, factors="bfloat16", residual="factors", correction="gmres"),
}


@pytest.mark.parametrize("case", CASES_TO_LOOK_AT)
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_overflows_is_too_small_or_moves(show, viewport, case):
    page = show(CASES_TO_LOOK_AT[case](), viewport=viewport)
    calm = [page.evaluate(HEIGHT), viewport["width"], [], []]
    actions = []
    for value in (0, 4, 9, 13, 20, 30):
        actions += [("[type=range]", "", value)]
        actions += [(".mp-cn-table button", name) for name in ("float64", "float16", "E4M3")]
    whole = cut_off_of(".mp-cn-table, .mp-cn-table :is(th, td, button), .mp-cn-buttons button")
    for action, seen in after_each(page, actions, HEIGHT, WIDTH, BEYOND, whole):
        assert seen == calm, action
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = drawn(show(Condition(condition=1e4), theme=theme, color_scheme=theme, **CALM))
    assert barriers(page) == []
    button(page, "GMRES").click()
    assert barriers(page) == []


def test_the_formats_can_be_told_apart_in_forced_colors(show):
    page = show(Condition(), forced_colors="active", **CALM)
    ground = "(nodes) => [...new Set(nodes.map((node) => getComputedStyle(node).background))].length"
    assert page.locator(".mp-cn-sample").evaluate_all(ground) == 5


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(Condition())
    button(page, "GMRES").click()
    page.locator(".mp-cn-table").get_by_role("button", name="float32").click()
    sent = json.loads(page.evaluate("() => JSON.stringify(model.sent.at(-1))"))
    fresh = Condition()
    fresh.set_state({name: sent[name] for name in fresh.book_state()})
    assert (fresh.correction, fresh.factors) == ("gmres", "float32")
    change = {"condition": 12345.0, "correction": "factors", "residual": "factors"}
    page.evaluate("(change) => void Object.assign(model.state, change)", change)
    page.evaluate("() => model.fire('change:condition')")
    assert end_text(refined(12345.0, "float32", "factors")) == "stuck"
    assert "κ = 10⁴" in verdict(page)
    assert "It is stuck" in verdict(page)
