"""OpLookup in a real browser: names are found as people write them, and the filter works by mouse and keys."""

import pytest

from tests.browser.widget_page import PHONE, barriers, cut_off, module_page, small_targets, smallest_text, source_of
from utils.diagnostics.autocast_docs import ALSO, RULES
from utils.diagnostics.autocast_operations import OPERATIONS
from utils.widgets.op_lookup import OpLookup

NAMES = [operation.name for operation in OPERATIONS]
ROWS = [{"name": name, "also": ALSO.get(name, ())} for name in NAMES]


@pytest.fixture(scope="module")
def widget():
    return OpLookup(version="2.13.0")


def field(page):
    return page.get_by_role("searchbox", name="Find an operation")


def shown(page):
    """The names in the table now."""
    return page.locator(".mp-ol tbody th[scope=row]:visible").all_inner_texts()


def cells(page, name):
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True))
    return row.locator("td > span:nth-child(2)").all_inner_texts()


def button(page, name):
    return page.get_by_role("group", name="Rule").get_by_role("button", name=name)


def found(page):
    return page.get_by_role("status").inner_text()


@pytest.fixture(scope="module")
def module(browser):
    """Call a function of the widget's own ES module."""
    with module_page(browser, source_of("op_lookup/widget")) as call:
        yield call


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("softmax", ["softmax", "log_softmax", "softmax(dtype=float32)"]),
        ("F.log_softmax", ["log_softmax"]),
        ("torch.nn.functional.log_softmax", ["log_softmax"]),
        ("nn.LayerNorm", ["layer_norm"]),
        ("Layer norm", ["layer_norm"]),
        ("nn.Lay", ["layer_norm"]),
        ("CrossEntropyLoss", ["cross_entropy"]),
        ("BCELoss", ["binary_cross_entropy"]),
        ("nn.BCEWithLogitsLoss", ["binary_cross_entropy_with_logits"]),
        ("bce", ["binary_cross_entropy", "binary_cross_entropy_with_logits"]),
        ("nn.KLDivLoss", ["kl_div"]),
        ("nn.BatchNorm2d", ["batch_norm"]),
        ("attention", ["scaled_dot_product_attention"]),
        ("LSTMCell", ["LSTMCell"]),
        ("square", ["square"]),
        ("logsigmoid", ["logsigmoid"]),
        ("@", ["matmul"]),
        ("**", ["pow"]),
        ("torch.linalg.cross", ["cross"]),
        ("nn.ELU", ["elu"]),
        ("", NAMES),
        ("   ", NAMES),
        ("fft", []),
        ("(", []),
        ("%", []),
    ],
)
def test_a_name_is_found_as_people_write_it(module, query, names):
    assert module("namesLike", query, ROWS) == names


@pytest.mark.parametrize(
    "query", ["nn.MultiheadAttention", "nn.LSTM", "lstm", "nn.GRU", "RNN", "nn.TransformerEncoderLayer", "squared_relu"]
)
def test_a_name_is_not_taken_for_one_that_it_contains_or_that_contains_it(module, query):
    assert module("namesLike", query, ROWS) == []


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("scatter_add_", []),
        ("torch.Tensor.scatter_add_", []),
        ("index_add_()", []),
        ("mul_", []),
        ("exp_", []),
        ("add_", ["add_ (in place)"]),
        ("addmm_(", ["addmm_ (in place)"]),
        ("addmm", ["addmm", "addmm_ (in place)"]),
        ("layer_", ["layer_norm"]),
        ("log_", ["log_softmax"]),
    ],
)
def test_an_in_place_form_is_not_taken_for_the_other(module, query, names):
    assert module("namesLike", query, ROWS) == names


def test_every_loss_is_found_by_the_word(module):
    found = module("namesLike", "loss", ROWS)
    assert {"cross_entropy", "kl_div", "nll_loss", "binary_cross_entropy", "mse_loss"} <= set(found)


def test_an_operation_has_its_two_rules(show, widget):
    page = show(widget)
    assert cells(page, "linear") == ["casts down", "casts down"]
    assert cells(page, "softmax") == ["whatever comes in", "casts to float32"]
    assert cells(page, "binary_cross_entropy") == ["casts to float32", "refuses"]
    assert page.get_by_role("columnheader").all_inner_texts() == [
        "operation",
        "CPU\nmeasured, torch 2.13.0",
        "CUDA\ndocumented",
    ]
    assert shown(page) == NAMES
    assert found(page) == f"All {len(NAMES)} operations."


def test_typing_searches_at_once_and_empty_groups_go(show, widget):
    page = show(widget)
    field(page).type("norm")
    names = ["layer_norm", "rms_norm", "batch_norm", "group_norm", "normalize", "renorm", "norm", "vector_norm"]
    assert shown(page) == names
    assert page.locator(".mp-ol-group:visible").all_inner_texts() == ["normalisation", "reductions"]
    assert found(page) == f"{len(names)} of {len(NAMES)} operations for “norm”."
    field(page).press("Escape")
    assert len(shown(page)) == len(NAMES)


