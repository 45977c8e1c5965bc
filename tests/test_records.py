"""Records survive the disk, are written whole or not at all, and tell nothing about somebody's machine."""

import dataclasses
import errno
import getpass
import json
import os
import socket
import subprocess
import tempfile

import pytest

from utils import records
from utils.experiments import gemm_sweep, refinement_speed

CPU = {"kind": "cpu", "name": "Some Processor"}
GPU = {"kind": "cuda", "name": "NVIDIA H200"}


def a_record(**changes) -> records.Record:
    fields = {
        "experiment": "distilbert",
        "recipe": "bf16-mixed",
        "size": "small",
        "seed": 0,
        "settings": {"batch": 8, "shape": {"width": 64}},
        "results": {"accuracy": 0.9, "validation": [0.5, 0.75]},
        "samples": {"loss": [[1, 0.7], [2, 0.6]]},
        "data": "generated reviews",
        "data_name": "generated",
        "weights": "random",
        "device": CPU,
        **records.provenance("python -m utils.distilbert"),
    }
    return records.Record(**(fields | changes))


def test_a_record_comes_back_from_the_disk_as_it_was(tmp_path):
    record = a_record(seed=7)
    path = records.save(record, tmp_path)
    assert records.load(path) == record
    assert records.load_all(tmp_path, experiment="distilbert") == [record]
    assert records.load_all(tmp_path, experiment="llama") == []


def test_a_folder_that_is_not_there_is_made(tmp_path):
    path = records.save(a_record(), tmp_path / "new" / "records")
    assert records.load(path) == a_record(date=records.load(path).date)


def test_a_record_is_found_by_its_name_in_the_default_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    record = a_record()
    records.save(record, tmp_path)
    assert records.load(record.name) == record
    with pytest.raises(FileNotFoundError, match="no record distilbert-64"):
        records.load("distilbert-64")


def test_a_record_is_found_by_its_key_alone(tmp_path):
    record = a_record(key="its key")
    records.save(record, tmp_path)
    looked_for = {"recipe": "bf16-mixed", "seed": 0}
    assert records.find(tmp_path, key="its key", **looked_for) == record
    assert records.find(tmp_path, key="another", **looked_for) is None
    assert records.find(tmp_path / "no such folder", key="its key", **looked_for) is None
    assert records.find(tmp_path, key="its key", recipe="bf16-mixed", seed=1) is None
    assert records.find(tmp_path, key="its key", recipe="32-true", seed=0) is None


def test_records_without_a_key_load_and_match_nothing(tmp_path):
    path = records.save(a_record(key="its key"), tmp_path)
    fields = json.loads(path.read_text())
    key = fields.pop("key")
    path.write_text(json.dumps(fields))
    assert records.load(path).key is None
    assert records.find(tmp_path, key=key, recipe="bf16-mixed", seed=0) is None
    path.write_text("half a fi")
    assert records.find(tmp_path, key=key, recipe="bf16-mixed", seed=0) is None


