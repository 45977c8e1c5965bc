"""The training loop of the experiments: any classifier or language model, any recipe.

The order inside a step is what matters: scale the loss, unscale the gradients, clip them, step, update the scale, and
move the learning rate on only if the step was taken.
"""

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from utils.measure import StepClock
from utils.training.batches import Batch
from utils.training.recipes import Recipe
from utils.training.watch import Watch

CHECK_EVERY = 25  # steps between two looks at the losses: each look makes a GPU wait


@dataclass(frozen=True)
class Schedule:
    """How the optimizer moves: AdamW under a one-cycle learning rate, gradients clipped to the norm `clip`."""

    learning_rate: float
    warmup: float = 0.15  # share of the steps in which the learning rate rises
    clip: float = 1.0
    weight_decay: float = 0.01
    epsilon: float = 1e-8
    growth_interval: int = 2000  # steps without overflow after which a loss scaler tries a larger scale


@dataclass
class History:
    """What happened: losses and step times (milliseconds) of every step, the loss scale each time it changed.

    `tokens` counts those that are not padding; `sizes` how many batches had which size: {"32x128": 40}, rows x length.
    `validation`: the accuracies that an experiment has measured on the way. `nan_step` is the first step, counted
    from 1, whose loss is not finite; None where all are.
    """

    steps: int = 0
    losses: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    scales: list[tuple[int, float]] = field(default_factory=list)
    skipped: int = 0
    tokens: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    validation: list[float] = field(default_factory=list)
    nan_step: int | None = None


class Trainer:
    """A model, its optimizer and its loss scaler under one recipe; `step` is one step of training."""

    def __init__(self, model: nn.Module, *, recipe: Recipe, device: torch.device, schedule: Schedule, steps: int):
        self.model = recipe.prepare(model, device).train()
        self.recipe, self.device, self.clip, self.steps = recipe, device, schedule.clip, steps
        self.optimizer = recipe.adamw(
            self.model.parameters(),
            device,
            lr=schedule.learning_rate,
            eps=schedule.epsilon,
            weight_decay=schedule.weight_decay,
        )
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, schedule.learning_rate, total_steps=max(steps, 2), pct_start=schedule.warmup
        )
        self.scaler = recipe.scaler(device, growth_interval=schedule.growth_interval)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the mean cross-entropy of a batch, in float32 or wider whatever the recipe computes in.

        The mean over its texts for a classifier (logits [B, C]), over its tokens for a language model ([B, S, C]).
        """
        with self.recipe.autocast(self.device):
            logits = self.model(input_ids=batch.ids, attention_mask=batch.mask).logits
        wide = torch.promote_types(logits.dtype, torch.float32)
        return F.cross_entropy(logits.to(wide).flatten(0, -2), batch.labels.flatten())  # [B S, C] and [B S]

    def step(self, batch: Batch) -> tuple[torch.Tensor, bool]:
        """Train on one batch; return its loss and whether the weights were updated.

        Call it inside `recipe.on(device)`. The gradients stay in `.grad` until the next step.
        """
        self.optimizer.zero_grad()
        loss = self.loss(batch)
        self.scaler.scale(loss).backward()  # the gradients of scale * loss
        self.scaler.unscale_(self.optimizer)  # before clipping, or the clip would act on scaled gradients
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)  # leaves the weights alone when a gradient is not finite
        self.scaler.update()
        taken = self.scaler.get_scale() >= scale  # the scale falls if and only if the step was skipped
        if taken:
            self.scheduler.step()
        return loss.detach(), taken

    def state_dict(self) -> dict:
        """Return all that the next step depends on, beside its batch: tensors, numbers and texts, for `checkpoints`.

        Weights and buffers, optimizer, scheduler, loss scaler, and the generators that dropout draws from.
        """
        state = {
            "model": self._tensors(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "generator": torch.get_rng_state(),
        }
        if self.device.type == "cuda":
            state["cuda_generator"] = torch.cuda.get_rng_state(self.device)
        return state

    @torch.no_grad()
    def load_state_dict(self, state: dict) -> None:
        """Go on where `state_dict` was taken, also after it went through JSON; sets torch's global generators."""
        for name, tensor in self._tensors().items():
            tensor.copy_(state["model"][name])
        saved, groups = state["optimizer"], self.optimizer.param_groups
        moments = {int(number): values for number, values in saved["state"].items()}  # JSON made texts of the numbers
        numbers = [
            {name: tuple(value) if isinstance(group.get(name), tuple) else value for name, value in values.items()}
            for group, values in zip(groups, saved["param_groups"], strict=True)
        ]
        self.optimizer.load_state_dict({"state": moments, "param_groups": numbers})
        self.scheduler.load_state_dict(state["scheduler"])
        self.scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["generator"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_generator"], self.device)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return parameters and buffers by name, tied ones once."""
        own = {name for name, _ in itertools.chain(self.model.named_parameters(), self.model.named_buffers())}
        return {name: tensor for name, tensor in self.model.state_dict().items() if name in own}


def fine_tune(
    trainer: Trainer,
    batches: Iterator[Batch],
    *,
    steps: int,
    label: str = "",
    watch: Watch | None = None,
    history: History | None = None,
) -> History:
    """Train on `batches` up to step `steps`, with a progress bar; stop soon after the loss is not finite.

    `history` is that of the steps before: it is carried on, and so is the count of the steps.
    `watch` looks at its own steps, counted from 1; the time of such a step includes that.
    """
    history, clock = history or History(), StepClock(trainer.device)
    before = history.steps
    # float64 [steps], on the device; read every `CHECK_EVERY` steps, for each reading waits for the GPU
    losses = torch.zeros(steps - before, dtype=torch.float64, device=trainer.device)

    def note_losses() -> None:
        history.losses += losses[len(history.losses) - before : history.steps - before].tolist()

    bar = tqdm(total=trainer.steps, initial=before, desc=label, disable=None, leave=False)
    with trainer.recipe.on(trainer.device), bar:
        for batch in itertools.islice(batches, steps - before):
            with clock, watch.step(history.steps + 1) if watch else contextlib.nullcontext():
                losses[history.steps - before], taken = trainer.step(batch.to(trainer.device))
            history.steps += 1
            history.skipped += not taken
            history.tokens += int(batch.mask.sum())
            size = "x".join(map(str, batch.ids.shape))
            history.sizes[size] = history.sizes.get(size, 0) + 1
            _note_scale(history, trainer)
            bar.update()
            if history.steps % CHECK_EVERY == 0:
                note_losses()
                if not all(map(math.isfinite, history.losses[-CHECK_EVERY:])):
                    break
    note_losses()
    history.milliseconds += clock.milliseconds()
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
            right += (logits.argmax(-1) == batch.labels).sum()  # stays on the device: no wait in the loop
            seen += len(batch.labels)
    model.train(training)
    return int(right) / seen
