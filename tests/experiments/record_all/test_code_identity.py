"""Which commit a record gets that names none: that of a clean checkout with the same code, or no one."""

import dataclasses

import pytest

from made_runs import run
from utils import records
from utils.experiments.record_all import code_identity
from utils.experiments.record_all.code_identity import digest_code, name_commit

COMMIT = {"commit": "c" * 40, "dirty": False}
RECORD = dataclasses.replace(run("bf16-mixed", 0), commit=None, dirty=None)


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder with code, which says that it is a clean checkout."""
    (tmp_path / "utils" / "inner").mkdir(parents=True)
    (tmp_path / "utils" / "a.py").write_bytes(b"x = 1\ny = 2\n")
    (tmp_path / "utils" / "inner" / "b.py").write_bytes(b"z = 3\n")
    monkeypatch.setattr(code_identity.records, "provenance", lambda: COMMIT)
    return tmp_path


def test_the_digest_is_that_of_the_text_wherever_it_lies(book, tmp_path):
    before = digest_code(book)
    (book / "utils" / "a.py").write_bytes(b"x = 1\r\ny = 2\r\n")  # as some archives have it
    (book / "utils" / "notes.txt").write_text("not code")
    assert digest_code(book) == before
    (book / "utils" / "a.py").write_bytes(b"x = 1\ny = 3\n")
    assert digest_code(book) != before
    (book / "utils" / "a.py").write_bytes(b"x = 1\ny = 2\n")
    (book / "utils" / "inner" / "b.py").rename(book / "utils" / "inner" / "c.py")
    assert digest_code(book) != before


def test_a_record_without_a_commit_gets_that_of_the_same_code(book):
    named = name_commit(RECORD, digest_code(book), root=book)
    assert (named.commit, named.dirty) == ("c" * 40, False)
    assert dataclasses.replace(named, commit=None, dirty=None) == RECORD


def test_a_changed_checkout_is_as_good_once_its_change_is_committed(book):
    changed = dataclasses.replace(RECORD, commit="b" * 40, dirty=True)
    assert name_commit(changed, digest_code(book), root=book).commit == "c" * 40


def test_a_record_with_a_commit_keeps_it(book):
    record = dataclasses.replace(RECORD, commit="b" * 40, dirty=False)
    assert name_commit(record, None, root=book) is record


@pytest.mark.parametrize(
    ("digest", "checkout"),
    [
        ("0" * 16, COMMIT),
        (None, COMMIT),
        ("", COMMIT),
        ("same", {"commit": None, "dirty": None}),
        ("same", {"commit": "c" * 40, "dirty": True}),
    ],
    ids=["other code", "not kept", "not read", "no commit here either", "changed here too"],
)
def test_otherwise_it_gets_none(book, monkeypatch, digest, checkout):
    monkeypatch.setattr(code_identity.records, "provenance", lambda: checkout)
    assert name_commit(RECORD, digest_code(book) if digest == "same" else digest, root=book) is None


def test_of_this_book_it_is_read_in_no_time():
    assert len(digest_code(records.ROOT)) == 16
