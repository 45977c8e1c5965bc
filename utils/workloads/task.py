"""What the runs of a comparison share, whatever their texts: a task with its data, and the model to begin with."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from utils.training.batches import Tokens
from utils.workloads import data


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """Texts turned into tokens, and the model to begin with: what all recipes and seeds of a comparison share.

    `settings`: everything that decides a run beside its recipe and seed. `weights`: where they come from, in words.
    `variant`: what a command changed in the settings, for the name of a record: "-rate1e-04".
    """

    size: str
    settings: object
    texts: data.Reviews | data.Prose
    tokenizer: object
    train: Tokens
    new_model: Callable[[int], nn.Module]  # from a seed
    weights: str
    variant: str = ""
