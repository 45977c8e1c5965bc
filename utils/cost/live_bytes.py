"""The bytes of tensors that are alive after each operation: a curve, on any device, without a profiler."""

import weakref
from collections.abc import Iterable
from functools import partial

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Follow the storages that the operations inside this context make and free.

        with LiveBytes(model.parameters()) as live:
            loss = model(x).sum()
            forward = len(live.curve)  # the place on the curve where the backward pass begins
            loss.backward()
        live.peak  # the most bytes at once

    Each storage counts once, from the operation that returns it until nothing holds it. `before`: what is there at the
    start and counts; other tensors from outside do not. Temporaries inside one operation, the workspace of a kernel
    and the allocator's rounding are not seen: `measure.peak` has them on CUDA.
    """

    def __init__(self, before: Iterable[torch.Tensor] = ()):
        super().__init__()
        self.now = 0
        self.curve: list[int] = []  # bytes alive after each operation
        self._known: dict[int, weakref.ref] = {}  # by the address of the storage, until it is freed
        for tensor in before:
            self._count(tensor)
        self._at_start = self.now

    @property
    def peak(self) -> int:
        """The most bytes that were alive at once."""
        return max(self.curve, default=self._at_start)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for tensor in _tensors((args, kwargs)):
            self._count(tensor, counts=False)  # not made here, if it is not known yet
        out = func(*args, **(kwargs or {}))
        for tensor in _tensors(out):
            self._count(tensor)
        self.curve.append(self.now)
        return out

    def _count(self, tensor: torch.Tensor, *, counts: bool = True) -> None:
        storage = tensor.untyped_storage()
        place, size = storage._cdata, storage.nbytes() if counts else 0
        if place not in self._known:
            self._known[place] = weakref.ref(storage, partial(self._free, place, size))
            self.now += size

    def _free(self, place: int, size: int, _: weakref.ref) -> None:
        del self._known[place]
        self.now -= size


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
