"""Which module of a model an operation belongs to, in the forward pass and in the backward pass."""

from collections.abc import Callable

import torch
from torch import nn


class RunningModule:
    """Knows, while it is entered, which module runs: for a `TorchDispatchMode`, which asks at each operation.

    A module that stands in the model under two names has the first. All hooks are gone afterwards.
    """

    def __init__(self, model: nn.Module):
        self._model = model
        self._parameters = {id(weight): name for name, weight in model.named_parameters()}
        self._hooks: list = []
        self._running: list[tuple[str, int]] = []  # the modules that run now and their calls, the innermost last
        self._calls = 0
        self._owners: dict[int, tuple[str, int]] = {}  # number of an autograd node -> module that made it

    def __enter__(self) -> "RunningModule":
        for name, module in self._model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._entering(name)))
            self._hooks.append(module.register_forward_hook(self._leaving, always_call=True))
        return self

    def __exit__(self, *error) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._running.clear()

    def parameter(self, tensor: torch.Tensor) -> str:
        """Return the name of a parameter, "" for another tensor."""
        return self._parameters.get(id(tensor), "")

    def place(self) -> tuple[str, int, bool]:
        """Return the path of the innermost module, the number of its call, and whether this is its backward pass.

        The path is "" for the model itself, and for what runs outside; a call is counted over all modules.
        """
        node = torch._C._current_autograd_node()
        if node is None or self._running:  # the second: a forward pass that checkpointing repeats
            place = self._running[-1] if self._running else ("", 0)
            # The node of an operation is made before it runs: it has the last number that was given.
            self._owners.setdefault(torch.autograd._get_sequence_nr() - 1, place)
            return *place, False
        if hasattr(node, "variable"):  # adds a gradient to that of its parameter
            return self.parameter(node.variable).rpartition(".")[0], 0, True
        return *self._owners.get(node._sequence_nr(), ("", 0)), True

    def _entering(self, name: str) -> Callable:
        def enter(module: nn.Module, inputs: tuple) -> None:
            self._calls += 1
            self._running.append((name, self._calls))

        return enter

    def _leaving(self, module: nn.Module, inputs: tuple, output) -> None:
        self._running.pop()
