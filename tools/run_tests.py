"""Run all tests in stages; every stage runs, whatever the others gave, and a summary ends the output.

python tools/run_tests.py               # all stages
python tools/run_tests.py units         # the named ones
python tools/run_tests.py --changed     # style, form, and the units of what differs from the last commit, or from main
"""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import browsers

ROOT = Path(__file__).resolve().parents[1]
WITHOUT = ROOT / "tests" / "without"  # a package that is slow to import, and that nothing here needs
# To rewrite 8,000 assertions takes each worker 15 s: a first run does without, and what fails runs again with it.
PLAIN = "--assert=plain"
# where pytest knows of no failure, it would run all tests again
AGAIN = ("--last-failed", "--last-failed-no-failures", "none")
PYTEST = ("-m", "pytest", "-q", "--durations", "10")
TESTS = (*PYTEST, PLAIN, "-p", "no:nbval")
# A test and its browser wait for each other in turn: two of them leave a fifth of two cores idle. What fails here may
# pass a second time, so the values of the first are shown.
IN_BROWSER = (*PYTEST, "-p", "no:nbval", "-n", "3", "-m", "browser", "tests/browser")
BY_FILE = ("-n", "2", "--dist", "loadfile")  # the cells of one notebook need one kernel
UNITS = (*TESTS, *BY_FILE, "-m", "not sweep", "--ignore=tests/browser", "tests")
SANITIZE = ("--nbval-sanitize-with", "tests/nbval_sanitize.cfg")
# the scripts of the recipes are run, and their outputs compared, by tests/cookbook
CELLS = (
    *PYTEST,
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
    ("units", "pytest without a browser", UNITS),
    ("cells", "nbval: every cell gives its output again", CELLS),
    ("pages", "the book builds without a warning", ("tools/build.py",)),
    ("browser", "the built pages in a real browser", IN_BROWSER),
)
COUNTS = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s")
# They use one core, and run one after the other beside the stages that do not need them: in the time in which a test
# waits for something, which is more than they take.
BESIDE = ("style", "form", "pages")
STANDS_BACK = 19  # the least that a process can ask for
NEEDS_PAGES = "browser"
INTERRUPTED = 130  # 128 + SIGINT, what a shell expects
FAILED = 1  # pytest's exit code where tests failed


def run_command(arguments, environment, show, nice=0):
    """Run one command of a stage, and `show` each line of its output as it comes.

    `nice`: how far it stands back for other processes. Returns: the exit code, and pytest's closing counts where it
    printed them.
    """
    command, counts = [sys.executable, *arguments], ""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as process:
        if nice:
            os.setpriority(os.PRIO_PROCESS, process.pid, nice)
        for line in process.stdout:
            show(line)
            match = COUNTS.match(line)
            counts = match.group(1) if match else counts
    return process.returncode, counts


def run_stage(stage, environment, show, nice=0):
    """Run the commands of a stage. Returns: its line of the summary, as (name, exit code, counts, seconds)."""
    name, meaning, *commands = stage
    show(f"\n== {name}: {meaning}\n")
    start, results = time.monotonic(), []
    for command in commands:
        results.append(run_command(command, environment, show, nice))
        if results[-1][0] == FAILED and PLAIN in command:
            show("\n== what has failed runs again, to show the values in its assertions\n")
            run_command([*(part for part in command if part != PLAIN), *AGAIN], environment, show)
    code = next((code for code, _ in results if code), 0)
    return name, code, results[-1][1], time.monotonic() - start


def show_now(text):
    """Print a part of the output at once."""
    print(text, end="", flush=True)


class Beside(threading.Thread):
    """Stages that run in a thread, one after the other; each is shown as a whole when it ends."""

    def __init__(self, stages, environment):
        super().__init__(daemon=True)
        self.stages, self.environment, self.summary, self.goes_on = stages, environment, [], True

    def run(self):
        """Run them; `start` does so in the thread."""
        for stage in self.stages:
            lines = []
            done = run_stage(stage, self.environment, lines.append, STANDS_BACK)
            if not self.goes_on:
                return
            self.summary.append(done)
            show_now("".join([*lines, "\n"]))


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


def stage_environment():
    """The environment of every stage, and of all that it starts."""
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(WITHOUT), os.environ.get("PYTHONPATH")]))
    environment.setdefault("OMP_NUM_THREADS", "1")  # two workers share two cores
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each of a hundred kernels and commands would compile utils
    if environment.get("ATEN_CPU_CAPABILITY") == "default":
        # oneDNN asks the processor itself: where it has AMX, torch's attention packs bfloat16 for AVX-512, and stops
        environment.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
    browser = browsers.find()
    if browser:
        environment["CHROME"] = browser
    return environment


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
    environment = stage_environment()
    asked = [stage for stage in stages if not wanted or stage[0] in wanted]
    beside = Beside([stage for stage in asked if stage[0] in BESIDE], environment)
    summary, before = [], untracked()
    try:
        beside.start()
        for stage in asked:
            if stage[0] == NEEDS_PAGES:
                beside.join()
            if stage not in beside.stages:
                summary.append(run_stage(stage, environment, show_now))
        beside.join()
    except KeyboardInterrupt:
        beside.goes_on = False
    names = [name for name, *_ in asked]
    summary = sorted(summary + beside.summary, key=lambda line: names.index(line[0]))
    left = sorted(untracked() - before)
    print("\n== summary")
    for name, code, counts, seconds in summary:
        print(f"{'FAILED' if code else 'ok':<7} {name:<8} {seconds:6.1f} s  {counts}")
    passed = {name for name, code, _, _ in summary if code == 0}
    failed = [name for name in names if name not in passed]  # also one that a thread did not bring to its end
    if left:
        print(f"the stages left files behind: {', '.join(left)}", file=sys.stderr)
    if not beside.goes_on:
        print("stopped by hand")
        return INTERRUPTED
    if failed:
        print(f"failed: {', '.join(failed)}")
    elif not left:
        print("everything passed")
    return int(bool(failed or left))


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
