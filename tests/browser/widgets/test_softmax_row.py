"""SoftmaxRow in a browser: its steps and sentences against Python's bit for bit, and what a reader sees and does."""

import json
import math
import re
from dataclasses import asdict, replace
from urllib.parse import parse_qs

import pytest

from tests.browser.widget_page import (
    DESK,
    PHONE,
    WIDTH,
    after_each,
    barriers,
    calls_of,
    cut_off_choices,
    cut_off_of,
    heights,
    small_targets,
    smallest_text,
)
from tests.widgets.test_softmax_row import every_cast, every_way, some_rows
from utils.widgets.softmax_row import SoftmaxRow
from utils.widgets.softmax_row.facts import MASKS, PRESETS, START, VALUES, ScoreRow, as_json, softmax_steps
from utils.widgets.softmax_row.goals import TASKS
from utils.widgets.softmax_row.words import row_number, said_number, sum_number, verdict

# JSON has neither inf nor NaN; a text of all digits reads back as the same double
HARNESS = """
const spelled = (value) => JSON.stringify(value, (_, x) => (typeof x === "number" ? (Object.is(x, -0) ? "0" : String(x)) : x));
window.calls = {
  computed: (rows) => rows.map((row) => {
    const { steps, verdict } = words.computedRow(row);
    return [spelled(steps), verdict];
  }),
  texts: (numbers) => numbers.map(Number).map((x) => [words.rowNumber(x), words.saidNumber(x), words.sumNumber(x)]),
  lacks: (pairs) => pairs.map(([task, row]) => {
    const [{ steps }, { steps: padding }] = [words.computedRow(row), words.computedRow(words.paddingOf(row))];
    return words.lackOf(task, row, steps, padding);
  }),
  narrow: (numbers) => numbers.map(Number).map((x) => words.narrowNumber(x)),
  bars: (pairs) => pairs.map(([x, whole]) => words.barLength(Number(x), whole)),
};
"""  # noqa: E501

call = calls_of("softmax_row/widget", HARNESS)
NAMES = {
    "stored": "stored",
    "after": "after",
    "cast": "cast",
    "largest": "largest",
    "shifted": "shifted",
    "exps": "exps",
    "exact_sum": "exactSum",
    "total": "total",
    "weights": "weights",
    "weight_sum": "weightSum",
    "masked_weight": "maskedWeight",
}


def made(row, **more):
    given = asdict(row) | more
    return SoftmaxRow(given.pop("scores"), given.pop("masked"), **given)


def spelled(value):
    """The numbers of Python as the harness spells them: whole ones without a point, in the digits of JavaScript."""
    if isinstance(value, tuple):
        return [spelled(x) for x in value]
    return None if value is None else float(value)


def read(value):
    """What the harness spelled, as floats."""
    if isinstance(value, list):
        return [read(x) for x in value]
    return None if value is None else float(value.replace("Infinity", "inf"))


def alike(ours, theirs):
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    return ours is theirs or ours == theirs or (ours is not None and math.isnan(ours) and math.isnan(theirs))


# Twins: the page's arithmetic and words against Python's


@pytest.mark.parametrize(
    "rows",
    [list(every_way()), list(every_cast()), list(some_rows(1500, seed=11))],
    ids=["every way", "every cast", "random"],
)
def test_every_step_and_every_sentence_is_that_of_python(call, rows):
    found = call("computed", [asdict(row) for row in rows])
    for row, (text, said) in zip(rows, found, strict=True):
        ours, theirs = json.loads(text), softmax_steps(row)
        for name, key in NAMES.items():
            assert alike(read(ours[key]), spelled(getattr(theirs, name))), (row, name)
        assert said == verdict(theirs), row


def test_numbers_are_written_as_in_python(call):
    numbers = [0.0, 8.0, -20.0, 11.09375, 0.0067443, 9.12e-4, 0.9996, 0.99974, -65504.0, 162754.79, 1000.5, 999999.5]
    numbers += [-3.3895313892515355e38, 1.234565e-7, 12.5, 1e6, 1e-3, math.inf, -math.inf, math.nan, 5e-324, 0.0625]
    texts = [str(x).replace("inf", "Infinity").replace("nan", "NaN") for x in numbers]
    assert call("texts", texts) == [[row_number(x), said_number(x), sum_number(x)] for x in numbers]


