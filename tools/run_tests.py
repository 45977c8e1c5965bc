"""Run all tests in stages; every stage runs, whatever the others gave, and a summary ends the output."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import browsers

ROOT = Path(__file__).resolve().parents[1]
PYTEST = ("-m", "pytest", "-q", "-n", "2")
BY_FILE = ("--dist", "loadfile")  # the cells of one notebook need one kernel
UNITS = (*BY_FILE, "-m", "not browser and not sweep", "tests")
SANITIZE = ("--nbval-sanitize-with", "tests/nbval_sanitize.cfg")
CELLS = (*BY_FILE, "--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", *SANITIZE, "book")
# name, what it is, the arguments of Python, once or several times
STAGES = (
    ("style", "ruff and Biome on code and notebooks", ("-m", "ruff", "check", "."), ("tools/lint_scripts.py",)),
    ("form", "notebooks are in their normal form", ("tools/notebooks.py", "check")),
    ("units", "pytest without a browser", (*PYTEST, *UNITS)),
    ("cells", "nbval: every cell gives its output again", (*PYTEST, *CELLS)),
    ("pages", "the book builds without a warning", ("tools/build.py",)),
    ("browser", "the built pages in a real browser", (*PYTEST, "-m", "browser", "tests/browser")),
)
COUNTS = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s")
INTERRUPTED = 130  # 128 + SIGINT, what a shell expects


def run_stage(arguments, environment):
    """Run one stage with its output shown as it comes.

    Returns: the exit code, and pytest's closing counts where the stage printed them.
    """
    command, counts = [sys.executable, *arguments], ""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            found = COUNTS.match(line)
            counts = found.group(1) if found else counts
    return process.returncode, counts


def untracked():
    """The files in this folder that git neither tracks nor ignores; none where this is no checkout."""
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    try:
        return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines())
    except FileNotFoundError:
        return set()


def main(wanted):
    """Run the stages named in `wanted`, or all of them; return 1 where one failed or left a file behind, else 0.

    A name that no stage has runs nothing: it returns 2.
    """
    names = [name for name, *_ in STAGES]
    if unknown := sorted(wanted - set(names)):
        print(
            f"There is no stage {', '.join(unknown)}; name some of {', '.join(names)}, or none for all.",
            file=sys.stderr,
        )
        return 2
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    browser = browsers.find()
    if browser:
        environment["CHROME"] = browser
    summary = []
    for name, meaning, *commands in STAGES:
        if wanted and name not in wanted:
            continue
        print(f"\n== {name}: {meaning}", flush=True)
        start, before = time.monotonic(), untracked()
        try:
            results = [run_stage(arguments, environment) for arguments in commands]
            code, counts = next((code for code, _ in results if code), 0), results[-1][1]
        except KeyboardInterrupt:
            summary.append((name, INTERRUPTED, "stopped by hand", time.monotonic() - start))
            break
        if left := sorted(untracked() - before):
            print(f"{name} left files behind: {', '.join(left)}", file=sys.stderr)
            code = code or 1
        summary.append((name, code, counts, time.monotonic() - start))
    print("\n== summary")
    for name, code, counts, seconds in summary:
        print(f"{'FAILED' if code else 'ok':<7} {name:<8} {seconds:6.1f} s  {counts}")
    failed = [name for name, code, _, _ in summary if code]
    print(f"failed: {', '.join(failed)}" if failed else "everything passed")
    return INTERRUPTED if summary[-1][1] == INTERRUPTED else int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
