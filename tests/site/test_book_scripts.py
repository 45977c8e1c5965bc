"""The script of a recipe beside its page, and the link to it."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import book_scripts

ROOT = Path(__file__).parents[2]


def page(folder, *cells):
    """Write a recipe with these (source, tags)."""
    path = folder / "book/cookbook/one.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [{"source": [source], "metadata": {"tags": tags}} for source, tags in cells]
    path.write_text(json.dumps({"cells": cells}))
    return path


def app(folder):
    config = SimpleNamespace()
    builder = SimpleNamespace(format="html")
    return SimpleNamespace(srcdir=str(folder), outdir=str(folder / "out"), builder=builder, config=config)


def test_the_file_holds_the_script_alone(tmp_path):
    page(tmp_path, ("import os", ["remove-cell"]), ("# a_b.py: it does it\nx = 1", ["script"]), ("y = 2", []))
    assert book_scripts.scripts(tmp_path) == {"a_b.py": "# a_b.py: it does it\nx = 1\n"}
    (tmp_path / "out/book/cookbook").mkdir(parents=True)
    book_scripts.write(app(tmp_path), None)
    assert (tmp_path / "out/book/cookbook/a_b.py").read_text() == "# a_b.py: it does it\nx = 1\n"


@pytest.mark.parametrize("cell", ['<div class="cell tag_script', '<div class="cell tag_nbval-ignore-output tag_script'])
def test_the_link_stands_above_the_script(tmp_path, cell):
    page(tmp_path, ("# a_b.py: it does it", ["script"]))
    context = {"body": f"<p></p>{cell} docutils"}
    book_scripts.add_link(app(tmp_path), "book/cookbook/one", "", context, None)
    assert context["body"].startswith('<p></p><p class="mp-script-file"><a href="a_b.py" download>')
    assert context["body"].endswith(f"{cell} docutils")


def test_a_page_without_a_script_and_a_page_elsewhere_stay_as_they_are(tmp_path):
    page(tmp_path, ("x = 1", []))
    for name in ("book/cookbook/one", "book/cookbook/index", "book/intro"):
        context = {"body": (cell := '<div class="cell tag_script')}
        book_scripts.add_link(app(tmp_path), name, "", context, None)
        assert context["body"] == cell


def test_a_script_without_a_name_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r'one.ipynb: a script begins with "# name.py: what it does"'):
        book_scripts.script_of(page(tmp_path, ("import os", ["script"])))


def test_every_recipe_has_another_file_name():
    pages = sorted((ROOT / book_scripts.FOLDER).glob("*.ipynb"))
    assert len(book_scripts.scripts(ROOT)) == len(pages)
