"""Programs on several processes: they work together, and whatever goes wrong, it is said soon and nothing is left."""

import _thread
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import psutil
import pytest

from utils.experiments.parallel import processes

real_run = pytest.mark.slow  # each imports torch in three processes or more
SOON = 60  # seconds: a run that fails comes back long before, also on a busy machine; hanging ones are ended then


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    """A folder for temporary files: where a run has come back, however it ended, there are none."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # looked up anew
    yield folder
    assert sorted(path.name for path in folder.rglob("*")) == []


@pytest.fixture
def heeding_the_stop_button():
    """Heed SIGINT as a notebook does: a shell without job control lets what it starts behind `&` ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def program(tmp_path):
    """Return a function that writes a program of the ranks, which `place` tells apart, and says how to start it."""

    def write(body: str, *, seconds: float = 20) -> list[str]:
        path = tmp_path / "worker.py"
        text = f"""\
        import os, pathlib, signal, tempfile, time
        import torch, torch.distributed as dist
        from utils.experiments.parallel import processes
        with open({str(tmp_path / "pids")!r}, "a") as file:
            print(os.getpid(), os.getppid(), file=file)
        pathlib.Path(tempfile.mkdtemp(), 'stdout.log').touch()
        with processes.join_ranks(seconds={seconds}, on_gpus=False) as place:
        """
        path.write_text(textwrap.dedent(text) + textwrap.indent(textwrap.dedent(body), "    "))
        return [str(path)]

    return write


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def left_over(tmp_path):
    """Return a function that names the ranks, and the parents of theirs, that live on."""

    def look(*, seconds: float = 0) -> list[int]:
        pids = {int(pid) for line in (tmp_path / "pids").read_text().splitlines() for pid in line.split()}
        assert len(pids) >= 2, "the ranks never began"
        limit = time.monotonic() + seconds
        while (alive := [pid for pid in pids if _lives(pid)]) and time.monotonic() < limit:
            time.sleep(0.1)
        return alive

    return look


