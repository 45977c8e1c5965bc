"""TokensPerSecond in a real browser: its bytes and rates against Python's, its words, and what a reader does."""

import itertools
import json

import pytest

from tests.browser.widget_page import (
    DESK,
    HEIGHT,
    PHONE,
    WIDTH,
    after_each,
    barriers,
    calls_of,
    cut_off_choices,
    cut_off_of,
    small_targets,
    smallest_text,
)
from utils.cost.architectures import Architecture
from utils.cost.cards import ROOFS
from utils.cost.roofline import Roof
from utils.widgets.shared.words.amounts import few_digits
from utils.widgets.tokens_per_second import TokensPerSecond
from utils.widgets.tokens_per_second.facts import FORMATS, LLAMAS, PUBLISHED, card_text

SMALL = Architecture("llama", 512, 256, 4, 8, 4, 688, 512, tied=True)
CPU = Roof("Some CPU", {}, 21.5, "a large copy", measured=True)
POINT = {"model": "LLaMA small", "weights": "float32", "card": CPU.name, "bytes": 12_000_000, "rate": 900.5}
MORE = {"models": {"LLaMA small": SMALL}, "roofs": [CPU], "recorded": [POINT | {"source": "recorded here"}]}

HARNESS = """
window.calls = {
  case: (facts, state) => words.tpCase(facts, state),
  said: (facts, state) => words.tpVerdict(words.tpCase(facts, state)),
  measured: (facts, state) => words.tpMeasured(words.tpOwnPoints(facts, state), words.tpCase(facts, state)),
  points: (facts, state) => words.tpPoints(facts, state),
  card: (card) => words.tpCardText(card),
};
"""

call = calls_of("tokens_per_second/widget", HARNESS)


# Twins: the page's arithmetic against Python's


def states():
    """States that meet every model, format, card and way to keep keys and values."""
    models = itertools.cycle([*LLAMAS, "LLaMA small"])
    cards = itertools.cycle([*ROOFS, CPU.name])
    kept = itertools.cycle(itertools.product((0, 8, 4), (False, True, True)))
    for batch, context, weights in itertools.product((1, 3, 1024), (1, 500, 131_072), (*FORMATS, "int4")):
        kv_bits, head = next(kept)
        yield {
            **{"model": next(models), "weights": weights, "card": next(cards), "batch": batch},
            **{"context": context, "kv_bits": kv_bits, "head": head},
        }


def test_every_number_and_sentence_is_that_of_python(call):
    shown = TokensPerSecond(**MORE)
    for state in states():
        for name, value in state.items():
            setattr(shown, name, value)
        ours, theirs = call("case", shown.facts, state), shown.case
        moved = theirs.moved
        assert ours["moved"] == {
            **{"weights": moved.weights, "cacheRead": moved.cache_read, "cacheWritten": moved.cache_written},
            "total": moved.total,
        }, state
        assert (ours["operations"], ours["held"], ours["room"]) == (theirs.operations, theirs.held, theirs.room), state
        assert (ours["moving"], ours["computing"]) == (theirs.moving_ms, theirs.computing_ms), state
        assert (ours["rate"], ours["peak"], ours["fits"]) == (theirs.tokens_per_second, theirs.peak, theirs.fits), state
        assert call("said", shown.facts, state) == theirs.verdict, state
        assert call("measured", shown.facts, state) == shown.measured, state


def test_a_card_is_said_as_in_python(call):
    shown = TokensPerSecond(**MORE)
    for card in shown.facts["cards"]:
        shown.card = card["name"]
        assert call("card", card) == card_text(shown.roof)
    assert card_text(CPU) == "Some CPU, measured, 21.5 GB/s"


def test_a_measured_rate_has_its_share_of_the_bandwidth(call):
    shown = TokensPerSecond(**MORE)
    state = shown.book_state()
    [lit, fast] = (
        [point for point in call("points", shown.facts, state | {"card": card}) if point["weights"] == "bfloat16"]
        for card in ("A100 SXM 40 GB", "A100 SXM 80 GB")
    )
    assert [round(100 * point["share"]) for point in (*lit, *fast)] == [14, 69]
    int4 = call("points", shown.facts, state | {"card": "A100 SXM 80 GB"})[2]
    assert (int4["weights"], round(100 * int4["share"])) == ("int4", 42)  # the README: 862.69 GB/s
    said = call("measured", shown.facts, state | {"card": "A100 SXM 80 GB", "weights": "int8"})
    assert said.startswith(
        "Measured with a batch of 1: 155.58 tokens a second from 6.87 GB a step, 52\u00a0% of the bandwidth (gpt-fast"
    )
    own = {"model": "LLaMA small", "card": CPU.name, "weights": "float32"}
    share = round(100 * 900.5 * 12e6 / 21.5e9)
    assert call("measured", shown.facts, state | own) == (
        f"Measured with a batch of 1: 900.5 tokens a second from 0.012 GB a step, {share}\u00a0% of the bandwidth"
        " (recorded here)."
    )


