import math

import numpy as np
import pytest
import torch

from utils.diagnostics.fp8_failures import FIVE, MORE, RIGHT, attempts, overflows, refusal


@pytest.fixture(scope="module")
def by_name():
    return {attempt.name: attempt for attempt in attempts("cpu")}


def test_every_line_is_tried_and_each_says_what_came_of_it(by_name):
    assert list(by_name) == [*FIVE, *MORE, *RIGHT]
    for attempt in by_name.values():
        assert attempt.outcome.startswith((f"{attempt.raised}: " if attempt.raised else "gives ",))
        assert len(attempt.outcome) < 250


def test_what_fails_in_every_version_fails(by_name):
    for name in ("make random values", "add", "forget the scales", "ask for a gradient"):
        assert by_name[name].raised, name
    assert "not implemented" in by_name["add"].message
    assert "scale_a" in by_name["forget the scales"].message
    assert "derivative" in by_name["ask for a gradient"].message


def test_what_a_cpu_takes_and_cuda_would_not_is_told(by_name):
    for name, says in (("operand 2 row-major", "col_major"), ("K of 60", "divisible by 16")):
        if not by_name[name].raised:
            assert says in by_name[name].on_cuda, name
    assert not any(by_name[name].on_cuda for name in RIGHT)


E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
CALLS = {  # what each compute capability says: part of the words, or "" where it multiplies
    "right": {"8.9": "", "9.0": "", "10.0": "", "12.0": ""},
    "operand 2 row-major": {"8.9": "NOT_SUPPORTED", "9.0": "cuBLASLt", "10.0": "", "12.0": "NOT_SUPPORTED"},
    "operand 1 column-major": {"8.9": "NOT_SUPPORTED", "9.0": "cuBLASLt", "10.3": "", "12.0": "NOT_SUPPORTED"},
    "7 rows": dict.fromkeys(("8.9", "9.0", "10.0", "12.0"), ""),
    "K of 60": dict.fromkeys(("8.9", "9.0", "10.0", "12.0"), "trailing dimension of mat1"),
    "N of 30": dict.fromkeys(("8.9", "9.0", "10.0", "12.0"), "mat2 shape (64x30)"),
    "E5M2 on the left": dict.fromkeys(("8.9", "9.0", "10.0", "12.0"), ""),
    "E5M2 twice": dict.fromkeys(("8.9", "9.0", "10.0", "12.0"), "two Float8_e5m2"),
}


def operands(call, device="cpu"):
    k, n = 60 if call == "K of 60" else 64, 30 if call == "N of 30" else 32
    x, w = torch.ones(7 if call == "7 rows" else 48, 64, device=device), torch.ones(n, 64, device=device)
    x8 = x.to(E5M2 if call.startswith("E5M2") else E4M3)[:, :k]
    w8 = w.to(E5M2 if call == "E5M2 twice" else E4M3)[:, :k].t()
    if call == "operand 1 column-major":
        x8 = x8.t().contiguous().t()
    return x8, w8.contiguous() if call == "operand 2 row-major" else w8


@pytest.mark.parametrize("call", CALLS)
def test_what_a_card_refuses_follows_from_its_compute_capability(call):
    for capability, says in CALLS[call].items():
        told = refusal(*operands(call), capability)
        assert says in told
        assert bool(told) == bool(says)
    assert "compute capability >= 9.0 or 8.9" in refusal(*operands(call), "8.0")


@pytest.mark.parametrize("call", CALLS)
def test_a_cpu_multiplies_all_of_them(call):
    one = torch.ones(())
    assert torch._scaled_mm(*operands(call), scale_a=one, scale_b=one, out_dtype=torch.bfloat16).isfinite().all()


@pytest.mark.gpu
@pytest.mark.parametrize("call", CALLS)
def test_a_gpu_says_what_is_foretold(call):
    one = torch.ones((), device="cuda")
    told = refusal(*operands(call, "cuda"), "{}.{}".format(*torch.cuda.get_device_capability()))
    if not told:
        torch._scaled_mm(*operands(call, "cuda"), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        return
    with pytest.raises((RuntimeError, ValueError)) as raised:
        torch._scaled_mm(*operands(call, "cuda"), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    assert told[:40] in str(raised.value)


def test_a_product_is_right_or_its_error_shows(by_name):
    right = [by_name[name].error for name in RIGHT if not by_name[name].raised]
    assert len(right) >= 2
    assert all(0.01 < error < 0.06 for error in right)
    assert by_name["scale for inverse scale"].error > 1e6
    silent = by_name["multiply as usual"]
    assert silent.raised or not silent.error < 1  # NaN in torch 2.11, saturated in 2.13


def test_a_product_in_fp8_is_told_by_how_much_of_it_was_past_the_end(by_name):
    silent = by_name["multiply as usual"]
    assert silent.raised or silent.outcome == f"gives float8_e4m3fn, {100 * silent.at_end:.1f} % of it at ±448 or NaN"
    lines = {"some": "torch.tensor([1.0, -448.0, 448.0, torch.nan]).to(x.dtype)", "none": "torch.ones(4).to(x.dtype)"}
    some, none = attempts("cpu", lines)
    assert (some.at_end, some.outcome) == (0.75, "gives float8_e4m3fn, 75.0 % of it at ±448 or NaN")
    assert (none.at_end, none.outcome) == (0.0, "gives float8_e4m3fn")
    assert all(by_name[name].at_end is None for name in RIGHT)


def test_a_line_of_ones_own_can_be_tried():
    (attempt,) = attempts("cpu", {"look": "x.view(torch.uint8)"})
    assert (attempt.outcome, attempt.error) == ("gives uint8", None)


def test_a_cast_past_the_range_is_reported_as_torch_does_it():
    rows = {(row.dtype, index % 4): row for index, row in enumerate(overflows("cpu"))}
    assert len(rows) == 12
    assert rows["float8_e4m3fn", 0].value == 464
    assert rows["float8_e5m2", 1].value == 61440
    assert rows["float8_e4m3fnuz", 1].value == 248
    assert math.isnan(rows["float8_e4m3fnuz", 1].ml_dtypes)
    assert math.isinf(rows["float8_e5m2", 1].ml_dtypes)
    for (name, index), row in rows.items():
        cast = torch.tensor(row.value).to(getattr(torch, name)).float().item()
        assert np.array_equal(row.torch, cast, equal_nan=True)
        assert row.saturates is (cast == torch.finfo(getattr(torch, name)).max)
        if index == 3:  # a NaN is never a number
            assert all(map(math.isnan, (row.torch, row.ml_dtypes, row.book)))
            continue
        assert row.book == torch.finfo(getattr(torch, name)).max
        if index == 0:
            assert row.torch == row.ml_dtypes == row.book
    assert {math.isnan(rows["float8_e4m3fn", i].ml_dtypes) for i in (1, 2)} == {True}
