"""How far a student is: each exercise not attempted, not yet or correct, as the checks say.

    python tools/progress_report.py FILE ...           read what the checks said when the notebooks were saved
    python tools/progress_report.py --run FILE ...     run the notebooks, and the checks as this copy has them
    python tools/progress_report.py --csv OUT FILE ... write the table to OUT; default: progress.csv

A FILE is a notebook, of the book or handed out by `make classroom`, or the file that the page "Your progress" saves.
Saved outputs can be edited. --run asks the checks again; it runs the student's code with your rights, so do it where
that is safe. A file from the page holds what a browser has kept and cannot be run.
"""

import argparse
import ast
import csv
import functools
import importlib
import json
import pkgutil
import re
import sys
from pathlib import Path
from typing import NamedTuple

import notebooks
from utils import checks
from utils.checks.questions import CORRECT, NOT_ATTEMPTED, NOT_YET

BOOK = "mixed-precision-bit-by-bit"  # as widgets/progress/records.js writes it
VERSION = 1
SAID = re.compile(r"[○→✓] (?P<status>Not attempted|Not yet|Correct)\. ?(?P<says>.*)", re.DOTALL)
HINTED = " (There is a hint: look at `.hint`.)"
SAVED, RUN, PAGE = "saved outputs", "run again", "saved progress of a browser"
MARKS = {NOT_ATTEMPTED: "○", NOT_YET: "→", CORRECT: "✓"}


class ReportError(Exception):
    """What is wrong with a file, in one sentence; `rows` are those that it has all the same."""

    def __init__(self, message, rows=()):
        super().__init__(message)
        self.rows = list(rows)


class Row(NamedTuple):
    """One exercise of one file; `source` says where its status comes from."""

    file: str
    chapter: str
    exercise: str
    status: str
    says: str
    source: str


class Check(NamedTuple):
    """A check that a cell calls: the cell, the chapter, the check's name, and the code of its argument."""

    cell: object
    chapter: str
    name: str
    argument: str


def checks_of(chapter):
    """The checks of a chapter by the name of their exercise, in its order; none for a chapter that there is not.

    Importing the checks imports torch.
    """
    if chapter not in chapters():
        return {}
    functions = vars(importlib.import_module(chapters()[chapter]))
    return {name.removeprefix("check_"): check for name, check in functions.items() if name.startswith("check_")}


@functools.cache
def chapters():
    """The module of checks of each chapter that checks something, by the chapter's name."""
    packages = pkgutil.walk_packages(checks.__path__, "utils.checks.")
    modules = {module.name.rpartition(".")[2]: module.name for module in packages if not module.ispkg}
    return {name: module for name, module in modules.items() if f"{name}_questions" in modules}


def find_checks(cells):
    """Each call of a check in code cells that can be parsed, in order."""
    chapter = ""
    for cell in cells:
        if cell.cell_type != "code":
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("utils.checks."):
                chapter = next((alias.name for alias in node.names if alias.asname == "checks"), chapter)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("checks.check_"):
                argument = ", ".join(ast.unparse(argument) for argument in node.args)
                yield Check(cell, chapter, node.func.attr.removeprefix("check_"), argument)


def outcome(cell):
    """What the check in an executed cell said: (status, sentence)."""
    for output in reversed(cell.outputs):
        text = output.get("data", {}).get("text/plain", "")
        if match := SAID.match("".join(text)):
            return match["status"].lower(), match["says"].removesuffix(HINTED)
        if output.output_type == "error":
            return NOT_YET, f"{output.ename}: {output.evalue}"
    return NOT_ATTEMPTED, "" if cell.execution_count else "The cell was not run."


def run(notebook, path, timeout):
    """Run a student's notebook in memory, past what fails, with the checks as they are here.

    Each cell that checks is written anew, so that an edited one decides nothing. Returns where and why the kernel
    stopped, as in a cell that takes longer than `timeout` seconds; "" where it came to the end.
    """
    for check in list(find_checks(notebook.cells)):
        if check.chapter in chapters():
            module = chapters()[check.chapter]
            asked = f"import {module} as checks\nchecks.check_{check.name}({check.argument})"
            check.cell.source = keep_answer(check.cell.source) + asked
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata["tags"] = ["raises-exception"]  # the exercises behind a failing cell count too
    try:
        notebooks.execute(notebook, path, timeout=timeout)
    except notebooks.NotebookError as error:
        return f"{str(error).splitlines()[0].rstrip('.')}; what comes before it is reported."
    return ""


def keep_answer(source):
    """The code of a cell before the statement that calls a check."""
    body = ast.parse(source).body
    first = next(
        n for n in body if any(isinstance(c, ast.Call) and "check_" in ast.unparse(c.func) for c in ast.walk(n))
    )
    return "".join(line + "\n" for line in source.split("\n")[: first.lineno - 1])


