"""Fine-tune a DistilBERT on movie reviews, in any recipe.

    python -m utils.distilbert --recipe 32-true bf16-mixed 16-mixed --size small --seeds 2 --data DIR --record DIR

`run` trains one DistilBERT and returns its record. `trained` gives the other chapters a finished model.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import nn

from utils import machine, measure, records
from utils.runs import command_line, experiment, run_table, trained_models
from utils.runs.experiment import Run
from utils.training import batches, recipes, training_loop
from utils.training.recipes import PLAIN, Recipe
from utils.training.training_loop import Trainer
from utils.workloads import data, models, review_task
from utils.workloads.review_task import Task

NAME = "distilbert"
DEFAULT_RECIPES = ("32-true", "bf16-mixed", "16-mixed")
TIMED = replace(review_task.TINY, vocabulary=4_000, width=256, heads=4, hidden=1_024)  # the small shape of `step_times`


def run(
    recipe: Recipe,
    *,
    task: Task,
    device: torch.device,
    seed: int = 0,
    provenance: dict | None = None,
    watch_steps: int | None = None,
    checkpoint: Path | None = None,
) -> Run:
    """Fine-tune a DistilBERT in one recipe from one seed, measure it, and return its record and the model.

    A loss that is not finite is a result: the run stops, the record names the step, and the accuracy is measured
    all the same. `watch_steps` and `checkpoint`, a folder, as in `experiment.run`.
    """
    how = {"provenance": provenance, "watch_steps": watch_steps, "checkpoint": checkpoint}
    return experiment.run(plan(task), recipe, device=device, seed=seed, **how)


def plan(task: Task) -> experiment.Plan:
    """Return what a run on this task draws and measures."""
    settings = task.settings

    def draw(seed: int) -> Iterator[batches.Batch]:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(settings.epochs):
            yield from batches.shuffled(task.train, settings.batch, generator=generator)

    def share(trainer: Trainer, part: batches.Tokens) -> float:
        held_out = batches.ordered(part, 4 * settings.batch)
        return training_loop.accuracy(trainer.model, held_out, recipe=trainer.recipe, device=trainer.device)

    def evaluate(trainer: Trainer) -> dict:
        return {"n_test": len(task.test), "accuracy": share(trainer, task.test)}

    epoch = batches.count(len(task.train), settings.batch)
    return experiment.Plan(
        f"{NAME}{task.variant}",
        task,
        task.reviews,
        settings.epochs * epoch,
        full_batch(task),
        draw,
        evaluate,
        module=__spec__.name,  # "utils.distilbert", also where this file is the program
        validate=(lambda trainer: share(trainer, task.validation)) if len(task.validation) else None,
        epoch=epoch,
    )


def full_batch(task: Task) -> batches.Batch:
    """Return one batch with every review at full length."""
    rows = list(range(min(task.settings.batch, len(task.train))))
    return batches.pad(task.train, rows, length=task.settings.max_length)


def summary(finished: list[records.Record]) -> list[dict[str, str]]:
    """Return the results of all finished runs as texts by heading, one row a recipe in the order of `recipes.KNOWN`.

    Accuracies, and their paired differences to 32-true in percentage points, carry the 95 % Student interval over the
    seeds; times are means over the seeds.
    """
    differences = experiment.against(finished)

    def accuracy(name: str, runs: list[dict]) -> dict[str, str]:
        found, own = differences.get(name), [100 * result["accuracy"] for result in runs]
        points = experiment.interval((100 * each for each in found.by_seed), digits=1, sign="+") if found else "-"
        return {"accuracy %": experiment.interval(own, digits=1), "minus 32-true": points}

    return run_table.summary(finished, measured=accuracy)


def table(finished: list[records.Record]) -> str:
    """Return `summary` as aligned text, with a line that says what the intervals are."""
    about = f"accuracy on {finished[-1].results['n_test']:,} test reviews"
    return run_table.table(summary(finished), finished, about=about)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    how = {"program": NAME, "about": __doc__, "recipes": DEFAULT_RECIPES}
    return command_line.main(arguments, **how, prepare=_prepared)


def _prepared(options: command_line.Options) -> command_line.Task:
    reviews = data.reviews(options.data, size=options.size)
    settings = command_line.widened(review_task.settings_for(options.size, reviews), options)
    task = review_task.prepare(reviews, size=options.size, settings=settings, weights=options.weights)
    task = command_line.changed(task, options)
    return experiment.commanded(plan(task), options, run=partial(run, task=task), table=table)


@dataclass(frozen=True)
class StepTime:
    """The time of one training step in one recipe; `emulated` where the device lacks its products."""

    recipe: str
    timing: measure.Timing
    emulated: bool


def step_times(
    names: Iterable[str] = PLAIN,
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
        schedule = training_loop.Schedule(learning_rate=1e-5)
        trainer = training_loop.Trainer(model, recipe=chosen, device=device, schedule=schedule, steps=repeats + 3)
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

    `source` is "generated", a folder with reviews, or None for what `utils.workloads.data.reviews` finds.
    Raises: ValueError when the folder or the recipe is unknown.
    """
    device = device or machine.device()
    reviews = data.generated_reviews(size) if source == "generated" else data.reviews(source, size=size)
    task = review_task.prepare(reviews, size=size)
    found = trained_models.kept(
        plan(task),
        recipes.recipe(recipe),
        seed=seed,
        device=device,
        load=models.saved_distilbert,
    )
    return Trained(found.model, task.tokenizer, task.test_texts, task.test.labels.tolist(), found.record, found.cached)


if __name__ == "__main__":
    sys.exit(main())
