"""A plan's bytes are predicted as they are measured, what cannot work is refused, and the book's own LLaMA trains."""

import itertools
import json
import math
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils import llama, machine, records
from utils.cost import fitting, memory
from utils.cost.live_bytes import LiveBytes
from utils.experiments.capstone import budget, comparison, forecasts, plans, saved_tensors
from utils.experiments.capstone.budget import Budget
from utils.experiments.capstone.forecasts import forecast, refuse
from utils.experiments.capstone.plans import Plan, Problem, make_problem, parse_plan
from utils.runs import experiment
from utils.training import training_loop
from utils.training.recipes import ALL_RECIPES, RECIPES, find_recipe
from utils.workloads import language_task, models

CPU = torch.device("cpu")
BOUND = 0.03  # how far a measured peak may lie from the predicted one: the chapter says so
RATES = {"products": {"float32": 0.1, "bfloat16": 0.4}, "bandwidth": 30.0, "launch": 7.0}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("DATA", "WEIGHTS", "SIZE", "DEVICE", "CACHE"):
        monkeypatch.delenv(f"MIXED_PRECISION_{name}", raising=False)


@pytest.fixture(scope="module")
def small() -> Problem:
    return make_problem("small", device=CPU)


@pytest.fixture(scope="module")
def tiny(small) -> Problem:
    """The same with few steps and short pieces of text."""
    settings = replace(small.task.settings, steps=3, length=24)
    train = replace(small.task.train, ids=[text[:25] for text in small.task.train.ids])
    return replace(small, task=replace(small.task, settings=settings, train=train, held_out=small.task.held_out[:200]))


# A plan and its name


PLANS = [
    *(parse_plan(name) for name in comparison.PLANS),
    Plan("bf16-true-kahan", 64, 3, optimizer="adamw-8bit"),
    Plan("16-true-eps", 16, 1, optimizer="adamw-8bit", checkpointing=True),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_a_name_is_the_plan(plan):
    assert parse_plan(plan.name) == plan


@pytest.mark.parametrize("recipe_name", ALL_RECIPES)
def test_every_recipe_has_a_name_that_is_read_back(recipe_name):
    assert parse_plan(Plan(recipe_name, 128, 8).name).recipe == recipe_name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bf16-mixed", "is not like bf16-mixed-128x8"),
        ("bf16-mixed-128x8-twice", "is not like"),
        ("bf16-mixd-128x8", "unknown recipe 'bf16-mixd'"),
        ("bf16-mixed-128x0", "must both be 1 or more"),
    ],
)
def test_a_name_that_is_no_plan_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        parse_plan(text)


def test_an_optimizer_that_is_unknown_is_refused():
    with pytest.raises(ValueError, match="optimizer 'sgd' is not one of adamw, adamw-8bit"):
        Plan("32-true", 64, 1, optimizer="sgd")


# Bytes


MEASURED = [
    "32-true-128x6",
    "bf16-mixed-96x8",
    "bf16-true-128x8",
    "bf16-mixed-128x8",
    "bf16-mixed-128x4",
    "16-mixed-64x4",
    "bf16-true-master-96x4",
    "bf16-true-kahan-96x4",
    "bf16-true-192x4-8bit",
    "bf16-mixed-256x2",
    "64-true-64x2",
    "bf16-mixed-128x8-checkpointing",
    "bf16-mixed-192x8-checkpointing",
    "bf16-true-256x8-checkpointing",
    "32-true-128x8-checkpointing",
    "bf16-mixed-256x2-checkpointing",
    "32-true-256x1",
]


@pytest.mark.parametrize("name", MEASURED)
def test_the_peak_is_predicted_within_the_bound(name, small):
    plan = parse_plan(name)
    assert comparison.measure_peak(plan, small) == pytest.approx(forecast(plan, small).peak, rel=BOUND)


@pytest.mark.parametrize("name", ["bf16-true-128x8", "bf16-mixed-96x8", "32-true-128x6"])
def test_without_checkpointing_the_peak_is_exact_but_for_what_is_no_ledgers(name, small):
    plan = parse_plan(name)
    found = forecast(plan, small)
    assert found.peak == found.moments["loss"]
    assert comparison.measure_peak(plan, small) == pytest.approx(found.peak, rel=1e-3)
    assert found.peak == found.ledger.total - found.ledger.gradients  # the ledger is a ceiling: these come later


