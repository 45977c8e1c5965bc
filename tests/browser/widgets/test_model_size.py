"""ModelSize in a real browser: the page's bytes are those of `memory.predict`, and a reader can ask for others."""

import re
from dataclasses import asdict, replace

import numpy as np
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
from utils.cost import memory
from utils.cost.architectures import NAMED, Architecture
from utils.cost.cards import CARDS
from utils.widgets.model_size import ModelSize
from utils.widgets.model_size import facts as words

# Ledgers hold BigInt, which no page hands over: all numbers as text.
HARNESS = """
window.calls = {
  ...words,
  ledgers: (facts, plans) => plans.map((plan) => Object.fromEntries(
    Object.entries(words.msLedger(facts, plan)).map(([item, bytes]) => [item, String(bytes)]))),
  said(facts, plan) {
    const { ledger, ...shown } = words.sized(facts, plan);
    const sentence = words.msSentence({ ledger, ...shown }, facts.items);
    return { ...shown, verdict: words.msVerdict(shown), sentence };
  },
};
"""


call = calls_of("model_size/widget", HARNESS)


@pytest.fixture(scope="module")
def facts():
    return words.make_facts()


@pytest.fixture(scope="module")
def widget():
    return ModelSize("LLaMA 7B", batch=4, length=2_048)


def page_plan(plan):
    """A plan as the page has it: with the sizes of its architecture."""
    return {name: value for name, value in vars(plan).items() if name != "architecture"} | {
        "sizes": asdict(plan.architecture)
    }


def random_architecture(rng):
    groups = int(rng.choice([1, 2, 4]))
    heads = groups * int(rng.choice([1, 2, 3]))
    family = str(rng.choice(["distilbert", "gpt2", "llama"]))
    dropped = {name: float(rng.choice([0, 0.1])) for name in ("dropout", "attention_dropout", "head_dropout")}
    return Architecture(
        family,
        vocabulary=int(rng.integers(2, 60_000)),
        width=heads * int(rng.integers(1, 40)),
        layers=int(rng.integers(1, 40)),
        heads=heads,
        groups=groups if family == "llama" else heads,
        hidden=int(rng.integers(1, 5_000)),
        positions=int(rng.integers(1_500, 5_000)),
        tied=family != "distilbert" and bool(rng.integers(2)),
        classes=int(rng.integers(2, 30)),
        **dropped,
    )


def random_plans(count, seed):
    """Plans of every recipe, optimizer, attention and stage, of named models and of others."""
    rng = np.random.default_rng(seed)
    choices = {name: list(row) for name, row in words.choices().items()}
    for number in range(count):
        names = list(NAMED.values())
        chosen = {name: row[rng.integers(len(row))] for name, row in choices.items()}
        yield words.MemoryPlan(
            architecture=names[rng.integers(len(names))] if number % 3 == 0 else random_architecture(rng),
            **chosen | {"recipe": choices["recipe"][number % len(choices["recipe"])]},
            batch=int(2 ** rng.uniform(0, 8)),
            length=int(rng.integers(1, 500)),
            checkpointing=bool(rng.integers(2)),
            padded=bool(rng.integers(2)),
            accumulate=int(rng.choice([1, 1, 2, 3, 8])),
            shards=int(rng.choice([1, 2, 3, 8, 64])),
            memory=0.0,
            rank=int(rng.integers(1, 200)),
        )


ITEMS = (*words.ITEMS, "casts", "parameters")


def as_text(ledger):
    return {item: str(getattr(ledger, item)) for item in ITEMS}


def test_the_page_has_the_bytes_of_python_in_200_random_cases(call, facts):
    plans = list(random_plans(200, seed=5))
    got = call("ledgers", facts, [page_plan(plan) for plan in plans])
    for plan, ledger in zip(plans, got, strict=True):
        assert ledger == as_text(plan.ledger), plan


USUAL = {"optimizer": "adamw", "batch": 1, "length": 512, "attention": "eager", "checkpointing": False}
USUAL |= {
    "method": "full",
    "rank": 16,
    "padded": True,
    "accumulate": 1,
    "shards": 1,
    "stage": 0,
    "device": "cuda",
}  # the defaults of `predict`


def test_the_page_has_the_bytes_of_every_vector(call, facts):
    for vector in memory.widget_data()["vectors"]:
        case = USUAL | vector
        sizes, card = asdict(NAMED[case["model"]]), {"cpu": "CPU", "cuda": "H100"}[case["device"]]
        [ledger] = call("ledgers", facts, [case | {"sizes": sizes, "card": card}])
        assert ledger == {item: str(size) for item, size in vector["ledger"].items()}, vector


@pytest.mark.parametrize("name", NAMED)
def test_every_model_has_its_parameters_in_the_page(call, facts, name):
    plan = replace(ModelSize(name, length=1).plan, length=1)
    [ledger] = call("ledgers", facts, [page_plan(plan)])
    assert ledger["parameters"] == str(NAMED[name].parameters)


