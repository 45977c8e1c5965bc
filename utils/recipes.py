"""Recipes: which dtype holds the weights, which one computes, and what that asks of the training loop.

The names are those of Lightning where it has one. "true" means that everything is in that dtype; "mixed" means float32
weights, gradients and optimizer state, with the matrix products under autocast. A third word says how the optimizer
keeps a weight that it has updated (`utils.optimizers`): "master" in a float32 copy, "kahan" with its rounding error
beside it, "stochastic" rounded at random. "16-mixed-unscaled" leaves out the loss scaler, to show what it is for.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from utils import machine
from utils.fast_half import HALVES, FastHalf
from utils.optimizers import AdamW, Kahan, Master, Nearest, Stochastic


@dataclass(frozen=True)
class Recipe:
    """The dtypes of one way to train, and the methods that put them into effect.

    `compute` is autocast's dtype, None where the operations follow the weights; `optimizer` is that of Adam's moments.
    `float32_matmul` is what a float32 product may do ("highest": float32 throughout; "high" allows TF32 on CUDA).
    `store`: how our AdamW keeps the weights; None where torch's does the step.
    """

    name: str
    weights: torch.dtype
    compute: torch.dtype | None
    gradients: torch.dtype
    optimizer: torch.dtype
    needs_loss_scaling: bool = False
    float32_matmul: str = "highest"
    store: Nearest | None = None

    @property
    def arithmetic(self) -> torch.dtype:
        """The dtype of the inputs of the matrix products."""
        return self.compute or self.weights

    def prepare(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Move the model to the device and its weights to their dtype."""
        return model.to(device=device, dtype=self.weights)

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

        torch's, in one kernel on CUDA; ours, which is slower, where the recipe names a store.
        """
        if self.store is None:
            return torch.optim.AdamW(weights, fused=device.type == "cuda", **settings)
        return AdamW(weights, store=self.store, state_dtype=self.optimizer, **settings)

    def scaler(self, device: torch.device, *, growth_interval: int = 2000) -> torch.amp.GradScaler:
        """Return a loss scaler; without `needs_loss_scaling` it is disabled and passes everything through."""
        return torch.amp.GradScaler(device.type, enabled=self.needs_loss_scaling, growth_interval=growth_interval)

    def emulated(self, device: torch.device) -> bool:
        """Say whether this device has no such products: they are computed in float32 and rounded."""
        native, _ = machine.narrow_matmul(self.arithmetic, device)
        return native is False

    @contextlib.contextmanager
    def on(self, device: torch.device) -> Iterator[None]:
        """Hold the rules of this recipe for forward, backward and optimizer step, and restore the old ones."""
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(self.float32_matmul)
        slow = device.type == "cpu" and self.arithmetic in HALVES and self.emulated(device)
        try:
            with FastHalf() if slow else contextlib.nullcontext():
                yield
        finally:
            torch.set_float32_matmul_precision(before)


def _true(name: str, dtype: torch.dtype) -> Recipe:
    return Recipe(name, weights=dtype, compute=None, gradients=dtype, optimizer=dtype)


def _stored(name: str, dtype: torch.dtype, store: Nearest) -> Recipe:
    moments = torch.float32 if isinstance(store, Master) else dtype
    return replace(_true(name, dtype), optimizer=moments, store=store)


def _mixed(name: str, dtype: torch.dtype, *, needs_loss_scaling: bool) -> Recipe:
    wide = torch.float32
    return Recipe(
        name,
        weights=wide,
        compute=dtype,
        gradients=wide,
        optimizer=wide,
        needs_loss_scaling=needs_loss_scaling,
    )


RECIPES = {
    recipe.name: recipe
    for recipe in (
        _true("64-true", torch.float64),
        _true("32-true", torch.float32),
        _mixed("16-mixed", torch.float16, needs_loss_scaling=True),
        _mixed("bf16-mixed", torch.bfloat16, needs_loss_scaling=False),
        _mixed("16-mixed-unscaled", torch.float16, needs_loss_scaling=False),
        _true("16-true", torch.float16),
        _true("bf16-true", torch.bfloat16),
        _stored("16-true-master", torch.float16, Master()),
        _stored("bf16-true-master", torch.bfloat16, Master()),
        _stored("bf16-true-kahan", torch.bfloat16, Kahan()),
        _stored("bf16-true-stochastic", torch.bfloat16, Stochastic()),
    )
}
PLAIN = tuple(name for name in RECIPES if name.count("-") == 1)  # the names that Lightning has, too


def recipe(name: str) -> Recipe:
    """Return the recipe called `name`.

    Raises: ValueError with the known names when there is none.
    """
    if name not in RECIPES:
        raise ValueError(f"unknown recipe {name!r}; the known ones are {', '.join(RECIPES)}")
    return RECIPES[name]
