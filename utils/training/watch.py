"""Watching a training run: where its weights, activations, gradients and updates lie, layer by layer.

    watch = Watch(model, optimizer, scaler=scaler, steps=evenly(300, count=8))
    for step, batch in enumerate(batches, 1):
        with watch.step(step):
            ...  # zero_grad, forward, backward, unscale, clip, step
    watch.histograms["activation gradients"]["layer 1"]  # one Histogram for each watched step

A watched run ends with the weights of an unwatched one, bit for bit, and a step that is not watched costs nothing.
"""

import contextlib
import json
import math
from collections.abc import Callable, Collection, Iterator

import torch
from torch import nn

from utils.emulation.exponent_histogram import Histogram, histogram
from utils.records import Record
from utils.training.layer_names import layer_of

WEIGHTS, ACTIVATIONS, UPDATES = "weights", "activations", "updates"
ACTIVATION_GRADIENTS, WEIGHT_GRADIENTS = "activation gradients", "weight gradients"
KINDS = (WEIGHTS, ACTIVATIONS, ACTIVATION_GRADIENTS, WEIGHT_GRADIENTS, UPDATES)
MODELS = {"distilbert": "DistilBERT", "llama": "LLaMA"}
PREFIX = "watched-"  # of the experiment of a watched run: its times are not those of the others
MOST_STEPS = 16  # that a run can watch
MOST_BYTES = 170_000  # that the histograms take in a record, which stays below 200 kB


