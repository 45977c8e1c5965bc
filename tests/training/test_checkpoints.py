"""A run that was stopped ends with the bits of one that was not; and a checkpoint that does not fit is refused."""

import dataclasses
import itertools
import os

import pytest
import torch

from utils import distilbert, llama
from utils.runs import command_line, experiment
from utils.training import checkpoints, training_loop
from utils.training.recipes import Recipe, find_recipe
from utils.workloads import data, language_task, models, review_task

CPU = torch.device("cpu")
SCHEDULE = training_loop.Schedule(learning_rate=1e-3)
TINY = review_task.ReviewSettings(
    train=40,
    validation=16,
    test=16,
    epochs=2,  # of 5 steps each
    batch=8,
    max_length=32,
    schedule=SCHEDULE,
    # With dropout: the draws have to go on where they were.
    shape=models.DistilBertShape(width=16, layers=1, heads=2, hidden=32, positions=64, spread=0.05),
)


class Stopped(Exception):
    """What stands for a power cut."""


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE", "CACHE"):
        monkeypatch.delenv(f"MIXED_PRECISION_{name}", raising=False)


@pytest.fixture(scope="module")
def task() -> review_task.ReviewTask:
    return review_task.prepare(data.generated_reviews("small"), settings=TINY)


def stopped(plan: experiment.RunPlan, *, after: int) -> experiment.RunPlan:
    """The same plan, whose batches end in an exception."""

    def draw(seed):
        yield from itertools.islice(plan.draw(seed), after)
        raise Stopped

    return dataclasses.replace(plan, draw=draw)


def finish(plan: experiment.RunPlan, chosen: Recipe, monkeypatch, **options):
    """Run to the end; return the run and its history, whose losses are not rounded."""
    seen = []
    train = training_loop.fine_tune

    def noted(*args, **kwargs):
        seen.append(train(*args, **kwargs))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(training_loop, "fine_tune", noted)
        return experiment.run(plan, chosen, device=CPU, **options), seen[-1]


def assert_same(first: tuple, second: tuple) -> None:
    (run, history), (other, goes_on) = first, second
    assert history.losses == goes_on.losses
    assert history.scales == goes_on.scales
    assert history.validation == goes_on.validation
    assert (history.steps, history.skipped) == (goes_on.steps, goes_on.skipped)
    for (name, a), b in zip(run.model.state_dict().items(), other.model.state_dict().values(), strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b), name
    same = ("accuracy", "skipped_steps", "loss_scale", "memory", "validation", "loss", "nan_step")
    assert all(run.record.results.get(name) == other.record.results.get(name) for name in same)
    assert [len(one.record.samples["step_ms"]) for one in (run, other)] == [history.steps] * 2


# Going on


@pytest.fixture
def nervous(monkeypatch):
    """A loss scale that falls in the first steps and grows in later ones."""

    def scaler(self, device, **_):
        options = {"init_scale": 2.0**20, "growth_interval": 2, "enabled": self.needs_loss_scaling}
        return torch.amp.GradScaler(device.type, **options)

    monkeypatch.setattr(Recipe, "scaler", scaler)


@pytest.mark.parametrize(
    "name", ["32-true", "bf16-mixed", "16-mixed", "16-true-master", "bf16-true-kahan", "bf16-true-stochastic"]
)
def test_six_steps_a_stop_and_four_more_are_ten_steps_bit_for_bit(name, task, tmp_path, monkeypatch, nervous, capsys):
    plan = distilbert.make_plan(task)
    straight = finish(plan, find_recipe(name), monkeypatch, seed=1)
    options = {"seed": 1, "checkpoint": tmp_path, "every": 3}
    with pytest.raises(Stopped):
        experiment.run(stopped(plan, after=8), find_recipe(name), device=CPU, **options)
    assert [path.name for path in tmp_path.iterdir()] == [f"distilbert-{name}-small-generated-seed1.safetensors"]
    torch.manual_seed(99)  # another process begins elsewhere
    resumed = finish(plan, find_recipe(name), monkeypatch, **options)
    assert "goes on after step 6 of 10" in capsys.readouterr().err
    assert resumed[0].record.results["resumed_at"] == [6]
    assert_same(straight, resumed)
    assert len(straight[1].validation) == 2
    assert list(tmp_path.iterdir()) == []
    if name == "16-mixed":
        scales = [scale for _, scale in straight[1].scales]
        assert straight[1].skipped > 0
        assert any(a < b for a, b in itertools.pairwise(scales))
        assert len({step for step, _ in straight[1].scales if step > 6}) > 0


