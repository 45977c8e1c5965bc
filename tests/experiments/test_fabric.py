"""Fabric's switch gives the runs of the book's recipes, to the last bit, where it does what it is asked for."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins import MixedPrecision

from utils.experiments import fabric
from utils.training import recipes, training_loop
from utils.training.precision_names import NAMES, OLD
from utils.workloads import data, models, review_task

CPU = torch.device("cpu")
STEPS = 4
SHAPE = models.DistilBertShape(width=16, layers=1, heads=2, hidden=32, positions=64, spread=0.05)  # with dropout
TINY = review_task.ReviewSettings(
    train=48,
    validation=0,
    test=8,
    epochs=2,
    batch=8,
    max_length=32,
    schedule=training_loop.Schedule(learning_rate=1e-3, clip=0.05),  # so low that it cuts
    shape=SHAPE,
)
SAME = [name for name in NAMES if name != "16-mixed"]  # all that Fabric's switch can do on a CPU


@pytest.fixture(scope="module")
def task() -> review_task.ReviewTask:
    return review_task.prepare(data.generated_reviews("small"), settings=TINY)


def run(train, name, task, **how):
    return train(name, task, steps=STEPS, device=CPU, **how)


@pytest.mark.parametrize("name", SAME)
def test_fabric_and_the_recipe_give_the_same_losses_to_the_last_bit(name, task):
    theirs, ours = run(fabric.train, name, task), run(fabric.train_ours, name, task)
    assert np.array_equal(theirs, ours, equal_nan=True), (theirs, ours)
    assert len(ours) == STEPS or math.isnan(ours[-1])
    assert len(set(ours)) == len(ours)


def test_every_plain_recipe_that_does_not_fail_learns_another_sequence_of_losses(task):
    losses = {name: tuple(run(fabric.train, name, task)) for name in ("64-true", "32-true", "bf16-mixed", "bf16-true")}
    assert len(set(losses.values())) == 4


def test_pure_float16_ends_in_the_same_nan_under_fabric(task):
    theirs = fabric.train("16-true", task, device=CPU)
    assert math.isnan(theirs[-1])
    assert np.array_equal(theirs, fabric.train_ours("16-true", task, device=CPU), equal_nan=True)
    assert len(fabric.train("16-true-moments", task, device=CPU)) == 12  # 2 epochs of 6 batches


def test_on_a_cpu_the_16_mixed_of_fabric_is_its_bf16_mixed(task):
    with pytest.warns(UserWarning, match="AMP with fp16 is not supported on CPU"):
        theirs = run(fabric.train, "16-mixed", task)
    assert theirs == run(fabric.train_ours, "bf16-mixed", task)
    assert theirs != run(fabric.train_ours, "16-mixed", task)


def test_a_run_that_fabric_swaps_keeps_the_rules_of_the_recipe_that_it_runs(task, monkeypatch):
    """A processor may multiply bfloat16 and not float16; then one of the two recipes computes in float32 and rounds."""
    held, on = [], recipes.Recipe.on
    monkeypatch.setattr(recipes.Recipe, "on", lambda self, device: held.append(self.name) or on(self, device))
    with pytest.warns(UserWarning, match="AMP with fp16 is not supported on CPU"):
        fabric.train("16-mixed", task, steps=1, device=CPU)
    forced = Fabric(accelerator="cpu", devices=1, plugins=MixedPrecision("16-mixed", device="cpu"))
    fabric.train("16-mixed", task, steps=1, device=CPU, fabric=forced)
    fabric.train("16-true-eps", task, steps=1, device=CPU)
    assert held == ["bf16-mixed", "16-mixed", "16-true-eps"]


def test_the_plugin_of_fabric_does_on_a_cpu_what_its_switch_does_not(task):
    scaler = torch.amp.GradScaler("cpu")
    forced = Fabric(accelerator="cpu", devices=1, plugins=MixedPrecision("16-mixed", device="cpu", scaler=scaler))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs = run(fabric.train, "16-mixed", task, fabric=forced)
    assert theirs == run(fabric.train_ours, "16-mixed", task)
    assert scaler.get_scale() == 2.0**16


def test_a_skipped_step_of_fabric_does_not_move_the_learning_rate(task):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)  # the gradients of the first steps overflow
    forced = Fabric(accelerator="cpu", devices=1, plugins=MixedPrecision("16-mixed", device="cpu", scaler=scaler))
    rates = []
    step = torch.optim.lr_scheduler.OneCycleLR.step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.lr_scheduler.OneCycleLR, "step", lambda self: rates.append(1) or step(self))
        fabric.train("16-mixed", task, steps=6, device=CPU, fabric=forced)
    skipped = 40 - math.log2(scaler.get_scale())
    assert 0 < skipped <= 6
    assert len(rates) == 1 + 6 - skipped  # one when it is made


def test_a_run_under_fabric_draws_from_its_seed_alone(task):
    first = run(fabric.train, "32-true", task)
    torch.manual_seed(3)
    assert run(fabric.train, "32-true", task) == first
    assert run(fabric.train, "32-true", task, seed=1) != first


def test_a_run_under_fabric_leaves_the_global_state_alone(task):
    torch.manual_seed(3)
    expected, precision = torch.rand(2), torch.get_float32_matmul_precision()
    torch.manual_seed(3)
    run(fabric.train, "bf16-true", task)
    assert torch.equal(torch.rand(2), expected)
    assert torch.get_default_dtype() is torch.float32
    assert torch.get_float32_matmul_precision() == precision


def test_a_recipe_that_lightning_has_no_name_for_is_answered_with_the_others(task):
    with pytest.raises(ValueError, match=r"no name for the recipe '16-mixed-unscaled'; .*bf16-true-stochastic"):
        fabric.train("16-mixed-unscaled", task, steps=1)


# What Fabric says


@pytest.mark.parametrize("name", sorted({names.lightning for names in NAMES.values()} - {"16-mixed"}))
def test_fabric_does_what_it_is_asked_for_and_says_nothing(name, capfd):
    answer = fabric.ask_precision(name, device=CPU)
    assert (answer.returned, answer.messages) == (name, ())
    assert capfd.readouterr() == ("", "")


def test_fabric_swaps_16_mixed_on_a_cpu_and_warns():
    answer = fabric.ask_precision("16-mixed", device=CPU)
    assert answer.returned == "bf16-mixed"
    assert answer.kinds == ("UserWarning",)
    assert "Using `precision='bf16-mixed'` instead" in answer.messages[0]


def test_fabric_needs_a_package_for_transformer_engine():
    answer = fabric.ask_precision("transformer-engine", device=CPU)
    assert (answer.returned, answer.kinds) == (None, ("ModuleNotFoundError",))
    assert "transformer_engine" in answer.messages[0]


@pytest.mark.parametrize("old", OLD)
def test_fabric_takes_an_old_name_warns_of_it_or_refuses_it(old):
    answer = fabric.ask_precision(old, device=CPU)
    if "full" in old:
        assert (answer.returned, answer.kinds) == (None, ("ValueError",))
        assert OLD[old] in answer.messages[0]  # among the allowed ones
        return
    assert answer.returned == ("bf16-mixed" if OLD[old] == "16-mixed" else OLD[old])  # what a CPU makes of it
    assert answer.kinds == {"16": ("UserWarning",) * 2, "bf16": ("UserWarning",)}.get(old, ())
    assert all(OLD[old] in message for message in answer.messages)


# Why the loop does two things by itself


def test_fabric_hands_out_in_float32_what_a_float64_model_computes():
    plain = fabric.make_fabric("64-true", device=CPU)
    model = plain.setup_module(torch.nn.Linear(2, 2))
    x = torch.ones(1, 2)
    assert model(x).dtype is torch.float32
    with plain.init_tensor():
        assert model(x).dtype is torch.float64


def test_fabric_refuses_to_clip_for_a_fused_optimizer_under_a_loss_scaler():
    forced = Fabric(accelerator="cpu", devices=1, plugins=MixedPrecision("16-mixed", device="cpu"))
    model = torch.nn.Linear(2, 2)
    model, optimizer = forced.setup(model, torch.optim.AdamW(model.parameters(), fused=True))
    forced.backward(model(torch.ones(1, 2)).sum())
    with pytest.raises(NotImplementedError, match="not implemented for optimizers handling the unscaling"):
        forced.clip_gradients(model, optimizer, max_norm=1.0)


def test_fabric_raises_when_it_clips_a_gradient_that_is_not_finite():
    plain = fabric.make_fabric("32-true", device=CPU)
    model = torch.nn.Linear(2, 2)
    model, optimizer = plain.setup(model, torch.optim.SGD(model.parameters(), lr=1.0))
    plain.backward(model(torch.full((1, 2), math.inf)).sum())
    with pytest.raises(RuntimeError, match="non-finite"):
        plain.clip_gradients(model, optimizer, max_norm=1.0)


def test_the_book_loads_fabric_only_where_it_is_used():
    code = "import sys; from utils.experiments import fabric; print('lightning_fabric' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_recipe_under_fabric_keeps_its_optimizer(task, monkeypatch):
    asked = []
    adamw = recipes.Recipe.adamw
    monkeypatch.setattr(recipes.Recipe, "adamw", lambda self, *a, **k: asked.append(self) or adamw(self, *a, **k))
    fabric.train("16-true-eps", task, steps=1, device=CPU)
    assert [recipe.epsilon for recipe in asked] == [1e-4]
