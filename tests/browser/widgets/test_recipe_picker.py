"""RecipePicker in the page decides as `utils.cost.decide` does, and can be used without a mouse."""

import itertools
from dataclasses import asdict

import pytest

from tests.browser.widget_page import module_page, source_of
from utils.cost.architectures import NAMED
from utils.cost.cards import CARDS, GIGABYTE, TYPES
from utils.cost.decide import TASKS
from utils.widgets.recipe_picker import RecipePicker
from utils.widgets.recipe_picker.advice import advise, facts

PAGE = "book/your_machine.html"
SIZES = [1, 1_000_000, *(sizes.parameters for sizes in NAMED.values()), 10**12, 10**13]
HARNESS = """
window.calls = { ...words, advised: (facts, states) => states.map((state) => words.advise(facts, state)) };
"""


@pytest.fixture(scope="module")
def module(browser):
    """Call a function of the widget's own ES module: module("parseCount", "66M")."""
    with module_page(browser, source_of("recipe_picker/widget"), HARNESS) as call:
        yield call


@pytest.mark.parametrize("card", CARDS)
def test_the_page_decides_as_python_does(module, card):
    """All tasks, models and memories, with the sizes at which an answer changes and their neighbours."""
    states = []
    for task, memory in itertools.product(TASKS, [0, 0.5, 24, 80, 1000]):
        room = round((memory or CARDS[card].memory[0]) * GIGABYTE)
        edges = {9 * room // (10 * each) + step for each in (0.5625, 1, 2, 6, 8, 10, 18) for step in (-1, 0, 1)}
        for parameters in sorted({*SIZES, *map(int, edges)} - {0}):
            states.append({"card": card, "task": task, "parameters": parameters, "memory": memory})
    for state, got in zip(states, module("advised", facts(), states), strict=True):
        asked = dict(state)
        expected = asdict(advise(asked.pop("card"), asked.pop("task"), **asked))
        assert got == expected | {"levers": list(expected["levers"])}, state


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("66M", 66_000_000),
        ("1.3 billion", 1_300_000_000),
        ("7e9", 7_000_000_000),
        ("6,738,415,616", 6_738_415_616),
        ("67 million", 67_000_000),
        (" 70 b ", 70_000_000_000),
        ("0.5k", 500),
        ("124_439_808", 124_439_808),
        ("7.5e9", 7_500_000_000),
        ("7.5B", 7_500_000_000),
        (".5B", 500_000_000),
        ("7 500 000 000", 7_500_000_000),
        ("7\u202f500\u202f000\u202f000", 7_500_000_000),
        ("7,500,000,000", 7_500_000_000),
        ("1,300.5k", 1_300_500),
        ("1", 1),
    ],
)
def test_a_number_of_parameters_is_read_as_people_write_it(module, text, count):
    assert module("parseCount", text) == {"count": count}


NO_THOUSANDS = "has a comma that separates no thousands: write decimals with a point, like 7.5B."
NO_NUMBER = "is not a number of parameters: write it like 66M, 1.3 billion or 124439808."
NO_WHOLE = "is not a whole number of parameters: is a unit missing, as in 7.5B?"
TOO_FEW = "is less than one parameter: is a unit missing, as in 0.5B?"
TOO_MANY = "is more than 10 trillion parameters."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("7,5", NO_THOUSANDS),
        ("7,5B", NO_THOUSANDS),
        ("0,500B", NO_THOUSANDS),  # a group of thousands never starts with 0
        ("7,50,000", NO_THOUSANDS),
        ("7500,000", NO_THOUSANDS),
        ("7,500 000", NO_THOUSANDS),
        ("7.5,000", NO_THOUSANDS),
        ("0.5", TOO_FEW),
        ("0", TOO_FEW),
        ("0.0001k", TOO_FEW),
        ("7.5", NO_WHOLE),
        ("7 5", NO_NUMBER),
        ("seven", NO_NUMBER),
        ("", NO_NUMBER),
        (".", NO_NUMBER),
        ("-5", NO_NUMBER),
        ("3 parsecs", NO_NUMBER),
        ("1 constructor", NO_NUMBER),
        ("1.2.3", NO_NUMBER),
        ("1e99", TOO_MANY),
        ("1e999", TOO_MANY),
    ],
)
def test_what_is_no_number_of_parameters_gets_one_sentence(module, text, why):
    assert module("parseCount", text) == {"wrong": f"“{text}” {why}"}


