"""Small trainings with one thing wrong in each: what a hunter of NaN, or a reader, is to find.

    case = plant("confident network")
    for number, batch in enumerate(case.batches, 1):
        with case.on(), hunter.step(number):
            case.trainer.step(batch)

Every fault has been met in somebody's code. Most are written so that float32 does not suffer from them. `plant` with
`healthy=True` gives the same training without its fault, to compare with. All data is generated.
"""

import contextlib
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from utils.diagnostics import sabotage
from utils.diagnostics.nan_hunter import NanHunter
from utils.diagnostics.sabotage import CPU, FaultyTraining
from utils.training import batches
from utils.training.recipes import find_recipe
from utils.training.training_loop import Trainer
from utils.workloads import data, language_task, review_task


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: in which model and recipe, what the log shows, why, and what fixes it.

    `spoil(case)` puts it into a healthy case; `mended` is the recipe of the healthy one, where the recipe is the
    fault. `steps` to train at the learning rate `rate`; `few`: as many batches, again and again, 0 for always new ones.
    `silent`: nothing becomes NaN.
    """

    name: str
    model: str
    recipe: str
    spoil: Callable[[FaultyTraining], None]
    symptom: str
    cause: str
    remedy: str
    mended: str = ""
    steps: int = 40
    rate: float = 1e-3
    few: int = 0
    silent: bool = False


@dataclass
class TrainingLog:
    """What a log of the run holds: of each step the loss, the loss scale, and whether the weights were updated."""

    losses: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    taken: list[bool] = field(default_factory=list)

    @property
    def nan_step(self) -> int | None:
        """The first step, counted from 1, whose loss is not finite."""
        return next((step for step, loss in enumerate(self.losses, 1) if not math.isfinite(loss)), None)


def plant(name: str, *, healthy: bool = False, seed: int = 0, rate: float = 0) -> FaultyTraining:
    """Return the training of `FAULTS[name]`, with its fault or, `healthy`, without; `rate`: 0 for the fault's own.

    Raises: ValueError for a name that is not there.
    """
    if name not in FAULTS:
        raise ValueError(f"no fault is called {name!r}; there are {', '.join(FAULTS)}")
    fault = replace(FAULTS[name], rate=rate or FAULTS[name].rate)
    case = _healthy(fault, seed, fault.mended if healthy and fault.mended else fault.recipe)
    if not healthy:
        fault.spoil(case)
    return case


def run(case: FaultyTraining, *, hunter: NanHunter | None = None, past_nan: int = 0) -> TrainingLog:
    """Train until `past_nan` steps after the first loss that is not finite; with a hunter, until it has found one."""
    log = TrainingLog()
    for number, batch in enumerate(case.batches, 1):
        with case.on(), hunter.step(number) if hunter else contextlib.nullcontext():
            log.scales.append(case.trainer.scaler.get_scale())
            loss, taken = case.trainer.step(batch)
        log.losses.append(loss.item())
        log.taken.append(taken)
        if (hunter and hunter.first) or (log.nan_step and number >= log.nan_step + past_nan):
            break
    return log


def _task(fault: Fault) -> review_task.ReviewTask | language_task.LanguageTask:
    return _reviews() if fault.model == "DistilBERT" else _stories()


def _healthy(fault: Fault, seed: int, recipe_name: str) -> FaultyTraining:
    task, language = _task(fault), fault.model == "LLaMA"
    size, bucket = (8, 1) if language else (16, batches.BUCKET)
    order = torch.Generator().manual_seed(seed)
    drawn = batches.shuffled(task.train, size, generator=order, bucket=bucket)
    stream = list(itertools.islice(drawn, fault.few or fault.steps))
    stream = list(itertools.islice(itertools.cycle(stream), fault.steps))
    model = task.new_model(seed)
    model.set_attn_implementation("eager")  # one operation after the other, on every device
    schedule = replace(task.settings.schedule, learning_rate=fault.rate)
    trainer = Trainer(model, recipe=find_recipe(recipe_name), device=CPU, schedule=schedule, steps=fault.steps)
    return FaultyTraining(trainer, stream)


@functools.cache
def _reviews() -> review_task.ReviewTask:
    return review_task.prepare(data.generated_reviews())


@functools.cache
def _stories() -> language_task.LanguageTask:
    return language_task.prepare(data.generated_prose(100_000))


def _by_name(*faults: Fault) -> dict[str, Fault]:
    return {fault.name: fault for fault in faults}


FAULTS = _by_name(
    Fault(
        "confident network",
        "DistilBERT",
        "bf16-mixed",
        sabotage.log_of_zero,
        symptom="The loss falls smoothly for dozens of steps, almost to zero. Then it is NaN, and stays NaN.",
        cause="The network grows confident: p rounds to 1, so log(1 - p) is -inf, and 0 times that is NaN.",
        remedy="Compute the cross-entropy from the logits, in float32, so that no probability is ever formed.",
        steps=80,
        rate=2e-3,
        few=4,
    ),
    Fault(
        "epsilon of Adam",
        "DistilBERT",
        "16-true",
        sabotage.nothing,
        symptom="The first loss is right. The second is NaN, whatever the learning rate.",
        cause="Adam adds 1e-8 to the root of v. In float16 both can be 0, and then the update is 0/0 or m/0.",
        remedy="Compute the update in float32, from master weights. Fused Adam also avoids the NaN.",
        mended="16-true-master",
        steps=6,
    ),
    Fault(
        "mask of -1e9",
        "DistilBERT",
        "16-mixed",
        sabotage.added_mask,
        symptom="The last step of each epoch is NaN. The scaler skips it and halves the scale.",
        cause="-1e9 is -inf in float16. A row that is all padding has nothing else, so its softmax is NaN.",
        remedy="Replace the score with the lowest finite number of the dtype, or drop the empty row.",
        steps=12,
    ),
    Fault(
        "bias of the keys",
        "DistilBERT",
        "16-mixed",
        sabotage.bias_of_the_keys,
        symptom="Every loss is NaN, from the first on. Each step halves the scale, and the weights never change.",
        cause="Query times key overflows before it is divided by the root of the width; the softmax gets inf - inf.",
        remedy="Scale the query first, or compute the scores in bfloat16.",
        steps=8,
    ),
    Fault(
        "twins in a batch",
        "DistilBERT",
        "32-true",
        sabotage.twins,
        symptom="In one step the loss is finite, but the weights after it are NaN. Everything is float32.",
        cause="Two equal texts are at distance 0, where the square root has an infinite slope: inf times 0.",
        remedy="Add an epsilon under the root, large enough for the dtype.",
        steps=12,
    ),
    Fault(
        "epsilon of a norm",
        "LLaMA",
        "16-true-master",
        sabotage.epsilon_of_a_norm,
        symptom="With padding in the batch, the first loss is NaN. Without padding, all is well.",
        cause="The norm's epsilon is 1e-8, which is 0 in float16. Padding is zeros, and 0 times 1/0 is NaN.",
        remedy="Compute the mean of the squares in float32, as LLaMA's own norm does.",
        steps=8,
    ),
    Fault(
        "clip before unscale",
        "DistilBERT",
        "16-mixed",
        sabotage.clip_first,
        symptom="The loss stays where it began. Nothing is NaN, and no step is skipped.",
        cause="The clip sees gradients that are 65,536 times too large, so the optimizer gets far too small ones.",
        remedy="Call unscale_ before the clip.",
        steps=60,
        rate=2e-3,
        silent=True,
    ),
    Fault(
        "bfloat16 weights",
        "LLaMA",
        "bf16-true",
        sabotage.nothing,
        symptom="The loss falls, but only about half as far as it could. Nothing is NaN.",
        cause="Most updates are smaller than half the gap between two bfloat16 numbers, and are rounded away.",
        remedy="Keep float32 weights, or an optimizer that keeps what rounding takes away.",
        mended="32-true",
        steps=24,
        rate=1e-4,
        silent=True,
    ),
    Fault(
        "stale scale",
        "LLaMA",
        "fp8-delayed",
        sabotage.stale_scale,
        symptom="The loss jumps up at the step where the run was resumed. Nothing is NaN.",
        cause="The FP8 layers go on with scales for smaller activations, so most values saturate.",
        remedy="Save and load the amax history with the weights, and train in training mode.",
        steps=16,
        rate=5e-3,
        silent=True,
    ),
)
