"""Watching changes nothing, and what it reports is what a careful reader of the same step would count."""

import contextlib
import dataclasses
import json

import pytest
import torch
from torch import nn

from utils import distilbert, llama, records
from utils.emulation.exponent_histogram import Histogram, histogram
from utils.formats import FLOAT16
from utils.runs import experiment
from utils.training import batches, training_loop
from utils.training.recipes import RECIPES, find_recipe
from utils.training.watch import KINDS, Watch, evenly, recorded
from utils.workloads import data, models, review_task

CPU = torch.device("cpu")
SHAPE = models.DistilBertShape(width=16, layers=2, heads=2, hidden=32, positions=64, spread=0.05)
TINY = review_task.ReviewSettings(
    train=48,
    validation=0,
    test=16,
    epochs=1,
    batch=8,
    max_length=32,
    schedule=training_loop.Schedule(learning_rate=1e-3),
    shape=SHAPE,  # with dropout, so that a number drawn too many would show
)
ALPACA = models.LlamaShape(
    vocabulary=32, width=16, layers=2, heads=2, groups=2, hidden=32, positions=16, tied=True, spread=0.05
)
GROUPS = ["embeddings", "layer 1", "layer 2", "head"]


@pytest.fixture(scope="module")
def task() -> review_task.ReviewTask:
    return review_task.prepare(data.generated_reviews("small"), settings=TINY)


class Scaler:
    """The one method of a loss scaler that a watch asks for."""

    def __init__(self, scale: float):
        self.get_scale = lambda: scale


class Toy(nn.Module):
    """Two layers and a head on top of an embedding, small enough to count by hand."""

    def __init__(self, dtype: torch.dtype = torch.float32):
        super().__init__()
        torch.manual_seed(0)
        self.embeddings = nn.Embedding(5, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])
        self.classifier = nn.Linear(4, 2)
        self.to(dtype)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.classifier(x)


IDS = torch.tensor([[0, 1, 2], [3, 1, 0]])


def toy(dtype: torch.dtype = torch.float32, **options) -> tuple[Toy, torch.optim.Optimizer, Watch]:
    model = Toy(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    return model, optimizer, Watch(model, optimizer, **options)


def hooks(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    found = len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks)
    found += sum(len(weight._post_accumulate_grad_hooks or ()) for weight in model.parameters())
    return found + sum(len(module._forward_hooks) for module in model.modules())


# It changes nothing


def trained(task, name: str, *, steps: tuple[int, ...] | None, rounds: int = 4) -> tuple[dict, Watch | None]:
    trainer = training_loop.Trainer(
        task.new_model(0), recipe=find_recipe(name), device=CPU, schedule=TINY.schedule, steps=rounds
    )
    watch = steps and Watch(trainer.model, trainer.optimizer, scaler=trainer.scaler, steps=steps)
    torch.manual_seed(1)
    drawn = batches.shuffled(task.train, TINY.batch, generator=torch.Generator().manual_seed(2))
    training_loop.fine_tune(trainer, (next(drawn) for _ in range(rounds)), steps=rounds, watch=watch)
    assert hooks(trainer.model, trainer.optimizer) == 0
    return trainer.model.state_dict(), watch


@pytest.mark.parametrize("name", RECIPES)
def test_a_watched_run_ends_with_the_same_bits_in_every_recipe(task, name):
    plain, _ = trained(task, name, steps=None)
    watched, watch = trained(task, name, steps=(1, 3, 4))
    assert watch.seen == [1, 3, 4]
    different = [key for key in plain if not torch.equal(plain[key].nan_to_num(), watched[key].nan_to_num())]
    assert different == []


def test_a_watched_llama_ends_with_the_same_bits():
    ends = []
    for watched in (False, True):
        model = models.build_llama(ALPACA)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        watch = Watch(model, optimizer)
        ids = torch.arange(32).view(2, 16)
        for step in (1, 2):
            with watch.step(step) if watched else contextlib.nullcontext():
                optimizer.zero_grad()
                model(input_ids=ids, labels=ids).loss.backward()
                optimizer.step()
        ends.append(model.state_dict())
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])
    assert watch.groups == list(watch.histograms["weights"]) == GROUPS
    assert list(watch.histograms["activations"]) == ["layer 1", "layer 2", "head"]
    assert watch.histograms["activations"]["head"][0].total == 2 * 16 * 32  # the logits: a tied output is watched
    weights = sum(groups[0].total for groups in watch.histograms["weights"].values())
    assert weights == models.count_parameters(model)  # tied weights once


def test_a_step_that_is_not_watched_carries_no_hook_and_leaves_no_trace():
    model, optimizer, watch = toy(steps=[2])
    for step in (1, 2, 3):
        with watch.step(step):
            assert (hooks(model, optimizer) > 0) == (step == 2)
            model(IDS).sum().backward()
        assert hooks(model, optimizer) == 0
    assert watch.seen == [2]
    assert all(len(steps) == 1 for groups in watch.histograms.values() for steps in groups.values())


