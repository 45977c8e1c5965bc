"""Every question of the book, found in the modules of `utils.checks`, so that later chapters are covered too."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import utils.checks
from utils.checks.questions import Choice, Number, Option, Question, Task


def check_modules() -> dict[str, ModuleType]:
    """Return the modules of `utils.checks` by name: "bits", "bits_questions" and so on."""
    found = pkgutil.walk_packages(utils.checks.__path__, "utils.checks.")
    return {info.name.rpartition(".")[2]: importlib.import_module(info.name) for info in found if not info.ispkg}


def questions_in(value) -> Iterator[Question]:
    """Yield the questions in a value: alone, in a dict or sequence, or in a check; one may come more than once."""
    if isinstance(value, Choice | Number | Task):
        yield value
    elif isinstance(value, dict):
        yield from questions_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from questions_in(one)
    elif callable(value):
        yield from questions_in(getattr(value, "asks", ()))


def book_questions() -> list[Question]:
    """Return the questions that the check modules define, each once, sorted by id."""
    found = {id(question): question for module in check_modules().values() for question in questions_in(vars(module))}
    return sorted(found.values(), key=lambda question: question.id)


def right_option(question: Choice) -> Option:
    """Return the option that is right."""
    return next(option for option in question.options if option.right)
