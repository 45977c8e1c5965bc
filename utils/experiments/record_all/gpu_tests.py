"""The tests that need a GPU, before anything is recorded on one: which files of them fail."""

import importlib.util
import re
from pathlib import Path

from utils import records
from utils.experiments.record_all import isolation
from utils.experiments.record_all.attempts import GpuTestResult, read_last_lines

SECONDS = 180.0
NEEDED = ("pytest", "hypothesis")  # of the tests, not of the records
MARK = re.compile(r"\bmark\.gpu\b")
RESULT = re.compile(r"^tests/(\S+?\.py)(?:::\S.*?)? (PASSED|FAILED|ERROR|SKIPPED|XFAIL)", re.MULTILINE)
BROKEN = re.compile(r"^ERROR tests/(\S+?\.py)", re.MULTILINE)  # a file that cannot be imported


def find_marked(tests: Path) -> list[Path]:
    """Return the files below `tests` that have a test marked `gpu`."""
    return [path for path in sorted(tests.rglob("test_*.py")) if MARK.search(path.read_text(encoding="utf-8"))]


def run_gpu_tests(log: Path, *, key: str, seconds: float = SECONDS, root: Path = records.ROOT) -> GpuTestResult:
    """Run the marked tests within a limit and say what came out; tests that were not reached count as not failed.

    Raises: OSError where the log cannot be written.
    """
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        return GpuTestResult(key, f"not run: {' and '.join(missing)} not installed here")
    files = [path.relative_to(root).as_posix() for path in find_marked(root / "tests")]
    options = [
        "-m",
        "gpu",
        "-v",
        "--color=no",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
    ]
    ended = isolation.run_alone(["pytest", *options, *files], log=log, seconds=seconds, folder=root)
    return read_results(log.read_text(encoding="utf-8", errors="replace"), key=key, ended=ended, log=log)


def read_results(text: str, *, key: str, ended: isolation.Ended, log: Path) -> GpuTestResult:
    """Return what the output of pytest says."""
    results = RESULT.findall(text)
    counts = {word: sum(result == word for _, result in results) for word in ("PASSED", "FAILED", "ERROR", "SKIPPED")}
    failed = {file for file, result in results if result in ("FAILED", "ERROR")} | set(BROKEN.findall(text))
    summary = ", ".join(f"{count} {word.lower()}" for word, count in counts.items() if count) or "no test ran"
    if ended.timed_out:
        summary += f"; ended after {ended.seconds:.0f} s, before the last"
    return GpuTestResult(key, summary, tuple(sorted(failed)), read_last_lines(log) if failed or not results else ())
