"""A run that is recorded is not made again; a command that was killed goes on where it was."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from utils import distilbert, records
from utils.runs import command_line, experiment, experiment_command
from utils.training import training_loop
from utils.training.recipes import COMPARED, find_recipe
from utils.workloads import data, models, review_task

CPU = torch.device("cpu")
TINY = review_task.ReviewSettings(
    train=40,
    validation=0,
    test=16,
    epochs=2,  # of 5 steps each
    batch=8,
    max_length=32,
    schedule=training_loop.Schedule(learning_rate=1e-3),
    shape=models.DistilBertShape(width=16, layers=1, heads=2, hidden=32, positions=64, spread=0.05),
)
EVERY = 3


def make_tiny() -> None:
    """Let the command line run the tiny settings, with a checkpoint every three steps."""
    review_task.settings_for = lambda size, reviews: TINY
    data.load_reviews = lambda folder=None, *, size: data.generated_reviews("small")
    experiment.run.__kwdefaults__ = experiment.run.__kwdefaults__ | {"every": EVERY}


@pytest.fixture
def tiny(monkeypatch):
    for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE", "CACHE"):
        monkeypatch.delenv(f"MIXED_PRECISION_{name}", raising=False)
    monkeypatch.setattr(review_task, "settings_for", review_task.settings_for)  # restored with what it was
    monkeypatch.setattr(data, "load_reviews", data.load_reviews)
    monkeypatch.setattr(experiment.run, "__kwdefaults__", experiment.run.__kwdefaults__)
    make_tiny()


def arguments(folder, *, seeds: int = 2, recipes=("32-true",)) -> list[str]:
    return ["--recipe", *recipes, "--size", "small", "--device", "cpu", "--seeds", str(seeds), "--record", str(folder)]


# Which run is the same


def test_what_decides_a_run_decides_its_key(tiny, monkeypatch):
    task = review_task.prepare(data.generated_reviews("small"), settings=TINY)
    other = dataclasses.replace(task, settings=dataclasses.replace(TINY, batch=4))

    def key(task=task, name="32-true", seed=0, **how) -> str:
        return experiment.record_key(distilbert.make_plan(task), find_recipe(name), seed=seed, device=CPU, **how)

    assert key() == key()
    keys = {key(), key(other), key(name="32-true-high"), key(seed=1), key(watch_steps=2)}
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)  # another speed
    keys.add(key())
    monkeypatch.setattr(experiment.loaded_source, "digest", lambda module: "another state of the code")
    keys.add(key())
    assert len(keys) == 7


# The command


def test_a_recorded_run_is_not_made_again_and_stands_in_the_table(tiny, tmp_path, capsys, monkeypatch):
    assert distilbert.main(arguments(tmp_path)) == 0
    first, before = capsys.readouterr().out, {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 2
    monkeypatch.setattr(training_loop, "fine_tune", lambda *_, **__: pytest.fail("trained again"))
    assert distilbert.main(arguments(tmp_path)) == 0
    again = capsys.readouterr().out
    assert "1 of 2  32-true seed 0: its record is there already: not run again" in again
    assert first.splitlines()[-3:] == again.splitlines()[-3:]  # the same table
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_one_more_seed_and_one_more_recipe_make_only_those(tiny, tmp_path, capsys):
    distilbert.main(arguments(tmp_path, seeds=1))
    capsys.readouterr()
    distilbert.main(arguments(tmp_path, seeds=2, recipes=("32-true", "bf16-mixed")))
    said = capsys.readouterr().out
    assert said.count("not run again") == 1
    assert "4 of 4  bf16-mixed seed 1: " in said
    assert len(list(tmp_path.iterdir())) == 4


def test_without_record_every_run_is_made(tiny, capsys):
    distilbert.main(arguments("unused")[:-2])
    distilbert.main(arguments("unused")[:-2])
    assert "not run again" not in capsys.readouterr().out


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import test_experiment_command
from utils import distilbert
from utils.training import training_loop

test_experiment_command.make_tiny()
usual, steps = training_loop.Trainer.step, []

def step(self, batch):
    steps.append(1)
    if len(steps) == 10 + 8:  # in step 8 of the second run
        os.kill(os.getpid(), signal.SIGKILL)
    return usual(self, batch)

training_loop.Trainer.step = step
distilbert.main({arguments!r})
"""


def test_a_command_that_is_killed_goes_on_where_it_was(tiny, tmp_path, capsys):
    whole, stopped, checkpoints = (tmp_path / name for name in ("whole", "stopped", "checkpoints"))
    asked = [*arguments(stopped, seeds=3), "--checkpoint", str(checkpoints)]
    code = KILLED.format(tests=str(Path(__file__).parent), arguments=asked)
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=records.ROOT, env=os.environ | threads, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.stem for path in stopped.glob("*.json")] == ["distilbert-32-true-small-generated-cpu-seed0"]
    assert [path.name for path in checkpoints.iterdir()] == ["distilbert-32-true-small-generated-seed1.safetensors"]
    assert distilbert.main(asked) == 0
    said = capsys.readouterr()
    assert said.out.count("not run again") == 1
    assert "seed1: goes on after step 6 of 10" in said.err
    assert distilbert.main(arguments(whole, seeds=3)) == 0
    for straight, resumed in zip(records.load_all(whole), records.load_all(stopped), strict=True):
        assert straight.key == resumed.key
        assert straight.samples["loss"] == resumed.samples["loss"]
        assert straight.results["accuracy"] == resumed.results["accuracy"]
        assert straight.results["rates"]["padding"] == resumed.results["rates"]["padding"]
    assert list(checkpoints.iterdir()) == []


def test_all_are_the_arms_of_the_comparison():
    asked = ["--recipe", "all", "16-true-master", "32-true"]
    options = experiment_command.parse(asked, program="distilbert", about=None, recipes=())
    assert [chosen.name for chosen in options.recipes] == [*COMPARED, "16-true-master"]


def test_an_arm_that_torch_cannot_run_here_is_named_and_the_others_go_on(tiny, tmp_path, capsys, monkeypatch):
    honest = experiment.run

    def run(plan, chosen, **how):
        if chosen.name == "bf16-true":
            raise NotImplementedError("\"gelu\" not implemented for 'BFloat16'\nsecond line")
        return honest(plan, chosen, **how)

    monkeypatch.setattr(experiment, "run", run)
    assert distilbert.main(arguments(tmp_path, recipes=("bf16-true", "32-true"))) == 0
    said = capsys.readouterr().out
    why = "missing, torch cannot run it on this device: \"gelu\" not implemented for 'BFloat16'"
    assert all(f"bf16-true seed {seed}: {why}\n" in said for seed in (0, 1))
    assert said.endswith(f"\nbf16-true: {why}\n")  # below the table
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (61, "1:01"), (599.7, "10:00"), (3_661, "1:01:01")])
def test_durations_are_minutes_and_seconds(seconds, text):
    assert command_line.format_duration(seconds) == text
