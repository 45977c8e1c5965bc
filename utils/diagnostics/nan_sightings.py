"""What a step of training shows to someone who looks for numbers that are not finite: each operation, or each module.

Nothing is read back while the step runs: of each tensor the smallest and the largest value stay on its device, and all
of them are read at the end, together. So a GPU does not wait in between.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.diagnostics.running_module import RunningModule

FORWARD, BACKWARD, BETWEEN, UPDATE = "forward", "backward", "between backward and update", "update"
# Their results are what the memory held before, and of the second kind the first argument is that.
_UNWRITTEN = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"})
_OVERWRITES = frozenset({"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_"})


class Snapshot(NamedTuple):
    """A tensor at one moment. `number`: of its range in `Ranges`, -1 where it holds no floats. `storage`: where."""

    dtype: str
    shape: tuple[int, ...]
    storage: StorageWeakRef
    number: int


class Sighting(NamedTuple):
    """What went in and what came out. `operation`: "" for a whole module. `call`: of the module, counted over the step.

    `writes`: infinity or NaN stands among the arguments as a number, so that it is meant.
    """

    stage: str
    module: str
    call: int
    operation: str
    inputs: tuple[Snapshot, ...]
    made: tuple[Snapshot, ...]
    writes: bool = False


class Gradient(NamedTuple):
    """The gradient of an output of a module, or of an input or a parameter of it; for the last the `call` is 0."""

    module: str
    call: int
    of_output: bool
    look: Snapshot


class Ranges:
    """The smallest and the largest value of tensors, which stay on their devices until `read`."""

    def __init__(self):
        self._found: list[torch.Tensor] = []  # [2] each
        self._known: dict[tuple, int] = {}

    def look(self, tensor: torch.Tensor, *, changed: bool = False) -> Snapshot:
        """Note a tensor. `changed`: it was written to, which its version does not tell yet."""
        storage, dtype = StorageWeakRef(tensor.untyped_storage()), str(tensor.dtype).removeprefix("torch.")
        number = -1
        if tensor.is_floating_point() and tensor.numel() and tensor.device.type != "meta":
            number = self._number(tensor.detach(), storage, changed=changed)
        return Snapshot(dtype, tuple(tensor.shape), storage, number)

    def _number(self, tensor: torch.Tensor, storage: StorageWeakRef, *, changed: bool) -> int:
        old = tensor.is_inference() or changed
        version = 0 if tensor.is_inference() else tensor._version
        key = (storage, version, tensor.storage_offset(), tensor.shape, tensor.stride())
        if old or key not in self._known:
            self._known[key] = len(self._found)
            # A CPU is slow to look at float16, and no device looks at FP8; widening is exact.
            narrow = tensor.itemsize == 1 or (tensor.itemsize == 2 and tensor.device.type == "cpu")
            low, high = torch.aminmax(tensor.float() if narrow else tensor)
            self._found.append(torch.stack((low, high)).double())
        return self._known[key]

    def read(self) -> list[tuple[float, float]]:
        """Return (smallest, largest) by number; NaN in both where there is one."""
        stacks = [extremes.cpu() for extremes in self._stacked()]
        return [tuple(pair) for stack in stacks for pair in stack.tolist()]

    def _stacked(self) -> Iterable[torch.Tensor]:
        """One tensor where all lie on one device: read in one transfer."""
        if len({extremes.device for extremes in self._found}) == 1:
            return [torch.stack(self._found)]
        return [extremes[None] for extremes in self._found]


class Operations(TorchDispatchMode):
    """Sees every operation below autocast and autograd, by the modules of a model."""

    def __init__(self, model: nn.Module, ranges: Ranges):
        super().__init__()
        self.sightings: list[Sighting] = []
        self.updating = False
        self._model, self._ranges, self._running = model, ranges, RunningModule(model)
        self._root: list = []
        self._since = FORWARD  # what an operation outside of all modules belongs to

    def __enter__(self):
        self._running.__enter__()
        self._root = [self._model.register_forward_pre_hook(self._begins)]
        return super().__enter__()

    def __exit__(self, *error):
        for hook in self._root:
            hook.remove()
        self._running.__exit__(*error)
        return super().__exit__(*error)

    def _begins(self, *_) -> None:
        self._since = FORWARD

    def looks(self, values) -> list[Snapshot]:
        """Return a look at each tensor in a structure of tensors."""
        return [self._ranges.look(tensor) for tensor in _tensors(values)]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        if name in _UNWRITTEN or _is_view(func):
            return func(*args, **kwargs)
        read = () if _takes_a_shape(name) else args[1:] if name in _OVERWRITES else args
        options = {key: value for key, value in kwargs.items() if key != "out"}
        inputs = tuple(map(self._ranges.look, _tensors((read, options))))
        writes = any(isinstance(leaf, float) and leaf - leaf != 0 for leaf in tree_leaves((args, kwargs)))
        result = func(*args, **kwargs)
        written = _written(func, args, kwargs)
        made = tuple(self._ranges.look(tensor, changed=True) for tensor in written)
        made += tuple(self._ranges.look(t) for t in _tensors(result) if not any(t is w for w in written))
        module, call, backward = self._running.place()
        self.sightings.append(Sighting(self._stage(backward, call), module, call, name, inputs, made, writes))
        return result

    def _stage(self, backward: bool, call: int) -> str:
        if backward:
            self._since = BETWEEN
            return BACKWARD
        return FORWARD if call else UPDATE if self.updating else self._since


class Modules:
    """Sees what goes into every module and what comes out, forward and backward, through hooks.

    Backward, what goes in are the gradients of its outputs, and what comes out those of its inputs and its parameters.
    """

    def __init__(self, model: nn.Module, ranges: Ranges):
        self.sightings: list[Sighting] = []
        self.gradients: list[Gradient] = []  # in the order of time
        self.parents: dict[int, int] = {}  # number of a call -> of the call around it; 0: outside
        self.updating = False
        self._model, self._ranges = model, ranges
        self._hooks: list = []
        self._calls = 0
        self._running: list[tuple[str, int, tuple[Snapshot, ...]]] = []  # the innermost last

    def __enter__(self) -> "Modules":
        for name, module in self._model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._entering(name), with_kwargs=True))
            self._hooks.append(module.register_forward_hook(self._leaving, always_call=True))
        for name, weight in self._model.named_parameters():
            if weight.requires_grad:
                self._hooks.append(weight.register_post_accumulate_grad_hook(self._of_parameter(name)))
        return self

    def __exit__(self, *error) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def looks(self, values) -> list[Snapshot]:
        """Return a look at each tensor in a structure of tensors."""
        return [self._ranges.look(tensor) for tensor in _tensors(values)]

    def _entering(self, name: str) -> Callable:
        def enter(module: nn.Module, args: tuple, kwargs: dict) -> None:
            self._calls += 1
            self.parents[self._calls] = self._running[-1][1] if self._running else 0
            inputs = _tensors((args, kwargs))
            weights = module.parameters(recurse=False)
            held = tuple(self._ranges.look(tensor) for tensor in (*inputs, *weights))
            self._running.append((name, self._calls, held))
            self._watch(inputs, name, of_output=False)

        return enter

    def _leaving(self, module: nn.Module, inputs: tuple, output) -> None:
        outputs = _tensors(output)
        name, call, held = self._running[-1]
        self._watch(outputs, name, of_output=True)
        self._running.pop()
        made = tuple(self._ranges.look(tensor) for tensor in outputs)
        self.sightings.append(Sighting(FORWARD, name, call, "", held, made))

    def _watch(self, tensors: Iterable[torch.Tensor], name: str, *, of_output: bool) -> None:
        call = self._running[-1][1]

        def see(gradient: torch.Tensor) -> None:
            self.gradients.append(Gradient(name, call, of_output, self._ranges.look(gradient)))

        for tensor in tensors:
            if tensor.requires_grad and tensor.is_floating_point():
                tensor.register_hook(see)

    def _of_parameter(self, name: str) -> Callable:
        module = name.rpartition(".")[0]

        def see(weight: torch.Tensor) -> None:
            self.gradients.append(Gradient(module, 0, False, self._ranges.look(weight.grad)))

        return see


def _takes_a_shape(name: str) -> bool:
    return name.endswith("_like") or name.startswith("new_")


def _tensors(values) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _is_view(func) -> bool:
    aliases = [value.alias_info for value in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _written(func, args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """Return the tensors that an operation writes to, whether it returns them or not."""
    if not func._schema.is_mutable:
        return []
    named = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | kwargs
    aliases = ((argument.name, argument.alias_info) for argument in func._schema.arguments)
    return _tensors([named.get(name) for name, alias in aliases if alias is not None and alias.is_write])
