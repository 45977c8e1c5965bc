"""Loss scaling: multiply the loss, so that small gradients survive float16, and divide the gradients again.

By the chain rule d(scale * loss)/dw = scale * dloss/dw: one product lifts every gradient, before it is rounded. The
gradients that reach the optimizer are multiplied by 1/scale in float32, and a step whose gradients overflowed is left
out (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2).

    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # only where the true gradients are needed before the step, as for clipping
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch


def next_scale(
    scale: float,
    good_steps: int,
    overflowed: bool,
    *,
    growth_factor: float = 2.0,
    backoff_factor: float = 0.5,
    growth_interval: int = 2000,
) -> tuple[float, int]:
    """Return the loss scale of the next step and the number of good steps in a row, by `torch.amp.GradScaler`'s rule.

    `scale`: of the step that was computed. `good_steps`: in a row before it, since the last change of the scale.
    `overflowed`: whether one of its gradients was infinite or NaN. The new scale is a float32 value; one that float32
    cannot hold is not taken, and the count begins again all the same. Nothing stops it below.
    """
    if overflowed:
        return _float32(scale * backoff_factor), 0
    if good_steps + 1 != growth_interval:  # past it too: an interval that was set below the count is never reached
        return scale, good_steps + 1
    grown = _float32(scale * growth_factor)
    return (grown if math.isfinite(grown) else scale), 0


@dataclass
class _Iteration:
    """What one optimizer's gradients have been through since the last `update`."""

    unscaled: bool = False
    stepped: bool = False
    overflowed: torch.Tensor | None = None  # bool []: one of them is infinite or NaN; None: there were none to look at


class StaticLossScaler:
    """A loss scale that stays: a step with an infinite or NaN gradient is left out, and the scale is kept all the same.

    `scale`: a positive number, kept in float32. The methods are those of `torch.amp.GradScaler`, so that either can
    stand in the same loop; its state, loaded by a `GradScaler`, makes that one constant too. After `update`, `skipped`
    is the number of optimizers whose gradients were infinite or NaN: the learning rate schedule of such a step waits.
    Raises: ValueError for a scale that is not positive, or that float32 cannot hold together with its inverse.
    """

    _enabled = True
    _growth_factor = _backoff_factor = 1.0
    _growth_interval = 2000
    _growth_tracker = 0

    def __init__(self, scale: float):
        self._scale = _checked(scale)
        self._has_scaled = False
        self._iterations: dict[int, _Iteration] = defaultdict(_Iteration)  # by the id of the optimizer
        self.skipped = 0

    def scale(self, outputs: torch.Tensor | Iterable) -> torch.Tensor | Iterable:
        """Return outputs * scale: of a tensor, or of all tensors in lists, tuples or other iterables, nested or not.

        Raises: ValueError for anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, torch.Tensor):
            self._has_scaled = True
            # float32 [], no Python number: a float16 loss without an axis becomes float32, and does not overflow here.
            return outputs * torch.full((), self._scale, dtype=torch.float32, device=outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError(f"cannot scale a {type(outputs).__name__}; give a tensor or an iterable of tensors")

    @torch.no_grad()
    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Multiply the optimizer's gradients by 1/scale in place, and note whether one of them is infinite or NaN.

        Once for each optimizer and iteration, after all backward passes; `step` calls it where you have not. Raises
        RuntimeError for a second call, ValueError for float16 gradients: 1/scale would make them underflow after all.
        """
        if not self._enabled:
            return
        self._check_has_scaled("unscale_")
        iteration = self._iterations[id(optimizer)]
        if iteration.stepped:
            raise RuntimeError("unscale_() after step(): call it before, where the true gradients are still to be used")
        if iteration.unscaled:
            raise RuntimeError("unscale_() has divided these gradients already; call it once before each update()")
        grads = _gradients(optimizer)
        if grads:
            # On the gradients as they came: what 1/scale itself makes infinite is not seen, as in torch.
            finite = [grad.isfinite().all().to(grads[0].device) for grad in grads]  # bool [] each: nobody waits yet
            iteration.overflowed = ~torch.stack(finite).all()
        # Through float64, as torch does it: so the result is the float32 nearest to 1/scale on every machine.
        inv_scale = torch.tensor(self._scale, dtype=torch.float64).reciprocal().float()
        inv_scales = {device: inv_scale.to(device) for device in {grad.device for grad in grads}}
        for grad in grads:
            grad.mul_(inv_scales[grad.device])
        iteration.unscaled = True

    def step(self, optimizer: torch.optim.Optimizer, *args, **kwargs):
        """Unscale if that is still to do, then return `optimizer.step(*args, **kwargs)`, or None for a step left out.

        Raises: RuntimeError for a second step of this optimizer without `update` between, and for a closure: it would
        compute new gradients, which are scaled; AssertionError where no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("step() takes no closure: the gradients that it computes would not be unscaled")
        self._check_has_scaled("step")
        iteration = self._iterations[id(optimizer)]
        if iteration.stepped:
            raise RuntimeError("step() has already been called for this optimizer; call update() after each iteration")
        if not iteration.unscaled:
            self.unscale_(optimizer)
        if iteration.overflowed is None:
            raise AssertionError("step() found no gradient: call backward() on the scaled loss before it")
        result = None if iteration.overflowed else optimizer.step(*args, **kwargs)  # here a GPU is waited for
        iteration.stepped = True
        return result

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """End the iteration, once for all optimizers: set the next scale, to `new_scale` if there is one.

        Raises: AssertionError if no gradient was looked at since the last update, or if `new_scale` is a tensor with
        more than one element or with a gradient; ValueError as the constructor does.
        """
        if not self._enabled:
            return
        self._check_has_scaled("update")
        overflowed = [
            flags.item() for iteration in self._iterations.values() if (flags := iteration.overflowed) is not None
        ]
        if new_scale is None and not overflowed:
            raise AssertionError("update() has nothing to go by: call step() or unscale_() before it")
        if isinstance(new_scale, torch.Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
            raise AssertionError("new_scale must be a number, or a tensor of one element without requires_grad")
        if new_scale is None:
            self._adapt(any(overflowed))
        else:
            self._scale = _checked(new_scale)
        self.skipped = sum(overflowed)
        self._iterations.clear()

    def _adapt(self, overflowed: bool) -> None:
        """Choose the next scale: here, the same one."""

    def _check_has_scaled(self, caller: str) -> None:
        if not self._has_scaled:
            raise AssertionError(f"{caller}() before any scale(): call scaler.scale(loss).backward() first")

    def is_enabled(self) -> bool:
        """Say whether the loss is scaled at all; only a dynamic scaler can be disabled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the factor on the loss: a float32 value; 1.0 if disabled."""
        return self._scale

    def get_growth_factor(self) -> float:
        """Return the factor of a growth; 1.0 for a constant scale."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """Return the factor after an overflow; 1.0 for a constant scale."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """Return how many iterations in a row without overflow make the scale grow."""
        return self._growth_interval

    def state_dict(self) -> dict[str, float | int]:
        """Return what a checkpoint needs, with the keys of `GradScaler`; call it after `update`. Empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, float | int]) -> None:
        """Take over a saved scale; a dynamic scaler takes the rest too, from either class here or from `GradScaler`.

        Raises: RuntimeError for the empty state of a disabled scaler. A disabled one ignores any state.
        """
        if self._enabled and not state_dict:
            raise RuntimeError("the state is empty: a disabled scaler has saved it; leave this scaler as it is")
        if self._enabled:
            self._scale = _float32(state_dict["scale"])


