"""The report of a student's progress: what the checks said, what they say again, and one sentence for a bad file."""

import csv
import json
import re

import nbformat
import pytest

import book_rules as rules
import handout
import notebooks
import progress_report
from utils.checks.questions import CORRECT, NOT_ATTEMPTED, NOT_YET

START = "from utils.checks import bits as checks"
RIGHT = {"largest_e4m3fnuz": "240", "flips_of_6": "{15: -6, 14: 6 * 2**-16, 10: 3, 8: 7}"}


def notebook(*cells):
    """A notebook of code cells, each a pair: source and the outputs that were saved."""
    made = [nbformat.v4.new_code_cell(source, outputs=outputs, execution_count=1) for source, outputs in cells]
    return nbformat.v4.new_notebook(cells=made)


def said(text):
    return [nbformat.v4.new_output("execute_result", {"text/plain": text})]


@pytest.fixture
def saved(tmp_path):
    """Put something into a file and give its path."""

    def save(content, name="ann bits.ipynb"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf8")
        return path

    return save


def statuses(rows):
    return {row.exercise: row.status for row in rows}


def test_saved_outputs_are_read_as_the_checks_printed_them(saved):
    cells = [
        (START, []),
        ("checks.check_code_1_5625(...)", said("○ Not attempted. Put your answer where the dots are.")),
        ("checks.check_largest_e4m3fnuz(480)", said("→ Not yet. 480 is NaN. (There is a hint: look at `.hint`.)")),
        ("checks.check_flips_of_6(answer)", said("✓ Correct. A 1 that becomes 0.")),
        (
            "checks.check_decode_e4m3fnuz(f)",
            [nbformat.v4.new_output("error", ename="NameError", evalue="no f", traceback=[])],
        ),
    ]
    rows = progress_report.rows_of(saved(nbformat.writes(notebook(*cells))))
    assert statuses(rows) == {
        "code_1_5625": NOT_ATTEMPTED,
        "largest_e4m3fnuz": NOT_YET,
        "smallest_subnormals": NOT_ATTEMPTED,  # its cell was removed
        "flips_of_6": CORRECT,
        "decode_e4m3fnuz": NOT_YET,
        "encode_0_3_e4m3": NOT_ATTEMPTED,
    }
    assert [row.exercise for row in rows][3:] == ["decode_e4m3fnuz", "smallest_subnormals", "encode_0_3_e4m3"]
    says = {row.exercise: row.says for row in rows}
    assert says["largest_e4m3fnuz"] == "480 is NaN."
    assert says["decode_e4m3fnuz"] == "NameError: no f"
    assert "no cell" in says["smallest_subnormals"]
    assert {row.source for row in rows} == {progress_report.SAVED}


def test_what_every_check_prints_is_understood():
    from utils.checks.numbers import bits

    for outcome in (bits.check_largest_e4m3fnuz(), bits.check_largest_e4m3fnuz(480), bits.check_largest_e4m3fnuz(240)):
        cell = nbformat.v4.new_code_cell("", outputs=said(repr(outcome)))
        assert progress_report.outcome(cell) == (outcome.status, outcome.message)


@pytest.mark.slow
def test_a_notebook_is_run_again_and_an_edited_check_decides_nothing(saved):
    lie = "print('✓ Correct. I say so.')\nchecks.check_largest_e4m3fnuz(480)"
    cells = [
        (START, []),
        ("1 / 0", []),
        (lie, said("✓ Correct. I say so.")),
        (f"answer = {RIGHT['flips_of_6']}", []),
        ("outcome = checks.check_flips_of_6(answer)\ndisplay(outcome)\nint(bool(outcome))", []),
        ("class checks:\n    check_encode_0_3_e4m3 = lambda answer: '✓ Correct. Mine.'", []),
        ("checks.check_encode_0_3_e4m3(0)", []),
    ]
    path = saved(nbformat.writes(notebook(*cells)))
    before = path.read_bytes()
    rows = progress_report.rows_of(path, timeout=60)
    found = statuses(rows)
    assert (found["largest_e4m3fnuz"], found["flips_of_6"], found["encode_0_3_e4m3"]) == (NOT_YET, CORRECT, NOT_YET)
    assert {row.source for row in rows} == {progress_report.RUN}
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stops", "why"), [("while True: pass", "timed out"), ("import os\nos._exit(3)", "Kernel died")]
)
def test_a_notebook_that_stops_is_told_and_what_comes_before_is_reported(saved, tmp_path, capsys, stops, why):
    before = (f"answer = {RIGHT['flips_of_6']}\nchecks.check_flips_of_6(answer)", [])
    path = saved(
        nbformat.writes(notebook((START, []), before, (stops, []), ("checks.check_largest_e4m3fnuz(240)", [])))
    )
    out = tmp_path / "report.csv"
    assert progress_report.main(["--run", "--timeout", "10", "--csv", str(out), str(path)]) == 1
    said = capsys.readouterr()
    assert why in said.err
    assert said.err.endswith("; what comes before it is reported.\n")
    assert said.err.count("\n") == 1
    with open(out, encoding="utf8", newline="") as file:
        found = {row["exercise"]: row for row in csv.DictReader(file)}
    assert found["flips_of_6"]["status"] == CORRECT
    assert (found["largest_e4m3fnuz"]["status"], found["largest_e4m3fnuz"]["says"]) == (
        NOT_ATTEMPTED,
        "The cell was not run.",
    )


