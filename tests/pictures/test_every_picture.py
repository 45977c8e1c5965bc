"""Every picture fits a phone, its module is named after a chapter, and that chapter shows it."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import book_rules as rules
from utils.pictures.drawing import WIDTH_INCHES

FOLDER = Path(__file__).parents[2] / "utils" / "pictures"
MODULES = sorted(path for path in FOLDER.rglob("*.py") if path.stem not in ("__init__", "drawing"))
CHAPTERS = [path.relative_to(FOLDER).with_suffix("").as_posix() for path in MODULES]


def drawings(chapter):
    """The public functions of a chapter's module that give a figure."""
    module = importlib.import_module("utils.pictures." + chapter.replace("/", "."))
    return [
        draw
        for name, draw in inspect.getmembers(module, inspect.isfunction)
        if draw.__module__ == module.__name__ and not name.startswith("_")
    ]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_picture_is_hardly_wider_than_a_phone(chapter):
    assert WIDTH_INCHES <= 5
    for draw in drawings(chapter):
        figure = draw()
        assert isinstance(figure, Figure)
        assert figure.get_figwidth() <= WIDTH_INCHES


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_picture_is_shown_where_its_chapter_opens(chapter):
    cells = rules.read_page(rules.BOOK / f"{chapter}.ipynb")
    shown = next(cell.source for cell in cells if "picture" in cell.tags)
    assert any(re.search(rf"\b{draw.__name__}\(", shown) for draw in drawings(chapter))