def test_a_step_that_fails_leaves_no_hook_and_no_histogram():
    model, optimizer, watch = toy()
    with pytest.raises(IndexError, match="index out of range"), watch.step(1):
        model(torch.cat([model(IDS).argmax(-1), torch.tensor([[0, 1, 7]])]).flatten())
    assert hooks(model, optimizer) == 0
    assert watch.seen == []
    assert not any(steps for groups in watch.histograms.values() for steps in groups.values())


# It reports the truth


def test_every_kind_is_what_a_reader_of_the_same_step_would_count():
    model, optimizer, watch = toy()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    with watch.step(1):
        hidden = model.layers[0](model.embeddings(IDS))
        hidden.retain_grad()
        logits = model.classifier(model.layers[1](hidden))
        logits.retain_grad()
        (logits**2).sum().backward()
        gradients = {name: weight.grad.clone() for name, weight in model.named_parameters()}
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
    found = {kind: {group: steps[0] for group, steps in groups.items()} for kind, groups in watch.histograms.items()}

    def of(tensors: dict[str, torch.Tensor], *names: str) -> Histogram:
        return sum((histogram(tensors[name]) for name in names), Histogram())

    first, head = ["layers.0.weight", "layers.0.bias"], ["classifier.weight", "classifier.bias"]
    updates = {name: weight.detach().double() - before[name].double() for name, weight in model.named_parameters()}
    for kind, tensors in (("weights", before), ("weight gradients", gradients), ("updates", updates)):
        assert found[kind]["embeddings"] == of(tensors, "embeddings.weight"), kind
        assert found[kind]["layer 1"] == of(tensors, *first), kind
        assert found[kind]["layer 2"] == of(tensors, "layers.1.weight", "layers.1.bias"), kind
        assert found[kind]["head"] == of(tensors, *head), kind
    assert found["activations"] == {"layer 1": histogram(hidden), "head": histogram(logits)}
    assert found["activation gradients"] == {"layer 1": histogram(hidden.grad), "head": histogram(logits.grad)}


@pytest.mark.parametrize("scale", [2.0**-3, 2.0**16])
def test_a_power_of_two_on_the_loss_leaves_the_histograms_of_all_gradients(scale):
    found = []
    for factor, scaler in ((1.0, None), (scale, Scaler(scale))):
        model, _, watch = toy(torch.float64, scaler=scaler)
        with watch.step(1):
            (factor * (model(IDS) ** 2).sum()).backward()
        found.append({kind: watch.histograms[kind] for kind in ("activation gradients", "weight gradients")})
    assert found[0] == found[1]


def test_a_scale_that_is_no_power_of_two_is_refused_before_anything_is_hooked():
    model, optimizer, watch = toy(scaler=Scaler(1000.0))
    with pytest.raises(ValueError, match=r"a loss scale of 1000\.0 cannot be divided out"), watch.step(1):
        pass
    assert hooks(model, optimizer) == 0


def test_gradients_that_are_summed_over_two_backward_passes_are_counted_once():
    model, _, watch = toy()
    with watch.step(1):
        for part in IDS:
            (model(part) ** 2).sum().backward()
    assert watch.histograms["weight gradients"]["head"][0] == sum(
        (histogram(weight.grad) for weight in model.classifier.parameters()), Histogram()
    )
    assert watch.histograms["activations"]["head"][0].total == 12


def test_a_skipped_step_and_a_lost_update_both_count_as_zeros():
    model, optimizer, watch = toy()
    with watch.step(1):
        model(IDS).sum().backward()  # the scaler skips the optimizer
    assert watch.histograms["updates"]["embeddings"][0] == Histogram(zeros=20)
    for weight in model.parameters():
        weight.data.fill_(1.0)
        weight.grad = torch.full_like(weight, 2.0**-26)
    with watch.step(2):
        optimizer.step()
    assert watch.histograms["updates"]["embeddings"][1] == Histogram(zeros=20)
    assert watch.histograms["weight gradients"]["embeddings"][1] == Histogram()  # no backward pass, no gradients


def test_an_update_is_the_difference_of_the_stored_weights_and_not_what_the_optimizer_wanted():
    model, optimizer, watch = toy(torch.bfloat16)
    for weight in model.parameters():
        weight.data.fill_(1.0)
        weight.grad = torch.full_like(weight, 2.0**-6 + 2.0**-9)  # times 0.5; the grid is 2**-8
    with watch.step(1):
        optimizer.step()
    assert watch.histograms["updates"]["embeddings"] == [Histogram(-7, (20,), (20,), amax=2.0**-7)]


def test_an_overflow_under_the_scaler_is_counted_and_not_lost():
    model, _, watch = toy(torch.float16, scaler=Scaler(2.0**16))
    with watch.step(1):
        (model(IDS) * 2.0**15 * 4).sum().backward()
    assert watch.histograms["activation gradients"]["head"][0].infinite == 12
    assert watch.histograms["weight gradients"]["head"][0].infinite > 0


