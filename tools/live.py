"""Run every notebook on this machine and build the book with its results in _build/live; nothing committed changes.

A notebook that fails keeps the outputs up to the failing cell, its page says so on top, and the others go on.
"""

import os
import shutil
import sys
from pathlib import Path

import nbformat

from build import build
from utils import machine, notebooks

ROOT = Path(__file__).resolve().parents[1]
LIVE = ROOT / "_build" / "live"
SOURCE = LIVE / "source"
HOURS_A_CELL = 4


def copy_sources():
    """Put a fresh copy of what Sphinx reads into the work folder."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    ignored = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
    shutil.copytree(ROOT / "book", SOURCE / "book", ignore=ignored)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy2(ROOT / name, SOURCE / name)


def notice(error):
    """A cell for the top of a page whose notebook failed."""
    text = f":::{{warning}}\nOn this machine the notebook of this page stopped. {str(error).splitlines()[0]}\n:::"
    return nbformat.v4.new_markdown_cell(text, id="stopped-here")


def run_one(path):
    """Execute a copied notebook in place; return True where every cell ran."""
    notebook, error = notebooks.loads(path.read_text("utf8")), None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    try:
        seconds = notebooks.execute(notebook, path, timeout=HOURS_A_CELL * 3600)
        print(f"{path.relative_to(SOURCE)}  {seconds:.1f} s", flush=True)
    except notebooks.NotebookError as failure:
        error = failure
        print(failure, file=sys.stderr, flush=True)
    notebooks.normalise(notebook)
    if error is not None:
        notebook.cells.insert(1, notice(error))
    notebooks.write(path, notebooks.dumps(notebook))
    return error is None


def main():
    """Run all, build, and say which page to open; return 1 where a notebook or the build failed."""
    device = machine.device()
    print(f"{machine.describe(device)}, size {machine.size(on=device)}", flush=True)
    copy_sources()
    stopped = [path for path in notebooks.book_notebooks(SOURCE / "book") if not run_one(path)]
    code = build(SOURCE, LIVE)
    if code == 0:
        print(f"The book with this machine's results is built. Open {LIVE / '_build' / 'html' / 'index.html'}")
    if stopped:
        print("stopped: " + ", ".join(str(path.relative_to(SOURCE)) for path in stopped), file=sys.stderr)
    return int(bool(code or stopped))


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
