"""Quiz in a real browser: choices, predictions, numbers, tasks, the keyboard, a phone, progress, no barriers."""

import math
import re
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.book_questions import book_questions
from tests.browser.widget_page import source_of
from utils.checks.questions import CORRECT, ROUNDED, Choice, Number, Option, Task, judge, number, placeholder, to_html
from utils.widgets.quiz import Quiz

PHONE = {"width": 390, "height": 844}
OPTIONS = (
    Option("It is cut off, so it goes down.", "A cut goes toward zero; this is the nearest."),
    Option("It goes to the even neighbour.", "The tie goes to the `even` one.", right=True),
    Option("It goes up, as at school.", "At school a tie goes up, here to even."),
)
TIE = Choice("test/tie", "Where does `2049` go?", OPTIONS)
GUESS = Choice("test/guess", "Where will `2049` go?", OPTIONS, predict=True)
HALF = Choice("test/half", "What share?", (Option("a half", "Yes.", right=True), Option("all", "No.")))
BUG = Choice(
    "test/bug",
    "Which line is wrong?\n```\nif a < b:\n    return '<b>'\n```\nLook twice.",
    (Option("```\nif a < b:\n```", "Fine."), Option("the `return`", "It is.", right=True)),
)
LARGEST = Number(
    "test/largest",
    "The largest E4M3:",
    "448",
    "0 1111 110 is worth `448`.",
    {"480": "That code is NaN.", "0x7E": "That is the code."},
    "Not that.",
    hints=("Which code is NaN?", "It is 0 1111 111.", "Take the one below."),
    unit="bytes",
)
CODE = Number("test/code", "The code:", "0x2A", "Yes.", {"0xAA": "The sign."}, "Not that code.")
TASK = Task("test/decode16", "`decode16` is right.", line="→ Not yet. Code `0x0000` gives 1.")
EVERY = (TIE, GUESS, HALF, BUG, LARGEST, CODE, TASK)


@pytest.fixture
def show(show):
    """Open a page with one quiz for each argument, a question or the HTML of a place."""

    def open_page(*quizzes, **options):
        page = show(*(quiz if isinstance(quiz, str) else Quiz(quiz) for quiz in quizzes), **options)
        open_page.watched = show.watched
        return page

    return open_page


def option(page, n):
    return page.get_by_role("radio").nth(n)


def said(page):
    """What stands in the page in answer to the reader."""
    return page.locator(".mp-quiz-said:visible").all_inner_texts()


def live(page):
    return page.locator("[role=status]").inner_text()


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def answer(page, text, *, n=0):
    field = page.get_by_label("Your answer").nth(n)
    field.fill(text)
    field.press("Enter")


def reload(page):
    page.reload()
    page.wait_for_selector("[data-mp-ready=true]")


def solved(page, name):
    return page.evaluate(
        "(key) => JSON.parse(localStorage.getItem(key) ?? '{}').solved === true", f"mp-progress:{name}"
    )


def test_a_choice_answers_at_once_and_keeps_what_it_said(show):
    page = show(TIE)
    assert said(page) == []
    option(page, 2).click()
    assert said(page) == ["Not yet. At school a tie goes up, here to even."]
    assert not solved(page, "test/tie")
    option(page, 1).click()
    assert said(page) == ["Correct. The tie goes to the even one.", "Not yet. At school a tie goes up, here to even."]
    assert live(page) == "Correct. The tie goes to the even one."
    assert [option(page, n).get_attribute("aria-checked") for n in range(3)] == ["false", "true", "false"]
    assert [option(page, n).get_attribute("data-tone") for n in range(3)] == ["", "good", "bad"]
    assert solved(page, "test/tie")


def test_short_answers_stand_side_by_side_and_are_named_in_what_is_said(show):
    page = show(HALF)
    assert option(page, 0).bounding_box()["y"] == option(page, 1).bounding_box()["y"]
    option(page, 1).click()
    assert said(page) == ["Not yet. all: No."]


def test_a_prediction_is_noted_and_compared_later(show):
    page = show(GUESS)
    assert page.locator("legend").inner_text() == "Predict first. Where will 2049 go?"
    button(page, "Compare").click(force=True)  # it is not ready, and says so
    assert live(page) == "Press one of the answers first."
    option(page, 0).click()
    assert live(page) == "Noted. Now look below, then compare."
    assert page.locator(".mp-quiz-note").inner_text() == live(page)
    option(page, 2).click()  # a second thought
    assert said(page) == []
    assert [option(page, n).get_attribute("data-tone") for n in range(3)] == ["", "", ""]
    assert not solved(page, "test/guess")
    button(page, "Compare").click()
    assert said(page) == [
        "It is this one. The tie goes to the even one.",
        "You predicted this. At school a tie goes up, here to even.",
    ]
    assert option(page, 2).evaluate("node => node === document.activeElement")
    assert solved(page, "test/guess")  # a wrong prediction is a done one
    option(page, 0).click()  # and the third may still be asked
    assert said(page)[0] == "Not this one. A cut goes toward zero; this is the nearest."
    assert option(page, 2).get_attribute("aria-checked") == "true"


