"""Every product is measured or says why not, a record gives the sweep back, and its roof is what was reached."""

import math
from dataclasses import replace

import pytest
import torch

from utils import machine, records
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES, Gemm, Roof
from utils.emulation.float32_matmul import allowing
from utils.experiments import gemm_calls, gemm_sweep, gemm_sweep_shapes
from utils.experiments.gemm_calls import DTYPES, prepare_call
from utils.experiments.gemm_sweep import GemmPoint, Sweep
from utils.runs import measurement
from utils.workloads import models

CPU = torch.device("cpu")
TINY = [("square", [(Gemm(16, 16, 16), 1)]), ("odd", [(Gemm(15, 15, 15), 1), (Gemm(16, 16, 16), 1)])]
TINY += [("LLaMA step", [(Gemm(8, 16, 4), 3)])]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    def families(size, *, groups):
        yield from ((group, family) for group, family in TINY if group in groups)

    monkeypatch.setattr(gemm_sweep, "list_families", families)
    monkeypatch.setattr(measurement, "SAMPLE_MS", 0.001)
    monkeypatch.setattr(measurement, "COPY_BYTES", {"small": 4096, "full": 8192})
    monkeypatch.setattr(gemm_calls, "COLD_BYTES", 200_000)


def tiny_sweep(**options) -> Sweep:
    return gemm_sweep.run_sweep(device=CPU, size="small", groups=("square", "odd", "LLaMA step"), repeats=2, **options)


def test_every_dtype_of_every_shape_is_measured_or_says_why_not():
    found = tiny_sweep()
    shapes = [(group, gemm, batch) for group, family in TINY for gemm, batch in family]
    assert [(point.group, point.gemm, point.batch) for point in found.points] == [
        shape for shape in shapes for _ in DTYPES
    ]
    for point in found.points:
        assert (len(point.samples), bool(point.note)) in [(2, False), (0, True)], point
    assert {"float64", "float32", "float16", "bfloat16"} <= set(found.reached)
    notes = {(point.dtype, point.note) for point in found.points if point.note}
    assert ("float8", "torch has no scaled product of a batch") in notes


def test_the_rates_are_operations_over_time_and_the_best_of_a_dtype_is_reached():
    slow, fast = (GemmPoint("square", 10, 20, 30, "float32", 5, (time, time, time)) for time in (2.0, 1.0))
    wide = GemmPoint("odd", 10, 20, 30, "float64", 1, (4.0,))
    missing = GemmPoint("odd", 10, 20, 30, "tf32", note="none here")
    found = Sweep((slow, fast, wide, missing), 6_000_000, (2.0, 3.0, 100.0), {}, 0.0)
    assert fast.tflops == pytest.approx(5 * 2 * 10 * 20 * 30 / 1e-3 / 1e12)
    assert found.reached == {"float64": wide.tflops, "float32": fast.tflops}
    assert found.bandwidth == pytest.approx(2.0)  # 6 MB in 3 ms
    assert found.of("float32") == [slow, fast]
    assert found.of(group="odd") == [wide]
    assert missing.tflops is None
    assert fast.intensity == pytest.approx(12_000 / (4 * (300 + 600 + 200)))


def test_a_record_gives_the_sweep_back_and_its_roof(tmp_path):
    found = tiny_sweep()
    record = gemm_sweep.make_record(found, device=CPU, size="small", shown="python -m utils.experiments.gemm_sweep")
    loaded = records.load(records.save(record, tmp_path))
    assert loaded.name == "gemm_sweep-products-small-random-cpu-seed0"
    assert gemm_sweep.of_record(loaded) == found
    roof = gemm_sweep.make_roof(loaded)
    assert roof.measured
    assert (roof.peaks, roof.bandwidth) == (found.reached, found.bandwidth)
    assert roof.name == machine.cpu_name()
    assert roof.source.endswith("python -m utils.experiments.gemm_sweep")
    assert loaded.settings["threads"] == torch.get_num_threads()


