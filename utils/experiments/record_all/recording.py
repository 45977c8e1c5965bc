"""Run a plan: each command alone, the report written after each, and the archive whatever happens."""

import contextlib
import fcntl
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from utils import machine, records
from utils.experiments.record_all import archive, attempts, code_identity, gpu_tests, isolation
from utils.experiments.record_all.attempts import GpuTestResult, RecordingAttempt, Report
from utils.experiments.record_all.plan import PACKING, RUN, PlannedCommand, key_of, make_plan
from utils.experiments.record_all.wanted import Wanted
from utils.runs import cache, command_line

CHECKPOINTS, LOGS, LOCK = "checkpoints", "logs", "lock"
LIMIT, SPARE = 3.0, 60.0  # a command may take so many times its estimate, and so many seconds more


@dataclass
class Recording:
    """A folder that fills: its records, logs, checkpoints and report, and what they are made of.

    `folders` maps names of `wanted.OPTIONS` to folders that are there. `say` prints a line; `clock` is in seconds.
    `despite_tests`: run also what rests on tests that fail.
    """

    folder: Path
    device: torch.device
    size: str
    wanted: tuple[Wanted, ...]
    folders: dict[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = print
    clock: Callable[[], float] = time.monotonic
    root: Path = records.ROOT
    despite_tests: bool = False

    def __post_init__(self) -> None:
        """Read the report of the folder, or begin one.

        Raises: ValueError for a report of another device or size, whose records must not mix with these.
        """
        facts = machine.facts(self.device)
        fresh = Report(self.size, facts, records.provenance("make record"), tuple(sorted(self.folders)))
        before = attempts.load_report(self.report_path)
        if before and (before.device["name"], before.size) != (facts["name"], self.size):
            raise ValueError(
                f"{self.folder.name} holds the records of {before.device['name']} at size {before.size}, "
                f"this is {facts['name']} at size {self.size}; name another folder with --out"
            )
        self.report = fresh if before is None else before
        self.report.provenance, self.report.folders = fresh.provenance, fresh.folders
        self.keys = {
            entry.name: key_of(entry, size=self.size, device_name=facts["name"], folders=self.folders, root=self.root)
            for entry in self.wanted
        }

    @property
    def report_path(self) -> Path:
        return self.folder / archive.REPORT

    def plan(self, minutes: float) -> list[PlannedCommand]:
        """Return the plan for so many minutes from now."""
        cards = torch.cuda.device_count() if self.device.type == "cuda" else 2  # a CPU holds both ranks
        return make_plan(
            self.wanted,
            size=self.size,
            minutes=minutes,
            keys=self.keys,
            attempts=self.report.attempts,
            cards=cards,
            failed_tests=self.report.tests.failed if self.report.tests and not self.despite_tests else (),
        )

    def run(self, minutes: float) -> int:
        """Run what fits into so many minutes and pack what there is; return the exit code of the command.

        0: every command that started has finished. 1: some have not, as the report says. 2: the archive could not be
        written, or another run has the folder. 130: interrupted; what has finished is packed.
        """
        end, code = self.clock() + 60 * minutes, 0
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._handle_signals())
                self._make_folders()
                if not held.enter_context(_lock(self.folder / LOCK)):
                    self.say(f"another run of make record has {self.folder.name}; wait for it, or name another --out")
                    return 2
                self.report.save(self.report_path)
                self._test(end)
                code = self._run_all(end)
            except KeyboardInterrupt:
                self.say("interrupted: packing what has finished")
                code = command_line.INTERRUPTED
            except OSError as error:
                reason = error.strerror or error
                self.say(f"{self.folder.name} cannot be written: {reason}; make room, then run this again")
                code = 2
            return self._pack() or code

    @contextlib.contextmanager
    def _handle_signals(self) -> Iterator[None]:
        """Take the end of a batch job and of a terminal for Ctrl-C, but not where nohup has them ignored."""
        ends = [signal.SIGTERM, signal.SIGHUP]
        before = {number: signal.getsignal(number) for number in ends}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _make_folders(self) -> None:
        for name in (archive.RECORDS, CHECKPOINTS, LOGS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def _test(self, end: float) -> None:
        """Run the GPU tests unless the same ones have run here, and keep what came out."""
        if self.device.type != "cuda":
            self.report.tests = GpuTestResult("", "not run: this is no GPU")
            return
        code = code_identity.digest_code(self.root, folders=("utils", "tests"))
        key = cache.key(code, self.report.device["name"], torch.__version__)
        if self.report.tests and self.report.tests.key == key:
            return
        seconds = min(gpu_tests.SECONDS, max(end - self.clock(), 1.0))
        self.say(f"tests of the GPU, at most {seconds:.0f} s")
        log = self._new_log("gpu_tests")
        first = dict.fromkeys(name for entry in self.wanted for name in entry.rests_on)
        self.report.tests = gpu_tests.run_gpu_tests(log, key=key, seconds=seconds, root=self.root, first=tuple(first))
        self.report.save(self.report_path)
        self.say(f"  {self.report.tests.summary}")

    def _run_all(self, end: float) -> int:
        """Run the first command of the plan, and plan anew, until nothing fits."""
        code, tried = 0, set()
        while True:
            left = (end - self.clock()) / 60
            steps = [step for step in self.plan(left) if step.does == RUN and step.wanted.name not in tried]
            if not steps:
                return code
            tried.add(steps[0].wanted.name)
            with self._note_sources():
                attempt = self._run_one(steps[0], end)
            self.report.attempts[attempt.name] = attempt
            code = code if attempt.state == attempts.FINISHED else 1
            self.report.save(self.report_path)

    @contextlib.contextmanager
    def _note_sources(self) -> Iterator[None]:
        """Keep in the report which code made the records that come inside."""

        def look() -> dict[str, tuple[int, int]]:
            files = (self.folder / archive.RECORDS).glob("*.json")
            return {path.stem: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}

        before, digest = look(), code_identity.digest_code(self.root)
        try:
            yield
        finally:
            self.report.sources |= {name: digest for name, state in look().items() if before.get(name) != state}

    def _run_one(self, step: PlannedCommand, end: float) -> RecordingAttempt:
        """Run one command and return how it ended; its last lines are kept where it did not finish."""
        name, left = step.wanted.name, end - self.clock()
        limit = min(60 * LIMIT * step.minutes + SPARE, left - 60 * PACKING)
        self.say(f"{name}: about {step.minutes:.1f} min, at most {limit / 60:.1f}; {left / 60:.0f} min left")
        log = self._new_log(name)
        command = step.wanted.command(
            device=str(self.device),
            size=self.size,
            record=str(self.folder / archive.RECORDS),
            checkpoint=str(self.folder / CHECKPOINTS / name),
            folders=self.folders,
        )
        about = {"name": name, "key": self.keys[name], "expected": step.wanted.minutes[self.size]}
        begin = self.clock()
        try:
            ended = isolation.run_alone(command, log=log, seconds=limit, folder=self.root)
        except KeyboardInterrupt:
            minutes = (self.clock() - begin) / 60
            cut = {"state": attempts.INTERRUPTED, "minutes": round(minutes, 3)}
            self.report.attempts[name] = RecordingAttempt(**about, **cut)
            raise
        state = attempts.STOPPED if ended.timed_out else attempts.FAILED if ended.code else attempts.FINISHED
        lines = () if state == attempts.FINISHED else attempts.read_last_lines(log)
        minutes = round(ended.seconds / 60, 3)
        self.say(f"  {state} after {minutes:.1f} min" + (f": {lines[-1]}" if lines else ""))
        return RecordingAttempt(**about, state=state, minutes=minutes, code=ended.code, last_lines=lines)

    def _new_log(self, name: str) -> Path:
        """Return the path of an empty log of a command."""
        log = self.folder / LOGS / f"{name}.log"
        log.write_bytes(b"")
        return log

    def _pack(self) -> int:
        """Write report and archive, say where they are and what they hold; return 0, or 2 where that is impossible."""
        try:
            self.report.save(self.report_path)
            path, left_out = archive.pack(self.folder, self.report)
        except OSError as error:
            self.say(f"the archive cannot be written: {error.strerror or error}; the records are in {self.folder.name}")
            return 2
        count = len(list((self.folder / archive.RECORDS).glob("*.json"))) - len(left_out)
        self.say(f"{count} records in {path}, {path.stat().st_size / 1e6:.1f} MB")
        if left_out:
            self.say(f"left out, or it would be larger than {archive.MOST_BYTES / 1e6:.0f} MB: {', '.join(left_out)}")
        unfinished = [entry for entry in self.report.attempts.values() if entry.state != attempts.FINISHED]
        for entry in unfinished:
            self.say(f"{entry.name}: {entry.state}" + (f": {entry.last_lines[-1]}" if entry.last_lines else ""))
        if any(step.does == RUN for step in self.plan(float("inf"))):
            self.say("run the same command again to go on where this one stopped")
        self.say(f"python -m utils.experiments.record_all --archive {path.name} --into book/results")
        return 0


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Say whether this process alone has the file; true as well where its disk knows no locks."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a network disk
            pass
        yield True
