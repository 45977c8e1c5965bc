"""The list of what the book wants: its names, commands, pages, tests, and that every command takes its options."""

import dataclasses
import importlib

import pytest

from made_runs import run
from utils import records
from utils.experiments.record_all.wanted import OPTIONS, list_wanted
from utils.runs import command_line

WANTED = list_wanted()
FOLDERS = dict.fromkeys(OPTIONS, "/a folder")


class Parsed(Exception):
    """Ends a command once its options are read."""


def test_the_names_are_different():
    names = [entry.name for entry in WANTED]
    assert len(set(names)) == len(names)


def test_the_order_is_that_of_the_book():
    """As decided: first what no page has a substitute for and takes a minute or two."""
    first = [entry.name for entry in WANTED if not entry.name.startswith(("llama", "distilbert"))]
    assert first == [
        "microscope",
        "accumulation_error",
        "gemm_sweep",
        "fp8_speed",
        "fp8_speed-compiled",
        "generation",
        "step_speed",
        "watched-distilbert",
        "watched-distilbert-updates",
        "capstone",
        "refinement_speed",
        "parallel",
    ]


@pytest.mark.parametrize("entry", WANTED, ids=lambda entry: entry.name)
def test_pages_and_tests_exist(entry):
    assert (records.ROOT / "book" / f"{entry.page}.ipynb").is_file()
    for name in entry.rests_on:
        source = (records.ROOT / "tests" / name).read_text(encoding="utf-8")
        assert "mark.gpu" in source, f"{name} has no GPU test, so nothing can rest on it"


@pytest.mark.parametrize("entry", WANTED, ids=lambda entry: entry.name)
def test_every_command_takes_its_options(entry, monkeypatch, tmp_path):
    """Each module's own parser reads the command; nothing is run."""
    module, *options = entry.command(
        device="cpu", size="small", record=str(tmp_path), checkpoint=str(tmp_path / "c"), folders=FOLDERS
    )
    checked = command_line.Parser.checked

    def read(self, arguments):
        read.options = checked(self, arguments)
        raise Parsed

    monkeypatch.setattr(command_line.Parser, "checked", read)
    name = f"{module}.__main__" if (records.ROOT / module.replace(".", "/")).is_dir() else module
    with pytest.raises(Parsed):
        importlib.import_module(name).main(options)
    assert read.options.record == tmp_path
    assert str(read.options.device) == "cpu"
    for folder in entry.folders:
        assert getattr(read.options, OPTIONS[folder].removeprefix("--")) == "/a folder"


def test_the_records_of_small_runs_have_the_names_that_the_list_looks_for():
    """As if the committed records of a CPU were of a GPU: only the two that no CPU has to record may be missing."""
    made = [dataclasses.replace(record, device=record.device | {"kind": "cuda"}) for record in records.load_all()]
    missing = [entry.name for entry in WANTED if not entry.find_gpus(made)]
    assert {*missing} <= {"fp8_speed", "fp8_speed-compiled"}


def test_a_record_of_a_cpu_is_none_of_a_gpu():
    made = [record for record in records.load_all() if record.device["kind"] == "cpu"]
    assert made
    assert not [entry.name for entry in WANTED if entry.find_gpus(made)]


def test_all_seeds_are_wanted():
    entry = next(entry for entry in WANTED if entry.name == "distilbert-bf16-mixed-3-seeds")
    device = {"kind": "cuda", "name": "NVIDIA H100"}
    made = [run("bf16-mixed", seed, device=device) for seed in range(3)]
    assert entry.find_gpus(made) == ["NVIDIA H100"]
    assert entry.find_gpus(made[:2]) == []
    assert entry.find_gpus([dataclasses.replace(record, recipe="16-mixed") for record in made]) == []
