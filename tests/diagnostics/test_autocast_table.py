"""The rules of autocast: known ones are measured, each documented CPU operation is called, nothing is disturbed."""

import subprocess
import sys
import warnings

import pytest
import torch
import torch.nn.functional as F
from packaging.version import Version
from torch import linalg as L

from utils.diagnostics import autocast_table, dtype_probe
from utils.diagnostics.autocast_docs import (
    ALSO,
    DOCUMENTED,
    ERROR,
    FOLLOWS,
    INSIDE,
    NARROW,
    NATIVE,
    PROMOTE,
    RULES,
    UNLISTED,
    WIDE,
    documented,
)
from utils.diagnostics.autocast_operations import OPERATIONS, Operation
from utils.diagnostics.autocast_table import ask_without_gpu, measure

BF16, F16 = torch.bfloat16, torch.float16
RMS_NORM_IS_WIDE = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)  # under CUDA's autocast; not in 2.11

# What the CPU's list alone names and hardly anybody calls.
OBSCURE = {
    "linalg_vecdot": lambda x: L.vecdot(x(2, 2), x(2, 2)),
    "_convolution": lambda x: torch._convolution(
        x(1, 1, 4, 4), x(1, 1, 2, 2), None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, False, False, True
    ),
    "conv_tbc": lambda x: torch.conv_tbc(x(3, 1, 2), x(1, 2, 2), x(2)),
    "mkldnn_rnn_layer": lambda x: torch.lstm(
        x(2, 1, 2), [x(1, 1, 2), x(1, 1, 2)], [x(8, 2), x(8, 2), x(8), x(8)], True, 1, 0.0, False, False, False
    ),
    "_native_multi_head_attention": lambda x: torch._native_multi_head_attention(
        *(x(2, 2, 4) for _ in range(3)), 4, 2, x(12, 4), x(12), x(4, 4), x(4)
    ),
    "avg_pool3d": lambda x: F.avg_pool3d(x(1, 2, 2, 2), 2),
    "grid_sampler_2d": lambda x: torch.grid_sampler_2d(x(1, 1, 2, 2), x(1, 2, 2, 2), 0, 0, False),
    "_grid_sampler_2d_cpu_fallback": lambda x: torch._grid_sampler_2d_cpu_fallback(
        x(1, 1, 2, 2), x(1, 2, 2, 2), 0, 0, False
    ),
    "grid_sampler_3d": lambda x: torch.grid_sampler_3d(x(1, 1, 2, 2, 2), x(1, 2, 2, 2, 3), 0, 0, False),
    "polar": lambda x: torch.polar(x(4), x(4)),
    "quantile": lambda x: torch.quantile(x(4), 0.5),
    "nanquantile": lambda x: torch.nanquantile(x(4), 0.5),
    "stft": lambda x: torch.stft(x(8), 4, window=None, return_complex=True),
    "trace": lambda x: torch.trace(x(2, 2)),
    "view_as_complex": lambda x: torch.view_as_complex(x(2, 2)),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(x.matrix(2)),
    "cholesky_solve": lambda x: torch.cholesky_solve(x(2, 1), x.matrix(2)),
    "inverse": lambda x: torch.inverse(x.matrix(2)),
    "lu_solve": lambda x: torch.lu_solve(x(2, 1), x.matrix(2), x.index(2).int() + 1),
    "orgqr": lambda x: torch.orgqr(x.matrix(2), x(2)),
    "ormqr": lambda x: torch.ormqr(x.matrix(2), x(2), x(2, 2)),
    "pinverse": lambda x: torch.pinverse(x.matrix(2)),
    "max_pool3d": lambda x: F.max_pool3d(x(1, 2, 2, 2), 2),
    "max_unpool2d": lambda x: F.max_unpool2d(x(1, 1, 1, 1), x.index(1, 1, 1, 1), 2),
    "max_unpool3d": lambda x: F.max_unpool3d(x(1, 1, 1, 1, 1), x.index(1, 1, 1, 1, 1), 2),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x(1, 2, 2, 2), 1),
    "reflection_pad1d": lambda x: F.pad(x(1, 4), (1, 1), mode="reflect"),
    "reflection_pad2d": lambda x: F.pad(x(1, 4, 4), (1, 1, 1, 1), mode="reflect"),
    "replication_pad1d": lambda x: F.pad(x(1, 4), (1, 1), mode="replicate"),
    "replication_pad2d": lambda x: F.pad(x(1, 4, 4), (1, 1, 1, 1), mode="replicate"),
    "replication_pad3d": lambda x: F.pad(x(1, 2, 2, 2), (1, 1, 1, 1, 1, 1), mode="replicate"),
    "nll_loss2d": lambda x: F.nll_loss(x(1, 2, 2, 2), x.index(1, 2, 2)),
    "ctc_loss": lambda x: F.ctc_loss(x(4, 1, 2).log_softmax(-1), x.index(1, 2) * 0 + 1, (4,), (2,)),
    "multilabel_margin_loss_forward": lambda x: torch.ops.aten.multilabel_margin_loss_forward(
        x(2, 2), x.index(2, 2), 1
    ),
    **{
        f"fft_{name}": lambda x, name=name: getattr(torch.fft, name)(x(4, 4))
        for name in (
            "fft",
            "ifft",
            "fft2",
            "ifft2",
            "fftn",
            "ifftn",
            "rfft",
            "irfft",
            "rfft2",
            "irfft2",
            "rfftn",
            "irfftn",
            "hfft",
            "ihfft",
        )
    },
    **{
        f"linalg_{name}": lambda x, name=name: getattr(L, name)(x.matrix(2))
        for name in (
            "cond",
            "cholesky",
            "svdvals",
            "eigvals",
            "eigvalsh",
            "inv",
            "qr",
            "cholesky_ex",
            "svd",
            "eig",
            "eigh",
            "inv_ex",
        )
    },
    "linalg_matrix_rank": lambda x: L.matrix_rank(x.matrix(2)),
    "linalg_solve": lambda x: L.solve(x.matrix(2), x(2, 1)),
    "linalg_lstsq": lambda x: L.lstsq(x.matrix(2), x(2, 1)),
    "linalg_householder_product": lambda x: L.householder_product(x.matrix(2), x(2)),
    "linalg_tensorinv": lambda x: L.tensorinv(x.matrix(2), ind=1),
    "linalg_tensorsolve": lambda x: L.tensorsolve(x.matrix(2), x(2)),
    "fake_quantize_per_tensor_affine": lambda x: torch.fake_quantize_per_tensor_affine(x(4), 0.1, 0, 0, 255),
    "geqrf": lambda x: torch.geqrf(x.matrix(2)),
    "_lu_with_info": lambda x: torch._lu_with_info(x.matrix(2)),
    "qr": lambda x: torch.qr(x.matrix(2)),
    "svd": lambda x: torch.svd(x.matrix(2)),
    "triangular_solve": lambda x: torch.triangular_solve(x(2, 1), x.matrix(2)),
    "fractional_max_pool2d": lambda x: F.fractional_max_pool2d(x(1, 4, 4), 2, output_size=2),
    "fractional_max_pool3d": lambda x: F.fractional_max_pool3d(x(1, 4, 4, 4), 2, output_size=2),
    "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(x(1, 2, 2, 2), 1),
}