def test_a_phone_gets_at_most_six_characters(call):
    given = ["-65504", "0.006744", "9.12e-4", "-3.39e38", "6.86e-13", "-162816", "11.09375", "-Infinity", "NaN", "-1e9"]
    said = ["−65504", "0.0067", "9.1e−4", "−3e38", "7e−13", "−1.6e5", "11.09", "−inf", "NaN", "−1e9"]
    assert call("narrow", given) == said
    assert (
        max(
            map(
                len,
                call(
                    "narrow", [f"{sign}{x}e{n}" for sign in ("-", "") for x in (1.234, 9.876) for n in range(-45, 39)]
                ),
            )
        )
        <= 6
    )


def test_a_bar_is_a_logarithm_or_a_share(call):
    scores = ["0", "65504", "-65504", "-1e9", "Infinity", "-Infinity", "NaN"]
    assert call("bars", [[x, None] for x in scores]) == [0, 1, -1, -1, 1, -1, 0]
    [one, ten] = call("bars", [["1", None], ["10", None]])
    assert 0 < one < ten < 0.25
    assert call("bars", [["0.5", 2], ["0", 0], ["Infinity", 2]]) == [0.25, 0, 1]


# What a reader sees and does


SOLUTIONS = {
    "numbers/stability/mask-nan": [{"value": "-65425"}, {"value": "-65425.0"}],
    "numbers/stability/mask-leak": [{"scores": ("8", "10006", "3", "1")}],
    "numbers/stability/mask-two": [{"mask": "add_twice"}],
    "numbers/stability/mask-cast": [{"value": "-65504"}, {"value": "-1e4", "mask": "add"}],
}
WRONG = {
    "numbers/stability/mask-nan": {
        "In the row of padding, not every score is −inf after the mask is added.": {"value": "-65424"},
        "That works, but so does a number closer to 0.": {"value": "-65426"},
        "The value must be a whole number.": {"value": "-inf"},
        "The scores must stay as they were.": {"scores": ("8", "-20", "3", "1"), "value": "-1e9"},
        "Scores and softmax must stay float16.": {"format": "bfloat16", "value": "-3.4e38"},
        "The softmax must subtract the largest score first.": {"softmax": "naive"},
        "The mask must be added, and only once.": {"mask": "add_twice", "value": "-65504"},
    },
    "numbers/stability/mask-leak": {
        "The masked weight is 0.00664 now.": {"scores": ("8", "10003", "3", "1")},
        "Only the scores may change.": {"value": "-10"},
        "Mask at least one score, but not all.": {"masked": (True,) * 4},
    },
    "numbers/stability/mask-two": {
        "The row of padding still has finite weights.": {"mask": "put"},
        "Put back what the task began with: the value of the mask.": {"value": "-inf"},
        "Put back what the task began with: the softmax.": {"softmax": "naive"},
    },
    "numbers/stability/mask-cast": {
        "There is still a weight that is NaN.": {"value": "-1e9"},
        "The masked weight is 6.31e−5, not 0.": {"value": "-5/3", "mask": "put"},
        "Without a mask nothing is hidden.": {"mask": "none"},
        "The dtypes and the softmax must stay as they were.": {"softmax_format": "float32"},
        "Mask at least one score, but not all.": {"masked": (False,) * 4, "value": "-65504"},
    },
}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_a_task_is_solved_by_its_solutions_and_says_what_an_attempt_lacks(call, task):
    def lacks(changes):
        return call("lacks", [[task.as_json(), as_json(replace(task.start, **change))] for change in changes])

    assert lacks([{}])[0] is not None
    assert set(lacks(SOLUTIONS[task.id])) == {None}
    assert lacks(WRONG[task.id].values()) == list(WRONG[task.id])


