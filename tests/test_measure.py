"""Times come as raw samples, bytes are counted once, and saved activations equal a count by hand."""

import math
import random
import time

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from utils import measure

CPU = torch.device("cpu")


def test_warm_up_calls_are_made_and_not_counted():
    calls = []
    timing = measure.time_call(lambda: calls.append(1), device=CPU, warmup=2, repeats=5)
    assert len(calls) == 7
    assert len(timing.samples) == 5
    assert all(sample >= 0 for sample in timing.samples)
    with pytest.raises(ValueError, match="repeats 0"):
        measure.time_call(lambda: None, device=CPU, repeats=0)


def test_median_and_spread_are_those_of_the_samples():
    timing = measure.Timing((1.0, 2.0, 3.0, 4.0, 100.0))
    assert timing.median == 3.0
    assert timing.spread == 2.0  # quartiles 2 and 4: the outlier does not count
    assert str(timing) == "3 ms ± 2 (5 runs)"
    assert measure.Timing((1.5,)).spread == 0.0


def test_the_interval_is_students():
    # Mean 2, standard deviation 1, n = 3: half width 4.303 / sqrt(3).
    mean, half = measure.mean_interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(2.484, abs=1e-3)
    _, half = measure.mean_interval([1.0, 2.0, 3.0] * 7)  # 20 degrees: 2.086 in any printed table
    assert half == pytest.approx(2.086 * (14 / 20 / 21) ** 0.5, abs=1e-4)
    assert measure.mean_interval([0.5]) == (0.5, None)
    assert all(map(math.isnan, measure.mean_interval([0.5, math.nan])))


def test_the_interval_covers_the_mean_as_often_as_it_says():
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(4_000, 3, generator=generator, dtype=torch.float64)
    covered = sum(abs(mean) <= half for mean, half in map(measure.mean_interval, draws.tolist())) / len(draws)
    assert abs(covered - 0.95) < 5 * (0.95 * 0.05 / len(draws)) ** 0.5, covered


def test_the_rate_of_a_product_counts_two_operations_for_each_multiply_add(monkeypatch):
    monkeypatch.setattr(measure, "time_call", lambda call, **_: measure.Timing((call().shape[0] / 64,)))
    assert measure.matmul_tflops(torch.bfloat16, device=CPU, width=64) == pytest.approx(2 * 64**3 / 1e9)


def test_rates_stand_beside_their_limit():
    rate = measure.tflops(2 * 8192**3, 1.4, limit=989)
    assert rate.value == pytest.approx(785.4, abs=0.1)
    assert rate.share == pytest.approx(0.794, abs=1e-3)
    assert str(measure.gigabytes_per_second(2e9, 1.0, limit=4_800)) == "2e+03 GB/s, 42 % of 4.8e+03"


def test_tied_weights_and_missing_gradients_are_counted_right():
    embedding = nn.Embedding(10, 4)
    head = nn.Linear(4, 10, bias=False)
    head.weight = embedding.weight
    assert measure.tensor_bytes([embedding.weight, head.weight, None]) == 160


def test_optimizer_bytes_are_two_moments_a_parameter():
    layer = nn.Linear(16, 8)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(2, 16)).sum().backward()
    optimizer.step()
    assert measure.tensor_bytes(measure.optimizer_tensors(optimizer)) == 2 * 4 * (16 * 8 + 8)


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8))


def test_saved_bytes_equal_the_count_by_hand():
    model, x = mlp(), torch.randn(16, 32)
    with measure.SavedBytes(model) as saved:
        y = model(x)
    assert saved.total == 4 * 16 * (32 + 64 + 64)  # x, the input of GELU, its output
    assert saved.by_dtype == {torch.float32: saved.total}
    y.sum().backward()  # counting changes nothing for the backward pass
    assert model[0].weight.grad is not None


def test_checkpointing_saves_the_input_alone():
    model, x = mlp(), torch.randn(16, 32, requires_grad=True)
    with measure.SavedBytes(model) as saved:
        checkpoint(model, x, use_reentrant=False)
    assert saved.total == 4 * 16 * 32


def test_a_cpu_keeps_no_peak():
    measure.reset_peak(CPU)
    assert measure.peak(CPU) == measure.Peak(None, None)


@pytest.mark.gpu
def test_the_peak_of_a_gpu_holds_what_was_allocated():
    device = torch.device("cuda")
    measure.reset_peak(device)
    before = torch.cuda.memory_allocated(device)
    block = torch.empty(1 << 20, device=device)
    found = measure.peak(device)
    assert found.allocated >= before + 4 * block.numel()
    assert found.reserved >= found.allocated


