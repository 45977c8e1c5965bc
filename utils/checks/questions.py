"""Questions with a known answer: what a page and a notebook ask, and what both say to every foreseen answer.

A question is data, so that one text serves two readers: `utils.checks` answers in a notebook, the quiz widget answers
in a page without Python. `judge` is the one rule; `quiz/widget.js` holds its twin, and a test holds the two together.

A text may hold `code` in backticks, and lines of code between two fences of three backticks, each on a line of its
own; 2^-3 and 2**-3 are shown as powers; nothing else is markup, and a newline elsewhere is a blank. Progress is kept
under `id`, `<chapter>/<name>`, which belongs to one question in the whole book.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from utils.checks.number_text import read_number, superscript

NOT_ATTEMPTED, NOT_YET, CORRECT = "not attempted", "not yet", "correct"
ID = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)?/[a-z0-9-]+")
MARKUP = re.compile(r"\s*^```\n(?P<lines>.*?)\n```$\s*|`(?P<code>[^`\n]+)`", re.MULTILINE | re.DOTALL)
POWER = re.compile(r"(?<=[\w)])(?:\^|\*\*)(-?\d+|k\b)", re.ASCII)  # as JavaScript reads \w in quiz/judge.js


class Option(NamedTuple):
    """One of the answers to choose from, and what is said to whoever chooses it."""

    text: str
    says: str
    right: bool = False


class Judgement(NamedTuple):
    """The status of an answer, one of the three above, and the sentence that helps."""

    status: str
    message: str


@dataclass(frozen=True)
class Choice:
    """A question with a few answers to choose from, exactly one of them right.

    With `predict` the page notes the choice first, and compares it only when the reader has seen what happens.
    Raises: ValueError for an id of the wrong form, fewer than two options, not exactly one right one, or a text that is
    empty or leaves a backtick open.
    """

    id: str
    text: str
    options: tuple[Option, ...]
    predict: bool = False

    def __post_init__(self) -> None:
        _check_id(self.id)
        _check_said(self.id, self.text)
        if len(self.options) < 2 or sum(option.right for option in self.options) != 1:
            raise ValueError(f"question {self.id!r} needs two options or more, of which one is right")
        for option in self.options:
            _check_said(self.id, option.text)
            _check_said(self.id, option.says)

    def as_json(self) -> dict:
        """Return the question as the page reads it."""
        options = [{"text": o.text, "says": o.says} | ({"right": True} if o.right else {}) for o in self.options]
        return {"kind": "choice", "id": self.id, "text": self.text, "options": options} | (
            {"predict": True} if self.predict else {}
        )


@dataclass(frozen=True)
class Number:
    """A question whose answer is a number.

    `answer` and the keys of `wrong` are numbers as text: "2049", "2^-24", "1/3", "0x2A"; an answer that begins with 0x
    or 0b is a code, and bits are read too. `says` is said when it is right, `wrong` holds a hint for each foreseen
    wrong answer, `within` one for all other answers in a range, "33 to 48" with both ends, and `otherwise` the one for
    the rest; `hints` are given one at a time to whoever asks. An answer is right if it is within `tolerance`
    (relative) of `answer`; one within `near` of it is told that it is close, where it may be rounded: 450 is a rounded
    448, 449 is not, and no code is rounded. `unit` stands behind the field: "%", "bytes".
    Raises: ValueError for an id of the wrong form, a number that cannot be read, a text that is empty or leaves a
    backtick open, and a foreseen wrong answer that counts as right or as another one.
    """

    id: str
    text: str
    answer: str
    says: str
    wrong: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""
    hints: tuple[str, ...] = ()
    tolerance: float = 0.0
    near: float = 0.005
    unit: str = ""
    within: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_id(self.id)
        number(self.answer)
        for text in (self.text, self.says, self.otherwise, *self.wrong.values(), *self.within.values(), *self.hints):
            _check_said(self.id, text)
        for text, hint in self.wrong.items():
            if self.is_right(number(text)):
                raise ValueError(f"question {self.id!r}: the wrong answer {text} counts as right")
            if judge(self, number(text)).message != hint:
                raise ValueError(f"question {self.id!r}: the wrong answer {text} counts as another one")
        for text in self.within:
            low, high = _ends(text)
            if not low < high:
                raise ValueError(f"question {self.id!r}: {text!r} is no range; the smaller number comes first")

    @property
    def is_code(self) -> bool:
        """Whether the answer is a pattern of bits, which is also read as bits."""
        return self.answer[:2].lower() in ("0x", "0b")

    def is_right(self, value: float) -> bool:
        """Whether a number counts as the answer."""
        return _same(value, number(self.answer), self.tolerance)

    def as_json(self) -> dict:
        """Return the question as the page reads it."""
        facts = {"kind": "number", "id": self.id, "text": self.text, "answer": self.answer, "says": self.says}
        facts |= {
            "wrong": dict(self.wrong),
            "within": dict(self.within),
            "otherwise": self.otherwise,
            "hints": list(self.hints),
        }
        facts |= {"tolerance": self.tolerance, "near": self.near, "unit": self.unit}
        return {key: value for key, value in facts.items() if value}


@dataclass(frozen=True)
class Task:
    """Work that Python checks: the page can only tick it off.

    `text` says what is to be done, `line` what the check said when the page was made, and `hint` what it gave away to
    whoever asks: utils.checks fills both in.
    """

    id: str
    text: str
    line: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        _check_id(self.id)
        _check_said(self.id, self.text)

    def as_json(self) -> dict:
        """Return the task as the page reads it."""
        facts = {"kind": "task", "id": self.id, "text": self.text, "said": self.line, "hint": self.hint}
        return {key: value for key, value in facts.items() if value}


Question = Choice | Number | Task


def wrong_line(name: str, *, text: str, code: str, line: int, says: str, replies: Mapping[int, str]) -> Choice:
    """Make the question which line of `code` is wrong: `line`, counted from 1.

    `says` is said to whoever finds it; `replies` says of each other line what it does and why that is right.
    Raises: ValueError for a line without a reply, or a reply without a line.
    """
    lines = code.splitlines()
    if sorted([line, *replies]) != list(range(1, len(lines) + 1)):
        raise ValueError(f"question {name!r} needs one reply for each of its {len(lines)} lines")
    options = tuple(
        Option(f"```\n{row}\n```", says if n == line else replies[n], right=n == line) for n, row in enumerate(lines, 1)
    )
    return Choice(name, text, options)


MUST_BE_EXACT = 1e-5  # a smaller tolerance is that of the arithmetic
IMPRECISE = "Close, but not close enough. Work it out with more digits."  # where the answer need not be exact
ROUNDED = "Close, but not exact: the exact value can be written down, for example as a power of two or as a fraction."


def judge(question: Choice | Number, answer: float | int) -> Judgement:
    """Judge a number, the nearest of the foreseen ones, or the place of a chosen option counted from 0."""
    if isinstance(question, Choice):
        option = question.options[answer]
        return Judgement(CORRECT if option.right else NOT_YET, option.says)
    if question.is_right(answer):
        return Judgement(CORRECT, question.says)
    hints = [text for text in question.wrong if _same(answer, number(text), question.tolerance)]
    if hints:
        return Judgement(NOT_YET, question.wrong[min(hints, key=lambda text: abs(answer - number(text)))])
    for text, hint in question.within.items():
        low, high = _ends(text)
        if low <= answer <= high:
            return Judgement(NOT_YET, hint)
    if not question.is_code and _is_rounded(answer, number(question.answer), question.near):
        return Judgement(NOT_YET, ROUNDED if question.tolerance < MUST_BE_EXACT else IMPRECISE)
    return Judgement(NOT_YET, question.otherwise)


def number(text: str) -> float:
    """Read a number of a question as `utils.checks.number_text` does, rounded once to float64.

    Raises: ValueError for anything else.
    """
    try:
        return float(read_number(text))
    except OverflowError:
        return math.inf if read_number(text) > 0 else -math.inf
    except ValueError:
        raise ValueError(f"{text!r} is not a number of a question; write it like 2049, 2^-24, 1/3 or 0x2A") from None


def _ends(text: str) -> tuple[float, float]:
    """Read a range. Raises: ValueError for anything but two numbers with " to " between them."""
    low, high = text.split(" to ")
    return number(low), number(high)


def _same(value: float, wanted: float, tolerance: float) -> bool:
    if math.isnan(value) or math.isnan(wanted):
        return math.isnan(value) and math.isnan(wanted)
    return value == wanted or (math.isfinite(wanted) and abs(value - wanted) <= tolerance * abs(wanted))


def _is_rounded(value: float, wanted: float, near: float) -> bool:
    """Whether somebody may have rounded `wanted` to `value`; a whole number is rounded to tens or more."""
    whole = wanted % 1 == 0
    return _same(value, wanted, near) and (not whole or (value % 10 == 0 and wanted % 10 != 0))


def to_html(text: str) -> str:
    """Return a text of a question as HTML: its code as <code>, everything else escaped, with 2^-3 as 2⁻³."""
    parts, at = [], 0
    for mark in MARKUP.finditer(text):
        parts.append(_plain(text[at : mark.start()]))
        lines, code = mark["lines"], mark["code"]
        kind = "" if lines is None else ' class="mp-quiz-lines"'
        parts.append(f"<code{kind}>{html.escape(code if lines is None else lines)}</code>")
        at = mark.end()
    return "".join(parts) + _plain(text[at:])


def _plain(text: str) -> str:
    return html.escape(POWER.sub(lambda power: "ᵏ" if power[1] == "k" else superscript(power[1]), text))


def placeholder(questions: list[Question], fallback: str) -> str:
    """Return the HTML in whose place a page without Python mounts the questions; `fallback` is HTML shown elsewhere."""
    asked = {"questions": [question.as_json() for question in questions]}
    state = html.escape(json.dumps(asked, sort_keys=True, ensure_ascii=False))
    room = f' style="--mp-questions: {len(questions)}"' if len(questions) > 1 else ""
    return f'<div class="mp-widget" data-mp-widget="quiz" data-mp-state="{state}"{room}>{fallback}</div>'


def _check_id(name: str) -> None:
    if not ID.fullmatch(name):
        raise ValueError(f"question id {name!r} is not like numbers/rounding/first-gap")


def _check_said(name: str, text: str) -> None:
    if not text.strip():
        raise ValueError(f"question {name!r} leaves an answer without a word")
    if "`" in MARKUP.sub("", text):
        raise ValueError(f"question {name!r} leaves a backtick open: {text!r}")