def said(page):
    return page.locator(".mp-sr-verdict").first.inner_text()


def said_of_padding(page):
    return page.locator(".mp-sr-verdict").nth(1).inner_text()


def spoken(page):
    return page.locator(".mp-sr > [role=status]").inner_text()


def spoken_of(row):
    own = verdict(softmax_steps(row))
    return own if row.mask == "none" else f"{own} A row of padding: {verdict(softmax_steps(row.padding))}"


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def score(page, n):
    return page.get_by_role("textbox", name=f"Score {n}", exact=True)


def masked(page, n):
    return page.get_by_role("checkbox", name=f"Score {n} is masked")


def copies(page):
    return page.get_by_role("textbox", name="Copies of the row")


def cells(page, n, table=0):
    """The texts of a row of a table, from 1 on; 0 is the last, with the sums."""
    row = page.locator(".mp-sr-table").nth(table).locator("tfoot tr" if n == 0 else f"tbody tr:nth-child({n})")
    return [cell.strip() for cell in row.locator("td:visible").all_inner_texts()]


@pytest.mark.parametrize("label", PRESETS)
def test_a_preset_shows_its_row(show, label):
    page = show(SoftmaxRow())
    assert said(page) == verdict(softmax_steps(START))
    button(page, label).click()
    row, steps = PRESETS[label], softmax_steps(PRESETS[label])
    assert button(page, label).get_attribute("aria-pressed") == "true"
    assert page.locator(".mp-sr-presets [aria-pressed=true]").count() == 1
    assert said(page) == verdict(steps)
    assert spoken(page) == spoken_of(row)
    for i, text in enumerate(row.scores):
        assert score(page, i + 1).input_value() == text
        assert masked(page, i + 1).is_checked() == row.masked[i]
        assert cells(page, i + 1) == [row_number(column[i]) for column in columns_of(steps)]
    assert cells(page, 0)[-2:] == [sum_number(steps.total), sum_number(steps.weight_sum)]
    assert page.locator(".mp-sr-table").first.locator("tbody tr:visible").count() == len(row.scores)
    assert copies(page).input_value() == f"{row.copies:,}"
    assert page.locator(".mp-sr-table:visible").count() == (1 if row.mask == "none" else 2)
    if row.mask != "none":
        padding = softmax_steps(row.padding)
        assert said_of_padding(page) == verdict(padding)
        for i in range(len(row.scores)):
            assert cells(page, i + 1, table=1) == [row_number(column[i]) for column in columns_of(padding)]


def columns_of(steps):
    """What the table shows of some steps: the cast only where it may lose something."""
    narrowed = steps.row.inner != steps.row.fmt and steps.row.inner.name != "float32"
    cast, shifted = [steps.cast] if narrowed else [], [steps.shifted] if steps.shifted else []
    return [steps.stored, steps.after, *cast, *shifted, steps.exps, steps.weights]


def test_format_softmax_and_mask_are_chosen(show):
    page = show(SoftmaxRow())
    row = START
    for change, act in [
        ({"format": "bfloat16"}, lambda: button(page, "bfloat16").click()),
        ({"softmax": "naive"}, lambda: button(page, "as written").click()),
        ({"format": "float32"}, lambda: button(page, "float32").click()),
        *(
            ({"mask": mask}, lambda label=label: page.get_by_label("Way of masking").select_option(label=label))
            for mask, label in MASKS.items()
        ),
        *(
            ({"value": value}, lambda label=label: page.get_by_label("Value of the mask").select_option(label=label))
            for value, label in VALUES.items()
        ),
        *(
            ({"softmax_format": name}, lambda name=name: page.get_by_label("Dtype of the softmax").select_option(name))
            for name in ("float16", "float32", "bfloat16", "")
        ),
        ({"softmax": "stable"}, lambda: button(page, "minus the largest").click()),
    ]:
        act()
        row = replace(row, **change)
        assert said(page) == verdict(softmax_steps(row))
        assert spoken(page) == spoken_of(row)
    assert page.get_by_role("columnheader", name="minus the largest").first.is_visible()
    button(page, "as written").click()
    assert page.get_by_role("columnheader", name="minus the largest").count() == 0


