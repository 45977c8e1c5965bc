"""Predict the bytes and milliseconds of a plan's training step, and refuse the plans that cannot work.

    forecast(Plan("bf16-true", width=128, batch=8), problem("small", device=device)).peak  # bytes

1 MB = 1e6 bytes.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import torch

from utils.cost import activations, flops, memory
from utils.cost.architectures import Architecture
from utils.cost.memory import Ledger
from utils.experiments.capstone.budget import Budget, count_operations, make_trainer
from utils.experiments.capstone.plans import Plan, Problem
from utils.training.recipes import find_recipe as find_recipe

SIZES = ("vocabulary", "width", "layers", "heads", "groups", "hidden", "positions", "tied")
PASSES = 14  # bytes that the operations of an eager step read and write, for each byte that autograd keeps; counted


@dataclass(frozen=True)
class Forecast:
    """What a step of a plan takes: `moments` in bytes, `parts` in milliseconds, each by name.

    The moments are those at which a step may hold most: "loss" (all activations, and twice the gradient of the
    logits), "again" (a block is made again; with checkpointing alone), "update" (all gradients). `parts` is empty where
    the card has no rates, or emulates the recipe's products: then no speed is claimed. `overlap`: whether the device
    works while the next operations are launched, as a GPU does.
    """

    ledger: Ledger
    moments: dict[str, int]
    parts: dict[str, float]
    overlap: bool = False

    @property
    def peak(self) -> int:
        """The most bytes at once."""
        return max(self.moments.values())

    @property
    def milliseconds(self) -> float | None:
        """Of a step; None where no speed is claimed."""
        if not self.parts:
            return None
        work = self.parts["products"] + self.parts["memory"]
        return max(work, self.parts["launches"]) if self.overlap else work + self.parts["launches"]


def forecast(plan: Plan, problem: Problem) -> Forecast:
    """Predict a step on a batch of full length; nothing is trained.

    Raises: ValueError for a width that the heads cannot share, and for a recipe with FP8 layers.
    """
    shape, device = plan.shape(problem), problem.device.type
    architecture = Architecture("llama", **{name: getattr(shape, name) for name in SIZES})
    setting = {"batch": plan.batch, "length": problem.length, "device": device}
    setting |= {"attention": "sdpa" if device == "cuda" else "eager"}  # as `models.fit_attention` has it
    ledger = memory.predict(
        architecture, plan.recipe, optimizer=plan.optimizer, checkpointing=plan.checkpointing, **setting
    )
    moments = _predict_moments(plan, ledger, architecture, setting)
    return Forecast(ledger, moments, _predict_parts(plan, problem, ledger), overlap=device == "cuda")


def _predict_moments(plan: Plan, ledger: Ledger, architecture: Architecture, setting: dict) -> dict[str, int]:
    """Return the bytes of the moments of `Forecast`.

    The backward pass of `cross_entropy` is two operations, and each of them returns a tensor like the wide logits,
    [B, S, V]. The update of a weight has three temporaries of its size.
    """
    recipe = find_recipe(plan.recipe)
    wide = torch.promote_types(recipe.weights, torch.float32).itemsize  # bytes
    logits = wide * plan.batch * setting["length"] * architecture.vocabulary  # [B, S, V]
    kept = ledger.at_rest + ledger.activations
    largest = max(architecture.weights())
    moments = {"loss": kept + 2 * logits, "update": ledger.at_rest + ledger.gradients + 3 * wide * largest}
    if plan.checkpointing:
        deeper = replace(architecture, layers=architecture.layers + 1)
        block = activations.count_saved_bytes(deeper, recipe, **setting) - activations.count_saved_bytes(
            architecture, recipe, **setting
        )
        # parameters - (deeper - parameters) = all but one block's: those gradients are there when it is made again
        gradients = recipe.gradients.itemsize * (2 * architecture.parameters - deeper.parameters)
        moments["again"] = kept + block + max(0, gradients - logits)
    return moments


def _predict_parts(plan: Plan, problem: Problem, ledger: Ledger) -> dict[str, float]:
    """Return milliseconds: the products at their measured rate, the bytes that move, and the calls.

    What moves is a rule of thumb: `PASSES` for each activation that is kept, since every operation of an eager step
    reads its inputs and writes its result. Checkpointing takes the forward pass twice.
    """
    card, recipe, shape = problem.card, find_recipe(plan.recipe), plan.shape(problem)
    rate = card.products.get(str(recipe.arithmetic).removeprefix("torch."))
    if rate is None or not card.bandwidth or not card.launch or recipe.float32_matmul != "highest":
        return {}
    config = SimpleNamespace(
        model_type="llama",
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.groups,
        intermediate_size=shape.hidden,
        vocab_size=shape.vocabulary,
    )
    work, kept = 1.0, ledger.activations
    if plan.checkpointing:  # backward costs two forward passes, so a second forward makes three passes four
        work = 4 / 3
        kept = forecast(replace(plan, checkpointing=False), replace(problem, card=Budget("", 0))).ledger.activations
    operations = work * flops.count_step_flops(config, plan.batch, problem.length)
    return {
        "products": operations / rate / 1e9,  # FLOPs / (TFLOP/s) / 1e9 = ms
        "memory": PASSES * work * kept / card.bandwidth / 1e6,  # bytes / (GB/s) / 1e6 = ms
        "launches": count_launches(plan, problem) * card.launch / 1e3,  # microseconds / 1e3 = ms
    }


def count_launches(plan: Plan, problem: Problem) -> int:
    """Return how many operations torch starts in a step of this plan, counted on one short text."""
    return count_operations(make_trainer(plan.task(problem).new_model(0), plan.running(), problem.device))


def refuse(plan: Plan, problem: Problem) -> str:
    """Say in one sentence why this plan cannot work here, or cannot be promised; "" where nothing is against it."""
    recipe = find_recipe(plan.recipe)
    if recipe.float8:
        if remark := recipe.remark(problem.device):
            return f"{plan.recipe}: {remark}; neither the bytes nor the time of this run would be those of FP8."
        return f"{plan.recipe}: no ledger knows what its FP8 layers keep; measure a step before you promise one."
    if recipe.arithmetic is torch.float16 and not (recipe.needs_loss_scaling or recipe.loss_scale):
        if recipe.weights is recipe.optimizer is torch.float16 and recipe.epsilon is None:
            return f"{plan.recipe}: Adam's eps of 1e-8 is 0 in float16, so updates can divide by 0; take 16-mixed."
        return f"{plan.recipe}: no loss scale, so gradients up to 2**-25 become 0 in float16; take 16-mixed."
    try:
        peak, size = forecast(plan, problem).peak, problem.card.size
    except ValueError as error:
        return f"{plan.name}: {error}."
    if peak > size:
        over = f"{(peak - size) / 1e6:,.1f} MB more than the {size / 1e6:,.1f} MB of {problem.card.name}"
        return f"{plan.name}: does not fit; a step takes {peak / 1e6:,.1f} MB, {over}."
    return ""
