"""Fine-tune a DistilBERT on several processes in every way to split the work, and compare what each keeps and sends.

    python -m utils.experiments.parallel --way ddp ddp-bf16 fsdp2-bf16 --ranks 2 --steps 20 --size small --record DIR

`run` starts `utils.experiments.parallel.worker` on this machine and reads the reports of its ranks. On several machines
torchrun starts the worker:

    torchrun --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint HOST:29500 \\
        -m utils.experiments.parallel.worker --way fsdp2-bf16 --size full --out DIR
"""

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from utils import machine, records
from utils.experiments.parallel import processes
from utils.experiments.parallel.all_reduce import count_bytes_sent
from utils.experiments.parallel.ways import WAYS, ParallelWay, find_way
from utils.runs import command_line, tables
from utils.workloads import review_task

NAME = "parallel"
# Most that a loss of the first 20 steps at small size may differ from that of one process; measured there: 9e-8, 5e-7
# with bfloat16 gradients, 5e-4 with 16-bit products.
BOUNDS = {"float32": 1e-5, "gradients": 1e-4, "products": 2e-3}


@dataclass(frozen=True)
class ParallelResult:
    """The reports of one run's ranks in their order (`worker.RankReport`), and in `about` what they ran on."""

    way: ParallelWay
    ranks: tuple[dict, ...]
    about: dict

    @property
    def losses(self) -> list[float]:
        """The loss of each step over the texts of all ranks."""
        return [sum(losses) / len(losses) for losses in zip(*(rank["losses"] for rank in self.ranks), strict=True)]

    @property
    def step_ms(self) -> float:
        """The median time of a step on the slowest rank."""
        return max(rank["step_ms"] for rank in self.ranks)

    @property
    def same_weights(self) -> bool:
        """Whether all ranks end with the same bits in all weights."""
        return len({rank["weights"] for rank in self.ranks}) == 1

    @property
    def payloads(self) -> dict[tuple[str, str], int]:
        """The elements of the full arrays of a step, by collective and dtype."""
        return {(collective, dtype): count for collective, dtype, count in self.ranks[0]["payloads"]}

    @property
    def counted(self) -> dict[str, float]:
        """The bytes that a rank sends in a step by the formula of a ring, for the counted arrays, by collective."""
        sizes = {"float32": 4, "bfloat16": 2, "float16": 2}
        return {
            f"{collective} {dtype}": count_bytes_sent(
                count, ranks=len(self.ranks), itemsize=sizes[dtype], collective=collective
            )
            for (collective, dtype), count in self.payloads.items()
            if count > 1  # the norm of the gradients and the check for infinities are single numbers
        }

    @property
    def socket_bytes(self) -> int | None:
        """The bytes that a rank has sent in a step, counted by the system; None where it cannot (NCCL, no Linux).

        The least of all ranks: a rank that sends more also sends messages about when to begin.
        """
        sent = [rank["socket_bytes"] for rank in self.ranks]
        return None if self.about["backend"] != "gloo" or None in sent else min(sent)

    @property
    def bound(self) -> float:
        """The most by which a loss may differ from that of one process, from `BOUNDS`."""
        if self.way.compute.itemsize < 4:
            return BOUNDS["products"]
        return BOUNDS["float32" if self.way.wire.itemsize == 4 else "gradients"]

    def difference(self, losses: list[float]) -> float:
        """Return the largest difference of a loss to that of another run with as many steps, in the same order."""
        return max(abs(ours - theirs) for ours, theirs in zip(self.losses, losses, strict=True))


def run(
    ways: Iterable[str] = tuple(WAYS),
    *,
    ranks: int = 2,
    steps: int = 20,
    device: torch.device | None = None,
    size: str | None = None,
    data: str | None = None,
    weights: str | None = None,
    seconds: float = 120.0,
    port: int | None = None,
) -> dict[str, ParallelResult]:
    """Train a DistilBERT for `steps` steps in each way, one after the other on the same processes.

    `device`: "cuda" gives every rank a GPU of its own, "cpu" two ranks or more the same processor; None: GPUs where
    there are as many. `size`: as in `machine.size`. `data`: a folder with reviews, or "generated".
    Raises: ValueError for an unknown way, or where `ranks` does not divide a batch; `processes.Failed` where a rank or
    the port is lost or the time is over.
    """
    names = [find_way(name).name for name in ways]
    gpus = torch.cuda.device_count()
    device = device or torch.device("cuda" if gpus >= ranks else "cpu")
    if device.type == "cuda" and gpus < ranks:
        raise ValueError(f"{ranks} ranks need a GPU each, and there are {gpus}; give --ranks {gpus} or --device cpu")
    size = machine.size(size, on=device)
    batch = (review_task.FULL if size == "full" else review_task.SMALL_REAL).batch  # generated reviews: the same
    if batch % ranks:  # the mean of the ranks' losses would not be that of all texts
        raise ValueError(f"a batch of {batch} texts does not divide by {ranks} ranks; change --ranks")
    with tempfile.TemporaryDirectory() as out:
        program = ["-m", "utils.experiments.parallel.worker", "--device", device.type, "--size", size, "--out", out]
        program += ["--way", *names, "--steps", str(steps)]
        for option, folder in (("--data", data), ("--weights", weights)):
            program += [option, str(folder)] if folder else []
        processes.run(program, ranks=ranks, seconds=seconds, port=port)
        return read_results(out, names)


