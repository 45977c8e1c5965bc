"""The products of a step: as many operations as torch and the formulas count, each with its layer, role and dtype."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from small_models import flops_of_products
from utils.cost import flops, gemm_shapes
from utils.cost.gemm_shapes import FORWARD, INPUT, WEIGHT, NamedGemm
from utils.cost.roofline import INPUT_BYTES, Gemm
from utils.training import batches, training_loop
from utils.training.recipes import find_recipe
from utils.workloads import models

CPU = torch.device("cpu")
ROWS, LENGTH = 3, 16
SHAPE = models.DistilBertShape(vocabulary=30, width=24, layers=3, heads=3, hidden=40, positions=32)
LLAMA = models.LlamaShape(vocabulary=30, width=24, layers=2, heads=6, groups=3, hidden=40, positions=32)
BUILD = {"distilbert": lambda: models.build_distilbert(SHAPE), "llama": lambda: models.build_llama(LLAMA)}


def trainer(kind: str, name: str = "32-true") -> training_loop.Trainer:
    model = BUILD[kind]()
    model.set_attn_implementation("eager")
    schedule = training_loop.Schedule(learning_rate=1e-3)
    return training_loop.Trainer(model, recipe=find_recipe(name), device=CPU, schedule=schedule, steps=1)


def batch(kind: str) -> batches.Batch:
    ids = torch.randint(5, 30, (ROWS, LENGTH), generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(ROWS, dtype=torch.long) if kind == "distilbert" else torch.zeros_like(ids)
    return batches.Batch(ids, torch.ones_like(ids), labels)


def of_training_step(kind: str, name: str = "32-true") -> list[NamedGemm]:
    learner = trainer(kind, name)
    with learner.recipe.on(CPU):
        return gemm_shapes.record_gemms(learner.model, lambda: learner.step(batch(kind)))


@pytest.fixture(scope="module", params=BUILD)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def found(kind) -> list[NamedGemm]:
    return of_training_step(kind)


def test_the_operations_are_those_that_torch_counts_and_those_of_the_formula(kind, found):
    learner = trainer(kind)
    with FlopCounterMode(display=False) as counter:
        learner.step(batch(kind))
    assert gemm_shapes.count_flops(found) == flops_of_products(counter)
    assert gemm_shapes.count_flops(found) == flops.count_step_flops(learner.model.config, ROWS, LENGTH)


def test_every_weight_matrix_has_a_product_forward_and_two_backward(kind, found):
    by_layer = {}
    for named in found:
        by_layer.setdefault(named.layer, {}).setdefault(named.role, []).append(named)
    linear = {name: module for name, module in trainer(kind).model.named_modules() if isinstance(module, nn.Linear)}
    for name, module in linear.items():
        (forward,), (inward,), (weight,) = (by_layer[name][role] for role in gemm_shapes.ROLES)
        tokens, width_in, width_out = forward.gemm.m, module.in_features, module.out_features
        assert tokens in (ROWS, ROWS * LENGTH)
        assert forward.gemm == Gemm(tokens, width_out, width_in)
        assert inward.gemm == Gemm(tokens, width_in, width_out)
        assert weight.gemm in (Gemm(width_out, width_in, tokens), Gemm(width_in, width_out, tokens))
        assert [each.count for each in (forward, inward, weight)] == [1, 1, 1]
    attention = {name for name in by_layer if name not in linear}
    assert all("attention" in name or "self_attn" in name for name in attention)
    for name in attention:  # scores and what they weigh: each has two gradients, and neither is a weight's
        counts = {role: sum(named.count for named in products) for role, products in by_layer[name].items()}
        heads = ROWS * (SHAPE.heads if kind == "distilbert" else LLAMA.heads)
        assert counts == {FORWARD: 2 * heads, INPUT: 4 * heads}


def test_merging_counts_the_layers_and_keeps_the_operations(kind, found):
    layers = SHAPE.layers if kind == "distilbert" else LLAMA.layers
    merged = gemm_shapes.merge_layers(found)
    assert gemm_shapes.count_flops(merged) == gemm_shapes.count_flops(found)
    inner = [named for named in merged if "*" in named.layer]
    assert inner
    assert all(named.count % layers == 0 for named in inner)
    assert not any(part.isdigit() for named in merged for part in named.layer.split("."))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("bf16-mixed", "bfloat16"), ("64-true", "float64"), ("16-true", "float16"), ("16-mixed", "float16")],
)
def test_the_dtype_is_that_of_the_factors_under_autocast_as_well(kind, found, name, dtype):
    narrow = of_training_step(kind, name)
    assert [dataclasses.replace(named, dtype="float32") for named in narrow] == found
    assert {named.dtype for named in narrow} == {dtype} <= set(INPUT_BYTES)


def test_a_recipe_entered_inside_shows_the_float32_that_a_cpu_multiplies_in_place_of_float16(found, kind):
    learner = trainer(kind, "16-true")

    def step():
        with learner.recipe.on(CPU):
            learner.step(batch(kind))

    shown = gemm_shapes.record_gemms(learner.model, step)
    assert shown == (found if learner.recipe.emulated(CPU) else of_training_step(kind, "16-true"))


def test_on_the_meta_device_the_shapes_are_the_same_and_nothing_is_computed(kind, found):
    model = BUILD[kind]().to("meta").train()
    model.set_attn_implementation("eager")
    ids = torch.zeros(ROWS, LENGTH, dtype=torch.long, device="meta")
    shown = gemm_shapes.record_gemms(model, lambda: model(input_ids=ids).logits.sum().backward())
    assert set(shown) == set(found)


def test_without_a_backward_pass_there_are_forward_products_alone(kind, found):
    model = BUILD[kind]().eval()
    model.set_attn_implementation("eager")
    for without in (torch.no_grad, torch.inference_mode):
        with without():
            shown = gemm_shapes.record_gemms(model, lambda: model(input_ids=batch(kind).ids))
        assert shown == [named for named in found if named.role == FORWARD]


def test_what_a_checkpoint_computes_again_is_a_forward_product():
    layer = nn.Sequential(nn.Linear(8, 8, bias=False), nn.GELU())
    x = torch.ones(8, 8, requires_grad=True)
    shown = gemm_shapes.record_gemms(layer, lambda: checkpoint(layer, x, use_reentrant=False).sum().backward())
    eight = Gemm(8, 8, 8)
    assert set(shown) == {
        NamedGemm(eight, "0", FORWARD, "float32", 2),
        NamedGemm(eight, "0", INPUT, "float32"),
        NamedGemm(eight, "0", WEIGHT, "float32"),
    }


def test_two_layers_that_share_a_matrix_and_an_input_keep_their_names():
    model = nn.ModuleDict({"a": nn.Linear(4, 4, bias=False), "b": nn.Linear(4, 4, bias=False)})
    model["b"].weight = model["a"].weight
    x = torch.ones(2, 4)
    shown = gemm_shapes.record_gemms(model, lambda: (model["a"](x) + model["b"](x)).sum().backward())
    expected = [(name, role) for role in (FORWARD, WEIGHT) for name in ("a", "b")]
    assert sorted((named.layer, named.role) for named in shown) == sorted(expected)


def test_vectors_and_batches_have_their_sizes_and_products_outside_of_modules_no_layer():
    a, b = torch.ones(5, 2, 3), torch.ones(5, 3, 4)
    weight, vector = torch.ones(2, 3), torch.ones(3)
    shown = gemm_shapes.record_gemms(nn.Identity(), lambda: (a @ b, weight @ vector, vector @ vector))
    assert shown == [
        NamedGemm(Gemm(2, 4, 3), "", FORWARD, "float32", 5),
        NamedGemm(Gemm(2, 1, 3), "", FORWARD, "float32"),
        NamedGemm(Gemm(1, 1, 3), "", FORWARD, "float32"),
    ]


def test_a_scaled_product_of_eight_bits_is_called_float8():
    one, x = torch.ones(()), torch.ones(16, 16)

    def step():
        eight = x.to(torch.float8_e4m3fn)
        torch._scaled_mm(eight, eight.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    assert gemm_shapes.record_gemms(nn.Identity(), step) == [NamedGemm(Gemm(16, 16, 16), "", FORWARD, "float8")]


@pytest.mark.parametrize(
    ("model", "x", "named"),
    [
        (nn.Conv1d(2, 2, 1), torch.ones(1, 2, 4), "convolution"),
        (nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True), torch.ones(1, 4, 8), "attention"),
    ],
)
def test_an_operation_that_hides_its_products_is_refused(model, x, named):
    with pytest.raises(ValueError, match=f"{named}.* holds products that cannot be seen"):
        gemm_shapes.record_gemms(model.train(), lambda: model(x))


def test_a_product_of_the_backward_pass_without_a_factor_of_the_forward_pass_is_refused():
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.clone()

        @staticmethod
        def backward(context, gradient):
            return gradient @ torch.ones(4, 4)

    x = torch.ones(4, 4, requires_grad=True)
    with pytest.raises(ValueError, match=r"\[4, 4\] @ \[4, 4\] of the backward pass shares no factor"):
        gemm_shapes.record_gemms(nn.Identity(), lambda: Odd.apply(x).sum().backward())


def test_no_hook_stays_when_a_step_fails():
    model = nn.Linear(2, 2)

    def step():
        model(torch.ones(2, 2))
        raise RuntimeError("a step that fails")

    with pytest.raises(RuntimeError, match="a step that fails"):
        gemm_shapes.record_gemms(model, step)
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
