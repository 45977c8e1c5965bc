"""The largest batch by search; checkpointing and accumulation with the gradients of the plain step."""

import functools
import math

import pytest
import torch
from torch import nn

from utils import measure
from utils.cost import fitting, memory
from utils.training import recipes
from utils.training.batches import IGNORED, Batch
from utils.training.training_loop import Schedule, Trainer
from utils.workloads import models

CPU = torch.device("cpu")
SHAPE = models.DistilBertShape(vocabulary=97, width=32, layers=4, heads=4, hidden=64, positions=32, dropout=0.1)
LLAMA = models.LlamaShape(vocabulary=97, width=32, layers=4, heads=4, groups=2, hidden=48, positions=32)


def trainer(recipe: str = "32-true", *, kind: str = "distilbert", dropout: float = 0.0) -> Trainer:
    chosen = recipes.find_recipe(recipe)
    if kind == "llama":
        model = models.build_llama(LLAMA)
    else:
        shape = functools.partial(
            models.DistilBertShape, **(vars(SHAPE) | {"dropout": dropout, "head_dropout": dropout})
        )
        model = models.build_distilbert(shape(), attention="eager")
    return Trainer(model, recipe=chosen, device=CPU, schedule=Schedule(1e-3), steps=1_000)


def batch(rows: int = 8, *, length: int = 16, kind: str = "distilbert", seed: int = 0) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 97, (rows, length), generator=draw)
    if kind == "llama":
        labels = ids.roll(-1, 1)
        for row in range(rows):
            labels[row, length - 1 - row :] = IGNORED  # texts of different lengths
    else:
        labels = torch.randint(2, (rows,), generator=draw)
    return Batch(ids, torch.ones_like(ids), labels)


def gradients(t: Trainer) -> list[torch.Tensor]:
    return [weight.grad.clone() for weight in t.model.parameters() if weight.grad is not None]


def plain(t: Trainer, given: Batch) -> list[torch.Tensor]:
    t.optimizer.zero_grad()
    with t.recipe.on(CPU):
        t.loss(given).backward()
    return gradients(t)


# The largest batch


@pytest.mark.parametrize("answer", [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 99, 100])
def test_the_search_finds_the_last_that_fits_in_few_calls(answer):
    asked = []

    def fits(rows):
        asked.append(rows)
        return rows <= answer

    assert fitting.largest_batch(fits, most=100) == answer
    assert len(asked) == len(set(asked)) <= 2 * math.log2(answer + 1) + 2
    assert all(1 <= rows <= 100 for rows in asked)


def test_a_search_is_bounded_and_needs_room():
    assert fitting.largest_batch(lambda rows: True, most=1_000) == 1_000
    assert fitting.largest_batch(lambda rows: True, most=1) == 1
    with pytest.raises(ValueError, match="most 0 leaves no batch"):
        fitting.largest_batch(lambda rows: True, most=0)


def test_the_predicted_batch_is_the_last_whose_ledger_is_within_the_budget():
    t, budget = trainer("bf16-mixed"), 20e6
    fits = fitting.predicted_fits(t.model, t.recipe, budget=budget, length=16)
    rows = fitting.largest_batch(fits)
    total = [memory.predict(t.model, t.recipe, batch=n, length=16).total for n in (rows, rows + 1)]
    assert total[0] <= budget < total[1]


def test_what_is_asked_of_the_ledger_reaches_it():
    t = trainer()
    ask = functools.partial(fitting.predicted_fits, t.model, "32-true", length=16, budget=5e6)
    assert fitting.largest_batch(ask(checkpointing=True)) > 2 * fitting.largest_batch(ask())


@pytest.mark.parametrize("kind", ["distilbert", "llama"])
@pytest.mark.parametrize("recipe", ["32-true", "bf16-mixed", "bf16-true"])
def test_a_step_peaks_near_the_ceiling_that_was_predicted(recipe, kind):
    t = trainer(recipe, kind=kind)
    fitting.step_peak(t, batch(kind=kind))  # moments and gradients are there from now on
    peak = fitting.step_peak(t, batch(64, length=32, kind=kind) if kind == "distilbert" else batch(12, kind=kind))
    assert peak > memory.measure_ledger(t, batch(1, kind=kind)).at_rest
    if kind == "distilbert":
        assert peak == pytest.approx(memory.predict(t.model, recipe, batch=64, length=32, padded=False).total, rel=0.1)


def test_a_budget_decides_where_nothing_runs_out_of_memory():
    t = trainer()
    fitting.step_peak(t, batch(1))
    sizes = [fitting.step_peak(t, batch(n)) for n in (8, 9)]
    assert sizes[0] < sizes[1]
    fits = fitting.step_fits(t, batch, budget=sizes[0])
    assert fits(8)
    assert not fits(9)
    assert fitting.largest_batch(fits) == 8
    assert all(weight.grad is None for weight in t.model.parameters())


def test_without_a_budget_a_processor_is_refused():
    with pytest.raises(ValueError, match="name a budget in bytes"):
        fitting.step_fits(trainer(), batch)


def test_running_out_of_memory_means_that_it_does_not_fit(monkeypatch):
    t = trainer()
    t.step(batch(2))

    def full(batch):
        raise torch.OutOfMemoryError("CUDA out of memory")

    emptied = []
    monkeypatch.setattr(t, "step", full)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    assert not fitting.step_fits(t, batch, budget=10**12)(4)
    assert emptied
    assert all(weight.grad is None for weight in t.model.parameters())


