"""A plan for training a LLaMA on a card: recipe, optimizer, width, batch and checkpointing.

    given = problem("small", device=device)
    plan = Plan("bf16-true", width=128, batch=8)
    refuse(plan, given)  # "", or one sentence
    forecast(plan, given).peak  # bytes

A plan names what is chosen; text, steps and card are given. At small size the card is a budget of bytes, at full size
the memory of a GPU. `utils.experiments.capstone.forecasts` predicts bytes and milliseconds before anything is trained,
`utils.experiments.capstone.comparison` runs what is planned. 1 MB = 1e6 bytes.
"""

import functools
import re
from dataclasses import dataclass, replace

import torch

from utils.cost.cards import usable
from utils.experiments.capstone.budget import Budget, measure_rates
from utils.training.eight_bit_moments import Blockwise
from utils.training.optimizers import Nearest
from utils.training.recipes import Recipe
from utils.training.recipes import find_recipe as find_recipe
from utils.workloads import data, language_task, models
from utils.workloads.language_task import LanguageTask

STEPS = {"small": 64, "full": 400}
SMALL_CARD = 48_000_000  # bytes
OPTIMIZERS = ADAMW, EIGHT_BITS = ("adamw", "adamw-8bit")
NAME_PATTERN = re.compile(
    r"(?P<recipe>.+?)-(?P<width>\d+)x(?P<batch>\d+)(?P<eight>-8bit)?(?P<checkpointing>-checkpointing)?"
)


@dataclass(frozen=True)
class Problem:
    """What all plans share: a card, the device that computes, and a task whose width and batch are the plan's."""

    card: Budget
    device: torch.device
    task: LanguageTask

    @property
    def length(self) -> int:
        """Tokens of the longest piece of text."""
        return self.task.settings.length

    def rated(self) -> "Problem":
        """Return the problem with the rates of its device on the card, measured now."""
        return replace(self, card=measure_rates(self.card, self.device))


def make_problem(
    size: str = "small", *, device: torch.device, source: str | None = "generated", steps: int | None = None
) -> Problem:
    """Return the problem of a size: text, steps, and the small card, or at full size a GPU's own memory.

    `source`: "generated", a folder with text, or None for what `data.load_prose` finds.
    Raises: ValueError for a folder that cannot be used, and where trained weights are named, which have their width.
    """
    task = _prepare_task(size, source, steps or STEPS[size])
    if size == "full" and device.type == "cuda":
        card = Budget(torch.cuda.get_device_name(device), usable(torch.cuda.mem_get_info(device)[1]))
    else:
        card = Budget("the small card", SMALL_CARD)
    return Problem(card, device, task)


@functools.cache
def _prepare_task(size: str, source: str | None, steps: int) -> LanguageTask:
    settings = replace(language_task.settings_for(size), steps=steps)
    if source == "generated":
        prose = data.generated_prose(settings.characters)
    else:
        prose = data.load_prose(source, characters=settings.characters)
    task = language_task.prepare(prose, size=size, settings=settings)
    if not task.weights.startswith("random"):
        raise ValueError(f"{task.weights} have a width of their own; unset MIXED_PRECISION_WEIGHTS to plan one")
    return task


@dataclass(frozen=True)
class Plan:
    """What is chosen; `optimizer` is one of `OPTIMIZERS`.

    Raises: ValueError for an unknown recipe or optimizer, and for a width or batch below 1.
    """

    recipe: str
    width: int
    batch: int
    optimizer: str = ADAMW
    checkpointing: bool = False

    def __post_init__(self):
        find_recipe(self.recipe)
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer {self.optimizer!r} is not one of {', '.join(OPTIMIZERS)}")
        if min(self.width, self.batch) < 1:
            raise ValueError(f"width {self.width} and batch {self.batch} must both be 1 or more")

    @property
    def name(self) -> str:
        """The plan in one word, which `parse_plan` reads: "bf16-mixed-128x8-checkpointing"."""
        words = ("8bit" if self.optimizer == EIGHT_BITS else "", "checkpointing" if self.checkpointing else "")
        return "-".join([self.recipe, f"{self.width}x{self.batch}", *filter(None, words)])

    def shape(self, problem: Problem) -> models.LlamaShape:
        """Return the sizes of the model. Raises: ValueError for a width that the heads cannot share."""
        return problem.task.settings.shape.widened(self.width)

    def task(self, problem: Problem) -> LanguageTask:
        """Return the task of this plan, whose new models checkpoint if the plan does.

        Raises: ValueError for a width that the heads cannot share.
        """
        settings = replace(problem.task.settings, batch=self.batch, shape=self.shape(problem))

        def new_model(seed: int) -> torch.nn.Module:
            model = models.build_llama(settings.shape, seed=seed)
            if self.checkpointing:
                model.config.use_cache = False  # a pass that is taken twice would fill the cache twice
                models.checkpoint_blocks(model)
            return model

        weights = f"random, LLaMA of {settings.shape.layers} layers of width {self.width}"
        return replace(problem.task, settings=settings, new_model=new_model, weights=weights)

    def running(self) -> Recipe:
        """Return the recipe that trains: the one that is named, with moments of 8 bits where the plan says so."""
        recipe = find_recipe(self.recipe)
        if self.optimizer == EIGHT_BITS:
            return replace(recipe, optimizer=Blockwise(), store=recipe.store or Nearest())
        return recipe


def parse_plan(text: str) -> Plan:
    """Return the plan that `Plan.name` writes. Raises: ValueError for anything else."""
    match = NAME_PATTERN.fullmatch(text)
    if not match:
        raise ValueError(f"plan {text!r} is not like bf16-mixed-128x8 or bf16-true-256x4-8bit-checkpointing")
    optimizer = EIGHT_BITS if match["eight"] else ADAMW
    return Plan(match["recipe"], int(match["width"]), int(match["batch"]), optimizer, bool(match["checkpointing"]))
