"""`make classroom`: every exercise is handed out, runs on its own, fits nbgrader, and gives no solution away."""

import json
import re
from dataclasses import replace

import nbformat
import pytest
import torch

import book_rules as rules
import classroom
import handout
import lesson_rules
import notebooks
import progress_report
from utils.checks.outcome import Outcome
from utils.checks.questions import CORRECT
from utils.experiments.capstone import comparison, forecasts, plans

MADE = classroom.handouts()
SCHEMA = {"schema_version": int, "grade": bool, "solution": bool, "locked": bool, "task": bool, "grade_id": str}
ROLE = re.compile(r"\{[a-z:]+\}`|^:::|^\([\w-]+\)=$", re.MULTILINE)


def chapter(*cells):
    """A chapter as a notebook: text where a cell begins with #, else code."""
    made = [nbformat.v4.new_markdown_cell("# Small numbers")]
    for source in cells:
        new = nbformat.v4.new_markdown_cell if source.startswith(("#", "(")) else nbformat.v4.new_code_cell
        made.append(new(source))
    return nbformat.v4.new_notebook(cells=made)


def codes(notebook):
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}


def lines(path):
    cells = notebooks.loads(path.read_text("utf8")).cells
    found = {line.strip() for cell in cells if cell.cell_type == "code" for line in cell.source.split("\n")}
    return {line for line in found if not line.startswith(("import ", "from "))}


def test_every_chapter_with_solutions_has_a_hand_out():
    assert set(MADE) == {path.stem for path in (rules.BOOK / "solutions").glob("*.ipynb")}


GUIDE = (rules.BOOK / "reference" / "teaching.md").read_text("utf8")


CODE_AND_OUTPUT = (r"^```\n(import torch\n.+?)^```$", r"^The first code prints this:\n\n```text\n(.+?)^```$")
AT_MOST = re.compile(r"^(\S+x\d+): [\d.]+ MB at rest, ([\d.]+) at most$", re.MULTILINE)


def source_of(target):
    """All Markdown of the page that the guide links to."""
    return rules.markdown(rules.read_page((rules.BOOK / "reference" / target).resolve()))


