"""Two meters of a training, for any model and optimizer: the updates that get lost, and the largest gradients.

with LostUpdates(model, optimizer) as lost, LargestGradients(model, scaler=scaler) as largest:
    ...  # train
lost.shares()["all"], max(largest.values())
"""

import torch
from torch import nn

from utils.training.layer_names import layer_of


class LostUpdates:
    """Count the updates that change nothing: for any optimizer, as a context around its steps.

        with LostUpdates(model, optimizer) as meter:
            ...  # train
        meter.shares()  # {"embeddings": 0.31, "layer 1": 0.84, ..., "all": 0.77}

    A weight counts in a step if the optimizer meant to move it: its gradient or its first moment is not 0. It is lost
    if what is stored is the same before and after: the weight, with `Master` the copy, with `Kahan` the pair. A step
    that a loss scaler skips does not count. The parameters of `model` are grouped by
    `utils.training.layer_names.layer_of`.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer):
        self.optimizer = optimizer
        self.layers = {weight: layer_of(name) for name, weight in model.named_parameters()}
        self._names = list(dict.fromkeys(self.layers.values()))
        self._counts: list[torch.Tensor] = []  # a step each: int64 [layers, 2], lost and meant; read at the end

    def __enter__(self) -> "LostUpdates":
        before = self.optimizer.register_step_pre_hook(self._look)
        self._hooks = (before, self.optimizer.register_step_post_hook(self._count))
        return self

    def __exit__(self, *error) -> None:
        for hook in self._hooks:
            hook.remove()

    def _kept(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        store = getattr(self.optimizer, "store", None)  # of utils.training.optimizers; torch's optimizers have none
        if store is None:
            return (weight,)
        return store.kept(weight, self.optimizer.state.get(weight) or store.begin(weight))

    def _look(self, *_) -> None:
        moving = [weight for weight in self.layers if weight.grad is not None]
        self._before = {weight: [tensor.detach().clone() for tensor in self._kept(weight)] for weight in moving}

    @torch.no_grad()
    def _count(self, *_) -> None:
        overflow = getattr(self.optimizer, "found_inf", None)  # a fused optimizer is called, and skips by itself
        if overflow is not None and overflow.item():
            return
        device = next(iter(self.layers)).device
        counts = {name: torch.zeros(2, dtype=torch.int64, device=device) for name in self._names}
        for weight, before in self._before.items():
            m = self.optimizer.state[weight].get("exp_avg", weight.grad)
            meant = (weight.grad != 0) | (m != 0)  # bool, of the shape of the weight
            same = torch.stack([old == new for old, new in zip(before, self._kept(weight), strict=True)]).all(0)
            counts[self.layers[weight]] += torch.stack([(meant & same).sum(), meant.sum()])
        self._counts.append(torch.stack([counts[name] for name in self._names]))

    def shares(self) -> dict[str, float]:
        """Return the lost share of the meant updates of each layer and of "all", over all steps.

        A layer in which no update was meant is left out.
        """
        return self._shares(sum(self._counts)) if self._counts else {}

    @property
    def by_step(self) -> list[dict[str, float]]:
        """The shares of each step by itself."""
        return [self._shares(counts) for counts in self._counts]

    def _shares(self, counts: torch.Tensor) -> dict[str, float]:
        rows = [*zip(self._names, counts.tolist(), strict=True), ("all", counts.sum(0).tolist())]
        return {name: lost / meant for name, (lost, meant) in rows if meant}


class LargestGradients:
    """The largest |gradient| of every step that a 16-bit backward pass has to hold, as a context around a training.

    Looked at are the gradients of the outputs and of the weights of every `nn.Linear`, before they are clipped: under
    autocast these are computed in 16 bits, whatever they are kept in afterwards. Under a loss scaler they are divided
    by its scale. A forward pass with gradients begins a step.
    """

    def __init__(self, model: nn.Module, *, scaler=None):
        self.model, self.scaler = model, scaler
        self._steps: list[torch.Tensor] = []  # float32 [] each, on the model's device; read at the end

    def __enter__(self) -> "LargestGradients":
        def begin(module: nn.Module, inputs: tuple) -> None:
            if torch.is_grad_enabled():
                self._steps.append(torch.zeros((), device=next(module.parameters()).device))
                self._inv_scale = 1.0 / self.scaler.get_scale() if self.scaler is not None else 1.0

        def see(gradient: torch.Tensor) -> None:
            largest = gradient.detach().abs().amax().float() * self._inv_scale
            self._steps[-1] = torch.maximum(self._steps[-1], largest)  # NaN stays

        def output(module: nn.Module, inputs: tuple, seen: torch.Tensor) -> None:
            if seen.requires_grad:
                seen.register_hook(see)

        linears = [module for module in self.model.modules() if isinstance(module, nn.Linear)]
        self._hooks = [self.model.register_forward_pre_hook(begin)]
        for linear in linears:
            self._hooks.append(linear.register_forward_hook(output))
            for weight in linear.parameters():
                self._hooks.append(weight.register_post_accumulate_grad_hook(lambda weight: see(weight.grad)))
        return self

    def __exit__(self, *error) -> None:
        for hook in self._hooks:
            hook.remove()

    def values(self) -> list[float]:
        """Return one number for each step, of four significant digits: enough to tell whether it overflows."""
        return [float(f"{step.item():.4g}") for step in self._steps]