def test_the_moments_are_sums_of_the_ledger(small):
    plan = Plan("bf16-true", 128, 8)
    found = forecast(plan, small)
    vocabulary = small.task.settings.shape.vocabulary
    model = plan.task(small).new_model(0)
    models.fit_attention(model, CPU)
    ledger = memory.predict(model, "bf16-true", batch=8, length=152)
    assert found.ledger == ledger
    assert found.moments["loss"] == ledger.at_rest + ledger.activations + 2 * 4 * 8 * 152 * vocabulary
    assert "again" not in found.moments
    assert "again" in forecast(Plan("bf16-true", 128, 8, checkpointing=True), small).moments


def test_the_update_counts_where_a_batch_is_small_and_a_model_wide(small):
    found = forecast(Plan("32-true", 512, 1), small)
    assert found.peak == found.moments["update"]


def test_a_processor_without_16_bit_products_takes_the_same_bytes(small, monkeypatch):
    plan = Plan("bf16-mixed", 96, 4)
    usual = comparison.measure_peak(plan, small)
    monkeypatch.setattr(machine, "cpu_flags", lambda words: set())
    assert find_recipe("bf16-mixed").emulated(CPU)
    assert comparison.measure_peak(plan, small) == pytest.approx(usual, rel=BOUND)


@pytest.mark.parametrize(
    "name", ["32-true-128x8", "bf16-mixed-128x8", "bf16-true-128x8", "bf16-true-96x2-checkpointing"]
)
def test_what_is_kept_by_kind_is_what_the_ledger_keeps(name, small):
    plan = parse_plan(name)
    kinds = saved_tensors.count_by_kind(plan, small)
    assert sum(kinds.values()) == forecast(plan, small).ledger.activations
    assert list(kinds) == [*saved_tensors.KINDS.values(), saved_tensors.REST]


def test_every_kind_has_its_bytes(small):
    kinds = saved_tensors.count_by_kind(Plan("bf16-mixed", 128, 8), small)
    assert kinds["softmax"] == 2 * 8 * 8 * 152 * 152 * 4  # [B, H, S, S] of two layers
    assert kinds["its 16-bit copy"] == kinds["softmax"] / 2
    assert kinds["log-probabilities"] == 8 * 152 * 640 * 4
    assert kinds["inputs of the norms"] == 5 * 8 * 152 * 128 * 4
    assert kinds["copies of weights"] == forecast(Plan("bf16-mixed", 128, 8), small).ledger.casts
    assert kinds["feed-forward layers"] == 2 * 4 * 8 * 152 * 352 * 2
    assert saved_tensors.count_by_kind(Plan("32-true", 128, 8), small)["its 16-bit copy"] == 0


def started(plan, given):
    """A trainer of a plan before its first step, and a full batch of its text."""
    task = plan.task(given)
    model = task.new_model(0)
    models.fit_attention(model, CPU)
    how = {"recipe": plan.running(), "device": CPU, "schedule": task.settings.schedule, "steps": 9}
    return training_loop.Trainer(model, **how), llama.make_plan(task).full_batch


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_a_batch_in_parts_takes_what_is_promised(parts, small):
    plan = Plan("bf16-mixed", 128, 8)
    trainer, batch = started(plan, small)
    with trainer.recipe.on(CPU):
        trainer.step(batch)  # the first one begins the moments
        trainer.optimizer.zero_grad()
        with LiveBytes(fitting._kept(trainer)) as live:
            fitting.accumulate_gradients(trainer, batch, parts=parts)
            trainer.optimizer.step()
    assert max(saved_tensors.count_in_parts(plan, small, parts).values()) == pytest.approx(live.peak, rel=BOUND)


def test_parts_that_do_not_divide_a_batch_are_refused(small):
    for parts in (0, 3):
        with pytest.raises(ValueError, match=f"{parts} parts do not divide a batch of 8"):
            saved_tensors.count_in_parts(Plan("bf16-mixed", 128, 8), small, parts)


# Time


class Traffic(TorchDispatchMode):
    """Bytes that operations read and write; what only looks at a tensor otherwise moves none."""

    def __init__(self):
        super().__init__()
        self.moved = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given, made = ([t for t in tree_leaves(tree) if torch.is_tensor(t)] for tree in ((args, kwargs), out))
        known = {tensor.untyped_storage()._cdata for tensor in given}
        inside = func._schema.name.endswith("_")
        if inside or not all(tensor.untyped_storage()._cdata in known for tensor in made):
            self.moved += sum(tensor.nbytes for tensor in (*given, *made))
        return out


