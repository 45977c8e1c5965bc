"""The capstone, run: what a plan takes and how well its model learns, beside what was predicted.

    python -m utils.experiments.capstone --plan bf16-true-128x8 bf16-mixed-96x8 --size small --seeds 3 --record DIR

`measure` does one plan and seed. What trains is `utils.llama`; plans and predictions are those of
`utils.experiments.capstone.plans`. Without --plan: the plans of the chapter, and at full size those that fill the card.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import torch

from utils import llama, measure, records
from utils.cost import fitting
from utils.exception_text import first_line
from utils.experiments.capstone.plans import Plan, Problem, forecast, named, problem, refuse
from utils.runs import command_line, experiment, tables
from utils.training.training_loop import Trainer
from utils.workloads import models

NAME = "capstone"
PLANS = (  # of the chapter, at small size
    "32-true-128x6",
    "bf16-mixed-96x8",
    "bf16-true-128x8",
    "bf16-mixed-128x4",
    "bf16-true-192x4",
    "bf16-mixed-128x8-checkpointing",
    "bf16-mixed-192x8-checkpointing",
    "bf16-true-256x8-checkpointing",
)
FILLING = {"bf16-mixed": (False, True), "bf16-true": (False,)}  # at full size: recipe, whether to checkpoint
WIDTHS, MOST = (2_048, 4_096), 128  # at full size: widths, and the most texts in a step


@dataclass(frozen=True)
class Result:
    """A plan after its run: bytes at most and milliseconds of a step, predicted and measured, and the held-out loss.

    `predicted_ms` is None where no speed is claimed, `loss` is not finite where the training broke.
    """

    plan: Plan
    seed: int
    predicted_peak: int
    peak: int
    predicted_ms: float | None
    ms: float
    loss: float
    record: records.Record

    @property
    def off(self) -> float:
        """How far the measured peak lies from the predicted one, as a share of the predicted."""
        return self.peak / self.predicted_peak - 1


def peak(plan: Plan, given: Problem) -> int:
    """Take two steps of a full batch, and return the most bytes that were alive in the second one.

    The first step begins the moments. On CUDA by the allocator, elsewhere by what the operations return.
    """
    task = plan.task(given)
    model = task.new_model(0)
    models.fit_attention(model, given.device)
    how = {"recipe": plan.running(), "schedule": task.settings.schedule, "steps": task.settings.steps}
    trainer, batch = Trainer(model, device=given.device, **how), _planned(plan, given).full_batch
    return [fitting.step_peak(trainer, batch) for _ in range(2)][1]


def measure_plan(plan: Plan, given: Problem, *, seed: int = 0, shown: dict | None = None) -> Result:
    """Predict a plan, try a step, train it, and return what was predicted and what came of it.

    `shown`: the provenance of its record. Raises: ValueError with the sentence of `refuse`, and
    torch.OutOfMemoryError where a step takes more than the card has.
    """
    if why := refuse(plan, given):
        raise ValueError(why)
    predicted, took = forecast(plan, given), peak(plan, given)
    if took > given.card.size:
        raise torch.OutOfMemoryError(
            f"{plan.name}: a step takes {took / 1e6:.1f} MB, {given.card.name} has {given.card.size / 1e6:.1f}"
        )
    run = experiment.run(_planned(plan, given), plan.running(), device=given.device, seed=seed, provenance=shown)
    found = run.record.results
    by_processor = measure.quiet_clock()[1] == "processor" and given.device.type == "cpu"
    results = found | {
        "plan": asdict(plan),
        "card": {"name": given.card.name, "size": given.card.size},
        "predicted_peak": predicted.peak,
        "peak": took,
        "predicted_ms": predicted.milliseconds,
        "ms": 1e3 * found["cpu_seconds"] / found["steps"] if by_processor else found["step_ms"],
    }
    return of_record(replace(run.record, experiment=NAME, recipe=plan.name, results=results))


def of_record(record: records.Record) -> Result:
    """Return the result that a record holds."""
    found = record.results
    loss = float("nan") if found["loss"] is None else found["loss"]
    names = ("predicted_peak", "peak", "predicted_ms", "ms")
    return Result(named(record.recipe), record.seeds[0], *(found[name] for name in names), loss, record)


def _planned(plan: Plan, given: Problem) -> experiment.Plan:
    """Return what `llama` trains for this plan; of what it measures afterwards, the loss alone."""
    planned = llama.make_plan(plan.task(given))

    def evaluate(trainer: Trainer) -> dict:
        settings = planned.task.settings
        losses = llama.token_losses(trainer.model, planned.task.held_out, recipe=trainer.recipe, window=settings.length)
        return {"held_out_tokens": len(losses), "loss": losses.double().mean().item()}

    return replace(planned, name=f"{NAME}-{plan.name}", evaluate=evaluate, module=__spec__.name)


def filling(given: Problem) -> list[Plan]:
    """Return for each recipe and width the plan with the largest batch, up to `MOST`, that is predicted to fit."""
    found = []
    for width, (recipe, ways) in itertools.product(WIDTHS, FILLING.items()):
        for again in ways:
            plan = Plan(recipe, width, 1, checkpointing=again)
            batch = fitting.largest_batch(lambda n, plan=plan: not refuse(replace(plan, batch=n), given), most=MOST)
            if batch:
                found.append(replace(plan, batch=batch))
    return found


def summary(found: list[Result]) -> list[dict[str, str]]:
    """Return the results as texts by heading, one row a plan, the highest loss first.

    Bytes are the most of all seeds, times their mean, the loss carries the 95 % Student interval over them.
    """
    plans: dict[Plan, list[Result]] = {}
    for result in found:
        plans.setdefault(result.plan, []).append(result)
    return [_row(runs) for runs in sorted(plans.values(), key=lambda runs: -max(run.loss for run in runs))]


def _row(runs: list[Result]) -> dict[str, str]:
    expected = [run.predicted_ms for run in runs]
    return {
        "plan": runs[0].plan.name,
        "MB promised": f"{runs[0].predicted_peak / 1e6:,.1f}",
        "MB": f"{max(run.peak for run in runs) / 1e6:,.1f}",
        "ms promised": "-" if None in expected else f"{sum(expected) / len(runs):.1f}",
        "ms": f"{sum(run.ms for run in runs) / len(runs):.1f}",
        "held-out loss": experiment.interval((run.loss for run in runs), digits=3),
    }


def table(found: list[Result]) -> str:
    """Return `summary` as aligned text."""
    rows = summary(found)
    return tables.align([tuple(rows[0]), *(tuple(row.values()) for row in rows)])


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_line.Parser(
        f"experiments.{NAME}", about=__doc__, sizes="small or full", record="write one record a plan and seed"
    )
    parser.add_argument("--plan", nargs="+", metavar="NAME", help="bf16-mixed-128x8: recipe, width, batch; see README")
    parser.add_count("--seeds", default=1, help="run seeds 0 to N-1")
    parser.add_argument("--data", metavar="DIR", help="folder with text; default: generated stories")
    return parser.checked(arguments)


@command_line.in_one_line(NAME, kept="the plans above are done, and recorded where --record was given")
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 2 where no plan could be run."""
    try:
        options = _parse(arguments)
        given = problem(options.size, device=options.device, source=options.data or "generated")
        chosen = [named(name) for name in options.plan or (PLANS if options.size == "small" else ())]
        plans = chosen or filling(given)
    except (ValueError, OSError) as error:
        return command_line.complain(NAME, str(error), 2)
    given = given.rated()
    first = {"size": options.size, "data": given.task.prose.source, "card": f"{given.card.size / 1e6:,.1f} MB"}
    print(command_line.first_lines(options.device, **first), flush=True)
    done = []
    for result in _results(plans, given, options):
        done.append(result)
        print(f"{result.plan.name} seed {result.seed}: done", file=sys.stderr, flush=True)
    if not done:
        return command_line.complain(NAME, "none of these plans can be run here; above stands why", 2)
    print(table(done))
    return 0


def _results(plans: list[Plan], given: Problem, options: argparse.Namespace) -> Iterator[Result]:
    """Yield the result of each plan and seed, from its record where there is one; say of the others why not."""
    shown, fell = records.provenance(options.command), set()
    for seed, plan in itertools.product(range(options.seeds), plans):
        if plan in fell:
            continue
        try:
            key = experiment.record_key(_planned(plan, given), plan.running(), seed=seed, device=given.device)
            found = options.record and records.find(options.record, key=key, recipe=plan.name, seed=seed)
            result = of_record(found) if found else measure_plan(plan, given, seed=seed, shown=shown)
        except (ValueError, MemoryError, RuntimeError) as error:
            if not (isinstance(error, ValueError) or command_line.out_of_memory(error)):
                raise
            fell.add(plan)
            said = first_line(error)
            print(said if said.startswith(f"{plan.name}:") else f"{plan.name}: {said}", flush=True)
            continue
        if options.record and not found:
            records.save(result.record, options.record)
        yield result
