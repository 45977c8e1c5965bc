"""ARCHITECTURE.md names what is there: its layers are those of the linter, its files exist, its functions import."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf8")
CODE = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
FOLDERS = (ROOT, ROOT / "utils", ROOT / "utils/widgets", ROOT / "tests")


def rows(heading):
    """The cells of the rows of the table that follows a heading."""
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]


def resolves(name):
    """Whether a dotted name is a module of utils, or what one holds."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module("utils." + ".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            thing = getattr(thing, part, None)
        return thing is not None
    return False


def test_it_is_a_page_and_not_a_book():
    assert len(TEXT.splitlines()) <= 120


def test_its_layers_are_those_of_the_linter_in_their_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["importlinter"]["contracts"]
    layers = [set(re.split(r" [|:] ", layer)) for layer in reversed(contracts[0]["layers"])]
    told = [
        name.strip("/")
        for cells in rows("The layers of `utils`, from the bottom")
        for name in re.findall(r"`([a-z_/]+)`", cells[0])
    ]
    assert len(told) == len(set(told))
    assert set(told) == set().union(*layers)
    place = {name: number for number, names in enumerate(layers) for name in names}
    # a row of the page may join two layers of the linter, and then may name them in the order that reads best
    for cells, later in zip(
        *[rows("The layers of `utils`, from the bottom")[start:] for start in (0, 1)], strict=False
    ):
        lower, upper = (re.findall(r"`([a-z_]+)/?`", row[0]) for row in (cells, later))
        assert max(map(place.get, lower)) <= min(map(place.get, upper)), (lower, upper)


@pytest.mark.parametrize(
    "name", [name for name in CODE if re.search(r"^[\w./]+/[\w./]*$|^[\w/]+\.(py|js|css|md|toml|txt|yml)$", name)]
)
def test_a_file_that_it_names_exists(name):
    assert any((folder / name).exists() or list(folder.glob(f"*/{name}")) for folder in FOLDERS), name


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in CODE
        if re.search(r"^[a-z_]\w*(\.\w+)+$", name) and not re.search(r"\.(py|js|css|md|toml|txt|yml)$", name)
    ],
)
def test_a_function_that_it_names_can_be_imported(name):
    assert resolves(name) or any(resolves(f"{folder}.{name}") for folder in ("runs", "training", "workloads")), name


def test_a_name_that_is_gone_would_be_seen():
    assert not resolves("formats.FORMATTS")
    assert not resolves("formatss")