@pytest.mark.parametrize("name", ["bf16-true-128x8", "bf16-mixed-96x8", "32-true-128x6", "bf16-mixed-128x4"])
def test_a_byte_that_is_kept_stands_for_fourteen_that_pass(name, small):
    plan = parse_plan(name)
    trainer, batch = started(plan, small)
    with trainer.recipe.on(CPU):
        trainer.step(batch)
        with Traffic() as traffic:
            trainer.step(batch)
    assert traffic.moved / forecast(plan, small).ledger.activations == pytest.approx(forecasts.PASSES, rel=0.1)


def test_the_parts_of_the_time_are_work_over_rate(small):
    given = replace(small, card=Budget("a card", 10**9, **RATES))
    plan = Plan("bf16-mixed", 128, 8)
    found = forecast(plan, given)
    tokens, width, hidden, vocabulary = 8 * 152, 128, 352, small.task.settings.shape.vocabulary
    layer = 4 * tokens * width**2 + 2 * tokens * 152 * width + 3 * tokens * width * hidden
    done = 3 * 2 * (2 * layer + tokens * width * vocabulary)
    assert found.parts["products"] == pytest.approx(done / 0.4e12 * 1e3)
    assert found.parts["memory"] == pytest.approx(forecasts.PASSES * found.ledger.activations / 30e9 * 1e3)
    assert found.parts["launches"] == pytest.approx(forecasts.count_launches(plan, given) * 7e-3)
    assert found.milliseconds == pytest.approx(sum(found.parts.values()))
    float32 = forecast(replace(plan, recipe="32-true"), given).parts
    assert float32["products"] == pytest.approx(4 * found.parts["products"])
    again = forecast(replace(plan, checkpointing=True), given).parts
    assert again["products"] == pytest.approx(4 / 3 * found.parts["products"])
    assert again["memory"] == pytest.approx(4 / 3 * found.parts["memory"])
    assert again["launches"] > found.parts["launches"]


def test_a_gpu_works_while_it_is_given_work(small):
    found = forecast(Plan("32-true", 64, 2), replace(small, card=Budget("a card", 10**9, **RATES)))
    work, launches = found.parts["products"] + found.parts["memory"], found.parts["launches"]
    assert replace(found, overlap=True).milliseconds == max(work, launches) < found.milliseconds


@pytest.mark.parametrize("name", ["16-mixed", "64-true", "32-true-high"])
def test_no_speed_is_claimed_where_no_rate_is_that_of_the_recipe(name, small):
    given = replace(small, card=Budget("a card", 10**9, **RATES))
    assert forecast(Plan(name, 64, 2), given).milliseconds is None
    assert forecast(Plan("32-true", 64, 2), small).milliseconds is None  # a card without rates


def test_the_operations_of_a_step_do_not_depend_on_its_batch(small):
    counts = {forecasts.count_launches(Plan("32-true", 64, batch), small) for batch in (1, 8)}
    assert len(counts) == 1
    assert counts.pop() > 300


def test_rates_are_measured_for_what_the_device_multiplies(monkeypatch):
    monkeypatch.setitem(budget.COPIED, "cpu", 2**16)
    monkeypatch.setattr(machine, "cpu_flags", lambda words: set())
    card = budget.measure_rates(Budget("a card", 7), CPU)
    assert (card.name, card.size, list(card.products)) == ("a card", 7, ["float32"])
    assert min(card.bandwidth, card.launch, *card.products.values()) > 0


