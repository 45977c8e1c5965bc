"""Start a program on several processes with torchrun, also from a notebook, and never leave a process behind.

    processes.run(["worker.py"], ranks=2, seconds=60)           # python -m torch.distributed.run ... worker.py

`run` always returns: when a rank dies, when a port is taken, when the time is over, when you press stop. Then no
process and no temporary file is left. `torch.distributed.launcher.api.elastic_launch` would start the ranks inside this
process, but it knows no time limit, and processes that a rank has started outlive it. So torchrun is a process of its
own, and `_wait` ends its descendants. In the program, `join_ranks` joins the ranks:

    with processes.join_ranks() as place:                       # NCCL where every rank has a GPU, else gloo on a CPU
        dist.all_reduce(torch.ones(1, device=place.device))
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LAUNCHER = "MIXED_PRECISION_LAUNCHER"  # the process that waits for the ranks
POLL = 0.2  # seconds between two looks
GRACE = 3.0  # seconds between SIGTERM and SIGKILL
SHUTDOWN = 2  # seconds that torchrun gives the ranks that are left, once one is lost
LAST_PORT = 2**16 - 1
COLLECTIVE = 30.0  # seconds after which a rank stops waiting for the others
LOST_CONNECTION = re.compile(r"Connection (closed|reset) by peer|Broken pipe|Timed out waiting|heartbeat")
FAILURE = re.compile(r"rank\s+: (\d+) .*\n\s+exitcode\s+: (-?\d+)")


class Failed(RuntimeError):
    """A run on several processes failed; `output` is what all of them wrote on stderr."""

    def __init__(self, message: str, output: str = ""):
        super().__init__(message)
        self.output = output


class RankLost(Failed):
    """A rank died or raised; the others were ended."""


class PortTaken(Failed):
    """The port at which the ranks were to meet belongs to another program."""


class TimeIsUp(Failed):
    """The ranks did not finish within the time; all of them were ended."""


@dataclass(frozen=True)
class Finished:
    """What the ranks wrote on stdout, rank after rank, and the seconds from the start to the end of the last one."""

    output: str
    seconds: float


@dataclass(frozen=True)
class RankPlace:
    """Which of the ranks this process is, and on which device it computes."""

    rank: int
    ranks: int
    device: "torch.device"
    backend: str


def run(
    program: Sequence[str],
    *,
    ranks: int = 2,
    seconds: float = 60.0,
    port: int | None = None,
    threads: int = 1,
) -> Finished:
    """Run `program` on `ranks` processes of this machine and wait for them; every process is gone afterwards.

    So is every temporary file: torchrun and the ranks have a folder of their own for them, which lives as long as they.

    `program`: what follows `python`, such as ["worker.py", "--steps", "3"] or ["-m",
    "utils.experiments.parallel.worker"]. `port`: where the ranks meet; None lets torchrun find a free one. `threads`:
    of each rank. Raises: ValueError for a port that no machine has; PortTaken at once; RankLost when a rank ends with
    an error, or is killed; TimeIsUp after `seconds`.
    """
    if port is not None and port not in range(1, LAST_PORT + 1):
        raise ValueError(f"port {port} is not in 1 ... {LAST_PORT}; name another one, or none")
    if port is not None and not _is_free(port):
        raise PortTaken(_say_taken(port))
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "torchrun", "w+", encoding="utf8") as summary:
        logs, temporary = (Path(folder) / name for name in ("logs", "temporary"))
        temporary.mkdir()
        process = subprocess.Popen(
            make_command(program, ranks=ranks, port=port, logs=logs),
            env=_make_environment(threads, temporary),
            stdin=subprocess.DEVNULL,
            stdout=summary,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a stop button's signal comes to us alone
        )
        in_time = _wait(process, seconds)
        summary.seek(0)
        report = summary.read()
        stdout, stderr = (_read_by_rank(logs, name) for name in ("stdout", "stderr"))
    if in_time and process.returncode == 0:
        return Finished("".join(stdout.values()), time.perf_counter() - start)
    if in_time:
        raise _make_failure(report, stderr, port=port, code=process.returncode)
    message = f"not done after {seconds:g} s; all {ranks} ranks were ended{_quote_last_error(*stderr.values())}"
    raise TimeIsUp(message, "".join([report, *stderr.values()]))


def make_command(program: Sequence[str], *, ranks: int, port: int | None = None, logs: Path) -> list[str]:
    """Return the command that starts `program` on `ranks` processes of one machine.

    `logs`: a folder where each rank has files of its own for stdout and stderr. Without one torchrun makes one, and
    leaves it.
    """
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}", "--max_restarts=0"]
    command += ["--standalone"] if port is None else ["--master_addr=127.0.0.1", f"--master_port={port}"]
    return [*command, f"--log-dir={logs}", "--redirects=3", *program]


@contextlib.contextmanager
def join_ranks(*, seconds: float = COLLECTIVE, on_gpus: bool | None = None) -> Iterator[RankPlace]:
    """Join the other ranks of a program that torchrun started, and leave them at the end.

    `on_gpus`: each rank computes on a GPU of its own and NCCL connects them, or else on the CPU with gloo; None: GPUs
    where this machine has one for each of its ranks. A rank that waits for another longer than `seconds` raises. Where
    torchrun or the process that started it dies, this process ends too.
    Raises: ValueError for GPUs that are not there.
    """
    import torch
    import torch.distributed as dist  # here: the process that waits needs neither

    local_rank, local_ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    enough = dist.is_nccl_available() and torch.cuda.device_count() >= local_ranks
    on_gpus = enough if on_gpus is None else on_gpus
    if on_gpus and not enough:
        raise ValueError(
            f"{local_ranks} ranks need a GPU each and NCCL, and there are {torch.cuda.device_count()} GPUs"
        )
    device = torch.device("cuda", local_rank) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    _end_with_the_launcher()
    backend = "nccl" if on_gpus else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=seconds), device_id=device if on_gpus else None)
    yield RankPlace(dist.get_rank(), dist.get_world_size(), device, backend)
    dist.destroy_process_group()  # not after an error: it would wait for ranks that are lost


def _make_environment(threads: int, temporary: Path) -> dict[str, str]:
    """Return the variables of torchrun and the ranks; their temporary files are in `temporary`."""
    added = {
        LAUNCHER: str(os.getpid()),
        "OMP_NUM_THREADS": str(threads),
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(SHUTDOWN),
    }
    added |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))  # `tempfile` takes the first that there is
    inherited = {name: value for name, value in os.environ.items() if name not in ("MASTER_ADDR", "MASTER_PORT")}
    return {"TORCH_CPP_LOG_LEVEL": "ERROR", "PYTHONFAULTHANDLER": "0"} | inherited | added


def _read_by_rank(logs: Path, name: str) -> dict[int, str]:
    """Return what each rank wrote, in the order of the ranks: torchrun keeps LOGS/.../RANK/stdout.log."""
    files = {int(path.parent.name): path for path in logs.rglob(f"{name}.log")}
    return {rank: files[rank].read_text("utf8", errors="replace") for rank in sorted(files)}


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _say_taken(port: int | None) -> str:
    return f"port {port} is taken by another program; name another one, or none"


def _wait(process: subprocess.Popen, seconds: float) -> bool:
    """Wait for the process and end all its descendants; say whether it ended by itself in time.

    Each rank is in a session of its own, so its descendants are looked up while their parents live.
    """
    import psutil

    family: set[psutil.Process] = set()
    limit = time.monotonic() + seconds
    try:
        parent = psutil.Process(process.pid)
        while process.poll() is None and time.monotonic() < limit:
            with contextlib.suppress(psutil.NoSuchProcess):
                family |= set(parent.children(recursive=True))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL)
        return process.poll() is not None
    finally:  # also when the stop button was pressed
        if process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                family |= set(psutil.Process(process.pid).children(recursive=True))
            process.terminate()
        _end(family)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        process.kill()
        process.wait()


def _end(family: set) -> None:
    """Terminate processes, and kill those that do not end within `GRACE`."""
    import psutil

    for ask in (psutil.Process.terminate, psutil.Process.kill):
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                ask(process)
        _, family = psutil.wait_procs(family, timeout=GRACE)


def _make_failure(report: str, stderr: dict[int, str], *, port: int | None, code: int) -> Failed:
    """Return the error that says in one sentence which rank was lost first, and why.

    `report`: what torchrun wrote, with its list of failures; `stderr`: what the ranks wrote there.
    """
    output = "".join([report, *stderr.values()])
    if "EADDRINUSE" in output:
        return PortTaken(_say_taken(port), output)
    failures = [(int(rank), int(code)) for rank, code in FAILURE.findall(report)]
    if not failures:
        return RankLost(f"torchrun ended with code {code}{_quote_last_error(report)}", output)

    def causes_first(failure: tuple[int, int]) -> tuple[bool, bool]:
        rank, code = failure  # -15: torchrun ended it; a lost connection: another rank was gone before
        return code == -15, code > 0 and bool(LOST_CONNECTION.search(_quote_last_error(stderr.get(rank, ""))))

    rank, code = min(failures, key=causes_first)
    if code < 0:
        return RankLost(f"rank {rank} was killed by signal {-code}; the other ranks were ended", output)
    return RankLost(f"rank {rank} failed{_quote_last_error(stderr.get(rank, ''))}; the other ranks were ended", output)


def _quote_last_error(*texts: str) -> str:
    """Return ": " and the last line of the last traceback in these texts; empty where there is none.

    torch writes "[rank1]: " in front of a traceback's lines once the ranks have met.
    """
    line = re.compile(r"^(?:\[rank\d+\]: )?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.M)
    lines = [match for text in texts for match in line.findall(text)]
    return f": {lines[-1]}" if lines else ""


def _end_with_the_launcher() -> None:
    """End this process as soon as torchrun or the process that started it is gone: nobody waits for the rank then."""
    parent, launcher = os.getppid(), int(os.environ.get(LAUNCHER, "0"))

    def watch() -> None:
        while os.getppid() == parent and (not launcher or _is_alive(launcher)):
            time.sleep(POLL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _is_alive(number: int) -> bool:
    if Path("/proc/self").exists():
        return Path(f"/proc/{number}").exists()
    try:
        os.kill(number, 0)
    except OSError:
        return False
    return True
