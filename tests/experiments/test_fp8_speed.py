"""No FP8 speed without FP8 products; with them every part is timed, and the break-even is where no larger one loses."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from utils import records
from utils.cost.fp8_casts import BFLOAT16, Layer, square
from utils.emulation.float32_matmul import allowing
from utils.experiments import fp8_speed, gemm_calls
from utils.experiments.fp8_speed import BOTH, CASTS, PARTS, PRODUCT, RECIPES, STEP, SpeedPoint, Speeds
from utils.runs import measurement
from utils.training.float8_recipes import FLOAT8_RECIPES, Float8Recipe

CPU = torch.device("cpu")
LAYER = Layer(tokens=48, inputs=64, outputs=32)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(measurement, "SAMPLE_MS", 0.001)
    monkeypatch.setattr(gemm_calls, "COLD_BYTES", 50_000)
    monkeypatch.setattr(fp8_speed, "WIDTHS", {"small": (16, 32)})


@pytest.fixture
def kernels(monkeypatch):
    """As if this device had FP8 products; they are emulated all the same."""
    monkeypatch.setattr(fp8_speed, "why_emulated", lambda *_: "")
    monkeypatch.setattr(Float8Recipe, "why_emulated", lambda recipe, device: "")


def points(recipe, part, *times, family=fp8_speed.SQUARES):
    """Points of squares from 128 on, each twice as wide; None was not measured."""
    return [
        SpeedPoint(family, *(3 * (128 * 2**at,)), recipe, part, () if time is None else (time,))
        for at, time in enumerate(times)
    ]


def test_a_cpu_times_casts_and_no_fp8_product_and_says_why():
    found = fp8_speed.measure_speeds(device=CPU, size="small", repeats=2)
    assert len(found.points) == 2 * (1 + len(RECIPES)) * len(PARTS)
    for point in found.points:
        own = point.recipe == BFLOAT16 or point.part == CASTS
        assert (len(point.samples), point.note == "") == ((2, True) if own else (0, False)), point
        assert own or point.note == "a CPU multiplies FP8 values in float32"
    assert all(found.faster(square(32), name, part) is None for name in RECIPES for part in (PRODUCT, BOTH, STEP))
    assert all(found.break_even(name) is None for name in RECIPES)
    text = fp8_speed.format_table(found)
    assert "no FP8 speed: this device multiplies no FP8" in text
    assert "is faster" not in text
    rows = [line.split() for line in text.splitlines() if " fp8-" in line and "→" in line]
    assert len(rows) == 2 * len(RECIPES)
    for row in rows:  # product, casts, both, step, three ratios
        at = row.index(next(word for word in row if word.startswith("fp8-")))
        assert [row[at + 1], row[at + 3], row[at + 4]] == ["-", "-", "-"]
        assert row[at + 5 : at + 10] == ["-", "/", "-", "/", "-"]
        assert float(row[at + 2]) > 0


def test_with_fp8_products_every_part_is_timed(kernels):
    found = fp8_speed.measure_speeds(device=CPU, size="small", repeats=2)
    assert [point for point in found.points if not point.samples] == []
    text = fp8_speed.format_table(found)
    assert "no FP8 speed" not in text
    assert text.count(": a step is faster from ") + text.count("no step of a square layer is faster") == len(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_the_calls_multiply_what_they_say_in_fp8(kernels, name):
    with allowing("highest"):
        calls = {part: call for part, (call, _) in fp8_speed.prepare_calls(LAYER, name, device=CPU).items()}
        x, w = next(calls[CASTS].copies)
        assert (x.shape, x.dtype, w.shape, w.dtype) == ((48, 64), torch.bfloat16, (32, 64), torch.float32)
        a, b = calls[CASTS].product(x, w)
        assert a.values.dtype is b.values.dtype is torch.float8_e4m3fn
        both = calls[BOTH].product(x, w)
        assert torch.equal(both, calls[PRODUCT].product(a, b))
        assert both.dtype is torch.bfloat16
        if name != "fp8-delayed":  # whose scale is that of no step
            exact = F.linear(x.float(), w)
            assert ((both.float() - exact).norm() / exact.norm()) < 0.06
        linear, x, dy = next(calls[STEP].copies)
        assert linear.recipe is FLOAT8_RECIPES[name]
        calls[STEP].product(linear, x, dy)
        assert linear.weight.grad.shape == (32, 64)
        assert x.grad.shape == (48, 64)


def test_copies_are_more_than_a_cache_holds():
    moved = 2 * 48 * 64 + 4 * 32 * 64
    found = fp8_speed.prepare_calls(LAYER, BFLOAT16, device=CPU)
    copies = [next(found[BOTH][0].copies) for _ in range(40)]
    assert len({x.data_ptr() for x, _ in copies}) == math.ceil(50_000 / moved)


def test_a_compiler_that_fails_is_said(monkeypatch, kernels):
    def broken(function, **_):
        def call(*_):
            raise RuntimeError("no compiler\nand more")

        return call

    monkeypatch.setattr(torch, "compile", broken)
    found = fp8_speed.prepare_calls(LAYER, "fp8-current", device=CPU, compiled=True)
    assert found[PRODUCT][0] is not None  # a kernel is a kernel
    assert {found[part] for part in (CASTS, BOTH, STEP)} == {(None, "RuntimeError: no compiler")}


def test_every_layer_is_compiled_for_its_own_shape(monkeypatch):
    monkeypatch.setattr(fp8_speed, "WIDTHS", {"small": (16, 32)})
    monkeypatch.setattr(fp8_speed, "RECIPES", ("fp8-current",))
    graphs, seen = [], []

    def backend(graph, inputs):
        graphs.extend(x for x in inputs if not isinstance(x, torch.Tensor))  # a size that is no number of this graph
        seen[-1] += 1
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    monkeypatch.setattr(torch.compiler, "reset", lambda reset=torch.compiler.reset: (reset(), seen.append(0)))
    found = fp8_speed.measure_speeds(device=CPU, size="small", repeats=1, compiled=True)
    assert found.compiled
    assert graphs == []
    assert len(seen) == 2  # no code of the layer before counts against a limit
    assert seen[0] == seen[1] > 0


def test_the_clocks_are_those_of_a_device_that_computes(monkeypatch):
    def asked(call, device):
        call()
        return {"sm_clock_mhz": 1_980.0}

    monkeypatch.setattr(measurement, "read_clocks_under_load", asked)
    assert fp8_speed.measure_speeds(device=CPU, size="small", repeats=1).moment == {"sm_clock_mhz": 1_980.0}


def test_the_break_even_is_where_every_larger_layer_is_faster():
    base = points(BFLOAT16, STEP, 1.0, 2.0, 8.0, 64.0)
    late = Speeds((*base, *points("fp8-mx", STEP, 0.5, 3.0, 7.0, 40.0)), False, {}, 0.0)
    assert late.faster(square(1024), "fp8-mx", STEP) == pytest.approx(1.6)
    assert late.break_even("fp8-mx") == square(512)  # 128 is faster too, 256 is not
    never = Speeds((*base, *points("fp8-mx", STEP, 0.5, 1.0, 4.0, 64.0)), False, {}, 0.0)
    assert never.break_even("fp8-mx") is None
    holes = Speeds((*base, *points("fp8-mx", STEP, 0.5, None, 4.0, 32.0)), False, {}, 0.0)
    assert holes.break_even("fp8-mx") == square(512)
    assert holes.break_even("fp8-mx", PRODUCT) is None
    assert "fp8-mx: a step is faster from 512 × 512 → 512 on" in fp8_speed.format_table(late)
    assert "fp8-mx: no step of a square layer is faster" in fp8_speed.format_table(never)


def test_the_rate_counts_the_operations_of_what_multiplies():
    point = SpeedPoint("square", 16, 32, 64, BFLOAT16, PRODUCT, (2.0,))
    assert point.tflops == pytest.approx(2 * 16 * 32 * 64 / 2e-3 / 1e12)
    assert SpeedPoint("square", 16, 32, 64, BFLOAT16, STEP, (2.0,)).tflops == pytest.approx(3 * point.tflops)
    assert SpeedPoint("square", 16, 32, 64, BFLOAT16, CASTS, (2.0,)).tflops is None
    assert SpeedPoint("square", 16, 32, 64, BFLOAT16, PRODUCT).tflops is None


def test_a_busy_machine_is_told():
    assert "NOT QUIET: one call took 1.30 times" in fp8_speed.format_table(Speeds((), False, {}, 0.3))
    assert "NOT QUIET" not in fp8_speed.format_table(Speeds((), False, {}, -0.1))


def test_the_command_records_what_it_measured(tmp_path, capsys):
    assert fp8_speed.main(["--device", "cpu", "--size", "small", "--repeats", "2", "--record", str(tmp_path)]) == 0
    (record,) = records.load_all(tmp_path)
    assert record.name == "fp8_speed-eager-small-random-cpu-seed0"
    assert record.results["emulated"] is True
    found = fp8_speed.of_record(record)
    assert fp8_speed.format_table(found) in capsys.readouterr().out
    assert records.load(records.save(fp8_speed.make_record(found, device=CPU, size="small"), tmp_path)).samples
    assert fp8_speed.main(["--repeats", "0"]) == 2


def test_the_layers_of_a_gpu_hold_the_published_ones(monkeypatch):
    monkeypatch.setattr(fp8_speed, "WIDTHS", {"full": (512,)})
    layers = [layer for _, layer in fp8_speed.list_families("full")]
    assert Layer(1_024, 2_048, 1_024) in layers
    assert Layer(2_048, 4_096, 11_008) in layers
    assert all(size % 16 == 0 for layer in layers for size in (layer.tokens, layer.inputs, layer.outputs))
