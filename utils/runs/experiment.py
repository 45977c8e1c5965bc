"""What every experiment does around its training loop: a run and its record, and what the records of many runs say.

An experiment says in a `Plan` what it trains on and what it measures afterwards; everything else is the same for all.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from utils import machine, measure, records
from utils.runs import cache, command_line, loaded_source, run_facts
from utils.training import training_loop
from utils.training.batches import Batch
from utils.training.checkpoints import SUFFIX, Clock, Place
from utils.training.optimizers import LostUpdates
from utils.training.recipes import KNOWN, Recipe
from utils.training.training_loop import History, Trainer
from utils.training.watch import PREFIX, LargestGradients, Watch, evenly
from utils.workloads import data, models
from utils.workloads.language_task import Task as LanguageTask
from utils.workloads.review_task import Task as ReviewTask

CHECKPOINT_EVERY = 200  # steps


@dataclass(frozen=True)
class Run:
    """A finished run: its record and the model as it ended, in the recipe's dtypes and on the run's device."""

    record: records.Record
    model: nn.Module


@dataclass(frozen=True)
class Plan:
    """One experiment on one task: what is drawn to train on, and what is measured when the training is over.

    `validate`, where there is one, measures every `epoch` steps.
    """

    name: str
    task: ReviewTask | LanguageTask
    texts: data.Reviews | data.Prose
    steps: int
    full_batch: Batch  # as wide as a batch can get: what it keeps for its backward pass is recorded
    draw: Callable[[int], Iterator[Batch]]  # from the seed: all batches, in order
    evaluate: Callable[[Trainer], dict]  # plain JSON values, which join the results
    module: str  # that makes the plan: what it loads is the code of the run, see `loaded_source`
    validate: Callable[[Trainer], float] | None = None
    epoch: int = 0


def run(
    plan: Plan,
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
    which share of its updates was lost, and how large the largest gradient of each step was.

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
    task, key = plan.task, record_key(plan, recipe, seed=seed, device=device, watch_steps=watch_steps)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # dropout draws from the global generator
        model, recipe = task.new_model(seed), recipe.seeded(seed)
        attention = models.fit_attention(model, device)
        schedule = task.settings.schedule
        trainer = Trainer(model, recipe=recipe, device=device, schedule=schedule, steps=plan.steps)
        saved = run_facts.saved_bytes(trainer, plan.full_batch)
        watch = None
        if watch_steps:
            steps = evenly(plan.steps, count=watch_steps)
            watch = Watch(trainer.model, trainer.optimizer, scaler=trainer.scaler, steps=steps)
        place = Place(None)
        if checkpoint:
            name = f"{plan.name}-{recipe.name}-{task.size}-{plan.texts.name}-seed{seed}"
            begun = run_key(plan, recipe, seed=seed, device=device)
            place = Place(checkpoint / f"{name}{SUFFIX}", key=begun, every=every)
        history, clock = place.resume(trainer)
        measure.reset_peak(device)
        meter = LostUpdates(trainer.model, trainer.optimizer)
        largest = LargestGradients(trainer.model, scaler=trainer.scaler)
        clock.start()
        with contextlib.ExitStack() as looking:
            for each in (meter, largest) if watch else ():
                looking.enter_context(each)
            _train(plan, trainer, history, seed=seed, watch=watch, place=place, clock=clock)
        clock.stop()
    found = {
        "planned_steps": plan.steps,
        "attention": attention,
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,  # of all threads: what a shared machine can still compare
        "resumed_at": clock.resumed_at,  # steps
        "memory": run_facts.memory(trainer, saved),  # before what follows, which would raise the peak
        **run_facts.facts(trainer, history),
        "rates": run_facts.rates(trainer, history),
        **({"lost_updates": meter.shares()} if watch else {}),
        **plan.evaluate(trainer),
    }
    samples = run_facts.samples(history)
    if watch:
        samples |= {"exponents": watch.as_json(), "largest_gradient": largest.values()[: run_facts.LARGEST]}
    record = records.Record(
        experiment=f"{PREFIX if watch else ''}{plan.name}",
        recipe=recipe.name,
        size=task.size,
        seeds=(seed,),
        settings=asdict(task.settings),
        results=found,
        samples=samples,
        data=plan.texts.source,
        data_name=plan.texts.name,
        weights=task.weights,
        device=machine.facts(device),
        key=key,
        **(provenance or records.provenance()),
    )
    place.clear()
    return Run(record, trainer.model)


def _train(
    plan: Plan,
    trainer: Trainer,
    history: History,
    *,
    seed: int,
    watch: Watch | None,
    place: Place,
    clock: Clock,
) -> None:
    """Take the steps that the history lacks, from one epoch's end or checkpoint to the next."""
    drawn = plan.draw(seed)
    for _ in itertools.islice(drawn, history.steps):
        pass  # what it has seen before
    pauses = [count for count in (plan.epoch if plan.validate else 0, place.every) if count]
    label = f"{trainer.recipe.name} seed {seed}"
    while history.steps < plan.steps:
        stop = min([plan.steps, *((history.steps // count + 1) * count for count in pauses)])
        training_loop.fine_tune(trainer, drawn, steps=stop, label=label, watch=watch, history=history)
        if history.steps < stop:  # the loss is not finite
            return
        if plan.validate and stop % plan.epoch == 0:
            history.validation.append(plan.validate(trainer))
        if place.every and stop % place.every == 0 and stop < plan.steps:
            place.save(trainer, history, clock)


def record_key(plan: Plan, recipe: Recipe, *, seed: int, device: torch.device, watch_steps: int | None = None) -> str:
    """Return a key that is the same for runs whose records need not both be made.

    Two times 16 digits: the circumstances of the run, among them the machine with its number of threads and whether the
    run is watched, and the digest of the code.
    """
    circumstances = (*_circumstances(plan, recipe, seed=seed, device=device), machine.facts(device), watch_steps)
    return f"{cache.key(*circumstances)}-{loaded_source.digest(plan.module)}"


def run_key(plan: Plan, recipe: Recipe, *, seed: int, device: torch.device) -> str:
    """Return 16 digits that are the same for runs that end with the same weights, as far as one can know before."""
    circumstances = _circumstances(plan, recipe, seed=seed, device=device)
    return cache.key(*circumstances, loaded_source.digest(plan.module))


def _circumstances(plan: Plan, recipe: Recipe, *, seed: int, device: torch.device) -> tuple:
    """Return what decides the weights beside the code, as JSON values."""
    settings, weights = asdict(plan.task.settings), plan.task.weights
    return plan.name, repr(recipe), seed, settings, weights, data.fingerprint(plan.texts.all), device.type


def commanded(
    plan: Plan,
    options: command_line.Options,
    *,
    run: Callable[..., Run],
    table: Callable[[list[records.Record]], str],
    note: str = "",
) -> command_line.Task:
    """Return what a command line does with a plan: `run(recipe, ...)` is the `run` of the experiment's module."""
    known = records.provenance(options.command)  # once: a long comparison is one state of the code
    how = {"device": options.device, "watch_steps": options.watch}

    def one(recipe: Recipe, seed: int) -> records.Record:
        return run(recipe, seed=seed, provenance=known, checkpoint=options.checkpoint, **how).record

    def key(recipe: Recipe, seed: int) -> str:
        return record_key(plan, recipe, seed=seed, **how)

    task = plan.task
    return command_line.Task(plan.texts.source, task.weights, task.settings.batch, one, key, table, note)


@dataclass(frozen=True)
class Difference:
    """How much a recipe differs from another, seed by seed: mean and half the 95 % Student interval of the mean.

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
        """Whether the interval leaves out 0; never for a single seed."""
        return self.half is not None and abs(self.mean) > self.half


def against(
    finished: list[records.Record], *, baseline: str = "32-true", value: str = "accuracy"
) -> dict[str, Difference]:
    """Return by recipe the paired differences of one of the results to the baseline, in the order of `KNOWN`.

    Paired: runs of one seed begin with the same weights and see the same batches, so most of what a seed decides
    cancels. Seeds that only one of the two has are left out, and so is a recipe that shares none with the baseline.
    """
    found: dict[str, dict[int, float]] = {}
    for record in finished:
        number = record.results[value]
        for seed in record.seeds:
            found.setdefault(record.recipe, {})[seed] = math.nan if number is None else number
    base, differences = found.get(baseline, {}), {}
    for name in [name for name in KNOWN if name in found and name != baseline]:
        seeds = tuple(sorted(found[name].keys() & base.keys()))
        if seeds:
            by_seed = tuple(found[name][seed] - base[seed] for seed in seeds)
            differences[name] = Difference(name, baseline, seeds, by_seed, *measure.mean_interval(by_seed))
    return differences


def interval(values: Iterable[float | None], *, digits: int, sign: str = "") -> str:
    """Return "mean ± half the 95 % Student interval", the mean alone for one value, "nan" where one is not finite.

    None stands for such a value in a record that was read from the disk.
    """
    values = list(values)
    if any(value is None or not math.isfinite(value) for value in values):
        return "nan"
    mean, half = measure.mean_interval(values)
    return f"{mean:{sign}.{digits}f}" if half is None else f"{mean:{sign}.{digits}f} ± {half:.{digits}f}"