# Calls by the other names in `ALSO`.
OTHER_CALLS = {
    "@": lambda x: x(2, 2) @ x(2, 2),
    "+": lambda x: x(4) + x(4),
    "-": lambda x: x(4) - x(4),
    "*": lambda x: x(4) * x(4),
    "/": lambda x: x(4) / x(4),
    "**": lambda x: x(4) ** 2,
    "SDPA": lambda x: F.scaled_dot_product_attention(x(1, 2, 2, 4), x(1, 2, 2, 4), x(1, 2, 2, 4), is_causal=True),
    "nn.BatchNorm1d": lambda x: torch.nn.BatchNorm1d(4, affine=False, track_running_stats=False)(x(2, 4)),
    "nn.BatchNorm2d": lambda x: torch.nn.BatchNorm2d(2, affine=False, track_running_stats=False)(x(2, 2, 2, 2)),
    "nn.BatchNorm3d": lambda x: torch.nn.BatchNorm3d(2, affine=False, track_running_stats=False)(x(2, 2, 2, 2, 2)),
    "nn.Upsample": lambda x: torch.nn.Upsample(scale_factor=2)(x(1, 1, 4)),
    "nn.BCELoss": lambda x: torch.nn.BCELoss()(x(4), x(4)),
    "nn.BCEWithLogitsLoss": lambda x: torch.nn.BCEWithLogitsLoss()(x(4), x(4)),
    "nn.CrossEntropyLoss": lambda x: torch.nn.CrossEntropyLoss()(x(2, 2), x.index(2)),
    "nn.KLDivLoss": lambda x: torch.nn.KLDivLoss(reduction="batchmean")(x(2, 4), x(2, 4)),
}

# Not what the documentation says, or not to be told from the result.
EXCEPTIONS = {
    "mkldnn_rnn_layer": "raises on processors without bfloat16 products",
    "linalg_matrix_rank": "returns whole numbers",
}
if Version(torch.__version__) >= Version("2.15"):
    EXCEPTIONS["qr"] = "is still listed, and raises"


@pytest.fixture(scope="module", params=[BF16, F16], ids=str)
def dtype(request):
    return request.param


