"""Quiz: what it takes, what it shows without JavaScript, and what the pages of the book ask."""

import pytest

import notebooks
from tests.book_questions import book_questions
from tests.page_states import states_in
from utils.checks.questions import IMPRECISE, ROUNDED, Choice, Number, Option, Task
from utils.widgets.quiz import Quiz
from utils.widgets.shared.modules import WIDGETS

TIE = Choice(
    "test/tie",
    "Where does `2049` go in <float16>?",
    (Option("to 2048", "The even one.", right=True), Option("to 2050", "Its last bit is 1.")),
    predict=True,
)
SHARE = Number("test/share", "What share?", "49.2", "Half.", {"50": "Nearly."}, "No.", tolerance=0.01, unit="%")
TASK = Task("test/task", "`decode16` is right.")


def test_a_quiz_hands_its_questions_to_the_page():
    shown = Quiz(TIE, SHARE, TASK)._repr_mimebundle_()[0]["text/html"]
    assert states_in(shown) == [{"questions": [TIE.as_json(), SHARE.as_json(), TASK.as_json()]}]
    assert repr(Quiz(TIE, SHARE)) == "Quiz(test/tie, test/share)"


@pytest.mark.parametrize(
    ("questions", "error", "says"),
    [
        ((), ValueError, "needs a question"),
        ((TIE, TIE), ValueError, "two questions have one id"),
        (({"kind": "choice"},), TypeError, "is not a Choice, a Number or a Task"),
    ],
)
def test_a_quiz_refuses_what_it_cannot_ask(questions, error, says):
    with pytest.raises(error, match=says):
        Quiz(*questions)


def test_without_javascript_a_choice_is_a_list_with_its_answer_folded_away():
    shown = Quiz(TIE).static_html()
    assert "<p>Where does <code>2049</code> go in &lt;float16&gt;?</p>" in shown
    assert "<ul><li>to 2048</li><li>to 2050</li></ul>" in shown
    assert "<details><summary>The answer</summary><p>to 2048: The even one.</p></details>" in shown


def test_without_javascript_a_number_says_why_it_cannot_be_checked():
    shown = Quiz(SHARE).static_html()
    assert "The page needs JavaScript to check an answer." in shown
    assert "<details><summary>The answer</summary><p><code>49.2</code> %: Half.</p></details>" in shown


def test_without_javascript_a_task_says_what_checks_it():
    assert "Python checks this one" in Quiz(TASK).static_html()


def test_the_page_says_the_same_of_a_rounded_answer():
    source = (WIDGETS / "quiz/judge.js").read_text("utf8")
    assert f'"{ROUNDED}"' in source
    assert f'"{IMPRECISE}"' in source


def committed_states():
    """Yield (page, text, state) of each committed output with HTML, the state of the widget in it or None."""
    for path in notebooks.book_notebooks():
        for cell in notebooks.loads(path.read_text("utf8")).cells:
            for output in cell.get("outputs", ()):
                data = output.get("data", {})
                for state in states_in(data.get("text/html", "")) or [None]:
                    yield path.stem, data.get("text/plain", ""), state


COMMITTED = list(committed_states())


def test_a_page_asks_whatever_its_checks_found_not_attempted():
    waiting = [(page, state) for page, text, state in COMMITTED if text.startswith("○ Not attempted")]
    assert len(waiting) >= 10
    assert [page for page, state in waiting if not (state and state["questions"])] == []


def test_an_id_is_asked_once_on_all_pages_and_as_the_checks_have_it():
    shown = [
        item for _, _, state in COMMITTED if state for item in [*state.get("questions", ()), *state.get("goals", ())]
    ]
    names = [item["id"] for item in shown]
    assert [name for name in set(names) if names.count(name) > 1] == []
    known = {question.id: question.as_json() for question in book_questions()}
    for item in shown:
        if item["id"] in known:
            assert {key: value for key, value in item.items() if key not in ("said", "hint")} == known[item["id"]]
