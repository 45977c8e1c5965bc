"""The experiment path: a few steps on a tiny model, and everything that can go wrong on the way."""

import dataclasses
import json
import math
import subprocess
import sys

import pandas
import pytest
import torch

from utils import distilbert, machine, records
from utils.runs import cache, command_line, experiment, run_facts
from utils.training import batches, training_loop
from utils.training.recipes import COMPARED, LIGHTNING_NAMES, find_recipe
from utils.workloads import data, models, review_task

CPU = torch.device("cpu")
SHAPE = models.DistilBertShape(width=16, layers=1, heads=2, hidden=32, positions=64, spread=0.05)
TINY = review_task.ReviewSettings(
    train=64,
    validation=16,
    test=32,
    epochs=2,
    batch=8,
    max_length=32,
    schedule=training_loop.Schedule(learning_rate=1e-3),
    shape=SHAPE,  # with dropout, so that a repeat has to draw the same numbers
)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE", "CACHE"):
        monkeypatch.delenv(f"MIXED_PRECISION_{name}", raising=False)


@pytest.fixture(scope="module")
def reviews() -> data.Reviews:
    return data.generated_reviews("small")


@pytest.fixture(scope="module")
def task(reviews) -> review_task.ReviewTask:
    return review_task.prepare(reviews, settings=TINY)


@pytest.fixture
def tiny(monkeypatch):
    """Make the command line run the tiny settings, whatever size is asked for."""
    monkeypatch.setattr(review_task, "settings_for", lambda size, reviews: TINY)
    monkeypatch.setattr(data, "load_reviews", lambda folder=None, *, size: data.generated_reviews("small"))


# What a run is


def test_the_same_seed_gives_the_same_losses_and_another_seed_others(task):
    first, second, other = (
        experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU, seed=seed).record
        for seed in (0, 0, 1)
    )
    assert first.samples["loss"] == second.samples["loss"]
    assert first.results["accuracy"] == second.results["accuracy"]
    assert first.samples["loss"] != other.samples["loss"]


def test_a_run_leaves_the_global_generator_alone(task):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU)
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(
    "name", ["64-true", "32-true", "16-mixed", "bf16-mixed", "bf16-true", "bf16-true-kahan", "16-true-master"]
)
def test_a_record_holds_what_the_table_and_the_chapters_need(task, name):
    record = experiment.run(distilbert.make_plan(task), find_recipe(name), device=CPU).record
    result, memory = record.results, record.results["memory"]
    assert result["steps"] == result["planned_steps"] == 16
    assert result["nan_step"] is None
    assert result["seconds"] > 0
    assert result["cpu_seconds"] > 0
    assert 0 <= result["accuracy"] <= 1
    assert result["n_test"] == 32
    assert len(result["validation"]) == 2
    assert result["emulated"] == find_recipe(name).emulated(CPU)
    size = find_recipe(name).weights.itemsize
    assert memory["weights"] == memory["gradients"] == size * result["parameters"]
    moments = {"bf16-true-kahan": 6, "16-true-master": 12}.get(name, 2 * size)
    assert memory["optimizer"] == moments * result["parameters"]
    assert memory["saved_activations"] == sum(memory["saved_by_dtype"].values())
    assert memory["peak_allocated"] is None
    assert (result["loss_scale"] is not None) == (name == "16-mixed")
    assert [step for step, _ in record.samples["loss"]] == list(range(1, 17))
    assert record.settings["shape"]["vocabulary"] == len(task.tokenizer)
    assert record.weights == "random, DistilBERT of 1 layers of width 16"


def test_half_precision_activations_take_less_than_float32_ones(task):
    totals = {}
    for name in ("32-true", "bf16-mixed", "bf16-true"):
        chosen = find_recipe(name)
        trainer = training_loop.Trainer(task.new_model(0), recipe=chosen, device=CPU, schedule=TINY.schedule, steps=1)
        totals[name] = run_facts.count_saved_bytes(trainer, distilbert.make_full_batch(task)).total
    assert totals["bf16-true"] < totals["bf16-mixed"] < totals["32-true"]


