"""Questions: what is judged right, which hint a wrong answer gets, and what is refused when a question is written."""

import math

import pytest

from tests.page_states import states_in
from utils.checks.questions import (
    CORRECT,
    IMPRECISE,
    NOT_YET,
    ROUNDED,
    Choice,
    Number,
    Option,
    Task,
    judge,
    number,
    placeholder,
    to_html,
    wrong_line,
)

LARGEST = Number(
    id="test/largest",
    text="The largest E4M3:",
    answer="448",
    says="Yes.",
    wrong={"480": "NaN has that code.", "-448": "The sign."},
    otherwise="No.",
    hints=("Think.",),
)
SMALLEST = Number("test/smallest", "The smallest float16:", "2^-24", "Yes.", {"2^-14": "Normal."}, "No.")
SHARE = Number("test/share", "A third of it:", "33.3", "Yes.", {"0.333": "A share."}, "No.", tolerance=0.02, unit="%")
BOTH = Number("test/both", "?", "9", "Yes.", {"2": "Two.", "1.8": "Less.", "1.9": "Between."}, "No.", tolerance=0.1)
INTENSITY = Number("test/intensity", "?", "15.87", "Yes.", {}, "No.", tolerance=0.002)
CODE = Number("test/code", "The code:", "0x3E40", "Yes.", {"0xBE40": "The sign."}, "No.")
TIE = Choice("test/tie", "To which?", (Option("up", "No."), Option("to even", "Yes.", right=True)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2049", 2049.0),
        ("-6", -6.0),
        ("2^-24", 2.0**-24),
        ("-2^-24", -(2.0**-24)),
        ("2**-133", 2.0**-133),
        ("6 * 2^-16", 6 * 2.0**-16),
        ("1/3", 1 / 3),
        ("2/3/4", 2 / 12),
        ("6.5e4", 65000.0),
        ("1e-3", 1e-3),
        (".5", 0.5),
        ("0x2A", 42.0),
        ("0b101010", 42.0),
        ("10^-5", 1e-5),
        ("0.1*3", 0.3),  # rounded once, from the exact product
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("1e400", math.inf),
        ("1 + 2^-11", 1 + 2.0**-11),
    ],
)
def test_a_number_is_read_exactly_and_rounded_once(text, value):
    assert number(text) == value
    assert math.copysign(1, number(text)) == math.copysign(1, value)


def test_nan_is_a_number_of_a_question():
    assert math.isnan(number("nan"))


@pytest.mark.parametrize("text", ["", "abc", "2^", "2//3", "*2", "1,5", "0x", "2^0.5", "(1", "1e"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="is not a number of a question"):
        number(text)


@pytest.mark.parametrize(
    ("question", "answer", "status", "message"),
    [
        (LARGEST, 448, CORRECT, "Yes."),
        (LARGEST, 480, NOT_YET, "NaN has that code."),
        (LARGEST, -448, NOT_YET, "The sign."),
        (LARGEST, 1, NOT_YET, "No."),
        (LARGEST, math.inf, NOT_YET, "No."),
        (LARGEST, math.nan, NOT_YET, "No."),
        (LARGEST, 450, NOT_YET, ROUNDED),
        (LARGEST, 449, NOT_YET, "No."),  # a whole number is not rounded to another one beside it
        (LARGEST, 448.5, NOT_YET, "No."),
        (SMALLEST, 5.96e-8, NOT_YET, ROUNDED),
        (SMALLEST, 6.1e-8, NOT_YET, "No."),
        (SMALLEST, 2**-14, NOT_YET, "Normal."),
        (SHARE, 33.3, CORRECT, "Yes."),
        (SHARE, 33, CORRECT, "Yes."),
        (SHARE, 0.33, NOT_YET, "A share."),
        (SHARE, 32, NOT_YET, "No."),
        (BOTH, 1.94, NOT_YET, "Between."),  # within a tenth of all three
        (BOTH, 1.96, NOT_YET, "Two."),
        (CODE, 0x3E40, CORRECT, "Yes."),
        (INTENSITY, 15.87, CORRECT, "Yes."),
        (INTENSITY, 15.8, NOT_YET, IMPRECISE),  # no power of two, and three digits are enough
        (INTENSITY, 15, NOT_YET, "No."),
        (CODE, 15930, NOT_YET, "No."),  # 0x3E3A; a code is never rounded
        (CODE, 0xBE40, NOT_YET, "The sign."),
        (TIE, 0, NOT_YET, "No."),
        (TIE, 1, CORRECT, "Yes."),
    ],
)
def test_judge_says_what_belongs_to_the_answer(question, answer, status, message):
    assert judge(question, answer) == (status, message)


def test_infinity_and_nan_can_be_answers():
    assert judge(Number("test/inf", "?", "inf", "Yes.", {"-inf": "The sign."}, "No."), math.inf).status == CORRECT
    question = Number("test/nan", "?", "nan", "Yes.", {"inf": "Not that."}, "No.")
    assert judge(question, math.nan).status == CORRECT
    assert judge(question, math.inf).message == "Not that."
    assert judge(question, 1.0).message == "No."


def a_number(**changes):
    """Write a question that is right but for the changes."""
    given = {"id": "test/n", "text": "?", "answer": "8", "says": "Yes.", "wrong": {"4": "Half."}, "otherwise": "No."}
    return Number(**given | changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"id": "n"}, "is not like numbers/rounding/first-gap"),
        ({"id": "test/Big"}, "is not like"),
        ({"text": " "}, "without a word"),
        ({"says": ""}, "without a word"),
        ({"otherwise": ""}, "without a word"),
        ({"hints": ("",)}, "without a word"),
        ({"wrong": {"4": ""}}, "without a word"),
        ({"wrong": {"8": "Eight."}}, "the wrong answer 8 counts as right"),
        ({"wrong": {"7.9": "Near."}, "tolerance": 0.05}, "the wrong answer 7.9 counts as right"),
        ({"wrong": {"4": "Half.", "2^2": "A power."}}, r"2\^2 counts as another one"),
        ({"within": {"3 to 1": "Small."}}, "is no range"),
        ({"within": {"one to 3": "Small."}}, "is not a number of a question"),
        ({"within": {"1 to 3": ""}}, "without a word"),
        ({"answer": "eight"}, "is not a number of a question"),
        ({"says": "an `open end"}, "leaves a backtick open"),
    ],
)
def test_a_number_that_would_mislead_is_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        a_number(**changes)


