"""Every question of the book, found in the modules of `utils.checks`, so that later chapters are covered too."""

import importlib
import pkgutil

import utils.checks
from utils.questions import Choice, Number, Question, Task


def book_questions() -> list[Question]:
    """Give the questions that the check modules define, alone, in a dict or sequence, or in a check; sorted by id."""
    found = {}

    def collect(value):
        if isinstance(value, Choice | Number | Task):
            found.setdefault(id(value), value)
        elif isinstance(value, dict):
            collect(list(value.values()))
        elif isinstance(value, list | tuple):
            for one in value:
                collect(one)
        elif callable(value):
            collect(getattr(value, "asks", ()))

    for info in pkgutil.iter_modules(utils.checks.__path__):
        collect(vars(importlib.import_module(f"utils.checks.{info.name}")))
    return sorted(found.values(), key=lambda question: question.id)
