"""Measure what makes a training step faster: each lever beside what it replaces, in one run.

    python -m utils.experiments.step_speed --size small --data DIR --repeats 5 --compile --record DIR

The settings of a lever take turns, so that a busy machine slows all of them; each is compared with the first.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch

from utils import distilbert, measure, records
from utils.exception_text import of_compiler
from utils.runs import command_line, measurement, tables
from utils.runs.measurement import Timed
from utils.training import batches
from utils.training.recipes import find_recipe
from utils.training.training_loop import Trainer
from utils.workloads import data, models, review_task
from utils.workloads.review_task import ReviewTask

NAME, PROGRAM = "levers", "step_speed"  # of its records, which are older than the name of this module
RECIPE = "32-true"  # of all levers but the one that changes it
SMALL = replace(review_task.TINY, width=128, hidden=512, positions=512)
BATCH, LENGTH = 4, 512  # at small size: most reviews of IMDb are shorter, so a batch of full length is padded
WARMUP, REPEATS = 1, 5
ADAMW = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


@dataclass(frozen=True)
class LeverTime(Timed):
    """One setting of one lever: its times in milliseconds, and how many times as fast it is as the lever's first one.

    Where it cannot be measured, there are no times, and `note` says why.
    """

    lever: str
    setting: str
    samples: tuple[float, ...] = ()
    faster: float | None = None
    note: str = ""


def time_levers(
    task: ReviewTask, *, device: torch.device, repeats: int = REPEATS, compiled: bool = False, seed: int = 0
) -> Iterator[LeverTime]:
    """Measure all levers on the training step of the task's model; yield their lines, one lever after the other.

    A step takes a batch of full length, unless the lever is the length or the loading.
    """
    turns = {"device": device, "repeats": repeats}
    make_trainer = partial(_make_trainer, task, device=device, seed=seed)
    batch = distilbert.make_full_batch(task).to(device)

    def make_step(trainer: Trainer) -> Callable[[], object]:
        return partial(_take_steps, trainer, [batch])

    attention = {name: make_step(make_trainer(attention=name)) for name in ("eager", "sdpa")}
    yield from time_in_turns("attention", attention, **turns)

    passes = draw_epochs(task, seed=seed)
    notes = {name: f"{100 * _padding(drawn):.0f} % padding" for name, drawn in passes.items()}
    epoch = {name: partial(_take_steps, make_trainer(), drawn) for name, drawn in passes.items()}
    yield from time_in_turns(f"length, {len(task.train)} reviews", epoch, notes=notes, **turns)

    model = make_trainer().model
    optimizers = {name: torch.optim.AdamW(model.parameters(), lr=1e-6, **kernel) for name, kernel in ADAMW.items()}
    for weight in model.parameters():
        weight.grad = torch.full_like(weight, 1e-3)
    yield from time_in_turns("AdamW alone", {name: optimizer.step for name, optimizer in optimizers.items()}, **turns)

    arithmetic = {name: make_step(make_trainer(name)) for name in (RECIPE, "bf16-mixed")}
    notes = {name: find_recipe(name).remark(device) for name in arithmetic}
    yield from time_in_turns("recipe", arithmetic, notes=notes, **turns)

    yield from _time_loading(distilbert.make_full_batch(task), **turns)
    if compiled:
        yield from _time_compiled(make_trainer, make_step, **turns)


def time_in_turns(
    lever: str,
    calls: dict[str, Callable[[], object]],
    *,
    device: torch.device,
    repeats: int,
    notes: dict[str, str] | None = None,
) -> list[LeverTime]:
    """Time the settings of one lever in turns and return a line for each."""
    timings = measure.time_in_turns(calls, device=device, warmup=WARMUP, repeats=repeats)
    first, notes = next(iter(timings.values())).median, notes or {}  # milliseconds
    return [
        LeverTime(lever, name, timing.samples, first / timing.median, notes.get(name, ""))
        for name, timing in timings.items()
    ]


def draw_epochs(task: ReviewTask, *, seed: int) -> dict[str, list[batches.Batch]]:
    """Return the task's reviews as batches, each review once: padded to the limit, to the longest, and in buckets."""
    size, rows = task.settings.batch, range(len(task.train))
    draw = partial(batches.shuffled, task.train, size)
    limit = [
        batches.pad(task.train, [*rows[start : start + size]], length=task.settings.max_length)
        for start in rows[::size]
    ]
    generators = [torch.Generator().manual_seed(seed) for _ in range(2)]
    return {
        f"padded to {task.settings.max_length}": limit,
        "padded to the longest of a batch": list(draw(generator=generators[0], bucket=1)),
        "buckets of alike lengths": list(draw(generator=generators[1])),
    }


def _padding(drawn: list[batches.Batch]) -> float:
    sizes = [batch.mask.numel() for batch in drawn]  # B * S tokens each
    return sum(batch.padding * size for batch, size in zip(drawn, sizes, strict=True)) / sum(sizes)