@pytest.fixture(scope="module")
def rows(dtype):
    return {row.name: row for row in measure("cpu", dtype)}


@pytest.fixture(scope="module")
def cuda_rows():
    return {row.name: row for row in ask_without_gpu(F16)}


KNOWN = {
    NARROW: "matmul linear bmm addmm conv2d einsum scaled_dot_product_attention prelu",
    WIDE: "cross_entropy mse_loss binary_cross_entropy binary_cross_entropy_with_logits prod cdist",
    PROMOTE: "add mul cat stack where index_copy",
    FOLLOWS: "softmax layer_norm rms_norm gelu relu exp pow sum mean norm embedding scatter_add index_add mv",
}


@pytest.mark.parametrize(("name", "rule"), [(name, rule) for rule in KNOWN for name in KNOWN[rule].split()])
def test_a_well_known_operation_follows_its_rule_on_a_cpu(rows, name, rule):
    assert rows[name].rule == rule, rows[name]


def test_the_dtypes_of_the_results_are_by_name(rows, dtype):
    short = str(dtype).removeprefix("torch.")
    found = [(rows[name].of_wide, rows[name].of_narrow, rows[name].of_mixed) for name in ("linear", "softmax", "add")]
    assert found[0] == (short, short, (short, short))
    assert found[1] == ("float32", short, ())
    assert found[2] == ("float32", short, ("float32", "float32"))


def test_a_mix_that_no_rule_helps_raises_and_the_row_says_why(rows):
    assert rows["scatter_add"].of_mixed == (ERROR, ERROR)
    assert rows["scatter_add"].message == "scatter(): Expected self.dtype to be equal to src.dtype"
    assert rows["layer_norm"].of_mixed[0] == rows["layer_norm"].of_narrow  # float32 weights and a narrow input are fine


def test_in_place_and_with_a_dtype_of_its_own_autocast_does_nothing(rows):
    assert rows["addmm"].rule == NARROW
    assert rows["addmm_ (in place)"].rule == FOLLOWS
    assert rows["softmax(dtype=float32)"].of_narrow == "float32"


def test_every_operation_has_a_row_in_its_order(rows):
    assert list(rows) == [operation.name for operation in OPERATIONS]
    assert {row.rule for row in rows.values()} == {NARROW, WIDE, PROMOTE, FOLLOWS}


def test_every_operation_that_the_documentation_lists_for_cuda_is_asked():
    """All but `__matmul__`, `__pow__` and the like: the operators of Python, which are `matmul` and `pow`."""
    names = {operation.name for operation in OPERATIONS}
    listed = {name for name, rules in DOCUMENTED.items() if "cuda" in rules}
    assert {name for name in listed - names if not name.startswith("__")} == set()


@pytest.mark.parametrize("name", [name for name, rules in DOCUMENTED.items() if "cpu" in rules])
def test_a_documented_operation_does_on_a_cpu_what_the_documentation_says(rows, dtype, name):
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    if name in OBSCURE:
        [row] = measure("cpu", dtype, [Operation(name, "obscure", OBSCURE[name])])
    else:
        row = rows[name]
    assert row.rule == documented(name, "cpu"), row


def test_the_documentation_of_the_cpu_leaves_out_five_operations(rows):
    found = autocast_table.find_differences(rows.values())
    assert {each.name: each.measured for each in found} == UNLISTED["cpu"]
    assert {each.documented for each in found} == {FOLLOWS}


def test_the_documentation_of_cuda_leaves_out_eight_operations(cuda_rows):
    found = autocast_table.find_differences(cuda_rows.values(), "cuda")
    later = {"rms_norm"} if cuda_rows["rms_norm"].rule == FOLLOWS and not RMS_NORM_IS_WIDE else set()
    assert {each.name: each.measured for each in found} == {
        name: rule for name, rule in UNLISTED["cuda"].items() if name not in later
    }


def test_cuda_keeps_in_float32_what_a_cpu_computes_in_whatever_comes_in(rows, cuda_rows):
    for name in ("softmax", "layer_norm", "exp", "pow", "sum", "norm", "cumsum"):
        assert (rows[name].rule, cuda_rows[name].rule) == (FOLLOWS, WIDE), name
    assert (rows["binary_cross_entropy"].rule, cuda_rows["binary_cross_entropy"].rule) == (WIDE, ERROR)
    assert "unsafe to autocast" in cuda_rows["binary_cross_entropy"].message


def test_what_decides_is_the_name_on_the_list_and_not_the_formula(rows, cuda_rows):
    """softplus and square are cast on CUDA; logsigmoid and silu, made of exp and log too, are not."""
    assert [cuda_rows[name].rule for name in ("softplus", "square")] == [WIDE, WIDE]
    assert [cuda_rows[name].rule for name in ("logsigmoid", "sigmoid", "silu", "elu")] == [FOLLOWS] * 4
    assert {rows[name].rule for name in ("softplus", "square", "logsigmoid", "sigmoid", "silu", "elu")} == {FOLLOWS}


