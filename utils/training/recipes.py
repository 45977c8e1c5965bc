"""Recipes: which dtype holds the weights, which one computes, and what that asks of the training loop.

The names are those of Lightning where it has one. "true" means that everything is in that dtype; "mixed" means float32
weights, gradients and optimizer state, with the matrix products under autocast. A third word says how the optimizer
keeps a weight that it has updated (`utils.training.optimizers`): "master" in a float32 copy, "kahan" with its rounding
error beside it, "stochastic" rounded at random. "high" and "medium" let a float32 product round its inputs, "eps" is a
larger eps for Adam, "moments" are moments in float32. "16-mixed-unscaled" has no loss scaler, to show what that is for.

`RECIPES` are those that a dtype decides, and `LIGHTNING_NAMES` those of them that Lightning has by the same name.
`FLOAT8_MIXED` are bf16-mixed whose linear layers, all but the head, multiply in FP8 (`float8_linear`), by
the recipes of that name there: embeddings, norms, attention's own products and head stay as they are in bf16-mixed, so
that a difference to it is FP8's. "loss-scale" is a factor on the loss, and so on all gradients while they are in FP8,
that does not adapt. `ALL_RECIPES` are both; `COMPARED` are the arms of the comparison on DistilBERT, as it is told.
"""

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from utils import machine
from utils.emulation.fast_half import HALVES, FastHalf
from utils.emulation.float32_matmul import allowing
from utils.training.float8_linear import convert
from utils.training.float8_recipes import FLOAT8_RECIPES, Float8Recipe
from utils.training.optimizers import AdamW, Kahan, Master, Nearest, Stochastic

_NEVER = 2**31 - 1  # steps: torch counts them in 32 bits