def read_results(folder: Path | str, names: Iterable[str] = tuple(WAYS)) -> dict[str, ParallelResult]:
    """Return by name of the way the results that rank 0 of the worker left in a folder."""
    results = {}
    for name in names:
        path = Path(folder) / f"{name}.json"
        if path.exists():
            about = json.loads(path.read_text("utf8"))
            results[name] = ParallelResult(find_way(name), tuple(about.pop("ranks")), about)
    return results


def make_record(result: ParallelResult, *, steps: int, shown: str = "") -> records.Record:
    """Return the record of one run."""
    about, first = result.about, result.ranks[0]
    return records.Record(
        experiment=NAME,
        recipe=f"{result.way.name}-{len(result.ranks)}",
        size=about["size"],
        seed=0,
        settings=about["settings"] | {"way": result.way.name, "ranks": len(result.ranks), "steps": steps},
        results={
            "backend": about["backend"],
            "step_ms": result.step_ms,
            "same_weights": result.same_weights,
            "kept": first["kept"],
            "layers": first["layers"],
            "payloads": first["payloads"],
            "socket_bytes": result.socket_bytes,
            "skipped_steps": first["skipped"],
        },
        samples={"loss": [[step, round(loss, 7)] for step, loss in enumerate(result.losses, 1)]},
        data=about["data"],
        data_name=about["data_name"],
        weights=about["weights"],
        device=about["device"],
        **records.provenance(shown),
    )


def format_table(results: dict[str, ParallelResult]) -> str:
    """Return what each way keeps and sends, as aligned text, one row per way."""
    heading = (
        "way",
        "computes in",
        "gradients travel in",
        "kept, MB a rank",
        "sent, MB a step",
        "last loss",
        "ms a step",
    )
    rows = [
        (
            name,
            result.ranks[0]["layers"]["weights"],
            str(result.way.wire).removeprefix("torch."),
            f"{sum(count for _, count in result.ranks[0]['kept'].values()) / 1e6:.2f}",
            f"{sum(result.counted.values()) / 1e6:.2f}",
            f"{result.losses[-1]:.6f}",
            f"{result.step_ms:.1f}",
        )
        for name, result in results.items()
    ]
    return tables.align([heading, *rows])


@command_line.in_one_line(NAME)
def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = command_line.Parser(
        f"experiments.{NAME}", about=__doc__, sizes="small or full", record="write one record a way"
    )
    parser.add_names("--way", default=tuple(WAYS), help="how the ranks share the work")
    parser.add_count("--ranks", default=2, help="processes; on a machine with that many GPUs each has its own")
    parser.add_count("--steps", default=20, help="steps of training in each way")
    parser.add_count("--seconds", default=600, help="after which all ranks are ended")
    parser.add_argument("--port", type=int, metavar="N", help="where the ranks meet; default: a free one")
    parser.add_argument("--data", metavar="DIR", help="folder with the reviews, or generated")
    parser.add_argument("--weights", metavar="DIR", help="folder with trained weights")
    try:
        options = parser.checked(arguments)
        names = ("ranks", "steps", "device", "size", "data", "weights", "port", "seconds")
        results = run(options.way, **{name: getattr(options, name) for name in names})
    except (ValueError, processes.Failed) as error:
        return command_line.complain(NAME, str(error), 2)
    about = next(iter(results.values())).about
    backend = f"{about['backend']}, {options.ranks} ranks"
    used = {"size": options.size, "data": about["data"], "weights": about["weights"], "between": backend}
    print(command_line.describe_run(options.device, **used))
    print(format_table(results))
    for result in results.values() if options.record else ():
        records.save(make_record(result, steps=options.steps, shown=options.command), options.record)
    return 0