@pytest.mark.parametrize(
    ("text", "amount"),
    [("80 GB", 80), ("80GB", 80), ("80gb", 80), ("24", 24), ("0.5", 0.5), (" 1,000 GB ", 1000), ("1e6", 1e6)],
)
def test_memory_is_read_with_and_without_its_unit(module, text, amount):
    assert module("parseMemory", text) == {"amount": amount}


@pytest.mark.parametrize("text", ["", "0", "-3", "80 GiB", "80 kg", "1e7", "0x10", "1,5", "80 GB GB"])
def test_what_is_no_memory_gets_one_sentence(module, text):
    got = module("parseMemory", text)
    assert list(got) == ["wrong"]
    assert got["wrong"].startswith(f"“{text}” ")
    assert (NO_THOUSANDS.replace("7.5B", "7.5") in got["wrong"]) == ("," in text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (66_955_010, "67 million"),
        (6_738_415_616, "6.74 billion"),
        (999_999, "1 million"),
        (12, "12"),
        (1500, "1.5 thousand"),
    ],
)
def test_a_number_of_parameters_is_said_as_people_say_it(module, count, text):
    assert module("countText", count) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(267_820_040, "0.268 GB"), (21_700_000, "0.0217 GB"), (2_000_000, "2 MB"), (1_241_579_667_456, "1,242 GB")],
)
def test_bytes_are_said_in_decimal_units(module, size, text):
    assert module("bytesText", size) == text


@pytest.fixture
def picker(site, page_watch):
    """The picker in the chapter's page."""
    watch = page_watch()
    yield watch.open((site / PAGE).as_uri()).locator(".mp-recipe-picker")
    assert watch.problems == []


def test_a_card_changes_the_recipe(picker):
    widget = picker
    recipe = widget.locator(".mp-rp-recipe")
    widget.get_by_label("Card").select_option("T4")
    assert recipe.inner_text() == "16-mixed"
    assert "GradScaler" in widget.locator("pre").inner_text()
    widget.get_by_label("Card").select_option("A100")
    assert recipe.inner_text() == "bf16-mixed"
    assert widget.get_by_label("Memory (GB)").input_value() == "40"
    assert "bf16-mixed" in widget.get_by_role("status").inner_text()


def test_everything_stands_in_its_order(picker):
    assert picker.get_by_label("Card").locator("option").all_inner_texts() == [card.label for card in CARDS.values()]
    assert picker.locator("[data-task]").all_inner_texts() == list(TASKS.values())
    assert picker.locator(".mp-rp-types strong").all_inner_texts() == list(TYPES.values())
    assert picker.locator("tbody th").first.inner_text() == "weights"


def test_a_row_that_is_nothing_beside_the_total_is_left_out(show):
    page = show(RecipePicker(card="A100", task="fine_tune", parameters=NAMED["DistilBERT"].parameters))
    assert 0 < advise("A100", "fine_tune", parameters=NAMED["DistilBERT"].parameters).items["logits"] < 100
    kinds = page.locator("tbody th").all_inner_texts()
    assert "autocast's 16-bit copies" in kinds
    assert "gradients of the logits" not in kinds
    page = show(RecipePicker(card="A100", task="fine_tune", parameters=NAMED["LLaMA 7B"].parameters))
    assert "gradients of the logits" in page.locator("tbody th").all_inner_texts()


