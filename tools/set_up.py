"""Set the book up on a fresh machine: a virtual environment, the pinned packages, KaTeX and, for tests, a browser.

Runs before anything is installed, so it uses the standard library alone. A second call compares one stamp and
returns. Usage: python3 tools/set_up.py [--browser]
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import browsers
import lint_scripts
import lint_workflows
import page_assets
from checkout import PYTHON, ROOT, VENV, SetUpError, run, say

STAMP = VENV / "book-set-up.json"
COOKBOOK = "book/cookbook/requirements.txt"
PIP_ITSELF = "tools/pip_requirements.txt"
OLDEST, NEWEST = (3, 11), (3, 13)
DISK_GB = 4.0
PIP = ("--no-input", "--disable-pip-version-check", "--no-compile")
# A fifth of the installed modules, which these import, is compiled at once, each part in a process of its own beside
# the other; Python compiles all else when it first imports it. To compile all, as pip does, takes half of pip's time.
USED = (
    "torch, torch._dynamo, torch.distributed.fsdp;"
    " from transformers import DistilBertForSequenceClassification, LlamaForCausalLM",
    "pandas, scipy.stats, matplotlib.pyplot, datasets, ipykernel.ipkernel, ipywidgets, anywidget, jupyterlab.labapp,"
    " jupyter_book.cli.main, sphinx.builders.html, nbval, hypothesis, playwright.sync_api",
)


def use_suitable_python():
    """Go on in this Python where its version fits, else in another one on PATH.

    Raises:
        SetUpError: where there is no Python of a version that the pinned packages support.
    """
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        other = shutil.which(f"python3.{minor}")
        if other and subprocess.run([other, "-c", ""], capture_output=True, check=False).returncode == 0:
            os.execv(other, [other, *sys.argv])
    version = ".".join(map(str, sys.version_info[:3]))
    raise SetUpError(f"Python 3.11, 3.12 or 3.13 is missing: python3 here is {version}.")


def wanted_stamp():
    """What the environment stands on: another Python or folder means a new one, other content an update."""
    names = ("requirements.txt", COOKBOOK, PIP_ITSELF, "pyproject.toml")
    inputs = [*(ROOT / name for name in names), Path(__file__).resolve()]
    content = hashlib.sha256(b"\0".join(path.read_bytes() for path in inputs)).hexdigest()
    return {"python": ".".join(map(str, sys.version_info[:2])), "folder": str(ROOT), "content": content}


def read_stamp():
    """The stamp of the last set-up that came to its end, or an empty dict."""
    try:
        return json.loads(STAMP.read_text("utf8"))
    except (OSError, ValueError):
        return {}


def check_machine():
    """Look for what a new environment needs.

    Raises:
        SetUpError: where the venv module or the disk space is missing.
    """
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise SetUpError(f"Python's venv module is missing: on Debian or Ubuntu, `apt-get install {package}` adds it.")
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    if free_gb < DISK_GB:
        raise SetUpError(f"Disk space is missing: {free_gb:.1f} GB are free here, the set-up needs {DISK_GB:.0f} GB.")


def make_environment(wanted, stamp):
    """Create `.venv` anew unless a finished one for this Python and this folder is there.

    Raises:
        SetUpError: where `.venv` is a link: to clear it would empty the environment of another checkout.
    """
    if VENV.is_symlink():
        raise SetUpError(f".venv is a link to {VENV.resolve()}, which belongs to another checkout: remove the link.")
    if PYTHON.exists() and all(stamp.get(key) == wanted[key] for key in ("python", "folder")):
        return
    check_machine()
    if VENV.exists():
        say("The environment in .venv is unfinished, or was made elsewhere: making it anew.")
    else:
        say("Making a virtual environment in .venv.")
    run([sys.executable, "-m", "venv", "--clear", str(VENV)], "The virtual environment could not be made")


def pip_install(*arguments):
    """Install with pip, not compiled; on a terminal one line shows what it is doing.

    Raises:
        SetUpError: with pip's own error lines.
    """
    command = [str(PYTHON), "-m", "pip", "install", *PIP, *arguments]
    terminal, errors = sys.stdout.isatty(), []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=ROOT
    ) as pip:
        for line in pip.stdout:
            if line.startswith("ERROR"):
                errors.append(line.removeprefix("ERROR:").strip())
            if terminal:
                print("\r\x1b[K  " + line.strip()[:100], end="", flush=True)
    if terminal:
        print("\r\x1b[K", end="", flush=True)
    if pip.returncode:
        raise SetUpError("The packages could not be installed: " + " ".join(errors or ["pip failed without a reason"]))


def install_packages():
    """Install the pinned packages, this checkout's own `utils`, and what only the recipes need, in its own folder."""
    say("Installing the pinned packages: a minute on a fast network, 2.5 GB (7 GB where torch comes with CUDA).")
    pip_install("--upgrade", "-r", PIP_ITSELF)
    pip_install("-r", "requirements.txt")
    with compiling_used():
        # the pinned setuptools builds it: nothing is fetched
        pip_install("--no-deps", "--no-build-isolation", "--editable", ".")
        pip_install("--no-deps", "--upgrade", "--target", str(VENV / "cookbook"), "-r", COOKBOOK)


@contextmanager
def compiling_used():
    """Meanwhile, import what the book uses most, so that it is compiled, also where a shell forbids it to Python.

    Raises:
        SetUpError: at the end, where something cannot be imported.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def compile_one(modules):
        run([str(PYTHON), "-c", f"import {modules}"], "What was installed cannot be imported", env=environment)

    with ThreadPoolExecutor(len(USED)) as beside:
        compiled = beside.map(compile_one, USED)
        yield
        list(compiled)  # which raises what one of them raised


def set_up():
    """Bring the environment and the page assets up to date; 0.1 s where they are."""
    wanted, stamp = wanted_stamp(), read_stamp()
    if stamp != wanted or not PYTHON.exists():
        make_environment(wanted, stamp)
        STAMP.unlink(missing_ok=True)  # from here on an interrupted set-up is seen by the next one
        install_packages()
        STAMP.write_text(json.dumps(wanted), "utf8")
    page_assets.set_up()
    lint_scripts.set_up()
    lint_workflows.set_up()


def main(arguments):
    """Set up under a lock, so that two `make` calls do not install at once; return the exit code."""
    try:
        use_suitable_python()
        with open(__file__, encoding="utf8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if "--browser" in arguments:
                with ThreadPoolExecutor(1) as beside:  # pip uses one core
                    from_debian = beside.submit(browsers.set_up_from_debian)
                    set_up()
                from_debian.result()
                browsers.set_up()
            else:
                set_up()
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The next call starts over where it must.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
