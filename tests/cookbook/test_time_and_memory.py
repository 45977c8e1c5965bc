"""What the recipe on measuring promises: warm-up uncounted, turns, quartiles, and the book's own numbers."""

import re

import pytest
import torch

import book_rules as rules
import recipe_scripts
from utils.measure import Timing, time_in_turns

PAGE = recipe_scripts.COOKBOOK / "time_and_memory.ipynb"


class FakeClock:
    """Seconds that pass only when a call says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def call(self, *milliseconds):
        rest = iter(milliseconds)

        def pass_time():
            self.now += next(rest) / 1e3

        return pass_time


@pytest.fixture
def script(monkeypatch):
    script = recipe_scripts.load("time_and_memory")
    monkeypatch.setattr(script, "device", "cpu")
    monkeypatch.setattr(script, "FLUSH_MIB", 0)
    return script


def test_it_runs_as_it_stands(tmp_path):
    done = recipe_scripts.run_as_shown("time_and_memory", tmp_path)
    rows = re.findall(r"^(\w+) +([\d.]+) ms, quartiles ([\d.]+), ([\d.]+)", done.stdout, re.MULTILINE)
    assert [name for name, *_ in rows] == ["float32", "bfloat16"]
    for _, middle, low, high in rows:
        assert float(low) <= float(middle) <= float(high)
    if not torch.cuda.is_available():
        assert done.stdout.splitlines()[-1] == "PyTorch counts the memory of a GPU; there is none here"


def test_the_warm_up_is_not_counted(script):
    clock = FakeClock()
    found = script.times({"a": clock.call(900, 800, 1, 2, 4)}, warmup=2, repeats=3, clock=clock)
    assert found["a"] == pytest.approx([1, 2, 4])


def test_the_calls_take_turns(script):
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    script.times(calls, warmup=1, repeats=2)
    assert "".join(order) == "ababab"


def test_the_time_of_one_call_is_not_charged_to_the_other_nor_is_the_flush(script, monkeypatch):
    clock = FakeClock()

    class SlowBuffer:
        def zero_(self):
            clock.now += 5.0

    monkeypatch.setattr(torch, "empty", lambda *size, **how: SlowBuffer())
    found = script.times({"a": clock.call(*[3] * 4), "b": clock.call(*[7] * 4)}, warmup=2, repeats=2, clock=clock)
    assert found["a"] == pytest.approx([3, 3])
    assert found["b"] == pytest.approx([7, 7])


@pytest.mark.parametrize("samples", [[1.0, 2.0, 3.0, 4.0, 100.0], [5.0, 1.0], [2.0, 2.0, 8.0, 1.0, 9.0, 3.0]], ids=str)
def test_median_and_quartiles_are_those_of_the_book(script, samples):
    low, middle, high = script.quartiles(samples)
    book = Timing(tuple(samples))
    assert middle == book.median
    assert high - low == pytest.approx(book.spread)


def test_one_slow_run_moves_neither_the_median_nor_the_quartiles(script):
    calm, disturbed = [10.0] * 20, [10.0] * 19 + [1e4]
    assert script.quartiles(calm) == script.quartiles(disturbed)


def test_it_measures_what_the_book_measures(script):
    times = [50, 40, 3, 1, 2, 5, 4]
    clock = FakeClock()
    ours = script.times({"a": clock.call(*times)}, warmup=2, repeats=5, clock=clock)["a"]
    clock = FakeClock()
    how = {"device": torch.device("cpu"), "warmup": 2, "repeats": 5, "seconds": clock}
    assert ours == pytest.approx(list(time_in_turns({"a": clock.call(*times)}, **how)["a"].samples))


def test_a_cpu_counts_no_memory(script):
    assert script.peak_memory(lambda: torch.ones(1000)) is None


def test_the_published_rates_are_those_of_the_chapter_and_the_flush_that_of_the_page():
    text = rules.markdown(rules.read_page(PAGE))
    chapter = (PAGE.parents[1] / "hardware" / "tensor_cores.ipynb").read_text("utf8")
    assert "zeros at 295 TFLOP/s and random numbers at 257" in text
    assert "zeros at 295 TFLOP/s and random numbers at 257" in chapter
    assert "256 MiB" in text
    assert "FLUSH_MIB = 256 if" in recipe_scripts.script_of("time_and_memory")


@pytest.mark.gpu
def test_a_gpu_counts_the_peak_and_forgets_the_last_one():
    script = recipe_scripts.load("time_and_memory")
    large, small = 64 * 2**20, 2**20
    before = torch.cuda.memory_allocated()
    for size in (large, small):
        allocated, reserved = script.peak_memory(lambda size=size: torch.ones(size, dtype=torch.int8, device="cuda"))
        assert size <= allocated - before < size + 2**20
        assert reserved >= allocated


@pytest.mark.gpu
def test_a_gpu_times_the_kernel_and_not_its_launch():
    script = recipe_scripts.load("time_and_memory")
    a = torch.randn(8192, 8192, device="cuda")
    (taken,) = script.times({"product": lambda: a @ a}, warmup=2, repeats=5).values()
    # 1.1e12 operations; no card does 1e16 per second
    assert min(taken) > 2 * 8192**3 / 1e16 * 1e3