def _make_trainer(
    task: ReviewTask, name: str = RECIPE, *, device: torch.device, seed: int, attention: str | None = None
):
    model = task.new_model(seed)
    if attention:
        model.set_attn_implementation(attention)
    else:
        models.fit_attention(model, device)
    schedule = replace(task.settings.schedule, learning_rate=1e-6)
    return Trainer(model, recipe=find_recipe(name), device=device, schedule=schedule, steps=10**6)


def _take_steps(trainer: Trainer, drawn: list[batches.Batch]) -> None:
    with trainer.recipe.on(trainer.device):
        for batch in drawn:
            trainer.step(batch.to(trainer.device))


def _time_loading(batch: batches.Batch, *, device: torch.device, repeats: int) -> list[LeverTime]:
    if device.type != "cuda":
        return [LeverTime("loading", "pinned", note="missing: it speeds up the way to a GPU, and there is none")]
    return time_in_turns(
        "loading",
        {"usual": partial(batch.to, device), "pinned": partial(batch.pinned().to, device)},
        device=device,
        repeats=repeats,
    )


def _time_compiled(
    make_trainer: Callable[[], Trainer], make_step: Callable, *, device: torch.device, repeats: int
) -> list[LeverTime]:
    plain, fast = make_trainer(), make_trainer()
    fast.model = torch.compile(fast.model)
    start = time.perf_counter()
    try:
        make_step(fast)()  # compiles
        note = f"{time.perf_counter() - start:.0f} s to compile"
        calls = {"op by op": make_step(plain), "compiled": make_step(fast)}
        return time_in_turns("torch.compile", calls, device=device, repeats=repeats, notes={"compiled": note})
    except Exception as error:  # a missing compiler or operator: each part of it raises errors of its own
        return [LeverTime("torch.compile", "compiled", note=f"missing: {of_compiler(error)}")]


def format_table(lines: list[LeverTime]) -> str:
    """Return the lines as aligned text: median and quartile distance, and how many times as fast as the first."""
    rows = [("lever: setting", "milliseconds", "times as fast")]
    for line in lines:
        timed = (
            (f"{line.timing.median:.2f} ± {line.timing.spread:.2f}", f"{line.faster:.2f}")
            if line.samples
            else ("-", "-")
        )
        rows.append((f"{line.lever}: {line.setting}", *timed))
    notes = ["", *(line.note for line in lines)]
    texts = tables.align(rows).splitlines()
    return "\n".join(f"{text}  {note}".rstrip() for text, note in zip(texts, notes, strict=True))


def make_record(
    task: ReviewTask, lines: list[LeverTime], *, device: torch.device, shown: str = "", seed: int = 0
) -> records.Record:
    """Return the lines as one record; `of_record` gives them back."""
    rows = [{name: value for name, value in asdict(line).items() if name != "samples"} for line in lines]
    return measurement.make_record(
        NAME,
        recipe=RECIPE,
        size=task.size,
        device=device,
        settings=asdict(task.settings),
        results={"lines": rows},
        samples={f"{line.lever}: {line.setting}": list(line.samples) for line in lines},
        shown=shown,
        seed=seed,
        data=task.texts.source,
        data_name=task.texts.name,
        weights=task.weights,
    )


def of_record(record: records.Record) -> list[LeverTime]:
    """Return the lines of a record."""
    rows = record.results["lines"]
    return [LeverTime(**row, samples=tuple(record.samples[f"{row['lever']}: {row['setting']}"])) for row in rows]


def prepare(reviews: data.Reviews, *, size: str) -> ReviewTask:
    """Return the task that is timed: as many reviews as one draw of buckets takes."""
    settings = review_task.settings_for(size, reviews)
    if size == "small":
        settings = replace(settings, batch=BATCH, max_length=LENGTH, shape=SMALL)
    settings = replace(settings, train=batches.BUCKET * settings.batch, validation=0, test=1)
    return review_task.prepare(reviews, size=size, settings=settings)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(f"experiments.{PROGRAM}", about=__doc__, sizes="small or full")
    parser.add_argument("--compile", action="store_true", help="time torch.compile too: minutes on a CPU")
    parser.add_count("--repeats", default=REPEATS, help="times of each; default: %(default)s")
    parser.add_argument("--data", metavar="DIR", help="folder with reviews; default: the hub, else generated")
    return parser.checked(arguments)


@command_line.in_one_line(PROGRAM)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        options = _parse(arguments)
        task = prepare(data.load_reviews(options.data, size=options.size), size=options.size)
    except (ValueError, OSError) as error:
        return command_line.complain(PROGRAM, str(error), 2)
    print(command_line.describe_run(options.device, size=options.size, data=task.texts.source), flush=True)
    done = []
    for line in time_levers(task, device=options.device, repeats=options.repeats, compiled=options.compile):
        done.append(line)
        print(f"{line.lever}: {line.setting} is done", file=sys.stderr, flush=True)
    print(format_table(done))
    if options.record:
        records.save(make_record(task, done, device=options.device, shown=options.command), options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