def test_the_code_before_a_check_is_kept():
    source = "answer = 1\noutcome = checks.check_stall(answer)\ndisplay(outcome)"
    assert progress_report.keep_answer(source) == "answer = 1\n"


def progress(records, **changes):
    return {"book": progress_report.BOOK, "version": progress_report.VERSION, "progress": records} | changes


def test_the_file_of_the_progress_page_is_read(saved):
    flips = [f"numbers/bits/flip-{bit}-of-6" for bit in (15, 14, 10, 8)]
    records = {name: {"solved": True, "hints": 1} for name in flips}
    records |= {"numbers/bits/largest-e4m3fnuz": {"solved": False, "hints": 2}, "of/an/older-edition": {"solved": True}}
    rows = progress_report.rows_of(saved(progress(records), "progress.json"))
    assert {row.chapter for row in rows} == set(progress_report.chapters())
    bits = statuses(row for row in rows if row.chapter == "bits")
    assert (bits["flips_of_6"], bits["largest_e4m3fnuz"], bits["encode_0_3_e4m3"]) == (CORRECT, NOT_YET, NOT_ATTEMPTED)
    assert {row.source for row in rows} == {progress_report.PAGE}
    part = progress_report.rows_of(saved(progress(dict([*records.items()][:2])), "progress.json"))
    assert statuses(row for row in part if row.chapter == "bits")["flips_of_6"] == NOT_YET


def test_book_and_version_are_those_that_the_page_writes():
    text = (rules.ROOT / "utils" / "widgets" / "progress/records.js").read_text("utf8")
    assert re.search(r'PROGRESS_BOOK = "([^"]*)"', text)[1] == progress_report.BOOK
    assert int(re.search(r"PROGRESS_VERSION = (\d+)", text)[1]) == progress_report.VERSION


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "neither a notebook nor"),
        ("[]", "neither a notebook nor"),
        ("{}", "no progress of this book"),
        (progress({}, version=2), "another edition"),
        (progress({"a/b": {"solved": "yes"}}), "an entry that cannot be read: a/b"),
        ({"cells": [], "nbformat": 3}, "no notebook that can be read"),
        ({"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}, "calls no check"),
        ({"cells": [{}], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}, "no notebook that can be read"),
    ],
    ids=str,
)
def test_a_bad_file_gets_one_sentence_and_the_others_are_reported(saved, tmp_path, capsys, content, says):
    good = saved(
        nbformat.writes(notebook((START, []), ("checks.check_largest_e4m3fnuz(240)", said("✓ Correct. Yes."))))
    )
    out = tmp_path / "report.csv"
    assert progress_report.main([str(saved(content, "bad file")), str(good), "--csv", str(out)]) == 1
    printed = capsys.readouterr()
    assert len(printed.err.splitlines()) == 1
    assert "bad file" in printed.err
    assert says in printed.err
    assert "1 correct, 0 not yet, 5 not attempted" in printed.out
    with open(out, encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["exercise"] for row in rows if row["status"] == CORRECT] == ["largest_e4m3fnuz"]


def test_a_file_that_is_not_there_and_one_that_cannot_be_written_are_said(tmp_path, saved, capsys):
    assert progress_report.main([str(tmp_path / "none.ipynb")]) == 1
    assert capsys.readouterr().err.endswith("none.ipynb cannot be read: No such file or directory.\n")
    good = saved(nbformat.writes(notebook((START, []), ("checks.check_largest_e4m3fnuz(240)", []))))
    assert progress_report.main([str(good), "--csv", str(tmp_path / "no" / "report.csv")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_ctrl_c_keeps_the_report_on_the_files_before(tmp_path, saved, capsys, monkeypatch):
    good = saved(nbformat.writes(notebook((START, []), ("checks.check_largest_e4m3fnuz(240)", []))))
    usual = progress_report.rows_of

    def pressed(path, timeout=None):
        if path == "second.ipynb":
            raise KeyboardInterrupt
        return usual(path, timeout)

    monkeypatch.setattr(progress_report, "rows_of", pressed)
    out = tmp_path / "report.csv"
    assert progress_report.main([str(good), "second.ipynb", "third.ipynb", "--csv", str(out)]) == 130
    assert capsys.readouterr().err == "\nStopped by hand at second.ipynb: the report ends before it.\n"
    assert "largest_e4m3fnuz" in out.read_text("utf8")


@pytest.mark.parametrize("given", ["0", "-5", "soon"])
def test_a_time_limit_that_is_none_is_refused(given, capsys):
    with pytest.raises(SystemExit):
        progress_report.main(["a.ipynb", "--run", "--timeout", given])
    assert f"{given} is no whole number from 1 on" in capsys.readouterr().err


def test_a_chapter_and_its_hand_out_are_reported_alike():
    text = (rules.BOOK / "numbers" / "rounding.ipynb").read_text("utf8")
    made = handout.handout(notebooks.loads(text))
    both = [progress_report.notebook_rows(source, "ann", None) for source in (text, notebooks.dumps(made))]
    assert [{row.exercise for row in rows} for rows in both] == [set(progress_report.checks_of("rounding"))] * 2
