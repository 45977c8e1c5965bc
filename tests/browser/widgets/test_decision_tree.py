"""DecisionTree in a real browser: it decides as `utils.cost.decide` does, and takes other questions."""

import itertools

import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    barriers,
    calls_of,
    cut_off,
    cut_off_choices,
    small_targets,
    smallest_text,
)
from utils.cost.cards import CARDS
from utils.cost.decide import TASKS, decide
from utils.widgets.decision_tree import DecisionTree
from utils.widgets.decision_tree import facts as words
from utils.widgets.decision_tree.symptoms import SYMPTOMS

HARNESS = """
window.calls = {
  decided(facts, states) {
    return states.map((state) => {
      const decision = words.dtOutlook(facts, state);
      const said = { path: words.dtPath(facts, state, decision), verdict: words.dtVerdict(facts, decision) };
      return { ...decision, ...said };
    });
  },
};
"""
call = calls_of("decision_tree/widget", HARNESS)


@pytest.fixture(scope="module")
def facts():
    return words.make_facts()


def decided(state):
    state = dict(state)
    return decide(state.pop("card"), state.pop("task"), state.pop("model"), memory_gb=state.pop("memory"), **state)


@pytest.mark.parametrize("card", CARDS)
def test_the_page_decides_as_python_does(call, facts, card):
    """Every task, small and large models, few and many tokens, one card and several."""
    models = ("DistilBERT", "GPT-2 XL", "LLaMA 7B", "Llama 2 70B", "Llama 3 8B")
    states = [
        {
            "card": card,
            "task": task,
            "model": model,
            "optimizer": optimizer,
            "memory": memory,
            "cards": cards,
            "batch": batch,
            "length": length,
        }
        for task, model, (optimizer, cards), (batch, length), memory in itertools.product(
            TASKS, models, [("adamw", 1), ("sgd", 8), ("adamw-8bit", 3)], [(1, 512), (7, 2_048)], [0.0, 37.5]
        )
        if (task, model) != ("generate", "DistilBERT")
    ]
    for state, got in zip(states, call("decided", facts, states), strict=True):
        decision = decided(state)
        plan = got["plan"]
        assert plan == {name: getattr(decision.plan, name) for name in plan}, state
        assert got["taken"] == [vars(one) for one in decision.taken], state
        assert got["items"] == decision.items, state
        wanted = (decision.bare, decision.total, decision.room, decision.fits, decision.cards)
        assert (got["bare"], got["total"], got["room"], got["fits"], got["cards"]) == wanted, state
        assert got["tokens_per_second"] == pytest.approx(decision.tokens_per_second), state
        assert got["path"] == words.path(decision), state
        assert got["verdict"] == words.verdict(decision), state


def field(page, label):
    kinds = (page.get_by_role(role, name=label, exact=True) for role in ("combobox", "textbox"))
    return next(kinds).or_(next(kinds))


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def verdict_of(page):
    return page.locator(".mp-dt-verdict").inner_text()


def test_the_page_starts_with_the_state_of_python(show):
    widget = DecisionTree()
    page = show(widget)
    assert verdict_of(page) == words.verdict(widget.decision)
    steps = [f"{question} {answer}" for question, answer in words.path(widget.decision)]
    assert page.locator(".mp-dt-path:visible li").all_inner_texts() == steps
    assert page.locator(".mp-dt tbody tr").last.inner_text().split("\t") == ["together", "69.8 GB"]


def test_each_field_changes_the_answer(show):
    page = show(DecisionTree())
    how = {"batch": 8, "length": 2_048}
    field(page, "Card").select_option("RTX 4090")
    assert verdict_of(page) == words.verdict(decide("RTX 4090", "fine_tune", **how))
    field(page, "Model").select_option("GPT-2")
    field(page, "Optimizer").select_option("sgd")
    for label, text in (("Texts of a step", "64"), ("Tokens of a text", "1,024"), ("Number of cards", "4")):
        field(page, label).fill(text)
        field(page, label).press("Enter")
    wanted = decide("RTX 4090", "fine_tune", "GPT-2", optimizer="sgd", batch=64, length=1_024, cards=4)
    assert verdict_of(page) == words.verdict(wanted)
    assert page.get_by_role("status").inner_text() == words.verdict(wanted)
    field(page, "Memory (GB)").fill("80 GB")
    field(page, "Memory (GB)").press("Enter")
    wanted = decide("RTX 4090", "fine_tune", "GPT-2", optimizer="sgd", batch=64, length=1_024, cards=4, memory_gb=80)
    assert verdict_of(page) == words.verdict(wanted)


def test_generating_asks_for_no_optimizer_and_no_encoder(show):
    page = show(DecisionTree(model="DistilBERT", task="train"))
    press(page, "generate")
    assert field(page, "Model").input_value() == "GPT-2"
    assert not field(page, "Optimizer").is_visible()
    assert verdict_of(page) == words.verdict(decide("H100", "generate", "GPT-2", batch=8, length=2_048))


@pytest.mark.parametrize("name", SYMPTOMS)
def test_every_symptom_has_its_looks(show, name):
    page = show(DecisionTree())
    press(page, "debug a run")
    press(page, SYMPTOMS[name].words)
    shown = page.locator(".mp-dt-path:visible li").all_inner_texts()
    assert shown == [f"{look} → {words.CHAPTERS[chapter]}" for look, chapter in SYMPTOMS[name].looks]
    links = page.locator(".mp-dt-path:visible a").evaluate_all("found => found.map(link => link.getAttribute('href'))")
    assert links == [words.page_of(chapter) for _, chapter in SYMPTOMS[name].looks if words.page_of(chapter)]
    assert not field(page, "Card").is_visible()
    assert SYMPTOMS[name].looks[0][0] in page.get_by_role("status").inner_text()


@pytest.mark.parametrize(
    ("label", "text"), [("Texts of a step", "many"), ("Number of cards", "2000"), ("Memory (GB)", "x")]
)
def test_what_is_no_number_gets_one_sentence_and_keeps_the_answer(show, label, text):
    page = show(DecisionTree())
    before = verdict_of(page)
    field(page, label).fill(text)
    field(page, label).press("Enter")
    assert f"“{text}”" in page.get_by_role("alert").inner_text()
    assert verdict_of(page) == before
    assert page.locator("[data-stale]").count() == 1


def test_it_can_be_used_with_the_keyboard_alone(show):
    page = show(DecisionTree())
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="debug a run").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_by_role("button", name=SYMPTOMS["nan at once"].words).get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("task", ["fine_tune", "generate", "mend"])
def test_nothing_is_cut_off_small_or_unnamed(show, theme, view, task):
    page = show(DecisionTree(task=task), theme=theme, viewport=view)
    assert barriers(page) == []
    assert small_targets(page) == []
    assert smallest_text(page) >= 12
    assert cut_off(page, ".mp-dt-path:visible li") == []
    assert cut_off_choices(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= view["width"]


def test_a_notebook_sees_what_the_reader_sets_and_the_listeners_go(hosted):
    page = hosted(DecisionTree())
    page.get_by_role("button", name="generate").click()
    assert page.evaluate("model.sent.at(-1).task") == "generate"
    page.evaluate("model.state.card = 'T4'; model.fire('change:card')")
    assert page.locator(".mp-dt-verdict").inner_text() == words.verdict(decide("T4", "generate", batch=8))
    page.get_by_role("button", name="debug a run").click()
    assert page.locator(".mp-dt-path:visible li").count() > 1
    assert page.locator(".mp-dt-path a").count() == 0  # no book lies around a notebook
    page.evaluate("cleanup()")
    assert page.evaluate("listeners.length") == 0
