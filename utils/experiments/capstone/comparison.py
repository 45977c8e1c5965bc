"""Run the plans of the capstone: what each takes and how well its model learns, beside what was predicted.

    python -m utils.experiments.capstone --plan bf16-true-128x8 bf16-mixed-96x8 --size small --seeds 3 --record DIR

`measure_plan` does one plan and seed. `utils.llama` trains it, `utils.experiments.capstone.forecasts` predicts it.
Without --plan: the plans of the chapter, and at full size those that fill the card.
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
from utils.experiments.capstone.forecasts import forecast, refuse
from utils.experiments.capstone.plans import Plan, Problem, make_problem, parse_plan
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
class PlanResult:
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
        return self.peak / self.predicted_peak - 1  # 0.03: 3 % more than predicted


def measure_peak(plan: Plan, problem: Problem) -> int:
    """Take two steps of a full batch, and return the most bytes that were alive in the second one.

    On CUDA by the allocator, elsewhere by what the operations return.
    """
    task = plan.task(problem)
    model = task.new_model(0)
    models.fit_attention(model, problem.device)
    settings, batch = task.settings, _make_run_plan(plan, problem).full_batch
    trainer = Trainer(
        model, recipe=plan.running(), device=problem.device, schedule=settings.schedule, steps=settings.steps
    )
    fitting.step_peak(trainer, batch)  # the optimizer's moments are made in the first step
    return fitting.step_peak(trainer, batch)


def measure_plan(plan: Plan, problem: Problem, *, seed: int = 0, shown: dict | None = None) -> PlanResult:
    """Predict a plan, try a step, train it, and return what was predicted and what came of it.

    `shown`: the provenance of its record. Raises: ValueError with the sentence of `refuse`, and
    torch.OutOfMemoryError where a step takes more than the card has.
    """
    if why := refuse(plan, problem):
        raise ValueError(why)
    predicted, measured_peak = forecast(plan, problem), measure_peak(plan, problem)
    if measured_peak > problem.card.size:
        raise torch.OutOfMemoryError(
            f"{plan.name}: a step takes {measured_peak / 1e6:.1f} MB,"
            f" {problem.card.name} has {problem.card.size / 1e6:.1f}"
        )
    run = experiment.run(
        _make_run_plan(plan, problem), plan.running(), device=problem.device, seed=seed, provenance=shown
    )
    taken = run.record.results
    by_processor = measure.quiet_clock()[1] == "processor" and problem.device.type == "cpu"
    results = taken | {
        "plan": asdict(plan),
        "card": {"name": problem.card.name, "size": problem.card.size},
        "predicted_peak": predicted.peak,
        "peak": measured_peak,
        "predicted_ms": predicted.milliseconds,
        # of all threads, where another program may take the processor in between
        "ms": 1e3 * taken["cpu_seconds"] / taken["steps"] if by_processor else taken["step_ms"],
    }
    return of_record(replace(run.record, experiment=NAME, recipe=plan.name, results=results))


def of_record(record: records.Record) -> PlanResult:
    """Return the result that a record holds."""
    results = record.results
    loss = float("nan") if results["loss"] is None else results["loss"]
    names = ("predicted_peak", "peak", "predicted_ms", "ms")
    return PlanResult(parse_plan(record.recipe), record.seed, *(results[name] for name in names), loss, record)


def _make_run_plan(plan: Plan, problem: Problem) -> experiment.RunPlan:
    """Return what `llama` trains for this plan; of what it measures afterwards, the loss alone."""
    usual = llama.make_plan(plan.task(problem))

    def evaluate(trainer: Trainer) -> dict:
        settings = usual.task.settings
        losses = llama.token_losses(trainer.model, usual.task.held_out, recipe=trainer.recipe, window=settings.length)
        return {"held_out_tokens": len(losses), "loss": losses.double().mean().item()}

    return replace(usual, name=f"{NAME}-{plan.name}", evaluate=evaluate, module=__spec__.name)


def find_filling_plans(problem: Problem) -> list[Plan]:
    """Return for each recipe and width the plan with the largest batch, up to `MOST`, that is predicted to fit."""
    plans = []
    for width, (recipe, checkpointing_choices) in itertools.product(WIDTHS, FILLING.items()):
        for checkpointing in checkpointing_choices:
            plan = Plan(recipe, width, 1, checkpointing=checkpointing)
            batch = fitting.largest_batch(lambda n, plan=plan: not refuse(replace(plan, batch=n), problem), most=MOST)
            if batch:
                plans.append(replace(plan, batch=batch))
    return plans


def summarize(results: list[PlanResult]) -> list[dict[str, str]]:
    """Return the results as texts by heading, one row a plan, the highest loss first.

    Bytes are the most of all seeds, times their mean, the loss carries the 95 % Student interval over them.
    """
    plans: dict[Plan, list[PlanResult]] = {}
    for result in results:
        plans.setdefault(result.plan, []).append(result)
    return [_make_row(runs) for runs in sorted(plans.values(), key=lambda runs: -max(run.loss for run in runs))]


def _make_row(runs: list[PlanResult]) -> dict[str, str]:
    expected = [run.predicted_ms for run in runs]
    return {
        "plan": runs[0].plan.name,
        "MB promised": f"{runs[0].predicted_peak / 1e6:,.1f}",
        "MB": f"{max(run.peak for run in runs) / 1e6:,.1f}",
        "ms promised": "-" if None in expected else f"{sum(expected) / len(runs):.1f}",
        "ms": f"{sum(run.ms for run in runs) / len(runs):.1f}",
        "held-out loss": experiment.format_interval((run.loss for run in runs), digits=3),
    }


def format_table(results: list[PlanResult]) -> str:
    """Return `summarize` as aligned text."""
    rows = summarize(results)
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
        unrated = make_problem(options.size, device=options.device, source=options.data or "generated")
        named_plans = [parse_plan(name) for name in options.plan or (PLANS if options.size == "small" else ())]
        plans = named_plans or find_filling_plans(unrated)
    except (ValueError, OSError) as error:
        return command_line.complain(NAME, str(error), 2)
    rated = unrated.rated()
    first = {"size": options.size, "data": rated.task.texts.source, "card": f"{rated.card.size / 1e6:,.1f} MB"}
    print(command_line.describe_run(options.device, **first), flush=True)
    done = []
    for result in _run_plans(plans, rated, options):
        done.append(result)
        print(f"{result.plan.name} seed {result.seed}: done", file=sys.stderr, flush=True)
    if not done:
        return command_line.complain(NAME, "none of these plans can be run here; above stands why", 2)
    print(format_table(done))
    return 0


def _run_plans(plans: list[Plan], problem: Problem, options: argparse.Namespace) -> Iterator[PlanResult]:
    """Yield the result of each plan and seed, from its record where there is one; say of the others why not."""
    provenance, failed = records.provenance(options.command), set()
    for seed, plan in itertools.product(range(options.seeds), plans):
        if plan in failed:
            continue
        try:
            key = experiment.record_key(_make_run_plan(plan, problem), plan.running(), seed=seed, device=problem.device)
            record = options.record and records.find(options.record, key=key, recipe=plan.name, seed=seed)
            result = of_record(record) if record else measure_plan(plan, problem, seed=seed, shown=provenance)
        except (ValueError, MemoryError, RuntimeError) as error:
            if not (isinstance(error, ValueError) or command_line.out_of_memory(error)):
                raise
            failed.add(plan)
            reason = first_line(error)
            print(reason if reason.startswith(f"{plan.name}:") else f"{plan.name}: {reason}", flush=True)
            continue
        if options.record and not record:
            records.save(result.record, options.record)
        yield result
