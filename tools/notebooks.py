"""Run, normalise and check the book's notebooks, and edit one as text: re-executing a notebook leaves no diff.

    python tools/notebooks.py run [--fresh] [NOTEBOOK ...]    execute in place, then normalise
    python tools/notebooks.py normalise|check [NOTEBOOK ...]  write the normal form / name what is not in it
    python tools/notebooks.py text NOTEBOOK ...               write _build/text/....md, to be edited
    python tools/notebooks.py update NOTEBOOK ...             take that text back, or make a new notebook of it

Without a notebook: all of the book. The normal form has no times, addresses or random ids, counts its cells from 1,
merges streams, and keeps a widget as its static form. The cells tagged `nbval-ignore-output` keep their committed
outputs as long as no cell of the notebook is new or edited; `--fresh` takes new ones all the same.
"""

import argparse
import difflib
import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
TEXT = ROOT / "_build" / "text"
MAX_SECONDS = 45.0
CELL_TIMEOUT = 600
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KEPT_CELL_METADATA = ("mystnb", "tags")
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# what differs from run to run inside a text; tests/nbval_sanitize.cfg has the same rules for nbval
VOLATILE = ((re.compile(r"\S*ipykernel_\d+/\d+\.py"), "<cell>"), (re.compile(r"\bat 0x[0-9a-f]{6,}"), "at 0xADDR"))
ANSI = re.compile(r"\x1b\[[0-9;]*m")


class NotebookError(Exception):
    """A cell raised: the message names the notebook, the cell and the exception, and holds the traceback."""


def book_notebooks(folder: Path = BOOK) -> list[Path]:
    """Every notebook below `folder`, sorted, without checkpoints."""
    return sorted(path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)


def short(path: str | Path) -> str:
    """`path` relative to the checkout where it lies in it."""
    path = Path(path).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def loads(text: str) -> NotebookNode:
    """Parse a notebook; a cell without an id gets one that follows from its content.

    Raises:
        ValueError: where the text is not a notebook of format 4.
    """
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise ValueError(f"not a notebook: {error}") from error
    if not isinstance(raw, dict) or raw.get("nbformat") != 4:
        raise ValueError("not a notebook of format 4; open it in JupyterLab and save it again")
    raw["nbformat_minor"] = 5
    name_cells(raw.get("cells", []))
    return nbformat.reads(json.dumps(raw), as_version=4)


def name_cells(cells: list[dict]) -> None:
    """Return each cell that lacks an id, or repeats one, an id made of its type and source."""
    seen = set()
    for cell in cells:
        identity = cell.get("id")
        if not identity or identity in seen:
            source = "".join(cell["source"])
            stem = hashlib.sha256(f"{cell['cell_type']}\n{source}".encode()).hexdigest()[:8]
            numbered = (stem if n == 0 else f"{stem}-{n}" for n in range(len(cells) + 1))
            identity = next(name for name in numbered if name not in seen)
        cell["id"] = identity
        seen.add(identity)