def number_field(page):
    return page.get_by_role("textbox", name="Its number")


def test_a_value_of_the_readers_own_is_typed(show):
    page = show(SoftmaxRow())
    assert number_field(page).input_value() == "-65504"
    number_field(page).fill("-2^12")
    number_field(page).press("Enter")
    assert page.get_by_label("Value of the mask").input_value() == "own"
    assert said(page) == verdict(softmax_steps(replace(START, value="-2^12")))
    page.get_by_label("Value of the mask").select_option("-1e9")
    assert number_field(page).input_value() == "-1e9"
    page.get_by_label("Value of the mask").select_option("own")
    assert number_field(page).evaluate("(node) => node === document.activeElement && node.selectionEnd") == 4
    page.get_by_label("Value of the mask").select_option("lowest")
    button(page, "bfloat16").click()
    assert number_field(page).input_value() == "-3.3895313892515355e+38"
    page.get_by_label("Way of masking").select_option("none")
    assert number_field(page).is_disabled()


@pytest.mark.parametrize("typed", ["5", "0", "nan", "inf", "much", ""])
def test_a_value_that_is_no_mask_gets_one_sentence(show, typed):
    page = show(SoftmaxRow(value="-1e9"))
    before = said(page)
    number_field(page).fill(typed)
    number_field(page).press("Tab")
    message = page.locator(".mp-sr-message").inner_text()
    assert message.startswith("Value of the mask: ")
    assert message.endswith("Below it is still −1e9.")
    assert message in spoken(page)
    assert number_field(page).get_attribute("aria-invalid") == "true"
    assert said(page) == before
    assert page.locator("[data-stale]").count() == 1


def test_the_place_where_nan_begins_is_marked(show):
    page = show(made(PRESETS["add −1e9"]))
    own, other = page.locator(".mp-sr-table").all()
    assert own.locator("[data-origin]").count() == 0
    marked = other.locator("[data-origin]")
    assert marked.count() == 4
    assert set(marked.evaluate_all("(cells) => cells.map((cell) => cell.cellIndex)")) == {4}  # minus the largest


def told(page):
    return page.locator(".mp-goal-said").inner_text()


def test_the_tasks_are_solved_in_the_page_and_kept(show):
    page = show(SoftmaxRow())
    page.get_by_label("Value of the mask").select_option("-1e9")
    assert told(page) == "Press “Start the task”: it puts the row and the mask in place."  # not begun, not solved
    for task in TASKS:
        button(page, "Start the task").click()
        change, *_ = SOLUTIONS[task.id]
        if "scores" in change:
            score(page, 2).fill(change["scores"][1])
        if "mask" in change:
            page.get_by_label("Way of masking").select_option(change["mask"])
        if "value" in change:
            page.get_by_label("Its number").fill(change["value"])
        assert told(page).startswith("✓ Solved")
        assert told(page).endswith(task.says)
        assert json.loads(page.evaluate("(id) => localStorage[`mp-progress:${id}`]", task.id))["solved"] is True
        if task is not TASKS[-1]:
            button(page, "Next task").click()
    assert page.locator(".mp-goals h3").inner_text() == "Task 4 of 4, 4 solved"
    page.reload()
    page.wait_for_selector(".mp-goals")
    assert page.locator(".mp-goal-step").first.inner_text() == "✓"


def test_a_row_to_try_ends_the_task_and_what_was_said_of_it(show):
    page = show(SoftmaxRow())
    button(page, "Task 2").click()
    button(page, "Start the task").click()
    score(page, 2).fill("10006")
    assert told(page).startswith("✓ Solved")
    button(page, "two masks").click()
    assert told(page) == "Solved before. Do it again, if you like."


