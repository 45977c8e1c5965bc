"""What `numbers/limits` offers to paste besides its detector, and what it says of casts and of flushing to zero."""

import contextlib
import io
import math

import pytest
import torch

import book_rules as rules

PAGE = rules.BOOK / "numbers" / "limits.ipynb"
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


def run_cell(words):
    """Run the cell with these words as a reader copies it; return its names and what it prints."""
    source = next(cell.source for cell in rules.read_page(PAGE) if cell.kind == "code" and words in cell.source)
    names, printed = {"torch": torch}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(source, names)
    return names, printed.getvalue()


@pytest.fixture
def flushing():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush")
    yield
    torch.set_flush_denormal(False)


def test_saturate_stores_the_largest_number_and_keeps_nan():
    saturate = run_cell("def saturate")[0]["saturate"]
    for source in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = torch.tensor([1e6, math.inf, -math.inf, math.nan, 1.0]).to(source)
        for dtype in (torch.float16, *FP8):
            top = torch.finfo(dtype).max
            *finite, nan, one = saturate(x, dtype).double().tolist()
            assert (finite, one) == ([top, top, -top], 1)
            assert math.isnan(nan)
    largest = torch.finfo(torch.bfloat16).max
    assert saturate(torch.tensor(math.inf), torch.bfloat16).item() == largest


def test_a_clamp_in_bfloat16_does_not_keep_float16_finite():
    x = torch.tensor([1e6], dtype=torch.bfloat16).clamp(-65504, 65504)
    assert x.item() == 65536
    assert x.half().isinf()


def test_an_infinity_that_e4m3_stored_as_its_largest_number_is_hidden():
    stored = torch.tensor([math.inf]).to(torch.float8_e4m3fn).float()
    assert stored.isfinite()


def test_the_check_of_the_device_finds_numbers_that_are_kept():
    lines = run_cell("# subnormal")[1].splitlines()
    assert [line.split()[0] for line in lines] == ["torch.float16", "torch.bfloat16", "torch.float32"]
    if not torch.cuda.is_available():
        assert all("kept by *: True" in line for line in lines)
        assert "by a matmul: True" in lines[2]


def test_the_check_of_the_device_finds_numbers_that_are_flushed(flushing):
    lines = run_cell("# subnormal")[1].splitlines()
    if not torch.cuda.is_available():
        assert ["kept by *: True" in line for line in lines] == [True, False, False]
        assert "by a matmul: False" in lines[2]


def test_flushing_makes_a_small_product_zero_except_in_float16(flushing):
    for dtype in (torch.bfloat16, torch.float32):
        x = torch.tensor([1e-20], dtype=dtype)
        assert (x * x).item() == 0
    assert torch.tensor([2.0**-14]).half().mul(0.5).item() == 2**-15


def test_without_flushing_the_same_product_is_kept():
    for dtype in (torch.bfloat16, torch.float32):
        x = torch.tensor([1e-20], dtype=dtype)
        assert (x * x).item() == pytest.approx(1e-40, rel=0.1)


def test_a_row_of_padding_gives_nan_in_a_softmax_but_not_in_torchs_attention():
    scores = torch.full((1, 1, 2, 2), -math.inf)
    assert scores.softmax(-1).isnan().all()
    x = torch.ones(1, 1, 2, 4)
    attend = torch.nn.functional.scaled_dot_product_attention
    assert (attend(x, x, x, attn_mask=scores) == 0).all()
    assert (attend(x, x, x, attn_mask=scores > 0) == 0).all()
    layer = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    assert layer(x[0], x[0], x[0], key_padding_mask=torch.ones(1, 2, dtype=torch.bool))[0].isnan().all()


def test_the_operations_of_the_table_give_nan():
    minus, one = torch.tensor(-1.0), torch.tensor(1.0)
    made = minus.sqrt(), minus.log(), minus**0.5, torch.acos(one + 1e-4), torch.tensor(math.inf).sin(), one.fmod(0)
    assert all(x.isnan() for x in made)
    assert torch.ones(3).std() == 0
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert torch.ones(1).std().isnan()