def dumps(notebook: NotebookNode) -> str:
    """The text of a notebook file."""
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def write(path: str | Path, text: str) -> None:
    """Replace a file at once, so that an interrupted call leaves the old one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.with_name(f".{path.name}.{os.getpid()}")
    work.write_text(text, "utf8")
    work.replace(path)


def execute(notebook: NotebookNode, path: str | Path, timeout: int = CELL_TIMEOUT) -> float:
    """Run all cells in a fresh kernel whose folder is that of `path`; the outputs go into `notebook`.

    Returns: seconds, kernel start included.

    Raises:
        NotebookError: where a cell not tagged `raises-exception` fails; the outputs up to it are in `notebook`.
        KeyboardInterrupt: at Ctrl-C.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    path = Path(path).resolve()
    search_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--IPKernelApp.log_level=50"],  # no word about local ports, or of a kernel that is ended
        resources={"metadata": {"path": str(path.parent)}},
    )
    start = time.perf_counter()
    try:
        # one thread, as in the tests: with two, sums are added in another order
        client.execute(env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": search_path})
    except CellExecutionError as error:
        message = f"{place(notebook, path)}: {error.ename}: {error.evalue}"
        raise NotebookError(f"{message}\n{last_traceback(notebook)}") from None
    except (CellTimeoutError, DeadKernelError) as error:
        raise NotebookError(f"{place(notebook, path)}: {str(error).strip().splitlines()[0]}") from None
    except AssertionError:
        if client.km is not None:
            raise
        raise KeyboardInterrupt from None  # nbclient answers it by ending the kernel, which it then looks for
    return time.perf_counter() - start


def place(notebook: NotebookNode, path: str | Path) -> str:
    """Name the notebook and its last cell that began to run."""
    started = [n for n, cell in enumerate(notebook.cells) if cell.get("outputs") or cell.get("execution_count")]
    failed = [n for n in started if any(output.output_type == "error" for output in notebook.cells[n].outputs)]
    n = (failed or started or [0])[-1]
    return f"{short(path)}, cell {n + 1} of {len(notebook.cells)} (id {notebook.cells[n].id})"


def last_traceback(notebook: NotebookNode) -> str:
    """The traceback of the last cell that failed, without colours."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    failed = [output for output in outputs if output.output_type == "error"]
    return ANSI.sub("", "\n".join(failed[-1].traceback)) if failed else ""


def normalise(notebook: NotebookNode, committed: NotebookNode | None = None) -> NotebookNode:
    """Bring `notebook` into the normal form in place, and return it.

    committed: the same notebook before it was run, or None; unchanged cells tagged `nbval-ignore-output` keep their
    output from there.
    """
    before = {cell.id: cell for cell in committed.cells} if committed else {}
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    count = 0
    for cell in notebook.cells:
        cell.source = "\n".join(line.rstrip() for line in cell.source.strip("\n").splitlines())
        kept = {key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type != "code":
            cell.pop("attachments", None)
            continue
        old = before.get(cell.id)
        unchanged = old is not None and old.source == cell.source and old.outputs
        if unchanged and "nbval-ignore-output" in kept.get("tags", []):
            cell.outputs = old.outputs
        if cell.execution_count is not None:
            count += 1
            cell.execution_count = count
        cell.outputs = normal_outputs(cell.outputs, cell.execution_count)
    return notebook


def normal_outputs(outputs: list[NotebookNode], count: int | None) -> list[NotebookNode]:
    """Merge neighbouring streams of one name, drop live widget views that have a static form, scrub texts."""
    merged = []
    for output in outputs:
        if merged and output.output_type == merged[-1].output_type == "stream" and output.name == merged[-1].name:
            merged[-1].text += output.text
        else:
            merged.append(output)
    for output in merged:
        if output.output_type == "execute_result":
            output.execution_count = count
        data = output.get("data", {})
        if "text/html" in data:
            data.pop(WIDGET_VIEW, None)  # a random model id; the HTML carries the state
        for key in [key for key in data if key.startswith("text/")]:
            data[key] = scrub(data[key])
        if "text" in output:
            output.text = scrub(overwritten(output.text))
        for key in ("evalue", "traceback"):
            if key in output:
                output[key] = scrub(output[key])
    return merged


def overwritten(text: str) -> str:
    """What a terminal shows of a text with carriage returns: progress bars leave their last state."""
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


def scrub(text: str | list[str]) -> str | list[str]:
    """Replace kernel paths and memory addresses in a string or a list of strings."""
    if not isinstance(text, str):
        return [scrub(part) for part in text]
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return text


def problems(notebook: NotebookNode) -> Iterator[str]:
    """Say in one line each what a reader of the built page, or nbval, would miss in the notebook."""
    for n, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            continue
        skipped = "skip-execution" in cell.metadata.get("tags", [])
        if cell.execution_count is None and not skipped:
            yield f"cell {n} (id {cell.id}) has not been run"
        for output in cell.outputs:
            data = output.get("data", {})
            if WIDGET_VIEW in data and "text/html" not in data:
                yield f"cell {n} (id {cell.id}) shows a widget without a static form; use a BookWidget"


def read(path: str | Path) -> NotebookNode:
    """Parse the notebook in a file.

    Raises:
        OSError: where it cannot be read.
        ValueError: where it is no notebook, with its name.
    """
    try:
        return loads(Path(path).read_text("utf8"))
    except ValueError as error:
        raise ValueError(f"{short(path)}: {error}") from error


def run(path: str | Path, fresh: bool = False) -> float:
    """Execute one notebook in place, normalise it, and return the seconds it took.

    The ignored cells keep their committed outputs together or not at all: where one cell is new or edited, every output
    is new, so that no page mixes the numbers of two runs.
    """
    notebook = read(path)
    text = Path(path).read_text("utf8")
    fresh = fresh or any(cell.cell_type == "code" and cell.execution_count is None for cell in notebook.cells)
    seconds = execute(notebook, path)
    new = dumps(normalise(notebook, committed=None if fresh else loads(text)))
    if new != text:
        write(path, new)
    return seconds


def check(path: str | Path) -> list[str]:
    """List what is wrong with one notebook as it lies on disk; empty where nothing is."""
    faults = list(problems(read(path)))
    text = Path(path).read_text("utf8")
    if dumps(normalise(loads(text))) != text:
        faults.append(f"not in the normal form; run `python tools/notebooks.py normalise {short(path)}`")
    return faults


def text_path(path: str | Path) -> Path:
    """Where `text` writes and `update` reads the text of a notebook."""
    return TEXT / Path(short(path)).with_suffix(".md")


def to_text(notebook: NotebookNode) -> str:
    """The notebook's cells as MyST Markdown, without outputs."""
    import jupytext

    return jupytext.writes(notebook, fmt="md:myst")


def from_text(text: str, old: NotebookNode | None = None) -> NotebookNode:
    """Make a notebook of MyST Markdown; cells that `old` has keep their id, and their output where unchanged."""
    import jupytext

    new = jupytext.reads(text, fmt="md:myst")
    for cell in new.cells:
        cell.pop("id", None)
    for cell, source in matches(new.cells, old.cells if old else []):
        cell.id = source.id
        if cell.cell_type == "code" and cell.source.strip() == source.source.strip():
            cell.outputs, cell.execution_count = source.outputs, source.execution_count
    name_cells(new.cells)
    return normalise(loads(json.dumps(new)))


def matches(new: list[NotebookNode], old: list[NotebookNode]) -> Iterator[tuple[NotebookNode, NotebookNode]]:
    """Pair each cell of `new` with the one of `old` that it was: an equal one, or an edited one between equal ones."""
    keys = [[(cell.cell_type, cell.source.strip()) for cell in cells] for cells in (old, new)]
    for kind, a, a_end, b, b_end in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and a_end - a == b_end - b):
            for before, after in zip(old[a:a_end], new[b:b_end], strict=True):
                if before.cell_type == after.cell_type:
                    yield after, before


