"""The device and the size are what was asked for or an error, and the support grid says what really happens."""

from types import SimpleNamespace

import pytest
import torch

from utils import machine

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("MIXED_PRECISION_DEVICE", "MIXED_PRECISION_SIZE"):
        monkeypatch.delenv(name, raising=False)


def test_the_environment_is_read_when_asked(monkeypatch):
    monkeypatch.setenv("MIXED_PRECISION_DEVICE", "cpu")
    monkeypatch.setenv("MIXED_PRECISION_SIZE", "full")
    assert machine.device() == CPU
    assert machine.size() == "full"
    assert machine.size("small") == "small"


def test_without_settings_a_gpu_means_full_size(monkeypatch):
    assert machine.size(on=CPU) == "small"
    assert machine.size(on=torch.device("cuda")) == "full"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert machine.device() == torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.device() == CPU


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("cuda:99", "not there: torch sees", id="a GPU that is not there"),
        pytest.param("toaster", "unknown device 'toaster'", id="no device at all"),
        pytest.param("meta", "not one that this book runs on", id="a device without numbers"),
    ],
)
def test_a_device_that_cannot_be_used_is_an_error(name, message):
    with pytest.raises(ValueError, match=message):
        machine.device(name)


def test_an_unknown_size_is_an_error():
    with pytest.raises(ValueError, match="unknown size 'huge'; use small or full"):
        machine.size("huge")


def test_the_description_is_one_line_with_the_facts():
    line = machine.describe(CPU)
    assert "\n" not in line
    assert torch.__version__ in line
    assert f"{torch.get_num_threads()} torch threads" in line
    facts = machine.facts(CPU)
    assert facts["kind"] == "cpu"
    assert facts["name"]


def test_missing_nvidia_smi_leaves_driver_and_power_unknown(monkeypatch):
    class Properties:
        uuid = None

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setenv("PATH", "")
    assert machine.nvidia_smi(torch.device("cuda")) == (None, None)
    assert set(machine.moment(torch.device("cuda")).values()) == {None}


def test_what_nvidia_smi_tells_is_read_and_what_it_has_not_is_none(monkeypatch, tmp_path):
    class Properties:
        uuid = "11-22"

    script = tmp_path / "nvidia-smi"
    script.write_text('#!/bin/sh\necho "$@" > $(dirname $0)/asked\ncat $(dirname $0)/answer\n')
    script.chmod(0o755)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "answer").write_text("580.1, [N/A]\n")
    assert machine.nvidia_smi(torch.device("cuda")) == ("580.1", None)
    assert "-i GPU-11-22 --query-gpu=driver_version,power.limit" in (tmp_path / "asked").read_text()
    (tmp_path / "answer").write_text("1755, 1980, 3201, 698.5, 700.00, [N/A]\n")
    told = machine.moment(torch.device("cuda"))
    assert (told["sm_clock_mhz"], told["power_w"], told["temperature_c"]) == (1755.0, 698.5, None)
    (tmp_path / "answer").write_text("no devices were found\n")
    assert set(machine.moment(torch.device("cuda")).values()) == {None}


def test_a_cpu_has_no_moment():
    assert machine.moment(CPU) == {}


@pytest.fixture(scope="module")
def grid() -> dict:
    return {(row.operation, row.dtype): row for row in machine.capabilities(CPU)}


def test_the_grid_has_a_row_for_every_operation_and_dtype(grid):
    operations = {operation for operation, _ in grid}
    assert {"cast", "add", "exp", "softmax", "layer_norm", "matmul", "autocast linear", "scaled_mm"} <= operations
    assert len(grid) == len(operations) * len(machine.DTYPES)
    for row in grid.values():
        assert row.status in ("native", "emulated", "runs", "error")
        assert row.how
        assert (row.ratio is None) == (row.status == "error")


def test_the_grid_repeats_what_torch_itself_does(grid):
    assert grid["matmul", "float32"].status == "native"
    assert grid["add", "bfloat16"].status == "emulated"
    assert grid["add", "float8_e4m3fn"].status == "error"
    assert "not implemented" in grid["add", "float8_e4m3fn"].how
    assert grid["autocast linear", "float64"].status == "error"
    assert grid["autocast linear", "bfloat16"].status != "error"
    assert grid["scaled_mm", "float32"].status == "error"


def test_elementwise_bfloat16_computes_in_float32_as_the_grid_says():
    # Twice rounded (after the product, after the sum) 1 + 2**-8 + 2**-8 would stay 1; float32 inside one operation
    # rounds once: softmax of equal numbers sums 256 terms exactly, which bfloat16 could not count past 256.
    x = torch.zeros(1024, dtype=torch.bfloat16)
    assert x.softmax(-1)[0].item() == 2**-10


@pytest.mark.parametrize(
    ("flags", "native"),
    [
        pytest.param({"avx512_bf16": True}, True, id="Zen 4, Cooper Lake"),
        pytest.param({"amx_bf16": True, "amx_fp16": False}, True, id="Sapphire Rapids"),
        pytest.param({"avx2": True, "avx512_bf16": False}, False, id="no bfloat16 instruction"),
    ],
)
def test_a_cpu_is_judged_by_the_instruction_sets_it_reports(monkeypatch, flags, native):
    monkeypatch.setattr(machine, "_cpu_report", lambda: flags)
    assert machine.narrow_matmul(torch.bfloat16, CPU)[0] is native
    assert machine.narrow_matmul(torch.float32, CPU)[0] is True


@pytest.mark.parametrize(
    ("dtype", "capability", "native"),
    [
        pytest.param(torch.float16, (7, 5), True, id="T4 float16"),
        pytest.param(torch.bfloat16, (7, 5), False, id="T4 bfloat16"),
        pytest.param(torch.bfloat16, (8, 0), True, id="A100 bfloat16"),
        pytest.param(torch.float8_e4m3fn, (8, 0), False, id="A100 float8"),
        pytest.param(torch.float8_e4m3fn, (9, 0), True, id="H200 float8"),
    ],
)
def test_a_gpu_is_judged_by_its_compute_capability(monkeypatch, dtype, capability, native):
    def supported(including_emulation):
        assert not including_emulation  # a T4 would answer True
        return capability >= (8, 0)

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    monkeypatch.setattr(torch.version, "hip", None)
    assert machine.narrow_matmul(dtype, torch.device("cuda"))[0] is native


@pytest.mark.parametrize(("major", "native"), [(7, False), (8, True)], ids=["T4", "A100"])
def test_torch_says_yes_for_a_t4_unless_emulation_is_left_out(monkeypatch, major, native):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "cpu")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(major=major))
    monkeypatch.setattr(torch.version, "hip", None)
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.is_bf16_supported(including_emulation=False) is native


def tf32_ties_away(a, b):
    """A product of TF32 factors as a GPU's library may make them: 13 bits are rounded off, ties away from zero."""
    near = ((a.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
    return near @ b


def test_a_tie_that_is_rounded_up_is_no_bit_more():
    assert machine.product_bits(CPU, product=tf32_ties_away) == 11
    assert machine.product_bits(CPU) == 24


def test_a_gpu_is_asked_for_a_product_that_keeps_it_busy():
    shapes = []

    def product(a, b):
        shapes.append((tuple(a.shape), tuple(b.shape)))
        return torch.empty(a.shape, device="meta")

    with pytest.raises(RuntimeError, match="meta"):  # it has no values to look at
        machine.product_bits(torch.device("meta"), product=product)
    assert shapes == [((1024, 1024), (1024, 1024))]
