"""The archive: its size, what it holds, and which records a book takes from it."""

import dataclasses
import io
import tarfile

import pytest

from made_runs import run
from utils import records
from utils.experiments.record_all import archive
from utils.experiments.record_all.attempts import Report
from utils.experiments.record_all.code_identity import digest_code

GPU = {"kind": "cuda", "name": "NVIDIA H100 80GB HBM3"}
PROVENANCE = {"commit": "a" * 40, "date": "2026-11-27T10:00:00+00:00"}


def record(seed=0, **changes):
    made = run("bf16-mixed", seed, device=GPU)
    return dataclasses.replace(made, **{"commit": "a" * 40, "dirty": False, **changes})


@pytest.fixture
def packed(tmp_path):
    def pack(*made, most_bytes=archive.MOST_BYTES, sources=None):
        folder = tmp_path / "work"
        for entry in made:
            records.save(entry, folder / archive.RECORDS)
        report = Report("full", GPU, PROVENANCE, sources=sources or {})
        folder.mkdir(exist_ok=True)
        report.save(folder / archive.REPORT)
        return archive.pack(folder, report, most_bytes=most_bytes)

    return pack


def test_records_go_from_one_book_into_another(packed, tmp_path):
    path, left_out = packed(record(0), record(1))
    assert path.name == "records-nvidia-h100-80gb-hbm3-full-2026-11-27.tar.gz"
    assert not left_out
    result = archive.unpack(path, tmp_path / "results")
    assert result.taken == (record(0).name, record(1).name)
    assert records.load_all(tmp_path / "results") == [record(0), record(1)]


def test_the_largest_records_stay_behind_where_there_is_no_room(packed):
    large = record(1, samples={"noise": [n**0.5 for n in range(5_000)]})
    path, left_out = packed(record(0), large, most_bytes=20_000)
    assert left_out == [f"{large.name}.json"]
    assert path.stat().st_size <= 20_000


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dirty": True}, "its code has no commit"),
        ({"commit": None}, "its code has no commit"),
        ({"device": {"kind": "cuda", "name": "NVIDIA H100 made up"}}, "its device is NVIDIA H100 made up"),
        ({"samples": {"noise": ["x" * 300_000]}}, "more than 200,000"),
    ],
    ids=["dirty", "no commit", "made up", "large"],
)
def test_a_record_that_a_book_must_not_hold_is_left_out(packed, tmp_path, changes, reason):
    path, _ = packed(record(0), record(1, **changes))
    result = archive.unpack(path, tmp_path / "results")
    assert result.taken == (record(0).name,)
    (why,) = result.left_out.values()
    assert reason in why


def test_a_record_of_a_copy_without_a_commit_is_taken_where_the_same_code_has_one(packed, tmp_path, monkeypatch):
    made = record(0, commit=None, dirty=None)
    here = {"commit": "c" * 40, "dirty": False}
    monkeypatch.setattr(records, "provenance", lambda: here)
    path, _ = packed(made, sources={made.name: digest_code()})
    assert archive.unpack(path, tmp_path / "results").taken == (made.name,)
    assert records.load_all(tmp_path / "results") == [dataclasses.replace(made, **here)]
    path, _ = packed(made, sources={made.name: "0" * 16})
    assert archive.unpack(path, tmp_path / "other").left_out == {made.name: archive.NO_COMMIT}


def test_a_newer_record_stays(packed, tmp_path):
    newer = record(0, date="2027-01-01T00:00:00+00:00")
    records.save(newer, tmp_path / "results")
    path, _ = packed(record(0))
    assert archive.unpack(path, tmp_path / "results").taken == ()
    assert records.load_all(tmp_path / "results") == [newer]


def test_a_name_with_a_path_in_it_goes_nowhere(tmp_path):
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in ("report.json", "records/../../escaped.json", "/escaped.json"):
            entry = tarfile.TarInfo(name)
            entry.size = 2
            tar.addfile(entry, io.BytesIO(b"{}"))
    assert archive.unpack(path, tmp_path / "results").taken == ()
    assert not list(tmp_path.rglob("escaped.json"))


@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b\x08 broken"], ids=["empty", "text", "broken"])
def test_another_file_is_one_sentence(tmp_path, data):
    path = tmp_path / "other.tar.gz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"other\.tar\.gz is not a readable archive"):
        archive.unpack(path, tmp_path / "results")


def test_no_record_of_the_book_is_made_up():
    assert not [entry.name for entry in records.load_all() if archive.MADE_UP in entry.device["name"]]