def test_the_clock_of_a_second_gpu_marks_its_own_stream(monkeypatch):
    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self, stream):
            self.stream = stream

        def elapsed_time(self, end):
            return float(self.stream == end.stream == "stream of cuda:1")

    waited = []
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: waited.append(str(device)))
    found = measure.time_call(lambda: None, device=torch.device("cuda:1"), warmup=1, repeats=2)
    assert found.samples == (1.0, 1.0)
    assert waited == ["cuda:1"] * 2  # after the warm-up, and before the times are read


def test_a_clock_of_ones_own_times_the_calls():
    ticks = iter(range(100))
    found = measure.time_in_turns({"a": int, "b": int}, device=CPU, warmup=1, repeats=2, seconds=lambda: next(ticks))
    assert found["a"].samples == found["b"].samples == (1_000.0, 1_000.0)


@pytest.mark.parametrize(("threads", "name"), [(1, "processor"), (2, "wall")])
def test_the_time_of_the_processor_is_asked_of_a_single_thread(monkeypatch, threads, name):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    clock, said = measure.quiet_clock()
    assert said == name
    assert clock is {"processor": time.process_time, "wall": time.perf_counter}[name]


def in_turns(turns, *, factor=1.0, seed=0, noise=0.03, shape="lognormal"):
    """Times of two calls, the second `factor` times as long, on a machine that slows down and is interrupted."""
    generator = random.Random(seed)
    draw = {
        "lognormal": lambda: generator.lognormvariate(0, noise),
        "interrupted": lambda: 1 + noise * generator.random() + 3 * (generator.random() < 0.15),
        "normal": lambda: generator.gauss(1, noise),
    }[shape]
    drift = [1 + 0.5 * turn / turns for turn in range(turns)]
    return [measure.Timing(tuple(slow * mean * draw() for slow in drift)) for mean in (1.0, factor)]


@pytest.mark.parametrize("turns", [8, 12, 25])
@pytest.mark.parametrize("shape", ["lognormal", "interrupted", "normal"])
def test_equal_calls_are_rarely_called_different(turns, shape):
    trials, chance = 2000, measure.CHANCE
    wrong = sum(
        measure.compare(*in_turns(turns, seed=seed, noise=0.2, shape=shape)).verdict != "no difference seen"
        for seed in range(trials)
    )
    assert wrong / trials <= chance + 5 * (chance * (1 - chance) / trials) ** 0.5


def test_a_difference_of_a_tenth_is_found_while_the_machine_slows_down():
    found = [measure.compare(*in_turns(12, factor=1.1, seed=seed)).verdict for seed in range(200)]
    assert found.count("faster") >= 180
    assert "slower" not in found


def test_a_difference_smaller_than_a_twentieth_is_none():
    one, other = measure.Timing((1.0,) * 20), measure.Timing((1.04,) * 20)
    assert measure.compare(one, other).chance < 1e-5
    assert measure.compare(one, other).verdict == "no difference seen"
    assert str(measure.compare(one, other)) == "takes about as long as"


def test_the_chance_is_that_of_the_sign_test():
    # 11 heads or more in 12 throws, or as few: 2 (1 + 12) / 4096
    assert measure.Comparison(1.5, wins=11, turns=12).chance == pytest.approx(26 / 4096)
    assert measure.Comparison(1.5, wins=1, turns=12).chance == pytest.approx(26 / 4096)
    assert measure.Comparison(1.0, wins=0, turns=0).chance == 1
    assert measure.Comparison(1.0, wins=6, turns=12).chance == 1


@pytest.mark.parametrize(
    ("factor", "wins", "text"),
    [
        (1.94, 12, "is 1.9 times as fast as"),
        (38.2, 12, "is 38 times as fast as"),
        (9.96, 12, "is 10 times as fast as"),
        (1 / 52.3, 0, "takes 52 times as long as"),
        (2.0, 9, "takes about as long as"),  # 9 of 12 happens by chance
    ],
)
def test_a_comparison_reads_as_a_sentence(factor, wins, text):
    assert str(measure.Comparison(factor, wins=wins, turns=12)) == text


def test_times_that_did_not_take_turns_are_not_compared():
    with pytest.raises(ValueError, match="8 and 9 samples"):
        measure.compare(measure.Timing((1.0,) * 8), measure.Timing((1.0,) * 9))
    with pytest.raises(ValueError, match="at least 8 each"):
        measure.compare(*[measure.Timing((1.0,) * 7)] * 2)
