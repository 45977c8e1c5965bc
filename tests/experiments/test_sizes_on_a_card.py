"""What the commands of `make record` hold at full size, and whether a card of 80 GB has room for it."""

import itertools
from dataclasses import replace

import pytest
import torch

from fake_cuda import CUDA, MEMORY, card, peak_of
from utils.cost import memory
from utils.cost.roofline import INPUT_BYTES, OUTPUT_BYTES
from utils.emulation import float32_matmul
from utils.experiments import (
    accumulation_error,
    gemm_calls,
    gemm_sweep,
    gemm_sweep_shapes,
    refinement_speed,
)
from utils.experiments.microscope.ways_to_multiply import list_ways
from utils.quantization.weight_formats import converted
from utils.training.batches import Batch
from utils.training.recipes import ALL_RECIPES, COMPARED
from utils.training.training_loop import Schedule, Trainer
from utils.workloads import models, review_task
from utils.workloads.models import LLAMAS

GB = 1e9
ROOM = 0.9 * MEMORY  # what is left beside the context, the library's workspaces and what the allocator rounds up


def copies(family, dtypes=gemm_sweep.DTYPES):
    """Bytes of all products of a family, which are held together because they take turns."""
    for (gemm, batch), dtype in itertools.product(family, dtypes):
        moved = batch * gemm.moved(INPUT_BYTES[dtype], OUTPUT_BYTES[dtype])
        yield moved * (1 + min(gemm_calls.COPIES, max(1, -(-gemm_calls.COLD_BYTES // moved))))


def test_the_products_of_a_sweep_fit():
    largest = max(sum(copies(family)) for _, family in gemm_sweep_shapes.list_families("full"))
    assert 1 * GB < largest < ROOM / 2


@pytest.mark.parametrize("way", refinement_speed.WAYS)
def test_the_largest_solve_fits(monkeypatch, way):
    """One matrix is held; every way makes its factors beside it, one after the other. 16-bit panels are float32."""
    n = max(refinement_speed.SIZES["full"])
    itemsize = refinement_speed.DTYPES[way].itemsize
    with card(monkeypatch):
        a = torch.empty(n, n, dtype=torch.float64, device=CUDA)
        if itemsize > 2:
            beside = peak_of(lambda: refinement_speed.factorize(a, way))
        else:
            monkeypatch.setattr(refinement_speed, "_read_order", lambda pivots, count: torch.arange(count))
            monkeypatch.setattr(refinement_speed, "multiply", lambda x, y: x.new_empty(len(x), y.shape[1]).float())
            beside = peak_of(lambda: refinement_speed.blocked_lu(a.float(), refinement_speed.DTYPES[way], block=8_192))
    assert 8 * n * n + beside < ROOM  # a itself, and what a way makes


def test_the_7b_shape_fits_in_float32_and_once_more():
    """`generation` keeps the float32 model beside that in another format, which begins as a copy."""
    model = models.build_llama(LLAMAS["full"], device="meta")
    wide = sum(4 * parameter.numel() for parameter in model.parameters())
    cache = 2 * 32 * 4_096 * 208 * 4  # keys and values of 32 layers, 208 positions
    assert 26 * GB < wide < 28 * GB
    assert 2 * wide + cache < ROOM


@pytest.mark.parametrize("name", COMPARED)
def test_a_step_of_distilbert_fits(name):
    model = models.build_distilbert(review_task.FULL.shape, device="meta")
    settings = review_task.FULL
    ledger = memory.predict(
        model, name, batch=settings.batch, length=settings.max_length, attention="eager", device="cuda"
    )
    assert 0.5 * GB < ledger.total < ROOM


@pytest.mark.parametrize("name", ["bfloat16", "int8", "int4"])
def test_a_format_is_made_within_one_more_copy(monkeypatch, name):
    shape = replace(LLAMAS["full"], width=512, hidden=1_376, heads=4, groups=4, layers=4, vocabulary=64)
    with card(monkeypatch):
        model = models.build_llama(shape, device=CUDA)
        wide = sum(4 * parameter.numel() for parameter in model.parameters())
        compute = None if name == "bfloat16" else torch.bfloat16
        assert peak_of(lambda: converted(model, name, compute=compute), *model.parameters()) < 2.6 * wide


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
def test_every_product_of_accumulation_error_runs_on_the_card_and_fits(monkeypatch, inputs):
    count = max(accumulation_error.COUNTS["full"])
    with card(monkeypatch):
        ways = list_ways(CUDA)

        def measure_all():
            for way in ways.values():
                points = list(accumulation_error.measure_device([way], [count], device=CUDA, inputs=inputs))
                assert all(point.note or point.error for point in points)

        assert peak_of(measure_all) < ROOM
    assert {name for name, way in ways.items() if way.reason} <= {name for name in ways if "e5m2" in name}


@pytest.mark.parametrize("size", ["small", "full"])
def test_every_dtype_of_the_sweep_is_prepared(monkeypatch, size):
    (family,) = itertools.islice((shapes for _, shapes in gemm_sweep_shapes.list_families(size, groups=("odd",))), 1)
    monkeypatch.setattr(gemm_calls.machine, "product_bits", lambda device: 11)
    with card(monkeypatch), float32_matmul.allowing("highest"):
        for (gemm, batch), dtype in itertools.product(family, gemm_calls.DTYPES):
            call, note = gemm_calls.prepare_call(gemm, dtype, batch=batch, device=CUDA)
            assert call or (dtype == "float8" and gemm.k % 16), (dtype, gemm, note)
            if call:
                call.times(2)()


@pytest.mark.parametrize("name", [name for name in ALL_RECIPES if name in COMPARED or name.startswith("fp8")])
def test_the_forward_pass_of_every_recipe_runs_on_the_card(monkeypatch, name):
    recipe = ALL_RECIPES[name]
    shape = replace(review_task.TINY, width=128, hidden=256, vocabulary=64)  # of 128: torch's check without a GPU asks
    with card(monkeypatch):
        model = models.build_distilbert(shape, device=CUDA)
        assert models.fit_attention(model, CUDA) == "sdpa"
        trainer = Trainer(model, recipe=recipe, device=CUDA, schedule=Schedule(1e-3), steps=2)
        ids = torch.ones(4, 16, dtype=torch.long)
        batch = Batch(ids, torch.ones_like(ids), torch.zeros(4, dtype=torch.long))
        with recipe.on(CUDA):
            loss = trainer.loss(batch.to(CUDA))
        assert loss.device == CUDA
        assert loss.dtype == torch.promote_types(recipe.weights, torch.float32)
        kernel = recipe.adamw_kernel(CUDA)
    assert kernel == ("ours" if recipe.store else "fused" if recipe.weights.itemsize > 2 else "for-loop")


def test_a_checkpoint_keeps_and_restores_the_generator_of_the_card(monkeypatch):
    shape = replace(review_task.TINY, width=64, hidden=128, vocabulary=64)
    with card(monkeypatch) as calls:
        model = models.build_distilbert(shape, device=CUDA)
        recipe = ALL_RECIPES["16-mixed"]
        trainer = Trainer(model, recipe=recipe, device=CUDA, schedule=Schedule(1e-3), steps=2)
        del calls[:]
        state = trainer.state_dict()
        assert calls == ["get_rng_state"]
        assert state["cuda_generator"].device.type == "cpu"  # torch takes it back from there alone
        trainer.load_state_dict(state)
        assert calls == ["get_rng_state", "set_rng_state"]
