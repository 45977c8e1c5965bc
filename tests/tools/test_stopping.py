"""Ctrl-C ends a long command of the Makefile in a line that says what is left."""

import build
import run_tests


def pressed(*_, **__):
    raise KeyboardInterrupt


def test_a_build_says_that_pages_are_missing(monkeypatch, capsys):
    monkeypatch.setattr(build, "build", pressed)
    assert build.main() == 130
    said = capsys.readouterr()
    assert said.err == "\nStopped by hand: pages are missing. `make book` builds them all.\n"
    assert "The book is built" not in said.out


def test_the_tests_sum_up_the_stages_that_came_to_their_end(monkeypatch, capsys):
    asked = []

    def run(arguments, environment, show, nice=0):
        asked.append(arguments)
        return pressed() if "--nbval" in arguments else (0, "3 passed")

    monkeypatch.setattr(run_tests, "run_command", run)
    monkeypatch.setattr(run_tests, "untracked", set)
    assert run_tests.main({"units", "cells", "browser"}) == 130
    ends = capsys.readouterr().out.partition("== summary")[2].splitlines()[1:]
    assert [line.split()[:2] for line in ends] == [["ok", "units"], ["stopped", "by"]]
    assert ends[0].endswith("3 passed")
    assert len(asked) == 2
