"""A run in parts is the run; what the records of many say: paired differences, rates, and the columns of the table."""

import math
from dataclasses import replace

import pytest
import torch

from utils import distilbert, records
from utils.runs import experiment, run_facts, run_table
from utils.training import batches, training_loop
from utils.training.recipes import find_recipe
from utils.workloads import data, models, review_task

CPU = torch.device("cpu")
SHAPE = models.DistilBertShape(vocabulary=20, width=16, layers=1, heads=2, hidden=32, positions=16)
BYTES = {
    "weights": 4_000_000,
    "gradients": 4_000_000,
    "optimizer": 8_000_000,
    "saved_activations": 1_000_000,
    "peak_allocated": None,
    "peak_reserved": None,
}
RATES = {
    "tokens_per_second": 1_000.0,
    "padded_tokens_per_second": 1_250.0,
    "padding": 0.2,
    "operations": 1e9,
    "tflops": 0.05,
    "matmul_tflops": 0.1,
    "share": 0.5,
}


def a_record(name: str, seed: int, accuracy: float | None, **changes) -> records.Record:
    found = {
        "accuracy": accuracy,
        "seconds": 2.0,
        "cpu_seconds": 3.0,
        "step_ms": 4.0,
        "memory": BYTES,
        "loss_scale": None,
        "skipped_steps": 0,
        "nan_step": None,
        "rates": RATES,
    }
    return records.Record(
        experiment="distilbert",
        recipe=name,
        size="small",
        seed=seed,
        settings={},
        results=found | changes,
        samples={},
        data="",
        data_name="generated",
        weights="",
        device={"kind": "cpu", "name": "Some Processor"},
        **records.provenance(),
    )


def runs(name: str, accuracies: dict[int, float | None], **changes) -> list[records.Record]:
    return [a_record(name, seed, accuracy, **changes) for seed, accuracy in accuracies.items()]


# Paired differences


def test_differences_are_taken_seed_by_seed():
    finished = runs("bf16-true", {2: 0.75, 0: 0.5, 1: 0.5}) + runs("32-true", {0: 0.25, 1: 0.5, 2: 0.5})
    (found,) = experiment.compare_by_seed(finished).values()
    assert (found.recipe, found.baseline, found.seeds) == ("bf16-true", "32-true", (0, 1, 2))
    assert found.by_seed == (0.25, 0.0, 0.25)
    assert found.mean == pytest.approx(1 / 6)
    # Student: 4.303 times the standard deviation of 0.1443 by the root of 3.
    assert found.half == pytest.approx(4.303 * 0.14434 / math.sqrt(3), rel=1e-3)
    assert not found.clear


def test_pairs_take_out_what_the_seed_decides():
    luck = {0: 0.1, 1: 0.5, 2: 0.9}
    finished = runs("32-true", luck) + runs("64-true", {seed: value + 0.01 for seed, value in luck.items()})
    found = experiment.compare_by_seed(finished)["64-true"]
    assert found.mean == pytest.approx(0.01)
    assert found.half < 1e-9
    assert found.clear


def test_seeds_without_a_partner_are_left_out():
    finished = runs("32-true", {0: 0.5, 1: 0.5}) + runs("16-true", {1: 0.75, 7: 0.0}) + runs("bf16-true", {9: 1.0})
    found = experiment.compare_by_seed(finished)
    assert list(found) == ["16-true"]
    assert (found["16-true"].seeds, found["16-true"].mean, found["16-true"].half) == ((1,), 0.25, None)
    assert not found["16-true"].clear
    assert experiment.compare_by_seed(runs("16-true", {0: 0.5})) == {}


def test_another_baseline_and_another_result_can_be_asked_for():
    finished = runs("64-true", {0: 0.5}) + runs("32-true", {0: 0.5}, step_ms=1.0)
    assert experiment.compare_by_seed(finished, baseline="64-true", value="step_ms")["32-true"].mean == -3.0


def test_a_result_that_is_not_finite_makes_no_difference_of_it():
    finished = runs("32-true", {0: 0.5, 1: 0.5}) + runs("16-true", {0: None, 1: 0.5})
    found = experiment.compare_by_seed(finished)["16-true"]
    assert math.isnan(found.mean)
    assert not found.clear


# A run in parts


class Watcher:
    """Notes the steps that the model took before it is entered and before it is left."""

    def __init__(self, training):
        self.steps, self.taken = [], 0
        training.trainer.optimizer.register_step_post_hook(self.count)

    def count(self, *_):
        self.taken += 1

    def __enter__(self):
        self.steps.append(self.taken)

    def __exit__(self, *error):
        self.steps.append(self.taken)


