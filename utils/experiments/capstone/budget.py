"""The card that a plan has to fit: its bytes, and the rates that its device reaches, measured now.

1 GB/s = 1e9 bytes a second, 1 TFLOP/s = 1e12 operations a second.
"""

from dataclasses import dataclass, field, replace

import torch

from utils import machine, measure
from utils.cost.live_bytes import LiveBytes
from utils.training import batches
from utils.training.recipes import RECIPES, Recipe
from utils.training.training_loop import Trainer
from utils.workloads import language_task, models

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
COPIED = {"cpu": 2**25, "cuda": 2**28}  # values of the tensor whose copy is timed: more than a cache holds
WIDTHS = {"cpu": 768, "cuda": 8_192}  # of the square product that is timed: near the best rate of the device
EMPTY = models.LlamaShape(vocabulary=32, width=16, layers=2, heads=8, groups=8, hidden=32, positions=16, tied=True)


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


def measure_rates(card: Budget, device: torch.device) -> Budget:
    """Return the card with what this device does now: its products, its memory, its calls.

    A large square product, a copy of a large tensor, and a step of a model with next to nothing to compute, divided by
    its operations: Python, torch and the launch together. By the clock of `measure.quiet_clock`.
    """
    clock = {"device": device, "warmup": 1, "repeats": 5, "seconds": measure.quiet_clock()[0]}
    products = {
        name: _measure_product(dtype, clock)
        for name, dtype in DTYPES.items()
        if machine.narrow_matmul(dtype, device)[0] is not False
    }
    source = torch.ones(COPIED[device.type], device=device)
    target = torch.empty_like(source)
    copy = measure.time_call(lambda: target.copy_(source), **clock)
    trainer, batch = make_trainer(models.build_llama(EMPTY), RECIPES["32-true"], device), _make_short_batch(device)
    step = measure.time_call(lambda: trainer.step(batch), **clock | {"warmup": 3, "repeats": 15})
    return replace(
        card,
        products=products,
        bandwidth=2 * source.nbytes / copy.median / 1e6,  # read and written; bytes per ms / 1e6 = GB/s
        launch=1e3 * step.median / count_operations(trainer),  # ms -> microseconds
    )


def _measure_product(dtype: torch.dtype, clock: dict) -> float:
    """Return TFLOP/s of a square product as wide as the device needs to come near its best."""
    device = clock["device"]
    width = WIDTHS[device.type]
    a = torch.randn(width, width, device=device, generator=torch.Generator(device).manual_seed(0)).to(dtype)
    with torch.no_grad():
        return 2 * width**3 / measure.time_call(lambda: a @ a, **clock).median / 1e9  # 2 N^3 FLOPs; per ms / 1e9


def make_trainer(model: torch.nn.Module, recipe: Recipe, device: torch.device) -> Trainer:
    """Return a trainer whose steps are counted or timed, not kept."""
    models.fit_attention(model, device)
    return Trainer(model, recipe=recipe, device=device, schedule=language_task.SMALL.schedule, steps=1_000)


def count_operations(trainer: Trainer) -> int:
    """Return how many operations torch starts in a step, counted on one text of 8 tokens."""
    batch = _make_short_batch(trainer.device)
    with trainer.recipe.on(trainer.device):
        trainer.step(batch)  # the first one begins the moments
        with LiveBytes() as live:
            trainer.step(batch)
    return len(live.curve)  # a point after each operation


def _make_short_batch(device: torch.device) -> batches.Batch:
    ids = torch.arange(1, 9, device=device)[None]  # [1, 8]
    return batches.Batch(ids, torch.ones_like(ids), ids)
