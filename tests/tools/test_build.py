"""What `make book` leaves in its folder."""

from types import SimpleNamespace

import build


def test_pages_and_pictures_of_an_earlier_build_are_gone(monkeypatch, tmp_path):
    old = tmp_path / "_build" / "html" / "book" / "gone.html"
    old.parent.mkdir(parents=True)
    old.write_text("a chapter that is no longer in the book", "utf8")
    kept = tmp_path / "_build" / "classroom" / "exercises.ipynb"
    kept.parent.mkdir()
    kept.write_text("{}", "utf8")
    monkeypatch.setattr(build.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0))
    assert build.build(tmp_path, tmp_path) == 0
    assert not old.exists()
    assert kept.exists()