def test_the_table_has_shares_reasons_and_a_warning():
    points = (
        GemmPoint("square", 16, 16, 16, "float32", samples=(1.0, 1.0)),
        GemmPoint("square", 16, 16, 16, "tf32", note="no such kernel"),
        GemmPoint("odd", 16, 16, 8, "float32", 2, samples=(2.0, 4.0)),
    )
    sheet = Roof("a card", {"float32": 2 * points[0].tflops}, 1.0, "its data sheet")
    text = gemm_sweep.format_table(Sweep(points, 8_000, (1.0,), {"power_w": 321.0}, 0.3), sheet)
    rows = [" ".join(row.split()) for row in text.splitlines()]
    assert rows[1] == "square: 16 × 16 × 16 float32 1 ± 0 8.19e-06 100 % 50 %"
    assert rows[2] == "odd: 16 × 16 × 8, 2 of them float32 3 ± 1 2.73e-06 33 % 17 %"
    assert rows[3:] == [
        "tf32, 1 products missing: no such kernel",
        "copy: 0.008 GB/s, read and written",
        "power_w: 321.0",
        "NOT QUIET: one product took 1.30 times as long at the end; measure again",
    ]
    assert "NOT QUIET" not in gemm_sweep.format_table(Sweep(points, 8_000, (1.0,), {}, -0.1))


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "tf32"])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_prepared_call_multiplies_random_numbers_of_its_dtype_and_takes_the_copies_in_turn(dtype, batch):
    with allowing("highest"):
        call, note = prepare_call(Gemm(16, 32, 48), dtype, batch=batch, device=CPU)
        if dtype == "float8" and batch > 1:
            assert (call, note) == (None, "torch has no scaled product of a batch")
            return
        copies = [next(call.copies) for _ in range(40)]
        moved = batch * Gemm(16, 32, 48).moved(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype])
        assert len({a.data_ptr() for a, *_ in copies}) == min(16, math.ceil(200_000 / moved))
        a, b, *out = copies[0]
        lead = (3,) if batch > 1 else ()
        assert (a.shape, b.shape) == ((*lead, 16, 48), (*lead, 48, 32))
        assert a.dtype is b.dtype is gemm_calls.TORCH[dtype]
        assert 0.9 < a.float().std() < 1.1
        call.times(40)()
        if out:
            torch.testing.assert_close(out[0].double(), a.double() @ b.double(), rtol=2e-2, atol=5e-2)
        else:
            assert b.stride() == (1, 48)  # column by column


def test_tf32_is_measured_where_a_product_keeps_11_bits_and_refused_elsewhere(monkeypatch):
    assert machine.product_bits(CPU) == 24
    with allowing("highest"):
        monkeypatch.setattr(machine, "product_bits", lambda on: 24)
        call, note = prepare_call(Gemm(4, 4, 4), "tf32", device=CPU)
        assert (call, note) == (None, 'under "high" a float32 product keeps 24 bits here; TF32 keeps 11')
        monkeypatch.setattr(machine, "product_bits", lambda on: 11)
        call, note = prepare_call(Gemm(4, 4, 4), "tf32", device=CPU)
        seen = []
        call.product = lambda *_: seen.append(torch.get_float32_matmul_precision())
        call.times(2)()
        assert seen == ["high", "high"]
        assert torch.get_float32_matmul_precision() == "highest"


def test_a_cpu_that_imitates_a_dtype_tries_no_wide_product(monkeypatch):
    monkeypatch.setattr(machine, "narrow_matmul", lambda dtype, on: (False, "processor reports no fp16 product"))
    call, note = prepare_call(Gemm(1, 257, 1), "float16", device=CPU)
    assert (call, note) == (None, "processor reports no fp16 product: not tried above 256")


