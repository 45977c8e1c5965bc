"""Run the statements of a page that show records, and those that they need, with the records of another folder.

    python tests/page_slice.py PAGE FOLDER

prints as JSON what they show: texts, tables, and the words in their figures. Statements that no record reaches, such as
a training, are left out.
"""

import ast
import json
import re
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
LOADS = re.compile(r"\brecords\.load|\bprint_gpu_runs\(")


class Names(ast.NodeVisitor):
    """The names that code defines, and those that it reads before it has given them a value itself.

    What it assigns a part of (`rows["new"] = 1`), or calls a method of as a statement (`rows.append(1)`), it may
    change: it reads that name, and defines it.
    """

    def __init__(self, bound=()):
        self.defined, self.read, self._bound = set(), set(), set(bound)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.read |= {node.id} - self._bound
        else:
            self._define(node.id)

    def visit_Assign(self, node):
        self._visit_all(node.value, *node.targets)
        for target in node.targets:
            self._change(target)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.read |= {node.target.id} - self._bound
        self._visit_all(node.value, node.target)
        self._change(node.target)

    def visit_Expr(self, node):
        self.visit(node.value)
        self._change(node.value)

    def visit_NamedExpr(self, node):
        self._visit_all(node.value, node.target)

    def visit_For(self, node):
        self._visit_all(node.iter, node.target, *node.body, *node.orelse)

    def visit_comprehension(self, node):
        self._visit_all(node.iter, node.target, *node.ifs)

    def visit_ListComp(self, node):
        self._visit_inside(
            *node.generators, *[getattr(node, part) for part in ("key", "value", "elt") if hasattr(node, part)]
        )

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_FunctionDef(self, node):
        self._define(node.name)
        self._visit_all(*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults))
        self._visit_inside(*node.body, bound={arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)})

    def visit_Lambda(self, node):
        self._visit_all(*node.args.defaults, *filter(None, node.args.kw_defaults))
        self._visit_inside(node.body, bound={arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)})

    def visit_ClassDef(self, node):
        self._define(node.name)
        self._visit_all(*node.decorator_list, *node.bases, *node.keywords)
        self._visit_inside(*node.body)

    def visit_Import(self, node):
        for alias in node.names:
            self._define((alias.asname or alias.name).partition(".")[0])

    visit_ImportFrom = visit_Import

    def _define(self, name):
        self.defined.add(name)
        self._bound.add(name)

    def _change(self, node):
        """Note that a part of what a name stands for may become another: `name[0]`, `name.part`, `name.method(1)`."""
        part = node
        while isinstance(part, (ast.Call, ast.Attribute, ast.Subscript)):
            part = part.func if isinstance(part, ast.Call) else part.value
        called = isinstance(node, ast.Call) and node.func is part
        if isinstance(part, ast.Name) and part is not node and not called:
            self._define(part.id)

    def _visit_all(self, *nodes):
        for node in nodes:
            self.visit(node)

    def _visit_inside(self, *nodes, bound=()):
        """Visit what has names of its own: what it defines is unknown outside."""
        inside = Names(self._bound | set(bound))
        inside._visit_all(*nodes)
        self.read |= inside.read


def names_of(source):
    """The names that a piece of code defines, and those that it reads from earlier ones."""
    names = Names()
    names.visit(ast.parse(source))
    return names.defined, names.read


def slice_of(sources):
    """Return the numbers of the pieces that load records or read what was made of them, and of those that they need.

    Of several pieces that define a name, the last one before its use counts.
    """
    parts = [names_of(source) for source in sources]
    waiting, made, kept = [], set(), set()
    for number, (source, (defined, read)) in enumerate(zip(sources, parts, strict=True)):
        if LOADS.search(source) or read & made:
            waiting.append(number)
            made |= defined
        else:
            made -= defined
    while waiting:
        number = waiting.pop()
        if number in kept:
            continue
        kept.add(number)
        for name in parts[number][1]:
            before = [earlier for earlier in range(number) if name in parts[earlier][0]]
            waiting += before[-1:]
    return sorted(kept)


def statements_of(cells):
    """The statements of cells in order, as (number of the cell, source)."""
    return [(number, ast.unparse(node)) for number, source in enumerate(cells) for node in ast.parse(source).body]


def run(page, folder):
    """Run the slice of a page and return what it shows."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    from utils import records

    records.RESULTS = Path(folder)
    records.load_all.__defaults__ = (Path(folder),)
    notebook = nbformat.read(ROOT / "book" / f"{page}.ipynb", as_version=4)
    statements = statements_of(cell.source for cell in notebook.cells if cell.cell_type == "code" and runs(cell))
    shell, shown, cell = InteractiveShell.instance(), [], None
    for kept in slice_of([source for _, source in statements]):
        number, source = statements[kept]
        if number != cell:
            plt.close("all")
        cell = number
        with capture_output() as captured:
            result = shell.run_cell(source)
        if result.error_in_exec or result.error_before_exec:
            raise SystemExit(f"{page}, cell {number}:\n{source}\n{captured.stdout}")
        shown.append(captured.stdout)
        shown.append(json.dumps(getattr(result.result, "facts", None)))  # of a widget
        shown += [str(text) for output in captured.outputs for text in output.data.values()]
        for figure in map(plt.figure, plt.get_fignums()):
            shown += [text.get_text() for text in figure.findobj(mpl.text.Text)]
    return shown


def runs(cell):
    """Whether a cell is Python that is to work: no magics, nothing that raises on purpose."""
    return not cell.source.startswith("%") and "raises-exception" not in cell.metadata.get("tags", [])


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