def test_a_run_in_parts_is_the_run_with_watchers_around_all_its_steps():
    settings = review_task.ReviewSettings(
        train=24,
        validation=8,
        test=8,
        epochs=2,
        batch=8,
        max_length=32,
        schedule=training_loop.Schedule(learning_rate=1e-3),
        shape=replace(SHAPE, vocabulary=4_000, positions=64),
    )
    plan = distilbert.make_plan(review_task.prepare(data.generated_reviews("small"), settings=settings))
    before = torch.get_rng_state()
    with experiment.set_up(plan, find_recipe("32-true"), device=CPU, seed=3) as training:
        watchers = [Watcher(training), Watcher(training)]
        history, clock = experiment.train(training, watchers=watchers)
    assert torch.equal(torch.get_rng_state(), before)
    assert [watcher.steps for watcher in watchers] == [[0, 6], [0, 6]]
    results = experiment.measure_run(training, history, clock)
    record = experiment.to_record(training, experiment="parts", results=results, samples={})
    whole = experiment.run(plan, find_recipe("32-true"), device=CPU, seed=3)
    assert record.name == whole.record.name.replace("distilbert", "parts", 1)
    assert (record.settings, list(record.results)) == (whole.record.settings, list(whole.record.results))
    assert run_facts.thin_curves(history)["loss"] == whole.record.samples["loss"]
    assert record.results["validation"] == whole.record.results["validation"]
    for weight, same in zip(training.trainer.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(weight, same)


# Rates


def test_rates_count_tokens_padding_and_operations_of_all_steps():
    schedule = training_loop.Schedule(learning_rate=1e-3)
    model = models.build_distilbert(SHAPE)
    trainer = training_loop.Trainer(model, recipe=find_recipe("32-true"), device=CPU, schedule=schedule, steps=3)
    tokens = batches.Tokens([[5] * 8, [6] * 4, [7] * 16], torch.tensor([0, 1, 1]))
    drawn = [batches.pad(tokens, rows) for rows in ([0, 1], [1, 0], [2])]
    history = training_loop.fine_tune(trainer, iter(drawn), steps=3)
    assert (history.tokens, history.sizes) == (40, {"2x8": 2, "1x16": 1})
    history.milliseconds = [100.0, 100.0, 200.0]
    found = run_facts.measure_rates(trainer, history)
    assert found["tokens_per_second"] == pytest.approx(100)
    assert found["padded_tokens_per_second"] == pytest.approx(120)
    assert found["padding"] == pytest.approx(8 / 48)
    # By hand, forward, multiply-adds: 4 D² + 2 D H + 2 S D a token, and D (D + 2) a text for the head.
    forward = [2 * 8 * (4 * 256 + 2 * 512 + 2 * 8 * 16) + 2 * 288, 16 * (4 * 256 + 2 * 512 + 2 * 16 * 16) + 288]
    total = 3 * 2 * (2 * forward[0] + forward[1])
    assert found["operations"] == pytest.approx(total / 3)
    assert found["tflops"] == pytest.approx(total / 0.4 / 1e12)
    assert found["share"] == pytest.approx(found["tflops"] / found["matmul_tflops"])
    assert found["matmul_tflops"] > 0


# The table


def test_the_table_shows_rates_and_says_what_the_device_made_of_an_arm():
    remark = "on this CPU the same as 32-true: a float32 product keeps 24 significant bits"
    finished = runs("32-true", {0: 0.5}, remark="") + runs("32-true-high", {0: 0.5}, remark=remark)
    rows = run_table.summarize(
        finished, own_columns=lambda name, results: {"name again": name, "runs": str(len(results))}
    )
    assert [row["recipe"] for row in rows] == [row["name again"] for row in rows] == ["32-true", "32-true-high"]
    assert {name: rows[0][name] for name in run_table.RATES} == {
        "tokens/s": "1,000",
        "padding": "20 %",
        "TFLOP/s": "0.05",
        "of a matmul": "50 %",
    }
    said = run_table.format_table(rows, finished, about="a test").splitlines()
    assert said[-2:] == ["a test; one seed, so no interval", f"32-true-high: {remark}"]


def test_a_record_older_than_rates_and_remarks_is_shown_without_them():
    old = a_record("32-true", 0, 0.5)
    del old.results["rates"]
    (row,) = run_table.summarize([old], own_columns=lambda *_: {})
    assert {row[name] for name in run_table.RATES} == {"-"}
    assert run_table.format_table([row], [old], about="a test").endswith("a test; one seed, so no interval")


def test_peaks_of_a_gpu_are_columns_of_their_own():
    memory = BYTES | {"peak_allocated": 5_370_000_000, "peak_reserved": 6_000_000_000}
    (row,) = run_table.summarize(runs("32-true", {0: 0.5}, memory=memory), own_columns=lambda *_: {})
    assert (row["peak allocated"], row["peak reserved"]) == ("5370.00 MB", "6000.00 MB")


def test_the_rates_of_emulated_fp8_are_not_shown_as_a_speed():
    finished = runs("bf16-mixed", {0: 0.8}, emulated=True) + runs("fp8-current", {0: 0.8}, emulated=True)
    finished += runs("fp8-mx", {0: 0.8}, emulated=False)
    rows = {row["recipe"]: row for row in run_table.summarize(finished, own_columns=lambda name, results: {})}
    assert list(rows) == ["bf16-mixed", "fp8-current", "fp8-mx"]
    for name, shown in {"bf16-mixed": True, "fp8-current": False, "fp8-mx": True}.items():
        assert all((rows[name][heading] != "-") == shown for heading in run_table.RATES), name