def test_counting_saved_bytes_leaves_the_attention_as_it_was(task):
    for attention in ("sdpa", "eager"):
        model = task.new_model(0)
        model.set_attn_implementation(attention)
        trainer = training_loop.Trainer(
            model, recipe=find_recipe("32-true"), device=CPU, schedule=TINY.schedule, steps=1
        )
        run_facts.count_saved_bytes(trainer, distilbert.make_full_batch(task))
        assert model.config._attn_implementation == attention


def test_attention_is_fused_on_a_gpu_and_plain_on_a_cpu(task):
    model = task.new_model(0)
    assert models.fit_attention(model, torch.device("cuda")) == model.config._attn_implementation == "sdpa"
    assert models.fit_attention(model, CPU) == model.config._attn_implementation == "eager"
    assert (
        experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU).record.results["attention"]
        == "eager"
    )


def test_the_loss_falls_and_the_model_learns(reviews):
    shape = dataclasses.replace(SHAPE, width=32, hidden=64, dropout=0.0, head_dropout=0.0)
    settings = dataclasses.replace(
        TINY,
        train=1_600,
        validation=0,
        test=400,
        batch=16,
        epochs=2,
        max_length=48,
        schedule=training_loop.Schedule(learning_rate=4e-3),
        shape=shape,
    )
    task = review_task.prepare(reviews, settings=settings)
    record = experiment.run(distilbert.make_plan(task), find_recipe("32-true"), device=CPU).record
    losses = [loss for _, loss in record.samples["loss"]]
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10]), losses
    assert record.results["accuracy"] > 0.75  # half would be chance; 400 reviews: standard error 0.025


def test_pure_float16_ends_in_nan_and_the_record_names_the_step(task):
    record = experiment.run(distilbert.make_plan(task), find_recipe("16-true"), device=CPU).record
    step = record.results["nan_step"]
    assert step is not None
    losses = dict(map(tuple, record.samples["loss"]))
    assert math.isfinite(losses[step - 1])
    assert not math.isfinite(losses[step])
    assert abs(record.results["accuracy"] - 0.5) < 0.3  # every answer is the same class


@pytest.mark.parametrize("name", COMPARED)
def test_every_arm_of_the_comparison_is_recorded_with_the_same_five_seeds(name):
    asked = (name, "small", "imdb", "cpu")
    every = records.load_all(experiment="distilbert")
    runs = [run for run in every if (run.recipe, run.size, run.data_name, run.device["kind"]) == asked]
    assert sorted(run.seed for run in runs) == list(range(5))
    for run in runs:
        assert {"accuracy", "cpu_seconds", "memory"} <= set(run.results)
        assert (run.results["nan_step"] is not None) == (name == "16-true")
        assert abs(run.results["accuracy"] - 0.5) < 0.02 or name != "16-true"


def test_the_seed_of_a_run_decides_what_is_rounded_at_random_and_repeats_it(task, monkeypatch):
    seeds, train = [], training_loop.fine_tune

    def noted(trainer, *args, **kwargs):
        seeds.append(trainer.optimizer.store.seed)
        return train(trainer, *args, **kwargs)

    monkeypatch.setattr(training_loop, "fine_tune", noted)
    losses = [
        experiment.run(
            distilbert.make_plan(task), find_recipe("bf16-true-stochastic"), device=CPU, seed=5
        ).record.samples["loss"]
        for _ in range(2)
    ]
    assert set(seeds) == {5}
    assert losses[0] == losses[1]


def test_a_run_with_a_nan_loss_stops_soon(task, monkeypatch):
    monkeypatch.setattr(training_loop, "CHECK_EVERY", 4)
    record = experiment.run(distilbert.make_plan(task), find_recipe("16-true"), device=CPU).record
    assert record.results["steps"] < record.results["planned_steps"]


# The loop


def a_trainer(name: str, *, scale: float | None = None) -> training_loop.Trainer:
    shape = dataclasses.replace(SHAPE, vocabulary=20)
    schedule = training_loop.Schedule(learning_rate=1e-3)
    trainer = training_loop.Trainer(
        models.build_distilbert(shape), recipe=find_recipe(name), device=CPU, schedule=schedule, steps=9
    )
    if scale:
        trainer.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    return trainer