def test_evenly_spaced_steps_contain_the_first_and_the_last():
    assert evenly(250, count=8) == (1, 37, 72, 108, 143, 179, 214, 250)
    assert evenly(10, count=1) == (1,)
    assert evenly(3, count=8) == (1, 2, 3)
    assert evenly(1, count=2) == (1,)
    for bad in ((0, 1), (3, 0)):
        with pytest.raises(ValueError, match="at least one"):
            evenly(bad[0], count=bad[1])


def test_a_record_that_would_be_too_large_leaves_out_steps_between_the_first_and_the_last(monkeypatch):
    model, _, watch = toy()
    for step in range(1, 10):
        with watch.step(step):
            model(IDS).sum().backward()
    whole = watch.as_json()
    assert whole["steps"] == list(range(1, 10))
    size = len(json.dumps(whole))
    monkeypatch.setattr("utils.training.watch.MOST_BYTES", size // 2)
    less = watch.as_json()
    assert less["steps"][0] == 1
    assert less["steps"][-1] == 9
    assert 3 <= len(less["steps"]) < 9
    assert len(json.dumps(less)) <= size // 2
    for kind, groups in less["histograms"].items():
        for group, steps in groups.items():
            assert steps == [whole["histograms"][kind][group][step - 1] for step in less["steps"]]
    monkeypatch.setattr("utils.training.watch.MOST_BYTES", 0)
    assert watch.as_json()["steps"] == [1]
    assert toy()[2].as_json()["steps"] == []


# In an experiment


def test_a_watched_run_is_a_record_of_another_experiment_with_the_same_losses(task, tmp_path):
    plain = experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU).record
    watched = experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU, watch_steps=3).record
    for record in (plain, watched):
        records.save(record, tmp_path)
    assert watched.samples["loss"] == plain.samples["loss"]
    assert watched.results["accuracy"] == plain.results["accuracy"]
    assert "exponents" not in plain.samples
    assert watched.name == f"watched-{plain.name}"
    assert [record.name for record in records.load_all(tmp_path, experiment="distilbert")] == [plain.name]
    loaded = records.load_all(tmp_path, experiment="watched-distilbert")
    assert [record.samples for record in loaded] == [json.loads(json.dumps(watched.samples))]


def test_what_a_figure_gets_has_the_words_and_a_histogram_for_each_kind_group_and_step(task):
    record = experiment.run(distilbert.make_plan(task), find_recipe("16-mixed"), device=CPU, watch_steps=3).record
    known = recorded(record)
    assert list(known) == ["model", "recipe", "data", "device", "date", "steps", "groups", "kinds", "histograms"]
    assert known["model"] == "DistilBERT, 2 layers of width 16"
    assert known["recipe"] == "16-mixed"
    assert (known["data"], known["device"]) == (record.data, record.device["name"])
    assert record.date.startswith(known["date"])
    assert len(known["date"]) == len("2026-11-21")
    assert known["steps"] == [1, 3, 6] == list(evenly(6, count=3))
    assert known["groups"] == GROUPS
    assert known["kinds"] == list(KINDS) == list(known["histograms"])
    assert list(known["histograms"]["weights"]) == GROUPS
    assert list(known["histograms"]["activation gradients"]) == GROUPS[1:]
    for kind in KINDS:
        for steps in known["histograms"][kind].values():
            assert len(steps) == 3
            assert all(Histogram.from_json(step).total > 0 for step in steps)
    assert json.loads(json.dumps(known, allow_nan=False)) == known
    last = Histogram.from_json(known["histograms"]["weight gradients"]["head"][2])
    assert last.flushed(FLOAT16, 2.0**16) <= last.flushed(FLOAT16) <= 1


def test_a_record_that_was_not_watched_is_refused(task):
    record = experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU).record
    with pytest.raises(ValueError, match="was not watched; record one with --watch 8"):
        recorded(record)
    pretrained = dataclasses.replace(record, samples={"exponents": {}}, weights="trained weights, local folder")
    assert recorded(pretrained)["model"] == "DistilBERT, trained weights, local folder"


@pytest.mark.parametrize("program", [distilbert, llama])
def test_the_command_line_refuses_more_steps_than_a_record_holds(program, capsys):
    for count in ("0", "17"):
        assert program.main(["--watch", count, "--size", "small"]) == 2
        assert f"--watch {count} is not in 1 ... 16" in capsys.readouterr().err


def test_the_command_line_watches(task, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(review_task, "settings_for", lambda size, reviews: TINY)
    monkeypatch.setattr(data, "load_reviews", lambda folder=None, *, size: data.generated_reviews("small"))
    asked = ["--recipe", "32-true", "--size", "small", "--watch", "2", "--record", str(tmp_path)]
    assert distilbert.main(asked) == 0
    (record,) = records.load_all(tmp_path, experiment="watched-distilbert")
    assert record.samples["exponents"]["steps"] == [1, 6]
    assert "--watch 2" in record.command
    assert "32-true" in capsys.readouterr().out