def notebook_rows(text, path, timeout=None):
    """The exercises of a notebook; with `timeout`, in seconds for a cell, after it was run.

    In the order of the notebook; an exercise of the chapter whose cell was removed comes last, not attempted.
    Raises: ReportError, with the rows where the notebook could be run in part.
    """
    try:
        notebook = notebooks.loads(text)
    except (ValueError, KeyError, AttributeError) as error:
        raise ReportError(f"{path} is no notebook that can be read: {error}") from None
    stopped = run(notebook, path, timeout) if timeout is not None else ""
    calls, source = list(find_checks(notebook.cells)), SAVED if timeout is None else RUN
    outcomes = {(check.chapter, check.name): outcome(check.cell) for check in calls}
    if not outcomes:
        raise ReportError(f"{path} calls no check of an exercise; it is no notebook of this book's exercises.")
    rows = []
    for chapter in dict.fromkeys(chapter for chapter, _ in outcomes):
        present = [name for of, name in outcomes if of == chapter]
        for name in dict.fromkeys([*present, *checks_of(chapter)]):
            status, says = outcomes.get((chapter, name), (NOT_ATTEMPTED, "The notebook has no cell that checks it."))
            rows.append(Row(str(path), chapter, name, status, says, source))
    if stopped:
        raise ReportError(stopped, rows)
    return rows


def page_rows(saved, path):
    """Return the exercises that "Your progress" saved. Raises: ReportError for anything else."""
    records = saved.get("progress")
    if saved.get("book") != BOOK or not isinstance(records, dict):
        raise ReportError(f"{path} holds no progress of this book.")
    if saved.get("version") != VERSION:
        raise ReportError(f"{path} was saved by another edition of the book, which this one cannot read.")
    for name, record in records.items():
        if not isinstance(record, dict) or not isinstance(record.get("solved"), bool):
            raise ReportError(f"{path} has an entry that cannot be read: {name[:60]}.")
    for chapter in chapters():
        for name, check in checks_of(chapter).items():
            asked = [records[question.id] for question in check.asks if question.id in records]
            solved = sum(record["solved"] for record in asked)
            status = CORRECT if solved == len(check.asks) > 0 else NOT_YET if asked else NOT_ATTEMPTED
            yield Row(str(path), chapter, name, status, f"{solved} of {len(check.asks)} done in the page", PAGE)


def rows_of(path, timeout=None):
    """The exercises of one file. Raises: ReportError where it cannot be read."""
    path = Path(path)
    try:
        text = path.read_text("utf8")
        saved = json.loads(text)
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:  # not JSON, or not text at all
        raise ReportError(f"{path} is neither a notebook nor a saved progress.") from None
    if not isinstance(saved, dict):
        raise ReportError(f"{path} is neither a notebook nor a saved progress.")
    return list(notebook_rows(text, path, timeout) if "cells" in saved else page_rows(saved, path))


def table(rows):
    """The report of one file as lines: its exercises, chapters not begun in one line, and the sums."""
    begun = {row.chapter for row in rows if row.status != NOT_ATTEMPTED} or {row.chapter for row in rows[:1]}
    yield f"{rows[0].file} ({rows[0].source})"
    for row in rows:
        if row.chapter in begun:
            yield f"  {MARKS[row.status]} {row.status:13}  {row.chapter}/{row.exercise}"
    if waiting := sorted({row.chapter for row in rows} - begun):
        yield f"  not begun: {', '.join(waiting)}"
    counts = {status: sum(row.status == status for row in rows) for status in MARKS}
    yield f"  {counts[CORRECT]} correct, {counts[NOT_YET]} not yet, {counts[NOT_ATTEMPTED]} not attempted"


def seconds(text):
    """A whole number from 1 on, for a command line; the kernel would take 0 and less for "without an end"."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 on")
    return int(text)


def write_csv(path, rows):
    """Write the rows with a line of names."""
    with open(path, "w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows([Row._fields, *rows])


def main(arguments=None):
    """Report on the files, go on after one that cannot be read, and return 1 if there was one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="a notebook, or a file saved by the progress page")
    parser.add_argument("--run", action="store_true", help="run the notebooks instead of trusting their outputs")
    parser.add_argument("--timeout", type=seconds, default=120, metavar="S", help="with --run: seconds a cell (120)")
    parser.add_argument("--csv", type=Path, default=Path("progress.csv"), metavar="OUT")
    options = parser.parse_args(arguments)
    everything, failed = [], 0
    for path in options.files:
        try:
            rows = rows_of(path, options.timeout if options.run else None)
        except ReportError as error:
            print(error, file=sys.stderr)
            rows, failed = error.rows, 1
            if not rows:
                continue
        except KeyboardInterrupt:
            print(f"\nStopped by hand at {path}: the report ends before it.", file=sys.stderr)
            failed = 130
            break
        print("\n".join(table(rows)))
        everything += rows
    try:
        if everything:
            write_csv(options.csv, everything)
            print(f"written: {options.csv}")
    except OSError as error:
        print(f"{options.csv} cannot be written: {error.strerror}.", file=sys.stderr)
        failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
