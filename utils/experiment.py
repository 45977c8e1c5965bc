"""What every experiment does around its training loop: a run and its record, the cache, and the table of runs.

An experiment says in a `Plan` what it trains on and what it measures afterwards; everything else is the same for all.
"""

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from utils import cache, command, data, fine_tuning, machine, measure, models, records
from utils.batches import Batch
from utils.checkpoints import SUFFIX, Clock, Place
from utils.fine_tuning import History, Trainer
from utils.language_task import Task as LanguageTask
from utils.optimizers import LostUpdates
from utils.recipes import RECIPES, Recipe
from utils.review_task import Task as ReviewTask
from utils.watch import PREFIX, LargestGradients, Watch, evenly

CODE_OF_A_RUN = (  # what decides the trained weights, beside the task and the module of an experiment
    *("utils.grammar", "utils.data", "utils.vocabulary", "utils.batches", "utils.models", "utils.recipes"),
    *("utils.fast_half", "utils.fine_tuning", "utils.experiment", "utils.records"),
    *("utils.optimizers", "utils.blockwise", "utils.fake_quantize", "utils.rounding_kernels"),
)
CHECKPOINT_EVERY = 200  # steps
CURVE, STEPS = 200, 500  # most points of the loss curve and of the step times that a record keeps
LARGEST = 2_000  # first steps whose largest gradient a record keeps


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
    modules: tuple[str, ...]  # whose source decides the trained weights, beside `CODE_OF_A_RUN`
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
    experiment, "watched-..." (see `utils.watch`): its losses are the same, its times are not. It also says which share
    of its updates was lost, and how large the largest gradient of each step was.

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
    task = plan.task
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # dropout draws from the global generator
        model, recipe = task.new_model(seed), recipe.seeded(seed)
        attention = models.fit_attention(model, device)
        schedule = task.settings.schedule
        trainer = Trainer(model, recipe=recipe, device=device, schedule=schedule, steps=plan.steps)
        saved = saved_bytes(trainer, plan.full_batch)
        watch = None
        if watch_steps:
            steps = evenly(plan.steps, count=watch_steps)
            watch = Watch(trainer.model, trainer.optimizer, scaler=trainer.scaler, steps=steps)
        place = Place(None)
        if checkpoint:
            name = f"{plan.name}-{recipe.name}-{task.size}-{plan.texts.name}-seed{seed}"
            key = _key(plan, recipe, seed=seed, device=device, modules=("utils.checkpoints",))
            place = Place(checkpoint / f"{name}{SUFFIX}", key=key, every=every)
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
    results = {
        "planned_steps": plan.steps,
        "attention": attention,
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,  # of all threads: what a shared machine can still compare
        "resumed_at": clock.resumed_at,  # steps
        "memory": _memory(trainer, saved),  # before the evaluation, which would raise the peak
        **_facts(trainer, history),
        **({"lost_updates": meter.shares()} if watch else {}),
        **plan.evaluate(trainer),
    }
    samples = _samples(history)
    if watch:
        samples |= {"exponents": watch.as_json(), "largest_gradient": largest.values()[:LARGEST]}
    record = records.Record(
        experiment=f"{PREFIX if watch else ''}{plan.name}",
        recipe=recipe.name,
        size=task.size,
        seeds=(seed,),
        settings=asdict(task.settings),
        results=results,
        samples=samples,
        data=plan.texts.source,
        data_name=plan.texts.name,
        weights=task.weights,
        device=machine.facts(device),
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
        fine_tuning.fine_tune(trainer, drawn, steps=stop, label=label, watch=watch, history=history)
        if history.steps < stop:  # the loss is not finite
            return
        if plan.validate and stop % plan.epoch == 0:
            history.validation.append(plan.validate(trainer))
        if place.every and stop % place.every == 0 and stop < plan.steps:
            place.save(trainer, history, clock)


def _key(plan: Plan, recipe: Recipe, *, seed: int, device: torch.device, modules: tuple[str, ...] = ()) -> str:
    """Return 16 digits that are the same for runs that end with the same weights, as far as one can know before."""
    parts = (
        plan.name,
        repr(recipe),
        seed,
        asdict(plan.task.settings),
        plan.task.weights,
        data.fingerprint(plan.texts.all),
        device.type,
    )
    return cache.key(*parts, modules=(*CODE_OF_A_RUN, *plan.modules, *modules))


def _facts(trainer: Trainer, history: fine_tuning.History) -> dict:
    return {
        "steps": history.steps,
        "nan_step": history.nan_step,
        "skipped_steps": history.skipped,
        "validation": history.validation,
        "loss_scale": trainer.scaler.get_scale() if trainer.recipe.needs_loss_scaling else None,
        "step_ms": measure.Timing(tuple(history.milliseconds)).median,
        "parameters": models.parameters(trainer.model),
        "emulated": trainer.recipe.emulated(trainer.device),
    }


def _memory(trainer: Trainer, saved: measure.SavedBytes) -> dict:
    """Return bytes: tensors as they are after the last step, and what one full batch saved for its backward pass."""
    peak, parameters = measure.peak(trainer.device), list(trainer.model.parameters())
    return {
        "weights": measure.tensor_bytes(parameters),
        "gradients": measure.tensor_bytes(parameter.grad for parameter in parameters),
        "optimizer": measure.tensor_bytes(measure.optimizer_tensors(trainer.optimizer)),
        "saved_activations": saved.total,
        "saved_by_dtype": {str(dtype).removeprefix("torch."): count for dtype, count in saved.by_dtype.items()},
        "peak_allocated": peak.allocated,
        "peak_reserved": peak.reserved,
    }


def saved_bytes(trainer: Trainer, batch: Batch) -> measure.SavedBytes:
    """Count what the forward pass of a batch keeps for the backward pass.

    With eager attention, so that the count is the same on every device.
    """
    usual = trainer.model.config._attn_implementation
    trainer.model.set_attn_implementation("eager")
    try:
        with trainer.recipe.on(trainer.device), measure.SavedBytes(trainer.model) as saved:
            trainer.loss(batch.to(trainer.device))
    finally:
        trainer.model.set_attn_implementation(usual)
    return saved


def _samples(history: fine_tuning.History) -> dict:
    """Thin the curves to what a figure needs: [step, loss] and [step, milliseconds] at evenly spaced steps."""
    return {
        "loss": _thin(history.losses, CURVE, digits=4),
        "step_ms": _thin(history.milliseconds, STEPS, digits=2),
        "loss_scale": [list(change) for change in history.scales],
    }


def _thin(values: list[float], most: int, *, digits: int) -> list[list]:
    stride = max(1, -(-len(values) // most))
    return [[step, round(value, digits)] for step, value in list(enumerate(values, 1))[::stride]]


def summary(
    finished: list[records.Record], *, measured: Callable[[list[dict]], dict[str, str]]
) -> list[dict[str, str]]:
    """Return the results of all finished runs as texts by heading, one row a recipe in the order of `RECIPES`.

    `measured` gives an experiment's own columns from the results of one recipe. Times are means over the seeds.
    """
    rows = []
    for name in [name for name in RECIPES if any(record.recipe == name for record in finished)]:
        runs = [record.results for record in finished if record.recipe == name]
        memory, scale = runs[-1]["memory"], runs[-1]["loss_scale"]
        kinds = {"weights": "weights", "gradients": "gradients", "optimizer": "optimizer"}
        kinds |= {"activations": "saved_activations"}
        if memory["peak_allocated"]:
            kinds |= {"peak allocated": "peak_allocated", "peak reserved": "peak_reserved"}
        rows.append(
            {
                "recipe": name,
                **measured(runs),
                "seconds": f"{measure.mean_interval(result['seconds'] for result in runs)[0]:.1f}",
                "processor s": f"{measure.mean_interval(result['cpu_seconds'] for result in runs)[0]:.1f}",
                "ms/step": f"{measure.mean_interval(result['step_ms'] for result in runs)[0]:.1f}",
                **{heading: f"{memory[kind] / 1e6:.2f} MB" for heading, kind in kinds.items()},
                "loss scale": "-" if scale is None else f"{scale:.0f}",
                "skipped": " ".join(str(result["skipped_steps"]) for result in runs),
                "NaN at step": " ".join(str(result["nan_step"] or "-") for result in runs),
            }
        )
    return rows


def interval(values: Iterable[float | None], *, digits: int) -> str:
    """Return "mean ± half the 95 % Student interval", the mean alone for one value, "nan" where one is not finite.

    None stands for such a value in a record that was read from the disk.
    """
    values = list(values)
    if any(value is None or not math.isfinite(value) for value in values):
        return "nan"
    mean, half = measure.mean_interval(values)
    return f"{mean:.{digits}f}" if half is None else f"{mean:.{digits}f} ± {half:.{digits}f}"


def table(rows: list[dict[str, str]], finished: list[records.Record], *, about: str) -> str:
    """Return the rows of `summary` as aligned text, with a line that says what was measured and what ± means."""
    seeds = max(sum(record.recipe == row["recipe"] for record in finished) for row in rows)
    note = "one seed, so no interval"
    if seeds > 1:
        note = f"± is the 95 % Student interval of the mean over {seeds} seeds"
    lines = command.columns([tuple(rows[0]), *(tuple(row.values()) for row in rows)])
    return f"{lines}\n{about}; {note}"


@dataclass(frozen=True)
class Kept:
    """A trained model on its device, in evaluation mode, with the record of its run; `cached`: not trained now."""

    model: nn.Module
    record: records.Record
    cached: bool


def kept(
    plan: Plan,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    load: Callable[..., nn.Module],
) -> Kept:
    """Return the model of a run, from the cache where the same run was made before.

    The same run: plan, recipe, seed, kind of device, texts, and the source of the plan's modules and `CODE_OF_A_RUN`.
    `load(folder, dtype=...)` reads what `save_pretrained` wrote.
    """
    task, key = plan.task, _key(plan, recipe, seed=seed, device=device)
    folder = cache.root() / f"{plan.name}-{recipe.name}-{task.size}-{plan.texts.name}-seed{seed}-{key}"
    cached = (folder / "config.json").is_file()
    if cached:
        model, record = load(folder, dtype=recipe.weights), records.load(folder / "run.json")
    else:
        finished = run(plan, recipe, device=device, seed=seed)
        model, record = finished.model, finished.record
        try:
            cache.keep(folder, lambda place: _write(place, finished))
        except OSError as error:
            warnings.warn(f"the trained model is not kept, {cache.root()}: {error.strerror}", stacklevel=3)
    models.fit_attention(model, device)
    return Kept(model.to(device).eval(), record, cached)


def _write(folder: Path, finished: Run) -> None:
    with models.quiet():
        finished.model.save_pretrained(folder)
    records.save(finished.record, folder).rename(folder / "run.json")