@pytest.mark.parametrize(
    ("batch", "context", "said"), [(1, 256, "Measured with"), (2, 256, "Measured rates"), (1, 257, "Measured rates")]
)
def test_a_rate_of_one_short_text_is_compared_with_one_short_text_alone(call, batch, context, said):
    shown = TokensPerSecond(card="A100 SXM 80 GB", batch=batch, context=context)
    state = shown.book_state()
    assert (call("points", shown.facts, state) != []) is shown.case.comparable is said.endswith("with")
    assert call("measured", shown.facts, state).startswith(said)


# What a reader sees and does

CALM = {"viewport": DESK}


def verdict(page):
    return page.locator(".mp-tp-verdict").inner_text()


def cells(page, row):
    return page.locator(f".mp-tp-table tbody tr:nth-child({row + 1}) td").all_inner_texts()


def test_the_table_has_every_format_as_python_has_it(show):
    page = show(TokensPerSecond(context=200), **CALM)
    for row, name in enumerate(FORMATS):
        theirs = TokensPerSecond(weights=name, context=200).case
        read = [f"{rate:,}" for _, weights, card, rate, _ in PUBLISHED[:3] if weights == name]
        texts = cells(page, row)
        moved, held = (few_digits(size / 1e9) for size in (theirs.moved.total, theirs.held))
        assert texts[:3] == [moved, few_digits(theirs.tokens_per_second), held]
        assert texts[3].split(" (")[0] == (read[0] if read else "–")  # float32: no estimate from a plain loop


def test_an_estimate_is_scaled_and_a_plain_loop_is_marked(show):
    page = show(TokensPerSecond(card="A100 SXM 40 GB"), **CALM)
    assert [cells(page, row)[3].split(" (")[0] for row in range(len(FORMATS))] == [
        *("11.47\u00a0†", "16.7\u00a0†", "–", "≈ 119", "≈ 150", "–")
    ]
    lanes = page.locator(".mp-tp-lanes")
    assert "measured, a plain loop" in lanes.inner_text()
    page.get_by_role("button", name="int8").click()
    assert "8.43" in lanes.inner_text()  # 1000 / 118.65


def test_what_the_card_cannot_hold_has_no_rate(show):
    page = show(TokensPerSecond("Llama 2 70B"), **CALM)
    assert [cells(page, row)[1] for row in range(2)] == ["too large", "too large"]
    assert cells(page, 3)[3] == "19.13 (65\u00a0%)"
    assert verdict(page).endswith("of 80 GB: too much, because a tenth stays free.")


def test_a_format_is_chosen_in_the_table_and_in_the_picture(show):
    page = show(TokensPerSecond(), **CALM)
    page.get_by_role("button", name="int4, groups of 32").click()
    assert verdict(page) == TokensPerSecond(weights="int4").case.verdict
    said = f"{verdict(page)} {page.locator('.mp-tp-read').inner_text()}"
    assert page.locator("[role=status]").inner_text() == said
    picture = page.locator(".mp-tp-plot")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    picture.click(position={"x": box["width"] - 5, "y": 40})
    assert page.get_by_role("button", name="float32", exact=True).get_attribute("aria-pressed") == "true"


def test_model_card_cache_and_head_are_chosen(show):
    page = show(TokensPerSecond(weights="int8"), **CALM)
    page.get_by_label("Model").select_option("Llama 3 8B")
    page.get_by_label("Card").select_option("RTX 4090")
    page.get_by_label("Keys and values in").select_option("4")
    page.get_by_label("the head (the last matrix) in 8 or 4 bits too").check()
    same = TokensPerSecond("Llama 3 8B", weights="int8", card="RTX 4090", kv_bits=4, head=True)
    assert verdict(page) == same.case.verdict
    assert page.locator(".mp-tp-read").inner_text() == same.measured
    assert "On A100 SXM 80 GB: 153.03 tokens a second" in same.measured
    assert "estimated from A100 SXM 80 GB" in page.locator(".mp-tp-lanes").inner_text()


def test_batch_and_context_are_slid_with_the_keyboard(show):
    page = show(TokensPerSecond(), **CALM)
    batch, context = page.get_by_role("slider", name="Batch"), page.get_by_role("slider", name="Context")
    batch.press("ArrowRight")
    context.press("End")
    assert (batch.get_attribute("aria-valuetext"), context.get_attribute("aria-valuetext")) == (
        "2 sequences",
        "131,072, built for 2,048",
    )
    assert verdict(page) == TokensPerSecond(batch=2, context=2**17).case.verdict
    assert "measured: a single short sequence only" in page.locator(".mp-tp-lanes").inner_text()
    context.press("Home")
    batch.press("End")
    assert "Computing decides" in verdict(page)