def test_a_right_prediction_is_told_so(show):
    page = show(GUESS)
    option(page, 1).click()
    button(page, "Compare").click()
    assert said(page) == ["As you predicted. The tie goes to the even one."]


def test_a_choice_works_with_the_keyboard_alone(show):
    page = show(GUESS)
    focused = "() => document.activeElement.textContent"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == OPTIONS[0].text
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == OPTIONS[2].text
    page.keyboard.press("ArrowDown")  # round to the first
    assert page.evaluate(focused) == OPTIONS[0].text
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    page.keyboard.press("End")
    assert page.evaluate(focused) == OPTIONS[2].text
    assert [option(page, n).get_attribute("aria-checked") for n in range(3)] == [
        "false"
    ] * 3  # to walk is not to choose
    page.keyboard.press("Space")
    assert option(page, 2).get_attribute("aria-checked") == "true"
    page.keyboard.press("Tab")  # the answers are one stop
    assert page.evaluate(focused) == "Compare"
    page.keyboard.press("Enter")
    assert len(said(page)) == 2
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "start again"


def test_a_number_is_judged_with_the_words_that_fit(show):
    page = show(LARGEST)
    answer(page, "480")
    assert said(page) == ["→ Not yet. That code is NaN."]
    answer(page, "0x7E")
    assert said(page) == ["→ Not yet. That is the code."]
    answer(page, "7")
    assert said(page) == ["→ Not yet. Not that."]
    page.get_by_label("Your answer").fill("2^8 * 1.75")
    button(page, "Check").click()
    assert said(page) == ["✓ Correct. 0 1111 110 is worth 448."]
    assert live(page) == "✓ Correct. 0 1111 110 is worth 448."
    assert solved(page, "test/largest")
    assert page.locator(".mp-quiz-field").inner_text().split() == ["Your", "answer", "bytes"]


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "Type a number first."), ("abc", "“abc” is not a number"), ("1,5", "a decimal point"), ("1/0", "by zero")],
)
def test_what_is_no_number_gets_one_sentence_and_stays(show, text, says):
    page = show(LARGEST)
    answer(page, text)
    assert says in said(page)[0]
    field = page.get_by_label("Your answer")
    assert field.get_attribute("aria-invalid") == "true"
    assert field.input_value() == text
    field.press_sequentially("4")
    assert field.get_attribute("aria-invalid") is None


@pytest.mark.parametrize(
    "text", ["0x2A", "0x2a", "42", "0b101010", "0 0101 010", "00101010", '"0x2A"', "'0b101010'", "0b0 0101 010"]
)
def test_a_code_may_be_typed_as_bits(show, text):
    page = show(CODE)
    answer(page, text)
    assert said(page) == ["✓ Correct. Yes."]


@pytest.mark.parametrize("text", ["448 bytes", "448bytes", " 0x1C0 bytes "])
def test_the_unit_may_be_typed_as_well(show, text):
    page = show(LARGEST)
    answer(page, text)
    assert said(page)[0].startswith("✓ Correct.")
    answer(page, "448 GB")
    assert page.get_by_label("Your answer").get_attribute("aria-invalid") == "true"


def test_hints_come_one_at_a_time_and_the_answer_after_a_try(show):
    page = show(LARGEST)
    for left in (3, 2, 1):
        button(page, f"Hint ({left} left)").click()
    hints = ["Hint 1 of 3: Which code is NaN?", "Hint 2 of 3: It is 0 1111 111.", "Hint 3 of 3: Take the one below."]
    assert page.locator(".mp-quiz-hints li").all_inner_texts() == hints
    assert live(page) == hints[2]
    assert not button(page, "Show the answer").is_visible()
    answer(page, "abc")  # no try
    assert not button(page, "Show the answer").is_visible()
    answer(page, "1")
    button(page, "Show the answer").click()
    assert said(page) == ["The answer is 448 bytes. 0 1111 110 is worth 448."]
    assert not solved(page, "test/largest")
    answer(page, "448")
    assert solved(page, "test/largest")
    assert not button(page, "Show the answer").is_visible()


