"""The plan: what runs in the time there is, what is done, what comes again, what cannot run, and why."""

import dataclasses

import pytest

from stub_commands import wanted
from utils.experiments.record_all.attempts import FAILED, FINISHED, STOPPED, RecordingAttempt
from utils.experiments.record_all.plan import (
    DONE,
    LEFT_OUT,
    RUN,
    format_plan,
    key_of,
    make_plan,
    pace_of,
)
from utils.experiments.record_all.wanted import list_wanted

A, B, C = wanted("a", minutes=2), wanted("b", minutes=10), wanted("c", minutes=3)
KEYS = {"a": "key a", "b": "key b", "c": "key c"}


def attempt(name, state=FINISHED, *, key=None, minutes=1.0, expected=1.0):
    return RecordingAttempt(name, key or KEYS[name], state, minutes, expected)


def plan(minutes, *, entries=(A, B, C), attempts=(), cards=1, failed_tests=()):
    return make_plan(
        entries,
        size="small",
        minutes=minutes,
        keys=KEYS,
        attempts={each.name: each for each in attempts},
        cards=cards,
        failed_tests=failed_tests,
    )


def does(steps):
    return {step.wanted.name: step.does for step in steps}


def test_what_fits_runs_and_a_short_command_fills_the_gap():
    assert does(plan(8)) == {"a": RUN, "b": LEFT_OUT, "c": RUN}
    assert does(plan(60)) == {"a": RUN, "b": RUN, "c": RUN}


def test_a_command_starts_only_if_it_can_end_with_a_margin():
    """2 minutes, a quarter more, and half a minute for the archive."""
    assert does(plan(2.99, entries=(A,))) == {"a": LEFT_OUT}
    assert does(plan(3.01, entries=(A,))) == {"a": RUN}


def test_a_finished_command_is_done_while_nothing_changes():
    assert does(plan(60, attempts=[attempt("a")]))["a"] == DONE
    assert does(plan(60, attempts=[attempt("a", key="of another commit")]))["a"] == RUN


def test_a_command_that_failed_comes_again_after_the_others():
    for state in (FAILED, STOPPED):
        steps = plan(60, attempts=[attempt("a", state)])
        assert [step.wanted.name for step in steps] == ["b", "c", "a"]
        assert does(steps)["a"] == RUN


def test_a_failing_test_stops_only_what_rests_on_it():
    resting = dataclasses.replace(A, rests_on=("emulation/test_scaled_matmul.py",))
    steps = plan(60, entries=(resting, B, C), failed_tests=["emulation/test_scaled_matmul.py", "test_llama.py"])
    assert does(steps) == {"a": LEFT_OUT, "b": RUN, "c": RUN}
    assert "emulation/test_scaled_matmul.py" in steps[0].why
    assert "test_llama" not in steps[0].why


def test_too_few_cards():
    steps = plan(60, entries=(dataclasses.replace(A, least_cards=2),))
    assert steps[0].does == LEFT_OUT
    assert steps[0].why == "needs 2 GPUs, torch sees 1"
    assert does(plan(60, entries=(dataclasses.replace(A, least_cards=2),), cards=2)) == {"a": RUN}


def test_a_slow_machine_gets_a_shorter_plan():
    slow = [attempt("a", minutes=4.0, expected=2.0), attempt("b", minutes=30.0, expected=10.0)]
    assert pace_of(slow) == 1.0  # two commands say nothing yet
    slow.append(RecordingAttempt("c", "", FINISHED, 9.0, 3.0))
    assert pace_of(slow) == 3.0
    assert pace_of([attempt("a", FAILED, minutes=90.0)] * 5) == 1.0  # a hang is not a pace
    assert pace_of([attempt("a", minutes=90.0)] * 3) == 4.0
    assert pace_of([attempt("a", minutes=0.001)] * 3) == 0.5


def test_the_table_says_when_each_ends_and_what_is_missing():
    text = format_plan(plan(8, attempts=[attempt("c", minutes=2.5)]))
    assert text.splitlines()[1].split() == ["2.0", "2.0", "a", "numbers/bits"]
    assert "(needs 12.5 min, 5.5 left)" in text
    assert text.splitlines()[-1] == "1 to run in 2 minutes, 1 done, 1 left out, which would take 10 minutes more"


def test_fifty_minutes_hold_the_first_of_the_list():
    entries = list_wanted()
    keys = dict.fromkeys([entry.name for entry in entries], "key")
    steps = make_plan(entries, size="full", minutes=50, keys=keys, attempts={}, cards=1)
    running = [step for step in steps if step.does == RUN]
    assert sum(step.minutes for step in running) <= 50
    assert {"microscope", "gemm_sweep", "fp8_speed-compiled", "generation"} <= {step.wanted.name for step in running}


@pytest.mark.parametrize(
    "change",
    [{"size": "full"}, {"device_name": "NVIDIA H200"}, {"folders": ("reviews",)}],
    ids=["size", "device", "data"],
)
def test_a_key_changes_with_what_a_record_depends_on(change):
    entry = next(entry for entry in list_wanted() if entry.name == "step_speed")
    usual = {"size": "small", "device_name": "NVIDIA H100", "folders": ()}
    assert key_of(entry, **usual) == key_of(entry, **usual)
    assert key_of(entry, **usual) != key_of(entry, **usual | change)


def test_a_folder_that_a_command_does_not_take_leaves_its_key():
    entry = next(entry for entry in list_wanted() if entry.name == "gemm_sweep")
    usual = {"size": "small", "device_name": "NVIDIA H100"}
    assert key_of(entry, **usual, folders=()) == key_of(entry, **usual, folders=("reviews",))