def a_batch() -> batches.Batch:
    ids = torch.randint(5, 20, (4, 8), generator=torch.Generator().manual_seed(0))
    return batches.Batch(ids, torch.ones_like(ids), torch.tensor([0, 1, 0, 1]))


def test_a_skipped_step_moves_neither_the_weights_nor_the_learning_rate():
    trainer = a_trainer("16-mixed", scale=2.0**40)  # float16 gradients overflow
    weights = [parameter.clone() for parameter in trainer.model.parameters()]
    with trainer.recipe.on(CPU):
        _, taken = trainer.step(a_batch())
    assert not taken
    assert trainer.scheduler.last_epoch == 0
    assert all(torch.equal(old, new) for old, new in zip(weights, trainer.model.parameters(), strict=True))
    assert trainer.scaler.get_scale() == 2.0**39


def test_every_step_that_is_taken_moves_the_learning_rate_on():
    trainer = a_trainer("16-mixed", scale=2.0**10)
    with trainer.recipe.on(CPU):
        taken = [trainer.step(a_batch())[1] for _ in range(3)]
    assert taken == [True, True, True]
    assert trainer.scheduler.last_epoch == 3


def test_history_counts_the_skipped_steps_and_notes_each_scale():
    trainer = a_trainer("16-mixed", scale=2.0**40)
    history = training_loop.fine_tune(trainer, iter([a_batch()] * 5), steps=5)
    assert history.steps == 5
    assert history.skipped == 5
    assert history.scales == [(step, 2.0 ** (40 - step)) for step in range(1, 6)]
    assert len(history.milliseconds) == 5


def test_the_clip_acts_on_unscaled_gradients():
    norms = {}
    for scale in (1.0, 2.0**12):
        trainer = a_trainer("16-mixed", scale=scale)
        trainer.model.eval()  # without dropout: the same gradients both times
        trainer.clip = 1e-3
        with trainer.recipe.on(CPU):
            trainer.step(a_batch())
        grads = [parameter.grad for parameter in trainer.model.parameters()]
        norms[scale] = torch.nn.utils.get_total_norm(grads).item()
    assert norms[1.0] == pytest.approx(1e-3, rel=1e-2)
    assert norms[2.0**12] == pytest.approx(1e-3, rel=1e-2)


def test_padding_does_not_change_the_answer():
    tokens = batches.Tokens([[2, 7, 3], [2, 8, 9, 10, 3]], torch.tensor([0, 1]))
    model = models.build_distilbert(dataclasses.replace(SHAPE, vocabulary=20)).eval()
    short, long = batches.pad(tokens, [0]), batches.pad(tokens, [0, 1], length=24)
    assert short.ids.shape == (1, 8)
    with torch.no_grad():
        alone = model(input_ids=short.ids, attention_mask=short.mask).logits[0]
        beside = model(input_ids=long.ids, attention_mask=long.mask).logits[0]
    torch.testing.assert_close(alone, beside, rtol=1e-5, atol=1e-6)


