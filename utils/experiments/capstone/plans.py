"""A plan for training a LLaMA on a card: its bytes and milliseconds, predicted before anything is trained.

    given = problem("small", device=device)
    plan = Plan("bf16-true", width=128, batch=8)
    refuse(plan, given)  # "", or one sentence
    forecast(plan, given).peak  # bytes

A plan names formats and scaling (a recipe), optimizer, width, batch and checkpointing; text, steps and card are given.
At small size the card is a budget of bytes, at full size the memory of a GPU. `utils.experiments.capstone.comparison`
runs what is planned. 1 MB = 1e6 bytes, 1 GB/s = 1e9 bytes a second, 1 TFLOP/s = 1e12 operations a second.
"""

import functools
import re
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import torch

from utils import machine, measure
from utils.cost import activations, flops, memory
from utils.cost.architectures import Architecture
from utils.cost.cards import usable
from utils.cost.live_bytes import LiveBytes
from utils.cost.memory import Ledger
from utils.training import batches
from utils.training.eight_bit_moments import Blockwise
from utils.training.optimizers import Nearest
from utils.training.recipes import Recipe
from utils.training.recipes import recipe as recipe_called
from utils.training.training_loop import Trainer
from utils.workloads import data, language_task, models
from utils.workloads.language_task import Task

STEPS = {"small": 64, "full": 400}
SMALL_CARD = 48_000_000  # bytes
OPTIMIZERS = ADAMW, EIGHT_BITS = ("adamw", "adamw-8bit")
SIZES = ("vocabulary", "width", "layers", "heads", "groups", "hidden", "positions", "tied")
NAMED = re.compile(r"(?P<recipe>.+?)-(?P<width>\d+)x(?P<batch>\d+)(?P<eight>-8bit)?(?P<again>-checkpointing)?")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
COPIED = {"cpu": 2**25, "cuda": 2**28}  # values of the tensor whose copy is timed: more than a cache holds
PASSES = 14  # bytes that the operations of an eager step read and write, for each byte that autograd keeps; counted
EMPTY = models.LlamaShape(vocabulary=32, width=16, layers=2, heads=8, groups=8, hidden=32, positions=16, tied=True)


# What is given


@dataclass(frozen=True)
class Budget:
    """What a training may use: `size` in bytes, and the rates of the device, where they were measured.

    `products`: TFLOP/s of a large product by the dtype of its factors; one that the device emulates is not in it.
    `bandwidth`: GB/s, read and written together. `launch`: microseconds of an operation with next to nothing to do.
    """

    name: str
    size: int
    products: dict[str, float] = field(default_factory=dict)
    bandwidth: float | None = None
    launch: float | None = None


@dataclass(frozen=True)
class Problem:
    """What all plans share: a card, the device that computes, and a task whose width and batch are the plan's."""

    card: Budget
    device: torch.device
    task: Task

    @property
    def length(self) -> int:
        """Tokens of the longest piece of text."""
        return self.task.settings.length

    def rated(self) -> "Problem":
        """Return the problem with the rates of its device on the card, measured now."""
        return replace(self, card=rates(self.card, self.device))


def problem(
    size: str = "small", *, device: torch.device, source: str | None = "generated", steps: int | None = None
) -> Problem:
    """Return the problem of a size: text, steps, and the small card, or at full size a GPU's own memory.

    `source`: "generated", a folder with text, or None for what `data.prose` finds.
    Raises: ValueError for a folder that cannot be used, and where trained weights are named, which have their width.
    """
    task = _prepared(size, source, steps or STEPS[size])
    if size == "full" and device.type == "cuda":
        card = Budget(torch.cuda.get_device_name(device), usable(torch.cuda.mem_get_info(device)[1]))
    else:
        card = Budget("the small card", SMALL_CARD)
    return Problem(card, device, task)


@functools.cache
def _prepared(size: str, source: str | None, steps: int) -> Task:
    settings = replace(language_task.settings_for(size), steps=steps)
    if source == "generated":
        prose = data.generated_prose(settings.characters)
    else:
        prose = data.prose(source, characters=settings.characters)
    task = language_task.prepare(prose, size=size, settings=settings)
    if not task.weights.startswith("random"):
        raise ValueError(f"{task.weights} have a width of their own; unset MIXED_PRECISION_WEIGHTS to plan one")
    return task