def test_a_range_speaks_for_all_in_it_but_those_that_are_foreseen():
    question = a_number(within={"1 to 5": "Small.", "6 to 20": "Large."})
    said = {value: judge(question, value).message for value in (1, 4, 5, 5.5, 8, 19.99, 20, 20.01)}
    assert said == {
        1: "Small.",
        4: "Half.",
        5: "Small.",
        5.5: "No.",
        8: "Yes.",
        19.99: "Large.",
        20: "Large.",
        20.01: "No.",
    }
    assert a_number(within={"1 to 5": "Small."}).as_json()["within"] == {"1 to 5": "Small."}


RIGHT, WRONG = Option("a", "Yes.", right=True), Option("b", "No.")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((RIGHT,), "two options or more"),
        ((WRONG, WRONG), "one is right"),
        ((RIGHT, RIGHT), "one is right"),
        ((RIGHT, Option("b", "")), "without a word"),
        ((RIGHT, Option("", "No.")), "without a word"),
    ],
)
def test_a_choice_that_would_mislead_is_refused(options, says):
    with pytest.raises(ValueError, match=says):
        Choice("test/c", "Which?", options)


CODE = "def f(x):\n    return 2 - x"


def test_a_wrong_line_is_a_choice_of_all_lines():
    question = wrong_line("test/line", text="Which?", code=CODE, line=2, says="It is x - 2.", replies={1: "Fine."})
    assert [option.text for option in question.options] == ["```\ndef f(x):\n```", "```\n    return 2 - x\n```"]
    assert judge(question, 1) == (CORRECT, "It is x - 2.")
    assert judge(question, 0) == (NOT_YET, "Fine.")


@pytest.mark.parametrize("replies", [{}, {1: "Fine.", 2: "Fine."}, {1: "Fine.", 3: "Fine."}])
def test_a_wrong_line_needs_a_reply_for_every_other_line(replies):
    with pytest.raises(ValueError, match="needs one reply for each of its 2 lines"):
        wrong_line("test/line", text="Which?", code=CODE, line=2, says="Yes.", replies=replies)


def test_a_task_needs_an_id_and_a_text():
    with pytest.raises(ValueError, match="is not like"):
        Task("Task", "Do it.")
    with pytest.raises(ValueError, match="without a word"):
        Task("test/task", "")


def test_the_page_gets_what_it_needs_and_nothing_empty():
    assert a_number().as_json() == {
        "kind": "number",
        "id": "test/n",
        "text": "?",
        "answer": "8",
        "says": "Yes.",
        "wrong": {"4": "Half."},
        "otherwise": "No.",
        "near": 0.005,
    }
    assert Choice("test/c", "Which?", (RIGHT, WRONG), predict=True).as_json() == {
        "kind": "choice",
        "id": "test/c",
        "text": "Which?",
        "predict": True,
        "options": [{"text": "a", "says": "Yes.", "right": True}, {"text": "b", "says": "No."}],
    }
    assert Task("test/t", "Do it.").as_json() == {"kind": "task", "id": "test/t", "text": "Do it."}
    assert Task("test/t", "Do it.", line="→ Not yet.").as_json()["said"] == "→ Not yet."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        ("the `code` of <b>", "the <code>code</code> of &lt;b&gt;"),
        ("`a<b` and `c`", "<code>a&lt;b</code> and <code>c</code>"),
        (
            "Which?\n```\nif a < b:\n    `c`\n```\nThink.",
            'Which?<code class="mp-quiz-lines">if a &lt; b:\n    `c`</code>Think.',
        ),
        ("2^-24, 2**8 and 2^k, `2^16`", "2⁻²⁴, 2⁸ and 2ᵏ, <code>2^16</code>"),
        ("x ^ 2, e^-inf, `f(**k)`", "x ^ 2, e^-inf, <code>f(**k)</code>"),
        ("```\nx = 1\n```", '<code class="mp-quiz-lines">x = 1</code>'),
    ],
)
def test_code_is_marked_and_everything_else_is_text(text, shown):
    assert to_html(text) == shown


@pytest.mark.parametrize("text", ["a ` b", "```\nx = 1", "one `two\nthree` four"])
def test_an_open_backtick_is_refused(text):
    with pytest.raises(ValueError, match="leaves a backtick open"):
        Task("test/task", text)


def test_the_placeholder_holds_the_questions_and_the_fallback():
    text = placeholder([LARGEST, Task("test/t", 'Say "<b>".')], "<p>Later.</p>")
    assert text.startswith('<div class="mp-widget" data-mp-widget="quiz" ')
    assert text.endswith("><p>Later.</p></div>")
    assert states_in(text) == [
        {"questions": [LARGEST.as_json(), {"kind": "task", "id": "test/t", "text": 'Say "<b>".'}]}
    ]
    assert "--mp-questions: 2" in text
    assert text == placeholder([LARGEST, Task("test/t", 'Say "<b>".')], "<p>Later.</p>")
