"""Run the DistilBERT experiment under Lightning Fabric, whose one-line switch replaces a recipe's own methods.

Model, batches, optimizer, schedule and the order of a step are those of `utils.distilbert` and
`utils.training.training_loop`. The library decides what `precision=` decides: the dtype of the weights, autocast, and
the loss scaler. `lightning_fabric` takes seconds to import, so only the functions that use it do.

Source: https://lightning.ai/docs/fabric/stable/fundamentals/precision.html, and the code of lightning-fabric 2.6.6.
"""

import contextlib
import itertools
import logging
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from utils import distilbert, machine
from utils.training import precision_names, recipes, training_loop
from utils.training.batches import Batch
from utils.training.precision_names import NAMES, LibraryAnswer
from utils.training.recipes import Recipe
from utils.training.training_loop import Schedule, Trainer
from utils.workloads import models
from utils.workloads.review_task import ReviewTask

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def make_fabric(precision: str, *, device: torch.device | None = None) -> "Fabric":
    """Return a `Fabric` for one device: the one-line switch, without the line that it logs.

    Raises: ValueError for a name that it does not know; ImportError for one that needs another package.
    """
    from lightning_fabric import Fabric

    device = device or machine.device()
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        devices = 1 if device.type == "cpu" else [device.index or 0]
        return Fabric(accelerator=device.type, devices=devices, precision=precision)
    finally:
        logger.setLevel(level)


def ask_precision(precision: str, *, device: torch.device | None = None) -> LibraryAnswer:
    """Return the precision that Fabric runs in when it is asked for `precision`, with its warnings."""
    return precision_names.answer(lambda: make_fabric(precision, device=device).strategy.precision.precision)


def train(
    name: str,
    task: ReviewTask,
    *,
    steps: int | None = None,
    seed: int = 0,
    device: torch.device | None = None,
    fabric: "Fabric | None" = None,
) -> list[float]:
    """Fine-tune a DistilBERT in one recipe under Fabric and return the loss of each step, up to the first NaN or Inf.

    `name` is that of a recipe: what Lightning has no word for (`NAMES[name].by_hand`) comes from the recipe. `fabric`
    is one that was set up already, None for the switch. If it runs another precision than it was asked for, the steps
    keep the rules of the recipe that it does run.
    Raises: ValueError when Lightning has no name for the recipe.
    """
    if name not in NAMES:
        raise ValueError(f"Lightning has no name for the recipe {name!r}; it has one for {', '.join(NAMES)}")
    recipe, device = recipes.find_recipe(name).seeded(seed), device or machine.device()
    fabric = fabric or make_fabric(NAMES[name].lightning, device=device)
    plan, losses = distilbert.make_plan(task), []
    precision = fabric.strategy.precision.precision  # that it runs
    rules = recipe if precision == NAMES[name].lightning else recipes.find_recipe(precision)
    with _draw_from(seed, device), rules.on(device):
        model = fabric.setup_module(_make_model(task, seed, device)).train()
        inner, scheduler = _make_adamw(model, recipe, task.settings.schedule, device=device, steps=plan.steps)
        optimizer = fabric.setup_optimizers(inner)
        scaler = getattr(fabric.strategy.precision, "scaler", None)  # 16-mixed has one
        for batch in itertools.islice(plan.draw(seed), steps or plan.steps):
            optimizer.zero_grad()
            loss = _compute_loss(fabric, model, batch.to(device))
            fabric.backward(loss)
            if scaler:
                scaler.unscale_(inner)  # fabric.clip_gradients would refuse the fused optimizer of a GPU here
            nn.utils.clip_grad_norm_(model.parameters(), task.settings.schedule.clip)
            scale = scaler.get_scale() if scaler else 1
            optimizer.step()
            if not scaler or scaler.get_scale() >= scale:  # a smaller scale: the step was skipped
                scheduler.step()
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                break
    return losses


def _compute_loss(fabric: "Fabric", model: nn.Module, batch: Batch) -> torch.Tensor:
    """Return the mean cross-entropy in float32 or wider, as `training_loop.Trainer.loss` does."""
    with fabric.init_tensor():  # else Fabric returns the results of a float64 model in float32
        logits = model(input_ids=batch.ids, attention_mask=batch.mask).logits  # [B, 2]
    return F.cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), batch.labels)


def _make_adamw(
    model: nn.Module, recipe: Recipe, schedule: Schedule, *, device: torch.device, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """Return the recipe's optimizer and its scheduler, which needs the optimizer before Fabric wraps it."""
    settings = {"lr": schedule.learning_rate, "eps": schedule.epsilon, "weight_decay": schedule.weight_decay}
    optimizer = recipe.adamw(model.parameters(), device, **settings)
    cycle = {"total_steps": max(steps, 2), "pct_start": schedule.warmup}
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, schedule.learning_rate, **cycle)


def train_ours(
    name: str,
    task: ReviewTask,
    *,
    steps: int | None = None,
    seed: int = 0,
    device: torch.device,
) -> list[float]:
    """Return the losses of the same run by the book's own trainer, as `train` does.

    They are compared with other runs bit by bit, or nearly, so `device` must be that of the other run.
    """
    recipe, plan = recipes.find_recipe(name).seeded(seed), distilbert.make_plan(task)
    with _draw_from(seed, device):
        model, schedule = _make_model(task, seed, device), task.settings.schedule
        trainer = Trainer(model, recipe=recipe, device=device, schedule=schedule, steps=plan.steps)
        history = training_loop.fine_tune(trainer, plan.draw(seed), steps=steps or plan.steps)
    return history.losses[: history.nan_step]


def _make_model(task: ReviewTask, seed: int, device: torch.device) -> nn.Module:
    model = task.new_model(seed)
    models.fit_attention(model, device)
    return model


@contextlib.contextmanager
def _draw_from(seed: int, device: torch.device) -> Iterator[None]:
    """Draw dropout from the seed, then put the global generators back."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
