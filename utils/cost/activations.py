"""What autograd saves for the backward pass: closed formulas for DistilBERT, GPT-2 and LLaMA, exact to the byte.

    count_saved_bytes(find_architecture("GPT-2"), find_recipe("bf16-mixed"), batch=8, length=1_024)  # bytes
    list_terms(...)  # tensor by tensor, as in `activation_tables`

The loss is that of `training_loop.Trainer`: the mean cross-entropy of float32 logits, with int64 labels.
"""

from dataclasses import asdict, dataclass, replace
from math import prod

import torch

from utils.cost.activation_tables import TABLES, SavedTensor
from utils.cost.architectures import Adapters, Architecture
from utils.training.recipes import Recipe

DEVICES = ("cpu", "cuda")
ATTENTIONS = ("eager", "sdpa")
FIXED = {"bool": 1, "float32": 4, "int64": 8}  # bytes a value of the dtypes that no recipe decides


@dataclass(frozen=True)
class Term:
    """A row of a formula with its numbers: so many `tensors`, so many `bytes` altogether."""

    row: SavedTensor
    tensors: int
    bytes: int


def itemsizes(recipe: Recipe) -> dict[str, int]:
    """Return the bytes of a value of each dtype that a row may name."""
    wide = torch.promote_types(recipe.weights, torch.float32).itemsize
    sums = torch.promote_types(recipe.arithmetic, torch.float32).itemsize
    return FIXED | {
        "weights": recipe.weights.itemsize,
        "compute": recipe.arithmetic.itemsize,
        "wide": wide,
        "sums": sums,
    }


def conditions(
    architecture: Architecture,
    recipe: Recipe,
    *,
    batch: int,
    attention: str,
    checkpointing: bool,
    padded: bool,
    device: str,
    adapters: Adapters | None = None,
) -> set[str]:
    """Return the words that hold, of those that a row's `when` may ask for.

    Those of `words`; "cpu" or "cuda"; "padded" or "full"; "single" (one text); "plain" (no checkpointing); "dropout",
    "attention-dropout", "head-dropout"; "eager", "fused" (one kernel of SDPA) or "math" (SDPA in steps: a CPU with
    dropout); and the names of the projections that have adapters.
    """
    if attention not in ATTENTIONS or device not in DEVICES:
        raise ValueError(f"no formula for attention {attention!r} on {device!r}; take one of {ATTENTIONS}, {DEVICES}")
    kernel = "math" if architecture.attention_dropout and device == "cpu" else "fused"
    held = {
        "padded" if padded else "full": True,
        attention if attention == "eager" else kernel: True,
        device: True,
        "single": batch == 1,
        "plain": not checkpointing,
        "dropout": architecture.dropout > 0,
        "attention-dropout": architecture.attention_dropout > 0,
        "head-dropout": architecture.head_dropout > 0,
    }
    projections = set(adapters.of(architecture)) if adapters else set()
    return {word for word, holds in held.items() if holds} | words(recipe, adapters) | projections


def frozen(recipe: Recipe) -> Recipe:
    """Return what frozen weights are in beside adapters that follow `recipe`: the dtype of its products."""
    return replace(recipe, weights=recipe.arithmetic, compute=None)


def words(recipe: Recipe, adapters: Adapters | None = None) -> set[str]:
    """Return those of `conditions` that the recipe and the adapters decide.

    "mixed" (autocast, from wider weights) or "true"; "uncast" (no autocast) or, with adapters, "cast"; "recast" (the
    weights are not float32); "whole" (all weights are trained) or "frozen", with "copied" or "shared": whether each
    adapter has its own copy of its input.
    """
    mixed = recipe.compute is not None
    if adapters:
        decided = {
            "true",
            "frozen",
            "cast" if mixed else "uncast",
            "copied" if mixed and not adapters.nf4 else "shared",
        }
        recipe = frozen(recipe)
    else:
        decided = {"whole"} | ({"mixed"} if mixed else {"true", "uncast"})
    return decided | ({"recast"} if recipe.weights is not torch.float32 else set())


def list_terms(
    architecture: Architecture,
    recipe: Recipe,
    *,
    batch: int,
    length: int,
    attention: str = "eager",
    checkpointing: bool = False,
    padded: bool = True,
    device: str = "cpu",
    adapters: Adapters | None = None,
) -> list[Term]:
    """Return what a forward pass in training mode saves, row by row.

    `adapters`: what is trained beside frozen weights, which are then in the dtype of the recipe's products; exact with
    fused attention, and with eager attention where queries, keys and values all have adapters.
    `padded`: whether a text of the batch is shorter than the others. Without that, the mask is left out.
    Measured on a CPU. Those of a GPU with eager attention agree with torch's rules for CUDA tensors without data; none
    was measured on a GPU yet. Its fused kernels save up to 24 bytes a layer besides, and one of them rounds up the
    log-sum-exps to 32 tokens. `FastHalf` saves them in 16 bits.
    Raises: ValueError for an attention, a device or a recipe that there is no formula for.
    """
    if recipe.float8:
        raise ValueError(f"no formula for what {recipe.name} saves; measure it, or take batch=0 for the rest")
    how = {"batch": batch, "attention": attention, "checkpointing": checkpointing, "padded": padded, "device": device}
    held = conditions(architecture, recipe, **how, adapters=adapters)
    sizes = architecture.dimensions | {"B": batch, "S": length, "R": adapters.rank if adapters else 0}
    widths = itemsizes(frozen(recipe) if adapters else recipe)
    table = TABLES[architecture.family]
    layer = table.checkpointed if checkpointing else table.layer
    rows = [(row, 1) for row in table.once + (table.mask if checkpointing else ())]
    rows += [(row, architecture.layers) for row in layer]
    terms = []
    for row, times in rows:
        if row.holds(held):
            tensors = times * row.count
            # bytes = tensors * product of the sizes * bytes of a value
            terms.append(Term(row, tensors, tensors * prod(sizes[letter] for letter in row.size) * widths[row.dtype]))
    return terms


def count_saved_bytes(architecture: Architecture, recipe: Recipe, **how) -> int:
    """Return the bytes of `list_terms` together."""
    return sum(term.bytes for term in list_terms(architecture, recipe, **how))


def as_json() -> dict[str, dict[str, list[dict]]]:
    """Return the tables as plain JSON values: by family and by part of `Table`, rows with the fields of `Saved`."""
    return {family: asdict(table) for family, table in TABLES.items()}