def test_an_epoch_holds_every_text_once_in_batches_of_similar_length():
    lengths = [3 + (7 * i) % 40 for i in range(200)]
    tokens = batches.Tokens([[i] * n for i, n in enumerate(lengths)], torch.arange(200))
    drawn = list(batches.shuffled(tokens, 8, generator=torch.Generator().manual_seed(0)))
    assert sorted(torch.cat([batch.labels for batch in drawn]).tolist()) == list(range(200))
    assert len(drawn) == batches.count(200, 8)
    padded = sum(batch.ids.numel() for batch in drawn)
    assert padded < 1.35 * sum(lengths), padded
    orders = [
        [batch.labels.tolist() for batch in batches.shuffled(tokens, 8, generator=torch.Generator().manual_seed(seed))]
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert drawn[0].padding == 1 - drawn[0].mask.double().mean().item()


# The command line


def test_the_command_prints_what_it_uses_and_writes_one_record_a_run(tiny, tmp_path, capsys):
    arguments = ["--recipe", "32-true", "16-mixed", "--seeds", "2", "--size", "small", "--record", str(tmp_path)]
    assert distilbert.main(arguments) == 0
    said = capsys.readouterr().out
    assert said.startswith("device   CPU ")
    for line in ("size     small", "data     generated reviews", "weights  random, DistilBERT of 1 layers"):
        assert line in said
    assert ("16-mixed: emulated: this CPU has no float16 products" in said) == find_recipe("16-mixed").emulated(CPU)
    assert "95 % Student interval of the mean over 2 seeds" in said
    found = records.load_all(tmp_path)
    assert [(record.recipe, record.seed) for record in found] == [
        ("16-mixed", 0),
        ("16-mixed", 1),
        ("32-true", 0),
        ("32-true", 1),
    ]
    shown = "python -m utils.distilbert --recipe 32-true 16-mixed --seeds 2 --size small --record DIR"
    assert {record.command for record in found} == {shown}
    assert all(str(tmp_path) not in json.dumps(dataclasses.asdict(record)) for record in found)
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 20_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--recipe", "fp17"], "unknown recipe 'fp17'; the known ones are 64-true", id="recipe"),
        pytest.param(["--size", "huge"], "unknown size 'huge'", id="size"),
        pytest.param(["--device", "cuda:99"], "is not there", id="device"),
        pytest.param(["--seeds", "0"], "--seeds 0 is below 1", id="no seed"),
        pytest.param(["--seeds", "two"], "invalid int value: 'two'", id="seeds in words"),
        pytest.param(["--batch", "-1"], "--batch -1 is below 1", id="batch"),
        pytest.param(["--growth-interval", "0"], "--growth-interval 0 is below 1", id="growth interval"),
        pytest.param(["--learning-rate", "3"], "--learning-rate 3.0 is not between 0 and 1", id="learning rate"),
        pytest.param(["--frobnicate"], "unrecognized arguments: --frobnicate", id="unknown option"),
        pytest.param(["--data", "/no/such/folder"], "data folder /no/such/folder is not there", id="data"),
        pytest.param(["--record", "/proc/records"], "cannot write records into /proc/records", id="record"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_code_2(arguments, message, capsys, monkeypatch):
    monkeypatch.setattr(experiment, "run", lambda *_, **__: pytest.fail("trained before the arguments were checked"))
    assert distilbert.main(["--device", "cpu", "--size", "small", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("train", "message"),
    [
        pytest.param(
            pandas.DataFrame({"text": ["a"], "stars": [5]}), "has no column label, only text, stars", id="column"
        ),
        pytest.param(
            pandas.DataFrame({"text": ["a"], "label": [7]}), "labels review 1 with 7; labels are 0 and 1", id="label"
        ),
        pytest.param(pandas.DataFrame({"text": [], "label": []}), "train.parquet is empty", id="empty"),
        pytest.param(b"PAR1 but not really", "train.parquet cannot be read", id="unreadable"),
    ],
)
def test_bad_data_is_one_line_and_exit_code_2(tmp_path, capsys, train, message):
    path = tmp_path / "train.parquet"
    path.write_bytes(train) if isinstance(train, bytes) else train.to_parquet(path)
    pandas.DataFrame({"text": ["a"], "label": [1]}).to_parquet(tmp_path / "test.parquet")
    assert distilbert.main(["--size", "small", "--device", "cpu", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1


def test_bad_weights_are_one_line_and_exit_code_2(tiny, tmp_path, capsys):
    assert distilbert.main(["--weights", str(tmp_path), "--size", "small"]) == 2
    assert "has no distilbert" in capsys.readouterr().err


def test_trained_weights_are_used_and_named(tiny, tmp_path, capsys, task):
    shape = dataclasses.replace(SHAPE, vocabulary=len(task.tokenizer))
    with models.quiet():
        models.build_distilbert(shape).save_pretrained(tmp_path)
    task.tokenizer.save_pretrained(tmp_path)
    assert distilbert.main(["--recipe", "32-true", "--weights", str(tmp_path), "--size", "small"]) == 0
    assert "weights  trained weights, local folder" in capsys.readouterr().out


def interrupt_second_run(monkeypatch, error: BaseException):
    honest, calls = experiment.run, []

    def run(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise error
        return honest(*arguments, **options)

    monkeypatch.setattr(experiment, "run", run)


def test_ctrl_c_keeps_the_records_of_the_finished_runs(tiny, tmp_path, capsys, monkeypatch):
    interrupt_second_run(monkeypatch, KeyboardInterrupt())
    code = distilbert.main(["--recipe", "32-true", "--seeds", "3", "--size", "small", "--record", str(tmp_path)])
    said = capsys.readouterr()
    assert code == 130
    assert said.err == "distilbert: interrupted after 1 of 3 runs; their records are kept\n"
    assert [record.seed for record in records.load_all(tmp_path)] == [0]
    assert "one seed, so no interval" in said.out


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(torch.OutOfMemoryError("CUDA out of memory."), id="CUDA"),
        pytest.param(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), id="CPU"),
    ],
)
def test_out_of_memory_names_the_batch_size_to_try_and_keeps_earlier_records(
    tiny, tmp_path, capsys, monkeypatch, error
):
    interrupt_second_run(monkeypatch, error)
    arguments = ["--recipe", "32-true", "bf16-true", "--size", "small", "--record", str(tmp_path)]
    assert distilbert.main(arguments) == 2
    expected = "distilbert: bf16-true: out of memory at batch size 8; try --batch 4\n"
    assert capsys.readouterr().err == expected
    assert [record.recipe for record in records.load_all(tmp_path)] == ["32-true"]


def test_any_other_error_is_not_hidden(tiny, monkeypatch):
    interrupt_second_run(monkeypatch, RuntimeError("a mistake of ours"))
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        distilbert.main(["--recipe", "32-true", "--seeds", "2", "--size", "small"])


def test_a_run_with_other_settings_is_another_experiment(tiny, tmp_path, capsys):
    changes = ["--batch", "16", "--learning-rate", "1e-4", "--growth-interval", "3"]
    arguments = ["--recipe", "16-mixed", "--size", "small", "--device", "cpu", "--record", str(tmp_path)]
    assert distilbert.main(arguments) == distilbert.main([*arguments, *changes]) == 0
    (usual,) = records.load_all(tmp_path, experiment="distilbert")
    (changed,) = records.load_all(tmp_path, experiment="distilbert-batch16-rate1e-04-growth3")
    assert usual.settings["batch"] == 8 != changed.settings["batch"] == 16
    assert changed.settings["schedule"] | {"warmup": 0} == {
        **usual.settings["schedule"],
        "warmup": 0,
        "learning_rate": 1e-4,
        "growth_interval": 3,
    }
    assert changed.results["loss_scale"] > 65536 == usual.results["loss_scale"]  # it has grown


def test_a_run_of_another_width_is_another_experiment_and_trained_weights_have_theirs(
    tiny, task, tmp_path, monkeypatch, capsys
):
    arguments = ["--recipe", "32-true", "--size", "small", "--device", "cpu"]
    assert distilbert.main([*arguments, "--width", "32", "--record", str(tmp_path)]) == 0
    (record,) = records.load_all(tmp_path)
    assert record.experiment == "distilbert-width32"
    assert (record.settings["shape"]["width"], record.settings["shape"]["hidden"]) == (32, 128)
    assert record.weights == "random, DistilBERT of 1 layers of width 32"
    capsys.readouterr()
    assert distilbert.main([*arguments, "--width", "33"]) == 2
    assert "width 33 is no multiple of 4: each of the 2 heads needs an even share" in capsys.readouterr().err
    trained = dataclasses.replace(task, weights="trained weights, local folder")
    monkeypatch.setattr(review_task, "prepare", lambda *_, **__: trained)
    assert distilbert.main([*arguments, "--width", "32"]) == 2
    assert "--width 32: trained weights, local folder have a width of their own" in capsys.readouterr().err


def test_no_folder_survives_in_the_recorded_command():
    arguments = ["--data", "/home/me/d", "--weights=/home/me/w", "--record", "--seeds", "2"]
    shown = command_line.hide_folders(arguments, program="distilbert")
    assert shown == "python -m utils.distilbert --data DIR --weights=DIR --record --seeds 2"


def test_the_progress_bar_is_quiet_where_nobody_watches(tiny, capsys):
    distilbert.main(["--recipe", "32-true", "--size", "small"])
    assert capsys.readouterr().err == ""


def test_help_is_answered_from_a_shell():
    done = subprocess.run(
        [sys.executable, "-m", "utils.distilbert", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=records.ROOT,
    )
    assert "--recipe NAME" in done.stdout


# What other chapters use


def test_a_trained_model_is_kept_and_found_again(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("MIXED_PRECISION_CACHE", str(tmp_path / "cache"))
    first = distilbert.train_once("generated")
    again = distilbert.train_once("generated")
    assert (first.cached, again.cached) == (False, True)
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    assert again.record.results == first.record.results
    assert again.texts == first.texts
    assert len(again.texts) == len(again.labels) == 32
    assert not again.model.training
    assert not list((tmp_path / "cache").glob(".new-*"))
    assert not list((tmp_path / "cache").rglob("*.bin"))  # no pickles


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("model.safetensors", b"not weights at all", id="weights"),
        pytest.param("model.safetensors", None, id="no weights"),
        pytest.param("config.json", b"{", id="configuration"),
        pytest.param("config.json", None, id="no configuration"),
        pytest.param("run.json", b"{", id="record"),
    ],
)
def test_a_damaged_folder_of_the_cache_is_told_and_filled_anew(tiny, tmp_path, monkeypatch, name, content):
    monkeypatch.setenv("MIXED_PRECISION_CACHE", str(tmp_path))
    distilbert.train_once("generated")
    (path,) = tmp_path.glob(f"*/{name}")
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.warns(UserWarning, match="is damaged, so its model is trained anew"):
        assert not distilbert.train_once("generated").cached
    assert distilbert.train_once("generated").cached


def test_another_seed_recipe_or_code_is_another_entry_of_the_cache(monkeypatch):
    plan = distilbert.make_plan(review_task.prepare(data.generated_reviews("small")))

    def key(name="32-true", seed=0) -> str:
        return experiment.run_key(plan, find_recipe(name), seed=seed, device=CPU)

    keys = {key(), key(seed=1), key("bf16-true")}
    with monkeypatch.context() as patch:
        patch.setattr(experiment.loaded_source, "digest", lambda module: "another state of the code")
        keys.add(key())
    monkeypatch.setattr(cache.importlib.metadata, "version", lambda package: "0")
    keys.add(key())
    assert len(keys) == 5


def test_a_cache_that_cannot_be_written_costs_a_warning_only(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MIXED_PRECISION_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="the trained model is not kept"):
        assert not distilbert.train_once("generated").cached


def test_the_cache_is_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.root() == tmp_path / "mixed-precision-book"


def test_step_and_token_times_cover_every_plain_recipe(monkeypatch):
    from utils.workloads import generation

    monkeypatch.setattr(distilbert, "TIMED", SHAPE)
    steps = distilbert.time_steps(device=CPU, size="small", repeats=1)
    tokens = generation.token_times(device=CPU, size="small", tokens=2, repeats=1)
    assert [row.recipe for row in steps] == [row.recipe for row in tokens] == list(LIGHTNING_NAMES)
    for step, token in zip(steps, tokens, strict=True):
        assert step.timing.median > 0
        assert token.per_second > 0
        assert step.emulated == token.emulated == find_recipe(step.recipe).emulated(CPU)
    twice = distilbert.time_steps(["32-true", "32-true"], device=CPU, size="small", repeats=3)
    assert [row.recipe for row in twice] == ["32-true"] * 2
    assert [len(row.timing.samples) for row in twice] == [3, 3]


@pytest.mark.gpu
def test_a_run_on_a_gpu_records_its_peaks(task):
    device = torch.device("cuda")
    record = experiment.run(distilbert.make_plan(task), find_recipe("16-mixed"), device=device).record
    assert record.results["memory"]["peak_reserved"] >= record.results["memory"]["peak_allocated"] > 0
    assert record.device["name"] == machine.facts(device)["name"]
    assert records.slug(record.device["name"]) in record.name
