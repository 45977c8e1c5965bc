"""Bytes that a plan keeps for its backward pass, by kind of tensor, and its bytes when its batch comes in parts.

    by_kind(Plan("bf16-true", width=128, batch=8), given)["softmax"]  # bytes
    in_parts(Plan("bf16-mixed", width=128, batch=8), given, 2)["loss"]  # bytes

Apart from `utils.experiments.capstone.forecasts`: its source is in the key of every record, and this is not.
"""

from dataclasses import replace

from utils.cost import activations
from utils.cost.activation_tables import COPIES
from utils.cost.architectures import Architecture
from utils.experiments.capstone.forecasts import SIZES, forecast
from utils.experiments.capstone.plans import Plan, Problem
from utils.training.recipes import find_recipe

KINDS = {  # the beginning of what a row of `activation_tables` is called: its kind
    "softmax": "softmax",
    "attention weights, as multiplied": "its 16-bit copy",
    "input of the norm": "inputs of the norms",
    "log-probabilities": "log-probabilities",
    COPIES: "copies of weights",
    "gate": "feed-forward layers",
}
REST = "all else"


def count_by_kind(plan: Plan, problem: Problem) -> dict[str, int]:
    """Return the bytes of `Ledger.activations` by kind, the largest of a plain LLaMA first; a kind may take none.

    Raises: ValueError for a width that the heads cannot share, and for a recipe with FP8 layers.
    """
    shape, device = plan.shape(problem), problem.device.type
    rows = activations.list_terms(
        Architecture("llama", **{name: getattr(shape, name) for name in SIZES}),
        find_recipe(plan.recipe),
        batch=plan.batch,
        length=problem.length,
        attention="sdpa" if device == "cuda" else "eager",
        checkpointing=plan.checkpointing,
        device=device,
    )
    bytes_by_kind = dict.fromkeys([*KINDS.values(), REST], 0)
    for term in rows:
        kind = next((KINDS[begin] for begin in KINDS if term.row.what.startswith(begin)), REST)
        bytes_by_kind[kind] += term.bytes
    return bytes_by_kind


def count_in_parts(plan: Plan, problem: Problem, parts: int) -> dict[str, int]:
    """Return the bytes of the moments of a plan whose batch comes in so many equal parts, gradients added up.

    Activations and logits are those of a part. From the second one on, the gradients are there all the while.
    Raises: ValueError where the parts do not divide the batch.
    """
    if parts < 1 or plan.batch % parts:
        raise ValueError(f"{parts} parts do not divide a batch of {plan.batch}")
    part = forecast(replace(plan, batch=plan.batch // parts), problem)
    held = part.ledger.gradients if parts > 1 else 0
    return {name: size + (0 if name == "update" else held) for name, size in part.moments.items()}