def test_more_bytes_than_a_double_counts_are_exact(call, facts):
    plan = replace(ModelSize("Llama 2 70B", attention="eager").plan, batch=999_999, length=999_999)
    [ledger] = call("ledgers", facts, [page_plan(plan)])
    assert ledger == as_text(plan.ledger)
    assert plan.ledger.total > 2**60


def test_the_page_says_what_python_says(call, facts):
    for plan in random_plans(40, seed=6):
        got = call("said", facts, page_plan(plan))
        assert (got["room"], got["total"], got["largest"]) == (plan.room, plan.ledger.total, plan.largest_batch), plan
        assert {saving["name"]: saving["bytes"] for saving in got["savings"]} == plan.savings
        assert (got["verdict"], got["sentence"]) == (plan.verdict, plan.sentence)


@pytest.mark.parametrize("size", [0, 2_000_000, 267_820_040, 62_499_999_999, 1_241_579_667_456, 10**15])
def test_bytes_are_written_as_python_writes_them(call, size):
    assert call("bytesText", size) == words.bytes_text(size)


@pytest.mark.parametrize(
    ("saving", "fits_now", "text"),
    [
        ({"name": "half the batch", "bytes": 38 * 10**9, "fits": True}, False, "−38 GB: fits"),
        ({"name": "half the batch", "bytes": 38 * 10**9, "fits": True}, True, "−38 GB"),
        ({"name": "half the batch", "bytes": 38 * 10**9, "fits": False}, False, "−38 GB"),
        ({"name": "half the batch", "bytes": None, "fits": False}, False, "it is 1"),
        ({"name": "bf16-true", "bytes": 0, "fits": True}, True, "nothing"),
        ({"name": "bf16-true", "bytes": -5_000_000, "fits": True}, True, "+5 MB"),
        ({"name": "8-bit Adam", "bytes": None, "fits": False}, False, "it is not Adam"),
    ],
)
def test_a_saving_has_its_sign_and_says_if_it_is_enough(call, saving, fits_now, text):
    assert call("changeText", {"optimizer": "sgd"}, saving, fits_now) == text


# What a reader does


def field(page, label):
    kinds = (page.get_by_role(role, name=label, exact=True) for role in ("combobox", "textbox", "checkbox"))
    return next(kinds).or_(next(kinds)).or_(next(kinds))


def type_into(page, label, text):
    field(page, label).fill(text)
    field(page, label).press("Enter")


def press(page, name):
    page.get_by_role("button", name=re.compile(rf"^{re.escape(name)}")).click()


def text_of(page, name):
    return page.locator(f".mp-ms-{name}").inner_text()


def ledger_of(page):
    """The table, by item: bytes and bytes per parameter."""
    rows = page.locator(".mp-model-size tbody tr").all()
    return {cells[0]: tuple(cells[1:]) for cells in (row.locator("th, td").all_inner_texts() for row in rows)}


def test_the_page_starts_with_the_state_of_python(show, widget):
    page = show(widget)
    assert text_of(page, "verdict") == widget.plan.verdict
    assert text_of(page, "sentence") == widget.plan.sentence
    assert text_of(page, "count") == "6.74 billion parameters, texts of up to 2,048 tokens"
    ledger = widget.plan.ledger
    assert ledger_of(page)["weights"] == (words.bytes_text(ledger.weights), "4")
    assert ledger_of(page)["optimizer"] == (words.bytes_text(ledger.optimizer), "8")
    assert ledger_of(page)["master weights or compensation"] == ("none", "0")
    assert ledger_of(page)["together"][0] == words.bytes_text(ledger.total)
    assert field(page, "Layers").input_value() == "32"
    assert field(page, "Length, tokens").input_value() == "2,048"
    assert text_of(page, "source") == words.LEFT_OUT


def test_the_bar_has_the_shares_of_the_ledger_and_a_line_where_the_card_ends(show, widget):
    page = show(widget)
    plan, bar = widget.plan, page.locator(".mp-ms-parts").bounding_box()
    whole = max(plan.ledger.total, plan.room)
    for item in words.ITEMS:
        width = page.locator(f".mp-ms-part.mp-ms-{item}").evaluate("(node) => node.getBoundingClientRect().width")
        assert width == pytest.approx(bar["width"] * getattr(plan.ledger, item) / whole, abs=1.5)
    line = page.locator(".mp-ms-line").bounding_box()
    assert line["x"] + line["width"] - bar["x"] == pytest.approx(bar["width"] * plan.room / whole, abs=2.5)
    assert text_of(page, "line-word") == "H100: 80 GB"