def test_an_attempt_is_told_and_spoken(show):
    page = show(SoftmaxRow())
    button(page, "Task 2").click()
    assert spoken(page).startswith("Task 2 of 4. Everything is float32, and −10000 is added.")
    button(page, "Start the task").click()
    score(page, 2).fill("10003")
    score(page, 2).press("Enter")
    assert told(page) == "The masked weight is 0.00664 now."
    assert spoken(page).startswith(told(page))


def test_a_link_does_not_tell_what_was_solved(show):
    take = "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"
    page = show(SoftmaxRow(), scripts=[take])
    button(page, "Start the task").click()
    page.get_by_label("Value of the mask").select_option("-1e9")
    page.locator(".mp-state-link").click()
    page.wait_for_function("() => 'copied' in window")
    assert parse_qs(page.evaluate("copied").partition("#softmax_row?")[2]) == {
        "scores": ['["-100","-130","-104","-101"]'],
        "value": ["-1e9"],
    }


def test_scores_are_typed_masked_added_and_removed(show):
    page = show(SoftmaxRow())
    score(page, 2).fill("1/3")
    assert said(page) == verdict(softmax_steps(replace(START, scores=("8", "1/3", "3", "1"))))
    masked(page, 2).uncheck()
    masked(page, 4).press("Space")
    row = replace(START, scores=("8", "1/3", "3", "1"), masked=(False, False, False, True))
    assert said(page) == verdict(softmax_steps(row))
    button(page, "add a score").click()
    score(page, 5).fill("12")
    score(page, 5).press("Enter")
    row = ScoreRow((*row.scores, "12"), (*row.masked, False))
    assert said(page) == verdict(softmax_steps(row))
    assert spoken(page) == spoken_of(row)
    button(page, "add a score").click()
    assert button(page, "add a score").get_attribute("aria-disabled") == "true"
    button(page, "add a score").click(force=True)  # which Playwright waits for otherwise
    assert page.get_by_role("textbox", name=re.compile("Score")).count() == 6
    for _ in range(7):
        button(page, "remove the last").click(force=True)
    assert button(page, "remove the last").get_attribute("aria-disabled") == "true"
    assert said(page) == verdict(softmax_steps(ScoreRow(("8",), (False,))))


def test_copies_are_typed_and_stepped_over_the_end_of_float16(show):
    page = show(made(PRESETS["a long row"], copies=65_518))
    assert said(page) == "Every number is finite. The weights add up to 0.99973."
    button(page, "One copy more").click()
    assert said(page) == "Every number is finite. The weights add up to 0.99974."
    copies(page).press("ArrowUp")
    assert copies(page).input_value() == "65,520"
    assert said(page) == verdict(softmax_steps(PRESETS["a long row"]))
    assert (
        page.locator(".mp-sr-table caption").first.inner_text()
        == "Your row in float16, repeated 65,520 times, step by step"
    )
    copies(page).press("ArrowDown")
    button(page, "One copy fewer").click()
    assert copies(page).input_value() == "65,518"
    copies(page).fill("200000")
    copies(page).press("Enter")
    button(page, "One copy more").click()
    assert copies(page).input_value() == "200,000"


@pytest.mark.parametrize("typed", ["0", "200,001", "2.5", "many", ""])
def test_a_wrong_number_of_copies_gets_one_sentence(show, typed):
    page = show(SoftmaxRow(copies=7))
    copies(page).fill(typed)
    copies(page).press("Tab")
    message = f"Copies of the row: “{typed}” is not a whole number from 1 to 200,000. Below it is still 7."
    assert page.locator(".mp-sr-message").inner_text() == message
    assert spoken(page).startswith(message)
    assert copies(page).get_attribute("aria-invalid") == "true"
    assert page.locator("[data-stale]").count() == 1
    button(page, "One copy more").click()
    assert copies(page).input_value() == "8"
    assert page.locator(".mp-sr-message:visible, [data-stale]").count() == 0


