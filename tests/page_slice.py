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


def names_of(source):
    """The names that a cell defines, and those that it reads."""
    defined, read = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return defined, read


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
