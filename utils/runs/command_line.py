"""The command line that every experiment has: which recipes, how large, on what data, recorded where.

    python -m utils.distilbert --recipe 32-true bf16-mixed --size small --seeds 2 --data DIR --record DIR

`--recipe all` are the arms of the comparison. With --record, a run whose record is there already is not made again: a
command that was stopped goes on where it was, and with --checkpoint also inside a run.
A mistake in the arguments or in the data is one line on stderr and exit code 2, before anything is trained.
"""

import argparse
import functools
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from utils import machine, records
from utils.training import checkpoints
from utils.training.recipes import ARMS, Recipe, recipe
from utils.training.watch import MOST_STEPS

INTERRUPTED = 130  # 128 + SIGINT, what a shell expects
ALL = "all"
RECIPE_HELP = f"names, or {ALL} for the {len(ARMS)} of the comparison"
FOLDERS = ("--data", "--weights", "--record", "--checkpoint")


@dataclass(frozen=True)
class Options:
    """The arguments after they were checked.

    `batch` and `width` are None where the experiment's own are to be used, `watch` where no exponents are to be
    counted, `checkpoint` where an unfinished run leaves nothing.
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


@dataclass(frozen=True)
class Task:
    """What an experiment hands over: `run` does one recipe and seed, `table` shows all finished records.

    `key` tells before a run which key its record will have.
    """

    data: str
    weights: str
    batch: int
    run: Callable[[Recipe, int], records.Record]
    key: Callable[[Recipe, int], str]
    table: Callable[[list[records.Record]], str]
    note: str = ""  # what is to be said beside device, size, data and weights


class Parser(argparse.ArgumentParser):
    """The options that every command has, `--device` and `--record`; a command adds its own, and may have sizes.

    A mistake raises ValueError, where argparse would print its usage and leave.
    """

    def __init__(self, program: str, *, about: str | None, sizes: str = "", record: str = "write a record"):
        """`about`: the docstring of the command's module, whose first line opens the help; None under `python -OO`."""
        first = (about or "").partition("\n")[0]
        super().__init__(prog=f"python -m utils.{program}", description=first, allow_abbrev=False)
        self.program, self._counts = program, []
        if sizes:
            self.add_argument("--size", help=f"{sizes}; default: full on a GPU")
        self.add_argument("--device", help="cpu, cuda or cuda:N; default: a GPU where there is one")
        record += "; without DIR into the book's results"
        self.add_argument("--record", nargs="?", const=str(records.RESULTS), metavar="DIR", help=record)

    def add_count(self, name: str, *, default: int | None, help: str) -> None:
        """Add an option that is a whole number from 1 on."""
        self._counts.append(self.add_argument(name, type=int, default=default, metavar="N", help=help))

    def add_names(self, name: str, *, default: Sequence[str], help: str) -> None:
        """Add an option that takes one name or more, all of which stand in the help."""
        help += f"; default: {' '.join(default)}"
        self.add_argument(name, nargs="+", default=list(default), metavar="NAME", help=help)

    def checked(self, arguments: list[str] | None) -> argparse.Namespace:
        """Return the options, of the process where none are given, with the device, size and folder that are meant.

        `command` is what a record shows. Raises: ValueError that names the bad argument.
        """
        arguments = sys.argv[1:] if arguments is None else arguments
        found = self.parse_args(arguments)
        for option in self._counts:
            if (value := getattr(found, option.dest)) is not None and value < 1:
                raise ValueError(f"{option.option_strings[0]} {value} is below 1")
        for option in FOLDERS:
            if getattr(found, option.removeprefix("--"), None) == "":  # as of "$DIR" where the shell knows no DIR
                raise ValueError(f"{option} is followed by an empty name; name a folder, or leave {option} out")
        found.device = machine.device(found.device)
        if hasattr(found, "size"):
            found.size = machine.size(found.size, on=found.device)
        found.record = records.check_folder(found.record) if found.record else None
        found.command = shown_command(arguments, program=self.program)
        return found

    def error(self, message: str):
        raise ValueError(f"{message}; --help lists the options")


