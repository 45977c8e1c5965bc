"""The questions to the installed versions, their records, and the page."""

import json
import logging
import warnings

import pytest
import torch

import book_rules as rules
from utils import records
from utils.experiments import api_drift

RUNS = records.load_all(experiment=api_drift.NAME)
BY_NAME = {each.name: each for each in api_drift.QUESTIONS}


@pytest.fixture(scope="module")
def here():
    return api_drift.ask_all()


def test_questions_have_names_of_their_own():
    assert len(BY_NAME) == len(api_drift.QUESTIONS)
    assert {each.package for each in api_drift.QUESTIONS} <= set(api_drift.PACKAGES)


def test_three_versions_of_torch_are_recorded_and_differ():
    by_version = {run.results["packages"]["torch"]: run.results["answers"] for run in RUNS}
    assert set(by_version) == {"2.11.0", "2.13.0", "2.15.0"}
    assert all(answers.keys() == BY_NAME.keys() for answers in by_version.values())
    old, new = by_version["2.11.0"], by_version["2.13.0"]
    assert (old["500 cast to E4M3"], new["500 cast to E4M3"]) == ("nan", "448")
    assert old["F.scaled_mm on a CPU"] == "NotImplementedError"
    assert new["F.scaled_mm on a CPU"] == "works, gives bfloat16"
    eps = "eps of E5M2FNUZ in torch.finfo"
    assert (new[eps], by_version["2.15.0"][eps]) == ("0.125", "0.25")


def test_this_machine_answers_as_the_record_of_its_versions_does(here):
    mine = api_drift.read_versions()
    same = [run for run in RUNS if run.results["packages"]["torch"] == mine["torch"]]
    if not same:
        pytest.skip(f"torch {mine['torch']} is not recorded")
    recorded = same[0]
    changed = {name for name, version in mine.items() if recorded.results["packages"][name] != version}
    found = api_drift.find_differences(recorded, here)
    bound = {
        name: pair
        for name, pair in found.items()
        if not BY_NAME[name].by_machine and BY_NAME[name].package not in changed
    }
    assert bound == {}


def test_what_raises_is_an_answer_and_nothing_leaks(here):
    assert here["an old switch after a new one was set"] == "RuntimeError"
    assert torch.get_float32_matmul_precision() == "highest"
    assert logging.root.manager.disable == logging.NOTSET
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert api_drift.ask(BY_NAME['Fabric(precision="16") on a CPU']).startswith("runs bf16-mixed")
        assert api_drift.ask(api_drift.Question("fails", "torch", lambda: 1 / 0)) == "ZeroDivisionError"
    assert caught == []


def test_asking_leaves_random_numbers_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    api_drift.ask(BY_NAME["a bfloat16 checkpoint, from_pretrained"])
    assert torch.equal(torch.get_rng_state(), before)


def test_differences_name_both_answers():
    run = RUNS[0]
    told = dict(run.results["answers"])
    assert api_drift.find_differences(run, told) == {}
    told["500 cast to E4M3"] = "another"
    assert api_drift.find_differences(run, told | {"new": "yes"}) == {
        "500 cast to E4M3": (run.results["answers"]["500 cast to E4M3"], "another"),
        "new": ("not asked", "yes"),
    }


def test_the_command_writes_a_record_that_names_no_folder(here, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(api_drift, "ask_all", lambda: here)
    assert api_drift.main(["--record", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    run = records.load(path)
    assert run.results["answers"] == here
    assert str(tmp_path) not in json.dumps(run.command)
    assert "500 cast to E4M3" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_asked(capsys, monkeypatch):
    monkeypatch.setattr(api_drift, "ask_all", lambda: pytest.fail("asked before the folder was tried"))
    assert api_drift.main(["--record", "/proc/records"]) == 2
    assert capsys.readouterr().err.startswith("api_drift: cannot write records into /proc/records: ")


def test_what_depends_on_versions_is_not_compared_elsewhere():
    cells = rules.read_page(rules.BOOK / "reference" / "api_drift.ipynb")
    for cell in cells:
        marks = ("answers(", "api_drift.read_versions", "torch.__version__", "find_differences(")
        asks = any(mark in cell.source for mark in marks)
        if cell.kind == "code" and asks and not cell.source.startswith("def "):
            assert "nbval-ignore-output" in cell.tags, cell.source