# What is chosen


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
        recipe_called(self.recipe)
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer {self.optimizer!r} is not one of {', '.join(OPTIMIZERS)}")
        if min(self.width, self.batch) < 1:
            raise ValueError(f"width {self.width} and batch {self.batch} must both be 1 or more")

    @property
    def name(self) -> str:
        """The plan in one word, which `named` reads: "bf16-mixed-128x8-checkpointing"."""
        words = ("8bit" if self.optimizer == EIGHT_BITS else "", "checkpointing" if self.checkpointing else "")
        return "-".join([self.recipe, f"{self.width}x{self.batch}", *filter(None, words)])

    def shape(self, given: Problem) -> models.LlamaShape:
        """Return the sizes of the model. Raises: ValueError for a width that the heads cannot share."""
        return given.task.settings.shape.widened(self.width)

    def task(self, given: Problem) -> Task:
        """Return the task of this plan, whose new models checkpoint if the plan does.

        Raises: ValueError for a width that the heads cannot share.
        """
        settings = replace(given.task.settings, batch=self.batch, shape=self.shape(given))

        def new_model(seed: int) -> torch.nn.Module:
            model = models.llama(settings.shape, seed=seed)
            if self.checkpointing:
                model.config.use_cache = False  # a pass that is taken twice would fill the cache twice
                model.activation_checkpointing_enable({"use_reentrant": False})
            return model

        weights = f"random, LLaMA of {settings.shape.layers} layers of width {self.width}"
        return replace(given.task, settings=settings, new_model=new_model, weights=weights)

    def running(self) -> Recipe:
        """Return the recipe that trains: the one that is named, with moments of 8 bits where the plan says so."""
        recipe = recipe_called(self.recipe)
        if self.optimizer == EIGHT_BITS:
            return replace(recipe, optimizer=Blockwise(), store=recipe.store or Nearest())
        return recipe


def named(text: str) -> Plan:
    """Return the plan that `Plan.name` writes. Raises: ValueError for anything else."""
    found = NAMED.fullmatch(text)
    if not found:
        raise ValueError(f"plan {text!r} is not like bf16-mixed-128x8 or bf16-true-256x4-8bit-checkpointing")
    optimizer = EIGHT_BITS if found["eight"] else ADAMW
    return Plan(found["recipe"], int(found["width"]), int(found["batch"]), optimizer, bool(found["again"]))


# What is predicted


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


def forecast(plan: Plan, given: Problem) -> Forecast:
    """Predict a step on a batch of full length; nothing is trained.

    Raises: ValueError for a width that the heads cannot share, and for a recipe with FP8 layers.
    """
    shape, device = plan.shape(given), given.device.type
    architecture = Architecture("llama", **{name: getattr(shape, name) for name in SIZES})
    how = {"batch": plan.batch, "length": given.length, "device": device}
    how |= {"attention": "sdpa" if device == "cuda" else "eager"}  # as `models.fit_attention` has it
    ledger = memory.predict(
        architecture, plan.recipe, optimizer=plan.optimizer, checkpointing=plan.checkpointing, **how
    )
    moments = _moments(plan, ledger, architecture, how)
    return Forecast(ledger, moments, _parts(plan, given, ledger), overlap=device == "cuda")


def _moments(plan: Plan, ledger: Ledger, architecture: Architecture, how: dict) -> dict[str, int]:
    """Return the bytes of the moments of `Forecast`.

    The backward pass of `cross_entropy` is two operations, and each of them returns a tensor like the wide logits,
    [B, S, V]. The update of a weight has three temporaries of its size.
    """
    recipe = recipe_called(plan.recipe)
    wide = torch.promote_types(recipe.weights, torch.float32).itemsize
    logits = wide * plan.batch * how["length"] * architecture.vocabulary
    kept = ledger.at_rest + ledger.activations
    largest = max(architecture.weights())
    moments = {"loss": kept + 2 * logits, "update": ledger.at_rest + ledger.gradients + 3 * wide * largest}
    if plan.checkpointing:
        deeper = replace(architecture, layers=architecture.layers + 1)
        block = activations.saved(deeper, recipe, **how) - activations.saved(architecture, recipe, **how)
        behind = recipe.gradients.itemsize * (2 * architecture.parameters - deeper.parameters)  # all but one block's
        moments["again"] = kept + block + max(0, behind - logits)
    return moments