# What cannot be


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("bf16-mixed-128x8", "does not fit; a step takes 52.9 MB, 4.9 MB more than the 48.0 MB of the small card"),
        ("16-true-64x4", "Adam's eps of 1e-8 is 0 in float16"),
        ("16-true-eps-64x4", "no loss scale"),
        ("16-mixed-unscaled-64x4", "no loss scale"),
        ("16-true-master-64x4", "no loss scale"),
        ("fp8-current-64x4", "the speed says nothing about FP8"),
        ("bf16-mixed-100x8", "width 100 is no multiple of 16"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(name, says, small):
    said = refuse(parse_plan(name), small)
    assert says in said
    assert said.endswith(".")
    assert said.count(". ") == 0


def test_fp8_where_the_device_has_it_is_refused_for_want_of_a_ledger(small, monkeypatch):
    monkeypatch.setattr("utils.training.recipes.Recipe.remark", lambda self, device: "")
    assert "no ledger knows what its FP8 layers keep" in refuse(parse_plan("fp8-current-64x4"), small)


@pytest.mark.parametrize("name", [name for name in RECIPES if "16-true" not in name and "unscaled" not in name])
def test_every_other_recipe_is_welcome(name, small):
    assert refuse(Plan(name, 64, 2), small) == ""


def test_the_card_decides(small):
    plan = Plan("bf16-mixed", 128, 8)
    need = forecast(plan, small).peak
    assert refuse(plan, replace(small, card=Budget("a card", need))) == ""
    assert "does not fit" in refuse(plan, replace(small, card=Budget("a card", need - 1)))


# Runs


def test_what_trains_is_the_books_own_llama(tiny):
    plan = Plan("bf16-mixed", 32, 2)
    found = comparison.measure_plan(plan, tiny)
    usual = experiment.run(llama.make_plan(plan.task(tiny)), find_recipe("bf16-mixed"), device=CPU).record
    assert found.loss == usual.results["loss"]
    assert found.record.samples["loss"] == usual.samples["loss"]
    assert len(found.record.samples["loss"]) == 3


def test_checkpointing_and_moments_of_eight_bits_are_what_they_say(tiny):
    plan = Plan("32-true", 128, 8)
    usual = comparison.measure_plan(plan, tiny)
    again = comparison.measure_plan(replace(plan, checkpointing=True), tiny)
    assert again.loss == usual.loss
    assert again.peak < usual.peak
    assert again.record.results["memory"]["saved_activations"] < usual.record.results["memory"]["saved_activations"]
    eight = comparison.measure_plan(replace(plan, optimizer="adamw-8bit"), tiny)
    assert eight.record.results["adamw_kernel"] == "ours"
    assert eight.loss == pytest.approx(usual.loss, rel=0.05)
    assert eight.loss != usual.loss


def test_seeds_differ_and_repeat(tiny):
    losses = [comparison.measure_plan(Plan("32-true", 32, 2), tiny, seed=seed).loss for seed in (0, 1, 0)]
    assert losses[0] == losses[2] != losses[1]


def test_a_plan_that_is_refused_is_not_run(small):
    with pytest.raises(ValueError, match="does not fit"):
        comparison.measure_plan(Plan("bf16-mixed", 128, 8), small)


def test_a_step_beyond_the_card_is_out_of_memory(tiny, monkeypatch):
    monkeypatch.setattr(comparison, "measure_peak", lambda plan, given: given.card.size + 10**6)
    with pytest.raises(torch.OutOfMemoryError, match=r"a step takes 49.0 MB, the small card has 48.0"):
        comparison.measure_plan(Plan("32-true", 32, 2), tiny)


def test_a_loss_that_is_not_finite_is_a_result(tiny, tmp_path):
    settings = replace(tiny.task.settings, schedule=training_loop.Schedule(learning_rate=1e9))
    broken = replace(tiny, task=replace(tiny.task, settings=settings))
    found = comparison.measure_plan(Plan("bf16-true", 32, 2), broken)
    assert not math.isfinite(found.loss)
    loaded = comparison.of_record(records.load(records.save(found.record, tmp_path)))
    assert not math.isfinite(loaded.loss)
    assert "nan" in comparison.format_table([loaded])


def test_a_record_gives_the_result_back(tiny, tmp_path):
    found = comparison.measure_plan(Plan("bf16-true", 32, 2), tiny)
    loaded = records.load(records.save(found.record, tmp_path))
    assert loaded.name == "capstone-bf16-true-32x2-small-generated-cpu-seed0"
    assert loaded.results["card"] == {"name": "the small card", "size": plans.SMALL_CARD}
    again = comparison.of_record(loaded)
    assert (again.plan, again.seed, again.peak, again.loss) == (found.plan, 0, found.peak, found.loss)
    assert again.off == again.peak / again.predicted_peak - 1
    json.dumps(loaded.results)


def test_a_summary_has_a_row_a_plan_and_the_highest_loss_first():
    def result(name, seed, loss, *, peak=2_000_000, expected=10.0):
        return comparison.PlanResult(parse_plan(name), seed, 1_900_000, peak, expected, 12.0 + seed, loss, None)

    found = [result("bf16-true-32x2", 0, 0.2), result("bf16-true-32x2", 1, 0.3, peak=2_100_000)]
    found += [result("16-mixed-32x2", 0, 0.5, expected=None)]
    first, second = comparison.summarize(found)
    assert first == {
        "plan": "16-mixed-32x2",
        "MB promised": "1.9",
        "MB": "2.0",
        "ms promised": "-",
        "ms": "12.0",
        "held-out loss": "0.500",
    }
    assert (second["MB"], second["ms promised"], second["ms"]) == ("2.1", "10.0", "12.5")
    assert second["held-out loss"] == experiment.format_interval([0.2, 0.3], digits=3)
    assert [line.split()[0] for line in comparison.format_table(found).splitlines()] == [
        "plan",
        first["plan"],
        second["plan"],
    ]


def test_full_plans_fill_a_card(monkeypatch):
    given = make_problem("full", device=CPU)
    monkeypatch.setattr(plans.models, "build_llama", None)  # nothing is built to find them, and nothing asks for a GPU
    given = replace(given, card=Budget("a card", 40 * 10**9), device=torch.device("cuda"))
    assert forecast(Plan("bf16-mixed", 2_048, 8), given).overlap
    found = comparison.find_filling_plans(given)
    assert {(plan.width, plan.recipe, plan.checkpointing) for plan in found} == {
        (width, name, again)
        for width in comparison.WIDTHS
        for name, ways in comparison.FILLING.items()
        for again in ways
    }
    for plan in found:
        assert refuse(plan, given) == ""
        assert plan.batch == comparison.MOST or "does not fit" in refuse(replace(plan, batch=plan.batch + 1), given)
    assert comparison.find_filling_plans(replace(given, card=Budget("none", 10**6))) == []


# The command line


@pytest.fixture
def short(monkeypatch, tiny):
    monkeypatch.setattr(comparison, "make_problem", lambda size, **how: tiny)
    monkeypatch.setattr(plans, "measure_rates", lambda card, device: replace(card, **RATES))


def run(*arguments: str) -> int:
    return comparison.main(["--device", "cpu", "--size", "small", *arguments])


def test_the_command_line_runs_each_plan_and_seed_once(short, tmp_path, capsys):
    arguments = ["--plan", "bf16-true-32x2", "32-true-32x2", "16-true-32x2", "--seeds", "2", "--record", str(tmp_path)]
    assert run(*arguments) == 0
    out = capsys.readouterr().out
    assert "16-true: Adam's eps" in out
    assert out.count("Adam's eps") == 1
    rows = [line.split() for line in out.splitlines() if line.startswith(("bf16-true-32x2", "32-true-32x2"))]
    assert {row[0] for row in rows} == {"32-true-32x2", "bf16-true-32x2"}
    assert all("±" in row for row in rows)
    found = records.load_all(tmp_path, experiment="capstone")
    assert {(record.recipe, record.seed) for record in found} == set(
        itertools.product(("bf16-true-32x2", "32-true-32x2"), (0, 1))
    )
    assert "--seeds 2 --record DIR" in found[0].command
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(*arguments) == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--plan", "bf16-mixed"], "is not like bf16-mixed-128x8"),
        (["--seeds", "0"], "--seeds 0 is below 1"),
        (["--size", "tiny"], "tiny"),
        (["--nonsense"], "--nonsense"),
        (["--data", "/no/such/folder"], "is not there"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, says, capsys):
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said


def test_where_no_plan_can_be_run_the_reason_stands_above_and_the_exit_code_is_2(short, capsys):
    assert run("--plan", "16-true-32x2", "bf16-true-33x2") == 2
    said = capsys.readouterr()
    assert "16-true-32x2: 16-true: Adam's eps" in said.out
    assert said.out.count("bf16-true-33x2") == 1
    assert said.err == "capstone: none of these plans can be run here; above stands why\n"


def test_ctrl_c_is_one_line_and_says_what_is_kept(short, monkeypatch, capsys):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "measure_plan", pressed)
    assert run("--plan", "bf16-true-32x2") == 130
    said = capsys.readouterr().err
    assert said == "capstone: interrupted; the plans above are done, and recorded where --record was given\n"


def test_trained_weights_have_a_width_of_their_own(monkeypatch, small):
    trained = replace(small.task, weights="trained weights, local folder")
    monkeypatch.setattr(plans.language_task, "prepare", lambda *given, **how: trained)
    with pytest.raises(ValueError, match="have a width of their own"):
        make_problem("small", device=CPU, steps=5)


def test_the_steps_of_a_problem_can_be_fewer():
    assert make_problem("small", device=CPU, steps=2).task.settings.steps == 2
    assert language_task.SMALL.steps != plans.STEPS["small"]


@pytest.mark.gpu
def test_a_gpu_takes_what_was_predicted():
    given = make_problem("full", device=torch.device("cuda"), steps=3)
    plan = Plan("bf16-mixed", 1_024, 16)
    found = comparison.measure_plan(plan, given.rated())
    assert found.peak == pytest.approx(found.predicted_peak, rel=0.1)
    assert found.predicted_ms > 0