def test_it_can_be_used_with_the_keyboard_alone(picker):
    widget, page = picker, picker.page
    widget.get_by_label("Card").focus()
    widget.get_by_label("Card").select_option("H200")  # a native list: arrow keys are the browser's own
    for _ in range(2):
        page.keyboard.press("Tab")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the third task
    assert widget.locator("[data-task=generate]").get_attribute("aria-pressed") == "true"
    assert widget.locator(".mp-rp-recipe").inner_text() == "bf16-true"
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("70B")
    page.keyboard.press("Enter")
    assert "70.7 GB of 141 GB: it fits" in widget.locator(".mp-rp-fit").inner_text()
    assert widget.locator(".mp-rp-answer p").first.inner_text().startswith("bf16-true with 8-bit weights")


def test_junk_gets_a_message_and_changes_nothing(picker):
    widget = picker
    before = widget.locator(".mp-rp-fit").inner_text()
    for label, junk in (("Parameters", "lots"), ("Memory (GB)", "-3")):
        field = widget.get_by_label(label)
        good = field.input_value()
        field.fill(junk)
        field.press("Enter")
        assert junk in widget.locator(".mp-rp-wrong").inner_text()
        assert field.get_attribute("aria-invalid") == "true"
        assert field.input_value() == junk
        field.fill(good)
        field.press("Enter")
        assert widget.locator(".mp-rp-wrong").is_hidden()
    assert widget.locator(".mp-rp-fit").inner_text() == before


MARKED_OLD = "(node) => getComputedStyle(node).outlineStyle === 'dashed'"


@pytest.mark.parametrize(
    "mend",
    [
        lambda widget: widget.get_by_label("Parameters").fill("7.5B") or widget.page.keyboard.press("Enter"),
        lambda widget: widget.get_by_label("Memory (GB)").fill("80 GB") or widget.page.keyboard.press("Enter"),
        lambda widget: widget.get_by_label("Card").select_option("H200"),
        lambda widget: widget.get_by_role("button", name="GPT-2").click(),
        lambda widget: widget.get_by_role("button", name="generate").click(),
    ],
    ids=["parameters", "memory", "card", "model", "task"],
)
def test_after_an_error_the_old_answer_is_framed_and_says_whose_it_is(picker, mend):
    widget = picker
    result, wrong = widget.locator(".mp-rp-result"), widget.locator(".mp-rp-wrong")
    assert result.get_attribute("aria-label") == "Answer"
    assert not result.evaluate(MARKED_OLD)
    fit = widget.locator(".mp-rp-fit").inner_text()
    widget.get_by_label("Parameters").fill("7,5")
    widget.page.keyboard.press("Enter")
    assert widget.locator(".mp-rp-fit").inner_text() == fit
    assert result.evaluate(MARKED_OLD)
    assert widget.get_by_role("group", name="Answer to the last valid input").count() == 1
    assert widget.get_by_role("alert").inner_text().endswith("Below stands the answer to the last valid input.")
    mend(widget)
    assert wrong.is_hidden()
    assert not result.evaluate(MARKED_OLD)
    assert result.get_attribute("aria-label") == "Answer"
    assert widget.locator("[aria-invalid=true]").count() == 0
    assert widget.get_by_role("status").inner_text() != ""


def test_memory_may_be_typed_with_its_unit(picker):
    field = picker.get_by_label("Memory (GB)")
    field.fill("80 GB")
    field.press("Enter")
    assert field.input_value() == "80"
    assert "of 80 GB" in picker.locator(".mp-rp-fit").inner_text()


def test_it_fits_a_phone(site, page_watch):
    page = page_watch(viewport={"width": 390, "height": 844}).open((site / PAGE).as_uri())
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    for button in page.locator(".mp-recipe-picker :is(button, select, input)").all():
        box = button.bounding_box()
        assert box["height"] >= 24, button.inner_text()


def test_without_javascript_there_is_a_table(site, page_watch):
    page = page_watch(java_script_enabled=False).page
    page.goto((site / PAGE).as_uri())
    assert "RTX 3090" in page.locator(".mp-rp-static").inner_text()
