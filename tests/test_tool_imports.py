"""The files of tools/ and book/_ext import each other by name, in one direction."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = {path.stem: path for folder in ("tools", "book/_ext") for path in (ROOT / folder).glob("*.py")}


def imported(source):
    """Return the names of modules that a file imports, inside of functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def order(sources):
    """Return the modules, those first that the others import. Raises: CycleError where there is no such order."""
    return list(
        TopologicalSorter({name: set(imported(text)) & set(sources) for name, text in sources.items()}).static_order()
    )


def test_there_is_no_circle():
    names = order({name: path.read_text("utf8") for name, path in FILES.items()})
    assert names.index("checkout") < names.index("browsers") < names.index("set_up")


def test_a_circle_through_a_function_is_seen():
    with pytest.raises(CycleError):
        order({"set_up": "def main():\n    import browsers", "browsers": "from set_up import run"})
