"""Models with small weights: every format, what it costs in bytes, what stays, kernels, and GPTQ against nearest."""

import copy
import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from utils import llama
from utils.measure import tensor_bytes
from utils.quantization import int4_kernel, integers, weight_formats
from utils.quantization.int4_kernel import Int4PackLinear, why_not
from utils.quantization.llm_int8 import OutlierSplitLinear
from utils.quantization.weight_formats import WEIGHT_FORMATS, converted, weight_report
from utils.quantization.weight_only import Float8Weight, WeightOnlyLinear
from utils.runs import experiment
from utils.training import recipes, training_loop
from utils.workloads import data, language_task, models

CPU = torch.device("cpu")
SHAPE = models.LlamaShape(
    vocabulary=96, width=64, layers=2, heads=4, groups=2, hidden=160, positions=64, tied=True, spread=0.1
)
SMALL = [name for name, one in WEIGHT_FORMATS.items() if one.dtype is None]
LINEARS = 14


@pytest.fixture(scope="module")
def model() -> nn.Module:
    return models.build_llama(SHAPE, seed=1)


@pytest.fixture(scope="module")
def ids() -> torch.Tensor:
    return torch.randint(3, 96, (4, 32), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A LLaMA that has learnt a little of the book's prose, tokens to calibrate on, and tokens held out."""
    settings = dataclasses.replace(
        language_task.SMALL,
        characters=60_000,
        steps=60,
        shape=dataclasses.replace(language_task.SMALL.shape, width=64, heads=4, groups=4, hidden=160),
        entries=400,
        schedule=training_loop.Schedule(learning_rate=5e-3),
    )
    task = language_task.prepare(data.generated_prose(settings.characters), settings=settings)
    flat = [token for piece in task.train.ids for token in piece]
    run = experiment.run(llama.make_plan(task), recipes.find_recipe("32-true"), device=CPU)
    return run.model.eval(), torch.tensor(flat[: 16 * 128]).view(16, 128), task.held_out


def logits(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=ids).logits


def away(small: nn.Module, model: nn.Module, ids: torch.Tensor) -> float:
    exact = logits(model, ids)
    return ((logits(small, ids).float() - exact).norm() / exact.norm()).item()


# Every format


@pytest.mark.parametrize("name", SMALL)
def test_a_copy_in_each_format_is_near_and_the_model_stays(model, ids, name):
    before = copy.deepcopy(model.state_dict())
    small = converted(model, name, calibration=ids)
    assert away(small, model, ids) < {8: 0.1, 4: 0.5}[WEIGHT_FORMATS[name].bits]
    assert away(small, model, ids) > 0
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert sum(type(layer) is nn.Linear for layer in model.modules()) == LINEARS + 1
    assert [path for path, layer in small.named_modules() if type(layer) is nn.Linear] == ["lm_head"]


@pytest.mark.parametrize("name", [name for name, one in WEIGHT_FORMATS.items() if one.dtype is not None])
def test_a_dtype_is_that_of_the_whole_model(model, ids, name):
    small = converted(model, name)
    dtype = WEIGHT_FORMATS[name].dtype
    assert {parameter.dtype for parameter in small.parameters()} == {dtype}
    assert small is not model
    report = weight_report(small)
    assert report.bits_per_weight == WEIGHT_FORMATS[name].bits == WEIGHT_FORMATS[name].bits_per_weight()
    assert report.kernel == f"{LINEARS + 1} × products in {name}"


@pytest.mark.parametrize("name", SMALL)
def test_counted_bits_are_those_of_the_table(model, ids, name):
    report = weight_report(converted(model, name, calibration=ids))
    shapes = [layer.weight.shape for path, layer in model.named_modules() if isinstance(layer, nn.Linear)][:-1]
    predicted = sum(WEIGHT_FORMATS[name].bits_per_weight(tuple(s)) * s.numel() for s in shapes)
    assert report.bits_per_weight == pytest.approx(predicted / sum(s.numel() for s in shapes), rel=1e-9)
    assert len(report.converted) == LINEARS
    assert report.left == {"lm_head": "kept"}
    assert f"14 of 15 linear layers in {name}" in str(report)


def test_the_bytes_of_a_model_are_those_of_its_tensors(model):
    small = converted(model, "int4")
    rest = sum(p.numel() * 4 for path, p in model.named_parameters() if "proj" not in path)
    buffers = tensor_bytes(model.buffers())
    report = weight_report(small)
    assert report.nbytes == report.linear_nbytes + rest + buffers
    assert report.linear_nbytes < 0.16 * sum(p.nbytes for path, p in model.named_parameters() if "proj" in path)


def test_large_matrices_have_the_bits_that_the_page_names():
    large = {name: round(one.bits_per_weight((4096, 4096)), 3) for name, one in WEIGHT_FORMATS.items()}
    assert large["int4"] == large["int4-gptq"] == 4.5
    assert large["int4-asymmetric"] == 4.75
    assert large["int4-g128"] == 4.125
    assert large["int4-row"] == 4.004
    assert large["int4-matrix"] == 4.0
    assert (large["int8"], large["float8"], large["bfloat16"]) == (8.004, 8.008, 16.0)


# What is converted, and to what


def test_the_layer_widens_what_is_stored(model):
    linear = model.model.layers[0].mlp.up_proj
    x = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(0))
    for stored in (integers.quantize(linear.weight, 4, 32), Float8Weight.of(linear.weight)):
        layer = WeightOnlyLinear(stored, torch.ones(160))
        assert torch.equal(layer(x), F.linear(x, stored.dequantize(), torch.ones(160)))
        half = copy.deepcopy(layer).to(torch.bfloat16)
        assert half.bias.dtype == torch.bfloat16
        assert torch.equal(half(x.bfloat16()), F.linear(x.bfloat16(), stored.dequantize(torch.bfloat16), half.bias))
        for name in ("codes", "inv_scale"):
            assert getattr(half, name).dtype == getattr(stored, name).dtype
            assert torch.equal(getattr(half, name).view(torch.uint8), getattr(stored, name).view(torch.uint8))
        assert layer.nbytes == stored.nbytes


