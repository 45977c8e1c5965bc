"""tools/notebooks.py: re-executing leaves no diff, faults are named, and a notebook survives its text."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from nbformat import v4

import notebooks


def notebook(*cells):
    return v4.new_notebook(cells=list(cells))


def saved(folder, *cells, name="page.ipynb"):
    path = folder / name
    notebooks.write(path, notebooks.dumps(notebook(*cells)))
    return path


def code(source, identity, **options):
    metadata = {"tags": options.pop("tags")} if "tags" in options else {}
    return v4.new_code_cell(source, id=identity, metadata=metadata, **options)


def test_running_twice_leaves_no_diff(tmp_path):
    path = saved(
        tmp_path,
        v4.new_markdown_cell("# Title  ", id="title"),
        code("import warnings\nwarnings.warn('careful')\nobject()", "a"),
        code("print('one')\nprint('two')", "b"),
        code("1 / 0", "c", tags=["raises-exception"]),
    )
    notebooks.run(path)
    first = path.read_text("utf8")
    notebooks.run(path)
    assert path.read_text("utf8") == first
    assert notebooks.check(path) == []
    assert not re.search(r"ipykernel_\d|0x[0-9a-f]{6}", first)


def test_utils_is_found_and_the_folder_is_the_notebooks_own(tmp_path):
    path = saved(tmp_path, code("import os, utils\nos.path.basename(os.getcwd())", "a"))
    notebooks.run(path)
    assert tmp_path.name in path.read_text("utf8")


def test_ignored_outputs_are_kept_together_or_not_at_all(tmp_path):
    """One edited cell makes every output new: a page must not mix the numbers of two runs."""
    tags = ["nbval-ignore-output"]
    path = saved(tmp_path, code("import time\ntime.time_ns()", "a", tags=tags), code("time.time_ns()", "b", tags=tags))

    def run():
        notebooks.run(path)
        return notebooks.loads(path.read_text("utf8"))

    first = run()
    assert run().cells == first.cells
    edited = notebooks.to_text(first).replace("import time\n", "import time  # edited\n")
    notebooks.write(path, notebooks.dumps(notebooks.from_text(edited, first)))
    assert [new.outputs != old.outputs for new, old in zip(run().cells, first.cells, strict=True)] == [True, True]


def test_a_failing_cell_is_named_and_the_file_stays_as_it_was(tmp_path):
    path = saved(tmp_path, code("x = 1", "good"), code("def f():\n    raise KeyError('lost')\nf()", "bad"))
    before = path.read_text("utf8")
    with pytest.raises(notebooks.NotebookError, match=r"cell 2 of 2 \(id bad\): KeyError: 'lost'") as caught:
        notebooks.run(path)
    assert "raise KeyError" in str(caught.value)
    assert path.read_text("utf8") == before


def test_one_failure_does_not_keep_the_others_from_running(tmp_path, capsys):
    bad = saved(tmp_path, code("1 / 0", "a"), name="bad.ipynb")
    good = saved(tmp_path, code("1 + 1", "a"), name="good.ipynb")
    assert notebooks.main(["run", str(bad), str(good)]) == 1
    out, err = capsys.readouterr()
    assert "ZeroDivisionError" in err
    assert "good.ipynb" in out
    assert notebooks.check(good) == []


def test_a_notebook_over_the_time_limit_is_pointed_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(notebooks, "MAX_SECONDS", 0.0)
    notebooks.main(["run", str(saved(tmp_path, code("1", "a")))])
    assert "longer than" in capsys.readouterr().out


def test_an_unchanged_cell_that_nbval_ignores_keeps_its_committed_output():
    def timing(source, text):
        outputs = [v4.new_output("stream", name="stdout", text=text)]
        return code(source, "t", tags=["nbval-ignore-output"], execution_count=1, outputs=outputs)

    kept = notebooks.normalise(notebook(timing("time()", "2 ms")), committed=notebook(timing("time()", "1 ms")))
    assert kept.cells[0].outputs[0].text == "1 ms"
    edited = notebooks.normalise(notebook(timing("time(2)", "2 ms")), committed=notebook(timing("time()", "1 ms")))
    assert edited.cells[0].outputs[0].text == "2 ms"
    fresh = notebooks.normalise(notebook(timing("time()", "2 ms")))
    assert fresh.cells[0].outputs[0].text == "2 ms"


def test_glued_values_keep_the_metadata_that_the_page_needs():
    scrapbook = {"scrapbook": {"name": "loss", "mime_prefix": "application/papermill.record/"}}
    output = v4.new_output("display_data", {"application/papermill.record/text/plain": "0.5"}, metadata=scrapbook)
    cell = v4.new_code_cell("glue()", id="g", outputs=[output], execution_count=7)
    cell.metadata = nbformat.from_dict({"mystnb": {"figure": {"caption": "c"}}, "tags": ["a"], "collapsed": True})
    new = notebooks.normalise(notebook(cell)).cells[0]
    assert new.outputs[0].metadata == scrapbook
    assert new.metadata == {"mystnb": {"figure": {"caption": "c"}}, "tags": ["a"]}
    assert new.execution_count == 1


def test_streams_are_merged_and_progress_bars_leave_their_last_state():
    texts = ["a\n", "0%\r50%\r", "100%\n"]
    cell = code("x", "a", outputs=[v4.new_output("stream", name="stdout", text=text) for text in texts])
    outputs = notebooks.normalise(notebook(cell)).cells[0].outputs
    assert [output.text for output in outputs] == ["a\n100%\n"]


def test_a_widget_keeps_its_static_form_and_one_without_is_a_problem():
    view = {notebooks.WIDGET_VIEW: {"model_id": "1"}}
    static = code("w", "a", execution_count=1, outputs=[v4.new_output("display_data", {**view, "text/html": "<p>"})])
    bare = code("w", "b", execution_count=2, outputs=[v4.new_output("display_data", view)])
    new = notebooks.normalise(notebook(static, bare))
    assert new.cells[0].outputs[0].data == {"text/html": "<p>"}
    assert [problem for problem in notebooks.problems(new) if "static form" in problem and "(id b)" in problem]
    assert not [problem for problem in notebooks.problems(new) if "(id a)" in problem]


def test_a_cell_that_was_never_run_is_a_problem(tmp_path):
    assert "cell 1 (id a) has not been run" in notebooks.check(saved(tmp_path, code("1", "a")))


SPOIL = [lambda raw: raw["metadata"].update(x=1), lambda raw: raw["cells"][0].update(source=["1 "])]


@pytest.mark.parametrize("spoil", SPOIL, ids=["metadata", "trailing space"])
def test_check_finds_what_is_not_normal(tmp_path, spoil):
    path = saved(tmp_path, code("1", "a"))
    notebooks.run(path)
    raw = json.loads(path.read_text("utf8"))
    spoil(raw)
    path.write_text(json.dumps(raw), "utf8")
    assert any("not in the normal form" in problem for problem in notebooks.check(path))
    notebooks.main(["normalise", str(path)])
    assert notebooks.check(path) == []


def test_cells_without_an_id_get_the_same_one_each_time():
    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["same"]} for _ in range(2)]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    first, second = ([cell.id for cell in notebooks.loads(text).cells] for _ in range(2))
    assert first == second
    assert len(set(first)) == 2


@pytest.mark.parametrize("text", ["[]", '{"nbformat": 3}'])
def test_what_is_no_notebook_is_refused(text):
    with pytest.raises(ValueError, match="not a notebook of format 4"):
        notebooks.loads(text)


@pytest.mark.parametrize("command", ["run", "check", "normalise", "text", "update"])
@pytest.mark.parametrize("content", [b"# a README", b"\xff\xfe", b"[]"], ids=["text", "no UTF-8", "a list"])
def test_a_file_that_is_no_notebook_is_named_and_stays_as_it_is(tmp_path, capsys, command, content):
    path = tmp_path / "README.md"
    path.write_bytes(content)
    assert notebooks.main([command, str(path)]) == 2
    said = capsys.readouterr().err
    assert "README.md: " in said
    assert said.count("\n") == 1
    assert path.read_bytes() == content


def test_text_and_back_changes_nothing():
    old = notebook(
        v4.new_markdown_cell("# Title\n\nText with $x^2$.", id="m"),
        v4.new_markdown_cell("More.", id="n", metadata={"tags": ["remove-cell"]}),
        code("1 + 1", "c", tags=["hide-input"], execution_count=1, outputs=[v4.new_output("stream", text="2")]),
    )
    old = notebooks.normalise(old)
    assert notebooks.dumps(notebooks.from_text(notebooks.to_text(old), old)) == notebooks.dumps(old)


def test_an_edited_text_keeps_ids_and_drops_the_output_of_edited_cells_alone():
    output = v4.new_output("stream", text="o")
    cells = [code(f"x = {n}", f"c{n}", execution_count=n + 1, outputs=[output]) for n in range(4)]
    old = notebooks.normalise(notebook(*cells))
    last = "```{code-cell}\nx = 3"
    text = notebooks.to_text(old).replace("x = 1", "x = 10").replace(last, f"New.\n\n{last}")
    new = notebooks.from_text(text, old)
    assert [cell.id for cell in new.cells if cell.id.startswith("c") and len(cell.id) == 2] == ["c0", "c1", "c2", "c3"]
    assert [cell.cell_type for cell in new.cells] == ["code", "code", "code", "markdown", "code"]
    assert [bool(cell.get("outputs")) for cell in new.cells] == [True, False, True, False, True]


def test_a_new_notebook_is_made_of_a_text(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "TEXT", tmp_path / "text")
    path = tmp_path / "book" / "new.ipynb"
    notebooks.write(notebooks.text_path(path), "# New\n\n```{code-cell}\n:tags: [hide-input]\n1 + 1\n```\n")
    assert notebooks.main(["update", str(path)]) == 0
    cells = notebooks.loads(path.read_text("utf8")).cells
    assert [cell.cell_type for cell in cells] == ["markdown", "code"]
    assert cells[1].metadata.tags == ["hide-input"]


def test_a_missing_notebook_is_one_line_and_exit_code_2(capsys, tmp_path):
    assert notebooks.main(["check", str(tmp_path / "none.ipynb")]) == 2
    assert capsys.readouterr().err.endswith("none.ipynb: No such file or directory\n")


def test_ctrl_c_is_one_line_and_the_notebook_stays_as_it_was(tmp_path):
    press = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)"
    path = saved(tmp_path, code("1 + 1", "a"), code(press, "b"))
    before = path.read_bytes()
    command = [sys.executable, notebooks.__file__, "run", str(path)]
    done = subprocess.run(command, cwd=notebooks.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "\nStopped by hand: the notebook that was running is as it was.\n"
    assert path.read_bytes() == before


def test_an_option_may_stand_before_or_after_the_notebook(tmp_path):
    path = saved(tmp_path, code("1 + 1", "a"))
    assert notebooks.main(["run", "--fresh", str(path)]) == 0
    assert notebooks.main(["run", str(path), "--fresh"]) == 0


def test_an_address_is_scrubbed_and_a_code_is_not(tmp_path):
    """A hexadecimal code of a float32 is a result, and the state of a widget; it must stay as it is."""
    path = saved(tmp_path, code("print(object(), 0xbcc76d66, hex(0xbcc76d66))", "a"))
    notebooks.run(path)
    text = path.read_text("utf8")
    assert "at 0xADDR" in text
    assert "0xbcc76d66" in text.replace("print(object(), 0xbcc76d66, hex(0xbcc76d66))", "")
