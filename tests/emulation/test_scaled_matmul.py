import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from packaging.version import Version

from utils.emulation.accumulators import ACCUMULATORS
from utils.emulation.scaled_matmul import (
    _constant_in_a_graph,
    _kernel,
    _kernel_scale,
    emulated,
    scaled_matmul,
    swizzled,
    transposed,
    why_emulated,
)
from utils.emulation.scaled_tensor import quantize
from utils.formats import FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E8M0FNU, FLOAT16
from utils.scaling import SCALINGS

PAIRS = (
    ("none", "none"),
    ("tensor", "tensor"),
    ("row", "row"),
    ("1x128", "128x128"),
    ("1x128", "1x128"),
    ("128x128", "1x128"),
    ("mx", "mx"),
    ("mx-rceil", "mx-rceil"),
    ("nvfp4", "nvfp4"),
)


def drawn(rows, columns, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def pair(left="tensor", right="tensor", *, m=48, k=272, n=160, formats=(FLOAT8_E4M3FN, FLOAT8_E4M3FN)):
    a = quantize(drawn(m, k), formats[0], left)
    return a, transposed(quantize(drawn(n, k, seed=1), formats[1], right))


def scale_of_each(one):
    """The scale that takes each value back, looked up value by value."""
    rows, columns = one.shape
    height, width = one.scaling.tile
    down, across = torch.arange(rows) // (height or rows), torch.arange(columns) // (width or columns)
    return one.inv_scale.double()[down][:, across]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_an_emulated_product_is_that_of_the_values_taken_back(left, right):
    a, b = pair(left, right)
    y = scaled_matmul(a, b, out_dtype=torch.float32)
    exact = (a.values.double() * scale_of_each(a)) @ (b.values.double() * scale_of_each(b))
    # K roundings of float32 in a sum, two or three more for the scales
    bound = (a.dequantize().abs() @ b.dequantize().abs()) * (a.shape[1] + 3) * 2.0**-24
    assert ((y - exact).abs() <= bound).all()


@pytest.mark.parametrize(("left", "right"), PAIRS[:-1])  # the scale of an NVFP4 tensor is no power of two
def test_where_float32_holds_the_sums_the_product_is_exact(left, right):
    fmt, generator = FLOAT8_E4M3FN, torch.Generator().manual_seed(3)
    blocks = torch.tensor([1.0, 2.0**-4]).repeat_interleave(128)  # so that the blocks of a row differ in their scale
    a, b = (
        quantize(2.0**power * blocks * fmt.max * torch.randint(0, 2, (rows, 256), generator=generator), fmt, scaling)
        for rows, scaling, power in ((32, left, -3), (48, right, 5))
    )
    b = transposed(b)
    y = scaled_matmul(a, b, out_dtype=torch.float32)
    exact = (a.values.double() * scale_of_each(a)) @ (b.values.double() * scale_of_each(b))
    assert torch.equal(y, exact.float())


@pytest.mark.skipif(not hasattr(F, "scaled_mm"), reason="this torch has no scaled_mm")
@pytest.mark.parametrize("scaling", ["tensor", "row"])
def test_it_is_torchs_own_product_bit_for_bit_where_scales_are_powers_of_two(scaling):
    a, b = pair(scaling, scaling)
    for one in (a, b):
        one.inv_scale = torch.exp2(one.inv_scale.log2().round())
    kind = {"tensor": F.ScalingType.TensorWise, "row": F.ScalingType.RowWise}[scaling]
    scales = [one.inv_scale.reshape(()) if scaling == "tensor" else one.inv_scale for one in (a, b)]
    try:
        torchs = F.scaled_mm(a.codes(), b.codes(), scales[0], kind, scales[1], kind, output_dtype=torch.float32)
    except NotImplementedError:
        pytest.skip("this torch has scaled_mm for CUDA alone")
    assert torch.equal(scaled_matmul(a, b, out_dtype=torch.float32), torchs)


def test_a_block_is_scaled_after_its_own_sum_in_an_accumulator():
    one = ACCUMULATORS["fp8-aligned"]
    a, b = pair("1x128", "1x128", k=256)
    y = scaled_matmul(a, b, out_dtype=torch.float32, accumulator=one)
    parts = [one.matmul(a.values[:, i : i + 128], b.values[i : i + 128]) for i in (0, 128)]
    slow = sum(part * a.inv_scale[:, i, None] * b.inv_scale[i] for i, part in enumerate(parts))
    assert torch.equal(y, slow)
    assert not torch.equal(y, scaled_matmul(a, b, out_dtype=torch.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_result_is_rounded_once_to_the_dtype_asked_for(dtype):
    a, b = pair("1x128", "128x128")
    assert torch.equal(scaled_matmul(a, b, out_dtype=dtype), scaled_matmul(a, b, out_dtype=torch.float32).to(dtype))


def test_autocast_does_not_round_the_sums_of_blocks():
    a, b = pair("1x128", "1x128")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = scaled_matmul(a, b, out_dtype=torch.float32)
    assert torch.equal(y, scaled_matmul(a, b, out_dtype=torch.float32))


@pytest.mark.parametrize(("m", "k", "n"), [(0, 32, 16), (16, 0, 16), (16, 32, 0)])
def test_an_empty_product_is_one_of_zeros(m, k, n):
    a, b = pair(m=m, k=k, n=n)
    y = scaled_matmul(a, b)
    assert y.shape == (m, n)
    assert y.dtype is torch.bfloat16
    assert not y.any()


def test_a_transposed_matrix_is_a_view_with_its_scales():
    one = quantize(drawn(32, 256), FLOAT8_E4M3FN, "1x128")
    turned = transposed(one)
    assert turned.scaling.tile == (128, 1)
    assert torch.equal(turned.dequantize(), one.dequantize().t())
    assert turned.values.data_ptr() == one.values.data_ptr()


def wrong(kind):
    a, b = pair(k=256)
    rows = pair("row", "row", k=256)
    return {
        "no scale": (a.values, b),
        "too wide": (quantize(drawn(16, 256), FLOAT16, "tensor"), b),
        "three axes": (quantize(drawn(32, 256).view(2, 16, 256), FLOAT8_E4M3FN), b),
        "E5M2 twice": pair(formats=(FLOAT8_E5M2, FLOAT8_E5M2)),
        "K does not fit": (a, pair(k=272)[1]),
        "b not transposed": (a, transposed(b)),
        "K of 100": pair(k=100),
        "N of 100": pair(n=100),
        "a column-major": (transposed(quantize(drawn(256, 48), FLOAT8_E4M3FN)), b),
        "b row-major": (a, quantize(drawn(256, 160), FLOAT8_E4M3FN)),
        "row and tensor": (rows[0], b),
        "tensor and row": (a, rows[1]),
        "blocks and rows": (pair("1x128", "1x128", k=256)[0], rows[1]),
        "blocks of 32 and 128": (pair("1x128", "1x128", k=256)[0], pair("mx", "mx", k=256)[1]),
        "scaled across K": (transposed(transposed(a)), quantize(drawn(160, 256).t(), FLOAT8_E4M3FN, "row")),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        ("no scale", TypeError, "operand 1 is torch.float32, without a scale: quantize"),
        ("too wide", TypeError, "operand 1 is float16: quantize it to 8 bits"),
        ("three axes", ValueError, "operand 1 has 3 axes: reshape"),
        ("E5M2 twice", TypeError, "E5M2 by E5M2: quantize one operand"),
        ("K does not fit", ValueError, "[48, 256] @ [272, 160] does not fit"),
        ("b not transposed", ValueError, "pass transposed(w)"),
        ("K of 100", ValueError, "K is 100, no multiple of 16: fill up with zeros to 112"),
        ("N of 100", ValueError, "N is 100, no multiple of 16: fill up with zeros to 112"),
        ("a column-major", ValueError, "operand 1 is column-major, strides (1, 48): quantize x.contiguous()"),
        ("b row-major", ValueError, "operand 2 is row-major, strides (160, 1): quantize the [N, K] matrix"),
        ("row and tensor", ValueError, "scale both by tensor, both by row"),
        ("tensor and row", ValueError, "scale both by tensor, both by row"),
        ("blocks and rows", ValueError, "scale both by tensor, both by row"),
        ("blocks of 32 and 128", ValueError, "blocks of the same length along K"),
        ("scaled across K", ValueError, "quantize a second, transposed copy"),
    ],
)
def test_what_a_kernel_would_not_take_is_refused_with_its_remedy(kind, error, says):
    with pytest.raises(error, match=re.escape(says)):
        scaled_matmul(*wrong(kind))


def test_a_result_in_8_bits_is_refused():
    with pytest.raises(TypeError, match=re.escape("ask for torch.bfloat16 and quantize() the result")):
        scaled_matmul(*pair(), out_dtype=torch.float8_e4m3fn)


def test_scales_of_1x128_along_the_wrong_axis_are_refused():
    once = quantize(drawn(256, 48), FLOAT8_E4M3FN, "1x128")  # good for a sum over its 48 columns
    again = transposed(once)
    again.values = again.values.contiguous()
    with pytest.raises(ValueError, match="change from term to term of a sum"):
        scaled_matmul(again, pair("1x128", "1x128", k=256)[1])


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_cpu_emulates_every_scaling_and_says_why(scaling):
    assert emulated("cpu", scaling)
    assert why_emulated(torch.device("cpu"), scaling) == "a CPU multiplies FP8 values in float32"


def test_scales_stand_where_the_block_scaled_tensor_core_looks_for_them():
    rows, blocks = 300, 10
    scales = (torch.arange(rows * blocks, dtype=torch.int32) % 251).to(torch.uint8).view(rows, blocks)
    flat = swizzled(scales)
    assert flat.numel() == 384 * 12
    found = torch.zeros_like(scales)
    for row in range(rows):
        for block in range(blocks):  # cuBLAS documentation, 1D Block Scaling Factors Layout
            tile = (row // 128) * 3 + block // 4
            found[row, block] = flat[512 * tile + 16 * (row % 32) + 4 * (row % 128 // 32) + block % 4]
    assert torch.equal(found, scales)


def test_scales_of_mx_are_exact_in_e8m0():
    one = quantize(drawn(32, 64) * torch.logspace(-30, 30, 32)[:, None], FLOAT8_E4M3FN, "mx")
    assert torch.equal(one.stored.to(FLOAT8_E8M0FNU.torch_dtype).float(), one.stored)


@pytest.mark.skipif(not hasattr(F, "scaled_mm"), reason="this torch has no scaled_mm")
@pytest.mark.parametrize(("left", "right"), PAIRS[1:-1])
def test_what_a_kernel_gets_passes_torchs_checks_of_cudas_rules(left, right):
    a, b = pair(left, right, m=256, k=512, n=384)  # no multiple of 128: torch's check of shapes has another rule there
    for one in (a, b):
        for name in ("values", "inv_scale", "stored"):
            setattr(one, name, getattr(one, name).to("meta"))
    assert _kernel(a, b, torch.bfloat16, False).shape == (256, 384)
    if left == "row" and Version(torch.__version__) < Version("2.15"):  # the check is one: a scale too few is found
        a.inv_scale = a.inv_scale[1:]
        with pytest.raises((RuntimeError, ValueError), match="scale_a"):
            _kernel(a, b, torch.bfloat16, False)


@pytest.mark.skipif(not hasattr(F, "scaled_mm"), reason="this torch has no scaled_mm")
@pytest.mark.parametrize(("left", "right"), [("1x128", "128x128"), ("1x128", "1x128"), ("tensor", "tensor")])
def test_a_kernel_gets_whole_blocks_of_k(monkeypatch, left, right):
    asked = []
    monkeypatch.setattr(F, "scaled_mm", lambda a, b, *scales, **how: asked.append((a, b, scales)))
    a, b = pair(left, right, m=48, k=272, n=128)
    _kernel(a, b, torch.bfloat16, False)
    ((codes, columns, _),) = asked
    filled = 384 if left == "1x128" else 272
    assert (tuple(codes.shape), codes.stride(), codes.dtype) == ((48, filled), (filled, 1), torch.float8_e4m3fn)
    assert (tuple(columns.shape), columns.stride()) == ((filled, 128), (1, filled))
    assert torch.equal(codes[:, :272].float(), a.values)
    assert torch.equal(columns[:272].float(), b.values)
    assert not codes[:, 272:].float().any()
    assert not columns[272:].float().any()
    monkeypatch.undo()
    for one in (a, b):
        for name in ("values", "inv_scale", "stored"):
            setattr(one, name, getattr(one, name).to("meta"))
    assert _kernel(a, b, torch.bfloat16, False).shape == (48, 128)  # torch's check of CUDA's rules


@pytest.mark.parametrize("rows", [1, 16, 384, 512])  # 512: so many scales that none is filled in
@pytest.mark.parametrize("columns", [128, 256, 512])
def test_scales_of_blocks_have_the_strides_that_the_kernel_checks(rows, columns):
    # ScaledBlas.cpp, _scaled_block1x128_block128x128: [M, K / 128] with (1, M), and [K / 128, N / 128] with (1, L4),
    # where L4 is K / 128 up to a multiple of 4.
    scale = _kernel_scale(quantize(drawn(rows, columns), FLOAT8_E4M3FN, "1x128"))
    assert (tuple(scale.shape), scale.stride()) == ((rows, columns // 128), (1, rows))
    weight = quantize(drawn(rows, columns), FLOAT8_E4M3FN, "128x128")
    for one in (weight, transposed(weight)):  # of the forward product, and of dgrad
        tiles = tuple(-(-size // 128) for size in one.shape[::-1])
        scale, filled = _kernel_scale(one), -(-tiles[0] // 4) * 4
        assert (tuple(scale.shape), scale.stride()) == ((filled, tiles[1]), (1, filled))
        assert torch.equal(scale[: tiles[0]], one.inv_scale.t())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_a_kernel_gives_what_the_emulation_gives(left, right):
    if reason := why_emulated("cuda", left, right):
        pytest.skip(reason)
    a, b = (quantize(drawn(256, 512, seed=i).cuda(), FLOAT8_E4M3FN, s) for i, s in enumerate((left, right)))
    y = scaled_matmul(a, transposed(b), out_dtype=torch.bfloat16)
    exact = (a.dequantize().double() @ b.dequantize().double().t()).float()
    size = a.dequantize().abs() @ b.dequantize().abs().t()
    # Hopper cuts every addend 13 bits below the largest of its sum: 16 or so times 33 of them, of which some add up.
    assert ((y.float() - exact).abs() <= exact.abs() * 2.0**-8 + size * 2.0**-9).all()


def test_the_mark_of_a_constant_is_that_of_torch():
    def ours():
        return ""

    def theirs():
        return ""

    _constant_in_a_graph(ours)
    torch.compiler.assume_constant_result(theirs)
    assert vars(ours) == vars(theirs) != {}


def test_the_compiler_is_imported_only_by_what_uses_it():
    modules = "utils.distilbert, utils.llama, utils.experiments.record_all.recording, utils.widgets.playground"
    code = f"import sys, {modules}; print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
