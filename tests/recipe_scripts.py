"""The scripts of the cookbook, taken from their pages as a reader copies them."""

import ast
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import torch

import book_scripts
import notebooks

COOKBOOK = Path(__file__).parents[1] / "book" / "cookbook"
LIBRARIES = os.path.join(sys.prefix, "cookbook")  # torchao, peft and others: book/cookbook/requirements.txt
# a script has the machine to itself at a reader's; here two run at once, on two cores
ENVIRONMENT = {"PYTHONPATH": LIBRARIES, "OMP_NUM_THREADS": "1"}
PAGES = sorted(COOKBOOK.glob("*.ipynb"))


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
    done = run(name, folder)
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


def run(name: str, folder: Path, *arguments: str, start=(sys.executable,), timeout=300) -> subprocess.CompletedProcess:
    """Save a script in a folder and run it there, as a reader does."""
    (folder / file_of(name)).write_text(script_of(name), "utf8")
    return _start([*start, file_of(name), *arguments], folder, timeout)


def drive(name: str, driver: str, folder: Path, *, start=(sys.executable,), timeout=300) -> str:
    """Save a script, and beside it a driver that imports it, run the driver there and return what it prints.

    So the libraries of a script, which other tests must not find, are imported in a process of their own.
    """
    (folder / file_of(name)).write_text(script_of(name), "utf8")
    (folder / "driver.py").write_text(driver, "utf8")
    done = _start([*start, "driver.py"], folder, timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _start(command: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess:
    options = dict(capture_output=True, text=True, timeout=timeout, check=False)
    return subprocess.run(command, cwd=folder, env=os.environ | ENVIRONMENT, **options)