def test_a_run_that_is_stopped_again_and_again_comes_to_the_same_end(task, tmp_path, monkeypatch):
    plan, options = distilbert.make_plan(task), {"seed": 0, "checkpoint": tmp_path, "every": 2}
    straight = finish(plan, find_recipe("32-true"), monkeypatch, seed=0)
    for after in (3, 5, 8):
        with pytest.raises(Stopped):
            experiment.run(stopped(plan, after=after), find_recipe("32-true"), device=CPU, **options)
    resumed = finish(plan, find_recipe("32-true"), monkeypatch, **options)
    assert resumed[0].record.results["resumed_at"] == [2, 4, 8]
    assert_same(straight, resumed)


def test_checkpoints_change_nothing_in_a_run_that_is_not_stopped(task, tmp_path, monkeypatch):
    plan = distilbert.make_plan(task)
    kept = finish(plan, find_recipe("32-true"), monkeypatch, checkpoint=tmp_path / "new", every=3)
    assert_same(finish(plan, find_recipe("32-true"), monkeypatch), kept)
    assert kept[0].record.results["resumed_at"] == []


def test_a_llama_whose_embeddings_are_its_output_goes_on_too(tmp_path, monkeypatch):
    shape = models.LlamaShape(width=16, layers=1, heads=2, groups=1, hidden=32, positions=32, tied=True)
    settings = dataclasses.replace(
        language_task.SMALL, characters=6_000, held_out=1_000, steps=10, batch=4, length=32, shape=shape, entries=300
    )
    task = language_task.prepare(data.generated_prose(settings.characters), settings=settings)
    plan, options = llama.make_plan(task), {"checkpoint": tmp_path, "every": 3}
    straight = finish(plan, find_recipe("bf16-mixed"), monkeypatch)
    with pytest.raises(Stopped):
        experiment.run(stopped(plan, after=7), find_recipe("bf16-mixed"), device=CPU, **options)
    assert_same(straight, finish(plan, find_recipe("bf16-mixed"), monkeypatch, **options))


def test_a_run_that_ends_in_nan_ends_at_the_same_step_with_checkpoints(task, tmp_path, monkeypatch):
    monkeypatch.setattr(training_loop, "CHECK_EVERY", 4)
    ends = [
        finish(distilbert.make_plan(task), find_recipe("16-true"), monkeypatch, checkpoint=folder, every=3)[1]
        for folder in (None, tmp_path)
    ]
    assert ends[0].nan_step == ends[1].nan_step is not None
    assert ends[0].steps == ends[1].steps == 4


@pytest.mark.gpu
def test_on_a_gpu_a_stopped_run_comes_to_the_same_end(task, tmp_path):
    plan, options = distilbert.make_plan(task), {"device": torch.device("cuda"), "checkpoint": tmp_path, "every": 3}
    straight = experiment.run(plan, find_recipe("16-mixed"), device=options["device"])
    with pytest.raises(Stopped):
        experiment.run(stopped(plan, after=7), find_recipe("16-mixed"), **options)
    resumed = experiment.run(plan, find_recipe("16-mixed"), **options)
    assert resumed.record.results["resumed_at"] == [6]
    assert all(map(torch.equal, straight.model.parameters(), resumed.model.parameters()))


# What does not fit


def test_a_checkpoint_of_something_else_is_refused_and_left_alone(task, tmp_path, monkeypatch):
    plan, options = distilbert.make_plan(task), {"device": CPU, "checkpoint": tmp_path, "every": 3}
    with pytest.raises(Stopped):
        experiment.run(stopped(plan, after=5), find_recipe("32-true"), **options)
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    schedule = dataclasses.replace(SCHEDULE, learning_rate=2e-3)
    other = review_task.prepare(task.texts, settings=dataclasses.replace(TINY, schedule=schedule))
    with pytest.raises(checkpoints.Refused, match="is of other settings, texts, device or code than this run; delete"):
        experiment.run(distilbert.make_plan(other), find_recipe("32-true"), **options)
    with monkeypatch.context() as patch:
        patch.setattr(experiment.loaded_source, "digest", lambda module: "another state of the code")
        with pytest.raises(checkpoints.Refused, match="or code"):
            experiment.run(plan, find_recipe("32-true"), **options)
    wider = dataclasses.replace(find_recipe("32-true"), optimizer=torch.float64)
    with pytest.raises(checkpoints.Refused):
        experiment.run(plan, wider, **options)
    assert path.read_bytes() == before
    for another in ({"seed": 1}, {"recipe": "64-true"}):  # these have files of their own
        chosen = find_recipe(another.pop("recipe", "32-true"))
        assert experiment.run(plan, chosen, **options, **another).record.results["resumed_at"] == []
    assert path.read_bytes() == before