@pytest.mark.gpu
def test_on_a_gpu_memory_itself_decides():
    device = torch.device("cuda")
    model = models.build_distilbert(SHAPE, attention="eager")
    t = Trainer(model, recipe=recipes.find_recipe("32-true"), device=device, schedule=Schedule(1e-3), steps=1_000)
    fits = fitting.step_fits(t, batch)
    assert fits(8)
    before = torch.cuda.memory_allocated()
    torch.cuda.set_per_process_memory_fraction((before + 2**26) / torch.cuda.get_device_properties(0).total_memory)
    try:
        assert not fits(65_536)
        assert fits(8)  # again, after it ran out
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


# Checkpointing


@pytest.mark.parametrize("kind", ["distilbert", "llama"])
@pytest.mark.parametrize("every", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("recipe", ["32-true", "bf16-mixed"])
def test_the_gradients_are_those_of_the_plain_step_with_dropout_too(kind, every, recipe):
    t, given = trainer(recipe, kind=kind, dropout=0.1), batch(kind=kind)
    torch.manual_seed(1)
    expected = plain(t, given)
    torch.manual_seed(1)
    with fitting.checkpointed(t.model, every=every):
        found = plain(t, given)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_the_model_is_put_back_also_after_an_error():
    t = trainer()
    names = [name for name, _ in t.model.named_parameters()]
    with pytest.raises(ZeroDivisionError), fitting.checkpointed(t.model, every=2):
        1 / (len(t.model.distilbert.transformer.layer) - 2)  # two segments of two
    assert [name for name, _ in t.model.named_parameters()] == names
    with pytest.raises(ValueError, match="every 0 makes segments of no block"), fitting.checkpointed(t.model, every=0):
        pass
    with pytest.raises(ValueError, match="Linear has no list of blocks"), fitting.checkpointed(nn.Linear(2, 2)):
        pass


@pytest.mark.parametrize("recipe", ["32-true", "bf16-mixed", "bf16-true"])
def test_every_second_block_saves_half_of_what_every_block_saves(recipe):
    t, given = trainer(recipe), batch()
    saved = {}
    for every in (1, 2, 4):
        with fitting.checkpointed(t.model, every=every), measure.SavedBytes(t.model) as kept, t.recipe.on(CPU):
            t.loss(given)
        saved[every] = kept.total
    one = 8 * 16 * 32 * (2 if recipe == "bf16-true" else 4)  # [B, S, D]: LayerNorm's output is float32 under autocast
    assert saved[1] - saved[2] == 2 * one
    assert saved[2] - saved[4] == one


def test_the_library_saves_the_same_bytes():
    t, given = trainer(), batch()
    with fitting.checkpointed(t.model), measure.SavedBytes(t.model) as ours:
        t.loss(given)
    models.checkpoint_blocks(t.model)
    with measure.SavedBytes(t.model) as theirs:
        t.loss(given)
    assert ours.total == theirs.total


def test_the_costs_count_bytes_and_repeats():
    t = trainer()
    none, one, two = fitting.checkpointing_costs(t, batch(32, length=32), every=(0, 1, 2), repeats=1)
    assert (none.every, one.every, two.every) == (0, 1, 2)
    assert (none.forwards, one.forwards, two.forwards) == (1, 2, 2)
    assert one.saved < none.saved / 4
    assert two.saved < one.saved
    assert one.peak < two.peak < none.peak
    assert all(cost.seconds > 0 for cost in (none, one, two))
    assert all(weight.grad is None for weight in t.model.parameters())


def test_the_recompute_has_the_dtypes_of_the_forward_pass():
    for recipe, dtype in (("32-true", torch.float32), ("bf16-mixed", torch.bfloat16), ("bf16-true", torch.bfloat16)):
        seen = fitting.dtypes_of_both_passes(trainer(recipe), batch())
        assert len(seen) == 8  # four products of attention, two of the feed-forward network, two norms
        assert all(len(passes) == 2 and passes[0] == passes[1] for passes in seen.values())
        assert seen["attention.q_lin"] == (dtype, dtype)
    assert fitting.dtypes_of_both_passes(trainer("bf16-mixed"), batch())["sa_layer_norm"][0] == torch.float32


# Accumulation


@pytest.mark.parametrize("kind", ["distilbert", "llama"])
@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_the_parts_add_up_to_the_gradient_of_the_whole_batch(kind, parts):
    t, given = trainer(kind=kind), batch(kind=kind)
    expected, loss = plain(t, given), t.loss(given)
    t.optimizer.zero_grad()
    total = fitting.accumulate_gradients(t, given, parts=parts)
    assert total.item() == pytest.approx(loss.item(), rel=1e-6)
    for one, other in zip(gradients(t), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def test_parts_save_their_share_of_the_activations():
    t, given = trainer(), batch(32, length=32)

    def saved(one):
        with measure.SavedBytes(t.model) as kept:
            t.loss(one)
        return kept.total

    quarter = Batch(*(field[:8] for field in (given.ids, given.mask, given.labels)))
    assert saved(quarter) == pytest.approx(saved(given) / 4, rel=0.01)


def test_the_loss_scale_is_in_the_sum_and_bad_parts_are_refused():
    t, given = trainer("16-mixed"), batch()
    with t.recipe.on(CPU):
        t.step(given)
        t.optimizer.zero_grad()
        fitting.accumulate_gradients(t, given, parts=2)
    scaled = gradients(t)
    expected = plain(t, given)
    norms = [torch.linalg.vector_norm(torch.cat([g.flatten() for g in some])).item() for some in (scaled, expected)]
    assert norms[0] == pytest.approx(t.scaler.get_scale() * norms[1], rel=0.02)
    for parts in (0, 9):
        with pytest.raises(ValueError, match=f"{parts} parts do not divide 8 rows"):
            fitting.accumulate_gradients(t, given, parts=parts)
