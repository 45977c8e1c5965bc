"""The ways to train on several processes that the book compares, with the dtypes that travel between them.

    way = WAYS["fsdp2-bf16"]
    way.kept(ranks=8, parameters=7_000_000_000)["weights"]       # ("float32", 3500000000.0): dtype, bytes per rank
    way.sent(parameters=7_000_000_000, ranks=8)                  # bytes a rank sends in a step, by purpose

DDP (`torch.nn.parallel.DistributedDataParallel`) keeps everything on every rank and adds the gradients up. FSDP2
(`torch.distributed.fsdp.fully_shard`) keeps 1/N of everything; each layer's weights are gathered before it computes,
and its gradients are added up so that each rank gets its part.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from utils.experiments.parallel.all_reduce import count_bytes_sent

if TYPE_CHECKING:
    from torch.distributed.fsdp import MixedPrecisionPolicy

DDP, FSDP2 = "ddp", "fsdp2"


@dataclass(frozen=True)
class ParallelWay:
    """One way to train on N processes; weights, gradients and Adam's moments are kept in float32 in all of them.

    `compute`: the dtype in which weights are gathered and layers compute, FSDP2's `param_dtype`; `wire`: that in which
    gradients are added up, the dtype of DDP's compressed buckets or FSDP2's `reduce_dtype`.
    """

    name: str
    kind: str
    compute: torch.dtype
    wire: torch.dtype
    note: str
    needs_loss_scaling: bool = False

    def policy(self) -> "MixedPrecisionPolicy":
        """Return the policy of FSDP2."""
        from torch.distributed.fsdp import MixedPrecisionPolicy

        return MixedPrecisionPolicy(param_dtype=self.compute, reduce_dtype=self.wire)

    def sent(self, parameters: int, *, ranks: int, layers: int | None = None) -> dict[str, float]:
        """Return the bytes that each rank sends in a step, by purpose.

        `layers`: the number of parameters in layers that are gathered twice, for the forward and the backward pass; the
        others, of the outermost module, stay gathered between the two. None: all of them are gathered twice.
        """
        gradients = {"elements": parameters, "ranks": ranks, "itemsize": self.wire.itemsize}
        if self.kind == DDP:
            return {"gradients": count_bytes_sent(**gradients)}
        gathered = parameters + (parameters if layers is None else layers)  # forward, and again for backward
        weights = {"ranks": ranks, "itemsize": self.compute.itemsize, "collective": "all_gather"}
        return {
            "weights": count_bytes_sent(gathered, **weights),
            "gradients": count_bytes_sent(**gradients, collective="reduce_scatter"),
        }

    def kept(self, parameters: int, *, ranks: int) -> dict[str, tuple[str, float]]:
        """Return the dtype and the bytes that each rank keeps from step to step, by kind."""
        held = parameters / (ranks if self.kind == FSDP2 else 1)
        return {
            "weights": ("float32", 4 * held),  # 4 bytes a value
            "gradients": ("float32", 4 * held),
            "moments": ("float32", 8 * held),  # AdamW's m and v
        }


def count_padded(shapes: Iterable[tuple[int, ...]], *, ranks: int) -> int:
    """Return how many elements FSDP2 sends for parameters of these shapes: it adds rows until N divides them."""
    return sum(-(-rows // ranks) * ranks * math.prod(rest) for rows, *rest in shapes)


_F32, _BF16, _F16 = torch.float32, torch.bfloat16, torch.float16
WAYS = {
    way.name: way
    for way in (
        ParallelWay("ddp", DDP, _F32, _F32, "float32 gradients are added up"),
        ParallelWay("ddp-bf16", DDP, _F32, _BF16, "gradients are rounded to bfloat16 before they are added up"),
        ParallelWay("fsdp2", FSDP2, _F32, _F32, "weights and gradients travel in float32"),
        ParallelWay(
            "fsdp2-bf16", FSDP2, _BF16, _F32, "bfloat16 weights travel and compute; gradients are added up in float32"
        ),
        ParallelWay("fsdp2-bf16-reduce", FSDP2, _BF16, _BF16, "bfloat16 weights and gradients travel"),
        ParallelWay(
            "fsdp2-16",
            FSDP2,
            _F16,
            _F32,
            "float16 weights travel and compute; the loss is scaled",
            needs_loss_scaling=True,
        ),
    )
}


def find_way(name: str) -> ParallelWay:
    """Return the way called `name`.

    Raises: ValueError with the known names when there is none.
    """
    if name not in WAYS:
        raise ValueError(f"unknown way {name!r}; the known ones are {', '.join(WAYS)}")
    return WAYS[name]
