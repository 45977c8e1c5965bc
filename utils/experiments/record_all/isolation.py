"""A command in a process group of its own, with a limit: whatever it does, the caller goes on."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

GRACE = 10.0  # seconds between asking a process group to end and killing it


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status (negative for a signal), seconds, and whether it ran into its limit."""

    code: int
    seconds: float
    timed_out: bool


def run_alone(
    arguments: Sequence[str],
    *,
    log: Path,
    seconds: float,
    folder: Path,
    grace: float = GRACE,
    clock: Callable[[], float] = time.monotonic,
) -> Ended:
    """Run `python -m` with these arguments in `folder`, its output in `log`, and end it after `seconds`.

    It is asked with SIGINT, so that a training can leave a checkpoint, and killed `grace` seconds later with every
    process that it started; one that outlives even that is left behind. The same happens when the caller is
    interrupted, before KeyboardInterrupt goes on.
    Raises: OSError where the log cannot be written.
    """
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}  # or the last lines of a killed command would be lost
    begin = clock()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=seconds)
            return Ended(code, clock() - begin, False)
        except subprocess.TimeoutExpired:
            return Ended(_end(process, grace), clock() - begin, True)
        except BaseException:
            _end(process, grace)
            raise
        finally:
            _signal(process, signal.SIGKILL)  # what a command has left running in its group


def _end(process: subprocess.Popen, grace: float) -> int:
    """Ask a process group to end, kill it where it does not, and return the exit status of its first process."""
    _signal(process, signal.SIGINT)
    try:
        return process.wait(timeout=grace)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
    try:
        return process.wait(timeout=grace)
    except subprocess.TimeoutExpired:  # it waits for a driver or a network disk, and not even SIGKILL reaches it
        return -signal.SIGKILL


def _signal(process: subprocess.Popen, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # an empty group; on a Mac the second
        os.killpg(process.pid, number)