class Watch:
    """Histograms of the steps that are watched, by kind and by group, which is the layer as `layer_of` names it.

    `histograms[kind][group]` has one Histogram for each step in `seen`. The kinds:

    * "weights": all parameters, at the beginning of the step, in the dtype in which they are stored;
    * "activations": the outputs of every `nn.Linear`, padding included;
    * "activation gradients": the gradients of the loss with respect to those outputs;
    * "weight gradients": of all parameters, as the backward pass leaves them in `.grad`, before they are clipped;
    * "updates": the new stored weight minus the old one, in float64. Where the optimizer's step was skipped, and where
      the update was lost because the weight could not hold it, that is zero.

    Under a loss scaler both kinds of gradients are divided by its scale, which must be a power of two, so that the
    division is exact: they are the gradients of the loss itself. What the run's own dtypes flushed at that scale is
    among the zeros.

    `scaler` is anything with `get_scale()`. `steps` are the numbers of the steps to watch; None watches all.
    """

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, *, scaler=None, steps: Collection[int] | None = None
    ):
        self.model, self.optimizer, self.scaler = model, optimizer, scaler
        self.steps = None if steps is None else frozenset(steps)
        self.seen: list[int] = []
        self._parameters = {name: (layer_of(name), weight) for name, weight in model.named_parameters()}
        self._linears = [
            (layer_of(name), module) for name, module in model.named_modules() if isinstance(module, nn.Linear)
        ]
        of_weights = dict.fromkeys(group for group, _ in self._parameters.values())
        of_linears = dict.fromkeys(group for group, _ in self._linears)
        self.groups = list(of_weights)
        self.histograms: dict[str, dict[str, list[Histogram]]] = {
            kind: {group: [] for group in (of_linears if kind in (ACTIVATIONS, ACTIVATION_GRADIENTS) else of_weights)}
            for kind in KINDS
        }

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Watch what happens inside, if `number` is one of the steps to watch: one forward and backward pass and step.

        With several backward passes before the step, "weight gradients" are their sum.
        All hooks are gone afterwards. A step that ends in an exception leaves no histogram.
        Raises: ValueError when the scale of the loss is not a power of two.
        """
        if self.steps is not None and number not in self.steps:
            yield
            return
        counts = _Step(self._inv_scale())
        hooks = self._hook(counts)
        try:
            for group, weight in self._parameters.values():
                counts.add(WEIGHTS, group, histogram(weight))
            yield
        finally:
            for hook in hooks:
                hook.remove()
        if not counts.stepped:
            self._updates(counts, [weight for _, weight in self._parameters.values()])
        for name, histogram_of_gradient in counts.gradients.items():
            counts.add(WEIGHT_GRADIENTS, self._parameters[name][0], histogram_of_gradient)
        for kind, groups in self.histograms.items():
            for group, steps in groups.items():
                steps.append(counts.sums.get((kind, group), Histogram()))
        self.seen.append(number)

    def as_json(self) -> dict:
        """Return plain JSON values: steps, groups, kinds, and a histogram for each kind, group and step.

        Where that takes more than `MOST_BYTES`, evenly spaced steps are left out until it fits; one always stays.
        """
        for count in range(len(self.seen), 0, -1):
            thinned = self._chosen([number - 1 for number in evenly(len(self.seen), count=count)])
            if len(json.dumps(thinned)) <= MOST_BYTES:
                return thinned
        return self._chosen([0] if self.seen else [])

    def _chosen(self, indices: list[int]) -> dict:
        return {
            "steps": [self.seen[index] for index in indices],
            "groups": list(self.groups),
            "kinds": list(KINDS),
            "histograms": {
                kind: {group: [steps[index].as_json() for index in indices] for group, steps in groups.items()}
                for kind, groups in self.histograms.items()
            },
        }

    def _inv_scale(self) -> float:
        scale = float(self.scaler.get_scale()) if self.scaler is not None else 1.0
        if math.frexp(scale)[0] != 0.5:
            raise ValueError(f"a loss scale of {scale} cannot be divided out exactly; watch one that is a power of two")
        return 1 / scale

    def _hook(self, counts: "_Step") -> list:
        """Register everything; each hook returns None, which leaves what it sees as it is."""
        hooks = [module.register_forward_hook(counts.of_linear(group)) for group, module in self._linears]
        for name, (_, weight) in self._parameters.items():
            if weight.requires_grad:
                hooks.append(weight.register_post_accumulate_grad_hook(counts.of_weight(name)))
        old = []

        def before(*_) -> None:
            old[:] = [weight.detach().clone() for _, weight in self._parameters.values()]

        def after(*_) -> None:
            self._updates(counts, old)
            old.clear()

        hooks.append(self.optimizer.register_step_pre_hook(before))
        hooks.append(self.optimizer.register_step_post_hook(after))
        return hooks

    def _updates(self, counts: "_Step", old: list[torch.Tensor]) -> None:
        counts.stepped = True
        for (group, new), before in zip(self._parameters.values(), old, strict=True):
            # float64: the difference of two neighbouring narrower numbers is exact, and so is that of two float64
            # numbers within a factor of two of each other (Sterbenz).
            counts.add(UPDATES, group, histogram(new.detach().double() - before.double()))


class _Step:
    """What one watched step has shown so far."""

    def __init__(self, inv_scale: float):
        self.inv_scale = inv_scale
        self.sums: dict[tuple[str, str], Histogram] = {}
        self.gradients: dict[str, Histogram] = {}  # by parameter: the last backward pass leaves the sum of all
        self.stepped = False

    def add(self, kind: str, group: str, counted: Histogram) -> None:
        self.sums[kind, group] = self.sums.get((kind, group), Histogram()) + counted

    def of_linear(self, group: str) -> Callable:
        def gradient(seen: torch.Tensor) -> None:
            self.add(ACTIVATION_GRADIENTS, group, histogram(seen).scaled(self.inv_scale))

        def output(module: nn.Module, inputs: tuple, seen: torch.Tensor) -> None:
            self.add(ACTIVATIONS, group, histogram(seen))
            if seen.requires_grad:
                seen.register_hook(gradient)

        return output

    def of_weight(self, name: str) -> Callable:
        def gradient(weight: torch.Tensor) -> None:
            self.gradients[name] = histogram(weight.grad).scaled(self.inv_scale)

        return gradient


def evenly(steps: int, *, count: int) -> tuple[int, ...]:
    """Return `count` of the steps 1 ... `steps`, evenly spaced, the first and the last among them; all if that is few.

    One step alone is the first.
    """
    if count < 1 or steps < 1:
        raise ValueError(f"{count} of {steps} steps: at least one of one")
    count = min(count, steps)
    return tuple(1 + round(index * (steps - 1) / max(1, count - 1)) for index in range(count))


def recorded(record: Record) -> dict:
    """Return the histograms of a watched run with the words that a figure needs, as plain JSON values.

    Keys: those of `words`, and those of `Watch.as_json`.
    Raises: ValueError when the run was not watched.
    """
    if "exponents" not in record.samples:
        raise ValueError(f"the run {record.name} was not watched; record one with --watch 8")
    return words(record, prefix=PREFIX) | record.samples["exponents"]


def words(record: Record, *, prefix: str) -> dict[str, str]:
    """Return "model", "recipe", "data", "device" and "date" of a record in words.

    `prefix` is what its experiment has before the name of the model.
    """
    name = record.experiment.removeprefix(prefix)
    model = MODELS.get(name, name)
    drawn = record.weights.partition(f"random, {model} of ")[2]  # "2 layers of width 64"
    return {
        "model": f"{model}, {drawn or record.weights}",
        "recipe": record.recipe,
        "data": record.data,
        "device": record.device["name"],
        "date": record.date[:10],
    }
