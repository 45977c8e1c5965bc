"""The shape of every matrix product of a training step, read off while the step runs.

    found = of_step(model, lambda: trainer.step(batch))
    for named in merged(found):
        print(named.role, named.layer, named.gemm, named.dtype, named.count)

Each product A @ B of the forward pass has two in the backward pass, with G the gradient of A @ B: the gradient of A is
G @ B^T, that of B is A^T @ G. Which of the two a product is shows in the factor that it shares with the forward pass.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from utils.cost.roofline import Gemm

_aten = torch.ops.aten
# Where the two factors stand among the arguments of an operation.
FACTORS = {
    _aten.mm: (0, 1),
    _aten.addmm: (1, 2),
    _aten.bmm: (0, 1),
    _aten.baddbmm: (1, 2),
    _aten.mv: (0, 1),
    _aten.addmv: (1, 2),
    _aten.dot: (0, 1),
    _aten._scaled_mm: (0, 1),
    _aten._scaled_mm_v2: (0, 1),
}
HIDDEN = ("attention", "conv", "grouped_mm", "_linear")  # in the name of what holds products and shows none of them
COPIES = (_aten._to_copy, _aten.clone, _aten.copy)  # what they return stands for what they were given
# It multiplies positions by frequencies, which is no product of a model: a matrix product in transformers 5.17, none
# in 5.23.
POSITIONS = "rotary_emb"
FORWARD, INPUT, WEIGHT = "forward", "input gradient", "weight gradient"
ROLES = (FORWARD, INPUT, WEIGHT)


@dataclass(frozen=True)
class NamedGemm:
    """A product of a step: its shape, the module that asks for it, its role, and the dtype of its factors.

    `layer` is the module's name in the model ("" outside of it), `role` one of `ROLES`; a factor that is no weight has
    an input gradient, so the products of attention have two. `dtype` is one of `roofline.INPUT_BYTES`: what is
    multiplied, under autocast its dtype. Float32 stays "float32" where the device may round it to TF32.
    `count`: how often it is done in the step. A batch of B matrices counts B times.
    """

    gemm: Gemm
    layer: str
    role: str
    dtype: str
    count: int = 1

    @property
    def operations(self) -> int:
        """Operations of all `count` products; a multiply-add is two."""
        return self.count * self.gemm.operations


def record_gemms(model: nn.Module, step: Callable[[], object]) -> list[NamedGemm]:
    """Run `step` once, and return its products in the order in which they first came.

    `step` runs the model forward, and backward where gradients are wanted; it may be anything that torch can run, also
    on the meta device, where nothing is computed. Equal products of one layer are one entry. A recipe whose 16 bits a
    CPU emulates (`FastHalf`) shows its own dtype when `recipe.on(device)` is entered outside of this call, and the
    float32 that is multiplied in its place when it is entered inside of `step`.
    Raises: ValueError for an operation that holds products in its inside, such as a fused attention kernel.
    """
    reader = _Reader(model)
    with reader.hooked(), reader:
        step()
    return _counted(reader.gemms)


def merge_layers(gemms: Iterable[NamedGemm]) -> list[NamedGemm]:
    """Return the products with the numbers of layers replaced by "*", and equal ones counted together."""
    return _counted(replace(named, layer=re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", named.layer)) for named in gemms)


def count_flops(gemms: Iterable[NamedGemm]) -> int:
    """Return the operations of all products together."""
    return sum(named.operations for named in gemms)


def _counted(gemms: Iterable[NamedGemm]) -> list[NamedGemm]:
    counts: dict[NamedGemm, int] = {}
    for named in gemms:
        single = replace(named, count=1)
        counts[single] = counts.get(single, 0) + named.count
    return [replace(single, count=count) for single, count in counts.items()]


@dataclass
class _Forward:
    """A product of the forward pass: its factors, and which of their gradients have been seen."""

    layer: str
    factors: tuple["_Factor", "_Factor"]
    seen: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Factor:
    origin: StorageWeakRef  # of the tensor that this one is a view or a copy of
    shape: tuple[int, ...]  # sorted: a transposed factor is the same one

    @classmethod
    def of(cls, tensor: torch.Tensor, origins: dict) -> "_Factor":
        ref = _storage(tensor)
        return cls(origins.get(ref, ref), tuple(sorted(tensor.shape)))


def _storage(tensor: torch.Tensor) -> StorageWeakRef:
    # A weak reference keeps no data alive, but it keeps the address from being given to another storage.
    return StorageWeakRef(tensor.untyped_storage())


class _Reader(TorchDispatchMode):
    """Sees every operation below autograd and autocast, and writes down the products."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.weights = {_storage(weight) for weight in model.parameters()}
        self.origins: dict[StorageWeakRef, StorageWeakRef] = {}
        self.inside: list[str] = []  # names of the modules that run, the innermost last
        self.forwards: list[_Forward] = []
        self.gemms: list[NamedGemm] = []

    def hooked(self) -> "_Hooks":
        return _Hooks(self.model, self.inside)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in FACTORS:
            result = func(*args, **kwargs)
            if self.inside and self.inside[-1].endswith(POSITIONS):
                return result
            self._product(packet, *(args[place] for place in FACTORS[packet]), result)
            return result
        with self:  # of an operation that consists of others, see those
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        if packet in flop_registry or any(word in str(packet) for word in HIDDEN):
            raise ValueError(
                f"{packet} holds products that cannot be seen from outside; of attention, take the one in plain "
                'products: model.set_attn_implementation("eager")'
            )
        result = func(*args, **kwargs)
        if packet in COPIES:
            source = _storage(args[0])
            self.origins[_storage(result)] = self.origins.get(source, source)
        return result

    def _product(self, packet, a: torch.Tensor, b: torch.Tensor, result: torch.Tensor) -> None:
        factors = _Factor.of(a, self.origins), _Factor.of(b, self.origins)
        if _in_backward():
            layer, role = self._gradient(factors, tuple(sorted(result.shape)), f"{list(a.shape)} @ {list(b.shape)}")
        else:
            layer, role = self.inside[-1] if self.inside else "", FORWARD
            self.forwards.append(_Forward(layer, factors))
        m, n = (a.shape[-2] if a.dim() > 1 else 1), (b.shape[-1] if b.dim() > 1 else 1)
        name = str(a.dtype).removeprefix("torch.")
        dtype = "float8" if name.startswith("float8") else name
        count = a.shape[0] if a.dim() > 2 else 1
        self.gemms.append(NamedGemm(Gemm(m, n, a.shape[-1]), layer, role, dtype, count))

    def _gradient(self, factors: tuple[_Factor, _Factor], result: tuple[int, ...], shown: str) -> tuple[str, str]:
        """Return layer and role: the latest product of the forward pass that has this factor, and not yet its gradient.

        The backward pass comes from behind, so the latest one is next.
        """
        for forward in reversed(self.forwards):
            for shared, wanted in ((1, 0), (0, 1)):
                its = forward.factors[wanted]
                if wanted in forward.seen or forward.factors[shared] not in factors or its.shape != result:
                    continue
                forward.seen.add(wanted)
                return forward.layer, WEIGHT if its.origin in self.weights else INPUT
        raise ValueError(f"the product {shown} of the backward pass shares no factor with one of the forward pass")


def _in_backward() -> bool:
    # What a checkpointed layer computes again runs inside of backward, but with gradients on: it is a forward pass.
    return torch._C._current_graph_task_id() != -1 and not torch.is_grad_enabled()


class _Hooks:
    """Keeps the names of the modules that run at the moment."""

    def __init__(self, model: nn.Module, inside: list[str]):
        self.model, self.inside = model, inside

    def __enter__(self) -> None:
        self.handles = []
        for name, module in self.model.named_modules():
            shown = name or type(module).__name__
            self.handles += [
                module.register_forward_pre_hook(lambda *_, shown=shown: self.inside.append(shown)),
                module.register_forward_hook(lambda *_: self.inside.pop() and None, always_call=True),
            ]

    def __exit__(self, *error) -> None:
        for handle in self.handles:
            handle.remove()
