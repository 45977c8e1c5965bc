"""Make the one .tar.gz, records and report, that comes back from the machine with the GPU, and take it in."""

import gzip
import io
import json
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from utils import records
from utils.experiments.record_all.attempts import Report
from utils.experiments.record_all.code_identity import name_commit

MOST_BYTES = 16_000_000
MOST_RECORD_BYTES = 200_000  # the book keeps no larger record
RECORDS, REPORT = "records", "report.json"
NO_COMMIT = "its code has no commit: take it in from a clean checkout of the code that made it"
MADE_UP = "made up"  # in the name of a device that does not exist; tests use it, no book holds it


def archive_name(report: Report) -> str:
    """Return the file name of the archive: the device, the size, and the day of the first command."""
    return f"records-{records.slug(report.device['name'])}-{report.size}-{report.provenance['date'][:10]}.tar.gz"


def pack(folder: Path, report: Report, *, most_bytes: int = MOST_BYTES) -> tuple[Path, list[str]]:
    """Write the archive of a folder beside its report; return its path and the names of records that did not fit.

    The records are taken in the order of their names, the report first. The same files give the same bytes.
    Raises: OSError where it cannot be written; an older archive stays then.
    """
    paths = sorted((folder / RECORDS).glob("*.json"))
    left_out: list[str] = []
    while True:
        data = _tar_bytes([folder / REPORT, *(path for path in paths if path.name not in left_out)], folder)
        if len(data) <= most_bytes or len(left_out) == len(paths):
            break
        left_out.append(max((path for path in paths if path.name not in left_out), key=_size).name)
    target = folder / archive_name(report)
    new = target.with_suffix(".new")
    try:
        new.write_bytes(data)
        new.replace(target)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    return target, left_out


def _size(path: Path) -> int:
    return path.stat().st_size


def _tar_bytes(paths: list[Path], folder: Path) -> bytes:
    """Return a compressed tar that says nothing of its machine: no owner, no time of a file."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for path in paths:
            if not path.is_file():
                continue
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            data = path.read_bytes()
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


@dataclass(frozen=True)
class Unpacked:
    """What became of the records of an archive: names taken, and names left out with the reason."""

    taken: tuple[str, ...]
    left_out: dict[str, str]


def unpack(archive: Path, into: Path) -> Unpacked:
    """Put the records of an archive into a folder of records, each checked; a newer one of the same name stays.

    One without a commit gets that of this checkout where its code is the same, see `code_identity.name_commit`.
    Raises: ValueError where the file is no archive of `pack`; OSError where the folder cannot be written.
    """
    into = records.check_folder(into)
    taken, left_out = [], {}
    try:
        with tarfile.open(archive, "r:gz") as tar, tempfile.TemporaryDirectory() as folder:
            members = [member for member in tar.getmembers() if member.isfile()]
            if REPORT not in {member.name for member in members}:
                raise ValueError(f"{archive.name} holds no {REPORT}: it is not an archive of make record")
            sources = json.load(tar.extractfile(REPORT)).get("sources", {})
            for member in members:
                name = PurePosixPath(member.name)
                if name.parent != PurePosixPath(RECORDS) or name.suffix != ".json":
                    continue
                copy = Path(folder) / name.name
                copy.write_bytes(tar.extractfile(member).read())
                if reason := _why_not(copy, into):
                    left_out[name.stem] = reason
                elif record := name_commit(records.load(copy), sources.get(name.stem)):
                    records.save(record, into)
                    taken.append(name.stem)
                else:
                    left_out[name.stem] = NO_COMMIT
    except (tarfile.TarError, EOFError) as error:
        raise ValueError(f"{archive.name} is not a readable archive: {error}") from error
    return Unpacked(tuple(taken), left_out)


def _why_not(path: Path, into: Path) -> str:
    """Return why a record does not belong into a folder, "" where it does."""
    try:
        record = records.load(path)
    except ValueError as error:
        return str(error)
    if record.name != path.stem:
        return f"its file should be called {record.name}.json"
    if MADE_UP in record.device["name"]:
        return f"its device is {record.device['name']}"
    if path.stat().st_size > MOST_RECORD_BYTES:
        return f"it has {path.stat().st_size:,} bytes, more than {MOST_RECORD_BYTES:,}"
    if (into / path.name).is_file() and records.load(into / path.name).date >= record.date:
        return "a newer record of the same run is there"
    return ""


def read_report(archive: Path) -> dict:
    """Return the report of an archive as it is in its file. Raises: ValueError where there is none."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            return json.load(tar.extractfile(REPORT))
    except (tarfile.TarError, EOFError, KeyError, ValueError) as error:
        raise ValueError(f"{archive.name} is not a readable archive: {error}") from error