def test_what_torch_raises_is_the_reason(monkeypatch):
    def refused(*_, **__):
        raise RuntimeError("sizes must be multiples of 16\nand more")

    monkeypatch.setattr(torch, "_scaled_mm", refused)
    assert prepare_call(Gemm(3, 3, 3), "float8", device=CPU) == (None, "RuntimeError: sizes must be multiples of 16")
    with pytest.raises(ValueError, match="unknown dtype 'int4'; the known ones are float64, float32, tf32"):
        prepare_call(Gemm(3, 3, 3), "int4", device=CPU)


@pytest.mark.parametrize("size", ["small", "full"])
def test_the_shapes_hold_squares_rows_odd_widths_and_both_steps(size, monkeypatch):
    monkeypatch.setitem(models.LLAMAS, "full", replace(models.LLAMAS["full"], layers=1))  # the others are like it
    found = {}
    for group, family in gemm_sweep_shapes.list_families(size):
        found.setdefault(group, []).append(family)
    assert set(found) == set(gemm_sweep_shapes.GROUPS)
    single = {group: [gemm for family in families for gemm, _ in family] for group, families in found.items()}
    assert single["square"][0] == Gemm(16, 16, 16)
    assert single["square"][-1].m == gemm_sweep_shapes.WIDEST[size]
    assert single["skinny"][0].m == 1
    for family in found["odd"]:
        below, middle, above = (gemm.m for gemm, _ in family)
        assert (below, above) == (middle - 1, middle + 1)
    assert [max(power for power in (8, 16, 64) if f[1][0].m % power == 0) for f in found["odd"]] == [8, 16, 64]
    width = {"small": (32 * 128, 64), "full": (12 * 512, 768)}[size]
    assert Gemm(width[0], width[1], width[1]) in single["DistilBERT step"]  # [B S, D] @ [D, D]
    heads = {"small": 32 * 2, "full": 12 * 12}[size]
    assert heads in {batch for family in found["DistilBERT step"] for _, batch in family}
    head = {"small": Gemm(8 * 152, 640, 128), "full": Gemm(2048, 32_000, 4096)}[size]
    assert head in single["LLaMA step"]  # the output of the language model


def test_an_unknown_group_is_refused():
    with pytest.raises(ValueError, match="unknown group 'cubes'; the known ones are square, skinny, odd"):
        list(gemm_sweep_shapes.list_families("small", groups=("square", "cubes")))


def test_the_command_prints_the_table_and_writes_a_record(tmp_path, capsys):
    asked = ["--device", "cpu", "--size", "small", "--repeats", "2", "--record", str(tmp_path)]
    assert gemm_sweep.main(asked) == 0
    said = capsys.readouterr()
    assert said.out.startswith("device   CPU ")
    assert said.err.splitlines() == [f"{group}: done" for group in gemm_sweep_shapes.GROUPS]
    (record,) = records.load_all(tmp_path)
    assert gemm_sweep.format_table(gemm_sweep.of_record(record)) in said.out
    assert record.command == "python -m utils.experiments.gemm_sweep --device cpu --size small --repeats 2 --record DIR"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "gemm_sweep: --repeats 0 is below 1"),
        (["--size", "huge"], "gemm_sweep: unknown size 'huge'"),
        (["--record", "/proc/records"], "gemm_sweep: cannot write records into /proc/records"),
        (["--frobnicate"], "gemm_sweep: unrecognized arguments: --frobnicate"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert gemm_sweep.main(["--device", "cpu", "--size", "small", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(message)
    assert said.err.count("\n") == 1


@pytest.mark.gpu
def test_on_a_gpu_every_dtype_is_measured_or_refused_with_a_reason_and_the_clocks_are_told():
    found = gemm_sweep.run_sweep(device=torch.device("cuda"), size="small", groups=("square", "odd"), repeats=2)
    assert {"float64", "float32", "float16"} <= set(found.reached)
    assert set(found.moment) == set(machine.MOMENT)
    assert all(point.note or point.samples for point in found.points)