def _parts(plan: Plan, given: Problem, ledger: Ledger) -> dict[str, float]:
    """Return milliseconds: the products at their measured rate, the bytes that move, and the calls.

    What moves is a rule of thumb: `PASSES` for each activation that is kept, since every operation of an eager step
    reads its inputs and writes its result. Checkpointing takes the forward pass twice.
    """
    card, recipe, shape = given.card, recipe_called(plan.recipe), plan.shape(given)
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
    twice = 4 / 3 if plan.checkpointing else 1
    done = twice * flops.training_step(config, plan.batch, given.length)
    without = replace(plan, checkpointing=False)
    kept = forecast(without, replace(given, card=Budget("", 0))).ledger if plan.checkpointing else ledger
    return {
        "products": done / rate / 1e9,
        "memory": PASSES * twice * kept.activations / card.bandwidth / 1e6,
        "launches": launches(plan, given) * card.launch / 1e3,
    }


def launches(plan: Plan, given: Problem) -> int:
    """Return how many operations torch starts in a step of this plan, counted on one short text."""
    return _counted(_trainer(plan.task(given).new_model(0), plan.running(), given.device))


def _trainer(model: torch.nn.Module, recipe: Recipe, device: torch.device) -> Trainer:
    models.fit_attention(model, device)
    schedule = language_task.SMALL.schedule
    return Trainer(model, recipe=recipe, device=device, schedule=schedule, steps=1_000)


def _short(device: torch.device) -> batches.Batch:
    ids = torch.arange(1, 9, device=device)[None]
    return batches.Batch(ids, torch.ones_like(ids), ids)


def _counted(trainer: Trainer) -> int:
    batch = _short(trainer.device)
    with trainer.recipe.on(trainer.device):
        trainer.step(batch)  # the first one begins the moments
        with LiveBytes() as live:
            trainer.step(batch)
    return len(live.curve)


def rates(card: Budget, device: torch.device) -> Budget:
    """Return the card with what this device does now: its products, its memory, its calls.

    A large square product, a copy of a large tensor, and a step of a model with next to nothing to compute, divided by
    its operations: Python, torch and the launch together. By the clock of `measure.quiet_clock`.
    """
    clock = {"device": device, "warmup": 1, "repeats": 5, "seconds": measure.quiet_clock()[0]}
    products = {
        name: _product_rate(dtype, clock)
        for name, dtype in DTYPES.items()
        if machine.narrow_matmul(dtype, device)[0] is not False
    }
    source = torch.ones(COPIED[device.type], device=device)
    target = torch.empty_like(source)
    copy = measure.time_call(lambda: target.copy_(source), **clock)
    trainer, batch = _trainer(models.llama(EMPTY), recipe_called("32-true"), device), _short(device)
    step = measure.time_call(lambda: trainer.step(batch), **clock | {"warmup": 3, "repeats": 15})
    return replace(
        card,
        products=products,
        bandwidth=2 * source.nbytes / copy.median / 1e6,
        launch=1e3 * step.median / _counted(trainer),
    )


def _product_rate(dtype: torch.dtype, clock: dict) -> float:
    """Return TFLOP/s of a square product as wide as the device needs to come near its best."""
    width = 8_192 if clock["device"].type == "cuda" else 768
    generator = torch.Generator(clock["device"]).manual_seed(0)
    a = torch.randn(width, width, device=clock["device"], generator=generator).to(dtype)
    with torch.no_grad():
        return 2 * width**3 / measure.time_call(lambda: a @ a, **clock).median / 1e9


# What cannot be


def refuse(plan: Plan, given: Problem) -> str:
    """Say in one sentence why this plan cannot work here, or cannot be promised; "" where nothing is against it."""
    recipe = recipe_called(plan.recipe)
    if recipe.float8:
        if said := recipe.remark(given.device):
            return f"{plan.recipe}: {said}; neither its bytes nor its time would be those of FP8."
        return f"{plan.recipe}: no ledger knows what its FP8 layers keep; measure a step before you promise one."
    if recipe.arithmetic is torch.float16 and not (recipe.needs_loss_scaling or recipe.loss_scale):
        if recipe.weights is recipe.optimizer is torch.float16 and recipe.epsilon is None:
            return f"{plan.recipe}: Adam's eps of 1e-8 is 0 in float16, so the first update is 0/0; take 16-mixed."
        return f"{plan.recipe}: no loss scale, so gradients below 2**-25 become 0 in float16; take 16-mixed."
    try:
        peak, size = forecast(plan, given).peak, given.card.size
    except ValueError as error:
        return f"{plan.name}: {error}."
    if peak > size:
        over = f"{(peak - size) / 1e6:,.1f} MB more than the {size / 1e6:,.1f} MB of {given.card.name}"
        return f"{plan.name}: does not fit; a step takes {peak / 1e6:,.1f} MB, {over}."
    return ""
