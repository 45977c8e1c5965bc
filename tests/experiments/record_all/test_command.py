"""The command line: the plan, mistakes in one line, and a machine with the short list of packages and no network."""

import importlib.metadata
import os
import subprocess
import sys

import pytest

from hidden_packages import write_site
from utils import records
from utils.experiments.record_all import __main__ as command
from utils.experiments.record_all.attempts import load_report
from utils.experiments.record_all.wanted import list_wanted

HIDDEN = (
    "scipy",
    "ml_dtypes",
    "datasets",
    "ipywidgets",
    "anywidget",
    "bitsandbytes",
    "IPython",
    "jupyter",
    "jupyter_client",
    "nbformat",
)


def test_the_plan_runs_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "list_warnings", lambda *about, **more: ["the card is busy"])
    folder = tmp_path / "out"
    assert command.main(["--plan", "--minutes", "50", "--size", "full", "--device", "cpu", "--out", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "microscope" in out
    assert out.splitlines()[-2].startswith("18 to run in 48 minutes, 0 done")
    assert out.splitlines()[-1] == "NOTE: the card is busy"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--minutes", "0"], "--minutes 0 is not above 0"),
        (["--minutes", "nan"], "--minutes nan is not above 0"),
        (["--only", "gemm"], "--only gemm: no such name; --plan prints the names"),
        (["--data", "/no/such/folder"], "there is no folder /no/such/folder"),
        (["--archive", "a.tar.gz"], "--archive FILE and --into DIR belong together"),
        (["--archive", "no.tar.gz", "--into", "."], "there is no file no.tar.gz"),
        (["--size", "huge"], "unknown size 'huge'"),
        (["--record", "DIR"], "unrecognized arguments: --record DIR"),
    ],
)
def test_a_mistake_is_one_line(arguments, says, capsys):
    assert command.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("record_all: ")
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.parametrize(
    ("arguments", "there", "refused"),
    [([], True, True), (["--device", "cpu"], True, False), (["--device=cpu"], True, False), ([], False, False)],
)
def test_a_card_that_torch_does_not_see_is_no_reason_to_record_the_processor(
    monkeypatch, capsys, tmp_path, arguments, there, refused
):
    monkeypatch.setattr(command.torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("MIXED_PRECISION_DEVICE", raising=False)
    monkeypatch.setattr(command.shutil, "which", lambda name: f"/usr/bin/{name}" if there else None)
    assert command.main(["--plan", "--out", str(tmp_path), *arguments]) == (2 if refused else 0)
    assert ("nvidia-smi is there and torch" in capsys.readouterr().err) == refused


def test_a_missing_package_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command.Recording, "__post_init__", lambda self: importlib.metadata.version("no-such-package"))
    assert command.main(["--plan", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "record_all: no-such-package is not installed: pip install no-such-package\n"


def test_without_a_terminal_it_goes_on(monkeypatch):
    class Gone:
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

        flush = write

    monkeypatch.setattr(sys, "stdout", Gone())
    command._print_line("a line")
    command._print_line("another")
    assert sys.stdout.name == os.devnull
    sys.stdout.close()


@pytest.fixture
def bare(tmp_path):
    """Run Python on a machine without these packages and without a network, with an empty cache."""

    def run(*arguments):
        hidden = write_site(tmp_path / "site", HIDDEN)
        path = os.pathsep.join([hidden, str(records.ROOT)])
        changes = {"PYTHONPATH": path, "MIXED_PRECISION_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": ""}
        return subprocess.run(
            [sys.executable, *arguments], cwd=records.ROOT, env=os.environ | changes, capture_output=True, text=True
        )

    return run


def test_every_command_is_there_without_those_packages(bare):
    modules = {f"utils.{entry.arguments[0]}" for entry in list_wanted()} | {"utils.experiments.record_all.__main__"}
    done = bare("-c", f"import {', '.join(sorted(modules))}, sys; print(sorted(set(sys.modules) & set({HIDDEN!r})))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_bare_machine_records(bare, tmp_path):
    out = tmp_path / "out"
    options = ["--size", "small", "--minutes", "5", "--device", "cpu", "--out", str(out)]
    done = bare("-m", "utils.experiments.record_all", *options, "--only", "microscope", "fp8_speed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {entry.experiment for entry in records.load_all(out / "records")} == {"microscope", "fp8_speed"}
    assert load_report(out / "report.json").tests.summary == "not run: this is no GPU"
    assert len(list(out.glob("records-*-small-*.tar.gz"))) == 1
