"""What a module loads is read from its imports, and only what can change a result changes the digest."""

import functools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from utils.runs.loaded_source import ROOT, digest, find_loaded

MODULES = ["utils.distilbert", "utils.llama", "utils.experiments.capstone.comparison"]


@pytest.fixture
def tree(tmp_path) -> Path:
    """A copy of the source that can be changed."""
    shutil.copytree(ROOT / "utils", tmp_path / "utils", ignore=shutil.ignore_patterns("__pycache__", "*.js", "*.css"))
    return tmp_path


def written(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, source in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path


@functools.cache
def digest_here(module: str) -> str:
    """The digest in this checkout, which is read once for all tests."""
    return digest(module)


def change(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    source = path.read_text()
    assert old in source
    path.write_text(source.replace(old, new, 1))
    digest.cache_clear()


IMPORTS = """
import importlib, os, sys
import torch

for module in sys.argv[1:]:  # each in a copy of this process, which has loaded none of them
    if os.fork() == 0:
        importlib.import_module(module)
        print(module, *(name for name in sys.modules if name.split(".")[0] == "utils"), flush=True)
        os._exit(0)
    os.wait()
"""


def test_all_that_the_interpreter_loads_is_found():
    command = [sys.executable, "-c", IMPORTS, *MODULES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {module: set(names) for module, *names in map(str.split, done.stdout.splitlines())}
    assert list(loaded) == MODULES
    assert [name for module, names in loaded.items() for name in names - find_loaded(module).keys()] == []
    assert all(module in names for module, names in loaded.items())


def test_imports_of_every_form_are_followed(tmp_path):
    root = written(
        tmp_path,
        {
            "book/__init__.py": "",
            "book/main.py": "import json, book.plain\nfrom book import named, VALUE\nfrom book.deep.a import f\n",
            "book/plain.py": "def f():\n    if f:\n        from book import late\n",
            "book/named.py": "try:\n    import book.tried\nexcept ImportError:\n    pass\n",
            "book/late.py": "",
            "book/tried.py": "",
            "book/deep/__init__.py": "from . import sibling\n",
            "book/deep/a.py": "from .sibling import x\nfrom ..other import y\nfrom .. import third as z\n",
            "book/deep/sibling.py": "from book.main import f  # a circle\n",
            "book/other.py": "",
            "book/third.py": (
                "import typing\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import book.checked\n"
                "else:\n    import book.run\nif typing.TYPE_CHECKING:\n    import book.checked\n"
            ),
            "book/run.py": "",
            "book/checked.py": "",
            "book/json.py": "",
            "json.py": "",
        },
    )
    names = "deep deep.a deep.sibling late main named other plain run third tried"
    assert list(find_loaded("book.main", root)) == ["book", *(f"book.{name}" for name in names.split())]


def test_a_module_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"there is no module utils\.nonsense in"):
        find_loaded("utils.nonsense", tmp_path)


@pytest.mark.parametrize("module", MODULES)
def test_a_line_of_scaling_changes_the_digest(tree, module):
    before = digest(module, tree)
    assert before == digest_here(module)  # of an equal tree in another place
    change(tree, "utils/scaling.py", "(1, 32), FLOAT8_E8M0FNU", "(1, 16), FLOAT8_E8M0FNU")  # the tile of MX
    assert digest(module, tree) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param("utils/scaling.py", "MAX_SCALE =", "# a comment\nMAX_SCALE  = ", id="a comment and spaces"),
        pytest.param("utils/scaling.py", '"""From the largest', '"""Of the largest', id="a module's docstring"),
        pytest.param("utils/rounding.py", '"""Round up (', '"""Round (', id="a function's docstring"),
        pytest.param("utils/plots.py", "import ", "import os\nimport ", id="a module that no run loads"),
        pytest.param("utils/checks/numbers/bits.py", "import ", "import os\nimport ", id="a check"),
    ],
)
def test_what_cannot_change_a_result_keeps_the_digest(tree, name, old, new):
    before = digest_here("utils.distilbert")  # of an equal tree, as the test above says
    change(tree, name, old, new)
    assert digest("utils.distilbert", tree) == before


def test_a_renamed_file_and_a_new_import_change_the_digest(tree):
    before = digest_here("utils.distilbert")
    change(tree, "utils/measure.py", "import ", "import os\nimport ")
    after = digest("utils.distilbert", tree)
    change(tree, "utils/measure.py", "import os\n", "from utils import plots\n")
    assert len({before, after, digest("utils.distilbert", tree)}) == 3
    root = written(tree / "one", {"top/a.py": "from top.b import x\n", "top/b.py": "x = 1\n"})
    moved = written(tree / "two", {"top/a.py": "from top.b import x\n", "top/b/__init__.py": "x = 1\n"})
    assert digest("top.a", root) == digest("top.a", moved)
    assert digest("top.b", root) != digest("top.a", root)