class DynamicLossScaler(StaticLossScaler):
    """A loss scale that looks for the largest one without overflow, with the decisions of `torch.amp.GradScaler`.

    After an iteration in which any optimizer found an infinite or NaN gradient, scale *= `backoff_factor`; after
    `growth_interval` iterations in a row without, scale *= `growth_factor`, unless float32 would overflow. As in torch,
    nothing stops it below: 166 skipped steps in a row take 2**16 to 0, and a scale of 2**-128 or less, whose inverse
    is infinite, lets infinite or NaN gradients through to the weights. With `enabled=False` everything passes through.

    It differs in this: the scale is rounded to float32 at once, a scale without an inverse is refused, and fused
    optimizers, which torch lets divide and skip by themselves, are treated as all others. Raises: AssertionError for a
    growth factor up to 1 or a backoff factor from 1 on, and ValueError as `StaticLossScaler` does.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and growth_factor <= 1.0:
            raise AssertionError(f"growth factor {growth_factor} must be greater than 1")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError(f"backoff factor {backoff_factor} must be less than 1")
        super().__init__(init_scale if enabled else 1.0)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0  # iterations without overflow since the last change of the scale
        self._enabled = enabled

    def _adapt(self, overflowed: bool) -> None:
        self._scale, self._growth_tracker = next_scale(
            self._scale,
            self._growth_tracker,
            overflowed,
            growth_factor=self._growth_factor,
            backoff_factor=self._backoff_factor,
            growth_interval=self._growth_interval,
        )

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor of a growth; it is not checked."""
        self._growth_factor = new_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor after an overflow; it is not checked."""
        self._backoff_factor = new_factor

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the interval; once that many iterations have been counted, only an overflow starts the count anew."""
        self._growth_interval = new_interval

    def load_state_dict(self, state_dict: dict[str, float | int]) -> None:
        super().load_state_dict(state_dict)
        if self._enabled:
            self._growth_factor = state_dict["growth_factor"]
            self._backoff_factor = state_dict["backoff_factor"]
            self._growth_interval = state_dict["growth_interval"]
            self._growth_tracker = state_dict["_growth_tracker"]


def _gradients(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Return all gradients; of a sparse one the stored values. Raises: ValueError for float16."""
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    if any(grad.dtype is torch.float16 for grad in grads):
        raise ValueError("Attempting to unscale FP16 gradients. Keep the weights in float32, and compute in autocast.")
    return [grad._values() if grad.is_sparse else grad for grad in grads]


def _float32(number: float | torch.Tensor) -> float:
    """Return the nearest float32 value: an infinity past the largest, 0 below half of the smallest."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(float(number)))


def _checked(scale: float | torch.Tensor) -> float:
    """Return a scale in float32. Raises: ValueError if it is not positive, or if it or its inverse overflows there."""
    rounded = _float32(scale)
    if not (rounded > 0 and math.isfinite(rounded) and math.isfinite(_float32(1 / rounded))):
        raise ValueError(f"scale {float(scale)} must be a positive number between 2**-128 and 2**128")
    return rounded
