"""Calls are timed in samples that last, figures are rounded, clocks are read under load, and a record says where."""

import threading
import time

import pytest
import torch

from utils import machine, measure, records
from utils.runs import measurement

CPU = torch.device("cpu")


class Sleep:
    """A call of 0.1 ms or more; `counts` has how many calls each loop was to make."""

    def __init__(self):
        self.counts = []

    def __call__(self):
        time.sleep(1e-4)

    def times(self, count):
        self.counts.append(count)
        return lambda: [self() for _ in range(count)]


def test_a_sample_is_as_many_calls_as_last_and_its_time_is_that_of_one_call(monkeypatch):
    monkeypatch.setattr(measurement, "SAMPLE_MS", 1.0)
    call = Sleep()
    (samples,) = measurement.time_calls({"sleep": call}, device=CPU, repeats=3).values()
    assert len(samples) == 3
    assert call.counts[0] >= 1
    assert min(samples) >= 0.1
    assert measurement.time_calls({}, device=CPU, repeats=3) == {}


def test_a_copy_reads_and_writes_each_of_its_bytes(monkeypatch):
    monkeypatch.setattr(measurement, "COPY_BYTES", {"small": 4096})
    moved, samples = measurement.time_copy(device=CPU, size="small", repeats=3)
    assert (moved, len(samples)) == (2 * 4096, 3)


@pytest.mark.parametrize(
    ("value", "digits", "rounded"), [(1.23456, 4, 1.235), (0.000123456, 4, 0.0001235), (98765.0, 3, 98800.0)]
)
def test_figures_keep_their_significant_digits(value, digits, rounded):
    assert measurement.round_to(value, digits) == rounded


def test_a_machine_that_was_not_quiet_is_reported():
    drift = measurement.relative_drift(measure.Timing((2.0,)), measure.Timing((2.6,)))
    assert drift == 0.3
    (line,) = measurement.warn_of_drift("call", drift)
    assert line == "NOT QUIET: one call took 1.30 times as long at the end; measure again"
    assert measurement.warn_of_drift("call", -0.2) == []


def test_a_gpu_computes_until_it_has_told_its_clocks(monkeypatch):
    calls, told = [], threading.Event()

    def moment(device):
        assert told.wait(10)  # nvidia-smi takes its time
        return {"sm_clock_mhz": 1_980.0}

    def call():
        calls.append("call")
        if len(calls) > 5:
            told.set()

    monkeypatch.setattr(machine, "moment", moment)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: calls.append("waited"))
    assert measurement.read_clocks_under_load(call, torch.device("cuda")) == {"sm_clock_mhz": 1_980.0}
    assert calls[:6] == ["call", "waited"] * 3
    assert measurement.read_clocks_under_load(call, CPU) == {}


def test_a_record_has_the_device_and_the_command_or_the_provenance_of_many_records():
    fields = {"recipe": "products", "size": "small", "device": CPU, "settings": {}, "results": {}, "samples": {}}
    record = measurement.make_record("sweep", **fields, shown="python -m sweep")
    assert record.name == "sweep-products-small-random-cpu-seed0"
    assert (record.command, record.device) == ("python -m sweep", machine.facts(CPU))
    provenance = records.provenance("once")
    assert measurement.make_record("sweep", **fields, provenance=provenance).date == provenance["date"]