def test_a_try_alone_does_not_give_the_answer_away(show):
    page = show(LARGEST)
    answer(page, "1")
    answer(page, "2")
    button(page, "Hint (3 left)").click()
    assert not button(page, "Show the answer").is_visible()
    button(page, "Hint (2 left)").click()
    button(page, "Hint (1 left)").click()
    assert button(page, "Show the answer").is_visible()


def test_without_hints_the_answer_comes_after_two_tries(show):
    page = show(CODE)
    assert page.get_by_role("button", name="Hint").count() == 0
    answer(page, "1")
    assert not button(page, "Show the answer").is_visible()
    answer(page, "2")
    button(page, "Show the answer").click()
    assert said(page) == ["The answer is 0x2A. Yes."]


@pytest.mark.parametrize("typed", ["2A", "2a", "aa"])
def test_a_code_without_its_prefix_is_told_so(show, typed):
    page = show(CODE)
    answer(page, typed)
    assert said(page) == [f"Write 0x before a hexadecimal code: 0x{typed.upper()}."]
    answer(page, f"0x{typed}")
    assert said(page)[0].startswith("✓ Correct." if typed != "aa" else "→ Not yet. The sign.")


def test_what_is_no_code_is_told_how_one_is_written(show):
    page = show(CODE)
    answer(page, "two a")
    assert said(page) == ["That cannot be read as a code. Write it like 0x1C, 0b11100 or 0 0011 100."]


def test_a_number_may_stand_in_quotation_marks(show):
    page = show(LARGEST)
    answer(page, '"2**8 * 1.75"')
    assert said(page)[0].startswith("✓ Correct.")


def test_bits_in_the_place_of_a_value_are_told_so(show):
    page = show(LARGEST)
    answer(page, "0 1111 110")
    assert said(page) == ["Those are the bits of a code. The question asks for its value, a number."]
    answer(page, "110")  # a number
    assert said(page) == ["→ Not yet. Not that."]


def test_a_task_shows_what_python_said_and_keeps_its_tick(show):
    page = show(TASK)
    assert said(page) == ["→ Not yet. Code 0x0000 gives 1."]
    box = page.get_by_role("checkbox", name="decode16 is right.")
    box.check()
    assert solved(page, "test/decode16")
    reload(page)
    assert box.is_checked()
    box.uncheck()
    assert not solved(page, "test/decode16")


def test_the_hint_of_a_task_is_folded(show):
    page = show(replace(TASK, hint="The sign `s` is lost."))
    hint = page.locator(".mp-quiz-hint")
    assert hint.get_attribute("open") is None
    page.locator(".mp-quiz-hint > summary").press("Enter")
    assert hint.inner_text().split("\n")[-1] == "The sign s is lost."
    assert hint.get_attribute("open") == ""
    assert show(TASK).locator(".mp-quiz-hint").count() == 0


def test_what_was_done_is_there_on_the_next_visit_and_can_be_done_again(show):
    page = show(TIE, GUESS, LARGEST)
    option(page, 0).click()
    option(page, 1).click()
    option(page, 5).click()  # the prediction, not yet compared
    button(page, "Hint (3 left)").click()
    reload(page)
    assert said(page) == [
        "Not yet. A cut goes toward zero; this is the nearest.",
        "Correct. The tie goes to the even one.",
    ]
    assert option(page, 5).get_attribute("aria-checked") == "true"
    assert page.locator(".mp-quiz-hints li:visible").count() == 1
    button(page, "Compare").click()
    answer(page, "448")
    before = said(page)
    reload(page)
    assert said(page) == before
    assert page.get_by_label("Your answer").input_value() == "448"
    assert button(page, "start again").count() == 3
    for _ in range(3):
        button(page, "start again").first.click()
    assert said(page) == []
    assert page.get_by_label("Your answer").input_value() == ""
    assert page.locator("[role=radio][aria-checked=true]").count() == 0
    assert page.evaluate("localStorage.length") == 0
    reload(page)
    assert said(page) == []


@pytest.mark.parametrize(
    "kept",
    [
        "not json",
        "null",
        '{"solved": true}',
        '{"solved": true, "chosen": 9, "shown": [7, "a"], "text": 480, "hints": 99}',
    ],
)
def test_progress_of_another_edition_does_no_harm(show, kept):
    page = show(TIE, GUESS, LARGEST, TASK)
    for question in (TIE, GUESS, LARGEST, TASK):
        page.evaluate("([key, value]) => localStorage.setItem(key, value)", [f"mp-progress:{question.id}", kept])
    reload(page)
    assert said(page) == ["→ Not yet. Code 0x0000 gives 1."]
    answer(page, "448")
    option(page, 1).click()
    assert "✓ Correct. 0 1111 110 is worth 448." in said(page)
    assert "Correct. The tie goes to the even one." in said(page)


