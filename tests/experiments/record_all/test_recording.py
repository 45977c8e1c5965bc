"""Really run commands that work, crash, die, hang, ignore signals or find the disk full; interrupt; go on; pack."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from stub_commands import make_recording, wanted
from utils.experiments.record_all import archive, attempts, code_identity, isolation
from utils.experiments.record_all import recording as recording_module
from utils.experiments.record_all.attempts import FAILED, FINISHED, INTERRUPTED, STOPPED, load_report

GPU = {"kind": "cuda", "name": "NVIDIA H100 made up"}


def states(recording):
    report = load_report(recording.report_path)
    return {name: attempt.state for name, attempt in report.attempts.items()}


def packed_names(recording):
    with tarfile.open(next(recording.folder.glob("*.tar.gz"))) as tar:
        return tar.getnames()


def test_a_crash_costs_one_command(tmp_path):
    recording = make_recording(tmp_path, "crashes", "dies", "works", "fills_the_disk", "works_too")
    assert recording.run(60) == 1
    assert states(recording) == {
        "crashes": FAILED,
        "dies": FAILED,
        "works": FINISHED,
        "fills_the_disk": FAILED,
        "works_too": FINISHED,
    }
    report = load_report(recording.report_path)
    assert report.attempts["crashes"].last_lines[-1].endswith("an illegal memory access was encountered")
    assert report.attempts["dies"].code == -signal.SIGSEGV
    assert report.attempts["fills_the_disk"].last_lines[-1].endswith("No space left on device")
    assert report.attempts["works"].last_lines == ()
    assert packed_names(recording) == ["report.json", "records/works.json"]


def test_the_report_names_no_folder_of_the_machine(tmp_path):
    recording = make_recording(tmp_path, "crashes")
    recording.run(60)
    text = recording.report_path.read_text(encoding="utf-8")
    assert str(Path.home()) not in text.replace(str(tmp_path), "")
    assert sys.prefix not in text


def test_a_hang_ends_at_its_limit_with_its_last_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(recording_module, "SPARE", 2.0)
    recording = make_recording(tmp_path, wanted("hangs", minutes=0.001), "works")
    assert recording.run(60) == 1
    assert states(recording) == {"hangs": STOPPED, "works": FINISHED}
    assert load_report(recording.report_path).attempts["hangs"].last_lines[0] == "begins"


def test_a_command_that_ignores_signals_is_killed_with_its_children(tmp_path):
    root = make_recording(tmp_path).root
    log = tmp_path / "log"
    ended = isolation.run_alone(["utils.ignores_signals"], log=log, seconds=2.0, folder=root, grace=0.2)
    assert ended.timed_out
    assert ended.code == -signal.SIGKILL
    child = int(log.read_text().splitlines()[0])
    for _ in range(50):  # until it is reaped
        status = Path(f"/proc/{child}/stat")
        if not status.exists() or status.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the child of a killed command runs on")


def test_run_again_it_goes_on(tmp_path):
    recording = make_recording(tmp_path, "crashes", "works", "works_too")
    recording.run(60)
    (recording.root / "utils" / "crashes.py").write_text("print('mended')")  # other code, so another key
    again = make_recording(tmp_path, "crashes", "works", "works_too")
    isolation_log = again.folder / "logs" / "works.log"
    before = isolation_log.stat().st_mtime_ns
    assert again.run(60) == 0
    assert states(again) == {"crashes": FINISHED, "works": FINISHED, "works_too": FINISHED}
    assert isolation_log.stat().st_mtime_ns == before  # not run again


def test_no_command_starts_that_cannot_end(tmp_path, monkeypatch):
    """A false clock: each command takes a third longer than thought."""
    now = [0.0]
    started = []

    def run_alone(arguments, *, log, seconds, folder):
        started.append(arguments[0])
        now[0] += 80.0
        assert now[0] <= 300.0
        return isolation.Ended(0, 80.0, False)

    monkeypatch.setattr(isolation, "run_alone", run_alone)
    plan = [dataclasses.replace(wanted("works"), name=f"works {number}") for number in range(4)]
    recording = make_recording(tmp_path, *plan, clock=lambda: now[0])
    assert recording.run(5) == 0
    assert len(started) == 3  # at 4 minutes another 1.33 and the archive would be too late
    assert any("go on" in line for line in recording.lines)


def test_interrupted_it_packs_what_has_finished(tmp_path, monkeypatch):
    real = isolation.run_alone

    def run_alone(arguments, **more):
        if arguments[0] == "utils.hangs":
            raise KeyboardInterrupt
        return real(arguments, **more)

    monkeypatch.setattr(isolation, "run_alone", run_alone)
    recording = make_recording(tmp_path, "works", "hangs", "works_too")
    assert recording.run(60) == 130
    assert states(recording) == {"works": FINISHED, "hangs": INTERRUPTED}
    assert packed_names(recording) == ["report.json", "records/works.json"]
    monkeypatch.undo()
    (recording.root / "utils" / "hangs.py").write_text("print('no longer')")
    again = make_recording(tmp_path, "works", "hangs", "works_too")
    assert again.run(60) == 0
    assert states(again) == {"works": FINISHED, "hangs": FINISHED, "works_too": FINISHED}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_a_signal_to_the_whole_command(tmp_path, number):
    """In a process of its own, as from a terminal or a batch system: the running command ends, the archive is there."""
    make_recording(tmp_path)
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from stub_commands import make_recording
recording = make_recording(Path({str(tmp_path)!r}), "works", "hangs")
recording.say = lambda line: print(line, flush=True)
sys.exit(recording.run(60))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a shell's background job ignores Ctrl-C
    )
    for line in process.stdout:
        if line.startswith("hangs"):
            break
    log = tmp_path / "out" / "logs" / "hangs.log"
    while not log.is_file() or "begins" not in log.read_text():
        time.sleep(0.05)
    os.kill(process.pid, number)
    rest = process.stdout.read()
    assert process.wait(timeout=30) == 130
    assert "interrupted" in rest
    assert list((tmp_path / "out").glob("*.tar.gz"))
    assert load_report(tmp_path / "out" / "report.json").attempts["hangs"].state == INTERRUPTED


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    recording = make_recording(tmp_path, "works")

    def refuse(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(attempts.os, "replace", refuse)
    assert recording.run(60) == 2
    assert any(line.startswith("out cannot be written: No space left on device; make room") for line in recording.lines)
    assert not any("Traceback" in line for line in recording.lines)


def test_a_folder_of_another_device_is_refused(tmp_path, monkeypatch):
    make_recording(tmp_path, "works").run(60)
    monkeypatch.setattr(recording_module.machine, "facts", lambda on: GPU)
    with pytest.raises(ValueError, match="name another folder with --out"):
        make_recording(tmp_path, "works")


def test_a_file_that_is_no_report_is_kept(tmp_path):
    recording = make_recording(tmp_path, "works")
    recording.folder.mkdir()
    recording.report_path.write_text("my notes")
    with pytest.raises(ValueError, match="not a readable report"):
        make_recording(tmp_path, "works")
    assert recording.report_path.read_text() == "my notes"


def test_the_archive_is_the_same_for_the_same_files(tmp_path):
    recording = make_recording(tmp_path, "works")
    recording.run(60)
    path = next(recording.folder.glob("*.tar.gz"))
    before = path.read_bytes()
    os.utime(recording.folder / "records" / "works.json", (0, 0))
    archive.pack(recording.folder, recording.report)
    assert path.read_bytes() == before


def test_the_tests_of_the_gpu_run_first_and_once(tmp_path, monkeypatch):
    calls = []

    def run_gpu_tests(log, *, key, seconds, root, first):
        assert first == ("test_a.py",)
        calls.append(seconds)
        return attempts.GpuTestResult(key, "1 failed", failed=("test_a.py",))

    monkeypatch.setattr(recording_module.gpu_tests, "run_gpu_tests", run_gpu_tests)
    monkeypatch.setattr(recording_module.machine, "facts", lambda on: GPU)
    for _ in range(2):
        recording = make_recording(tmp_path, wanted("works", rests_on=("test_a.py",)), "works_too")
        recording.device = type("Device", (), {"type": "cuda", "__str__": lambda self: "cuda"})()
        assert recording.run(60) == 0
        assert states(recording) == {"works_too": FINISHED}
    assert calls == [180.0]
    assert "--despite-tests" in recording.plan(60)[0].why
    recording.despite_tests = True
    assert recording.run(60) == 0
    assert states(recording) == {"works_too": FINISHED, "works": FINISHED}
    assert json.loads(recording.report_path.read_text())["tests"]["failed"] == ["test_a.py"]


def test_a_process_that_outlives_sigkill_is_left_behind(tmp_path, monkeypatch):
    """As one that waits for a driver: no signal reaches it, and the rest of the plan runs."""
    root = make_recording(tmp_path).root
    processes = []
    monkeypatch.setattr(isolation, "_signal", lambda process, number: processes.append(process))
    begin = time.monotonic()
    ended = isolation.run_alone(["utils.hangs"], log=tmp_path / "log", seconds=0.5, folder=root, grace=0.2)
    assert ended == isolation.Ended(-signal.SIGKILL, ended.seconds, True)
    assert time.monotonic() - begin < 5.0
    processes[0].kill()
    processes[0].wait(timeout=10)


def test_two_runs_do_not_share_a_folder(tmp_path):
    recording, other = make_recording(tmp_path, "works"), make_recording(tmp_path, "works_too")
    recording.folder.mkdir()
    with recording_module._lock(recording.folder / recording_module.LOCK) as alone:
        assert alone
        assert other.run(60) == 2
        assert other.lines == ["another run of make record has out; wait for it, or name another --out"]
        assert not other.report_path.exists()
    assert other.run(60) == 0


def test_a_disk_without_locks_is_taken_as_it_is(tmp_path, monkeypatch):
    def refuse(file, how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(recording_module.fcntl, "flock", refuse)
    assert make_recording(tmp_path, "works").run(60) == 0


def test_the_report_says_which_code_made_which_record(tmp_path):
    recording = make_recording(tmp_path, "works", "works_too")
    recording.run(60)
    before = load_report(recording.report_path).sources
    assert before == {"works": code_identity.digest_code(recording.root)}
    (recording.root / "utils" / "works_too.py").write_text("print('mended')")
    make_recording(tmp_path, "works", "works_too").run(60)  # "works" is done, and its record is that of the old code
    assert load_report(recording.report_path).sources == before
    assert before["works"] != code_identity.digest_code(recording.root)


def test_a_command_that_was_too_slow_gets_more_time_the_next_time(tmp_path, monkeypatch):
    limits = []

    def run_alone(arguments, *, log, seconds, folder):
        limits.append(seconds / 60)
        return isolation.Ended(130, seconds, True)

    monkeypatch.setattr(isolation, "run_alone", run_alone)
    for _ in range(2):
        assert make_recording(tmp_path, "works").run(120) == 1
    assert limits == [4.0, 13.0]  # three times its estimate of a minute, and a minute; then of the four that it took


def test_under_nohup_the_end_of_the_terminal_is_not_heard(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with make_recording(tmp_path)._handle_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with make_recording(tmp_path)._handle_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.default_int_handler
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_of_a_log_without_an_end_the_last_lines_are_read(tmp_path):
    log = tmp_path / "log"
    log.write_text("again\n" * 100_000 + "the last\n")
    assert attempts.read_last_lines(log)[-1] == "the last"
    assert len(attempts.read_last_lines(log)) == attempts.LAST_LINES
