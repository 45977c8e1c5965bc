"""Fine-tune a DistilBERT on movie reviews, in any recipe.

    python -m utils.distilbert --recipe 32-true bf16-mixed 16-mixed --size small --seeds 2 --data DIR --record DIR

`run` is the only place of the book that trains a DistilBERT; `trained` hands a finished one to the other chapters.
"""

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import nn

from utils import (
    batches,
    cache,
    command,
    data,
    fine_tuning,
    machine,
    measure,
    models,
    recipes,
    records,
    review_task,
)
from utils.recipes import RECIPES, Recipe
from utils.review_task import Task

NAME = "distilbert"
DEFAULT_RECIPES = ("32-true", "bf16-mixed", "16-mixed")
CODE_OF_A_RUN = (  # what decides the weights that `trained` returns
    *("utils.grammar", "utils.data", "utils.vocabulary", "utils.batches", "utils.models", "utils.recipes"),
    *("utils.fast_half", "utils.fine_tuning", "utils.review_task", "utils.distilbert", "utils.records"),
)
TIMED = replace(review_task.TINY, vocabulary=4_000, width=256, heads=4, hidden=1_024)  # the small shape of `step_times`
CURVE, STEPS = 200, 500  # most points of the loss curve and of the step times that a record keeps


@dataclass(frozen=True)
class Run:
    """A finished run: its record and the model as it ended, in the recipe's dtypes and on the run's device."""

    record: records.Record
    model: nn.Module


def run(recipe: Recipe, *, task: Task, device: torch.device, seed: int = 0, provenance: dict | None = None) -> Run:
    """Fine-tune a DistilBERT in one recipe from one seed, measure it, and return its record and the model.

    A loss that is not finite is a result: the run stops, the record names the step, and the accuracy is measured
    all the same.
    """
    settings = task.settings
    steps = settings.epochs * batches.count(len(task.train), settings.batch)
    validation: list[float] = []
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # dropout draws from the global generator
        model = task.new_model(seed)
        attention = models.fit_attention(model, device)
        trainer = fine_tuning.Trainer(model, recipe=recipe, device=device, schedule=settings.schedule, steps=steps)
        saved = saved_bytes(trainer, task)
        measure.reset_peak(device)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        drawn = _training_batches(trainer, task, seed=seed, validation=validation)
        history = fine_tuning.fine_tune(trainer, drawn, steps=steps, label=f"{recipe.name} seed {seed}")
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    results = {
        "planned_steps": steps,
        "attention": attention,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,  # of all threads: what a shared machine can still compare
        "validation": validation,
        "memory": _memory(trainer, saved),  # before the evaluation, which would raise the peak
        **_results(trainer, history, task),
    }
    record = records.Record(
        experiment=NAME,
        recipe=recipe.name,
        size=task.size,
        seeds=(seed,),
        settings=asdict(settings),
        results=results,
        samples=_samples(history),
        data=task.reviews.source,
        data_name=task.reviews.name,
        weights=task.weights,
        device=machine.facts(device),
        **(provenance or records.provenance()),
    )
    return Run(record, trainer.model)


def _results(trainer: fine_tuning.Trainer, history: fine_tuning.History, task: Task) -> dict:
    recipe, test = trainer.recipe, batches.ordered(task.test, 4 * task.settings.batch)
    return {
        "steps": history.steps,
        "nan_step": history.nan_step,
        "skipped_steps": history.skipped,
        "loss_scale": trainer.scaler.get_scale() if recipe.needs_loss_scaling else None,
        "step_ms": measure.Timing(tuple(history.milliseconds)).median,
        "parameters": models.parameters(trainer.model),
        "emulated": recipe.emulated(trainer.device),
        "n_test": len(task.test),
        "accuracy": fine_tuning.accuracy(trainer.model, test, recipe=recipe, device=trainer.device),
    }


def _memory(trainer: fine_tuning.Trainer, saved: measure.SavedBytes) -> dict:
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


