"""The training loop of the experiments: any classifier or language model, any recipe.

The order inside a step is what matters: scale the loss, unscale the gradients, clip them, step, update the scale, and
move the learning rate on only if the step was taken.
"""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from utils.batches import Batch
from utils.measure import StepClock
from utils.recipes import Recipe
from utils.watch import Watch

CHECK_EVERY = 25  # steps between two looks at the losses: each look makes a GPU wait


@dataclass(frozen=True)
class Schedule:
    """How the optimizer moves: AdamW under a one-cycle learning rate, gradients clipped to the norm `clip`."""

    learning_rate: float
    warmup: float = 0.15  # share of the steps in which the learning rate rises
    clip: float = 1.0
    weight_decay: float = 0.01
    epsilon: float = 1e-8


@dataclass
class History:
    """What happened: losses and step times (milliseconds) of every step, the loss scale each time it changed.

    `nan_step` is the first step, counted from 1, whose loss is not finite; None where all are.
    """

    steps: int = 0
    losses: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    scales: list[tuple[int, float]] = field(default_factory=list)
    skipped: int = 0
    nan_step: int | None = None


class Trainer:
    """A model, its optimizer and its loss scaler under one recipe; `step` is one step of training."""

    def __init__(self, model: nn.Module, *, recipe: Recipe, device: torch.device, schedule: Schedule, steps: int):
        self.model = recipe.prepare(model, device).train()
        self.recipe, self.device, self.clip = recipe, device, schedule.clip
        self.optimizer = recipe.adamw(
            self.model.parameters(),
            device,
            lr=schedule.learning_rate,
            eps=schedule.epsilon,
            weight_decay=schedule.weight_decay,
        )
        self.learning_rate = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, schedule.learning_rate, total_steps=max(steps, 2), pct_start=schedule.warmup
        )
        self.scaler = recipe.scaler(device)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the mean cross-entropy of a batch, in float32 or wider whatever the recipe computes in.

        The mean over its texts for a classifier (logits [B, C]), over its tokens for a language model ([B, S, C]).
        """
        with self.recipe.autocast(self.device):
            logits = self.model(input_ids=batch.ids, attention_mask=batch.mask).logits
        wide = torch.promote_types(logits.dtype, torch.float32)
        return F.cross_entropy(logits.to(wide).flatten(0, -2), batch.labels.flatten())

    def step(self, batch: Batch) -> tuple[torch.Tensor, bool]:
        """Train on one batch; return its loss and whether the weights were updated.

        Call it inside `recipe.on(device)`. The gradients stay in `.grad` until the next step.
        """
        self.optimizer.zero_grad()
        loss = self.loss(batch)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)  # before clipping, or the clip would act on scaled gradients
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)  # leaves the weights alone when a gradient is not finite
        self.scaler.update()
        taken = self.scaler.get_scale() >= scale  # the scale falls if and only if the step was skipped
        if taken:
            self.learning_rate.step()
        return loss.detach(), taken


def fine_tune(
    trainer: Trainer, batches: Iterator[Batch], *, steps: int, label: str = "", watch: Watch | None = None
) -> History:
    """Train on `batches`, at most `steps` of them, with a progress bar; stop soon after the loss is not finite.

    `watch` looks at its own steps of these, counted from 1; the time of such a step includes that.
    """
    history, clock = History(), StepClock(trainer.device)
    losses = torch.zeros(steps, dtype=torch.float64, device=trainer.device)
    with trainer.recipe.on(trainer.device), tqdm(total=steps, desc=label, disable=None, leave=False) as bar:
        for done, batch in enumerate(batches, 1):
            with clock, watch.step(done) if watch else contextlib.nullcontext():
                losses[done - 1], taken = trainer.step(batch.to(trainer.device))
            history.steps = done
            history.skipped += not taken
            _note_scale(history, trainer)
            bar.update()
            if done % CHECK_EVERY == 0 and not losses[done - CHECK_EVERY : done].isfinite().all():
                break
    history.losses = losses[: history.steps].tolist()
    history.milliseconds = clock.milliseconds()
    history.nan_step = next((step for step, loss in enumerate(history.losses, 1) if not math.isfinite(loss)), None)
    return history


def _note_scale(history: History, trainer: Trainer) -> None:
    if trainer.scaler.is_enabled():
        scale = trainer.scaler.get_scale()
        if not history.scales or history.scales[-1][1] != scale:
            history.scales.append((history.steps, scale))


@torch.no_grad()
def accuracy(model: nn.Module, batches: Iterator[Batch], *, recipe: Recipe, device: torch.device) -> float:
    """Return the share of right answers, computed in the recipe's own dtypes; the model's mode is restored."""
    right, seen, training = 0, 0, model.training
    model.eval()
    with recipe.on(device):
        for batch in batches:
            batch = batch.to(device)
            with recipe.autocast(device):
                logits = model(input_ids=batch.ids, attention_mask=batch.mask).logits
            right += (logits.argmax(-1) == batch.labels).sum()
            seen += len(batch.labels)
    model.train(training)
    return int(right) / seen