def test_float8_weights_are_near_and_one_byte():
    weight = torch.randn(16, 128, generator=torch.Generator().manual_seed(0))
    small = Float8Weight.of(weight)
    assert small.codes.dtype == torch.float8_e4m3fn
    assert ((small.dequantize() - weight).norm() / weight.norm()) < 0.03
    assert small.bits_per_weight == 8.25


@pytest.mark.parametrize("name", ["int4", "int4-asymmetric", "int8", "float8"])
def test_a_compiler_sees_one_graph(model, name):
    layer = converted(model, name).model.layers[0].mlp.up_proj
    x = torch.randn(1, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.compile(layer, backend="eager", fullgraph=True)(x), layer(x))


def test_compute_is_the_dtype_of_all_that_stays(model, ids):
    small = converted(model, "int4", compute=torch.bfloat16)
    assert {p.dtype for p in small.parameters()} == {torch.bfloat16}
    assert logits(small, ids).dtype == torch.bfloat16
    assert away(small, converted(model, "int4"), ids) < 0.05
    assert logits(converted(model, "int4"), ids).dtype == torch.float32


def test_layers_are_kept_by_name(model):
    small = converted(model, "int8", keep=("lm_head", "down_proj", "model.layers.1"))
    report = weight_report(small)
    assert set(report.left) == {
        "lm_head",
        "model.layers.0.mlp.down_proj",
        *(path for path, layer in model.named_modules() if isinstance(layer, nn.Linear) and "layers.1" in path),
    }
    assert isinstance(small.model.layers[0].mlp.down_proj, nn.Linear)
    assert small.model.layers[0].mlp.down_proj is not model.model.layers[0].mlp.down_proj
    everything = weight_report(converted(model, "int8", keep=()))
    assert "lm_head" in everything.converted


def test_a_tied_head_that_is_kept_stays_tied(model):
    small = converted(model, "int8")
    assert small.lm_head.weight is small.model.embed_tokens.weight
    assert small.lm_head.weight is not model.lm_head.weight


def test_the_split_rounds_the_inputs_too(model, ids):
    small = converted(model, "int8-split")
    assert isinstance(small.model.layers[0].mlp.up_proj, OutlierSplitLinear)
    assert away(small, model, ids) > away(converted(model, "int8"), model, ids)
    assert weight_report(small).kernel == "14 × int8 products, outlier columns of x apart"


# GPTQ


@pytest.mark.parametrize(("nearest", "paid"), [("int4-row", "int4-gptq-row"), ("int4", "int4-gptq")])
def test_gptq_beats_nearest_on_perplexity(trained, nearest, paid):
    model, calibration, held_out = trained
    exact = llama.perplexity(model, held_out)
    results = {}
    for name in (nearest, paid):
        small = converted(model, name, calibration=calibration)
        results[name] = llama.perplexity(small, held_out), llama.agreement(small, model, held_out).kl
    assert exact < results[paid][0] < results[nearest][0]
    assert results[paid][1] < 0.7 * results[nearest][1]


def test_each_block_is_calibrated_on_the_rounded_blocks_before_it(model, ids, monkeypatch):
    calls = []
    real = weight_formats.gptq.inputs

    def spy(small, run, paths):
        calls.append((tuple(paths), sum(isinstance(layer, WeightOnlyLinear) for layer in small.modules())))
        return real(small, run, paths)

    monkeypatch.setattr(weight_formats.gptq, "inputs", spy)
    converted(model, "int4-gptq", calibration=ids)
    assert [len(paths) for paths, _ in calls] == [7, 7]
    assert [done for _, done in calls] == [0, 7]


# The kernel for 4 bits


