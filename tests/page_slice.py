"""Run the cells of a page that show records, and those that they need, with the records of another folder.

    python tests/page_slice.py PAGE FOLDER

prints as JSON what they show: texts, tables, and the words in their figures. Cells that no record reaches, such as a
training, are left out.
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
    """The names that code defines, and those that it reads before it has given them a value itself."""

    def __init__(self, bound=()):
        self.defined, self.read, self._bound = set(), set(), set(bound)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.read |= {node.id} - self._bound
        else:
            self._define(node.id)

    def visit_Assign(self, node):
        self._visit_all(node.value, *node.targets)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.read |= {node.target.id} - self._bound
        self._visit_all(node.value, node.target)

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

    def _visit_all(self, *nodes):
        for node in nodes:
            self.visit(node)

    def _visit_inside(self, *nodes, bound=()):
        """Visit what has names of its own: what it defines is unknown outside."""
        inside = Names(self._bound | set(bound))
        inside._visit_all(*nodes)
        self.read |= inside.read


def names_of(source):
    """The names that a cell defines, and those that it reads from earlier cells."""
    names = Names()
    names.visit(ast.parse(source))
    return names.defined, names.read


def loaded_names(source):
    """The names that a cell gives to what it loads: `runs = records.load_all()` gives runs."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and LOADS.search(ast.unparse(node.value)):
            named |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return named


def slice_of(sources):
    """Return the numbers of the cells that load records or name what was loaded, and of those that they need.

    Of several cells that define a name, the last one before its use counts.
    """
    parts = [names_of(source) for source in sources]
    loaded = set().union(*map(loaded_names, sources))
    waiting = [number for number, source in enumerate(sources) if LOADS.search(source) or parts[number][1] & loaded]
    kept = set()
    while waiting:
        number = waiting.pop()
        if number in kept:
            continue
        kept.add(number)
        for name in parts[number][1]:
            before = [earlier for earlier in range(number) if name in parts[earlier][0]]
            waiting += before[-1:]
    return sorted(kept)


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
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code" and runs(cell)]
    shell, shown = InteractiveShell.instance(), []
    for number in slice_of(sources):
        with capture_output() as captured:
            result = shell.run_cell(sources[number])
        if result.error_in_exec or result.error_before_exec:
            raise SystemExit(f"{page}, cell {number}:\n{sources[number]}\n{captured.stdout}")
        shown.append(captured.stdout)
        shown.append(json.dumps(getattr(result.result, "facts", None)))  # of a widget
        shown += [str(text) for output in captured.outputs for text in output.data.values()]
        for figure in map(plt.figure, plt.get_fignums()):
            shown += [text.get_text() for text in figure.findobj(mpl.text.Text)]
        plt.close("all")
    return shown


def runs(cell):
    """Whether a cell is Python that is to work: no magics, nothing that raises on purpose."""
    return not cell.source.startswith("%") and "raises-exception" not in cell.metadata.get("tags", [])


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
