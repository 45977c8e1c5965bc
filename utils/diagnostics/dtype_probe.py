"""In which dtype each operation of a model really runs: a probe below autocast, where its casts are operations too.

    with DtypeProbe(model) as probe, torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(**batch).loss
    probe.steps      # every operation in order: module, name, dtypes
    probe.recasts()  # tensors that were cast more than once, or there and back

`loss.backward()` inside the probe is recorded as well, each operation under the module of its forward twin. The probe
changes no number; it makes a pass several times slower.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.diagnostics.running_module import RunningModule

CAST, COMPUTE, MOVE = "cast", "compute", "move"
# Copy, make or look at tensors without arithmetic; views are known by their schema.
_MOVES = frozenset(
    {
        "_local_scalar_dense",
        "_unsafe_view",
        "arange",
        "clone",
        "copy_",
        "detach",
        "empty",
        "empty_like",
        "fill_",
        "full",
        "full_like",
        "gather",
        "index_select",
        "lift_fresh",
        "new_empty",
        "new_zeros",
        "ones",
        "ones_like",
        "zeros",
        "zeros_like",
    }
)
_ELEMENTWISE = frozenset({"add", "cat", "div", "mul", "neg", "sub"})  # neighbours of one dtype share a box of a picture
_LABELS = {
    "addmm": "linear",
    "mm": "linear",
    "bmm": "matmul",
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "native_layer_norm": "layer_norm",
    "nll_loss_forward": "nll_loss",
    "_scaled_dot_product_flash_attention_for_cpu": "attention",
    "_scaled_dot_product_flash_attention": "attention",
    "_scaled_dot_product_efficient_attention": "attention",
    "_scaled_dot_product_cudnn_attention": "attention",
}


@dataclass(frozen=True)
class Step:
    """One operation below autocast and autograd.

    `module`: the path of the innermost module that runs, "" for the model itself or outside. `call`: which call of a
    module, counted over the pass. `op`: the name in ATen, such as "addmm". `inputs`, `outputs`: dtypes by name, in
    order, of the floating tensors among them. `kind`: "cast" (another floating dtype), "compute" or "move" (views,
    copies, look-ups, new tensors). `bytes`: what a cast writes, 0 for others. `parameter`: the name of the parameter
    that a cast reads, "" for others. `repeated`: the cast was made before, of the same unchanged tensor to the same
    dtype. `round_trip`: the cast takes back one that was made before.
    """

    module: str
    call: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kind: str
    bytes: int = 0
    parameter: str = ""
    backward: bool = False
    repeated: bool = False
    round_trip: bool = False

    @property
    def dtype(self) -> str:
        """The dtype in which it computes: that of its first floating result, "" where it has none."""
        return self.outputs[0] if self.outputs else ""


class Summary(NamedTuple):
    """What one module did: its computing operations by dtype, its casts, and the bytes that these wrote."""

    module: str
    dtypes: dict[str, int]
    casts: int
    bytes: int


class Recast(NamedTuple):
    """A tensor that was cast more than once: what it is, from and to which dtype, how often, and by which modules.

    `tensor`: the name of a parameter, else "activation". `round_trip`: it went to the other dtype and came back;
    otherwise the same cast was made `times` times. `bytes`: written by the casts after the first.
    """

    tensor: str
    cast: str
    times: int
    bytes: int
    modules: tuple[str, ...]
    round_trip: bool


class Stage(NamedTuple):
    """A box of a picture: one call of a module without children, or one operation of a module that has some.

    `label`: the name of the former, the operation of the latter. `op`: the operation, "" where there are several.
    `dtype`: the one most of it computes in. `casts`: pairs (from, to).
    """

    label: str
    op: str
    dtype: str
    casts: tuple[tuple[str, str], ...]


class DtypeProbe(TorchDispatchMode):
    """A context that records in `steps` what runs inside it, by the modules of `model`.

    Enter it before or after `torch.autocast`: autocast casts above the probe in both cases. All hooks are gone when it
    ends. A module that stands in the model under two names has the first.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.steps: list[Step] = []
        self._leaves = {name for name, module in model.named_modules() if not list(module.children())}
        self._running = RunningModule(model)
        self._casts: dict[tuple, list[Step]] = {}  # (tensor, dtype) -> its casts to that dtype
        self._results: dict[tuple, Step] = {}  # result of a cast -> the cast
        self._trips: list[tuple[Step, Step]] = []  # a cast, and the one that took it back

    def __enter__(self):
        self._running.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        self._running.__exit__(*error)
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        inputs, made = _floating((args, kwargs)), _floating(result)
        name = func._schema.name.partition("::")[2]
        kind = _kind(func, name, inputs, made)
        module, call, backward = self._running.place()
        step = Step(module, call, name, _dtypes(inputs), _dtypes(made), kind, backward=backward)
        self.steps.append(self._cast(step, inputs[0], made[0]) if kind == CAST else step)
        return result

    def casts(self) -> list[Step]:
        """Return the steps that only change a dtype."""
        return [step for step in self.steps if step.kind == CAST]

    def summary(self, depth: int | None = None) -> list[Summary]:
        """Return what each module did, in the order of their first operations.

        `depth`: a module deeper than so many names counts with the one above it; None takes each for itself.
        """
        groups: dict[str, list[Step]] = {}
        for step in self.steps:
            groups.setdefault(".".join(step.module.split(".")[:depth]), []).append(step)
        summaries = []
        for module, steps in groups.items():
            dtypes = Counter(step.dtype for step in steps if step.kind == COMPUTE and step.dtype)
            casts = [step.bytes for step in steps if step.kind == CAST]
            summaries.append(Summary(module, dict(dtypes), len(casts), sum(casts)))
        return summaries

    def recasts(self) -> list[Recast]:
        """Return the tensors that were cast more than once or there and back, those with the most bytes first."""
        recasts = []
        for casts in (casts for casts in self._casts.values() if len(casts) > 1):
            first, size = casts[0], sum(step.bytes for step in casts[1:])
            modules = tuple(dict.fromkeys(step.module for step in casts))
            cast = f"{first.inputs[0]} to {first.dtype}"
            recasts.append(Recast(first.parameter or "activation", cast, len(casts), size, modules, False))
        for first, back in self._trips:
            cast = f"{first.inputs[0]} to {first.dtype} and back"
            modules = tuple(dict.fromkeys((first.module, back.module)))
            recasts.append(Recast(first.parameter or "activation", cast, 2, back.bytes, modules, True))
        return sorted(recasts, key=lambda recast: -recast.bytes)

    def stages(self, module: str = "") -> list[Stage]:
        """Return the forward pass of one module as boxes in order: for `utils.plots.dtype_graph`.

        Views, copies and other moves are left out. A cast stands at the box that it comes before or is part of; one
        after the last box belongs to none.
        Raises: ValueError when no operation of such a module was recorded.
        """
        inside = [step for step in self.steps if _is_below(step.module, module) and not step.backward]
        if not inside:
            recorded = dict.fromkeys(step.module for step in self.steps if step.module)
            raise ValueError(f"no operation of a module {module!r} was recorded; there are {', '.join(recorded)}")
        boxes: list[list[Step]] = []
        waiting: list[Step] = []  # casts outside a module without children
        for step in (step for step in inside if step.kind != MOVE):
            leaf = step.module in self._leaves
            if step.kind == CAST and not leaf:
                waiting.append(step)
            elif boxes and self._shares_box(boxes[-1], step, waiting):
                boxes[-1].append(step)
            else:
                boxes.append([*waiting, step])
                waiting = []
        return [self._stage(steps) for steps in boxes]

    def _shares_box(self, box: list[Step], step: Step, waiting: list[Step]) -> bool:
        last = box[-1]
        if step.module in self._leaves:
            return last.call == step.call
        alike = {last.op, step.op} <= _ELEMENTWISE and last.dtype == step.dtype and last.module == step.module
        return alike and not waiting

    def _stage(self, steps: list[Step]) -> Stage:
        last = steps[-1]
        computing = [step for step in steps if step.kind == COMPUTE and step.dtype] or [last]
        ops = list(dict.fromkeys(_LABELS.get(step.op, step.op.strip("_")) for step in computing))
        dtype = Counter(step.dtype for step in computing).most_common(1)[0][0]
        casts = tuple((step.inputs[0], step.dtype) for step in steps if step.kind == CAST)
        label = last.module.rpartition(".")[2] if last.module in self._leaves else ", ".join(ops)
        return Stage(label, ops[0] if len(ops) == 1 else "", dtype, casts)

    def _cast(self, step: Step, source: torch.Tensor, result: torch.Tensor) -> Step:
        key = _tensor_key(source)
        first = self._results.get(key[:2])
        same = self._casts.setdefault((key, step.dtype), [])
        step = replace(
            step,
            bytes=result.numel() * result.element_size(),
            parameter=self._running.parameter(source),
            repeated=bool(same),
            round_trip=first is not None and first.inputs[0] == step.dtype,
        )
        same.append(step)
        self._results[_tensor_key(result)[:2]] = step
        if step.round_trip:
            self._trips.append((first, step))
        return step


def _floating(values) -> list[torch.Tensor]:
    leaves = tree_leaves(values)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]


def _dtypes(tensors: list[torch.Tensor]) -> tuple[str, ...]:
    return tuple(str(tensor.dtype).removeprefix("torch.") for tensor in tensors)


def _kind(func, name: str, inputs: list[torch.Tensor], made: list[torch.Tensor]) -> str:
    if name in ("_to_copy", "to"):  # the second in inference mode
        return CAST if inputs and made and inputs[0].dtype != made[0].dtype else MOVE
    aliases = [value.alias_info for value in func._schema.returns]
    is_view = any(alias is not None and not alias.is_write for alias in aliases)
    return MOVE if is_view or name in _MOVES else COMPUTE


def _tensor_key(tensor: torch.Tensor) -> tuple:
    """What tells an unchanged tensor: its storage, kept from being reused, its version, and its place there."""
    version = 0 if tensor.is_inference() else tensor._version
    return StorageWeakRef(tensor.untyped_storage()), version, tensor.storage_offset(), tensor.numel()


def _is_below(name: str, module: str) -> bool:
    return not module or name == module or name.startswith(f"{module}.")
