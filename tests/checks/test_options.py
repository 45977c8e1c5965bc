"""The options of a choice: the right one is not to be told by its form, before anyone has thought."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import utils.checks
from utils.checks.questions import Choice, Option

ROOT = Path(utils.checks.__file__).parent
MODULES = sorted(
    ".".join(("utils.checks", *path.relative_to(ROOT).with_suffix("").parts)) for path in ROOT.rglob("*_questions.py")
)
REASON = re.compile(r":|\bbecause\b|, (since|so|as)\b")
LESS, MORE, ROOM = 0.75, 1.25, 16  # of the shortest and longest of the others; and so many characters apart


def is_code(option):
    return "\n" in option.text


def betrayed(options):
    """What betrays the right option, as a word: its length or a reason that it alone has or lacks; "" if nothing."""
    (right,) = (option for option in options if option.right)
    others = [option.text for option in options if not option.right]
    length, lengths = len(right.text), [len(text) for text in others]
    if length < LESS * min(lengths) and min(lengths) - length >= ROOM:
        return "the shortest"
    if length > MORE * max(lengths) and length - max(lengths) >= ROOM:
        return "the longest"
    has_reason = bool(REASON.search(right.text))
    if len(others) > 1 and all(bool(REASON.search(text)) != has_reason for text in others):
        return "the only one with a reason" if has_reason else "the only one without a reason"
    return ""


@pytest.mark.parametrize("name", MODULES)
def test_the_right_option_is_not_betrayed_by_its_form(name):
    choices = [value for value in vars(import_module(name)).values() if isinstance(value, Choice)]
    told = {
        choice.id: betrayed(choice.options)
        for choice in choices
        if sum(option.right for option in choice.options) == 1 and not any(map(is_code, choice.options))
    }
    assert {id: how for id, how in told.items() if how} == {}


@pytest.mark.parametrize(
    ("options", "how"),
    [
        (("*Less", "As much as before", "More than before"), ""),
        (("*Less", "As much as before: nothing changes", "More, because it rounds twice"), "the shortest"),
        (("*Less than before, where it was large already", "As much as before", "More"), "the longest"),
        (("*Less, at some places", "As much: nothing changes", "More: it rounds"), "the only one without a reason"),
        (("*Less: it is cut", "As much, at all places", "More, at all"), "the only one with a reason"),
    ],
)
def test_what_betrays_an_option(options, how):
    assert betrayed([Option(text.lstrip("*"), "Why.", text.startswith("*")) for text in options]) == how
