"""The stages of `make test`, and which tests `make check` runs."""

import os
import subprocess
import sys
import threading

import pytest

import run_tests

LINTERS = ("tools/lint_scripts.py", "tools/lint_workflows.py", "tools/lint_layers.py")


@pytest.mark.parametrize("broken", ["check", "format", *LINTERS])
def test_one_command_that_fails_makes_its_stage_fail(monkeypatch, capsys, broken):
    monkeypatch.setattr(run_tests, "run_command", lambda arguments, *_: (int(broken in arguments), ""))
    monkeypatch.setattr(run_tests, "untracked", set)
    assert run_tests.main({"style"}) == 1
    assert "failed: style" in capsys.readouterr().out


def test_what_takes_one_core_runs_beside_the_rest_and_the_browser_waits_for_the_pages(monkeypatch, capsys):
    units, built, ended = threading.Event(), threading.Event(), []

    def run(arguments, environment, show, nice=0):
        show("some words\n")
        beside = any(arguments in stage for stage in run_tests.STAGES if stage[0] in run_tests.BESIDE)
        assert nice == (run_tests.STANDS_BACK if beside else 0)
        if arguments[0] == "tools/build.py":
            assert units.wait(60)  # it is built while they run
            built.set()
        elif arguments == run_tests.UNITS:
            units.set()
        elif arguments == run_tests.IN_BROWSER:
            assert built.is_set()
        ended.append(arguments)
        return 0, ""

    monkeypatch.setattr(run_tests, "run_command", run)
    monkeypatch.setattr(run_tests, "untracked", set)
    assert run_tests.main(set()) == 0
    assert set(ended) == {command for _, _, *commands in run_tests.STAGES for command in commands}
    assert ended[-1] == run_tests.IN_BROWSER
    out = capsys.readouterr().out
    assert "== pages: the book builds without a warning\nsome words\n" in out
    summary = out.partition("== summary\n")[2].splitlines()
    assert [line.split()[1] for line in summary[:-1]] == [name for name, *_ in run_tests.STAGES]
    assert summary[-1] == "everything passed"


def test_a_command_that_stands_back_is_as_nice_as_that():
    shown = []
    command = ("-c", "import os, time; time.sleep(0.5); print(os.getpriority(os.PRIO_PROCESS, 0))")
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for nice in (0, run_tests.STANDS_BACK):
        run_tests.run_command(command, dict(os.environ), shown.append, nice)
    assert shown == [f"{own}\n", f"{run_tests.STANDS_BACK}\n"]


def test_what_has_failed_runs_again_with_the_values_in_its_assertions_and_stays_failed(tmp_path, monkeypatch, capsys):
    test = tmp_path / "test_it.py"
    test.write_text("def test_one():\n    assert 1 + 1 == 3\n\n\ndef test_two():\n    pass\n", "utf8")
    command = ("-m", "pytest", "-q", run_tests.PLAIN, "--rootdir", str(tmp_path), "-p", "no:xdist", str(test))
    monkeypatch.setattr(run_tests, "STAGES", (("units", "a test", command),))
    assert run_tests.main({"units"}) == 1
    first, again, summary = capsys.readouterr().out.split("\n== ")[1:]
    assert "assert 1 + 1 == 3" in first
    assert "(1 + 1)" not in first
    assert "assert (1 + 1) == 3" in again
    assert "1 failed, 1 passed" in summary


def test_where_no_failure_is_known_nothing_runs_again(tmp_path, monkeypatch, capsys):
    test = tmp_path / "test_it.py"
    test.write_text("def test_one():\n    pass\n", "utf8")
    command = ("-m", "pytest", "-q", "--rootdir", str(tmp_path), "-p", "no:xdist", str(test))
    monkeypatch.setattr(run_tests, "STAGES", (("units", "a test", (*command, *run_tests.AGAIN)),))
    run_tests.main({"units"})
    assert "1 deselected" in capsys.readouterr().out
    commands = []
    monkeypatch.setattr(run_tests, "run_command", lambda arguments, *_: commands.append(arguments) or (1, ""))
    monkeypatch.setattr(run_tests, "STAGES", (("units", "a test", (*command, run_tests.PLAIN)),))
    assert run_tests.main({"units"}) == 1
    assert commands[1:] == [[*command, *run_tests.AGAIN]]


def test_no_stage_pays_for_grammars_that_no_notebook_needs():
    loaded = "import sys, nbformat, jsonschema; sys.exit('lark' in sys.modules)"
    environment = run_tests.stage_environment()
    assert subprocess.run([sys.executable, "-c", loaded], env=environment, check=False).returncode == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stage_that_comes_to_no_end_has_failed(monkeypatch, capsys):
    def run(arguments, *_):
        if arguments[0] == "tools/build.py":
            raise OSError("no process")
        return 0, ""

    monkeypatch.setattr(run_tests, "run_command", run)
    monkeypatch.setattr(run_tests, "untracked", set)
    assert run_tests.main({"units", "pages"}) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "failed: pages"


def test_a_file_that_is_left_behind_is_named(monkeypatch, capsys):
    monkeypatch.setattr(run_tests, "run_command", lambda *_: (0, ""))
    found = iter([set(), {"tests/left.txt"}])
    monkeypatch.setattr(run_tests, "untracked", lambda: next(found))
    assert run_tests.main({"units"}) == 1
    said = capsys.readouterr()
    assert said.err == "the stages left files behind: tests/left.txt\n"
    assert "everything passed" not in said.out


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("utils/scaling.py", {"tests/test_scaling.py"}),
        (
            "utils/cost/memory.py",
            {
                "tests/cost/test_memory.py",
                "tests/checks/hardware/test_memory.py",
                "tests/pictures/hardware/test_memory.py",
            },
        ),
        ("utils/widgets/quiz/widget.js", {"tests/widgets/test_quiz.py", "tests/browser/widgets/test_quiz.py"}),
        ("tools/serve.py", set()),
        ("tests/test_llama.py", {"tests/test_llama.py"}),
        ("README.md", set()),
    ],
)
def test_a_changed_file_asks_for_the_tests_of_its_name(changed, tests):
    assert set(run_tests.tests_of({changed})) == tests


def test_what_changed_is_checked_by_style_form_and_units_without_a_browser(monkeypatch):
    monkeypatch.setattr(run_tests, "changed_files", lambda: {"utils/widgets/quiz/widget.js"})
    (*_, (name, shown, options)) = stages = run_tests.changed_stages()
    assert [stage[0] for stage in stages] == ["style", "form", "units"]
    assert (name, shown) == ("units", "tests/widgets/test_quiz.py")
    assert options[-1] == shown
    assert "tests" not in options
    monkeypatch.setattr(run_tests, "changed_files", lambda: {"README.md"})
    assert [stage[0] for stage in run_tests.changed_stages()] == ["style", "form"]
