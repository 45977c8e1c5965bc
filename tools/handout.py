"""The hand-out of a chapter: its exercises as a notebook of its own, made of the chapter and never of its solution.

A code cell that ends in a check becomes two: the answer, which a student edits, and the check, which nobody does. Both
carry the metadata of nbgrader (schema 3, nbgrader/nbgraderformat/v3.json). What the exercises use of the chapter
(imports, functions, data) is found statement by statement and stands in a cell on top.
"""

import ast
import builtins
import re
import symtable
from dataclasses import dataclass, field

import nbformat

from notebooks import NOTEBOOK_METADATA

HEADING = re.compile(r"^### ", re.MULTILINE)
NUMBER = re.compile(r"^### (?:\d+\. )?")
TARGET = re.compile(r"^\([\w-]+\)=\n", re.MULTILINE)
CITATION = re.compile(r" ?\{cite(?::\w+)?\}`[^`]*`")
EQUATION = re.compile(r"\{eq\}`([\w-]+)`")
GLUED = re.compile(r"\{glue:text\}`(\w+)(?::([^`]*))?`")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)\s]*)\)")
PAGE_ONLY = {"matplotlib", "myst_nb", "utils"}  # packages whose names a hand-out imports only where a cell needs them
TITLE = (
    "# Exercises: {title}\n\n"
    "*From the book Mixed Precision, Bit by Bit.* Put your answer where the dots are, or mend the code that is there."
    " Run the cell, then the one behind it. It says *not attempted*, *not yet* with a hint, or *correct*; the number"
    " below is your points."
)
RESULT = "outcome = {call}\ndisplay(outcome)\nint(bool(outcome))  # the points"


class HandoutError(Exception):
    """What in a chapter cannot be handed out; the message names the chapter and the remedy."""


@dataclass
class Exercise:
    """An exercise as the chapter has it: its texts and code in order, as (cell type, source, place in the chapter)."""

    parts: list[tuple[str, str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Statement:
    """A statement of the chapter: where it stands, its source, the names that it binds and those that it needs."""

    place: tuple[int, int]
    source: str
    binds: frozenset[str]
    needs: frozenset[str]
    imports: str = ""  # the package, of a statement that imports


def names(source):
    """The names that some code binds at its top level, and the global ones that it reads."""
    binds, needs, tables = set(), set(), [symtable.symtable(source, "cell", "exec")]
    top = tables[0]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is top and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()):
                binds.add(symbol.get_name())
            if symbol.is_referenced() if table is top else symbol.is_global():
                needs.add(symbol.get_name())
    return frozenset(binds), frozenset(name for name in needs if not hasattr(builtins, name))


def statements(cells):
    """Every top-level statement of the code cells, an import once for each name that it brings."""
    for n, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        lines = cell.source.split("\n")
        for at, node in enumerate(ast.parse(cell.source).body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    root = (getattr(node, "module", None) or alias.name).split(".")[0]
                    statement = (
                        ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], 0)
                    )
                    source = ast.unparse(statement)
                    yield Statement((n, at), source, *names(source), imports=root)
                continue
            first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])
            source = "\n".join(lines[first - 1 : node.end_lineno])
            yield Statement((n, at), source, *names(source))


def check_call(source):
    """The last statement of a cell where it calls a check: (the code before it, the call, the check's name) or None."""
    body = ast.parse(source).body
    if not body or not isinstance(body[-1], ast.Expr) or not isinstance(body[-1].value, ast.Call):
        return None
    call = body[-1].value
    if not isinstance(call.func, ast.Attribute) or not ast.unparse(call.func).startswith("checks.check_"):
        return None
    before = source.split("\n")[: body[-1].lineno - 1]
    return "\n".join(before).strip("\n"), ast.get_source_segment(source, call), call.func.attr


def exercises(cells):
    """The exercises of a chapter: those of its section, and before them any that stand elsewhere."""
    inside, section, elsewhere, last, ahead = False, [], [], None, []
    for n, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            inside = "## Exercises" in cell.source.split("\n") or (inside and "\n## " not in "\n" + cell.source)
            texts = HEADING.split(cell.source)
            if not inside:
                last = "### " + texts[-1] if len(texts) > 1 else last
            elif len(texts) == 1 and section:  # a text within an exercise
                section[-1].parts.append(("markdown", cell.source, n))
            for text in texts[1:] if inside else []:
                section.append(Exercise([("markdown", "### " + text, n), *ahead]))
                ahead = []
        elif inside:
            (section[-1].parts if section else ahead).append(("code", cell.source, n))
        elif not inside and check_call(cell.source) and last:
            elsewhere.append(Exercise([("markdown", last, n), ("code", cell.source, n)]))
    return elsewhere + section