def parse(arguments: list[str] | None, *, program: str, about: str | None, recipes: tuple[str, ...]) -> Options:
    """Return the checked options; `recipes` are those that run when none is named, `about` is as in `Parser`.

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
    found = parser.checked(arguments)
    if found.learning_rate is not None and not 0 < found.learning_rate < 1:
        raise ValueError(f"--learning-rate {found.learning_rate} is not between 0 and 1")
    if found.watch is not None and not 1 <= found.watch <= MOST_STEPS:
        raise ValueError(f"--watch {found.watch} is not in 1 ... {MOST_STEPS}, the steps that a record has room for")
    if found.watch and found.checkpoint:
        raise ValueError("--watch and --checkpoint: a watched run keeps no checkpoint; leave out one of the two")
    given = vars(found)
    given["recipes"] = [recipe(name) for name in dict.fromkeys(_spelled_out(given.pop("recipe")))]
    if found.checkpoint:
        given["checkpoint"] = records.check_folder(found.checkpoint, what="checkpoints")
    return Options(**given)


def _spelled_out(names: list[str]) -> Iterator[str]:
    for name in names:
        yield from ARMS if name == ALL else (name,)


def widened(settings, options: Options):
    """Return the settings of an experiment with the width that the options name, for a task that is to be prepared.

    Raises: ValueError for a width that the model cannot have.
    """
    return replace(settings, shape=settings.shape.widened(options.width)) if options.width else settings


def changed(task, options: Options):
    """Return the task of an experiment with the settings that the options name, and with a `variant` that names them.

    The runs of another width, batch or learning rate are another experiment: their records must not join the usual
    ones. Raises: ValueError for another width of trained weights, which have theirs.
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


def shown_command(arguments: list[str], *, program: str) -> str:
    """Return the command as a record shows it: every folder is DIR, since a path tells about somebody's machine."""
    shown, folder = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if folder and not argument.startswith("--"):
            argument = "DIR"
        elif name in FOLDERS and equals:
            argument = f"{name}=DIR"
        folder = argument in FOLDERS
        shown.append(argument)
    return shlex.join(["python", "-m", f"utils.{program}", *shown])


def main(
    arguments: list[str] | None,
    *,
    program: str,
    about: str | None,
    recipes: tuple[str, ...],
    prepare: Callable[[Options], Task],
) -> int:
    """Run an experiment from the command line and return the exit code."""
    try:
        options = parse(arguments, program=program, about=about, recipes=recipes)
        task = prepare(options)
    except (ValueError, OSError) as error:
        return complain(program, str(error), 2)
    except KeyboardInterrupt:
        return complain(program, "interrupted before the first run", INTERRUPTED)
    print(header(options, task), flush=True)
    done: list[records.Record] = []
    missing: dict[str, str] = {}  # what torch cannot run on this device, and why
    try:
        code = _run_all(options, task, done, missing, program=program)
    except KeyboardInterrupt:
        planned = len(options.recipes) * options.seeds
        kept = "; their records are kept" if done and options.record else ""
        if options.checkpoint:
            kept += "; the unfinished one goes on from its last checkpoint, where it has one"
        code = complain(program, f"interrupted after {len(done)} of {planned} runs{kept}", INTERRUPTED)
    if done:
        print(task.table(done))
    for name, why in missing.items():
        print(f"{name}: {why}")
    return code


def _run_all(options: Options, task: Task, done: list[records.Record], missing: dict[str, str], *, program: str) -> int:
    """Make all runs, one seed of every recipe before the next, so that what a stopped command leaves is comparable."""
    progress = _Progress(planned=len(options.recipes) * options.seeds)
    for seed in range(options.seeds):
        for chosen in options.recipes:
            progress.begin(chosen, seed)
            if chosen.name in missing:
                progress.end(missing[chosen.name])
                continue
            if found := _found(options, task, chosen, seed):
                done.append(found)
                progress.end("its record is there already: not run again")
                continue
            try:
                record = task.run(chosen, seed)
            except checkpoints.Refused as error:
                return complain(program, str(error), 2)
            except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
                if out_of_memory(error):
                    advice = f"try --batch {task.batch // 2}" if task.batch > 1 else "try --size small"
                    return complain(program, f"{chosen.name}: out of memory at batch size {task.batch}; {advice}", 2)
                if "not implemented for" not in str(error):
                    raise
                missing[chosen.name] = f"missing, torch cannot run it on this device: {str(error).splitlines()[0]}"
                progress.end(missing[chosen.name])
                continue
            if options.record is not None:
                try:
                    records.save(record, options.record)
                except OSError as error:
                    return complain(program, not_written(error), 2)
            done.append(record)
            progress.end()
    return 0


