"""The groups of records: nothing lost, GPUs first, the newest day."""

import dataclasses

from made_runs import run
from utils import records
from utils.experiments.record_all.inventory import group_records

GPU = {"kind": "cuda", "name": "NVIDIA H100"}


def test_every_record_of_the_book_is_in_one_group():
    made = records.load_all()
    assert sum(group.count for group in group_records(made)) == len(made)
    assert all(group.command.startswith("python -m utils.") and group.commit for group in group_records(made))


def test_seeds_and_recipes_of_a_command_are_together_and_gpus_come_first():
    made = [run(recipe, seed) for recipe in ("bf16-mixed", "32-true") for seed in range(3)]
    made.append(run("32-true", 0, device=GPU))
    made[0] = dataclasses.replace(made[0], date="2026-12-24T10:00:00+00:00")
    first, second = group_records(made)
    assert (first.device, first.count, first.seeds) == ("NVIDIA H100", 1, 1)
    assert (second.recipes, second.seeds, second.count) == (("32-true", "bf16-mixed"), 3, 6)
    assert second.day == "2026-12-24"


def test_another_commit_is_another_group():
    made = [run("32-true", 0), dataclasses.replace(run("32-true", 1), commit="b" * 40)]
    assert len(group_records(made)) == 2


def test_another_version_of_torch_is_another_group():
    made = [run("32-true", 0), dataclasses.replace(run("32-true", 1), versions={"torch": "9.9"})]
    assert sorted(group.torch for group in group_records(made)) == sorted({made[0].versions["torch"], "9.9"})