def test_each_control_changes_the_answer(show, widget):
    page, plan = show(widget), widget.plan
    for label, value, change in (
        ("Recipe", "bf16-true", {"recipe": "bf16-true"}),
        ("Optimizer", "adamw-8bit", {"optimizer": "adamw-8bit"}),
        ("Attention", "eager", {"attention": "eager"}),
        ("Card", "A100", {"card": "A100"}),
        ("ZeRO stage", "2", {"stage": 2}),
    ):
        field(page, label).select_option(value)
        plan = replace(plan, **change)
        assert text_of(page, "verdict") == plan.verdict
    for label, text, change in (
        ("Batch of each card", "12", {"batch": 12}),
        ("Length, tokens", "1,024", {"length": 1_024}),
        ("Parts (accumulation)", "3", {"accumulate": 3}),
        ("Number of cards", "4", {"shards": 4}),
        ("Memory (GB)", "24 GB", {"memory": 24.0}),
    ):
        type_into(page, label, text)
        plan = replace(plan, **change)
        assert text_of(page, "verdict") == plan.verdict
    field(page, "checkpointing").check()
    plan = replace(plan, checkpointing=True)
    field(page, "padded texts").uncheck()
    plan = replace(plan, padded=False)
    assert text_of(page, "verdict") == plan.verdict
    assert page.get_by_role("status").inner_text() == f"{plan.verdict} {plan.sentence}"


def test_another_card_has_its_own_memory(show, widget):
    page = show(widget)
    type_into(page, "Memory (GB)", "12.5")
    assert text_of(page, "line-word") == "H100: 12.5 GB"
    field(page, "Card").select_option("T4")
    assert field(page, "Memory (GB)").input_value() == "16"


def test_sizes_of_your_own_start_from_those_of_the_model(show, widget):
    page = show(widget)
    type_into(page, "Layers", "16")
    assert field(page, "Model").input_value() == ""
    half = replace(NAMED["LLaMA 7B"], layers=16)
    assert text_of(page, "verdict") == replace(widget.plan, architecture=half).verdict
    type_into(page, "Heads", "16")  # no keys are shared: their heads follow
    assert field(page, "Heads of keys").input_value() == "16"
    type_into(page, "Heads of keys", "4")
    shared = replace(half, heads=16, groups=4)
    assert text_of(page, "verdict") == replace(widget.plan, architecture=shared).verdict
    field(page, "Model").select_option("GPT-2")
    assert field(page, "Layers").input_value() == "12"
    assert field(page, "Heads of keys").is_disabled()  # a GPT-2 shares none


def test_more_parts_than_texts_get_a_warning(show, widget):
    page, warning = show(widget), "More parts than texts: a part holds one text at least."
    for parts, seen in (("4", False), ("5", True), ("1", False)):
        type_into(page, "Parts (accumulation)", parts)
        assert page.get_by_text(warning).is_visible() is seen


def test_above_nine_tenths_of_the_card_nobody_can_tell(call):
    for total, said in ((9 * 10**9, "it fits, with 1 GB to spare."), (9 * 10**9 + 1, "too close to tell, with 1 GB")):
        verdict = call("msVerdict", {"total": total, "room": 10**10, "shards": 1})
        assert f" of 10 GB: {said}" in verdict


def test_texts_longer_than_the_positions_get_a_warning(show):
    page = show(ModelSize("GPT-2", length=1_024))
    assert text_of(page, "count") == "124 million parameters, texts of up to 1,024 tokens"
    type_into(page, "Length, tokens", "1,025")
    assert text_of(page, "count") == "124 million parameters, texts of up to 1,024 tokens: yours are longer"


@pytest.mark.parametrize("change", words.CHANGES)
def test_a_change_saves_what_it_says(show, widget, change):
    page, plan = show(widget), widget.plan
    row = page.locator(".mp-ms-savings li", has_text=re.compile(rf"^{re.escape(change)}"))
    assert row.locator("span").inner_text().startswith(f"−{words.bytes_text(plan.savings[change])}")
    row.get_by_role("button").click()
    assert text_of(page, "verdict") == words.CHANGES[change](plan).verdict
    if change != "half the batch":
        assert row.locator("span").inner_text() == "is on"
        assert row.get_by_role("button").get_attribute("aria-disabled") == "true"


def test_the_largest_batch_can_be_taken(show):
    widget = ModelSize("GPT-2", card="T4")
    page = show(widget)
    largest = widget.plan.largest_batch
    assert text_of(page, "largest") == f"Largest batch that fits: {largest}."
    press(page, "take it")
    assert field(page, "Batch of each card").input_value() == str(largest)
    assert text_of(page, "verdict") == replace(widget.plan, batch=largest).verdict
    field(page, "Model").select_option("LLaMA 13B")
    assert text_of(page, "largest") == "Not even a batch of 1 fits."
    page.get_by_role("button", name="take it").dispatch_event("click")
    assert field(page, "Batch of each card").input_value() == str(largest)