def glued(cells):
    """The values that the chapter shows in its text, by name."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    named = [
        (output.metadata["scrapbook"]["name"], output)
        for output in outputs
        if "scrapbook" in output.get("metadata", {})
    ]
    return {name: output["data"].get("application/papermill.record/text/plain", "") for name, output in named}


def plain(text, cells):
    """A text of the book as any Jupyter shows it: values and equations filled in, no roles, no links into the book.

    Raises: HandoutError for an equation or a value that the chapter does not have.
    """
    values = glued(cells)

    def equation(match):
        for cell in cells:
            if f"$$ ({match[1]})" in cell.source:
                return "$" + cell.source.split(f"$$ ({match[1]})")[0].rsplit("$$", 1)[1].strip().rstrip(",.") + "$"
        raise HandoutError(f"the equation {match[1]} is not in the chapter; write it out in the exercise")

    def value(match):
        if match[1] not in values:
            raise HandoutError(f"the value {match[1]} is not in the chapter; write it out in the exercise")
        return format(float(values[match[1]]), match[2]) if match[2] else values[match[1]].strip("'")

    text = TARGET.sub("", text)
    text = GLUED.sub(value, EQUATION.sub(equation, CITATION.sub("", text)))
    return LINK.sub(r"\1", text).strip()


def without_checks(source):
    """A code without the import of the checks, which stands on top of a hand-out."""
    return "\n".join(line for line in source.split("\n") if not line.startswith("from utils.checks import")).strip("\n")


def setup(cells, wanted):
    """The code on top of a hand-out: its imports, and what else of the chapter the codes of its exercises need.

    wanted: pairs (place of the cell in the chapter, source).
    """
    available = list(statements(cells))
    first = available[0].place[0]  # the chapter's own imports
    selected = {s for s in available if s.imports and s.imports not in PAGE_ONLY and s.place[0] == first}
    queue, defined = [], set()
    for n, source in wanted:
        binds, needs = names(source)
        queue += [(name, (n, 0)) for name in needs - defined - binds - {"checks"}]
        defined |= binds
    while queue:
        name, before = queue.pop()
        earlier = (s for s in available if name in s.binds and s.place < before)
        source = max(earlier, key=lambda s: s.place, default=None)
        if source is None:
            raise HandoutError(f"nothing in the chapter before cell {before[0] + 1} defines {name}")
        if source not in selected:
            selected.add(source)
            queue += [(needed, source.place) for needed in source.needs - {name}]
            queue += [(name, source.place)] if name in source.needs and not source.imports else []
    imports = sorted((s.imports == "utils", s.source.split()[0] == "from", s.source) for s in selected if s.imports)
    rest = sorted((s for s in selected if not s.imports), key=lambda s: s.place)
    return "\n".join(source for *_, source in imports), "\n\n".join(s.source for s in rest)


def grading(grade_id, *, grade=False, solution=False, locked=True, points=None):
    """The metadata of one cell for nbgrader, schema 3."""
    marks = {"schema_version": 3, "grade_id": grade_id, "grade": grade, "solution": solution, "locked": locked}
    return {"nbgrader": marks | {"task": False} | ({} if points is None else {"points": points})}


def code_cell(name, source, **marks):
    """A code cell without output."""
    return nbformat.v4.new_code_cell(source, id=name, metadata=grading(name, **marks))


def text_cell(name, source, **marks):
    """A cell of text."""
    return nbformat.v4.new_markdown_cell(source, id=name, metadata=grading(name, **marks))


def exercise_cells(exercise, number, cells):
    """The cells of one exercise: text, answer and check; where it has no check, room for words."""
    checked = False
    for at, (kind, source, _) in enumerate(exercise.parts):
        name = f"exercise-{number}-{at}"
        if kind == "markdown":
            source = NUMBER.sub(f"## {number}. ", plain(source, cells))
            yield text_cell(f"{name}-text", source.replace("No check, but something to find out.\n\n", ""))
        elif (answer := check_call(source)) is None:
            yield code_cell(f"{name}-given", source)
        else:
            before, call, check = answer
            yield code_cell(f"{name}-answer", without_checks(before), solution=True, locked=False)
            name = check.removeprefix("check_").replace("_", "-")
            yield code_cell(f"{name}-check", RESULT.format(call=call), grade=True, points=1)
            checked = True
    if not checked:
        yield text_cell(
            f"exercise-{number}-words", "*What you found:*", grade=True, solution=True, locked=False, points=0
        )


def handout(chapter):
    """Make the hand-out of a chapter, a notebook without outputs; None where the chapter checks nothing.

    Raises: HandoutError where an exercise needs what the chapter does not define before it.
    """
    cells = chapter.cells
    in_chapter = exercises(cells)
    codes = [(n, without_checks(source)) for e in in_chapter for kind, source, n in e.parts if kind == "code"]
    if not any(check_call(source) for _, source in codes):
        return None
    checks = next(s.source for s in statements(cells) if "checks" in s.binds and s.imports == "utils")
    imports, rest = setup(cells, codes)
    title = cells[0].source.split("\n", 1)[0].removeprefix("# ")
    made = [
        text_cell("title", TITLE.format(title=title)),
        code_cell("imports", f"{imports}\n{checks}".strip()),
        *([code_cell("of-the-chapter", rest)] if rest else []),
    ]
    for number, exercise in enumerate(in_chapter, 1):
        made += exercise_cells(exercise, number, cells)
    return nbformat.v4.new_notebook(cells=made, metadata=NOTEBOOK_METADATA)