def test_a_broken_checkpoint_is_refused(task, tmp_path):
    path = tmp_path / "distilbert-32-true-small-generated-seed0.safetensors"
    path.write_bytes(b"half a file")
    with pytest.raises(checkpoints.Refused, match=rf"the checkpoint {path.name} cannot be read \(.*\); delete it"):
        experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU, checkpoint=tmp_path)


def test_a_watched_run_keeps_no_checkpoint(task, tmp_path):
    with pytest.raises(ValueError, match="a watched run keeps no checkpoint"):
        experiment.run(
            distilbert.make_plan(task), find_recipe("32-true"), device=CPU, checkpoint=tmp_path, watch_steps=2
        )


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(task, tmp_path, monkeypatch):
    def full(path, state):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save", full)
    with pytest.warns(UserWarning, match="no checkpoint after step 6: No space left on device"):
        run = experiment.run(
            distilbert.make_plan(task), find_recipe("32-true"), device=CPU, checkpoint=tmp_path, every=6
        )
    assert run.record.results["steps"] == 10


# The file


def test_a_nest_of_tensors_numbers_and_texts_comes_back_as_it_was(tmp_path):
    state = {
        "a": torch.randn(3, 2).t(),
        "b": {"c": [1, 0.1, None, True, torch.arange(3, dtype=torch.uint8)], "d": "text", "e": float("nan")},
        "half": torch.tensor([1.5, float("inf")], dtype=torch.bfloat16),
        "number": torch.tensor(7.0),
    }
    checkpoints.save(tmp_path / "x.safetensors", state)
    found = checkpoints.load(tmp_path / "x.safetensors")
    assert torch.equal(found["a"], state["a"])
    assert found["b"]["c"][:4] == [1, 0.1, None, True]
    assert torch.equal(found["b"]["c"][4], torch.arange(3, dtype=torch.uint8))
    assert found["b"]["d"] == "text"
    assert found["b"]["e"] != found["b"]["e"]
    assert found["half"].dtype is torch.bfloat16
    assert torch.equal(found["half"], state["half"])
    assert found["number"].shape == ()
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    checkpoints.save(path, {"n": 1})
    with pytest.raises(TypeError):
        checkpoints.save(path, {"n": object()})
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        checkpoints.save(path, {"n": 2})
    assert checkpoints.load(path) == {"n": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.safetensors"]


# The command line


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(review_task, "settings_for", lambda size, reviews: TINY)
    monkeypatch.setattr(data, "load_reviews", lambda folder=None, *, size: data.generated_reviews("small"))
    monkeypatch.setattr(experiment.run, "__kwdefaults__", experiment.run.__kwdefaults__ | {"every": 3})


def test_the_command_goes_on_after_an_interrupt_and_tidies_up(tiny, tmp_path, monkeypatch, capsys):
    arguments = ["--recipe", "32-true", "--size", "small", "--checkpoint", str(tmp_path)]
    usual, steps = training_loop.Trainer.step, itertools.count(1)

    def interrupted(self, batch):
        if next(steps) == 8:
            raise KeyboardInterrupt
        return usual(self, batch)

    monkeypatch.setattr(training_loop.Trainer, "step", interrupted)
    assert distilbert.main(arguments) == command_line.INTERRUPTED
    expected = "interrupted after 0 of 1 runs; the unfinished one goes on from its last checkpoint, where it has one\n"
    assert capsys.readouterr().err.endswith(expected)
    assert len(list(tmp_path.iterdir())) == 1
    assert distilbert.main(arguments) == 0
    assert "distilbert-32-true-small-generated-seed0: goes on after step 6 of 10" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_in_one_line_why_it_refuses(tiny, tmp_path, capsys):
    (tmp_path / "distilbert-32-true-small-generated-seed0.safetensors").write_bytes(b"")
    assert distilbert.main(["--recipe", "32-true", "--size", "small", "--checkpoint", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("distilbert: the checkpoint distilbert-32-true-small-generated-seed0.safetensors cannot be")
    assert error.count("\n") == 1
    assert distilbert.main(["--watch", "2", "--checkpoint", str(tmp_path)]) == 2
    assert "leave out one of the two" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert distilbert.main(["--size", "small", "--checkpoint", str(tmp_path / "file")]) == 2
    assert "cannot write checkpoints into" in capsys.readouterr().err


def test_a_record_does_not_tell_the_folder(tmp_path):
    shown = command_line.hide_folders(["--checkpoint", str(tmp_path), "--seeds", "2"], program="llama")
    assert shown == "python -m utils.llama --checkpoint DIR --seeds 2"