def test_code_is_shown_as_code_and_nothing_as_markup(show):
    page = show(BUG)
    assert page.locator("legend .mp-quiz-lines").inner_text() == "if a < b:\n    return '<b>'"
    assert page.locator("legend b").count() == 0
    assert option(page, 0).inner_text().strip() == "if a < b:"
    assert option(page, 1).locator("code").inner_text() == "return"


def test_the_place_of_a_paper_exercise_becomes_its_questions(show):
    page = show(placeholder([LARGEST, CODE], fallback="<p>○ Not attempted.</p>"))
    assert page.get_by_text("Not attempted").count() == 0
    assert page.locator("[role=status]").count() == 1
    answer(page, "480")
    answer(page, "42", n=1)
    assert said(page) == ["→ Not yet. That code is NaN.", "✓ Correct. Yes."]


def test_without_javascript_the_questions_and_their_answers_are_there(show):
    page = show(*EVERY, java_script_enabled=False)
    text = page.locator("main").inner_text()
    for line in ("Where does 2049 go?", "It goes to the even neighbour.", "The largest E4M3:", "decode16 is right."):
        assert line in text
    assert text.count("The page needs JavaScript to check an answer.") == 2
    page.locator("summary").first.click()
    assert page.get_by_text("The tie goes to the even one.").first.is_visible()


@pytest.mark.parametrize("width", [360, 390, 760, 1280])
def test_everything_fits_and_can_be_hit(show, width):
    page = show(*EVERY, viewport={"width": width, "height": 900})
    option(page, 0).click()
    answer(page, "abc")
    answer(page, "1", n=1)
    answer(page, "2", n=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for target in page.locator("button:visible, input:visible").all():
        box = target.bounding_box()
        assert min(box["width"], box["height"]) >= 24, target.evaluate("node => node.outerHTML")
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    for size in page.eval_on_selector_all(
        ".mp-quiz *", "nodes => nodes.map(node => parseFloat(getComputedStyle(node).fontSize))"
    ):
        assert size >= 12.8  # 0.8rem


def test_a_choice_and_a_number_are_compact(show):
    page = show(TIE, GUESS, HALF, LARGEST)
    heights = [quiz.bounding_box()["height"] / 16 for quiz in page.locator(".mp-quiz").all()]
    assert all(height < most for height, most in zip(heights, (12, 14, 9, 7), strict=True)), heights


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("done", [False, True], ids=["fresh", "done"])
def test_axe_finds_nothing(show, theme, done):
    page = show(*EVERY, theme=theme)
    if done:
        for n in (0, 1, 4, 7, 8):
            option(page, n).click()
        button(page, "Compare").click()
        button(page, "Hint (3 left)").click()
        answer(page, "480")
        answer(page, "abc", n=1)
    # preload: axe would fetch the style sheets again, which a browser refuses for file://
    found = Axe().run(page, options={"preload": False}).response["violations"]
    assert [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]] == []


def test_a_widget_leaves_nothing_behind(show):
    page = show(TIE)
    left = page.evaluate(
        """async (source) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          const { default: widget } = await import(url);
          const heard = [];
          const on = (name, call) => heard.push(call);
          const off = (name, call) => heard.splice(heard.indexOf(call), 1);
          const questions = JSON.parse(document.querySelector("[data-mp-state]").dataset.mpState).questions;
          const el = document.createElement("div");
          const clean = widget.render({ model: { get: () => questions, on, off }, el });
          const during = heard.length;
          clean();
          el.querySelector("[role=radio]").click();
          return [during, heard.length, el.querySelectorAll("[aria-checked=true]").length];
        }""",
        Quiz.esm_source(),
    )
    assert left == [1, 0, 0]


@pytest.fixture(scope="module")
def module(browser):
    """Call a function of the widget's own ES module: module("judgeNumber", question, 2.5)."""
    page = browser.new_page()
    page.evaluate(
        """async (source) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          window.quiz = await import(url);
          window.judgeAll = (question, texts) => texts.map((text) => {
            const value = quiz.readQuizNumber(text, question);
            return { value: Number.isNaN(value) ? "nan" : String(value), ...quiz.judgeNumber(question, value) };
          });
        }""",
        source_of("quiz/widget"),
    )
    yield lambda call, *args: page.evaluate(f"(args) => {call}(...args)", list(args))
    page.close()


