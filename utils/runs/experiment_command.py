"""The command line of an experiment: make a run of each recipe and seed, record it, and print the table of all.

    python -m utils.distilbert --recipe 32-true bf16-mixed --size small --seeds 2 --data DIR --record DIR

`--recipe all` stands for the arms of the comparison. With --record, a run whose record is there already is not made
again: a command that was stopped goes on where it was, and with --checkpoint also inside a run.
A mistake in the arguments or in the data is one line on stderr and exit code 2, before anything is trained.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from utils import records
from utils.runs import experiment
from utils.runs.command_line import (
    INTERRUPTED,
    Parser,
    complain,
    describe_run,
    explain_unwritten,
    format_duration,
    out_of_memory,
)
from utils.runs.experiment import RunPlan
from utils.training import checkpoints
from utils.training.recipes import COMPARED, Recipe
from utils.training.recipes import find_recipe as find_recipe
from utils.training.watch import MOST_STEPS

ALL = "all"
RECIPE_HELP = f"names, or {ALL} for the {len(COMPARED)} of the comparison"


@dataclass(frozen=True)
class Options:
    """The arguments, checked.

    `batch` and `width` are None for those of the experiment, `watch` (steps whose exponents are counted) for none,
    `checkpoint` where an unfinished run leaves nothing.
    """

    recipes: list[Recipe]
    device: torch.device
    size: str
    seeds: int
    data: str | None
    weights: str | None
    batch: int | None
    width: int | None
    learning_rate: float | None
    growth_interval: int | None
    record: Path | None
    watch: int | None
    checkpoint: Path | None
    command: str


def parse(arguments: list[str] | None, *, program: str, about: str | None, recipes: tuple[str, ...]) -> Options:
    """Return the checked options; `recipes` run when none is named, `about` is as in `Parser`.

    Raises: ValueError that names the bad argument.
    """
    parser = Parser(program, about=about, sizes="small or full", record="write one record a run")
    parser.add_names("--recipe", default=recipes, help=RECIPE_HELP)
    parser.add_count("--seeds", default=1, help="run seeds 0 to N-1")
    parser.add_argument("--data", metavar="DIR", help="folder with the data; default: the hub, else generated")
    parser.add_argument("--weights", metavar="DIR", help="folder with trained weights; default: see the first lines")
    parser.add_count("--batch", default=None, help="texts in a step")
    parser.add_count("--width", default=None, help="of the model, whose weights are random then")
    parser.add_argument("--learning-rate", type=float, metavar="X", help="the largest of the schedule")
    parser.add_count("--growth-interval", default=None, help="steps before a loss scale grows")
    parser.add_argument("--watch", type=int, metavar="N", help="count the exponents of N steps of each run")
    parser.add_argument("--checkpoint", metavar="DIR", help="where unfinished runs leave what they need to go on")
    checked = parser.checked(arguments)
    if checked.learning_rate is not None and not 0 < checked.learning_rate < 1:
        raise ValueError(f"--learning-rate {checked.learning_rate} is not between 0 and 1")
    if checked.watch is not None and not 1 <= checked.watch <= MOST_STEPS:
        raise ValueError(f"--watch {checked.watch} is not in 1 ... {MOST_STEPS}, the steps that a record has room for")
    if checked.watch and checked.checkpoint:
        raise ValueError("--watch and --checkpoint: a watched run keeps no checkpoint; leave out one of the two")
    options = vars(checked)
    options["recipes"] = [find_recipe(name) for name in dict.fromkeys(_expand_all(options.pop("recipe")))]
    if checked.checkpoint:
        options["checkpoint"] = records.check_folder(checked.checkpoint, what="checkpoints")
    return Options(**options)


def _expand_all(names: list[str]) -> Iterator[str]:
    for name in names:
        yield from COMPARED if name == ALL else (name,)


def with_width(settings, options: Options):
    """Return the settings of an experiment with the width of the options, before its task is prepared.

    Raises: ValueError for a width that the model cannot have.
    """
    return replace(settings, shape=settings.shape.widened(options.width)) if options.width else settings


def with_options(task, options: Options):
    """Return the task of an experiment with the settings of the options, and with a `variant` that names them.

    Runs of another width, batch or learning rate are another experiment: their records must not join the usual ones.

    Raises: ValueError for another width of trained weights, whose width is fixed.
    """
    settings, schedule, variant = task.settings, task.settings.schedule, ""
    if options.width:
        if not task.weights.startswith("random"):
            raise ValueError(
                f"--width {options.width}: {task.weights} have a width of their own; leave out one of them"
            )
        variant = f"-width{options.width}"
    if options.batch:
        settings, variant = replace(settings, batch=options.batch), f"{variant}-batch{options.batch}"
    if options.learning_rate:
        schedule = replace(schedule, learning_rate=options.learning_rate)
        variant += f"-rate{options.learning_rate:.0e}"
    if options.growth_interval:
        schedule = replace(schedule, growth_interval=options.growth_interval)
        variant += f"-growth{options.growth_interval}"
    return replace(task, settings=replace(settings, schedule=schedule), variant=variant)


def main(
    arguments: list[str] | None,
    *,
    program: str,
    about: str | None,
    recipes: tuple[str, ...],
    prepare: Callable[[Options], RunPlan],
    table: Callable[[list[records.Record]], str],
) -> int:
    """Run an experiment from the command line and return the exit code.

    `prepare` makes the plan that the options ask for, `table` the text of all finished records; the others are as in
    `parse`.
    """
    try:
        options = parse(arguments, program=program, about=about, recipes=recipes)
        runs = Runs(options, prepare(options))
    except (ValueError, OSError) as error:
        return complain(program, str(error), 2)
    except KeyboardInterrupt:
        return complain(program, "interrupted before the first run", INTERRUPTED)
    print(describe_command(options, runs.plan), flush=True)
    code = 0
    try:
        runs.make_all()
    except _Stopped as error:
        code = complain(program, str(error), 2)
    except KeyboardInterrupt:
        remains = "; their records are kept" if runs.done and options.record else ""
        if options.checkpoint:
            remains += "; the unfinished one goes on from its last checkpoint, where it has one"
        code = complain(program, f"interrupted after {len(runs.done)} of {runs.planned} runs{remains}", INTERRUPTED)
    if runs.done:
        print(table(runs.done))
    for name, reason in runs.missing.items():
        print(f"{name}: {reason}")
    return code


def describe_command(options: Options, plan: RunPlan) -> str:
    """Return the first lines of an experiment: the device, size, data and weights that it uses."""
    note = {"note": plan.note} if plan.note else {}
    used = {"size": options.size, "data": plan.task.texts.source, "weights": plan.task.weights}
    remarks = [(recipe.name, recipe.remark(options.device)) for recipe in options.recipes]
    lines = [describe_run(options.device, **used, **note), *(f"{name}: {remark}" for name, remark in remarks if remark)]
    return "\n".join(lines)


class _Stopped(Exception):
    """One line that says why a command cannot go on."""


class _CannotRun(Exception):
    """One line that says why torch cannot run a recipe on this device; the other recipes go on."""


class Runs:
    """The runs of a command: those that are done, and the recipes that torch cannot run on this device, with why."""

    def __init__(self, options: Options, plan: RunPlan):
        self.options, self.plan = options, plan
        self.done: list[records.Record] = []
        self.missing: dict[str, str] = {}  # reason by recipe
        self.seconds: list[float] = []  # of the runs that were made, not found
        self.provenance = records.provenance(options.command)  # once: a long comparison is one state of the code

    @property
    def planned(self) -> int:
        return len(self.options.recipes) * self.options.seeds

    def make_all(self) -> None:
        """Make one seed of every recipe before the next, so that what a stopped command leaves is comparable.

        Raises: _Stopped where no run can follow.
        """
        order = [(seed, recipe) for seed in range(self.options.seeds) for recipe in self.options.recipes]
        for number, (seed, recipe) in enumerate(order, start=1):
            text = self._find_or_make(recipe, seed, left=self.planned - number)
            print(f"{number} of {self.planned}  {recipe.name} seed {seed}: {text}", flush=True)

    def _find_or_make(self, recipe: Recipe, seed: int, *, left: int) -> str:
        """Add a run to those that are done or missing, and return a text about it; `left` are those after it."""
        if recipe.name in self.missing:
            return self.missing[recipe.name]
        if record := self._find(recipe, seed):
            self.done.append(record)
            return "its record is there already: not run again"
        start = time.perf_counter()
        try:
            record = self._train(recipe, seed)
        except _CannotRun as error:
            self.missing[recipe.name] = str(error)
            return str(error)
        self._save(record)
        self.done.append(record)
        self.seconds.append(time.perf_counter() - start)
        text = f"{self.seconds[-1]:.1f} s; {format_duration(sum(self.seconds))} so far"
        seconds_left = left * sum(self.seconds) / len(self.seconds)
        return f"{text}, about {format_duration(seconds_left)} to go" if seconds_left else text

    def _find(self, recipe: Recipe, seed: int) -> records.Record | None:
        if self.options.record is None:
            return None
        device, watch_steps = self.options.device, self.options.watch
        key = experiment.record_key(self.plan, recipe, seed=seed, device=device, watch_steps=watch_steps)
        return records.find(self.options.record, key=key, recipe=recipe.name, seed=seed)

    def _train(self, recipe: Recipe, seed: int) -> records.Record:
        """Return the record of a run that is made now. Raises: _CannotRun, _Stopped."""
        try:
            run = experiment.run(
                self.plan,
                recipe,
                seed=seed,
                device=self.options.device,
                provenance=self.provenance,
                watch_steps=self.options.watch,
                checkpoint=self.options.checkpoint,
            )
        except checkpoints.Refused as error:
            raise _Stopped(str(error)) from None
        except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
            if out_of_memory(error):
                batch = self.plan.task.settings.batch
                advice = f"try --batch {batch // 2}" if batch > 1 else "try --size small"
                raise _Stopped(f"{recipe.name}: out of memory at batch size {batch}; {advice}") from None
            if "not implemented for" not in str(error):
                raise
            first_line = str(error).splitlines()[0]
            raise _CannotRun(f"missing, torch cannot run it on this device: {first_line}") from None
        return run.record

    def _save(self, record: records.Record) -> None:
        """Write a record where the command has a folder for them. Raises: _Stopped where it cannot be written."""
        if self.options.record is not None:
            try:
                records.save(record, self.options.record)
            except OSError as error:
                raise _Stopped(explain_unwritten(error)) from None
