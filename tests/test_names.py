"""A name says what the thing is: no word that fits everything is one, and two classes do not share one."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("utils", "tools", "book/_ext", "bench")
FILLERS = {"found", "one", "said", "given", "chosen", "known", "each", "here"}
TRAITS = {("utils/widgets/arm_picker/__init__.py", "chosen")}  # of a widget: its pages know it by this name


def fillers(source):
    """The line and the name of each variable, argument, field, function or class that is called by a filler."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            name = node.name
        else:
            continue
        if name in FILLERS:
            yield node.lineno, name


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_name_is_a_filler(folder):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    assert [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in paths
        for line, name in fillers(path.read_text("utf8"))
        if (path.relative_to(ROOT).as_posix(), name) not in TRAITS
    ] == []


def test_one_name_of_a_class_is_one_thing():
    places = defaultdict(list)
    for path in sorted((ROOT / "utils").rglob("*.py")):
        for node in ast.parse(path.read_text("utf8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert len(places) > 200
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_fillers_are_found_where_they_are_bound_and_nowhere_else():
    source = "\n".join(
        [
            "def given(x, *, one, of=1): pass",
            "for each, (a, found) in x: pass",
            "class A:",
            "    said: int = 0",
            "y = [here for here in one if (known := here.chosen)]",
            "f(chosen=1)",
        ]
    )
    assert sorted(fillers(source)) == [
        (1, "given"),
        (1, "one"),
        (2, "each"),
        (2, "found"),
        (4, "said"),
        (5, "here"),
        (5, "known"),
    ]