def test_the_points_lie_on_the_line_and_the_measured_ones_below_it(show):
    page = show(TokensPerSecond(), **CALM)
    middle = (
        """(node) => [node.getBoundingClientRect()].map((box) => [box.x + box.width / 2, box.y + box.height / 2])[0]"""
    )
    spots = [spot.evaluate(middle) for spot in page.locator(".mp-tp-plot .mp-tp-spot").all()]
    diamonds = [spot.evaluate(middle) for spot in page.locator(".mp-tp-plot .mp-tp-diamond").all()]
    assert (len(spots), len(diamonds)) == (len(FORMATS), 3)
    (x0, y0), (x1, y1) = spots[0], spots[-1]  # bound by memory: all on one line
    for x, y in spots:
        assert abs(y - (y0 + (y1 - y0) * (x - x0) / (x1 - x0))) < 1.5
    for x, y in diamonds:
        assert y > y0 + (y1 - y0) * (x - x0) / (x1 - x0) + 5
    page.get_by_role("slider", name="Batch").press("ArrowRight")
    assert page.locator(".mp-tp-plot .mp-tp-diamond").count() == 0


CASES_TO_LOOK_AT = {
    "start": lambda: TokensPerSecond(),
    "plain loop": lambda: TokensPerSecond(card="A100 SXM 40 GB"),
    "large": lambda: TokensPerSecond("Llama 2 70B", weights="int4-g128", batch=1024, context=2**17, kv_bits=8),
    "measured": lambda: TokensPerSecond("LLaMA small", card=CPU.name, weights="float32", **MORE),
}
BEYOND = """() => [...document.querySelectorAll(".mp-tp > *, .mp-tp-table, .mp-tp-table td, .mp-tp-plot .mp-tp-word")].filter((node) =>
  node.getBoundingClientRect().right > document.querySelector(".mp-tp").getBoundingClientRect().right + 0.5)
  .map((node) => node.textContent)"""  # noqa: E501


@pytest.mark.parametrize("case", CASES_TO_LOOK_AT)
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_overflows_is_too_small_or_moves(show, viewport, case):
    page = show(CASES_TO_LOOK_AT[case](), viewport=viewport)
    calm = [page.evaluate(HEIGHT), viewport["width"], [], []]
    rows = page.locator(".mp-tp-name").evaluate_all("(nodes) => nodes.map(({ ariaLabel }) => ariaLabel)")
    actions = []
    for batch, context in [(0, 0), (0, 17), (10, 0), (10, 17), (5, 11)]:
        actions += [("[type=range]", "Batch", batch), ("[type=range]", "Context", context)]
        actions += [(".mp-tp-name", rows[row]) for row in (0, 1, 5)]
    whole = cut_off_of(".mp-tp-table :is(th, td, button), .mp-tp-lane, .mp-tp-verdict")
    for action, seen in after_each(page, actions, HEIGHT, WIDTH, BEYOND, whole):
        assert seen == calm, action
    assert cut_off_choices(page) == []
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(show, theme):
    page = show(TokensPerSecond(), theme=theme, color_scheme=theme, **CALM)
    assert barriers(page) == []
    page.get_by_label("Model").select_option("Llama 2 70B")
    assert barriers(page) == []


def test_the_bars_can_be_told_apart_in_forced_colors(show):
    page = show(TokensPerSecond(), forced_colors="active", **CALM)
    ground = "(nodes) => [...new Set(nodes.map((node) => getComputedStyle(node).background))].length"
    assert page.locator(".mp-tp-lanes .mp-tp-sample").evaluate_all(ground) == 4


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(TokensPerSecond(**MORE))
    page.get_by_role("button", name="int8").click()
    page.get_by_label("Card").select_option("L4")
    sent = json.loads(page.evaluate("() => JSON.stringify(model.sent.at(-1))"))
    fresh = TokensPerSecond(**MORE)
    fresh.set_state({name: sent[name] for name in fresh.book_state()})
    assert (fresh.weights, fresh.card) == ("int8", "L4")
    change = {"model": "LLaMA small", "card": CPU.name, "batch": 5, "context": 77}
    page.evaluate("(change) => void Object.assign(model.state, change)", change)
    page.evaluate("() => model.fire('change:model')")
    for name, value in change.items():
        setattr(fresh, name, value)
    assert verdict(page) == fresh.case.verdict