@pytest.mark.parametrize(("also", "name"), [(also, name) for name in ALSO for also in ALSO[name]])
def test_another_name_of_an_operation_has_its_rule_on_both_devices(rows, cuda_rows, dtype, also, name):
    operation = Operation(name, "also", OTHER_CALLS[also])
    [row] = measure("cpu", dtype, [operation])
    assert row.rule == rows[name].rule
    [asked] = ask_without_gpu(F16, [operation])
    assert asked.rule == cuda_rows[name].rule


def test_no_in_place_form_is_on_a_list():
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    in_place = [name for name in names if name.split(".")[0].endswith("_")]
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert len(in_place) > 200
    assert [name for name in in_place if has(name, "AutocastCUDA") or has(name, "AutocastCPU")] == []


@pytest.mark.parametrize("name", sorted(INSIDE["cpu"]))
def test_a_cell_with_a_float32_result_multiplies_in_16_bits_on_a_cpu(rows, dtype, name):
    cell = getattr(torch.nn, name)(4, 4)
    with dtype_probe.DtypeProbe(cell) as seen, torch.no_grad(), torch.autocast("cpu", dtype=dtype):
        cell(torch.randn(2, 4))
    products = [step for step in seen.steps if step.op == "addmm"]
    assert rows[name].of_wide == "float32"
    assert [set(step.inputs) for step in products] == 2 * [{str(dtype)[6:]}]


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_what_promotes_by_itself_does_so_on_both_devices(rows, cuda_rows, name):
    assert rows[name].rule == cuda_rows[name].rule == PROMOTE


@pytest.mark.gpu
def test_a_gpu_does_what_its_dispatcher_says(cuda_rows):
    measured = {row.name: row.rule for row in measure("cuda", F16)}
    assert {name: measured[name] for name in cuda_rows} == {name: row.rule for name, row in cuda_rows.items()}


def test_an_operation_that_raises_has_a_row_and_a_missing_one_has_none():
    def fail(x):
        raise RuntimeError("first line\nsecond line")

    operations = [
        Operation("raises", "test", fail),
        Operation("missing", "test", lambda x: torch.no_such_operation(x(2))),
        Operation("relu", "test", lambda x: F.relu(x(2))),
    ]
    rows = measure("cpu", BF16, operations)
    assert [(row.name, row.rule, row.message) for row in rows] == [
        ("raises", ERROR, "first line"),
        ("relu", FOLLOWS, ""),
    ]


def test_a_cast_by_hand_comes_before_that_of_autocast_and_does_its_damage():
    target, outs = torch.full((2, 2), 1e5), torch.eye(2)
    with pytest.raises(TypeError, match=r"mm\(\) received an invalid combination"):
        torch.mm(target @ outs)  # as Lightning's sample has it: one matrix
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(target.half(), outs)
    with torch.autocast("cpu", dtype=BF16):
        assert torch.mm(target.half(), outs).isnan().all()  # 1e5 is infinite in float16
        assert torch.mm(target, outs)[0].tolist() == [99840, 99840]


def test_where_no_dtype_is_named_a_cpu_and_a_tpu_take_bfloat16_and_cuda_float16():
    code = "import torch; print(*map(torch.get_autocast_dtype, ('cpu', 'cuda', 'xla')))"  # nobody has named one there
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(BF16), str(F16), str(BF16)]


def test_measuring_disturbs_nothing():
    weight = torch.ones(2, 2, requires_grad=True)
    before = torch.random.get_rng_state()
    with torch.autocast("cpu", dtype=F16), warnings.catch_warnings(record=True) as caught:
        copy = torch.mm(weight, weight)
        inside = measure("cpu", BF16)
        ask_without_gpu(F16, OPERATIONS[:1])
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") == F16
        assert torch.is_grad_enabled()
        assert torch.is_autocast_cache_enabled()
        assert copy.dtype == F16
    assert caught == []
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.is_autocast_enabled("cuda")
    assert inside == measure("cpu", BF16)


def test_a_dtype_that_autocast_refuses_is_refused():
    with pytest.raises(ValueError, match="stays off on this machine"):
        measure("cpu", torch.float64)


def test_every_rule_has_its_words_and_its_reason():
    assert list(RULES) == [NARROW, WIDE, PROMOTE, FOLLOWS, ERROR]
    for rules in DOCUMENTED.values():
        assert set(rules.values()) <= set(RULES)
    assert documented("no such operation", "cuda") == FOLLOWS
