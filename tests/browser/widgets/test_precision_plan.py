"""PrecisionPlan in a real browser: the page predicts what Python predicts, and a reader can ask for other plans."""

import numpy as np
import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    barriers,
    calls_of,
    cut_off,
    heights,
    small_targets,
    smallest_text,
)
from utils.cost.cards import ROOFS
from utils.widgets.precision_plan import PrecisionPlan
from utils.widgets.precision_plan import facts as words
from utils.widgets.precision_plan.facts import Float8Plan

HARNESS = """
window.calls = {
  ...words,
  views: (facts, plans) => plans.map((plan) => {
    const view = words.planView(facts, plan);
    return { ...view, verdict: words.planVerdict(view), code: words.planCode(plan) };
  }),
};
"""


call = calls_of("precision_plan/widget", HARNESS)


@pytest.fixture(scope="module")
def facts():
    return words.make_facts()


def random_plans(count, seed):
    """Plans of every model, recipe and device, with any layers left out."""
    rng = np.random.default_rng(seed)
    devices = [name for name, roof in ROOFS.items() if "float8" in roof.peaks]
    for number in range(count):
        model = words.MODELS[number % len(words.MODELS)]
        names = list(Float8Plan(model, 1, 1, "fp8-mx", "L4", ()).names())
        exclude = tuple(name for name in names if rng.random() < number % 4 / 3)
        length = int(2 ** rng.uniform(0, 12))
        texts = int(rng.integers(1, words.MOST // length + 1))
        yield Float8Plan(model, texts, length, str(rng.choice(list(words.CASTS))), str(rng.choice(devices)), exclude)


def page_plan(plan):
    fields = ("model", "texts", "length", "recipe", "device")
    return {name: getattr(plan, name) for name in fields} | {"exclude": list(plan.exclude)}


def test_the_page_predicts_what_python_predicts(call, facts):
    plans = list(random_plans(120, seed=2))
    plans += [PrecisionPlan(texts=1, length=length).plan for length in (552, 560)]  # hardly any change
    for plan, page in zip(plans, call("views", facts, [page_plan(plan) for plan in plans]), strict=True):
        for row, ours in zip(plan.rows, page["rows"], strict=True):
            assert (ours["kind"]["name"], ours["count"], ours["converted"]) == (row.kind.name, row.count, row.converted)
            for name in ("operations", "wide", "narrow", "casts", "now"):
                assert ours[name] == pytest.approx(getattr(row, name), rel=1e-12), (plan, row.kind.name, name)
        for name in ("operations", "share", "before", "after"):
            assert page[name] == pytest.approx(getattr(plan, name), rel=1e-12), (plan, name)
        assert page["attentionMs"] == pytest.approx(plan.attention_ms, rel=1e-12)
        assert (page["verdict"], page["code"]) == (plan.verdict, plan.code)


# What a reader does


def verdict(page):
    return page.locator(".mp-verdict").inner_text()


def press(page, name):
    page.get_by_role("button", name=name).first.click()


def code(page):
    return page.locator(".mp-pp-call code").inner_text()


def of(**changes):
    plan = {"model": "LLaMA 7B", "texts": 8, "length": 2048, "recipe": "fp8-current", "device": "H100 SXM"}
    return Float8Plan(**{"exclude": ("lm_head",), **plan, **changes})


def test_the_page_starts_with_the_state_of_python(show):
    page = show(PrecisionPlan())
    assert verdict(page) == of().verdict
    assert code(page) == 'convert(model, "fp8-current", exclude=("lm_head",))'
    assert page.get_by_role("status").inner_text() == ""
    assert page.locator(".mp-pp-source").inner_text().startswith(words.OTHERS)


def test_layers_and_blocks_are_taken_and_left(show):
    page = show(PrecisionPlan())
    press(page, "lm_head")
    assert verdict(page) == of(exclude=()).verdict
    assert code(page) == 'convert(model, "fp8-current", exclude=())'
    press(page, "down_proj")
    page.get_by_role("button", name="block 31: FP8").click()
    page.get_by_role("button", name="block 2: FP8").click()
    names = ("down_proj", "model.layers.2", "model.layers.31")
    assert code(page) == of(exclude=names).code
    assert verdict(page) == of(exclude=names).verdict
    assert page.get_by_role("status").inner_text() == verdict(page)
    assert page.locator(".mp-pp-kind", has_text="q_proj").inner_text().split() == ["q_proj", "FP8", "30/32"]
    press(page, "not the first and the last")
    assert code(page) == of(exclude=("down_proj", "model.layers.0", "model.layers.31")).code
    press(page, "all blocks")
    press(page, "convert()'s own choice")
    assert verdict(page) == of().verdict


def test_each_field_changes_the_prediction(show):
    page = show(PrecisionPlan())
    page.get_by_label("Recipe").select_option("fp8-delayed")
    page.get_by_label("Device").select_option("L4")
    page.get_by_label("Texts in a batch").fill("3")
    page.get_by_label("Texts in a batch").press("Enter")
    page.get_by_label("Tokens of a text").fill("1,000")
    page.get_by_label("Tokens of a text").press("Enter")
    changes = {"recipe": "fp8-delayed", "device": "L4", "texts": 3, "length": 1000}
    assert verdict(page) == of(**changes).verdict
    page.get_by_label("Model").select_option("DistilBERT")
    own = of(**changes, model="DistilBERT", exclude=("pre_classifier", "classifier"))
    assert (verdict(page), code(page)) == (own.verdict, own.code)
    assert "no multiple of 16" in page.locator(".mp-pp-why").last.inner_text()
    page.locator(".mp-pp-kind", has_text="classifier").last.dispatch_event("click")
    assert code(page) == own.code


@pytest.mark.parametrize(
    ("label", "text", "says"),
    [
        ("Texts in a batch", "many", "“many” is not a whole number from 1 to 131,072"),
        ("Tokens of a text", "100000", "That is 800,000 tokens; the plan counts up to 131,072."),
    ],
)
def test_junk_gets_a_sentence_and_the_answer_is_marked_as_old(show, label, text, says):
    page = show(PrecisionPlan())
    page.get_by_label(label).fill(text)
    page.get_by_label(label).press("Enter")
    assert says in page.get_by_role("alert").inner_text()
    assert page.get_by_label(label).get_attribute("aria-invalid") == "true"
    assert page.locator(".mp-pp-result[data-stale]").count() == 1
    page.get_by_label(label).fill("16")
    page.get_by_label(label).press("Enter")
    assert page.locator(".mp-pp-result[data-stale]").count() == 0


def test_the_bars_have_the_shares_of_the_time(show):
    page = show(PrecisionPlan())
    plan = of()
    track = page.locator(".mp-pp-track").last.bounding_box()["width"]
    products = sum(row.narrow * row.converted / row.count for row in plan.rows)
    for name, ms in (("products", products), ("attention", plan.attention_ms)):
        part = page.locator(f".mp-pp-track >> nth=1 >> .mp-pp-{name}").evaluate(
            "(n) => n.getBoundingClientRect().width"
        )
        assert part == pytest.approx(track * ms / plan.before, abs=1.5)


def test_the_blocks_are_one_stop_of_the_keyboard(show):
    page = show(PrecisionPlan())
    page.get_by_role("button", name="block 0: FP8").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert code(page) == of(exclude=("lm_head", "model.layers.1")).code
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "block 1: bfloat16"
    page.keyboard.press("End")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "block 31: FP8"
    assert page.locator(".mp-pp-blocks [tabindex='0']").count() == 1


@pytest.mark.parametrize(("viewport", "slack"), [(DESK, 2), (PHONE, 3)], ids=["desk", "phone"])
def test_everything_fits_and_the_page_keeps_room_for_it(show, viewport, slack):
    page = show(PrecisionPlan(), viewport=viewport)
    kept, taken = heights(page)
    assert abs(kept - taken) <= slack, (kept, taken)
    for name in words.MODELS:
        page.get_by_label("Model").select_option(name)
        assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"], name
        assert small_targets(page) == [], name
        assert cut_off(page, ".mp-pp-kinds td, .mp-pp-kind, .mp-pp-result") == [], name
    assert smallest_text(page) >= 12.8


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(PrecisionPlan("DistilBERT", texts=12, length=512), theme=theme, color_scheme=theme)
    page.get_by_role("button", name="block 0: FP8").click()
    assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_it(hosted):
    page = hosted(PrecisionPlan())
    press(page, "up_proj")
    assert page.evaluate("() => model.sent.at(-1).exclude") == ["up_proj", "lm_head"]
    page.evaluate("() => void Object.assign(model.state, { texts: 2 })")
    page.evaluate("() => model.fire('change:texts')")
    assert verdict(page) == of(texts=2, exclude=("up_proj", "lm_head")).verdict