@pytest.mark.parametrize("path", sorted(records.RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_committed_record_loads_and_is_written_as_it_was(path, tmp_path):
    record = records.load(path)
    assert isinstance(record.seed, int)
    committed = json.loads(path.read_text("utf8"))
    saved = json.loads(records.save(record, tmp_path).read_text("utf8"))
    assert list(saved.items()) == list((committed | {"key": record.key}).items())  # None in records older than keys


def test_runs_on_different_devices_lie_side_by_side():
    assert a_record().name == "distilbert-bf16-mixed-small-generated-cpu-seed0"
    assert a_record(device=GPU).name == "distilbert-bf16-mixed-small-generated-nvidia-h200-seed0"


def test_numbers_that_are_not_finite_become_null(tmp_path):
    path = records.save(a_record(samples={"loss": [[1, float("nan")], [2, float("inf")]]}), tmp_path)
    json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert records.load(path).samples == {"loss": [[1, None], [2, None]]}


def test_a_failed_write_leaves_the_old_record_and_no_other_file(tmp_path, monkeypatch):
    path = records.save(a_record(results={"accuracy": 0.5}), tmp_path)

    def no_room(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_room)
    with pytest.raises(OSError, match="No space left"):
        records.save(a_record(results={"accuracy": 0.6}), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert records.load(path).results == {"accuracy": 0.5}


def test_a_value_that_is_not_json_is_named(tmp_path):
    with pytest.raises(ValueError, match="not JSON: Object of type set"):
        records.save(a_record(results={"accuracy": {1}}), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "broken.json is not a readable record", id="empty"),
        pytest.param('{"experiment": "distil', "not a readable record", id="cut off"),
        pytest.param("[1, 2]", "it holds a list", id="not an object"),
        pytest.param('{"schema": 99, "seeds": []}', "schema 99, this code reads 1", id="of another schema"),
        pytest.param('{"schema": 1, "seeds": [0]}', "missing", id="fields missing"),
        pytest.param('{"schema": 1, "seeds": [0, 1]}', "one run, of one seed", id="of two seeds"),
    ],
)
def test_a_file_that_is_no_record_is_refused_with_its_name(tmp_path, text, message):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        records.load(path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    reason = os.strerror(errno.ENOTDIR)  # without its number, and without the path a second time
    with pytest.raises(ValueError, match=rf"cannot write records into .*records: {reason}; name another folder$"):
        records.check_folder(tmp_path / "file" / "records")
    assert records.check_folder(tmp_path / "new" / "records").is_dir()


def test_a_folder_that_cannot_be_written_is_refused_also_where_the_system_gives_no_reason(tmp_path, monkeypatch):
    def full(**_):
        raise OSError("no room")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(ValueError, match=r"cannot write tables into .*: no room; name another folder$"):
        records.check_folder(tmp_path, what="tables")


def test_provenance_says_when_and_with_what_but_not_where():
    known = records.provenance("python -m utils.distilbert --data DIR")
    assert known["versions"]["torch"]
    assert known["date"].endswith("+00:00")
    text = json.dumps(known)
    assert socket.gethostname() not in text
    assert str(records.ROOT) not in text
    assert getpass.getuser() == "root" or getpass.getuser() not in text


def git(folder, *arguments: str) -> str:
    name = ("-c", "user.name=Reader", "-c", "user.email=reader@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *name, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with a commit, from which `provenance` takes its facts."""
    (tmp_path / "utils").mkdir()
    for file in ("utils/code.py", "requirements.txt", "notes.txt"):
        (tmp_path / file).write_text("one")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--no-verify", "--message", "one")
    monkeypatch.setattr(records, "ROOT", tmp_path)
    return tmp_path


def commit_and_dirty() -> tuple[str | None, bool | None]:
    known = records.provenance()
    return known["commit"], known["dirty"]


@pytest.mark.parametrize(
    ("file", "dirty"),
    [("notes.txt", False), ("requirements.txt", True), ("utils/code.py", True), ("utils/new.py", True)],
)
def test_a_commit_is_named_and_is_dirty_once_the_code_is_changed(checkout, file, dirty):
    head = git(checkout, "rev-parse", "HEAD")
    assert len(head) == 40
    assert commit_and_dirty() == (head, False)
    (checkout / file).write_text("two")
    assert commit_and_dirty() == (head, dirty)


def test_what_git_cannot_say_of_the_code_is_none(checkout, monkeypatch):
    head = git(checkout, "rev-parse", "HEAD")
    (checkout / ".git" / "index").write_text("broken")  # the commit is known, what was changed since is not
    assert commit_and_dirty() == (head, None)
    monkeypatch.setenv("PATH", "")  # no git
    assert commit_and_dirty() == (None, None)


@pytest.mark.parametrize("history", [False, True], ids=["no repository", "no commit yet"])
def test_a_copy_without_its_history_has_no_commit(tmp_path, monkeypatch, history):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(records, "ROOT", tmp_path)
    if history:
        git(tmp_path, "init", "--quiet")
    assert commit_and_dirty() == (None, None)


def test_committed_records_are_readable_small_and_name_no_machine():
    for path in records.RESULTS.glob("*.json"):
        record = records.load(path)
        assert path.stem == record.name
        assert path.stat().st_size < 200_000, path.name
        text = json.dumps(dataclasses.asdict(record))
        assert "/home" not in text, path.name
        assert "/root" not in text, path.name
        assert "/work" not in text, path.name


@dataclasses.dataclass(frozen=True)
class Point:
    n: int
    samples: tuple[float, ...] = ()
    note: str = ""


POINTS = (Point(1, (0.5, 0.25)), Point(2, note="no memory"))


def test_measured_points_come_back_from_their_rows_and_samples(tmp_path):
    record = a_record(results=records.columns_and_points(POINTS), samples=records.point_samples(POINTS))
    assert record.results == {"columns": ["n", "note"], "points": [[1, ""], [2, "no memory"]]}
    assert record.samples == {"points": [[0.5, 0.25], []]}
    assert records.points_of(records.load(records.save(record, tmp_path)), Point) == POINTS


@pytest.mark.parametrize("harm", [{"points": [[1, ""]]}, {"columns": ["n"]}], ids=["a row less", "a name less"])
def test_points_that_do_not_fit_their_samples_or_columns_are_refused(harm):
    record = a_record(results=records.columns_and_points(POINTS) | harm, samples=records.point_samples(POINTS))
    with pytest.raises(ValueError, match="zip"):
        records.points_of(record, Point)


@pytest.mark.parametrize(
    ("module", "kind"), [(gemm_sweep, gemm_sweep.GemmPoint), (refinement_speed, refinement_speed.SolvePoint)]
)
def test_the_points_of_a_published_record_are_written_again_as_they_were(module, kind):
    found = records.load_all(experiment=module.NAME)
    assert found
    for record in found:
        points = records.points_of(record, kind)
        written = records.columns_and_points(points)
        assert written.items() <= record.results.items()
        assert list(written) == list(record.results)[:2]
        assert records.point_samples(points)["points"] == record.samples["points"]
