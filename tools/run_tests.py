"""Run all tests in stages; every stage runs, whatever the others gave, and a summary ends the output.

python tools/run_tests.py               # all stages
python tools/run_tests.py units         # the named ones
python tools/run_tests.py --changed     # style, form, and the units of what differs from the last commit, or from main
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import browsers

ROOT = Path(__file__).resolve().parents[1]
PYTEST = ("-m", "pytest", "-q", "-n", "2", "--durations", "10")
# a test and its browser wait for each other in turn: two of them leave a fifth of two cores idle
IN_BROWSER = ("-m", "pytest", "-q", "-n", "3", "--durations", "10", "-m", "browser", "tests/browser")
BY_FILE = ("--dist", "loadfile")  # the cells of one notebook need one kernel
UNITS = (*BY_FILE, "-m", "not sweep", "--ignore=tests/browser", "tests")
SANITIZE = ("--nbval-sanitize-with", "tests/nbval_sanitize.cfg")
# the scripts of the recipes are run, and their outputs compared, by tests/cookbook
CELLS = (
    *BY_FILE,
    "-p",
    "tests.forked_kernels",
    "--nbval",
    "--nbval-current-env",
    "--nbval-cell-timeout=300",
    *SANITIZE,
    "--ignore=book/cookbook",
    "book",
)
# name, what it is, the arguments of Python, once or several times
STAGES = (
    (
        "style",
        "ruff, Biome, actionlint, and the layers of utils",
        ("-m", "ruff", "check", "."),
        ("-m", "ruff", "format", "--check", "--quiet", "."),
        ("tools/lint_scripts.py",),
        ("tools/lint_workflows.py",),
        ("tools/lint_layers.py",),
    ),
    ("form", "notebooks are in their normal form", ("tools/notebooks.py", "check")),
    ("units", "pytest without a browser", (*PYTEST, *UNITS)),
    ("cells", "nbval: every cell gives its output again", (*PYTEST, *CELLS)),
    ("pages", "the book builds without a warning", ("tools/build.py",)),
    ("browser", "the built pages in a real browser", IN_BROWSER),
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
            match = COUNTS.match(line)
            counts = match.group(1) if match else counts
    return process.returncode, counts


def untracked():
    """The files in this folder that git neither tracks nor ignores; none where this is no checkout."""
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    try:
        return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines())
    except FileNotFoundError:
        return set()


def changed_files():
    """The files that differ from the last commit, and on a branch also from main."""
    files = untracked()
    for revisions in (("HEAD",), ("main...HEAD",)):
        command = ["git", "diff", "--name-only", "--diff-filter=d", *revisions]
        files |= set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines())
    return {path for path in files if (ROOT / path).exists()}


def tests_of(changed):
    """The test files that are changed, or named after a changed module of utils, tools or the extensions."""
    names = {f"test_{Path(path).stem}.py" for path in changed if path.endswith(".py")}
    names |= {f"test_{Path(path).parent.name}.py" for path in changed if path.startswith("utils/widgets/")}
    tests = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    return sorted(path for path in tests if path in changed or Path(path).name in names)


def changed_stages():
    """The stages of `--changed`: units are those that `tests_of` names, and none where it names none."""
    tests = [path for path in tests_of(changed_files()) if not path.startswith("tests/browser/")]
    style, form, (_, _, (*options, _)), *_ = STAGES
    return (style, form, *([("units", ", ".join(tests), (*options, *tests))] if tests else []))


def main(wanted):
    """Run the stages named in `wanted`, or all of them; return 1 where one failed or left a file behind, else 0.

    A name that no stage has runs nothing: it returns 2.
    """
    stages = STAGES
    if "--changed" in wanted:
        wanted, stages = set(), changed_stages()
    names = [name for name, *_ in STAGES]
    if unknown := sorted(wanted - set(names)):
        print(
            f"There is no stage {', '.join(unknown)}; name some of {', '.join(names)}, or none for all.",
            file=sys.stderr,
        )
        return 2
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    environment.setdefault("OMP_NUM_THREADS", "1")  # two workers share two cores
    browser = browsers.find()
    if browser:
        environment["CHROME"] = browser
    summary = []
    for name, meaning, *commands in stages:
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
