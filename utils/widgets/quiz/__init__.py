"""Quiz: questions to answer in the page, each with words for every foreseen answer."""

import html

import traitlets

from utils.checks.questions import Choice, Number, Question, Task, to_html
from utils.widgets.shared.book_widget import BookWidget


class Quiz(BookWidget):
    """Ask one or several questions of `utils.checks.questions`: `Quiz(checks.SHARE_BELOW_ONE)`.

    `questions`: the questions as `as_json` gives them. What a reader has solved is kept by the browser, by the id of
    the question; nothing comes back to Python.

    Raises: ValueError without a question or for two with one id, TypeError for what is no question.
    """

    book_name = "quiz"

    questions = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, *questions: Question, **kwargs):
        if not questions:
            raise ValueError("a quiz needs a question; give it a Choice, a Number or a Task of utils.checks.questions")
        for question in questions:
            if not isinstance(question, Choice | Number | Task):
                raise TypeError(f"{question!r} is not a Choice, a Number or a Task of utils.checks.questions")
        names = [question.id for question in questions]
        if len(set(names)) < len(names):
            raise ValueError(f"two questions have one id: {', '.join(names)}")
        super().__init__(questions=[question.as_json() for question in questions], **kwargs)

    def __repr__(self) -> str:
        return f"Quiz({', '.join(question['id'] for question in self.questions)})"

    def static_html(self) -> str:
        """Show the questions with their answers, or the answer folded away, for pages without JavaScript."""
        items = "".join(
            f'<div class="mp-quiz-part mp-quiz-item">{_static_item(question)}</div>' for question in self.questions
        )
        return f'<div class="mp-panel mp-quiz-panel">{items}</div>'


def _static_item(question: dict) -> str:
    text = f"<p>{to_html(question['text'])}</p>"
    if question["kind"] == "task":
        return f'{text}<p class="mp-quiz-note">Python checks this one; ticking it off here needs JavaScript.</p>'
    if question["kind"] == "choice":
        options = "".join(f"<li>{to_html(option['text'])}</li>" for option in question["options"])
        right = next(option for option in question["options"] if option.get("right"))
        return f"{text}<ul>{options}</ul>{_folded(right['text'], right['says'])}"
    unit = html.escape(f" {question['unit']}") if "unit" in question else ""
    note = '<p class="mp-quiz-note">The page needs JavaScript to check an answer.</p>'
    return f"{text}{note}{_folded('`' + question['answer'] + '`', question['says'], unit)}"


def _folded(answer: str, says: str, unit: str = "") -> str:
    return f"<details><summary>The answer</summary><p>{to_html(answer)}{unit}: {to_html(says)}</p></details>"