def _training_batches(
    trainer: fine_tuning.Trainer, task: Task, *, seed: int, validation: list[float]
) -> Iterator[batches.Batch]:
    """Yield the batches of all epochs; after each epoch note the accuracy on the validation part, if there is one."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(task.settings.epochs):
        yield from batches.shuffled(task.train, task.settings.batch, generator=generator)
        if len(task.validation):
            held_out = batches.ordered(task.validation, 4 * task.settings.batch)
            share = fine_tuning.accuracy(trainer.model, held_out, recipe=trainer.recipe, device=trainer.device)
            validation.append(share)


def saved_bytes(trainer: fine_tuning.Trainer, task: Task) -> measure.SavedBytes:
    """Count what the forward pass of one full batch keeps for the backward pass.

    With eager attention and every review at full length, so that the count is the same on every device.
    """
    rows = list(range(min(task.settings.batch, len(task.train))))
    batch = batches.pad(task.train, rows, length=task.settings.max_length).to(trainer.device)
    usual = trainer.model.config._attn_implementation
    trainer.model.set_attn_implementation("eager")
    try:
        with trainer.recipe.on(trainer.device), measure.SavedBytes(trainer.model) as saved:
            trainer.loss(batch)
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


def summary(finished: list[records.Record]) -> list[dict[str, str]]:
    """Return the results of all finished runs as texts by heading, one row a recipe in the order of `RECIPES`.

    Accuracies carry the 95 % Student interval over the seeds; times are means over the seeds.
    """
    rows = []
    for name in [name for name in RECIPES if any(record.recipe == name for record in finished)]:
        runs = [record.results for record in finished if record.recipe == name]
        memory, scale = runs[-1]["memory"], runs[-1]["loss_scale"]
        share, half = measure.mean_interval(100 * result["accuracy"] for result in runs)
        kinds = {"weights": "weights", "gradients": "gradients", "optimizer": "optimizer"}
        kinds |= {"activations": "saved_activations"}
        if memory["peak_allocated"]:
            kinds |= {"peak allocated": "peak_allocated", "peak reserved": "peak_reserved"}
        rows.append(
            {
                "recipe": name,
                "accuracy %": f"{share:.1f}" if half is None else f"{share:.1f} ± {half:.1f}",
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


def table(finished: list[records.Record]) -> str:
    """Return `summary` as aligned text, with a line that says what the intervals are."""
    rows = summary(finished)
    seeds = max(sum(record.recipe == row["recipe"] for record in finished) for row in rows)
    note = "one seed, so no interval"
    if seeds > 1:
        note = f"± is the 95 % Student interval of the mean over {seeds} seeds"
    lines = command.columns([tuple(rows[0]), *(tuple(row.values()) for row in rows)])
    return f"{lines}\naccuracy on {finished[-1].results['n_test']:,} test reviews; {note}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return command.main(arguments, program=NAME, recipes=DEFAULT_RECIPES, prepare=_prepared)


def _prepared(options: command.Options) -> command.Task:
    reviews = data.reviews(options.data, size=options.size)
    settings = review_task.settings_for(options.size, reviews)
    if options.batch:
        settings = replace(settings, batch=options.batch)
    task = review_task.prepare(reviews, size=options.size, settings=settings, weights=options.weights)
    known = records.provenance(options.command)  # once: a long comparison is one state of the code

    def one(recipe: Recipe, seed: int) -> records.Record:
        return run(recipe, task=task, device=options.device, seed=seed, provenance=known).record

    return command.Task(reviews.source, task.weights, settings.batch, one, table)


@dataclass(frozen=True)
class StepTime:
    """The time of one training step in one recipe; `emulated` where the device lacks its products."""

    recipe: str
    timing: measure.Timing
    emulated: bool


def step_times(
    names: Iterable[str] = tuple(RECIPES),
    *,
    device: torch.device | None = None,
    size: str | None = None,
    repeats: int = 5,
) -> list[StepTime]:
    """Time one training step in each recipe on random tokens: 12 x 512 at full size, 16 x 64 at small.

    The small shape is wider than the one that is fine-tuned, or the time would be all overhead.
    """
    device = device or machine.device()
    full = machine.size(size, on=device) == "full"
    rows, length = (12, 512) if full else (16, 64)
    shape = models.Shape() if full else TIMED
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, shape.vocabulary, (rows, length), generator=generator)
    labels = torch.randint(2, (rows,), generator=generator)
    batch = batches.Batch(ids, torch.ones_like(ids), labels).to(device)
    times = []
    for name in names:
        chosen, model = recipes.recipe(name), models.distilbert(shape)
        models.fit_attention(model, device)
        schedule = fine_tuning.Schedule(learning_rate=1e-5)
        trainer = fine_tuning.Trainer(model, recipe=chosen, device=device, schedule=schedule, steps=repeats + 3)
        with chosen.on(device):
            timing = measure.time_call(lambda: trainer.step(batch), device=device, warmup=2, repeats=repeats)  # noqa: B023
        times.append(StepTime(name, timing, chosen.emulated(device)))
    return times


@dataclass(frozen=True)
class Trained:
    """A fine-tuned model in evaluation mode, its tokeniser, the reviews it was tested on, and the record of its run."""

    model: nn.Module
    tokenizer: object
    texts: list[str]
    labels: list[int]
    record: records.Record
    cached: bool  # False: trained by this call


def trained(
    source: str | None = None,
    *,
    recipe: str = "32-true",
    size: str = "small",
    seed: int = 0,
    device: torch.device | None = None,
) -> Trained:
    """Return a DistilBERT fine-tuned by `run`, from the cache where the same run was made before.

    `source` is "generated", a folder with reviews, or None for what `utils.data.reviews` finds.
    Raises: ValueError when the folder or the recipe is unknown.
    """
    device = device or machine.device()
    chosen = recipes.recipe(recipe)
    reviews = data.generated_reviews(size) if source == "generated" else data.reviews(source, size=size)
    task = review_task.prepare(reviews, size=size)
    texts = reviews.train_texts + reviews.test_texts
    parts = (NAME, recipe, seed, asdict(task.settings), task.weights, data.fingerprint(texts), device.type)
    key = cache.key(*parts, modules=CODE_OF_A_RUN)
    folder = cache.root() / f"{NAME}-{recipe}-{size}-{reviews.name}-seed{seed}-{key}"
    cached = (folder / "config.json").is_file()
    if cached:
        model, record = models.saved_distilbert(folder, dtype=chosen.weights), records.load(folder / "run.json")
    else:
        finished = run(chosen, task=task, device=device, seed=seed)
        model, record = finished.model, finished.record
        try:
            cache.keep(folder, lambda place: _write(place, finished))
        except OSError as error:
            warnings.warn(f"the trained model is not kept, {cache.root()}: {error.strerror}", stacklevel=2)
    models.fit_attention(model, device)
    return Trained(model.to(device).eval(), task.tokenizer, task.test_texts, task.test.labels.tolist(), record, cached)


def _write(folder: Path, finished: Run) -> None:
    with models.quiet():
        finished.model.save_pretrained(folder)
    records.save(finished.record, folder).rename(folder / "run.json")


if __name__ == "__main__":
    sys.exit(main())
