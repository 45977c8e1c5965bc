"""Recorded runs: small JSON files that carry a result together with where it came from.

A record holds no path, host name or user name of the machine that made it, so it can be published as it is.
"""

import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

SCHEMA = 1  # raised whenever a field changes its name or its meaning
Point = TypeVar("Point")
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "book" / "results"
SAMPLES = "samples"  # the field of a point that holds its times
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "numpy")


@dataclasses.dataclass(frozen=True)
class Record:
    """One run of one experiment with one recipe, and everything needed to repeat it.

    `device` is `utils.machine.facts(...)`; `settings`, `results` and `samples` belong to the experiment and hold
    plain JSON values (a number that is not finite is stored as None). Milliseconds, bytes, UTC.
    """

    experiment: str
    recipe: str
    size: str
    seed: int  # in the file: `"seeds": [seed]`
    settings: dict
    results: dict
    samples: dict
    data: str  # in words: "Large Movie Review Dataset (25,000 + 25,000 reviews), local folder"
    data_name: str  # one word for the file name: "imdb"
    weights: str
    device: dict
    versions: dict
    command: str
    commit: str | None
    dirty: bool | None
    date: str
    schema: int = SCHEMA
    key: str | None = None  # the same for a run that need not be made again; None in records older than keys

    @property
    def name(self) -> str:
        """File name without its ending: experiment-recipe-size-data-device-seed, one rule for every device."""
        device = slug(self.device["name"]) if self.device["kind"] != "cpu" else "cpu"
        return "-".join((self.experiment, self.recipe, self.size, self.data_name, device, f"seed{self.seed}"))


def slug(text: str) -> str:
    """Return `text` in lower case with hyphens between its words: "NVIDIA H200" -> "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def provenance(command: str = "") -> dict:
    """Return the fields of a `Record` that say when, with which code and with which versions it was made."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--", "utils", "requirements.txt")
    return {
        "versions": versions,
        "command": command,
        "commit": commit,
        "dirty": None if commit is None or changes is None else bool(changes),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):  # no git, or a copy without its history
        return None
    return done.stdout.strip()


def check_folder(folder: Path | str, *, what: str = "records") -> Path:
    """Create `folder` where it is missing and prove that it can be written.

    Raises: ValueError with the reason when it cannot.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"cannot write {what} into {folder}: {reason}; name another folder") from error
    return folder


def save(record: Record, folder: Path | str = RESULTS) -> Path:
    """Write `record` to `folder` and return the file's path; a reader never sees half a file.

    Raises: ValueError when a value is not JSON, OSError when the folder cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.json"
    try:
        text = json.dumps(_finite(_to_fields(record)), allow_nan=False, ensure_ascii=False)
    except TypeError as error:
        raise ValueError(f"record {record.name} holds a value that is not JSON: {error}") from error
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{record.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_one_field_a_line(text))
        os.chmod(temporary, 0o644)  # mkstemp gives 0600, which a web server could not read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _to_fields(record: Record) -> dict:
    """Return what the file holds: the fields of the record, its seed as a list of one."""
    return {
        "seeds" if name == "seed" else name: [value] if name == "seed" else value
        for name, value in dataclasses.asdict(record).items()
    }


def _finite(value):
    """Replace numbers that are not finite by None: JSON has no word for NaN or infinity."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def _one_field_a_line(text: str) -> str:
    fields = json.loads(text)
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load(name: Path | str) -> Record:
    """Read a record by its name in `RESULTS` ("distilbert-32-true-small-imdb-cpu-seed0") or by its path.

    Raises: FileNotFoundError when there is none, ValueError when the file is not a record of this schema.
    """
    path = Path(name)
    if path.suffix != ".json":
        path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"no record {path.stem} in {path.parent.name}/: see {path.parent.name}/*.json")
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(fields, dict):
            raise TypeError(f"it holds a {type(fields).__name__}, not an object")
        if fields.get("schema") != SCHEMA:
            raise TypeError(f"schema {fields.get('schema')}, this code reads {SCHEMA}; record the run again")
        seeds = fields.pop("seeds")
        if len(seeds) != 1:
            raise TypeError(f"seeds {seeds}: a record is one run, of one seed")
        return Record(**fields, seed=seeds[0])
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is not a readable record: {error}") from error


def load_all(folder: Path | str = RESULTS, *, experiment: str | None = None) -> list[Record]:
    """Read every record of a folder, ordered by name, or those of one experiment.

    Raises: ValueError for the first file that is not a record.
    """
    pattern = f"{experiment}-*.json" if experiment else "*.json"
    loaded = [load(path) for path in sorted(Path(folder).glob(pattern))]
    return [record for record in loaded if experiment in (None, record.experiment)]


def find(folder: Path | str, *, key: str, recipe: str, seed: int) -> Record | None:
    """Return the record in `folder` whose key is `key`, None where there is none.

    Only files named after the recipe and the seed are read. One that is not a record, or is older than keys, is
    skipped: its run is made again.
    """
    for path in sorted(Path(folder).glob(f"*{recipe}-*-seed{seed}.json")):
        try:
            record = load(path)
        except ValueError:
            continue
        if record.key == key:
            return record
    return None


def columns_and_points(points: Sequence) -> dict:
    """Return measured points as a part of `results`: "columns" names their fields, "points" holds a row of each.

    `points`: at least one, dataclasses of one kind whose values are plain. The field `samples`, a tuple of times, is
    left out: it belongs in the samples of a record, see `point_samples`. `points_of` puts both together again.
    """
    columns = [field.name for field in dataclasses.fields(points[0]) if field.name != SAMPLES]
    return {"columns": columns, "points": [[getattr(point, name) for name in columns] for point in points]}


def point_samples(points: Sequence) -> dict:
    """Return the times of measured points as a part of the samples of a record: under "points" a list of each."""
    return {"points": [list(point.samples) for point in points]}


def points_of(record: Record, kind: type[Point]) -> tuple[Point, ...]:
    """Return the measured points of a record as dataclasses of their kind.

    They were written by `columns_and_points` and `point_samples`.
    Raises: ValueError where a row has not as many values as there are columns, or not every row has its samples.
    """
    columns, rows = record.results["columns"], zip(record.results["points"], record.samples["points"], strict=True)
    return tuple(kind(**dict(zip(columns, row, strict=True)), samples=tuple(times)) for row, times in rows)
