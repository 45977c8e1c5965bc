"""Record the amax of a linear layer's three operands in every step of a training: what delayed scaling must foresee.

    python -m utils.experiments.amax_series --model distilbert --size small --data DIR --record DIR

A linear layer multiplies its input with its weight, and the gradient of its output with both. Those are the tensors
that an FP8 product needs a scale for. The run is that of `utils.distilbert` or `utils.llama`: the same weights, batches
and dropout, so the same losses.
"""

import sys
from collections.abc import Sequence
from functools import partial

import torch
from torch import nn

from utils import distilbert, llama, records
from utils.runs import command_line, experiment, measurement, tables
from utils.training import watch
from utils.training.layer_names import layer_of
from utils.training.recipes import Recipe
from utils.training.recipes import find_recipe as find_recipe
from utils.workloads import data, language_task, review_task

NAME = "amax_series"
PREFIX = "amax-"  # of the experiment: "amax-distilbert"
MODELS = ("distilbert", "llama")
INPUTS, WEIGHTS, GRADIENTS = "inputs", "weights", "gradients"
KINDS = (INPUTS, WEIGHTS, GRADIENTS)
CHOSEN = ("k_lin", "out_lin", "lin2", "k_proj", "o_proj", "down_proj")  # of the first and of the last block
HISTORY = 16  # steps that `find_jumps` looks back, unless told otherwise


class AmaxSeries:
    """The largest |x| of each operand of some linear layers in every step, as a context around a training.

    `series[kind][name]` is a list of one float a step: of the layer's input and of its weight as the forward pass sees
    them, and of the gradient of its output, divided by the scale of the loss. NaN and infinity stay. A forward pass
    with gradients begins a step; one without is none. `names`: of `nn.Linear` modules of the model.
    Raises: ValueError for a name that the model has no linear layer of.
    """

    def __init__(self, model: nn.Module, names: Sequence[str], *, scaler=None):
        linears = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
        if unknown := set(names) - set(linears):
            raise ValueError(f"no linear layer {min(unknown)!r}; the model has {', '.join(linears)}")
        self.linears, self.scaler = {name: linears[name] for name in names}, scaler
        # Scalar tensors on the device: reading one in every step would make the device wait.
        self._amaxes: dict[str, dict[str, list[torch.Tensor]]] = {kind: {name: [] for name in names} for kind in KINDS}

    def __enter__(self) -> "AmaxSeries":
        self._hooks = [
            module.register_forward_hook(partial(self._note_amaxes, name)) for name, module in self.linears.items()
        ]
        return self

    def __exit__(self, *error) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def series(self) -> dict[str, dict[str, list[float]]]:
        """The amaxes so far, by kind and name."""
        return {
            kind: {name: [amax.item() for amax in amaxes] for name, amaxes in by_name.items()}
            for kind, by_name in self._amaxes.items()
        }

    def _note_amaxes(self, name: str, module: nn.Linear, inputs: tuple, output: torch.Tensor) -> None:
        if not output.requires_grad:  # an evaluation, which is no step
            return
        self._amaxes[INPUTS][name].append(_take_amax(inputs[0]))
        self._amaxes[WEIGHTS][name].append(_take_amax(module.weight))
        inv_scale = 1.0 / self.scaler.get_scale() if self.scaler is not None else 1.0
        output.register_hook(lambda gradient: self._amaxes[GRADIENTS][name].append(_take_amax(gradient) * inv_scale))


def _take_amax(x: torch.Tensor) -> torch.Tensor:
    return x.detach().float().abs().amax()


def list_recorded_layers(model: nn.Module) -> list[str]:
    """Return the names of the linear layers that are recorded: keys, attention's output, and the last of each block.

    Of a model's first and last block; `CHOSEN` are the ends of the names.
    """
    names = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] in CHOSEN
    ]
    blocks = list(map(layer_of, names))
    return [name for name, block in zip(names, blocks, strict=True) if block in (blocks[0], blocks[-1])]


def find_jumps(values: Sequence[float], *, history: int = HISTORY) -> list[tuple[int, float]]:
    """Return the steps, counted from 1, whose amax is above all of the `history` steps before, and how many times.

    Scales that come from these steps saturate there, unless a margin leaves room for the factor. The first step has
    nothing before it and is left out.
    """
    steps_and_factors = []
    for index in range(1, len(values)):
        largest = max(values[max(0, index - history) : index])  # the amax that a delayed scale would know
        if values[index] > largest:
            steps_and_factors.append((index + 1, values[index] / largest if largest else float("inf")))
    return steps_and_factors