def test_the_kernel_agrees_with_widening():
    weight = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))
    x = torch.randn(3, 5, 256, generator=torch.Generator().manual_seed(1))
    for symmetric in (True, False):
        for group in (32, 128):
            stored = integers.quantize(weight, 4, group, symmetric=symmetric)
            wide, fast = WeightOnlyLinear(stored)(x), Int4PackLinear(stored)(x)
            assert fast.shape == (3, 5, 64)
            assert ((wide - fast).norm() / wide.norm()) < (1e-5 if symmetric else 3e-3)
            assert torch.allclose(Int4PackLinear(stored).widened(), stored.dequantize(), rtol=0.02, atol=0.02)


def test_the_kernel_holds_no_second_copy():
    stored = integers.quantize(torch.randn(64, 256, generator=torch.Generator().manual_seed(0)), 4, 32)
    layer = Int4PackLinear(stored)
    assert layer.nbytes == stored.codes.nbytes + 2 * stored.inv_scale.nbytes  # a zero beside each scale
    with pytest.raises(NotImplementedError, match="kernel's layout"):
        _ = layer.stored


def test_the_kernel_says_what_it_does_not_take():
    four = lambda *shape, **how: integers.quantize(torch.ones(shape), 4, **{"group": 32, **how})  # noqa: E731
    assert why_not(four(64, 128), "cpu", torch.bfloat16) == ""
    assert (
        why_not(integers.quantize(torch.ones(8, 32), 8), "cpu", torch.bfloat16) == "the kernel takes weights of 4 bits"
    )
    assert why_not(four(64, 128, group=16), "cpu", torch.bfloat16).endswith("not 16")
    assert why_not(four(64, 344), "cpu", torch.bfloat16) == "a matrix of 64×344 does not fill the tiles of the kernel"
    assert why_not(four(60, 128), "cpu", torch.bfloat16).startswith("a matrix of 60×128")
    assert why_not(four(64, 128), "cuda", torch.float32) == "the kernel takes bfloat16, not float32"
    assert why_not(four(64, 128), "mps", torch.bfloat16) == "mps is not tried"
    with pytest.raises(ValueError, match="use WeightOnlyLinear"):
        Int4PackLinear(four(64, 344))


def test_a_kernel_is_used_where_asked_for_and_refused_where_it_does_not_fit(model, ids):
    small = converted(model, "int4", kernel="int4pack")
    assert weight_report(small).kernel == f"14 × {Int4PackLinear.multiplied}"
    assert away(small, converted(model, "int4"), ids) < 1e-3
    with pytest.raises(ValueError, match="kernel int4pack does not fit int8"):
        converted(model, "int8", kernel="int4pack")
    assert weight_report(converted(model, "int4")).kernel == f"14 × {WeightOnlyLinear.multiplied}"


@pytest.mark.gpu
def test_a_gpu_uses_the_kernel_by_itself(model, ids):
    small = converted(copy.deepcopy(model).cuda(), "int4", compute=torch.bfloat16)
    assert weight_report(small).kernel == f"14 × {Int4PackLinear.multiplied}"
    assert int4_kernel._tried("cuda:0") == ""
    widened = converted(copy.deepcopy(model).cuda(), "int4", compute=torch.bfloat16, kernel="widened")
    assert away(small, widened, ids.cuda()) < 0.02


# What is refused


def test_mistakes_are_answered_with_the_remedy(model):
    with pytest.raises(ValueError, match="weight format 'int5' is not one of float32, bfloat16"):
        converted(model, "int5")
    with pytest.raises(ValueError, match="pass calibration"):
        converted(model, "int4-gptq")
    with pytest.raises(ValueError, match="kernel 'fast' is not one of auto"):
        converted(model, "int4", kernel="fast")
    with pytest.raises(ValueError, match="no linear layer to convert; kept: "):
        converted(model, "int4", keep=("model", "lm_head"))
    with pytest.raises(ValueError, match="bfloat16 is the dtype of the whole model, and compute is"):
        converted(model, "bfloat16", compute=torch.float32)
    with pytest.raises(ValueError, match="was not made by"):
        weight_report(model)
    with pytest.raises(ValueError, match="bfloat16 is a dtype"):
        WEIGHT_FORMATS["bfloat16"].stored(torch.ones(2, 2))


@pytest.mark.parametrize("name", ["bfloat16", "int8"])
def test_the_frequencies_of_the_positions_stay_in_float32(model, name):
    narrow = converted(model, name, compute=torch.bfloat16)
    for layer in (narrow.model.embed_tokens, narrow.model.norm, narrow.lm_head):
        assert layer.weight.dtype is torch.bfloat16
    frequencies = narrow.model.rotary_emb.inv_freq
    assert torch.equal(frequencies, model.model.rotary_emb.inv_freq)
    assert frequencies.dtype is torch.float32
    assert narrow.lm_head.weight is narrow.model.embed_tokens.weight
