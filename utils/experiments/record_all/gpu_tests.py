"""The tests that need a GPU, before anything is recorded on one: which files of them fail.

An error of CUDA stays in its process: after an illegal access each later test of it fails too. So a file counts as
failed only if it also fails in a process of its own. Where a test ends the process, those behind it get another one.
"""

import importlib.util
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from utils import records
from utils.experiments.record_all import isolation
from utils.experiments.record_all.attempts import GpuTestResult, read_last_lines

SECONDS = 180.0
LEAST_SECONDS = 10.0  # that it makes sense to begin with: the imports take most of that
NEEDED = ("pytest", "hypothesis")  # of the tests, not of the records
LAST = "cookbook/"  # nothing rests on these, and they take other libraries
MARK = re.compile(r"\bmark\.gpu\b")
RESULT = re.compile(r"^tests/(\S+?\.py)(?:::\S.*?)? (PASSED|FAILED|ERROR|SKIPPED|XFAIL)", re.MULTILINE)
BROKEN = re.compile(r"^ERROR tests/(\S+?\.py)", re.MULTILINE)  # a file that cannot be imported
COLLECTING = re.compile(r"^_+ ERROR collecting tests/(\S+?\.py) _+$(.*?)(?=^[_=]{5})", re.MULTILINE | re.DOTALL)
MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")  # a package of the tests, not of the records
BEGUN = re.compile(r"^tests/(\S+?\.py)::", re.MULTILINE)
OPTIONS = ("-m", "gpu", "-v", "--color=no", "--tb=short", "-p", "no:cacheprovider", "--continue-on-collection-errors")


def find_marked(tests: Path) -> list[Path]:
    """Return the files below `tests` that have a test marked `gpu`."""
    return [path for path in sorted(tests.rglob("test_*.py")) if MARK.search(path.read_text(encoding="utf-8"))]


def order_files(names: Sequence[str], first: Sequence[str]) -> list[str]:
    """Return the names of files below `tests` as they run: those of `first`, all others, at last the cookbook's."""
    places = {name: place for place, name in enumerate(first)}
    return sorted(names, key=lambda name: (places.get(name, len(first)), name.startswith(LAST), name))


def find_missing(text: str) -> dict[str, str]:
    """Return by file the package that it cannot be imported without: such a file says nothing about the card."""
    pairs = ((name, MISSING.search(why)) for name, why in COLLECTING.findall(text))
    return {name: match[1] for name, match in pairs if match and match[1] not in ("utils", "tests")}


def run_gpu_tests(
    log: Path,
    *,
    key: str,
    seconds: float = SECONDS,
    root: Path = records.ROOT,
    first: Sequence[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> GpuTestResult:
    """Run the marked tests within a limit and say what came out; tests that were not reached count as not failed.

    `first`: names of files below `tests` that are not to be left out where the time ends. Raises: OSError where the log
    cannot be written.
    """
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        return GpuTestResult(key, f"not run: {' and '.join(missing)} not installed here")
    names = [path.relative_to(root / "tests").as_posix() for path in find_marked(root / "tests")]
    session, end = _Session(log, root), clock() + seconds
    waiting = order_files(names, first)
    while waiting and (left := end - clock()) >= min(LEAST_SECONDS, seconds):
        waiting = session.run(waiting, seconds=left)
    for name in sorted(session.failed):
        if (left := end - clock()) < LEAST_SECONDS:
            break
        session.run_again(name, seconds=left)
    return session.result(key, begun_late=bool(waiting))


@dataclass
class _Session:
    """What some processes of pytest said: results of tests, and the files that failed."""

    log: Path
    root: Path
    results: list[tuple[str, str]] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    alone: list[str] = field(default_factory=list)  # failed beside others, and passed by themselves
    absent: set[str] = field(default_factory=set)  # packages without which a file cannot be imported
    timed_out: float | None = None

    def run(self, names: Sequence[str], *, seconds: float) -> list[str]:
        """Run files in one process, and return those that it did not reach because a test ended it."""
        ended, text = self._ask(names, seconds)
        results = RESULT.findall(text)
        self.results += results
        absent = find_missing(text)
        self.absent |= set(absent.values())
        broken = {name for name, result in results if result in ("FAILED", "ERROR")} | set(BROKEN.findall(text))
        self.failed |= broken - set(absent)
        if ended.timed_out:
            self.timed_out = ended.seconds
            return []
        begun = BEGUN.findall(text)
        if ended.code >= 0 or not begun or begun[-1] not in names:
            return []
        self.failed.add(begun[-1])  # a signal ended the process in this file
        return list(names[names.index(begun[-1]) + 1 :])

    def run_again(self, name: str, *, seconds: float) -> None:
        """Run a file that failed by itself; it has not failed where nothing is wrong with it then."""
        ended, text = self._ask([name], seconds)
        if ended.code == 0 and RESULT.search(text):
            self.failed.discard(name)
            self.alone.append(name)

    def _ask(self, names: Sequence[str], seconds: float) -> tuple[isolation.Ended, str]:
        begin = self.log.stat().st_size if self.log.is_file() else 0
        files = [f"tests/{name}" for name in names]
        ended = isolation.run_alone(["pytest", *OPTIONS, *files], log=self.log, seconds=seconds, folder=self.root)
        return ended, self.log.read_bytes()[begin:].decode("utf-8", errors="replace")

    def result(self, key: str, *, begun_late: bool = False) -> GpuTestResult:
        """Return the whole as `GpuTestResult`."""
        words = ("PASSED", "FAILED", "ERROR", "SKIPPED")
        counts = {word: sum(result == word for _, result in self.results) for word in words}
        summary = ", ".join(f"{count} {word.lower()}" for word, count in counts.items() if count) or "no test ran"
        if self.absent:
            summary += f"; some files need packages that are not there: {', '.join(sorted(self.absent))}"
        if self.alone:
            summary += f"; by themselves these files pass: {', '.join(self.alone)}"
        if self.timed_out is not None or begun_late:
            summary += f"; ended after {self.timed_out or SECONDS:.0f} s, before the last"
        lines = read_last_lines(self.log) if self.failed or not self.results else ()
        return GpuTestResult(key, summary, tuple(sorted(self.failed)), lines)