def test_what_is_not_in_the_table_gets_a_sentence_that_claims_no_dtype(show, widget):
    page = show(widget)
    field(page).fill("fft")
    assert shown(page) == []
    assert found(page).startswith(f"“fft” is not among these {len(NAMES)}. Autocast may still cast it")
    button(page, "refuses").click()
    assert found(page) == "No operation “fft” with the rule “refuses”."
    field(page).fill("")
    assert shown(page) == ["binary_cross_entropy"]


def test_a_part_of_a_name_is_said_to_be_a_part(show, widget):
    page = show(widget)
    field(page).fill("sof")
    assert found(page) == f"No operation is called “sof”, but 6 of {len(NAMES)} contain it."
    field(page).fill("lstmc")
    assert found(page) == f"No operation is called “lstmc”, but 1 of {len(NAMES)} contains it."


def test_a_module_of_several_operations_is_said_to_be_one(show, widget):
    page = show(widget)
    for name in ("nn.LSTM", "nn.MultiheadAttention"):
        field(page).fill(name)
        assert shown(page) == []
        assert found(page).startswith(f"“{name}” is made of several operations")


def test_an_in_place_form_gets_its_sentence(show, widget):
    page = show(widget)
    left_alone = "In-place forms (names that end in “_”) are left alone: the tensor keeps its dtype."
    field(page).fill("scatter_add_")
    assert found(page) == left_alone
    button(page, "refuses").click()
    assert found(page) == left_alone
    button(page, "all").click()
    field(page).fill("log_")
    assert found(page).endswith(f"contains it. {left_alone}")
    for other in ("add_", "layer_", "log_softmax"):
        field(page).fill(other)
        assert left_alone not in found(page)


def test_a_rule_shows_its_operations_and_its_reason(show, widget):
    page = show(widget)
    for rule in RULES.values():
        button(page, rule.label).click()
        assert button(page, rule.label).get_attribute("aria-pressed") == "true"
        assert page.locator(".mp-ol-why").inner_text() == rule.why
        assert all(rule.label in cells(page, name) for name in shown(page)[:3])
        count = button(page, rule.label).locator(".mp-ol-count").inner_text()
        assert len(shown(page)) == int(count)
    assert page.locator("[data-rule][aria-pressed=true]").count() == 1


def test_the_rules_that_differ_can_be_shown_alone(show, widget):
    page = show(widget)
    button(page, "CPU and CUDA differ").click()
    assert {"softmax", "layer_norm", "exp", "sum", "binary_cross_entropy"} <= set(shown(page))
    assert {"linear", "einsum", "add", "cat", "cross_entropy"}.isdisjoint(shown(page))
    for name in shown(page):
        assert len(set(cells(page, name))) == 2


def test_the_same_button_takes_the_filter_away(show, widget):
    page = show(widget)
    for _ in range(2):
        button(page, "casts down").click()
    assert button(page, "all").get_attribute("aria-pressed") == "true"
    assert shown(page) == NAMES


def test_it_can_be_used_with_the_keyboard_alone(show, widget):
    page = show(widget)
    page.keyboard.press("Tab")
    page.keyboard.type("soft")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the second rule
    assert shown(page) == [
        "softplus",
        "softmax",
        "softmin",
        "log_softmax",
        "soft_margin_loss",
        "softmax(dtype=float32)",
    ]
    for _ in range(5):
        page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "Operations"


@pytest.mark.parametrize("width", [320, 390, 700, 1280])
def test_nothing_scrolls_sideways_or_is_cut_off(show, widget, width):
    page = show(widget, viewport={"width": width, "height": 900})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert cut_off(page, ".mp-ol :is(th, td, button, p, .mp-ol-box)") == []


@pytest.mark.parametrize("width", [320, 390])
def test_no_word_is_broken_on_a_phone(show, widget, width):
    page = show(widget, viewport={"width": width, "height": 900})
    broken = """(cells) => cells.flatMap((cell) => {
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = document.createRange();
      const lines = (text, { index, 0: word }) => {
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
      };
      const found = [];
      while (texts.nextNode()) {
        const text = texts.currentNode;
        for (const word of text.data.matchAll(/\\S+/g)) if (lines(text, word) > 1) found.push(word[0]);
      }
      return found;
    })"""
    assert page.locator(".mp-ol :is(thead th, td)").evaluate_all(broken) == []


def test_targets_are_large_enough_and_text_is_not_small(show, widget):
    page = show(widget, viewport=PHONE)
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.8


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1280, "height": 900}, PHONE], ids=["wide", "phone"])
def test_axe_finds_no_barrier(show, widget, theme, size):
    page = show(widget, theme=theme, color_scheme=theme, viewport=size)
    button(page, "CPU and CUDA differ").click()
    assert barriers(page) == []


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted, widget):
    page = hosted(widget)
    page.get_by_role("searchbox").fill("loss")
    assert page.evaluate("() => model.sent.at(-1).query") == "loss"
    button(page, "casts to float32").click()
    assert page.evaluate("() => model.sent.at(-1).rule") == "wide"
    page.evaluate("() => { Object.assign(model.state, { query: 'exp', rule: '' }); model.fire('change:query'); }")
    assert page.get_by_role("searchbox").input_value() == "exp"
    assert page.locator(".mp-ol tbody tr:not([hidden]) th[scope=row]").first.inner_text() == "exp"