def test_a_wrong_score_gets_one_sentence_and_the_row_stays(show):
    page = show(SoftmaxRow())
    before = said(page)
    score(page, 2).fill("much")
    assert page.locator(".mp-sr-message:visible").count() == 0  # it may not be finished
    score(page, 2).press("Enter")
    message = page.locator(".mp-sr-message").inner_text()
    assert message.startswith("Score 2: “much” is not a number that can be read here.")
    assert message.endswith("Below it is still −20.")
    assert spoken(page).startswith(message)
    assert score(page, 2).get_attribute("aria-invalid") == "true"
    assert score(page, 1).get_attribute("aria-invalid") == "false"
    assert said(page) == before
    button(page, "float32").click()
    assert score(page, 2).input_value() == "much"
    assert page.locator("[data-stale]").count() == 1
    score(page, 2).fill("-20")
    assert page.locator(".mp-sr-message:visible, [data-stale]").count() == 0
    score(page, 4).fill("")
    score(page, 4).press("Tab")
    assert "Score 4: Type a number first." in page.locator(".mp-sr-message").inner_text()
    button(page, "remove the last").click()
    assert page.locator(".mp-sr-message:visible, [data-stale]").count() == 0


def test_inf_and_nan_are_named_and_coloured_apart(show):
    page = show(made(PRESETS["add −1e9"]))
    button(page, "12, 11, 10").click()
    kinds = page.locator(".mp-sr-table td[data-kind]:visible")
    named = dict(kinds.evaluate_all("(nodes) => nodes.map((node) => [node.dataset.kind, node.innerText.trim()])"))
    assert (named["inf"], named["nan"]) == ("inf", "NaN")
    button(page, "add −1e9").click()
    named = dict(kinds.evaluate_all("(nodes) => nodes.map((node) => [node.dataset.kind, node.innerText.trim()])"))
    assert named["minus-inf"] == "−inf"
    colours = page.evaluate("""() => ["inf", "minus-inf", "nan", "finite"].map((kind) => {
      const cell = document.querySelector(".mp-sr-table td");
      cell.dataset.kind = kind;
      return getComputedStyle(cell).backgroundColor;
    })""")
    assert len(set(colours)) == 4


def test_the_bars_are_as_long_as_their_numbers(show):
    page = show(made(PRESETS["12, 11, 10"], softmax="stable"))
    widths = (
        page.locator(".mp-sr-table")
        .first.locator("tbody tr:nth-child(2) .mp-sr-fill")
        .evaluate_all("(nodes) => nodes.map((node) => parseFloat(node.style.width))")
    )
    widths = [width for width in widths if not math.isnan(width)]  # the column of the cast is empty
    steps = softmax_steps(replace(PRESETS["12, 11, 10"], softmax="stable"))
    whole = math.log1p(65504)
    assert widths == [
        pytest.approx(length, abs=0.06)
        for length in (
            50 * math.log1p(11) / whole,
            50 * math.log1p(11) / whole,
            50 * math.log1p(1) / whole,
            100 * steps.exps[1],
            100 * steps.weights[1],
        )
    ]
    below = page.locator(".mp-sr-table").first.locator("tbody tr:nth-child(2) [data-below]")
    assert below.count() == 1


# How it looks


def test_on_a_phone_numbers_keep_apart_and_a_sum_shows_that_it_is_not_1(show):
    """8, −inf, 3, 1 in float16: −7 beside 9.1e−4, and a sum of 0.99978."""
    page = show(SoftmaxRow(value="-1e9"), viewport=PHONE)
    page.add_style_tag(content="body.bd div.output table { table-layout: auto }")  # as strong as the theme's
    page.evaluate("""() => {
      document.body.classList.add("bd");
      document.querySelector(".mp-sr-results").classList.add("output");
    }""")
    table = page.locator(".mp-sr-table").first
    gaps = table.evaluate("""(table) => [...table.rows].flatMap((row) => {
      const boxes = [...row.cells].filter((cell) => cell.offsetWidth).map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell.querySelector(".mp-sr-narrow") ?? cell);
        return range.getBoundingClientRect();
      });
      return boxes.slice(1).map((box, i) => box.width && boxes[i].width ? box.left - boxes[i].right : 99);
    })""")
    assert min(gaps) >= 5
    assert table.locator("tfoot .mp-sr-narrow").last.inner_text() == "0.9998"


