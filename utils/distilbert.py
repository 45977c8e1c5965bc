"""Fine-tune a DistilBERT on movie reviews, in any recipe.

    python -m utils.distilbert --recipe 32-true bf16-mixed 16-mixed --size small --seeds 2 --data DIR --record DIR

`make_plan` is the experiment, which `utils.runs.experiment.run` carries out. `train_once` gives other chapters a
finished model.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from utils import machine, measure, records
from utils.runs import experiment, experiment_command, run_table, trained_models
from utils.training import batches, recipes, training_loop
from utils.training.recipes import LIGHTNING_NAMES
from utils.training.training_loop import Trainer
from utils.workloads import data, models, review_task
from utils.workloads.review_task import ReviewTask

NAME = "distilbert"
DEFAULT_RECIPES = ("32-true", "bf16-mixed", "16-mixed")
TIMED = replace(review_task.TINY, vocabulary=4_000, width=256, heads=4, hidden=1_024)  # the small shape of `time_steps`


def make_plan(task: ReviewTask) -> experiment.RunPlan:
    """Return the plan of a run on this task: its batches, and what is measured."""
    settings = task.settings

    def draw(seed: int) -> Iterator[batches.Batch]:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(settings.epochs):
            yield from batches.shuffled(task.train, settings.batch, generator=generator)

    def measure_accuracy(trainer: Trainer, reviews: batches.Tokens) -> float:
        held_out = batches.ordered(reviews, 4 * settings.batch)
        return training_loop.accuracy(trainer.model, held_out, recipe=trainer.recipe, device=trainer.device)

    def evaluate(trainer: Trainer) -> dict:
        return {"n_test": len(task.test), "accuracy": measure_accuracy(trainer, task.test)}

    epoch = batches.count(len(task.train), settings.batch)  # steps
    return experiment.RunPlan(
        name=f"{NAME}{task.variant}",
        task=task,
        steps=settings.epochs * epoch,
        full_batch=make_full_batch(task),
        draw=draw,
        evaluate=evaluate,
        module=__spec__.name,  # "utils.distilbert", also where this file is the program
        validate=(lambda trainer: measure_accuracy(trainer, task.validation)) if len(task.validation) else None,
        epoch=epoch,
    )


def make_full_batch(task: ReviewTask) -> batches.Batch:
    """Return one batch with every review at full length."""
    rows = list(range(min(task.settings.batch, len(task.train))))
    return batches.pad(task.train, rows, length=task.settings.max_length)


def summarize(finished: list[records.Record]) -> list[dict[str, str]]:
    """Return the results of all finished runs as texts by heading, a row per recipe, in the order of `ALL_RECIPES`.

    Accuracies, and their paired differences from 32-true in percentage points, carry the 95 % Student interval over the
    seeds; times are means over the seeds.
    """
    differences = experiment.compare_by_seed(finished)

    def format_accuracy(name: str, runs: list[dict]) -> dict[str, str]:
        percent = [100 * result["accuracy"] for result in runs]
        points = [100 * difference for difference in differences[name].by_seed] if name in differences else []
        return {
            "accuracy %": experiment.format_interval(percent, digits=1),
            "minus 32-true": experiment.format_interval(points, digits=1, sign="+") if points else "-",
        }

    return run_table.summarize(finished, own_columns=format_accuracy)


def format_table(finished: list[records.Record]) -> str:
    """Return `summarize` as aligned text, with a line that says what the intervals are."""
    about = f"accuracy on {finished[-1].results['n_test']:,} test reviews"
    return run_table.format_table(summarize(finished), finished, about=about)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return experiment_command.main(
        arguments, program=NAME, about=__doc__, recipes=DEFAULT_RECIPES, prepare=prepare, table=format_table
    )


def prepare(options: experiment_command.Options) -> experiment.RunPlan:
    """Return the plan that the options of a command ask for."""
    reviews = data.load_reviews(options.data, size=options.size)
    settings = experiment_command.with_width(review_task.settings_for(options.size, reviews), options)
    task = review_task.prepare(reviews, size=options.size, settings=settings, weights=options.weights)
    task = experiment_command.with_options(task, options)
    return make_plan(task)


@dataclass(frozen=True)
class StepTime:
    """The time of one training step in one recipe; `emulated` where the device lacks its products."""

    recipe: str
    timing: measure.Timing
    emulated: bool

    def __str__(self) -> str:
        return f"{self.recipe}: {self.timing}"


def time_steps(
    names: Iterable[str] = LIGHTNING_NAMES,
    *,
    device: torch.device | None = None,
    size: str | None = None,
    repeats: int = 5,
) -> list[StepTime]:
    """Time one training step in each recipe on random tokens, in turns: 12 x 512 at full size, 16 x 64 at small.

    The small shape is wider than the one that is fine-tuned, or the time would be all overhead. A recipe that is named
    twice is timed twice, with a model of its own each time. The clock is that of `measure.quiet_clock`.
    """
    device = device or machine.device()
    full = machine.size(size, on=device) == "full"
    rows, length = (12, 512) if full else (16, 64)
    shape = models.DistilBertShape() if full else TIMED
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, shape.vocabulary, (rows, length), generator=generator)  # [B, S], no special tokens
    labels = torch.randint(2, (rows,), generator=generator)
    batch = batches.Batch(ids, torch.ones_like(ids), labels).to(device)

    def prepare_step(recipe: recipes.Recipe) -> Callable[[], object]:
        model = models.build_distilbert(shape)
        models.fit_attention(model, device)
        schedule = training_loop.Schedule(learning_rate=1e-5)
        trainer = training_loop.Trainer(model, recipe=recipe, device=device, schedule=schedule, steps=repeats + 3)

        def step() -> None:
            with recipe.on(device):
                trainer.step(batch)

        return step

    wanted = [recipes.find_recipe(name) for name in names]
    calls = {place: prepare_step(recipe) for place, recipe in enumerate(wanted)}
    timings = measure.time_in_turns(calls, device=device, warmup=2, repeats=repeats, seconds=measure.quiet_clock()[0])
    return [StepTime(recipe.name, timings[place], recipe.emulated(device)) for place, recipe in enumerate(wanted)]


@dataclass(frozen=True)
class TrainedDistilBert:
    """A fine-tuned model in evaluation mode, its tokenizer, the reviews it was tested on, and the record of its run."""

    model: nn.Module
    tokenizer: object
    texts: list[str]
    labels: list[int]
    record: records.Record
    cached: bool  # False: trained by this call


def train_once(
    source: str | None = None,
    *,
    recipe: str = "32-true",
    size: str = "small",
    seed: int = 0,
    device: torch.device | None = None,
) -> TrainedDistilBert:
    """Return a fine-tuned DistilBERT, from the cache if the same run was made before.

    `source` is "generated", a folder with reviews, or None for what `utils.workloads.data.load_reviews` finds.
    Raises: ValueError when the folder or the recipe is unknown.
    """
    device = device or machine.device()
    reviews = data.generated_reviews(size) if source == "generated" else data.load_reviews(source, size=size)
    task = review_task.prepare(reviews, size=size)
    kept = trained_models.train_once(
        make_plan(task),
        recipes.find_recipe(recipe),
        seed=seed,
        device=device,
        load=models.saved_distilbert,
    )
    return TrainedDistilBert(
        kept.model, task.tokenizer, task.test_texts, task.test.labels.tolist(), kept.record, kept.cached
    )


if __name__ == "__main__":
    sys.exit(main())
