"""One rank of a DistilBERT fine-tune on several processes, which torchrun starts on one machine or on many.

    python -m torch.distributed.run --standalone --nproc_per_node 2 -m utils.experiments.parallel.worker --way ddp fsdp2
    --out DIR

Model, batches, optimizer, schedule and the order of a step are those of `utils.distilbert` and
`utils.training.training_loop`. Every rank draws the same batches and takes every Nth text. Rank 0 writes
`DIR/WAY.json`.
"""

import contextlib
import hashlib
import json
import os
import socket
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils import distilbert, measure
from utils.emulation.fast_half import FastHalf
from utils.experiments.parallel import processes
from utils.experiments.parallel.processes import RankPlace
from utils.experiments.parallel.ways import DDP, FSDP2, WAYS, ParallelWay, find_way
from utils.machine import facts, narrow_matmul
from utils.runs import command_line
from utils.training import batches, training_loop
from utils.training.recipes import find_recipe
from utils.training.training_loop import Trainer
from utils.workloads import data, models, review_task
from utils.workloads.review_task import ReviewTask

NAME = "parallel_worker"
COLLECTIVES = {  # index of the argument that is the full array, and the name in `all_reduce.PASSES`
    "allreduce_": (0, "all_reduce"),
    "all_reduce": (0, "all_reduce"),
    "_allgather_base_": (0, "all_gather"),
    "_reduce_scatter_base_": (1, "reduce_scatter"),
}
TCP_INFO, BYTES_SENT = 11, 200  # linux/tcp.h: the option, and the place of tcpi_bytes_sent in it


class Payloads(TorchDispatchMode):
    """Counts the elements of the full array of every collective, by its name and dtype, while it is entered."""

    def __init__(self):
        super().__init__()
        self.elements: Counter[tuple[str, str]] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.partition("::")[2]
        if func.namespace in ("c10d", "_c10d_functional") and name in COLLECTIVES:
            index, collective = COLLECTIVES[name]
            for tensor in tree_leaves(args[index]):
                self.elements[collective, str(tensor.dtype).removeprefix("torch.")] += tensor.numel()
        return func(*args, **(kwargs or {}))


def count_socket_bytes() -> int | None:
    """Return the bytes that this process has sent through all its TCP sockets; None where Linux does not count them."""
    total, folder = 0, Path("/proc/self/fd")
    if not folder.exists():
        return None
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):  # closed meanwhile, or no TCP
            if os.readlink(folder / name).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as copy:
                    info = copy.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256)
                if len(info) < BYTES_SENT + 8:
                    return None
                total += struct.unpack_from("Q", info, BYTES_SENT)[0]
    return total


@dataclass
class RankReport:
    """The report of one rank: plain JSON values. Bytes are per step, after the first step."""

    rank: int
    losses: list[float]
    scales: list[tuple[int, float]]
    skipped: int
    step_ms: float
    kept: dict[str, tuple[str, int]]  # dtype and bytes
    layers: dict[str, str]  # the dtypes in which the first layer computes
    payloads: list[tuple[str, str, int]]  # collective, dtype, elements of the full array in a step
    socket_bytes: int | None
    weights: str  # fingerprint of all weights at the end, gathered


def make_trainer(task: ReviewTask, way: ParallelWay, place: RankPlace, *, seed: int, steps: int) -> Trainer:
    """Return the book's trainer with a model that is spread over the ranks in one way."""
    model = task.new_model(seed)
    models.fit_attention(model, place.device)
    rules = replace(find_recipe("32-true"), needs_loss_scaling=way.needs_loss_scaling)
    model = rules.prepare(model, place.device)
    if way.kind == FSDP2:
        _shard(model, way, place)  # before the optimizer is made: its moments are sharded like the weights
    trainer = Trainer(model, recipe=rules, device=place.device, schedule=task.settings.schedule, steps=steps)
    if way.kind == DDP:
        trainer.model = nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
        if way.wire != torch.float32:
            trainer.model.register_comm_hook(way.wire, average_compressed)
    return trainer


def _shard(model: nn.Module, way: ParallelWay, place: RankPlace) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(place.device.type, (place.ranks,))  # else torch would take the GPUs that there are
    for module in (*model.distilbert.transformer.layer, model):
        fully_shard(module, mesh=mesh, mp_policy=way.policy())


