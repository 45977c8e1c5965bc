"""How the commands of a plan ended, and the report that keeps it: one JSON file, written anew after each command."""

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from utils import records

SCHEMA = 1
FINISHED, FAILED, STOPPED, INTERRUPTED = "finished", "failed", "out of time", "interrupted"
LAST_LINES = 12  # of the output of a command that did not finish
END_BYTES = 100_000  # of a log that are read: a command may print for an hour


@dataclass(frozen=True)
class RecordingAttempt:
    """How one command ended.

    `key` is that of `plan.key_of`; `minutes` and `expected` are those it took and was thought to take; `code` its exit
    status, negative for a signal; `last_lines` what it printed last, of one that finished nothing.
    """

    name: str
    key: str
    state: str
    minutes: float
    expected: float
    code: int | None = None
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class GpuTestResult:
    """The GPU tests: what came out in words, the files below `tests/` with a failure, and the last lines."""

    key: str
    summary: str
    failed: tuple[str, ...] = ()
    last_lines: tuple[str, ...] = ()


@dataclass
class Report:
    """What is kept of all runs of `make record` in one folder.

    `device` is `machine.facts`, `provenance` that of `records.provenance`, `folders` the names of the data sets and
    weights that were there; everything else was generated or random. `sources` maps the names of records to
    `code_identity.digest_code` of the code that made them.
    """

    size: str
    device: dict
    provenance: dict
    folders: tuple[str, ...] = ()
    tests: GpuTestResult | None = None
    sources: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, RecordingAttempt] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the report; a reader never sees half a file. Raises: OSError where that is impossible."""
        fields = asdict(self) | {"schema": SCHEMA, "attempts": [asdict(entry) for entry in self.attempts.values()]}
        new = path.with_suffix(".new")
        try:
            new.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            os.replace(new, path)
        except OSError:
            new.unlink(missing_ok=True)
            raise


def load_report(path: Path) -> Report | None:
    """Return the report of a folder; None where there is none.

    Raises: ValueError for a file that is no report, which is never overwritten.
    """
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields.pop("schema") != SCHEMA:
            raise ValueError("it has another schema")
        tests, attempts = fields.pop("tests"), fields.pop("attempts")
        report = Report(**fields, tests=_with_tuples(GpuTestResult, tests) if tests else None)
        report.folders = tuple(report.folders)
        report.attempts = {entry["name"]: _with_tuples(RecordingAttempt, entry) for entry in attempts}
        return report
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name} is not a readable report ({error}); name another folder with --out") from error


def _with_tuples(kind: type, fields: dict):
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def read_last_lines(log: Path, *, count: int = LAST_LINES) -> tuple[str, ...]:
    """Return the last lines of a log without the folders of this machine: a report is published as it is."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - END_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError as error:
        return (f"the output could not be read: {error.strerror}",)
    return tuple(hide_paths(line)[:300] for line in text.splitlines() if line.strip())[-count:]


def hide_paths(text: str) -> str:
    """Return the text with the folders of the book, of Python and of the user as words."""
    places = {str(records.ROOT): "BOOK", sys.prefix: "PYTHON", sys.base_prefix: "PYTHON", str(Path.home()): "HOME"}
    for place in sorted(places, key=len, reverse=True):
        if len(place) > 1:  # a root user's base may be "/"
            text = text.replace(place, places[place])
    return text
