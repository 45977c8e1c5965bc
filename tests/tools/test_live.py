"""`make live`: a failing notebook does not end the run, and a second run goes on where the first one was."""

import nbformat
import pytest

import live
import notebooks


def page(*codes):
    cells = [nbformat.v4.new_markdown_cell("# A page", id="title")]
    cells += [nbformat.v4.new_code_cell(code, id=f"cell-{n}") for n, code in enumerate(codes)]
    return nbformat.v4.new_notebook(cells=cells)


@pytest.fixture
def source(tmp_path):
    """A small book: one notebook that counts its runs, and one that fails."""
    book = tmp_path / "source" / "book"
    book.mkdir(parents=True)
    count = "from pathlib import Path\nruns = Path('runs')\nruns.open('a').write('x')\nprint(runs.read_text())"
    nbformat.write(page(count), book / "good.ipynb")
    nbformat.write(page("print('before')", "1 / 0"), book / "failing.ipynb")
    return tmp_path / "source"


def outputs(path):
    return [
        output["text"]
        for cell in notebooks.loads(path.read_text()).cells
        for output in cell.get("outputs", [])
        if "text" in output
    ]


def test_a_failing_notebook_keeps_its_outputs_says_so_and_the_others_go_on(source, tmp_path, capsys):
    stopped = live.run_all(source, tmp_path / "kept")
    assert [str(name) for name in stopped] == ["book/failing.ipynb"]
    assert outputs(source / "book" / "good.ipynb") == ["x\n"]
    assert outputs(source / "book" / "failing.ipynb") == ["before\n"]
    text = notebooks.loads((source / "book" / "failing.ipynb").read_text()).cells[1].source
    assert "this page stopped" in text
    assert "ZeroDivisionError" in text
    printed = capsys.readouterr()
    assert "2 of 2  book/good.ipynb" in printed.out
    assert "ZeroDivisionError" in printed.err


def test_a_second_run_takes_over_what_has_run_and_tries_again_what_failed(source, tmp_path, capsys):
    live.run_all(source, tmp_path / "kept")
    nbformat.write(page("print('before')", "print('mended')"), source / "book" / "failing.ipynb")
    capsys.readouterr()
    assert live.run_all(source, tmp_path / "kept") == []
    assert "good.ipynb  has run before" in capsys.readouterr().out
    assert outputs(source / "book" / "good.ipynb") == ["x\n"]
    assert outputs(source / "book" / "failing.ipynb") == ["before\n", "mended\n"]


def test_a_changed_notebook_or_other_circumstances_have_another_key():
    one, other = page("print(1)"), page("print(2)")
    assert live.key(one, "here") == live.key(page("print(1)"), "here")
    assert live.key(one, "here") != live.key(other, "here")
    assert live.key(one, "here") != live.key(one, "there")


def test_the_size_is_part_of_the_circumstances(monkeypatch):
    monkeypatch.setenv("MIXED_PRECISION_DEVICE", "cpu")
    monkeypatch.setenv("MIXED_PRECISION_SIZE", "small")
    small = live.circumstances()
    monkeypatch.setenv("MIXED_PRECISION_SIZE", "full")
    assert live.circumstances() != small