def _found(options: Options, task: Task, chosen: Recipe, seed: int) -> records.Record | None:
    if options.record is None:
        return None
    return records.find(options.record, key=task.key(chosen, seed), recipe=chosen.name, seed=seed)


@dataclass
class _Progress:
    """Say after each run how many are done, how long they took, and about how long the others will take."""

    planned: int
    seconds: list[float] = field(default_factory=list)  # of the runs that were made
    ended: int = 0

    def begin(self, chosen: Recipe, seed: int) -> None:
        self.label, self.since = f"{chosen.name} seed {seed}", time.perf_counter()

    def end(self, why_not: str = "") -> None:
        self.ended += 1
        text = f"{self.ended} of {self.planned}  {self.label}: "
        if why_not:
            print(text + why_not, flush=True)
            return
        self.seconds.append(time.perf_counter() - self.since)
        left = (self.planned - self.ended) * sum(self.seconds) / len(self.seconds)
        text += f"{self.seconds[-1]:.1f} s; {duration(sum(self.seconds))} so far"
        print(text + (f", about {duration(left)} to go" if left else ""), flush=True)


def duration(seconds: float) -> str:
    """Return minutes and seconds: 200.4 -> "3:20"; above an hour, hours too."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def out_of_memory(error: BaseException) -> bool:
    """Say whether torch failed for want of memory; on a CPU it raises a plain RuntimeError."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return "DefaultCPUAllocator" in str(error) or "not enough memory" in str(error)


def not_written(error: OSError) -> str:
    """Return what is said where a record fails in the end, as on a full disk, after `checked` has tried the folder."""
    where = f" ({error.filename})" if error.filename else ""
    return f"the record cannot be written: {error.strerror or error}{where}; make room, or name another folder"


def in_one_line(program: str, *, kept: str = "nothing was recorded") -> Callable:
    """Return what wraps a `main` that measures: Ctrl-C, and a record that cannot be written, are one line on stderr.

    `kept` says what an interrupted command leaves.
    """

    def wrap(main: Callable[[list[str] | None], int]) -> Callable[[list[str] | None], int]:
        @functools.wraps(main)
        def wrapped(arguments: list[str] | None = None) -> int:
            try:
                return main(arguments)
            except OSError as error:
                return complain(program, not_written(error), 2)
            except KeyboardInterrupt:
                return complain(program, f"interrupted; {kept}", INTERRUPTED)

        return wrapped

    return wrap


def header(options: Options, task: Task) -> str:
    """Return what an experiment says first: the device, size, data and weights that it really uses."""
    note = {"note": task.note} if task.note else {}
    lines = [first_lines(options.device, size=options.size, data=task.data, weights=task.weights, **note)]
    remarks = [(chosen.name, chosen.remark(options.device)) for chosen in options.recipes]
    lines += [f"{name}: {remark}" for name, remark in remarks if remark]
    return "\n".join(lines)


def first_lines(device: torch.device, **more: str) -> str:
    """Return the device and what else a command really uses, a line for each."""
    return "\n".join(f"{name:8} {text}" for name, text in {"device": machine.describe(device), **more}.items())


def complain(program: str, message: str, code: int) -> int:
    """Print what went wrong as one line on stderr, and return the exit code."""
    print(f"{program}: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return code


def columns(rows: list[tuple[str, ...]]) -> str:
    """Return rows as text in columns: the first one to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join((row[0].ljust(len(first)), *rest)))
    return "\n".join(lines)