def slug(heading):
    """The anchor of a heading, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace(" ", "-"))


def test_the_guide_links_to_headings_that_are_there():
    for target, anchor in re.findall(r"\]\(([^)#]+)#([^)]+)\)", GUIDE):
        page = source_of(target)
        places = {slug(title) for title in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
        assert anchor in places | set(re.findall(r"^\(([\w-]+)\)=$", page, re.MULTILINE)), f"{target}#{anchor}"


def test_the_guide_links_to_rows_of_the_errata_that_are_there():
    rows = set(re.findall(r"^\((w\d+)\)=$", source_of("errata.ipynb"), re.MULTILINE))
    named = set(re.findall(r"\]\(#(w\d+)\)", GUIDE))
    assert named
    assert named <= rows


def test_the_guide_gives_the_minutes_that_the_chapters_give():
    rows = "\n".join(line for line in GUIDE.split("\n") if line.startswith(("| before |", "| chapters |")))
    found = re.findall(r"\]\(([^)#]+)\), (\d+)", rows)
    assert len(found) == len(re.findall(r"\]\([^)#]+\)", rows)) > 0
    for target, minutes in found:
        source = source_of(target)
        parts = lesson_rules.TIME.search(source)  # of an edited chapter: to read, and for the exercises
        stated = sum(map(int, parts.groups())) if parts else int(re.search(r"\*\*Time:\*\* (\d+) minutes", source)[1])
        assert stated == int(minutes), target


def test_the_code_of_the_guide_prints_what_it_says(capsys):
    code, said = (re.search(pattern, GUIDE, re.MULTILINE | re.DOTALL)[1] for pattern in CODE_AND_OUTPUT)
    exec(code, {})
    assert capsys.readouterr().out == said


def test_the_timetable_of_the_guide_adds_up_to_its_session():
    session = int(re.search(r"^Each is (\d+) minutes long", GUIDE, re.MULTILINE)[1])
    assert sum(int(minutes) for minutes in re.findall(r"^\| (\d+) \|", GUIDE, re.MULTILINE)) == session


def test_the_guide_promises_for_its_card_what_the_forecast_says():
    size = int(re.search(r"size=([\d_]+)", GUIDE)[1])
    given = plans.make_problem("small", device=torch.device("cpu"))
    given = replace(given, card=replace(given.card, size=size))
    rows = re.findall(r"^(\S+-checkpointing) +([\d.]+) +([\d.]+|refused)(?: +[\d.]+)?$", GUIDE, re.MULTILINE)
    printed = [(f"{name}-checkpointing", most, "") for name, most in AT_MOST.findall(GUIDE)]
    assert rows
    assert printed
    rows += printed
    for name, promised, measured in rows:
        plan = plans.parse_plan(name)
        assert f"{forecasts.forecast(plan, given).peak / 1e6:.1f}" == promised, name
        assert not measured or bool(forecasts.refuse(plan, given)) == (measured == "refused"), name
    assert all(forecasts.refuse(plans.parse_plan(name), given) for name in comparison.PLANS)


def test_the_guide_names_exercises_by_their_titles():
    """A link whose text is a number leads to the exercise of that number, any other to one of that title."""
    for text, anchor in re.findall(r"\[([^\]]+)\]\([^)#]+#(\d[^)]*)\)", GUIDE):
        assert anchor.startswith(f"{text}-") if text.isdigit() else anchor.split("-", 1)[1] == slug(text), text


@pytest.mark.parametrize("name", MADE)
def test_every_check_of_the_chapter_is_handed_out_once(name):
    found = [check.name for check in progress_report.find_checks(MADE[name].cells)]
    assert sorted(found) == sorted(progress_report.checks_of(name))


@pytest.mark.parametrize("name", MADE)
def test_the_metadata_keeps_the_rules_of_nbgrader(name):
    """Those of its schema 3 (nbgraderformat/v3.json and v3.py), and the marks of answers and checks."""
    nbformat.validate(MADE[name])
    marks = [(cell, cell.metadata["nbgrader"]) for cell in MADE[name].cells]
    for cell, mark in marks:
        assert {key: type(value) for key, value in mark.items() if key != "points"} == SCHEMA
        assert mark["schema_version"] == 3
        assert re.fullmatch(r"[a-zA-Z0-9_-]+", mark["grade_id"])
        assert mark["grade"] == ("points" in mark)
        if cell.cell_type == "markdown":
            assert mark["grade"] == mark["solution"]
        if cell.id.endswith("-answer"):
            assert (mark["solution"], mark["grade"], mark["locked"]) == (True, False, False)
        if cell.id.endswith("-check"):
            assert (mark["solution"], mark["grade"], mark["locked"], mark["points"]) == (False, True, True, 1)
    assert len({mark["grade_id"] for _, mark in marks}) == len(marks)


@pytest.mark.parametrize("name", MADE)
def test_a_hand_out_has_no_output_and_no_markup_that_only_the_book_reads(name):
    for cell in MADE[name].cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not ROLE.search(cell.source) or cell.cell_type == "code"
        assert not handout.LINK.search(cell.source) or cell.cell_type == "code"


@pytest.mark.parametrize("name", MADE)
def test_no_line_of_a_solution_is_handed_out(name):
    page = next(path for path in classroom.chapters() if path.stem == name)
    secret = lines(rules.BOOK / "solutions" / f"{name}.ipynb") - lines(page)
    answers = [source for identity, source in codes(MADE[name]).items() if not identity.endswith("-check")]
    handed = {line.strip() for source in answers for line in source.split("\n")}
    assert handed & secret == set()
    assert secret, "the solution has no line of its own; does the chapter hold it?"


@pytest.mark.parametrize("name", MADE)
def test_a_hand_out_runs_alone_and_nothing_is_correct_yet(name):
    seen = []
    scope = {"display": seen.append, "__name__": "__main__"}
    for identity, source in codes(MADE[name]).items():
        exec(compile(source, identity, "exec"), scope)
    checks = [cell for cell in MADE[name].cells if cell.id.endswith("-check")]
    assert [type(outcome) for outcome in seen] == [Outcome] * len(checks)
    assert [outcome.line for outcome in seen if outcome.status == CORRECT] == []


def test_what_an_exercise_needs_of_the_chapter_comes_along_and_nothing_else():
    made = handout.handout(
        chapter(
            "import math\nfrom utils import formats, plots\nplots.style()",
            "size = 3\nother = 4\n\ndef area(r):\n    return math.pi * r * size",
            "## Exercises\n\nRead on.\n\n### 1. An area",
            "from utils.checks import bits as checks\n\nanswer = area(...)\nchecks.check_flips_of_6(answer)",
            "### 2. Mend it",
            "def twice(x):\n    return formats.decode(x)\n\nchecks.check_decode_e4m3fnuz(twice)",
            "## Sources",
            "secret = 1",
        )
    )
    found = codes(made)
    assert found["imports"] == "import math\nfrom utils import formats\nfrom utils.checks import bits as checks"
    assert found["of-the-chapter"] == "size = 3\n\ndef area(r):\n    return math.pi * r * size"
    assert found["exercise-1-1-answer"] == "answer = area(...)"
    assert found["flips-of-6-check"].startswith("outcome = checks.check_flips_of_6(answer)\n")
    assert "Read on" not in "".join(cell.source for cell in made.cells)


def test_a_name_that_the_chapter_does_not_define_is_said():
    cells = ["x = 1", "## Exercises\n\n### 1. One", "from utils.checks import bits as checks\nchecks.check_stall(y)"]
    with pytest.raises(handout.HandoutError, match="before cell 4 defines y"):
        handout.handout(chapter(*cells))


def test_a_page_without_a_check_has_no_hand_out():
    assert handout.handout(chapter("x = 1", "## Exercises\n\n### 1. One", "x")) is None


def test_a_text_is_filled_in_and_leaves_the_book():
    cells = chapter("# Text\n\n$$\na + b,\n$$ (eq-sum)", "share = 1").cells
    data, metadata = {"application/papermill.record/text/plain": "76.57"}, {"scrapbook": {"name": "share"}}
    cells[2].outputs = [nbformat.v4.new_output("display_data", data, metadata=metadata)]
    text = "(top)=\nBy {eq}`eq-sum`, {glue:text}`share:.0f` % {cite}`ieee2019`. See [Bits](bits) and [PyPI](https://pypi.org)."
    assert handout.plain(text, cells) == "By $a + b$, 77 %. See Bits and [PyPI](https://pypi.org)."
    for missing in ("{eq}`eq-none`", "{glue:text}`none`"):
        with pytest.raises(handout.HandoutError, match="none is not in the chapter"):
            handout.plain(missing, cells)


def test_the_folder_holds_all_that_its_install_command_needs(tmp_path):
    folder = tmp_path / "a folder"
    files = classroom.content()
    classroom.write(folder, files)
    assert nbformat.read(folder / "exercises/bits/bits.ipynb", as_version=4) == MADE["bits"]
    readme = (folder / "README.md").read_text("utf8")
    assert "pip install -r requirements.txt -e ." in readme
    assert all(f"(exercises/{name}/{name}.ipynb)" in readme for name in MADE)
    code = ("utils/checks/numbers/bits.py", "utils/widgets/bit_flip/widget.js", "utils/widgets/shared/page/tokens.css")
    for name in ("pyproject.toml", "requirements.txt", "LICENSE", *code):
        assert (folder / name).read_bytes() == (rules.ROOT / name).read_bytes()
    assert "python tools/progress_report.py" in readme
    assert (folder / "tools" / "progress_report.py").exists()
    assert not [name for name in files if "solutions" in name or name.startswith("tests")]
    compile((folder / "nbgrader_config.py").read_text("utf8"), "nbgrader_config.py", "exec")


def test_a_second_call_replaces_its_own_output_only(tmp_path):
    classroom.write(tmp_path, {"exercises/a.ipynb": b"1", "exercises/b.ipynb": b"1"})
    (tmp_path / "gradebook.db").write_text("grades")
    classroom.write(tmp_path, {"exercises/a.ipynb": b"2"})
    assert (tmp_path / "exercises/a.ipynb").read_bytes() == b"2"
    assert not (tmp_path / "exercises/b.ipynb").exists()
    assert (tmp_path / "gradebook.db").read_text() == "grades"


@pytest.mark.parametrize("by", ["edited", "made"])
def test_what_somebody_else_wrote_is_not_replaced(tmp_path, by):
    if by == "edited":
        classroom.write(tmp_path, {"a.ipynb": b"1", "b.ipynb": b"1"})
    (tmp_path / "a.ipynb").write_text("my work")
    with pytest.raises(classroom.ClassroomError, match="--output"):
        classroom.write(tmp_path, {"a.ipynb": b"2", "b.ipynb": b"2"})
    assert (tmp_path / "a.ipynb").read_text() == "my work"
    assert not (tmp_path / "b.ipynb").exists() or (tmp_path / "b.ipynb").read_bytes() == b"1"


def test_a_folder_that_cannot_be_used_gets_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(classroom, "content", lambda: {"a": b"1"})
    (tmp_path / classroom.LIST).write_text("no json")
    assert classroom.main(["--output", str(tmp_path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_list_names_each_file_with_what_was_written(tmp_path):
    classroom.write(tmp_path, {"a": b"1"})
    assert json.loads((tmp_path / classroom.LIST).read_text()) == {"a": classroom.digest(b"1")}
