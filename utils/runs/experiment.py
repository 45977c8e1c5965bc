"""Run an experiment and record it; compare the records of many runs.

An experiment says in a `RunPlan` what it trains on and what it measures afterwards; everything else is the same for
all: `run` does `set_up`, `train`, `measure_run` and `to_record`.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from utils import machine, measure, records
from utils.runs import cache, loaded_source, run_facts
from utils.training import training_loop
from utils.training.batches import Batch
from utils.training.checkpoints import SUFFIX, CheckpointPlace, Clock
from utils.training.meters import LargestGradients, LostUpdates
from utils.training.recipes import ALL_RECIPES, Recipe
from utils.training.training_loop import History, Trainer
from utils.training.watch import PREFIX, Watch, evenly
from utils.workloads import data, models
from utils.workloads.task import TrainingTask

CHECKPOINT_EVERY = 200  # steps


@dataclass(frozen=True)
class Run:
    """A finished run: its record and the model as it ended, in the recipe's dtypes and on the run's device."""

    record: records.Record
    model: nn.Module


@dataclass(frozen=True)
class RunPlan:
    """One experiment on one task: the batches that it trains on, and what it measures afterwards.

    `validate`, where there is one, measures every `epoch` steps.
    """

    name: str
    task: TrainingTask
    steps: int
    full_batch: Batch  # as wide as a batch can get: the bytes that it saves for backward are recorded
    draw: Callable[[int], Iterator[Batch]]  # from the seed: all batches, in order
    evaluate: Callable[[Trainer], dict]  # plain JSON values, which become part of the results
    module: str  # name of the module that makes the plan; all that it imports is the run's code, see `loaded_source`
    validate: Callable[[Trainer], float] | None = None
    epoch: int = 0
    note: str = ""  # that a command prints below device, size, data and weights


@dataclass(frozen=True)
class Training:
    """A run that is set up, for `train`; `saved` are the bytes that one full batch saves for its backward pass."""

    plan: RunPlan
    seed: int
    trainer: Trainer
    attention: str  # the implementation that the device got
    saved: measure.SavedBytes
    place: CheckpointPlace


def run(
    plan: RunPlan,
    recipe: Recipe,
    *,
    device: torch.device,
    seed: int = 0,
    provenance: dict | None = None,
    watch_steps: int | None = None,
    checkpoint: Path | None = None,
    every: int = CHECKPOINT_EVERY,
) -> Run:
    """Train the plan's model in one recipe from one seed, measure it, and return its record and the model.

    `watch_steps` is the number of steps, evenly spaced, whose exponents are counted. The record is then one of another
    experiment, "watched-..." (see `utils.training.watch`): its losses are the same, its times are not. It also says
    what share of its updates was lost, and how large the largest gradient of each step was.

    `checkpoint` is a folder: every `every` steps the run leaves there what it needs to go on, in a file of its own
    name. If it finds that file, it goes on from it, and ends with the weights and the losses that it would have had
    without a break, bit for bit. The file is removed when the run is done.

    A loss that is not finite is a result: the run stops, the record names the step, and the model is measured all the
    same.
    Raises: ValueError when a run is to be watched and to keep checkpoints; checkpoints.Refused when the file is broken
    or not of this plan, recipe, seed, kind of device and state of the code.
    """
    if watch_steps and checkpoint:
        raise ValueError("a watched run keeps no checkpoint: its histograms would be lost; leave out one of the two")
    key = record_key(plan, recipe, seed=seed, device=device, watch_steps=watch_steps)
    with set_up(plan, recipe, device=device, seed=seed, checkpoint=checkpoint, every=every) as training:
        trainer = training.trainer
        steps = evenly(plan.steps, count=watch_steps) if watch_steps else ()
        watch = Watch(trainer.model, trainer.optimizer, scaler=trainer.scaler, steps=steps) if steps else None
        lost = LostUpdates(trainer.model, trainer.optimizer)
        largest = LargestGradients(trainer.model, scaler=trainer.scaler)
        history, clock = train(training, watch=watch, watchers=(lost, largest) if watch else ())
    results, samples = measure_run(training, history, clock), run_facts.thin_curves(history)
    if watch:
        results["lost_updates"] = lost.shares()
        samples |= {"exponents": watch.as_json(), "largest_gradient": largest.values()[: run_facts.LARGEST]}
    name = f"{PREFIX if watch else ''}{plan.name}"
    record = to_record(training, experiment=name, results=results, samples=samples, key=key, provenance=provenance)
    training.place.clear()
    return Run(record, trainer.model)


@contextlib.contextmanager
def set_up(
    plan: RunPlan,
    recipe: Recipe,
    *,
    device: torch.device,
    seed: int = 0,
    checkpoint: Path | None = None,
    every: int = CHECKPOINT_EVERY,
) -> Iterator[Training]:
    """Make the model and its trainer from a seed; train inside the context, where torch's generators are the run's own.

    Dropout draws from the global generators: they are seeded here, and put back when the context ends. `checkpoint` and
    `every` are as in `run`.
    """
    task = plan.task
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        model, recipe = task.new_model(seed), recipe.seeded(seed)
        attention = models.fit_attention(model, device)
        trainer = Trainer(model, recipe=recipe, device=device, schedule=task.settings.schedule, steps=plan.steps)
        saved = run_facts.count_saved_bytes(trainer, plan.full_batch)
        place = CheckpointPlace(None)
        if checkpoint:
            name = f"{plan.name}-{recipe.name}-{task.size}-{task.texts.name}-seed{seed}{SUFFIX}"
            place = CheckpointPlace(checkpoint / name, key=run_key(plan, recipe, seed=seed, device=device), every=every)
        yield Training(plan, seed, trainer, attention, saved, place)


def train(
    training: Training, *, watch: Watch | None = None, watchers: Sequence[contextlib.AbstractContextManager] = ()
) -> tuple[History, Clock]:
    """Take all steps that the checkpoint lacks, if there is one; return what happened and how long it took.

    `watch` looks into single steps. `watchers` are entered before the first step and left after the last.
    """
    history, clock = training.place.resume(training.trainer)
    measure.reset_peak(training.trainer.device)
    clock.start()
    with contextlib.ExitStack() as entered:
        for watcher in watchers:
            entered.enter_context(watcher)
        _take_steps(training, history, clock, watch)
    clock.stop()
    return history, clock


def _take_steps(training: Training, history: History, clock: Clock, watch: Watch | None) -> None:
    """Carry the history on to the last step, from one epoch's end or checkpoint to the next."""
    plan, trainer, place = training.plan, training.trainer, training.place
    drawn = plan.draw(training.seed)
    for _ in itertools.islice(drawn, history.steps):
        pass  # batches that the run has trained on before
    pauses = [count for count in (plan.epoch if plan.validate else 0, place.every) if count]
    label = f"{trainer.recipe.name} seed {training.seed}"
    while history.steps < plan.steps:
        stop = min([plan.steps, *((history.steps // count + 1) * count for count in pauses)])
        training_loop.fine_tune(trainer, drawn, steps=stop, label=label, watch=watch, history=history)
        if history.steps < stop:  # the loss is not finite
            return
        if plan.validate and stop % plan.epoch == 0:
            history.validation.append(plan.validate(trainer))
        if place.every and stop % place.every == 0 and stop < plan.steps:
            place.save(trainer, history, clock)


def measure_run(training: Training, history: History, clock: Clock) -> dict:
    """Return the results of a run that is trained: its time, bytes and rates, and what its plan evaluates."""
    trainer = training.trainer
    return {
        "planned_steps": training.plan.steps,
        "attention": training.attention,
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,  # of all threads: what a shared machine can still compare
        "resumed_at": clock.resumed_at,  # steps
        "memory": run_facts.measure_memory(trainer, training.saved),  # before what follows, which would raise the peak
        **run_facts.collect_facts(trainer, history),
        "rates": run_facts.measure_rates(trainer, history),
        **training.plan.evaluate(trainer),
    }


def to_record(
    training: Training,
    *,
    experiment: str,
    results: dict,
    samples: dict,
    key: str | None = None,
    provenance: dict | None = None,
) -> records.Record:
    """Return the record of a run: `results` and `samples`, with the plan, seed, device and provenance of the run."""
    task = training.plan.task
    return records.Record(
        experiment=experiment,
        recipe=training.trainer.recipe.name,
        size=task.size,
        seed=training.seed,
        settings=asdict(task.settings),
        results=results,
        samples=samples,
        data=task.texts.source,
        data_name=task.texts.name,
        weights=task.weights,
        device=machine.facts(training.trainer.device),
        key=key,
        **(provenance or records.provenance()),
    )


def record_key(
    plan: RunPlan, recipe: Recipe, *, seed: int, device: torch.device, watch_steps: int | None = None
) -> str:
    """Return a key that is the same for runs that need only one record.

    It has twice 16 digits: one part for the circumstances of the run, which include the machine with its number of
    threads and whether the run is watched, and one for the code.
    """
    circumstances = (*_list_circumstances(plan, recipe, seed=seed, device=device), machine.facts(device), watch_steps)
    return f"{cache.key(*circumstances)}-{loaded_source.digest(plan.module)}"


def run_key(plan: RunPlan, recipe: Recipe, *, seed: int, device: torch.device) -> str:
    """Return 16 digits that are the same for runs that should end with the same weights."""
    circumstances = _list_circumstances(plan, recipe, seed=seed, device=device)
    return cache.key(*circumstances, loaded_source.digest(plan.module))


def _list_circumstances(plan: RunPlan, recipe: Recipe, *, seed: int, device: torch.device) -> tuple:
    """Return what decides the final weights, apart from the code, as JSON values."""
    settings, weights = asdict(plan.task.settings), plan.task.weights
    return plan.name, repr(recipe), seed, settings, weights, data.fingerprint(plan.task.texts.all), device.type


@dataclass(frozen=True)
class PairedDifference:
    """The differences of a recipe from another, seed by seed: their mean and half its 95 % Student interval.

    `half` is None for a single seed. `by_seed` are the differences, in the order of `seeds`.
    """

    recipe: str
    baseline: str
    seeds: tuple[int, ...]
    by_seed: tuple[float, ...]
    mean: float
    half: float | None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0; never for a single seed."""
        return self.half is not None and abs(self.mean) > self.half


def compare_by_seed(
    finished: list[records.Record], *, baseline: str = "32-true", value: str = "accuracy"
) -> dict[str, PairedDifference]:
    """Return by recipe, in the order of `ALL_RECIPES`, the paired differences of one result from the baseline's.

    Runs of one seed begin with the same weights and see the same batches, so most of what a seed decides cancels. Seeds
    that only one of the two has are left out, and so is a recipe that shares no seed with the baseline.
    """
    values: dict[str, dict[int, float]] = {}  # by recipe and seed
    for record in finished:
        number = record.results[value]
        values.setdefault(record.recipe, {})[record.seed] = math.nan if number is None else number
    base, differences = values.get(baseline, {}), {}
    for name in [name for name in ALL_RECIPES if name in values and name != baseline]:
        seeds = tuple(sorted(values[name].keys() & base.keys()))
        if seeds:
            by_seed = tuple(values[name][seed] - base[seed] for seed in seeds)
            differences[name] = PairedDifference(name, baseline, seeds, by_seed, *measure.mean_interval(by_seed))
    return differences


def format_interval(values: Iterable[float | None], *, digits: int, sign: str = "") -> str:
    """Return "mean ± half the 95 % Student interval", the mean alone for one value, "nan" where one is not finite.

    None stands for such a value in a record that was read from the disk.
    """
    values = list(values)
    if any(value is None or not math.isfinite(value) for value in values):
        return "nan"
    mean, half = measure.mean_interval(values)
    return f"{mean:{sign}.{digits}f}" if half is None else f"{mean:{sign}.{digits}f} ± {half:.{digits}f}"