def _lives(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@real_run
def test_the_ranks_of_a_program_meet_at_a_port_and_add(program, left_over, free_port):
    body = """
    total = torch.tensor([1.0 + place.rank])
    dist.all_reduce(total)
    print(f"rank {place.rank} of {place.ranks}: {total.item()}, {place.backend}, {torch.get_num_threads()} thread")
    """
    done = processes.run(program(body), ranks=3, port=free_port, seconds=SOON)
    expected = [f"rank {rank} of 3: 6.0, gloo, 1 thread" for rank in range(3)]
    assert done.output.splitlines() == expected
    assert left_over() == []


@real_run
def test_a_killed_rank_ends_the_others_and_is_named(program, left_over):
    body = """
    if place.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(1))
    """
    with pytest.raises(processes.RankLost, match="rank 1 was killed by signal 9; the other ranks were ended"):
        processes.run(program(body), seconds=SOON)
    assert left_over() == []


@real_run
def test_a_rank_that_raises_is_named_with_its_last_words(program, left_over):
    body = """
    if place.rank == 1:
        raise ArithmeticError("no way on")
    dist.all_reduce(torch.ones(1))
    """
    with pytest.raises(processes.RankLost, match="rank 1 failed: ArithmeticError: no way on; the other") as caught:
        processes.run(program(body), seconds=SOON)
    assert "Traceback" in caught.value.output
    assert left_over() == []


@real_run
def test_a_rank_that_never_comes_makes_the_others_give_up(program, left_over):
    body = """
    if place.rank == 1:
        time.sleep(600)
    dist.all_reduce(torch.ones(1))
    """
    with pytest.raises(processes.RankLost, match=r"rank 0 failed: .*[Tt]imed out"):
        processes.run(program(body, seconds=2), seconds=SOON)
    assert left_over() == []


@real_run
def test_ranks_that_take_too_long_are_ended_even_if_they_do_not_listen(program, left_over, tmp_path, monkeypatch):
    body = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (pathlib.Path(__file__).parent / "deaf").touch()
    time.sleep(600)
    """
    real = time.monotonic
    over = lambda: (tmp_path / "deaf").exists()  # noqa: E731
    monkeypatch.setattr(processes.time, "monotonic", lambda: real() + (1000 if over() else 0))
    with pytest.raises(processes.TimeIsUp, match="not done after 60 s; all 2 ranks were ended"):
        processes.run(program(body), seconds=SOON)
    monkeypatch.undo()
    assert over(), "the ranks never began"
    assert left_over() == []


def test_a_taken_port_is_refused_before_anything_starts(program, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(processes.PortTaken, match=f"port {port} is taken by another program; name another one"):
            processes.run(program("pass"), port=port)
    assert not (tmp_path / "pids").exists()


@pytest.mark.parametrize("port", [-1, 0, 65_536])
def test_a_port_that_no_machine_has_is_refused(program, port):
    with pytest.raises(ValueError, match=f"port {port} is not in 1 ... 65535"):
        processes.run(program("pass"), port=port)


@real_run
def test_a_port_that_is_taken_after_the_look_is_named_too(program, monkeypatch):
    monkeypatch.setattr(processes, "_is_free", lambda port: True)
    with socket.socket(socket.AF_INET6) as other:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        other.bind(("::", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(processes.PortTaken, match=f"port {port} is taken"):
            processes.run(program("pass"), port=port, seconds=SOON)


@real_run
def test_the_stop_button_ends_all_ranks(program, left_over, tmp_path, heeding_the_stop_button):
    def stop():
        _begun(tmp_path)
        _thread.interrupt_main()

    threading.Thread(target=stop).start()
    with pytest.raises(KeyboardInterrupt):
        processes.run(program("time.sleep(600)"), seconds=600)
    assert left_over() == []


@real_run
def test_when_the_process_that_waits_is_killed_the_ranks_end_by_themselves(program, left_over, tmp_path):
    call = f"processes.run({program('time.sleep(600)')!r}, seconds=600)"
    command = f"from utils.experiments.parallel import processes; {call}"
    own = {"env": os.environ | {"TMPDIR": str(tmp_path)}}  # it has no time to remove what it wrote
    notebook = subprocess.Popen([sys.executable, "-c", command], stderr=subprocess.DEVNULL, **own)
    try:
        _begun(tmp_path)
    finally:
        notebook.kill()
        notebook.wait()
    assert left_over(seconds=SOON) == []


def _begun(folder) -> None:
    """Wait until two ranks and their parent have written their numbers."""
    limit = time.monotonic() + SOON
    while not (folder / "pids").exists() or len((folder / "pids").read_text().split()) < 4:
        assert time.monotonic() < limit, "the ranks never began"
        time.sleep(0.1)


SUMMARY = """
Failures:
[1]:
  time      : 2026-01-01_00:00:00
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : {second} (pid: 2)
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_00:00:00
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : {first} (pid: 1)
"""


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((1, "[rank0]: RuntimeError: Connection closed by peer"), (-9, ""), "rank 1 was killed by signal 9"),
        ((-15, ""), (-9, ""), "rank 1 was killed by signal 9"),
        ((1, "RuntimeError: Connection reset by peer"), (1, "[rank1]: ValueError: mine"), "rank 1 failed: ValueErr"),
        ((1, "ValueError: mine"), (1, "[rank1]: RuntimeError: Connection closed by peer"), "rank 0 failed: ValueErr"),
        ((1, ""), (-15, ""), "rank 0 failed; the other ranks were ended"),
    ],
)
def test_of_several_lost_ranks_the_one_is_named_that_the_others_missed(first, second, message):
    told = SUMMARY.format(first=first[0], second=second[0])
    error = processes._make_failure(told, {0: first[1], 1: second[1]}, port=None, code=1)
    assert str(error).startswith(message)


def test_a_torchrun_that_fails_before_any_rank_says_why():
    error = processes._make_failure("Traceback\nValueError: no such option", {}, port=None, code=2)
    assert str(error) == "torchrun ended with code 2: ValueError: no such option"
