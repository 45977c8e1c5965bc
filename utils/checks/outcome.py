"""What a check says: not attempted, not yet (with a hint that names the misconception), or correct.

A check is made in one of three ways. `paper` and `paper_table` make one of questions whose answers are numbers, and
`exercise` guards a function. In the built page, which runs no Python, the line "Not attempted" of a check that has
questions gives way to fields that say the same hints; in JupyterLab it stays.
"""

import dataclasses
import functools
import math
import operator
import re
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from utils.checks.questions import (
    CORRECT,
    NOT_ATTEMPTED,
    NOT_YET,
    Choice,
    Number,
    Question,
    Task,
    judge,
    number,
    placeholder,
    to_html,
)

_SIGNS = {NOT_ATTEMPTED: "○", NOT_YET: "→", CORRECT: "✓"}


class Unreadable(ValueError):
    """An answer that is not of the kind asked for; its text says how to write one."""


@dataclass(frozen=True)
class Outcome:
    """The answer of a check: its `status`, and a sentence that helps. True in a condition only when correct.

    `hint`: what gives the cause away, for a reader who asks for it; it stands folded below the message.
    `asks`: what a page without Python puts in its place.
    """

    status: str
    message: str
    hint: str = ""
    asks: tuple[Question, ...] = dataclasses.field(default=(), repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.status == CORRECT

    @property
    def line(self) -> str:
        """The status and the message, in one line."""
        return f"{_SIGNS[self.status]} {self.status.capitalize()}. {self.message}"

    def __repr__(self) -> str:
        return self.line + (" (There is a hint: look at `.hint`.)" if self.hint else "")

    def _repr_html_(self) -> str:
        kind, lead = self.status.replace(" ", "-"), f"{_SIGNS[self.status]} {self.status.capitalize()}."
        look, text = f"mp-outcome mp-outcome-{kind}", f"<strong>{lead}</strong> {to_html(self.message)}"
        if self.hint:
            hint = f"<details><summary>Hint</summary>{to_html(self.hint)}</details>"
            text = f'<div class="{look}"><p>{text}</p>{hint}</div>'
        else:
            text = f'<p class="{look}">{text}</p>'
        return placeholder(list(self.asks), fallback=text) if self.asks else text


def correct(message: str) -> Outcome:
    """The answer is right; `message` says what it shows."""
    return Outcome(CORRECT, message)


def not_yet(message: str, hint: str = "") -> Outcome:
    """The answer is not right yet; `message` names the misconception and says where to look.

    Where finding the cause is the exercise, `message` tells what was seen and `hint` the cause.
    """
    return Outcome(NOT_YET, message, hint)


def exercise(
    check: Callable | None = None,
    *,
    asks: Question | Iterable[Question] = (),
    takes: str = "",
    seconds: float = 10.0,
) -> Callable:
    """Make a check that never raises on a learner's error, nor runs on and on.

    `...`, None and blanks that are still there count as not attempted; an exception inside becomes *not yet* with its
    text. The wrapped check sees only real answers. With `@exercise(asks=Task(id, text))` the page without Python shows
    the task to tick off; with a `Number`, a `Choice` or several of them it asks those. `takes`: the name of the
    function, or of the class, that is the answer; what cannot be called gets a sentence with that name. `seconds`: see
    `time_limit`.
    """
    if check is None:
        return functools.partial(exercise, asks=asks, takes=takes, seconds=seconds)
    questions = (asks,) if isinstance(asks, Choice | Number | Task) else tuple(asks)

    @functools.wraps(check)
    def guarded(answer=...) -> Outcome:
        outcome = _guarded(check, answer, takes=takes, seconds=seconds)
        return outcome if outcome else dataclasses.replace(outcome, asks=_asked_of(questions, outcome))

    guarded.asks = questions
    return guarded


def paper(question: Number) -> Callable[..., Outcome]:
    """Make the check of an exercise whose answer is one number, or one code; the page asks for it too."""
    return exercise(_named(question, lambda answer: judged(question, _read(question, answer))), asks=question)


def paper_table(questions: Mapping[object, Number], *, says: str, name: str = "{}") -> Callable[..., Outcome]:
    """Make the check of an exercise whose answer is a dict of numbers; the first wrong one gets its hint.

    `says` is said when all are right, `name` how to call a key: "bit {}".
    """

    def check(answer) -> Outcome:
        names = {key: name.format(key) for key in questions}
        if (lacking := _lacking(answer, names, form="a number")) is not None:
            return lacking
        for key, question in questions.items():
            called = names[key]
            if name != "{}":
                called = called[0].upper() + called[1:]
            try:
                outcome = judged(question, _read(question, answer[key]))
            except Unreadable as error:
                return not_yet(f"{called}: {error}")
            if not outcome:
                return not_yet(f"{called}: {outcome.message}")
        return correct(says)

    return exercise(_named(next(iter(questions.values())), check), asks=questions.values())


def choice_table(
    questions: Mapping[str, Choice], *, says: str, read: Callable[[object], str] = str
) -> Callable[..., Outcome]:
    """Make the check of an exercise whose answer is a dict of options by their text; the first wrong one gets its hint.

    `read` turns what was given into such a text, where more than a capital letter or a blank too many may differ.
    """

    def check(answer) -> Outcome:
        options = {key: [option.text for option in question.options] for key, question in questions.items()}
        form = " or ".join(next(iter(options.values())))
        between = "; " if any(", " in text for texts in options.values() for text in texts) else ", "
        if (lacking := _lacking(answer, {key: key for key in questions}, form=form)) is not None:
            return lacking
        for key, question in questions.items():
            folded = [text.casefold() for text in options[key]]
            words = " ".join(read(answer[key]).casefold().split())
            if words not in folded:
                return not_yet(f"{key}: {answer[key]!r} is not one of these: {between.join(options[key])}.")
            if not (outcome := judged(question, folded.index(words))):
                return not_yet(f"{key}: {outcome.message}")
        return correct(says)

    return exercise(_named(next(iter(questions.values())), check), asks=questions.values())


def _lacking(answer, names: Mapping[object, str], *, form: str) -> Outcome | None:
    """Say what is missing of an answer that has to be a dict with these keys, None where nothing is."""
    if not isinstance(answer, Mapping):
        return not_yet(f"Give a dict with {form} for each of: {'; '.join(names.values())}.")
    if missing := [name for key, name in names.items() if answer.get(key, ...) is ...]:
        return not_yet(f"No answer yet for {'; '.join(missing)}.")
    return None


def judged(question: Choice | Number, answer: float) -> Outcome:
    """Judge a number, or the place of a chosen option, as the question does."""
    return Outcome(*judge(question, answer))


def foreseen(question: Number, answer: float) -> Outcome | None:
    """Judge a number like `judged` if the question has words for it, else give None: the check finds its own."""
    outcome = judged(question, answer)
    return None if outcome.message == question.otherwise else outcome


def _named(question: Number, check: Callable[[object], Outcome]) -> Callable[[object], Outcome]:
    check.__name__ = f"check_{question.id.rpartition('/')[2].replace('-', '_')}"
    check.__doc__ = question.text
    return check


def _read(question: Number, answer) -> float:
    return as_code(answer) if question.is_code else as_number(answer)


def _asked_of(questions: tuple[Question, ...], outcome: Outcome) -> tuple[Question, ...]:
    """Return what the page asks: all if nothing was attempted, else tasks only, with what was said of waiting code."""
    if outcome.status == NOT_ATTEMPTED:
        return questions
    return tuple(dataclasses.replace(q, line=outcome.line, hint=outcome.hint) for q in questions if isinstance(q, Task))


def _guarded(check: Callable[[object], Outcome], answer, *, takes: str, seconds: float) -> Outcome:
    if _is_blank(answer):
        return Outcome(NOT_ATTEMPTED, "Put your answer where the dots are, then run the cell again.")
    if isinstance(answer, dict) and (left := [str(key) for key, value in answer.items() if value is ...]):
        return Outcome(NOT_ATTEMPTED, f"No answer yet for {', '.join(left)}.")
    if takes and not callable(answer):
        kind = "class" if takes[0].isupper() else "function"
        return not_yet(f"The check needs the {kind} itself, as in {check.__name__}({takes}), not {answer!r}.")
    try:
        with time_limit(seconds):
            return check(answer)
    except Unreadable as error:
        return not_yet(str(error))
    except Exception as error:  # a learner's mistake ends here, whatever it is
        text = f": {error}" if str(error) else "."
        return not_yet(f"Your answer made the check stop with {type(error).__name__}{text}")


def as_number(answer) -> float:
    """Read a number as learners write it: 10.5, "2**-3", "(1 + 1/2) * 2^3", "0x1.8p3", or a 0-d array or tensor.

    Raises: Unreadable, with a remedy, for anything else.
    """
    if isinstance(answer, str):
        try:
            return number(answer)
        except ValueError:
            raise Unreadable(f"{answer!r} is not a number I can read; write it like 10.5, 2**-3 or 0x1.8p3.") from None
    try:
        return float(answer)
    except (TypeError, ValueError):
        raise Unreadable(f"{answer!r} is not a number; write it like 10.5 or 2**-3.") from None


def as_code(answer) -> int:
    """Read a code as learners write it: 0x1234, "0x1234", "0b1001", "1 001", or a BitFlip widget.

    Raises: Unreadable, with a remedy, for anything else.
    """
    if hasattr(answer, "code"):
        return int(answer.code)
    if isinstance(answer, str):
        text = answer.strip().lower().replace(" ", "").replace("_", "")
        if re.fullmatch("0x[0-9a-f]+", text):
            return int(text, 16)
        if re.fullmatch("(0b)?[01]+", text):
            return int(text, 2)
        raise Unreadable(f"{answer!r} is not a code; write it like 0x1234 or 0b1001.")
    try:
        if not isinstance(answer, bool):
            return operator.index(answer)
    except TypeError:
        pass
    raise Unreadable(f"{answer!r} is not a code: a code is a whole number such as 0x1234.")


def same_number(a: float, b: float) -> bool:
    """Whether two floats are the same value: NaN equals NaN, and the sign of zero counts."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@contextmanager
def time_limit(seconds: float):
    """Stop what runs inside with TimeoutError, so that an endless loop cannot hang a notebook.

    It stops after this many seconds of the processor, or ten times as many by the clock: on a busy machine a right
    answer may take long. It needs Unix signals and the main thread, where notebook cells run; elsewhere it does
    nothing.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum, frame):
        raise TimeoutError(f"it ran for more than {seconds:g} s; is there a loop that never ends?")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _is_blank(answer) -> bool:
    if answer is ... or answer is None:
        return True
    if isinstance(answer, dict):
        return bool(answer) and all(value is ... for value in answer.values())
    return isinstance(answer, (list, tuple)) and any(value is ... for value in answer)