def command_run(paths: Iterable[str | Path], fresh: bool) -> int:
    """Run the notebooks in turn, and go on after one that fails; return the number of failures."""
    failures = Counter()
    for path in paths:
        try:
            seconds = run(path, fresh=fresh)
        except NotebookError as error:
            failures[path] += 1
            print(error, file=sys.stderr)
            continue
        warning = f"  longer than the {MAX_SECONDS:.0f} s that a notebook may take" if seconds > MAX_SECONDS else ""
        print(f"{short(path)}  {seconds:.1f} s{warning}", flush=True)
        for problem in problems(loads(Path(path).read_text("utf8"))):
            failures[path] += 1
            print(f"{short(path)}: {problem}", file=sys.stderr)
    return len(failures)


def command(name: str, paths: Iterable[str | Path], fresh: bool = False) -> int:
    """Carry out one command on the notebooks; return the number of those with a fault."""
    if name == "run":
        return command_run(paths, fresh)
    failures = 0
    for path in map(Path, paths):
        if name == "check":
            faults = check(path)
            print("\n".join(f"{short(path)}: {problem}" for problem in faults), end="\n" if faults else "")
            failures += bool(faults)
        elif name == "normalise":
            write(path, dumps(normalise(read(path))))
        elif name == "text":
            write(text_path(path), to_text(read(path)))
            print(short(text_path(path)))
        else:
            old = read(path) if path.exists() else None
            write(path, dumps(from_text(text_path(path).read_text("utf8"), old)))
            print(f"{short(path)}: updated; now `python tools/notebooks.py run {short(path)}`")
    return failures


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python tools/notebooks.py", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "normalise", "check", "text", "update"))
    parser.add_argument("notebooks", nargs="*", metavar="NOTEBOOK", help="default: every notebook of the book")
    parser.add_argument("--fresh", action="store_true", help="run: take new outputs for ignored cells too")
    options = parser.parse_intermixed_args(arguments)  # so that `run --fresh NOTEBOOK` is understood
    if options.command == "update" and not options.notebooks:
        parser.error("update needs the name of a notebook")
    try:
        return int(command(options.command, options.notebooks or book_notebooks(), fresh=options.fresh) > 0)
    except OSError as error:
        print(f"{short(error.filename)}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped by hand: the notebook that was running is as it was.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