CASES_TO_LOOK_AT = {
    "start": SoftmaxRow,
    "six": lambda: SoftmaxRow([-65504, 1e-7, 65504, -1234.5, 0.006744, 162816], [True] * 6, format="bfloat16"),
    "tiny": lambda: SoftmaxRow(["-1e38", "11.09375", "3e38", "-20", "0", "1"], softmax="naive", format="float32"),
    "long": lambda: made(PRESETS["a long row"]),
}


@pytest.mark.parametrize("case", CASES_TO_LOOK_AT)
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_overflows_is_too_small_or_moves(show, viewport, case):
    page = show(CASES_TO_LOOK_AT[case](), viewport=viewport)
    top = "() => document.querySelector('.mp-sr-table').getBoundingClientRect().top + scrollY"
    before = page.evaluate(top)
    actions = []
    for mask in MASKS:
        actions += [("select", "Way of masking", mask)]
        actions += [("button", name) for name in ("float16", "bfloat16", "as written", "float32", "minus the largest")]
    whole = cut_off_of(".mp-sr-table, .mp-sr-table :is(td, td > span), .mp-sr-buttons button")
    for action, seen in after_each(page, actions, top, WIDTH, whole):
        assert seen == [before, viewport["width"], []], action
    assert cut_off_choices(page) == []
    assert small_targets(page) == []
    assert smallest_text(page) >= 12.4


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_keeps_its_height_free(show, viewport):
    kept, taken = heights(show(SoftmaxRow(), viewport=viewport))
    assert abs(kept - taken) < 2


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_no_barrier(show, theme, viewport):
    page = show(SoftmaxRow(), theme=theme, color_scheme=theme, viewport=viewport)
    for label in ("12, 11, 10", "two masks"):
        button(page, label).click()
        assert barriers(page) == []
    score(page, 1).fill("much")
    score(page, 1).press("Enter")
    assert barriers(page) == []


def test_on_paper_the_bars_are_there_and_in_forced_colors_too(show):
    page = show(made(PRESETS["12, 11, 10"]), forced_colors="active")
    ground = "(node) => getComputedStyle(node).backgroundColor"
    [bar, fill] = [
        page.locator(f".mp-sr-table tbody tr:nth-child(2) {name}").first for name in (".mp-sr-bar", ".mp-sr-fill")
    ]
    assert bar.evaluate(ground) != fill.evaluate(ground)
    page.emulate_media(media="print", forced_colors="none")
    assert bar.evaluate(ground) != fill.evaluate(ground)
    assert bar.evaluate("(node) => node.offsetHeight") > 4


def test_two_widgets_on_one_page_are_independent(show):
    page = show(SoftmaxRow(), SoftmaxRow(copies=3))
    first, second = page.locator(".mp-softmax-row").all()
    first.get_by_role("textbox", name="Score 1", exact=True).fill("5")
    assert second.get_by_role("textbox", name="Score 1", exact=True).input_value() == "8"


def test_a_kernel_gets_each_change_and_the_page_follows_the_kernel(hosted):
    page = hosted(SoftmaxRow())
    score(page, 1).fill("1/3")
    masked(page, 3).check()
    button(page, "bfloat16").click()
    copies(page).fill("12")
    copies(page).press("Enter")
    sent = json.loads(page.evaluate("() => JSON.stringify(model.sent.at(-1))"))
    fresh = SoftmaxRow()
    fresh.set_state({name: sent[name] for name in fresh.book_state()})
    assert fresh.row == ScoreRow(("1/3", "-20", "3", "1"), (False, True, True, False), "bfloat16", copies=12)
    assert said(page) == fresh.verdict
    page.evaluate("() => { model.state.scores = ['70000']; model.fire('change:scores'); }")
    assert said(page) == "Every number is finite. The weights add up to 1.002."  # 12 copies
    assert score(page, 1).input_value() == "70000"
