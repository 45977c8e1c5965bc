"""What the book set out to show: every row of coverage.toml has its cell and its test, and a row without one fails."""

import ast
import dataclasses
import functools
import re
import tomllib

import pytest

import book_rules as rules
from utils import records

TABLE = rules.BOOK / "reference" / "coverage.toml"
ROWS = tomllib.loads(TABLE.read_text("utf8"))["row"]
HIDDEN = {"remove-cell", "remove-input", "skip-execution"}
UNSURE = {"gpu", "skip", "skipif", "importorskip", "sweep", "browser"}  # of tests that do not run on every machine
SOURCES = {"A", "B", "C", "D", "E"}


@functools.cache
def code_cells(page):
    """The code cells of a page of the book, by its name in the table: "numbers/bits"."""
    return tuple(cell for cell in rules.read_page(rules.BOOK / f"{page}.ipynb") if cell.kind == "code")


def fault_of_cell(line, cells):
    """Say what is wrong with the cell that a row quotes by one of its lines, or None."""
    found = [cell for cell in cells if line in map(str.strip, cell.source.splitlines())]
    if len(found) != 1:
        return f"{len(found)} cells with the line: {line}"
    if hidden := HIDDEN & set(found[0].tags):
        return f"the reader does not see it ({', '.join(hidden)}): {line}"
    return None if found[0].outputs else f"it has no output: {line}"


@functools.cache
def parsed(file):
    text = (rules.ROOT / file).read_text("utf8")
    return text, ast.parse(text)


def fault_of_test(node):
    """Say what is wrong with a test that a row names as pytest does, or None."""
    path, _, name = node.partition("::")
    name, _, case = name.removesuffix("]").partition("[")
    if not (rules.ROOT / path).is_file():
        return f"no file {path}"
    text, tree = parsed(path)
    found = [item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name == name]
    if not found:
        return f"no test {name} in {path}"
    if case and f'"{case}"' not in text:
        return f"no case {case} in {path}"
    if unsure := UNSURE & marks_of(found[0], tree):
        return f"{name} is marked {', '.join(sorted(unsure))}"
    return None


def marks_of(test, tree):
    """What stands after `pytest.` or `pytest.mark.` in a test, in its decorators, and at the top of its file."""
    named = {}  # marks that the file gives a name to: library = pytest.mark.skipif(...)
    for item in tree.body:
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            named[item.targets[0].id] = item.value
    parts = list(test.decorator_list)
    parts += [named[part.id] for part in parts if isinstance(part, ast.Name) and part.id in named]
    parts += [named["pytestmark"]] if "pytestmark" in named else []
    parts += [item for item in tree.body if not isinstance(item, ast.FunctionDef | ast.ClassDef | ast.Assign)]
    nodes = [node for part in [*parts, *test.body] for node in ast.walk(part) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if ast.unparse(node.value) in {"pytest.mark", "pytest"}}


def faults(row):
    """Yield one line for each thing that a row lacks."""
    for key in ("text", "what", "shown", "proved"):
        if not row.get(key):
            yield f"it has no {key}"
    if not set(row["text"].split(", ")) <= SOURCES:
        yield f"unknown source {row['text']}"
    for page, line in row["shown"]:
        if fault := fault_of_cell(line, code_cells(page)):
            yield f"{page}: {fault}"
    yield from filter(None, map(fault_of_test, row["proved"]))
    if "awaits" in row and not runs_of(row["awaits"], "cpu"):
        yield f"no record of {row['awaits']} from a CPU stands in for that of a GPU"


@functools.cache
def runs_of(experiment, kind):
    return [run for run in records.load_all(experiment=experiment) if run.device["kind"] == kind]


def test_the_rows_are_those_of_the_sources():
    assert [row["number"] for row in ROWS] == list(range(1, 62))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['number']}: {row['what'][:60]}")
def test_the_row_is_shown_by_a_cell_and_proved_by_a_test(row):
    assert list(faults(row)) == []


def test_the_page_has_every_row_and_names_each_of_its_tests():
    outputs = [output for cell in code_cells("reference/coverage") for output in cell.outputs]
    shown = "".join(str(output["data"].get("text/markdown", "")) for output in outputs)
    lines = {int(line[4:].partition("**")[0]): line for line in shown.splitlines() if line.startswith("| **")}
    assert list(lines) == [row["number"] for row in ROWS]
    for row in ROWS:
        what, shown = lines[row["number"]].split("</details>")
        assert row["what"] in what
        assert what.count("<br>") == len(row["proved"]) - 1
        assert {page for page, _ in row["shown"]} == set(re.findall(r"\(\.\./([\w/]+)\.ipynb#", shown))


# It can fail


def test_a_cell_that_is_gone_changed_doubled_hidden_or_empty_is_a_fault():
    line = "checks.check_code_1_5625(answer)"
    cells = code_cells("numbers/bits")
    (at,) = [n for n, cell in enumerate(cells) if line in cell.source]
    cell = cells[at]
    assert fault_of_cell(line, cells) is None
    for spoilt, says in (
        ((), "0 cells"),
        ((dataclasses.replace(cell, source=cell.source.replace(line, "pass")),), "0 cells"),
        ((cell, cell), "2 cells"),
        ((dataclasses.replace(cell, tags=("remove-cell",)),), "does not see it"),
        ((dataclasses.replace(cell, outputs=()),), "no output"),
    ):
        assert says in fault_of_cell(line, [*cells[:at], *spoilt, *cells[at + 1 :]])


@pytest.mark.parametrize(
    ("node", "says"),
    [
        ("tests/test_no_such_file.py::test_it", "no file"),
        ("tests/test_formats.py::test_no_such_test", "no test"),
        ("tests/pages/test_reference_numbers.py::test_the_number_is_that_of_the_list[text 4: 2^-25]", "no case"),
        ("tests/emulation/test_exponent_histogram.py::test_a_gpu_counts_as_a_cpu_does", "is marked gpu"),
        (
            "tests/diagnostics/test_autocast_table.py::test_a_documented_operation_does_on_a_cpu_what_the_documentation_says",
            "skip",
        ),
        ("tests/training/test_eight_bit_moments.py::test_a_table_has_the_bits_of_bitsandbytes", "is marked skipif"),
    ],
)
def test_a_test_that_is_not_there_or_may_be_skipped_is_a_fault(node, says):
    assert says in fault_of_test(node)


def test_a_row_that_awaits_a_gpu_needs_a_record_from_a_cpu():
    row = ROWS[0] | {"awaits": "no such experiment"}
    assert [fault for fault in faults(row) if "from a CPU" in fault]
