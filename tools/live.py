"""Run every notebook on this machine and build the book with its results in _build/live; nothing committed changes.

A notebook that fails keeps the outputs up to the failing cell, its page says so on top, and the others go on. A run
that was stopped goes on where it was: a notebook is not run again while it, the code, the records, the device, the size
and the versions are the same. `tools/live.py --fresh` runs all of them again.
"""

import argparse
import hashlib
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

import nbformat

import notebooks
from build import build
from utils import machine

ROOT = Path(__file__).resolve().parents[1]
LIVE = ROOT / "_build" / "live"
HOURS_A_CELL = 4
DECIDE = ("numpy", "torch", "transformers", "datasets", "matplotlib")  # packages whose version changes results


def copy_sources(live):
    """Put a fresh copy of what Sphinx reads into the work folder, and return it."""
    source = live / "source"
    shutil.rmtree(source, ignore_errors=True)
    ignored = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
    shutil.copytree(ROOT / "book", source / "book", ignore=ignored)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy2(ROOT / name, source / name)
    return source


def notice(error):
    """A cell for the top of a page whose notebook failed."""
    text = f":::{{warning}}\nOn this machine the notebook of this page stopped. {str(error).splitlines()[0]}\n:::"
    return nbformat.v4.new_markdown_cell(text, id="stopped-here")


def circumstances():
    """What the results of every notebook depend on besides itself: code, records, device, size, settings, versions."""
    device = machine.device()
    digest = hashlib.sha256(f"{machine.describe(device)} {machine.size(on=device)}".encode())
    settings = sorted(item for item in os.environ.items() if item[0].startswith("MIXED_PRECISION_"))
    digest.update(repr((settings, [(name, metadata.version(name)) for name in DECIDE])).encode())
    files = [path for folder in ("utils", "book/results") for path in (ROOT / folder).rglob("*")]
    for path in sorted(path for path in files if path.suffix in {".py", ".js", ".css", ".json"}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def key(notebook, around):
    """Under which name the outputs of a notebook are kept: its cells, and what they depend on."""
    cells = [(cell.cell_type, cell.source, sorted(cell.metadata.get("tags", []))) for cell in notebook.cells]
    return hashlib.sha256(repr((cells, around)).encode()).hexdigest()[:24]


def run_one(path, kept):
    """Execute a copied notebook in place, or take over its kept outputs; return its seconds, None where they are kept.

    Raises:
        NotebookError: where a cell failed; the outputs up to it are in the file, and its page says so.
    """
    if kept.exists():
        shutil.copy2(kept, path)
        return None
    notebook, error, seconds = notebooks.loads(path.read_text("utf8")), None, 0.0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    try:
        seconds = notebooks.execute(notebook, path, timeout=HOURS_A_CELL * 3600)
    except notebooks.NotebookError as failure:
        error = failure
        notebook.cells.insert(1, notice(error))
    notebooks.normalise(notebook)
    notebooks.write(path, notebooks.dumps(notebook))
    if error is not None:
        raise error
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, kept)
    return seconds


def run_all(source, kept_folder):
    """Execute the notebooks below `source`, one line each; return those that stopped."""
    around, stopped = circumstances(), []
    paths = notebooks.book_notebooks(source / "book")
    for n, path in enumerate(paths, start=1):
        name = path.relative_to(source)
        print(f"{n:3} of {len(paths)}  {name}", end="  ", flush=True)
        kept = kept_folder / f"{key(notebooks.loads(path.read_text('utf8')), around)}.ipynb"
        try:
            seconds = run_one(path, kept)
            print("has run before" if seconds is None else f"{seconds:.1f} s", flush=True)
        except notebooks.NotebookError as failure:
            stopped.append(name)
            print("stopped", flush=True)
            print(failure, file=sys.stderr, flush=True)
    return stopped


def main(arguments=None):
    """Run all, build, and say which page to open; return 1 where a notebook or the build failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="run every notebook again")
    options = parser.parse_args(arguments)
    device, kept = machine.device(), LIVE / "kept"
    print(f"{machine.describe(device)}, size {machine.size(on=device)}", flush=True)
    if options.fresh:
        shutil.rmtree(kept, ignore_errors=True)
    source = copy_sources(LIVE)
    try:
        stopped = run_all(source, kept)
    except KeyboardInterrupt:
        print("\nStopped by hand. The same command goes on from here.", file=sys.stderr)
        return 130
    code = build(source, LIVE)
    if code == 0:
        print(f"The book with this machine's results is built. Open {LIVE / '_build' / 'html' / 'index.html'}")
    if stopped:
        print("stopped: " + ", ".join(map(str, stopped)), file=sys.stderr)
    return int(bool(code or stopped))


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