@dataclass(frozen=True)
class Recipe:
    """The dtypes of one way to train, and the methods that put them into effect.

    `compute` is autocast's dtype, None where the operations follow the weights; `optimizer` is that of Adam's moments.
    `needs_loss_scaling`: a loss scaler that adapts; `loss_scale`: the factor of one that does not, None for none.
    `float32_matmul` is what a float32 product may do ("highest": float32 throughout; "high": round its inputs to TF32;
    "medium": to bfloat16); `product_bits` says what it does. `store`: how our AdamW keeps the weights; None where
    torch's does the step. `epsilon` is Adam's eps, None for that of the schedule. `float8`: how linear layers multiply
    in FP8, None where they do not. `note` says in one sentence what the recipe is; `remark(device)` what a device makes
    of it.
    """

    name: str
    weights: torch.dtype
    compute: torch.dtype | None
    gradients: torch.dtype
    optimizer: torch.dtype
    needs_loss_scaling: bool = False
    loss_scale: float | None = None
    float32_matmul: str = "highest"
    store: Nearest | None = None
    epsilon: float | None = None
    float8: Float8Recipe | None = None
    note: str = ""

    @property
    def arithmetic(self) -> torch.dtype:
        """The dtype of the inputs of the matrix products, but for those in FP8."""
        return self.compute or self.weights

    def prepare(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Move the model to the device and its weights to their dtype; with `float8`, replace its linear layers too.

        Raises: ValueError for `float8` and a model without a layer that FP8 products take.
        """
        model = model.to(device=device, dtype=self.weights)
        if self.float8:
            convert(model, self.float8)
        return model

    def autocast(self, device: torch.device) -> contextlib.AbstractContextManager:
        """Return the context of the forward pass."""
        if self.compute is None:
            return contextlib.nullcontext()
        return torch.autocast(device.type, dtype=self.compute)

    def seeded(self, seed: int) -> "Recipe":
        """Return the recipe for the run of one seed: what is rounded at random is drawn from it."""
        return replace(self, store=Stochastic(seed)) if isinstance(self.store, Stochastic) else self

    def adamw(self, weights: Iterable[nn.Parameter], device: torch.device, **settings: float) -> torch.optim.Optimizer:
        """Return the optimizer of these weights; `settings` are `lr`, `eps`, `weight_decay`.

        An `epsilon` of the recipe counts before `eps`.
        """
        if self.epsilon is not None:
            settings |= {"eps": self.epsilon}
        kernel = self.adamw_kernel(device)
        if kernel == "ours":
            return AdamW(weights, store=self.store, state_dtype=self.optimizer, **settings)
        return torch.optim.AdamW(weights, fused=kernel == "fused", foreach=False, **settings)

    def adamw_kernel(self, device: torch.device) -> str:
        """Return which code steps the weights: "fused" (torch's, one kernel), "for-loop" (torch's), "ours" (slower).

        torch's loop rounds every line of Adam to the dtype of the weights. Its fused kernel computes in float32 and
        would hide what that does to 16 bits, so it steps the wider weights alone, on CUDA.
        """
        if self.store is not None:
            return "ours"
        return "fused" if device.type == "cuda" and self.weights.itemsize > 2 else "for-loop"

    def scaler(self, device: torch.device, *, growth_interval: int = 2000) -> torch.amp.GradScaler:
        """Return a loss scaler; where the recipe has neither sort it is disabled and passes everything through.

        A fixed `loss_scale` never grows; it is halved, as every other, where a gradient is not finite.
        """
        if self.loss_scale is not None:
            return torch.amp.GradScaler(device.type, init_scale=self.loss_scale, growth_interval=_NEVER)
        return torch.amp.GradScaler(device.type, enabled=self.needs_loss_scaling, growth_interval=growth_interval)

    def emulated(self, device: torch.device) -> bool:
        """Say whether this device lacks products of the recipe: they are computed in float32, from rounded values."""
        return self._narrow_emulated(device) or bool(self.float8 and self.float8.emulated(device))

    def _narrow_emulated(self, device: torch.device) -> bool:
        native, _ = machine.narrow_matmul(self.arithmetic, device)
        return native is False

    def product_bits(self, device: torch.device) -> int:
        """Return how many significant bits of its inputs a float32 product keeps under this recipe, measured."""
        with self.on(device):
            return machine.product_bits(device)

    def same_as(self, device: torch.device) -> str | None:
        """Return the name of an earlier recipe that computes the same on this device, None where there is none.

        It differs in what a float32 product may do, and the products of the device are the same for both.
        """
        if self.float32_matmul == "highest":
            return None
        bits = self.product_bits(device)
        for other in itertools.takewhile(lambda other: other.name != self.name, RECIPES.values()):
            alike = replace(other, name=self.name, note=self.note, float32_matmul=self.float32_matmul) == self
            if alike and other.product_bits(device) == bits:
                return other.name
        return None

    def remark(self, device: torch.device) -> str:
        """Say in one sentence what this device makes of the recipe; empty where it does what its name says."""
        place = "this CPU" if device.type == "cpu" else "this GPU"
        if other := self.same_as(device):
            return (
                f"on {place} the same as {other}: a float32 product keeps {self.product_bits(device)} significant bits"
            )
        if self.float32_matmul != "highest":
            return f"on {place} a float32 product keeps {self.product_bits(device)} significant bits of its inputs"
        if self.float8 and (remark := self.float8.remark(device)):
            return remark
        if self._narrow_emulated(device):
            name = str(self.arithmetic).removeprefix("torch.")
            return f"emulated: {place} has no {name} products; float32 computes them, then rounds"
        return ""

    @contextlib.contextmanager
    def on(self, device: torch.device) -> Iterator[None]:
        """Hold the rules of this recipe for forward, backward and optimizer step, and restore the old ones."""
        slow = device.type == "cpu" and self.arithmetic in HALVES and self._narrow_emulated(device)
        with allowing(self.float32_matmul), FastHalf() if slow else contextlib.nullcontext():
            yield


def _true(name: str, dtype: torch.dtype, note: str, **fields) -> Recipe:
    usual = {"weights": dtype, "compute": None, "gradients": dtype, "optimizer": dtype}
    return Recipe(name, note=note, **usual | fields)


def _mixed(name: str, dtype: torch.dtype, note: str, **fields) -> Recipe:
    wide = torch.float32
    return Recipe(name, weights=wide, compute=dtype, gradients=wide, optimizer=wide, note=note, **fields)


_F16, _BF16, _F32, _F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
RECIPES = {
    recipe.name: recipe
    for recipe in (
        _true("64-true", _F64, "everything in float64: twice the bytes of float32"),
        _true("32-true", _F32, "everything in float32: the recipe the others are compared with"),
        _true(
            "32-true-high",
            _F32,
            "32-true whose products may round their inputs to TF32, 11 significant bits",
            float32_matmul="high",
        ),
        _true(
            "32-true-medium",
            _F32,
            "32-true whose products may round their inputs to bfloat16, 8 significant bits",
            float32_matmul="medium",
        ),
        _mixed(
            "16-mixed",
            _F16,
            "float32 weights, float16 products, and a loss scaler against underflow",
            needs_loss_scaling=True,
        ),
        _mixed("bf16-mixed", _BF16, "float32 weights, bfloat16 products: the range of float32, so no loss scaler"),
        _mixed("16-mixed-unscaled", _F16, "16-mixed without its loss scaler"),
        _true("16-true", _F16, "everything in float16, where Adam's eps of 1e-8 is 0 and small squares are, too"),
        _true("16-true-eps", _F16, "16-true with an eps of 1e-4 for Adam, which is not 0 in float16", epsilon=1e-4),
        _true(
            "16-true-moments",
            _F16,
            "float16 weights; Adam's moments, its eps and its arithmetic in float32",
            optimizer=_F32,
            store=Nearest(),
        ),
        _true("bf16-true", _BF16, "everything in bfloat16: a weight of 8 significant bits loses small updates"),
        _true(
            "16-true-master",
            _F16,
            "float16 weights, rounded from float32 copies that Adam updates",
            optimizer=_F32,
            store=Master(),
        ),
        _true(
            "bf16-true-master",
            _BF16,
            "bfloat16 weights, rounded from float32 copies that Adam updates",
            optimizer=_F32,
            store=Master(),
        ),
        _true(
            "bf16-true-kahan",
            _BF16,
            "bf16-true that keeps each weight's rounding error beside it",
            store=Kahan(),
        ),
        _true(
            "bf16-true-stochastic",
            _BF16,
            "bf16-true that rounds new weights at random, right on average",
            store=Stochastic(),
        ),
    )
}


def _float8(name: str, float8: Float8Recipe, also: str = "", **fields) -> Recipe:
    return _mixed(name, _BF16, f"bf16-mixed with linear layers in FP8: {float8.note}{also}", float8=float8, **fields)


FLOAT8_MIXED = {name: _float8(name, float8) for name, float8 in FLOAT8_RECIPES.items()}
FLOAT8_MIXED["fp8-unscaled-loss-scale"] = _float8(
    "fp8-unscaled-loss-scale", FLOAT8_RECIPES["fp8-unscaled"], "; a factor of 2¹⁴ on the loss", loss_scale=2.0**14
)
ALL_RECIPES = RECIPES | FLOAT8_MIXED
LIGHTNING_NAMES = tuple(name for name in RECIPES if name.count("-") == 1)
COMPARED = (
    "64-true",
    "32-true",
    "32-true-high",
    "32-true-medium",
    "16-mixed",
    "bf16-mixed",
    "16-true",
    "16-true-eps",
    "16-true-moments",
    "bf16-true",
    "bf16-true-stochastic",
)


def find_recipe(name: str) -> Recipe:
    """Return the recipe called `name`.

    Raises: ValueError with the known names when there is none.
    """
    if name not in ALL_RECIPES:
        raise ValueError(f"unknown recipe {name!r}; the known ones are {', '.join(ALL_RECIPES)}")
    return ALL_RECIPES[name]
