"""The stages of `make test`, and which tests `make check` runs."""

import pytest

import run_tests

LINTERS = ("tools/lint_scripts.py", "tools/lint_workflows.py", "tools/lint_layers.py")


@pytest.mark.parametrize("broken", ["check", "format", *LINTERS])
def test_one_command_that_fails_makes_its_stage_fail(monkeypatch, capsys, broken):
    monkeypatch.setattr(run_tests, "run_stage", lambda arguments, environment: (int(broken in arguments), ""))
    monkeypatch.setattr(run_tests, "untracked", set)
    assert run_tests.main({"style"}) == 1
    assert "failed: style" in capsys.readouterr().out


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
