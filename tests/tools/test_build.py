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


def test_pages_that_cannot_be_removed_end_the_build_in_a_sentence(monkeypatch, capsys, tmp_path):
    (tmp_path / "_build" / "html").mkdir(parents=True)

    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(build.shutil, "rmtree", refuse)
    monkeypatch.setattr(build.subprocess, "run", None)  # is not called
    assert build.build(tmp_path, tmp_path) == 1
    said = capsys.readouterr().err
    assert said.startswith("The pages of the last build cannot be removed: [Errno 13] Permission denied")
    assert said.endswith(f"Remove {tmp_path / '_build' / 'html'} yourself.\n")