def answers(question):
    """Answers that are foreseen, and others near and far, as texts."""
    wanted, tolerance = number(question.answer), question.tolerance
    near = [
        wanted * (1 + sign * step) for sign in (-1, 1) for step in (tolerance * 0.99, tolerance * 1.01, 0.001, 0.004)
    ]
    more = [-wanted, 2 * wanted, wanted + 1, wanted - 1, round(wanted, -1) if math.isfinite(wanted) else 0, 0, 1e300]
    more += [math.nextafter(wanted, math.inf), float(f"{wanted:.2e}"), math.inf, -math.inf, math.nan]
    ends = [end for text in question.within for end in text.split(" to ")]
    more += [number(end) + step for end in ends for step in (-0.01, 0.01)]
    return [question.answer, *question.wrong, *ends, *(repr(value) for value in near + more)]


@pytest.mark.parametrize("question", [q for q in book_questions() if isinstance(q, Number)], ids=lambda q: q.id)
def test_the_page_judges_as_python_does(module, question):
    texts = answers(question)
    judged = module("judgeAll", question.as_json(), texts)
    for text, got in zip(texts, judged, strict=True):
        value = number(text) if "e+" not in text else float(text)
        expected = judge(question, value)
        assert (got["right"], got["says"]) == (expected.status == CORRECT, expected.message), text
        assert got["value"] == "nan" if math.isnan(value) else float(got["value"].replace("Infinity", "inf")) == value


@pytest.mark.parametrize(
    ("answer_text", "near"),
    [
        ("448", 450),
        ("448", 449),
        ("65504", 65500),
        ("2^-24", 5.96e-8),
        ("2^-24", 6.1e-8),
        ("-448", -450),
        ("0x1C0", 450),
    ],
)
def test_the_page_tells_a_rounded_answer_as_python_does(module, answer_text, near):
    question = Number("test/near", "?", answer_text, "Yes.", {}, "No.")
    expected = judge(question, near).message
    assert module("quiz.judgeNumber", question.as_json(), near)["says"] == expected
    assert expected in ("No.", ROUNDED)


def test_of_several_foreseen_answers_the_nearest_counts(module):
    question = Number("test/both", "?", "9", "Yes.", {"2": "Two.", "1.8": "Less.", "1.9": "Mid."}, "No.", tolerance=0.1)
    for value in (1.7, 1.86, 1.94, 1.96, 2.1):
        assert module("quiz.judgeNumber", question.as_json(), value)["says"] == judge(question, value).message


MARKED = """((texts) => texts.map((text) => {
  const h = (tag, { class: name }, ...children) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    node.append(...children);
    return node;
  };
  return h("p", {}, ...quiz.textNodes(h, text)).innerHTML;
}))"""


def test_the_page_marks_code_as_python_does(module):
    texts = ["plain", "a `b` c", "`a`", "Which?\n```\nx = 1\n  y < 2\n```\nAnd `z`?", "two\nlines", "1 < 2 & 3"]
    texts += ["2^-24, (a)**8, 2^k, 2^kb, 2^kσ, σ^2, x ^ 2, 2^٣"]
    shown = [text.replace("</span><span", "</span>\n<span") for text in module(MARKED, texts)]
    assert [re.sub("</?span[^>]*>", "", text) for text in shown] == [to_html(text) for text in texts]


def test_a_broken_line_of_code_goes_on_further_in(module):
    [lines, alone] = module(MARKED, ["```\nif x:\n    y\n```", "```\n    y = 1\n```"])
    assert re.findall("--mp-inset: (\\w+); --mp-outdent: ([-\\w]+)", lines) == [("2ch", "-2ch"), ("6ch", "-6ch")]
    assert "--mp-inset: 6ch; --mp-outdent: -2ch" in alone
    assert ">y = 1<" in alone


def test_powers_are_set_as_powers_and_code_is_not(module):
    texts = ["2^-24 to 2^16, 2^k", "`2^16`", "x ^ 2, e^-inf", "2**-48 to 2**8", "`2**8`, f(**k)"]
    expected = ["<p>2⁻²⁴ to 2¹⁶, 2ᵏ</p>", "<p><code>2^16</code></p>", "<p>x ^ 2, e^-inf</p>"]
    expected += ["<p>2⁻⁴⁸ to 2⁸</p>", "<p><code>2**8</code>, f(**k)</p>"]
    assert [f"<p>{text}</p>" for text in module(MARKED, texts)] == expected