@pytest.mark.parametrize(
    ("label", "text", "why"),
    [
        ("Layers", "many", "Layers: “many” is not a whole number from 1 to 1,000,000."),
        ("Batch of each card", "0", "Batch of each card: “0” is not a whole number from 1 to 1,000,000."),
        ("Batch of each card", "2.5", "Batch of each card: “2.5” is not a whole number"),
        ("Length, tokens", "2,04", "Length, tokens: “2,04” is not a whole number"),
        ("Width", "100", "Width 100, 32 heads and 32 heads of keys do not fit"),
        ("Memory (GB)", "-3", "“-3” is not an amount of memory"),
    ],
)
def test_junk_gets_a_sentence_and_changes_nothing(show, widget, label, text, why):
    page = show(widget)
    before = text_of(page, "verdict")
    good = field(page, label).input_value()
    type_into(page, label, text)
    assert page.get_by_role("alert").inner_text().startswith(why)
    assert page.locator("[aria-invalid=true]").input_value() == text
    assert text_of(page, "verdict") == before
    assert page.get_by_role("group", name="Answer to the last valid input").count() == 1
    type_into(page, label, good)
    assert page.get_by_role("alert").count() == 0
    assert page.locator("[aria-invalid=true]").count() == 0
    assert page.get_by_role("group", name="Answer", exact=True).count() == 1


def test_reset_brings_back_what_python_set(show):
    widget = ModelSize(replace(NAMED["GPT-2"], layers=5), card="A100", memory=80.0, batch=3)
    page = show(widget)
    field(page, "Model").select_option("Llama 2 70B")
    field(page, "Card").select_option("T4")
    type_into(page, "Batch of each card", "junk")
    press(page, "Reset")
    assert text_of(page, "verdict") == widget.plan.verdict
    assert field(page, "Layers").input_value() == "5"
    assert field(page, "Memory (GB)").input_value() == "80"
    assert field(page, "Batch of each card").input_value() == "3"


def test_it_can_be_used_with_the_keyboard_alone(show, widget):
    page = show(widget)
    page.keyboard.press("Tab")
    page.keyboard.type("GPT-2")
    for _ in range(2):  # over Reset
        page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("24")
    page.keyboard.press("Tab")
    assert field(page, "Model").input_value() == ""
    assert field(page, "Layers").input_value() == "24"
    field(page, "Length, tokens").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert field(page, "checkpointing").is_checked()
    own = replace(NAMED["GPT-2"], layers=24)
    length = int(field(page, "Length, tokens").input_value().replace(",", ""))
    expected = replace(widget.plan, architecture=own, checkpointing=True, length=length)
    assert text_of(page, "verdict") == expected.verdict


@pytest.mark.parametrize("model", ["DistilBERT", "Llama 2 70B"])
@pytest.mark.parametrize("width", [320, 390, 700, 1280])
def test_nothing_scrolls_sideways_or_is_cut_off(show, model, width):
    page = show(ModelSize(model, batch=512, shards=8, length=512), viewport={"width": width, "height": 900})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert cut_off(page, ".mp-panel :is(th, td, button, p, li, .mp-ms-bar)") == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_words_of_every_choice_have_room(show, size):
    assert cut_off_choices(show(ModelSize(), viewport=size)) == []


def test_targets_are_large_enough_and_text_is_not_small(show, widget):
    page = show(widget, viewport=PHONE)
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.8


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_no_barrier(show, widget, theme, size):
    page = show(widget, theme=theme, color_scheme=theme, viewport=size)
    press(page, "checkpointing")
    type_into(page, "Batch of each card", "junk")
    assert barriers(page) == []


def test_the_items_can_be_told_apart_in_forced_colors(show, widget):
    page = show(widget, forced_colors="active")
    grounds = page.locator(".mp-ms-part:not([hidden])").evaluate_all(
        "(nodes) => nodes.map((node) => getComputedStyle(node).background)"
    )
    assert len(set(grounds)) == len(grounds) == 5


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted, widget):
    page = hosted(widget)
    type_into(page, "Batch of each card", "9")
    assert page.evaluate("() => model.sent.at(-1).batch") == 9
    field(page, "Model").select_option("GPT-2")
    assert page.evaluate("() => [model.sent.at(-1).model, model.sent.at(-1).sizes]") == ["GPT-2", {}]
    type_into(page, "Layers", "3")
    sent = page.evaluate("() => model.sent.at(-1)")
    assert (sent["model"], sent["sizes"]) == ("", asdict(replace(NAMED["GPT-2"], layers=3)))
    page.evaluate("() => { model.state.card = 'B200'; model.fire('change:card'); }")
    assert field(page, "Memory (GB)").input_value() == str(CARDS["B200"].memory[0])
