"""What is said before the hour is spent: about the code, the card, the disk, the tests and torch."""

import subprocess

import pytest
import torch

from utils import machine
from utils.experiments.record_all import preflight
from utils.experiments.record_all.preflight import list_warnings

CLEAN = {"commit": "c" * 40, "dirty": False}
CPU, CUDA = torch.device("cpu"), torch.device("cuda")
QUIET = {"memory_used_mb": 4.0, "busy_percent": 0.0}


@pytest.fixture
def quiet(tmp_path, monkeypatch):
    """A machine where nothing is amiss."""
    monkeypatch.setattr(machine, "load", lambda on: QUIET)
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1e12}))
    return {"folder": tmp_path, "provenance": CLEAN}


def test_where_nothing_is_amiss_nothing_is_said(quiet):
    assert list_warnings(CUDA, **quiet) == []


@pytest.mark.parametrize(
    ("provenance", "says"),
    [
        ({"commit": None, "dirty": None}, "no commit: git is missing, does not trust this folder, or"),
        (CLEAN | {"dirty": True}, "utils or requirements.txt differ from the commit: commit the change first"),
    ],
)
def test_records_that_no_book_would_take_as_they_are(quiet, provenance, says):
    (sentence,) = list_warnings(CPU, **quiet | {"provenance": provenance})
    assert sentence.startswith(says)
    assert "keep this copy as it is" in sentence


@pytest.mark.parametrize(
    ("load", "says"),
    [
        (QUIET | {"memory_used_mb": 30_000.0}, "other programs hold 30.0 GB of the card"),
        (QUIET | {"busy_percent": 97.0}, "the card is busy, 97 % of the time"),
    ],
)
def test_a_card_that_others_use(quiet, monkeypatch, load, says):
    monkeypatch.setattr(machine, "load", lambda on: load)
    (sentence,) = list_warnings(CUDA, **quiet)
    assert sentence.startswith(says)
    assert list_warnings(CPU, **quiet) == []


def test_where_nvidia_smi_tells_nothing_nothing_is_said_of_the_card(quiet, monkeypatch):
    monkeypatch.setattr(machine, "load", lambda on: dict.fromkeys(QUIET))
    assert list_warnings(CUDA, **quiet) == []


def test_a_small_disk_missing_tests_and_another_torch(quiet, monkeypatch):
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1.2e9}))
    monkeypatch.setattr(preflight, "NEEDED", ("pytest", "no_such_package"))
    monkeypatch.setattr(preflight.torch, "__version__", "2.10.0+cu128")
    assert list_warnings(CUDA, **quiet | {"folder": quiet["folder"] / "not" / "there"}) == [
        "1.2 GB are free for records, logs and checkpoints",
        "the tests of the GPU will not run: pip install no_such_package",
        "torch 2.10.0: this code was tried with 2.11 and 2.13",
    ]


def test_the_load_is_asked_of_nvidia_smi_and_makes_no_context(monkeypatch):
    asked = []

    def answer(query, **how):
        asked.append(query)
        return subprocess.CompletedProcess(query, 0, "81000, 98\n", "")

    monkeypatch.setattr(machine.subprocess, "run", answer)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda on: type("About", (), {"uuid": "1-2"}))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda on: pytest.fail("makes a context"))
    assert machine.load(CUDA) == {"memory_used_mb": 81_000.0, "busy_percent": 98.0}
    assert asked[0][1:4] == ["-i", "GPU-1-2", "--query-gpu=memory.used,utilization.gpu"]
    assert machine.load(CPU) == {}