def average_compressed(dtype: torch.dtype, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket of DDP in a narrow dtype; a hook that both gloo and NCCL run.

    torch's `bf16_compress_hook` does the same, but refuses gloo. Gradients are divided before they are sent, so that
    float16 sums do not overflow.
    """
    gradients = bucket.buffer()
    narrow = gradients.to(dtype).div_(dist.get_world_size())  # sum of g / N is the mean
    done = dist.all_reduce(narrow, async_op=True).get_future()
    return done.then(lambda future: gradients.copy_(future.value()[0]))


def take_share(batch: batches.Batch, place: RankPlace) -> batches.Batch:
    """Return every Nth text of a batch: those of this rank.

    Raises: ValueError where N does not divide the batch: the mean of the ranks' losses would not be that of all texts.
    """
    if len(batch.labels) % place.ranks:
        raise ValueError(f"a batch of {len(batch.labels)} texts does not divide by {place.ranks} ranks; change --ranks")
    return batches.Batch(*(part[place.rank :: place.ranks] for part in (batch.ids, batch.mask, batch.labels)))


def train(task: ReviewTask, way: ParallelWay, place: RankPlace, *, steps: int, seed: int = 0) -> RankReport:
    """Take `steps` steps of the fine-tune with the other ranks, and return the report of this one."""
    plan = distilbert.make_plan(task)
    with torch.random.fork_rng(devices=[place.device] if place.device.type == "cuda" else []):
        torch.manual_seed(seed)
        trainer = make_trainer(task, way, place, seed=seed, steps=plan.steps)
        drawn = (take_share(batch, place) for batch in plan.draw(seed))
        payloads, layers = Payloads(), {}
        with _emulate_half(way, place), _note_dtypes(trainer, layers):
            history = training_loop.fine_tune(trainer, drawn, steps=1)  # torch sets up its buckets and buffers
            before = count_socket_bytes()
            with payloads:
                training_loop.fine_tune(trainer, drawn, steps=steps, history=history)
            after, counted_steps = count_socket_bytes(), max(history.steps - 1, 1)
    return RankReport(
        rank=place.rank,
        losses=history.losses,
        scales=history.scales,
        skipped=history.skipped,
        step_ms=measure.Timing(tuple(history.milliseconds)).median,
        kept=_measure_kept(trainer),
        layers=layers,
        payloads=[
            (collective, dtype, count // counted_steps)
            for (collective, dtype), count in sorted(payloads.elements.items())
        ],
        socket_bytes=None if after is None else (after - before) // counted_steps,
        weights=_digest_weights(trainer.model),
    )


def _emulate_half(way: ParallelWay, place: RankPlace) -> contextlib.AbstractContextManager:
    """Let a CPU without float16 products compute them in float32 and round, as in the recipes."""
    native, _ = narrow_matmul(way.compute, place.device)
    emulated = place.device.type == "cpu" and way.compute is torch.float16 and native is False
    return FastHalf() if emulated else contextlib.nullcontext()


@contextlib.contextmanager
def _note_dtypes(trainer: Trainer, layers: dict[str, str]) -> Iterator[None]:
    """Note in `layers` the dtypes in which the first linear layer of a transformer layer computes."""
    model = trainer.model.module if isinstance(trainer.model, nn.parallel.DistributedDataParallel) else trainer.model

    def note(module: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        for name, tensor in (("weights", module.weight), ("inputs", inputs[0]), ("outputs", output)):
            layers[name] = str(tensor.dtype).removeprefix("torch.")

    handle = model.distilbert.transformer.layer[0].ffn.lin1.register_forward_hook(note)
    try:
        yield
    finally:
        handle.remove()


def _measure_kept(trainer: Trainer) -> dict[str, tuple[str, int]]:
    """Return by kind the dtype and the bytes that this rank keeps from step to step; of a shard only its own part."""
    weights = list(trainer.model.parameters())
    kinds = {
        "weights": weights,
        "gradients": [weight.grad for weight in weights if weight.grad is not None],
        "moments": [moment for moment in measure.optimizer_tensors(trainer.optimizer) if moment.ndim],
    }
    kept = {}
    for kind, tensors in kinds.items():
        local = [tensor.to_local() if hasattr(tensor, "to_local") else tensor for tensor in tensors]
        dtypes = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in local})
        kept[kind] = (", ".join(dtypes), measure.tensor_bytes(local))
    return kept


@torch.no_grad()
def _digest_weights(model: nn.Module) -> str:
    """Return 16 hex digits that are the same for the same bits of all weights."""
    sha256 = hashlib.sha256()
    for weight in model.parameters():
        full = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
        sha256.update(full.float().cpu().numpy().tobytes())
    return sha256.hexdigest()[:16]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, which torchrun calls on every rank, and return its exit code."""
    parser = command_line.Parser("experiments.parallel.worker", about=__doc__, sizes="small or full")
    parser.add_names("--way", default=tuple(WAYS), help="how the ranks share the work")
    parser.add_count("--steps", default=20, help="steps of training in each way")
    parser.add_argument("--data", metavar="DIR", help="folder with the reviews, or generated")
    parser.add_argument("--weights", metavar="DIR", help="folder with trained weights")
    parser.add_argument("--out", required=True, metavar="DIR", help="where rank 0 writes what the ranks have to tell")
    options = parser.checked(arguments)
    ways = [find_way(name) for name in options.way]
    generated = options.data == "generated"
    reviews = data.generated_reviews(options.size) if generated else data.load_reviews(options.data, size=options.size)
    task = review_task.prepare(reviews, size=options.size, weights=options.weights)
    with processes.join_ranks(on_gpus=options.device.type == "cuda") as place:
        for way in ways:
            report = asdict(train(task, way, place, steps=options.steps))
            reports = [None] * place.ranks if place.rank == 0 else None
            dist.gather_object(report, reports)
            if reports:
                _write(Path(options.out) / f"{way.name}.json", reports, task=task, place=place)
    return 0


def _write(path: Path, reports: list[dict], *, task: ReviewTask, place: RankPlace) -> None:
    about = {
        "backend": place.backend,
        "device": facts(place.device),
        "settings": asdict(task.settings),
        "data": task.texts.source,
        "data_name": task.texts.name,
        "weights": task.weights,
        "size": task.size,
    }
    path.write_text(json.dumps({"ranks": reports, **about}), "utf8")


if __name__ == "__main__":
    sys.exit(main())