def record_run(
    plan: experiment.RunPlan, recipe: Recipe, *, device: torch.device, seed: int = 0, shown: str = ""
) -> records.Record:
    """Train the plan's model once and return the record of its amaxes; `of_record` reads it."""
    with experiment.set_up(plan, recipe, device=device, seed=seed) as training:
        trainer = training.trainer
        amaxes = AmaxSeries(trainer.model, list_recorded_layers(trainer.model), scaler=trainer.scaler)
        history, _ = experiment.train(training, watchers=[amaxes])
    series = amaxes.series
    rounded = {
        kind: {name: list(map(measurement.round_to, values)) for name, values in by_name.items()}
        for kind, by_name in series.items()
    }
    return experiment.to_record(
        training,
        experiment=f"{PREFIX}{plan.name}",
        results={"steps": history.steps, "nan_step": history.nan_step, "jumps": _count_jumps(series)},
        samples={"amax": rounded, "loss": [measurement.round_to(loss) for loss in history.losses]},
        provenance=records.provenance(shown),
    )


def _count_jumps(series: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, list]]:
    """Return by kind and name: how many jumps there are, the step of the largest, and its factor."""
    counts: dict[str, dict[str, list]] = {kind: {} for kind in series}
    for kind, by_name in series.items():
        for name, values in by_name.items():
            steps_and_factors = find_jumps(values)
            step, factor = max(steps_and_factors, key=lambda jump: jump[1], default=(None, None))
            counts[kind][name] = [len(steps_and_factors), step, factor and measurement.round_to(factor)]
    return counts


def of_record(record: records.Record) -> dict:
    """Return the amaxes of a record with the words that a figure needs, as plain JSON values.

    Keys: "model", "recipe", "data", "device", "date" (texts), "steps", "loss" (a number a step), and "series": a list
    of {"kind", "name", "values"}, one value a step, None where it was not finite.
    Raises: ValueError when the record has no amaxes.
    """
    if "amax" not in record.samples:
        raise ValueError(
            f"the record {record.name} holds no amaxes; make one with python -m utils.experiments.{NAME} --record"
        )
    return {
        **watch.words(record, prefix=PREFIX),
        "steps": record.results["steps"],
        "loss": record.samples["loss"],
        "series": [
            {"kind": kind, "name": name, "values": values}
            for kind, by_name in record.samples["amax"].items()
            for name, values in by_name.items()
        ],
    }


def format_table(record: records.Record) -> str:
    """Return as text: of each series the first, the largest and the last amax, and its jumps over `HISTORY` steps."""
    rows = [("operand", "first", "largest", "last", "jumps", "largest jump")]
    for kind, by_name in record.samples["amax"].items():
        for name, values in by_name.items():
            count, step, factor = record.results["jumps"][kind][name]
            most = f"{factor:.2f} times at step {step}" if count else "-"
            shown = (f"{value:.3g}" for value in (values[0], max(values), values[-1]))
            rows.append((f"{kind} {name}", *shown, str(count), most))
    return tables.align(rows)


def make_plan(model: str, *, size: str, folder: str | None = None) -> experiment.RunPlan:
    """Return the plan of a model's usual run: "distilbert" or "llama".

    Raises: ValueError for another model, or when the folder with data cannot be used.
    """
    if model not in MODELS:
        raise ValueError(f"unknown model {model!r}; the known ones are {', '.join(MODELS)}")
    if model == "distilbert":
        return distilbert.make_plan(review_task.prepare(data.load_reviews(folder, size=size), size=size))
    settings = language_task.settings_for(size)
    prose = data.load_prose(folder, characters=settings.characters)
    return llama.make_plan(language_task.prepare(prose, size=size, settings=settings))


@command_line.in_one_line(NAME)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = command_line.Parser(f"experiments.{NAME}", about=__doc__, sizes="small or full")
    parser.add_argument("--model", default=MODELS[0], help=f"{' or '.join(MODELS)}; default: %(default)s")
    parser.add_argument("--recipe", default="32-true", metavar="NAME", help="default: %(default)s")
    parser.add_argument("--data", metavar="DIR", help="folder with the data; default: the hub, else generated")
    try:
        options = parser.checked(arguments)
        recipe = find_recipe(options.recipe)
        plan = make_plan(options.model, size=options.size, folder=options.data)
    except (ValueError, OSError) as error:
        return command_line.complain(NAME, str(error), 2)
    print(command_line.describe_run(options.device, size=options.size, data=plan.task.texts.source), flush=True)
    record = record_run(plan, recipe, device=options.device, shown=options.command)
    print(format_table(record))
    if options.record:
        records.save(record, options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
