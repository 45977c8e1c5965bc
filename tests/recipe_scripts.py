"""The scripts of the cookbook, taken from their pages as a reader copies them."""

import ast
import contextlib
import importlib.abc
import importlib.machinery
import io
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import torch

import book_scripts
import notebooks
from script_server import ScriptServer

COOKBOOK = Path(__file__).parents[1] / "book" / "cookbook"
LIBRARIES = os.path.join(sys.prefix, "cookbook")  # torchao, peft and others: book/cookbook/requirements.txt
# a script has the machine to itself at a reader's; here two run at once, on two cores
ENVIRONMENT = {"PYTHONPATH": LIBRARIES, "OMP_NUM_THREADS": "1"}
PAGES = sorted(COOKBOOK.glob("*.ipynb"))
_SERVER = ScriptServer()


def script_of(name: str) -> str:
    """Return the source of the one cell of a recipe that is tagged `script`."""
    return book_scripts.script_of(COOKBOOK / f"{name}.ipynb")[1]


def file_of(name: str) -> str:
    """Return the file name that the first line of a script gives: "# train_float16.py: what it does"."""
    return book_scripts.script_of(COOKBOOK / f"{name}.ipynb")[0]


def run_as_shown(name: str, folder: Path, *, last_line_only=False) -> subprocess.CompletedProcess:
    """Run a script as it stands, and see that it ends well and prints what its page shows.

    The cells of recipes run here alone, not by nbval a second time. Where the cell is tagged `nbval-ignore-output`, the
    page has the numbers of another run: compared is each line up to its first digit, or the last one alone. With a GPU
    the script prints what its tests look at.
    """
    done = run(name, folder, start=(sys.executable,))  # a process of its own, as a reader's
    assert done.returncode == 0, done.stderr
    if not torch.cuda.is_available():
        tags, shown = _cell_of(name)
        lines, shown = done.stdout.splitlines(), shown.splitlines()
        if "nbval-ignore-output" in tags:
            lines, shown = ([re.split(r"\d", line)[0].rstrip("+- ") for line in text] for text in (lines, shown))
        assert lines[-1 if last_line_only else 0 :] == shown[-1 if last_line_only else 0 :]
    return done


def _cell_of(name: str) -> tuple[set[str], str]:
    """The tags of the cell that holds a script, and the output below it."""
    cells = notebooks.loads((COOKBOOK / f"{name}.ipynb").read_text("utf8")).cells
    (cell,) = (cell for cell in cells if "script" in cell.metadata.get("tags", ()))
    return set(cell.metadata["tags"]), "".join(output.get("text", "") for output in cell.outputs)


def run_without(name: str, library: str) -> tuple[int, str]:
    """Execute a script where a library is missing, up to its end; return the exit code and what stderr holds.

    Every other library is an empty one, so that nothing is imported: a script has to stop at its imports.
    """
    packages = {library, *imports_of(name)} - {"torch", "numpy"}
    held = {key: sys.modules.pop(key) for key in list(sys.modules) if key.partition(".")[0] in packages}
    finder, errors = _Empty(packages - {library}), io.StringIO()
    sys.modules[library] = None  # Python's way to say that it cannot be imported
    sys.meta_path.insert(0, finder)
    try:
        with contextlib.redirect_stderr(errors):
            exec(compile(script_of(name), file_of(name), "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return end.code, errors.getvalue()
    finally:
        sys.meta_path.remove(finder)
        for key in [key for key in sys.modules if key.partition(".")[0] in packages]:
            del sys.modules[key]
        sys.modules.update(held)
    return 0, errors.getvalue()


class _Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds packages that have every name, and nothing behind it."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path, target=None):
        known = name.partition(".")[0] in self.packages
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def exec_module(self, module):
        module.__getattr__ = lambda name: object()


def imports_of(name: str) -> set[str]:
    """Return the packages that a script imports, without those of the standard library."""
    found = set()
    for node in ast.walk(ast.parse(script_of(name))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names)


def load(name: str) -> types.ModuleType:
    """Execute a script as an imported module: its functions are there, its `main` has not run."""
    module = types.ModuleType(file_of(name).removesuffix(".py"))
    exec(compile(script_of(name), file_of(name), "exec"), module.__dict__)
    return module


def run(name: str, folder: Path, *arguments: str, start=(), timeout=300) -> subprocess.CompletedProcess:
    """Save a script in a folder and run it there: in a copy of a process that has its libraries, or by `start`."""
    (folder / file_of(name)).write_text(script_of(name), "utf8")
    if start:
        return _start([*start, file_of(name), *arguments], folder, timeout)
    return _run_in_copy(name, [file_of(name), *arguments], folder, timeout)


def drive(name: str, driver: str, folder: Path, *, start=(), timeout=300) -> str:
    """Save a script, and beside it a driver that imports it, run the driver there and return what it prints.

    So the libraries of a script, which other tests must not find, are imported in a process of their own.
    """
    (folder / file_of(name)).write_text(script_of(name), "utf8")
    (folder / "driver.py").write_text(driver, "utf8")
    if start:
        done = _start([*start, "driver.py"], folder, timeout)
    else:
        done = _run_in_copy(name, ["driver.py"], folder, timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _start(command: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess:
    options = dict(capture_output=True, text=True, timeout=timeout, check=False)
    return subprocess.run(command, cwd=folder, env=os.environ | ENVIRONMENT, **options)


def _run_in_copy(name: str, arguments: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess:
    environment = os.environ | ENVIRONMENT
    return _SERVER.run(arguments, folder, imports=imports_of(name), environment=environment, timeout=timeout)
